"""Work done along a recorded motion, from power at the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kinematics import node_velocity
from linkwise.dynamics.quantity import Frame
from linkwise.model.hinges.plain import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

Rows: TypeAlias = NDArray[np.intp]

APART = 0.25
"""Records nearer together than this part of the usual spacing are no points of a cubic."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Work since the first record.

    Attributes:
        values: At each record (k,) [J].
        error: How far the quadrature may be off [J]; 0 where it is exact.
    """

    values: Array
    error: float = 0.0


def integrated(t: Array, power: Array) -> Work:
    """∫ power dt from the first record to each: cubics through four records in a row.

    How far it may be off is told by the same with every second record, and with every fourth: their
    differences d_2, d_4 show the order p = log₂(d_4 / d_2), at most four, by which the errors fall,
    and the error is twice d_2 / (2ᵖ − 1). For a power that jumps p is small, and the error large.
    """
    points = _points(t)
    levels = [_cumulative(t, power, points[::every]) for every in (1, 2, 4)]
    last = int(points[:: 4 if len(points) > 8 else 2][-1]) + 1  # beyond it, the rough ones guess
    differences = [float(np.abs(levels[0] - x)[:last].max(initial=0.0)) for x in levels[1:]]
    first, second = differences
    if len(points) <= 8 or first == 0.0:
        return Work(
            levels[0], first if len(points) > 2 else float(np.abs(levels[0]).max(initial=0.0))
        )
    order = min(max(np.log2(second / first), 0.5), 4.0) if second > 0.0 else 0.5
    return Work(levels[0], 2.0 * first / (2.0**order - 1.0))


def _points(t: Array) -> Rows:
    """Indices of records that are well apart: an event may stand right beside another record."""
    if len(t) < 3:
        return np.arange(len(t))
    least = APART * float(np.median(np.diff(t)))
    kept, last = [0], t[0]
    for i in range(1, len(t)):
        if t[i] - last >= least:
            kept.append(i)
            last = t[i]
    return np.array(kept)


def _cumulative(t: Array, power: Array, points: Rows) -> Array:
    """Integral up to each time of the piecewise polynomial through some of the records.

    With times shifted and scaled to x in [0, 1] over a stencil, Σ_j w_j x_jⁿ = ∫ xⁿ dx for
    n = 0 … m gives the weights w_j of an interval.
    """
    if len(t) < 2 or len(points) < 2:
        return np.zeros(len(t))
    size = min(4, len(points))
    place = np.searchsorted(t[points], t[:-1], side="right") - 1
    start = np.clip(place - (size // 2 - 1), 0, len(points) - size)
    chosen = points[start[:, None] + np.arange(size)]  # (k − 1, size)
    origin = t[chosen[:, 0]][:, None]
    length = t[chosen[:, -1]][:, None] - origin
    x = (t[chosen] - origin) / length
    a, b = (t[:-1, None] - origin) / length, (t[1:, None] - origin) / length
    n = np.arange(1, size + 1)
    moments = (b**n - a**n) / n
    powers = x[:, None, :] ** (n - 1)[None, :, None]
    weights = np.linalg.solve(powers, moments[..., None])[..., 0]
    parts = length[:, 0] * (weights * power[chosen]).sum(axis=-1)
    return np.concatenate([[0.0], np.cumsum(parts)])


def joint_work(mech: Mechanism, t: Array, q: Array, v: Array, tau: Array, *, held: bool) -> Work:
    """∫ τ · v dt.

    Args:
        held: Whether the forces of each record act unchanged until the next. Then it is τ · Δq,
            exact where v is the rate of q.
    """
    if not tau.any() or len(t) < 2:
        return Work(np.zeros(len(t)))
    if not held:
        return integrated(t, (tau * v).sum(axis=-1))
    gone = mech.difference(q[:-1], q[1:])
    parts = tau[:-1] * gone
    other = ~plain_velocities(mech)
    middle = 0.5 * np.diff(t)[:, None] * (v[:-1] + v[1:])
    off = float(np.abs(tau[:-1] * (gone - middle))[:, other].sum())
    return Work(np.concatenate([[0.0], np.cumsum(parts.sum(axis=-1))]), off)


def passive_work(mech: Mechanism, t: Array, q: Array, v: Array) -> Work:
    """Work of dampers and springs of the drives: −∫ v · damping v dt − Δ ½ k (q − rest)²."""
    damped = Work(np.zeros(len(t)))
    if mech.damping.any():
        damped = integrated(t, -(mech.damping * v * v).sum(axis=-1))
    stored = spring_energy(mech, q)
    return Work(damped.values - (stored - stored[0]), damped.error)


def spring_energy(mech: Mechanism, q: Array) -> Array:
    """½ Σ k (q − rest)² over the hinges whose v is the rate of q (...) [J]."""
    total = np.zeros(q.shape[:-1])
    for k, body in enumerate(mech.bodies):
        if not (is_plain(body.hinge) and body.hinge.nv):
            continue
        stiffness = body.drive.array("stiffness", body.hinge)
        if stiffness.any():
            part = q[..., int(mech.q_start[k]) : int(mech.q_start[k + 1])]
            off = part - body.drive.array("rest", body.hinge)
            total = total + 0.5 * (stiffness * off * off).sum(axis=-1)
    return total


def outside_work(
    mech: Mechanism, t: Array, q: Array, v: Array, forces: Mapping[str, Array], forces_frame: Frame
) -> Work:
    """∫ Σ f · V dt of forces at nodes."""
    power = np.zeros(len(t))
    for node, force in forces.items():
        power = power + (force * node_velocity(mech, q, v, node, frame=forces_frame)).sum(axis=-1)
    return integrated(t, power) if power.any() else Work(power)


def plain_velocities(mech: Mechanism) -> NDArray[np.bool_]:
    """Which entries of v are rates of entries of q (nv,)."""
    parts = [np.full(body.hinge.nv, is_plain(body.hinge)) for body in mech.bodies]
    return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
