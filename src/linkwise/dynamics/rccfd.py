"""The algorithms RCCFD1 to RCCFD3 of JPL 88-11, Part II, for any loops: they run as written.

There arms hold an object. Here both are trees of one mechanism, contacts are loops, and

    Ω = J_c 𝓜⁻¹ J_c* = X* D⁻¹ X,   X = (I − H ψ K) J_c* = H ψ B Q*

contains J 𝓜⁻¹ J* of the arms and A M(C)⁻¹ A* of the object. T′ = τ − C, γ = J̇_c v, and f = −λ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from linkwise.algebra import H
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import articulated

if TYPE_CHECKING:
    from linkwise.dynamics.closure import Setting

D_inv, K, psi, white = articulated.D.inv, articulated.K, articulated.psi, articulated.whitening


def rccfd1(s: Setting) -> Expr:
    """v̇_f = (I − H ψ K)* D⁻¹ (I − H ψ K) T′, Ω f = J_c v̇_f + γ, v̇ = v̇_f + Δv̇   (6.11).

    Δv̇ = −(I − H ψ K)* D⁻¹ X f; (6.11g) is printed without the sign and without H.
    """
    free = white.T @ D_inv @ white @ s.acting
    force = s.compliance.inv @ (s.jacobian @ free + s.missing)
    return free - white.T @ D_inv @ s.whitened @ force


def rccfd2(s: Setting) -> Expr:
    """Ω f = X* D⁻¹ (I − H ψ K) T′ + γ, v̇ = (I − H ψ K)* D⁻¹ (T′ − H ψ K T′ − X f)   (6.18).

    (6.18e) is printed without the star on its first factor; (6.17) has it.
    """
    force = s.compliance.inv @ (s.whitened.T @ D_inv @ white @ s.acting + s.missing)
    return white.T @ D_inv @ (s.acting - H @ psi @ K @ s.acting - s.whitened @ force)


def rccfd3(s: Setting) -> Expr:
    """v̇ = (I − H ψ K)* {D⁻¹ − D⁻¹ X Ω⁻¹ X* D⁻¹} (I − H ψ K) T′ − (I − H ψ K)* D⁻¹ X Ω⁻¹ γ   (6.22).

    The effects of T′ and of γ separately.
    """
    innovation, X = white @ s.acting, s.whitened
    pushed = s.compliance.inv @ (X.T @ D_inv @ innovation)
    first = white.T @ (D_inv @ innovation - D_inv @ X @ pushed)
    return first - white.T @ D_inv @ X @ (s.compliance.inv @ s.missing)


RCCFD: dict[str, Callable[[Setting], Expr]] = {
    "RCCFD1": rccfd1,
    "RCCFD2": rccfd2,
    "RCCFD3": rccfd3,
}
"""By name."""
