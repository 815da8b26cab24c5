"""Document 001, Part II, section 5: the free arms by operators, and the loops of one arm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Product, Sum, Symbol
from linkwise.algebra.symbols import (
    D,
    H,
    I,
    L,
    M,
    Phi,
    Psi,
    a,
    b,
    mass,
    phi,
    tau,
    v,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Check, Entry, definition, holds, misprint
from linkwise_ledger.grasp import PICK, Grasp, when_rigid
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import (
    free,
    free_tips,
    newton_euler_mass,
)
from linkwise_ledger.jpl_88_11.part_2.problem import (
    alone,
    check_jacobian_rate,
    jacobian_rate,
    seen_tips,
)
from linkwise_ledger.literal import unformed
from linkwise_ledger.recursion import accelerations, at_tip, paths

COLORING = I + H @ Phi @ L
WHITENING = I - H @ Psi @ L
MASS = H @ phi @ M @ phi.T @ H.T
JACOBIAN = PICK.T @ phi.T @ H.T
BIAS = H @ phi @ (M @ phi.T @ a + b)
FREE = tau - BIAS
"""T'."""

EPS = WHITENING @ FREE


def on_arms(*sides: tuple[Expr, Expr]) -> Check:
    """The check that both sides are equal, as operators of the forest of arms in its state."""
    return when_rigid(
        lambda g: max(apart(g.matrix(left), g.matrix(right)) for left, right in sides)
    )


def gives(expr: Expr, expected: Callable[[Grasp], Array]) -> Check:
    """The check that an expression has this value, in the state of the grasp."""
    return when_rigid(lambda g: apart(g.matrix(expr), expected(g)))


def sweeps(expr: Expr) -> int:
    """How many resolvents a vector goes through, one after the other, along the longest way."""
    if isinstance(expr, Product):
        return sum(sweeps(factor) for factor in expr.factors)
    if isinstance(expr, Sum):
        return max(sweeps(term) for _, term in expr.terms)
    if isinstance(expr, Adjoint | Inverse):
        return sweeps(expr.of)
    kind = expr.role if isinstance(expr, Symbol) else None
    if isinstance(kind, role.Named):
        return sweeps(kind.definition)
    return int(isinstance(kind, role.Resolvent))


# ----------------------------------------------------------------------------- one arm, all arms


def _one_arm(g: Grasp) -> float:
    """𝓜_i, 𝒞_i against inverse dynamics, J_i θ̇_i against poses."""
    errors: list[float] = []
    for i, arm in enumerate(alone(g)):
        found = newton_euler_mass(arm)
        errors += [apart(arm.matrix(MASS), found[0]), apart(arm.matrix(BIAS), found[1])]
        errors.append(apart(arm.matrix(JACOBIAN) @ arm.v, seen_tips(g)[i][0]))
    return max(errors)


def stacked_bias(g: Grasp) -> Array:
    """𝒞, by the recursion of Newton and Euler on each arm."""
    return np.concatenate([newton_euler_mass(arm)[1] for arm in alone(g)])


def _memoryless(g: Grasp) -> float:
    """H and M have nothing off their diagonal, φ nothing but from a link to those it hangs on."""
    linked = set(paths(g))
    errors = [0.0]
    for k in g.outward:
        for j in g.outward:
            if (k, j) not in linked:
                errors.append(float(np.abs(g.block(phi, k, j)).max()))
            if k != j:
                errors.append(float(np.abs(g.block(M, k, j)).max()))
                errors.append(float(np.abs(g.block(H, k, j)).max(initial=0.0)))
    return max(errors)


def _velocities(g: Grasp) -> float:
    """The loop from the base of each arm, and φᵀ(1,0) to its tip."""
    errors: list[float] = []
    for i, arm in enumerate(alone(g)):
        V, (tip, shift) = accelerations(arm, arm.v), at_tip(arm)
        rot = arm.mech.pose(arm.q, arm.node).rot
        found = (shift.T @ V[tip]).reshape(2, 3) @ rot.T
        errors.append(apart(found.ravel(), seen_tips(g)[i][0]))
    return max(errors)


def _masses(g: Grasp) -> float:
    parts = [arm.matrix(MASS) for arm in alone(g)]
    found = [g.matrix(MASS)[g.arm_of(i), g.arm_of(i)] for i in range(len(parts))]
    return max(_one_arm(g), *(apart(x, y) for x, y in zip(found, parts, strict=True)))


