"""The ROBOT argument of the commands: a model file, or the name of a built-in mechanism."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

from linkwise import models
from linkwise.errors import ModelError, unknown_name
from linkwise.io.load import load
from linkwise.io.report import Strict
from linkwise.model.mechanism import Mechanism


def add_roots(parser: Any) -> None:
    """The option `--roots`, the argument of `lw.load` of that name."""
    parser.add_argument(
        "--roots",
        metavar="FOLDER",
        action="append",
        default=[],
        help="folder in which meshes and included files may lie, too; may be repeated",
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
