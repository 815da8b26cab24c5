"""What a controller did in a state: requested and achieved accelerations of each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.batched import Batched
from linkwise.spatial.array import Array
from linkwise.tasks.space import tasks_in_words
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import TaskStack

EXACT = 1e-8
"""Accelerations within this, or this fraction of the largest, count as achieved."""

_LETTERS = ("ωx", "ωy", "ωz", "vx", "vy", "vz")

SMALL = 0.05
"""Components of a direction below this fraction of the largest are not reported."""


Flags: TypeAlias = NDArray[np.bool_]
"""Boolean arrays; Sphinx would render np.bool_ in an attribute as a link."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelReport(Batched):
    """One level of priority. For a batch every array has the batch in front.

    Attributes:
        tasks: Its tasks.
        names: A name for each of its rows.
        requested: F* (m,) [rad/s² or m/s²].
        achieved: ẍ that the torque gives (m,).
        rank: The number of its directions that can move in the null space of the levels above.
        singular_values: Of J N of the levels above, turning measured at a length (m,) [m], the
            largest first; with damping, of J N 𝓜^(-½).
        directions: The corresponding orthonormal combinations of the scaled rows, columns of
            (m, m).
        share: The fraction of the request that is given along each direction (m,); 1 for all of it,
            0 for a lost direction.
        held: Directions in which joints were controlled separately (m,).
        slowed: Directions in which the request would make joints too fast (m,).
        damped: Whether shares below one are due to damping.
    """

    WHAT: ClassVar[str] = "report of a level"
    AXES: ClassVar[tuple[str, int]] = ("requested", 1)

    tasks: tuple[Task, ...]
    names: tuple[str, ...]
    requested: Array
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
        """Directions along which nothing is given (m, k)."""
        self._single()
        return self.directions[:, self.share == 0.0]

    def __str__(self) -> str:
        what = " and ".join(self.servos)
        if self.is_batch:
            return f"{what}: {len(self)} states"
        missing = float(np.abs(self.requested - self.achieved).max())
        exact = EXACT * max(
            1.0, float(np.abs(self.requested).max())
        )  # the request is 0 at the goal
        off = f"off by {missing:.2g}" if missing > exact else "as requested"
        lines = [f"{what}: rank {self.rank} of {len(self.requested)}, {off}"]
        gone = np.flatnonzero(self.share == 0.0)
        lines += self._lost_in_words(gone)
        lines += [
            self._worded(int(i)) for i in np.flatnonzero((self.share < 1.0) & (self.share > 0))
        ]
        lines += [
            f"joints would be too fast along {self._along(int(i))}"
            for i in np.flatnonzero(self.slowed & (self.share == 1.0))
        ]
        return "; ".join(lines)

    def _lost_in_words(self, gone: NDArray[np.int64]) -> list[str]:
        """Lost directions in words, independent of their basis."""
        if not len(gone):
            return []
        held = ", joints controlled separately" if self.held[gone].any() else ""
        worded = tasks_in_words(self.tasks, self.directions[:, gone])
        if len(gone) == 1 and (worded is None or "combination" in worded[0]):
            worded = [f"nothing along {self._along(int(gone[0]))}"]
        elif worded is None:
            worded = [f"nothing along {len(gone)} directions"]
        return [*worded[:-1], worded[-1] + held]

    def _worded(self, i: int) -> str:
        """A reduced direction in words."""
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


@dataclass(frozen=True, slots=True, eq=False)
class ControlReport(Batched):
    """A controller in a state. For a batch every array has the batch in front.

    Attributes:
        tau: Joint forces (nv,) [N or N m].
        acceleration: v̇ that they give (nv,).
        levels: The levels, the most important first.
        limits: Joints near their limits that take precedence over all levels (nv,).
        free: The number of degrees of freedom left to the posture.
    """

    WHAT: ClassVar[str] = "report"
    AXES: ClassVar[tuple[str, int]] = ("tau", 1)

    tau: Array
    acceleration: Array
    levels: tuple[LevelReport, ...]
    limits: Flags
    free: float | Array

    def __str__(self) -> str:
        if self.is_batch:
            return f"control of {len(self)} states"
        lines = [f"level {k}: {level}" for k, level in enumerate(self.levels, 1)]
        if self.limits.any():
            lines.insert(0, f"{int(self.limits.sum())} joints are close to their limits")
        lines.append(f"free for the posture: {float(self.free):.3g} of {len(self.tau)}")
        return "\n".join(lines)


def row_labels(t: TaskStack) -> tuple[str, ...]:
    """Short names of rows: ωx to ωz and vx to vz for coordinate axes, else a number."""
    labels = list[str]()
    for i, task in enumerate(t.tasks):
        one = f" of {task.name}" if len(t.tasks) > 1 else ""
        if task.kind == "joints":
            labels += t.names[t.rows(i)]
            continue
        for k, row in enumerate(task.rows):
            at = [j for j, x in enumerate(row) if x != 0.0]
            letter = _LETTERS[at[0]] if len(at) == 1 and row[at[0]] == 1.0 else f"row {k}"
            labels.append(f"{letter}{one}")
    return tuple(labels)
