"""The manipulators that statements of the object-level framework are tried on.

Every case gives two. The mini-manipulator has six joints, for the six degrees of freedom of its
effector. Mounted on the mechanism of the case, of any hinges, branched or not, it is the effector
of a redundant manipulator, a macro and a mini in the paper's words. Without drives: there is
inertia only where the bodies are.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise import models
from linkwise.model.builder import Builder
from linkwise.model.hinges import Pin, Prismatic
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import random_rotation
from linkwise_ledger.case import Case
from linkwise_ledger.object_level.manipulator import Manipulator


def unit(axis: Array) -> tuple[float, float, float]:
    """The direction of a vector, for hinges."""
    x, y, z = axis / np.linalg.norm(axis)
    return float(x), float(y), float(z)


def gantry() -> Mechanism:
    """Three slides that are not at right angles, and a wrist of three pins: six joints."""
    rng = np.random.default_rng(33)
    b, last = Builder("gantry"), "world"
    for k in range(6):
        axis = np.eye(3)[k % 3] + 0.2 * rng.standard_normal(3)
        hinge = Prismatic(unit(axis)) if k < 3 else Pin(unit(axis))
        b.body(
            f"link_{k + 1}",
            last,
            hinge,
            inboard=Pose.rpy(0.2 * rng.standard_normal(3), 0.1 * rng.standard_normal(3)),
            inertia=SpatialInertia.from_com(
                rng.uniform(0.3, 0.8),
                0.1 * rng.standard_normal(3),
                rng.uniform(0.01, 0.02, 3),
                random_rotation(rng),
            ),
        )
        last = f"link_{k + 1}"
    b.node("hand", last, Pose.rpy((0.3, 0.1, -0.2), (0.05, -0.1, 0.2)))
    return b.build()


BENT = np.array([-0.2, 1.4, 0.1, -0.2, 0.5, 1.5])
"""A posture of the PUMA far from all singular ones."""

TOOL = SpatialInertia.from_com(1.0, (0.02, 0.01, -0.03), (0.03, 0.02, 0.025))
"""In the PUMA's hand: without it, and without drives, its wrist is lighter than air."""


def six_joints(which: int) -> tuple[Mechanism, Array]:
    """An arm of six joints in a good posture, its effector being "hand": a PUMA or a gantry."""
    if which % 2 == 0:
        puma = models.puma560().without_armature().with_node("hand", "flange", (0.0, 0.05, 0.1))
        return puma.with_payload("hand", TOOL, name="tool"), BENT
    return gantry(), 0.3 * np.arange(-2.0, 4.0)


TURNED = Pose.rpy((0.6, -0.4, 0.9)).rot
"""Axes of an effector: roll, pitch and yaw are good coordinates there."""


def effector(mech: Mechanism, hand: str, q: Array) -> Mechanism:
    """With the operational point at a hand, and axes there that are turned by `TURNED` now."""
    back = mech.pose(q, hand).rot.T
    return mech.with_node("effector", hand, Pose.rotation(back @ TURNED))


@cache
def mini(case: Case) -> Manipulator:
    """The mini-manipulator of a case, on the ground: six joints, as its effector needs."""
    mech, q = six_joints(case.seed)
    v = np.random.default_rng((case.seed, 31)).uniform(-0.7, 0.7, 6)
    mech = mech.with_gravity((0.3, -0.5, -9.7))
    return Manipulator(effector(mech, "hand", q), "effector", q, v, case.seed)


@cache
def arm(case: Case) -> Manipulator:
    """The mechanism of a case, and on its tip the mini-manipulator: a redundant manipulator."""
    light = mini(case)
    macro = case.mech.without_armature().with_gravity(light.mech.gravity)
    complete = macro.mount(six_joints(case.seed)[0], at=case.node, prefix="mini_")
    v = np.concatenate([0.7 * case.v / np.abs(case.v).max(), light.v])
    q = np.concatenate([case.q, light.q])
    return Manipulator(effector(complete, "mini_hand", q), "effector", q, v, case.seed, macro.nv)


@cache
def pair(case: Case) -> tuple[Manipulator, Manipulator]:
    """Both manipulators of a case."""
    return mini(case), arm(case)
