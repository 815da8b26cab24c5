"""Recordings in files: the suffix selects the format."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.dynamics.energy import kinetic_energy, potential_energy
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import (
    LinkwiseError,
    MissingExtraError,
    MissingFileError,
    ModelError,
    ParseError,
    caller,
)
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.files.content import (
    Content,
    channels_of,
    check_sum,
    content_of,
    damaged,
    events_of,
    not_a_recording,
    notes_of,
    shapes_of,
)
from linkwise.simulation.recording import Recording, made

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


CLOSE = 1e-6
"""Energies that differ by more than this part of their size are of another mechanism."""


def load_recording(
    path: str | os.PathLike[str], mech: Mechanism | None = None, *, verify: bool = True
) -> Recording:
    """A recording that `rec.save` wrote: .parquet, .h5, .csv or .npz.

    Args:
        path: The file.
        mech: The mechanism that moved; files have its name, but not itself. Without it all
            channels and the report are there, and `at`, which needs the hinges, is not.
        verify: Whether numbers, names and units must fit the checksum in the file; False reads a
            file that was edited on purpose.

    Returns:
        The recording, with times and channels to the last bit as they were.

    Raises:
        ParseError: There is no such file, it is no recording, or it was damaged or edited; says
            what was found.
        ModelError: A suffix of no known format, or a mechanism with other coordinates.
        MissingExtraError: The package for the format is not installed.

    Warns:
        UserWarning: The file has no checksum, as those of earlier versions of Linkwise. Or the
            mechanism has the same coordinates, and another energy in the first state: its masses,
            lengths or gravity are others.
    """
    source = Path(path)
    if mech is not None:
        check_mechanism(mech)
    kind = format_of(source, "there is no recording in")
    try:
        if not source.is_file():
            error, reason = MissingFileError, "there is no such file"
            if source.is_dir():
                error, reason = ParseError, "it is a folder"
            raise error(f"no recording can be read: {reason}", file=str(source))
        content = cast(Content, kind.read(source))
        _check_records(content, str(source))
        known = not verify or check_sum(content, str(source))
        rec = _recording(content, mech)
    except (ParseError, MissingExtraError):
        raise
    except LinkwiseError as error:
        raise damaged(str(source), str(error)) from None
    except (KeyError, TypeError, IndexError):
        raise not_a_recording(str(source), "its header is incomplete") from None
    except Exception as error:  # of any library that takes files apart
        reason = " ".join(str(error).split()) or type(error).__name__
        raise not_a_recording(str(source), f"reading it ended with: {reason}") from error
    if not known:
        warnings.warn(
            f"'{source.name}' has no checksum: whether it was damaged or edited is not known. It "
            f"was written by Linkwise {content.header.get('linkwise')}; rec.save(path) adds one.",
            UserWarning,
            stacklevel=caller(),
        )
    if mech is not None:
        _check_fits(rec, mech, source)
    return rec


def _check_records(content: Content, file: str) -> None:
    """Raise if shapes differ from those in the header."""
    records = content.header["records"]
    if content.t.shape != (records,):
        raise damaged(file, f"{records} records were written, {len(content.t)} are there.")
    for name, expected in shapes_of(content.header, file).items():
        shape = content.arrays[name].shape
        if shape != expected:
            raise damaged(file, f"channel {name!r} was written as {expected} and is {shape}.")


def _recording(content: Content, mech: Mechanism | None) -> Recording:
    header = content.header
    return made(
        mech,
        str(header["mechanism"]["name"]),
        content.t,
        channels_of(content),
        notes_of(header),
        integrator=str(header["integrator"]),
        step=float(header["step"]),
        steps=int(header["steps"]),
        events=events_of(header),
        stopped=None if header["stopped"] is None else str(header["stopped"]),
    )


def _check_fits(rec: Recording, mech: Mechanism, source: Path) -> None:
    """Refuse a mechanism with other coordinates; warn of one with another energy."""
    for name, ours in (("q", mech.coordinate_names), ("v", mech.velocity_names)):
        theirs = rec.channels[name].labels
        if theirs == ours:
            continue
        pairs = zip(theirs, ours, strict=False)
        first = next((f"{a!r} there and {b!r} here" for a, b in pairs if a != b), "")
        raise ModelError(
            f"'{source.name}' is a recording of {rec.name!r}, which does not fit {mech.name!r}: "
            f"{name} has {len(theirs)} entries there and {len(ours)} here"
            + (f"; the first that differ are {first}" if first else "")
            + ". Give the mechanism that moved."
        )
    names = ("energy.kinetic", "energy.potential")
    if not mech.n_bodies or any(name not in rec.channels for name in names):
        return
    q, v = rec.q[0], rec.v[0]
    there = np.array([rec[name][0] for name in names])
    here = np.array([kinetic_energy(mech, q, v), potential_energy(mech, q)])
    if (np.abs(there - here) > CLOSE * (1.0 + np.abs(there))).any():
        warnings.warn(
            f"'{source.name}' was recorded with another {mech.name!r}: in its first state the "
            f"kinetic and potential energy were {there[0]:.6g} J and {there[1]:.6g} J, and are "
            f"{here[0]:.6g} J and {here[1]:.6g} J now. Channels are as they were recorded.",
            UserWarning,
            stacklevel=caller(),
        )
