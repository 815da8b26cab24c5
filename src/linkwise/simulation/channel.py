"""Channels, numbers over time with a name, units and labels; and events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.arguments import is_a
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.spatial.array import Array, ArrayLike, floats, frozen


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        t: When [s].
        kind: "watch", "limit", "contact", "stop" ...
        name: Of what it happened to: a margin that was watched, a hinge, a contact.
        text: What happened, in words.
        value: A number that goes with it, or NaN: the margin, a coordinate, a force.
    """

    t: float
    kind: str
    name: str
    text: str = ""
    value: float = float("nan")

    def __str__(self) -> str:
        words = f", {self.text}" if self.text else ""
        return f"{self.t:.6f} s: {self.kind} {self.name!r}{words}"


def checked_times(t: ArrayLike) -> Array:
    """Times (k,) as they are; raises unless they increase."""
    times = floats(t, "t")
    if times.ndim != 1 or not len(times):
        raise ShapeError(f"t of a recording has the shape {times.shape}; it is (k,), one or more.")
    if not np.isfinite(times).all():
        raise ShapeError("t of a recording is not finite.")
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back):
        i = int(back[0])
        raise ModelError(
            f"times of a recording increase; after {times[i]:.9g} s comes {times[i + 1]:.9g} s."
        )
    return times


def checked_force(node: str, given: ArrayLike, records: int) -> Array:
    """(moment, force) at each record (k, 6), from that or from one for all (6,)."""
    force = floats(given, f"forces[{node!r}]")
    if force.shape == (6,):
        return np.broadcast_to(force, (records, 6))
    if force.shape != (records, 6):
        raise ShapeError(
            f"forces[{node!r}] has the shape {force.shape}; it is ({records}, 6), (moment, force) "
            "at each record."
        )
    return force


def as_event(given: object) -> Event:
    """An event, or what has a time and a name as one."""
    if isinstance(given, Event):
        return given
    known = cast(Any, given)
    t, name = getattr(known, "t", None), getattr(known, "name", "")
    if t is None:
        raise ModelError(f"an event is {given!r}; it needs a time `t` [s].")
    value = float(getattr(known, "margin", np.nan))
    return Event(float(t), type(given).__name__.lower(), str(name), str(given), value)


