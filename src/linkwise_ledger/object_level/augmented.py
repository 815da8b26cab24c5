"""Object level, section 6: several manipulators hold an object; the augmented object."""

from __future__ import annotations

import numpy as np

from linkwise.model.hinges import Pin
from linkwise.models import chain
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross
from linkwise_ledger.case import Case, apart
from linkwise_ledger.jpl_88_11.motion import with_hinges
from linkwise_ledger.object_level.held import Held, grasped, held
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.section import Section


def particle_energy(h: Held, theta: Array) -> float:
    """Kinetic energy of the particles of the object."""
    velocities = theta[:3] + cross(theta[3:], h.particles)
    return 0.5 * float(h.masses @ np.sum(velocities**2, axis=1))


def at_centre(h: Held) -> Array:
    """The velocities (v_C, ω_C) of the centre of mass, that of the particles."""
    w = h.theta[3:]
    v_C = h.masses @ (h.theta[:3] + cross(w, h.particles)) / h.masses.sum()
    return np.concatenate([v_C, w])


def _weightless(m: Manipulator) -> Manipulator:
    return Manipulator(m.mech.with_gravity(np.zeros(3)), m.node, m.q, m.v, m.seed)


AUGMENTED = Section()


@AUGMENTED("""sec. 6, n_s  degrees of freedom of the parallel system
    printed  n_s = 3 in the planar case (n = m = 3), n_s = 6 in the spatial case (n = m = 6)
    holds    the same: dimensions of what the grasps allow
    note     Two arms of three parallel pins; three arms of six joints.
""")
def _(case: Case) -> float:
    spatial = held(case)
    flat = with_hinges(chain(3, length=0.4, mass=1.0), lambda k, was: Pin((0.0, 0.0, 1.0)))
    postures = [np.array([0.4, 0.5, 0.7]), np.array([-0.3, 0.9, 0.6])]
    tip = flat.nodes[-1].name
    plane = grasped([(flat, tip, q) for q in postures], np.zeros(3), case.seed)
    return float(abs(spatial.freedom.shape[1] - 6) + abs(plane.freedom.shape[1] - 3))


@AUGMENTED.on(held)("""(56)  kinetic energy of the load
    printed  T_L = ½ (m_L v_Cᵀ v_C + ωᵀ ℑ_L(C) ω)
    holds    the same: that of its particles
""")
def _(h: Held) -> float:
    v_C = h.theta[:3] + cross(h.theta[3:], h.r)
    w = h.theta[3:]
    return apart(0.5 * (h.m * v_C @ v_C + w @ h.I_C @ w), particle_energy(h, h.theta))


@AUGMENTED.on(held)("""(57)  kinetic energy matrix at the centre of mass
    holds    Λ_L(C) = [[m_L I, 0], [0, ℑ_L]]
    note     ℑ_L is ℑ_L(C); the scan writes it J.
""")
def _(h: Held) -> float:
    zero = np.zeros((3, 3))
    inertia = blocks(h.m * np.eye(3), zero, zero, h.I_C)
    computed = 0.5 * at_centre(h) @ inertia @ at_centre(h)
    return apart(computed, particle_energy(h, h.theta))


AUGMENTED.on(held)("""(58)  velocities at the operational point
    printed  (v, ω) = [[I, r̂], [0, I]] (v_C, ω_C)
    holds    the same, r from the operational point to the centre of mass
    note     The sign is right as printed: v = v_C - ω × r. That of V in (38) is the other one,
             since p_m points to where the velocity is taken, and r away from it.
""")(lambda h: (blocks(np.eye(3), skew(h.r), np.zeros((3, 3)), np.eye(3)) @ at_centre(h), h.theta))
AUGMENTED.on(held)("""(59)  kinetic energy matrix at the operational point
    holds    Λ_L(0) = [[m_L I, -m_L r̂], [-m_L r̂ᵀ, ℑ_L + m_L r̂ᵀ r̂]]
    note     The signs are right as printed.
""")(lambda h: (h.load_0, h.seen_load))


@AUGMENTED.on(held)("""(60)  kinetic energy of the load by operational velocities
    holds    T_L = ½ ẋᵀ Λ_L(x) ẋ
""")
def _(h: Held) -> float:
    m = h.arms[-1]
    x_dot = m.x_rate(m.v)
    return apart(0.5 * x_dot @ h.load @ x_dot, particle_energy(h, h.theta))


@AUGMENTED.on(held)("""(61)  kinetic energy matrix of the load in x
    holds    Λ_L(x) = E⁻ᵀ(x) Λ_L(0) E⁻¹(x)
""")
def _(h: Held) -> float:
    m = h.arms[-1]
    computed = m.seen_jacobian.T @ h.load @ m.seen_jacobian
    return apart(computed, m.seen_basic.T @ h.seen_load @ m.seen_basic)


