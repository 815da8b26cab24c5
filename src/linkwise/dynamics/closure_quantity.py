"""The expressions of dynamics with loops and couplings, as one would write them.

With J_c = Q J + Y and γ = Q B* φ* a + κ_g + κ, which is Q B* φ* A_V v + κ:

    Ω = J_c 𝓜⁻¹ J_c*      λ = -Ω⁻¹ (J_c 𝓜⁻¹ (τ - C) + γ)      v̇ = 𝓜⁻¹ (τ - C + J_c* λ)

What runs is what `lw.derive` makes of them. It finds the columns X = (I - H ψ K) J_c*, one for each
row of the constraints, and Ω = X* D⁻¹ X; they come of one sweep from the tips, v̇ of one from the
base, and between them stands a matrix as large as the constraints are many. For arms that hold an
object this is algorithm RCCFD2 of JPL 88-11-II, (6.18).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algebra import (
    A_V,
    B,
    H,
    J,
    Q,
    Y,
    a,
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
from linkwise.algebra.symbols import vector

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


def _sum(*parts: Expr | None) -> Expr:
    found = [part for part in parts if part is not None]
    return sum(found[1:], found[0])


def _pushing(s: Setting) -> Expr:
    """B f, in node axes unless the setting says otherwise."""
    return B @ f if s.push is None else s.push


def _force(s: Setting) -> Expr:
    """-λ."""
    J_c = s.jacobian
    acting = tau - bias if s.push is None else tau - bias + H @ phi @ s.push
    return (J_c @ mass.inv @ J_c.T).inv @ (J_c @ mass.inv @ acting + s.missing)


def _forward_dynamics(s: Setting) -> Expr:
    acting = tau - bias if s.push is None else tau - bias + H @ phi @ s.push
    return mass.inv @ acting - mass.inv @ s.jacobian.T @ _force(s)


def _tip_force_correction(s: Setting) -> Expr:
    """What forces alone cause."""
    J_c, push = s.jacobian, H @ phi @ _pushing(s)
    force = (J_c @ mass.inv @ J_c.T).inv @ (J_c @ mass.inv @ push)
    return mass.inv @ push - mass.inv @ J_c.T @ force


CLOSED: dict[str, Callable[[Setting], Expr]] = {
    "constraint_jacobian": lambda s: s.jacobian,
    "constraint_bias": lambda s: s.bias,
    "closure_inertia_inverse": lambda s: s.jacobian @ mass.inv @ s.jacobian.T,
    "constraint_forces": lambda s: -1.0 * _force(s),
    "constrained_forward_dynamics": _forward_dynamics,
    "constraint_acceleration": lambda s: s.jacobian @ vdot + s.bias,
    "tip_force_correction": _tip_force_correction,
}
