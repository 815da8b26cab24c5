"""What a controller does near singular configurations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np

from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.spatial.choice import absolute, maximum, minimum, root, where
from linkwise.tasks.control.hierarchy import smooth

Remaining: TypeAlias = Literal["goal", "rest", "free"]

FLOOR = 0.25
"""Joint motion towards a goal is that of a direction with at least this part of the threshold."""

AHEAD = 5.0
"""Joints are held to their largest speed below this many times the threshold."""

BRAKE = 3.0
"""How quickly they are slowed down: times the damping k_v of the servo."""

TINY = 1e-30
"""What keeps a division finite."""

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

    def speeds(self, limits: Array) -> Array | None:
        """Largest speeds of the freedoms (nv,) with these limits; None for no bound."""
        if self.speed == np.inf:
            return None
        usual = np.where(np.isfinite(limits) & (limits > 0.0), limits, USUAL)
        return usual if self.speed is None else np.full(limits.shape, float(self.speed))


STANDARD = SingularStrategy()
"""What a controller does unless it is told otherwise."""


# ------------------------------------------------------------------- array code, for one state


def share(relative: Any, threshold: Any) -> Any:
    """What a task is given along directions, from σ over the largest."""
    return smooth(relative / threshold)


def damped_share(relative: Any, damping: Any) -> Any:
    """σ² / (σ² + d²) with d a fraction of the largest: what damping leaves of an acceleration."""
    return relative * relative / (relative * relative + damping * damping)


def fastest(relative: Any, joints: Any, speeds: Any, threshold: Any) -> tuple[Any, Any]:
    """The largest speed |v_i* v| of joints along directions (m,), where the other (m,) is positive.

    Args:
        relative: σ over the largest (m,).
        joints: V* (m, nv), of unit length.
        speeds: Largest speeds of the freedoms (nv,).
        threshold: That of the strategy.
    """
    leaving = 1.0 - smooth((relative / threshold - 1.0) / (AHEAD - 1.0))
    slowness = [reduce(maximum, absolute(row) / speeds) for row in joints]
    over = leaving * np.array(slowness, dtype=object)
    return 1.0 / where(over, over, 1.0), leaving


def step(error: Any, sigma: Any, curvature: Any, largest: Any, threshold: Any) -> Any:
    """How far joints should go along v for an error along u.

    Moving by s changes the task by σ s + ½ κ s² along u. The nearest s that makes this the
    error, or comes nearest to it, is the limit of a step that is damped where σ is small:

        |s| ≤ |e| σ / (σ² + ε²),    |s| ≤ 2 |e| / (σ + √(σ² + 2 κ e)),   or σ / |κ| without root

    Args:
        error: e along u [m].
        sigma: σ [m/rad].
        curvature: κ = u* J̇(v) v [m/rad²].
        largest: Largest singular value [m/rad].
        threshold: That of the strategy.
    """
    inside = sigma * sigma + 2.0 * curvature * error
    size, floor = absolute(error), FLOOR * threshold * largest
    reachable = 2.0 * size / maximum(sigma + root(maximum(inside, 0.0)), TINY)
    nearest = sigma / maximum(absolute(curvature), TINY)
    limit = where(-inside, nearest, reachable)
    length = minimum(size * sigma / (sigma * sigma + floor * floor), limit)
    return where(error, length, -length)
