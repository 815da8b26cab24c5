"""Shapes carried by bodies and nodes: what the viewer shows, and what touches in contacts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from linkwise.errors import ModelError
from linkwise.model.contact import Surface
from linkwise.model.grid import Grid
from linkwise.spatial.pose import Pose

Shape = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "mesh", "hfield"]
Role = Literal["visual", "collision", "both"]

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "plane": 2, "mesh": 0}
SIZES |= {"hfield": 3}
"""How many numbers each shape has."""


def bad_size(shape: str, size: Sequence[float]) -> str:
    """Why a shape cannot have this size; empty if it can.

    Sizes are positive; those of a plane may be 0 for infinite, and a capsule may be a sphere.
    """
    least = {"plane": 0, "capsule": 1}.get(shape, len(size))  # how many have to be above zero
    if all(math.isfinite(x) and (x > 0.0 if i < least else x >= 0.0) for i, x in enumerate(size)):
        return ""
    return f"a {shape} has the size {' '.join(f'{x:g}' for x in size)}; sizes are positive numbers"


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """One shape, fixed to the body or node that carries it.

    Attributes:
        name: Any name; empty where the file had none.
        shape: Kind of shape.
        size: box: edge lengths; sphere: radius; cylinder and capsule (along z): radius, length of
            the straight part; ellipsoid: semi-axes; plane: half sizes, 0 for infinite; mesh: none;
            hfield: half sizes, and how deep it is below its lowest point. All in [m].
        pose: Of the shape's centre in the frame of its carrier.
        role: What the file used it for.
        rgba: Colour, each from 0 to 1.
        file: For a mesh, its address as written in the model file. It is not opened here.
        scale: Factors for the axes of the mesh.
        mesh_inertia: How an MJCF file finds the inertia of the mesh, "shell" for instance, which
            files need even where the body has its inertia; empty for the format's default.
        surface: How it rubs, and what it touches.
        grid: The heights of an hfield.
    """

    name: str
    shape: Shape
    size: tuple[float, ...]
    pose: Pose
    role: Role = "both"
    rgba: tuple[float, float, float, float] | None = None
    file: str | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    mesh_inertia: str = ""
    surface: Surface = field(default_factory=Surface)
    grid: Grid | None = None

    def __post_init__(self) -> None:
        if self.shape not in SIZES:
            raise ModelError(f"shape {self.shape!r} is not known; allowed: {', '.join(SIZES)}.")
        if len(self.size) != SIZES[self.shape]:
            raise ModelError(
                f"a {self.shape} has {SIZES[self.shape]} sizes; {len(self.size)} were given."
            )
        if (self.shape == "hfield") != (self.grid is not None):
            raise ModelError(f"{self.name!r} is a {self.shape}: heights belong to an hfield.")
        if self.shape == "mesh" and self.file is None:
            raise ModelError(f"mesh {self.name!r} names no file.")
        reason = bad_size(self.shape, self.size)
        if reason:
            raise ModelError(reason)
