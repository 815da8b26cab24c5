"""Recordings in files: archives of NumPy that read back to the last bit, and tables as CSV.

An archive has the times `t`, an array `channel/NAME` for each channel, and a header of JSON: name,
unit, labels and description of each channel, the mechanism's name, integrator, step, events, the
notes of the report, and the version of Linkwise. The CRCs of the archive show damage.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import json
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.dynamics.energy import kinetic_energy, potential_energy
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import LinkwiseError, MissingFileError, ModelError, ParseError, caller
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.channel import Channel, Event
from linkwise.simulation.recording import Recording, made
from linkwise.simulation.report import Notes

FILMS = (".mp4", ".gif")
"""Suffixes of films, which `linkwise.viewer.video` draws."""

SUFFIXES = (".npz", ".csv", *FILMS)
FORMAT = "linkwise recording"
VERSION = 3
"""Of the layout of archives; others are not read."""

HEADER = "linkwise"
"""Name of the header in the archive."""

ROWS = 4096
"""Records that are made into text at a time."""

CLOSE = 1e-6
"""Energies that differ by more than this part of their size are of another mechanism."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def save_recording(rec: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to a file, in the format that its suffix says; see `Recording.save`."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelError(
            f"the recording of {rec.name!r} cannot be saved as '{target.name}'; its suffix must be "
            f"one of {', '.join(SUFFIXES)}."
        )
    if target.is_dir():
        raise ModelError(f"'{target}' is a folder; name a file in it, like '{target}/run.npz'.")
    if not target.parent.is_dir():
        raise ModelError(
            f"the recording of {rec.name!r} cannot be saved as '{target}': there is no folder "
            f"'{target.parent}'. Make it first, or choose another."
        )
    if suffix in FILMS:
        # The viewer is above this layer: it is loaded only when a film is requested.
        importlib.import_module("linkwise.viewer.video").export_video(rec, target)
    else:
        _check_names(rec)
        write_file(target, _archive(rec) if suffix == ".npz" else _table(rec))


def load_recording(path: str | os.PathLike[str], mech: Mechanism | None = None) -> Recording:
    """A recording that `rec.save` wrote as .npz.

    Args:
        path: The file.
        mech: The mechanism that moved; files have its name, but not itself. Without it all
            channels and the report are there, and `at`, which needs the hinges, is not.

    Returns:
        The recording, with times and channels to the last bit as they were.

    Raises:
        ParseError: There is no such file, it is no recording, or it is damaged; says what was
            found.
        ModelError: Another suffix, or a mechanism with other coordinates.

    Warns:
        UserWarning: The mechanism has the same coordinates, and another energy in the first state:
            its masses, lengths or gravity are others.
    """
    source = Path(path)
    if mech is not None:
        check_mechanism(mech)
    if source.suffix.lower() != ".npz":
        raise ModelError(
            f"there is no recording in '{source.name}': its suffix must be .npz. Tables and films "
            "are for other programs; rec.save('run.npz') writes what is read here."
        )
    if source.is_dir():
        raise ParseError("no recording can be read: it is a folder", file=str(source))
    if not source.is_file():
        raise MissingFileError("no recording can be read: there is no such file", file=str(source))
    try:
        rec = _read(source, mech)
    except ParseError:
        raise
    except LinkwiseError as error:
        raise ParseError(f"the recording is damaged: {error}", file=str(source)) from None
    except Exception as error:  # whatever NumPy raises for what it cannot take apart
        reason = " ".join(str(error).split()) or type(error).__name__
        raise _not_a_recording(source, f"reading it ended with: {reason}") from error
    if mech is not None:
        _check_fits(rec, mech, source)
    return rec


