"""Recordings as Parquet: a column a number, with its unit, and the header in the schema.

Other programs read it as any table: `pandas.read_parquet(path)["q[elbow]"]`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import MissingExtraError, ParseError
from linkwise.simulation.files.content import (
    Content,
    as_header,
    as_text,
    flat_columns,
    from_columns,
    not_a_recording,
)

HEADER = b"linkwise"
"""Key of the header in the metadata of the schema."""


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        asked = "a recording as Parquet"
        raise MissingExtraError(asked, package="pyarrow", extra="record") from None


def encoded(content: Content) -> Iterator[bytes]:
    """The file with the table; units are metadata of its columns."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    columns = flat_columns(content)
    fields = [
        arrow.field(name, arrow.float64(), nullable=False, metadata={"unit": unit})
        for name, (unit, _) in columns.items()
    ]
    schema = arrow.schema(fields, metadata={HEADER: as_text(content.header).encode()})
    arrays = [arrow.array(np.ascontiguousarray(values)) for _, values in columns.values()]
    file = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), file)
    yield file.getvalue().to_pybytes()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    try:
        table = parquet.ParquetFile(path).read()
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, PermissionError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise not_a_recording(str(path), f"Parquet says: {reason}") from None
    metadata: dict[bytes, bytes] = table.schema.metadata or {}
    if HEADER not in metadata:
        raise not_a_recording(str(path), "a table of Parquet without a header")
    header = as_header(metadata[HEADER], str(path))
    try:
        columns = {
            name: np.asarray(table.column(name).to_numpy(), dtype=np.float64)
            for name in table.column_names
        }
    except (ValueError, TypeError):
        raise ParseError("a column is not made of numbers", file=str(path)) from None
    return from_columns(header, columns, str(path))
