"""Hybrid dynamics: some hinges move as prescribed, others are driven by given forces.

While loops and couplings hold, it is solved by dense matrices, state by state. With U the driven
velocities, Ū the prescribed ones, h = 𝓜 Ū v̇ + C - J* f and r = J_c Ū v̇ + γ:

    𝓜_UU v̇_U = τ_U - h_U + J_U* λ,     J_U v̇_U = -r,     J_U the columns of J_c that are driven

With 𝓜_UU = L L* and W = J_U L⁻*, y = L* v̇_U is  y₀ - W⁺ (W y₀ + r),  y₀ = L⁻¹ (τ_U - h_U).  Rows
of W may depend on others; where r is not in its range, no motion obeys what is prescribed.
λ is the least with W* λ = y - y₀, measured by D (`velocity_space.scale`), and

    τ_Ū = (𝓜 v̇ + C - J* f - J_c* λ)_Ū.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import H, J, M, N, a, b, phi, rot_W, tau, vdot
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.role import Composite
from linkwise.algebra.selection import selection
from linkwise.algebra.space import BODY, JOINT
from linkwise.brief import brief
from linkwise.codegen.scalar import status as codes
from linkwise.dynamics.closure import closed_kernel, constraint_jacobian, run
from linkwise.dynamics.constrained import OBEYED, broken_rows
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import (
    BatchOptions,
    Forces,
    Loops,
    Status,
    acting,
    called,
    check_mechanism,
    is_closed,
    node_names,
    pushed_nodes,
    side_by_side,
    tree_of,
)
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.quantity import Frame, check_frame, pushing
from linkwise.dynamics.velocity_space import TOLERANCE, scale
from linkwise.errors import ModelError, ShapeError, SingularHingeError
from linkwise.model.body import Body
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


@brief
@dataclass(frozen=True, slots=True, eq=False)
class HybridMotion:
    """All accelerations and all forces: those that were given, and those that follow.

    Attributes:
        vdot: Joint accelerations (nv,) or (batch, nv).
        tau: Joint forces (nv,) or (batch, nv) [N or N m].
    """

    vdot: Array
    tau: Array


def hybrid_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: Mapping[str, ArrayLike] | ArrayLike,
    vdot: Mapping[str, ArrayLike] | ArrayLike,
    prescribed: Sequence[str] | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[BatchOptions],
) -> HybridMotion:
    """Accelerations of the driven hinges, and forces at those that move as prescribed.

    Expression, with U the projection onto the driven hinges and Ū onto the others:
        v̇_U = (U 𝓜 U + Ū)⁻¹ U (τ − C − 𝓜 Ū v̇ + J* f)
        τ_Ū = Ū (𝓜 (v̇_U + Ū v̇) + C − J* f)

    The derived form takes three passes, O(n), and gives both parts in one vector. Its articulated
    quantities belong to U H instead of H, with D = U H P H* U + Ū (+ U N U): a hinge that moves as
    prescribed passes all the inertia it carries on to its parent.
    Source: 000 Lemma 4.3 for the inverse; 004 section 4, f = z + P α, for the force.

    Each choice of hinges has a separate kernel, in which the choice is folded: with nothing
    prescribed it is that of forward dynamics, with everything that of inverse dynamics.

    Loops and couplings are held: prescribed motions must obey them. Where they leave open how a
    load is shared between loops and prescribed hinges, the loops carry the least.

    Args:
        tau: Forces at the driven hinges: by name of the hinge, a number for one degree of freedom,
            (nv_k,) or (batch, nv_k) [N or N m]; or (nv,) or (batch, nv) for all, where entries of
            prescribed hinges are ignored.
        vdot: Accelerations of the prescribed hinges, likewise.
        prescribed: Names of the prescribed hinges, if `tau` and `vdot` are arrays.

    Returns:
        All accelerations and all forces.

    Raises:
        ModelError: A hinge is both prescribed and driven, or neither, or cannot move.
        ShapeError: An array does not fit; says which.
        UnknownNameError: An unknown hinge or node; lists similar names.
        SingularHingeError: Nothing resists a driven hinge; its body is named.
        ClosureError: The prescribed motion breaks a loop or coupling, which is named. In a batch
            its row is NaN instead, reported by a warning or by `status`.
    """
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    tree = tree_of(mech)
    nodes = pushed_nodes(forces) if acting(forces) else ()
    choice = _choice(tree, tau, vdot, prescribed, nodes, forces_frame)
    force = _entries(tree, tau, choice.driven, choice.forces, "tau")
    motion = _entries(tree, vdot, choice.held, choice.motions, "vdot")
    if is_closed(mech, loops):
        return _held(
            mech, q, v, force, motion, choice.driven,
            forces=forces, forces_frame=forces_frame, status=options.get("status"),
        )  # fmt: skip
    given: dict[str, Any] = {"q": q, "v": v, "tau": force, "vdot": motion}
    if acting(forces):
        given["f"] = side_by_side(forces, nodes)
    result = called(choice.kernel, given, options)
    if motion.shape == force.shape == result.shape:
        np.copyto(motion, result, where=choice.driven)
        np.copyto(force, result, where=choice.held)
        return HybridMotion(motion, force)
    held = choice.held
    return HybridMotion(np.where(held, motion, result), np.where(held, result, force))


def hybrid_kernel(
    mech: Mechanism,
    prescribed: Iterable[str],
    nodes: Sequence[str] = (),
    *,
    forces_frame: Frame = "node",
) -> Kernel:
    """The kernel of hybrid dynamics for one choice of hinges: made once, then kept.

    It takes q, v, tau, vdot (and f), and gives accelerations at driven and forces at prescribed
    hinges.

    Args:
        prescribed: Names of the hinges that move as prescribed.
        nodes: Nodes at which external forces act.
    """
    check_mechanism(mech)
    check_frame(forces_frame, "forces_frame")
    chosen = frozenset(_hinge(mech, name).hinge_name for name in prescribed)
    return _kernel(mech, chosen, node_names(nodes), forces_frame)


@once_per_mechanism
def _kernel(
    mech: Mechanism, prescribed: frozenset[str], nodes: tuple[str, ...], frame: Frame
) -> Kernel:
    _moving(mech, prescribed)
    for node in nodes:
        mech.node(node)  # raises for an unknown name
    driven = [body.hinge_name for body in mech.bodies if body.hinge_name not in prescribed]
    push = pushing(J if frame == "node" else rot_W @ J) if nodes else None
    expr = hybrid_expression(driven, prescribed, push=push)
    return compile(expr, mech, nodes=nodes)


def hybrid_expression(
    driven: Iterable[str],
    prescribed: Iterable[str],
    *,
    push: Expr | None = None,
) -> Expr:
    """v̇ at driven hinges and τ at prescribed ones, as one expression.

    Args:
        driven: Names of the hinges with given forces.
        prescribed: Names of the hinges with given accelerations.
        push: The effect of external forces on the bodies, B f; default: none.
    """
    free = selection("U", driven)
    bound = selection("Ū", prescribed, ascii="U_bar", tex=r"\overline{U}")
    H_U = symbol("H_U", JOINT, BODY, Composite(free @ H), "H_U", "H_U")
    noise = symbol("N_U", JOINT, JOINT, Composite(bound + free @ N @ free), "N_U", "N_U")
    given = a + H.T @ bound @ vdot
    outside = b if push is None else b - push
    moved = (H_U @ phi @ M @ phi.T @ H_U.T + noise).inv @ (
        free @ tau - H_U @ phi @ (M @ phi.T @ given + outside)
    )
    through_hinges = phi @ (M @ phi.T @ (H_U.T @ moved + given) + outside)
    return moved + bound @ (H @ through_hinges + N @ vdot)


# ---------------------------------------------------------------------------------- arguments


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """What follows from the names alone; kept, so that the next call skips it.

    Attributes:
        kernel: For this choice.
        held: Which velocities are prescribed.
        driven: Which are not.
        forces: For each name in tau, its place in v.
        motions: For each name in vdot, its place in v.
    """

    kernel: Kernel
    held: NDArray[np.bool_]
    driven: NDArray[np.bool_]
    forces: dict[str, slice]
    motions: dict[str, slice]


def _choice(
    mech: Mechanism,
    tau: Any,
    vdot: Any,
    prescribed: Sequence[str] | None,
    nodes: tuple[str, ...],
    frame: Frame,
) -> _Choice:
    """The choice of hinges; raises if a hinge is in both groups, or in none."""
    if isinstance(prescribed, str):
        prescribed = (prescribed,)
    names = None if prescribed is None else tuple(prescribed)
    by_name = isinstance(tau, Mapping), isinstance(vdot, Mapping)
    written = tuple(tau) if by_name[0] else (), tuple(vdot) if by_name[1] else ()
    return _of_names(mech, by_name, written, names, nodes, frame)


@once_per_mechanism
def _of_names(
    mech: Mechanism,
    by_name: tuple[bool, bool],
    written: tuple[tuple[str, ...], tuple[str, ...]],
    names: tuple[str, ...] | None,
    nodes: tuple[str, ...],
    frame: Frame,
) -> _Choice:
    if by_name[0] != by_name[1]:
        raise ModelError(
            "tau and vdot are given in two ways; give both by names of hinges, {'elbow': 1.0}, or "
            "both as arrays of all hinges with prescribed=['elbow', ...]."
        )
    forces, motions = (_by_hinge(mech, group) for group in written)
    if by_name[0]:
        _check_groups(mech, forces, motions, names)
        chosen = tuple(motions)
    elif names is None:
        raise ModelError(
            "tau and vdot are arrays; name the hinges that move as vdot with "
            "prescribed=['elbow', ...]."
        )
    else:
        chosen = tuple(_hinge(mech, name).hinge_name for name in names)
    held = np.zeros(mech.nv, dtype=np.bool_)
    for name in chosen:
        held[mech.v_slice(name)] = True
    places = [{name: mech.v_slice(_hinge(mech, name).hinge_name) for name in g} for g in written]
    return _Choice(hybrid_kernel(mech, chosen, nodes, forces_frame=frame), held, ~held, *places)


def _by_hinge(mech: Mechanism, names: tuple[str, ...]) -> dict[str, str]:
    """Names as they were written, by names of hinges; a hinge may be called by its body."""
    out = dict[str, str]()
    for name in names:
        hinge = _hinge(mech, name).hinge_name
        if hinge in out:
            raise ModelError(f"hinge {hinge!r} is given twice, as {out[hinge]!r} and as {name!r}.")
        out[hinge] = name
    _moving(mech, out)
    return out


def _check_groups(
    mech: Mechanism, forces: Iterable[str], motions: Iterable[str], prescribed: object
) -> None:
    """Every hinge in one group and not in both."""
    if prescribed is not None:
        raise ModelError(
            "prescribed is given, but tau and vdot already name the hinges; leave it out."
        )
    driven, held = set(forces), set(motions)
    both = [name for name in forces if name in held]
    if both:
        raise ModelError(
            f"{_named(both)} both in tau and in vdot; a hinge moves as prescribed or is driven by "
            "a given force. Remove one of the two."
        )
    moving = [body.hinge_name for body in mech.bodies if body.hinge.nv]
    left = [name for name in moving if name not in driven and name not in held]
    if left:
        raise ModelError(
            f"{_named(left)} neither in tau nor in vdot; every hinge needs a force or an "
            "acceleration. A hinge that swings freely has the force 0."
        )


def _hinge(mech: Mechanism, name: str) -> Body:
    """The body of a hinge, by the name of either; raises for an unknown name."""
    k = mech.body_index.get(name, -1) if name not in mech.hinge_index else -1
    return mech.bodies[k] if k >= 0 else mech.hinge(name)


def _moving(mech: Mechanism, names: Iterable[str]) -> None:
    for name in names:
        if _hinge(mech, name).hinge.nv == 0:
            raise ModelError(
                f"hinge {name!r} of {mech.name} cannot move; it takes neither an acceleration nor "
                "a force. Leave it out."
            )


def _named(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"hinge {listed} is" if len(names) == 1 else f"hinges {listed}{more} are"


def _entries(
    mech: Mechanism, given: Any, used: NDArray[np.bool_], places: dict[str, slice], what: str
) -> Array:
    """All joints (nv,) or (batch, nv), zero where they are not used."""
    if not isinstance(given, Mapping):
        array = floats(given, what)
        if array.ndim not in (1, 2) or array.shape[-1] != mech.nv:
            raise ShapeError(
                f"{what} has shape {array.shape}; it must be ({mech.nv},) or (batch, {mech.nv})."
            )
        return np.where(used, array, 0.0)
    parts, batch = dict[str, Any](), -1  # rows, once they are known
    for name, value in cast("Mapping[str, Any]", given).items():
        nv = places[name].stop - places[name].start
        if nv == 1 and type(value) is float:
            parts[name] = value
            continue
        part = floats(value, f"{what} of {name!r}")
        part = part.reshape(1) if part.ndim == 0 and nv == 1 else part
        if part.ndim not in (1, 2) or part.shape[-1] != nv:
            number = "a number, " if nv == 1 else ""
            raise ShapeError(
                f"{what} of hinge {name!r} has shape {part.shape}; it must be {number}({nv},) or "
                f"(batch, {nv})."
            )
        if part.ndim == 2 and batch not in (-1, len(part)):
            raise ShapeError(
                f"{what} of hinge {name!r} has {len(part)} rows, others have {batch}; all need "
                "one batch."
            )
        batch = len(part) if part.ndim == 2 else batch
        parts[name] = part
    out = np.zeros((batch, mech.nv) if batch >= 0 else mech.nv)
    for name, part in parts.items():
        out[..., places[name]] = part
    return out


# ------------------------------------------------------------------------- with loops closed


def _held(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: Array,
    vdot: Array,
    driven: NDArray[np.bool_],
    *,
    forces: Forces | None,
    forces_frame: Frame,
    status: Status | None,
) -> HybridMotion:
    """Hybrid dynamics with loops and couplings held.

    Raises:
        ClosureError: The prescribed motion breaks a loop or coupling.
        SingularHingeError: Nothing resists the driven hinges.
    """
    q, v = floats(q, "q"), floats(v, "v")
    arrays = {"q": q, "v": v, "vdot": vdot}
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in (*arrays.values(), tau)))
    except ValueError:
        shown = ", ".join(f"{name} {x.shape}" for name, x in {**arrays, "tau": tau}.items())
        raise ShapeError(f"{shown} have different batches.") from None
    arrays = {name: np.broadcast_to(x, (*lead, x.shape[-1])) for name, x in arrays.items()}
    single = not lead and status is None
    total = np.zeros(lead, np.int32) if status is None else status
    options: dict[str, Any] = {} if single else {"status": total}
    pushed: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame}
    needed = inverse_dynamics(mech, **arrays, **pushed, loops="open", **options)
    ignored = {} if single else {"status": np.zeros(lead, np.int32)}
    rows = run(mech, "constraint_acceleration", arrays, options=ignored)
    fine = np.isfinite(rows).all(axis=-1) & np.isfinite(needed).all(axis=-1)
    fine = np.broadcast_to(fine & np.isfinite(tau).all(axis=-1), lead)
    total[~fine & (total == 0)] = codes.INPUT
    if single and not fine:
        raise ModelError("tau is not finite.")
    motion, force = np.full((2, total.size, mech.nv), np.nan)
    each = [
        np.broadcast_to(x, (*lead, x.shape[-1])).reshape(total.size, -1)
        for x in (arrays["q"], tau, vdot, needed, rows)
    ]
    flat = total.reshape(-1)
    for i in np.flatnonzero(fine):
        state = _State(mech, *(x[i] for x in each))
        code, motion[i], force[i] = _solved(state, driven, raises=single)
        flat[i] = flat[i] or code
    if lead and status is None:
        closed_kernel(mech, "constraint_acceleration").warn(flat)
    return HybridMotion(motion.reshape(*lead, mech.nv), force.reshape(*lead, mech.nv))


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """One state: the arguments, h and r."""

    mech: Mechanism
    q: Array
    tau: Array
    vdot: Array
    needed: Array
    rows: Array


def _solved(at: _State, driven: NDArray[np.bool_], *, raises: bool) -> tuple[int, Array, Array]:
    """A code, v̇ and τ of one state."""
    mech, q, tau, vdot, needed, rows = at.mech, at.q, at.tau, at.vdot, at.needed, at.rows
    nothing = np.full(mech.nv, np.nan)
    mass, jacobian, measure = mass_matrix(mech, q), constraint_jacobian(mech, q), scale(mech)
    try:
        root = np.linalg.cholesky(mass[np.ix_(driven, driven)])
    except np.linalg.LinAlgError:
        if raises:
            raise SingularHingeError(
                f"nothing resists the driven hinges of {mech.name!r}: their part of the mass "
                "matrix is not positive definite. Give bodies inertia, or hinges armature."
            ) from None
        return codes.MATRIX, nothing, nothing
    W = np.linalg.solve(root, (measure.rows[:, None] * jacobian[:, driven]).T).T  # D J_U L⁻*
    y = free = np.linalg.solve(root, (tau - needed)[driven])
    left, values, right = np.linalg.svd(W, full_matrices=False)
    r = int((values > TOLERANCE * values.max(initial=0.0)).sum())
    off = measure.rows * rows + W @ y
    push = (left[:, :r].T @ off) / values[:r]
    y = y - right[:r].T @ push
    rest = off - left[:, :r] @ (left[:, :r].T @ off)
    size = np.linalg.norm(measure.rows * rows) + np.linalg.norm(W @ free)
    size += measure.length * np.linalg.norm(vdot / measure.columns)
    if np.linalg.norm(rest) > OBEYED * size:
        if raises:
            raise broken_rows(mech, rest / measure.rows)
        return codes.broken(mech), nothing, nothing
    motion, force = vdot.copy(), tau.copy()
    motion[driven] = np.linalg.solve(root.T, y)
    lam = measure.rows * (left[:, :r] @ (-push / values[:r]))
    total = needed + mass[:, driven] @ motion[driven] - lam @ jacobian
    force[~driven] = total[~driven]
    return codes.FINE, motion, force
