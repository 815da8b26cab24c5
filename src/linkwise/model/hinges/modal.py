"""The motion of one node of a flexible body: a function of its modal coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from linkwise.arguments import is_a, rows
from linkwise.errors import ModelError, ShapeError
from linkwise.model.hinges.hinge import Coordinate, Hinge
from linkwise.spatial.array import Array, floats, frozen
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import six

BENT = 0.2
"""How far `random` bends a body: the turn of a node [rad], or its displacement by its distance."""


@dataclass(frozen=True, eq=False)
class Modal(Hinge):
    """A node of a flexible body seen from its reference frame; q are the modal coordinates η [m].

    With modes Π = (Ψ, Φ) and displacements of second order S, in the axes of the reference frame:

        p(η)   = p_0 + Φ η + ½ η* S η,          A = ∂p/∂η = Φ + S η
        rot(η) = (1 + 2 d (g~ + g~²)) rot_0     with g = ½ Ψ η and d = 1 / (1 + g·g)
        H*     = (rot_0* d (1 - g~) Ψ,  rot* A)
        Ḣ* v   = (-2 d (g·ġ) ω,  rot* v* S v - ω × rot* A v)

    g is the Rodrigues vector: the turn is Ψ η up to the third order, and it is a rotation for any
    η. S holds what shortens a bent beam, without which a spinning one would soften.

    Attributes:
        modes: Π (6, n): turn [rad/m] and displacement [m/m] of the node for each mode.
        rest: Its pose in the undeformed body.
        second: S (3, n, n) [1/m], symmetric in its last two axes; default: none.
    """

    modes: Array
    rest: Pose = field(default_factory=Pose.identity)
    second: Array | None = None

    def __post_init__(self) -> None:
        is_a(Pose, self.rest, "rest of a node of a flexible body")
        modes = floats(self.modes, "modes of a node")
        if modes.ndim != 2 or modes.shape[0] != 6 or not modes.shape[1]:
            raise ShapeError(
                f"modes of a node have shape {modes.shape}; they must be (6, n): turn and "
                "displacement for each of n modes."
            )
        if not np.isfinite(modes).all():
            raise ModelError("modes of a node must be finite.")
        object.__setattr__(self, "modes", frozen(np.array(modes)))
        if self.second is None:
            return
        second, n = floats(self.second, "second"), modes.shape[1]
        if second.shape != (3, n, n) or not np.isfinite(second).all():
            raise ShapeError(
                f"second has shape {second.shape}; for {n} modes it must be (3, {n}, {n}), finite."
            )
        mirrored = 0.5 * (second + np.swapaxes(second, 1, 2))
        object.__setattr__(self, "second", frozen(mirrored) if mirrored.any() else None)

    @property
    def nv(self) -> int:
        return self.modes.shape[1]

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(f"mode_{i + 1}", "m") for i in range(self.nv))

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return self.coordinates

    @property
    def kind(self) -> str:
        return "modal"

    def describe(self) -> str:
        return f"modal ({self.nv})"

    @cached_property
    def _turns(self) -> bool:
        return bool(self.modes[:3].any())

    def _turn(self, q: Array) -> tuple[Array, Array, Array]:
        """g (..., 3), d (...) and the rotation (..., 3, 3) away from rest."""
        g = _times(0.5 * self.modes[:3], q)
        d = 1.0 / (1.0 + (g * g).sum(axis=-1))
        cross = skew(g)
        twice = 2.0 * d[..., None, None] * cross
        return g, d, np.eye(3) + twice + twice @ cross

    def _slope(self, q: Array) -> Array:
        """A (..., 3, n)."""
        shape = (*np.shape(q)[:-1], 3, self.nv)
        if self.second is None:
            return np.broadcast_to(self.modes[3:], shape)
        return self.modes[3:] + _times(self.second, q[..., None, :])

    def pose(self, q: Array) -> Pose:
        q = np.asarray(q)
        p = self.rest.p + _times(self.modes[3:], q)
        if self.second is not None:
            p = p + 0.5 * _times(_times(self.second, q[..., None, :]), q)
        if not self._turns:
            return trusted_pose(self.rest.rot, p)
        return trusted_pose(self._turn(q)[2] @ self.rest.rot, p)

    def hinge_map(self, q: Array) -> Array:
        q = np.asarray(q)
        A, back = self._slope(q), self.rest.rot.T
        if not self._turns:
            linear = A if self.rest is Pose.identity() else back @ A
            return np.swapaxes(np.concatenate([0.0 * A, linear], axis=-2), -1, -2)
        g, d, rot = self._turn(q)
        W = d[..., None, None] * (self.modes[:3] - skew(g) @ self.modes[:3])
        linear = np.swapaxes(rot, -1, -2) @ A
        return np.swapaxes(np.concatenate([back @ W, back @ linear], axis=-2), -1, -2)

    def bias(self, q: Array, v: Array) -> Array:
        q, v = np.broadcast_arrays(np.asarray(q), np.asarray(v))
        back = self.rest.rot.T
        s = _times(self._slope(q), v)
        rate = 0.0 * s if self.second is None else _times(_times(self.second, v[..., None, :]), v)
        if not self._turns:
            return six(0.0 * s, _times(back, rate))
        g, d, rot = self._turn(q)
        w = _times(0.5 * self.modes[:3], v)
        turn = 2.0 * d[..., None] * (w - _times(skew(g), w))
        slower = -2.0 * (d * (g * w).sum(axis=-1))[..., None]
        moved = np.swapaxes(rot, -1, -2)
        linear = _times(moved, rate) - _times(skew(turn), _times(moved, s))
        return six(_times(back, slower * turn), _times(back, linear))

    def random(self, rng: np.random.Generator, lower: Array, upper: Array) -> Array:
        """A moderately bent body, within limits."""
        is_a(np.random.Generator, rng, "rng")
        lower = rows(lower, self.nq, "lower", finite=False, stacked=False)
        upper = rows(upper, self.nq, "upper", finite=False, stacked=False)
        far = max(float(np.linalg.norm(self.rest.p)), 1e-9)
        size = np.linalg.norm(self.modes[:3], axis=0) + np.linalg.norm(self.modes[3:], axis=0) / far
        span = BENT / (self.nv * np.where(size > 0.0, size, 1.0))
        return np.clip(span * rng.uniform(-1.0, 1.0, self.nv), lower, upper)


def _times(matrix: Array, x: Array) -> Array:
    """matrix (..., m, n) times x (..., n)."""
    return (matrix @ np.asarray(x)[..., None])[..., 0]
