"""Document 001, Part II, section 6 from (6.11) on: the recursive algorithms RCCFD 1, 2 and 3.

Each is run twice: its operators as matrices, and as loops over the links of each arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import NODE
from linkwise.algebra.symbols import D, H, L, S, memoryless, psi, tau
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Entry, definition, holds, misprint
from linkwise_ledger.grasp import PICK, Grasp, solved, when_rigid
from linkwise_ledger.jpl_88_11.operators import diagonal
from linkwise_ledger.jpl_88_11.part_2.closed_chain import tip_accelerations
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import (
    correction,
    free,
    free_tips,
    right_side,
    tip_correction,
)
from linkwise_ledger.jpl_88_11.part_2.loops import (
    corrections,
    residuals,
    smoothed,
    tip_compliance,
    to_tip,
)
from linkwise_ledger.jpl_88_11.part_2.overview import (
    FREE,
    JACOBIAN,
    WHITENING,
    free_tip_operators,
    sweeps,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.jpl_88_11.part_2.recursive import (
    FACTORED,
    TIP_COMPLIANCE,
    TO_JOINTS,
    compliance,
)
from linkwise_ledger.jpl_88_11.part_2.solution import finds
from linkwise_ledger.literal import unformed
from linkwise_ledger.operator_algebra.newton_euler import newton_euler
from linkwise_ledger.recursion import accelerations

TO_TIPS = PICK.T @ psi.T @ H.T @ D.inv @ WHITENING
"""J 𝓜⁻¹, of (6.12)."""

INNER = memoryless("Ω⁻¹", NODE, NODE, ascii="Omega_inv")
"""Stands for Ω⁻¹ where sweeps are counted."""


def _gives(expr: Expr, expected: Callable[[Grasp], Array]) -> Check:
    return when_rigid(lambda g: apart(g.matrix(expr), expected(g)))


# --------------------------------------------------------------------------- arms, by loops


def _arms(g: Grasp, each: Callable[[Case, slice, slice], Array]) -> Array:
    """What a loop leaves, run on each arm with its joints and its tip."""
    return np.concatenate(
        [each(x, g.arm_of(i), slice(6 * i, 6 * i + 6)) for i, x in enumerate(alone(g))]
    )


def _bias_free(g: Grasp) -> Array:
    """T', by the recursion of Newton and Euler without accelerations."""
    return g.T - _arms(g, lambda x, own, tip: newton_euler(x, np.zeros(len(x.v)), np.zeros(6)))


def _compliance(g: Grasp) -> Array:
    """Ω, with J 𝓜⁻¹ Jᵀ by (6.10)."""
    return diagonal([tip_compliance(arm)[1] for arm in alone(g)]) + g.compliance


def _at_tip(arm: Case, links: Array) -> Array:
    """Bᵀ of what all links have: φᵀ(1,0) of link 1."""
    tip, reach = to_tip(arm)
    return reach.T @ links[6 * tip : 6 * tip + 6]


def _moved(arm: Case, theta_ddot: Array) -> Array:
    """Bᵀ φᵀ Hᵀ θ̈, by the loop of velocities."""
    found = accelerations(arm, theta_ddot)
    return _at_tip(arm, np.concatenate([found[k] for k in arm.outward]))


