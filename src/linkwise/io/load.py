"""Reading a model file, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from linkwise.front_door import open_front_door
from linkwise.io.report import Reporter, Strict
from linkwise.io.xml import read_xml
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism


def load(
    path: str | os.PathLike[str],
    *,
    base: Literal["auto", "fixed", "free"] | Hinge = "auto",
    strict: Strict = False,
    keep_fixed: bool = False,
    roots: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
) -> Mechanism:
    """The mechanism in a URDF or MJCF file; the format is told by the root element.

    Args:
        path: The file.
        base: How the first link is joined to the ground. "auto" does what the format means: a
            URDF stands on the ground, an MJCF says itself. "fixed", "free" (six freedoms) and a
            hinge of your own overrule it.
        strict: True raises on the first element that is not fully used; "motion" only on one for
            which the mechanism moves otherwise than the file says: friction, limits, contacts and
            actuators, for instance, are kept or reported, but do not act. Otherwise such elements
            are listed in `mech.load_report`.
        keep_fixed: Keep links on fixed joints as bodies of their own, on locked hinges. Without
            it they melt into the body they are fixed to and stay as nodes that carry inertia.
        roots: Folders in which meshes may lie, besides the model's own folder and package.

    Raises:
        ParseError: The file cannot be used; with file, line, reason and what to do.
    """
    roots = [roots] if isinstance(roots, str | os.PathLike) else roots
    root = read_xml(path)
    reporter = Reporter(path, strict)
    if root.tag == "robot":
        from linkwise.io.urdf.read import read_urdf

        return read_urdf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    if root.tag == "mujoco":
        from linkwise.io.mjcf.read import read_mjcf

        return read_mjcf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    known = {"sdf": "SDF is not read; convert it to URDF or MJCF", "COLLADA": "this is a mesh"}
    what = known.get(root.tag, "this is no model format")
    raise root.error(f"{what}; a URDF starts with <robot>, an MJCF with <mujoco>")


open_front_door(globals(), ("load",))
