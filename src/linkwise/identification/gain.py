"""Constants of motors: joint forces from currents, and what fixes their scale.

    τ_j = g_j u_j,      g_j u_j = W_j b + k_j

with the gain g of a motor and its gear together: torque constant times ratio. All forces b that are
identified, times any factor, fit the same currents with gains times this factor. Known forces k fix
it: those of inertias, springs or armatures that are not identified, from outside, or a joint whose
force is measured. Without any, only ratios are known: one gain then is the unit, the reference, and

    b / g_ref,   g_j / g_ref

are what is identified. Which these are shows at random states, as the kernel of the equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.actuator import Actuator
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

SMALL = 1e-9
"""Singular values below this part of the largest are zero."""

EQUAL = 1e-6
"""Parts of a direction in the kernel that differ by less are equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """Gains of the rows of the equations.

    Attributes:
        rows: Those with currents.
        names: The gain of each, in words.
        nominal: Its value in the mechanism.
        reference: For each, itself known or not: rows whose gain is the unit.
        unit: For each unknown, base parameters and then gains that are no reference: the place in
            `names` of the gain in which it is measured, or -1.
    """

    rows: list[int]
    names: list[str]
    nominal: Array
    reference: list[int]
    unit: list[int]

    @property
    def free(self) -> list[int]:
        """Places in `names` of the gains that are found."""
        return [i for i in range(len(self.rows)) if i not in self.reference]

    def in_units(self, names: list[str]) -> list[str]:
        """Names of unknowns, over their unit."""
        pairs = zip(names, self.unit, strict=True)
        return [x if i < 0 else f"({x}) / {self.names[i]}" for x, i in pairs]

    def scales(self, x: Array, nominal: Array, W: Array) -> Array:
        """For each unknown, what its unit is multiplied by.

        So that parameters are as near to the nominal ones as they can be: forces do not tell.
        """
        out = np.ones(len(x))
        if not self.reference:
            return out
        load = np.linalg.norm(W, axis=(0, 1))
        for i in self.reference:
            some = np.flatnonzero(np.array(self.unit) == i)
            inside = some[some < len(nominal)]
            given, near = x[inside] * load[inside], nominal[inside] * load[inside]
            factor = float(given @ near) / max(float(given @ given), 1e-300)
            out[some] = factor if factor else 1.0
        return out

    @property
    def sizes(self) -> Array:
        """By what each unknown is divided."""
        return np.array([1.0 if i < 0 else self.nominal[i] for i in self.unit])


def nominal_gain(mech: Mechanism, place: int) -> float:
    """Joint force per command: that of the only motor of a hinge, by its place in v, else 1."""
    motor = _motor(mech, place)
    return 1.0 if motor is None else motor.joints[0][1] * motor.gain[0]


def with_gains(mech: Mechanism, places: list[int], gains: Gains, share: Array) -> Mechanism:
    """The mechanism whose motors have these gains (rows,), where a hinge has one motor."""
    motors = list(mech.actuators)
    for row in gains.rows:
        motor = _motor(mech, places[row])
        if motor is not None:
            gain = (float(share[row]) / motor.joints[0][1], 0.0, 0.0)
            motors[motors.index(motor)] = replace(motor, gain=gain)
    return replaced(mech, actuators=tuple(motors)) if gains.rows else mech


def _motor(mech: Mechanism, place: int) -> Actuator | None:
    """The only motor, τ = c g u, that moves this joint velocity."""
    name = mech.velocity_names[place]
    on = [x for x in mech.actuators if any(joint == name for joint, _ in x.joints)]
    if len(on) != 1 or len(on[0].joints) != 1:
        return None
    c, (gain, *rest) = on[0].joints[0][1], on[0].gain
    plain = on[0].dynamics == "none" and not any((*rest, *on[0].bias))
    return on[0] if plain and c * gain != 0.0 else None


def gains_of(W: Array, k: Array, rows: list[int], names: list[str], nominal: Array) -> Gains:
    """Which gains are references, from random states: W (states, rows, count), k (states, rows)."""
    rng = np.random.default_rng(1)
    states, all_rows, count = (int(x) for x in W.shape)
    b: Array = rng.uniform(0.5, 2.0, count) * np.sign(rng.standard_normal(count))
    b = b / np.maximum(np.linalg.norm(W.reshape(states * all_rows, count), axis=0), 1e-300)
    load = float(np.sqrt(np.mean((W @ b) ** 2))) or 1.0
    share = np.abs(k).max(axis=0, initial=0.0)
    k = np.where(share > 0.0, k / np.maximum(share, 1e-300) * load, 0.0)
    g = rng.uniform(0.5, 2.0, len(rows))
    A = np.zeros((states, all_rows, count + len(rows)))
    A[..., :count] = W
    force: Array = W @ b + k
    for i, row in enumerate(rows):
        A[:, row, :count] /= g[i]
        A[:, row, count + i] = -force[:, row] / g[i] ** 2
    A = A.reshape(states * all_rows, -1)
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    _, values, right = np.linalg.svd(A / scale, full_matrices=False)
    kernel = right[values <= SMALL * values[0]] / scale
    reference, unit = list[int](), [-1] * (count + len(rows))
    left = kernel[:, count:] / g
    for _ in range(len(kernel)):
        at = int(np.argmax(np.abs(left).max(axis=0) > EQUAL * np.abs(left).max(initial=1e-300)))
        most = int(np.argmax(np.abs(left[:, at])))
        left = left - np.outer(left[:, at] / left[most, at], left[most])
        reference.append(at)
    picked = kernel[:, [count + i for i in reference]] / g[reference]
    ways: Array = np.asarray(np.linalg.solve(picked, kernel), dtype=np.float64)
    for at, share in zip(reference, ways / np.concatenate([b, g]), strict=True):
        scaled = np.abs(share - 1.0) < EQUAL
        if not (scaled | (np.abs(share) < EQUAL)).all():
            raise ModelError(
                f"{names[at]} cannot be separated from the parameters that are identified, nor is "
                "it their scale alone. Give it: leave its hinge out of `commanded`."
            )
        for i in np.flatnonzero(scaled):
            unit[i] = at
    keep = [i for i in range(len(unit)) if i < count or i - count not in reference]
    return Gains(rows, names, nominal, reference, [unit[i] for i in keep])
