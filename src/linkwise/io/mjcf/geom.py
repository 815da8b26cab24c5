"""What is a geom, which assets may it refer to, and how is it kept for the viewer?"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final, TypeVar, cast

import numpy as np

from linkwise.errors import unknown_name
from linkwise.io.mjcf.compiler import MAIN, Compiler, Defaults
from linkwise.io.mjcf.height_field import HeightAsset, grid_or_reason, read_height
from linkwise.io.mjcf.ignored import ASSET_AFFECTS, Ignored, ignore
from linkwise.io.mjcf.include import Files
from linkwise.io.mjcf.mesh import MeshAsset, box_axes, read_meshes
from linkwise.io.mjcf.orientation import read_fromto, read_pose
from linkwise.io.mjcf.surface import surface
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers
from linkwise.model.contact import Surface
from linkwise.model.geometry import Geometry, Role, Shape, bad_size
from linkwise.spatial import quaternion
from linkwise.spatial.array import frozen
from linkwise.spatial.pose import Pose, trusted_pose

TYPES: Final = (
    "plane",
    "hfield",
    "sphere",
    "capsule",
    "ellipsoid",
    "cylinder",
    "box",
    "mesh",
    "sdf",
)
_N_SIZES: Final = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_FROMTO: Final = ("capsule", "cylinder", "ellipsoid", "box")
SMALL: Final = 1e-14
"""Masses below this [kg] do not count (MuJoCo's mjEPS)."""

T = TypeVar("T")
Rgba = tuple[float, float, float, float]


@dataclass(slots=True)
class Assets:
    """What geoms refer to: meshes, height field sizes and material colours, by name."""

    meshes: dict[str, MeshAsset]
    hfields: dict[str, HeightAsset]
    colours: dict[str, Rgba]


@dataclass(slots=True)
class Geom:
    """A geom with its defaults applied.

    Attributes:
        element: Its element.
        name: As written, empty for none.
        kind: One of TYPES.
        size: MuJoCo's sizes, empty for plane, hfield, mesh and for shapes fitted to a mesh.
        pose: In the body frame.
        group: Geom group.
        surface: How it touches others.
        mesh: The mesh it shows or is fitted to.
        hfield: Its heights.
    """

    element: Element
    name: str
    kind: str
    size: tuple[float, ...]
    pose: Pose
    group: int
    surface: Surface
    mesh: MeshAsset | None
    hfield: HeightAsset | None = None


def read_geom(element: Element, frame: Pose, compiler: Compiler, assets: Assets) -> Geom:
    """A geom in a frame of its body.

    Raises:
        ParseError: A shape without size, an unknown mesh, or contradictory attributes.
    """
    kind, compiler = choice(element, "type", TYPES, "sphere"), compiler.of(element)
    mesh = hfield = None
    if "mesh" in element.attrib:
        mesh = _asset(element, "mesh", assets.meshes)
    if kind in ("mesh", "sdf") and mesh is None:
        raise element.error(f"a geom of type '{kind}' needs the attribute 'mesh'")
    if kind == "hfield":
        hfield = _asset(element, "hfield", assets.hfields)
    pose, half = read_pose(element, compiler.degree, compiler.eulerseq), None
    if "fromto" in element.attrib:
        if kind not in _FROMTO or mesh is not None:
            raise element.error(f"'fromto' is for {', '.join(_FROMTO)}, without a mesh")
        if numbers(element, "pos", 3, (0.0, 0.0, 0.0)).any():
            raise element.error("'pos' and 'fromto' are both given; give one of them")
        pose, half = read_fromto(element)
    size: tuple[float, ...] = ()
    if kind in _N_SIZES and mesh is None:
        size = _size(element, kind, half)
    elif kind == "plane":
        size = tuple(numbers(element, "size", (1, 3), (0.0, 0.0, 0.0)).tolist())
        if reason := bad_size("plane", size):
            raise element.error(reason)
    group = number(element, "group", 0.0)
    name, touch = element.attrib.get("name", ""), surface(element)
    return Geom(element, name, kind, size, frame @ pose, _integer(group), touch, mesh, hfield)


def _size(element: Element, kind: str, half: float | None) -> tuple[float, ...]:
    """Checked sizes of a primitive; with `fromto` the length comes from there."""
    count = _N_SIZES[kind]
    given = numbers(element, "size", (1, 3), (0.0, 0.0, 0.0)).tolist()
    values = [*given, 0.0, 0.0]
    if half is not None:
        values = [values[0], half] if count == 2 else [values[0], values[0], half]
    size = tuple(values[:count])
    if not all(0.0 < value for value in size):
        needed = 1 if half is not None else count
        raise element.error(
            f"a {kind} takes {needed} positive size{'s' if needed > 1 else ''}; "
            f"found '{' '.join(f'{value:g}' for value in given)}'"
        )
    return size


def fitted(geom: Geom, compiler: Compiler) -> Geom:
    """A primitive with a mesh becomes the primitive fitted to that mesh; others stay."""
    if geom.mesh is None or geom.kind not in _N_SIZES:
        return geom
    mass, compiler = geom.mesh.mass(), compiler.of(geom.element)
    half, axes = box_axes(mass)
    centre = np.zeros(3)
    if compiler.fitaabb:
        local = (mass.vertices - mass.com) @ axes
        low, high = local.min(axis=0), local.max(axis=0)
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
    x, y, z = (float(v) for v in half)
    if geom.kind == "sphere":
        sizes = [max(x, y, z) if compiler.fitaabb else (x + y + z) / 3.0]
    elif geom.kind in ("capsule", "cylinder"):
        radius = max(x, y) if compiler.fitaabb else 0.5 * (x + y)
        cap = 0.0 if geom.kind == "cylinder" else radius if compiler.fitaabb else 0.5 * radius
        sizes = [radius, z - cap if compiler.fitaabb else max(0.0, z - cap)]
    else:
        sizes = [x, y, z]
    scale = number(geom.element, "fitscale", 1.0)
    place = trusted_pose(frozen(axes), frozen(mass.com + axes @ centre))
    size = tuple(scale * s for s in sizes)
    return replace(geom, size=size, pose=geom.pose @ place, mesh=None)


def geom_geometry(geom: Geom, assets: Assets, reporter: Reporter) -> Geometry | None:
    """The geom as a shape for the viewer; None, and an item, where it cannot be kept."""
    element = geom.element
    touch = geom.surface
    colliding = touch.contype != 0 or touch.conaffinity != 0
    # Geoms of the groups 3 to 5 are hidden by default: they are there for contact only.
    role: Role = "visual" if not colliding else "collision" if geom.group >= 3 else "both"
    rgba = _colour(element, assets)
    if geom.kind == "sdf":
        reporter.note(element, "ignored", "an sdf is not kept as a shape", "appearance")
        return None
    if geom.hfield is not None:
        grid, reason = grid_or_reason(geom.hfield)
        if grid is None:
            affects = "motion" if colliding else "appearance"
            reporter.note(element, "ignored", f"its heights are not known: {reason}", affects)
            return None
        x, y, _, base = geom.hfield.size
        sizes = (x, y, base)
        return Geometry(geom.name, "hfield", sizes, geom.pose, role, rgba, surface=touch, grid=grid)
    if geom.kind == "mesh":
        return _mesh_geometry(geom, role, rgba, reporter)
    size = geom.size
    if geom.kind == "plane":
        size = (*size, 0.0, 0.0)[:2]
    elif geom.kind == "box":
        size = tuple(2.0 * s for s in size)
    elif geom.kind in ("capsule", "cylinder"):
        size = (size[0], 2.0 * size[1])
    kind = cast(Shape, geom.kind)
    return Geometry(geom.name, kind, size, geom.pose, role, rgba, surface=touch)


def _mesh_geometry(
    geom: Geom, role: Role, rgba: Rgba | None, reporter: Reporter
) -> Geometry | None:
    mesh = geom.mesh
    assert mesh is not None
    if mesh.file is None:
        reporter.note(geom.element, "ignored", "only meshes from files are kept", "appearance")
        return None
    pose = geom.pose
    refpos = numbers(mesh.element, "refpos", 3, (0.0, 0.0, 0.0))
    refquat = numbers(mesh.element, "refquat", 4, (1.0, 0.0, 0.0, 0.0))
    if refpos.any() or refquat[1:].any():
        # A vertex is at scale · rot* (vertex - refpos): a pose if the scale is uniform.
        if len(set(mesh.scale)) > 1:
            reason = "a mesh both turned by 'refquat' and scaled unevenly is shown unturned"
            reporter.note(mesh.element, "approximate", reason, "appearance")
        rot = quaternion.to_matrix(quaternion.normalise(refquat)).T
        offset = -np.array(mesh.scale) * (rot @ refpos)
        pose = pose @ trusted_pose(frozen(rot), frozen(offset))
    kind, touch = mesh.element.attrib.get("inertia", ""), geom.surface
    return Geometry(geom.name, "mesh", (), pose, role, rgba, mesh.address, mesh.scale, kind, touch)


def _colour(element: Element, assets: Assets) -> Rgba | None:
    """Own rgba, else the material's colour."""
    if "rgba" in element.attrib:
        r, g, b, a = numbers(element, "rgba", 4).tolist()
        return (r, g, b, a)
    return assets.colours.get(element.attrib.get("material", ""))


def _asset(element: Element, attr: str, known: dict[str, T]) -> T:
    name = element.attrib.get(attr)
    if name is None:
        raise element.error(f"the attribute '{attr}' is missing")
    if name not in known:
        raise element.error(str(unknown_name(attr, name, known, owner="the assets")))
    return known[name]


def _integer(value: float) -> int:
    return int(value) if abs(value) < 1e9 else 10**9


def read_assets(
    root: Element,
    defaults: Defaults,
    files: Files,
    compiler: Compiler,
    reporter: Reporter,
    ignored: Ignored,
) -> Assets:
    """Meshes, height fields and colours of the sections `<asset>`."""
    meshes: list[Element] = []
    hfields: dict[str, HeightAsset] = {}
    colours: dict[str, tuple[float, float, float, float]] = {}
    for section in root.findall("asset"):
        for element in section.children:
            name = element.attrib.get("name", "")
            if element.tag in ("mesh", "material"):
                ignored.check(element)
                merged = defaults.apply(element, MAIN)
                if element.tag == "mesh":
                    meshes.append(merged)
                elif "rgba" in merged.attrib and "texture" not in merged.attrib:
                    r, g, b, a = numbers(merged, "rgba", 4).tolist()
                    colours[name] = (r, g, b, a)
            elif element.tag == "hfield":
                ignored.check(element)
                file = element.attrib.get("file", "").replace("\\", "/")
                size = numbers(element, "size", 4).tolist()
                hfields[name or stem(file)] = read_height(element, size, files, compiler)
            elif element.tag == "model":  # see `attach.py`
                ignored.check(element)
            elif element.tag in ASSET_AFFECTS:
                ignore(reporter, element, ASSET_AFFECTS[element.tag])
            else:
                reporter.note(element, "ignored", "unknown kind of asset", "motion")
    return Assets(read_meshes(meshes, files, compiler, reporter), hfields, colours)


def stem(path: str) -> str:
    """Name of a file without its directory and suffix."""
    return os.path.splitext(os.path.basename(path))[0] or "mechanism"
