"""Document 003, section 5 up to (40): macro- and mini-manipulators, their motion and energy."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Entry, definition, holds
from linkwise_ledger.object_level.serial import Serial, in_series


def _counts(s: Serial) -> float:
    return float(s.n_M < 1 or s.mini.n != 6 or s.whole.n != s.n_M + 6)


def _positions(s: Serial) -> float:
    return apart(s.macro.pose.p + s.p_m, s.whole.pose.p)


def _parts(s: Serial) -> tuple[Array, Array, Array]:
    """(v, ω) of the whole, of the macro, and of the mini in the axes of R_0, all seen."""
    turned = s.turn @ s.mini.twist(s.whole.v[s.n_M :])
    return s.whole.twist(s.whole.v), s.macro.twist(s.macro.v), turned


def _linear(s: Serial) -> float:
    whole, macro, mini = _parts(s)
    return apart(macro[:3] + mini[:3] + np.cross(macro[3:], s.p_m), whole[:3])


def _angular(s: Serial) -> float:
    whole, macro, mini = _parts(s)
    return apart(macro[3:] + mini[3:], whole[3:])


def _velocities(s: Serial) -> float:
    whole, macro, mini = _parts(s)
    return apart(s.V @ macro + mini, whole)


def _jacobian(s: Serial) -> float:
    return apart(np.hstack([s.V @ s.J_M, s.J_m]), s.whole.seen_basic)


def _lever(s: Serial) -> float:
    """V takes (v, ω) of R_M, seen as moving with the macro, to the operational point."""
    held = np.concatenate([s.macro.v, np.zeros(6)])
    return apart(s.V @ s.macro.twist(s.macro.v), s.whole.twist(held))


def _blocks(s: Serial) -> float:
    found = np.block([[s.A_11, s.A_21.T], [s.A_21, s.A_22]])
    return apart(found, s.whole.energies)


def _lemma_1(s: Serial) -> float:
    """A_22 against the energies of the mini-manipulator on the ground."""
    return apart(s.A_22, s.mini.energies)


def _whole_energy(s: Serial) -> float:
    v = s.whole.v
    return apart(0.5 * v @ s.whole.A @ v, s.whole.energy(v))


def _mini_energy(s: Serial) -> float:
    v = s.mini.v
    return apart(0.5 * v @ s.mini.A @ v, s.mini.energy(v))


def _held_energy(s: Serial) -> float:
    """(40): the bodies of the whole, with the macro at rest, and the mini alone."""
    v = np.concatenate([np.zeros(s.n_M), s.mini.v])
    found = 0.5 * s.mini.v @ s.A_22 @ s.mini.v
    return max(apart(found, s.whole.energy(v)), apart(found, s.mini.energy(s.mini.v)))


def _defined(s: Serial) -> float:
    found = s.whole.J_0 @ s.whole.A_inv @ s.whole.J_0.T
    return apart(found, s.whole.seen_response)


MACRO_MINI: tuple[Entry, ...] = (
    definition(
        "(35)",
        "what is assumed of macro and mini",
        "n_M ≥ 1 and n_m = m",
        "the mini-manipulators here have six joints, the macros those of the ledger's mechanisms",
        in_series(_counts),
    ),
    holds(
        "sec. 5.1, p",
        "position of the operational point",
        "p = p_M + p_m",
        "the same",
        in_series(_positions),
    ),
    holds(
        "sec. 5.1, v",
        "linear velocity of the operational point",
        "v = v_M + v_m + ω_M × p_m",
        "the same, in the axes of R_0",
        in_series(_linear),
    ),
    holds(
        "sec. 5.1, ω",
        "angular velocity of the effector",
        "ω = ω_M + ω_m",
        "the same, in the axes of R_0",
        in_series(_angular),
    ),
    holds(
        "(36)",
        "velocities with respect to R_0",
        "(v, ω)_{R_0} = [[I, -p̂_m(0)], [0, I]] (v_M, ω_M)_{R_0} + diag(S_M, S_M) (v_m, ω_m)_{R_M}",
        "the same",
        in_series(_velocities),
    ),
    holds(
        "(37)",
        "basic Jacobian of the combination",
        "J_0 = [V J_M(0)  J_m(0)]",
        "the same",
        in_series(_jacobian),
    ),
    definition(
        "(38)",
        "from R_M to the operational point",
        "V = [[I, -p̂_m(0)], [0, I]]",
        "φ* of the lever p_m, in the order (linear, angular)",
        in_series(_lever),
    ),
    definition(
        "(39)",
        "blocks of the kinetic energy matrix",
        "A(q) = [[A_11, A_12], [A_12ᵀ, A_22]]",
        "the same; A_21 of what follows is A_12ᵀ",
        in_series(_blocks),
    ),
    holds(
        "Lemma 1",
        "the mini-manipulator alone",
        "A_m is identical to A_22 of (39)",
        "𝓜 of the mini on the ground is the last block of 𝓜",
        in_series(_lemma_1),
    ),
    holds(
        "sec. 5.2, T",
        "kinetic energy of the combination",
        "T(q, q̇) = ½ q̇ᵀ A q̇",
        "the same",
        in_series(_whole_energy),
        note="The scan puts a second dot on the last q̇.",
    ),
    holds(
        "sec. 5.2, T_m",
        "kinetic energy of the mini-manipulator",
        "T_m = ½ q̇_mᵀ A_m q̇_m",
        "the same",
        in_series(_mini_energy),
    ),
    holds(
        "(40)",
        "kinetic energy with the macro at rest",
        "T(q, q̇)|_{q̇_M = 0} = ½ [0 q̇_mᵀ] [[A_11, A_12], [A_12ᵀ, A_22]] (0, q̇_m) = ½ q̇_mᵀ A_22 q̇_m",
        "the same, and it is T_m",
        in_series(_held_energy),
    ),
    definition(
        "sec. 5.2, Λ_0",
        "pseudo kinetic energy matrix",
        "(J_0 A⁻¹ J_0ᵀ)⁻¹",
        "",
        in_series(_defined),
    ),
)
