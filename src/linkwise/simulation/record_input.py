"""What a recording is made of, checked: times, forces, events, channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from linkwise.errors import ModelError, ShapeError
from linkwise.simulation.channel import Channel
from linkwise.simulation.event import Event
from linkwise.spatial.array import Array, ArrayLike, floats


def by_name(channels: Sequence[Channel], records: int) -> Mapping[str, Channel]:
    """Channels by their names; raises for two of one name, and for other numbers of records."""
    found = dict[str, Channel]()
    for channel in channels:
        if channel.name in found:
            raise ModelError(
                f"two channels are called {channel.name!r}; names of channels are different."
            )
        if "[" in channel.name:
            raise ModelError(
                f"a channel is called {channel.name!r}; brackets are for labels and units, so its "
                "name has none."
            )
        if len(channel) != records:
            raise ShapeError(
                f"channel {channel.name!r} has {len(channel)} records; there are {records} times."
            )
        found[channel.name] = channel
    return MappingProxyType(found)


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
