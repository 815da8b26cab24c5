"""JPL 88-11, Part II, Appendix B: closed chains whose contacts leave turns free."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, loose, rigid, solved
from linkwise_ledger.jpl_88_11.part_2.closed_chain import solved as solved_rigid, tip_accelerations
from linkwise_ledger.section import Section

# -------------------------------------------------------------------------------- equations


def object_side(g: Grasp) -> Array:
    """α⁻(0)."""
    return g.A @ g.solution.alpha + g.contact_bias


# -------------------------------------------------------------------------------- solution


def bias(g: Grasp, jacobian_rate: Array | None = None) -> Array:
    """G_1 of (b.4c); printed is J θ̇ where J̇ θ̇ belongs."""
    bent = g.bent if jacobian_rate is None else jacobian_rate
    computed = g.A @ g.M_C_inv @ g.object_bias + bent + g.turning
    return computed - g.contact_bias - g.J @ g.mass_inv @ g.coriolis


def _balance(g: Grasp, G_1: Array, compliance: Array | None = None) -> float:
    """Ω f(0) = J 𝓜⁻¹ T + Hᵀ Ẇ + G_1."""
    Omega = g.Omega if compliance is None else compliance
    right = g.J @ g.mass_inv @ g.T + g.H_0.T @ g.solution.W_dot + G_1
    return apart(Omega @ g.solution.f, right)


def _with_bias(g: Grasp, printed: bool = False) -> float:
    return _balance(g, bias(g, g.J @ g.v if printed else None))


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


LOOSE = Section()


@LOOSE.on_each(loose)("""(b.1a)  arms
    printed  𝓜 θ̈ + 𝒞 + Jᵀ f(0) = T
    holds    𝓜 v̇ + C + J* f = τ
""")
def _arms(g: Grasp) -> float:
    return apart(g.mass @ g.solution.theta_ddot + g.coriolis + g.J.T @ g.solution.f, g.T)


@LOOSE.on_each(loose)("""(b.1b)  object
    holds    M(C) α(C) + b(C) = Aᵀ f(0)
""")
def _object(g: Grasp) -> float:
    return apart(g.M_C @ g.solution.alpha + g.object_bias, g.A.T @ g.solution.f)


LOOSE.on_each(loose)("""(b.1c)  free turns
    printed  H(0) f(0) = 0
    holds    (a.7)
""")(lambda g: float(np.abs(g.H_0 @ g.solution.f).max() / np.abs(g.solution.f).max()))
LOOSE.unchecked("""(b.1d)  tips
    printed  α⁺(0) = J θ̈ + J̇ θ̇
    means    (a.9)
(b.1e)  contact points of the object
    printed  α⁻(0) = A α(C) + a(C)
    means    (a.10)
""")
LOOSE.on_each(loose)("""(b.1f)  contacts
    printed  α⁻(0) = α⁺(0) + Hᵀ(0) Ẇ(0) + Ḣᵀ(0) W(0)
    holds    (a.8)
""")(lambda g: (tip_accelerations(g) + g.H_0.T @ g.solution.W_dot + g.turning, object_side(g)))


@LOOSE.on(rigid)("""App. B, rigid grasps  as a special case
    holds    with H(0) = Ḣ(0) = 0, (b.1) reduces to (2.10)
""")
def _(g: Grasp) -> float:
    """Where nothing is left free, (b.1f) and (b.1c) say what (2.10b) does."""
    s = g.solution
    return max(_arms(g), _object(g), apart(tip_accelerations(g), object_side(g)), len(s.W_dot))


@LOOSE.on_each(loose)("""(b.2)  tips by contact forces
    holds    α⁺(0) = J 𝓜⁻¹ [T - Jᵀ f(0) - 𝒞] + J̇ θ̇
""")
def _(g: Grasp) -> float:
    pushed = g.T - g.J.T @ g.solution.f - g.coriolis
    return apart(g.J @ g.mass_inv @ pushed + g.bent, tip_accelerations(g))


@LOOSE.on_each(loose)("""(b.3)  contact points of the object by contact forces
    holds    α⁻(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C)
