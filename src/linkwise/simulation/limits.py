"""The ends of joint ranges while a mechanism moves: the run ends there, or a spring pushes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from linkwise.dynamics.mass_matrix import mass_matrix_inverse
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.channel import Event
from linkwise.simulation.margin import MarginGroup, State
from linkwise.simulation.work import plain_velocities
from linkwise.spatial.array import Array
from linkwise.tasks.force.positive import not_negative, positive

FREQUENCY = 100.0
"""Angular frequency [rad/s] of a joint alone on the spring at its end, unless told otherwise."""

DAMPING_RATIO = 0.5
"""Its damping as a part of the critical one, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class LimitSpring:
    """Springs and dampers at the ends of joint ranges: f = max(0, k δ + d δ̇) a distance δ beyond.

    Attributes:
        stiffness: k [N m/rad or N/m] of all joints; by default that with which a joint alone, at
            the beginning, swings with 100 rad/s.
        damping: d [N m s/rad or N s/m] of all joints; by default half the critical one.
    """

    stiffness: float | None = None
    damping: float | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.stiffness is not None:
            value = positive("stiffness of a limit", self.stiffness, "N m/rad or N/m")
            put(self, "stiffness", value)
        if self.damping is not None:
            value = not_negative("damping of a limit", self.damping, "N m s/rad or N s/m")
            put(self, "damping", value)


Limits: TypeAlias = Literal["ignore", "stop", "spring", "impulse"] | LimitSpring
"""What becomes of joint limits."""


def check_limits(limits: object, *, implicit: bool = False) -> Limits:
    """What becomes of limits, by default where None is given.

    Raises:
        ModelError: It says nothing about limits, or nothing that such steps do.
    """
    if limits is None:
        return "impulse" if implicit else "ignore"
    if implicit:
        if limits not in ("impulse", "stop"):
            raise ModelError(
                f"limits={limits!r} was given with integrator='implicit', where joint limits act "
                "by impulses; there are 'impulse' and 'stop' at the first that is reached."
            )
        return limits
    if limits == "impulse":
        raise ModelError("limits='impulse' needs steps with impulses: integrator='implicit'.")
    if isinstance(limits, LimitSpring):
        return limits
    if not isinstance(limits, str) or limits not in ("ignore", "stop", "spring"):
        raise ModelError(
            f"limits={limits!r} says nothing about joint limits; there are 'ignore', 'stop' at the "
            "first that is reached, 'spring', and lw.simulation.LimitSpring(stiffness, damping)."
        )
    return limits


class LimitStops(MarginGroup):
    """Limits at which a run ends.

    Attributes:
        lower: Which entries of q have a lower limit.
        upper: Which have an upper one.
    """

    kind = "limit"
    ends = cuts = of_positions = True

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self.mech = mech
        self.lower = np.flatnonzero(np.isfinite(mech.lower))
        self.upper = np.flatnonzero(np.isfinite(mech.upper))
        names = [mech.coordinate_names[i] for i in (*self.lower, *self.upper)]
        # A ball hinge has a cone instead: at most an angle away from neutral.
        self.balls, self.angles = list[int](), list[float]()
        for k, body in enumerate(mech.bodies):
            part = body.hinge.quaternion
            if part is not None and np.isfinite(body.drive.max_angle):
                self.balls.append(int(mech.q_start[k]) + part.start)
                self.angles.append(body.drive.max_angle)
                names.append(body.hinge_name)
        self.names = tuple(names)
        self._check(q)

    def _check(self, q: Array) -> None:
        beyond: list[int] = np.flatnonzero(self._room(q) < 0.0).tolist()
        if beyond:
            name, by = self.names[beyond[0]], float(-self._room(q)[beyond[0]])
            raise ModelError(
                f"{self.mech.name!r} cannot begin with limits='stop': {name!r} is {by:.4g} beyond "
                "its limit. Begin within the limits, or use limits='ignore' or 'spring'."
            )

    def _room(self, q: Array) -> Array:
        """How far [rad or m] each is from its limit."""
        low = q[..., self.lower] - self.mech.lower[self.lower]
        high = self.mech.upper[self.upper] - q[..., self.upper]
        parts = [low, high]
        for i, most in zip(self.balls, self.angles, strict=True):
            across = np.linalg.norm(q[..., i + 1 : i + 4], axis=-1)
            parts.append((most - 2.0 * np.arctan2(across, np.abs(q[..., i])))[..., None])
        return np.concatenate(parts, axis=-1)

    def along(self, q: Array) -> Array:
        """How far each is from its limit, all positions at a time."""
        return self._room(q)

    def margins(self, state: State) -> Array:
        """How far each is from its limit."""
        return self._room(state[1])

    def happened(self, i: int, state: State, margin: float) -> Event:
        """A limit was reached."""
        if i < len(self.lower):
            text, at = "reaches its lower limit", self.mech.lower[self.lower[i]]
        elif i < len(self.lower) + len(self.upper):
            text, at = "reaches its upper limit", self.mech.upper[self.upper[i - len(self.lower)]]
        else:
            text = "reaches its largest turn"
            at = self.angles[i - len(self.lower) - len(self.upper)]
        return Event(state[0], "limit", self.names[i], f"{text} {float(at):.6g}", float(at))


