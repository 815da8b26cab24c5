"""What every hinge answers.

A hinge joins frame O+ on the inboard (parent) body to frame O on the outboard body. It has `nq`
coordinates q and `nv` velocities v; for hinges with a quaternion nq > nv. With X the pose of O
seen from O+, and everything in O's axes:

    relative velocity   V = H*(q) v
    its rate            dV/dt = H* v̇ + Ḣ* v,   the bias being Ḣ* v

All are formulas in + - × ÷ √ sin cos and the choices of `spatial/choice.py` on NumPy arrays,
written so that they run on arrays of dtype object too: a compiler can trace them on symbols. Such
arrays need a leading axis, (1, nq): NumPy turns an object array without axes into its bare element.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.arguments import is_a, rows
from linkwise.model.hinges.jet import Jet
from linkwise.model.memo import without_caches
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import axis_angle
from linkwise.spatial.vector import cross, cross_velocity


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One entry of q: its name within the hinge and its unit ("rad", "m" or "" for quaternions)."""

    name: str
    unit: str


QUATERNION = tuple(Coordinate(f"quaternion_{c}", "") for c in "wxyz")
OMEGA = tuple(Coordinate(f"omega_{c}", "rad") for c in "xyz")


class Hinge(ABC):
    """A hinge. All functions are vectorised over leading axes of q (..., nq) and v (..., nv)."""

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    @property
    @abstractmethod
    def nv(self) -> int:
        """Number of velocities, the degrees of freedom."""

    @property
    @abstractmethod
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Name and unit of each entry of q."""

    @property
    @abstractmethod
    def velocities(self) -> tuple[Coordinate, ...]:
        """Name and unit (per second) of each entry of v."""

    @abstractmethod
    def pose(self, q: Array) -> Pose:
        """Pose of O seen from O+."""

    @abstractmethod
    def hinge_map(self, q: Array) -> Array:
        """H (..., nv, 6): the relative velocity of O is H* v, in O's axes at O's origin."""

    @abstractmethod
    def bias(self, q: Array, v: Array) -> Array:
        """Ḣ* v (..., 6): the part of the relative acceleration that is there at v̇ = 0."""

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """Ḣ (..., nv, 6): the rate of the hinge map while moving with v, so that bias is Ḣ* v.

        Computed by running `hinge_map` on Taylor series of the motion, unless a hinge has its own
        formula.
        """
        rate = self.qdot(q, v)
        q = np.broadcast_to(q, rate.shape)  # one q, and a batch of velocities
        return Jet.slope(self.hinge_map, (q, rate))

    def map_derivative(self, q: Array) -> Array:
        """∂H/∂q (..., nv, nv, 6): entry j is the rate of the hinge map along velocity j."""
        q = np.asarray(q)
        along = (np.broadcast_to(e, (*q.shape[:-1], self.nv)) for e in np.eye(self.nv))
        rates = [self.hinge_map_rate(q, e) for e in along]
        return np.stack(rates, axis=-3) if rates else np.zeros((*q.shape[:-1], 0, 0, 6))

    def bias_derivative(self, q: Array, v: Array) -> tuple[Array, Array]:
        """∂(Ḣ* v)/∂q and ∂(Ḣ* v)/∂v, both (..., 6, nv), by running `bias` on Taylor series."""
        q, v = np.asarray(q), np.asarray(v)
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = np.broadcast_to(q, (*lead, self.nq)), np.broadcast_to(v, (*lead, self.nv))
        columns = list[tuple[Array, Array]]()
        for e in np.eye(self.nv):
            along = np.broadcast_to(e, v.shape)
            by_q = Jet.slope(self.bias, (q, self.qdot(q, along)), (v, None))
            by_v = Jet.slope(self.bias, (q, None), (v, along))
            columns.append((by_q, by_v))
        if not columns:
            empty = np.zeros((*q.shape[:-1], 6, 0))
            return empty, empty
        by_q, by_v = (np.stack(part, axis=-1) for part in zip(*columns, strict=True))
        return by_q, by_v

    def qdot(self, q: Array, v: Array) -> Array:
        """Time derivative of the coordinates (..., nq)."""
        lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
        return np.broadcast_to(np.asarray(v), (*lead, self.nv))

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Coordinates after v was held for `dt` [s]: exact, and quaternions stay of unit length."""
        return np.asarray(q) + dt * np.asarray(v)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The velocity (..., nv) that, held for one second, leads from q0 to q1."""
        return np.asarray(q1) - np.asarray(q0)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def hull(self) -> Hinge:
        """The holonomic hinge that has the same poses at the same q: itself, for most.

        A nonholonomic hinge reaches more poses than its velocities span at once; its hull has a
        velocity for every direction in which the pose can change, and measures how far a pose is
        from the nearest one of the hinge.
        """
        return self

    @property
    def kind(self) -> str:
        """The hinge's name in tables and messages: "pin", "rolling ball" ..."""
        return type(self).__name__.lower()

    def describe(self) -> str:
        """Kind and main parameters on one line."""
        return self.kind

    @property
    def quaternion(self) -> slice | None:
        """Where the unit quaternion is in q, if there is one."""
        start = next((i for i, c in enumerate(self.coordinates) if c.name == "quaternion_w"), None)
        return None if start is None else slice(start, start + 4)

    def neutral(self) -> Array:
        """q where O is on O+ (or nearest to it): zeros, and the identity quaternion."""
        q = np.zeros(self.nq)
        if self.quaternion is not None:
            q[self.quaternion.start] = 1.0
        return q

    def normalise(self, q: Array) -> Array:
        """The nearest q whose quaternion has unit length."""
        q = np.array(q, dtype=np.float64)
        if self.quaternion is not None:
            q[..., self.quaternion] = quaternion.normalise(q[..., self.quaternion])
        return q

    def random(self, rng: np.random.Generator, lower: Array, upper: Array) -> Array:
        """A sample (nq,): uniform within limits; where there are none, ±π rad or ±1 m.

        Args:
            rng: NumPy's generator.
            lower: Lower limits (nq,), -inf where there is none.
            upper: Upper limits (nq,), inf where there is none.
        """
        is_a(np.random.Generator, rng, "rng")
        lower = rows(lower, self.nq, "lower", finite=False, stacked=False)
        upper = rows(upper, self.nq, "upper", finite=False, stacked=False)
        span = np.array([np.pi if c.unit == "rad" else 1.0 for c in self.coordinates])
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - span, -span))
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + span, span))
        q = low + (high - low) * rng.random(self.nq)
        if self.quaternion is not None:
            q[self.quaternion] = quaternion.random(rng)
        return q

    def reversed(self) -> Hinge:
        """The same hinge seen from the other body: O and O+ change places, q and v stay."""
        from linkwise.model.hinges.modified import Reversed

        return Reversed(self)


