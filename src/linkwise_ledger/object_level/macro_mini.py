"""Object level, section 5 up to (40): a macro- and a mini-manipulator in series."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import Case, apart
from linkwise_ledger.grasp import solved
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import arm, mini
from linkwise_ledger.section import Section


class Serial:
    """The redundant manipulator of a case, in its two parts.

    Args:
        combined: The combined manipulator.
        macro: The macro-manipulator alone, its effector being the frame R_M.
        mini: The mini-manipulator alone, on the ground, oriented as on R_M.

    Attributes:
        n_M: Degrees of freedom of the macro-manipulator.
    """

    QUANTITIES = ("combined.A", "combined.J_0", "macro.J_0", "mini.J_0", "mini.A", "p_m", "rot_M")

    def __init__(self, complete: Manipulator, macro: Manipulator, mini: Manipulator) -> None:
        self.combined, self.macro, self.mini = complete, macro, mini
        self.n_M = macro.n

    def again(self) -> Serial:
        """The same, with nothing computed yet."""
        return Serial(self.combined.again(), self.macro.again(), self.mini.again())

    @cached_property
    def rot_M(self) -> Array:
        """S_M(q_M): from the axes of R_M to those of R_0."""
        return self.macro.pose.rot

    @cached_property
    def p_m(self) -> Array:
        """p_m in the axes of R_0."""
        return self.macro.pose.rot @ self.mini.pose.p

    @property
    def turn(self) -> Array:
        """diag(S_M, S_M)."""
        return blocks(self.rot_M, np.zeros((3, 3)), np.zeros((3, 3)), self.rot_M)

    @property
    def V(self) -> Array:
        """(38)."""
        return blocks(np.eye(3), -skew(self.p_m), np.zeros((3, 3)), np.eye(3))

    @property
    def J_M(self) -> Array:
        """J_M(0), the basic Jacobian of the macro-manipulator."""
        return self.macro.J_0

    @property
    def J_m(self) -> Array:
        """J_m(0), the basic Jacobian of the mini-manipulator in the axes of R_0."""
        return self.turn @ self.mini.J_0

    @property
    def A_11(self) -> Array:
        """Of (39)."""
        return self.combined.A[: self.n_M, : self.n_M]

    @property
    def A_21(self) -> Array:
        """A_12ᵀ of (39)."""
        return self.combined.A[self.n_M :, : self.n_M]

    @property
    def A_22(self) -> Array:
        """Of (39)."""
        return self.combined.A[self.n_M :, self.n_M :]

    @property
    def A_11_bar(self) -> Array:
        """(44)."""
        return inverted(self.A_11 - self.A_21.T @ np.linalg.solve(self.A_22, self.A_21))

    @property
    def added(self) -> Array:
        """Λ̄_C of (42)."""
        left = self.V @ self.J_M - self.J_m @ np.linalg.solve(self.A_22, self.A_21)
        return left @ self.A_11_bar @ left.T

    @property
    def mobility_m(self) -> Array:
        """Λ_m(0)⁻¹ = J_m A_m⁻¹ J_mᵀ."""
        return self.J_m @ solved(self.mini.A, self.J_m.T)

    @cached_property
    def seen_mobility_m(self) -> Array:
        """The response of the mini-manipulator alone to forces, in the axes of R_0."""
        rot = self.macro.pose.rot
        turn = blocks(rot, np.zeros((3, 3)), np.zeros((3, 3)), rot)
        return turn @ self.mini.seen_response @ turn.T

    @property
    def w(self) -> Array:
        """Unit vectors (8, 6): drawn ones, and those along which the macro adds nothing."""
        drawn = self.combined.drawn(24, 4).reshape(4, 6)
        axes = np.linalg.eigh(self.added)[1].T[:4]
        return np.vstack([drawn / np.linalg.norm(drawn, axis=1, keepdims=True), axes])


@cache
def serial(case: Case) -> Serial:
    """The macro-manipulator of a case, and its mini-manipulator."""
    complete, light = arm(case), mini(case)
    macro = case.mech.without_armature().with_gravity(light.mech.gravity)
    n = macro.nv
    return Serial(complete, Manipulator(macro, case.node, case.q, complete.v[:n], case.seed), light)


def _parts(s: Serial) -> tuple[Array, Array, Array]:
    """(v, ω) of the whole, of the macro, and of the mini in the axes of R_0, all seen."""
    turned = s.turn @ s.mini.twist(s.combined.v[s.n_M :])
    return s.combined.twist(s.combined.v), s.macro.twist(s.macro.v), turned


MACRO_MINI = Section()
MACRO_MINI.on(serial)("""(35)  what is assumed of macro and mini
    printed  n_M ≥ 1 and n_m = m
    means    the mini-manipulators here have six joints, the macros those of the ledger's mechanisms
