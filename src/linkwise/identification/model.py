"""The linear model of joint forces in everything that is identified.

    τ = Y(q, v, v̇) π + N v̇ + d v + f sign(v) + k (q − rest) + offset

One column for each number: ten for the inertia of a body, one for each joint velocity of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import names
from linkwise.codegen.scalar.parameters import inertia
from linkwise.dynamics.passive import passive
from linkwise.dynamics.regressor import PARAMETERS, inertial_parameters, regressor
from linkwise.errors import ModelError, unknown_name
from linkwise.identification import pseudo_inertia
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

OF_JOINTS = {
    "armature": "N",
    "damping": "d",
    "friction": "f",
    "stiffness": "k",
    "offset": "offset",
}
"""What is identified of each joint velocity, and its symbol."""

KINDS = ("inertia", *OF_JOINTS)

GAIN = "gain"
"""What is identified of motors whose currents were measured (`gain.py`)."""

STILL = 1e-3
"""Speed [m/s or rad/s] below which the direction of friction is not known."""


def checked_kinds(given: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """The kinds of numbers that are identified, in the order of the columns; whether gains are."""
    kinds = names(given, "parameters")
    for kind in kinds:
        if kind not in (*KINDS, GAIN):
            # all names are listed: "damping" is similar to "spring", and not what is meant
            known = (*KINDS, GAIN)
            raise unknown_name("parameter", kind, known, owner="lw.identify", compare=False)
    if not kinds:
        raise ModelError("parameters is empty; name what to identify, such as ['inertia'].")
    return tuple(kind for kind in KINDS if kind in kinds), GAIN in kinds


def column_names(mech: Mechanism, kinds: Sequence[str]) -> list[str]:
    """A name for each column."""
    result = list[str]()
    if "inertia" in kinds:
        result += [f"{p}({body.name})" for body in mech.bodies for p in PARAMETERS]
    for kind in (k for k in kinds if k != "inertia"):
        result += [f"{OF_JOINTS[kind]}({name})" for name in mech.velocity_names]
    return result


def design(mech: Mechanism, kinds: Sequence[str], q: Array, v: Array, vdot: Array) -> Array:
    """The columns at many states (samples, nv, columns)."""
    parts = list[Array]()
    if "inertia" in kinds:
        parts.append(regressor(mech, q, v, vdot, loops="open"))  # v̇ is measured
    springs = passive(mech)
    per_joint = {
        "armature": vdot,
        "damping": v,
        "friction": np.sign(v),
        "stiffness": q[:, springs.at] - springs.rest,
        "offset": np.ones_like(v),
    }
    for kind in (k for k in kinds if k != "inertia"):
        parts.append(per_joint[kind][:, :, None] * np.eye(mech.nv))
    return np.concatenate([np.zeros((*v.shape, 0)), *parts], axis=-1)


def nominal(mech: Mechanism, kinds: Sequence[str]) -> Array:
    """The numbers of the mechanism as it is, one for each column."""
    values = {
        "inertia": inertial_parameters(mech),
        "armature": mech.armature,
        "damping": mech.damping,
        "friction": mech.friction,
        "stiffness": mech.stiffness,
        "offset": np.zeros(mech.nv),
    }
    return np.concatenate([np.zeros(0), *(values[kind] for kind in kinds)])


def fixed_forces(mech: Mechanism, kinds: Sequence[str], *state: Array) -> Array:
    """Joint forces (samples, nv) of everything that is not identified, as the mechanism has it."""
    others = [kind for kind in KINDS if kind not in kinds and kind != "offset"]
    return (
        design(mech, others, *state) @ nominal(mech, others) if others else np.zeros_like(state[1])
    )


def with_numbers(mech: Mechanism, kinds: Sequence[str], values: Array) -> Mechanism:
    """The mechanism with other numbers. Inertia of nodes becomes part of their bodies."""
    nv, start, bodies = mech.nv, 0, list(mech.bodies)
    nodes = mech.nodes
    if "inertia" in kinds:
        start = 10 * mech.n_bodies
        bodies = [
            replace(body, inertia=inertia(values[10 * k : 10 * k + 10]))
            for k, body in enumerate(bodies)
        ]
        nodes = tuple(
            replace(node, inertia=None) if node.body in mech.body_index and node.inertia else node
            for node in nodes
        )
    for kind in (k for k in kinds if k not in ("inertia", "offset")):
        part = values[start + nv * [x for x in kinds if x != "inertia"].index(kind) :][:nv]
        for k, body in enumerate(bodies):
            each = tuple(part[mech.v_slice(body.hinge_name)].tolist())
            if each:
                drive = replace(body.drive, **{kind: each})
                if kind == "armature":
                    drive = replace(drive, rotor_inertia=0.0)
                bodies[k] = replace(body, drive=drive)
    return replaced(mech, bodies=tuple(bodies), nodes=nodes)


@dataclass(frozen=True, slots=True, eq=False)
class FreeNumbers:
    """Coordinates in which every point is a mechanism: no bounds are left.

    Inertias are Cholesky coordinates of their pseudo-inertia (`pseudo_inertia.py`), numbers that
    must not be negative are squares, offsets are themselves. Squares have no slope at zero; with
    `straight`, numbers of joints are multiples of `unit` instead, and have bounds.

    Attributes:
        start: The numbers of the mechanism, one for each column.
        bodies: Bodies whose inertia counts.
        joints: Columns that are not inertia.
        signed: Which of these are no squares.
        unit: By what coordinates of these are multiplied.
        bounded: Which coordinates must not be negative.
        first: The coordinates of `start`, with what is zero made a little larger.
    """

    start: Array
    bodies: list[int]
    joints: NDArray[np.intp]
    signed: NDArray[np.bool_]
    unit: Array
    bounded: NDArray[np.bool_]
    first: Array

    @classmethod
    def of(cls, mech: Mechanism, kinds: Sequence[str], *, straight: bool = False) -> FreeNumbers:
        """The coordinates for what is identified of a mechanism."""
        start = nominal(mech, kinds)
        n = 10 * mech.n_bodies if "inertia" in kinds else 0
        bodies = [k for k in range(n // 10) if start[10 * k : 10 * k + 10].any()]
        joints = np.arange(n, len(start))
        signed = np.array([x.startswith("offset") for x in column_names(mech, kinds)[n:]], bool)
        given, unit = start[joints], np.ones(len(joints))
        bounded = np.zeros(10 * len(bodies) + len(joints), dtype=np.bool_)
        if straight:
            bounded[10 * len(bodies) :] = ~signed
            unit, signed = np.where(given != 0.0, np.abs(given), 1.0), np.ones_like(signed)
        least = 0.05 * np.maximum(np.abs(start[joints]), 1e-3)
        first = np.concatenate(
            [
                np.zeros(0),
                *(pseudo_inertia.coordinates(start[10 * k : 10 * k + 10]) for k in bodies),
                np.where(signed, given / unit, np.sqrt(np.maximum(given, least))),
            ]
        )
        return cls(start, bodies, joints, signed, unit, bounded, first)

    def numbers(self, x: Array) -> tuple[Array, Array]:
        """The numbers at coordinates x, one for each column, and their derivatives by x."""
        values, slopes = self.start.copy(), np.zeros((len(self.start), len(x)))
        end = 10 * len(self.bodies)
        for i, k in enumerate(self.bodies):
            rows, columns = slice(10 * k, 10 * k + 10), slice(10 * i, 10 * i + 10)
            values[rows], slopes[rows, columns] = pseudo_inertia.parameters(x[columns])
        rest = x[end:]
        values[self.joints] = np.where(self.signed, self.unit * rest, rest**2)
        slope = np.where(self.signed, self.unit, 2.0 * rest)
        slopes[self.joints, end + np.arange(len(rest))] = slope
        return values, slopes

    def bending(self, x: Array, slope: Array) -> Array:
        """Second derivatives (n, n) by the coordinates of slope* numbers."""
        out, end = np.zeros((len(x), len(x))), 10 * len(self.bodies)
        for k, columns in self._places():
            out[columns, columns] = pseudo_inertia.bending(x[columns], slope[10 * k : 10 * k + 10])
        rest = np.arange(end, len(x))
        out[rest, rest] = np.where(self.signed, 0.0, 2.0 * slope[self.joints])
        return out

    def slope_by_numbers(self, slopes: Array, slope: Array) -> Array:
        """A slope by the coordinates as one by the numbers, of which `slopes` are derivatives."""
        out, end = np.zeros(len(self.start)), 10 * len(self.bodies)
        for k, columns in self._places():
            rows = slice(10 * k, 10 * k + 10)
            out[rows] = np.linalg.solve(slopes[rows, columns].T, slope[columns])
        rest = np.arange(end, len(slope))
        out[self.joints] = slope[end:] / slopes[self.joints, rest]
        return out

    def share_to_border(self, x: Array, step: Array) -> float:
        """By what share of (∂ numbers / ∂x) step a body becomes flat, or a square zero."""
        shares, end = [np.inf], 10 * len(self.bodies)
        for _, columns in self._places():
            ten, slopes = pseudo_inertia.parameters(x[columns])
            shares.append(pseudo_inertia.share_to_flat(ten, slopes @ step[columns]))
        falls = ~self.signed & (step[end:] * x[end:] < 0.0)
        shares += (-0.5 * x[end:][falls] / step[end:][falls]).tolist()
        return float(min(shares))

    def along(self, x: Array, step: Array) -> Array:
        """Coordinates of numbers + (∂ numbers / ∂x) step, which have to be inside the border."""
        out, end = x + step, 10 * len(self.bodies)
        for _, columns in self._places():
            ten, slopes = pseudo_inertia.parameters(x[columns])
            out[columns] = pseudo_inertia.exact_coordinates(ten + slopes @ step[columns])
        squares = np.sqrt(np.maximum(x[end:] * (x[end:] + 2.0 * step[end:]), 0.0))
        out[end:] = np.where(self.signed, out[end:], squares)
        return out

    def sizes(self, x: Array) -> Array:
        """For each coordinate of an inertia, a change that is large (10 bodies,)."""
        return np.concatenate(
            [np.zeros(0), *(pseudo_inertia.sizes(x[columns]) for _, columns in self._places())]
        )

    def _places(self) -> list[tuple[int, slice]]:
        """The bodies whose inertia counts, and their coordinates."""
        return [(k, slice(10 * i, 10 * i + 10)) for i, k in enumerate(self.bodies)]