""")
def _(g: Grasp) -> float:
    shifted = g.A @ g.M_C_inv
    computed = shifted @ g.A.T @ g.solution.f - shifted @ g.object_bias + g.contact_bias
    return apart(computed, object_side(g))


LOOSE.on_each(loose)("""(b.4a)  compliance of the contacts
    printed  Ω = J 𝓜⁻¹ T + A M⁻¹(C) Aᵀ
    instead  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ, as in (b.9b); (b.4b) holds with it
    note     T for Jᵀ: a vector cannot be added to a matrix.
""")(lambda g: _balance(g, bias(g), g.J @ g.mass_inv @ g.J.T + g.A @ g.M_C_inv @ g.A.T))


@LOOSE.on_each(loose).as_printed
def _(g: Grasp) -> float:
    """J 𝓜⁻¹ T + A M⁻¹(C) Aᵀ: a vector and a matrix."""
    parts = g.J @ g.mass_inv @ g.T, g.A @ g.M_C_inv @ g.A.T
    return float("inf") if parts[0].shape != parts[1].shape else 0.0


LOOSE.on_each(loose)("""(b.4b)  contact forces
    printed  Ω f(0) = J 𝓜⁻¹ T + Hᵀ(0) Ẇ(0) + G_1
    holds    the same, with G_1 as corrected in (b.4c)
(b.4c)  what moves without moments
    printed  G_1 = A M⁻¹(C) b(C) + J θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞
    instead  G_1 = A M⁻¹(C) b(C) + J̇ θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞
    note     The dot of J̇ is lost, by the printer or the scan.
""")(_with_bias)


@LOOSE("""App. B, (b.4) of rigid grasps  as a special case
    printed  with H(0) = Ḣ(0) = 0, (b.4) becomes (3.6b)
    holds    the same; (b.8) becomes (3.6a)
""")
def _(case: Case) -> float:
    g = rigid(case)
    f = solved(g.Omega, g.J @ g.mass_inv @ g.T + bias(g))
    gain = g.mass_inv @ g.J.T @ g.Omega_inv
    theta_ddot = (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T - gain @ bias(g)
    theta_ddot = theta_ddot - g.mass_inv @ g.coriolis
    expected = solved_rigid(g)
    return max(apart(theta_ddot, expected[0]), apart(f, expected[1]))


@LOOSE.on_each(loose)("""App. B, contact forces by contact rates  solved for f(0)
    printed  f(0) = Ω⁻¹ (J 𝓜⁻¹ T + G_1) + Ω⁻¹ Hᵀ Ẇ(0)
    holds    the same; H is H(0)
""")
def _forces_by_rates(g: Grasp) -> float:
    pushed = g.J @ g.mass_inv @ g.T + bias(g)
    computed = g.Omega_inv @ pushed + g.Omega_inv @ g.H_0.T @ g.solution.W_dot
    joined = g.Omega_inv @ (g.J @ g.mass_inv @ g.T + g.H_0.T @ g.solution.W_dot + bias(g))
    return max(apart(computed, g.solution.f), apart(joined, g.solution.f))


@LOOSE.on_each(loose)("""(b.5a)  contact rates
    holds    [H(0) Ω⁻¹ Hᵀ(0)] Ẇ(0) = -H(0) Ω⁻¹ J 𝓜⁻¹ T - H(0) Ω⁻¹ G_1
""")
def _(g: Grasp) -> float:
    pushed = g.J @ g.mass_inv @ g.T
    right = -g.H_0 @ g.Omega_inv @ pushed - g.H_0 @ g.Omega_inv @ bias(g)
    return apart(inner(g) @ g.solution.W_dot, right)


LOOSE.on_each(loose)("""(b.5b)  contact rates, solved
    holds    Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ {H(0) Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1}
(b.6a)  solution, first: contact rates
    printed  Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ [H Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1]
    holds    (b.5b)
    note     The second H is H(0).
