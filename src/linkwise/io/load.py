"""Reading a model: a URDF, MJCF or xacro file, or the text of one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from linkwise.errors import MissingExtraError, ParseError
from linkwise.front_door import open_front_door
from linkwise.io.mesh_path import Roots, package_file
from linkwise.io.report import Reporter, Strict
from linkwise.io.xml import Element, parse_xml, read_bytes
from linkwise.model.hinges import Hinge
from linkwise.model.mechanism import Mechanism

_OTHER_FORMATS = {
    "sdf": "SDF is not supported. Convert it to URDF or MJCF, for instance with the Python package "
    "'rod' (rod.urdf.exporter.UrdfExporter), and check its joints: URDF has fewer types",
    "COLLADA": "this is a mesh, not a model",
}


def load(
    source: str | os.PathLike[str],
    *,
    base: Literal["auto", "fixed", "free"] | Hinge = "auto",
    strict: Strict = False,
    keep_fixed: bool = False,
    roots: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
    xacro_args: Mapping[str, str] | None = None,
) -> Mechanism:
    """The mechanism in a URDF, MJCF or xacro file; the root element says which format it is.

    Args:
        source: A path, where `~` means your home folder; `package://name/path`, looked up in
            `roots`, `ROS_PACKAGE_PATH` and `AMENT_PREFIX_PATH`; or XML text, which starts with "<".
        base: How the first link is joined to the ground. "auto" follows the format: a URDF is
            fixed to the ground, an MJCF file says how. "fixed", "free" (six degrees of freedom) and
            any hinge override it.
        strict: True raises on the first element that is not fully used; "motion" only on one that
            makes the mechanism move differently from what the file says: friction, limits, contacts
            and actuators, for instance, are kept or reported, but do not act. Otherwise such
            elements are listed in `mech.load_report`.
        keep_fixed: Keep links on fixed joints as separate bodies, on locked hinges. By default
            they merge into the body they are fixed to and remain as nodes that carry inertia.
        roots: Folders that may hold meshes and packages, besides the model's folder and package.
        xacro_args: Values of the `<xacro:arg>` elements of a xacro file.

    Raises:
        ParseError: The file cannot be used; with file, line, reason and what to do. If there is no
            such file, the error is also a `FileNotFoundError`.
        MissingExtraError: A xacro file, or a convex hull of a mesh, needs a package that is not
            installed.
    """
    roots = [roots] if isinstance(roots, str | os.PathLike) else roots
    roots = [os.path.expanduser(folder) for folder in roots]
    path, root = _read(os.fspath(source), roots, xacro_args)
    reporter = Reporter(path, strict)
    if root.tag == "robot":
        from linkwise.io.urdf.read import read_urdf

        return read_urdf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    if root.tag == "mujoco":
        from linkwise.io.mjcf.read import read_mjcf

        return read_mjcf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    reason = _OTHER_FORMATS.get(root.tag, "this is not a model format")
    raise root.error(f"{reason}; a URDF starts with <robot>, an MJCF with <mujoco>")


def _read(source: str, roots: Roots, xacro_args: Mapping[str, str] | None) -> tuple[str, Element]:
    """The path of a model, as named by messages, and its root element."""
    if source.lstrip("\ufeff \t\r\n").startswith("<"):
        path, data = "<string>", source.lstrip("\ufeff \t\r\n")
    else:
        is_package = source.startswith("package://")
        path = package_file(source, roots) if is_package else os.path.expanduser(source)
        data = read_bytes(path)
        suffix = os.path.splitext(path)[1].lower()
        usd = (".usd", ".usda", ".usdc", ".usdz")
        if suffix in usd or data.startswith((b"#usda", b"PXR-USDC")):
            raise ParseError(
                "USD files are not supported; export the robot as URDF or MJCF, for instance with "
                "the URDF exporter of Isaac Sim",
                file=path,
            )
        if suffix == ".xacro":
            return path, _expanded(path, data, roots, xacro_args)
    root = parse_xml(data, file=path)
    if any(element.tag.startswith("xacro:") for element in root.walk()):
        return path, _expanded(path, data, roots, xacro_args)
    if xacro_args:
        raise ParseError("xacro_args were given, but this is not a xacro file", file=path)
    return path, root


def _expanded(
    path: str, data: str | bytes, roots: Roots, arguments: Mapping[str, str] | None
) -> Element:
    """The root element of a xacro file, with all macros expanded."""
    try:
        library: Any = import_module("xacrodoc")
    except ImportError:
        raise MissingExtraError("a xacro file", package="xacrodoc", extra="xacro") from None
    text = data if isinstance(data, str) else data.decode("utf-8", errors="replace")
    try:
        library.packages.reset()
        library.packages.walk_up_from(os.path.abspath(path))
        for folder in roots:
            library.packages.look_in(os.fspath(folder))
        library.xacrodoc.xacro.init_stacks(path)  # includes are relative to this file
        document = library.XacroDoc.from_string(
            text, subargs=dict(arguments or {}), resolve_packages=False
        )
        text = str(document.dom.toxml())
    except Exception as problem:  # xacro evaluates Python expressions, which can fail in any way
        raise ParseError(f"xacro cannot expand this file: {problem}", file=path) from problem
    return parse_xml(text, file=f"{path}, expanded")


open_front_door(globals(), ("load",))
