"""Hybrid dynamics: some hinges move as prescribed, others are driven by given forces.

While loops and couplings hold, it is one kernel with matrices. With U the driven velocities, Ū the
prescribed ones, h = 𝓜 Ū v̇ + C - J* f and r = J_c Ū v̇ + γ:

    𝓜_UU v̇_U = τ_U - h_U + J_U* λ,     J_U v̇_U = -r,     J_U the columns of J_c that are driven

With 𝓜_UU = L L* and W = J_U L⁻*, y = L* v̇_U is  y₀ - W⁺ (W y₀ + r),  y₀ = L⁻¹ (τ_U - h_U).  Rows
of W may depend on others; where r is not in its range, no motion obeys what is prescribed.
λ is the least with W* λ = y - y₀, measured by D (`velocity_space.scale`), and

    τ_Ū = (𝓜 v̇ + C - J* f - J_c* λ)_Ū.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import H, J, M, N, a, b, mass, phi, rot_W, tau, vdot
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.role import Composite
from linkwise.algebra.selection import selection
from linkwise.algebra.space import BODY, JOINT
from linkwise.brief import brief
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status as codes
from linkwise.codegen.scalar.orthogonal import (
    independent,
    longest_square,
    reflected,
    solved,
    solved_below,
)
from linkwise.dynamics.constrained import OBEYED, broken_rows
from linkwise.dynamics.held_motion import (
    SURE,
    bias_rows,
    constraint_rows,
    held_inputs,
    usual_rows,
)
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
    written,
)
from linkwise.dynamics.mass_root import mass_triangle
from linkwise.dynamics.quantity import Frame, check_frame, expression, pushing
from linkwise.dynamics.velocity_space import TOLERANCE, scale
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Body
from linkwise.model.closure import constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import gate, minimum, norm, where

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


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
        SingularHingeError: Nothing resists a driven hinge.
    """
    nodes = pushed_nodes(forces) if acting(forces) else ()
    full = len(usual_rows(mech, q)) == sum(constraint_sizes(mech))
    kernel = _held_kernel(mech, tuple(driven.tolist()), nodes, forces_frame, full)
    given: dict[str, Any] = {"q": q, "v": v, "tau": tau, "vdot": vdot}
    if acting(forces):
        given["f"] = side_by_side(forces, nodes)
    given |= held_inputs(mech, kernel, q, v)
    arrays = [given[name] for name, _ in kernel.device.inputs]
    try:
        lead = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arrays))
    except ValueError:
        kernel(*arrays)  # names the arrays whose batches differ
        raise
    single = not lead and status is None
    total = np.zeros(lead, np.int32) if status is None else status
    parts = kernel(*arrays) if single else kernel(*arrays, status=total)
    broken = (parts["slack"] < 0.0) & (total == codes.FINE)
    if broken.any():
        if single:
            raise broken_rows(mech, parts["rest"])
        total[broken] = codes.broken(mech)
        parts["vdot"][broken] = parts["tau"][broken] = np.nan
    if lead and status is None:
        kernel.warn(total)
    return HybridMotion(parts["vdot"], parts["tau"])


@once_per_mechanism
def _held_kernel(
    mech: Mechanism, driven: tuple[bool, ...], nodes: tuple[str, ...], frame: Frame, full: bool
) -> Kernel:
    return written(mech, _held_formula(driven, frame, full), nodes)


@cache
def _held_formula(driven: tuple[bool, ...], frame: Frame, full: bool) -> Formula:
    return Formula(held_motion, (driven, frame, full), ("vdot", "tau", "rest", "slack"))


def held_motion(at: Writing, driven: tuple[bool, ...], frame: Frame, full: bool) -> Any:
    """v̇ and τ, what is left of J_c v̇ + γ, and how much more of it would count as zero.

    Where all rows are usually independent (`full`), they are taken as they come in states where
    they clearly are.
    """
    nv, measure = at.mech.nv, scale(at.mech)
    _, _ = at.q, at.v  # the first inputs
    tau, vdot = at.read("tau", nv), at.read("vdot", nv)
    moving = [i for i in range(nv) if driven[i]]
    motion, D = np.where(driven, 0.0, vdot), measure.rows
    name = "inverse_dynamics_with_forces" if at.nodes else "inverse_dynamics"
    needed = at.value(expression(name, frame=frame), vdot=motion)
    J_c = constraint_rows(at)
    rows = D * (J_c @ motion + bias_rows(at))
    inertia = at.value(mass)
    root = mass_triangle(at, inertia, moving)
    W = solved(root, (D[:, None] * J_c[:, moving]).T).T  # D J_U L⁻*
    free = y = solved(root, (tau - needed)[moving])
    force, doubtful = np.zeros(len(rows)), 1.0
    if moving:
        regular = full and len(rows) <= len(moving)
        span = reflected(W if regular else W[:0])
        if regular:
            left = reduce(minimum, [x * x for x in span.triangle.diagonal()])
            doubtful = 0.5 - gate(left - SURE * SURE * longest_square(W, 0.0), 1.0)
        V, _, right = independent(at, W, TOLERANCE, 0.0, rows[:, None], when=doubtful)
        y = free - V.T @ (right[:, 0] + V @ free)
        # The least λ with W* λ = y - y₀.
        across, _, push = independent(at, W.T, TOLERANCE, 0.0, (y - free)[:, None], when=doubtful)
        force = across.T @ push[:, 0]
        if regular:  # W = L V
            z = solved_below(span.triangle.T, rows) + span.along(free[None])[0]
            y = where(doubtful, y, free - span.within(z[None])[0])
            force = where(doubtful, force, -solved(span.triangle.T, z))
        force = D * force
    rest = rows + W @ y
    size = norm(rows) + norm(W @ free) + measure.length * norm(motion / measure.columns)
    motion[moving] = solved_below(root, y)
    total = needed + inertia[:, moving] @ motion[moving] - J_c.T @ force
    slack = OBEYED * size - norm(rest) + 1e-300  # at rest both are zero
    return motion, np.where(driven, tau, total), rest / D, slack
