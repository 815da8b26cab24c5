"""The expressions of task space.

With J_t = Q J + Y the Jacobian of the tasks, A = 𝓜, and C_v and g the parts of the bias
force C = C_v + g, as one would write them:

    Λ = (J_t A⁻¹ J_t*)⁻¹      J̄ = A⁻¹ J_t* Λ
    μ = Λ (J_t A⁻¹ C_v - γ)   p = Λ J_t A⁻¹ g          γ = J̇_t v
    F = Λ (ẍ - γ - J_t A⁻¹ (τ₀ - C)) + F_applied       τ = τ₀ + J_t* F

As they run, with the columns X = (I - H ψ K) J_t* of closed chains (`closure_quantity.py`), all
from one sweep from the tips: J_t A⁻¹ J_t* = X* D⁻¹ X, J_t A⁻¹ C_v = X* D⁻¹ H ψ (M φ* A_V v + b),
J_t A⁻¹ g = X* D⁻¹ H ψ M φ* a_g. The force of a task is that of a constraint whose rows shall have
the acceleration ẍ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algebra import A_V, H, I, M, a, a_g, b, bias, phi, servo, tau, v
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.symbols import articulated, vector
from linkwise.dynamics.closure_quantity import CLOSED, Setting, closing

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
    return CLOSED["closure_inertia_inverse"](s).inv


def response(s: Setting) -> Expr:
    """A⁻¹ J_t* = (I - H ψ K)* D⁻¹ X."""
    F = articulated
    return (I - H @ F.psi @ F.K).T @ F.D.inv @ s.columns


def _seen(s: Setting, force: Expr) -> Expr:
    """J_t A⁻¹ H φ z = X* D⁻¹ H ψ z."""
    F = articulated
    return s.columns.T @ F.D.inv @ H @ F.psi @ force


def coriolis(s: Setting) -> Expr:
    """μ."""
    return inertia(s) @ (_seen(s, M @ phi.T @ A_V @ v + b) - s.bias)


def gravity(s: Setting) -> Expr:
    """p."""
    return inertia(s) @ _seen(s, M @ phi.T @ a_g)


def force(s: Setting, law: Law) -> Expr:
    """Λ (ẍ - γ - J_t A⁻¹ (τ₀ - C)), or with C taken out of all freedoms Λ (ẍ - γ - J_t A⁻¹ τ₀)."""
    F = articulated
    missing = (servo if law.servo else closing) - (s.bias if law.whole else s.lifted_bias)
    acting = tau - H @ F.psi @ F.K @ tau if law.internal else None
    if not law.whole:
        fall = -1.0 * (H @ F.psi @ (M @ phi.T @ a + b))
        acting = fall if acting is None else acting + fall
    if acting is not None:
        missing = missing - s.columns.T @ F.D.inv @ acting
    return inertia(s) @ missing


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
    "task_inertia_inverse": CLOSED["closure_inertia_inverse"],
    "task_inertia": inertia,
    "task_columns": lambda s: s.columns,
    "task_response": response,
    "consistent_inverse": lambda s: response(s) @ inertia(s),
    "task_coriolis": coriolis,
    "task_gravity": gravity,
    "task_velocity": lambda s: s.jacobian @ v,
    "task_drop": lambda s: _seen(s, M @ phi.T @ a + b),
    "task_joint_force": lambda s: s.jacobian.T @ closing,
}
"""Each as it runs, in the setting of a mechanism with tasks for loops."""
