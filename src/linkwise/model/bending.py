"""How far flexible bodies bend: modes describe small motions, and say nothing about large ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import BendingWarning, caller
from linkwise.model.hinges import Modal
from linkwise.model.lumps import modal_bodies
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism

MOST_SECOND = 0.1
"""Displacement of second order, as a part of the body's length, up to which modes are trusted."""

MOST_FIRST = 0.4
"""Displacement where there is no second order. A clamped beam bent so far is 0.1 shorter."""

ROWS = 1 << 14
"""States that are looked at together."""


class _Bending:
    """What is needed of one flexible body.

    Attributes:
        name: Its hinge.
        entries: Of its coordinates in q.
        length: From its reference frame to its farthest node [m].
        most: The displacement that is trusted [m].
        shapes: Φ of all nodes (n, 3, m), or S (n, 3, m, m) where there is one.
        bound: Their sizes at the node that moves most, (m,) or (m, m).
    """

    def __init__(self, mech: Mechanism, k: int, nodes: list[Modal]) -> None:
        self.name, self.entries = mech.bodies[k].hinge_name, slice(*mech.q_start[k : k + 2])
        self.length = max(float(np.linalg.norm(x.rest.p)) for x in nodes)
        second = [np.zeros((3, x.nv, x.nv)) if x.second is None else x.second for x in nodes]
        self.curved = any(x.second is not None for x in nodes)
        self.shapes = np.array(second if self.curved else [x.modes[3:] for x in nodes])
        self.most = (MOST_SECOND if self.curved else MOST_FIRST) * self.length
        self.bound = np.linalg.norm(self.shapes, axis=1).max(axis=0)

    def largest(self, eta: Array) -> float:
        """The largest displacement [m] that is compared with the length, over states (b, m)."""
        if self.curved:
            moved: Array = 0.5 * np.einsum("nijk,bj,bk->bni", self.shapes, eta, eta, optimize=True)
        else:
            moved = np.einsum("nij,bj->bni", self.shapes, eta)
        return float(np.nanmax(np.linalg.norm(moved, axis=-1), initial=0.0))

    def too_far(self, eta: Array) -> float:
        """The largest such displacement, as a part of the length, if it is too large; else 0."""
        peak = np.fmax.reduce(np.abs(eta), axis=0)
        bound = self.bound @ peak
        if not self.length or not (0.5 * bound @ peak if self.curved else bound) > self.most:
            return 0.0
        part = max(self.largest(eta[i : i + ROWS]) for i in range(0, len(eta), ROWS))
        return part / self.length if part > self.most else 0.0


@once_per_mechanism
def _bending(mech: Mechanism) -> list[_Bending]:
    """The flexible bodies whose bending has not been reported yet."""
    made = list[_Bending]()
    for k in modal_bodies(mech):
        parts = (mech.bodies[k].hinge, *(x.hinge for x in mech.bodies[k].lumps))
        made.append(_Bending(mech, k, [x for x in parts if isinstance(x, Modal)]))
    return made


def warn_if_bent(mech: Mechanism, q: Any) -> None:
    """Warn, once for each body, where modal coordinates are beyond what modes describe.

    Args:
        mech: The mechanism.
        q: Its coordinates (..., nq), of NumPy or CuPy.
    """
    for body in list(_bending(mech)):
        eta = q[..., body.entries]
        eta = np.asarray(eta.get() if hasattr(eta, "get") else eta, dtype=np.float64)
        part = body.too_far(eta.reshape(-1, eta.shape[-1])) if eta.size else 0.0
        if part:
            _bending(mech).remove(body)
            what = "shortens it by" if body.curved else "moves its nodes by"
            share = f"{part:.0%} of" if part < 100.0 else f"{part:.1g} times"
            warnings.warn(
                f"{body.name!r} of {mech.name!r} bends so far that it {what} {share} its "
                "length. Modes describe moderate bending; results are wrong here. Use several "
                "shorter flexible bodies, or lw.models.rod.",
                BendingWarning,
                stacklevel=caller(),
            )
