"""Which file does a mesh reference mean, and may it be opened?

A reference is followed only into the model's own directory, its package, and the roots the caller
allows, after symbolic links are resolved. Nothing is opened here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from linkwise.errors import ParseError
from linkwise.io.xml import shorten

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
    `package.xml`, or, for `package://NAME/...`, a folder above it called NAME) and `roots`.

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
    inside = False
    for candidate, allowed in candidates:
        try:
            real = os.path.realpath(candidate)
            if any(_within(real, root) for root in allowed):
                inside = True
                if os.path.isfile(real):
                    return Path(real)
        except (OSError, ValueError):
            continue
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


def _split(uri: str) -> tuple[str, str]:
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return "", uri.replace("\\", "/")
    return scheme.lower(), rest.replace("\\", "/")


def _in_packages(path: str, folder: str, roots: list[str]) -> list[tuple[str, list[str]]]:
    """Places where `NAME/rest` may be, each with the package it has to stay in."""
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
    packages += [os.path.join(folder, name)]
    return [(os.path.join(p, rest), [p]) for p in packages]


def _package_of(folder: str) -> list[str]:
    for candidate in (Path(folder), *Path(folder).parents):
        if (candidate / "package.xml").is_file():
            return [str(candidate)]
    return []


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)
