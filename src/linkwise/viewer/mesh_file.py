"""Meshes of model files: found by the rules of `linkwise.io.mesh_path`, read, and split."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.errors import LinkwiseError, MissingExtraError, ParseError
from linkwise.io.mesh_path import Roots, resolve_mesh
from linkwise.io.mjcf.mesh_file import read_mesh_file
from linkwise.model.geometry import Geometry
from linkwise.viewer.collada import read_collada
from linkwise.viewer.look import Rgb
from linkwise.viewer.mesh import Mesh, creased, lighter, together

LARGEST = 200 * 2**20
"""Files larger than this [bytes] are not opened."""


@dataclass(frozen=True, slots=True, eq=False)
class Colored:
    """A surface and its colour; None where the file has none."""

    mesh: Mesh
    rgb: Rgb | None


class MeshFiles:
    """Reads the meshes of one model, each file once, and remembers what was missing.

    Args:
        source: The model file; empty for a mechanism that was built in code.
        roots: Further folders in which meshes may lie.
        most: Triangles of one mesh, at most; larger ones are made lighter.
    """

    def __init__(self, source: str, roots: Roots = (), *, most: int = 24_000) -> None:
        self._source, self._roots, self._most = source, roots, most
        self._read = dict[Path, tuple[Colored, ...]]()
        self.missing = dict[str, str]()

    def load(self, shape: Geometry) -> tuple[Colored, ...]:
        """Surfaces of a mesh in the frame of its carrier; empty and noted if unreadable."""
        assert shape.file is not None
        try:
            path = self._path(shape.file)
            if path not in self._read:
                self._read[path] = self._open(path)
            with np.errstate(over="ignore", invalid="ignore"):  # it is checked below
                parts = tuple(
                    Colored(part.mesh.scaled(shape.scale).moved(shape.pose), part.rgb)
                    for part in self._read[path]
                )
            _check_drawable(parts, path)
        except Exception as error:  # readers of foreign files may raise anything
            self.missing.setdefault(shape.file, _why(error))
            return ()
        return parts

    def _path(self, uri: str) -> Path:
        if not self._source and not self._roots:
            raise ParseError("the mechanism was not loaded from a file; pass roots=[...]", file=uri)
        base = self._source or os.path.join(os.fspath(self._roots[0]), "model.urdf")
        return resolve_mesh(uri, base, self._roots)

    def _open(self, path: Path) -> tuple[Colored, ...]:
        if path.stat().st_size > LARGEST:
            raise ParseError(f"the mesh is larger than {LARGEST // 2**20} MiB", file=str(path))
        suffix = path.suffix.lower()
        if suffix == ".dae":
            parts = [Colored(mesh, color) for mesh, color in read_collada(path)]
        elif suffix in (".stl", ".obj", ".msh"):
            mesh = read_mesh_file(str(path))
            parts = [Colored(Mesh(mesh.vertices, mesh.faces), None)]
        else:
            parts = [Colored(_by_trimesh(path), None)]
        parts = [part for part in parts if len(part.mesh.faces)]
        if not parts:
            raise ParseError("the mesh has no triangles", file=str(path))
        _check_drawable(parts, path)
        share = sum(len(part.mesh.faces) for part in parts)
        return tuple(
            Colored(
                creased(lighter(p.mesh, max(64, self._most * len(p.mesh.faces) // share))), p.rgb
            )
            for p in parts
        )


def _check_drawable(parts: Sequence[Colored], path: Path) -> None:
    """Raises unless all vertices are finite in the single precision of a page."""
    with np.errstate(over="ignore", invalid="ignore"):
        good = all(np.isfinite(part.mesh.vertices.astype(np.float32)).all() for part in parts)
    if not good:
        raise ParseError("a vertex is not finite, or farther than 1e38 m", file=str(path))


def _why(error: Exception) -> str:
    """Why a mesh is missing, in a line."""
    if isinstance(error, LinkwiseError | OSError):
        return getattr(error, "reason", None) or str(error)
    return f"it cannot be read: {type(error).__name__}: {error}"


def _by_trimesh(path: Path) -> Mesh:
    """Other formats, through trimesh; it gets the bytes and nothing else to open."""
    try:
        trimesh: Any = importlib.import_module("trimesh")
    except ImportError:
        raise MissingExtraError("a mesh file", package="trimesh", extra="viewer") from None
    try:
        # From an open file it would take the name, and open what lies beside it.
        held = io.BytesIO(path.read_bytes())
        scene: Any = trimesh.load_scene(held, file_type=path.suffix[1:].lower())
        dumped: Any = scene.dump(concatenate=False)
        pieces = cast("list[Any]", dumped if isinstance(dumped, list) else [dumped])
        meshes = [
            Mesh(np.asarray(p.vertices, float), np.asarray(p.faces, np.int64))
            for p in pieces
            if hasattr(p, "faces")
        ]
    except Exception as error:  # a reader of foreign formats may raise anything
        raise ParseError(
            f"the mesh cannot be read (files beside it are not opened): {error}", file=str(path)
        ) from None
    return together(meshes)
