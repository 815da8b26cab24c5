"""Joints: their limits, and coordinates that follow others (gears and mimic joints).

A coupling q_d = offset + Σ c q_i + ... asks of a step that G δ = 0, with G = (1, −slopes). Of all
steps that obey, the best one is the free one less what breaks the rule,

    δ − A⁻¹ G* (G A⁻¹ G*)⁻¹ G δ,      A = J* W J + N,

in which A⁻¹ G* is made by the same recursion, once for each coupling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.configuration import integrate
from linkwise.errors import ModelError
from linkwise.model.body import Coupling
from linkwise.model.hinges import Hinge
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array

SLACK = 1e-9
"""A coordinate may start outside of its limits by this much [rad or m]; it is put back silently."""


INNER = 0.7
"""Part of each range, in its middle, where searches begin: limits are reached later from there."""


@dataclass(frozen=True, slots=True, eq=False)
class Joints:
    """Coordinates and velocities of a mechanism, and their limits.

    Attributes:
        mech: The mechanism.
        lower: Lower limits (nq,).
        upper: Upper limits (nq,).
        plain_q: Coordinates whose rate is a velocity: q_i' = v_j.
        plain_v: Those velocities.
        others: The other hinges, with their places in q and in v.
        cones: Quaternions with a largest turn: their place in q, the turn [rad], body index.
        fixed: Velocities that are zero (nv,).
        per_turn: The unit of a velocity (nv,): 1 for a turn, 1/length for a shift.
        scale: Its square, the metric of the velocities.
        turning: 1 for a turn, 0 for a shift (nv,).
    """

    mech: Mechanism
    lower: Array
    upper: Array
    plain_q: NDArray[np.int64]
    plain_v: NDArray[np.int64]
    others: tuple[tuple[Hinge, slice, slice], ...]
    cones: tuple[tuple[slice, float, int], ...]
    fixed: NDArray[np.bool_]
    per_turn: Array
    scale: Array
    turning: Array

    def moved(self, q: Array, step: Array) -> Array:
        """q (s, nq) after a step (s, nv), put back within limits."""
        return self.within(integrate(self.mech, q, step))

    def within(self, q: Array) -> Array:
        """The nearest coordinates within limits; q (s, nq) itself is changed."""
        np.minimum(np.maximum(q, self.lower, out=q), self.upper, out=q)
        for part, largest, _ in self.cones:
            turn = quaternion.log(q[:, part])
            angle = np.linalg.norm(turn, axis=-1, keepdims=True)
            if (angle > largest).any():
                shrunk = quaternion.exp(turn * (largest / np.maximum(angle, largest)))
                q[:, part] = np.where(angle > largest, shrunk, q[:, part])
        return q

    def held(self, q: Array, pull: Array) -> NDArray[np.bool_]:
        """Velocities (s, nv) that cannot follow the pull: fixed ones, and those at a limit."""
        held = np.empty(pull.shape, dtype=bool)
        held[:] = self.fixed
        below, above = q <= self.lower, q >= self.upper
        if below.any() or above.any():
            force = pull[:, self.plain_v]
            against = below[:, self.plain_q] & (force < 0.0)
            against |= above[:, self.plain_q] & (force > 0.0)
            held[:, self.plain_v] |= against
        return held

    def at_limit(self, q: Array) -> NDArray[np.bool_]:
        """Coordinates (s, nq) at a limit; all of a quaternion at its largest turn."""
        hit = (q <= self.lower) | (q >= self.upper)
        for part, largest, _ in self.cones:
            turn = np.linalg.norm(quaternion.log(q[:, part]), axis=-1)
            hit[:, part] |= (turn >= largest * (1.0 - 1e-9))[:, None]
        return hit

    def names(self, at: NDArray[np.bool_]) -> tuple[str, ...]:
        """Names of the hinges of some coordinates (nq,)."""
        starts, bodies = self.mech.q_start, self.mech.bodies
        hit = [k for k in range(len(bodies)) if at[starts[k] : starts[k + 1]].any()]
        return tuple(bodies[k].hinge_name for k in hit)

    def check(self, q: Array) -> None:
        """Raises for coordinates outside of their limits, with their names."""
        far = np.maximum(self.lower - q, q - self.upper).max(axis=0, initial=-np.inf)
        if (far > SLACK).any():
            i = int(np.argmax(far))
            raise ModelError(
                f"q0 is outside of the limits of {self.mech.coordinate_names[i]!r} by "
                f"{far[i]:.4g}: they are {self.lower[i]:.6g} to {self.upper[i]:.6g}. Start within "
                "them, or pass limits=False."
            )
        for part, largest, k in self.cones:
            turn = float(np.linalg.norm(quaternion.log(q[:, part]), axis=-1).max(initial=0.0))
            if turn > largest + SLACK:
                raise ModelError(
                    f"q0 is outside of the limits of {self.mech.bodies[k].hinge_name!r}: it is "
                    f"turned by {turn:.6g} rad, and {largest:.6g} is allowed."
                )

    def random(self, near: Array, rng: np.random.Generator) -> Array:
        """Random coordinates within limits, one for each row of `near` (s, nq).

        Fixed joints keep their coordinates, and shifts without limits stay within a metre.
        """
        mech = self.mech
        units = [c.unit for body in mech.bodies for c in body.hinge.coordinates]
        around = np.where([unit == "m" for unit in units], near, 0.0)
        half = np.where([unit == "m" for unit in units], 1.0, np.pi)
        low = np.where(np.isfinite(self.lower), self.lower, np.minimum(around, self.upper) - half)
        high = np.where(np.isfinite(self.upper), self.upper, np.maximum(around, self.lower) + half)
        q = low + (high - low) * (0.5 + INNER * (rng.random(near.shape) - 0.5))
        for k, body in enumerate(mech.bodies):
            start, stop = (int(i) for i in mech.q_start[k : k + 2])
            part = body.hinge.quaternion
            if self.fixed[mech.v_start[k] : mech.v_start[k + 1]].any():
                q[:, start:stop] = near[:, start:stop]
            elif part is not None:
                turn = quaternion.random(rng, (len(q),))
                if body.drive.max_angle < np.pi and self.cones:
                    shrunk = quaternion.log(turn) * (body.drive.max_angle / np.pi)
                    turn = quaternion.exp(shrunk)
                q[:, start + part.start : start + part.stop] = turn
        return self.within(q)

    def start(self) -> Array:
        """Where to begin (nq,): neutral, or the middle of the range where neutral is outside."""
        q = self.mech.neutral()
        outside = (q < self.lower) | (q > self.upper)
        with np.errstate(invalid="ignore"):  # no limits: inf - inf
            middle = 0.5 * (self.lower + self.upper)
        middle = np.where(np.isfinite(middle), middle, q)
        return self.within(np.where(outside, middle, q)[None])[0]


def joints(mech: Mechanism, hold: Iterable[str], *, limits: bool, length: float) -> Joints:
    """The joints of a mechanism with their limits.

    Args:
        mech: The mechanism.
        hold: Hinges (or their bodies) that do not move.
        limits: Whether the limits of the hinges apply.
        length: The unit of a shift [m].
    """
    plain_q, plain_v = list[int](), list[int]()
    others, cones = list[tuple[Hinge, slice, slice]](), list[tuple[slice, float, int]]()
    turning = np.ones(mech.nv)
    for k, body in enumerate(mech.bodies):
        q0, q1 = (int(i) for i in mech.q_start[k : k + 2])
        v0, v1 = (int(i) for i in mech.v_start[k : k + 2])
        if v0 == v1:
            continue
        if is_plain(body.hinge):
            plain_q.extend(range(q0, q1))
            plain_v.extend(range(v0, v1))
        else:
            others.append((body.hinge, slice(q0, q1), slice(v0, v1)))
        part = body.hinge.quaternion
        if limits and part is not None and body.drive.max_angle < np.pi:
            cones.append((slice(q0 + part.start, q0 + part.stop), body.drive.max_angle, k))
        H = body.hinge.hinge_map(body.hinge.neutral())
        turning[v0:v1] = np.linalg.norm(H[:, :3], axis=-1) > 1e-9
    per_turn = np.where(turning > 0.0, 1.0, 1.0 / length)
    fixed = np.zeros(mech.nv, dtype=bool)
    for name in [hold] if isinstance(hold, str) else hold:
        fixed[mech.v_slice(name)] = True
    far = np.full(mech.nq, np.inf)
    return Joints(
        mech,
        mech.lower if limits else -far,
        mech.upper if limits else far,
        np.array(plain_q, dtype=np.int64),
        np.array(plain_v, dtype=np.int64),
        tuple(others),
        tuple(cones),
        fixed,
        per_turn,
        per_turn**2,
        turning,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Couplings:
    """The couplings of a mechanism, ordered so that each depends on earlier ones.

    Attributes:
        mech: The mechanism.
        rows: The couplings.
        velocity: The place in v of each coordinate that takes part, by its name.
        lower: Lower limits of the coordinates that follow (nq,), -inf for all others.
        upper: Upper limits of the coordinates that follow (nq,), inf for all others.
    """

    mech: Mechanism
    rows: tuple[Coupling, ...]
    velocity: dict[str, int]
    lower: Array
    upper: Array

    def followed(self, q: Array) -> Array:
        """q (s, nq) with the followers set, and rounding beyond a limit removed."""
        if not self.rows:
            return q
        q = self.mech.couple(q)
        near = np.clip(q, self.lower, self.upper)
        return np.where(np.abs(near - q) < 1e-9, near, q)

    def outside(self, q: Array) -> NDArray[np.bool_]:
        """Samples (s,) with a follower beyond its limits."""
        if not self.rows:
            return np.zeros(len(q), dtype=bool)
        return np.any(self.beyond(q), axis=1)

    def beyond(self, q: Array) -> NDArray[np.bool_]:
        """Followers (..., nq) that are beyond their limits."""
        return (q < self.lower) | (q > self.upper)

    def held_with(self, fixed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Velocities (nv,) that are zero if some are: through followers in both directions."""
        held = fixed.copy()
        for coupling in reversed(self.rows):
            if held[self.velocity[coupling.dependent]]:
                held[[self.velocity[name] for name, _ in coupling.terms]] = True
        for coupling in self.rows:
            if all(held[self.velocity[name]] for name, _ in coupling.terms):
                held[self.velocity[coupling.dependent]] = True
        return held


