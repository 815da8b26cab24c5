"""Recordings as archives of NumPy: an array for each channel, and the header as text."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.simulation.files.content import (
    Content,
    allowed_bytes,
    as_header,
    as_text,
    bytes_of,
    check_size,
    damaged,
    not_a_recording,
    portable,
)

HEADER = "linkwise"
"""Name of the header in the archive."""

PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
LONGEST_HEAD = 65_550
"""Bytes in front of the numbers of an array, at most."""


def encoded(content: Content) -> Iterator[bytes]:
    """The file, with "t", each channel by its name, and the header."""
    data = _packed(content, zipfile.ZIP_DEFLATED)
    needed = bytes_of(len(content.t), (x.shape for x in content.arrays.values()))
    if needed > allowed_bytes(len(data)):  # so small that it would not be read
        data = _packed(content, zipfile.ZIP_STORED)
    yield data


def _packed(content: Content, how: int) -> bytes:
    arrays = {HEADER: np.array(as_text(content.header)), "t": content.t}
    for name, values in content.arrays.items():
        arrays[f"channel/{portable(name)}"] = np.ascontiguousarray(values)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # its date is fixed: same run, same bytes
            entry.compress_type = how
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    return file.getvalue()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise not_a_recording(str(path), f"no archive of NumPy: {error}") from None
    with archive:
        if f"{HEADER}.npy" not in archive.namelist():
            raise not_a_recording(str(path), "an archive without a header")
        text = _array(archive, HEADER, allowed_bytes(path.stat().st_size), str(path))
        header = as_header(str(text[()]), str(path))
        shapes = check_size(header, path)
        t = _array(archive, "t", 8 * header["records"], str(path))
        arrays = {
            name: _array(archive, f"channel/{portable(name)}", 8 * math.prod(shape), str(path))
            for name, shape in shapes.items()
        }
        return Content(header, t, arrays)


def _array(archive: zipfile.ZipFile, name: str, most: int, file: str) -> Any:
    """An array of at most some bytes; nothing is made for it before its size is known."""
    try:
        entry = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise damaged(file, f"the array {name!r} is missing.") from None
    if entry.file_size > most + LONGEST_HEAD or entry.compress_type not in PACKINGS:
        raise damaged(file, f"the array {name!r} is longer than its header says, or packed oddly.")
    stream = io.BytesIO(archive.read(entry))
    heads = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, by_columns, kind = heads[np.lib.format.read_magic(stream)](stream)
    rest = memoryview(stream.getvalue())[stream.tell() :]
    text = name == HEADER and kind.kind == "U" and shape == ()
    if not (text or kind == np.dtype("<f8")) or math.prod(shape) * kind.itemsize != len(rest):
        raise damaged(file, f"the array {name!r} is {kind} {shape} in {len(rest)} bytes.")
    return np.frombuffer(rest, kind).reshape(shape, order="F" if by_columns else "C")
