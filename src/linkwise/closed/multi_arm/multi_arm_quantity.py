"""The equations of JPL 88-11, Part II, as operator expressions.

All of them are over the whole mechanism, arms and object, which are trees beside each other; nodes
are the tips of the arms, or the places where the object is held. D = H P H* + N, with armature N.

| here        | there                                                              |
| ----------- | ------------------------------------------------------------------ |
| ψ K         | Ψ L, and K = S L                                                   |
| T_prime     | T′ = T − C, of the object −b(C)                                    |
| a − a_g     | a, with a(0): gravity is an acceleration of the base, and taken off |
|             | where true accelerations are meant                                 |
| f           | forces at nodes; those on an arm are −f(0), carried to its tip     |
| J A⁻¹ J*    | of the object A M(C)⁻¹ A*                                          |

Those in AS_WRITTEN run as they stand; the others are derived: they are the general algorithm, which
takes any open-chain forward dynamics.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algebra import B, H, J, M, a, a_g, b, f, mass, phi, tau, v, vdot
from linkwise.algebra.expr import Expr
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import articulated, vector

T_prime = vector("T′", JOINT, ascii="T_prime", tex=r"\mathcal{T}'")
"""Joint forces without bias: T′ = τ − C."""

eps = vector("ε", JOINT, ascii="eps", tex=r"\epsilon")
"""Innovations: ε = (I − H ψ K) T′."""


def bias_free_force() -> Expr:
    """T′ = τ − H φ (M φ* a + b)   (6.11a), (6.18a), (6.22a)."""
    return tau - H @ phi @ (M @ phi.T @ a + b)


def bias_acceleration() -> Expr:
    """J̇ v = B* φ* a, without gravity   (5.1d)."""
    return B.T @ phi.T @ (a - a_g)


def free_acceleration() -> Expr:
    """v̇_f = (I − H ψ K)* D⁻¹ (I − H ψ K) T′   (6.11b)."""
    F = articulated
    return F.whitening.T @ F.D.inv @ F.whitening @ T_prime


def tip_acceleration() -> Expr:
    """α_f(0) = B* φ* H* v̇_f + B* φ* a   (6.11c)."""
    return B.T @ phi.T @ H.T @ vdot + B.T @ phi.T @ (a - a_g)


def compliance() -> Expr:
    """J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B   (6.11d), (6.18b), (6.22b)."""
    F = articulated
    return B.T @ F.psi.T @ H.T @ F.D.inv @ H @ F.psi @ B


def own_compliance() -> Expr:
    """Υ: of each body's frame, Υ_k = ψ* Υ_p ψ + H* D⁻¹ H   (6.10), the blocks of (6.7)."""
    return articulated.Upsilon


def correction() -> Expr:
    """Δv̇ = (I − H ψ K)* D⁻¹ H ψ B f   (6.3); printed without H in (6.5a) and (6.11g)."""
    F = articulated
    return F.whitening.T @ F.D.inv @ H @ F.psi @ B @ f


def tip_correction() -> Expr:
    """Δα(0) = B* φ* H* Δv̇   (6.11h)."""
    return B.T @ phi.T @ H.T @ vdot


def filtered_force() -> Expr:
    """J 𝓜⁻¹ T′ = B* ψ* H* D⁻¹ (I − H ψ K) T′   (6.12), in (6.18d) and (6.22e)."""
    F = articulated
    return B.T @ F.psi.T @ H.T @ F.D.inv @ F.whitening @ T_prime


def acceleration() -> Expr:
    """v̇ = (I − H ψ K)* D⁻¹ {T′ − H ψ (K T′ − B f)}   (6.17); (6.18e) prints no *."""
    F = articulated
    return F.whitening.T @ F.D.inv @ (T_prime - H @ F.psi @ (F.K @ T_prime - B @ f))


def innovation() -> Expr:
    """ε = (I − H ψ K) T′   (5.9a), in (6.22f)."""
    return articulated.whitening @ T_prime


def tip_of_innovation() -> Expr:
    """B* ψ* H* D⁻¹ ε, in (6.22e) and (6.22f)."""
    F = articulated
    return B.T @ F.psi.T @ H.T @ F.D.inv @ eps


def smoothed() -> Expr:
    """(I − H ψ K)* {D⁻¹ ε + D⁻¹ H ψ B f}   (6.22f) with f = −Ω⁻¹ B* ψ* H* D⁻¹ ε."""
    F = articulated
    return F.whitening.T @ (F.D.inv @ eps + F.D.inv @ H @ F.psi @ B @ f)


MULTI_ARM: dict[str, Callable[[], Expr]] = {
    "bias_free_force": bias_free_force,
    "bias_acceleration": bias_acceleration,
    "free_acceleration": free_acceleration,
    "tip_acceleration": tip_acceleration,
    "compliance": compliance,
    "own_compliance": own_compliance,
    "correction": correction,
    "tip_correction": tip_correction,
    "filtered_force": filtered_force,
    "acceleration": acceleration,
    "innovation": innovation,
    "tip_of_innovation": tip_of_innovation,
    "smoothed": smoothed,
    # The general solution (3.6), (4.9): whatever form is derived.
    "general_free_acceleration": lambda: mass.inv @ T_prime,
    "general_compliance": lambda: J @ mass.inv @ J.T,
    "general_correction": lambda: mass.inv @ J.T @ f,
    "general_filtered_force": lambda: J @ mass.inv @ T_prime,
    "general_acceleration": lambda: mass.inv @ (T_prime + J.T @ f),
    "inertia": lambda: mass,
    "jacobian": lambda: J,
    "node_velocity": lambda: J @ v,
}
"""Each step and quantity by name."""

AS_WRITTEN = frozenset(
    {
        *("bias_free_force", "bias_acceleration", "free_acceleration", "tip_acceleration"),
        *(
            "compliance",
            "own_compliance",
            "correction",
            "tip_correction",
            "filtered_force",
            "acceleration",
        ),
        *("innovation", "tip_of_innovation", "smoothed"),
    }
)
"""Those that run as they stand, without a search for a cheaper form."""

AS_BLOCKS = frozenset({"own_compliance"})
"""Those of which the blocks are wanted, (bodies, 6, 6)."""

EQUAL = {
    "free_acceleration": "general_free_acceleration",
    "compliance": "general_compliance",
    "correction": "general_correction",
    "filtered_force": "general_filtered_force",
    "acceleration": "general_acceleration",
}
"""What is proved equal: an equation of RCCFD1 to 3, and what it says in general."""


def multi_arm_expression(name: str) -> Expr:
    """The expression of a step by name."""
    return MULTI_ARM[name]()
