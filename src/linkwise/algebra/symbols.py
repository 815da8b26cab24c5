"""The vocabulary: the operators and vectors of the theory, under the names of the notation table.

    from linkwise.algebra import B, H, M, I, phi, mass, bias, tau

Only `E_phi`, `H`, `M`, `B` and the vectors come from the mechanism; `phi` is the resolvent of
`E_phi`; P, D, G, K, psi and their relatives come from one Riccati recursion, R and Upsilon from
Lyapunov recursions, and the rest are names for expressions.
"""

from __future__ import annotations

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol, identity, symbol
from linkwise.algebra.family import (
    HINGE_MAP,
    RIGID_SHIFT,
    SPATIAL_INERTIA,
    lyapunov,
    resolvent,
    riccati,
)
from linkwise.algebra.space import (
    BODY,
    CONSTRAINT,
    INBOARD,
    INERTIA,
    JOINT,
    NODE,
    NODE_INERTIA,
    NODE_PLACE,
    ONE,
    PLACE,
    Space,
)
from linkwise.errors import ExpressionError

I = identity()
"""The identity; it takes the space of its neighbours."""

E_phi = symbol("E_φ", BODY, BODY, RIGID_SHIFT, "E_phi", r"\mathcal{E}_\phi")
H = symbol("H", JOINT, BODY, HINGE_MAP)
M = symbol("M", BODY, BODY, SPATIAL_INERTIA)
B = symbol("B", BODY, NODE, role.PickOff(), "B", r"\mathcal{B}")
B_PI = symbol("B_π", INERTIA, NODE_INERTIA, role.PickOff("B_pi"), "B_pi", r"\mathcal{B}_\pi")
"""From the ten inertial parameters of what is welded to each node to those that its body gains."""


_OF_THE_MECHANISM = {
    **{"M": (BODY, BODY), "H": (JOINT, BODY), "N": (JOINT, JOINT), "Delta_phi": (INBOARD, BODY)},
    **{"v": (JOINT, ONE), "a": (BODY, ONE), "b": (BODY, ONE), "a_g": (BODY, ONE)},
    **{"X": (PLACE, ONE), "X_B": (NODE_PLACE, ONE), "weight": (PLACE, ONE), "rot_W": (NODE, NODE)},
    **{"to_W": (BODY, BODY), "A_V": (BODY, JOINT), "B_V": (BODY, BODY)},
    **{"kappa": (CONSTRAINT, ONE), "kappa_g": (CONSTRAINT, ONE), "servo": (CONSTRAINT, ONE)},
    "task_error": (CONSTRAINT, ONE),
}
"""Names whose values come from the mechanism and its state."""


def _check_name(name: str, range_: Space, domain: Space) -> None:
    if _OF_THE_MECHANISM.get(name, (range_, domain)) != (range_, domain):
        raise ExpressionError(
            f"{name} is a quantity of the mechanism, from {_OF_THE_MECHANISM[name][1]} to "
            f"{_OF_THE_MECHANISM[name][0]}; give yours, from {domain} to {range_}, another name."
        )


def vector(name: str, space: Space, *, ascii: str = "", tex: str = "") -> Symbol:
    """Your own stacked vector, given when the expression is evaluated.

    Args:
        name: The name it prints with.
        space: The space it belongs to.
    """
    _check_name(ascii or name, space, ONE)
    return symbol(name, space, ONE, role.Vector(ascii or name), ascii or name, tex or name)


