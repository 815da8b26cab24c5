"""How far loops and couplings are from closed, and what they ask of velocities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.closure_kernels import relative_poses, run
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, ShapeError
from linkwise.model import closure
from linkwise.model.closure import closure_nodes, constraint_names, constraint_sizes
from linkwise.model.loop_error import loop_error
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose

__all__ = [
    "blocked_directions",
    "closure_nodes",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "constraint_names",
    "constraint_sizes",
    "loop_coordinates",
    "loop_errors",
    "loop_forces",
    "relative_poses",
]


def loop_coordinates(
    mech: Mechanism, q: ArrayLike, guess: dict[str, Array] | None = None
) -> dict[str, Array]:
    """θ of the hinge inside each loop, by the loop's name, with quaternions where it has them.

    These are Θ(0) of JPL 88-11-II, Appendix A, the configuration parameters of a contact. Where a
    loop is not closed, θ is that of the nearest pose its hinge allows.

    Args:
        guess: Where to begin, by the loop's name; by default each hinge at neutral.

    Returns:
        For each loop (nq of its hinge,) or (batch, nq of its hinge).
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    lead, found = q.shape[:-1], dict[str, Array]()
    for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True):
        start = None if guess is None else guess.get(loop.name)
        each = [
            closure.coordinates(loop.hinge, closure.one_of(X_ab, i), start)
            for i in np.ndindex(*lead)
        ]
        found[loop.name] = np.reshape(each, (*lead, loop.hinge.nq))
    return found


def loop_errors(mech: Mechanism, q: ArrayLike) -> Array:
    """How far each loop is from closed.

    For each loop the rotation vector [rad] and the translation [m] from the nearest pose its hinge
    allows to the pose that node b has, seen from there.

    Returns:
        (loops, 6) or (batch, loops, 6).
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    return _loop_errors(mech, q, relative_poses(mech, q))


def _loop_errors(mech: Mechanism, q: Array, poses: Sequence[Pose]) -> Array:
    lead, out = q.shape[:-1], np.zeros((*q.shape[:-1], len(mech.loops), 6))
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        each = [loop_error(loop.hinge, closure.one_of(X_ab, state)) for state in np.ndindex(*lead)]
        out[..., i, :] = np.reshape(each, (*lead, 6))
    return out


def constraint_error(mech: Mechanism, q: ArrayLike) -> Array:
    """How far the constraints are from met, row by row: zero where all loops are closed.

    For a loop S e, with e as in `loop_errors` and S the directions that its hinge blocks; for a
    coupling q_dependent - f(q). Its rate of change is `constraint_jacobian` times v, up to terms
    of the size of the error.

    Returns:
        (m,) or (batch, m) [rad or m], in the order of `constraint_names`.
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    return error_at(mech, q, relative_poses(mech, q))


def error_at(mech: Mechanism, q: Array, poses: Sequence[Pose]) -> Array:
    """`constraint_error` with X_ab of each loop."""
    e, still = _loop_errors(mech, q, poses), np.zeros((*q.shape[:-1], 6))
    parts = [np.zeros((*q.shape[:-1], 0))]
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        S = closure.blocked(loop.hinge, X_ab, still).S
        parts.append((S @ e[..., i, :, None])[..., 0])
    parts += [closure.coupling_error(mech, x, q)[..., None] for x in mech.couplings]
    return np.concatenate(parts, axis=-1)


def constraint_jacobian(mech: Mechanism, q: ArrayLike) -> Array:
    """J_c: what the constraints ask of velocities is J_c v = 0.

    Expression:
        J_c = Q J + Y
    with J = B* φ* H* of the nodes of the loops, Q V = S (V_b - T V_a) for each loop and Y the rows
    of the couplings.

    Returns:
        (m, nv) or (batch, m, nv), in the order of `constraint_names`.
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*mech.check_q(q).shape[:-1], 0, mech.nv))
    return run(mech, "constraint_jacobian", {"q": q})


def constraint_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """γ = J̇_c v: what the constraints ask of accelerations is J_c v̇ + γ = 0.

    Expression:
        γ = Q B* φ* A_V v + κ,   κ = S (V_ab × T V_a - Ḣ* W) for a loop,
                                 κ = Ṅ_d v - Σ (f_j Ṅ_j v + f_jj (N_j v)²) for a coupling

    Returns:
        (m,) or (batch, m) [rad/s² or m/s²].
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q, v), 0))
    return run(mech, "constraint_bias", {"q": q, "v": v})


def lead(mech: Mechanism, q: ArrayLike, *vectors: ArrayLike) -> tuple[int, ...]:
    """The batch of a state and vectors over the freedoms, all of which are checked."""
    batches = {x.shape[:-1] for x in (mech.check_q(q), *map(mech.check_v, vectors))} - {()}
    if len(batches) > 1:
        raise ShapeError(f"the batches of q, v and others differ: {sorted(batches)}.")
    return batches.pop() if batches else ()


def blocked_directions(mech: Mechanism, q: ArrayLike) -> list[Array]:
    """S of each loop (rows, 6) or (batch, rows, 6): what its hinge blocks, in node b's axes."""
    q = mech.check_q(q)
    still, found = np.zeros((*q.shape[:-1], 6)), list[Array]()
    for loop, X_ab in zip(mech.loops, relative_poses(mech, q), strict=True):
        S = closure.blocked(loop.hinge, X_ab, still).S
        found.append(np.broadcast_to(S, (*q.shape[:-1], *S.shape[-2:])))
    return found


def loop_forces(mech: Mechanism, q: ArrayLike, lam: ArrayLike) -> dict[str, Array]:
    """The force in each loop: S* λ, which acts on node b; on node a acts the opposite.

    Args:
        lam: Forces along the rows of the constraints (m,) or (batch, m), from `constraint_forces`.

    Returns:
        By the loop's name (moment, force) about node b's origin in its axes, (6,) or (batch, 6).
    """
    check_mechanism(mech)
    lam, sizes = floats(lam, "lam"), constraint_sizes(mech)
    if lam.ndim == 0 or lam.shape[-1] != sum(sizes):
        raise ShapeError(
            f"lam has shape {lam.shape}; {mech.name!r} has {sum(sizes)} rows of constraints."
        )
    if not np.isfinite(lam).all():
        raise ModelError("lam is not finite.")
    given = mech.check_q(q)
    if lam.ndim > 1 and given.ndim > 1 and lam.shape[:-1] != given.shape[:-1]:
        raise ShapeError(f"q {given.shape} and lam {lam.shape} do not go together.")
    parts = np.split(lam, np.cumsum(sizes)[:-1], axis=-1)
    each = zip(mech.loops, blocked_directions(mech, q), parts, strict=False)
    return {loop.name: (x[..., None, :] @ S)[..., 0, :] for loop, S, x in each}
