"""Object level, section 5.2: a mini on a macro is felt as lighter than alone, (41) to (52)."""

from __future__ import annotations

import numpy as np

from linkwise.model.builder import Builder
from linkwise.model.hinges import Prismatic
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise_ledger.case import Case, apart
from linkwise_ledger.object_level.inertial import along, directions
from linkwise_ledger.object_level.macro_mini import Serial, serial
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import arm, unit
from linkwise_ledger.section import Section


def sigmas(s: Serial) -> tuple[Array, Array]:
    """σ_w(Λ_0) as seen, and σ_w(Λ_m(0)), in several directions."""
    return 1.0 / along(s.combined.seen_response, s.w), 1.0 / along(s.mobility_m, s.w)


def slides(case: Case, oblique: float) -> tuple[Array, Array]:
    """Λ⁻¹ of a slide that carries three more, and of the three alone: positions only.

    Args:
        case: Its seed draws masses and the direction of the first.
        oblique: How far the three are from being at right angles.
    """
    rng = np.random.default_rng((case.seed, 35))
    first = rng.standard_normal(3)
    turned = np.linalg.qr(rng.standard_normal((3, 3)))[0] + oblique * rng.standard_normal((3, 3))
    b, last = Builder("slides"), "world"
    for k, axis in enumerate([first, *turned]):
        inertia = SpatialInertia.from_com(rng.uniform(0.5, 2.0), J_com=(0.1, 0.1, 0.1))
        b.body(f"slide_{k}", last, Prismatic(unit(axis)), inertia=inertia)
        last = f"slide_{k}"
    b.node("tip", last)
    m = Manipulator(b.build(), "tip", np.zeros(4), np.zeros(4), case.seed)
    J_m = m.J_0[:3, 1:]
    return m.seen_response[:3, :3], J_m @ np.linalg.solve(m.A[1:, 1:], J_m.T)


REDUCED = Section()
REDUCED.on(serial)("""Lemma 2  macro and mini in operational space
    printed  Λ_0 and Λ_m(0) are related by (41)
    holds    Λ_0⁻¹ = Λ_m(0)⁻¹ + Λ̄_C, both inverses as seen: of the whole, and of the mini alone
""")(lambda s: (s.seen_mobility_m + s.added, s.combined.seen_response))
REDUCED.on(serial)("""(41)  what the macro adds
    holds    Λ_0⁻¹ = Λ_m(0)⁻¹ + Λ̄_C
""")(lambda s: (s.mobility_m + s.added, s.combined.seen_response))


@REDUCED.on(serial)("""(42)  what it is
    printed  Λ̄_C = (V J_M - J_m A_22⁻¹ A_21) (A_11 - A_21ᵀ A_22⁻¹ A_21)⁻¹ (V J_M - J_m A_22⁻¹
             A_21)ᵀ
    holds    the same, with A_21 = A_12ᵀ
    note     (39) names A_12 only; with A_21 its transpose all indices fit.
""")
def _(s: Serial) -> float:
    both = s.combined.J_0 @ s.combined.A_inv @ s.combined.J_0.T - s.mobility_m
    scale = np.abs(s.combined.seen_response).max()
    return float(np.abs(s.added - both).max() / scale)


@REDUCED.on(serial)("""(43)  factors of A
    holds    A = [[I, A_21ᵀ A_22⁻¹], [0, I]] diag(Ā_11⁻¹, A_22) [[I, 0], [A_22⁻¹ A_21, I]]
    note     Ā_11 of (44) has the inverse in it already: Ā_11⁻¹ is right.
""")
def _(s: Serial) -> float:
    upper = np.eye(s.combined.n)
    upper[: s.n_M, s.n_M :] = s.A_21.T @ inverted(s.A_22)
    middle = np.zeros_like(upper)
    middle[: s.n_M, : s.n_M] = inverted(s.A_11_bar)
    middle[s.n_M :, s.n_M :] = s.A_22
    lower = np.eye(s.combined.n)
    lower[s.n_M :, : s.n_M] = inverted(s.A_22) @ s.A_21
    return apart(upper @ middle @ lower, s.combined.energies)


@REDUCED.on(serial)("""(44)  the upper block
    printed  Ā_11 = (A_11 - A_21ᵀ A_22⁻¹ A_21)⁻¹
    holds    the same: it is the upper diagonal block of A⁻¹, and positive definite
    note     So says the proof of Theorem 2, where the scan has Λ for A.
""")
def _(s: Serial) -> float:
    corner = inverted(s.combined.energies)[: s.n_M, : s.n_M]
    if np.linalg.eigvalsh(s.A_11_bar).min() <= 0.0:
        return float("inf")
    return apart(s.A_11_bar, corner)


