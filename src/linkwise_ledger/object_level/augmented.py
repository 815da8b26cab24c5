"""Document 003, section 6: an object that several manipulators hold, and the augmented object."""

from __future__ import annotations

import numpy as np

from linkwise.model.hinges import Pin
from linkwise.models import chain
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds
from linkwise_ledger.jpl_88_11.motion import with_hinges
from linkwise_ledger.object_level.held import Held, grasped, together
from linkwise_ledger.object_level.manipulator import Manipulator, inverted


def _freedom(case: Case) -> float:
    """Six of manipulators of six joints, three of those of three joints in a plane."""
    spatial = together(lambda _: 0.0).build(case)
    flat = with_hinges(chain(3, length=0.4, mass=1.0), lambda k, was: Pin((0.0, 0.0, 1.0)))
    postures = [np.array([0.4, 0.5, 0.7]), np.array([-0.3, 0.9, 0.6])]
    tip = flat.nodes[-1].name
    plane = grasped([(flat, tip, q) for q in postures], np.zeros(3), case.seed)
    return float(abs(spatial.freedom.shape[1] - 6) + abs(plane.freedom.shape[1] - 3))


def particle_energy(h: Held, theta: Array) -> float:
    """Kinetic energy of the particles of the object."""
    velocities = theta[:3] + cross(theta[3:], h.particles)
    return 0.5 * float(h.masses @ np.sum(velocities**2, axis=1))


def _energy(h: Held) -> float:
    v_C = h.theta[:3] + cross(h.theta[3:], h.r)
    w = h.theta[3:]
    return apart(0.5 * (h.m * v_C @ v_C + w @ h.I_C @ w), particle_energy(h, h.theta))


def at_centre(h: Held) -> Array:
    """The velocities (v_C, ω_C) of the centre of mass, that of the particles."""
    w = h.theta[3:]
    v_C = h.masses @ (h.theta[:3] + cross(w, h.particles)) / h.masses.sum()
    return np.concatenate([v_C, w])


def _at_centre(h: Held) -> float:
    """(57)."""
    zero = np.zeros((3, 3))
    inertia = blocks(h.m * np.eye(3), zero, zero, h.I_C)
    found = 0.5 * at_centre(h) @ inertia @ at_centre(h)
    return apart(found, particle_energy(h, h.theta))


def _shifted(h: Held) -> float:
    """(58)."""
    V = blocks(np.eye(3), skew(h.r), np.zeros((3, 3)), np.eye(3))
    return apart(V @ at_centre(h), h.theta)


def _load_0(h: Held) -> float:
    return apart(h.load_0, h.seen_load)


def _load_energy(h: Held) -> float:
    """(60), with ẋ as the last of the effectors sees it."""
    m = h.arms[-1]
    x_dot = m.x_rate(m.v)
    return apart(0.5 * x_dot @ h.load @ x_dot, particle_energy(h, h.theta))


def _load(h: Held) -> float:
    """(61), for all joint velocities of the last manipulator."""
    m = h.arms[-1]
    found = m.seen_jacobian.T @ h.load @ m.seen_jacobian
    return apart(found, m.seen_basic.T @ h.seen_load @ m.seen_basic)


def _loaded(h: Held) -> float:
    """Lemma 3, against the mechanisms with the object in their hands."""
    errors = (apart(m.Lambda + h.load, h.loaded(i).Lambda) for i, m in enumerate(h.arms))
    return max(errors)


def _augmented(h: Held) -> float:
    """(63): energies of all bodies and particles, for all pairs of ẋ."""
    back = [inverted(m.seen_jacobian) for m in h.arms]
    arms = sum(b.T @ m.energies @ b for b, m in zip(back, h.arms, strict=True))
    last = h.arms[-1].seen_basic @ back[-1]  # E⁻¹, seen
    return apart(h.Lambda, arms + last.T @ h.seen_load @ last)


