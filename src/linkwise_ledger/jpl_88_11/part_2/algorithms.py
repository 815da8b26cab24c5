"""JPL 88-11, Part II, section 6 from (6.11) on: the recursive algorithms RCCFD 1, 2 and 3.

Each is run twice: its operators as matrices, and as loops over the links of each arm.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.algebra.space import NODE
from linkwise.algebra.symbols import D, H, L, S, memoryless, psi, tau
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.grasp import PICK, Grasp, rigid, solved
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.part_2.closed_chain import finds, tip_accelerations
from linkwise_ledger.jpl_88_11.part_2.free_arms import (
    corrections,
    residuals,
    smoothed,
    tip_compliance,
    to_tip,
)
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import (
    correction,
    free,
    free_tips,
    right_side,
    tip_correction,
)
from linkwise_ledger.jpl_88_11.part_2.overview import (
    FREE,
    JACOBIAN,
    WHITENING,
    free_tip_operators,
    gives,
    sweeps,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.jpl_88_11.part_2.recursive import (
    FACTORED,
    TIP_COMPLIANCE,
    TO_JOINTS,
    compliance,
)
from linkwise_ledger.operator_algebra.dynamics import newton_euler
from linkwise_ledger.recursion import accelerations, unformed
from linkwise_ledger.section import Section

TO_TIPS = PICK.T @ psi.T @ H.T @ D.inv @ WHITENING
"""J 𝓜⁻¹, of (6.12)."""

INNER = memoryless("Ω⁻¹", NODE, NODE, ascii="Omega_inv")
"""In place of Ω⁻¹ where sweeps are counted."""


# --------------------------------------------------------------------------- arms, by loops


def _arms(g: Grasp, each: Callable[[Case, slice, slice], Array]) -> Array:
    """What a loop leaves, run on each arm with its joints and its tip."""
    return np.concatenate(
        [each(x, g.arm_of(i), slice(6 * i, 6 * i + 6)) for i, x in enumerate(alone(g))]
    )


def _bias_free(g: Grasp) -> Array:
    """T', by the recursion of Newton and Euler without accelerations."""
    return g.T - _arms(g, lambda x, local, tip: newton_euler(x, np.zeros(len(x.v)), np.zeros(6)))


def _compliance(g: Grasp) -> Array:
    """Ω, with J 𝓜⁻¹ Jᵀ by (6.10)."""
    return diagonal([tip_compliance(arm)[1] for arm in alone(g)]) + g.compliance


def _at_tip(arm: Case, links: Array) -> Array:
    """Bᵀ of what all links have: φᵀ(1,0) of link 1."""
    tip, reach = to_tip(arm)
    return reach.T @ links[6 * tip : 6 * tip + 6]


def _moved(arm: Case, theta_ddot: Array) -> Array:
    """Bᵀ φᵀ Hᵀ θ̈, by the loop of velocities."""
    computed = accelerations(arm, theta_ddot)
    return _at_tip(arm, np.concatenate([computed[k] for k in arm.outward]))


