"""Finite elements of straight beams.

An element has twelve coordinates (u, θ at both ends). Its shape functions are the exact static ones
of a Timoshenko beam, with Φ = 12 E I / (k A G l²); Φ = 0 is Euler-Bernoulli.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.spatial.vector import cross


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """A straight beam between two nodes, its section constant."""

    start: int
    end: int
    axes: Array  # rows: the axis e, and the two principal axes of the section
    length: float
    numbers: Array  # EA, GJ, EI_y, EI_z, rho A, rho I_y, rho I_z
    shear: tuple[float, float]  # Φ for bending along y and along z

    @property
    def coordinates(self) -> list[int]:
        """Where those of both ends are among the coordinates of all nodes."""
        first, last = 6 * self.start, 6 * self.end
        return [*range(first, first + 6), *range(last, last + 6)]

    def shapes(self, xi: float) -> tuple[Array, Array, Array]:
        """u, θ and the slope β (each 3, 12) at ξ in 0 ... 1, from (θ, u) of both ends."""
        u, turn, slope = np.zeros((3, 12)), np.zeros((3, 12)), np.zeros((3, 12))
        u[0, [3, 9]] = turn[0, [0, 6]] = slope[0, [0, 6]] = 1.0 - xi, xi
        # Bending along y turns about z with θ = w'; along z it turns about y with θ = -w'.
        for shear, along, about, sign in ((self.shear[0], 1, 2, 1.0), (self.shear[1], 2, 1, -1.0)):
            at = [3 + along, about, 9 + along, 6 + about]
            signs = np.array([1.0, sign, 1.0, sign])
            w, rate, angle = _cubic(xi, self.length, shear)
            u[along, at] = w * signs
            slope[about, at] = sign * rate * signs
            turn[about, at] = sign * angle * signs
        world = self.axes.T
        ends = np.kron(np.eye(4), self.axes)
        return world @ u @ ends, world @ turn @ ends, world @ slope @ ends

    def stiffness(self) -> Array:
        """K (12, 12) in the order (θ, u) of both ends."""
        pulled, twisted, bent_y, bent_z = self.numbers[:4].tolist()
        l, K = self.length, np.zeros((12, 12))
        pull = np.array([[1.0, -1.0], [-1.0, 1.0]]) / l
        K[np.ix_([3, 9], [3, 9])] += pulled * pull
        K[np.ix_([0, 6], [0, 6])] += twisted * pull
        bends = ((bent_z, self.shear[0], 1, 2, 1.0), (bent_y, self.shear[1], 2, 1, -1.0))
        for bent, phi, along, about, sign in bends:
            at = [3 + along, about, 9 + along, 6 + about]
            a, b, c = 6.0 * l, (4.0 + phi) * l**2, (2.0 - phi) * l**2
            B = np.array([[12, a, -12, a], [a, b, -a, c], [-12, -a, 12, -a], [a, c, -a, b]])
            signs = np.array([1.0, sign, 1.0, sign])
            K[np.ix_(at, at)] += bent / (l**3 * (1.0 + phi)) * B * np.outer(signs, signs)
        ends = np.kron(np.eye(4), self.axes)
        return ends.T @ K @ ends

    def inertia(self, length: float, *, rotary: bool) -> tuple[float, Array]:
        """Mass and inertia of a piece, without its thickness where only points are wanted."""
        line, rho_y, rho_z = self.numbers[4:].tolist()
        local = np.diag([rho_y + rho_z, rho_y, rho_z]) if rotary else np.zeros((3, 3))
        return line * length, np.asarray(length * self.axes.T @ local @ self.axes)


def _cubic(xi: float, l: float, phi: float) -> tuple[Array, Array, Array]:
    """w, w' and θ (4,) of a bent element for w_1, θ_1, w_2, θ_2."""
    c, x, y = 1.0 / (1.0 + phi), xi, 1.0 - xi
    w = np.array(
        [
            1.0 - 3.0 * x**2 + 2.0 * x**3 + phi * y,
            l * (x - 2.0 * x**2 + x**3 + 0.5 * phi * x * y),
            3.0 * x**2 - 2.0 * x**3 + phi * x,
            l * (x**3 - x**2 - 0.5 * phi * x * y),
        ]
    )
    bend = np.array(
        [-6.0 * x * y / l, 1.0 - 4.0 * x + 3.0 * x**2, 6.0 * x * y / l, 3.0 * x**2 - 2.0 * x]
    )
    half = 0.5 * phi * (1.0 - 2.0 * x)
    rate = bend + np.array([-phi / l, half, phi / l, -half])
    angle = bend + np.array([0.0, phi * y, 0.0, phi * x])
    return c * w, c * rate, c * angle


def elements_of(
    nodes: Array,
    pairs: Sequence[tuple[int, int]],
    table: Array,
    material: tuple[float, float, float],
    shear_factor: float | None,
) -> list[Element]:
    """Elements between pairs of nodes, with rows (A, I_y, I_z, J) and a material (E, G, ρ)."""
    E, G, rho = material
    made = list[Element]()
    for (a, b), (area, I_y, I_z, J) in zip(pairs, table.tolist(), strict=True):
        way = nodes[b] - nodes[a]
        l = float(np.linalg.norm(way))
        if l == 0.0:
            raise ModelError(f"element ({a}, {b}) has no length.")
        x = way / l
        y = np.array([0.0, 1.0, 0.0]) if abs(x[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
        z = cross(x, y)
        z = z / np.linalg.norm(z)
        k = 0.0 if shear_factor is None else number(shear_factor, "shear_factor", least=1e-9)
        shear = (12.0 * E / (k * area * G * l**2)) if k else 0.0
        numbers = np.array([E * area, G * J, E * I_y, E * I_z, rho * area, rho * I_y, rho * I_z])
        axes = np.stack([x, cross(z, x), z])
        made.append(Element(a, b, axes, l, numbers, (shear * I_z, shear * I_y)))
    return made