@REDUCED.on(serial)("""(45)  factors of Λ_0⁻¹
    printed  [V J_M  J_m] [[I, 0], [-A_22⁻¹ A_21, I]] diag(Ā_11, A_22⁻¹) ...
    holds    Λ_0⁻¹ = [V J_M  J_m] [[I, 0], [-A_22⁻¹ A_21, I]] diag(Ā_11, A_22⁻¹) [[I, -A_21ᵀ
             A_22⁻¹], [0, I]] [V J_M  J_m]ᵀ
    note     The last line of the display, with the two factors at the end, is lost in the scan:
             what is left ends without the full stop that all displays have.
""")
def _(s: Serial) -> float:
    jacobian = np.hstack([s.V @ s.J_M, s.J_m])
    lower = np.eye(s.combined.n)
    lower[s.n_M :, : s.n_M] = -inverted(s.A_22) @ s.A_21
    middle = np.zeros_like(lower)
    middle[: s.n_M, : s.n_M] = s.A_11_bar
    middle[s.n_M :, s.n_M :] = inverted(s.A_22)
    return apart(jacobian @ lower @ middle @ lower.T @ jacobian.T, s.combined.seen_response)


@REDUCED.on(serial)("""sec. 5.2, σ_w  effective inertial properties in a direction
    means    σ_w(Λ_0) = 1 / (wᵀ Λ_0⁻¹ w)
""")
def _(s: Serial) -> float:
    """Forces along w that accelerate by one along w, as seen."""
    computed = 1.0 / along(inverted(s.combined.Lambda_0), s.w)
    return apart(computed * along(s.combined.seen_response, s.w), np.ones(len(s.w)))


@REDUCED.on(serial)("""Theorem 2  reduced inertial properties
    printed  the inertial properties of the macro/mini, at any configuration and in any direction,
             are smaller than or equal to those of the mini
    holds    σ_w(Λ_0) ≤ σ_w(Λ_m(0)) in any direction w
(46)  reduced inertial properties
    printed  σ_w(Λ_0) < σ_w(Λ_m(0)) in any direction w
    instead  σ_w(Λ_0) ≤ σ_w(Λ_m(0)) in any direction w
    note     The text below says 'smaller than or equal to'. Λ̄_C has at most the rank n_M: along
             what it does not reach both are equal, as in the example below, where it is m_3 = m_3.
             As printed: the share of eight directions that are not smaller.
""")
def _(s: Serial) -> float:
    """By how much σ_w(Λ_0) is larger than σ_w(Λ_m(0))."""
    complete, mini = sigmas(s)
    return max(0.0, float((complete / mini - 1.0).max()))


@REDUCED.on(serial).as_printed
def _(s: Serial) -> float:
    """In how many of the directions it is not smaller: their share."""
    complete, mini = sigmas(s)
    return float(np.mean(complete > mini * (1.0 - 1e-9)))


REDUCED.on(serial)("""sec. 5.2, proof 1  in a direction
    holds    wᵀ Λ_0⁻¹ w = wᵀ Λ_m(0)⁻¹ w + wᵀ Λ̄_C w
""")(
    lambda s: (along(s.combined.seen_response, s.w), along(s.mobility_m, s.w) + along(s.added, s.w))
)


@REDUCED.on(serial)("""(47)  in a direction, again
    printed  1/σ_w(Λ_0) = 1/σ_w(Λ_m(0)) + α, where α = wᵀ Λ̄_C w
    holds    the same, and α ≥ 0
""")
def _(s: Serial) -> float:
    complete, mini = sigmas(s)
    alpha = along(s.added, s.w)
    return max(apart(1.0 / complete, 1.0 / mini + alpha), float(-alpha.min() / alpha.max()), 0.0)


@REDUCED.on(serial)("""sec. 5.2, proof 2  Λ̄_C is nonnegative definite
    printed  Λ̄_C can be written as C Cᵀ
    holds    Λ̄_C = C Cᵀ, C = (V J_M - J_m A_22⁻¹ A_21) B with Ā_11 = B Bᵀ
""")
def _(s: Serial) -> float:
    B = np.linalg.cholesky(s.A_11_bar)
    half = (s.V @ s.J_M - s.J_m @ np.linalg.solve(s.A_22, s.A_21)) @ B
    return apart(s.mobility_m + half @ half.T, s.combined.seen_response)


