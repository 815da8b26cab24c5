"""How are inertia, shapes and poses of a body written in MJCF?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from linkwise.io.report import Reporter
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make, row
from linkwise.model.geometry import Geometry
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

MIN_MOMENT: Final = 1e-14
"""Least eigenvalue of a full inertia matrix in MuJoCo [kg m²]."""
ROUNDING: Final = 1e-14
"""Moments are known to this part of the largest entry of the inertia about the body frame."""


def pose_attributes(pose: Pose) -> dict[str, str]:
    """`pos` and `quat`, each left out where it is nothing."""
    found: dict[str, str] = {}
    if pose.p.any():
        found["pos"] = row(pose.p)
    if (pose.rot != np.eye(3)).any():
        found["quat"] = row(quaternion.from_matrix(pose.rot))
    return found


def inertial_element(
    inertia: SpatialInertia | None, where: str, reporter: Reporter
) -> Element | None:
    """`<inertial>` about the centre of mass; None where there is nothing to say.

    MuJoCo refuses a full matrix with moments that are zero, and moments A, B, C with A + B < C.
    What is so by rounding only is written as principal moments, corrected within the rounding.
    """
    if inertia is None or not (float(inertia.mass) or inertia.h.any() or inertia.J.any()):
        return None
    J = inertia.J_com
    attrib = {"pos": row(inertia.com), "mass": digits(float(inertia.mass))}
    moments, axes = inertia.principal()
    low, middle, high = (float(m) for m in moments)
    slack = ROUNDING * float(np.abs(inertia.J).max())
    thin = low < MIN_MOMENT or high > low + middle - slack
    if thin and low > -slack and high <= low + middle + slack:
        low, middle = max(low, 0.0), max(middle, 0.0)
        attrib["diaginertia"] = row((low, middle, min(high, low + middle)))
        attrib["quat"] = row(quaternion.from_matrix(axes))
        return make("inertial", attrib)
    if low < 0.0 or high > low + middle:
        reason = "MuJoCo refuses moments of inertia that no body can have"
        reporter.note(f"inertia of '{where}'", "approximate", reason, "other")
    off = (J[0, 1], J[0, 2], J[1, 2])
    if any(off):
        attrib["fullinertia"] = row((J[0, 0], J[1, 1], J[2, 2], *off))
    else:
        attrib["diaginertia"] = row(np.diag(J))
    return make("inertial", attrib)


@dataclass(slots=True)
class ShapeWriter:
    """Writes shapes as geoms, and collects the mesh assets they need."""

    reporter: Reporter
    meshes: dict[tuple[str, tuple[float, float, float], str], str] = field(
        default_factory=lambda: {}
    )
    geom_names: set[str] = field(default_factory=lambda: set())

    def geoms(self, shapes: tuple[Geometry, ...], where: str, *, moving: bool) -> list[Element]:
        """`<geom>` elements of a body; planes only where nothing moves."""
        found: list[Element] = []
        for shape in shapes:
            if shape.shape == "plane" and moving:
                reason = "MJCF allows planes on the ground only"
                self.reporter.note(f"plane on '{where}'", "ignored", reason, "appearance")
                continue
            attrib = {"type": shape.shape, **self._size(shape), **pose_attributes(shape.pose)}
            if shape.name and shape.name not in self.geom_names:
                self.geom_names.add(shape.name)
                attrib = {"name": shape.name, **attrib}
            if shape.role == "visual":
                attrib |= {"contype": "0", "conaffinity": "0"}
            elif shape.role == "collision":
                attrib["group"] = "3"
            if shape.rgba is not None:
                attrib["rgba"] = row(shape.rgba)
            found.append(make("geom", attrib))
        return found

    def _size(self, shape: Geometry) -> dict[str, str]:
        size = shape.size
        if shape.shape == "mesh":
            assert shape.file is not None
            key = (shape.file, shape.scale, shape.mesh_inertia)
            return {"mesh": self.meshes.setdefault(key, f"mesh{len(self.meshes)}")}
        if shape.shape == "box":
            size = tuple(0.5 * s for s in size)
        elif shape.shape in ("cylinder", "capsule"):
            size = (size[0], 0.5 * size[1])
        elif shape.shape == "plane":
            size = (*size, 1.0)
        return {"size": row(size)}

    def assets(self) -> Element | None:
        """`<asset>` with the meshes used."""
        if not self.meshes:
            return None
        meshes: list[Element] = []
        for (file, scale, inertia), name in self.meshes.items():
            attrib = {"name": name, "file": file}
            if inertia:
                attrib["inertia"] = inertia
            if scale != (1.0, 1.0, 1.0):
                attrib["scale"] = row(scale)
            meshes.append(make("mesh", attrib))
        return make("asset", {}, *meshes)
