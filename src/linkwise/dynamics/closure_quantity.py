"""The expressions of dynamics with loops and couplings.

As one would write them, with A = 𝓜, J_c = Q J + Y and γ = Q B* φ* a + κ_g + κ, which is
Q B* φ* A_V v + κ:

    Ω = J_c A⁻¹ J_c*      λ = -Ω⁻¹ (J_c A⁻¹ (τ - C) + γ)      v̇ = A⁻¹ (τ - C + J_c* λ)

As they run: with the columns X = (I - H ψ K) J_c* = H ψ B Q* + (I - H ψ K) Y*, one for each row of
the constraints, and ε = τ - H ψ (K τ + M φ* a + b),

    Ω = X* D⁻¹ X          λ = -Ω⁻¹ (X* D⁻¹ ε + γ)              v̇ = (I - H ψ K)* D⁻¹ (ε + X λ)

X and ε come of one sweep from the tips, v̇ of one from the base; between them stands a matrix as
large as the constraints are many. For arms that hold an object this is algorithm RCCFD2 of
JPL 88-11-II, (6.18). `lw.prove` shows that both are equal, and `lw.derive` finds the second from
the first where there are no couplings (tests/closed/test_closure_quantity.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algebra import (
    A_V,
    B,
    H,
    I,
    J,
    M,
    Q,
    Y,
    a,
    b,
    bias,
    f,
    kappa,
    kappa_g,
    mass,
    phi,
    rot_W,
    tau,
    v,
    vdot,
)
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.symbols import articulated, vector

closing = vector("closing", CONSTRAINT, tex=r"\ddot{e}")
"""What J_c v̇ + γ shall be instead of zero: how loops that are open are asked to close."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What there is of a closed mechanism.

    Attributes:
        loops: Whether it has loops.
        couplings: Whether it has couplings.
        pushed: Axes of forces at nodes, "node" or "world"; "" where there are none.
        closing: Whether the constraints shall accelerate.
    """

    loops: bool = True
    couplings: bool = False
    pushed: str = ""
    closing: bool = False

    @property
    def jacobian(self) -> Expr:
        """J_c."""
        return _sum(Q @ J if self.loops else None, Y if self.couplings else None)

    @property
    def columns(self) -> Expr:
        """X = (I - H ψ K) J_c*."""
        F = articulated
        return _sum(
            H @ F.psi @ B @ Q.T if self.loops else None,
            (I - H @ F.psi @ F.K) @ Y.T if self.couplings else None,
        )

    @property
    def bias(self) -> Expr:
        """γ = J̇_c v."""
        return _sum(Q @ B.T @ phi.T @ A_V @ v if self.loops else None, kappa)

    @property
    def lifted_bias(self) -> Expr:
        """γ again, by the accelerations φ* a that are there for the bias forces anyhow."""
        return _sum(Q @ B.T @ phi.T @ a + kappa_g if self.loops else None, kappa)

    @property
    def push(self) -> Expr | None:
        """B f: what forces at nodes do to the bodies."""
        return {"node": B @ f, "world": B @ rot_W.T @ f}.get(self.pushed)

    @property
    def missing(self) -> Expr:
        """γ, less what the constraints shall accelerate with."""
        return self.lifted_bias - closing if self.closing else self.lifted_bias

    @property
    def filtered(self) -> Expr:
        """ε = τ - H ψ (K τ + M φ* a + b - B f)."""
        F, acting = articulated, b if self.push is None else b - self.push
        return tau - H @ F.psi @ (F.K @ tau + M @ phi.T @ a + acting)


def _sum(*parts: Expr | None) -> Expr:
    found = [part for part in parts if part is not None]
    return sum(found[1:], found[0])


def _inertia_inverse(s: Setting) -> Expr:
    return s.columns.T @ articulated.D.inv @ s.columns


def _force(s: Setting) -> Expr:
    """-λ."""
    D = articulated.D
    return _inertia_inverse(s).inv @ (s.columns.T @ D.inv @ s.filtered + s.missing)


def _forward_dynamics(s: Setting) -> Expr:
    F = articulated
    return (I - H @ F.psi @ F.K).T @ F.D.inv @ (s.filtered - s.columns @ _force(s))


def _tip_force_correction(s: Setting) -> Expr:
    """(I - H ψ K)* D⁻¹ (ε - X Ω⁻¹ X* D⁻¹ ε) with ε = H ψ B f: what forces alone cause."""
    F = articulated
    filtered = H @ F.psi @ _pushing(s)
    force = _inertia_inverse(s).inv @ (s.columns.T @ F.D.inv @ filtered)
    return (I - H @ F.psi @ F.K).T @ F.D.inv @ (filtered - s.columns @ force)


def _pushing(s: Setting) -> Expr:
    """B f, in node axes unless the setting says otherwise."""
    return B @ f if s.push is None else s.push


CLOSED: dict[str, Callable[[Setting], Expr]] = {
    "constraint_jacobian": lambda s: s.jacobian,
    "constraint_bias": lambda s: s.bias,
    "closure_inertia_inverse": _inertia_inverse,
    "constraint_forces": lambda s: -1.0 * _force(s),
    "constrained_forward_dynamics": _forward_dynamics,
    "constraint_acceleration": lambda s: s.jacobian @ vdot + s.bias,
    "tip_force_correction": _tip_force_correction,
}
"""Each as it runs."""


def _plain_force(s: Setting) -> Expr:
    J_c = s.jacobian
    acting = tau - bias if s.push is None else tau - bias + H @ phi @ s.push
    return (J_c @ mass.inv @ J_c.T).inv @ (J_c @ mass.inv @ acting + s.missing)


def _plain_forward_dynamics(s: Setting) -> Expr:
    acting = tau - bias if s.push is None else tau - bias + H @ phi @ s.push
    return mass.inv @ acting - mass.inv @ s.jacobian.T @ _plain_force(s)


def _plain_tip_force_correction(s: Setting) -> Expr:
    A, J_c, push = mass, s.jacobian, H @ phi @ _pushing(s)
    force = (J_c @ A.inv @ J_c.T).inv @ (J_c @ A.inv @ push)
    return A.inv @ push - A.inv @ J_c.T @ force


PLAIN: dict[str, Callable[[Setting], Expr]] = {
    "constraint_jacobian": lambda s: s.jacobian,
    "constraint_bias": lambda s: s.bias,
    "closure_inertia_inverse": lambda s: s.jacobian @ mass.inv @ s.jacobian.T,
    "constraint_forces": lambda s: -1.0 * _plain_force(s),
    "constrained_forward_dynamics": _plain_forward_dynamics,
    "constraint_acceleration": lambda s: s.jacobian @ vdot + s.bias,
    "tip_force_correction": _plain_tip_force_correction,
}
"""Each as one would write it."""
