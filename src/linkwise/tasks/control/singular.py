"""The strategy of a controller near singular configurations."""

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
"""Joint motion towards a goal uses at least this fraction of the threshold as singular value."""

AHEAD = 5.0
"""Joint speeds are limited below this multiple of the threshold."""

BRAKE = 3.0
"""How fast joints are slowed down, as a multiple of the damping k_v of the servo."""

TINY = 1e-30
"""Keeps divisions finite."""

USUAL = np.pi
"""Largest speed of a joint without a velocity limit [rad/s or m/s]: half a turn per second."""


@dataclass(frozen=True, slots=True)
class SingularStrategy:
    """At a singular configuration a manipulator is redundant for the remaining task.

    Directions u of the task whose singular value σ of J is below `threshold` times the largest one
    (or a quarter of the reach, if that is more) fade out. All others are controlled exactly. Along
    u the task gets a share of the requested acceleration,

        s = x² (3 - 2 x),   x = σ / (threshold · largest),

    so that joint accelerations in that direction stay below 1.125 / threshold times the request.
    The corresponding joint motion v, now in the null space of the rest, is controlled separately:

        v* v̇ = s (u* ẍ - u* γ) / σ + (1 - s) a

    with a according to `remaining`. Both are continuous through the singular configuration.

    A hand that approaches the edge of its reach with speed ẋ needs joint speeds of ẋ / σ, which
    grow as σ shrinks. Joints are therefore slowed down in advance: below `AHEAD` thresholds

        |v* v̇ + k v* v| ≤ k w,     k = 3 k_v,    w = min over joints of speed / |v_j|

    with w larger by 1 / (1 - s') above the threshold, s' from 0 there to 1 at `AHEAD` thresholds:
    nothing jumps. Slower requests are not affected.

    Source: 003 names the strategy in its summary (section 8), without formulas; shares, thresholds
    and the joint motion are ours.

    Attributes:
        threshold: Directions below this fraction of the largest singular value fade out.
        remaining: "goal": a servo moves the joints to where the task's error along u is least, to
            second order, with the gains of the task; "rest": the joint motion is only damped;
            "free": it is left to lower levels and to the posture. With more joints than task rows,
            and on lower levels, nearly lost directions are gradually left to those too.
        speed: Largest speed of joints along v [rad/s or m/s]; None for the velocity limits of the
            mechanism, and half a turn per second for joints without; inf for no bound.
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
        """Largest speeds of the joints (nv,) with these limits; None for no bound."""
        if self.speed == np.inf:
            return None
        usual = np.where(np.isfinite(limits) & (limits > 0.0), limits, USUAL)
        return usual if self.speed is None else np.full(limits.shape, float(self.speed))


STANDARD = SingularStrategy()
"""The default strategy of a controller."""


# ------------------------------------------------------------------- array code, for one state


def share(relative: Any, threshold: Any) -> Any:
    """The share of a task along directions, from σ over the largest."""
    return smooth(relative / threshold)


def damped_share(relative: Any, damping: Any) -> Any:
    """σ² / (σ² + d²) with d a fraction of the largest: the share that damping leaves."""
    return relative * relative / (relative * relative + damping * damping)


def fastest(relative: Any, joints: Any, speeds: Any, threshold: Any) -> tuple[Any, Any]:
    """The largest speed |v_i* v| of joints along directions (m,), where the other (m,) is positive.

    Args:
        relative: σ over the largest (m,).
        joints: V* (m, nv), of unit length.
        speeds: Largest speeds of the joints (nv,).
        threshold: That of the strategy.
    """
    leaving = 1.0 - smooth((relative / threshold - 1.0) / (AHEAD - 1.0))
    slowness = [reduce(maximum, absolute(row) / speeds) for row in joints]
    over = leaving * np.array(slowness, dtype=object)
    return 1.0 / where(over, over, 1.0), leaving


def step(error: Any, sigma: Any, curvature: Any, largest: Any, threshold: Any) -> Any:
    """The step of joints along v for an error along u.

    Moving by s changes the task by σ s + ½ κ s² along u. The nearest s that makes this the error,
    or comes closest to it, limits a step that is damped where σ is small:

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
