"""Shapes carried by bodies and nodes, for the viewer. They have no part in the dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from linkwise.errors import ModelError
from linkwise.spatial.pose import Pose

Shape = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "mesh"]
Role = Literal["visual", "collision", "both"]

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 2, "mesh": 0}
"""How many numbers each shape has."""


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """One shape, fixed to the body or node that carries it.

    Attributes:
        name: Any name; empty where the file had none.
        shape: Kind of shape.
        size: box: edge lengths; sphere: radius; cylinder and capsule (along z): radius, length of
            the straight part; ellipsoid: semi-axes; plane: half sizes, 0 for infinite; mesh: none.
            All in [m].
        pose: Of the shape's centre in the frame of its carrier.
        role: What the file used it for.
        rgba: Colour, each from 0 to 1.
        file: For a mesh, its address as written in the model file. It is not opened here.
        scale: Factors for the axes of the mesh.
    """

    name: str
    shape: Shape
    size: tuple[float, ...]
    pose: Pose
    role: Role = "both"
    rgba: tuple[float, float, float, float] | None = None
    file: str | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if self.shape not in SIZES:
            raise ModelError(f"shape {self.shape!r} is not known; allowed: {', '.join(SIZES)}.")
        if len(self.size) != SIZES[self.shape]:
            raise ModelError(
                f"a {self.shape} has {SIZES[self.shape]} sizes; {len(self.size)} were given."
            )
        if self.shape == "mesh" and self.file is None:
            raise ModelError(f"mesh {self.name!r} names no file.")