class LimitSprings(MarginGroup):
    """Limits with springs and dampers behind them, for hinges whose v is the rate of q.

    Attributes:
        on: Which of them press now (n,).
        left_out: Names of coordinates with limits that have no spring, since v is not their rate.
    """

    kind = "limit"
    cuts = True

    def __init__(self, mech: Mechanism, q: Array, options: LimitSpring) -> None:
        self.mech = mech
        in_v = np.flatnonzero(plain_velocities(mech))
        in_q = plain_places(mech)
        low, high = np.isfinite(mech.lower[in_q]), np.isfinite(mech.upper[in_q])
        self._q = np.concatenate([in_q[low], in_q[high]])
        self._v = np.concatenate([in_v[low], in_v[high]])
        self._sign = np.concatenate([-np.ones(low.sum()), np.ones(high.sum())])
        self._end = np.concatenate([mech.lower[in_q[low]], mech.upper[in_q[high]]])
        self.names = tuple(mech.coordinate_names[int(i)] for i in self._q.tolist())
        self.on = np.zeros(len(self._q), dtype=np.bool_)
        self._k, self._d = self._constants(q, options)
        has = np.isfinite(mech.lower) | np.isfinite(mech.upper)
        has[in_q] = False
        cones = [x.hinge_name for x in mech.bodies
                 if x.hinge.quaternion is not None and np.isfinite(x.drive.max_angle)]  # fmt: skip
        self.left_out = (*(mech.coordinate_names[i] for i in np.flatnonzero(has)), *cones)

    def _constants(self, q: Array, options: LimitSpring) -> tuple[Array, Array]:
        """k and d of each."""
        count = len(self._q)
        inertia = np.ones(count)
        if count and (options.stiffness is None or options.damping is None):
            inertia = 1.0 / np.diagonal(mass_matrix_inverse(self.mech, q))[self._v]
        k = inertia * FREQUENCY**2
        if options.stiffness is not None:
            k = np.full(count, options.stiffness)
        d = 2.0 * DAMPING_RATIO * np.sqrt(k * inertia)
        if options.damping is not None:
            d = np.full(count, options.damping)
        return k, d

    def begin(self, q: Array, v: Array) -> None:
        """Set which press at a state."""
        self.on = self.pressing(q, v) >= 0.0

    def _beyond(self, q: Array, v: Array) -> tuple[Array, Array]:
        """δ and δ̇."""
        return self._sign * (q[self._q] - self._end), self._sign * v[self._v]

    def pressing(self, q: Array, v: Array) -> Array:
        """δ + (d/k) δ̇ where δ ≥ 0, else δ: negative where nothing pushes."""
        depth, rate = self._beyond(q, v)
        return np.where(depth >= 0.0, depth + self._d / self._k * rate, depth)

    def margins(self, state: State) -> Array:
        """p while it presses, -p while it does not: what has to stay positive."""
        return np.where(self.on, 1.0, -1.0) * self.pressing(state[1], state[2])

    def happened(self, i: int, state: State, margin: float) -> Event:
        """The spring begins to push, or ends to."""
        self.on[i] = not self.on[i]
        words = "reaches" if self.on[i] else "leaves"
        side = "upper" if self._sign[i] > 0.0 else "lower"
        end = float(self._end[i])
        return Event(state[0], "limit", self.names[i], f"{words} its {side} limit {end:.6g}", end)

    def force(self, q: Array, v: Array) -> Array:
        """Joint forces (nv,) of the springs that are on."""
        out = np.zeros(self.mech.nv)
        if self.on.any():
            depth, rate = self._beyond(q, v)
            push = np.maximum(0.0, self._k * depth + self._d * rate)
            np.subtract.at(out, self._v[self.on], (self._sign * push)[self.on])
        return out

    def stored(self, q: Array) -> float:
        """½ k δ² of all [J]."""
        depth, _ = self._beyond(q, np.zeros(self.mech.nv))
        return float(0.5 * (self._k * np.maximum(0.0, depth) ** 2).sum())


def plain_places(mech: Mechanism) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Which entry of q each plain velocity is the rate of."""
    entries, plain = list[int](), plain_velocities(mech)
    for k, body in enumerate(mech.bodies):
        if body.hinge.nv and plain[int(mech.v_start[k])]:
            entries += range(int(mech.q_start[k]), int(mech.q_start[k + 1]))
    return np.array(entries, dtype=np.intp)
