"""What are the volume, centre of mass and inertia of a mesh asset, the way MuJoCo infers them?

A mesh is cut into pyramids, one a face, and their volumes and products of inertia are summed.
With faces D E F seen from the point O and signed volume V of the pyramid O D E F,

    centre of mass      Σ V (D + E + F + O) / 4 / Σ V
    second moments      P = Σ V/20 (2 (DD* + EE* + FF*) + DE* + ED* + DF* + FD* + EF* + FE*)
    inertia             J = tr(P) 1 - P                                 (both about O)

`exact` and `convex` take signed volumes of the mesh and of its convex hull. `legacy`, the default,
takes all volumes positive, first about the centroid of the surface, to find the centre of mass,
then about that: it overcounts meshes that are not star shaped. `shell` spreads the mass over the
surface (areas, and 1/12 in place of 1/20). Source: the MJCF reference, asset/mesh/inertia.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import numpy as np

from linkwise.errors import MissingExtraError, ParseError
from linkwise.io.mjcf.compiler import Compiler
from linkwise.io.mjcf.include import Files
from linkwise.io.mjcf.mesh_file import read_mesh_file
from linkwise.io.mjcf.triangles import Faces, Triangles, check_triangles, single
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, choice, number, numbers, shorten
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array

SMALL: Final = 1e-15
"""Volumes [m³] and areas [m²] below this are none (MuJoCo's mjMINVAL)."""
ROUNDING: Final = 1e-12
"""Sums of parts that cancel each other have no digits below this, relative to the parts."""
BLOCK: Final = 50_000
"""Faces that are summed at a time, which bounds the memory for large meshes."""
MODES: Final = ("convex", "exact", "legacy", "shell")


@dataclass(frozen=True, slots=True, eq=False)
class MeshMass:
    """A mesh of unit density.

    Attributes:
        volume: [m³], or the area [m²] of a shell.
        com: Centre of mass in the mesh frame (3,) [m].
        J: Inertia about it, in the axes of the mesh frame, for unit density (3, 3).
        vertices: After scaling, in the mesh frame (n, 3) [m].
    """

    volume: float
    com: Array
    J: Array
    vertices: Array


@dataclass(slots=True)
class MeshAsset:
    """A `<mesh>` of the assets, with its defaults applied; its file is opened on demand."""

    name: str
    element: Element
    files: Files
    compiler: Compiler
    reporter: Reporter
    _mass: MeshMass | None = field(default=None)

    @property
    def file(self) -> str | None:
        """The file as a path relative to the model file, None for a mesh without one."""
        text = self.element.attrib.get("file")
        if text is None:
            return None
        text = text.replace("\\", "/")
        if self.compiler.strippath:
            text = os.path.basename(text)
        meshdir = self.compiler.meshdir.replace("\\", "/")
        return os.path.normpath(os.path.join(meshdir, text)).replace(os.sep, "/")

    @property
    def scale(self) -> tuple[float, float, float]:
        """Factors along the axes of the mesh."""
        x, y, z = numbers(self.element, "scale", 3, (1.0, 1.0, 1.0)).tolist()
        if not (x and y and z):
            raise self.element.error("'scale' has a factor of 0, which leaves nothing of the mesh")
        return (x, y, z)

    def path(self) -> str | None:
        """Path of the file to open, None if there is none.

        As MuJoCo does, it is looked for in `meshdir` of the main file first, then beside the file
        that names it, which may be an included one.
        """
        if self.file is None:
            return None
        places = [(self.files.model_dir, self.file)]
        beside = os.path.dirname(self.element.file) or "."
        if beside != self.files.model_dir:
            text = self.element.attrib["file"]
            if self.compiler.strippath:
                text = os.path.basename(text.replace("\\", "/"))
            places.append((beside, text))
        return self.files.find(self.element, places)

    @property
    def address(self) -> str | None:
        """The file as seen from the main model file: where it is found, or as it is written."""
        try:
            path = self.path()
        except ParseError:  # outside the allowed directories: nothing is opened there
            path = None
        if path is None:
            return self.file
        return os.path.relpath(path, self.files.model_dir).replace(os.sep, "/")

    def mass(self) -> MeshMass:
        """Volume, centre of mass and inertia; the file is read the first time.

        Raises:
            ParseError: No file, a broken one, or a mesh without volume.
            MissingExtraError: The convex hull is needed and SciPy is not installed.
        """
        if self._mass is None:
            self._mass = mesh_mass(self._placed(), self._mode(), self.element)
        return self._mass

    def _mode(self) -> str:
        return choice(self.element, "inertia", MODES, "legacy")

    def _triangles(self) -> Triangles:
        element = self.element
        if "builtin" in element.attrib or element.find("plugin") is not None:
            raise element.error("meshes made by 'builtin' or a plugin are not supported")
        if self.file is None:
            vertices = single(numbers(element, "vertex")).ravel()
            faces = numbers(element, "face", None, ())
            if len(vertices) % 3 or len(faces) % 3:
                raise element.error("'vertex' and 'face' take a multiple of 3 numbers")
            if faces.size and (np.abs(faces).max() > 1e9 or (faces != np.trunc(faces)).any()):
                raise element.error("'face' takes indices of vertices, counted from 0")
            inline = Triangles(vertices.reshape(-1, 3), faces.astype(np.int64).reshape(-1, 3))
            return check_triangles(inline, element.file)
        path = self.path()
        if path is None:
            raise element.error(
                f"the mesh file '{shorten(self.file)}' does not exist, and the inertia of a body "
                "depends on it; put it there or give the body an <inertial>"
            )
        triangles = read_mesh_file(path, element.attrib.get("content_type", ""), like_mujoco=True)
        for reason in triangles.left_out:
            self.reporter.note(element, "approximate", f"{shorten(self.file)}: {reason}", "motion")
        return triangles

    def _placed(self) -> Triangles:
        """Triangles after refpos, refquat and scale, in this order."""
        triangles = self._triangles()
        element = self.element
        vertices = triangles.vertices - numbers(element, "refpos", 3, (0.0, 0.0, 0.0))
        quat = numbers(element, "refquat", 4, (1.0, 0.0, 0.0, 0.0))
        if not quat.any():
            raise element.error("'refquat' is zero; a quaternion has unit length")
        vertices = vertices @ quaternion.to_matrix(quaternion.normalise(quat))
        faces = triangles.faces
        if np.prod(np.sign(self.scale)) < 0:
            faces = faces[:, [0, 2, 1]]  # a mirror image turns the faces inside out
        vertices = vertices * np.array(self.scale)
        if not len(faces) or self._mode() == "convex":
            if number(element, "maxhullvert", -1.0) > 0:
                raise element.error("'maxhullvert' is not supported where the hull gives inertia")
            faces = _hull(vertices, element)
        return Triangles(vertices, faces)


def mesh_mass(mesh: Triangles, mode: str, element: Element) -> MeshMass:
    """Volume, centre of mass and inertia of triangles in one of the modes above."""
    if mode == "exact":
        _check_orientation(mesh, element)
    blocks = [mesh.faces[i : i + BLOCK] for i in range(0, len(mesh.faces), BLOCK)]
    total, moment = 0.0, np.zeros(3)
    for faces in blocks:
        area, _, centre = _faces(mesh.vertices[faces])
        total, moment = total + float(area.sum()), moment + area @ centre
    if not SMALL <= total < np.inf:
        raise element.error("the surface of the mesh is too small or too large")
    centroid = moment / total
    if mode == "shell":
        P = np.zeros((3, 3))
        for faces in blocks:
            corners = mesh.vertices[faces] - centroid
            P += _second_moment(corners, _faces(corners)[0], 12.0)
        return MeshMass(total, centroid, _inertia(P), mesh.vertices)
    volume, size, moment = 0.0, 0.0, np.zeros(3)
    for faces in blocks:
        signed, centre = _pyramids(mesh.vertices[faces] - centroid, mode)
        volume, moment = volume + float(signed.sum()), moment + signed @ centre
        size += float(np.abs(signed).sum())
    _check_volume(volume, size, element)
    com = centroid + 0.75 * moment / volume
    volume, size, P = 0.0, 0.0, np.zeros((3, 3))
    for faces in blocks:
        corners = mesh.vertices[faces] - com
        signed, _ = _pyramids(corners, mode)
        volume, P = volume + float(signed.sum()), P + _second_moment(corners, signed, 20.0)
        size += float(np.abs(signed).sum())
    _check_volume(volume, size, element)
    return MeshMass(volume, com, _inertia(P), mesh.vertices)


def _check_volume(volume: float, size: float, element: Element) -> None:
    """Refuse a volume without digits: the sum of pyramids of this size that cancel each other."""
    if not max(SMALL, ROUNDING * size) <= volume < np.inf:
        raise element.error(
            f"the volume of the mesh is {volume:.3g} m³; check the orientation of its faces, or "
            "set inertia='shell'"
        )


def _faces(corners: Array) -> tuple[Array, Array, Array]:
    """Area (m,), doubled area vector (m, 3) and centre (m, 3) of triangles (m, 3, 3)."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return 0.5 * np.linalg.norm(normal, axis=-1), normal, corners.mean(axis=1)


def _pyramids(corners: Array, mode: str) -> tuple[Array, Array]:
    """Volumes (m,) of the pyramids from the origin to the triangles, and their centres (m, 3)."""
    _, normal, centre = _faces(corners)
    volume = np.einsum("ij,ij->i", centre, normal) / 6.0
    return (np.abs(volume) if mode == "legacy" else volume), centre


def _second_moment(corners: Array, weight: Array, divisor: float) -> Array:
    """P as in the head of this file."""
    # 2 (DD* + EE* + FF*) + mixed terms = DD* + EE* + FF* + (D + E + F)(D + E + F)*
    total = corners.sum(axis=1)
    P = np.einsum("m,mci,mcj->ij", weight, corners, corners)
    return (P + np.einsum("m,mi,mj->ij", weight, total, total)) / divisor


def _inertia(P: Array) -> Array:
    P = 0.5 * (P + P.T)
    return np.trace(P) * np.eye(3) - P


def _check_orientation(mesh: Triangles, element: Element) -> None:
    """Each edge may be walked once in each direction if the faces are oriented alike."""
    area, _, _ = _faces(mesh.vertices[mesh.faces])
    faces = mesh.faces[area > np.sqrt(SMALL)]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    if len(np.unique(edges, axis=0)) < len(edges):
        raise element.error(
            "inertia='exact' needs faces of one orientation; this mesh has an edge that two faces "
            "walk in the same direction"
        )


def _hull(vertices: Array, element: Element) -> Faces:
    """Faces of the convex hull, oriented outward."""
    try:
        spatial: Any = import_module("scipy.spatial")
    except ImportError:
        request = f"The inertia of mesh {element.label} from its convex hull"
        raise MissingExtraError(request, package="scipy", extra="mesh") from None
    try:
        hull: Any = spatial.ConvexHull(vertices)
    except (spatial.QhullError, ValueError) as problem:
        reason = shorten(str(problem))
        raise element.error(f"the mesh has no convex hull with a volume: {reason}") from None
    faces = hull.simplices.astype(np.int64)
    _, normal, _ = _faces(vertices[faces])
    inward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, [0, 2, 1]]
    return faces


def box_axes(mass: MeshMass) -> tuple[Array, Array]:
    """Half sides of the box of equal inertia (3,) [m], and the rotation to its axes (3, 3).

    Principal moments are taken in descending order, as MuJoCo does: z is the long side.
    """
    moments, axes = np.linalg.eigh(mass.J)
    moments, axes = moments[::-1], axes[:, ::-1]
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    second = np.clip(moments.sum() - 2.0 * moments, 0.0, None)
    return 0.5 * np.sqrt(6.0 * second / mass.volume), axes


def read_meshes(
    elements: list[Element], files: Files, compiler: Compiler, reporter: Reporter
) -> dict[str, MeshAsset]:
    """Mesh assets by name; one without a name is called as its file, without path and suffix."""
    meshes: dict[str, MeshAsset] = {}
    for element in elements:
        file = element.attrib.get("file", "").replace("\\", "/")
        name = element.attrib.get("name") or os.path.splitext(os.path.basename(file))[0]
        if not name:
            raise element.error("a mesh needs a name or a file")
        if name in meshes:
            raise element.error(f"the mesh name '{shorten(name)}' is used twice")
        meshes[name] = MeshAsset(name, element, files, compiler.of(element), reporter)
    return meshes
