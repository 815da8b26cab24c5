"""Mechanisms with loops that the closed-chain functions are tried on, away from neutral."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.closed.random_loops import LIGHT, looped

LINKAGES: dict[str, int | None] = {
    "four_bar": 2,
    "peaucellier": 6,
    "stewart": 18,
    "dual_arm": 12,
    "nested": None,
    "couplings": None,
}
"""Each with the rank of its constraints where its description says it."""

DRIVEN = {
    "four_bar": ("crank",),
    "peaucellier": ("crank",),
    "stewart": tuple(f"slider_{k}" for k in range(1, 7)),
}
"""As many drives as freedoms."""


@cache
def linkage(name: str) -> tuple[lw.Mechanism, Array]:
    """A mechanism, and a configuration with closed loops."""
    if name == "nested":
        return looped(3, ("spherical", "pin", "planar"), n=7, hinges=LIGHT)
    if name == "couplings":
        return looped(4, ("spherical",), n=8, couplings=2, hinges=("pin", "prismatic"))
    mech = getattr(lw.models, name)()
    step = 0.1 * np.random.default_rng(3).standard_normal(mech.nv)
    q = lw.project_position(mech, mech.integrate(mech.neutral(), step))
    q.setflags(write=False)
    return mech, q


def rank_of(J: Array) -> int:
    """Rank by a plain decomposition; the linkages here have no singular values around 1e-9."""
    return int(np.linalg.matrix_rank(J, tol=1e-9))


def parallelogram() -> tuple[lw.Mechanism, Array]:
    """A four bar of equal opposite sides, folded flat: it can go on in two ways from there.

    The crank is turned from upright to along the ground, all other bars lie on the same line.
    """
    mech = lw.models.four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2)
    return mech, np.array([0.5 * np.pi, -0.5 * np.pi, 0.5 * np.pi])
