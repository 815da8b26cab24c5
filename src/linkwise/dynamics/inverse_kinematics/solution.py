"""What inverse kinematics found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import row
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution:
    """The joints that take nodes to their targets, or as near as was found.

    For one set of targets the shapes are as said; for a batch all arrays have (batch,) in front,
    and `solution[i]` is one of them.

    Attributes:
        q: Joint positions (nq,), within limits [m or rad].
        reached: Whether all targets are met within the tolerance ().
        position_error: Distance of each node from its target position () [m], by name.
        orientation_error: Angle between each node and its target orientation or direction () [rad],
            by name.
        iterations: Steps of the search that found it ().
        starts: How many searches were begun ().
        searches: What computes the history of each search again, a tuple of one for one.
        at_limit: Coordinates that stand at a limit (nq,).
        blocked: For each set of targets that was not reached, the hinges that are pulled against
            a limit; a tuple of one for one.
        reasons: For each set of targets, why the search ended, in words; a tuple of one for one.
    """

    q: Array
    reached: NDArray[np.bool_]
    position_error: dict[str, Array]
    orientation_error: dict[str, Array]
    iterations: NDArray[np.int64]
    starts: NDArray[np.int64]
    searches: tuple[Callable[[], Array], ...]
    at_limit: NDArray[np.bool_]
    blocked: tuple[tuple[str, ...], ...]
    reasons: tuple[str, ...]

    @property
    def history(self) -> Array:
        """Weighted error √(e* W e) before the first step and after each (iterations + 1,).

        It never grows. In a batch, filled up with NaN.
        """
        found = [search() for search in self.searches]
        if self.q.ndim == 1:
            return found[0]
        out = np.full((len(found), max(map(len, found), default=0)), np.nan)
        for errors, into in zip(found, out, strict=True):
            into[: len(errors)] = errors
        return out

    @property
    def reason(self) -> str:
        """Why the search ended, in words; for a batch, of the first that was not reached."""
        if self.q.ndim == 1:
            return self.reasons[0]
        head = f"{int(self.reached.sum())} of {len(self)} reached"
        missing = np.flatnonzero(~self.reached)
        return f"{head}; {missing[0]}: {self.reasons[missing[0]]}" if len(missing) else head

    @property
    def limits(self) -> tuple[str, ...]:
        """Hinges that are pulled against a limit; for a batch, those of any."""
        return tuple(dict.fromkeys(name for names in self.blocked for name in names))

    def __len__(self) -> int:
        if self.q.ndim == 1:
            raise TypeError("this solution is a single one, not a batch")
        return len(self.q)

    def __getitem__(self, i: int) -> Solution:
        """One of a batch."""
        i = row(i, None if self.q.ndim == 1 else len(self), "this solution")
        return Solution(
            self.q[i],
            self.reached[i],
            {name: error[i] for name, error in self.position_error.items()},
            {name: error[i] for name, error in self.orientation_error.items()},
            self.iterations[i],
            self.starts[i],
            (self.searches[i],),
            self.at_limit[i],
            (self.blocked[i],),
            (self.reasons[i],),
        )

    def __iter__(self) -> Iterator[Solution]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<Solution: {self.reason}>"


def in_words(errors: list[tuple[str, float | None, float | None]]) -> str:
    """Errors of nodes: "'hand' is 0.31 m and 0.2 rad away"."""
    parts = list[str]()
    for node, distance, angle in errors:
        sizes = [] if distance is None else [f"{distance:.3g} m"]
        sizes += [] if angle is None else [f"{angle:.3g} rad"]
        parts.append(f"{node!r} is {' and '.join(sizes)} away")
    return ", ".join(parts)
