"""What implicit steps of a rollout record besides q and v."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.simulation.implicit.ground import ContactPoint, HeightField, axes_of


@dataclass(frozen=True, eq=False)
class Pushes:
    """Impulses at contacts, and their forces, which take as long as the steps of a batch.

    Attributes:
        points: The contacts.
        impulses: Records (..., n) that end with the impulses, of NumPy or CuPy; those of points
            over height fields begin with their normals.
        step: Length of a step [s].
        like: An array of the kind that forces are given as.
    """

    points: tuple[ContactPoint, ...]
    impulses: Any
    step: float
    like: Any

    @cached_property
    def forces(self) -> Any:
        """Mean forces in world axes (..., contacts, 3) [N], computed at their first use."""
        on_gpu = arrays.is_on_gpu(self.impulses)
        library: Any = arrays.cupy() if on_gpu else np
        with arrays.stream(self.like) if on_gpu else nullcontext():
            uneven = 3 * sum(isinstance(point.ground, HeightField) for point in self.points)
            axes = axes_of(self.points, self.impulses[..., :uneven], library) / self.step
            rows = np.array([point.rows for point in self.points])
            first = self.impulses.shape[-1] - rows.sum() + np.cumsum(rows) - rows
            push = self.impulses[..., library.asarray(first[:, None] + np.arange(3))]
            return arrays.given_back((push[..., None, :] @ axes)[..., 0, :], self.like)


@dataclass(frozen=True, slots=True)
class Shown:
    """What implicit steps record; None where there is nothing."""

    pushes: Pushes | None = None
    residual: Any = None
    unsolved: Any = None
    penetration: Any = None
    slip: Any = None


def shown_by(points: tuple[ContactPoint, ...], records: Any, step: float, like: Any) -> Shown:
    """Of records (..., n) of NumPy or CuPy: impulses, the residual, and `WORST` of contacts.

    Args:
        points: The contacts.
        records: What is shown behind q and v.
        step: Length of a step [s].
        like: An array of the kind that is given.
    """
    if not records.shape[-1]:
        return Shown()

    def at(k: int) -> Any:
        return arrays.given_back(records[..., k], like)

    if not points:
        return Shown(residual=at(-2), unsolved=at(-1))
    return Shown(Pushes(points, records[..., :-4], step, like), at(-4), at(-3), at(-2), at(-1))
