"""Document 001, Part II, section 4: the general algorithm, by any dynamics of the free arms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import D
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds, misprint
from linkwise_ledger.grasp import Grasp, planar, rank, rigid, solved, when_rigid
from linkwise_ledger.jpl_88_11.operators import diagonal
from linkwise_ledger.jpl_88_11.part_2.closed_chain import (
    smaller,
    tip_accelerations,
    whole as whole_system,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.jpl_88_11.part_2.solution import finds
from linkwise_ledger.literal import split
from linkwise_ledger.operator_algebra.inversion import smoother_loop, whitening_loop
from linkwise_ledger.operator_algebra.newton_euler import link_accelerations, newton_euler
from linkwise_ledger.recursion import at_tip

Solver: TypeAlias = Callable[[Grasp, Array], Array]
"""Accelerations that bias-free moments give to the free arms."""


def by_elimination(g: Grasp, moments: Array) -> Array:
    """𝓜⁻¹ T'."""
    return solved(g.mass, moments)


def by_loops(g: Grasp, moments: Array) -> Array:
    """The filter and the smoother of an open chain."""
    eps = split(g, whitening_loop(g, moments), JOINT)
    return smoother_loop(g, {k: g.block(D.inv, k) @ eps[k] for k in g.outward})


@cache
def newton_euler_mass(arm: Case) -> tuple[Array, Array]:
    """𝓜, column by column, and 𝒞 of one arm from inverse dynamics."""
    still, n = np.zeros(6), len(arm.v)
    bias = newton_euler(arm, np.zeros(n), still)
    return np.column_stack([newton_euler(arm, e, still) - bias for e in np.eye(n)]), bias


def by_newton_euler(g: Grasp, moments: Array) -> Array:
    """𝓜 from inverse dynamics, arm by arm, then elimination."""
    parts = [newton_euler_mass(arm)[0] for arm in alone(g)]
    return solved(diagonal(parts), moments)


def general(g: Grasp, solver: Solver) -> tuple[Array, Array, Array]:
    """The four steps of (4.9): θ̈, f(0) and α(0)."""
    free = solver(g, g.T - g.coriolis)  # (4.9a)
    free_tips = g.J @ free + g.bent  # (4.9b)
    columns = np.column_stack([solver(g, column) for column in g.J])
    Omega = g.J @ columns + g.A @ g.M_C_inv @ g.A.T  # (4.9c)
    f = solved(Omega, free_tips + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias)
    correction = -solver(g, g.J.T @ f)  # (4.9e)
    return free + correction, f, free_tips + g.J @ correction  # (4.9f) to (4.9h)


def _general(g: Grasp) -> float:
    errors: list[float] = []
    for solver in (by_elimination, by_loops, by_newton_euler):
        theta_ddot, f, alpha = general(g, solver)
        errors += [finds(g, theta_ddot, f), apart(alpha, tip_accelerations(g))]
    return max(errors)


def free(g: Grasp) -> Array:
    """θ̈_f of (4.1a)."""
    return g.mass_inv @ (g.T - g.coriolis)


def free_tips(g: Grasp) -> Array:
    """α_f(0) of (4.1b)."""
    return g.J @ free(g) + g.bent


def correction(g: Grasp) -> Array:
    """Δθ̈ of (4.2a)."""
    return g.solution.theta_ddot - free(g)


def tip_correction(g: Grasp) -> Array:
    """Δα(0) of (4.2b): what the tips do that hold the object, and what they would do if free."""
    return g.A @ g.solution.alpha + g.contact_bias - free_tips(g)


def _free(g: Grasp) -> float:
    """Without contact forces, the recursion of Newton and Euler gives T."""
    found = [newton_euler(arm, free(g)[g.arm_of(i)], np.zeros(6)) for i, arm in enumerate(alone(g))]
    return apart(np.concatenate(found), g.T)


def _free_tips(g: Grasp) -> float:
    """Against the loop of α(k) on each arm by itself, moved to its tip."""
    errors: list[float] = []
    for i, arm in enumerate(alone(g)):
        alpha, (tip, shift) = link_accelerations(arm, free(g)[g.arm_of(i)]), at_tip(arm)
        turned = (shift.T @ alpha[tip]).reshape(2, 3) @ arm.mech.pose(arm.q, arm.node).rot.T
        own = slice(6 * i, 6 * i + 6)
        errors.append(apart(turned.ravel() + g.tip_bias[own], free_tips(g)[own]))
    return max(errors)


def _tip_correction(g: Grasp) -> float:
    """(4.6)."""
    f, inside = g.solution.f, g.A @ g.M_C_inv @ g.object_bias
    found = g.compliance @ f - inside + g.contact_bias - free_tips(g)
    return apart(found, tip_correction(g))


def right_side(g: Grasp) -> Array:
    """The right side of (4.8)."""
    return free_tips(g) + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias


def _contact_forces(g: Grasp) -> float:
    return max(
        apart(g.Omega @ g.solution.f, right_side(g)),
        apart(solved(g.Omega, right_side(g)), g.solution.f),
    )


