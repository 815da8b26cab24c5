"""Results for one state, or for a batch of states: the first axis of each array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from linkwise.arguments import row
from linkwise.errors import ShapeError

T = TypeVar("T", bound="Batched")


class Batched:
    """A frozen dataclass whose arrays may have a batch in front; `result[i]` is one state of it.

    A subclass declares its name in messages, one of its arrays with the number of axes that this
    array has for one state, and the fields that all states share.
    """

    __slots__ = ()

    WHAT: ClassVar[str]
    AXES: ClassVar[tuple[str, int]]
    SHARED: ClassVar[frozenset[str]] = frozenset()

    @property
    def is_batch(self) -> bool:
        """Whether this holds a batch of states."""
        name, axes = self.AXES
        return getattr(self, name).ndim > axes

    def __len__(self) -> int:
        if not self.is_batch:
            raise ShapeError(f"this is the {self.WHAT} of one state; it has no length.")
        return len(getattr(self, self.AXES[0]))

    def __getitem__(self, i: int) -> Self:
        """One state of a batch."""
        return some_states(self, row(i, len(self) if self.is_batch else None, f"this {self.WHAT}"))

    def _single(self) -> Self:
        """This result, if it holds one state; raises for a batch."""
        if self.is_batch:
            raise ShapeError(
                f"this is the {self.WHAT} of {len(self)} states; choose one first, with [0]."
            )
        return self


def some_states(record: T, part: int | slice) -> T:
    """One state of a batch, or some of them."""
    parts = {x.name: getattr(record, x.name) for x in fields(cast(Any, record)) if x.init}
    picked = {n: value if n in record.SHARED else _rows(value, part) for n, value in parts.items()}
    return type(record)(**picked)


def _rows(value: Any, part: int | slice) -> Any:
    if isinstance(value, np.ndarray):
        chosen = cast(Any, value)[part]
        return chosen.item() if np.ndim(chosen) == 0 else chosen
    if isinstance(value, Batched):
        return some_states(value, part)
    if isinstance(value, tuple):  # of results; names are shared
        return tuple(_rows(x, part) for x in cast("tuple[Any, ...]", value))
    if isinstance(value, Mapping):
        return {name: _rows(x, part) for name, x in cast("Mapping[Any, Any]", value).items()}
    return value
