"""A macro- and a mini-manipulator in series: what section 5 of document 003 is tried on."""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import Case
from linkwise_ledger.grasp import solved
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import arm, mini


class Serial:
    """The redundant manipulator of a case, in its two parts.

    Args:
        whole: The combined manipulator.
        macro: The macro-manipulator alone, its effector being the frame R_M.
        mini: The mini-manipulator alone, on the ground, as it stands on R_M.

    Attributes:
        n_M: Degrees of freedom of the macro-manipulator.
    """

    QUANTITIES = ("whole.A", "whole.J_0", "macro.J_0", "mini.J_0", "mini.A", "p_m", "rot_M")

    def __init__(self, whole: Manipulator, macro: Manipulator, mini: Manipulator) -> None:
        self.whole, self.macro, self.mini = whole, macro, mini
        self.n_M = macro.n

    def again(self) -> Serial:
        """The same, with nothing computed yet."""
        return Serial(self.whole.again(), self.macro.again(), self.mini.again())

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
        return self.whole.A[: self.n_M, : self.n_M]

    @property
    def A_21(self) -> Array:
        """A_12ᵀ of (39)."""
        return self.whole.A[self.n_M :, : self.n_M]

    @property
    def A_22(self) -> Array:
        """Of (39)."""
        return self.whole.A[self.n_M :, self.n_M :]

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
        drawn = self.whole.drawn(24, 4).reshape(4, 6)
        axes = np.linalg.eigh(self.added)[1].T[:4]
        return np.vstack([drawn / np.linalg.norm(drawn, axis=1, keepdims=True), axes])


@cache
def serial(case: Case) -> Serial:
    """The macro-manipulator of a case, and its mini-manipulator."""
    whole, light = arm(case), mini(case)
    macro = case.mech.without_armature().with_gravity(light.mech.gravity)
    n = macro.nv
    return Serial(whole, Manipulator(macro, case.node, case.q, whole.v[:n], case.seed), light)
