"""Which file does an MJCF file mean, and may it be opened?

A model file may come from anywhere, so the files it names (includes, meshes) are followed only
into the directory of the model file and into the directories the caller allows as `roots`.
Symbolic links are resolved before the comparison.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.io.xml import Element, shorten


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
