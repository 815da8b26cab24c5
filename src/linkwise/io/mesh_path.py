"""Which file does a mesh reference mean, may it be opened, and how is it written elsewhere?

A reference is followed only into the model's own folder, its package, the packages of ROS, and the
roots that the caller allows, after symbolic links are resolved. Nothing is opened here.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from linkwise.errors import MissingFileError, ParseError
from linkwise.io.report import Reporter
from linkwise.io.xml import shorten
from linkwise.model.body import Body, Node
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism

SUFFIXES: Final = frozenset(
    f".{suffix}"
    for suffix in (
        "stl obj dae ply off glb gltf msh wrl iv usd usda usdc usdz 3ds fbx mesh vtk png jpg jpeg"
    ).split()
)
"""File types that a mesh or texture reference may name."""

Roots = Sequence[str | os.PathLike[str]]


def resolve_mesh(uri: str, model_path: str | os.PathLike[str], roots: Roots = ()) -> Path:
    """The existing file that `uri` means, confined to the allowed folders.

    Allowed are the folder of the model file, its package (the nearest folder above it that has a
    `package.xml`, or, for `package://NAME/...`, a folder above it called NAME), `roots`, and, for
    `package://`, packages found by `ROS_PACKAGE_PATH` and `AMENT_PREFIX_PATH`.

    Args:
        uri: `package://NAME/path`, `model://NAME/path`, `file:///path`, or a plain path, which is
            relative to the model file and then to each root.
        model_path: The model file.
        roots: Further folders, either a package itself or one that contains packages.

    Raises:
        ParseError: The reference leaves the allowed folders, names no mesh file, or the file is
            missing. The message says which, and what to do.
    """
    file = str(os.fspath(model_path))
    scheme, path = _split(uri)
    if "\0" in uri or not path or scheme not in ("", "file", "package", "model"):
        raise ParseError(f"mesh reference '{shorten(uri)}' is not a path or package://", file=file)
    if os.path.splitext(path)[1].lower() not in SUFFIXES:
        raise ParseError(f"mesh reference '{shorten(uri)}' names no mesh file type", file=file)
    folder = os.path.dirname(os.path.realpath(file))
    given = [os.path.realpath(str(os.fspath(root))) for root in roots]
    if scheme in ("package", "model"):
        candidates = _in_packages(path, folder, given)
    else:
        allowed = [folder, *_package_of(folder), *given]
        candidates = [(os.path.join(start, path), allowed) for start in (folder, *given)]
    real, inside = _first_file(candidates)
    if real is not None:
        return Path(real)
    if not inside:
        raise ParseError(
            f"mesh reference '{shorten(uri)}' leaves the allowed folders; "
            "pass the folder it lies in as roots=[...]",
            file=file,
        )
    raise ParseError(
        f"mesh file '{shorten(uri)}' is missing; put it there or pass its folder as roots=[...]",
        file=file,
    )


def package_file(uri: str, roots: Roots = ()) -> str:
    """The existing file that `package://NAME/path` means.

    Raises:
        MissingFileError: No package of this name has the file.
    """
    given = [os.path.realpath(str(os.fspath(root))) for root in roots]
    real, _ = _first_file(_in_packages(_split(uri)[1], os.getcwd(), given))
    if real is None:
        raise MissingFileError(
            "no package has this file; pass the folder of the package as roots=[...], or add it to "
            "ROS_PACKAGE_PATH",
            file=uri,
        )
    return real


def _first_file(candidates: Sequence[tuple[str, list[str]]]) -> tuple[str | None, bool]:
    """The first file inside its allowed folders, and whether any candidate was inside."""
    inside = False
    for candidate, allowed in candidates:
        try:
            real = os.path.realpath(candidate)
            if any(_within(real, root) for root in allowed):
                inside = True
                if os.path.isfile(real):
                    return real, True
        except (OSError, ValueError):
            continue
    return None, inside


def _split(uri: str) -> tuple[str, str]:
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return "", uri.replace("\\", "/")
    return scheme.lower(), rest.replace("\\", "/")


def _in_packages(path: str, folder: str, roots: list[str]) -> list[tuple[str, list[str]]]:
    """Candidates for `NAME/rest`, each with the package that it has to stay in."""
    name, _, rest = path.lstrip("/").partition("/")
    if name in ("", ".", ".."):
        return []
    packages = [
        root if os.path.basename(root) == name else os.path.join(root, name) for root in roots
    ]
    above = [str(p) for p in (Path(folder), *Path(folder).parents)]
    # A folder directly below the file system's root (/home, /usr) is never taken for a package.
    packages += [p for p in above if os.path.basename(p) == name and len(Path(p).parts) > 2]
    packages += [os.path.join(p, name) for p in _package_of(folder)]  # a package inside the package
    packages += [os.path.join(folder, name), *_ros_packages(name)]
    return [(os.path.join(p, rest), [os.path.realpath(p)]) for p in packages]


def _ros_packages(name: str) -> list[str]:
    """Folders that ROS knows as this package: of ROS 1 up to three levels below its path."""
    packages = list[str]()
    for start in _folders("ROS_PACKAGE_PATH"):
        packages += [start] if os.path.basename(start) == name else []
        for levels in range(3):
            pattern = os.path.join(glob.escape(start), *("*",) * levels, glob.escape(name))
            packages += sorted(glob.glob(pattern))
    packages += [os.path.join(start, "share", name) for start in _folders("AMENT_PREFIX_PATH")]
    return packages


def _folders(variable: str) -> list[str]:
    parts = os.environ.get(variable, "").split(os.pathsep)
    return [os.path.realpath(os.path.expanduser(part)) for part in parts if part]


def _package_of(folder: str) -> list[str]:
    for candidate in (Path(folder), *Path(folder).parents):
        if (candidate / "package.xml").is_file():
            return [str(candidate)]
    return []


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def move_meshes(mech: Mechanism, target: Path, reporter: Reporter, *, packages: bool) -> Mechanism:
    """The mechanism, with mesh paths that lead from the folder of `target` to the same files.

    A mesh is kept as the text of its model file, which is relative to that file, or names a
    package. In another folder that text would mean another file, or none.

    Args:
        mech: The mechanism.
        target: The file it will be saved to.
        reporter: Collects the meshes that do not exist: their text is written unchanged.
        packages: Whether the format knows `package://`, which is then kept.
    """
    if not any(s.file for part in (*mech.bodies, *mech.nodes) for s in part.geometry):
        return mech
    moved: dict[str, str] = {}

    def shapes(part: Body | Node) -> tuple[Geometry, ...]:
        for shape in part.geometry:
            if shape.file is not None and shape.file not in moved:
                moved[shape.file] = _moved(shape.file, mech, target, reporter, packages)
        return tuple(s if s.file is None else replace(s, file=moved[s.file]) for s in part.geometry)

    return replace(
        mech,
        bodies=tuple(replace(b, geometry=shapes(b)) if b.geometry else b for b in mech.bodies),
        nodes=tuple(replace(n, geometry=shapes(n)) if n.geometry else n for n in mech.nodes),
    )


def _moved(file: str, mech: Mechanism, target: Path, reporter: Reporter, packages: bool) -> str:
    source = mech.load_report.source
    in_package = file.startswith(("package://", "model://"))
    if in_package and packages:
        return file
    here = os.path.dirname(os.path.realpath(target))
    model = os.path.realpath(source) if source else os.path.join(here, "model")
    plain = file.replace("\\", "/").removeprefix("file://")
    mesh = os.path.join(os.path.dirname(model), plain)
    if in_package:
        try:
            mesh = str(resolve_mesh(file, model))
        except ParseError:
            mesh = ""
    if not os.path.isfile(mesh):
        reason = f"mesh file '{file}' is not found; its path is written as it is"
        reporter.note(f"mesh '{file}'", "approximate", reason, "appearance")
        return file
    if os.path.isabs(plain):
        return file
    return os.path.relpath(os.path.realpath(mesh), here).replace(os.sep, "/")