def couplings(mech: Mechanism, moved: Iterable[int], *, limits: bool) -> Couplings:
    """The couplings that take part.

    Args:
        mech: The mechanism.
        moved: Bodies whose hinges move the nodes; couplings without any of them are left out.
        limits: Whether limits apply.
    """
    coordinates = {i for k in moved for i in range(*mech.q_start[k : k + 2].tolist())}
    rows = list[Coupling]()
    waiting = list(mech.couplings_in_order)
    while taken := [c for c in waiting if coordinates & _coordinates(mech, c)]:
        rows += taken
        waiting = [c for c in waiting if c not in taken]
        coordinates = coordinates.union(*(_coordinates(mech, c) for c in taken))
    velocity = dict[str, int]()
    lower, upper = np.full(mech.nq, -np.inf), np.full(mech.nq, np.inf)
    for coupling in rows:
        for name in (coupling.dependent, *(name for name, _ in coupling.terms)):
            i = mech.coordinate(name)
            k = int(np.searchsorted(mech.q_start, i, side="right")) - 1
            if not is_plain(mech.bodies[k].hinge):
                raise ModelError(
                    f"coupling {coupling.name!r} takes part of a {mech.bodies[k].hinge.kind} hinge "
                    f"({name!r}), whose velocities are not the rates of its coordinates; inverse "
                    f"kinematics does not support it. Remove it: mech.without({coupling.name!r})."
                )
            velocity[name] = int(mech.v_start[k]) + i - int(mech.q_start[k])
        i = mech.coordinate(coupling.dependent)
        if limits:
            lower[i], upper[i] = mech.lower[i], mech.upper[i]
    order = {c.name: i for i, c in enumerate(mech.couplings_in_order)}
    return Couplings(mech, tuple(sorted(rows, key=lambda c: order[c.name])), velocity, lower, upper)


def _coordinates(mech: Mechanism, coupling: Coupling) -> set[int]:
    names = (coupling.dependent, *(name for name, _ in coupling.terms))
    return {mech.coordinate(name) for name in names}


def tightened(couplings: Couplings, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Limits (nq,) in which those of a follower are limits of the one coordinate it follows.

    Only where it follows one coordinate linearly; otherwise steps that exceed them are refused.
    """
    mech, lower, upper = couplings.mech, lower.copy(), upper.copy()
    for coupling in reversed(couplings.rows):
        d = mech.coordinate(coupling.dependent)
        if len(coupling.terms) == 1 and len(coupling.terms[0][1]) == 1:
            name, (c,) = coupling.terms[0]
            i = mech.coordinate(name)
            if c != 0.0:
                ends = sorted(((lower[d] - coupling.offset) / c, (upper[d] - coupling.offset) / c))
                lower[i], upper[i] = max(lower[i], ends[0]), min(upper[i], ends[1])
        lower[d], upper[d] = -np.inf, np.inf
    return lower, upper