def rccfd_1(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 1 by loops: θ̈ and f(0)."""
    moments = _bias_free(g)  # (6.11a)
    start = _arms(g, lambda x, local, tip: smoothed(x, residuals(x, moments[local]).nu)[1])
    tips = _arms(g, lambda x, local, tip: _moved(x, start[local])) + g.bent  # (6.11c)
    f = solved(_compliance(g), tips + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias)
    return start + _arms(g, lambda x, local, tip: corrections(x, f[tip])), f


def _reached(g: Grasp, moments: Array) -> Array:
    """Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T', by the filter and half of the smoother."""
    return _arms(
        g,
        lambda x, local, tip: _at_tip(x, smoothed(x, residuals(x, moments[local]).nu)[0]),
    )


def rccfd_2(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 2 by loops."""
    moments = _bias_free(g)  # (6.18a)
    f = solved(_compliance(g), _reached(g, moments) - g.a_free)  # (6.18d)
    computed = _arms(
        g, lambda x, local, tip: smoothed(x, residuals(x, moments[local], f[tip]).nu)[1]
    )  # (6.18e)
    return computed, f


def rccfd_3(g: Grasp) -> tuple[Array, Array]:
    """RCCFD 3 by loops."""
    moments, inner = _bias_free(g), _compliance(g)
    zeta = solved(inner, g.a_free)  # (6.22d)
    pushed = solved(inner, _reached(g, moments))
    theta_1 = _arms(
        g, lambda x, local, tip: smoothed(x, residuals(x, moments[local], pushed[tip]).nu)[1]
    )  # (6.22f)
    theta_2 = _arms(g, lambda x, local, tip: corrections(x, -zeta[tip]))  # (6.22g)
    return theta_1 + theta_2, pushed - zeta


def _runs(algorithm: Callable[[Grasp], tuple[Array, Array]]) -> Callable[[Grasp], float]:
    return lambda g: finds(g, *algorithm(g))


# ------------------------------------------------------------------------------- operators


def _by_contact_forces(g: Grasp) -> Array:
    """{T' - H ψ (S L T' + B f(0))}, of (6.17)."""
    inside = g.matrix(S @ L) @ g.T_free + g.matrix(PICK) @ g.solution.f
    return g.T_free - g.matrix(H @ psi) @ inside


def _theta_1(g: Grasp) -> Array:
    """(6.19a), by elimination."""
    gain = g.mass_inv @ g.J.T @ g.Omega_inv
    return (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T_free


def _theta_2(g: Grasp) -> Array:
    """(6.19b), by elimination."""
    return g.mass_inv @ g.J.T @ g.Omega_inv @ g.a_free


def _inertia(g: Grasp) -> Array:
    return g.J @ g.mass_inv @ g.J.T + g.A @ g.M_C_inv @ g.A.T


ALGORITHMS = Section()
ALGORITHMS.on(rigid)("""RCCFD 1  the general algorithm as recursions, (6.11a) to (6.11j)
    printed  (4.9) with operators for every step
    holds    θ̈ and f(0) of d'Alembert's principle, with (6.11g) and (6.11j) as corrected
    note     By loops over the links of each arm. Ω is solved by elimination, as in the text.
""")(_runs(rccfd_1))
ALGORITHMS.on(rigid)("""(6.11a)  step 1: moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(lambda g: (g.matrix(FREE), _bias_free(g)))
ALGORITHMS.on(rigid)("""(6.11b)  step 1: free joints
    holds    θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'
""")(gives(FACTORED @ FREE, free))
ALGORITHMS.on(rigid)("""(6.11c)  step 1: free tips
    holds    α_f(0) = Bᵀ φᵀ Hᵀ θ̈_f + Bᵀ φᵀ a + a(0)
""")(free_tip_operators)
ALGORITHMS.on(rigid)("""(6.11d)  step 2: compliance of the tips
    holds    J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B
""")(gives(TIP_COMPLIANCE, compliance))
ALGORITHMS.on(rigid)("""(6.11e)  step 2: compliance of the contacts
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    holds    (3.1)
""")(lambda g: (g.matrix(TIP_COMPLIANCE) + g.compliance, _inertia(g)))
ALGORITHMS.on(rigid)("""(6.11f)  step 2: contact forces
    holds    Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)
""")(lambda g: (solved(g.Omega, right_side(g)), g.solution.f))
ALGORITHMS.on(rigid)("""(6.11g)  step 3: correction at the joints
    printed  Δθ̈ = (I - H Ψ L)ᵀ D⁻¹ ψ B f(0)
    instead  Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ H ψ B f(0), as in (6.3)
    note     H is missing, as in (6.5a), and the sign.
""")(lambda g: (-g.matrix(TO_JOINTS) @ g.solution.f, correction(g)))
ALGORITHMS.as_printed(unformed(lambda: WHITENING.T @ D.inv @ psi @ PICK))
ALGORITHMS.on(rigid)("""(6.11h)  step 3: correction at the tips
    holds    Δα = Bᵀ φᵀ Hᵀ Δθ̈
""")(lambda g: (g.matrix(JACOBIAN) @ correction(g), tip_correction(g)))
ALGORITHMS.on(rigid)("""(6.11i)  step 4: joints
    printed  θ̈ = θ̈_f + Δθ̈
    holds    θ̈ of d'Alembert's principle
""")(lambda g: (free(g) - g.matrix(TO_JOINTS) @ g.solution.f, g.solution.theta_ddot))
ALGORITHMS.on(rigid)("""(6.11j)  step 4: tips
    printed  Δα(0) = α_f(0) + Δα(0)
    instead  α(0) = α_f(0) + Δα(0)
    note     The slip of (4.9h) again.
""")(lambda g: (free_tips(g) + tip_correction(g), tip_accelerations(g)))
ALGORITHMS.on(rigid).as_printed(lambda g: (free_tips(g) + tip_correction(g), tip_correction(g)))
ALGORITHMS.on(rigid)("""(6.12)  from moments to tips
    holds    J 𝓜⁻¹ = Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L)
""")(gives(TO_TIPS, lambda g: g.J @ g.mass_inv))


@ALGORITHMS.on(rigid)("""(6.13)  contact forces by moments without bias
    holds    f(0) = Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - Ω⁻¹ a'(C) = Ω⁻¹ {Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' -
             a'(C)}
""")
def _contact_forces(g: Grasp) -> float:
    reached = g.matrix(TO_TIPS) @ g.T_free
    split = g.Omega_inv @ reached - g.Omega_inv @ g.a_free
    joined = g.Omega_inv @ (reached - g.a_free)
    return max(apart(split, g.solution.f), apart(joined, g.solution.f))


ALGORITHMS.on(rigid)("""(6.14)  accelerations by contact forces
    holds    θ̈ = 𝓜⁻¹ [T' - Jᵀ f(0)]
""")(lambda g: (g.mass_inv @ (g.T_free - g.J.T @ g.solution.f), g.solution.theta_ddot))
ALGORITHMS.on(rigid)("""(6.15)  accelerations of the free arms
    holds    𝓜⁻¹ T' = (I - H Ψ L)ᵀ D⁻¹ (I - H ψ S L) T' = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ S L T'}
""")(gives(WHITENING.T @ D.inv @ (FREE - H @ psi @ S @ L @ FREE), free))
ALGORITHMS.on(rigid)("""(6.16)  accelerations by contact forces alone
    holds    𝓜⁻¹ Jᵀ f(0) = (I - H Ψ L)ᵀ D⁻¹ H ψ B f(0)
""")(gives(TO_JOINTS, lambda g: g.mass_inv @ g.J.T))


@ALGORITHMS.on(rigid)("""(6.17)  accelerations in one filter and one smoother
    holds    θ̈ = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ (S L T' + B f(0))}
""")
def _second(g: Grasp) -> float:
    computed = g.matrix(WHITENING.T @ D.inv) @ _by_contact_forces(g)
    return apart(computed, g.solution.theta_ddot)


ALGORITHMS.on(rigid)("""RCCFD 2  (6.18a) to (6.18e)
    printed  contact forces by (6.13), accelerations by (6.17)
    holds    θ̈ and f(0) of d'Alembert's principle, with (6.18e) as corrected
    note     By loops over the links of each arm.
""")(_runs(rccfd_2))
ALGORITHMS.on(rigid)("""(6.18a)  moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(lambda g: (g.matrix(FREE), _bias_free(g)))
ALGORITHMS.on(rigid)("""(6.18b)  compliance of the tips
    printed  J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B
    holds    (6.7)
""")(gives(TIP_COMPLIANCE, compliance))
ALGORITHMS.on(rigid)("""(6.18c)  compliance of the contacts
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    holds    (3.1), the first term by (6.10)
""")(lambda g: (_compliance(g), _inertia(g)))
ALGORITHMS.on(rigid)("""(6.18d)  contact forces
    printed  f(0) = Ω⁻¹ {Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - a'(C)}
    holds    (6.13)
""")(_contact_forces)
ALGORITHMS.on(rigid)("""(6.18e)  accelerations
    printed  θ̈ = (I - H Ψ L) D⁻¹ {T' - H ψ (S L T' + B f(0))}
    instead  θ̈ = (I - H Ψ L)ᵀ D⁻¹ {T' - H ψ (S L T' + B f(0))}, as in (6.17)
    note     The transpose is missing.
""")(_second)
ALGORITHMS.on(rigid).as_printed(
    lambda g: (g.matrix(WHITENING @ D.inv) @ _by_contact_forces(g), g.solution.theta_ddot)
)
ALGORITHMS.on(rigid)("""(6.19a)  accelerations by moments
    printed  θ̈_1 = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Ω⁻¹ J 𝓜⁻¹) T'
    means    the same; θ̈ = θ̈_1 + θ̈_2
