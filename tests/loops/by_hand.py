"""Closed chains and tasks derived by hand, once: what `lw.derive` finds may cost no more.

With X = (I - H ψ K) J_c* = H ψ B Q* + (I - H ψ K) Y*, a column for each row of the constraints, and
ε = τ - H ψ (K τ + M φ* a + b),

    Ω = X* D⁻¹ X          λ = -Ω⁻¹ (X* D⁻¹ ε + γ)              v̇ = (I - H ψ K)* D⁻¹ (ε + X λ)
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import A_V, B, H, I, M, Q, Y, a, a_g, b, f, phi, servo, tau, v
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import articulated
from linkwise.dynamics.closure import Setting, closing
from linkwise.tasks.quantity import Law, applied

D, PSI, WHITE = articulated.D, articulated.psi, I - H @ articulated.psi @ articulated.K


def columns(s: Setting) -> Expr:
    """X."""
    parts = [H @ PSI @ B @ Q.T] if s.loops else []
    parts += [WHITE @ Y.T] if s.couplings else []
    return sum(parts[1:], parts[0])


def inertia_inverse(s: Setting) -> Expr:
    """Ω."""
    return columns(s).T @ D.inv @ columns(s)


def filtered(s: Setting) -> Expr:
    """ε."""
    acting = b if s.push is None else b - s.push
    return tau - H @ PSI @ (articulated.K @ tau + M @ phi.T @ a + acting)


def force(s: Setting) -> Expr:
    """-λ."""
    missing = s.lifted_bias - closing if s.closing else s.lifted_bias
    return inertia_inverse(s).inv @ (columns(s).T @ D.inv @ filtered(s) + missing)


def tip_force_correction(s: Setting) -> Expr:
    """What forces alone cause."""
    ours = H @ PSI @ (B @ f if s.push is None else s.push)
    back = inertia_inverse(s).inv @ (columns(s).T @ D.inv @ ours)
    return WHITE.T @ D.inv @ (ours - columns(s) @ back)


def seen(s: Setting, z: Expr) -> Expr:
    """J_t 𝓜⁻¹ H φ z."""
    return columns(s).T @ D.inv @ H @ PSI @ z


def task_force(s: Setting, law: Law) -> Expr:
    """F."""
    missing = (servo if law.servo else closing) - (s.bias if law.all_joints else s.lifted_bias)
    acting = tau - H @ PSI @ articulated.K @ tau if law.internal else None
    if not law.all_joints:
        fall = -1.0 * (H @ PSI @ (M @ phi.T @ a + b))
        acting = fall if acting is None else acting + fall
    if acting is not None:
        missing = missing - columns(s).T @ D.inv @ acting
    return inertia_inverse(s).inv @ missing


def torque(s: Setting, law: Law) -> Expr:
    """τ₀ + J_t* F, and C where it is compensated in all freedoms."""
    total = task_force(s, law) + applied if law.applied else task_force(s, law)
    result = s.jacobian.T @ total
    result = tau + result if law.internal else result
    return H @ phi @ (M @ phi.T @ a + b) + result if law.all_joints else result


BY_HAND: dict[str, Callable[[Setting], Expr]] = {
    "constraint_inertia_inverse": inertia_inverse,
    "constraint_forces": lambda s: -1.0 * force(s),
    "forward_dynamics": lambda s: WHITE.T @ D.inv @ (filtered(s) - columns(s) @ force(s)),
    "tip_force_correction": tip_force_correction,
}

TASK_BY_HAND: dict[str, Callable[[Setting], Expr]] = {
    "task_inertia_inverse": inertia_inverse,
    "task_inertia": lambda s: inertia_inverse(s).inv,
    "task_columns": columns,
    "task_response": lambda s: WHITE.T @ D.inv @ columns(s),
    "consistent_inverse": lambda s: WHITE.T @ D.inv @ columns(s) @ inertia_inverse(s).inv,
    "task_coriolis": lambda s: inertia_inverse(s).inv @ (seen(s, M @ phi.T @ A_V @ v + b) - s.bias),
    "task_gravity": lambda s: inertia_inverse(s).inv @ seen(s, M @ phi.T @ a_g),
    "task_drop": lambda s: seen(s, M @ phi.T @ a + b),
}
