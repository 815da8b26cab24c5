"""One row of a table of comparisons: a quantity here, the same in an outside reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import SingularHingeError
from linkwise.spatial.array import Array

BOUND = 1e-10
"""What agreement means, relative to the largest entry."""


@dataclass(frozen=True)
class Quantity:
    """A quantity and how both sides compute it.

    Attributes:
        name: In words.
        ours: The public function that is called.
        theirs: The function of the reference.
        here: Its value here, of a case.
        there: The reference's value, in our conventions.
        needs: Why a case has no such value; None where it has.
        size: What the difference is measured by, for values that are what large terms leave of one
            another: the size of those. By default the largest entry of the reference.
        truth: The value in extended precision: asked where the two disagree.
    """

    name: str
    ours: str
    theirs: str
    here: Callable[[Any], Any]
    there: Callable[[Any], Any]
    needs: Callable[[Any], str | None] = lambda it: None
    size: Callable[[Any], Any] | None = None
    truth: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Comparison:
    """One quantity of one model.

    Attributes:
        quantity: Its name.
        model: Name of the model.
        apart: Largest difference, relative; nan where it was left out.
        why: Why it was left out.
        off: Of a disagreement, how far both are from the value in extended precision, ours first.
    """

    quantity: str
    model: str
    apart: float
    why: str = ""
    off: tuple[float, float] | None = None


def apart(here: Any, there: Any, size: float | None = None) -> float:
    """The largest difference over the largest entry; infinite where shapes differ."""
    ours, theirs = np.asarray(here, dtype=float), np.asarray(there, dtype=float)
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return np.inf
    gap = float(np.abs(ours - theirs).max(initial=0.0))
    scale = float(np.abs(theirs).max(initial=0.0)) if size is None else size
    return gap / scale if gap > 0.0 and scale > 0.0 else (0.0 if gap == 0.0 else np.inf)


def compared(table: tuple[Quantity, ...], it: Any, model: str) -> list[Comparison]:
    """Every quantity of a table in one case."""
    return [_one(quantity, it, model) for quantity in table]


def _one(quantity: Quantity, it: Any, model: str) -> Comparison:
    why = quantity.needs(it)
    if why is not None:
        return Comparison(quantity.name, model, np.nan, why)
    try:
        here = quantity.here(it)
    except SingularHingeError:
        return Comparison(quantity.name, model, np.nan, "nothing resists some hinge")
    there = quantity.there(it)
    size = None if quantity.size is None else float(np.max(quantity.size(it)))
    gap = apart(here, there, size)
    if gap <= BOUND or quantity.truth is None:
        return Comparison(quantity.name, model, gap)
    try:
        truth = quantity.truth(it)
    except TypeError:  # a hinge that is not in extended precision
        return Comparison(quantity.name, model, gap)
    scale = float(np.abs(truth).max())
    off = [float(np.abs(np.asarray(x) - truth).max()) / scale for x in (here, there)]
    return Comparison(quantity.name, model, gap, off=(off[0], off[1]))


def homogeneous(rot: Any, p: Any) -> Array:
    """Poses (..., 4, 4) of rotations and positions."""
    rot, p = np.asarray(rot), np.asarray(p)
    out = np.zeros((*rot.shape[:-2], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = rot, p, 1.0
    return out
