"""Recordings as HDF5: a dataset a channel, with unit, labels and what it is about.

Other programs read it as any file of HDF5: `h5py.File(path)["channels/energy.total"]`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import LinkwiseError, MissingExtraError
from linkwise.simulation.files.content import (
    Content,
    as_header,
    as_text,
    channels_of,
    not_a_recording,
)
from linkwise.spatial.array import Array

HEADER = "linkwise"
"""Attribute of the file that has the header."""


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise MissingExtraError("a recording as HDF5", package="h5py", extra="record") from None


def encoded(content: Content) -> Iterator[bytes]:
    """The file, with "t" and "channels/NAME"; a slash in a name is no folder.

    It is made in memory: HDF5 that cannot write to a disk can end the process.
    """
    with _h5py().File("memory", "w", driver="core", backing_store=False) as file:
        file.attrs[HEADER] = np.bytes_(as_text(content.header).encode())
        file.create_dataset("t", data=content.t).attrs["unit"] = "s"
        group = file.create_group("channels")
        for channel in channels_of(content):
            values = np.ascontiguousarray(channel.values)
            packed = {"compression": "gzip", "shuffle": True} if values.size > 1000 else {}
            entry = group.create_dataset(_key(channel.name), data=values, **packed)
            entry.attrs["unit"] = list(channel.units) if values.ndim == 2 else channel.units[0]
            entry.attrs["about"] = channel.about
            if channel.labels:
                entry.attrs["labels"] = list(channel.labels)
        file.flush()
        yield file.id.get_file_image()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    h5py = _h5py()
    try:
        with h5py.File(path, "r") as file:
            if HEADER not in file.attrs:
                raise not_a_recording(str(path), "a file of HDF5 without a header")
            header = as_header(bytes(file.attrs[HEADER]), str(path))
            t: Array = np.asarray(file["t"][()], dtype=np.float64)
            arrays = {
                entry["name"]: np.asarray(file["channels"][_key(entry["name"])][()], np.float64)
                for entry in header["channels"]
            }
            return Content(header, t, arrays)
    except LinkwiseError:
        raise
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, PermissionError):
            raise
        raise not_a_recording(str(path), f"HDF5 says: {error}") from None


def _key(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")