""")(lambda g: (_theta_1(g) + _theta_2(g), g.solution.theta_ddot))
ALGORITHMS.unchecked("""(6.19b)  accelerations by velocities
    means    θ̈_2 = 𝓜⁻¹ Jᵀ Ω⁻¹ a'(C)
""")


@ALGORITHMS.on(rigid)("""(6.20)  accelerations by velocities, as operators
    holds    θ̈_2 = (I - H Ψ L)ᵀ D⁻¹ H ψ B Ω⁻¹ a'(C)
""")
def _theta_2_by_operators(g: Grasp) -> float:
    return apart(g.matrix(TO_JOINTS) @ (g.Omega_inv @ g.a_free), _theta_2(g))


@ALGORITHMS.on(rigid)("""(6.21)  accelerations by moments, as operators
    holds    θ̈_1 = (I - H Ψ L)ᵀ {D⁻¹ - D⁻¹ H ψ B Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹} (I - H Ψ L) T'
""")
def _theta_1_by_operators(g: Grasp) -> float:
    through = g.matrix(D.inv @ H @ psi @ PICK)
    middle = g.matrix(D.inv) - through @ g.Omega_inv @ through.T
    computed = g.matrix(WHITENING).T @ middle @ g.matrix(WHITENING) @ g.T_free
    return apart(computed, _theta_1(g))


ALGORITHMS.on(rigid)("""RCCFD 3  (6.22a) to (6.22h)
    printed  θ̈ = θ̈_1 + θ̈_2 by (6.20), (6.21)
    holds    θ̈ and f(0) of d'Alembert's principle
    note     By loops over the links of each arm.
