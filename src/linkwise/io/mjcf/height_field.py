"""Height fields of MJCF: `<hfield>` with numbers in the element, a PNG picture or a binary file.

MuJoCo scales the numbers to [0, 1] and multiplies them by the third size. The first row of
`elevation` and of a picture is the one with the largest y; that of a binary file the smallest.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.io.mjcf.compiler import Compiler
from linkwise.io.mjcf.include import Files
from linkwise.io.xml import Element
from linkwise.model.grid import MOST, Grid
from linkwise.spatial.array import Array

LARGEST = 1 << 27
"""Bytes of a file or a picture, at most."""

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Numbers of a pixel, by the colour type of a PNG; grey is the first of them."""


@dataclass(frozen=True, slots=True, eq=False)
class HeightAsset:
    """An `<hfield>`.

    Attributes:
        element: Its element.
        size: Half lengths along x and y, the largest elevation and the thickness of the base [m].
        files: Where its file may be.
        compiler: The settings of the file.
    """

    element: Element
    size: tuple[float, float, float, float]
    files: Files
    compiler: Compiler

    @property
    def box(self) -> tuple[float, float, float]:
        """Half lengths of the box that weighs as it does: half the elevation above the base."""
        x, y, top, base = self.size
        return x, y, 0.25 * top + 0.5 * base

    def grid(self) -> Grid:
        """The heights.

        Raises:
            LinkwiseError: There are none, or they cannot be read; says why.
        """
        numbers = self._numbers()
        low, span = numbers.min(), np.ptp(numbers)
        return Grid((numbers - low) * (self.size[2] / span if span > 0.0 else 0.0))

    def _numbers(self) -> Array:
        """As they are written, the row with the smallest y first."""
        element, attrib = self.element, self.element.attrib
        if "file" not in attrib:
            try:
                shape = _shape(int(attrib.get("nrow", "0")), int(attrib.get("ncol", "0")))
                values = np.array([float(x) for x in attrib.get("elevation", "").split()])
                if not len(values):
                    values = np.zeros(shape)
                return values.reshape(shape)[::-1]
            except ValueError:
                raise element.error(
                    "a height field needs a file, or nrow and ncol from 2 on with as many numbers "
                    f"as elevation, at most {MOST}"
                ) from None
        name = attrib["file"].replace("\\", "/")
        name = os.path.basename(name) if self.compiler.strippath else name
        beside = os.path.dirname(element.file) or "."
        places = [(self.files.model_dir, os.path.join(self.compiler.meshdir, name)), (beside, name)]
        path = self.files.find(element, places)
        if path is None:
            raise element.error(f"file '{name}' is not found")
        if os.path.getsize(path) > LARGEST:
            raise element.error(f"file '{name}' is larger than {LARGEST} bytes")
        with open(path, "rb") as stream:
            data = stream.read()
        try:
            if data[:8] == PNG:
                return _picture(data)[::-1]
            rows, columns = _shape(*struct.unpack_from("<ii", data))
            values = np.frombuffer(data, np.float32, rows * columns, 8)
            return values.reshape(rows, columns).astype(np.float64)
        except (ValueError, struct.error, zlib.error, IndexError) as problem:
            raise element.error(
                f"file '{name}' is neither a PNG picture of 8 bits nor two integers with rows and "
                f"columns and their numbers as float32: {problem}"
            ) from None


def _shape(rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns, if a grid may have them; raises ValueError."""
    if min(rows, columns) < 2 or rows * columns > MOST:
        raise ValueError(f"{rows} rows and {columns} columns; at least 2, and {MOST} numbers")
    return rows, columns


PNG = b"\x89PNG\r\n\x1a\n"


def _picture(data: bytes) -> Array:
    """The first channel of a PNG without interlacing, with 8 bits a channel (rows, columns)."""
    at, packed = 8, b""
    head = (0, 0, 0, 0, 0, 0, 0)
    while at + 8 <= len(data):
        (length,), kind = struct.unpack_from(">I", data, at), data[at + 4 : at + 8]
        chunk = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", chunk)
        packed += chunk if kind == b"IDAT" else b""
        at += 12 + length
    columns, rows, bits, colour, _, _, interlaced = head
    _shape(rows, columns)
    if bits != 8 or colour not in CHANNELS or interlaced:
        raise ValueError("only 8 bits a channel without palette and interlacing are read")
    step = CHANNELS[colour]
    width = columns * step
    raw = zlib.decompressobj().decompress(packed, rows * (width + 1))
    lines = np.frombuffer(raw, np.uint8).reshape(rows, width + 1)
    out = np.zeros((rows + 1, width + step), dtype=np.int64)  # with zeros above and to the left
    for i, (kind, *line) in enumerate(lines.tolist()):
        here, above = out[i + 1], out[i]
        for j, x in enumerate(line, start=step):
            a, b, c = int(here[j - step]), int(above[j]), int(above[j - step])
            here[j] = (x + (0, a, b, (a + b) // 2, _nearest(a, b, c))[kind]) & 255
    return out[1:, step::step].astype(np.float64)


def _nearest(a: int, b: int, c: int) -> int:
    """The predictor: of left, above and above left, the one nearest to a + b - c."""
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def read_height(
    element: Element, size: list[float], files: Files, compiler: Compiler
) -> HeightAsset:
    """An `<hfield>` with its sizes."""
    x, y, top, base = size
    if min(size) <= 0.0:
        raise element.error("'size' of a height field takes 4 positive numbers")
    return HeightAsset(element, (x, y, top, base), files, compiler.of(element))


def grid_or_reason(asset: HeightAsset) -> tuple[Grid | None, str]:
    """The heights, or why there are none."""
    try:
        return asset.grid(), ""
    except LinkwiseError as problem:
        return None, str(problem)
