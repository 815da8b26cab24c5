"""What a file of a recording holds, whatever its format: a header, times and arrays.

The header is JSON. Of each channel it has name, unit, what it is about and the labels of its
columns; besides, the mechanism's name and the names of its coordinates, integrator, step, events,
the notes of the report, and the version of Linkwise that wrote it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.errors import ParseError
from linkwise.simulation.channel import Channel
from linkwise.simulation.event import Event
from linkwise.simulation.recording import Recording
from linkwise.simulation.report import Notes
from linkwise.spatial.array import Array

FORMAT = "linkwise recording"
VERSION = 1
"""Of the layout of the files; a file of a later one is not read."""


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A recording as it stands in a file.

    Attributes:
        header: All that is not numbers over time, as JSON has it.
        t: Times (k,) [s].
        arrays: Values of each channel by its name, (k,) or (k, n).
    """

    header: Mapping[str, Any]
    t: Array
    arrays: Mapping[str, Array]


def version() -> str:
    """Of Linkwise."""
    return str(sys.modules["linkwise"].__version__)  # the package itself is above this layer


def content_of(rec: Recording) -> Content:
    """The content of a file for a recording."""
    described = [
        {
            "name": channel.name,
            "unit": channel.unit if isinstance(channel.unit, str) else list(channel.unit),
            "about": channel.about,
            "labels": None if channel.values.ndim == 1 else list(channel.labels),
        }
        for channel in rec.channels.values()
    ]
    header = {
        "format": FORMAT,
        "format_version": VERSION,
        "linkwise": version(),
        "mechanism": {
            "name": rec.name,
            "coordinates": list(rec.channels["q"].labels),
            "velocities": list(rec.channels["v"].labels),
        },
        "integrator": rec.integrator,
        "step": rec.step,
        "steps": rec.steps,
        "stopped": rec.stopped,
        "records": len(rec),
        "events": [dataclasses.asdict(event) for event in rec.events],
        "notes": dataclasses.asdict(rec.report.notes),
        "channels": described,
    }
    return Content(header, rec.t, {name: x.values for name, x in rec.channels.items()})


def as_text(header: Mapping[str, Any]) -> str:
    """The header as one line of JSON; what is not finite is written as a word."""
    return json.dumps(_plain(header), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(x) for k, x in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in cast("list[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def as_header(text: str | bytes, file: str) -> dict[str, Any]:
    """The header in a text.

    Raises:
        ParseError: It is none, or of a later layout.
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise not_a_recording(file, "its header is no JSON") from None
    if not isinstance(found, dict) or cast("dict[str, Any]", found).get("format") != FORMAT:
        raise not_a_recording(file, f"its header does not say '{FORMAT}'")
    header = cast("dict[str, Any]", found)
    layout = header.get("format_version")
    if not isinstance(layout, int) or layout > VERSION:
        raise ParseError(
            f"a recording of layout {layout}, written by Linkwise {header.get('linkwise')}; this "
            f"is Linkwise {version()}, which reads layout {VERSION}: use a newer one",
            file=file,
        )
    return header


def not_a_recording(file: str, found: str) -> ParseError:
    """The error for a file that is none."""
    return ParseError(
        f"this is no recording of Linkwise: {found}; rec.save(path) writes one", file=file
    )


def flat_columns(content: Content) -> dict[str, tuple[str, Array]]:
    """Columns of a table, with their units: "t", "q[elbow]", "energy.total" ..."""
    columns = {"t": ("s", content.t)}
    for entry in content.header["channels"]:
        values = content.arrays[entry["name"]]
        channel = _channel(entry, values)
        parts = [values] if values.ndim == 1 else list(values.T)
        columns.update(zip(channel.columns, zip(channel.units, parts, strict=True), strict=True))
    return columns


def from_columns(header: Mapping[str, Any], columns: Mapping[str, Array], file: str) -> Content:
    """Arrays of the channels from the columns of a table.

    Raises:
        ParseError: A column is missing; says which.
    """

    def column(name: str) -> Array:
        if name not in columns:
            raise ParseError(f"the column {name!r} that its header tells of is missing", file=file)
        return columns[name]

    t, arrays = column("t"), dict[str, Array]()
    try:
        for entry in header["channels"]:
            name, labels = entry["name"], entry["labels"]
            if labels is None:
                arrays[name] = column(name)
            else:
                parts = [column(f"{name}[{label}]") for label in labels]
                arrays[name] = np.stack(parts, axis=-1) if parts else np.zeros((len(t), 0))
    except (KeyError, TypeError):
        raise not_a_recording(file, "its header is incomplete") from None
    return Content(header, t, arrays)


def _channel(entry: Mapping[str, Any], values: Array) -> Channel:
    unit = entry["unit"]
    named = unit if isinstance(unit, str) else tuple(cast("list[str]", unit))
    return Channel(entry["name"], named, entry["about"], values, tuple(entry["labels"] or ()))


def channels_of(content: Content) -> list[Channel]:
    """The channels with their names, units and labels."""
    return [_channel(entry, content.arrays[entry["name"]]) for entry in content.header["channels"]]


def notes_of(header: Mapping[str, Any]) -> Notes:
    """The notes of the report."""
    found = header["notes"]
    worst = [float(x) for x in found["worst_loop"]]
    return Notes(
        not_modelled=tuple(str(x) for x in found["not_modelled"]),
        uncounted=tuple(str(x) for x in found["uncounted"]),
        work_error=float(found["work_error"]),
        weight=tuple(float(x) for x in found["weight"]),
        worst_loop=(worst[0], worst[1]),
        keep=str(found["keep"]),
        wall=float(found["wall"]),
        compiling=float(found.get("compiling", 0.0)),
    )


def events_of(header: Mapping[str, Any]) -> tuple[Event, ...]:
    """What happened, in order of time."""
    return tuple(
        Event(float(x["t"]), str(x["kind"]), str(x["name"]), str(x["text"]), float(x["value"]))
        for x in header["events"]
    )
