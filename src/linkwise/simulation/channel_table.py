"""The channels of a recording by their names; some are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from linkwise.errors import ModelError, ShapeError
from linkwise.simulation.channel import Channel


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Channels that are computed together.

    Attributes:
        names: Their names.
        compute: What gives them.
    """

    names: tuple[str, ...]
    compute: Callable[[], Sequence[Channel]]


class ChannelTable(Mapping[str, Channel]):
    """Channels by their names, in order.

    Raises ModelError for two of one name, and ShapeError for other numbers of records.
    """

    def __init__(self, given: Sequence[Channel | Group], records: int) -> None:
        self._records, self._entries = records, dict[str, Channel | Group]()
        for entry in given:
            for name in entry.names if isinstance(entry, Group) else (entry.name,):
                if name in self._entries:
                    raise ModelError(
                        f"two channels are called {name!r}; names of channels are different."
                    )
                if "[" in name:
                    raise ModelError(
                        f"a channel is called {name!r}; brackets are for labels and units, so its "
                        "name has none."
                    )
                self._entries[name] = entry
            if isinstance(entry, Channel):
                self._check(entry)

    def _check(self, channel: Channel) -> None:
        if len(channel) != self._records:
            raise ShapeError(
                f"channel {channel.name!r} has {len(channel)} records; there are {self._records} "
                "times."
            )

    def __getitem__(self, name: str) -> Channel:
        entry = self._entries[name]
        if isinstance(entry, Channel):
            return entry
        channels = {channel.name: channel for channel in entry.compute()}
        assert tuple(channels) == entry.names, f"{entry.names} became {tuple(channels)}"
        for channel in channels.values():
            self._check(channel)
        self._entries |= channels
        return channels[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<channels {', '.join(self)}>"
