"""Joints with Coulomb friction or limits: along which velocities, and how far from their ends.

A spherical hinge that may turn away from neutral by θ_max [rad] has one row for it, along the
axis n of its turn θ n, since θ̇ = n · ω. Formulas run on graph nodes and on numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model.hinges import Spherical
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.choice import norm, where

BALL = Spherical()

STILL = 1e-8
"""Turns [rad] below which the axis of a turn is x."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A velocity with friction or limits.

    Attributes:
        v: Its place in v; of a ball, that of the first of three.
        q: The place of its coordinate in q; of a ball, that of its quaternion.
        friction: Coulomb friction [N or N m]; infinite where it is given for each motion.
        lower: Its limits [rad or m]; infinite for none.
        upper: Likewise; of a ball, the largest turn away from neutral.
        ball: Whether it is about the turn of a spherical hinge.
    """

    v: int
    q: int
    friction: float
    lower: float
    upper: float
    ball: bool = False

    def value(self, q: Any) -> Any:
        """What has limits: its coordinate, or its turn, of q (nq,)."""
        return norm(self._turn(q)) if self.ball else q[self.q]

    def direction(self, q: Any, nv: int) -> Any:
        """The velocities (nv,) along which it acts."""
        out = np.zeros(nv, dtype=object)
        if not self.ball:
            out[self.v] = 1.0
            return out
        turn = self._turn(q)
        size = turn @ turn - STILL**2
        turn = [where(size, x, y) for x, y in zip(turn, (STILL, 0.0, 0.0), strict=True)]
        length = norm(turn)
        out[self.v : self.v + 3] = [x / length for x in turn]
        return out

    def speed(self, direction: Any, v: Any) -> Any:
        """The speed along a direction of velocities v (nv,)."""
        if not self.ball:
            return v[self.v]
        at = slice(self.v, self.v + 3)
        return sum(x * y for x, y in zip(direction[at], v[at], strict=True))

    def _turn(self, q: Any) -> Any:
        return BALL.difference(BALL.neutral()[None], q[None, self.q : self.q + 4])[0]


def values(joints: tuple[Joint, ...], q: Array) -> Array:
    """What has limits (n, j), of q (n, nq)."""
    out = q[:, [x.q for x in joints]]
    for k, joint in enumerate(joints):
        if joint.ball:
            out[:, k] = [joint.value(x) for x in q]
    return out


def directions(joints: tuple[Joint, ...], q: Array, nv: int) -> Array:
    """Velocities along which they act (n, j, nv), of q (n, nq)."""
    out = np.zeros((len(q), len(joints), nv))
    out[:, np.arange(len(joints)), [x.v for x in joints]] = 1.0
    for k, joint in enumerate(joints):
        if joint.ball:
            out[:, k] = [joint.direction(x, nv).astype(np.float64) for x in q]
    return out


def on_velocities(joints: tuple[Joint, ...], force: Array, q: Array, nv: int) -> Array:
    """Joint forces (n, nv) of forces at joints (n, j), of q (n, nq)."""
    out = np.zeros((len(force), nv))
    for k in np.flatnonzero(force.any(axis=0)):
        joint = joints[int(k)]
        if joint.ball:
            out += force[:, k, None] * directions((joint,), q, nv)[:, 0]
        else:
            out[:, joint.v] += force[:, k]
    return out


def joints_with_rows(
    mech: Mechanism, *, friction: bool = True, given: bool = False
) -> tuple[Joint, ...]:
    """The joints that have friction or limits.

    Args:
        mech: The mechanism.
        friction: Whether friction acts.
        given: Whether it is given for each motion: then all joints may have it.
    """
    return _joints(mech, friction, given)


@once_per_mechanism
def _joints(mech: Mechanism, friction: bool, given: bool) -> tuple[Joint, ...]:
    joints = list[Joint]()
    for k, body in enumerate(mech.bodies):
        hinge, drive, plain = body.hinge, body.drive, is_plain(body.hinge)
        dry, low, high = (drive.array(x, hinge) for x in ("friction", "lower", "upper"))
        at_v, at_q = int(mech.v_start[k]), int(mech.q_start[k])
        for i in range(hinge.nv):
            rub = np.inf if given else float(dry[i]) if friction else 0.0
            ends = (float(low[i]), float(high[i])) if plain else (-np.inf, np.inf)
            if rub > 0.0 or np.isfinite(ends).any():
                joints.append(Joint(at_v + i, at_q + i, rub, *ends))
        if type(hinge) is Spherical and drive.max_angle < np.pi:
            joints.append(Joint(at_v, at_q, 0.0, -np.inf, float(drive.max_angle), ball=True))
    return tuple(joints)