def _total(h: Held) -> float:
    """T of this motion."""
    m = h.arms[-1]
    x_dot = m.x_rate(m.v)
    found = 0.5 * x_dot @ h.load @ x_dot
    found += sum(0.5 * x_dot @ m.Lambda @ x_dot for m in h.arms)
    return apart(found, particle_energy(h, h.theta) + sum(m.energy(m.v) for m in h.arms))


def _moves(h: Held) -> float:
    """(64), for effectors that push with any forces."""
    F = h.Lambda @ h.drawn(6) + h.mu + h.p
    return apart(h.Lambda @ h.x_acceleration(h.torques(F)) + h.mu + h.p, F)


def _weightless(m: Manipulator) -> Manipulator:
    return Manipulator(m.mech.with_gravity(np.zeros(3)), m.node, m.q, m.v, m.seed)


def _centrifugal(h: Held) -> float:
    """(65): without gravity, F_⊕ = Λ_⊕ F* + μ_⊕ gives F*."""
    wanted, light = h.drawn(6), h.like(_weightless)
    torques = [
        t - m.null_torque @ m.g
        for t, m in zip(h.torques(h.Lambda @ wanted + h.mu), h.arms, strict=True)
    ]
    return apart(light.x_acceleration(torques), wanted)


def _gravity(h: Held) -> float:
    """(66): at rest, F_⊕ = Λ_⊕ F* + p_⊕ gives F*."""
    wanted, still = h.drawn(6), h.like(Manipulator.still)
    torques = [
        t - m.null_torque @ m.b
        for t, m in zip(h.torques(h.Lambda @ wanted + h.p), h.arms, strict=True)
    ]
    return apart(still.x_acceleration(torques), wanted)


def _resultant(h: Held) -> float:
    """(67): the effectors' powers add up to that of F_⊕, for all motions that are allowed."""
    shares = h.shares(h.drawn(6))
    ways = np.split(h.freedom, np.cumsum(h.sizes))
    joints = zip(h.arms, shares, ways, strict=False)
    powers = sum((m.J.T @ F) @ way for m, F, way in joints)
    return apart(powers, sum(shares) @ h.arms[0].E @ ways[-1])


def _torques(h: Held) -> float:
    pairs = zip(h.arms, h.shares(h.drawn(6)), strict=True)
    return max(apart(m.J.T @ F, F @ m.seen_jacobian) for m, F in pairs)


def _controlled(h: Held) -> float:
    """(68), (69): ẍ = F*."""
    wanted = h.drawn(6, 1)
    torques = h.torques(h.Lambda @ wanted + h.mu + h.p, 2)
    return apart(h.x_acceleration(torques), wanted)