def _jacobian(g: Grasp) -> float:
    expected = np.concatenate([V for V, _ in seen_tips(g)])
    return apart(g.matrix(JACOBIAN) @ g.v, expected)


def _factors_of_arms(g: Grasp) -> float:
    """(5.2b), arm by arm."""
    return max(apart(arm.matrix(COLORING @ D @ COLORING.T), arm.matrix(MASS)) for arm in alone(g))


# ------------------------------------------------------------------------------- closed chain


def _without_bias(g: Grasp) -> float:
    """(5.5b), J̇ by differences."""
    inside = g.contact_bias - g.A @ g.M_C_inv @ g.object_bias
    found = inside - g.matrix(PICK.T @ phi.T @ a) - g.tip_bias
    return apart(found, inside - jacobian_rate(g) @ g.v)


def _moments(g: Grasp) -> float:
    """(5.5c)."""
    found = g.matrix(MASS) @ g.solution.theta_ddot + g.matrix(H @ phi @ PICK) @ g.solution.f
    return apart(found, g.matrix(FREE))


def _contacts(g: Grasp) -> float:
    """(5.5d)."""
    found = g.matrix(JACOBIAN) @ g.solution.theta_ddot - g.compliance @ g.solution.f
    return apart(found, g.a_free)


def free_tip_operators(g: Grasp) -> float:
    """(5.6b): against J̇ by differences."""
    found = g.matrix(JACOBIAN) @ free(g) + g.matrix(PICK.T @ phi.T @ a) + g.tip_bias
    return max(apart(found, free_tips(g)), check_jacobian_rate(g))


