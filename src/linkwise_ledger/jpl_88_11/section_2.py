"""JPL 88-11, sections 1 and 2: operational space, the Newton-Euler equations by threes, slides.

Each equation of motion is compared with positions differentiated with respect to time
(`motion.py`), in world axes, on arms of pins. The paper's k + 1 is the parent of link k, and its
k - 1 means a sum over the children.
"""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11.links import (
    Links,
    bias_acceleration,
    hinge_map,
    inverse_dynamics,
    sliding,
)
from linkwise_ledger.jpl_88_11.motion import (
    Motion,
    by_operators,
    joint_forces,
    pins,
    shift,
    slides,
    slope_of_potential_energy,
)
from linkwise_ledger.section import Section

SECTION_1 = Section()
SECTION_1.algebra("""sec. 1, operational space  compliance of the tip
    printed  J 𝓜⁻¹ Jᵀ can be made by recursions; its inverse is the mass matrix of operational space
    holds    J 𝓜⁻¹ J* = B* Ω B
    note     Ω = ψ* H* D⁻¹ H ψ.
""")


def _carried(w: Array, w_dot: Array, arm: Array) -> Array:
    """ω̇ × l + ω × (ω × l)."""
    return cross(w_dot, arm) + cross(w, cross(w, arm))


def times(matrices: Array, vectors: Array) -> Array:
    """Products of stacked matrices and vectors."""
    return (matrices @ vectors[..., None])[..., 0]


SECTION_2 = Section()


@SECTION_2("""(2.1)  the base, and gravity
    printed  ω(N+1) = 0; v(N+1) = 0; ω̇(N+1) = 0; v̇(N+1) = 0 or (9.8 m/2) e₃
    holds    the base at rest, or raised with v̇(N+1) = 9.8 m/s² e₃ in place of weights
    note     The s of m/s² is lost; whether by the printer or by the scan is unclear, and the
             text before has it. Checked against the slope of the potential energy.
""")
def _(case: Case) -> float:
    x = pins(case)
    raised = joint_forces(x, np.array([0.0, 0.0, 9.8]))
    weights = slope_of_potential_energy(x, np.array([0.0, 0.0, -9.8]))
    return apart(raised, joint_forces(x) + weights)


SECTION_2.on(pins)("""(2.2)  angular velocity of a link
    printed  ω(k) = ω(k+1) + h(k) θ̇(k)
    holds    ω_k = ω_p + h_k v_k, in world axes
""")(lambda x: (x.w, x.up(x.w) + x.h * x.qdot[:, None]))
SECTION_2.on(pins)("""(2.3)  velocity of O(k)
    printed  v(k) = v(k+1) + ω(k+1) × ℓ(k+1,k)
    holds    v_k = v_p + ω_p × l(p,k)
""")(lambda x: (x.v, x.up(x.v) + cross(x.up(x.w), x.arm)))


@SECTION_2.on(pins)("""(2.4)  angular acceleration of a link
    printed  ω̇(k) = ω̇(k+1) + h(k) θ̈(k) + ω(k+1) × h(k) θ̇(k)
    holds    ω̇_k = ω̇_p + h_k v̇_k + ω_p × h_k v_k
""")
def _(x: Motion) -> tuple[Array, Array]:
    turned = cross(x.up(x.w), x.h * x.qdot[:, None])
    return x.w_dot, x.up(x.w_dot) + x.h * x.qddot[:, None] + turned


SECTION_2.on(pins)("""(2.5)  acceleration of O(k)
    printed  v̇(k) = v̇(k+1) + ω̇(k+1) × ℓ(k+1,k) + ω(k+1) × [ω(k+1) × ℓ(k+1,k)]
    holds    v̇_k = v̇_p + ω̇_p × l(p,k) + ω_p × (ω_p × l(p,k))
""")(lambda x: (x.v_dot, x.up(x.v_dot) + _carried(x.up(x.w), x.up(x.w_dot), x.arm)))
SECTION_2.on(pins)("""(2.6)  acceleration of the centre of mass
    holds    v̇ᶜ(k) = v̇(k) + ω̇(k) × p(k) + ω(k) × [ω(k) × p(k)]
""")(lambda x: (x.v_com_dot, x.v_dot + _carried(x.w, x.w_dot, x.p)))


@SECTION_2.on(pins)("""(2.7)  velocity and acceleration of the tip
    printed  ω(0) = ω(1); v(0) = v(1) + ω(1) × ℓ(1,0); ω̇(0) = ω̇(1); v̇(0) = v̇(1) + ω̇(1) × ℓ(1,0)
             + ω(1) × [ω(1) × ℓ(1,0)]
    holds    the same at the node, on its body
""")
def _(x: Motion) -> tuple[Array, Array]:
    k = x.tip_link
    arm = x.tip - x.O[k]
    velocity = x.v[k] + cross(x.w[k], arm)
    return (
        np.stack([x.v_tip, x.v_tip_dot]),
        np.stack([velocity, x.v_dot[k] + _carried(x.w[k], x.w_dot[k], arm)]),
    )