@AUGMENTED.on(held)("""Lemma 3  effector and load
    printed  the operational space kinetic energy matrix of the effector and load is (62)
    holds    Λ of the manipulator with the load in its hand is Λ + Λ_L
    note     The load is a payload of the mechanism, and Λ that of (17).
(62)  effector and load
    holds    Λ_effector+load(x) = Λ_effector(x) + Λ_L(x)
    note     It holds of redundant manipulators too, where no total kinetic energy in ẋ says so:
             section 7.1 below.
""")
def _(h: Held) -> float:
    """Lemma 3, against the mechanisms with the object in their hands."""
    errors = (apart(m.Lambda + h.load, h.loaded(i).Lambda) for i, m in enumerate(h.arms))
    return max(errors)


@AUGMENTED.on(held)("""Theorem 3  augmented object
    printed  the kinetic energy matrix of the augmented object is (63)
    holds    ½ ẋᵀ Λ_⊕ ẋ is the kinetic energy of all bodies and of the object
(63)  augmented object
    holds    Λ_⊕(x) = Λ_L(x) + Σ_i Λ_i(x)
""")
def _(h: Held) -> float:
    back = [inverted(m.seen_jacobian) for m in h.arms]
    arms = sum(b.T @ m.energies @ b for b, m in zip(back, h.arms, strict=True))
    last = h.arms[-1].seen_basic @ back[-1]  # E⁻¹, seen
    return apart(h.Lambda, arms + last.T @ h.seen_load @ last)


@AUGMENTED.on(held)("""sec. 6.1, T  total kinetic energy
    holds    T = ½ ẋᵀ Λ_L(x) ẋ + Σ_i ½ ẋᵀ Λ_i(x) ẋ
""")
def _(h: Held) -> float:
    m = h.arms[-1]
    x_dot = m.x_rate(m.v)
    computed = 0.5 * x_dot @ h.load @ x_dot
    computed += sum(0.5 * x_dot @ m.Lambda @ x_dot for m in h.arms)
    return apart(computed, particle_energy(h, h.theta) + sum(m.energy(m.v) for m in h.arms))


@AUGMENTED.on(held)("""(64)  motion of the augmented object
    printed  Λ_⊕(x) ẍ + μ_⊕(x, ẋ) + p_⊕(x) = F_⊕
    holds    the same, for Γ_i = J_iᵀ F_i with any F_i of the resultant F_⊕
    note     Accelerations that it is held against come of d'Alembert's principle among the motions
             that the grasps allow; ẍ is seen by one effector.
""")
def _(h: Held) -> float:
    F = h.Lambda @ h.drawn(6) + h.mu + h.p
    return apart(h.Lambda @ h.x_acceleration(h.torques(F)) + h.mu + h.p, F)


@AUGMENTED.on(held)("""(65)  centrifugal and Coriolis forces add
    holds    μ_⊕(x, ẋ) = μ_L(x, ẋ) + Σ_i μ_i(x, ẋ)
""")
def _(h: Held) -> float:
    target, light = h.drawn(6), h.like(_weightless)
    torques = [
        t - m.null_torque @ m.g
        for t, m in zip(h.torques(h.Lambda @ target + h.mu), h.arms, strict=True)
    ]
    return apart(light.x_acceleration(torques), target)


@AUGMENTED.on(held)("""(66)  gravity adds
    holds    p_⊕(x) = p_L(x) + Σ_i p_i(x)
""")
def _(h: Held) -> float:
    target, still = h.drawn(6), h.like(Manipulator.still)
    torques = [
        t - m.null_torque @ m.b
        for t, m in zip(h.torques(h.Lambda @ target + h.p), h.arms, strict=True)
    ]
    return apart(still.x_acceleration(torques), target)


@AUGMENTED.on(held)("""(67)  resultant of the effectors' forces
    printed  F_⊕ = Σ_i F_i
    holds    the same: the power of the torques is that of F_⊕ in all motions that are allowed
""")
def _(h: Held) -> float:
    shares = h.shares(h.drawn(6))
    ways = np.split(h.freedom, np.cumsum(h.sizes))
    joints = zip(h.arms, shares, ways, strict=False)
    powers = sum((m.J.T @ F) @ way for m, F, way in joints)
    return apart(powers, sum(shares) @ h.arms[0].E @ ways[-1])


@AUGMENTED.on(held)("""sec. 6.1, Γ_i  torques of one manipulator
    holds    Γ_i = J_iᵀ(q_i) F_i
""")
def _(h: Held) -> float:
    pairs = zip(h.arms, h.shares(h.drawn(6)), strict=True)
    return max(apart(m.J.T @ F, F @ m.seen_jacobian) for m, F in pairs)


@AUGMENTED.on(held)("""(68)  control of the augmented object
    printed  F_⊕ = Λ̂_⊕(x) F* + μ̂_⊕(x, ẋ) + p̂_⊕(x)
    means    the same; with exact estimates it gives (69)
(69)  a unit mass, unit inertia object
    printed  I_m ẍ = F*
    holds    the same, under (68)
""")
def _(h: Held) -> float:
    target = h.drawn(6, 1)
    torques = h.torques(h.Lambda @ target + h.mu + h.p, 2)
    return apart(h.x_acceleration(torques), target)
