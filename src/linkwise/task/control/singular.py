"""What a controller does near singular configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.task.control.hierarchy import smooth

Remaining: TypeAlias = Literal["goal", "rest", "free"]

FLOOR = 0.25
"""Joint motion towards a goal is that of a direction with at least this part of the threshold."""

AHEAD = 5.0
"""Joints are held to their largest speed below this many times the threshold."""

BRAKE = 3.0
"""How quickly they are slowed down: times the damping k_v of the servo."""

USUAL = np.pi
"""Largest speed of a joint that has no velocity limit [rad/s or m/s]: half a turn in a second."""


@dataclass(frozen=True, slots=True)
class SingularStrategy:
    """A manipulator at a singular configuration is redundant in what is left to the task.

    Directions u of the task whose singular value σ of J is below `threshold` times the largest one
    (or a quarter of the reach, if that is more) are on their way out. All others are controlled as
    always, exactly. Along u the task is given a share of the acceleration that it asks for,

        s = x² (3 - 2 x),   x = σ / (threshold · largest),

    so that the joints never turn faster into that direction than 1.125 / threshold would need; and
    the joint motion v that goes with u, now in the null space of the rest, is controlled by itself:

        v* v̇ = s (u* ẍ - u* γ) / σ + (1 - s) a

    with a after `remaining`. Both are continuous through the singular configuration.

    A hand on its way to the edge of its reach with speed ẋ would come there with joint speeds of
    ẋ / σ, and more as σ shrinks. So joints are slowed down on the way: below `AHEAD` thresholds

        |v* v̇ + k v* v| ≤ k w,     k = 3 k_v,    w = min over joints of speed / |v_j|

    with w larger by 1 / (1 - s') above the threshold, s' from 0 there to 1 at `AHEAD` thresholds:
    nothing jumps. A task that asks for less than that is not touched.

    Source: the strategy that 003 names in its summary (section 8), without formulas there; shares,
    thresholds and what the joints do are our own.

    Attributes:
        threshold: Below this fraction of the largest singular value a direction is on its way out.
        remaining: "goal": a servo of the joint motion to where the task's error along u is least,
            to second order, with the gains of the task; "rest": the joint motion is damped only;
            "free": it is left to lower levels and to the posture. Where an arm has more freedoms
            than the task rows, and on lower levels, it is left to those too, gradually, where a
            direction is all but gone.
        speed: Largest speed of joints along v [rad/s or m/s]; None for the velocity limits of the
            mechanism, and half a turn in a second where a joint has none; inf for no bound.
    """

    threshold: float = 0.02
    remaining: Remaining = "goal"
    speed: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < 1.0:
            raise ModelError(
                f"threshold is {self.threshold!r}; it is a fraction of the largest singular value, "
                "between 0 and 1."
            )
        if self.remaining not in ("goal", "rest", "free"):
            raise ModelError(
                f"remaining is {self.remaining!r}; it must be 'goal', 'rest' or 'free'."
            )
        if self.speed is not None and not self.speed > 0.0:
            raise ModelError(
                f"speed is {self.speed!r}; it must be a number above zero, None for the velocity "
                "limits of the mechanism, or inf for no bound."
            )

    def share(self, relative: Array) -> Array:
        """What a task is given along directions, from σ over the largest."""
        return smooth(relative / self.threshold)

    def fastest(self, relative: Array, joints: Array, limits: Array) -> Array:
        """The largest speed |v_i* v| of joints along directions (..., m); inf where σ is large.

        Args:
            relative: σ over the largest (..., m).
            joints: V* (..., m, nv), of unit length.
            limits: Largest speeds of the freedoms (nv,).
        """
        along = (self._speeds(limits) / np.maximum(np.abs(joints), 1e-300)).min(axis=-1)
        leaving = 1.0 - smooth((relative / self.threshold - 1.0) / (AHEAD - 1.0))
        return np.asarray(np.where(leaving > 0.0, along / np.maximum(leaving, 1e-300), np.inf))

    def slowest(self, limits: Array) -> float:
        """What `fastest` is never below."""
        return float(self._speeds(limits).min())

    def _speeds(self, limits: Array) -> Array:
        """Largest speeds of the freedoms (nv,)."""
        usual = np.where(np.isfinite(limits) & (limits > 0.0), limits, USUAL)
        return usual if self.speed is None else np.full(limits.shape, self.speed)

    def step(self, error: Array, sigma: Array, curvature: Array, largest: Array) -> Array:
        """How far joints should go along v for an error along u.

        Moving by s changes the task by σ s + ½ κ s² along u. The nearest s that makes this the
        error, or comes nearest to it, is the limit of a step that is damped where σ is small:

            |s| ≤ |e| σ / (σ² + ε²),    |s| ≤ 2 |e| / (σ + √(σ² + 2 κ e)),   or σ / |κ| without root

        Args:
            error: e along u (...) [m].
            sigma: σ [m/rad].
            curvature: κ = u* J̇(v) v [m/rad²].
            largest: Largest singular value [m/rad].
        """
        inside = sigma**2 + 2.0 * curvature * error
        size = np.abs(error)
        reachable = 2.0 * size / np.maximum(sigma + np.sqrt(np.maximum(inside, 0.0)), 1e-300)
        nearest = sigma / np.maximum(np.abs(curvature), 1e-300)
        limit = np.where(inside >= 0.0, reachable, nearest)
        return np.sign(error) * np.minimum(size * self.slope(sigma, largest), limit)

    def slope(self, sigma: Array, largest: Array) -> Array:
        """σ / (σ² + ε²): joint motion per motion of the task, at most 1 / (2 ε) [1/m]."""
        floor = FLOOR * self.threshold * largest
        return sigma / (sigma**2 + floor**2)


STANDARD = SingularStrategy()
"""What a controller does unless it is told otherwise."""


def damped_share(damping: float, relative: Array) -> Array:
    """σ² / (σ² + d²) with d a fraction of the largest: what damping leaves of an acceleration."""
    return relative**2 / (relative**2 + damping**2)