def _archive(rec: Recording) -> bytes:
    header = {
        "format": FORMAT,
        "format_version": VERSION,
        "linkwise": _version(),
        "mechanism": rec.name,
        "integrator": rec.integrator,
        "step": rec.step,
        "steps": rec.steps,
        "stopped": rec.stopped,
        "events": [dataclasses.asdict(event) for event in rec.events],
        "notes": dataclasses.asdict(rec.report.notes),
        "channels": [
            {"name": x.name, "unit": x.unit, "about": x.about, "labels": x.labels}
            for x in rec.channels.values()
        ],
    }
    arrays: dict[str, Any] = {HEADER: np.array(json.dumps(header)), "t": rec.t}
    for name, channel in rec.channels.items():
        arrays[f"channel/{_portable(name)}"] = channel.values
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _table(rec: Recording) -> Iterator[bytes]:
    """One row a record under names with units; 17 digits keep the last bit."""
    top = io.StringIO(newline="")
    csv.writer(top, lineterminator="\n").writerow(_titles(rec))
    yield top.getvalue().encode("utf-8")
    columns = [rec.t, *(x for channel in rec.channels.values() for x in channel.values.T.reshape(
        channel.columns_of(channel.values), len(rec)))]  # fmt: skip
    for start in range(0, len(rec), ROWS):
        rows = np.stack([values[start : start + ROWS] for values in columns], axis=-1)
        yield "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()).encode("ascii")


def _titles(rec: Recording) -> Iterator[str]:
    yield "t [s]"
    for channel in rec.channels.values():
        for name, unit in zip(channel.columns, channel.units, strict=True):
            yield f"{_portable(name)} [{_portable(unit)}]"


def _check_names(rec: Recording) -> None:
    """Raise where two columns of a table would have one name."""
    names = Counter(title.rpartition(" [")[0] for title in _titles(rec))
    twice, times = names.most_common(1)[0]
    if times > 1:
        raise ModelError(
            f"the recording of {rec.name!r} cannot be saved: two columns of its table would be "
            f"called {twice!r}; the times are called 't'. Rename a channel."
        )


def _portable(name: str) -> str:
    """A name that every format can hold: %0A for a line break, and so on."""
    return _UNPRINTABLE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def _version() -> str:
    return str(sys.modules["linkwise"].__version__)  # the package itself is above this layer


def _read(source: Path, mech: Mechanism | None) -> Recording:
    with np.load(source, allow_pickle=False) as archive:
        if HEADER not in archive:
            raise _not_a_recording(source, "an archive without a header")
        header = _header(str(archive[HEADER]), source)
        channels = [_channel(entry, archive) for entry in header["channels"]]
        rec = made(
            mech,
            str(header["mechanism"]),
            archive["t"],
            channels,
            Notes(**{key: _tuples(value) for key, value in header["notes"].items()}),
            integrator=str(header["integrator"]),
            step=float(header["step"]),
            steps=int(header["steps"]),
            events=tuple(Event(**event) for event in header["events"]),
            stopped=header["stopped"],
        )
        _ = rec.report  # damage shows here
        return rec


def _header(text: str, source: Path) -> Mapping[str, Any]:
    header = json.loads(text)
    if header.get("format") != FORMAT:
        raise _not_a_recording(source, f"its header does not say '{FORMAT}'")
    layout = header.get("format_version")
    if layout != VERSION:
        raise ParseError(
            f"a recording of layout {layout}, written by Linkwise {header.get('linkwise')}; this "
            f"is Linkwise {_version()}, which reads layout {VERSION}",
            file=str(source),
        )
    return header


def _channel(entry: Mapping[str, Any], archive: Mapping[str, Any]) -> Channel:
    values = archive[f"channel/{_portable(entry['name'])}"]
    unit, labels = _tuples(entry["unit"]), _tuples(entry["labels"])
    return Channel(entry["name"], unit, entry["about"], values, labels)


def _tuples(value: Any) -> Any:
    """What JSON made lists of."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _not_a_recording(source: Path, problem: str) -> ParseError:
    return ParseError(
        f"this is not a recording of Linkwise: {problem}; rec.save('run.npz') writes one",
        file=str(source),
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
