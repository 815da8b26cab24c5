"""Any product of screw motions, for freedoms that have no name of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.hinges.hinge import Coordinate, ScrewHinge
from linkwise.spatial.array import Array, constant, floats, frozen


@dataclass(frozen=True)
class Screws(ScrewHinge):
    """pose(q) = exp(S_1 q_1) exp(S_2 q_2) ...: any set of free directions, in the order given.

    q_i is an angle [rad] where row i turns by one radian for a unit of q, and a length [m] where
    it only slides. v = q̇.

    Attributes:
        rows: The screws (ω, v), one to six linearly independent rows of six numbers.
    """

    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        rows = np.atleast_2d(floats(self.rows, "screws"))
        if rows.ndim != 2 or rows.shape[1] != 6 or not 1 <= len(rows) <= 6:
            raise ModelError(
                f"screws have shape {rows.shape}; give one to six rows of six numbers (ω, v)."
            )
        rows = constant(rows, rows.shape, "screws")
        rank = int(np.linalg.matrix_rank(rows))
        if rank < len(rows):
            raise ModelError(
                f"{len(rows)} screws were given but only {rank} are linearly independent; "
                "leave out the others: they add no freedom."
            )
        object.__setattr__(self, "rows", tuple(tuple(row) for row in rows.tolist()))

    @cached_property
    def screws(self) -> Array:
        return frozen(np.array(self.rows))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(
            Coordinate(f"screw_{i + 1}", "rad" if any(row[:3]) else "m")
            for i, row in enumerate(self.rows)
        )

    def describe(self) -> str:
        return f"{len(self.rows)} screws"
