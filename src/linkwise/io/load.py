"""Reading a model: a URDF, MJCF, xacro or JSON file, or the text of one."""

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

TEXT = "<string>"
"""The path of text, in messages."""

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
    """The mechanism in a URDF, MJCF, xacro or JSON file; its first element says which it is.

    Args:
        source: A path, where `~` means your home folder; `package://name/path`, looked up in
            `roots`, `ROS_PACKAGE_PATH` and `AMENT_PREFIX_PATH`; or text: XML starts with "<", the
            JSON of `lw.save` with "{".
        base: How the first link is joined to the ground. "auto" follows the format: a URDF is
            fixed to the ground, an MJCF file says how. "fixed", "free" (six degrees of freedom) and
            any hinge override it, except in JSON files.
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
    path, data = _read(os.fspath(source), roots)
    if _is_json(path, data):
        if base != "auto" or xacro_args:
            what = "base" if base != "auto" else "xacro_args"
            reason = f"{what} is given, and a JSON file has the whole mechanism; leave it out"
            raise ParseError(reason, file=path)
        from linkwise.io.mechanism_json import read

        return read(data, path, Reporter(path, strict))
    root = _root(path, data, roots, xacro_args)
    reporter = Reporter(path, strict)
    if root.tag == "robot":
        from linkwise.io.urdf.read import read_urdf

        return read_urdf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    if root.tag == "mujoco":
        from linkwise.io.mjcf.read import read_mjcf

        return read_mjcf(root, path, reporter, base=base, keep_fixed=keep_fixed, roots=roots)
    reason = _OTHER_FORMATS.get(root.tag, "this is not a model format")
    raise root.error(f"{reason}; a URDF starts with <robot>, an MJCF with <mujoco>")


def _read(source: str, roots: Roots) -> tuple[str, str | bytes]:
    """The path of a model, as named by messages, and its text."""
    text = source.lstrip("\ufeff \t\r\n")
    if text.startswith(("<", "{")):
        return TEXT, text
    is_package = source.startswith("package://")
    path = package_file(source, roots) if is_package else os.path.expanduser(source)
    return path, read_bytes(path)


def _is_json(path: str, data: str | bytes) -> bool:
    if isinstance(data, str):
        return data.startswith("{")
    starts = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return starts or os.path.splitext(path)[1].lower() == ".json"


def _root(
    path: str, data: str | bytes, roots: Roots, xacro_args: Mapping[str, str] | None
) -> Element:
    """The root element of XML text."""
    suffix = os.path.splitext(path)[1].lower() if path != TEXT else ""
    usd = isinstance(data, bytes) and data.startswith((b"#usda", b"PXR-USDC"))
    if usd or suffix in (".usd", ".usda", ".usdc", ".usdz"):
        raise ParseError(
            "USD files are not supported; export the robot as URDF or MJCF, for instance with "
            "the URDF exporter of Isaac Sim",
            file=path,
        )
    if suffix == ".xacro":
        return _expanded(path, data, roots, xacro_args)
    root = parse_xml(data, file=path)
    if any(element.tag.startswith("xacro:") for element in root.walk()):
        return _expanded(path, data, roots, xacro_args)
    if xacro_args:
        raise ParseError("xacro_args were given, but this is not a xacro file", file=path)
    return root


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