def _true_tips(g: Grasp) -> float:
    return apart(free_tips(g) + tip_correction(g), tip_accelerations(g))


def _true_tips_as_printed(g: Grasp) -> float:
    """Δα(0) = α_f(0) + Δα(0)."""
    return apart(free_tips(g) + tip_correction(g), tip_correction(g))


# ------------------------------------------------------------------------ singular compliance


def outside_image(g: Grasp, right: Array) -> float:
    """How much of a right side Ω cannot make, relative to its size."""
    sizes, directions = np.linalg.eigh(g.Omega)
    lost = directions[:, sizes < 1e-9 * sizes[-1]]
    return float(np.abs(lost.T @ right).max(initial=0.0) / np.abs(right).max())


def _image(case: Case) -> float:
    g = planar(case)
    if rank(g.Omega) == len(g.Omega):
        return float("inf")  # there would be nothing to see
    f = np.linalg.pinv(g.Omega, rcond=1e-9, hermitian=True) @ right_side(g)
    theta_ddot = free(g) - g.mass_inv @ g.J.T @ f
    return max(outside_image(g, right_side(g)), apart(theta_ddot, g.solution.theta_ddot))


def _solvable(case: Case) -> float:
    """(2.11) and (2.14) lack as many ranks as Ω does."""
    for g in (rigid(case), planar(case)):
        lacking = len(g.Omega) - rank(g.Omega)
        for matrix in (smaller(g), whole_system(g)):
            # Unit inertias on both sides, so that one threshold serves masses and lengths.
            scale = 1.0 / np.sqrt(np.abs(matrix).max(axis=0))
            if len(matrix) - rank(scale[:, None] * matrix * scale) != lacking:
                return float("inf")
    return 0.0


def _nonsingular(case: Case) -> float:
    """Where all arms have rank six, J 𝓜⁻¹ Jᵀ > 0, and Ω, which is more, is too."""
    for g in (rigid(case), planar(case)):
        arms = g.J @ g.mass_inv @ g.J.T
        if np.linalg.eigvalsh(g.Omega - arms).min() < -1e-9 * np.abs(g.Omega).max():
            return float("inf")
        if rank(g.J) == len(g.J) and not 0.0 < np.linalg.eigvalsh(arms).min() <= (
            np.linalg.eigvalsh(g.Omega).min() * (1.0 + 1e-9)
        ):
            return float("inf")
    return 0.0


# --------------------------------------------------------------------- from (3.6) to (4.9)


def _regrouped(g: Grasp) -> float:
    inside = g.A @ g.M_C_inv @ g.object_bias
    first = g.J @ g.mass_inv @ g.T_free - g.a_free
    second = g.J @ free(g) - g.contact_bias + inside + g.bent
    return max(apart(x, g.Omega @ g.solution.f) for x in (first, second, right_side(g)))


def _regrouped_as_printed(g: Grasp) -> float:
    inside = g.A @ g.M_C_inv @ g.object_bias
    printed = g.J @ free(g) - g.contact_bias + inside + g.J @ g.v
    return apart(printed, g.Omega @ g.solution.f)


def _accelerations(g: Grasp) -> float:
    gain = g.mass_inv @ g.J.T
    long = g.mass_inv @ g.T_free - gain @ g.Omega_inv @ (g.J @ g.mass_inv @ g.T_free - g.a_free)
    short = free(g) - gain @ g.solution.f
    return max(apart(x, g.solution.theta_ddot) for x in (long, short))


def _no_more_force(g: Grasp) -> float:
    return apart(g.mass @ correction(g), -g.J.T @ g.solution.f)


DERIVATION: tuple[Entry, ...] = (
    definition(
        "(4.1a)",
        "accelerations of the free arms",
        "𝓜 θ̈_f + 𝒞 = T",
        "v̇_f = 𝓜⁻¹ (τ - C)",
        when_rigid(_free),
    ),
    definition(
        "(4.1b)",
        "accelerations of the free tips",
        "α_f(0) = J θ̈_f + J̇ θ̇",
        "the same",
        when_rigid(_free_tips),
        note="Scan: j for J̇. The text below calls α_f(0) velocities; they are accelerations.",
    ),
    definition("(4.2a)", "correction at the joints", "Δθ̈ = θ̈ - θ̈_f"),
    definition("(4.2b)", "correction at the tips", "Δα(0) = α(0) - α_f(0)"),
    holds(
        "(4.3)",
        "correction by contact forces",
        "𝓜 Δθ̈ = -Jᵀ f(0)",
        "the same",
        when_rigid(_no_more_force),
    ),
    holds(
        "(4.4)",
        "the same, solved",
        "Δθ̈ = -𝓜⁻¹ Jᵀ f(0)",
        "the same",
        when_rigid(lambda g: apart(correction(g), -g.mass_inv @ g.J.T @ g.solution.f)),
    ),
    holds(
        "(4.5)",
        "correction at the tips by that at the joints",
        "J Δθ̈ = Δα(0)",
        "the same",
        when_rigid(lambda g: apart(g.J @ correction(g), tip_correction(g))),
    ),
    holds(
        "(4.6)",
        "correction at the tips by contact forces",
        "Δα(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C) - α_f(0)",
        "the same",
        when_rigid(_tip_correction),
    ),
    definition(
        "(4.7)",
        "compliance of the contacts, again",
        "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ",
        "(3.1)",
    ),
    holds(
        "(4.8)",
        "contact forces",
        "Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)",
        "the same",
        when_rigid(_contact_forces),
    ),
)

