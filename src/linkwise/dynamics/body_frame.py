"""Velocities and forces of all bodies at their hinges, or in the axes of the world.

With V(k) and F(k) at the body frame B and in its axes, O the hinge frame on the body, and R, p its
rotation and place in the world:

    "hinge"      φ*(B, O) V,         φ(O, B) F
    "world"      (R ω, R v),         (R n, R f)
    "inertial"   to_W V,             (R n + p × R f, R f)
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from linkwise.dynamics.kernels import named
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.vector import cross

BodyFrame: TypeAlias = Literal["body", "hinge", "world", "inertial"]
"""Where a velocity or force of a body is taken, and in which axes; see `body_velocities`."""

FRAMES = ("body", "hinge", "world", "inertial")


def check_body_frame(frame: object, others: str) -> None:
    """Raise unless it is one of the words; `others` says where more can be had."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise ModelError(
            f"frame is {frame!r}; it must be 'body', 'hinge', 'world' or 'inertial'.{others}"
        )


def turned(rot: Array, six: Array) -> None:
    """Both halves of (..., 6) turned by (..., 3, 3), in place."""
    for half in (six[..., :3], six[..., 3:]):
        half[...] = (rot @ half[..., None])[..., 0]


def velocities_at_hinges(mech: Mechanism, V: Array) -> None:
    """V(O(k)) = φ*(B(k), O(k)) V(k) of all bodies (..., n, 6), in place."""
    V[...] = (_shifts_to_hinges(mech) @ V[..., None])[..., 0]


@once_per_mechanism
def _shifts_to_hinges(mech: Mechanism) -> Array:
    return np.reshape([body.outboard.inverse().shift.T for body in mech.bodies], (-1, 6, 6))


def forces_seen(mech: Mechanism, q: ArrayLike, F: Array, frame: BodyFrame) -> Array:
    """Forces at body frames (..., n, 6) at another place and in other axes, in place."""
    if frame == "hinge":
        shifts = np.reshape([body.outboard.shift for body in mech.bodies], (-1, 6, 6))
        F[...] = (shifts @ F[..., None])[..., 0]
    elif frame != "body":
        codes = np.empty(np.shape(q)[:-1], dtype=np.int32)  # what made F has told of trouble
        rows = named(mech, "body_poses")(q, status=codes)
        poses = rows.reshape(*rows.shape[:-1], mech.n_bodies, 3, 4)
        turned(poses[..., :3], F)
        if frame == "inertial":
            F[..., :3] += cross(poses[..., 3], F[..., 3:])
    return F
