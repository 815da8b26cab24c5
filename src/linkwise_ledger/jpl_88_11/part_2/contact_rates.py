"""JPL 88-11, Part II, Appendix B from (b.10) on: joints and contacts as one system."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, loose, rank
from linkwise_ledger.jpl_88_11.part_2.closed_chain import tip_accelerations
from linkwise_ledger.jpl_88_11.part_2.loose_grasps import (
    bias,
    contact_rates,
    inner,
    joint_accelerations,
    object_side,
    projection,
)
from linkwise_ledger.section import Section


def _row(g: Grasp) -> Array:
    """H(0) Ω⁻¹."""
    return g.H_0 @ g.Omega_inv


def second_bias(g: Grasp, sign: float = -1.0) -> Array:
    """G_2 of (b.11); printed is + before J 𝓜⁻¹ 𝒞."""
    inside = (g.compliance @ projection(g) - np.eye(len(g.A))) @ bias(g)
    return _row(g) @ (inside + sign * g.J @ g.mass_inv @ g.coriolis)


def third_bias(g: Grasp) -> Array:
    """G_3 of (b.13)."""
    return -g.J.T @ g.Omega_inv @ bias(g) - g.coriolis


def _rates_and_joints(g: Grasp) -> Array:
    """The left side of (b.10)."""
    return inner(g) @ g.solution.W_dot + _row(g) @ g.J @ g.solution.theta_ddot


def _rows(g: Grasp) -> tuple[Array, Array]:
    """Matrix and right side of (b.14)."""
    across = _row(g) @ g.J
    matrix = np.block([[inner(g), across], [across.T, g.mass]])
    through = np.eye(len(g.T)) - g.J.T @ g.Omega_inv @ g.J @ g.mass_inv
    reached = _row(g) @ g.compliance @ projection(g) @ g.J @ g.mass_inv
    right = np.concatenate([reached @ g.T + second_bias(g), through @ g.T + third_bias(g)])
    return matrix, right


CONTACT_RATES = Section()


@CONTACT_RATES.on_each(loose)("""App. B, how contacts part  accelerations across the contacts by
             forces
    holds    α⁻(0) - α⁺(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C) - J θ̈ - J̇ θ̇ = Hᵀ(0) Ẇ(0) +
             Ḣᵀ(0) W(0)
""")
def _(g: Grasp) -> Errors:
    shifted = g.A @ g.M_C_inv
    forces = shifted @ g.A.T @ g.solution.f - shifted @ g.object_bias + g.contact_bias
    computed = forces - g.J @ g.solution.theta_ddot - g.bent
    yield computed, g.H_0.T @ g.solution.W_dot + g.turning
    yield computed, object_side(g) - tip_accelerations(g)


@CONTACT_RATES.on_each(loose)("""App. B, the same by G_1  accelerations across the contacts,
             rewritten
    printed  Hᵀ(0) Ẇ(0) + J θ̈ = A M⁻¹(C) Aᵀ f(0) - G_1 + J 𝓜⁻¹ 𝒞
    instead  Hᵀ(0) Ẇ(0) + J θ̈ = A M⁻¹(C) Aᵀ f(0) - G_1 - J 𝓜⁻¹ 𝒞
    note     A slip of the derivation: G_1 holds -J 𝓜⁻¹ 𝒞, which is to be taken away again. It goes
             on to (b.10) and (b.11), and so into G_2 of (b.14); (b.9) is free of it.
""")
def _(g: Grasp, printed: bool = False) -> float:
    s, sign = g.solution, 1.0 if printed else -1.0
    right = g.compliance @ s.f - bias(g) + sign * g.J @ g.mass_inv @ g.coriolis
    return apart(g.H_0.T @ s.W_dot + g.J @ s.theta_ddot, right)


@CONTACT_RATES.on_each(loose)("""App. B, premultiplied  the same times H(0) Ω⁻¹
    printed  H(0) Ω⁻¹ Hᵀ(0) Ẇ(0) + H(0) Ω⁻¹ J θ̈ = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ f(0) + H(0) Ω⁻¹ (J 𝓜⁻¹ 𝒞 -
             G_1)
    instead  H(0) Ω⁻¹ Hᵀ(0) Ẇ(0) + H(0) Ω⁻¹ J θ̈ = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ f(0) - H(0) Ω⁻¹ (J 𝓜⁻¹ 𝒞 +
             G_1)
    note     The sign before J 𝓜⁻¹ 𝒞, from the line before.
""")
def _(g: Grasp, printed: bool = False) -> float:
    rest = (1.0 if printed else -1.0) * g.J @ g.mass_inv @ g.coriolis - bias(g)
    right = _row(g) @ g.compliance @ g.solution.f + _row(g) @ rest
    return apart(_rates_and_joints(g), right)


@CONTACT_RATES.on_each(loose)("""(b.10)  contact rates beside joints
    printed  H(0) Ω⁻¹ Hᵀ(0) Ẇ(0) + H(0) Ω⁻¹ J θ̈ = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π J 𝓜⁻¹ T + H(0) Ω⁻¹ A
             M⁻¹(C) Aᵀ Π G_1 + H(0) Ω⁻¹ (J 𝓜⁻¹ 𝒞 - G_1) = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π J 𝓜⁻¹ T + G_2
    instead  H(0) Ω⁻¹ Hᵀ(0) Ẇ(0) + H(0) Ω⁻¹ J θ̈ = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π J 𝓜⁻¹ T + H(0) Ω⁻¹ A
             M⁻¹(C) Aᵀ Π G_1 - H(0) Ω⁻¹ (J 𝓜⁻¹ 𝒞 + G_1) = H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π J 𝓜⁻¹ T + G_2
    note     The sign before J 𝓜⁻¹ 𝒞, from two lines before.
