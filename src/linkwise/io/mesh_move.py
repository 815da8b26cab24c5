"""Where are the meshes of a mechanism, seen from the file it is saved to?

A mesh is kept as the text of its model file, which is relative to that file, or names a package. In
another folder that text means another file, or none.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from linkwise.errors import ParseError
from linkwise.io.mesh_path import resolve_mesh
from linkwise.io.report import Reporter
from linkwise.model.body import Body, Node
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism


def with_meshes_seen_from(
    mech: Mechanism, target: Path, reporter: Reporter, *, packages: bool
) -> Mechanism:
    """The mechanism, with paths of meshes that lead from the folder of `target` to the same files.

    Args:
        mech: The mechanism.
        target: The file it will be saved to.
        reporter: Takes the meshes that are not found: their text is written as it is.
        packages: Whether the format knows `package://`, which then stays.
    """
    known: dict[str, str] = {}

    def moved(shape: Geometry) -> Geometry:
        if shape.file is None:
            return shape
        if shape.file not in known:
            known[shape.file] = _seen_from(shape.file, mech, target, reporter, packages)
        return replace(shape, file=known[shape.file])

    def shapes(part: Body | Node) -> tuple[Geometry, ...]:
        return tuple(moved(shape) for shape in part.geometry)

    if not any(s.file for part in (*mech.bodies, *mech.nodes) for s in part.geometry):
        return mech
    return replace(
        mech,
        bodies=tuple(replace(b, geometry=shapes(b)) if b.geometry else b for b in mech.bodies),
        nodes=tuple(replace(n, geometry=shapes(n)) if n.geometry else n for n in mech.nodes),
    )


def _seen_from(file: str, mech: Mechanism, target: Path, reporter: Reporter, packages: bool) -> str:
    source = mech.load_report.source
    named = file.startswith(("package://", "model://"))
    if named and packages:
        return file
    here = os.path.dirname(os.path.realpath(target))
    beside = os.path.realpath(source) if source else os.path.join(here, "model")
    plain = file.replace("\\", "/").removeprefix("file://")
    found = None if named else os.path.join(os.path.dirname(beside), plain)
    if named:
        try:
            found = str(resolve_mesh(file, beside))
        except ParseError:
            found = None
    if found is None or not os.path.isfile(found):
        reason = f"mesh file '{file}' is not found; its path is written as it is"
        reporter.note(f"mesh '{file}'", "approximate", reason, "appearance")
        return file
    if os.path.isabs(plain):
        return file
    return os.path.relpath(os.path.realpath(found), here).replace(os.sep, "/")