SECTION_2.unchecked("""(2.8)  the environment
    printed  F(0) = F_ext; N(0) = N_ext
    means    (N(0), F(0)) = f, what the node does to its surroundings
""")
SECTION_2.on(pins)("""(2.9)  Euler's equation
    printed  Nᶜ(k) = Iᶜ(k) ω̇(k) + ω(k) × Iᶜ(k)·ω(k)
    holds    rate of the angular momentum about the centre of mass
    note     Against ∫ r × r̈ dm, with r̈ from differences.
""")(lambda x: (x.N_net, times(x.I_com, x.w_dot) + cross(x.w, times(x.I_com, x.w))))
SECTION_2.on(pins)("""(2.10)  Newton's equation
    printed  Fᶜ(k) = m(k) v̇ᶜ(k)
    holds    rate of the momentum, with v̇ᶜ of (2.6)
""")(lambda x: (x.F_net, x.mass[:, None] * (x.v_dot + _carried(x.w, x.w_dot, x.p))))
SECTION_2.on(pins)("""(2.11)  balance of forces
    printed  F(k) = F(k-1) + Fᶜ(k)
    holds    F_k = Σ_c F_c + Fᶜ_k
    note     Against the balance of all links beyond the joint at once.
""")(lambda x: (x.F, x.gathered(x.F, x.f_tip[3:]) + x.F_net))


@SECTION_2.on(pins)("""(2.12)  balance of moments
    printed  N(k) = N(k-1) + ℓ(k,k-1) × F(k-1) + p(k) × Fᶜ(k) + Nᶜ(k)
    holds    N_k = Σ_c (N_c + l(k,c) × F_c) + p_k × Fᶜ_k + Nᶜ_k
""")
def _(x: Motion) -> tuple[Array, Array]:
    from_links = x.N + cross(x.arm, x.F)
    from_tip = x.f_tip[:3] + cross(x.tip - x.O[x.tip_link], x.f_tip[3:])
    return x.N, x.gathered(from_links, from_tip) + cross(x.p, x.F_net) + x.N_net


@SECTION_2("""(2.13)  joint moment
    printed  T(k) = hᵀ(k) N(k)
    holds    τ_k = h_k* N_k, which is 𝓜 v̇ + C + J* f
""")
def _(case: Case) -> float:
    x = pins(case)
    return apart((x.h * x.N).sum(axis=1), by_operators(x))


SECTION_2("""RNE  the recursive Newton-Euler equations, (2.1) to (2.13)
    printed  for k = N ... 1: (2.2) to (2.6); for k = 1 ... N: (2.9) to (2.13)
    holds    τ = 𝓜 v̇ + C + J* f
    note     The loops as printed, in world axes, against the operators in body axes.
""")(lambda case: (joint_forces(pins(case)), by_operators(pins(case))))


def _slid(x: Motion) -> list[int]:
    return [k for k in range(x.n) if x.is_slide(k)]


def _left_over(x: Motion) -> Array:
    """α(k) - φᵀ(k+1,k) α(k+1) - Hᵀ(k) θ̈(k) at the slides: what a(k) has to be."""
    alpha = six(x.w_dot, x.v_dot)
    above = x.up(alpha)
    rows = [
        alpha[k] - shift(x.arm[k]).T @ above[k] - hinge_map(x, k).T @ x.theta_ddot[k]
        for k in _slid(x)
    ]
    return np.array(rows)


def _by_links(x: Motion, inside: Array) -> Array:
    """(0, ω(k+1) × inside) at the slides."""
    w = x.up(x.w)
    return np.array([six(np.zeros(3), cross(w[k], inside[k])) for k in _slid(x)])


def _joint_forces(x: Motion, links: Links) -> float:
    computed = np.concatenate(inverse_dynamics(links, links.theta_ddot))
    return apart(computed, by_operators(x))


SLIDING = Section()


@SLIDING("""(2.31)  hinge map of a slide
    printed  Hᵀ(k) = (0, h(k))
    means    H_k* of a prismatic hinge
""")
def _(case: Case) -> float:
    """Hᵀ θ̇ is what the velocity of a link on a slide has more than that of its parent."""
    x = slides(case)
    V = six(x.w, x.v)
    relative = [V[k] - shift(x.arm[k]).T @ x.up(V)[k] for k in _slid(x)]
    return apart(relative, [hinge_map(x, k).T @ x.theta_dot[k] for k in _slid(x)])


@SLIDING("""(2.32)  bias acceleration of a slide
    printed  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + h(k) θ̇(k)])
    instead  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + 2 h(k) θ̇(k)])
    note     The 2 of the Coriolis acceleration is missing: l grows by h θ̇, and h itself turns.
""")
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), [bias_acceleration(x, k) for k in _slid(x)])


@SLIDING.as_printed
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), [bias_acceleration(x, k, slid=1.0) for k in _slid(x)])


@SLIDING("""(2.32), second form  bias acceleration of a slide, by velocities of links
    printed  a(k) = (0, ω(k+1) × [ω(k+1) × ℓ(k+1,k) + ω(k)])
    instead  a(k) = (0, ω(k+1) × [2 (v(k) - v(k+1)) - ω(k+1) × ℓ(k+1,k)])
    note     h θ̇ was replaced by ω(k) as for a pin in (2.19), where the rest of ω(k) drops out of
             the product; here it is a velocity, v(k) - v(k+1) - ω(k+1) × ℓ, and not even the units
             fit. Since ω(k) = ω(k+1) the printed term vanishes altogether.
""")
def _(case: Case) -> float:
    x = slides(case)
    w = x.up(x.w)
    inside = 2.0 * (x.v - x.up(x.v)) - cross(w, x.arm)
    return apart(_left_over(x), _by_links(x, inside))


@SLIDING.as_printed
def _(case: Case) -> float:
    x = slides(case)
    return apart(_left_over(x), _by_links(x, cross(x.up(x.w), x.arm) + x.w))


SLIDING("""sec. 2, sliding joints  arms of pins and slides, (2.14) to (2.32) together
    printed  RSD with (2.31) and (2.32) at the slides describes an arm with both kinds of joints
    holds    τ = 𝓜 v̇ + C + J* f by RSD, with the 2 in (2.32)
    note     With (2.32) corrected.
""")(lambda case: _joint_forces(slides(case), sliding(case)))
