"""Writing a recording: the suffix says the format."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linkwise.atomic_file import write_file
from linkwise.errors import ModelError
from linkwise.simulation.files.content import content_of
from linkwise.simulation.recording import Recording

FORMATS = {
    ".parquet": "linkwise.simulation.files.parquet",
    ".h5": "linkwise.simulation.files.hdf5",
    ".hdf5": "linkwise.simulation.files.hdf5",
    ".csv": "linkwise.simulation.files.csv",
    ".npz": "linkwise.simulation.files.npz",
}
"""The module of each suffix, with `encoded(content)`, the parts of the file, and `read(path)`."""

FILMS = (".mp4", ".gif")
"""Suffixes of films, which `linkwise.viewer.video` draws."""


def save_recording(rec: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to a file, in the format that its suffix says; see `Recording.save`."""
    target = Path(path)
    kind = None
    if target.suffix.lower() not in FILMS:
        kind = format_of(target, f"the recording of {rec.name!r} cannot be saved as", FILMS)
    if target.is_dir():
        raise ModelError(f"'{target}' is a folder; name a file in it, like '{target}/run.csv'.")
    if not target.parent.is_dir():
        raise ModelError(
            f"the recording of {rec.name!r} cannot be saved as '{target}': there is no folder "
            f"'{target.parent}'. Make it first, or choose another."
        )
    if kind is None:
        # The viewer is above this layer: it is loaded only when a film is requested.
        importlib.import_module("linkwise.viewer.video").export_video(rec, target)
    else:
        write_file(target, kind.encoded(content_of(rec)))


def format_of(path: Path, action: str, films: Sequence[str] = ()) -> Any:
    """The module for a suffix; raises for an unknown one."""
    module = FORMATS.get(path.suffix.lower())
    if module is None:
        known = ", ".join((*FORMATS, *films))
        raise ModelError(f"{action} '{path.name}'; its suffix must be one of {known}.")
    return importlib.import_module(module)
