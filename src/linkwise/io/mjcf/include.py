"""Which files does an MJCF file mean, may they be opened, and what do its includes expand to?

A model file may come from anywhere, so the files it names (includes, meshes) are followed only
into the directory of the model file and into the directories the caller allows as `roots`.
Symbolic links are resolved before the comparison.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from linkwise.errors import ParseError
from linkwise.io.xml import MAX_DEPTH, Element, read_xml, required, shorten


@dataclass(frozen=True, slots=True)
class Files:
    """The directories that a model's files may come from.

    Attributes:
        model_dir: Directory of the main model file.
        allowed: Resolved directories: the model's own, then the roots.
    """

    model_dir: str
    allowed: tuple[str, ...]

    @staticmethod
    def of(path: str | os.PathLike[str], roots: Sequence[str | os.PathLike[str]]) -> Files:
        """Files next to the model file `path`, or below one of `roots`."""
        name: str = os.fspath(path)
        model_dir = os.path.dirname(name) or "."
        dirs: list[str] = [model_dir, *(os.fspath(root) for root in roots)]
        return Files(model_dir, tuple(dict.fromkeys(os.path.realpath(d) for d in dirs)))

    def find(self, element: Element, places: Sequence[tuple[str, str]]) -> str | None:
        """Path of the first allowed, existing file of `places`, each a directory and a name in it.

        None if there is none.

        Raises:
            ParseError: None is found, and some path points outside the allowed directories.
        """
        outside = ""
        for directory, name in places:
            if "\0" in name:
                raise element.error("the file name contains a zero byte")
            name = name.replace("\\", "/")  # Windows separators are read as MuJoCo does
            candidate = os.path.join(directory, name)
            if not self._inside(candidate):
                outside = outside or name
            elif os.path.isfile(candidate):
                return candidate
        if outside:
            raise element.error(
                f"file '{shorten(outside)}' lies outside the model's directory; allowed are files "
                "below it and below the directories given as roots=(...)"
            )
        return None

    def _inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(real == d or real.startswith(d.rstrip(os.sep) + os.sep) for d in self.allowed)


MAX_INCLUDES: Final = 200
"""Most files one model may include."""
MAX_ELEMENTS: Final = 1_000_000
"""Most elements of a model, all its files together."""


def expand_includes(root: Element, files: Files) -> Element:
    """The tree with the children of each included root put in place of its `<include>`.

    A relative name is looked for next to the main model file, then next to the including file,
    as MuJoCo does. A file may be included only once, which also rules out cycles. The elements
    keep the file and line they come from. The tree is changed in place.

    Raises:
        ParseError: A missing, escaping or repeated file, or a model beyond the limits.
    """
    included = {os.path.realpath(root.file)}
    count = 0
    # (element, depth) whose children still have to be looked at.
    stack: list[tuple[Element, int]] = [(root, 1)]
    while stack:
        parent, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise parent.error(f"nested deeper than {MAX_DEPTH} levels, includes counted")
        count += len(parent.children)
        if count > MAX_ELEMENTS:
            raise parent.error(f"the model has more than {MAX_ELEMENTS} elements, includes counted")
        children: list[Element] = []
        waiting = list(reversed(parent.children))
        while waiting:
            child = waiting.pop()
            if child.tag == "include":
                waiting.extend(reversed(_included(child, files, included)))
            else:
                children.append(child)
        parent.children = children
        stack.extend((child, depth + 1) for child in children)
    return root


def _included(element: Element, files: Files, included: set[str]) -> list[Element]:
    """Top-level elements of the file that an `<include>` names."""
    if element.children:
        raise element.error("an include cannot have children")
    name = required(element, "file")
    extra = [attr for attr in element.attrib if attr not in ("file", "prefix")]
    if extra:
        raise element.error(f"unknown attribute '{shorten(extra[0])}'; an include has 'file'")
    if "prefix" in element.attrib:
        raise element.error("the attribute 'prefix' of an include is not supported")
    dirs = list(dict.fromkeys([files.model_dir, os.path.dirname(element.file) or "."]))
    path = files.find(element, [(directory, name) for directory in dirs])
    if path is None:
        raise element.error(f"the included file '{shorten(name)}' does not exist; check the path")
    real = os.path.realpath(path)
    if real in included:
        raise element.error(
            f"file '{shorten(name)}' is included twice; a file may be included once"
        )
    if len(included) > MAX_INCLUDES:
        raise element.error(f"more than {MAX_INCLUDES} files are included, the most allowed")
    included.add(real)
    try:
        return read_xml(path).children
    except ParseError as problem:
        problem.add_note(f"included from {element.file}:{element.line}")
        raise