OPERATORS: tuple[Entry, ...] = (
    holds(
        "sec. 5, one arm",
        "mass matrix, Jacobian and bias of one arm",
        "𝓜_i = H_i φ_i M_i φ_iᵀ H_iᵀ; J_i = B_iᵀ φ_iᵀ H_iᵀ; 𝒞_i = H_i φ_i (M_i φ_iᵀ a_i + b_i)",
        "the same; B_i from the tip in the axes of the world",
        when_rigid(_one_arm),
        note="Against inverse dynamics and poses. In the axes of the world throughout: (3.20) of "
        "Part I.",
    ),
    misprint(
        "sec. 5, rate of the Jacobian",
        "acceleration of the tip by velocities alone",
        "J_i θ̇_i = B_iᵀ φ_iᵀ a_i + a_i(0)",
        "J̇_i θ̇_i = B_iᵀ φ_iᵀ a_i + a_i(0)",
        when_rigid(check_jacobian_rate),
        when_rigid(lambda g: apart(g.J @ g.v, g.bent)),
        note="The dot of J̇ is lost, twice, by the printer or the scan; (5.1d) has one.",
    ),
    holds(
        "sec. 5, causality",
        "what is memoryless, and what is causal",
        "M_i, H_i block diagonal; φ_i lower, φ_iᵀ upper block triangular",
        "M, H block diagonal; φ(k,j) = 0 unless j is k or hangs on it",
        when_rigid(_memoryless),
        note="Upper there and lower here: links are numbered from the tip, ours from the base.",
    ),
    holds(
        "sec. 5, velocity of the tip as a loop",
        "from the base to the tip",
        "V_i(N+1) = 0; for k = N … 1: V_i(k) = φ_iᵀ(k+1,k) V_i(k+1) + H_iᵀ(k) θ̇_i(k); "
        "V_i(0) = φ_iᵀ(1,0) V_i(1)",
        "the same",
        when_rigid(_velocities),
    ),
    holds("(5.1a)", "mass matrix of all arms", "𝓜 = H φ M φᵀ Hᵀ", "the same", when_rigid(_masses)),
    holds("(5.1b)", "Jacobian of all tips", "J = Bᵀ φᵀ Hᵀ", "the same", when_rigid(_jacobian)),
    holds(
        "(5.1c)",
        "bias of all arms",
        "𝒞 = H φ (M φᵀ a + b)",
        "the same",
        gives(BIAS, stacked_bias),
    ),
    holds(
        "(5.1d)",
        "accelerations of the tips by velocities alone",
        "J̇ θ̇ = Bᵀ φᵀ a + a(0)",
        "the same; with the accelerations of Linkwise, a(0) = (0, ω × v) of the tips",
        when_rigid(check_jacobian_rate),
        note="Scan: j for J̇. J̇ by differences.",
    ),
    misprint(
        "sec. 5, velocities of the tips",
        "as an example of stacked operators, and of each arm",
        "V(0) = J θ̇ = Bᵀ Hᵀ φᵀ θ̇",
        "V(0) = J θ̇ = Bᵀ φᵀ Hᵀ θ̇, as in (5.1b)",
        when_rigid(_jacobian),
        unformed(lambda: PICK.T @ H.T @ phi.T @ v),
        note="Hᵀ and φᵀ have changed places, twice: φᵀ does not take joint rates.",
    ),
    holds(
        "(5.2a)",
        "innovations factors of the mass matrix",
        "𝓜 = (I + H Φ L) D (I + H Φ L)ᵀ",
        "the same",
        on_arms((mass, COLORING @ D @ COLORING.T)),
    ),
    holds(
        "(5.2b)",
        "the same, of one arm",
        "𝓜_i = (I + H_i Φ_i L_i) D_i (I + H_i Φ_i L_i)ᵀ",
        "the same",
        when_rigid(_factors_of_arms),
    ),
    holds(
        "(5.3)",
        "inverse of the factor",
        "(I + H Φ L)⁻¹ = I - H Ψ L",
        "the same",
        on_arms((COLORING.inv, WHITENING)),
    ),
    holds(
        "(5.4)",
        "inverse of the mass matrix",
        "𝓜⁻¹ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L)",
        "the same",
        on_arms((mass.inv, WHITENING.T @ D.inv @ WHITENING)),
    ),
    holds(
        "(5.5a)",
        "moments without bias",
        "T' = T - H φ (M φᵀ a + b)",
        "the same",
        gives(FREE, lambda g: g.T - stacked_bias(g)),
    ),
    holds(
        "(5.5b)",
        "accelerations of the contacts without bias",
        "a'(C) = a(C) - A M⁻¹(C) b(C) - Bᵀ φᵀ a - a(0)",
        "the same",
        when_rigid(_without_bias),
    ),
    holds(
        "(5.5c)",
        "arms of the closed chain",
        "H φ M φᵀ Hᵀ θ̈ + H φ B f(0) = T'",
        "the same",
        when_rigid(_moments),
    ),
    holds(
        "(5.5d)",
        "contacts of the closed chain",
        "Bᵀ φᵀ Hᵀ θ̈ - A M⁻¹(C) Aᵀ f(0) = a'(C)",
        "the same",
        when_rigid(_contacts),
    ),
    holds(
        "(5.6a)",
        "free arms",
        "H φ M φᵀ Hᵀ θ̈_f = T - H φ (M φᵀ a + b)",
        "the same",
        when_rigid(lambda g: apart(g.matrix(MASS) @ free(g), g.matrix(tau - BIAS))),
    ),
    holds(
        "(5.6b)",
        "free tips",
        "α_f(0) = Bᵀ φᵀ Hᵀ θ̈_f + Bᵀ φᵀ a + a(0)",
        "the same",
        when_rigid(free_tip_operators),
    ),
    holds(
        "(5.7a)",
        "moments without bias",
        "T' = T - H φ (M φᵀ a + b)",
        "(5.5a)",
        gives(FREE, lambda g: g.T - stacked_bias(g)),
    ),
    holds(
        "(5.7b)",
        "free arms by moments without bias",
        "H φ M φᵀ Hᵀ θ̈_f = T'",
        "the same",
        when_rigid(lambda g: apart(g.matrix(MASS) @ free(g), g.matrix(FREE))),
    ),
    holds(
        "(5.8a)",
        "moments without bias",
        "T' = T - H φ (M φᵀ a + b)",
        "(5.5a)",
        gives(FREE, lambda g: g.T - stacked_bias(g)),
    ),
    holds(
        "(5.8b)",
        "accelerations of the free arms",
        "θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'",
        "the same",
        gives(WHITENING.T @ D.inv @ WHITENING @ FREE, free),
    ),
    definition("(5.9a)", "innovations", "ε = (I - H Ψ L) T'"),
    definition("(5.9b)", "weighted residuals", "ν = D⁻¹ ε"),
    holds(
        "(5.9c)",
        "accelerations of the free arms by residuals",
        "θ̈_f = (I - H Ψ L)ᵀ ν",
        "the same",
        gives(WHITENING.T @ D.inv @ EPS, free),
    ),
)
