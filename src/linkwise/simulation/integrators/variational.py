"""The variational integrator: the midpoint rule in the principle of least action."""

from __future__ import annotations

from linkwise.model.mechanism import Mechanism
from linkwise.simulation import rates
from linkwise.simulation.variational.step import Force, enter, leave, step as discrete_step
from linkwise.spatial.array import Array


def step(mech: Mechanism, f: Force, t: float, q: Array, u: Array, h: float) -> tuple[Array, Array]:
    """One step of order two that is symplectic and keeps momentum.

        p = ∂L/∂u(q, u)
        p = −∂L_d/∂q(q, q'),   p' = ∂L_d/∂q'(q, q'),   L_d = h L(q ⊕ ½h w, w),   q' = q ⊕ h w
        u' with p' = ∂L/∂u(q', u')

    The state between steps is (q, p): a rollout that keeps p saves the first and the last line
    (`variational.step`). Energy errors do not grow with time, they stay of size h². Forces that are
    no derivatives of an energy, as friction and control, act at the middle of the step.

    Args:
        f: All forces τ(t, q, v) besides gravity, for velocities v, not rates.

    Returns:
        q and u at t + h.

    Raises:
        ModelError: The mechanism has loops, couplings or a nonholonomic hinge.
        SimulationError: The step is too long for its equations to be solved.
    """
    p = enter(mech, q, rates.velocities(mech, q, u))
    stepped = discrete_step(mech, f, t, q, p, h)
    return stepped.q, rates.rates(mech, stepped.q, leave(mech, stepped.q, stepped.p))
