"""What a kernel needs of the place where it runs: memory, and a call for many states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.stages import Signature

ANY = -1
"""The length of an input that is checked where it is used."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """States without a result.

    Attributes:
        count: How many.
        first: Row of the first one.
        code: Its code (`scalar/status.py`).
        often: The code that most of them have, and how many have it.
    """

    count: int
    first: int
    code: int
    often: tuple[int, int] = (0, 0)


def trouble(codes: NDArray[Any]) -> Trouble | None:
    """What codes of states (batch,) say."""
    bad = np.flatnonzero(codes)
    if not len(bad):
        return None
    kinds = Counter[int](int(code) for code in codes[bad])
    return Trouble(len(bad), int(bad[0]), int(codes[bad[0]]), kinds.most_common(1)[0])


class Device(Protocol):
    """Where a kernel runs. Arrays are NumPy's or CuPy's: views of those of the caller."""

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """For each input array its name and length, in order."""
        ...

    @property
    def signature(self) -> Signature:
        """What the kernel takes and gives."""
        ...

    @property
    def fast(self) -> Callable[..., Any] | None:
        """The bare call for one state: the result, or None where a closer look is needed."""
        ...

    @property
    def source(self) -> str:
        """The text of the code."""
        ...

    @property
    def description(self) -> str:
        """How it runs, for `explain`."""
        ...

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any) -> Any:
        """The result of a batch in the most usual form, or None where a closer look is needed."""
        ...

    def entered(self, arrays: list[Any], like: Any) -> AbstractContextManager[Any]:
        """Around all that follows: the device of the arrays, the stream of their library."""
        ...

    def taken(self, name: str, value: Any) -> Any:
        """An input as it can be read here, with the numbers of a row one behind the other."""
        ...

    def place(self, name: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """A caller's array that is written to, as seen here; raises where it does not fit."""
        ...

    def usable(self, out: Any, rows: list[Any]) -> bool:
        """Whether results can be written to an array directly, while inputs are read."""
        ...

    def run(
        self, rows: list[Any], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Any, Trouble | None]:
        """The results of all states, in `out` unless that is None; rows in trouble are NaN.

        Codes go to `codes`; where that is None, it tells of trouble instead.
        """
        ...

    def numbers(self, array: Any) -> NDArray[Any]:
        """An array in the memory of the computer."""
        ...
