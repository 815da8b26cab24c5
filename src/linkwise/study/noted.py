"""Which values a function reads: those that nothing takes are misspelt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Noted(dict[str, Any]):
    """A dictionary that notes which of its keys are read; whoever looks at all reads all.

    Attributes:
        read: Keys that were read.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.read = set[str]()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        self.read.add(key)
        return super().get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """The value of a key, which is removed."""
        self.read.add(key)
        return super().pop(key, *default)

    def _all(self) -> dict[str, Any]:
        self.read |= set(super().keys())
        return dict(zip(super().keys(), super().values(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def keys(self) -> Any:
        """All keys."""
        return self._all().keys()

    def values(self) -> Any:
        """All values."""
        return self._all().values()

    def items(self) -> Any:
        """All keys and values."""
        return self._all().items()

    def copy(self) -> dict[str, Any]:
        """All of it."""
        return self._all()

    def __or__(self, other: Any) -> Any:
        return self._all() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._all()
