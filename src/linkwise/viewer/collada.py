"""Triangles and colours of a COLLADA file (.dae), read with pycollada.

A mesh is shown in one colour for each material; textures, skins and animations are not.
"""

from __future__ import annotations

import importlib
import io
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.errors import MissingExtraError, ParseError
from linkwise.spatial.array import Array
from linkwise.viewer.look import Rgb, rgb
from linkwise.viewer.mesh import Mesh, together

MOST_POINTS = 10_000_000
"""Triangles and vertices of the whole scene, each as often as it is shown."""

UPRIGHT = {
    "X_UP": np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]),
    "Y_UP": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z_UP": np.eye(3),
}
"""Rotations to z up, by the upward axis of a file."""


def read_collada(path: Path) -> list[tuple[Mesh, Rgb | None]]:
    """Surfaces of a file, one for each colour, in metres and with z up.

    Raises:
        ParseError: Not such a file, or one that is broken.
        MissingExtraError: pycollada is not installed.
    """
    try:
        collada: Any = importlib.import_module("collada")
    except ImportError:
        raise MissingExtraError("a .dae file", package="pycollada", extra="viewer") from None
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():  # what is not finite is refused
            warnings.simplefilter("ignore")  # it uses matrices of NumPy
            return _surfaces(collada.Collada(io.BytesIO(path.read_bytes())))
    except Exception as error:  # a reader of foreign files may raise anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ParseError(f"the COLLADA file cannot be read: {reason}", file=str(path)) from None


def _surfaces(file: Any) -> list[tuple[Mesh, Rgb | None]]:
    turn = UPRIGHT[file.assetInfo.upaxis or "Y_UP"] * float(file.assetInfo.unitmeter or 1.0)
    by_color = dict[Rgb | None, list[Mesh]]()
    points = 0
    for geometry in file.scene.objects("geometry"):
        for part in geometry.primitives():
            if hasattr(part, "triangleset"):
                part = part.triangleset()
            faces: Any = getattr(part, "vertex_index", None)
            if faces is None or np.shape(faces)[1:] != (3,):  # lines
                continue
            points += len(faces) + len(part.vertex)
            if points > MOST_POINTS:
                raise ValueError(f"the scene has more than {MOST_POINTS} triangles and vertices")
            by_color.setdefault(_color(part), []).append(_mesh(part.vertex, faces, turn))
    return [(together(meshes), color) for color, meshes in by_color.items()]


def _mesh(points: Any, triangles: Any, turn: Array) -> Mesh:
    vertices, faces = np.asarray(points, dtype=np.float64), np.asarray(triangles, dtype=np.int64)
    if not np.isfinite(vertices).all():
        raise ValueError("a vertex is not finite")
    if faces.size and (faces.min() < 0 or faces.max() >= len(vertices)):
        raise ValueError("a face names a vertex that does not exist")
    return Mesh(vertices @ turn.T, faces)


def _color(part: Any) -> Rgb | None:
    """The diffuse colour of a part's material, if it has one."""
    diffuse: Any = getattr(getattr(part.material, "effect", None), "diffuse", None)
    given = tuple(map(float, cast("tuple[Any, ...]", diffuse))) if type(diffuse) is tuple else ()
    return rgb(given) if len(given) >= 3 and np.isfinite(given).all() else None