""")(lambda g: (contact_rates(g), g.solution.W_dot))
LOOSE.on_each(loose)("""(b.6b)  solution, second: contact forces
    holds    f(0) = Ω⁻¹ [J 𝓜⁻¹ T + Hᵀ(0) Ẇ(0) + G_1]
""")(_forces_by_rates)


@LOOSE.on_each(loose)("""(b.6c)  solution, third: joints
    printed  𝓜 θ̈ + 𝒞 + Jᵀ f(0) = T
    holds    (b.6a), (b.6b), (b.6c), in sequence, leave what d'Alembert's principle does
""")
def _(g: Grasp) -> Errors:
    rates = contact_rates(g)
    f = g.Omega_inv @ (g.J @ g.mass_inv @ g.T + g.H_0.T @ rates + bias(g))
    theta_ddot = solved(g.mass, g.T - g.coriolis - g.J.T @ f)
    yield rates, g.solution.W_dot
    yield f, g.solution.f
    yield theta_ddot, g.solution.theta_ddot


LOOSE.on_each(loose)("""(b.7a)  contact forces without contact rates
    holds    f(0) = Π (J 𝓜⁻¹ T + G_1)
""")(lambda g: (contact_forces(g), g.solution.f))


@LOOSE.on_each(loose)("""(b.7b)  compliance's inverse where contacts hold
    printed  Π = Ω⁻¹ - Ω⁻¹ Hᵀ(0) [H(0) Ω⁻¹ Hᵀ(0)]⁻¹ H(0) Ω⁻¹
    holds    the same; H(0) Π = 0, Π Ω Π = Π
""")
def _projects(g: Grasp) -> Errors:
    computed = projection(g)
    size = np.abs(g.H_0).max() * np.abs(computed).max()
    yield computed, computed.T
    yield float(np.abs(g.H_0 @ computed).max() / size)
    yield computed @ g.Omega @ computed, computed


LOOSE.on_each(loose)("""(b.8)  joint accelerations
    holds    θ̈ = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Π J 𝓜⁻¹) T - 𝓜⁻¹ Jᵀ Π G_1 - 𝓜⁻¹ 𝒞
""")(lambda g: (joint_accelerations(g), g.solution.theta_ddot))
LOOSE.on_each(loose)("""(b.9a)  what moves without moments
    printed  G_1 = A M⁻¹(C) b(C) + J θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞
    instead  G_1 = A M⁻¹(C) b(C) + J̇ θ̇ + Ḣᵀ(0) W(0) - a(C) - J 𝓜⁻¹ 𝒞
    note     The lost dot of (b.4c) again.
""")(_with_bias)
LOOSE.unchecked("""(b.9b)  compliance of the contacts
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    means    (3.1)
""")
LOOSE.on_each(loose)("""(b.9c)  compliance's inverse where contacts hold
    printed  Π = Ω⁻¹ - Ω⁻¹ Hᵀ(0) [H(0) Ω⁻¹ Hᵀ(0)]⁻¹ H(0) Ω⁻¹
    holds    (b.7b)
""")(_projects)
LOOSE.on_each(loose)("""(b.9d)  contact forces
    holds    f(0) = Π (J 𝓜⁻¹ T + G_1)
""")(lambda g: (contact_forces(g), g.solution.f))
LOOSE.on_each(loose)("""(b.9e)  joint accelerations
    holds    θ̈ = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Π J 𝓜⁻¹) T - 𝓜⁻¹ Jᵀ Π G_1 - 𝓜⁻¹ 𝒞
""")(lambda g: (joint_accelerations(g), g.solution.theta_ddot))
LOOSE.on_each(loose)("""(b.9f)  contact rates
    holds    Ẇ(0) = -[H(0) Ω⁻¹ Hᵀ(0)]⁻¹ [H(0) Ω⁻¹ J 𝓜⁻¹ T + H(0) Ω⁻¹ G_1]
""")(lambda g: (contact_rates(g), g.solution.W_dot))
