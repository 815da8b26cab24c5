"""The expressions of task space, in textbook form.

With J_t = Q J + Y the Jacobian of the tasks, and C_v and g the parts of the bias force C = C_v + g:

    Λ = (J_t 𝓜⁻¹ J_t*)⁻¹      J̄ = 𝓜⁻¹ J_t* Λ
    μ = Λ (J_t 𝓜⁻¹ C_v - γ)   p = Λ J_t 𝓜⁻¹ g          γ = J̇_t v
    F = Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied       τ = τ₀ + J_t* F

The force of a task is that of a constraint whose rows have the acceleration ẍ. `lw.derive` derives
the expressions that run, with the columns X = (I - H ψ K) J_t* of closed chains
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
"""An additional force along the rows of the tasks."""


@dataclass(frozen=True, slots=True)
class Law:
    """The terms of a torque law.

    Attributes:
        all_joints: Whether the bias force is compensated in all joints, or as seen by the task.
        internal: Whether there is a torque τ₀ in the null space.
        applied: Whether there is an additional force.
        servo: Whether the acceleration comes from a goal and gains, or is given.
    """

    all_joints: bool = False
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
    """Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)), or with C compensated in all joints Λ (ẍ - γ - J_t 𝓜⁻¹ τ₀)."""
    acceleration = (servo if law.servo else closing) - (s.bias if law.all_joints else s.lifted_bias)
    if law.internal:
        acceleration = acceleration - s.jacobian @ mass.inv @ tau
    if not law.all_joints:
        acceleration = acceleration + s.jacobian @ mass.inv @ bias
    return inertia(s) @ acceleration


def torque(s: Setting, law: Law) -> Expr:
    """τ₀ + J_t* F, plus C if it is compensated in all joints."""
    total = force(s, law) + applied if law.applied else force(s, law)
    result = s.jacobian.T @ total
    if law.internal:
        result = tau + result
    return bias + result if law.all_joints else result


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
"""Each in the setting of a mechanism with tasks in place of loops."""
