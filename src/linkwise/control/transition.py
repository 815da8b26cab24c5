"""A step x' = f(x, τ) in array code, with its derivative in factors δx' = F δx + G W (δx, δτ).

Of a tree it is that of `simulation.transition`; with loops, couplings and contacts the rows that
hold act in the step (`holding.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.dynamics.derivative_formula import balance
from linkwise.dynamics.passive import Passive, carried_numbers
from linkwise.dynamics.quantity import expression
from linkwise.simulation.holding import Held, held
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import check_turns, rate_acceleration, rates, velocities
from linkwise.simulation.transition import accelerated_by, chained, passive_rates

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

INTEGRATED = ("euler", "rk4")
"""Integrators whose steps are optimised through, by name."""


def stepped(
    at: Writing, integrator: str, tau: Any, h: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any]:
    """q and v after a step with joint forces τ (nv,) held, of length h [s]; and forces λ of rows.

    Args:
        integrator: A name of `INTEGRATED`.
        forces: Dampers and springs, or None.
        given: Numbers of the mechanism that are inputs.
    """
    mech, pull = at.mech, np.zeros(0, dtype=object)

    def f(t: object, q: Any, u: Any) -> Any:
        nonlocal pull
        v = velocities(mech, q, u)
        if mech.loops or mech.couplings:
            rows = held(at, tau, h, forces, given, None, derivatives=False)
            pull = rows.force
            return rate_acceleration(mech, q, v, rows.vdot)
        numbers = carried_numbers(at, mech, given)
        force = tau if forces is None else forces.added(at, tau, q, v, numbers)
        name = expression("forward_dynamics")
        return rate_acceleration(mech, q, v, at.value(name, parameters=given, q=q, v=v, tau=force))

    scheme = INTEGRATORS[integrator]
    assert scheme.step is not None
    q, u = scheme.step(mech, f, 0.0, at.q, rates(mech, at.q, at.v), h)  # pyright: ignore
    check_turns(at, mech, h * u)
    return q, velocities(mech, q, u), pull


def transition(
    at: Writing, integrator: str, tau: Any, h: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any, Any, Any, Held | None]:
    """q and v after a step, with F (2 nv, 2 nv), G (2 nv, k), W (k, 3 nv), and what rows do.

    Columns of W are those of δq, δv and δτ.
    """
    mech, nv = at.mech, at.mech.nv
    if not mech.loops and not mech.couplings:
        return *chained(at, integrator, h, accelerated_by(at, tau, forces, given)), None
    more = None if forces is None else passive_rates(at, at.q, at.v, forces, given)
    rows = held(at, tau, h, forces, given, more, derivatives=True)
    assert rows.by is not None
    by_q, by_v, by_tau = (x[:nv] for x in rows.by)
    return *chained(at, integrator, h, lambda q, v: (rows.vdot, by_q, by_v, by_tau)), rows


def balanced(
    at: Writing, tau: Any, h: Any, forces: Passive | None, given: tuple[str, ...]
) -> tuple[Any, Any, Any, Any, Any]:
    """q' and v' after a step of semi-implicit Euler of plain hinges, with F, G and D.

    δx' = F δx + G δv', and the joint forces that do this are δτ = D (δx, δv').
    """
    mech, nv = at.mech, at.mech.nv
    force, slopes = tau, None
    if forces is not None:
        force = forces.added(at, tau, at.q, at.v, carried_numbers(at, mech, given))
        flat = passive_rates(at, at.q, at.v, forces, given)
        slopes = flat[:, :nv], flat[:, nv:]
    zero, one = (np.full((nv, nv), 0.0, dtype=object), np.eye(nv).astype(object))
    vdot, by_q, by_v, M = balance(at, force, given, slopes)
    M = M * (1.0 / h)
    F = np.block([[one, zero], [zero, zero]])
    v = at.v + h * vdot
    G, D = np.concatenate([h * one, one]), np.concatenate([by_q, by_v - M, M], axis=1)
    return at.q + h * v, v, F, G, D
