"""Recordings as HDF5: a dataset a channel, with unit, labels and what it is about.

Other programs read it as any file of HDF5: `h5py.File(path)["channels/energy.total"]`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import MissingExtraError
from linkwise.simulation.files.content import (
    Content,
    allowed_bytes,
    as_header,
    as_text,
    bytes_of,
    channels_of,
    check_size,
    damaged,
    not_a_recording,
    portable,
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
    data = _packed(content, {"compression": "gzip", "shuffle": True})
    needed = bytes_of(len(content.t), (x.shape for x in content.arrays.values()))
    if needed > allowed_bytes(len(data)):  # so small that it would not be read
        data = _packed(content, {})
    yield data


def _packed(content: Content, how: Mapping[str, Any]) -> bytes:
    h5py = _h5py()
    # The layout of HDF5 1.8 holds attributes of any length, and has built-in checksums.
    layout = ("v108", "v108")
    with h5py.File("memory", "w", driver="core", backing_store=False, libver=layout) as file:
        file.attrs[HEADER] = np.bytes_(as_text(content.header).encode())
        file.create_dataset("t", data=content.t).attrs["unit"] = "s"
        group = file.create_group("channels")
        for channel in channels_of(content):
            values = np.ascontiguousarray(channel.values)
            entry = group.create_dataset(
                _key(channel.name), data=values, **(how if values.size > 1000 else {})
            )
            units = [portable(unit) for unit in channel.units]
            entry.attrs["unit"] = units if values.ndim == 2 else units[0]
            entry.attrs["about"] = portable(channel.about)
            if channel.labels:
                entry.attrs["labels"] = [portable(label) for label in channel.labels]
        file.flush()
        return file.id.get_file_image()


def read(path: Path) -> Content:
    """The content of a file; raises ParseError where it is no recording."""
    h5py = _h5py()
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise not_a_recording(str(path), f"HDF5 says: {error}") from None
    with file:
        if HEADER not in file.attrs:
            raise not_a_recording(str(path), "a file of HDF5 without a header")
        if file.attrs.get_id(HEADER).get_storage_size() > path.stat().st_size:
            raise damaged(str(path), "its header is longer than the file.")
        header = as_header(bytes(file.attrs[HEADER]), str(path))
        shapes = check_size(header, path)
        t = _array(file, "t", (header["records"],), str(path))
        arrays = {
            name: _array(file, f"channels/{_key(name)}", shape, str(path))
            for name, shape in shapes.items()
        }
        return Content(header, t, arrays)


def _array(file: Any, name: str, shape: tuple[int, ...], path: str) -> Array:
    """An array of a known shape, from this file alone."""
    h5py = _h5py()
    parts = name.split("/")
    inner = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    if not all(isinstance(file.get(x, getlink=True), h5py.HardLink) for x in inner):
        raise damaged(path, f"{name!r} is missing, or in another file.")
    data = file[name]
    if not isinstance(data, h5py.Dataset) or data.shape != shape or data.dtype != np.float64:
        kind = f"{data.dtype} {data.shape}" if isinstance(data, h5py.Dataset) else "no array"
        raise damaged(path, f"{name!r} was written as {shape} and is {kind}.")
    if data.is_virtual or data.external:
        raise damaged(path, f"the numbers of {name!r} are in another file.")
    return np.asarray(data[()], dtype=np.float64)


def _key(name: str) -> str:
    plain = portable(name.replace("%", "%25")).replace("/", "%2F")
    return {"": "%", ".": "%2E"}.get(plain, plain)  # names that HDF5 does not have
