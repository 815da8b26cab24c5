"""How are a link's inertia and shapes written in a URDF?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from linkwise.errors import ModelError
from linkwise.io.report import Reporter
from linkwise.io.urdf.loop import write_pose
from linkwise.io.xml import Element
from linkwise.io.xml_write import digits, make, row
from linkwise.model.geometry import Geometry
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose


def link_element(
    name: str, inertia: SpatialInertia | None, geometry: Iterable[Geometry], reporter: Reporter
) -> Element:
    """A `<link>`; inertia and shapes are in its own frame."""
    shapes = [element for shape in geometry for element in _shape(name, shape, reporter)]
    return make("link", {"name": name}, _inertial(name, inertia), *shapes)


def _inertial(name: str, inertia: SpatialInertia | None) -> Element | None:
    if inertia is None or not (inertia.mass or inertia.J.any() or inertia.h.any()):
        return None
    if not inertia.mass and inertia.h.any():
        raise ModelError(f"link '{name}' has no mass but a first moment, which URDF cannot express")
    J = inertia.J_com
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    moments = J[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    com = inertia.com
    origin = make("origin", {"xyz": row(com), "rpy": "0 0 0"}) if com.any() else None
    return make(
        "inertial",
        None,
        origin,
        make("mass", {"value": digits(float(inertia.mass))}),
        make("inertia", {key: digits(m) for key, m in zip(keys, moments.tolist(), strict=True)}),
    )


def _shape(link: str, shape: Geometry, reporter: Reporter) -> list[Element]:
    """`<visual>` and `<collision>` elements for one geometry."""
    size = [digits(value) for value in shape.size]
    match shape.shape:
        case "box":
            body = make("box", {"size": " ".join(size)})
        case "sphere":
            body = make("sphere", {"radius": size[0]})
        case "cylinder":
            body = make("cylinder", {"radius": size[0], "length": size[1]})
        case "capsule":
            reason = "URDF readers know no capsule; written as a cylinder and two spheres"
            reporter.note(f"shape '{shape.name}' of '{link}'", "approximate", reason, "appearance")
            return [e for part in _capsule(shape) for e in _shape(link, part, reporter)]
        case "ellipsoid" if len(set(shape.size)) == 1:
            body = make("sphere", {"radius": size[0]})
        case "mesh":
            scale = tuple(shape.scale)
            factors = {} if scale == (1.0, 1.0, 1.0) else {"scale": row(scale)}
            body = make("mesh", {"filename": shape.file or "", **factors})
        case _:
            reason = f"a {shape.shape} has no form in URDF"
            reporter.note(f"shape '{shape.name}' of '{link}'", "ignored", reason, "appearance")
            return []
    roles = ("visual", "collision") if shape.role == "both" else (shape.role,)
    return [_placed(role, shape, body) for role in roles]


def _capsule(shape: Geometry) -> list[Geometry]:
    """The cylinder and the two spheres that a capsule is together."""
    radius, length = shape.size
    ends = [
        replace(
            shape, name="", shape="sphere", size=(radius,), pose=shape.pose @ Pose.translation(p)
        )
        for p in ((0.0, 0.0, -0.5 * length), (0.0, 0.0, 0.5 * length))
    ]
    if length == 0.0:
        return ends[:1]
    return [replace(shape, shape="cylinder"), *ends]


def _placed(role: str, shape: Geometry, body: Element) -> Element:
    name = {"name": shape.name} if shape.name else {}
    colour = None
    if shape.rgba is not None and role == "visual":
        # Material names are global in a file, so that a colour is its own name.
        rgba = row(shape.rgba)
        colour = make("material", {"name": f"rgba {rgba}"}, make("color", {"rgba": rgba}))
    origin = None if _is_identity(shape.pose) else make("origin", write_pose(shape.pose))
    return make(role, name, origin, make("geometry", None, body), colour)


def _is_identity(pose: Pose) -> bool:
    return not pose.p.any() and np.array_equal(pose.rot, np.eye(3))
