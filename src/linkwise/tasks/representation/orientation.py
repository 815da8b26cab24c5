"""Coordinates of orientations: Euler angles, unit quaternions and direction cosines.

Angular velocities ω are in the axes of the reference. Euler angles are three turns in sequence,
each about an axis that the previous turns have moved. With axes i, j, k and angles α = (α1, α2, α3)

    rot = R_i(α1) R_j(α2) R_k(α3)                                                            (1)
    ω = W α̇,      W = (e_i,  R_i e_j,  R_i R_j e_k)                                           (2)

The second column is perpendicular to the others, so with d = w1 · (w2 × w3) the inverse has the
rows

    E = W⁻¹ = (w2 × w3 / d,   w2,   w1 × w2 / d)                                             (3)

d is ±cos α2 for three different axes, ±sin α2 if the first axis returns. At constant α̇ the columns
turn with the previous turns, ẇ2 = α̇1 w1 × w2 and ẇ3 = (α̇1 w1 + α̇2 w2) × w3, and from E W = I

    Ė ω = −E Ẇ α̇                                                                            (4)

A unit quaternion x = (w, u) has four numbers:

    ẋ = ½ (0, ω) x = E ω,      E = ½ (−u*,  w 1 − ũ)                                         (5)

E* E = ¼ (u u* + w² 1 − ũ ũ) = ¼ |x|² 1, so that E⁺ = 4 E*. And

    Ė ω = ½ (0, ω) ẋ = −¼ |ω|² x                                                            (6)

is along x, perpendicular to all rates: E⁺ Ė ω = 0. No orientation is singular; x and −x are the
same.

The nine direction cosines are the three columns s of the rotation matrix, fixed in the node:

    ṡ = ω × s,      E = (−s̃1, −s̃2, −s̃3) one below the other                                  (7)

E* E = Σ (1 − s s*) = 2 · 1, so that E⁺ = ½ E*. And

    Ė ω = ω × (ω × s) for each of them,      E⁺ Ė ω = ½ Σ (ω · s) s × ω = 0.                   (8)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross
from linkwise.tasks.representation.representation import LIMIT, Representation

SEQUENCES = tuple(
    "".join(axes)
    for axes in product("xyz", repeat=3)
    if axes[0] != axes[1] and axes[1] != axes[2]  # two turns about one axis are one turn
)
"""All twelve: six with three different axes, six that return to the first."""


@dataclass(frozen=True, slots=True)
class EulerAngles(Representation):
    """Angles of a sequence of three axes, "zyx" or any other of `SEQUENCES`."""

    sequence: str

    @property
    def labels(self) -> tuple[str, ...]:
        """One turn each."""
        return tuple(f"turn about {axis}" for axis in self.sequence)

    @property
    def _axes(self) -> tuple[int, int, int, int]:
        """i, j, the axis that is neither, and the sign of i, j and that one in this order."""
        i, j = ("xyz".index(axis) for axis in self.sequence[:2])
        return i, j, 3 - i - j, 1 if (j - i) % 3 == 1 else -1

    @property
    def _returns(self) -> bool:
        """Whether the first axis returns."""
        return self.sequence[0] == self.sequence[2]

    def of(self, place: Array) -> Array:
        """α of orientations: α2 from -π/2 to π/2, or from 0 to π where the first axis returns.

        The last axis of the turned frame gives α1 and α2; the remaining turn is α3. At a
        singularity, which determines only α1 ± α3, α1 is zero up to rounding.
        """
        i, j, m, sign = self._axes
        last = place[..., :, "xyz".index(self.sequence[2])]  # R_i R_j e_k
        if self._returns:
            across = np.hypot(last[..., j], last[..., m])
            first = np.arctan2(last[..., j], -sign * last[..., m])
            second = np.arctan2(across, last[..., i])
        else:
            across = np.hypot(last[..., j], last[..., m])
            first = np.arctan2(-sign * last[..., j], last[..., m])
            second = np.arctan2(sign * last[..., i], across)
        left = np.swapaxes(_about(i, first), -1, -2) @ place  # R_j R_k, whose row j is that of R_k
        other = m if self._returns else i  # e_j* R_k(α3) e_other = ±sin α3
        turned = -sign if self._returns else sign
        third = np.arctan2(turned * left[..., j, other], left[..., j, j])
        return np.stack([first, second, third], axis=-1)

    def place(self, x: Array) -> Array:
        """(1)."""
        i, j, k = ("xyz".index(axis) for axis in self.sequence)
        return _about(i, x[..., 0]) @ _about(j, x[..., 1]) @ _about(k, x[..., 2])

    def _columns(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """The columns of W and d."""
        i, j, k = ("xyz".index(axis) for axis in self.sequence)
        first = _about(i, x[..., 0])
        w1 = np.broadcast_to(np.eye(3)[i], (*x.shape[:-1], 3))
        w2, w3 = first[..., :, j], (first @ _about(j, x[..., 1]))[..., :, k]
        return w1, w2, w3, (w1 * cross(w2, w3)).sum(axis=-1)

    def matrix(self, x: Array) -> Array:
        """(3)."""
        w1, w2, w3, d = self._columns(x)
        d = d[..., None]
        return np.stack([cross(w2, w3) / d, w2, cross(w1, w2) / d], axis=-2)

    def inverse(self, x: Array) -> Array:
        """W of (2)."""
        return np.stack(self._columns(x)[:3], axis=-1)

    def rate(self, x: Array, w: Array) -> Array:
        """(4)."""
        E = self.matrix(x)
        w1, w2, w3, _ = self._columns(x)
        a = (E @ w[..., None])[..., 0]  # α̇
        one, two, three = (a[..., i : i + 1] for i in range(3))
        turned = one * two * cross(w1, w2) + three * cross(one * w1 + two * w2, w3)
        return -(E @ turned[..., None])[..., 0]

    def difference(self, x: Array, goal: Array) -> Array:
        """Each angle wrapped."""
        return wrapped(goal - x)

    def lock(self, x: Array) -> Array:
        """|d| (...): one for perpendicular axes, zero at gimbal lock."""
        second = x[..., 1]
        return np.abs(np.sin(second) if self._returns else np.cos(second))

    def singular(self, x: Array) -> NDArray[Any]:
        """Whether the first and the third axis coincide, up to `LIMIT`."""
        return self.lock(x) < LIMIT

    def trouble(self, x: Array) -> str:
        """Gimbal lock, its angle, and the sequence that is farthest from it."""
        where = "0° or 180°" if self._returns else "±90°"
        locks = {name: EulerAngles(name) for name in SEQUENCES}
        rot = self.place(x)
        best = max(locks, key=lambda name: round(float(locks[name].lock(locks[name].of(rot))), 6))
        return (
            f"the second angle is {np.degrees(x[1]):.6g}° ({x[1]:.6g} rad): at {where} the first "
            f"and the third axis of {self.sequence!r} are one line (gimbal lock) and no angles "
            f"follow a turn across it. Use 'quaternion' or 'direction_cosines', which have "
            f"no singularity, or 'euler_{best}', which is far from its own here."
        )


@dataclass(frozen=True, slots=True)
class QuaternionParameters(Representation):
    """Unit quaternions (w, x, y, z), w ≥ 0: Euler parameters."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The four entries."""
        return ("w", "i", "j", "k")

    def of(self, place: Array) -> Array:
        """The quaternion with w ≥ 0."""
        return quaternion.from_matrix(place)

    def place(self, x: Array) -> Array:
        """The orientation; lengths other than one are made one."""
        return quaternion.to_matrix(quaternion.normalise(x))

    def matrix(self, x: Array) -> Array:
        """(5)."""
        w, u = x[..., :1, None], x[..., 1:]
        return 0.5 * np.concatenate([-u[..., None, :], w * np.eye(3) - skew(u)], axis=-2)

    def inverse(self, x: Array) -> Array:
        """4 E*."""
        return 4.0 * np.swapaxes(self.matrix(x), -1, -2)

    def rate(self, x: Array, w: Array) -> Array:
        """(6)."""
        return -0.25 * (w * w).sum(axis=-1, keepdims=True) * x

    def difference(self, x: Array, goal: Array) -> Array:
        """To the goal or to its opposite, which is the same orientation: to the nearer one."""
        across = (x * goal).sum(axis=-1, keepdims=True)
        return np.where(across < 0.0, -goal, goal) - x


