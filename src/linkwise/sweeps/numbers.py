"""The arithmetic of the reference: NumPy arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.space import CONSTRAINT
from linkwise.errors import (
    ClosureError,
    ExpressionError,
    ShapeError,
    SingularHingeError,
    SingularTaskError,
)
from linkwise.model import closure, task_rows
from linkwise.model.closure import Blocked
from linkwise.model.embedded import Embedded, undetermined
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise.sweeps.factored import factored
from linkwise.sweeps.program import Block, Statement

if TYPE_CHECKING:
    from linkwise.sweeps.interpret import Interpreter


class Numbers:
    """NumPy arrays: blocks are multiplied out, and a singular one raises (see `Arithmetic`)."""

    kind: Any = np.float64
    itemsize, structured = 8, False

    def __init__(
        self,
        mech: Mechanism | Embedded,
        q: Array,
        v: Array | None,
        values: Mapping[str, Array | Sequence[Array]],
    ) -> None:
        self.mech: Any = mech
        self.tree: Mechanism = mech.mech if isinstance(mech, Embedded) else mech
        self.given = values
        self.q: Array = mech.check_q(q)
        self.v: Array = np.zeros(mech.nv) if v is None else mech.check_v(v)
        self.gravity: Array = mech.gravity

    def enter(self, k: int) -> None:
        """Nothing to do."""

    def vector(self, leaf: Symbol, sizes: Sequence[int]) -> list[Array]:
        """The blocks of v, or of a vector whose value was given."""
        assert isinstance(leaf.role, role.Vector)
        source = leaf.role.source
        vector = self.v if source == "v" and "v" not in self.given else self._value(leaf, source)
        vector = np.asarray(vector, dtype=np.float64)
        if vector.shape != (sum(sizes),):
            raise ShapeError(
                f"{leaf} has shape {vector.shape}; a {leaf.range} vector has ({sum(sizes)},) here."
            )
        return split(vector, sizes)

    def operator(self, leaf: Symbol, shapes: Sequence[tuple[int, int]]) -> list[Array]:
        """The blocks that were given."""
        assert isinstance(leaf.role, role.Shift | role.Memoryless)
        blocks = [np.asarray(x, dtype=np.float64) for x in self._value(leaf, leaf.role.source)]
        if [block.shape for block in blocks] != list(shapes):
            raise ShapeError(
                f"{leaf} has blocks of shapes {[block.shape for block in blocks]}; it needs one "
                f"for each {leaf.range.block}: {list(shapes)}."
            )
        return blocks

    def _value(self, leaf: object, source: str) -> Any:
        if source not in self.given:
            raise ExpressionError(f"no value was given for {leaf}: values={{'{source}': ...}}.")
        return self.given[source]

    def input(self, name: str, size: int) -> Array:
        """An array that was given for the servo."""
        value = np.asarray(self._value(f"{name}, which the servo needs", name), dtype=np.float64)
        if value.shape != (size,):
            raise ShapeError(f"{name} has shape {value.shape}; it must be ({size},).")
        return value

    def pose(self, k: int) -> Pose:
        """X_pk."""
        start, stop = self.tree.q_start[k], self.tree.q_start[k + 1]
        return self.tree.bodies[k].pose(self.q[start:stop])

    def shift(self, pose: Pose) -> Array:
        """φ (6, 6)."""
        return pose.shift

    def to_world(self, place: Array) -> Array:
        """φ⁻* (6, 6)."""
        rot = place[:, :3]
        return blocks(rot, np.zeros((3, 3)), skew(place[:, 3]) @ rot, rot)

    def inertia(self, k: int) -> SpatialInertia:
        """M_k."""
        return self.tree.inertias[k]

    def armature(self, k: int) -> Array:
        """The armature (nv_k,)."""
        return self.tree.armature[self.tree.v_start[k] : self.tree.v_start[k + 1]]

    def invert(self, matrix: Array, block: Block, k: int) -> Any:
        """The inverse; that of D as its factors."""
        part = block.symbol.role.part if isinstance(block.symbol.role, role.Riccati) else ""
        try:
            if part != "D":
                return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
            factors = factored(matrix)
            if min(factors.pivots, default=1.0) > 0.0:
                return factors
        except (np.linalg.LinAlgError, ZeroDivisionError):
            pass
        raise SingularHingeError(
            f"{block.symbol} is singular at body {self.mech.bodies[k].name!r}: nothing resists "
            "its hinge. Give the body, or what it carries, inertia, or the hinge an armature.",
            body=k,
        )

    def solve(self, run: Interpreter, statement: Statement) -> Array:
        """A x = b; of least norm where rows of loops and couplings depend on each other."""
        (matrix, _), (right, _) = statement.reads
        A, b = (np.concatenate(run.blocks_of(x)) for x in (matrix, right))
        if statement.target.rows is CONSTRAINT and not task_rows.has_tasks(self.mech):
            return generalised_solve(A, b, matrix.key)
        if statement.target.rows is CONSTRAINT:
            self._check_tasks(A)
        try:
            return np.linalg.solve(A, b).astype(np.float64)
        except np.linalg.LinAlgError:
            raise ExpressionError(
                f"{matrix.key} has no inverse: it is singular on {self.mech.name} in this state."
            ) from None

    def _check_tasks(self, A: Array) -> None:
        """Rows of tasks must not depend on each other, as those of loops may."""
        if not np.isfinite(A).all():
            raise ExpressionError("the inverse inertia seen by the tasks is not finite.")
        least = task_rows.SINGULAR[8] * (np.diag(A) + task_rows.row_scales(self.mech))
        try:
            pivots = np.array(factored(A).pivots)
        except ZeroDivisionError:
            pivots = np.zeros(len(A))
        if not (pivots > least).all():
            raise SingularTaskError(
                f"the tasks require more than {self.mech.name!r} can do in this state: their rows "
                "depend on each other, or the robot is singular; lw.tasks.task_space shows which "
                "directions are lost."
            )

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """By the hinge of the loop."""
        return closure.blocked(self.mech.loops[i].hinge, X_ab, V_ab)

    def check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """Raise where the loops do not determine the dependent velocities."""
        if min(margins) <= 0.0:
            raise ClosureError(f"{undetermined(self.mech, g)}.")

    def result(self, expr: Expr, value: Array) -> Array:
        """As it is."""
        return value


def split(vector: Any, sizes: Sequence[int]) -> list[Any]:
    """A vector (n,) as columns (size, 1)."""
    ends = np.cumsum(sizes)
    return [vector[end - size : end, None] for end, size in zip(ends, sizes, strict=True)]


def generalised_solve(A: Array, right: Array, what: object) -> Array:
    """The solution of least norm of A x = b, with a symmetric, positive semidefinite A.

    Rows of constraints may depend on each other; their right sides then agree.
    """
    if not np.isfinite(A).all():
        raise ExpressionError(f"{what} is not finite.")
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    scale = np.maximum(scale, 1e-11 * scale.max(initial=0.0))  # a row of zeros stays one
    scale = np.where(scale > 0.0, scale, 1.0)
    pseudo = np.linalg.pinv(A / np.outer(scale, scale), rcond=1e-13, hermitian=True)
    inverse = np.asarray(pseudo, dtype=np.float64)
    return (inverse @ (right / scale[:, None])) / scale[:, None]
