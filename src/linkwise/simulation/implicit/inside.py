"""A warning before motions that begin inside the ground."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np

from linkwise.codegen.writing import Writing
from linkwise.errors import caller
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.implicit.contact_rows import contact_rows
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.spatial.array import Array

DEEP = 0.01
"""Penetration [m] at the beginning that is warned of."""

FEW = 8
"""Different beginnings of a batch that are looked at, at most."""

REMEMBERED = 16
"""Beginnings whose gaps are kept, at most."""


class _Poses:
    """Poses of bodies as numbers, in the place of the values of a graph."""

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self._mech, self._q = mech, q

    def value(self, expr: object, *, nodes: tuple[str, ...], q: object) -> Array:
        """Rows of (R, p)."""
        poses = [self._mech.pose(self._q, name) for name in nodes]
        return np.stack([np.column_stack([pose.rot, pose.p]) for pose in poses])


def gaps(mech: Mechanism, q: Array, points: tuple[ContactPoint, ...]) -> Array:
    """The gap of each contact at a configuration (c,) [m], in plain NumPy."""
    bodies = tuple(dict.fromkeys(point.body for point in points))
    _, distances, _ = contact_rows(cast(Writing, _Poses(mech, q)), q, bodies, points)
    return np.array([float(gap) for gap in distances])


def warn_if_inside(mech: Mechanism, q: Array, points: tuple[ContactPoint, ...]) -> None:
    """Look at configurations (nq,) or (batch, nq), and warn of the deepest."""
    if not points:
        return
    rows = np.reshape(q, (-1, mech.nq))
    rows = np.unique(rows, axis=0)[:FEW] if len(rows) > 1 else rows
    known, this = _known(mech), (points, rows.tobytes())
    gap = known.get(this)
    if gap is None:  # motions often begin again where others did
        each = np.array([gaps(mech, row, points) for row in rows]).reshape(-1, len(points))
        if len(known) == REMEMBERED:
            known.clear()
        gap = known[this] = each.min(axis=0, initial=0.0)
    warn_inside(mech, [point.name for point in points], gap)


@once_per_mechanism
def _known(mech: Mechanism) -> dict[Any, Array]:
    """Gaps of some beginnings."""
    del mech
    return {}


def warn_inside(mech: Mechanism, names: Any, gap: Array) -> None:
    """Say so if a motion begins with a deep penetration, which pushes it away fast.

    Args:
        mech: The mechanism.
        names: Names of contacts.
        gap: The gap of each [m].
    """
    if gap.size and gap.min() < -DEEP:
        name = names[int(gap.argmin())]
        warnings.warn(
            f"{mech.name!r} begins with contact {name!r} {-float(gap.min()):.3g} m inside what it "
            "touches, and will be thrown out. Begin outside: lw.simulation.put_on_ground(mech, q).",
            stacklevel=caller(),
        )
