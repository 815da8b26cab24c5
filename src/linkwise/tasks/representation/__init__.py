"""Coordinates of orientations and positions, by name.

| name | numbers | singular |
| --- | --- | --- |
| "euler_zyx" and eleven more | 3 | where the first and third axis coincide |
| "quaternion" | 4 | nowhere |
| "direction_cosines" | 9 | nowhere |
| "cartesian" | 3 | nowhere |
| "cylindrical", "spherical" | 3 | on the z axis of the reference |
"""

from linkwise.tasks.representation.orientation import (
    SEQUENCES,
    DirectionCosines,
    EulerAngles,
    QuaternionParameters,
)
from linkwise.tasks.representation.position import (
    Cartesian,
    CylindricalPosition,
    SphericalPosition,
)
from linkwise.tasks.representation.representation import LIMIT, Representation

ORIENTATIONS: dict[str, Representation] = {
    **{f"euler_{sequence}": EulerAngles(sequence) for sequence in SEQUENCES},
    "quaternion": QuaternionParameters(),
    "direction_cosines": DirectionCosines(),
}
"""Coordinates of orientations, by name."""

POSITIONS: dict[str, Representation] = {
    "cartesian": Cartesian(),
    "cylindrical": CylindricalPosition(),
    "spherical": SphericalPosition(),
}
"""Coordinates of positions, by name."""

__all__ = [
    "LIMIT",
    "ORIENTATIONS",
    "POSITIONS",
    "SEQUENCES",
    "Cartesian",
    "CylindricalPosition",
    "DirectionCosines",
    "EulerAngles",
    "QuaternionParameters",
    "Representation",
    "SphericalPosition",
]
