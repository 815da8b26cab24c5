"""Where files go: whether they can be written is known before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from linkwise.atomic_file import check_writable
from linkwise.errors import ModelError, WriteError


def check_places(targets: Mapping[str, str | None], *sources: str | None) -> None:
    """Refuse files that cannot be written, that two results would share, or that are read.

    Args:
        targets: Files by the options that name them, like {"--report": "tour.html"}; None for none.
        sources: What is read: a robot's file, a recording; names of no file are passed over.

    Raises:
        ModelError: Says which option, which file, and why.
    """
    taken = list[tuple[str, Path]]()
    for option, text in targets.items():
        if text is None:
            continue
        path = Path(text)
        for source in sources:
            if source is not None and _same(path, Path(source)):
                raise ModelError(
                    f"{option} {text} would overwrite {source}, which is read; choose another name."
                )
        for other, place in taken:
            if _same(path, place):
                raise ModelError(
                    f"{option} and {other} both name {text}; one would overwrite the other."
                )
        taken.append((option, path))
        check_place(option, path)


def check_place(option: str, path: Path) -> None:
    """Refuse a file that cannot be written; nothing is left of the trial.

    Raises:
        ModelError: It is a folder, its folder is missing, or the system does not let us write it.
    """
    if os.path.isdir(path):
        raise ModelError(f"{option} {path} is a folder; give the name of a file, like run.html.")
    if not os.path.isdir(path.parent):
        raise ModelError(
            f"{option} {path}: there is no folder {str(path.parent)!r}; make it first."
        )
    try:
        check_writable(path)
    except WriteError as error:
        raise ModelError(f"{option} {path} cannot be written: {error.reason}.") from None


def _same(a: Path, b: Path) -> bool:
    """Whether two names are of one file; a device may be named twice."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.isfile(a) and os.path.samefile(a, b)
    try:
        return os.path.realpath(a) == os.path.realpath(b)
    except ValueError:  # a null byte: no file has such a name
        return False
