"""Where to look from, so that a mechanism fills the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.spatial.array import Array
from linkwise.viewer.motion import Motion
from linkwise.viewer.scene import Scene

FIELD = np.deg2rad(38.0)
"""Vertical angle of view [rad]."""

WIDE = 1.1
"""Width of the picture over its height, at least."""

MARGIN = 1.2
"""Space around the mechanism."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What is in the picture.

    Attributes:
        low: Least coordinates of what is seen (3,) [m].
        high: Largest coordinates (3,) [m].
        ground: Height of the floor [m].
    """

    low: Array
    high: Array
    ground: float

    @property
    def middle(self) -> Array:
        """Where the camera looks at (3,) [m]."""
        return 0.5 * (self.low + self.high)

    @property
    def radius(self) -> float:
        """Of the ball about the middle that has all in it [m]."""
        return max(0.5 * float(np.linalg.norm(self.high - self.low)), 1e-6)

    @property
    def direction(self) -> Array:
        """From the middle to the camera (3,): across flat mechanisms, aslant to others."""
        span = self.high - self.low
        flat = float(min(span[0], span[1])) < 0.3 * float(max(span.max(), 1e-9))
        if flat and span[1] <= span[0]:
            aim = np.array([0.45, -1.0, 0.35])
        elif flat:
            aim = np.array([1.0, -0.45, 0.35])
        else:
            aim = np.array([0.85, -1.0, 0.5])
        return aim / np.linalg.norm(aim)

    @property
    def eye(self) -> Array:
        """Where the camera is (3,) [m]: as near as all corners of the box are in the picture."""
        back = self.direction
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        up = np.cross(back, right)
        pick = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
        corners = np.where(pick == 0, self.low, self.high) - self.middle
        tall = np.tan(0.5 * FIELD)
        needed = np.maximum(np.abs(corners @ up) / tall, np.abs(corners @ right) / (WIDE * tall))
        return self.middle + (MARGIN * float((needed + corners @ back).max()) + 1e-6) * back


def framed(
    scene: Scene, q: Array, motion: Motion | None = None, layers: Sequence[str] = ()
) -> Frame:
    """The picture for a configuration, or for a whole motion unless it goes far away.

    The floor is at z = 0, or as low as the lowest point. What reaches out of the bodies gets room.
    """
    low, high = scene.bounds(q)
    if motion is not None:
        pick = motion.q[:: max(1, len(motion.q) // 24)]
        boxes = [scene.bounds(row) for row in pick]
        lows, highs = np.array([b[0] for b in boxes]), np.array([b[1] for b in boxes])
        wide_low, wide_high = lows.min(axis=0), highs.max(axis=0)
        if np.linalg.norm(wide_high - wide_low) < 3.0 * np.linalg.norm(high - low):
            low, high = wide_low, wide_high
    ground = min(0.0, float(low[2]))
    room = 0.12 * scene.size if {"belted", "forces"} & {*layers} else 0.0
    return Frame(low - room, high + room, ground)


def aim(server: Any, frame: Frame) -> None:
    """Set the first view of a page."""
    camera = server.initial_camera
    camera.up = np.array([0.0, 0.0, 1.0])
    camera.fov = float(FIELD)
    camera.near = float(0.01 * frame.radius)
    camera.far = float(200.0 * frame.radius)
    camera.position = frame.eye
    camera.look_at = frame.middle
