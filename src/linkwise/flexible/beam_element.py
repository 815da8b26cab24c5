"""Finite elements of straight beams.

An element has twelve coordinates (u, θ at both ends). Its shape functions are the exact static ones
of a Timoshenko beam, with Φ = 12 E I / (k A G l²); Φ = 0 is Euler-Bernoulli.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError, ShapeError
from linkwise.spatial.array import Array, ArrayLike, floats
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


@dataclass(frozen=True, slots=True)
class Material:
    """What beams are made of.

    Attributes:
        young: E [N/m²].
        shear: G [N/m²].
        density: ρ [kg/m³].
        factors: k of Timoshenko for bending along y and z; None for Euler-Bernoulli.
    """

    young: float
    shear: float
    density: float
    factors: tuple[float, float] | None

    @staticmethod
    def of(
        young: float, density: float, shear_modulus: float | None, shear_factor: ArrayLike | None
    ) -> Material:
        """From the arguments of `beam`."""
        E = number(young, "young", above=0.0)
        G = E / 2.6 if shear_modulus is None else number(shear_modulus, "shear_modulus", above=0.0)
        factors = None
        if shear_factor is not None:
            given = floats(shear_factor, "shear_factor")
            if given.shape not in ((), (2,)):
                raise ShapeError(
                    f"shear_factor has shape {given.shape}; it must be one number, or two: for "
                    "bending along y and along z."
                )
            y, z = np.broadcast_to(given, (2,)).tolist()
            factors = (
                number(y, "shear_factor", least=1e-9),
                number(z, "shear_factor", least=1e-9),
            )
        return Material(E, G, number(density, "density", above=0.0), factors)


def principal(I_y: Array, I_z: Array, product: Array) -> tuple[Array, Array, Array]:
    """Principal second moments, and the angles from y and z to their axes, -45° ... 45° [rad].

    With the product ∫ y z dA; all arrays have an entry for each section.
    """
    half = 0.5 * (I_z - I_y)
    sign = np.where(half < 0.0, -1.0, 1.0)
    angle = 0.5 * np.arctan2(sign * product, np.abs(half))
    apart = sign * np.hypot(half, product)
    mean = 0.5 * (I_y + I_z)
    return mean - apart, mean + apart, angle


def elements_of(
    nodes: Array,
    pairs: Sequence[tuple[int, int]],
    table: Array,
    material: Material,
    roll: Array,
) -> list[Element]:
    """Elements between pairs of nodes, with rows (A, I_y, I_z, J) and turns about their axes."""
    E, G, rho, factors = material.young, material.shear, material.density, material.factors
    made = list[Element]()
    for (a, b), (area, I_y, I_z, J), turn in zip(pairs, table.tolist(), roll.tolist(), strict=True):
        way = nodes[b] - nodes[a]
        l = float(np.linalg.norm(way))
        if l == 0.0:
            raise ModelError(f"element ({a}, {b}) has no length.")
        x = way / l
        y = np.array([0.0, 1.0, 0.0]) if abs(x[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
        z = cross(x, y)
        z = z / np.linalg.norm(z)
        y = cross(z, x)
        y, z = np.cos(turn) * y + np.sin(turn) * z, np.cos(turn) * z - np.sin(turn) * y
        shear = (0.0, 0.0)
        if factors is not None:
            phi = 12.0 * E / (area * G * l**2)
            shear = (phi * I_z / factors[0], phi * I_y / factors[1])
        numbers = np.array([E * area, G * J, E * I_y, E * I_z, rho * area, rho * I_y, rho * I_z])
        made.append(Element(a, b, np.stack([x, y, z]), l, numbers, shear))
    return made
