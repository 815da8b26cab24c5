"""Mechanisms and states that the named quantities are tried on."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from tests.algebra.trees import MOVING

TREES = {
    "every hinge, armature": (5, 1, {}),
    "every hinge, others": (5, 8, {}),
    "no armature": (4, 3, {"drives": False}),
    "floating": (4, 4, {"floating": True}),
    "mass ratio of a million": (5, 5, {"mass_ratio": 1e6, "hinges": MOVING}),
    "pins": (6, 6, {"hinges": ("pin",), "branching": 0.7}),
}


@cache
def tree(name: str) -> lw.Mechanism:
    """One of the random trees, with a node away from its body and one on the ground."""
    n, seed, options = TREES[name]
    mech = lw.models.random_tree(n, seed, **options)
    mech = mech.with_gravity((0.3, -9.0, 2.0))
    mech = mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))
    return mech.with_node("post", "world", lw.Pose.rpy((0.1, 0.2, 0.3), (1.0, 2.0, 3.0)))


def state(mech: lw.Mechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and something for the joints: forces or accelerations."""
    rng = np.random.default_rng(seed)
    return mech.random(rng), mech.random_velocity(rng), 3.0 * rng.standard_normal(mech.nv)


def states(mech: lw.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A batch of them."""
    drawn = [state(mech, seed) for seed in range(count)]
    q, v, x = (np.stack(part) for part in zip(*drawn, strict=True))
    return q, v, x


def close(result, expected, bound: float = 1e-11, scale: float | None = None) -> None:
    """Equal up to a bound, relative to the largest entry that is expected (or to a scale)."""
    size = float(np.abs(expected).max(initial=0.0)) if scale is None else scale
    apart = float(np.abs(np.asarray(result) - expected).max(initial=0.0))
    assert np.shape(result) == np.shape(expected)
    assert apart <= bound * max(size, 1e-300), f"{apart} of {size}"