_WITH_UNIT = re.compile(r"\s*(?P<name>.*?\S)\s*\[(?P<unit>[^\[\]]*)\]\s*", re.DOTALL)
_WITH_LABEL = re.compile(r"(?P<name>.+?)\[(?P<label>.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """What was recorded of one quantity.

    Attributes:
        name: Its name in the recording: "energy.kinetic", "q", the name of a probe.
        unit: One unit for all columns, or one for each; "" where there is none.
        about: What it is, in a few words.
        values: At the times of the recording: (k,), or (k, n) for n columns.
        labels: A name for each column; none for (k,).
    """

    name: str
    unit: str | tuple[str, ...]
    about: str
    values: Array
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for word in ("name", "about"):
            is_a(str, getattr(self, word), f"{word} of a channel")
        values = floats(self.values, f"channel {self.name!r}")
        if values.ndim not in (1, 2):
            raise ShapeError(
                f"channel {self.name!r} has the shape {values.shape}; it is (k,), one number for "
                "each time, or (k, n)."
            )
        labels = tuple(str(label) for label in self.labels)
        if values.ndim == 1 and labels:
            raise ShapeError(f"channel {self.name!r} has one column, and {len(labels)} labels.")
        if values.ndim == 2 and not labels:
            labels = tuple(str(i) for i in range(values.shape[1]))
        if values.ndim == 2 and len(labels) != values.shape[1]:
            raise ShapeError(
                f"channel {self.name!r} has {values.shape[1]} columns, and {len(labels)} labels."
            )
        if len(set(labels)) != len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise ModelError(f"channel {self.name!r} has the label {twice!r} twice.")
        if not isinstance(self.unit, str) and len(self.unit) != self.columns_of(values):
            raise ShapeError(
                f"channel {self.name!r} has {self.columns_of(values)} columns, and "
                f"{len(self.unit)} units."
            )
        if values is self.values:
            values = values.copy() if values.flags.writeable else values
        object.__setattr__(self, "values", frozen(values))
        object.__setattr__(self, "labels", labels)

    @staticmethod
    def columns_of(values: Array) -> int:
        """How many columns an array has: one for (k,)."""
        return 1 if values.ndim == 1 else values.shape[1]

    @classmethod
    def of(
        cls, text: str, values: ArrayLike, *, labels: Sequence[str] = (), about: str = ""
    ) -> Channel:
        """A channel named as a probe is: "height of the hand [m]".

        Args:
            text: The name, with the unit in brackets behind it if there is one.
            values: (k,) or (k, n).
            labels: A name for each column.
            about: What it is.
        """
        name, unit = split_unit(text)
        return cls(name, unit, about, floats(values, f"channel {name!r}"), tuple(labels))

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each column."""
        if isinstance(self.unit, str):
            return (self.unit,) * self.columns_of(self.values)
        return self.unit

    @property
    def columns(self) -> tuple[str, ...]:
        """The name of each column as a recording takes it: "q[elbow]", "energy.total"."""
        if self.values.ndim == 1:
            return (self.name,)
        return tuple(f"{self.name}[{label}]" for label in self.labels)

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, rows: slice) -> Channel:
        """The same channel at some of its times."""
        return Channel(self.name, self.unit, self.about, self.values[rows], self.labels)

    def column(self, label: str, *, hinge: str | None = None) -> Channel:
        """The column of a label, or those of a hinge with several: "base" of "base.x", "base.y".

        Args:
            label: A label, the beginning of several before a dot, or the number of a column.
            hinge: The name of the hinge, where the label may be that of its body.

        Raises:
            UnknownNameError: There is none; names the near ones.
        """
        for part in (label, hinge):
            if part is None:
                continue
            if part in self.labels:
                i = self.labels.index(part)
                return Channel(f"{self.name}[{part}]", self.units[i], self.about,
                               self.values[:, i])  # fmt: skip
            among = [i for i, x in enumerate(self.labels) if x.startswith(f"{part}.")]
            if among:
                unit = tuple(self.units[i] for i in among)
                short = tuple(self.labels[i].removeprefix(f"{part}.") for i in among)
                name = f"{self.name}[{part}]"
                return Channel(name, unit, self.about, self.values[:, among], short)
        if self.values.ndim == 2 and label.isdecimal() and int(label) < self.values.shape[1]:
            return self.column(self.labels[int(label)])
        raise unknown_name("column", label, self.labels, owner=f"channel {self.name!r}")

    def __str__(self) -> str:
        units = "" if not any(self.units) else f" [{', '.join(dict.fromkeys(self.units))}]"
        about = f": {self.about}" if self.about else ""
        size = "" if self.values.ndim == 1 else f", {self.values.shape[1]} columns"
        return f"{self.name}{units}{about} ({len(self)} records{size})"


def split_unit(text: str) -> tuple[str, str]:
    """Name and unit of "name [unit]"; the unit is "" where there is none.

    Raises:
        ModelError: The name is empty.
    """
    match = _WITH_UNIT.fullmatch(text)
    name, unit = (match["name"], match["unit"].strip()) if match else (text.strip(), "")
    if not name or name.startswith("["):
        raise ModelError(f"a channel is called {text!r}; write 'name [unit]', like 'height [m]'.")
    return name, unit


def split_label(text: str) -> tuple[str, str | None]:
    """Channel and label of "channel[label]"; the label is None where there is none."""
    match = _WITH_LABEL.fullmatch(text)
    return (match["name"], match["label"]) if match else (text, None)


def as_channels(given: Mapping[str, ArrayLike]) -> list[Channel]:
    """Channels of arrays by their names with units."""
    return [Channel.of(name, values) for name, values in given.items()]
