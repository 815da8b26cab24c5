"""The expressions of task space, as one would write them.

With J_t = Q J + Y the Jacobian of the tasks, and C_v and g the parts of the bias force C = C_v + g:

    Λ = (J_t 𝓜⁻¹ J_t*)⁻¹      J̄ = 𝓜⁻¹ J_t* Λ
    μ = Λ (J_t 𝓜⁻¹ C_v - γ)   p = Λ J_t 𝓜⁻¹ g          γ = J̇_t v
    F = Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied       τ = τ₀ + J_t* F

The force of a task is that of a constraint whose rows shall have the acceleration ẍ. What runs is
what `lw.derive` makes of them, with the columns X = (I - H ψ K) J_t* of closed chains
(`closure_quantity.py`), all from one sweep from the tips.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algebra import A_V, H, I, M, a_g, b, bias, mass, phi, servo, tau, v
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.symbols import articulated, vector
from linkwise.dynamics.closure import CLOSED, Setting, closing

applied = vector("applied", CONSTRAINT, tex=r"F_{\mathrm{applied}}")
"""A force along the rows of the tasks that is added."""


@dataclass(frozen=True, slots=True)
class Law:
    """What stands in the law of a torque.

    Attributes:
        whole: Whether the bias force is compensated in all freedoms, or as seen by the task.
        internal: Whether there is a torque τ₀ for the null space.
        applied: Whether a force is added.
        servo: Whether the acceleration comes from a goal and gains, or is given.
    """

    whole: bool = False
    internal: bool = True
    applied: bool = False
    servo: bool = False


def inertia(s: Setting) -> Expr:
    """Λ."""
    return CLOSED["constraint_inertia_inverse"](s).inv


def response(s: Setting) -> Expr:
    """𝓜⁻¹ J_t*."""
    return mass.inv @ s.jacobian.T


def _seen(s: Setting, force: Expr) -> Expr:
    """J_t 𝓜⁻¹ H φ z."""
    return s.jacobian @ mass.inv @ H @ phi @ force


def coriolis(s: Setting) -> Expr:
    """μ."""
    return inertia(s) @ (_seen(s, M @ phi.T @ A_V @ v + b) - s.bias)


def gravity(s: Setting) -> Expr:
    """p."""
    return inertia(s) @ _seen(s, M @ phi.T @ a_g)


def force(s: Setting, law: Law) -> Expr:
    """Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)), or with C taken out of all freedoms Λ (ẍ - γ - J_t 𝓜⁻¹ τ₀)."""
    found = (servo if law.servo else closing) - (s.bias if law.whole else s.lifted_bias)
    if law.internal:
        found = found - s.jacobian @ mass.inv @ tau
    if not law.whole:
        found = found + s.jacobian @ mass.inv @ bias
    return inertia(s) @ found


def torque(s: Setting, law: Law) -> Expr:
    """τ₀ + J_t* F, and C where it is compensated in all freedoms."""
    total = force(s, law) + applied if law.applied else force(s, law)
    found = s.jacobian.T @ total
    if law.internal:
        found = tau + found
    return bias + found if law.whole else found


TASK: dict[str, Callable[[Setting], Expr]] = {
    "task_jacobian": CLOSED["constraint_jacobian"],
    "task_bias": CLOSED["constraint_bias"],
    "task_inertia_inverse": CLOSED["constraint_inertia_inverse"],
    "task_inertia": inertia,
    "task_columns": lambda s: (I - H @ articulated.psi @ articulated.K) @ s.jacobian.T,
    "task_response": response,
    "consistent_inverse": lambda s: response(s) @ inertia(s),
    "task_coriolis": coriolis,
    "task_gravity": gravity,
    "task_velocity": lambda s: s.jacobian @ v,
    "task_drop": lambda s: s.jacobian @ mass.inv @ bias,
    "task_joint_force": lambda s: s.jacobian.T @ closing,
}
"""Each in the setting of a mechanism with tasks for loops."""
