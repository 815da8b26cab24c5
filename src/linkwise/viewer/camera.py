"""A camera position from which a mechanism fills the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.hinges import Free
from linkwise.spatial.array import Array
from linkwise.viewer.motion import Motion
from linkwise.viewer.scene import Scene

FIELD = np.deg2rad(38.0)
"""Vertical angle of view [rad]."""

WIDE = 1.1
"""Width of the picture over its height, at least."""

MARGIN = 1.2
"""Space around the mechanism."""

ROOM = 0.2
"""Space for other configurations on each side, at most, over the reach of the mechanism."""

POSTURES = 16
"""Configurations that are tried for it."""

FREE = 0.4
"""Share of a narrow page that its panel leaves free."""


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
        """Of what is seen (3,) [m]."""
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

    def seen(self, wide: float = WIDE, free: float = 1.0) -> tuple[Array, Array]:
        """Where the camera is and where it looks at, (3,) each [m].

        It is as near as all corners of the box are in the picture.

        Args:
            free: Part of the height, from the top, that nothing covers.
        """
        back = self.direction
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
        up = np.cross(back, right)
        pick = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, -1).T
        corners = np.where(pick == 0, self.low, self.high) - self.middle
        tall = np.tan(0.5 * FIELD)
        needed = np.maximum(
            np.abs(corners @ up) / (free * tall), np.abs(corners @ right) / (wide * tall)
        )
        far = MARGIN * float((needed + corners @ back).max()) + 1e-6 * self.radius
        target = self.middle - (1.0 - free) * tall * far * up
        return target + far * back, target


def framed(
    scene: Scene,
    q: Array,
    motion: Motion | None = None,
    layers: Sequence[str] = (),
    *,
    tight: bool = False,
) -> Frame:
    """The picture for a configuration, or for a whole motion unless it goes far away.

    Around a configuration there is room for others that the sliders may lead to. The floor is at
    z = 0, or as low as the lowest point. What reaches out of the bodies gets room; with `tight`
    nothing else does.
    """
    low, high = scene.bounds(q)
    ground = min(0.0, float(low[2]))
    if motion is not None:
        pick = motion.q[:: max(1, len(motion.q) // 24)]
        boxes = [scene.bounds(row) for row in pick]
        lows, highs = np.array([b[0] for b in boxes]), np.array([b[1] for b in boxes])
        wide_low, wide_high = lows.min(axis=0), highs.max(axis=0)
        if np.linalg.norm(wide_high - wide_low) < 3.0 * np.linalg.norm(high - low):
            low, high = wide_low, wide_high
            ground = min(0.0, float(low[2]))
    elif not tight:
        low, high = _room(scene, q, low, high)
    room = 0.12 * scene.size if {"belted", "forces"} & {*layers} else 0.0
    return Frame(low - room, high + room, ground)


def _room(scene: Scene, q: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """A box about a configuration with room for others, as far as it stays large in the picture."""
    mech, most = scene.mech, ROOM * scene.size
    if mech.loops:  # others are not found by chance
        return low - 0.5 * most, high + 0.5 * most
    rng, start_low, start_high = np.random.default_rng(0), low, high
    for _ in range(POSTURES):
        other = mech.random(rng)
        for k, body in enumerate(mech.bodies):
            if isinstance(body.hinge, Free):  # it stays, and turns with what it carries
                part = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
                other[part] = q[part]
        least, largest = scene.bounds(other)
        low = np.minimum(low, np.maximum(least, start_low - most))
        high = np.maximum(high, np.minimum(largest, start_high + most))
    return low, high


def aim_narrow(frame: Frame, client: Any) -> None:
    """Set the first view of a page that is taller than wide: the panel covers its lower part."""
    camera = client.camera
    wide = float(camera.image_width) / max(float(camera.image_height), 1.0)
    if wide < 1.0:
        camera.position, camera.look_at = frame.seen(wide, FREE)


def aim(server: Any, frame: Frame) -> None:
    """Set the first view of a page."""
    camera = server.initial_camera
    camera.up = np.array([0.0, 0.0, 1.0])
    camera.fov = float(FIELD)
    camera.near = float(0.01 * frame.radius)
    camera.far = float(200.0 * frame.radius)
    camera.position, camera.look_at = frame.seen()