GENERAL: tuple[Entry, ...] = (
    holds(
        "CCFD",
        "the general algorithm, (4.9a) to (4.9h)",
        "free accelerations, contact forces, correction accelerations, true accelerations",
        "θ̈, f(0) and α(0) of d'Alembert's principle",
        when_rigid(_general),
        note="With three dynamics of the free arms: elimination, filter and smoother, and 𝓜 from "
        "repeated recursions of Newton and Euler.",
    ),
    definition("(4.9a)", "step 1: free joints", "𝓜 θ̈_f + 𝒞 = T", "(4.1a)"),
    definition("(4.9b)", "step 1: free tips", "α_f(0) = J θ̈_f + J̇ θ̇", "(4.1b)"),
    definition("(4.9c)", "step 2: compliance", "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ", "(4.7)"),
    holds(
        "(4.9d)",
        "step 2: contact forces",
        "Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)",
        "the same",
        when_rigid(_contact_forces),
    ),
    holds(
        "(4.9e)",
        "step 3: correction at the joints",
        "𝓜 Δθ̈ + Jᵀ f(0) = 0",
        "the same",
        when_rigid(_no_more_force),
    ),
    holds(
        "(4.9f)",
        "step 3: correction at the tips",
        "Δα(0) = J Δθ̈",
        "the same",
        when_rigid(lambda g: apart(g.J @ correction(g), tip_correction(g))),
    ),
    holds(
        "(4.9g)",
        "step 4: joints",
        "θ̈ = θ̈_f + Δθ̈",
        "θ̈ of d'Alembert's principle, Δθ̈ of (4.9e)",
        when_rigid(
            lambda g: apart(free(g) - g.mass_inv @ g.J.T @ g.solution.f, g.solution.theta_ddot)
        ),
    ),
    misprint(
        "(4.9h)",
        "step 4: tips",
        "Δα(0) = α_f(0) + Δα(0)",
        "α(0) = α_f(0) + Δα(0), as below (4.2b)",
        when_rigid(_true_tips),
        when_rigid(_true_tips_as_printed),
        note="Δ on the left is too much.",
    ),
    holds(
        "sec. 4, solvability",
        "when the closed chain can be solved",
        "(2.11), (2.14) and (4.9d) are solvable together",
        "their matrices lack the same number of ranks",
        _solvable,
        note="On three arms in space and on two arms of parallel pins, where Ω lacks three.",
    ),
    holds(
        "sec. 4, image of Ω",
        "what is conjectured where Ω is singular",
        "if the kinematic constraints hold, the right side of (4.9d) is in the image of Ω",
        "the same; θ̈ is then that of d'Alembert's principle, whichever f(0) is taken",
        _image,
        note="On two arms of parallel pins. It is so for every smooth motion: where fᵀ J = 0 and "
        "fᵀ A = 0, the derivative of J θ̇ = A V(C) leaves fᵀ (J̇ θ̇ - a(C)) = 0.",
    ),
    holds(
        "sec. 4, nonsingular arms",
        "what suffices for Ω to have an inverse",
        "Ω is invertible if all arms are kinematically nonsingular",
        "Ω ≥ J 𝓜⁻¹ Jᵀ > 0 where J has full rank",
        _nonsingular,
    ),
    misprint(
        "sec. 4, contact forces from (3.6b)",
        "(4.9d) from the analytical solution",
        "Ω f(0) = J 𝓜⁻¹ T' - a'(C) = J θ̈_f - a(C) + A M⁻¹(C) b(C) + J θ̇ "
        "= α_f(0) + A M⁻¹(C) b(C) - a(C)",
        "Ω f(0) = J 𝓜⁻¹ T' - a'(C) = J θ̈_f - a(C) + A M⁻¹(C) b(C) + J̇ θ̇ "
        "= α_f(0) + A M⁻¹(C) b(C) - a(C)",
        when_rigid(_regrouped),
        when_rigid(_regrouped_as_printed),
        note="The dot of J̇ is lost, by the printer or the scan.",
    ),
    holds(
        "sec. 4, accelerations from (3.6a)",
        "(4.9e) from the analytical solution",
        "θ̈ = 𝓜⁻¹ T' - 𝓜⁻¹ Jᵀ Ω⁻¹ [J 𝓜⁻¹ T' - a'(C)] = θ̈_f - 𝓜⁻¹ Jᵀ f(0); 𝓜 Δθ̈ + Jᵀ f(0) = 0",
        "the same",
        when_rigid(_accelerations),
    ),
)
