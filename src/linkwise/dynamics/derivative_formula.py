"""Formulas of derivatives of inverse and forward dynamics, and of linearised motion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.algebra.differential import differentiate
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import bias, mass
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.codegen.sensitivity import slopes
from linkwise.dynamics.actuator_force import driven
from linkwise.dynamics.closed_derivatives import closed_forward
from linkwise.dynamics.joint_force import (
    passive_slopes,
)
from linkwise.dynamics.quantity import FRAMES, Frame, expression
from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.hinges import Free
from linkwise.model.hinges.hinge import Hinge
from linkwise.model.hinges.jet import Jet
from linkwise.sweeps.factored import Factored, factored
from linkwise.sweeps.sparse import is_zero

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


INVERSE = expression("inverse_dynamics")
"""Inverse dynamics τ(q, v, v̇), as it is differentiated."""


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


def _forward(
    at: Writing, pushed: str = "", rank: int | None = None, *, passive: bool, actuated: bool
) -> Any:
    force, *by_state = _acting_slopes(at, passive=passive, actuated=actuated)
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
    return at.value(*_forward_by_state(pushed), mass.inv)


@cache
def _forward_by_state(pushed: str) -> tuple[Expr, Expr]:
    """∂v̇/∂q and ∂v̇/∂v."""
    name = "forward_dynamics_with_forces" if pushed else "forward_dynamics"
    expr = expression(name, frame=cast("Frame", pushed or "node"))
    return differentiate(expr, "q"), differentiate(expr, "v")


def _acting_slopes(at: Writing, *, passive: bool, actuated: bool) -> tuple[Any, ...]:
    """Forces besides τ, and ∂/∂q and ∂/∂v of them where there are any."""
    if not actuated:
        return passive_slopes(at) if passive else (0.0,)
    q, v = at.q, at.v  # the order in which inputs are read is that of the arguments
    at.read("tau", at.mech.nv)
    force = driven(at, q, v)
    each = force, *(slopes(at, [force], name)[0] for name in ("q", "v"))
    if not passive:
        return each
    return tuple(x + y for x, y in zip(each, passive_slopes(at), strict=True))


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
    inverse, vdot, by_q, by_v, _ = _balance(at, tau, pushed, parameters, state)
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


def balance(
    at: Writing,
    tau: Any,
    parameters: tuple[str, ...] = (),
    slopes: tuple[Any, Any] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """v̇ of a tree, and the derivatives of the forces that balance it by q, v and v̇: the last is M.

    Args:
        tau: Joint forces (nv,).
        parameters: Numbers of the mechanism that are inputs.
        slopes: How `tau` changes with q and v (nv, nv) each; default: not.
    """
    _, vdot, by_q, by_v, M = _balance(at, tau, "", parameters, {"q": at.q, "v": at.v})
    if slopes is not None:
        by_q, by_v = by_q - slopes[0], by_v - slopes[1]
    return vdot, by_q, by_v, M


def _balance(
    at: Writing, tau: Any, pushed: str, parameters: tuple[str, ...], state: Mapping[str, Any]
) -> tuple[Factored, Any, Any, Any, Any]:
    """M⁻¹ from the tips to the base, v̇, and what forces change by with q, v and v̇."""
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
    return inverse, vdot, by_q, by_v, M


def _free_roots(
    at: Writing, state: Mapping[str, Any], pushed: str
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Columns of ∂v̇/∂q and ∂v̇/∂v that are the same for every tree on a free root.

    Uniform gravity g and uniform motion change nothing between bodies. In axes of the root,
    v̇ = (ω̇, g − ω × u + what does not depend on its position, attitude and linear velocity u).
    Forces in world axes do not turn with it, so there are no such columns then.
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
    at: Writing, pushed: str = "", rank: int | None = None, *, passive: bool, actuated: bool
) -> Any:
    by_q, by_v, by_tau = _forward(at, pushed, rank, passive=passive, actuated=actuated)
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


def _check_rates(embedded: Embedded) -> None:
    """Raise unless velocities are rates of coordinates: T is zero for these."""
    for body in embedded.mech.bodies:
        if type(body.hinge).qdot is not Hinge.qdot:
            raise ModelError(
                f"lw.linearize was called for {embedded.name!r}, whose loops are built in, and "
                f"whose hinge {body.hinge_name!r} has velocities that are not rates of its "
                "coordinates; use the mechanism itself, which is its attribute mech."
            )
    for loop in embedded.mech.loops:
        if loop.hinge.hull.nv > loop.hinge.nv:
            raise ModelError(
                f"lw.linearize was called for {embedded.name!r}, whose loops are built in, and "
                f"whose loop {loop.name!r} is a {loop.hinge.kind}: it reaches more configurations "
                "than its velocities span (nonholonomic); use the mechanism itself, which is its "
                "attribute mech."
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


# A formula needs a function of this module, so that its kernels can be kept on disk.


def _forward_bare(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _forward(at, pushed, rank, passive=False, actuated=False)


def _forward_passive(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _forward(at, pushed, rank, passive=True, actuated=False)


def _forward_driven(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _forward(at, pushed, rank, passive=False, actuated=True)


def _forward_acted(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _forward(at, pushed, rank, passive=True, actuated=True)


def _linearized_bare(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _linearized(at, pushed, rank, passive=False, actuated=False)


def _linearized_passive(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _linearized(at, pushed, rank, passive=True, actuated=False)


def _linearized_driven(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _linearized(at, pushed, rank, passive=False, actuated=True)


def _linearized_acted(at: Writing, pushed: str = "", rank: int | None = None) -> Any:
    return _linearized(at, pushed, rank, passive=True, actuated=True)


INVERSE_DERIVATIVES = Formula(_inverse, names=("q", "v", "vdot"))
FORWARD_DERIVATIVES = Formula(_forward_bare, names=("q", "v", "tau"))
LINEARIZED = Formula(_linearized_bare, names=("A", "B"))

WITH_PASSIVE = {
    FORWARD_DERIVATIVES: Formula(_forward_passive, names=FORWARD_DERIVATIVES.names),
    LINEARIZED: Formula(_linearized_passive, names=LINEARIZED.names),
}
"""The same with the passive forces of the mechanism."""

DRIVEN = {
    FORWARD_DERIVATIVES: Formula(_forward_driven, names=FORWARD_DERIVATIVES.names),
    LINEARIZED: Formula(_linearized_driven, names=LINEARIZED.names),
    WITH_PASSIVE[FORWARD_DERIVATIVES]: Formula(_forward_acted, names=FORWARD_DERIVATIVES.names),
    WITH_PASSIVE[LINEARIZED]: Formula(_linearized_acted, names=LINEARIZED.names),
}
"""The same with forces of actuators at given commands."""

ACCELERATION = Formula(_forward_of_tree, names=("vdot", "q", "v", "tau"))
"""v̇ of a tree with its derivatives, as a part of other formulas."""

PUSHED = {
    (formula, frame): Formula(formula.write, (frame,), formula.names)
    for formula in (INVERSE_DERIVATIVES, *DRIVEN, *DRIVEN.values(), ACCELERATION)
    for frame in FRAMES
}
"""The same with forces at nodes, by their axes."""
