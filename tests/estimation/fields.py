"""Random fields that the estimation view is tried on."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from linkwise.estimation import RandomField
from tests.algebra.trees import MOVING, bushy, welded
from tests.cases import close as close
from tests.estimation.reference import Reference


def massless() -> lw.Mechanism:
    """A pin, a body without mass, a pin across it, and a link: a universal joint of two pins."""
    b = lw.Builder("cross")
    b.body("cross", "world", lw.hinges.Pin((1.0, 0.0, 0.0)))
    rod = lw.SpatialInertia.from_com(2.0, (0.0, 0.1, -0.3), (0.05, 0.06, 0.02))
    b.body("rod", "cross", lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=rod)
    return b.build()


def bare_tip() -> lw.Mechanism:
    """A pendulum whose last link has no mass: nothing resists its pin."""
    b = lw.Builder("bare")
    rod = lw.SpatialInertia.from_com(2.0, (0.0, 0.1, -0.3), (0.05, 0.06, 0.02))
    b.body("rod", "world", lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=rod)
    b.body("tip", "rod", lw.hinges.Pin((0.0, 1.0, 0.0)), inboard=(0.0, 0.0, -1.0))
    return b.build()


def fork() -> lw.Mechanism:
    """A stem with two pins on it that carry unlike links; one of the three has armature."""
    b = lw.Builder("fork")
    links = [
        lw.SpatialInertia.from_com(m, (0.1, 0.2 * m, -0.3), (0.05, 0.06, 0.04)) for m in (1, 2, 3)
    ]
    b.body("stem", "world", lw.hinges.Pin((0.0, 0.0, 1.0)), inertia=links[0])
    left, right = lw.hinges.Pin((0.0, 1.0, 0.0)), lw.hinges.Prismatic((0.6, 0.0, 0.8))
    b.body("left", "stem", left, inboard=(0.0, 0.3, 0.4), inertia=links[1])
    drive = lw.Drive(armature=0.2)
    b.body("right", "stem", right, inboard=(0.2, 0.0, 0.4), inertia=links[2], drive=drive)
    return b.build()


MECHANISMS = {
    "fork": fork,
    "pendulum": lambda: lw.models.pendulum(3),
    "puma560": lw.models.puma560,
    "every hinge": lambda: lw.models.random_tree(6, 1),
    "every hinge, others": lambda: lw.models.random_tree(7, 8),
    "floating": lambda: lw.models.random_tree(4, 4, floating=True),
    "pins that branch": lambda: bushy(1),
    "mass ratio of a million": lambda: lw.models.random_tree(
        5, 5, mass_ratio=1e6, hinges=MOVING, drives=False
    ),
    "welds": lambda: welded(3),
    "a body without mass": massless,
    "one body": lambda: lw.models.random_tree(1, 2),
    "nothing moves": lambda: lw.models.pendulum(2).lock(["pin_1", "pin_2"]),
}

NOISES = {"armature": "armature", "no noise": None, "noise": 0.3}


@cache
def field(name: str, noise: str = "armature") -> RandomField:
    mech = MECHANISMS[name]()
    return RandomField(mech, mech.random(11), noise=NOISES[noise])


@cache
def reference(name: str, noise: str = "armature") -> Reference:
    result = field(name, noise)
    return Reference(result.mech, result.q, result.noise)


def measurement(mech: lw.Mechanism, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(mech.nv)


def bound(name: str, noise: str) -> float:
    """Both sides solve with a covariance of T: digits are lost with its condition number."""
    return 1e-14 * max(10.0, reference(name, noise).condition())
