"""Which name is still free?"""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Names in use. `fresh` gives a new one in constant time, however many were alike before."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def add(self, name: str) -> None:
        """Put a name in use."""
        self._taken.add(name)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or `wanted_2`, `wanted_3` ..., whichever is free first; it is in use then."""
        name, i = wanted, self._next.get(wanted, 2)
        while name in self._taken:
            name, i = f"{wanted}_{i}", i + 1
        self._next[wanted] = i
        self._taken.add(name)
        return name
