"""Recordings as CSV: one row a record, names and units on top, the header in a comment.

The first line is `# ` and the header as JSON; the second has the names of the columns with their
units, "q[elbow] [rad]". Numbers have 17 digits, so that they come back to the last bit. Others read
it with `pandas.read_csv(path, comment="#")`.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkwise.errors import ParseError
from linkwise.simulation.channel import split_unit
from linkwise.simulation.files.content import (
    Content,
    as_header,
    as_text,
    check_size,
    columns_of,
    damaged,
    flat_columns,
    from_columns,
    not_a_recording,
)
from linkwise.spatial.array import Array

ROWS = 4096
"""Records that are made into text at a time."""


def encoded(content: Content) -> Iterator[bytes]:
    """The file in parts: header and names, then rows."""
    columns = flat_columns(content)
    names = [_title(name, unit) for name, (unit, _) in columns.items()]
    top = io.StringIO(newline="")
    top.write(f"# {as_text(content.header)}\n")
    csv.writer(top, lineterminator="\n").writerow(names)
    yield top.getvalue().encode("utf-8")
    parts = [values for _, values in columns.values()]
    for start in range(0, len(content.t), ROWS):
        rows = np.stack([values[start : start + ROWS] for values in parts], axis=-1)
        lines = (",".join(map(repr, row)) for row in rows.tolist())
        yield "".join(f"{line}\n" for line in lines).encode("ascii")


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            first = file.readline(1)
            if first != "#":
                raise not_a_recording(str(path), "its first line has no header")
            header = as_header(file.readline().strip(), str(path))
            check_size(header, path)
            table = csv.reader(file)
            known = {_title(name, unit): name for name, unit in columns_of(header)}
            titles = next(table, list[str]())
            names = [known[x] if x in known else split_unit(x)[0] for x in titles]
            if len(set(names)) != len(names):
                raise damaged(str(path), "two columns have the same name.")
            values = _numbers(table, len(names), str(path))
    except UnicodeDecodeError:
        raise not_a_recording(str(path), "it is not text") from None
    except csv.Error as error:
        raise not_a_recording(str(path), f"its table cannot be read: {error}") from None
    return from_columns(header, dict(zip(names, values.T, strict=True)), str(path))


def _title(name: str, unit: str) -> str:
    return f"{name} [{unit}]"


def _numbers(table: Iterator[list[str]], columns: int, file: str) -> Array:
    numbers, rows = array("d"), 0
    for rows, row in enumerate(table, start=1):
        line = rows + 2
        if len(row) != columns:
            raise ParseError(f"{len(row)} numbers; the others have {columns}", file=file, line=line)
        try:
            numbers.extend(map(float, row))
        except ValueError:
            raise ParseError(
                "an entry of the table is not a number", file=file, line=line
            ) from None
    return np.array(numbers, dtype=np.float64).reshape(rows, columns)
