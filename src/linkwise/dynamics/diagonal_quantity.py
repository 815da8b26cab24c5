"""The expressions of the innovations factors and of the diagonalised equations of motion.

With 𝓜 = l l*, l = (I + H φ K) s, D = s s*,
ν = l* v is the diagonal velocity. Its rate needs that of the factors. As seen from outside nothing
but M and H depend on time, with Ṁ = B_V + B_V* and Ḣ* = A_V, and φ is constant. The Riccati
equation P = E_ψ P E_ψ* + K N K* + M then has the rate

    Ṗ = E_ψ Ṗ E_ψ* + Ṁ - E_ψ P A_V K* - K A_V* P E_ψ*,             a Lyapunov recursion,
    Ḋ = H Ṗ H* + A_V* P H* + H P A_V,
    D K̇* = (H Ṗ + A_V* P) E_ψ* - H P A_V K*,

without the change of the gain G in the first line: P is stationary in it.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import A_V, B_V, E_phi, H, M, V, b, phi, role, v
from linkwise.algebra.expr import Expr, symbol
from linkwise.algebra.symbols import articulated
from linkwise.dynamics.open_chain_quantity import x


def articulated_inertia_rate() -> Expr:
    """Ṗ as seen from outside, in the axes of the bodies."""
    f = articulated
    lost = f.E_psi @ f.P @ A_V @ f.K.T
    key = role.Lyapunov(f.E_psi, f.E_psi, B_V + B_V.T - lost - lost.T)
    body = f.P.range
    return symbol("Ṗ", body, body, key, "P_dot", r"\dot{P}")


def hinge_inertia_rate() -> Expr:
    """Ḋ."""
    f, P_dot = articulated, articulated_inertia_rate()
    return H @ P_dot @ H.T + A_V.T @ f.P @ H.T + H @ f.P @ A_V


def diagonal_coriolis_force() -> Expr:
    """g = (I - H ψ K) C - D ((I + H φ K)*)˙ v - ½ Ḋ (I + H φ K)* v, without gravity.

    The first term is H ψ (b + M φ* A_V v), the second has K̇* V + K* φ* A_V v, with D K* = H P E_φ*.
    """
    f, P_dot = articulated, articulated_inertia_rate()
    whitened = H @ f.psi @ (b + M @ phi.T @ A_V @ v)
    gain_rate = (H @ P_dot + A_V.T @ f.P) @ f.E_psi.T @ V - H @ f.P @ A_V @ f.K.T @ V
    carried = H @ f.P @ E_phi.T @ phi.T @ A_V @ v
    colored = v + f.K.T @ V
    return whitened - gain_rate - carried - 0.5 * (hinge_inertia_rate() @ colored)


DIAGONAL: dict[str, Callable[[Expr], Expr]] = {
    "hinge_inertia_rate": lambda J: hinge_inertia_rate(),
    "whitened_force": lambda J: articulated.whitening @ x,
    "colored_force": lambda J: articulated.coloring @ x,
    "colored_velocity": lambda J: articulated.coloring.T @ x,
    "whitened_velocity": lambda J: articulated.whitening.T @ x,
    "whitened_jacobian": lambda J: articulated.whitening @ J.T,
    "diagonal_coriolis_force": lambda J: diagonal_coriolis_force(),
}
"""Each as a function of the Jacobian J, like `quantity.QUANTITIES`."""
