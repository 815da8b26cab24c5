"""Velocities and forces of all bodies at their hinges, or in the axes of the world.

With V(k) and F(k) at the body frame B and in its axes, O the hinge frame on the body, and R, p its
rotation and place in the world:

    "hinge"      φ*(B, O) V,         φ(O, B) F
    "world"      (R ω, R v),         (R n, R f)
    "inertial"   to_W V,             (R n + p × R f, R f)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.dynamics.quantity import Frame, expression
from linkwise.errors import ModelError
from linkwise.spatial.rotation import skew

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

BodyFrame: TypeAlias = Literal["body", "hinge", "world", "inertial"]
"""Where a velocity or force of a body is taken, and in which axes; see `body_velocities`."""

FRAMES = ("body", "hinge", "world", "inertial")


def check_body_frame(frame: object, others: str) -> None:
    """Raise unless it is one of the words; `others` says where more can be had."""
    if not isinstance(frame, str) or frame not in FRAMES:
        raise ModelError(
            f"frame is {frame!r}; it must be 'body', 'hinge', 'world' or 'inertial'.{others}"
        )


def velocities_seen(at: Writing, name: str, frame: BodyFrame) -> Any:
    """A quantity V of all bodies (n, 6) at another place or in other axes, as a formula."""
    V = at.value(expression(name)).reshape(-1, 6, 1)
    if frame == "hinge":
        shifts = [body.outboard.inverse().shift.T for body in at.mech.bodies]
        return (np.reshape(shifts, (-1, 6, 6)) @ V)[..., 0]
    rot = at.value(expression("body_poses")).reshape(-1, 3, 4)[..., :3]
    return np.concatenate([rot @ V[:, :3], rot @ V[:, 3:]], axis=1)[..., 0]


def forces_seen(at: Writing, name: str, forces_frame: Frame, frame: BodyFrame) -> Any:
    """A quantity F of all bodies (n, 6), with forces at nodes, likewise."""
    F = at.value(expression(name, frame=forces_frame)).reshape(-1, 6, 1)
    if frame == "hinge":
        shifts = np.reshape([body.outboard.shift for body in at.mech.bodies], (-1, 6, 6))
        return (shifts @ F)[..., 0]
    poses = at.value(expression("body_poses")).reshape(-1, 3, 4)
    rot, p = poses[..., :3], poses[..., 3]
    moment, force = rot @ F[:, :3], rot @ F[:, 3:]
    if frame == "inertial":
        moment = moment + skew(p) @ force
    return np.concatenate([moment, force], axis=1)[..., 0]
