"""The target "c": an expression of one mechanism as the text of a C function."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from linkwise import atomic_file
from linkwise.algebra.expr import Expr
from linkwise.codegen.c.emit import DType, emit_c
from linkwise.codegen.c.header import MARK
from linkwise.codegen.c.text import LONGEST_IDENTIFIER, check_identifier, identifier
from linkwise.codegen.formula import Formula
from linkwise.codegen.request import Request
from linkwise.codegen.stages import Stages
from linkwise.errors import LinkwiseError, WriteError
from linkwise.front_door import open_front_door


@dataclass(frozen=True)
class CSource(Stages):
    """A C function: one header and one source that need nothing but math.h.

    The code is straight, without loops over bodies, for float64 or float32.

    Attributes:
        request: The request.
        name: Of the function and the files; default: the name of the robot and "_kernel".
        title: What it computes, in words.
        unit: Kind of the result, for its units: a key of `header.KINDS`, or "".
    """

    request: Request
    name: str = ""
    title: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        name = self.name or default_name(self.mech.name, "kernel")
        object.__setattr__(self, "name", check_identifier(name))
        self.texts  # noqa: B018  raises now if it has no form in C

    def __repr__(self) -> str:
        return f"<C source {self.name!r} of {self.mech.name!r}, {self.dtype}>"

    @property
    def dtype(self) -> DType:
        """Kind of its numbers."""
        return "float64" if self.request.itemsize == 8 else "float32"

    @property
    def _results(self) -> list[tuple[str, Expr]]:
        """Several results, which are concatenated in `out`."""
        names, quantity = self.request.names, self.request.quantity
        if isinstance(quantity, Formula):
            return []
        return list(zip(names, quantity, strict=True)) if names else []

    @cached_property
    def texts(self) -> tuple[str, str]:
        """Header and source."""
        return emit_c(
            self.traced,
            self.name,
            mech=self.mech,
            made=self.request.quantity
            if isinstance(self.request.quantity, Formula)
            else (self.derivation, self.program),
            nodes=self.request.nodes,
            title=self.title,
            unit=self.unit,
            dtype=self.dtype,
            results=self._results,
        )

    @property
    def header(self) -> str:
        """The text of NAME.h: what the function computes, and the order of every number."""
        return self.texts[0]

    @property
    def source(self) -> str:
        """The text of NAME.c, with the self-test behind #ifdef NAME_SELFTEST."""
        return self.texts[1]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order; `out` follows them."""
        return tuple(name for name, _ in self.traced.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result; matrices are written row by row."""
        return self.traced.shape

    @cached_property
    def ops(self) -> Counter[str]:
        """Scalar operations of one call, by kind."""
        return self.traced.graph.count(self.traced.roots)

    def explain(self) -> str:
        """The derivation, the sweeps, the operation count and where the text is."""
        counts = ", ".join(f"{n} {op}" for op, n in sorted(self.ops.items()))
        quantity = self.request.quantity
        made = (
            str(quantity)
            if isinstance(quantity, Formula)
            else f"{self.derivation}\n\n{self.program}"
        )
        return (
            f"{made}\n\noperations for one state: {counts}\n"
            f"{self.dtype}, C99; .header and .source have the text"
        )

    def named(self, name: str) -> CSource:
        """The same with another name of the function and the files."""
        return replace(self, name=name)

    def write(self, folder: str | os.PathLike[str] = ".", *, force: bool = False) -> list[Path]:
        """Write NAME.h and NAME.c, and give their paths.

        Args:
            folder: The folder; created if it does not exist.
            force: Whether files of other origin may be replaced.

        Raises:
            LinkwiseError: A file of other origin is there already, or nothing can be written.
        """
        paths = [Path(folder, f"{self.name}{ending}") for ending in (".h", ".c")]
        write_files(paths, self.texts, force=force)
        return paths


def default_name(robot: str, quantity: str) -> str:
    """A C identifier of the robot and the quantity, the quantity whole."""
    room = LONGEST_IDENTIFIER - len(quantity) - 1
    return f"{identifier(robot)[:room].rstrip('_')}_{quantity}"


def write_files(paths: Sequence[Path], texts: Sequence[str], *, force: bool) -> None:
    """Write all files, or none; existing files must be ours.

    Raises:
        LinkwiseError: A file is of other origin, or cannot be written.
    """
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not force and os.path.lexists(path) and not _is_ours(path):
                raise LinkwiseError(
                    f"{path} exists and was not written by linkwise export-c; choose another name "
                    "or folder, or replace it with --force (force=True)."
                )
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise WriteError(getattr(error, "filename", None) or paths[0], error) from None
    atomic_file.write_files(dict(zip(paths, texts, strict=True)))


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    start = f"/*\n * {MARK} "
    with path.open("rb") as file:
        return file.read(len(start)) == start.encode("ascii")


open_front_door(globals(), ("CSource",))