REDUCED.on(serial)("""(48)  positions only
    means    J_v = [I 0] J_0
""")(
    lambda s: (np.hstack([np.eye(3), np.zeros((3, 3))]) @ s.combined.J_0, s.combined.seen_basic[:3])
)
REDUCED.on(serial)("""(49)  what the macro adds for positions
    holds    Λ_v⁻¹ = Λ_m(v)⁻¹ + Λ̄_C(v)
""")(lambda s: (s.mobility_m[:3, :3] + s.added[:3, :3], s.combined.seen_response[:3, :3]))


@REDUCED.on(serial)("""(50)  what it is
    printed  Λ̄_C(v) = (I 0) Λ̄_C (I; 0)
    holds    the same, and it is nonnegative definite
""")
def _(s: Serial) -> float:
    pick = np.hstack([np.eye(3), np.zeros((3, 3))])
    added = pick @ s.added @ pick.T
    seen = s.combined.seen_response[:3, :3]
    least = float(np.linalg.eigvalsh(added).min() / np.abs(seen).max())
    error = np.abs(added - (seen - s.seen_mobility_m[:3, :3])).max() / np.abs(seen).max()
    return max(float(error), -least, 0.0)


REDUCED.on(serial)("""(51)  orientations only
    means    J_ω = [0 I] J_0
""")(
    lambda s: (np.hstack([np.zeros((3, 3)), np.eye(3)]) @ s.combined.J_0, s.combined.seen_basic[3:])
)


@REDUCED.on(serial)("""Corollary 1  reduced effective inertia
    printed  the effective mass (inertia) of a macro/mini in (about) any direction is smaller than
             or equal to that of the mini
    holds    m_u(Λ_v) ≤ m_u(Λ_m(v)) and I_u(Λ_ω) ≤ I_u(Λ_m(ω))
(52)  reduced effective inertia
    holds    m_u(Λ_v) ≤ m_u(Λ_m(v)) and I_u(Λ_ω) ≤ I_u(Λ_m(ω))
""")
def _(s: Serial) -> float:
    """By how much effective masses and inertias are larger than those of the mini."""
    u, seen, mini = directions(s.combined), s.combined.seen_response, s.mobility_m
    masses = along(mini[:3, :3], u) / along(seen[:3, :3], u)
    inertias = along(mini[3:, 3:], u) / along(seen[3:, 3:], u)
    return max(float(masses.max()) - 1.0, float(inertias.max()) - 1.0, 0.0)


"""Up to the example."""

BOUNDS = Section()


@BOUNDS.on(arm)("""sec. 5.2, Theorem 2 in general  bounds by distal joints
    printed  the inertial properties of a redundant manipulator are bounded above by those of the
             structure formed by the smallest distal set of degrees of freedom that span the space
    holds    Λ_k⁻¹ - Λ_{k+1}⁻¹ ≥ 0, k being how many of the first joints are locked
""")
def _(m: Manipulator) -> float:
    """The more of the first joints are locked, the larger: down to the last six."""
    worst, before = 0.0, m.seen_response
    for k in range(1, m.n - 5):
        computed = m.J_0[:, k:] @ np.linalg.solve(m.A[k:, k:], m.J_0[:, k:].T)
        worst = max(
            worst, float(-np.linalg.eigvalsh(before - computed).min() / np.abs(before).max())
        )
        before = computed
    return max(worst, 0.0)


BOUNDS("""sec. 5.2, equality  mechanisms of slides
    printed  equality in Theorem 2 is obtained for mechanisms that involve only prismatic joints
    instead  Λ_0 = Λ_m(0) if all joints are prismatic and those of the mini are at right angles
    note     More is claimed than holds. The mini answers a motion of the macro as its own axes let
             it: of a slide that carries three oblique ones, of which each carries the next, Λ̄_C is
             not zero. Armature of the mini's joints ends equality too, also at right angles: a
             rotor resists the motion of its joint and not that of the tip, so that part of the
             answer to a force at the tip is the macro's. As printed: Λ_0⁻¹ against Λ_m(0)⁻¹ of such
             slides, without armature.
""")(lambda case: apart(*slides(case, 0.0)))
BOUNDS.as_printed(lambda case: apart(*slides(case, 0.3)))
"""After the example."""
