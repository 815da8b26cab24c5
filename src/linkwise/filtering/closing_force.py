"""Forces of loops and couplings at an instant, in the formula of a sensor.

They are what the known accelerations leave of the equations of motion, of all such forces the least
ones, as `lw.loops.constraint_forces`. With A = J_c C, C the unit of each velocity:

    J_c* λ = 𝓜 v̇ + C − τ − J* f,    λ = A (A* A + ε)⁻¹ A* λ

The forces of joints are unique even where rows depend on each other, and they are smooth there. A
force across the range of A* is not passed on, so that a state slightly off its loops does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import B, H, J, M, Q, a, b, f, lam, phi, rot_W, vdot
from linkwise.algebra.expr import Expr
from linkwise.dynamics.closure import closure_nodes, setting_of
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.velocity_space import scale
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing
    from linkwise.filtering.motion import Dynamics, State

SOFT = 1e-10
"""ε, as a part of the mean of the diagonal of A* A."""

ROUNDS = 2
"""How often λ is corrected by what it leaves of J_c* λ: each time by SOFT of an error."""


def closing_forces(at: Writing, x: State, dynamics: Dynamics, motion: Any) -> Any:
    """λ (m,) while a state accelerates by `motion` (nv,)."""
    mech, nodes = at.mech, closure_nodes(at.mech)
    given = {"q": x.q, "v": x.v, "vdot": motion}
    load = at.value(expression("inverse_dynamics"), **given) - dynamics.acting(at, x)
    if dynamics.nodes:
        load = load - at.value(J.T @ rot_W.T @ f, nodes=dynamics.nodes, q=x.q, f=dynamics.forces(x))
    J_c = at.value(setting_of(mech).jacobian, nodes=nodes, q=x.q) * scale(mech).columns
    load = load * scale(mech).columns
    moved = [j for j in range(mech.nv) if any(not at.scalar(y).is_zero for y in J_c[:, j])]
    A, left = J_c[:, moved], load[moved][:, None]
    square = A.T @ A
    size = np.trace(square) * (1.0 / len(moved))
    inverse = factored(square + SOFT * size * np.eye(len(moved)))
    total: Any = 0.0
    for _ in range(ROUNDS):
        part = A @ (inverse @ left)
        total, left = total + part, left - A.T @ part
    return total[:, 0]


def load_of_hinges(pushed: bool) -> Expr:
    """φ (M φ* (H* v̇ + a) + b − B Q* λ − B rot_W* f): forces through hinges, in axes of bodies.

    Its nodes are those of the loops, then those with forces f.
    """
    closing = B @ Q.T @ lam
    outer = closing + B @ rot_W.T @ f if pushed else closing
    return phi @ (M @ phi.T @ (H.T @ vdot + a) + b - outer)
