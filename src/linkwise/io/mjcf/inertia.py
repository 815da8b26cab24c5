"""What does each body weigh: by its `<inertial>`, by its geoms, and after the compiler's rules?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from linkwise.io.mjcf.compiler import Compiler
from linkwise.io.mjcf.geom import SMALL, Geom, fitted, geom_inertia
from linkwise.io.mjcf.orientation import read_quaternion
from linkwise.io.mjcf.tree import BodyRecord
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, number, numbers
from linkwise.spatial import quaternion
from linkwise.spatial.inertia import SpatialInertia

_MIN_TOTAL: Final = 1e-15


@dataclass(slots=True)
class Inference:
    """Whether the geoms of a body decide its inertia."""

    compiler: Compiler
    reporter: Reporter

    def wanted(self, record: BodyRecord) -> bool:
        """True where geoms count: always, or unless the body has an `<inertial>`."""
        rule = self.compiler.inertiafromgeom
        return rule == "true" or (rule == "auto" and record.inertial is None)

    def body(self, record: BodyRecord, geoms: list[Geom]) -> SpatialInertia:
        """Inertia of a body about its frame, before the total mass is set."""
        found: SpatialInertia | None = None
        if self.wanted(record):
            found = self._from_geoms(geoms)
        if found is None and record.inertial is not None:
            found = read_inertial(record.inertial, self.compiler)
        if found is None:
            if self.compiler.boundmass <= 0.0 and self.compiler.boundinertia <= 0.0:
                return SpatialInertia.zero()
            # Without any, MuJoCo puts the inertial frame at the body's own pose in its parent.
            found = SpatialInertia.from_com(0.0, record.written.p)
            return self._bounded(record, found, record.written.p)
        return self._bounded(record, found, found.com)

    def _from_geoms(self, geoms: list[Geom]) -> SpatialInertia | None:
        low, high = self.compiler.inertiagrouprange
        total: SpatialInertia | None = None
        for geom in geoms:
            if low <= geom.group <= high:
                part = geom_inertia(fitted(geom, self.compiler), self.reporter)
                if float(part.mass) > SMALL:
                    total = part if total is None else total + part
        return total

    def _bounded(self, record: BodyRecord, inertia: SpatialInertia, com: object) -> SpatialInertia:
        """At least the bounds of the compiler; impossible moments balanced, if it says so."""
        least_mass, least = self.compiler.boundmass, self.compiler.boundinertia
        if least_mass <= 0.0 and least <= 0.0 and not self.compiler.balanceinertia:
            return inertia
        _check_finite(inertia, record.element)
        moments, axes = inertia.principal()
        mass, changed = float(inertia.mass), False
        if mass < least_mass:
            mass, changed = least_mass, True
        if (moments < least).any():
            moments, changed = np.maximum(moments, least), True
        if self.compiler.balanceinertia and moments[0] + moments[1] < moments[2]:
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
