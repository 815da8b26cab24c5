"""Derivatives of inverse and forward dynamics, and the linearised equations of motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np

from linkwise.algebra.differential import differentiate
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import bias, mass
from linkwise.arguments import flag
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.codegen.sensitivity import slopes
from linkwise.dynamics.closed_derivatives import closed_forward, held, held_call
from linkwise.dynamics.constrained import obeyed
from linkwise.dynamics.joint_force import (
    has_passive_force,
    passive_slopes,
    require_passive_slopes,
)
from linkwise.dynamics.kernels import (
    HELD,
    Forces,
    Loops,
    RecordOptions,
    acting,
    check_mechanism,
    is_closed,
    no_call,
    pushed_nodes,
    recorded,
    side_by_side,
    tree_of,
    written,
)
from linkwise.dynamics.path_dependent import path_dependent, require_rest
from linkwise.dynamics.quantity import FRAMES, NODE_AXES, Frame, check_frame, expression
from linkwise.errors import ModelError, ShapeError
from linkwise.front_door import begins_bare
from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Free
from linkwise.model.hinges.hinge import Hinge
from linkwise.model.hinges.jet import Jet
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.factored import factored
from linkwise.sweeps.sparse import is_zero

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


INVERSE = expression("inverse_dynamics")
"""Inverse dynamics τ(q, v, v̇), as it is differentiated."""


class InverseDynamicsDerivatives(NamedTuple):
    """How τ of inverse dynamics changes: δτ = q δq + v δv + vdot δv̇.

    Attributes:
        q: ∂τ/∂q (nv, nv) or (batch, nv, nv), in the tangent space of `mech.integrate`.
        v: ∂τ/∂v.
        vdot: ∂τ/∂v̇, the mass matrix 𝓜.
    """

    q: Array
    v: Array
    vdot: Array


class ForwardDynamicsDerivatives(NamedTuple):
    """How v̇ of forward dynamics changes: δv̇ = q δq + v δv + tau δτ.

    Attributes:
        q: ∂v̇/∂q (nv, nv) or (batch, nv, nv), in the tangent space of `mech.integrate`.
        v: ∂v̇/∂v.
        tau: ∂v̇/∂τ, the inverse 𝓜⁻¹ of the mass matrix; with loops or couplings
            𝓜⁻¹ − 𝓜⁻¹ J_c* Ω⁻¹ J_c 𝓜⁻¹.
    """

    q: Array
    v: Array
    tau: Array


class Linearization(NamedTuple):
    """The equations of motion about a state x = (q, v): δẋ = A δx + B δτ, or one step of them.

    Attributes:
        A: (2 nv, 2 nv) or (batch, 2 nv, 2 nv); δq is in the tangent space of `mech.integrate`.
        B: (2 nv, nv) or (batch, 2 nv, nv).
    """

    A: Array
    B: Array


@begins_bare
def inverse_dynamics_derivatives(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> InverseDynamicsDerivatives:
    """Derivatives of joint forces by positions, velocities and accelerations.

    Expression:
        `lw.differentiate(mass @ vdot + bias, "q")`, and by "v" and "vdot". With V⁻ = φ̃* H* v,
        α⁻ = a_g + φ̃* (a + H* v̇), F = φ (b + M φ* (a + H* v̇)) and hinge maps constant in q:
        ∂τ/∂q = H φ̃ [F ×̄] H* + H φ (2 B_V φ* [V⁻ ×] + M φ* ([α⁻ ×] + [V⁻ ×] [V⁻ ×])) H*
        ∂τ/∂v = H φ (2 B_V φ* + M φ* [V⁻ + V ×]) H*,   ∂τ/∂v̇ = 𝓜
        O(n · depth) operations.

    With loops or couplings these are the derivatives of the joint forces with which loops carry no
    load, as in `lw.inverse_dynamics`; accelerations that break a loop or coupling raise.

    Forces at nodes add −∂(J* f)/∂q to ∂τ/∂q, with f constant in the axes of `forces_frame`.

    Args:
        out: A record of three arrays, such as an earlier result, that receives the matrices.

    Returns:
        The three matrices, from one kernel.

    Raises:
        ClosureError: v̇ breaks a loop or coupling, which is named. In a batch its matrices are NaN
            instead, reported by a warning or by `status`.
    """
    plain = forces is None and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        bare = _one_state(mech, INVERSE_DERIVATIVES)
        keep_bare_call(mech, "inverse_dynamics_derivatives", bare)
        if (quick := bare(q, v, vdot)) is not None:
            return quick
    check_mechanism(mech)
    formula, nodes, given = _with_forces(INVERSE_DERIVATIVES, forces, forces_frame)
    arrays = {"q": q, "v": v, "vdot": vdot, **given}

    def of_tree(**some: Any) -> dict[str, Array]:
        return _called(written(tree_of(mech), formula, nodes), arrays, some)

    def computed(some: dict[str, Any]) -> dict[str, Array]:
        if is_closed(mech, loops):
            return obeyed(mech, q, v, vdot, of_tree, some)
        return of_tree(**some)

    return InverseDynamicsDerivatives(**recorded(computed, options))


@begins_bare
def forward_dynamics_derivatives(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> ForwardDynamicsDerivatives:
    """Derivatives of joint accelerations by positions, velocities and joint forces.

    Expression:
        `lw.differentiate(mass.inv @ (tau - bias), "q")`, and by "v" and "tau":
        ∂v̇/∂q = −𝓜⁻¹ ∂τ/∂q,   ∂v̇/∂v = −𝓜⁻¹ ∂τ/∂v,   ∂v̇/∂τ = 𝓜⁻¹
        with the derivatives of inverse dynamics at v̇ = 𝓜⁻¹ (τ − C). The kernel factors 𝓜 from
        the tips to the base, which keeps the zeros between branches.

    With loops or couplings, with λ the forces that hold them and v̇, λ held on the right:
        𝓜 δv̇ − J_c* δλ = δτ − δ(𝓜 v̇ + C − J_c* λ),   J_c δv̇ = −δ(J_c v̇ + γ)

    With forces at nodes, v̇ = 𝓜⁻¹ (τ − C + J* f) and f is constant in the axes of `forces_frame`.

    Args:
        passive: Whether `lw.passive_force` acts as well, as in `lw.forward_dynamics`.
        out: A record of three arrays, such as an earlier result, that receives the matrices.

    Returns:
        The three matrices, from one kernel.

    Raises:
        ClosureError: Loops are singular in this state, or their rows depend on each other only
            while they are closed: there are no such derivatives. In a batch the matrices are NaN
            instead, reported by a warning or by `status`.
    """
    formula = FORWARD_DERIVATIVES
    if passive is not False and flag(passive, "passive"):
        formula = _with_passive(mech, formula)
    plain = forces is None and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        bare = _one_state(mech, formula)
        if passive is False:
            keep_bare_call(mech, "forward_dynamics_derivatives", bare)
        if (quick := bare(q, v, tau)) is not None:
            return quick
    arrays = {"q": q, "v": v, "tau": tau}
    parts = _moved(mech, formula, arrays, forces, forces_frame, loops, options)
    return ForwardDynamicsDerivatives(**parts)


def linearized(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    passive: bool = False,
    loops: Loops = "closed",
    **options: Unpack[RecordOptions],
) -> Linearization:
    """The equations of motion linearised in continuous time: see `lw.linearize`."""
    formula = _with_passive(mech, LINEARIZED) if passive else LINEARIZED
    plain = forces is None and forces_frame is NODE_AXES and loops is HELD
    if plain and not options:  # most calls: one state
        quick = _one_state(mech, formula)(q, v, tau)
        if quick is not None:
            return quick
    if isinstance(mech, Mechanism):
        require_rest(mech, v, "lw.linearize")
    arrays = {"q": q, "v": v, "tau": tau}
    parts = _moved(mech, formula, arrays, forces, forces_frame, loops, options)
    return Linearization(**parts)


@once_per_mechanism
def _with_passive(mech: Mechanism | Embedded, formula: Formula) -> Formula:
    """The formula with passive forces, where there are any."""
    check_mechanism(mech)
    if not has_passive_force(mech):
        return formula
    require_passive_slopes(mech)
    return WITH_PASSIVE[formula]


def _moved(
    mech: Mechanism | Embedded,
    formula: Formula,
    arrays: Mapping[str, Any],
    forces: Forces | None,
    frame: Frame,
    loops: Loops,
    options: RecordOptions,
) -> dict[str, Array]:
    """Derivatives of accelerations, with loops and couplings held."""
    check_mechanism(mech)
    formula, nodes, given = _with_forces(formula, forces, frame)
    arrays = {**arrays, **given}
    if is_closed(mech, loops):
        closed = mech
        return recorded(lambda some: held(closed, formula, arrays, some, nodes), options)
    kernel = written(tree_of(mech), formula, nodes)
    return recorded(lambda some: _called(kernel, arrays, some), options)


def _with_forces(
    formula: Formula, forces: Forces | None, frame: Frame
) -> tuple[Formula, tuple[str, ...], dict[str, Array]]:
    """The formula with forces at nodes, these nodes, and the forces as its input."""
    check_frame(frame, "forces_frame")
    if not acting(forces):
        return formula, (), {}
    nodes = pushed_nodes(forces)
    return PUSHED[formula, frame], nodes, {"f": side_by_side(forces, nodes)}


def _called(kernel: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    try:
        return kernel(*(arrays[name] for name in kernel.arguments), **options)
    except ShapeError as error:
        words = str(error)
        raise ShapeError(f"forces {words[2:]}" if words.startswith("f ") else words) from None


@once_per_mechanism
def _one_state(mech: Mechanism | Embedded, formula: Formula) -> Callable[..., Any]:
    """The bare call for one state, with loops and couplings held: a record, or None."""
    check_mechanism(mech)
    if RECORDS[formula] is Linearization and isinstance(mech, Mechanism) and path_dependent(mech):
        return no_call
    if is_closed(mech):
        closed = formula is not INVERSE_DERIVATIVES
        return held_call(mech, formula, RECORDS[formula]) if closed else no_call
    device = written(mech, formula).device
    if device.fast is None:
        return no_call
    device.machine.return_as(RECORDS[formula])
    return device.fast


# ------------------------------------------------------------------------------------- kernels


def _of_graph(at: Writing, expr: Expr, last: Expr) -> Any:
    """By q, v and the third variable, in which it is linear: where loops are built in."""
    value, third = at.value(expr), at.value(last)
    return slopes(at, [value], "q")[0], slopes(at, [value], "v")[0], third


def _applied(at: Writing, pushed: str) -> tuple[Expr, dict[str, Any]]:
    """Inverse dynamics as it is differentiated, and the forces at nodes in it."""
    if not pushed:
        return INVERSE, {}
    expr = expression("inverse_dynamics_with_forces", frame=cast("Frame", pushed))
    return expr, {"f": at.read("f", 6 * len(at.nodes))}


def _inverse(at: Writing, pushed: str = "") -> Any:
    inverse, given = _applied(at, pushed)
    if isinstance(at.mech, Embedded):
        return _of_graph(at, inverse, mass)
    state = {"q": at.q, "v": at.v}
    vdot = at.read("vdot", at.mech.nv)
    M, by_v = at.value(mass, differentiate(inverse, "v"), **state)
    return at.value(differentiate(inverse, "q"), vdot=vdot, **state, **given), by_v, M


def _forward(at: Writing, pushed: str = "", rank: int | None = None, passive: bool = False) -> Any:
    force, *by_state = passive_slopes(at) if passive else (0.0,)
    if isinstance(at.mech, Embedded):
        name = "forward_dynamics_with_forces" if pushed else "forward_dynamics"
        return _of_graph(at, expression(name, frame=cast("Frame", pushed or "node")), mass.inv)
    _ = at.q, at.v  # the order in which inputs are read is that of the arguments
    tau, slopes = at.read("tau", at.mech.nv) + force, tuple(by_state) or None
    if at.mech.loops or at.mech.couplings:
        return closed_forward(at, tau, pushed, rank, slopes)
    if slopes is None and not hasattr(at, "graph"):  # too long for straight code
        return _forward_of_loops(at, pushed)
    return moving(at, tau, pushed, slopes=slopes)[1:]


def _forward_of_loops(at: Writing, pushed: str) -> Any:
    """The three matrices by the algebra, in loops over bodies."""
    name = "forward_dynamics_with_forces" if pushed else "forward_dynamics"
    expr = expression(name, frame=cast("Frame", pushed or "node"))
    return at.value(differentiate(expr, "q"), differentiate(expr, "v"), mass.inv)


def _forward_with_passive(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _forward(at, pushed, rank, passive=True)


def _forward_of_tree(at: Writing, pushed: str = "") -> Any:
    """v̇ of a tree, and its derivatives by q, v and tau."""
    _ = at.q, at.v  # the order in which inputs are read is that of the arguments
    return moving(at, at.read("tau", at.mech.nv), pushed)


def moving(
    at: Writing,
    tau: Any,
    pushed: str = "",
    parameters: tuple[str, ...] = (),
    state: Mapping[str, Any] | None = None,
    slopes: tuple[Any, Any] | None = None,
) -> Any:
    """v̇ of a tree with its derivatives by q, v and τ, in a formula.

    Args:
        tau: Joint forces (nv,).
        pushed: Axes of forces at the nodes of the formula; "" without forces.
        parameters: Numbers of the mechanism that are inputs.
        state: "q" and "v"; default: those of the formula.
        slopes: How `tau` changes with q and v (nv, nv) each; default: not.
    """
    state = {"q": at.q, "v": at.v} if state is None else state
    expr, given = _applied(at, pushed)
    parts = mass, differentiate(expr, "v"), bias
    M, by_v, c = at.value(*parts, parameters=parameters, **state)
    if pushed:
        tau = tau + at.value(expression("equivalent_force", frame=cast("Frame", pushed)))
    # From the tips to the base: entries between branches, which are zero, stay zero.
    inverse = factored(M[::-1, ::-1])
    for pivot, scale in zip(inverse.pivots, np.diag(M)[::-1], strict=True):
        at.check(status_code.MATRIX, pivot - SINGULAR[at.itemsize] * scale, 0.0, np.inf)
    vdot = (inverse @ (tau - c)[::-1, None])[::-1, 0]
    by_q = at.value(differentiate(expr, "q"), parameters=parameters, vdot=vdot, **state, **given)
    none = dict[int, Any](), dict[int, Any]()
    known = _free_roots(at, state, pushed) if not parameters else none
    if slopes is not None:
        by_q, by_v = by_q - slopes[0], by_v - slopes[1]
        known = tuple(
            {j: x for j, x in columns.items() if all(map(is_zero, slope[:, j]))}
            for columns, slope in zip(known, slopes, strict=True)
        )
    for right, columns in zip((by_q, by_v), known, strict=True):
        right[:, list(columns)] = 0.0
    *solved, by_tau = at.solved(inverse, [by_q[::-1], by_v[::-1]])
    for result, columns in zip(solved, known, strict=True):
        for j, column in columns.items():
            result[::-1, j] = column
    return vdot, *(x[::-1] for x in solved), by_tau[::-1, ::-1]


def _free_roots(
    at: Writing, state: Mapping[str, Any], pushed: str
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Columns of ∂v̇/∂q and ∂v̇/∂v that are the same for every tree on a free root.

    Uniform gravity g and uniform motion change nothing between bodies. In axes of the root,
    v̇ = (ω̇, g − ω × u + what does not depend on its position, attitude and linear velocity u).
    Forces in world axes do not turn with it, so that there is none.
    """
    mech, by_q, by_v = at.mech, dict[int, Any](), dict[int, Any]()
    for k, body in enumerate(mech.bodies):
        start, q_start = int(mech.v_start[k]), int(mech.q_start[k])
        bare = not mech.armature[start : start + 6].any()  # a rotor would feel it
        if type(body.hinge) is not Free or mech.parent[k] >= 0 or not bare or pushed == "world":
            continue
        pose = body.hinge.pose(state["q"][None, q_start : q_start + 7])
        gravity = pose.rot[0].T @ (body.inboard.rot.T @ mech.gravity)
        linear = slice(start + 3, start + 6)
        for j in range(3):
            for columns, at_column, vector in (
                (by_q, start + j, gravity),
                (by_q, start + 3 + j, np.zeros(3)),
                (by_v, start + 3 + j, -state["v"][start : start + 3]),
            ):
                column = np.full(mech.nv, 0.0, dtype=object)
                column[linear] = np.cross(vector, np.eye(3)[j])
                columns[at_column] = column
    return by_q, by_v