def rccfd_1(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 1 by loops: θ̈ and f(0)."""
    moments = _bias_free(g)  # (6.11a)
    start = _arms(g, lambda x, own, tip: smoothed(x, residuals(x, moments[own]).nu)[1])
    tips = _arms(g, lambda x, own, tip: _moved(x, start[own])) + g.bent  # (6.11c)
    f = solved(_compliance(g), tips + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias)
    return start + _arms(g, lambda x, own, tip: corrections(x, f[tip])), f


def _reached(g: Grasp, moments: Array) -> Array:
    """Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T', by the filter and half of the smoother."""
    return _arms(
        g,
        lambda x, own, tip: _at_tip(x, smoothed(x, residuals(x, moments[own]).nu)[0]),
    )


def rccfd_2(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 2 by loops."""
    moments = _bias_free(g)  # (6.18a)
    f = solved(_compliance(g), _reached(g, moments) - g.a_free)  # (6.18d)
    found = _arms(
        g, lambda x, own, tip: smoothed(x, residuals(x, moments[own], f[tip]).nu)[1]
    )  # (6.18e)
    return found, f


def rccfd_3(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 3 by loops."""
    moments, inner = _bias_free(g), _compliance(g)
    zeta = solved(inner, g.a_free)  # (6.22d)
    pushed = solved(inner, _reached(g, moments))
    theta_1 = _arms(
        g, lambda x, own, tip: smoothed(x, residuals(x, moments[own], pushed[tip]).nu)[1]
    )  # (6.22f)
    theta_2 = _arms(g, lambda x, own, tip: corrections(x, -zeta[tip]))  # (6.22g)
    return theta_1 + theta_2, pushed - zeta


def _runs(algorithm: Callable[[Grasp], tuple[Array, Array]]) -> Check:
    return when_rigid(lambda g: finds(g, *algorithm(g)))


# ------------------------------------------------------------------------------- operators


def _by_contact_forces(g: Grasp) -> Array:
    """{T' - H ψ (S L T' + B f(0))}, of (6.17)."""
    inside = g.matrix(S @ L) @ g.T_free + g.matrix(PICK) @ g.solution.f
    return g.T_free - g.matrix(H @ psi) @ inside


def _second(g: Grasp) -> float:
    found = g.matrix(WHITENING.T @ D.inv) @ _by_contact_forces(g)
    return apart(found, g.solution.theta_ddot)


def _second_as_printed(g: Grasp) -> float:
    found = g.matrix(WHITENING @ D.inv) @ _by_contact_forces(g)
    return apart(found, g.solution.theta_ddot)


def _contact_forces(g: Grasp) -> float:
    """(6.13)."""
    reached = g.matrix(TO_TIPS) @ g.T_free
    split = g.Omega_inv @ reached - g.Omega_inv @ g.a_free
    joined = g.Omega_inv @ (reached - g.a_free)
    return max(apart(split, g.solution.f), apart(joined, g.solution.f))


def _theta_1(g: Grasp) -> Array:
    """(6.19a), by elimination."""
    gain = g.mass_inv @ g.J.T @ g.Omega_inv
    return (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T_free


def _theta_2(g: Grasp) -> Array:
    """(6.19b), by elimination."""
    return g.mass_inv @ g.J.T @ g.Omega_inv @ g.a_free


def _theta_1_by_operators(g: Grasp) -> float:
    """(6.21)."""
    through = g.matrix(D.inv @ H @ psi @ PICK)
    middle = g.matrix(D.inv) - through @ g.Omega_inv @ through.T
    found = g.matrix(WHITENING).T @ middle @ g.matrix(WHITENING) @ g.T_free
    return apart(found, _theta_1(g))


def _theta_2_by_operators(g: Grasp) -> float:
    """(6.20)."""
    return apart(g.matrix(TO_JOINTS) @ (g.Omega_inv @ g.a_free), _theta_2(g))


def _contact_forces_by_zeta(g: Grasp) -> float:
    """(6.22e)."""
    zeta = g.Omega_inv @ g.a_free
    return apart(g.Omega_inv @ g.matrix(TO_TIPS) @ g.T_free - zeta, g.solution.f)


def _sweeps(case: Case) -> float:
    """(6.22f): through Ψ, ψᵀ, ψ and Ψᵀ."""
    through = D.inv @ H @ psi @ PICK
    middle = D.inv - through @ INNER @ through.T
    return apart(sweeps(WHITENING.T @ middle @ WHITENING @ tau), 4)


def _inertia(g: Grasp) -> Array:
    return g.J @ g.mass_inv @ g.J.T + g.A @ g.M_C_inv @ g.A.T


def _inertia_by_operators(g: Grasp) -> float:
    return apart(g.matrix(TIP_COMPLIANCE) + g.compliance, _inertia(g))


def _named(prefix: str, letters: str) -> Sequence[str]:
    return [f"({prefix}{letter})" for letter in letters]


def _common(numbers: Sequence[str]) -> tuple[Entry, ...]:
    """T', J 𝓜⁻¹ Jᵀ and Ω, with which RCCFD 2 and 3 both start."""
    return (
        holds(
            numbers[0],
            "moments without bias",
            "T' = T - H φ (M φᵀ a + b)",
            "(5.5a)",
            when_rigid(lambda g: apart(g.matrix(FREE), _bias_free(g))),
        ),
        holds(
            numbers[1],
            "compliance of the tips",
            "J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B",
            "(6.7)",
            _gives(TIP_COMPLIANCE, compliance),
        ),
        holds(
            numbers[2],
            "compliance of the contacts",
            "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ",
            "(3.1), the first term by (6.10)",
            when_rigid(lambda g: apart(_compliance(g), _inertia(g))),
        ),
    )


FIRST: tuple[Entry, ...] = (
    holds(
        "RCCFD 1",
        "the general algorithm as recursions, (6.11a) to (6.11j)",
        "(4.9) with operators for every step",
        "θ̈ and f(0) of d'Alembert's principle, with (6.11g) and (6.11j) as corrected",
        _runs(rccfd_1),
        note="By loops over the links of each arm. Ω is solved by elimination, as in the text.",
    ),
    holds(
        "(6.11a)",
        "step 1: moments without bias",
        "T' = T - H φ (M φᵀ a + b)",
        "(5.5a)",
        when_rigid(lambda g: apart(g.matrix(FREE), _bias_free(g))),
    ),
    holds(
        "(6.11b)",
        "step 1: free joints",
        "θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'",
        "the same",
        _gives(FACTORED @ FREE, free),
    ),
    holds(
        "(6.11c)",
        "step 1: free tips",
        "α_f(0) = Bᵀ φᵀ Hᵀ θ̈_f + Bᵀ φᵀ a + a(0)",
        "the same",
        when_rigid(free_tip_operators),
    ),
    holds(
        "(6.11d)",
        "step 2: compliance of the tips",
        "J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B",
        "the same",
        _gives(TIP_COMPLIANCE, compliance),
    ),
    holds(
        "(6.11e)",
        "step 2: compliance of the contacts",
        "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ",
        "(3.1)",
        when_rigid(_inertia_by_operators),
    ),
    holds(
        "(6.11f)",
        "step 2: contact forces",
        "Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)",
        "the same",
        when_rigid(lambda g: apart(solved(g.Omega, right_side(g)), g.solution.f)),
    ),
    misprint(
        "(6.11g)",
        "step 3: correction at the joints",
        "Δθ̈ = (I - H Ψ L)ᵀ D⁻¹ ψ B f(0)",
        "Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ H ψ B f(0), as in (6.3)",
        when_rigid(lambda g: apart(-g.matrix(TO_JOINTS) @ g.solution.f, correction(g))),
        unformed(lambda: WHITENING.T @ D.inv @ psi @ PICK),
        note="H is missing, as in (6.5a), and the sign.",
    ),
    holds(
        "(6.11h)",
        "step 3: correction at the tips",
        "Δα = Bᵀ φᵀ Hᵀ Δθ̈",
        "the same",
        when_rigid(lambda g: apart(g.matrix(JACOBIAN) @ correction(g), tip_correction(g))),
    ),
    holds(
        "(6.11i)",
        "step 4: joints",
        "θ̈ = θ̈_f + Δθ̈",
        "θ̈ of d'Alembert's principle",
        when_rigid(
            lambda g: apart(free(g) - g.matrix(TO_JOINTS) @ g.solution.f, g.solution.theta_ddot)
        ),
    ),
    misprint(
        "(6.11j)",
        "step 4: tips",
        "Δα(0) = α_f(0) + Δα(0)",
        "α(0) = α_f(0) + Δα(0)",
        when_rigid(lambda g: apart(free_tips(g) + tip_correction(g), tip_accelerations(g))),
        when_rigid(lambda g: apart(free_tips(g) + tip_correction(g), tip_correction(g))),
        note="The slip of (4.9h) again.",
    ),
)

SECOND: tuple[Entry, ...] = (
    holds(
        "(6.12)",
        "from moments to tips",
        "J 𝓜⁻¹ = Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L)",
        "the same",
        _gives(TO_TIPS, lambda g: g.J @ g.mass_inv),
    ),
    holds(
        "(6.13)",
        "contact forces by moments without bias",
        "f(0) = Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - Ω⁻¹ a'(C) "
        "= Ω⁻¹ {Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - a'(C)}",
        "the same",
        when_rigid(_contact_forces),
    ),
    holds(
        "(6.14)",
        "accelerations by contact forces",
        "θ̈ = 𝓜⁻¹ [T' - Jᵀ f(0)]",
        "the same",
        when_rigid(
            lambda g: apart(g.mass_inv @ (g.T_free - g.J.T @ g.solution.f), g.solution.theta_ddot)
        ),
    ),
    holds(
        "(6.15)",
        "accelerations of the free arms",
        "𝓜⁻¹ T' = (I - H Ψ L)ᵀ D⁻¹ (I - H ψ S L) T' = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ S L T'}",
        "the same",
        _gives(WHITENING.T @ D.inv @ (FREE - H @ psi @ S @ L @ FREE), free),
    ),
    holds(
        "(6.16)",
        "accelerations by contact forces alone",
        "𝓜⁻¹ Jᵀ f(0) = (I - H Ψ L)ᵀ D⁻¹ H ψ B f(0)",
        "the same",
        _gives(TO_JOINTS, lambda g: g.mass_inv @ g.J.T),
    ),
    holds(
        "(6.17)",
        "accelerations in one filter and one smoother",
        "θ̈ = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ (S L T' + B f(0))}",
        "the same",
        when_rigid(_second),
    ),
    holds(
        "RCCFD 2",
        "(6.18a) to (6.18e)",
        "contact forces by (6.13), accelerations by (6.17)",
        "θ̈ and f(0) of d'Alembert's principle, with (6.18e) as corrected",
        _runs(rccfd_2),
        note="By loops over the links of each arm.",
    ),
    *_common(_named("6.18", "abc")),
    holds(
        "(6.18d)",
        "contact forces",
        "f(0) = Ω⁻¹ {Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - a'(C)}",
        "(6.13)",
        when_rigid(_contact_forces),
    ),
    misprint(
        "(6.18e)",
        "accelerations",
        "θ̈ = (I - H Ψ L) D⁻¹ {T' - H ψ (S L T' + B f(0))}",
        "θ̈ = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ (S L T' + B f(0))}, as in (6.17)",
        when_rigid(_second),
        when_rigid(_second_as_printed),
        note="The transpose is missing.",
    ),
)

THIRD: tuple[Entry, ...] = (
    definition(
        "(6.19a)",
        "accelerations by moments",
        "θ̈_1 = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Ω⁻¹ J 𝓜⁻¹) T'",
        "the same; θ̈ = θ̈_1 + θ̈_2",
        when_rigid(lambda g: apart(_theta_1(g) + _theta_2(g), g.solution.theta_ddot)),
    ),
    definition("(6.19b)", "accelerations by velocities", "θ̈_2 = 𝓜⁻¹ Jᵀ Ω⁻¹ a'(C)"),
    holds(
        "(6.20)",
        "accelerations by velocities, as operators",
        "θ̈_2 = (I - H Ψ L)ᵀ D⁻¹ H ψ B Ω⁻¹ a'(C)",
        "the same",
        when_rigid(_theta_2_by_operators),
    ),
    holds(
        "(6.21)",
        "accelerations by moments, as operators",
        "θ̈_1 = (I - H Ψ L)ᵀ {D⁻¹ - D⁻¹ H ψ B Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹} (I - H Ψ L) T'",
        "the same",
        when_rigid(_theta_1_by_operators),
    ),
    holds(
        "RCCFD 3",
        "(6.22a) to (6.22h)",
        "θ̈ = θ̈_1 + θ̈_2 by (6.20), (6.21)",
        "θ̈ and f(0) of d'Alembert's principle",
        _runs(rccfd_3),
        note="By loops over the links of each arm.",
    ),
    *_common(_named("6.22", "abc")),
    definition("(6.22d)", "forces by velocities", "ζ(C) = Ω⁻¹ a'(C)"),
    holds(
        "(6.22e)",
        "contact forces",
        "f(0) = Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - ζ(C)",
        "the same",
        when_rigid(_contact_forces_by_zeta),
    ),
    holds(
        "(6.22f)",
        "accelerations by moments",
        "θ̈_1 = (I - H Ψ L)ᵀ {D⁻¹ - D⁻¹ H ψ B Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹} (I - H Ψ L) T'",
        "(6.21)",
        when_rigid(_theta_1_by_operators),
    ),
    holds(
        "(6.22g)",
        "accelerations by velocities",
        "θ̈_2 = (I - H Ψ L)ᵀ D⁻¹ H ψ B ζ(C)",
        "(6.20)",
        when_rigid(_theta_2_by_operators),
    ),
    holds(
        "(6.22h)",
        "accelerations",
        "θ̈ = θ̈_1 + θ̈_2",
        "θ̈ of d'Alembert's principle",
        when_rigid(lambda g: apart(_theta_1(g) + _theta_2(g), g.solution.theta_ddot)),
    ),
    holds(
        "sec. 6, sweeps of (6.22f)",
        "from T' to θ̈_1",
        "(6.22f) takes four sweeps",
        "resolvents that follow each other: Ψ, ψ*, ψ, Ψ*",
        _sweeps,
    ),
)