AUGMENTED: tuple[Entry, ...] = (
    holds(
        "sec. 6, n_s",
        "degrees of freedom of the parallel system",
        "n_s = 3 in the planar case (n = m = 3), n_s = 6 in the spatial case (n = m = 6)",
        "the same: dimensions of what the grasps allow",
        _freedom,
        note="Two arms of three parallel pins; three arms of six joints.",
    ),
    holds(
        "(56)",
        "kinetic energy of the load",
        "T_L = ½ (m_L v_Cᵀ v_C + ωᵀ ℑ_L(C) ω)",
        "the same: that of its particles",
        together(_energy),
    ),
    holds(
        "(57)",
        "kinetic energy matrix at the centre of mass",
        "Λ_L(C) = [[m_L I, 0], [0, ℑ_L]]",
        "the same",
        together(_at_centre),
        note="ℑ_L is ℑ_L(C); the scan writes it J.",
    ),
    holds(
        "(58)",
        "velocities at the operational point",
        "(v, ω) = [[I, r̂], [0, I]] (v_C, ω_C)",
        "the same, r from the operational point to the centre of mass",
        together(_shifted),
        note="The sign is right as printed: v = v_C - ω × r. That of V in (38) is the other one, "
        "since p_m points to where the velocity is asked for, and r away from it.",
    ),
    holds(
        "(59)",
        "kinetic energy matrix at the operational point",
        "Λ_L(0) = [[m_L I, -m_L r̂], [-m_L r̂ᵀ, ℑ_L + m_L r̂ᵀ r̂]]",
        "the same",
        together(_load_0),
        note="The signs are right as printed.",
    ),
    holds(
        "(60)",
        "kinetic energy of the load by operational velocities",
        "T_L = ½ ẋᵀ Λ_L(x) ẋ",
        "the same",
        together(_load_energy),
    ),
    holds(
        "(61)",
        "kinetic energy matrix of the load in x",
        "Λ_L(x) = E⁻ᵀ(x) Λ_L(0) E⁻¹(x)",
        "the same",
        together(_load),
    ),
    holds(
        "Lemma 3",
        "effector and load",
        "the operational space kinetic energy matrix of the effector and load is (62)",
        "Λ of the manipulator with the load in its hand is Λ + Λ_L",
        together(_loaded),
        note="The load is a payload of the mechanism, and Λ that of (17).",
    ),
    holds(
        "(62)",
        "effector and load",
        "Λ_effector+load(x) = Λ_effector(x) + Λ_L(x)",
        "the same",
        together(_loaded),
        note="It holds of redundant manipulators too, where no total kinetic energy in ẋ says so: "
        "section 7.1 below.",
    ),
    holds(
        "Theorem 3",
        "augmented object",
        "the kinetic energy matrix of the augmented object is (63)",
        "½ ẋᵀ Λ_⊕ ẋ is the kinetic energy of all bodies and of the object",
        together(_augmented),
    ),
    holds(
        "(63)",
        "augmented object",
        "Λ_⊕(x) = Λ_L(x) + Σ_i Λ_i(x)",
        "the same",
        together(_augmented),
    ),
    holds(
        "sec. 6.1, T",
        "total kinetic energy",
        "T = ½ ẋᵀ Λ_L(x) ẋ + Σ_i ½ ẋᵀ Λ_i(x) ẋ",
        "the same",
        together(_total),
    ),
    holds(
        "(64)",
        "motion of the augmented object",
        "Λ_⊕(x) ẍ + μ_⊕(x, ẋ) + p_⊕(x) = F_⊕",
        "the same, for Γ_i = J_iᵀ F_i with any F_i of the resultant F_⊕",
        together(_moves),
        note="Accelerations that it is held against come of d'Alembert's principle among the "
        "motions that the grasps allow; ẍ is seen by one effector.",
    ),
    holds(
        "(65)",
        "centrifugal and Coriolis forces add",
        "μ_⊕(x, ẋ) = μ_L(x, ẋ) + Σ_i μ_i(x, ẋ)",
        "the same",
        together(_centrifugal),
    ),
    holds(
        "(66)",
        "gravity adds",
        "p_⊕(x) = p_L(x) + Σ_i p_i(x)",
        "the same",
        together(_gravity),
    ),
    holds(
        "(67)",
        "resultant of the effectors' forces",
        "F_⊕ = Σ_i F_i",
        "the same: the power of the torques is that of F_⊕ in all motions that are allowed",
        together(_resultant),
    ),
    holds(
        "sec. 6.1, Γ_i",
        "torques of one manipulator",
        "Γ_i = J_iᵀ(q_i) F_i",
        "the same",
        together(_torques),
    ),
    definition(
        "(68)",
        "control of the augmented object",
        "F_⊕ = Λ̂_⊕(x) F* + μ̂_⊕(x, ẋ) + p̂_⊕(x)",
        "the same; with exact estimates it gives (69)",
        together(_controlled),
    ),
    holds(
        "(69)",
        "a unit mass, unit inertia object",
        "I_m ẍ = F*",
        "the same, under (68)",
        together(_controlled),
    ),
)
