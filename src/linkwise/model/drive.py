"""What acts inside a hinge besides the joint force: rotor, friction, spring, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from linkwise.arguments import option
from linkwise.errors import ModelError
from linkwise.model.hinges import Hinge, Spherical
from linkwise.model.hinges.modified import is_plain
from linkwise.spatial.array import Array, floats

PerFreedom: TypeAlias = float | tuple[float, ...]
"""One number for the hinge, or one for each of its degrees of freedom."""

PER_COORDINATE = ("lower", "upper", "rest")
"""Fields that go with q; the others go with v."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Drive and passive properties of a hinge: one number each, or one per degree of freedom.

    Units follow from the coordinate: [kg m²] or [kg], [N m s/rad] or [N s/m], [N m] or [N] ...

    Attributes:
        armature: Inertia that moves with the coordinate itself, as seen at the joint.
        rotor_inertia: Inertia of a motor that turns `gear_ratio` times as fast.
        gear_ratio: Motor speed over joint speed.
        damping: Viscous friction, force = -damping v.
        friction: Coulomb friction, the largest force.
        stiffness: Spring, force = -stiffness (q - rest).
        rest: Where the spring is at rest.
        lower: Lower limit of each coordinate; quaternions have none.
        upper: Upper limit of each coordinate.
        effort: Largest joint force of the drive.
        velocity: Largest speed.
        max_angle: For a spherical hinge, the largest turn away from neutral [rad].
    """

    armature: PerFreedom = 0.0
    rotor_inertia: PerFreedom = 0.0
    gear_ratio: PerFreedom = 1.0
    damping: PerFreedom = 0.0
    friction: PerFreedom = 0.0
    stiffness: PerFreedom = 0.0
    rest: PerFreedom = 0.0
    lower: PerFreedom = -math.inf
    upper: PerFreedom = math.inf
    effort: PerFreedom = math.inf
    velocity: PerFreedom = math.inf
    max_angle: float = math.inf

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, float):
                array = floats(value, f"{field.name} of a drive")
                if array.ndim > 1:
                    raise ModelError(
                        f"{field.name} of a drive has shape {array.shape}; give one number, or "
                        "one for each degree of freedom."
                    )
                value = float(array) if array.ndim == 0 else tuple(array.tolist())
                object.__setattr__(self, field.name, value)
            if np.isnan(value).any():
                raise ModelError(f"{field.name} of a drive is not a number: {value}.")

    def array(self, field: str, hinge: Hinge) -> Array:
        """One field as an array: (nq,) for lower, upper and rest, (nv,) for the others."""
        option(field, self.__dataclass_fields__, "field of a drive")
        size = hinge.nq if field in PER_COORDINATE else hinge.nv
        if size == 0:  # a locked hinge keeps the drive of the one it holds, for its release
            return np.zeros(0)
        value = np.asarray(getattr(self, field))
        if value.ndim == 0:
            value = np.full(size, value)
            if hinge.quaternion is not None and field in ("lower", "upper"):
                value[hinge.quaternion] = -math.inf if field == "lower" else math.inf
        if value.shape != (size,):
            raise ModelError(
                f"{field} has {value.size} entries; a {hinge.kind} hinge takes {size}, or one "
                "number for all."
            )
        return value

    def has_spring(self, hinge: Hinge) -> bool:
        """Whether there is a spring with a formula: along coordinates, or alike about all axes."""
        stiffness = self.array("stiffness", hinge)
        alike = type(hinge) is Spherical and bool((stiffness == stiffness[0]).all())
        return bool(stiffness.any()) and (is_plain(hinge) or alike)

    def check(self, hinge: Hinge) -> None:
        """Raises where some field does not fit the hinge."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                self.array(field.name, hinge)
