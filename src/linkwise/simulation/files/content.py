"""What a file of a recording holds, whatever its format: a header, times and arrays.

The header is JSON. Of each channel it has name, unit, what it is about and the labels of its
columns; besides, the mechanism's name and the names of its coordinates, integrator, step, events,
the notes of the report, and the version of Linkwise that wrote it. Its checksum is of all else in
it, and of the times and channels.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError, ParseError
from linkwise.simulation.channel import Channel, Event
from linkwise.simulation.recording import Recording
from linkwise.simulation.report import Notes
from linkwise.spatial.array import Array

FORMAT = "linkwise recording"
VERSION = 2
"""Of the layout of the files; a file of a later one is not read. The first had no checksum."""

LARGEST_PACKED = 256 << 20
LARGEST_RATIO = 100
"""Numbers may take this many bytes, or times the bytes of their file; more counts as an attack."""


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """A recording as a file contains it.

    Attributes:
        header: Everything that is not numbers over time, as JSON values.
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
    header: dict[str, Any] = {
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
    columns = Counter(name for name, _ in columns_of(header))
    twice, times = columns.most_common(1)[0]
    if times > 1:
        raise ModelError(
            f"the recording of {rec.name!r} cannot be saved: two columns of its table would be "
            f"called {twice!r}; the times are called 't'. Rename a channel."
        )
    content = Content(header, rec.t, {name: x.values for name, x in rec.channels.items()})
    header["checksum"] = checksum(content)
    return content


def portable(name: str) -> str:
    """A name that every format can hold: %0A for a line break, and so on."""
    return _UNPRINTABLE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def columns_of(header: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Columns of a table and their units: "t", "q[elbow]", "energy.total" ..."""
    yield "t", "s"
    for entry in header["channels"]:
        name, unit, labels = entry["name"], entry["unit"], entry["labels"]
        parts = [name] if labels is None else [f"{name}[{label}]" for label in labels]
        units = [unit] * len(parts) if isinstance(unit, str) else unit
        yield from zip(map(portable, parts), map(portable, units), strict=True)


def checksum(content: Content) -> str:
    """Of the header, the times and all channels, the same in every format.

    Every NaN counts as the same number: a table of text has but one.
    """
    header = {key: value for key, value in content.header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(_plain(header), sort_keys=True).encode())
    for values in (content.t, *(content.arrays[x["name"]] for x in header["channels"])):
        numbers = np.array(values, dtype="<f8", order="C")
        numbers[np.isnan(numbers)] = np.nan
        digest.update(f";{numbers.shape}:".encode())
        digest.update(numbers.tobytes())
    return f"sha256:{digest.hexdigest()}"


def check_sum(content: Content, file: str) -> bool:
    """Whether there is a checksum.

    Raises:
        ParseError: It is not that of the content.
    """
    there = content.header.get("checksum")
    if there is None and content.header["format_version"] < 2:
        return False
    if there != checksum(content):
        raise ParseError(
            "the recording was damaged or edited after it was saved: its checksum does not fit its "
            "numbers, names and units. lw.load_recording(path, verify=False) reads it as it is",
            file=file,
        )
    return True


def shapes_of(header: Mapping[str, Any], file: str) -> dict[str, tuple[int, ...]]:
    """The shape of each channel, as the header has it.

    Raises:
        ParseError: The header does not say.
    """
    try:
        records, shapes = header["records"], dict[str, tuple[int, ...]]()
        if type(records) is not int or records < 0:
            raise TypeError
        for entry in header["channels"]:
            name, labels = entry["name"], entry["labels"]
            if not isinstance(name, str) or not isinstance(labels, list | None) or name in shapes:
                raise TypeError
            shapes[name] = (
                (records,) if labels is None else (records, len(cast("list[Any]", labels)))
            )
    except (KeyError, TypeError):
        raise not_a_recording(file, "its header is incomplete") from None
    return shapes


def bytes_of(records: int, shapes: Iterable[tuple[int, ...]]) -> int:
    """Bytes of all numbers: the times and the channels."""
    return 8 * (records + sum(math.prod(shape) for shape in shapes))


def allowed_bytes(size: int) -> int:
    """How many bytes of numbers a file of some bytes may have."""
    return max(LARGEST_PACKED, LARGEST_RATIO * size)


def check_size(header: Mapping[str, Any], path: Path) -> dict[str, tuple[int, ...]]:
    """The shape of each channel, before anything is made for it.

    Raises:
        ParseError: They would take far more memory than the file is long.
    """
    shapes = shapes_of(header, str(path))
    needed, size = bytes_of(header["records"], shapes.values()), path.stat().st_size
    if needed > allowed_bytes(size):
        raise ParseError(
            f"the recording is refused: its header announces {needed / 1e6:.0f} MB of numbers in a "
            f"file of {size / 1e6:.3g} MB; allowed are {allowed_bytes(size) / 1e6:.0f} MB",
            file=str(path),
        )
    return shapes


def damaged(file: str, problem: str) -> ParseError:
    """The error for a recording that does not hold what its header says."""
    return ParseError(f"the recording is damaged: {problem}", file=file)


def as_text(header: Mapping[str, Any]) -> str:
    """The header as one line of JSON; what is not finite is written as a word."""
    text = json.dumps(_plain(header), ensure_ascii=False, allow_nan=False)
    if _UNPRINTABLE.search(text):  # half a character, or an end of a line to some programs
        return json.dumps(_plain(header), allow_nan=False)
    return text


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
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise not_a_recording(file, "its header is not JSON") from None
    if not isinstance(value, dict) or cast("dict[str, Any]", value).get("format") != FORMAT:
        raise not_a_recording(file, f"its header does not say '{FORMAT}'")
    header = cast("dict[str, Any]", value)
    layout = header.get("format_version")
    if type(layout) is not int or not 1 <= layout <= VERSION:
        raise ParseError(
            f"a recording of layout {layout}, written by Linkwise {header.get('linkwise')}; this "
            f"is Linkwise {version()}, which reads layout {VERSION}: use a newer one",
            file=file,
        )
    return header


def not_a_recording(file: str, problem: str) -> ParseError:
    """The error for a file that is none."""
    return ParseError(
        f"this is not a recording of Linkwise: {problem}; rec.save(path) writes one", file=file
    )


def flat_columns(content: Content) -> dict[str, tuple[str, Array]]:
    """Columns of a table, with their units."""
    arrays = [content.t, *(content.arrays[x["name"]] for x in content.header["channels"])]
    parts = [x for values in arrays for x in ([values] if values.ndim == 1 else values.T)]
    columns = zip(columns_of(content.header), parts, strict=True)
    return {name: (unit, values) for (name, unit), values in columns}


def from_columns(header: Mapping[str, Any], columns: Mapping[str, Array], file: str) -> Content:
    """Arrays of the channels from the columns of a table.

    Raises:
        ParseError: A column is missing; says which.
    """

    def column(name: str) -> Array:
        if name not in columns:
            raise ParseError(f"the column {name!r} that its header announces is missing", file=file)
        return columns[name]

    t, arrays = column("t"), dict[str, Array]()
    for entry in header["channels"]:
        name, labels = entry["name"], entry["labels"]
        if labels is None:
            arrays[name] = column(portable(name))
        else:
            parts = [column(portable(f"{name}[{label}]")) for label in labels]
            arrays[name] = np.stack(parts, axis=-1) if parts else np.zeros((len(t), 0))
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
    notes = header["notes"]
    worst, added = ([float(x) for x in notes[name]] for name in ("worst_loop", "added_loop"))
    return Notes(
        not_modelled=tuple(str(x) for x in notes["not_modelled"]),
        uncounted=tuple(str(x) for x in notes["uncounted"]),
        work_error=float(notes["work_error"]),
        weight=tuple(float(x) for x in notes["weight"]),
        worst_loop=(worst[0], worst[1]),
        added_loop=(added[0], added[1]),
        stabilization=str(notes["stabilization"]),
        wall=float(notes["wall"]),
        compiling=float(notes.get("compiling", 0.0)),
    )


def events_of(header: Mapping[str, Any]) -> tuple[Event, ...]:
    """What happened, in order of time."""
    return tuple(
        Event(float(x["t"]), str(x["kind"]), str(x["name"]), str(x["text"]), float(x["value"]))
        for x in header["events"]
    )
