"""What does a URDF link carry (inertia, shapes and colours), and how is it written?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from linkwise.errors import LinkwiseError, ModelError, ParseError
from linkwise.io.mesh_path import Roots, resolve_mesh
from linkwise.io.report import Affects, Reporter
from linkwise.io.xml import Element, number, numbers, required, shorten
from linkwise.io.xml_write import digits, make, row
from linkwise.model.geometry import Geometry, bad_size
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import rpy_of

Rgba = tuple[float, float, float, float]
MAX_CHECKED: Final = 2000
"""Mesh references that are looked for in one file."""

# What unknown children of a link are about; any other is filed under "other".
_LINK_AFFECTS: Final[dict[str, Affects]] = {
    "inertial": "motion",
    "contact": "contact",
    "surface": "contact",
    "self_filter": "contact",
    "collision_checking": "contact",
    "gravity": "motion",
    "kinematic": "motion",
    "origin": "motion",
    "sensor": "control",
}


@dataclass(slots=True)
class Link:
    """One link as read. `inertia` is None where the file gives none."""

    name: str
    element: Element
    inertia: SpatialInertia | None
    geometry: tuple[Geometry, ...]


def read_link(element: Element, materials: dict[str, Rgba], meshes: MeshCheck) -> Link:
    """A `<link>` with its inertial, visual and collision elements."""
    reporter = meshes.reporter
    name = required(element, "name")
    report_unknown(
        element, {"name"}, {"inertial"}, reporter, {"visual", "collision"}, _LINK_AFFECTS
    )
    inertial = element.find("inertial")
    geometry: list[Geometry] = []
    for child in element.children:
        if child.tag == "visual":
            geometry += _shape(child, "visual", materials, meshes)
        elif child.tag == "collision":
            geometry += _shape(child, "collision", materials, meshes)
    inertia = None if inertial is None else read_inertial(inertial, reporter)
    return Link(name, element, inertia, tuple(geometry))


def read_inertial(element: Element, reporter: Reporter) -> SpatialInertia:
    """`<inertial>`: the centre of mass, and the moments in axes turned by its rpy."""
    report_unknown(element, set(), {"origin", "mass", "inertia"}, reporter, affects="motion")
    mass, moments = element.find("mass"), element.find("inertia")
    if mass is None or moments is None:
        missing = "mass" if mass is None else "inertia"
        raise element.error(f"<{missing}> is missing; an <inertial> has <mass> and <inertia>")
    report_unknown(mass, {"value"}, set(), reporter, affects="motion")
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    report_unknown(moments, set(keys), set(), reporter, affects="motion")
    absent = [key for key in ("ixy", "ixz", "iyz") if key not in moments.attrib]
    if absent:
        reporter.note(moments, "approximate", f"{', '.join(absent)} taken as 0", "motion")
    xx, yy, zz = (number(moments, key) for key in ("ixx", "iyy", "izz"))
    xy, xz, yz = (number(moments, key, 0.0) for key in ("ixy", "ixz", "iyz"))
    frame = read_origin(element, reporter)
    moments_com = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    return SpatialInertia.from_com(number(mass, "value"), frame.p, moments_com, frame.rot)


def read_origin(element: Element, reporter: Reporter) -> Pose:
    """The pose in the `<origin>` child of an element; identity without one."""
    child = element.find("origin")
    return Pose.identity() if child is None else read_pose(child, reporter)


def read_pose(element: Element, reporter: Reporter, known: Collection[str] = ()) -> Pose:
    """The pose in attributes xyz [m] and rpy [rad], or xyz and quat_xyzw."""
    report_unknown(element, {"xyz", "rpy", "quat_xyzw", *known}, set(), reporter, affects="motion")
    p = numbers(element, "xyz", 3, (0.0, 0.0, 0.0))
    if "quat_xyzw" in element.attrib:
        if "rpy" in element.attrib:
            raise element.error("both 'rpy' and 'quat_xyzw' are given; keep one of them")
        x, y, z, w = numbers(element, "quat_xyzw", 4)
        length = float(np.sqrt(w * w + x * x + y * y + z * z))
        if not 1e-6 < length < 1e6:
            raise element.error(f"'quat_xyzw' has length {length:.3g}; give a unit quaternion")
        return Pose.rotation(quaternion.to_matrix(np.array([w, x, y, z]) / length), p)
    angles = numbers(element, "rpy", 3, (0.0, 0.0, 0.0))
    if not angles.any():
        return Pose.translation(p) if p.any() else Pose.identity()
    return Pose.rpy(angles, p)


def read_materials(root: Element, reporter: Reporter) -> dict[str, Rgba]:
    """Colours by material name: robot-level ones first, then those defined inside links."""
    colours: dict[str, Rgba] = {}
    for material in root.findall("material"):
        _report_material(material, reporter)
        colour = _colour(material)
        if colour is not None:
            colours.setdefault(required(material, "name"), colour)
    for link in root.findall("link"):
        for visual in link.findall("visual"):
            material = visual.find("material")
            if material is not None and material.attrib.get("name", "").strip():
                colour = _colour(material)
                if colour is not None:
                    colours.setdefault(material.attrib["name"], colour)
    return colours


@dataclass(slots=True)
class MeshCheck:
    """Notes, once for each reference, meshes that cannot be followed. Opens none.

    Attributes:
        path: The model file.
        roots: Folders allowed besides its own.
        reporter: Takes the items.
        seen: References looked at so far; after `MAX_CHECKED` no more are looked at.
    """

    path: str
    roots: Roots
    reporter: Reporter
    seen: set[str]

    def check(self, element: Element, uri: str) -> None:
        """Look for the file a `<mesh>` names, and report it if it is missing."""
        if uri in self.seen or len(self.seen) > MAX_CHECKED:
            return
        self.seen.add(uri)
        if len(self.seen) > MAX_CHECKED:
            reason = f"more than {MAX_CHECKED} meshes; from here on none is looked for"
            self.reporter.note(element, "ignored", reason, "appearance")
            return
        try:
            resolve_mesh(uri, self.path, self.roots)
        except ParseError as problem:
            self.reporter.note(element, "ignored", problem.reason, "appearance")
        except (OSError, ValueError, LinkwiseError) as problem:
            self.reporter.note(element, "ignored", f"the path is unusable: {problem}", "appearance")


def report_unknown(
    element: Element,
    attributes: Collection[str],
    once: Collection[str],
    reporter: Reporter,
    many: Collection[str] = (),
    affects: dict[str, Affects] | Affects = "other",
) -> None:
    """Report unread attributes and children.

    Args:
        element: Where to look.
        attributes: Attributes that are read.
        once: Children that are read once; a second one is reported.
        reporter: Takes the items.
        many: Children that may come any number of times.
        affects: What unread parts affect, for all or by child tag.
    """
    default: Affects = "other" if isinstance(affects, dict) else affects
    extra = [key for key in element.attrib if key not in attributes and not key.startswith("xmlns")]
    if extra:
        names = shorten(", ".join(extra[:20]), 200)
        reporter.note(element, "ignored", f"attributes not read: {names}", default)
    seen: set[str] = set()
    for child in element.children:
        if child.tag in many:
            continue
        if child.tag in once and child.tag not in seen:
            seen.add(child.tag)
            continue
        about = affects.get(child.tag, "other") if isinstance(affects, dict) else affects
        if child.tag in once:
            reporter.note(child, "ignored", f"{element.label} has one already", about)
        else:
            reporter.note(child, "ignored", f"not read inside {element.label}", about)


def _shape(
    element: Element,
    role: Literal["visual", "collision"],
    materials: dict[str, Rgba],
    meshes: MeshCheck,
) -> list[Geometry]:
    """A `<visual>` or `<collision>` as at most one Geometry."""
    reporter = meshes.reporter
    about: Affects = "appearance" if role == "visual" else "contact"
    report_unknown(element, {"name"}, {"origin", "geometry", "material"}, reporter, affects=about)
    outer = element.find("geometry")
    shapes = [] if outer is None else outer.children
    if outer is None or not shapes:
        reporter.note(element, "ignored", "it has no geometry", about)
        return []
    report_unknown(outer, set(), {shapes[0].tag}, reporter, affects=about)
    shape = shapes[0]
    kind = shape.tag.removeprefix("drake:")
    file, scale = None, (1.0, 1.0, 1.0)
    if kind == "box":
        known, size = {"size"}, tuple(numbers(shape, "size", 3).tolist())
    elif kind == "sphere":
        known, size = {"radius"}, (number(shape, "radius"),)
    elif kind in ("cylinder", "capsule"):
        known, size = {"radius", "length"}, (number(shape, "radius"), number(shape, "length"))
    elif kind == "ellipsoid":
        known, size = {"a", "b", "c"}, tuple(number(shape, key) for key in "abc")
    elif kind == "mesh":
        known, size = {"filename", "scale"}, ()
        file = required(shape, "filename")
        factors = numbers(shape, "scale", (1, 3), (1.0, 1.0, 1.0)).tolist()
        if len(factors) == 2:
            raise shape.error("'scale' has 2 numbers; it takes 1 or 3")
        if not all(factors):
            raise shape.error("'scale' has a factor of 0, which leaves nothing of the mesh")
        scale = tuple(factors * 3 if len(factors) == 1 else factors)
        meshes.check(shape, file)
    else:
        reporter.note(shape, "ignored", "this shape is not known", about)
        return []
    report_unknown(shape, known, set(), reporter, affects=about)
    if reason := bad_size(kind, size):
        if not all(math.isfinite(x) and x >= 0.0 for x in size):
            raise shape.error(reason)
        # urdfdom takes a size of 0: there is nothing to draw and nothing to touch.
        reason = f"a {kind} with a size of 0 has no volume, and is left out"
        reporter.note(shape, "ignored", reason, about)
        return []
    rgba = _material(element, materials, reporter) if role == "visual" else None
    name = element.attrib.get("name", "")
    pose = read_origin(element, reporter)
    return [Geometry(name, kind, size, pose, role, rgba=rgba, file=file, scale=scale)]


def _material(visual: Element, materials: dict[str, Rgba], reporter: Reporter) -> Rgba | None:
    element = visual.find("material")
    if element is None:
        return None
    _report_material(element, reporter)
    colour = _colour(element)
    name = element.attrib.get("name", "")
    if colour is None and name in materials:
        colour = materials[name]
    elif colour is None and element.find("texture") is None:
        reason = f"no material called '{shorten(name)}' has a colour"
        reporter.note(element, "ignored", reason, "appearance")
    return colour


def _report_material(material: Element, reporter: Reporter) -> None:
    """Report the unread parts of a material."""
    report_unknown(material, {"name"}, {"color", "texture"}, reporter, affects="appearance")
    if (colour := material.find("color")) is not None:
        report_unknown(colour, {"rgba"}, set(), reporter, affects="appearance")
    if material.find("texture") is not None:
        reporter.note(material, "ignored", "textures are not kept", "appearance")


def _colour(material: Element) -> Rgba | None:
    element = material.find("color")
    if element is None:
        return None
    r, g, b, a = numbers(element, "rgba", 4).tolist()
    return (r, g, b, a)


def link_element(
    name: str, inertia: SpatialInertia | None, geometry: Iterable[Geometry], reporter: Reporter
) -> Element:
    """A `<link>`; inertia and shapes are in its own frame."""
    shapes = [element for shape in geometry for element in _shape_elements(name, shape, reporter)]
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


def _shape_elements(link: str, shape: Geometry, reporter: Reporter) -> list[Element]:
    """`<visual>` and `<collision>` elements for one geometry."""
    touching = shape.role != "visual"
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
            about: Affects = "contact" if touching else "appearance"
            reporter.note(f"shape '{shape.name}' of '{link}'", "approximate", reason, about)
            return [
                e for part in _capsule_parts(shape) for e in _shape_elements(link, part, reporter)
            ]
        case "ellipsoid" if len(set(shape.size)) == 1:
            body = make("sphere", {"radius": size[0]})
        case "mesh":
            scale = tuple(shape.scale)
            factors = {} if scale == (1.0, 1.0, 1.0) else {"scale": row(scale)}
            body = make("mesh", {"filename": shape.file or "", **factors})
        case _:
            reason = f"a {shape.shape} has no form in URDF"
            about = "motion" if touching else "appearance"
            reporter.note(f"shape '{shape.name}' of '{link}'", "ignored", reason, about)
            return []
    roles = ("visual", "collision") if shape.role == "both" else (shape.role,)
    return [_placed(role, shape, body) for role in roles]


def _capsule_parts(shape: Geometry) -> list[Geometry]:
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
    origin = None if shape.pose.is_identity else make("origin", write_pose(shape.pose))
    return make(role, name, origin, make("geometry", None, body), colour)


def write_pose(pose: Pose) -> dict[str, str]:
    """Attributes xyz and rpy; reading them gives the pose back to the last digit or two."""
    return {"xyz": row(pose.p), "rpy": row(rpy_of(pose.rot))}
