"""Recordings as archives of NumPy: an array for each channel, and the header as text."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkwise.errors import LinkwiseError
from linkwise.simulation.files.content import Content, as_header, as_text, not_a_recording

HEADER = "linkwise"
"""Name of the header in the archive."""


def encoded(content: Content) -> Iterator[bytes]:
    """The file, with "t", each channel by its name, and the header."""
    arrays = {HEADER: np.array(as_text(content.header)), "t": content.t}
    arrays |= {f"channel/{name}": np.ascontiguousarray(x) for name, x in content.arrays.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # its date is fixed: same run, same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
    yield file.getvalue()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray) or HEADER not in archive.files:
                raise not_a_recording(str(path), "an archive without a header")
            header = as_header(str(archive[HEADER][()]), str(path))
            names = [name.removeprefix("channel/") for name in archive.files
                     if name.startswith("channel/")]  # fmt: skip
            arrays = {name: archive[f"channel/{name}"] for name in names}
            return Content(header, archive["t"], arrays)
    except LinkwiseError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, PermissionError):
            raise
        raise not_a_recording(str(path), f"NumPy says: {error}") from None
