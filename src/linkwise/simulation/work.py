"""Work along a recorded motion, and whether its energy adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kinematics import node_velocity
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ShapeError
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.simulation.channel import Channel
from linkwise.simulation.report import EnergyFlow, Report
from linkwise.simulation.stiff_drive import remedy
from linkwise.spatial.array import Array, ArrayLike, floats

_ABOUT = {
    "joints": "work of joint forces",
    "passive": "work of dampers, springs and carried weight",
    "forces": "work of forces from outside",
    "steps": "energy that steps of order one add or take",
}


ALWAYS = ("joints", "passive", "forces")
"""Whose work every recording has."""

_INSIDE = ("limits", "actuators", "joint_friction", "steps")
"""Others who push one body against another, not against the ground."""


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """Works along a motion.

    Attributes:
        channels: "work.NAME" of each, and "energy.balance": energy since the start that no work
            accounts for.
        uncounted: Names of those that did work which is not known.
        error: How far the works may be off together [J].
        outside: Whether others than joints, their ends, dampers and springs acted.
    """

    channels: tuple[Channel, ...]
    uncounted: tuple[str, ...]
    error: float
    outside: bool


def budget(
    mech: Mechanism,
    t: Array,
    states: tuple[Array, Array, Array],
    total: Array,
    *,
    works: Mapping[str, Array | None],
    error: float,
    forces: Mapping[str, Array],
    forces_frame: Frame,
    held: bool,
    passive: bool,
) -> Budget:
    """Works that are given, and those that are not by quadrature over the records.

    Args:
        works: Work since the first record (k,) [J] by name; None for one that is not known.
        held: Whether joint forces act unchanged from record to record.
    """
    q, v, tau = states
    works_by_name, uncounted = dict[str, Array](), list[str]()
    for name in dict.fromkeys((*ALWAYS, *works)):
        if name in works:
            known = works[name]
            if known is None:
                uncounted.append(name)
            else:
                works_by_name[name] = known
            continue
        work = Work(np.zeros(len(t)))
        if name == "joints":
            work = joint_work(mech, t, q, v, tau, held=held)
        elif name == "passive" and passive:
            work = passive_work(mech, t, q, v)
        elif name == "forces" and forces:
            work = outside_work(mech, t, q, v, forces, forces_frame)
        works_by_name[name], error = work.values, error + work.error
    left = total - total[0] - sum(works_by_name.values(), np.zeros(len(t)))
    words = "energy since the start that no work accounts for"
    channels = [
        Channel(f"work.{name}", "J", _ABOUT.get(name, f"work of {name}"), values)
        for name, values in works_by_name.items()
    ]
    others = [*(set(works_by_name) - {*_ABOUT, *_INSIDE}), *uncounted]
    outside = bool(others) or bool("forces" in works_by_name and works_by_name["forces"].any())
    outside = outside or any(force.any() for force in forces.values())
    channels.append(Channel("energy.balance", "J", words, left))
    return Budget(tuple(channels), tuple(uncounted), error, outside)


def checked_works(works: Mapping[str, ArrayLike | None], records: int) -> dict[str, Array | None]:
    """Works since the first record, from works up to each record."""
    checked = dict[str, Array | None]()
    for name, work in works.items():
        values = None if work is None else floats(work, f"work {name!r}")
        if values is not None and values.shape != (records,):
            raise ShapeError(
                f"work {name!r} has the shape {values.shape}; it is ({records},), the work up to "
                "each record [J]."
            )
        checked[name] = values if values is None else values - values[0]
    return checked


def checked_energies(energy: tuple[ArrayLike, ArrayLike], records: int) -> tuple[Array, Array]:
    """Kinetic and potential energy at each record."""
    both = floats(energy, "energy")
    if both.shape != (2, records):
        raise ShapeError(
            f"energy has the shape {both.shape}; it is (2, {records}), the kinetic and the "
            "potential energy at each record [J]."
        )
    return both[0], both[1]


def work_names(works: Mapping[str, Array | None]) -> tuple[str, ...]:
    """Names of the channels of a budget with such works."""
    names = [x for x in dict.fromkeys((*ALWAYS, *works)) if x not in works or works[x] is not None]
    return (*(f"work.{name}" for name in names), "energy.balance")


ALLOWED = 0.1
"""Part of the energy that was exchanged which may be missing without a warning."""

SMALL = 1e-6
"""A height [m] of the whole mechanism: less energy than lifting it by this is not looked at."""


def adds_up(flow: EnergyFlow, mech: Mechanism, error: float = 0.0) -> bool:
    """Whether what is missing is small, or not known.

    The drift of energy, less what the works are not known to, is compared with the energy that was
    exchanged: the largest kinetic energy or work, whichever is larger.

    Args:
        error: How far the works may be off [J].
    """
    floor = SMALL * mech.total_mass * max(float(np.linalg.norm(mech.gravity)), 1.0)
    return not flow.drift - error > ALLOWED * flow.exchanged + floor


def energy_lost(report: Report, mech: Mechanism) -> str:
    """What to warn of, or "" where the energy adds up, or is not known to."""
    flow, error = report.flow, report.notes.work_error
    if not np.isfinite(report.drift) or adds_up(flow, mech, error):
        return ""
    missing, exchanged = report.drift - error, flow.exchanged
    by = report.integrator
    if np.isfinite(report.step):
        what = f"{by!r} in steps of {report.step:.3g} s"
        do = f"Try step={0.1 * report.step:.1g}, or integrator='adaptive'." + remedy(mech, by)
    else:
        what, do = f"{by!r}", "Use smaller rtol and atol."
    return (
        f"the energy of {report.name!r} does not add up: {missing:.3g} J appeared or were lost by "
        f"{what}, {100.0 * missing / exchanged:.3g} % of the {exchanged:.3g} J that were "
        f"exchanged. The motion is not the mechanism's. {do}"
    )


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

    The same with every second record, and with every fourth, estimates the error: their
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
    """Work of dampers, springs and carried weight: −∫ v · damping v dt − Δ stored energy."""
    damped = Work(np.zeros(len(t)))
    if mech.damping.any():
        damped = integrated(t, -(mech.damping * v * v).sum(axis=-1))
    stored = dampers_and_springs(mech).energy(q)
    return Work(damped.values - (stored - stored[0]), damped.error)


def outside_work(
    mech: Mechanism, t: Array, q: Array, v: Array, forces: Mapping[str, Array], forces_frame: Frame
) -> Work:
    """∫ Σ f · V dt of forces at nodes."""
    power = np.zeros(len(t))
    for node, force in forces.items():
        power = power + (force * node_velocity(mech, q, v, node, frame=forces_frame)).sum(axis=-1)
    return integrated(t, power) if power.any() else Work(power)


@once_per_mechanism
def plain_velocities(mech: Mechanism) -> NDArray[np.bool_]:
    """Which entries of v are rates of entries of q (nv,)."""
    parts = [np.full(body.hinge.nv, is_plain(body.hinge)) for body in mech.bodies]
    return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])