(b.11)  its bias
    printed  G_2 = H(0) Ω⁻¹ {(A M⁻¹(C) Aᵀ Π - I) G_1 + J 𝓜⁻¹ 𝒞}
    instead  G_2 = H(0) Ω⁻¹ {(A M⁻¹(C) Aᵀ Π - I) G_1 - J 𝓜⁻¹ 𝒞}
    note     The sign before J 𝓜⁻¹ 𝒞, as in (b.10).
""")
def _(g: Grasp, printed: bool = False) -> Errors:
    """Both forms."""
    left, pushed, sign = _rates_and_joints(g), g.J @ g.mass_inv @ g.T, 1.0 if printed else -1.0
    reached = _row(g) @ g.compliance @ projection(g)
    rest = sign * g.J @ g.mass_inv @ g.coriolis - bias(g)
    yield left, reached @ pushed + reached @ bias(g) + _row(g) @ rest
    yield left, reached @ pushed + second_bias(g, sign)


@CONTACT_RATES.on_each(loose)("""(b.12)  joints beside contact rates
    holds    𝓜 θ̈ + Jᵀ Ω⁻¹ Hᵀ(0) Ẇ(0) = (I - Jᵀ Ω⁻¹ J 𝓜⁻¹) T - Jᵀ Ω⁻¹ G_1 - 𝒞 = (I - Jᵀ Ω⁻¹ J 𝓜⁻¹) T
             + G_3
(b.13)  its bias
    means    G_3 = -Jᵀ Ω⁻¹ G_1 - 𝒞
""")
def _(g: Grasp) -> float:
    """(b.12), both forms."""
    s, n = g.solution, len(g.T)
    left = g.mass @ s.theta_ddot + g.J.T @ _row(g).T @ s.W_dot
    through = (np.eye(n) - g.J.T @ g.Omega_inv @ g.J @ g.mass_inv) @ g.T
    long = through - g.J.T @ g.Omega_inv @ bias(g) - g.coriolis
    return max(apart(left, long), apart(left, through + third_bias(g)))


@CONTACT_RATES.on_each(loose)("""(b.14)  joints and contacts as one system
    printed  [[H(0) Ω⁻¹ Hᵀ(0), H(0) Ω⁻¹ J], [Jᵀ Ω⁻¹ Hᵀ(0), 𝓜]] (Ẇ(0), θ̇) = (H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π
             J 𝓜⁻¹, I - Jᵀ Ω⁻¹ J 𝓜⁻¹) T + (G_2, G_3)
    instead  [[H(0) Ω⁻¹ Hᵀ(0), H(0) Ω⁻¹ J], [Jᵀ Ω⁻¹ Hᵀ(0), 𝓜]] (Ẇ(0), θ̈) = (H(0) Ω⁻¹ A M⁻¹(C) Aᵀ Π
             J 𝓜⁻¹, I - Jᵀ Ω⁻¹ J 𝓜⁻¹) T + (G_2, G_3)
    note     θ̇ for θ̈; whether the printer or the scan lost the dot is unclear. G_2 as
             corrected in (b.11).
""")
def _(g: Grasp) -> float:
    matrix, right = _rows(g)
    s = g.solution
    return apart(matrix @ np.concatenate([s.W_dot, s.theta_ddot]), right)


@CONTACT_RATES.on_each(loose).as_printed
def _(g: Grasp) -> float:
    matrix, right = _rows(g)
    return apart(matrix @ np.concatenate([g.solution.W_dot, g.v]), right)


@CONTACT_RATES.on_each(loose)("""App. B, solution of (b.14)  that it is the solution
    printed  the forward dynamics solution of (b.14) is given by (b.9e) and (b.9f)
    holds    the same; of others too, unless Aᵀ Ω⁻¹ Hᵀ(0) has as many ranks as there are contact
             rates
    note     With more than six contact rates, three points for instance, the matrix of (b.14) is
             singular, though θ̈ and Ẇ(0) are unique: (b.1) says more.
""")
def _(g: Grasp) -> float:
    matrix, right = _rows(g)
    scale = 1.0 / np.sqrt(np.diag(matrix))  # unit inertias: one threshold for all
    # The rows that are lost are squares of small compliances: 1e-11 is much, 1e-15 is nothing.
    lacking = len(matrix) - rank(scale[:, None] * matrix * scale, 1e-13)
    if lacking != len(g.H_0) - rank(g.A.T @ _row(g).T):
        return float("inf")
    return apart(matrix @ np.concatenate([contact_rates(g), joint_accelerations(g)]), right)
