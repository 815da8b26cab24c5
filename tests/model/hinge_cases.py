"""One hinge of every kind, some with odd axes: the registry the hinge tests run over."""

from __future__ import annotations

import numpy as np

from linkwise.model.hinges import (
    CustomHinge,
    Cylindrical,
    Free,
    Geared,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Modal,
    Pin,
    Planar,
    PointOnPlane,
    Prismatic,
    RollingBall,
    Screws,
    SoftFinger,
    Spherical,
    Translation,
    Universal,
)
from linkwise.model.hinges.modified import Reversed
from linkwise.spatial.array import stack
from linkwise.spatial.pose import Pose


def cam(q):
    """A follower lifted by a cam: turns by q about z while rising by 0.1 sin(2q) along z."""
    angle = q[..., 0]
    c, s, zero, one = np.cos(angle), np.sin(angle), 0.0 * angle, 1.0 + 0.0 * angle
    rot = stack([[c, -s, zero], [s, c, zero], [zero, zero, one]])
    return rot, np.stack([zero, zero, 0.1 * np.sin(2.0 * angle)], axis=-1)


def pole(q):
    """A telescope on a pan and tilt head: angles about z and y, then travel along x."""
    pan, tilt, reach = q[..., 0], q[..., 1], q[..., 2]
    cp, sp, ct, st = np.cos(pan), np.sin(pan), np.cos(tilt), np.sin(tilt)
    zero = 0.0 * pan
    rot = stack([[cp * ct, -sp, cp * st], [sp * ct, cp, sp * st], [-st, zero, ct]])
    return rot, rot[..., 0] * (reach + 0.0 * pan)[..., None]


BENT = np.random.default_rng(5).uniform(-0.4, 0.4, (4, 6, 6))
"""Modes of a node and what is of second order in them: numbers without any pattern."""

HINGES: dict[str, Hinge] = {
    "geared": Geared((1.0, 2.0, 0.0), -7.0, Pose.rpy((0.3, -0.2, 0.5), (0.5, 0.1, 0.0))),
    "modal": Modal(
        BENT[0, :, :3],
        Pose.rpy((0.3, -0.2, 0.5), (0.5, 0.1, 0.0)),
        BENT[1, :3, :3, None] * BENT[2, 0, :3],
    ),
    "modal without turns": Modal(BENT[0, :, :3] * np.array([[0, 0, 0, 1, 1, 1]]).T),
    "modal, six": Modal(
        BENT[0], Pose.translation((0.4, 0.0, 0.0)), BENT[1:4].swapaxes(1, 2) @ BENT[1:4]
    ),
    "pin z": Pin(),
    "pin oblique": Pin((1.0, -2.0, 0.5)),
    "prismatic": Prismatic((0.3, 0.0, -1.0)),
    "helical": Helical((0.0, 1.0, 1.0), pitch=0.3),
    "cylindrical": Cylindrical((0.0, 1.0, 0.0)),
    "universal": Universal(),
    "universal oblique": Universal((1.0, 1.0, 0.0), (0.0, 1.0, 2.0)),
    "planar": Planar(),
    "planar tilted": Planar((1.0, 2.0, -1.0)),
    "spherical": Spherical(),
    "gimbal xyz": Gimbal(),
    "gimbal zxz": Gimbal(((0, 0, 1), (1, 0, 0), (0, 0, 1))),
    "translation": Translation(),
    "free": Free(),
    "locked": Locked(),
    "locked pin": Locked(Pin((1.0, 0.0, 0.0)), (0.7,)),
    "soft finger": SoftFinger(),
    "soft finger oblique": SoftFinger((1.0, -2.0, 0.5)),
    "point on plane": PointOnPlane(0.2),
    "point on plane oblique": PointOnPlane(0.1, (1.0, -2.0, 0.5)),
    "rolling ball": RollingBall(radius=0.3),
    "screws": Screws(((0, 0, 1, 0.2, 0, 0.1), (0.6, 0.8, 0, 0, 0, -0.3), (0, 0, 0, 1, 1, 0))),
    "screws scaled": Screws(((0, 0, 2.5, 1, 0, 0), (0, 3, 0, 0, 0.1, 1))),
    "reversed free": Reversed(Free()),
    "reversed rolling ball": Reversed(RollingBall(0.4)),
    "reversed soft finger": SoftFinger((0.0, 1.0, 1.0)).reversed(),
    "reversed point on plane": PointOnPlane().reversed(),
    "reversed universal": Universal().reversed(),
    "reversed pin": Pin((1.0, -2.0, 0.5)).reversed(),
    "custom cam": CustomHinge("cam", (("angle", "rad"),), cam),
    "custom pole": CustomHinge("pole", (("pan", "rad"), ("tilt", "rad"), ("reach", "m")), pole),
}