def memoryless(
    name: str,
    range_: Space,
    domain: Space,
    *,
    symmetric: bool = False,
    definite: bool = False,
    semidefinite: bool = False,
    independent: bool = False,
    invertible: bool = False,
    ascii: str = "",
    tex: str = "",
) -> Symbol:
    """Your own block-diagonal operator; its blocks are given when it is evaluated.

    Args:
        name: The name it prints with.
        range_: The space of its results.
        domain: The space of its operands.
        symmetric: Whether each block equals its transpose.
        definite: Whether each block is positive definite.
        semidefinite: Whether each block is positive semidefinite.
        independent: Whether the rows of each block are linearly independent.
        invertible: Whether each block has an inverse.
    """
    _check_name(ascii or name, range_, domain)
    if range_.block != domain.block:
        raise ExpressionError(
            f"{name} cannot be memoryless from {domain} to {range_}: one has a block for each "
            f"{domain.block}, the other for each {range_.block}."
        )
    key = role.Memoryless(
        ascii or name,
        is_symmetric=symmetric,
        is_definite=definite,
        is_semidefinite=semidefinite,
        independent=independent,
        has_inverse=invertible,
    )
    return symbol(name, range_, domain, key, ascii or name, tex or name)


def shift(name: str, *, ascii: str = "", tex: str = "") -> Symbol:
    """Your own one-step operator, from each body to its parent (BODY to BODY).

    Args:
        name: The name it prints with.
    """
    return symbol(name, BODY, BODY, role.Shift(ascii or name), ascii or name, tex or name)


def named(name: str, definition: Expr, *, ascii: str = "", tex: str = "") -> Symbol:
    """A name for an expression: it prints as the name and is opened where that helps.

    Args:
        name: The name it prints with.
        definition: The expression it names.
    """
    key = role.Named(definition)
    return symbol(name, definition.range, definition.domain, key, ascii or name, tex or name)


N = memoryless("N", JOINT, JOINT, semidefinite=True)
"""Armature: inertia of the hinge itself, diagonal; the measurement noise of the estimation view."""

phi = resolvent(E_phi)
phi_tilde = resolvent(E_phi, strict=True)
R = lyapunov(E_phi, M)

articulated = riccati(E_phi, M, H, N)
"""The family of the articulated-body quantities, with armature: D = H P H* + N."""

bare_tree = riccati(E_phi, M, H)
"""The same without armature: P₀, D₀ = H P₀ H*, ψ₀ and the rest."""

P, P_plus, D = articulated.P, articulated.P_plus, articulated.D
G, K = articulated.G, articulated.K
Pi, Pi_bar = articulated.Pi, articulated.Pi_bar
E_psi, psi, psi_tilde = articulated.E_psi, articulated.psi, articulated.psi_tilde
Upsilon, Xi = articulated.Upsilon, articulated.Xi

tau = vector("τ", JOINT, ascii="tau", tex=r"\tau")
v = vector("v", JOINT)
vdot = vector("v̇", JOINT, ascii="vdot", tex=r"\dot{v}")
a = vector("a", BODY, tex=r"\mathfrak{a}")
b = vector("b", BODY, tex=r"\mathfrak{b}")
f = vector("f", NODE)

a_g = vector("a_g", BODY, tex=r"\mathfrak{a}_g")
"""The part of a that gravity makes: at the bodies on the ground, the base accelerated upwards."""

X = vector("X", PLACE)
"""Where each body is: (rot | p) of its frame in the world."""

X_B = vector("X_B", NODE_PLACE, tex=r"X_{\mathcal{B}}")
"""Where each node is: (rot | p) of its frame in the world."""

weight = vector("weight", PLACE, tex=r"\mathrm{weight}")
"""Potential energy per entry of X: -(g h* | g m), so that it is weight* X."""

rot_W = memoryless("rot_W", NODE, NODE, invertible=True, tex=r"\mathrm{rot}_W")
"""From the axes of each node to those of the world, angular and linear part alike."""

to_W = memoryless("to_W", BODY, BODY, invertible=True, tex=r"\mathrm{to}_W")
"""From a velocity of each body, in its own frame, to the same motion about the world's origin in
world axes; to_W⁻* does that with forces and momenta."""

A_V = memoryless("A_V", BODY, JOINT, tex=r"A_{\mathcal{V}}")
"""A_V w = V × H* w + Ḣ* w at each body, so that a = A_V v + a_g."""

