"""Document 001, section 2: the Newton-Euler equations, by threes.

Each is held against positions differentiated with respect to time (`motion.py`), in world axes, on
arms of pins. What the document writes for k + 1 is the parent, and for k - 1 the sum over children.
"""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11 import newton_euler
from linkwise_ledger.jpl_88_11.motion import Motion, pins
from linkwise_ledger.section import Section


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
    note     The s of m/s² is lost; whether by the printer or by the scan cannot be told, and the
             text before has it. Checked against the slope of the potential energy.
""")
def _(case: Case) -> float:
    x = pins(case)
    raised = newton_euler.joint_forces(x, np.array([0.0, 0.0, 9.8]))
    weights = newton_euler.slope_of_potential_energy(x, np.array([0.0, 0.0, -9.8]))
    return apart(raised, newton_euler.joint_forces(x) + weights)


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
    return apart((x.h * x.N).sum(axis=1), newton_euler.by_operators(x))


SECTION_2("""RNE  the recursive Newton-Euler equations, (2.1) to (2.13)
    printed  for k = N ... 1: (2.2) to (2.6); for k = 1 ... N: (2.9) to (2.13)
    holds    τ = 𝓜 v̇ + C + J* f
    note     The loops as printed, in world axes, against the operators in body axes.
""")(lambda case: (newton_euler.joint_forces(pins(case)), newton_euler.by_operators(pins(case))))