@dataclass(frozen=True, slots=True)
class DirectionCosines(Representation):
    """The axes x, y and z of the node, in the axes of the reference, stacked."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Axis and component."""
        return tuple(f"{axis} along {onto}" for axis in "xyz" for onto in "xyz")

    def of(self, place: Array) -> Array:
        """Column by column."""
        return np.swapaxes(place, -1, -2).reshape(*place.shape[:-2], 9)

    def place(self, x: Array) -> Array:
        """The matrix that the columns make."""
        return np.swapaxes(x.reshape(*x.shape[:-1], 3, 3), -1, -2)

    def matrix(self, x: Array) -> Array:
        """(7)."""
        return -skew(x.reshape(*x.shape[:-1], 3, 3)).reshape(*x.shape[:-1], 9, 3)

    def inverse(self, x: Array) -> Array:
        """½ E*."""
        return 0.5 * np.swapaxes(self.matrix(x), -1, -2)

    def rate(self, x: Array, w: Array) -> Array:
        """(8)."""
        w, columns = w[..., None, :], x.reshape(*x.shape[:-1], 3, 3)
        result = cross(w, cross(w, columns))
        return result.reshape(*result.shape[:-2], 9)


def wrapped(angle: Array) -> Array:
    """Angles from -π to π."""
    return np.arctan2(np.sin(angle), np.cos(angle))


def _about(axis: int, angle: Array) -> Array:
    """R_axis(angle) (..., 3, 3)."""
    return rotation.axis_angle(np.eye(3)[axis], angle)