""")(lambda s: float(s.n_M < 1 or s.mini.n != 6 or s.combined.n != s.n_M + 6))
MACRO_MINI.on(serial)("""sec. 5.1, p  position of the operational point
    holds    p = p_M + p_m
""")(lambda s: (s.macro.pose.p + s.p_m, s.combined.pose.p))


@MACRO_MINI.on(serial)("""sec. 5.1, v  linear velocity of the operational point
    printed  v = v_M + v_m + ω_M × p_m
    holds    the same, in the axes of R_0
""")
def _(s: Serial) -> float:
    complete, macro, mini = _parts(s)
    return apart(macro[:3] + mini[:3] + np.cross(macro[3:], s.p_m), complete[:3])


@MACRO_MINI.on(serial)("""sec. 5.1, ω  angular velocity of the effector
    printed  ω = ω_M + ω_m
    holds    the same, in the axes of R_0
""")
def _(s: Serial) -> float:
    complete, macro, mini = _parts(s)
    return apart(macro[3:] + mini[3:], complete[3:])


@MACRO_MINI.on(serial)("""(36)  velocities with respect to R_0
    holds    (v, ω)_{R_0} = [[I, -p̂_m(0)], [0, I]] (v_M, ω_M)_{R_0} + diag(S_M, S_M) (v_m,
             ω_m)_{R_M}
""")
def _(s: Serial) -> float:
    complete, macro, mini = _parts(s)
    return apart(s.V @ macro + mini, complete)


MACRO_MINI.on(serial)("""(37)  basic Jacobian of the combination
    holds    J_0 = [V J_M(0)  J_m(0)]
""")(lambda s: (np.hstack([s.V @ s.J_M, s.J_m]), s.combined.seen_basic))


@MACRO_MINI.on(serial)("""(38)  from R_M to the operational point
    printed  V = [[I, -p̂_m(0)], [0, I]]
    means    φ* of the lever p_m, in the order (linear, angular)
""")
def _(s: Serial) -> float:
    """V takes (v, ω) of R_M, seen as moving with the macro, to the operational point."""
    held = np.concatenate([s.macro.v, np.zeros(6)])
    return apart(s.V @ s.macro.twist(s.macro.v), s.combined.twist(held))


MACRO_MINI.on(serial)("""(39)  blocks of the kinetic energy matrix
    printed  A(q) = [[A_11, A_12], [A_12ᵀ, A_22]]
    means    the same; A_21 of what follows is A_12ᵀ
""")(lambda s: (np.block([[s.A_11, s.A_21.T], [s.A_21, s.A_22]]), s.combined.energies))
MACRO_MINI.on(serial)("""Lemma 1  the mini-manipulator alone
    printed  A_m is identical to A_22 of (39)
    holds    𝓜 of the mini on the ground is the last block of 𝓜
""")(lambda s: (s.A_22, s.mini.energies))
MACRO_MINI.on(serial)("""sec. 5.2, T  kinetic energy of the combination
    holds    T(q, q̇) = ½ q̇ᵀ A q̇
    note     The scan puts a second dot on the last q̇.
""")(lambda s: (0.5 * s.combined.v @ s.combined.A @ s.combined.v, s.combined.energy(s.combined.v)))
MACRO_MINI.on(serial)("""sec. 5.2, T_m  kinetic energy of the mini-manipulator
    holds    T_m = ½ q̇_mᵀ A_m q̇_m
""")(lambda s: (0.5 * s.mini.v @ s.mini.A @ s.mini.v, s.mini.energy(s.mini.v)))


@MACRO_MINI.on(serial)("""(40)  kinetic energy with the macro at rest
    printed  T(q, q̇)|_{q̇_M = 0} = ½ [0 q̇_mᵀ] [[A_11, A_12], [A_12ᵀ, A_22]] (0, q̇_m) = ½ q̇_mᵀ
             A_22 q̇_m
    holds    the same, and it is T_m
""")
def _(s: Serial) -> float:
    v = np.concatenate([np.zeros(s.n_M), s.mini.v])
    computed = 0.5 * s.mini.v @ s.A_22 @ s.mini.v
    return max(apart(computed, s.combined.energy(v)), apart(computed, s.mini.energy(s.mini.v)))


MACRO_MINI.on(serial)("""sec. 5.2, Λ_0  pseudo kinetic energy matrix
    means    (J_0 A⁻¹ J_0ᵀ)⁻¹
""")(lambda s: (s.combined.J_0 @ s.combined.A_inv @ s.combined.J_0.T, s.combined.seen_response))
