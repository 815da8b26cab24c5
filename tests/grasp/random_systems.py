"""Several arms that hold one object, drawn at random; the loops hold by construction.

The arms are drawn and put in a state first; then a node of the object is placed for each grasp at
the pose of the tip times hinge.pose(θ), with θ drawn too. Velocities are drawn and projected on
those that the loops allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw
from linkwise.model.hinges import Hinge
from linkwise.models.random_tree import HINGE_KINDS, _random_inertia, _random_pose
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import random_rotation
from tests.loops.dense_kkt import allowed_velocity

Rng = np.random.Generator

GRASPS = ("locked", "pin", "universal", "spherical")
"""Kinds of contact of JPL 88-11, Part II: rigid, and one, two or three rotations free."""

SLIDING = ("prismatic", "cylindrical", "planar", "helical", "screws")
"""Contacts beyond those of the source: the two frames move apart."""


@dataclass(frozen=True)
class System:
    """A multi-arm system in one state.

    Attributes:
        mech: The mechanism: arms "arm_1_…", an object on a free hinge, loops "grasp_k".
        q: Where all loops hold.
        v: Velocities that the loops allow.
        tau: Joint forces.
        theta: Coordinates of each loop's hinge.
        tips: Node of each arm that is in a loop.
    """

    mech: lw.Mechanism
    q: Array
    v: Array
    tau: Array
    theta: dict[str, Array]
    tips: tuple[str, ...]


def random_system(
    seed: int,
    *,
    arms: int = 2,
    links: tuple[int, int] = (6, 8),
    grasps: tuple[str, ...] = ("locked",),
    articulated: bool = False,
    armature: bool = True,
    swapped: bool = False,
    hinges: tuple[str, ...] = ("pin",),
) -> System:
    """One system; the same arguments give the same.

    Args:
        seed: Of the random generator.
        arms: How many.
        links: Fewest and most links of an arm.
        grasps: Kinds of contact, dealt in turn: a grasp more than there are kinds starts over.
        articulated: Whether the object is three bodies with freedoms between them; the grasps are
            then on all of them.
        armature: Whether hinges have some of their own.
        swapped: Whether every second loop goes from the object to the arm.
        hinges: Kinds of hinge in the arms.
    """
    rng = np.random.default_rng(seed)
    b = lw.Builder(f"system_{seed}", gravity=(0.5, -1.0, -9.0))
    tips = [
        _arm(b, k + 1, int(rng.integers(links[0], links[1] + 1)), rng, armature, hinges)
        for k in range(arms)
    ]
    held = _object(b, rng, articulated)
    loose = b.build()
    q = loose.random(rng)
    theta = dict[str, Array]()
    for k, tip in enumerate(tips):
        hinge = _contact(grasps[k % len(grasps)], rng)
        name, part = f"grasp_{k + 1}", held[k % len(held)]
        ours = hinge.random(rng, np.full(hinge.nq, -np.inf), np.full(hinge.nq, np.inf))
        theta[name] = ours = 0.5 * ours if hinge.quaternion is None else ours
        # X_ab = hinge.pose(θ) for a loop from a to b.
        step = hinge.pose(ours)
        turned = swapped and k % 2 == 1
        at = loose.pose(q, tip) @ (step.inverse() if turned else step)
        b.node(f"{name}_node", part, loose.pose(q, part).inverse() @ at)
        ends = (f"{name}_node", tip) if turned else (tip, f"{name}_node")
        b.loop(name, *ends, hinge)
    mech = b.build()
    v = allowed_velocity(mech, q, theta, mech.random_velocity(rng))
    return System(mech, q, v, 5.0 * rng.standard_normal(mech.nv), theta, tuple(tips))


def _arm(b: lw.Builder, k: int, n: int, rng: Rng, armature: bool, hinges: tuple[str, ...]) -> str:
    """A serial arm somewhere within a metre; the name of the node at its tip."""
    parent = "world"
    for j in range(1, n + 1):
        at = _random_pose(rng)
        if j == 1:
            at = lw.Pose.rotation(random_rotation(rng), rng.uniform(-1.0, 1.0, 3))
        hinge = HINGE_KINDS[hinges[(j - 1) % len(hinges)]](rng)
        ours = float(rng.uniform(0.01, 0.2)) if armature and j % 2 else 0.0
        name = f"arm_{k}_link_{j}"
        b.body(
            name,
            parent,
            hinge,
            inboard=at,
            outboard=lw.Pose.identity() if j % 3 else _random_pose(rng),
            inertia=_random_inertia(rng, 10.0),
            drive=lw.Drive(armature=ours),
        )
        parent = name
    b.node(f"arm_{k}_tip", parent, _random_pose(rng))
    return f"arm_{k}_tip"


def _object(b: lw.Builder, rng: Rng, articulated: bool) -> list[str]:
    """The names of the object's bodies."""
    away = lw.Pose.rotation(random_rotation(rng), rng.uniform(-0.5, 0.5, 3))
    b.body("object", "world", lw.hinges.Free(), inboard=away, inertia=_random_inertia(rng, 10.0))
    if not articulated:
        return ["object"]
    for name, kind in (("lid", "pin"), ("drawer", "prismatic")):
        hinge, at, ours = HINGE_KINDS[kind](rng), _random_pose(rng), _random_inertia(rng, 10.0)
        b.body(name, "object", hinge, inboard=at, inertia=ours)
    return ["object", "lid", "drawer"]


def _contact(kind: str, rng: Rng) -> Hinge:
    return HINGE_KINDS[kind](rng)
