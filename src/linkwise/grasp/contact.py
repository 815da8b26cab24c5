"""Contacts: which forces a finger transmits to an object, and how large they may be.

A contact leaves some motions of the object relative to the finger free, and transmits the forces
that do no work in them (001-II, Appendix A):

    ΔV = H(0)* W,     H(0) f = 0     so   f = S* λ   with   S H(0)* = 0

    kind            free (in the object's axes)          rows of S: transmitted
    rigid           nothing                              6  all moments, all forces
    edge            turn about the edge                  5  two moments, all forces
    soft_finger     turn about both tangents             4  moment about the normal, all forces
    point           all turns                            3  all forces
    frictionless    all turns, slide along the surface   1  force along the normal

A one-sided contact only pushes. With f_n the normal force, f_t the tangential force and m the
moments, it holds while

    press    f_n ≥ 0                                     else the contact breaks
    slip     |f_t| ≤ μ f_n                               else it slides
    twist    |m_n| ≤ γ f_n                               else it spins on the normal
    tip      |m_t| ≤ r f_n                               else it rolls off its edge or patch

and for the soft finger, by the elliptic law, slip and twist together: |f_t|² + (μ m_n / γ)² ≤
(μ f_n)². Each margin is in newtons and concave in the force: μ f_n - |f_t|, f_n - |m_n| / γ ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from linkwise.arguments import rows
from linkwise.errors import ModelError
from linkwise.model.hinges import Hinge, Locked, Pin, PointOnPlane, SoftFinger, Spherical
from linkwise.spatial.array import Array, constant, floats, frozen, unit
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import aligning
from linkwise.spatial.vector import cross

ContactKind: TypeAlias = Literal["rigid", "edge", "soft_finger", "point", "frictionless"]
FrictionLaw: TypeAlias = Literal["ellipse", "separate"]

LIMITS = ("press", "slip", "twist", "tip")
"""Limits of a one-sided contact, in the order of its margins."""

PERPENDICULAR = 1e-9
"""Largest deviation [rad] of the angle between an edge and its normal from a right angle."""

ROUNDING = 1e-14
"""Without friction, tangential forces below this fraction of the normal force count as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Contact:
    """Which forces a contact transmits, and how large they may be.

    The contact's frame is fixed on the object with its origin at the point of contact: the frame of
    node b of a loop, or `pose` for a grasp without a mechanism. Forces act on the object.

    Attributes:
        kind: "rigid", "edge", "soft_finger", "point" or "frictionless".
        friction: Coefficient μ; 0 resists no tangential force, like "frictionless".
        torsion: γ [m]: the moment about the normal is at most γ f_n. Default: that of an evenly
            pressed edge or patch of the given extent, μ r / 2 and 2 μ r / 3. Required for a soft
            finger.
        extent: r [m]: half the length of an edge, radius of a patch. Default: no moment tips it.
        normal: Into the object, in the contact's frame.
        axis: Along the edge, in the contact's frame.
        law: How slip and twist combine: "ellipse" or "separate".
        two_sided: Whether the contact cannot break, like a hinge; it then has no limits. Default:
            only for "rigid".
        pose: Of the contact's frame in the object's frame.
    """

    kind: ContactKind
    friction: float = 0.5
    torsion: float | None = None
    extent: float | None = None
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    law: FrictionLaw = "ellipse"
    two_sided: bool | None = None
    pose: Pose = field(default_factory=Pose.identity)

    def __post_init__(self) -> None:
        _word("kind of contact", self.kind, get_args(ContactKind))
        _word("friction law", self.law, get_args(FrictionLaw))
        put: Any = object.__setattr__
        if self.two_sided is None:
            put(self, "two_sided", self.kind == "rigid")
        put(self, "normal", tuple(unit(self.normal, "normal of a contact").tolist()))
        put(self, "axis", tuple(unit(self.axis, "axis of an edge").tolist()))
        put(self, "pose", Pose.of(self.pose))
        for name in ("friction", "torsion", "extent"):
            if (value := getattr(self, name)) is not None:
                put(self, name, _size(f"{name} of a contact", value))
        if self.kind == "edge" and abs(np.dot(self.normal, self.axis)) > PERPENDICULAR:
            raise ModelError(
                f"the axis {self.axis} of an edge is not perpendicular to its normal "
                f"{self.normal}; an edge lies in the surface."
            )
        if self.extent == 0.0:
            raise ModelError(
                "extent of a contact is 0.0; it must be positive [m]. An edge or patch without "
                "extent is a 'point'."
            )
        if self.kind == "soft_finger" and not self.two_sided and not self.torsion:
            raise ModelError(
                f"a soft finger has torsion {self.torsion}; it must be positive [m], about 2/3 of "
                "friction times the radius of the patch. Without it the contact is a 'point'."
            )

    # ----------------------------------------------------------------------------------- kinematics

    @property
    def hinge(self) -> Hinge:
        """The hinge of a loop from the finger (node a) to the object (node b)."""
        match self.kind:
            case "rigid":
                return Locked()
            case "edge":
                return Pin(self.axis)
            case "soft_finger":
                return SoftFinger(self.normal)
            case "point":
                return Spherical()
            case "frictionless":
                return PointOnPlane(normal=self.normal).reversed()

    @property
    def passed(self) -> Array:
        """S (rows, 6), orthonormal: the transmitted forces are S* λ, moments first."""
        normal, axis = np.array(self.normal), np.array(self.axis)
        forces = np.eye(6)[3:]
        match self.kind:
            case "rigid":
                rows = np.eye(6)
            case "edge":
                moments = np.zeros((2, 6))
                moments[:, :3] = normal, cross(normal, axis)
                rows = np.concatenate([moments, forces])
            case "soft_finger":
                rows = np.concatenate([np.append(normal, np.zeros(3))[None], forces])
            case "point":
                rows = forces
            case "frictionless":
                rows = np.append(np.zeros(3), normal)[None]
        return frozen(rows)

    @property
    def rows(self) -> int:
        """The number of transmitted force components."""
        return len(self.passed)

    @property
    def usable(self) -> Array:
        """A basis (k, 6) of the transmitted forces that the limits allow.

        It spans `passed` unless a coefficient is zero: μ = 0 allows no tangential force, and γ = 0
        no moment about the normal. A point with μ = 0 is a frictionless contact.
        """
        if self.two_sided or not (self.smooth or self.twist_arm == 0.0):
            return self.passed
        first, second, normal = self.axes
        none = np.zeros(3)
        lost = [np.append(normal, none)] if self.twist_arm == 0.0 else []
        if self.smooth:
            lost += [np.append(none, first), np.append(none, second)]
        # Rows are orthonormal, and what is lost is along some of them or orthogonal to all.
        S = self.passed
        off = np.array(lost) @ S.T
        _, values, right = np.linalg.svd(off)
        return frozen(right[int((values > 0.5).sum()) :] @ S)

    # --------------------------------------------------------------------------------------- limits

    @property
    def smooth(self) -> bool:
        """Whether it is one-sided and resists no tangential force: μ = 0."""
        return not self.two_sided and (self.kind == "frictionless" or self.friction == 0.0)

    @property
    def spins(self) -> bool:
        """Whether it is a one-sided edge or patch that resists no moment m_n: γ = 0."""
        return not self.two_sided and self.kind in ("edge", "rigid") and self.twist_arm == 0.0

    @property
    def twist_arm(self) -> float:
        """γ [m]: 0 where no moment about the normal is resisted, inf where it has no limit."""
        if self.kind in ("point", "frictionless"):
            return 0.0
        if self.torsion is not None:
            return self.torsion
        if self.extent is None:
            return np.inf
        return self.friction * self.extent * (0.5 if self.kind == "edge" else 2.0 / 3.0)

    @property
    def tip_arm(self) -> float:
        """r [m], inf where no moment tips the contact."""
        return np.inf if self.extent is None or self.kind not in ("edge", "rigid") else self.extent

    @property
    def axes(self) -> Array:
        """Two tangents and the normal as rows (3, 3); the first is the axis of an edge."""
        return _axes(self.normal, self.axis if self.kind == "edge" else None)

    def margins(self, forces: Array) -> Array:
        """The distance of a force from each of `LIMITS`, in newtons.

        Args:
            forces: On the object, in the contact's frame (..., 6) [N m, N].

        Returns:
            (..., 4), positive where the contact holds, inf for limits that it does not have.
        """
        forces = rows(forces, 6, "the force of a contact")
        out = np.full((*forces.shape[:-1], 4), np.inf)
        if self.two_sided:
            return out
        moment, force = forces[..., :3] @ self.axes.T, forces[..., 3:] @ self.axes.T
        f_n, m_n = force[..., 2], moment[..., 2]
        tangential = np.hypot(force[..., 0], force[..., 1])
        out[..., 0] = f_n
        if self.kind == "frictionless":
            return out
        if self.elliptic:
            tangential = np.hypot(tangential, self.friction / self.twist_arm * m_n)
        elif 0.0 < self.twist_arm < np.inf:
            out[..., 2] = f_n - np.abs(m_n) / self.twist_arm
        elif self.spins:  # only m_n = 0, up to rounding, is allowed
            spin = np.abs(m_n) / (self.extent or 1.0)
            out[..., 2] = np.where(spin <= ROUNDING * np.abs(f_n), 0.0, -spin)
        if self.smooth:  # only f_t = 0, up to rounding, is allowed
            tangential = np.where(tangential <= ROUNDING * np.abs(f_n), 0.0, tangential)
        out[..., 1] = self.friction * f_n - tangential
        if np.isfinite(self.tip_arm):
            # The moment about an edge is zero: the contact turns there.
            out[..., 3] = f_n - np.hypot(moment[..., 0], moment[..., 1]) / self.tip_arm
        return out

    @property
    def elliptic(self) -> bool:
        """Whether slip and twist share one limit, the elliptic law."""
        return self.law == "ellipse" and self.friction > 0.0 and 0.0 < self.twist_arm < np.inf

    def slopes(self, force: Array) -> Array:
        """Gradients (4, 6) of the margins at one force (6,); any subgradient at a kink.

        Margins are concave: margins(g) ≤ margins(f) + slopes(f) (g - f) for every g.
        """
        force = constant(force, (6,), "the force of a contact")
        out = np.zeros((4, 6))
        if self.two_sided:
            return out
        axes = self.axes
        moment, push = axes @ force[:3], axes @ force[3:]
        normal = np.append(np.zeros(3), axes[2])
        out[0] = normal
        if self.kind == "frictionless":
            return out
        weight = self.friction / self.twist_arm if self.elliptic else 0.0
        parts = np.array([push[0], push[1], weight * moment[2]])
        length = float(np.linalg.norm(parts))
        parts = parts / length if length > 0.0 else np.zeros(3)
        out[1] = self.friction * normal
        out[1, 3:] -= parts[0] * axes[0] + parts[1] * axes[1]
        out[1, :3] -= weight * parts[2] * axes[2]
        if not self.elliptic and 0.0 < self.twist_arm < np.inf:
            out[2] = normal
            out[2, :3] -= np.sign(moment[2]) / self.twist_arm * axes[2]
        if np.isfinite(self.tip_arm):
            size = float(np.hypot(moment[0], moment[1]))
            out[3] = normal
            if size > 0.0:
                out[3, :3] -= (moment[0] * axes[0] + moment[1] * axes[1]) / (size * self.tip_arm)
        return out


def block_diagonal(blocks: Sequence[Array]) -> Array:
    """(..., Σ k_i, 6 ℓ) with the ℓ blocks (..., k_i, 6) on its diagonal."""
    ends = np.cumsum([0, *(block.shape[-2] for block in blocks)])
    out = np.zeros((*blocks[0].shape[:-2], int(ends[-1]), 6 * len(blocks)))
    for i, block in enumerate(blocks):
        out[..., ends[i] : ends[i + 1], 6 * i : 6 * i + 6] = block
    return out


@lru_cache(maxsize=256)
def _axes(normal: tuple[float, ...], axis: tuple[float, ...] | None) -> Array:
    n = np.array(normal)
    if axis is not None:
        return frozen(np.stack([np.array(axis), cross(n, np.array(axis)), n]))
    return frozen(np.array(aligning(np.array([0.0, 0.0, 1.0]), n).T))


def _word(what: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        words = ", ".join(repr(word) for word in known)
        raise ModelError(f"{what} is {value!r}; it must be one of {words}.")


def _size(what: str, value: object) -> float:
    number = floats(value, what)
    if number.shape != () or not 0.0 <= number < np.inf:
        raise ModelError(f"{what} is {value!r}; it must be a finite number, not negative.")
    return float(number)
