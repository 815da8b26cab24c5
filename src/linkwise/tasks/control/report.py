"""What a controller did in a state: level by level, what was asked for and what was given."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise import arguments
from linkwise.errors import ShapeError
from linkwise.spatial.array import Array
from linkwise.tasks.space import tasks_in_words
from linkwise.tasks.task import Task
from linkwise.tasks.twin import Twin

EXACT = 1e-8
"""Accelerations that differ by less than this, or this part of the largest, are as asked."""

_LETTERS = ("ωx", "ωy", "ωz", "vx", "vy", "vz")

SMALL = 0.05
"""Parts of a direction below this part of the largest are not told."""


Flags: TypeAlias = NDArray[np.bool_]
"""Which of several; the reference takes np.bool_ in an attribute for a link."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelReport:
    """One level of priority. For a batch every array has the batch in front.

    Attributes:
        tasks: Its tasks.
        names: A name for each of its rows.
        wanted: F* (m,) [rad/s² or m/s²].
        achieved: ẍ that the torque gives (m,).
        rank: How many of its directions can be moved in what the levels above leave free.
        singular_values: Of J N of the levels above, turning measured at a length (m,) [m], the
            largest first; with damping, of J N 𝓜^(-½).
        directions: Orthonormal combinations of the scaled rows that belong to them, the columns of
            (m, m).
        share: How much of what is asked for is given along each of the directions (m,); 1 for all
            of it, 0 for a direction that is lost.
        held: Directions in which joints were controlled by themselves (m,).
        slowed: Directions in which joints would be too fast for what is asked for (m,).
        damped: Whether shares below one are due to damping.
    """

    tasks: tuple[Task, ...]
    names: tuple[str, ...]
    wanted: Array
    achieved: Array
    rank: int | NDArray[np.int64]
    singular_values: Array
    directions: Array
    share: Array
    held: Flags
    slowed: Flags
    damped: bool

    @property
    def servos(self) -> tuple[str, ...]:
        """Names of its servos: those of the tasks."""
        return tuple(task.name for task in self.tasks)

    @property
    def lost(self) -> Array:
        """Directions of which nothing is given (m, k)."""
        self._one()
        return self.directions[:, self.share == 0.0]

    def __getitem__(self, i: int) -> LevelReport:
        """One state of a batch."""
        i = arguments.row(i, None if self.wanted.ndim == 1 else len(self.wanted), "this report")
        found = _row(self, i, ("tasks", "names", "damped"))
        return replace(found, rank=int(np.asarray(self.rank)[i]))

    def __str__(self) -> str:
        what = " and ".join(self.servos)
        if self.wanted.ndim == 2:
            return f"{what}: {len(self.wanted)} states"
        missing = float(np.abs(self.wanted - self.achieved).max())
        whole = EXACT * max(1.0, float(np.abs(self.wanted).max()))  # a goal that is met asks for 0
        off = f"off by {missing:.2g}" if missing > whole else "as asked"
        told = [f"{what}: rank {self.rank} of {len(self.wanted)}, {off}"]
        gone = np.flatnonzero(self.share == 0.0)
        told += self._lost_in_words(gone)
        told += [
            self._worded(int(i)) for i in np.flatnonzero((self.share < 1.0) & (self.share > 0))
        ]
        told += [
            f"joints would be too fast along {self._along(int(i))}"
            for i in np.flatnonzero(self.slowed & (self.share == 1.0))
        ]
        return "; ".join(told)

    def _lost_in_words(self, gone: NDArray[np.int64]) -> list[str]:
        """Directions of which nothing is given: which basis of several is found says nothing."""
        if not len(gone):
            return []
        held = ", joints held by themselves" if self.held[gone].any() else ""
        worded = tasks_in_words(self.tasks, self.directions[:, gone])
        if len(gone) == 1 and (worded is None or "combination" in worded[0]):
            worded = [f"nothing along {self._along(int(gone[0]))}"]
        elif worded is None:
            worded = [f"nothing along {len(gone)} directions"]
        return [*worded[:-1], worded[-1] + held]

    def _worded(self, i: int) -> str:
        """What is not given along one direction, in words."""
        why = "by damping" if self.damped else "near a singular configuration"
        return f"{100.0 * float(self.share[i]):.3g} % along {self._along(i)}, {why}"

    def _along(self, i: int) -> str:
        """A direction by the names of its rows."""
        column = self.directions[:, i]
        largest = column[np.argmax(np.abs(column))]
        parts = [
            (x * np.sign(largest), name)
            for x, name in zip(column, self.names, strict=True)
            if abs(x) > SMALL * abs(largest)
        ]
        if len(parts) == 1:
            return parts[0][1]
        return " ".join(f"{x:+.2f} {name}" for x, name in parts)

    def _one(self) -> None:
        if self.wanted.ndim == 2:
            raise ShapeError(
                f"this is the report of {len(self.wanted)} states; choose one of them first: "
                "report[0]."
            )


@dataclass(frozen=True, slots=True, eq=False)
class ControlReport:
    """A controller in a state. For a batch every array has the batch in front.

    Attributes:
        tau: Joint forces (nv,) [N or N m].
        acceleration: v̇ that they give (nv,).
        levels: Level by level, the most important first.
        limits: Joints that are kept away from their limits before all levels (nv,).
        free: How many freedoms are left to the posture.
    """

    tau: Array
    acceleration: Array
    levels: tuple[LevelReport, ...]
    limits: Flags
    free: float | Array

    def __len__(self) -> int:
        if self.tau.ndim == 1:
            raise ShapeError("this is the report of one state; it has no length.")
        return len(self.tau)

    def __getitem__(self, i: int) -> ControlReport:
        """One state of a batch."""
        i = arguments.row(i, None if self.tau.ndim == 1 else len(self.tau), "this report")
        levels = tuple(level[i] for level in self.levels)
        return ControlReport(
            self.tau[i],
            self.acceleration[i],
            levels,
            self.limits[i],
            float(np.asarray(self.free)[i]),
        )

    def __str__(self) -> str:
        if self.tau.ndim == 2:
            return f"control of {len(self)} states"
        told = [f"level {k}: {level}" for k, level in enumerate(self.levels, 1)]
        if self.limits.any():
            told.insert(0, f"{int(self.limits.sum())} joints are close to their limits")
        told.append(f"free for the posture: {float(self.free):.3g} of {len(self.tau)}")
        return "\n".join(told)


def row_labels(t: Twin) -> tuple[str, ...]:
    """Short names of rows: ωx to ωz and vx to vz where they are along axes, else a number."""
    found = list[str]()
    for i, task in enumerate(t.tasks):
        one = f" of {task.name}" if len(t.tasks) > 1 else ""
        if task.kind == "joints":
            found += t.names[t.rows(i)]
            continue
        for k, row in enumerate(task.rows):
            at = [j for j, x in enumerate(row) if x != 0.0]
            letter = _LETTERS[at[0]] if len(at) == 1 and row[at[0]] == 1.0 else f"row {k}"
            found.append(f"{letter}{one}")
    return tuple(found)


def _row(report: Any, i: int, constant: tuple[str, ...]) -> Any:
    """The same report with one row of every array."""
    arrays = {f.name: getattr(report, f.name)[i] for f in fields(report) if f.name not in constant}
    return replace(report, **arrays)
