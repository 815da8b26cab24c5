"""What does each body weigh: by its `<inertial>`, by its geoms, and after the compiler's rules?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkwise.io.mjcf.compiler import Compiler, boolean
from linkwise.io.mjcf.geom import SMALL, Geom, fitted
from linkwise.io.mjcf.orientation import read_quaternion
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia

_MIN_TOTAL: Final = 1e-15


@dataclass(slots=True)
class Inference:
    """Whether the geoms of a body decide its inertia."""

    compiler: Compiler
    reporter: Reporter

    def geoms_count(self, record: BodyRecord) -> bool:
        """True where geoms count: always, or unless the body has an `<inertial>`."""
        rule = self.compiler.of(record.element).inertiafromgeom
        return rule == "true" or (rule == "auto" and record.inertial is None)

    def body(self, record: BodyRecord, geoms: list[Geom]) -> SpatialInertia:
        """Inertia of a body about its frame, before the total mass is set."""
        inertia, compiler = None, self.compiler.of(record.element)
        if self.geoms_count(record):
            inertia = self._from_geoms(geoms, compiler)
        if inertia is None and record.inertial is not None:
            inertia = read_inertial(record.inertial, compiler)
        if inertia is None:
            if compiler.boundmass <= 0.0 and compiler.boundinertia <= 0.0:
                return SpatialInertia.zero()
            # Without any, MuJoCo puts the inertial frame at the body's own pose in its parent.
            inertia = SpatialInertia.from_com(0.0, record.written.p)
            return self._bounded(record, inertia, record.written.p)
        return self._bounded(record, inertia, inertia.com)

    def _from_geoms(self, geoms: list[Geom], compiler: Compiler) -> SpatialInertia | None:
        low, high = compiler.inertiagrouprange
        total: SpatialInertia | None = None
        for geom in geoms:
            if low <= geom.group <= high:
                part = geom_inertia(fitted(geom, compiler), self.reporter)
                if float(part.mass) > SMALL:
                    total = part if total is None else total + part
        return total

    def _bounded(self, record: BodyRecord, inertia: SpatialInertia, com: object) -> SpatialInertia:
        """At least the bounds of the compiler; impossible moments balanced, if requested."""
        compiler = self.compiler.of(record.element)
        least_mass, least = compiler.boundmass, compiler.boundinertia
        if least_mass <= 0.0 and least <= 0.0 and not compiler.balanceinertia:
            return inertia
        _check_finite(inertia, record.element)
        moments, axes = inertia.principal()
        mass, changed = float(inertia.mass), False
        if mass < least_mass:
            mass, changed = least_mass, True
        if (moments < least).any():
            moments, changed = np.maximum(moments, least), True
        if compiler.balanceinertia and moments[0] + moments[1] < moments[2]:
            moments, changed = np.full(3, moments.mean()), True
        if not changed:
            return inertia
        place = np.asarray(com, dtype=np.float64)
        return SpatialInertia.from_com(mass, place, moments, axes)


def read_inertial(element: Element, compiler: Compiler) -> SpatialInertia:
    """`<inertial>`: mass, centre of mass, and moments, diagonal in turned axes or full."""
    com, mass = numbers(element, "pos", 3), number(element, "mass")
    quat = read_quaternion(element, compiler.degree, compiler.eulerseq)
    rot = None if quat is None else quaternion.to_matrix(quat)
    if "fullinertia" in element.attrib:
        if quat is not None or "diaginertia" in element.attrib:
            raise element.error("'fullinertia' goes with neither an orientation nor 'diaginertia'")
        xx, yy, zz, xy, xz, yz = numbers(element, "fullinertia", 6)
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if compiler.boundinertia > 0.0:
            J = _raised(J, compiler.boundinertia)
    else:
        J = np.diag(numbers(element, "diaginertia", 3, (0.0, 0.0, 0.0)))
    inertia = SpatialInertia.from_com(mass, com, J, rot)
    _check_finite(inertia, element)
    return inertia


def set_total_mass(inertias: list[SpatialInertia], total: float) -> list[SpatialInertia]:
    """All bodies scaled so that together they weigh `total` [kg]; the world is the first."""
    now = sum(float(inertia.mass) for inertia in inertias[1:])
    factor = total / max(now, _MIN_TOTAL)
    return [inertias[0], *(inertia.scaled(factor) for inertia in inertias[1:])]


def _raised(J: np.ndarray, least: float) -> np.ndarray:
    moments, axes = np.linalg.eigh(J)
    return J if moments[0] >= least else axes @ np.diag(np.maximum(moments, least)) @ axes.T


def _check_finite(inertia: SpatialInertia, element: Element) -> None:
    if not all(np.isfinite(x).all() for x in (inertia.mass, inertia.h, inertia.J)):
        raise element.error("mass, position and inertia together exceed the range of numbers")


def geom_inertia(geom: Geom, reporter: Reporter) -> SpatialInertia:
    """Inertia about the body frame; nothing for planes and for geoms without mass.

    The mass is given, or density times volume (area for a shell).
    """
    element = geom.element
    shell = boolean(element, "shellinertia", False)
    density = number(element, "density", 1000.0)
    mass = number(element, "mass") if "mass" in element.attrib else None
    if geom.kind == "plane" or (density == 0.0 if mass is None else mass == 0.0):
        return SpatialInertia.zero()
    com = np.zeros(3)
    if geom.kind in ("mesh", "sdf"):
        assert geom.mesh is not None
        if shell:
            raise element.error("'shellinertia' of a mesh belongs in its asset: inertia='shell'")
        if geom.kind == "sdf":
            reporter.note(element, "approximate", "an sdf weighs as its mesh does", "motion")
        mesh = geom.mesh.mass()
        volume, com, J = mesh.volume, mesh.com, mesh.J / mesh.volume
    else:
        kind = "box" if geom.kind == "hfield" else geom.kind
        size = geom.size if geom.hfield is None else geom.hfield.box
        volume = area_of(kind, size) if shell else volume_of(kind, size)
        J = np.diag(shell_moments(kind, size) if shell else solid_moments(kind, size))
    if mass is None:
        mass = density * volume
    elif volume <= SMALL:
        return SpatialInertia.zero()
    if mass < 0.0:
        raise element.error(f"the mass is {mass:.6g} kg; it must not be negative")
    if mass <= SMALL:
        return SpatialInertia.zero()
    if not np.isfinite(mass * J).all():
        raise element.error("mass and size together exceed the range of numbers")
    return SpatialInertia.from_com(mass, com, mass * J).moved(geom.pose)


PI = float(np.pi)


def _three(size: Sequence[float]) -> Array:
    """Three sizes, padded by zeros, as an array: its arithmetic gives inf where floats raise."""
    return np.array((*size, 0.0, 0.0, 0.0)[:3], dtype=np.float64)


def volume_of(kind: str, size: Sequence[float]) -> float:
    """Volume [m³]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return 4.0 / 3.0 * PI * a**3
    if kind == "capsule":
        return PI * (a * a * 2.0 * b + 4.0 / 3.0 * a**3)
    if kind == "cylinder":
        return PI * a * a * 2.0 * b
    if kind == "ellipsoid":
        return 4.0 / 3.0 * PI * a * b * c
    return 8.0 * a * b * c