B_V = memoryless("B_V", BODY, BODY, tex=r"B_{\mathcal{V}}")
"""B_V V = b, by the factor for which B_V + B_V* is the rate of M as seen from outside."""

Q = symbol("Q", CONSTRAINT, NODE, role.Closure())
"""Q V = S (V_b - T V_a) for each loop: the relative velocity of its nodes, as far as it is blocked.
The nodes of the loops come first in NODE; couplings have rows of zeros."""

Y = symbol("Y", CONSTRAINT, JOINT, role.Followers())
"""The rows of the couplings: velocity of the coordinate that follows, minus its required value."""

kappa = vector("κ", CONSTRAINT, ascii="kappa", tex=r"\kappa")
"""The part of the rate of J_c v besides node accelerations: J̇_c v = Q B* φ* A_V v + κ."""

kappa_g = vector("κ_g", CONSTRAINT, ascii="kappa_g", tex=r"\kappa_g")
"""Removes gravity from the relative acceleration of nodes: Q B* φ* a_g + κ_g = 0, since gravity
does not accelerate the nodes of a loop against each other, and a contains it at the base."""

servo = vector("ẍ", CONSTRAINT, ascii="servo", tex=r"\ddot{x}")
"""ẍ_d + k_v (ẋ_d - ẋ) + k_p e for rows of tasks: the acceleration that takes them to a goal."""

task_error = vector("e", CONSTRAINT, ascii="task_error", tex="e")
"""What rows of tasks lack of their goals: displacements, and chords of angles."""

lam = vector("λ", CONSTRAINT, ascii="lam", tex=r"\lambda")
"""Forces along the rows of the constraints."""

J = named("J", B.T @ phi.T @ H.T)
mass = named("𝓜", H @ phi @ M @ phi.T @ H.T + N, ascii="mass", tex=r"\mathcal{M}")
"""The inertia of the mechanism, with its armature; that of the bare tree is H φ M φ* H*."""

bias = named("C", H @ phi @ (M @ phi.T @ a + b), ascii="bias", tex=r"\mathcal{C}")
V = named("V", phi.T @ H.T @ v, tex=r"\mathcal{V}")
Omega = named("Ω", psi.T @ H.T @ D.inv @ H @ psi, ascii="Omega", tex=r"\Omega")

# JPL 88-11: E_φ = S Δ_φ, so that Φ = φ S, Ψ = ψ S and L = Δ_φ G.
S = symbol("S", BODY, INBOARD, role.Gather())
Delta_phi = symbol("Δ_φ", INBOARD, BODY, role.Memoryless("Delta_phi"), "Delta_phi", r"\Delta_\phi")
Delta_psi = named("Δ_ψ", Delta_phi @ Pi_bar, ascii="Delta_psi", tex=r"\Delta_\psi")
L = named("L", Delta_phi @ G)
Phi = named("Φ", phi @ S, ascii="Phi", tex=r"\Phi")
Psi = named("Ψ", psi @ S, ascii="Psi", tex=r"\Psi")

damping = vector("damping", JOINT, tex=r"\mathrm{damping}")
"""Coefficients of dampers, for a force diag(v) damping; given as an argument."""

stiffness = vector("stiffness", JOINT, tex=r"\mathrm{stiffness}")
"""Coefficients of springs, for a force diag(x) stiffness of a deflection x; an argument."""

VOCABULARY: dict[str, Expr] = {
    s.ascii: s
    for s in (
        *(E_phi, H, M, B, phi, phi_tilde, R, P, P_plus, D, G, K, Pi, Pi_bar, E_psi, psi, psi_tilde),
        *(Upsilon, Xi, N, tau, v, vdot, a, b, f, J, mass, bias, V, Omega),
        *(a_g, X, X_B, weight, rot_W, to_W, A_V, B_V, Q, Y, kappa, kappa_g, lam, servo),
        *(task_error, damping, stiffness),
        *(S, Delta_phi, Delta_psi, L, Phi, Psi),
    )
} | {"I": I}
"""All names of the language, as typed."""
