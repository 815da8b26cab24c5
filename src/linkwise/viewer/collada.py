"""Triangles and colours of a COLLADA file (.dae), as many robot descriptions have them.

Read are the geometries of the visual scene with the transformations of their nodes, the unit and
the upward axis of the file, and the diffuse colours of materials. Textures, skins and animations
are not: a mesh is shown in one colour for each material.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ParseError
from linkwise.io.xml import Element, read_xml
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import axis_angle
from linkwise.viewer.look import Rgb, rgb
from linkwise.viewer.mesh import Mesh, together

DEEPEST = 50
"""Nodes inside of nodes."""

MOST_ELEMENTS = 100_000
"""Elements of the scene that are visited: a node may be named many times."""

MOST_POINTS = 10_000_000
"""Triangles and vertices of the whole scene, each as often as it is shown."""


def read_collada(path: Path) -> list[tuple[Mesh, Rgb | None]]:
    """Surfaces of a file, one for each colour, in metres and with z up.

    Raises:
        ParseError: Not such a file, or one that is broken.
    """
    root = read_xml(path)
    if root.tag != "COLLADA":
        raise root.error("a .dae file starts with <COLLADA>")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            parts = _Reader(root).parts()
    except ParseError:
        raise
    except (KeyError, IndexError, ValueError, OverflowError, StopIteration) as error:
        reason = str(error) or "something that must be there is not"
        raise ParseError(f"the COLLADA file is broken: {reason}", file=str(path)) from None
    if not all(np.isfinite(mesh.vertices).all() for mesh, _ in parts):
        raise ParseError("the COLLADA file is broken: a vertex is not finite", file=str(path))
    return parts


class _Reader:
    def __init__(self, root: Element) -> None:
        self.root = root
        self.by_id = {e.attrib["id"]: e for e in root.walk() if "id" in e.attrib}
        self.by_color = dict[Rgb | None, list[Mesh]]()
        self.surfaces = dict[int, tuple[NDArray[np.int64], Array]]()
        self.colors = dict[str, Rgb | None]()
        self.elements, self.points = 0, 0

    def count(self, at: Element, elements: int = 0, points: int = 0) -> None:
        """What was visited so far; files whose nodes name each other again and again end here."""
        self.elements += elements
        self.points += points
        if self.elements > MOST_ELEMENTS:
            raise at.error(f"the scene has more than {MOST_ELEMENTS} elements")
        if self.points > MOST_POINTS:
            raise at.error(f"the scene has more than {MOST_POINTS} triangles and vertices")

    def get(self, reference: str) -> Element:
        return self.by_id[reference.lstrip("#")]

    def parts(self) -> list[tuple[Mesh, Rgb | None]]:
        base = np.eye(4)
        asset = self.root.find("asset")
        up = asset.find("up_axis") if asset is not None else None
        if up is None or up.text.strip().upper() == "Y_UP":
            base[:3, :3] = axis_angle(np.array([1.0, 0.0, 0.0]), 0.5 * np.pi)
        elif up.text.strip().upper() == "X_UP":
            base[:3, :3] = axis_angle(np.array([0.0, 1.0, 0.0]), -0.5 * np.pi)
        unit = asset.find("unit") if asset is not None else None
        base[:3, :3] *= float(unit.attrib.get("meter", "1")) if unit is not None else 1.0
        scene = self.root.find("scene")
        shown = scene.find("instance_visual_scene") if scene is not None else None
        if shown is not None:
            for node in self.get(shown.attrib["url"]).findall("node"):
                self.node(node, base, 0)
        else:  # geometries alone
            for geometry in self.root.walk():
                if geometry.tag == "geometry":
                    self.geometry(geometry, base, {})
        return [(together(meshes), color) for color, meshes in self.by_color.items()]

    def node(self, node: Element, above: Array, depth: int) -> None:
        if depth > DEEPEST:
            raise node.error("nodes are nested too deeply")
        self.count(node, elements=1 + len(node.children))
        here = above @ _transform(node)
        for child in node.children:
            if child.tag == "node":
                self.node(child, here, depth + 1)
            elif child.tag == "instance_node":
                self.node(self.get(child.attrib["url"]), here, depth + 1)
            elif child.tag == "instance_geometry":
                every = list(child.walk())
                self.count(child, elements=len(every))
                bound = {
                    e.attrib["symbol"]: e.attrib["target"]
                    for e in every
                    if e.tag == "instance_material"
                }
                self.geometry(self.get(child.attrib["url"]), here, bound)

    def geometry(self, geometry: Element, here: Array, materials: dict[str, str]) -> None:
        mesh = geometry.find("mesh")
        for part in mesh.children if mesh is not None else ():
            if part.tag not in ("triangles", "polylist", "polygons", "tristrips", "trifans"):
                continue
            faces, points = self.surface(part)
            self.count(part, elements=1, points=len(faces) + len(points))
            if not len(faces):
                continue
            if np.linalg.det(here[:3, :3]) < 0.0:
                faces = faces[:, ::-1]
            symbol = part.attrib.get("material", "")
            material = materials.get(symbol, symbol)
            if material not in self.colors:
                self.colors[material] = self.color(material)
            color = self.colors[material]
            moved = points @ here[:3, :3].T + here[:3, 3]
            self.by_color.setdefault(color, []).append(Mesh(moved, faces))

    def surface(self, part: Element) -> tuple[NDArray[np.int64], Array]:
        """Triangles and points of a part; read once, however often it is shown."""
        if id(part) not in self.surfaces:
            faces, points = self.faces(part), self.positions(part)
            if len(faces) and (faces.min() < 0 or faces.max() >= len(points)):
                raise part.error("a face names a vertex that does not exist")
            self.surfaces[id(part)] = faces, points
        return self.surfaces[id(part)]

    def positions(self, part: Element) -> Array:
        entry = next(e for e in part.findall("input") if e.attrib["semantic"] == "VERTEX")
        vertices = self.get(entry.attrib["source"])
        place = next(e for e in vertices.findall("input") if e.attrib["semantic"] == "POSITION")
        source = self.get(place.attrib["source"])
        array = source.find("float_array")
        if array is None:
            raise source.error("positions of vertices are missing")
        points = np.array(array.text.split(), dtype=np.float64).reshape(-1, 3)
        if not np.isfinite(points).all():
            raise source.error("a vertex is not finite")
        return points

    def faces(self, part: Element) -> NDArray[np.int64]:
        """Triangles of a part; polygons are cut into fans."""
        inputs = part.findall("input")
        stride = 1 + max(int(e.attrib.get("offset", "0")) for e in inputs)
        offset = next(
            int(e.attrib.get("offset", "0")) for e in inputs if e.attrib["semantic"] == "VERTEX"
        )
        lists = [
            np.array(p.text.split(), dtype=np.int64).reshape(-1, stride)[:, offset]
            for p in part.findall("p")
        ]
        if part.tag == "triangles":
            return np.concatenate([np.zeros(0, np.int64), *lists]).reshape(-1, 3)
        if part.tag == "tristrips":
            return _stacked(t for run in lists for t in _strip(run))
        if part.tag == "polylist":
            counts = part.find("vcount")
            sizes = [] if counts is None else [int(n) for n in counts.text.split()]
            lists = np.split(lists[0], np.cumsum(sizes)[:-1]) if lists and sizes else []
        return _stacked(t for polygon in lists for t in _fan(polygon))

    def color(self, material: str) -> Rgb | None:
        """The diffuse colour of a material, if it has one."""
        try:
            effect = self.get(material).find("instance_effect")
            shader = self.get(effect.attrib["url"]) if effect is not None else None
        except KeyError:
            return None
        for element in shader.walk() if shader is not None else ():
            if element.tag == "diffuse":
                value = element.find("color")
                if value is not None:
                    given = tuple(float(x) for x in value.text.split())
                    return rgb(given) if np.isfinite(given).all() else None
        return None


def _strip(run: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for i in range(len(run) - 2):
        three = run[i : i + 3]
        yield three[::-1] if i % 2 else three


def _fan(polygon: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for i in range(1, len(polygon) - 1):
        yield polygon[[0, i, i + 1]]


def _stacked(triangles: Iterator[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.array([t.tolist() for t in triangles], dtype=np.int64).reshape(-1, 3)


def _transform(node: Element) -> Array:
    """The product of a node's transformations, in their order."""
    total = np.eye(4)
    for step in node.children:
        if step.tag not in ("matrix", "translate", "rotate", "scale"):
            continue
        numbers = np.array(step.text.split(), dtype=np.float64)
        one = np.eye(4)
        if step.tag == "matrix":
            one = numbers.reshape(4, 4)
        elif step.tag == "translate":
            one[:3, 3] = numbers
        elif step.tag == "scale":
            one[:3, :3] = np.diag(numbers)
        elif len(numbers) != 4:
            raise step.error("a rotation is an axis and an angle: four numbers")
        elif np.linalg.norm(numbers[:3]) > 0.0:
            axis = numbers[:3] / np.linalg.norm(numbers[:3])
            one[:3, :3] = axis_angle(axis, float(np.deg2rad(numbers[3])))
        total = total @ one
    return total
