"""Document 001, Part II, Appendix B: closed chains whose contacts leave turns free."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Entry, definition, holds, misprint
from linkwise_ledger.grasp import Grasp, rigid, solved, when_loose, when_rigid
from linkwise_ledger.jpl_88_11.part_2.closed_chain import tip_accelerations
from linkwise_ledger.jpl_88_11.part_2.solution import solved as solved_rigid

# -------------------------------------------------------------------------------- equations


def _arms(g: Grasp) -> float:
    return apart(g.mass @ g.solution.theta_ddot + g.coriolis + g.J.T @ g.solution.f, g.T)


def _object(g: Grasp) -> float:
    return apart(g.M_C @ g.solution.alpha + g.object_bias, g.A.T @ g.solution.f)


def _no_work(g: Grasp) -> float:
    return float(np.abs(g.H_0 @ g.solution.f).max() / np.abs(g.solution.f).max())


def object_side(g: Grasp) -> Array:
    """α⁻(0)."""
    return g.A @ g.solution.alpha + g.contact_bias


def _across(g: Grasp) -> float:
    found = tip_accelerations(g) + g.H_0.T @ g.solution.W_dot + g.turning
    return apart(found, object_side(g))


def _reduces(g: Grasp) -> float:
    """Where nothing is left free, (b.1f) and (b.1c) say what (2.10b) does."""
    s = g.solution
    return max(_arms(g), _object(g), apart(tip_accelerations(g), object_side(g)), len(s.W_dot))


def _tip_side_by_forces(g: Grasp) -> float:
    """(b.2)."""
    pushed = g.T - g.J.T @ g.solution.f - g.coriolis
    return apart(g.J @ g.mass_inv @ pushed + g.bent, tip_accelerations(g))


def _object_side_by_forces(g: Grasp) -> float:
    """(b.3)."""
    shifted = g.A @ g.M_C_inv
    found = shifted @ g.A.T @ g.solution.f - shifted @ g.object_bias + g.contact_bias
    return apart(found, object_side(g))


# -------------------------------------------------------------------------------- solution


def bias(g: Grasp, jacobian_rate: Array | None = None) -> Array:
    """G_1 of (b.4c); printed is J θ̇ where J̇ θ̇ belongs."""
    bent = g.bent if jacobian_rate is None else jacobian_rate
    found = g.A @ g.M_C_inv @ g.object_bias + bent + g.turning
    return found - g.contact_bias - g.J @ g.mass_inv @ g.coriolis


def _balance(g: Grasp, G_1: Array, compliance: Array | None = None) -> float:
    """Ω f(0) = J 𝓜⁻¹ T + Hᵀ Ẇ + G_1."""
    Omega = g.Omega if compliance is None else compliance
    right = g.J @ g.mass_inv @ g.T + g.H_0.T @ g.solution.W_dot + G_1
    return apart(Omega @ g.solution.f, right)


def _bias_of(part: str) -> Check:
    printed = part == "printed"
    return when_loose(lambda g: _balance(g, bias(g, g.J @ g.v if printed else None)))


def _printed_compliance(g: Grasp) -> float:
    """J 𝓜⁻¹ T + A M⁻¹(C) Aᵀ: a vector and a matrix."""
    parts = g.J @ g.mass_inv @ g.T, g.A @ g.M_C_inv @ g.A.T
    return float("inf") if parts[0].shape != parts[1].shape else 0.0


@cache
def inner(g: Grasp) -> Array:
    """H(0) Ω⁻¹ Hᵀ(0)."""
    return g.H_0 @ g.Omega_inv @ g.H_0.T


@cache
def contact_rates(g: Grasp) -> Array:
    """Ẇ(0) by (b.6a)."""
    pushed = g.J @ g.mass_inv @ g.T
    return -solved(inner(g), g.H_0 @ g.Omega_inv @ pushed + g.H_0 @ g.Omega_inv @ bias(g))


@cache
def projection(g: Grasp) -> Array:
    """Π of (b.7b)."""
    side = g.Omega_inv @ g.H_0.T
    return g.Omega_inv - side @ solved(inner(g), side.T)


def contact_forces(g: Grasp) -> Array:
    """f(0) by (b.7a)."""
    return projection(g) @ (g.J @ g.mass_inv @ g.T + bias(g))


def joint_accelerations(g: Grasp) -> Array:
    """θ̈ by (b.8)."""
    gain = g.mass_inv @ g.J.T @ projection(g)
    by_moments = (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T
    return by_moments - gain @ bias(g) - g.mass_inv @ g.coriolis


def _forces_by_rates(g: Grasp) -> float:
    """f(0) = Ω⁻¹ (J 𝓜⁻¹ T + G_1) + Ω⁻¹ Hᵀ Ẇ."""
    pushed = g.J @ g.mass_inv @ g.T + bias(g)
    found = g.Omega_inv @ pushed + g.Omega_inv @ g.H_0.T @ g.solution.W_dot
    joined = g.Omega_inv @ (g.J @ g.mass_inv @ g.T + g.H_0.T @ g.solution.W_dot + bias(g))
    return max(apart(found, g.solution.f), apart(joined, g.solution.f))


def _rates_system(g: Grasp) -> float:
    """(b.5a)."""
    pushed = g.J @ g.mass_inv @ g.T
    right = -g.H_0 @ g.Omega_inv @ pushed - g.H_0 @ g.Omega_inv @ bias(g)
    return apart(inner(g) @ g.solution.W_dot, right)


def _all_three(g: Grasp) -> float:
    """(b.6): one after the other."""
    rates = contact_rates(g)
    f = g.Omega_inv @ (g.J @ g.mass_inv @ g.T + g.H_0.T @ rates + bias(g))
    theta_ddot = solved(g.mass, g.T - g.coriolis - g.J.T @ f)
    return max(
        apart(rates, g.solution.W_dot),
        apart(f, g.solution.f),
        apart(theta_ddot, g.solution.theta_ddot),
    )


def _projects(g: Grasp) -> float:
    """Π: symmetric, H(0) Π = 0, Π Ω Π = Π."""
    found = projection(g)
    size = np.abs(g.H_0).max() * np.abs(found).max()
    return max(
        apart(found, found.T),
        float(np.abs(g.H_0 @ found).max() / size),
        apart(found @ g.Omega @ found, found),
    )


def _becomes_rigid(case: Case) -> float:
    """(b.4), (b.8) without H(0) are (3.6)."""
    g = rigid(case)
    f = solved(g.Omega, g.J @ g.mass_inv @ g.T + bias(g))
    gain = g.mass_inv @ g.J.T @ g.Omega_inv
    theta_ddot = (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T - gain @ bias(g)
    theta_ddot = theta_ddot - g.mass_inv @ g.coriolis
    expected = solved_rigid(g)
    return max(apart(theta_ddot, expected[0]), apart(f, expected[1]))


LOOSE: tuple[Entry, ...] = (
    holds("(b.1a)", "arms", "𝓜 θ̈ + 𝒞 + Jᵀ f(0) = T", "𝓜 v̇ + C + J* f = τ", when_loose(_arms)),
    holds("(b.1b)", "object", "M(C) α(C) + b(C) = Aᵀ f(0)", "the same", when_loose(_object)),
    holds("(b.1c)", "free turns", "H(0) f(0) = 0", "(a.7)", when_loose(_no_work)),
    definition("(b.1d)", "tips", "α⁺(0) = J θ̈ + J̇ θ̇", "(a.9)"),
    definition("(b.1e)", "contact points of the object", "α⁻(0) = A α(C) + a(C)", "(a.10)"),
    holds(
        "(b.1f)",
        "contacts",
        "α⁻(0) = α⁺(0) + Hᵀ(0) Ẇ(0) + Ḣᵀ(0) W(0)",
        "(a.8)",
        when_loose(_across),
    ),
    holds(
        "App. B, rigid grasps",
        "as a special case",
        "with H(0) = Ḣ(0) = 0, (b.1) reduces to (2.10)",
        "the same",
        when_rigid(_reduces),
    ),
    holds(
        "(b.2)",
        "tips by contact forces",
        "α⁺(0) = J 𝓜⁻¹ [T - Jᵀ f(0) - 𝒞] + J̇ θ̇",
        "the same",
        when_loose(_tip_side_by_forces),
    ),
    holds(
        "(b.3)",
        "contact points of the object by contact forces",
        "α⁻(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C)",
        "the same",
        when_loose(_object_side_by_forces),
    ),
    misprint(
        "(b.4a)",
        "compliance of the contacts",
        "Ω = J 𝓜⁻¹ T + A M⁻¹(C) Aᵀ",
        "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ, as in (b.9b); (b.4b) holds with it",
        when_loose(
            lambda g: _balance(g, bias(g), g.J @ g.mass_inv @ g.J.T + g.A @ g.M_C_inv @ g.A.T)
        ),
        when_loose(_printed_compliance),
        note="T for Jᵀ: a vector cannot be added to a matrix.",
    ),
    holds(
        "(b.4b)",
        "contact forces",
        "Ω f(0) = J 𝓜⁻¹ T + Hᵀ(0) Ẇ(0) + G_1",
        "the same, with G_1 as corrected in (b.4c)",
        _bias_of("meant"),
    ),
    misprint(
        "(b.4c)",
        "what moves without moments",
        "G_1 = A M⁻¹(C) b(C) + J θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞",
        "G_1 = A M⁻¹(C) b(C) + J̇ θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞",
        _bias_of("meant"),
        _bias_of("printed"),
        note="The dot of J̇ is lost, by the printer or the scan.",
    ),
    holds(
        "App. B, (b.4) of rigid grasps",
        "as a special case",
        "with H(0) = Ḣ(0) = 0, (b.4) becomes (3.6b)",
        "the same; (b.8) becomes (3.6a)",
        _becomes_rigid,
    ),
    holds(
        "App. B, contact forces by contact rates",
        "solved for f(0)",
        "f(0) = Ω⁻¹ (J 𝓜⁻¹ T + G_1) + Ω⁻¹ Hᵀ Ẇ(0)",
        "the same; H is H(0)",
        when_loose(_forces_by_rates),
    ),
    holds(
        "(b.5a)",
        "contact rates",
        "[H(0) Ω⁻¹ Hᵀ(0)] Ẇ(0) = -H(0) Ω⁻¹ J 𝓜⁻¹ T - H(0) Ω⁻¹ G_1",
        "the same",
        when_loose(_rates_system),
    ),
    holds(
        "(b.5b)",
        "contact rates, solved",
        "Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ {H(0) Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1}",
        "the same",
        when_loose(lambda g: apart(contact_rates(g), g.solution.W_dot)),
    ),
    holds(
        "(b.6a)",
        "solution, first: contact rates",
        "Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ [H Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1]",
        "(b.5b)",
        when_loose(lambda g: apart(contact_rates(g), g.solution.W_dot)),
        note="The second H is H(0).",
    ),
    holds(
        "(b.6b)",
        "solution, second: contact forces",
        "f(0) = Ω⁻¹ [J 𝓜⁻¹ T + Hᵀ(0) Ẇ(0) + G_1]",
        "the same",
        when_loose(_forces_by_rates),
    ),
    holds(
        "(b.6c)",
        "solution, third: joints",
        "𝓜 θ̈ + 𝒞 + Jᵀ f(0) = T",
        "(b.6a), (b.6b), (b.6c), one after the other, leave what d'Alembert's principle does",
        when_loose(_all_three),
    ),
    holds(
        "(b.7a)",
        "contact forces without contact rates",
        "f(0) = Π (J 𝓜⁻¹ T + G_1)",
        "the same",
        when_loose(lambda g: apart(contact_forces(g), g.solution.f)),
    ),
    holds(
        "(b.7b)",
        "compliance's inverse where contacts hold",
        "Π = Ω⁻¹ - Ω⁻¹ Hᵀ(0) [H(0) Ω⁻¹ Hᵀ(0)]⁻¹ H(0) Ω⁻¹",
        "the same; H(0) Π = 0, Π Ω Π = Π",
        when_loose(_projects),
    ),
    holds(
        "(b.8)",
        "joint accelerations",
        "θ̈ = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Π J 𝓜⁻¹) T - 𝓜⁻¹ Jᵀ Π G_1 - 𝓜⁻¹ 𝒞",
        "the same",
        when_loose(lambda g: apart(joint_accelerations(g), g.solution.theta_ddot)),
    ),
)

GATHERED: tuple[Entry, ...] = (
    misprint(
        "(b.9a)",
        "what moves without moments",
        "G_1 = A M⁻¹(C) b(C) + J θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞",
        "G_1 = A M⁻¹(C) b(C) + J̇ θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞",
        _bias_of("meant"),
        _bias_of("printed"),
        note="The lost dot of (b.4c) again.",
    ),
    definition("(b.9b)", "compliance of the contacts", "Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ", "(3.1)"),
    holds(
        "(b.9c)",
        "compliance's inverse where contacts hold",
        "Π = Ω⁻¹ - Ω⁻¹ Hᵀ(0) [H(0) Ω⁻¹ Hᵀ(0)]⁻¹ H(0) Ω⁻¹",
        "(b.7b)",
        when_loose(_projects),
    ),
    holds(
        "(b.9d)",
        "contact forces",
        "f(0) = Π (J 𝓜⁻¹ T + G_1)",
        "the same",
        when_loose(lambda g: apart(contact_forces(g), g.solution.f)),
    ),
    holds(
        "(b.9e)",
        "joint accelerations",
        "θ̈ = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Π J 𝓜⁻¹) T - 𝓜⁻¹ Jᵀ Π G_1 - 𝓜⁻¹ 𝒞",
        "the same",
        when_loose(lambda g: apart(joint_accelerations(g), g.solution.theta_ddot)),
    ),
    holds(
        "(b.9f)",
        "contact rates",
        "Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ [H(0) Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1]",
        "the same",
        when_loose(lambda g: apart(contact_rates(g), g.solution.W_dot)),
    ),
)
