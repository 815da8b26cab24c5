"""What can be measured on a moving mechanism: poses of frames, and velocities from them alone.

Document 002 writes vectors without axes; here all are in those of the world. Velocities come from
differences of poses, so that no statement about them is checked against itself.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise.dynamics.hinge_frame import inboard_name, outboard_name, with_hinge_frames
from linkwise.model.derived import replaced
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, six
from linkwise_ledger.case import Case
from linkwise_ledger.literal import rate


@dataclass(frozen=True)
class Measured:
    """Frames of a mechanism in motion, by name.

    Attributes:
        pose: In the world.
        velocity: (ω, v) of the frame's origin, in world axes.
    """

    pose: dict[str, Pose]
    velocity: dict[str, Array]

    def phi(self, a: str, b: str) -> Array:
        """φ(a, b) = [[I, l~(a, b)], [0, I]]."""
        return shift(self.pose[b].p - self.pose[a].p)


def shift(lever: Array) -> Array:
    """[[I, l~], [0, I]]."""
    one = np.eye(3)
    return blocks(one, skew(lever), 0.0 * one, one)


def body(case: Case, k: int) -> str:
    """The body frame B(k); the ground for the one inboard of the base."""
    return "world" if k < 0 else case.mech.bodies[k].name


def outside(case: Case, k: int) -> str:
    """The hinge frame O(k), fixed on the body."""
    return outboard_name(case.mech.bodies[k].hinge_name)


def inside(case: Case, k: int) -> str:
    """The hinge frame O⁺(k), fixed on what the body hangs on."""
    return inboard_name(case.mech.bodies[k].hinge_name)


@cache
def measured(case: Case) -> Measured:
    """All frames, while the joints move with the velocity of the case."""
    return moving(case, case.v)


def moving(case: Case, v: Array) -> Measured:
    """All frames, while the joints move with v."""
    mech = with_hinge_frames(case.mech)
    names = ["world", *(b.name for b in mech.bodies), *(n.name for n in mech.nodes)]

    def poses(t: float) -> Array:
        q = mech.integrate(case.q, v, t)
        return np.stack([mech.pose(q, name).matrix for name in names])

    now, change = poses(0.0), rate(poses)
    turning = change[:, :3, :3] @ np.swapaxes(now[:, :3, :3], 1, 2)  # Ṙ R* = ω~
    w = np.stack([turning[:, 2, 1], turning[:, 0, 2], turning[:, 1, 0]], axis=-1)
    V = six(w, change[:, :3, 3])
    pose = {name: Pose(now[i, :3, :3], now[i, :3, 3]) for i, name in enumerate(names)}
    return Measured(pose, {name: V[i] for i, name in enumerate(names)})


@cache
def one_by_one(case: Case) -> tuple[Measured, ...]:
    """All frames, while one joint after the other moves at unit speed, alone."""
    return tuple(moving(case, unit) for unit in np.eye(case.mech.nv))


def turned(pose: Pose, x: Array) -> Array:
    """A spatial vector, or its columns, from the axes of a frame to those of the world."""
    zero = 0.0 * pose.rot
    return blocks(pose.rot, zero, zero, pose.rot) @ x


def hinge_columns(case: Case, k: int) -> Array:
    """H*(k) at O(k), in world axes (6, r_v)."""
    own = case.mech.bodies[k]
    H = own.hinge.hinge_map(case.q[case.mech.q_slice(own.hinge_name)])
    return turned(measured(case).pose[outside(case, k)], H.T)


def speeds(case: Case, k: int) -> Array:
    """β(k), the velocities of the hinge."""
    return case.v[case.mech.v_slice(case.mech.bodies[k].hinge_name)]


def hinge_velocity(case: Case, k: int) -> Array:
    """H*(k) β(k) at O(k), in world axes."""
    return hinge_columns(case, k) @ speeds(case, k)


@cache
def at_hinge(case: Case) -> Case:
    """The same motion with every body frame at its hinge, B(k) = O(k); without inertias."""
    mech = case.mech
    away = {"world": Pose.identity(), **{b.name: b.outboard for b in mech.bodies}}
    bodies = tuple(
        dataclasses.replace(
            b,
            inboard=away[b.parent] @ b.inboard,
            outboard=Pose.identity(),
            inertia=SpatialInertia.zero(),
        )
        for b in mech.bodies
    )
    nodes = tuple(
        dataclasses.replace(n, pose=away[n.body] @ n.pose, inertia=None) for n in mech.nodes
    )
    return Case(case.name, replaced(mech, bodies=bodies, nodes=nodes), case.seed)
