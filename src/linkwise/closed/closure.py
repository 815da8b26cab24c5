"""How far loops and couplings are from closed, and what they ask of velocities."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.kernels import check_mechanism, kernel
from linkwise.errors import ShapeError
from linkwise.model import closure
from linkwise.model.closure import closure_nodes, constraint_names, constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose
from linkwise.spatial.vector import cross_velocity

__all__ = [
    "closure_nodes",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "constraint_names",
    "constraint_sizes",
    "loop_coordinates",
    "loop_errors",
]


def relative_poses(mech: Mechanism, q: Array) -> list[Pose]:
    """X_ab of each loop: rot (..., 3, 3), p (..., 3)."""
    if not mech.loops:
        return []
    found = kernel(mech, "node_poses", closure_nodes(mech))(q)
    place = np.reshape(found, (*np.shape(q)[:-1], len(mech.loops), 2, 3, 4))
    a, b = (Pose(place[..., i, :, :3], place[..., i, :, 3]) for i in (0, 1))
    whole = a.inverse() @ b
    return [Pose(whole.rot[..., i, :, :], whole.p[..., i, :]) for i in range(len(mech.loops))]


def loop_coordinates(
    mech: Mechanism, q: ArrayLike, guess: dict[str, Array] | None = None
) -> dict[str, Array]:
    """θ of the hinge inside each loop, by the loop's name, with quaternions where it has them.

    These are Θ(0) of JPL 88-11-II, Appendix A, the configuration parameters of a contact. Where a
    loop is not closed, θ is that of the nearest pose its hinge allows.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
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

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].

    Returns:
        (loops, 6) or (batch, loops, 6).
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    found, out = loop_coordinates(mech, q), np.zeros((*q.shape[:-1], len(mech.loops), 6))
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
        out[..., i, :] = closure.error(loop.hinge, X_ab, found[loop.name])
    return out


def constraint_error(mech: Mechanism, q: ArrayLike) -> Array:
    """How far the constraints are from met, row by row: zero where all loops are closed.

    For a loop S e, with e as in `loop_errors` and S the directions that its hinge blocks; for a
    coupling q_dependent - f(q). Its rate of change is `constraint_jacobian` times v, up to terms
    of the size of the error.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].

    Returns:
        (m,) or (batch, m) [rad or m], in the order of `constraint_names`.
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    e, still = loop_errors(mech, q), np.zeros((*q.shape[:-1], 6))
    parts = [np.zeros((*q.shape[:-1], 0))]
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
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

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].

    Returns:
        (m, nv) or (batch, m, nv), in the order of `constraint_names`.
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    lead, still = q.shape[:-1], np.zeros((*q.shape[:-1], mech.nv))
    parts = [np.zeros((*lead, 0, mech.nv))]
    if mech.loops:
        J = np.asarray(kernel(mech, "jacobian", closure_nodes(mech))(q))
        J = J.reshape(*lead, len(mech.loops), 2, 6, mech.nv)
        for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
            T = np.swapaxes(X_ab.shift, -1, -2)
            S = closure.blocked(loop.hinge, X_ab, np.zeros((*lead, 6))).S
            parts.append(S @ (J[..., i, 1, :, :] - T @ J[..., i, 0, :, :]))
    for coupling in mech.couplings:
        row = np.zeros((*lead, 1, mech.nv))
        for k, values in closure.follower(mech, coupling, q, still).terms:
            row[..., 0, mech.v_start[k] : mech.v_start[k + 1]] += values
        parts.append(row)
    return np.concatenate(parts, axis=-2)


def constraint_bias(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """γ = J̇_c v: what the constraints ask of accelerations is J_c v̇ + γ = 0.

    Expression:
        γ = Q B* φ* A_V v + κ,   κ = S (V_ab × T V_a - Ḣ* W) for a loop,
                                 κ = Ṅ_d v - Σ (f_j Ṅ_j v + f_jj (N_j v)²) for a coupling

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].

    Returns:
        (m,) or (batch, m) [rad/s² or m/s²].
    """
    check_mechanism(mech)
    q, v = mech.check_q(q), mech.check_v(v)
    if q.ndim > 1 and v.ndim > 1 and q.shape[:-1] != v.shape[:-1]:
        raise ShapeError(f"q {q.shape} and v {v.shape} do not go together: their batches differ.")
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = np.broadcast_to(q, (*lead, mech.nq)), np.broadcast_to(v, (*lead, mech.nv))
    parts = [np.zeros((*lead, 0))]
    if mech.loops:
        nodes = closure_nodes(mech)
        shape = (*lead, len(mech.loops), 2, 6)
        V = np.reshape(kernel(mech, "node_velocity", nodes)(q, v), shape)
        A = np.reshape(kernel(mech, "jacobian_dot_v", nodes)(q, v), shape)
        for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
            carried = X_ab.shift_velocity(V[..., i, 0, :])
            V_ab = V[..., i, 1, :] - carried
            asked = A[..., i, 1, :] - X_ab.shift_velocity(A[..., i, 0, :])
            asked = asked + cross_velocity(V_ab, carried)
            found = closure.blocked(loop.hinge, X_ab, V_ab)
            parts.append((found.S @ asked[..., None])[..., 0] + found.rate)
    parts += [closure.follower(mech, x, q, v).rate[..., None] for x in mech.couplings]
    return np.concatenate(parts, axis=-1)
