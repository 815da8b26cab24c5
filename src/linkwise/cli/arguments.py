"""Arguments of commands: a robot, and files that results go to."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linkwise import models
from linkwise.atomic_file import check_writable
from linkwise.errors import ModelError, WriteError, unknown_name
from linkwise.io.load import load
from linkwise.io.report import Strict
from linkwise.model.mechanism import Mechanism


def check_place(option: str, text: str, *sources: str | None) -> None:
    """Refuse a file that cannot be written, or that is read; nothing is left of the trial.

    Args:
        option: The option that names the file, like "--report".
        text: The file.
        sources: What is read: a robot's file, a recording; names of no file are passed over.

    Raises:
        ModelError: It is read, it is a folder, its folder is missing, or the system does not let us
            write it.
    """
    path = Path(text)
    for source in sources:
        if source is not None and _same(path, Path(source)):
            raise ModelError(
                f"{option} {text} would overwrite {source}, which is read; choose another name."
            )
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
    """Whether two names are of one file; a device may be read and written."""
    if os.path.exists(a) and os.path.exists(b):
        return os.path.isfile(a) and os.path.samefile(a, b)
    try:
        return os.path.realpath(a) == os.path.realpath(b)
    except ValueError:  # a null byte: no file has such a name
        return False


def add_roots(parser: Any) -> None:
    """The option `--roots`, the argument of `lw.load` of that name."""
    parser.add_argument(
        "--roots",
        metavar="FOLDER",
        action="append",
        default=[],
        help="another folder to search for meshes and included files; may be repeated",
    )


def open_robot(
    text: str, *, base: str = "auto", strict: Strict = False, roots: Sequence[str] = ()
) -> Mechanism:
    """Load a file, or build `puma560`, `chain(7)` ... where there is no such file.

    Raises:
        ModelError: Neither a file nor a built-in mechanism.
        ParseError: The file cannot be read.
    """
    looks_like_a_file = os.path.exists(text) or os.sep in text or "." in os.path.basename(text)
    if looks_like_a_file:
        if base not in ("auto", "fixed", "free"):
            raise ModelError(f"base is {base!r}; allowed: auto, fixed, free.")
        return load(text, base=base, strict=strict, roots=roots)
    name, _, numbers = text.partition("(")
    known = [n for n in dir(models) if inspect.isfunction(getattr(models, n))]
    if name not in known:
        raise unknown_name(
            "file or built-in mechanism", name, known, owner="this folder or linkwise"
        )
    try:
        values = [int(x) for x in numbers.rstrip(")").split(",") if x.strip()]
        return getattr(models, name)(*values)
    except (TypeError, ValueError) as error:
        signature = inspect.signature(getattr(models, name))
        raise ModelError(
            f"cannot build {text!r}: {str(error).rstrip('.')}. It is {name}{signature}."
        ) from None
