"""Document 001, section 2: the Newton-Euler equations, by threes.

Each is held against positions differentiated with respect to time (`motion.py`), in world axes, on
arms of pins. What the document writes for k + 1 is the parent, and for k - 1 the sum over children.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Entry, definition, holds
from linkwise_ledger.jpl_88_11 import newton_euler
from linkwise_ledger.jpl_88_11.motion import Motion, pins

Sides: TypeAlias = Callable[[Motion], tuple[Array, Array]]
"""Both sides of an equation, stacked over the links."""


def on_pins(sides: Sides) -> Check:
    """The check that both sides are equal on the pinned tree of a case."""

    def check(case: Case) -> float:
        return apart(*sides(pins(case)))

    return check


def _angular_velocity(x: Motion) -> tuple[Array, Array]:
    return x.w, x.up(x.w) + x.h * x.qdot[:, None]


def _velocity(x: Motion) -> tuple[Array, Array]:
    return x.v, x.up(x.v) + cross(x.up(x.w), x.arm)


def _angular_acceleration(x: Motion) -> tuple[Array, Array]:
    turned = cross(x.up(x.w), x.h * x.qdot[:, None])
    return x.w_dot, x.up(x.w_dot) + x.h * x.qddot[:, None] + turned


def _acceleration(x: Motion) -> tuple[Array, Array]:
    return x.v_dot, x.up(x.v_dot) + _carried(x.up(x.w), x.up(x.w_dot), x.arm)


def _acceleration_of_com(x: Motion) -> tuple[Array, Array]:
    return x.v_com_dot, x.v_dot + _carried(x.w, x.w_dot, x.p)


def _carried(w: Array, w_dot: Array, arm: Array) -> Array:
    """ω̇ × l + ω × (ω × l)."""
    return cross(w_dot, arm) + cross(w, cross(w, arm))


def _tip(x: Motion) -> tuple[Array, Array]:
    k = x.tip_link
    arm = x.tip - x.O[k]
    velocity = x.v[k] + cross(x.w[k], arm)
    return (
        np.stack([x.v_tip, x.v_tip_dot]),
        np.stack([velocity, x.v_dot[k] + _carried(x.w[k], x.w_dot[k], arm)]),
    )


def _net_moment(x: Motion) -> tuple[Array, Array]:
    return x.N_net, times(x.I_com, x.w_dot) + cross(x.w, times(x.I_com, x.w))


def _net_force(x: Motion) -> tuple[Array, Array]:
    of_com = x.v_dot + _carried(x.w, x.w_dot, x.p)
    return x.F_net, x.mass[:, None] * of_com


def _force(x: Motion) -> tuple[Array, Array]:
    return x.F, x.gathered(x.F, x.f_tip[3:]) + x.F_net


def _moment(x: Motion) -> tuple[Array, Array]:
    from_links = x.N + cross(x.arm, x.F)
    from_tip = x.f_tip[:3] + cross(x.tip - x.O[x.tip_link], x.f_tip[3:])
    return x.N, x.gathered(from_links, from_tip) + cross(x.p, x.F_net) + x.N_net


def times(matrices: Array, vectors: Array) -> Array:
    """Products of stacked matrices and vectors."""
    return (matrices @ vectors[..., None])[..., 0]


def _joint_moment(case: Case) -> float:
    x = pins(case)
    return apart((x.h * x.N).sum(axis=1), newton_euler.by_operators(x))


def _gravity(case: Case) -> float:
    """Raising the base with 9.8 m/s² does what weights do."""
    x = pins(case)
    raised = newton_euler.joint_forces(x, np.array([0.0, 0.0, 9.8]))
    weights = newton_euler.slope_of_potential_energy(x, np.array([0.0, 0.0, -9.8]))
    return apart(raised, newton_euler.joint_forces(x) + weights)


def _whole(case: Case) -> float:
    x = pins(case)
    return apart(newton_euler.joint_forces(x), newton_euler.by_operators(x))


SECTION_2: tuple[Entry, ...] = (
    holds(
        "(2.1)",
        "the base, and gravity",
        "ω(N+1) = 0; v(N+1) = 0; ω̇(N+1) = 0; v̇(N+1) = 0 or (9.8 m/2) e₃",
        "the base at rest, or raised with v̇(N+1) = 9.8 m/s² e₃ in place of weights",
        _gravity,
        note="The s of m/s² is lost; whether by the printer or by the scan cannot be told, and the "
        "text before has it. Checked against the slope of the potential energy.",
    ),
    holds(
        "(2.2)",
        "angular velocity of a link",
        "ω(k) = ω(k+1) + h(k) θ̇(k)",
        "ω_k = ω_p + h_k v_k, in world axes",
        on_pins(_angular_velocity),
    ),
    holds(
        "(2.3)",
        "velocity of O(k)",
        "v(k) = v(k+1) + ω(k+1) × ℓ(k+1,k)",
        "v_k = v_p + ω_p × l(p,k)",
        on_pins(_velocity),
    ),
    holds(
        "(2.4)",
        "angular acceleration of a link",
        "ω̇(k) = ω̇(k+1) + h(k) θ̈(k) + ω(k+1) × h(k) θ̇(k)",
        "ω̇_k = ω̇_p + h_k v̇_k + ω_p × h_k v_k",
        on_pins(_angular_acceleration),
    ),
    holds(
        "(2.5)",
        "acceleration of O(k)",
        "v̇(k) = v̇(k+1) + ω̇(k+1) × ℓ(k+1,k) + ω(k+1) × [ω(k+1) × ℓ(k+1,k)]",
        "v̇_k = v̇_p + ω̇_p × l(p,k) + ω_p × (ω_p × l(p,k))",
        on_pins(_acceleration),
    ),
    holds(
        "(2.6)",
        "acceleration of the centre of mass",
        "v̇ᶜ(k) = v̇(k) + ω̇(k) × p(k) + ω(k) × [ω(k) × p(k)]",
        "the same",
        on_pins(_acceleration_of_com),
    ),
    holds(
        "(2.7)",
        "velocity and acceleration of the tip",
        "ω(0) = ω(1); v(0) = v(1) + ω(1) × ℓ(1,0); ω̇(0) = ω̇(1); "
        "v̇(0) = v̇(1) + ω̇(1) × ℓ(1,0) + ω(1) × [ω(1) × ℓ(1,0)]",
        "the same at the node, on its body",
        on_pins(_tip),
    ),
    definition(
        "(2.8)",
        "the environment",
        "F(0) = F_ext; N(0) = N_ext",
        "(N(0), F(0)) = f, what the node does to its surroundings",
    ),
    holds(
        "(2.9)",
        "Euler's equation",
        "Nᶜ(k) = Iᶜ(k) ω̇(k) + ω(k) × Iᶜ(k)·ω(k)",
        "rate of the angular momentum about the centre of mass",
        on_pins(_net_moment),
        note="Against ∫ r × r̈ dm, with r̈ from differences.",
    ),
    holds(
        "(2.10)",
        "Newton's equation",
        "Fᶜ(k) = m(k) v̇ᶜ(k)",
        "rate of the momentum, with v̇ᶜ of (2.6)",
        on_pins(_net_force),
    ),
    holds(
        "(2.11)",
        "balance of forces",
        "F(k) = F(k-1) + Fᶜ(k)",
        "F_k = Σ_c F_c + Fᶜ_k",
        on_pins(_force),
        note="Against the balance of all links beyond the joint at once.",
    ),
    holds(
        "(2.12)",
        "balance of moments",
        "N(k) = N(k-1) + ℓ(k,k-1) × F(k-1) + p(k) × Fᶜ(k) + Nᶜ(k)",
        "N_k = Σ_c (N_c + l(k,c) × F_c) + p_k × Fᶜ_k + Nᶜ_k",
        on_pins(_moment),
    ),
    holds(
        "(2.13)",
        "joint moment",
        "T(k) = hᵀ(k) N(k)",
        "τ_k = h_k* N_k, which is 𝓜 v̇ + C + J* f",
        _joint_moment,
    ),
    holds(
        "RNE",
        "the recursive Newton-Euler equations, (2.1) to (2.13)",
        "for k = N ... 1: (2.2) to (2.6); for k = 1 ... N: (2.9) to (2.13)",
        "τ = 𝓜 v̇ + C + J* f",
        _whole,
        note="The loops as printed, in world axes, against the operators in body axes.",
    ),
)