class ConstantHinge(Hinge):
    """A hinge whose H is the same in every position, seen from O: there is no bias."""

    @cached_property
    @abstractmethod
    def constant_map(self) -> Array:
        """H (nv, 6)."""

    @property
    def nv(self) -> int:
        return len(self.constant_map)

    def hinge_map(self, q: Array) -> Array:
        return np.broadcast_to(self.constant_map, (*np.shape(q)[:-1], self.nv, 6))

    def bias(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6))

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), self.nv, 6))

    def bias_derivative(self, q: Array, v: Array) -> tuple[Array, Array]:
        zero = np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), 6, self.nv))
        return zero, zero


class ScrewHinge(Hinge):
    """A hinge that is a product of screw motions, one a coordinate: v is q̇.

        pose(q)  = exp(S_1 q_1) exp(S_2 q_2) ...
        row i of H = S_i, carried through the motions after it
        bias     = Σ_i (H_i v_i) × Σ_{j>i} H_j v_j

    A final class names its screws: rows (ω, v) of unit ω for a turn, ω = 0 for a slide.
    """

    @cached_property
    @abstractmethod
    def screws(self) -> Array:
        """The screws S (nv, 6), each in the frame reached before (or after) its motion."""

    @property
    def nv(self) -> int:
        return len(self.screws)

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return self.coordinates

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        pose = Pose.identity()
        for i, screw in enumerate(self.screws):
            pose = pose @ screw_motion(screw, q[..., i])
        return pose

    def hinge_map(self, q: Array) -> Array:
        q = np.asarray(q)
        after, rows = Pose.identity(), list[Array]()
        for i in reversed(range(self.nv)):
            screw = self.screws[i]
            row = screw if after is Pose.identity() else after.shift_velocity(screw)
            rows.append(np.broadcast_to(row, (*q.shape[:-1], 6)))
            after = screw_motion(screw, q[..., i]) @ after if i else after
        return np.stack(rows[::-1], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        moved = self.hinge_map(q) * np.asarray(v)[..., None]
        total, later = 0.0 * moved[..., 0, :], moved[..., -1, :]
        for i in reversed(range(self.nv - 1)):
            total = total + cross_velocity(moved[..., i, :], later)
            later = later + moved[..., i, :]
        return total

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """Row i is carried through the motions after it: Ḣ_i = H_i × Σ_{j>i} H_j v_j."""
        H = self.hinge_map(q)
        moved = H * np.asarray(v)[..., None]
        rows, later = [0.0 * moved[..., -1, :]], moved[..., -1, :]
        for i in reversed(range(self.nv - 1)):
            rows.append(cross_velocity(H[..., i, :], later))
            later = later + moved[..., i, :]
        return np.stack(rows[::-1], axis=-2)


def velocity(hinge: Hinge, q: Array, v: Array) -> Array:
    """H* v (..., 6): the relative velocity of O in its own axes."""
    return (hinge.hinge_map(q) * np.asarray(v)[..., None]).sum(axis=-2)


def screw_motion(screw: Array, q: Array) -> Pose:
    """exp(S q) for one screw S (6,), with exact zeros and ones for axes along x, y or z.

    p = (θ + (1 - cos θ) ω~ + (θ - sin θ) ω~²) v for unit ω; the last two vanish where ω × v = 0.
    """
    w, v = screw[:3], screw[3:]
    rate = float(np.sqrt(w @ w))
    q = np.asarray(q)
    if rate == 0.0:
        return trusted_pose(Pose.identity().rot, v * q[..., None])
    w, v, angle = w / rate, v / rate, rate * q
    rot = axis_angle(w, angle)
    if not v.any():
        return trusted_pose(rot, np.zeros(3))
    p = v * angle[..., None]
    wv = cross(w, v)
    if wv.any():
        c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
        p = p + (1.0 - c) * wv + (angle[..., None] - s) * cross(w, wv)
    return trusted_pose(rot, p)


def axis_text(axis: tuple[float, ...]) -> str:
    """x, y, z, -x, -y, -z or the components."""
    for i, letter in enumerate("xyz"):
        if abs(axis[i]) == 1.0:
            return letter if axis[i] > 0.0 else f"-{letter}"
    return "(" + ", ".join(f"{a:.4g}" for a in axis) + ")"


def qdot_map(hinge: Hinge, q: Array) -> Array:
    """N (nq, nv) with q̇ = N v, for coordinates (nq,) of a hinge."""
    columns = [hinge.qdot(q[None], e[None])[0] for e in np.eye(hinge.nv)]
    return np.stack(columns, axis=-1) if columns else np.zeros((hinge.nq, 0))
