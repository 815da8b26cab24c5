"""Loops in the scalar graph: what their hinges block as formulas, or as inputs of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra.space import CONSTRAINT
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.check import Check
from linkwise.codegen.scalar.graph import Scalar
from linkwise.model import aim
from linkwise.model.closure import Blocked, is_traceable
from linkwise.spatial.pose import Pose
from linkwise.sweeps.closing import Closing
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.scalar.trace import Trace

DIRECTIONS, RATES = "S", "S_rate"
"""Inputs of a kernel for loops whose hinge has no formula for what it blocks in the pose alone."""


DAMPING = {8: 1e-13, 4: 1e-5}
"""δ, relative to the diagonal entries, by bytes of a number: above the rounding of pivots."""

INDEPENDENT = 1e-11
"""Pivots below this part of their diagonal entry belong to rows that follow from others: then the
accelerations have lost the digits, 4e-16 over it."""

EMPTY = {8: 1e-9, 4: 1e-4}
"""Diagonal entries this far below their mean are small: pivots are compared with no less."""

ZEROS = {8: 1e-25, 4: 1e-11}
"""Diagonal entries this far below their mean are rounding, of rows of zeros that nothing moves."""

HELD = {8: 1e-17, 4: 1e-7}
"""What is added to those, relative to the mean: rounding ε in such rows, of A and of b, costs ε²
over it in all accelerations."""


class TracedClosing(Closing):
    """The loops and couplings of a trace."""

    run: Trace

    def __init__(self, run: Trace) -> None:
        super().__init__(run)
        self._given: dict[str, Any] = {}
        self.rank: int | None = None
        self.independent: Any = 0.0

    def take_inputs(self) -> None:
        """All inputs of the kernel that belong to rows, before anything is computed from others."""
        mech, rules = self.run.mech, {s.special for s in self.run.program.statements}
        if rules & {"Q", "Q*", "kappa", "kappa_g"} and not all(map(is_traceable, mech.loops)):
            self._rows_input(DIRECTIONS, 6)
        if "kappa" in rules and not all(map(is_traceable, mech.loops)):
            self._rows_input(RATES, 1)
        if "servo" in rules:
            for name in aim.SERVO:
                sizes = aim.goal_sizes(mech) if name == "goal" else self.run.sizes(CONSTRAINT)
                self.input(name, sum(sizes))

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """By formula; for a hinge of one's own, S and -S Ḣ* W are inputs."""
        loops = self.run.mech.loops
        if is_traceable(loops[i]):
            return super().blocked(i, X_ab, V_ab)
        before = sum(loop.rows for loop in loops[:i] if not is_traceable(loop))
        rows = slice(before, before + loops[i].rows)
        S = self._rows_input(DIRECTIONS, 6).reshape(-1, 6)[rows]
        if not np.any(V_ab):
            return Blocked(S, np.zeros(len(S)))
        return Blocked(S, self._rows_input(RATES, 1)[rows])

    def solved(self, A: Any, b: Any, itemsize: int) -> Any:
        """A x = b for a symmetric A that may be singular, where b is such that there is a solution.

        Rows of constraints may follow from others, and which ones, is not known beforehand. So A
        is made definite by little more than rounding, A + δ diag, and by more in rows of zeros:
        that is factored without pivots, and stably. It costs as much as δ over the least eigenvalue
        that counts, and solving for the residual squares that. In directions that A leaves
        undecided x stays small.
        """
        n, delta = len(A), DAMPING[itemsize]
        if not n:
            return b
        mean: Any = sum(A[j, j] for j in range(n)) / n
        if isinstance(mean, float) and mean == 0.0:  # nothing that the constraints could move
            return np.zeros(b.shape)
        # Moved as a whole, the mechanism has this: nothing counts that is far below.
        mass = self.run.mech.total_mass
        mean = mean + (1.0 / mass if mass > 0.0 else 0.0)
        definite, damping = A.copy(), list[Any]()
        for j in range(n):
            part = A[j, j] / (ZEROS[itemsize] * mean)
            damping.append(delta * A[j, j] + HELD[itemsize] * mean / (1.0 + part * part))
            definite[j, j] = A[j, j] + damping[j]
        found = factored(definite)
        if self.rank is not None:
            parts = [
                (pivot - damping[j]) / (A[j, j] + EMPTY[itemsize] * mean)
                for j, pivot in enumerate(found.pivots)
            ]
            self.independent = _count(parts)
        x = found @ b
        return x + found @ (b - A @ x)

    @property
    def checks(self) -> list[Check]:
        """That the rows that are independent are as many as elsewhere."""
        if self.rank is None or not isinstance(self.independent, Scalar):
            return []
        code, bounds = status.singular(self.run.mech), (self.rank - 0.5, self.rank + 0.5)
        return [Check(code, self.independent.node, *bounds)]

    def input(self, name: str, size: int) -> Any:
        """An input of the kernel."""
        if name not in self._given:
            self._given[name] = self.run.taken(name, size)
        return self._given[name]

    def _rows_input(self, name: str, width: int) -> Any:
        rows = sum(loop.rows for loop in self.run.mech.loops if not is_traceable(loop))
        return self.input(name, rows * width)


def _count(parts: list[Any]) -> Any:
    """How many rows are independent.

    A pivot, as a part r of its diagonal entry, counts as r² / (r² + t²): one if it is above the
    threshold t, nothing if it is rounding. `linkwise.dynamics.closure_rank` does the same.
    """
    total: Any = 0.0
    for part in parts:
        total = total + part * part / (part * part + INDEPENDENT**2)
    return total
