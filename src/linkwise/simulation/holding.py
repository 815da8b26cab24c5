"""A step that holds loops, couplings and contacts, in array code, with its derivatives.

With J_c the Jacobian of the rows, e their error and γ = J̇_c v, the end of a step of length h has

    J_c v' = −½ h γ − ρ e / h,   v' = v + h v̇   (1)

as in steps of the integrator "implicit": the term of γ is what a straight step adds to the error,
and a part ρ of the error is closed. For v̇ and the forces λ of the rows that is

    𝓜 v̇ − J_c* λ = τ − C,   J_c v̇ + ε λ = −(J_c v / h + ½ γ + ρ e / h²)   (2)

Whatever velocity a row has before the step is gone after it. So a row that begins to hold is an
impact without rebound, and h λ is its impulse; γ does not count in such a step. A row that does not
hold is a row of zeros with λ = 0, so that which rows hold is an input of the kernel and each knot
may have others. The small ε lets rows depend on each other. The variation of (2) is the same system
with other right sides, as in `dynamics.closed_derivatives`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import bias, lam, mass, vdot
from linkwise.algebra.differential import differentiate
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.scalar.pivots import SINGULAR
from linkwise.codegen.sensitivity import slopes
from linkwise.dynamics.closure import closure_nodes, setting_of
from linkwise.dynamics.passive import Passive, carried_numbers
from linkwise.dynamics.quantity import expression
from linkwise.model.closure import constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import Rows
from linkwise.simulation.implicit.equality import RECOVERY, constraint_errors
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

SOFT = 1e-9
"""ε of (2), in parts of 1 / (mass of the mechanism)."""

POINT = tuple(tuple(map(float, row)) for row in np.eye(6)[3:])
"""The blocked directions of a contact: the three ways of a point, in axes of the world."""

CONTACT = Rows(POINT, outer=True, aim="position")
"""What a loop between the world and a node that touches it blocks."""


@dataclass(frozen=True, slots=True)
class Held:
    """What rows do in a step.

    Attributes:
        vdot: v̇ (nv,).
        force: λ (m,); at a contact the force on the node, in axes of the world.
        by: Derivatives of both by q, v and τ, each (nv + m, nv); None where not wanted.
    """

    vdot: Any
    force: Any
    by: tuple[Any, Any, Any] | None


def contact_rows(mech: Mechanism) -> list[int]:
    """Places of the rows of contacts among those of all constraints."""
    ends = np.cumsum([0, *constraint_sizes(mech)])
    pairs = zip(ends[:-1], mech.loops, strict=False)
    return [int(i) + j for i, loop in pairs if loop.hinge == CONTACT for j in range(3)]


def held(
    at: Writing,
    tau: Any,
    h: Any,
    forces: Passive | None,
    given: tuple[str, ...],
    passive_slopes: Any,
    *,
    derivatives: bool,
) -> Held:
    """v̇ and λ of a step from the state of the formula, (2).

    Inputs of contacts, each with a number for each of their rows: "hold", 1 where it holds, else
    0; "curve", 0 in the step of an impact, else 1; "pull" ρ; "place" where the node is held.

    Args:
        tau: Joint forces (nv,).
        h: The length of the step [s].
        forces: Dampers and springs, or None.
        given: Numbers of the mechanism that are inputs.
        passive_slopes: How dampers and springs change with q and v (nv, 2 nv), or None.
        derivatives: Whether they are wanted.
    """
    mech, state = at.mech, {"q": at.q, "v": at.v}
    nodes, nv = closure_nodes(mech), mech.nv
    closed, some = setting_of(mech), {"nodes": nodes, "parameters": given}
    M, c, J, gamma = at.value(mass, bias, closed.jacobian, closed.bias, **some, **state)
    inverse = factored(M[::-1, ::-1])  # from the tips: zeros between branches stay
    for pivot, scale in zip(inverse.pivots, np.diag(M)[::-1], strict=True):
        at.check(status_code.MATRIX, pivot - SINGULAR[at.itemsize] * scale, 0.0, np.inf)
    hold, curve, pull, error = _rows(at, mech)
    J = hold[:, None] * J
    soft = SOFT / mech.total_mass
    answer = (inverse @ J.T[::-1])[::-1]
    omega = J @ answer + np.diag(1.0 - hold + soft)
    solve = factored(omega)

    def solved(right: Any, rows: Any) -> tuple[Any, Any]:
        free = (inverse @ right[::-1])[::-1]
        force = solve @ (rows - J @ free)
        return free + answer @ force, force

    numbers = carried_numbers(at, mech, given)
    load = tau if forces is None else forces.added(at, tau, at.q, at.v, numbers)
    off = J @ at.v / h + hold * (0.5 * curve * gamma + pull * error / (h * h))
    motion, force = solved((load - c)[:, None], -off[:, None])
    motion, force = motion[:, 0], force[:, 0]
    if not derivatives:
        return Held(motion, force, None)
    loads = mass @ vdot + bias - closed.jacobian.T @ lam
    parts = [differentiate(loads, x) for x in ("q", "v")]
    known = {**state, "vdot": motion, "lam": force}
    by_q, by_v = at.value(*parts, **some, **known)
    if passive_slopes is not None:
        by_q, by_v = by_q - passive_slopes[:, :nv], by_v - passive_slopes[:, nv:]
    # ∂(J_c v̇ + J_c v / h) by q is that of J_c w with w = v' / h held
    turned = at.value(
        differentiate(closed.jacobian @ vdot, "q"), **some, **state, vdot=motion + at.v / h
    )
    bent = at.value(*(differentiate(closed.bias, x) for x in ("q", "v")), **some, **state)
    (moved,) = slopes(at, [error], "q")
    half, part = (0.5 * hold * curve)[:, None], (hold * pull / (h * h))[:, None]
    rows_q = hold[:, None] * turned + half * bent[0] + part * moved
    rows_v = J / h + half * bent[1]
    change, pulled = solved(
        np.concatenate([-by_q, -by_v, np.eye(nv)], axis=1),
        np.concatenate([-rows_q, -rows_v, np.zeros((len(J), nv))], axis=1),
    )
    both = np.concatenate([change, pulled])
    return Held(motion, force, (both[:, :nv], both[:, nv : 2 * nv], both[:, 2 * nv :]))


def _rows(at: Writing, mech: Mechanism) -> tuple[Any, Any, Any, Any]:
    """What holds, where γ counts, ρ, and e, of all rows."""
    loops = [x for x in mech.loops if x.hinge != CONTACT]
    m, contacts = sum(constraint_sizes(mech)), contact_rows(mech)
    others = [i for i in range(m) if i not in contacts]
    hold, curve, pull, error = (np.full(m, x, dtype=object) for x in (1.0, 1.0, RECOVERY, 0.0))
    error[others] = constraint_errors(at, mech, at.q, loops)
    if contacts:
        feet = tuple(x.node_b for x in mech.loops if x.hinge == CONTACT)
        poses = at.value(expression("node_poses"), nodes=feet, q=at.q).reshape(-1, 3, 4)
        hold[contacts], curve[contacts], pull[contacts] = (
            at.read(name, len(contacts)) for name in ("hold", "curve", "pull")
        )
        error[contacts] = poses[:, :, 3].ravel() - at.read("place", len(contacts))
    return hold, curve, pull, error