""")(_runs(rccfd_3))
ALGORITHMS.on(rigid)("""(6.22a)  moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(lambda g: (g.matrix(FREE), _bias_free(g)))
ALGORITHMS.on(rigid)("""(6.22b)  compliance of the tips
    printed  J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B
    holds    (6.7)
""")(gives(TIP_COMPLIANCE, compliance))
ALGORITHMS.on(rigid)("""(6.22c)  compliance of the contacts
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    holds    (3.1), the first term by (6.10)
""")(lambda g: (_compliance(g), _inertia(g)))
ALGORITHMS.unchecked("""(6.22d)  forces by velocities
    means    ζ(C) = Ω⁻¹ a'(C)
""")
ALGORITHMS.on(rigid)("""(6.22e)  contact forces
    holds    f(0) = Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' - ζ(C)
""")(lambda g: (g.Omega_inv @ g.matrix(TO_TIPS) @ g.T_free - g.Omega_inv @ g.a_free, g.solution.f))
ALGORITHMS.on(rigid)("""(6.22f)  accelerations by moments
    printed  θ̈_1 = (I - H Ψ L)ᵀ {D⁻¹ - D⁻¹ H ψ B Ω⁻¹ Bᵀ ψᵀ Hᵀ D⁻¹} (I - H Ψ L) T'
    holds    (6.21)
""")(_theta_1_by_operators)
ALGORITHMS.on(rigid)("""(6.22g)  accelerations by velocities
    printed  θ̈_2 = (I - H Ψ L)ᵀ D⁻¹ H ψ B ζ(C)
    holds    (6.20)
""")(_theta_2_by_operators)
ALGORITHMS.on(rigid)("""(6.22h)  accelerations
    printed  θ̈ = θ̈_1 + θ̈_2
    holds    θ̈ of d'Alembert's principle
""")(lambda g: (_theta_1(g) + _theta_2(g), g.solution.theta_ddot))


@ALGORITHMS("""sec. 6, sweeps of (6.22f)  from T' to θ̈_1
    printed  (6.22f) takes four sweeps
    holds    resolvents that follow each other: Ψ, ψ*, ψ, Ψ*
""")
def _(case: Case) -> float:
    through = D.inv @ H @ psi @ PICK
    middle = D.inv - through @ INNER @ through.T
    return apart(sweeps(WHITENING.T @ middle @ WHITENING @ tau), 4)