def _linearized(
    at: Writing, pushed: str = "", rank: int | None = None, passive: bool = False
) -> Any:
    by_q, by_v, by_tau = _forward(at, pushed, rank, passive)
    nv = at.mech.nv
    A, B = np.full((2 * nv, 2 * nv), 0.0, dtype=object), np.full((2 * nv, nv), 0.0, dtype=object)
    A[:nv, nv:] = np.eye(nv)
    A[nv:, :nv], A[nv:, nv:], B[nv:] = by_q, by_v, by_tau
    if isinstance(at.mech, Embedded):
        _check_rates(at.mech)
        return A, B
    for k, body in enumerate(at.mech.bodies):
        part = slice(at.mech.v_start[k], at.mech.v_start[k + 1])
        q_k = at.q[at.mech.q_start[k] : at.mech.q_start[k + 1]]
        A[part, part] = _turning(body.hinge, q_k, at.v[part])
    return A, B


def _linearized_with_passive(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _linearized(at, pushed, rank, passive=True)


def _check_rates(embedded: Embedded) -> None:
    """Raise unless velocities are rates of coordinates: T is zero for these."""
    for body in embedded.mech.bodies:
        if type(body.hinge).qdot is not Hinge.qdot:
            raise ModelError(
                f"lw.linearize was called for {embedded.name!r}, whose loops are built in, and "
                f"whose hinge {body.hinge_name!r} has velocities that are not rates of its "
                "coordinates; use the mechanism itself, which is its attribute mech."
            )


def _turning(hinge: Hinge, q: Any, v: Any) -> Any:
    """T of u̇ = δv + T u for δq = N u: N T u = ∂(N v)/∂q N u - ∂(N u)/∂q N v, with q̇ = N v.

    The right side is in the span of N for holonomic hinges; others are at rest (`require_rest`).
    """
    nv = hinge.nv
    if type(hinge).qdot is Hinge.qdot:  # q̇ = v
        return np.zeros((nv, nv))
    N = np.stack([hinge.qdot(q[None], e[None])[0] for e in np.eye(nv)], axis=-1)
    rate = N @ v

    def along(direction: Any, held: Any) -> Any:
        return Jet.slope(hinge.qdot, (q, direction), (held, None))

    columns = [along(N[:, j], v) - along(rate, e) for j, e in enumerate(np.eye(nv))]
    return factored(N.T @ N) @ (N.T @ np.stack(columns, axis=-1))


INVERSE_DERIVATIVES = Formula(_inverse, names=("q", "v", "vdot"))
FORWARD_DERIVATIVES = Formula(_forward, names=("q", "v", "tau"))
LINEARIZED = Formula(_linearized, names=("A", "B"))

WITH_PASSIVE = {
    FORWARD_DERIVATIVES: Formula(_forward_with_passive, names=FORWARD_DERIVATIVES.names),
    LINEARIZED: Formula(_linearized_with_passive, names=LINEARIZED.names),
}
"""The same with the passive forces of the mechanism."""

ACCELERATION = Formula(_forward_of_tree, names=("vdot", "q", "v", "tau"))
"""v̇ of a tree with its derivatives, as a part of other formulas."""

RECORDS: dict[Formula, Any] = {
    INVERSE_DERIVATIVES: InverseDynamicsDerivatives,
    FORWARD_DERIVATIVES: ForwardDynamicsDerivatives,
    LINEARIZED: Linearization,
    WITH_PASSIVE[FORWARD_DERIVATIVES]: ForwardDynamicsDerivatives,
    WITH_PASSIVE[LINEARIZED]: Linearization,
}

PUSHED = {
    (formula, frame): Formula(formula.write, (frame,), formula.names)
    for formula in (*RECORDS, ACCELERATION)
    for frame in FRAMES
}
"""The same with forces at nodes, by their axes."""