def area_of(kind: str, size: Sequence[float]) -> float:
    """Surface [m²]; of an ellipsoid by Thomsen's formula, as MuJoCo has it."""
    a, b, c = _three(size)
    if kind == "sphere":
        return 4.0 * PI * a * a
    if kind == "capsule":
        return 4.0 * PI * a * a + 4.0 * PI * a * b
    if kind == "cylinder":
        return 2.0 * PI * a * a + 4.0 * PI * a * b
    if kind == "ellipsoid":
        p = 1.6075
        mean = ((a * b) ** p + (b * c) ** p + (c * a) ** p) / 3.0
        return 4.0 * PI * mean ** (1.0 / p)
    return 8.0 * (a * b + b * c + c * a)


def solid_moments(kind: str, size: Sequence[float]) -> Array:
    """Principal moments (3,) of a solid of mass 1 kg [kg m²]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return np.full(3, 0.4 * a * a)
    if kind == "cylinder":
        across = (3.0 * a * a + 4.0 * b * b) / 12.0
        return np.array([across, across, 0.5 * a * a])
    if kind == "capsule":
        ball = 4.0 * a / (4.0 * a + 6.0 * b)  # share of the two half balls
        rod = 1.0 - ball
        # A half ball's centre of mass is 3r/8 above its flat face: its moment moves out from there.
        across = rod * (3.0 * a * a + 4.0 * b * b) / 12.0 + ball * (
            0.4 * a * a + b * b + 0.75 * a * b
        )
        return np.array([across, across, 0.5 * rod * a * a + 0.4 * ball * a * a])
    squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    return squares / (5.0 if kind == "ellipsoid" else 3.0)


def shell_moments(kind: str, size: Sequence[float]) -> Array:
    """Principal moments (3,) of a thin shell of mass 1 kg [kg m²]."""
    a, b, c = _three(size)
    if kind == "sphere":
        return np.full(3, 2.0 / 3.0 * a * a)
    if kind == "cylinder":
        lid = a / (2.0 * a + 4.0 * b)  # share of one of the two lids
        side = 1.0 - 2.0 * lid
        across = side * (6.0 * a * a + 4.0 * b * b) / 12.0 + 2.0 * lid * (a * a / 4.0 + b * b)
        return np.array([across, across, side * a * a + lid * a * a])
    if kind == "capsule":
        ball = a / (a + b)  # 4πr² of 4πr² + 4πrh
        side = 1.0 - ball
        # A half shell's centre of mass is r/2 above its rim.
        out = (b + 0.5 * a) ** 2 - 0.25 * a * a
        across = side * (6.0 * a * a + 4.0 * b * b) / 12.0 + ball * (2.0 / 3.0 * a * a + out)
        return np.array([across, across, side * a * a + ball * 2.0 / 3.0 * a * a])
    if kind == "ellipsoid":
        return _ellipsoid_shell(np.array([a, b, c]))
    return _box_shell(a, b, c)


def _ellipsoid_shell(axes: Array) -> Array:
    """The difference of two solid ellipsoids whose axes differ by a micrometre, as in MuJoCo."""
    grown = axes + 1e-6
    inner, outer = float(np.prod(axes)), float(np.prod(grown))
    second = (outer * grown**2 - inner * axes**2) / (outer - inner) / 5.0  # ∫x² over the shell
    return second.sum() - second


def _box_shell(a: float, b: float, c: float) -> Array:
    """Six plates. A plate across x has second moments a² along x, b²/3 and c²/3 in its plane."""
    half = np.array([a, b, c])
    share = np.array([b * c, c * a, a * b]) / (b * c + c * a + a * b)  # of the pair across x, y, z
    second = half**2 * (share + (1.0 - share) / 3.0)
    return second.sum() - second
