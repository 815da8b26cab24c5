"""Recordings as Parquet: a column a number, with its unit, and the header in the schema.

Other programs read it as any table: `pandas.read_parquet(path)["q[elbow]"]`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import MissingExtraError
from linkwise.simulation.files.content import (
    Content,
    as_header,
    as_text,
    check_size,
    damaged,
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
        call = "a recording as Parquet"
        raise MissingExtraError(call, package="pyarrow", extra="record") from None


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
    # Without a dictionary a constant column stays long enough to be read: `allowed_bytes`.
    table = arrow.Table.from_arrays(arrays, schema=schema)
    parquet.write_table(table, file, use_dictionary=False)
    yield file.getvalue().to_pybytes()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise not_a_recording(str(path), f"Parquet says: {reason}") from None
    with file:
        metadata: dict[bytes, bytes] = file.schema_arrow.metadata or {}
        if HEADER not in metadata:
            raise not_a_recording(str(path), "a table of Parquet without a header")
        header = as_header(metadata[HEADER], str(path))
        check_size(header, path)
        rows, names = file.metadata.num_rows, file.schema_arrow.names
        if rows != header["records"]:
            raise damaged(str(path), f"{header['records']} records were written, {rows} are there.")
        if any(kind != arrow.float64() for kind in file.schema_arrow.types):
            raise damaged(str(path), "a column is not made of numbers.")
        if len(set(names)) != len(names):
            raise damaged(str(path), "two columns have the same name.")
        table = file.read()
    columns = {name: np.asarray(table.column(name).to_numpy()) for name in names}
    return from_columns(header, columns, str(path))
