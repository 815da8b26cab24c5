"""Positions: Cartesian, cylindrical about z, and spherical coordinates of the reference.

    cylindrical   p = (ρ cos φ, ρ sin φ, z),                          x = (ρ, φ, z)
    spherical     p = r (sin θ cos φ, sin θ sin φ, cos θ),            x = (r, θ, φ)

The columns of W = ∂p/∂x are perpendicular, of lengths h = (1, ρ, 1) and (1, r, r sin θ), so with
unit vectors u along them

    ṗ = W ẋ,      E = W⁻¹ has the rows u* / h,      Ė v = −E Ẇ ẋ                              (1)

and Ẇ ẋ, the acceleration while ẋ is constant, is

    cylindrical   −ρ φ̇² u_ρ + 2 ρ̇ φ̇ u_φ                                                     (2)
    spherical     (−r θ̇² − r sin²θ φ̇²) u_r + (2 ṙ θ̇ − r sin θ cos θ φ̇²) u_θ
                      + (2 ṙ φ̇ sin θ + 2 r θ̇ φ̇ cos θ) u_φ                                   (3)

On the z axis φ has no rate.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array
from linkwise.tasks.representation.orientation import wrapped
from linkwise.tasks.representation.representation import LIMIT, Representation


@dataclass(frozen=True, slots=True)
class Cartesian(Representation):
    """x, y, z: E is the identity."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The three axes."""
        return ("x", "y", "z")

    def of(self, place: Array) -> Array:
        """As it is."""
        return place

    def place(self, x: Array) -> Array:
        """As it is."""
        return x

    def matrix(self, x: Array) -> Array:
        """The identity."""
        return np.broadcast_to(np.eye(3), (*x.shape[:-1], 3, 3))

    def inverse(self, x: Array) -> Array:
        """The identity."""
        return self.matrix(x)

    def rate(self, x: Array, w: Array) -> Array:
        """Zero."""
        return np.zeros(np.broadcast_shapes(x.shape, w.shape))


class _Orthogonal(Representation):
    """Coordinates with perpendicular lines."""

    @abstractmethod
    def _frame(self, x: Array) -> tuple[Array, Array]:
        """Unit vectors u along the lines as rows (..., 3, 3), and their lengths h (..., 3)."""

    @abstractmethod
    def _drift(self, x: Array, xdot: Array) -> Array:
        """Ẇ ẋ along the u (..., 3)."""

    def matrix(self, x: Array) -> Array:
        """Rows u* / h."""
        u, h = self._frame(x)
        return u / h[..., None]

    def inverse(self, x: Array) -> Array:
        """W: columns h u."""
        u, h = self._frame(x)
        return np.swapaxes(u * h[..., None], -1, -2)

    def rate(self, x: Array, w: Array) -> Array:
        """−E Ẇ ẋ."""
        u, h = self._frame(x)
        return -self._drift(x, (u @ w[..., None])[..., 0] / h) / h

    def singular(self, x: Array) -> NDArray[Any]:
        """Whether it is on the z axis, within `LIMIT` as seen from the origin."""
        p = self.place(x)
        across = np.hypot(p[..., 0], p[..., 1])
        return across <= LIMIT * np.abs(p[..., 2])

    def trouble(self, x: Array) -> str:
        """The position on the axis, and alternatives."""
        p = self.place(x)
        return (
            f"it is at ({p[0]:.6g}, {p[1]:.6g}, {p[2]:.6g}) m, on the z axis of the reference, "
            "where the angle φ has no rate. Use 'cartesian', or a reference (relative_to=) whose "
            "z axis is elsewhere."
        )


@dataclass(frozen=True, slots=True)
class CylindricalPosition(_Orthogonal):
    """(ρ, φ, z): distance from the z axis, angle about it from x on, height."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Distance, angle, height."""
        return ("rho", "phi", "z")

    def of(self, place: Array) -> Array:
        """φ from -π to π."""
        x, y, z = (place[..., i] for i in range(3))
        return np.stack([np.hypot(x, y), np.arctan2(y, x), z], axis=-1)

    def place(self, x: Array) -> Array:
        """p."""
        rho, phi, z = (x[..., i] for i in range(3))
        return np.stack([rho * np.cos(phi), rho * np.sin(phi), z], axis=-1)

    def _frame(self, x: Array) -> tuple[Array, Array]:
        rho, c, s = x[..., 0], np.cos(x[..., 1]), np.sin(x[..., 1])
        zero, one = np.zeros_like(c), np.ones_like(c)
        u = np.stack([c, s, zero, -s, c, zero, zero, zero, one], axis=-1)
        return u.reshape(*c.shape, 3, 3), np.stack([one, rho, one], axis=-1)

    def _drift(self, x: Array, xdot: Array) -> Array:
        """(2)."""
        rho, rho_dot, phi_dot = x[..., 0], xdot[..., 0], xdot[..., 1]
        out = [-rho * phi_dot**2, 2.0 * rho_dot * phi_dot, np.zeros_like(rho_dot)]
        return np.stack(out, axis=-1)

    def difference(self, x: Array, goal: Array) -> Array:
        """The angle wrapped."""
        way = goal - x
        return np.stack([way[..., 0], wrapped(way[..., 1]), way[..., 2]], axis=-1)


@dataclass(frozen=True, slots=True)
class SphericalPosition(_Orthogonal):
    """(r, θ, φ): distance from the origin, angle from the z axis, angle about it from x on."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Distance and two angles."""
        return ("r", "theta", "phi")

    def of(self, place: Array) -> Array:
        """θ from 0 to π, φ from -π to π."""
        x, y, z = (place[..., i] for i in range(3))
        across = np.hypot(x, y)
        return np.stack([np.hypot(across, z), np.arctan2(across, z), np.arctan2(y, x)], axis=-1)

    def place(self, x: Array) -> Array:
        """p."""
        r, theta, phi = (x[..., i] for i in range(3))
        across = r * np.sin(theta)
        return np.stack([across * np.cos(phi), across * np.sin(phi), r * np.cos(theta)], axis=-1)

    def _frame(self, x: Array) -> tuple[Array, Array]:
        r, st, ct = x[..., 0], np.sin(x[..., 1]), np.cos(x[..., 1])
        c, s = np.cos(x[..., 2]), np.sin(x[..., 2])
        rows = [st * c, st * s, ct, ct * c, ct * s, -st, -s, c, np.zeros_like(c)]
        u = np.stack(rows, axis=-1).reshape(*c.shape, 3, 3)
        return u, np.stack([np.ones_like(r), r, r * st], axis=-1)

    def _drift(self, x: Array, xdot: Array) -> Array:
        """(3)."""
        r, s, c = x[..., 0], np.sin(x[..., 1]), np.cos(x[..., 1])
        r_dot, theta_dot, phi_dot = (xdot[..., i] for i in range(3))
        out = [
            -r * theta_dot**2 - r * (s * phi_dot) ** 2,
            2.0 * r_dot * theta_dot - r * s * c * phi_dot**2,
            2.0 * phi_dot * (r_dot * s + r * theta_dot * c),
        ]
        return np.stack(out, axis=-1)

    def difference(self, x: Array, goal: Array) -> Array:
        """The angles wrapped."""
        way = goal - x
        return np.concatenate([way[..., :1], wrapped(way[..., 1:])], axis=-1)
