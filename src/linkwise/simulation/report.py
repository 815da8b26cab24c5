"""The report of a recording: energy, momentum, loops, events, and what was not modelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from linkwise.simulation.channel import Channel, Event
from linkwise.spatial.array import Array

TOLD = 0.1
"""Compile times below this [s] are not reported."""

SHOWN = 6
"""Events, names and lines shown of a longer list."""


@dataclass(frozen=True, slots=True, eq=False)
class Notes:
    """What a report needs to know and cannot see in the channels.

    Attributes:
        not_modelled: What the mechanism has, or a user may expect, that did not act; one line each.
        uncounted: What did work that is not known, one line each; with any there is no drift of
            energy.
        work_error: How far the works may be off by their quadrature [J].
        weight: m g of the whole (3,) [N] where nothing but it acts from outside, so that momentum
            can be kept; else empty.
        worst_loop: Largest distance [m] and angle [rad] of loops after any step; NaN if unknown.
        added_loop: The same before projection: what one step adds.
        stabilization: How loops were kept closed; "" where there are none.
        stiffness: Since when adaptive steps were short to stay stable, in words; "" if never.
        wall: How long it took to compute [s], without compiling; NaN if unknown.
        compiling: How long it took to compile kernels for it [s].
    """

    not_modelled: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    work_error: float = 0.0
    weight: tuple[float, ...] = ()
    worst_loop: tuple[float, float] = (float("nan"), float("nan"))
    added_loop: tuple[float, float] = (float("nan"), float("nan"))
    stabilization: str = ""
    stiffness: str = ""
    wall: float = float("nan")
    compiling: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class EnergyFlow:
    """Where the energy of a motion comes from and goes to.

    Attributes:
        kinetic: Largest kinetic energy [J].
        works: Work done by each kind of force from the first record to the last [J].
        drift: Largest size of energy − energy at the start − works [J].
    """

    kinetic: float
    works: Mapping[str, float]
    drift: float

    @property
    def exchanged(self) -> float:
        """The largest kinetic energy or work [J]."""
        works = [abs(work) for work in self.works.values() if np.isfinite(work)]
        return max([self.kinetic, *works])


@np.errstate(over="ignore", invalid="ignore")  # values that are not finite are reported
def energy_flow(channels: Mapping[str, Channel]) -> EnergyFlow:
    """That of the channels of a motion; NaN for what they do not have."""
    of_works = [
        channels[name] for name in channels if name.startswith("work.")
    ]  # others stay unread
    works = {
        known.name.removeprefix("work."): float(known.values[-1] - known.values[0])
        for known in of_works
        if known.values.ndim == 1
    }
    kinetic, balance = (channels.get(x) for x in ("energy.kinetic", "energy.balance"))
    left = np.full(1, np.nan) if balance is None else balance.values
    return EnergyFlow(
        float("nan") if kinetic is None else float(kinetic.values.max()),
        works,
        float(np.abs(left - left[0]).max()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Energy, momentum, loops and events of a motion; `str()` prints it.

    Attributes:
        name: Name of the mechanism.
        start: Time of the first record [s].
        end: Time of the last [s].
        integrator: How time was stepped.
        step: The step [s]; NaN where it is no fixed one.
        steps: How many were made.
        records: How many records there are.
        energy: Kinetic and potential energy of the first and of the last record [J].
        kinetic: Largest kinetic energy [J].
        works: Work done by each kind of force from the first record to the last [J].
        drift: Largest size of energy − energy at the start − works [J]; NaN where it is not known.
        momentum: Largest linear [kg m/s] and angular momentum about the world's origin [kg m²/s].
        momentum_drift: How far linear momentum, weight · time taken off, and angular momentum
            about the centre of mass moved; NaN where the ground or others push.
        loop: Largest distance [m] and angle [rad] at loops and couplings.
        loop_place: The loop or coupling of the largest of these; "" if there is none.
        touch: Penetration, slip and residual of contacts, in words; "" without such.
        events: What happened, in order of time.
        stopped: Why it ended early; None where it did not.
        notes: What is not in the channels.
    """

    name: str
    start: float
    end: float
    integrator: str
    step: float
    steps: int
    records: int
    energy: tuple[float, float]
    kinetic: float
    works: Mapping[str, float]
    drift: float
    momentum: tuple[float, float]
    momentum_drift: tuple[float, float]
    loop: tuple[float, float]
    loop_place: str
    touch: str = ""
    events: tuple[Event, ...] = ()
    stopped: str | None = None
    notes: Notes = field(default_factory=Notes)

    @property
    def flow(self) -> EnergyFlow:
        """Where the energy comes from and goes to."""
        return EnergyFlow(self.kinetic, self.works, self.drift)

    @property
    def relative_drift(self) -> float:
        """The drift of energy as a part of the largest kinetic energy; 0 where nothing moved."""
        if self.kinetic > 0.0:
            return self.drift / self.kinetic
        return 0.0 if self.drift == 0.0 else float("nan")

    def __str__(self) -> str:
        lines = [self._headline(), *self._energy(), *self._momentum(), *self._loops()]
        lines += [_line("contacts", self.touch)] if self.touch else []
        lines += [_line("stiff", self.notes.stiffness)] if self.notes.stiffness else []
        lines += _listed("event", [str(event) for event in self.events])
        if self.stopped is not None:
            lines.append(_line("stopped", f"at {self.end:.6g} s: {self.stopped}"))
        lines += _listed("not modelled", list(self.notes.not_modelled))
        return "\n".join(lines)

    def _headline(self) -> str:
        steps = f"{self.steps} step{'' if self.steps == 1 else 's'}"
        if np.isfinite(self.step):
            steps += f" of {self.step:.3g} s"
        how = f", {self.integrator}" if self.integrator else ""
        wall = "" if np.isnan(self.notes.wall) else f", computed in {_seconds(self.notes.wall)}"
        if wall and self.notes.compiling >= TOLD:
            wall += f" after {_seconds(self.notes.compiling)} of compiling"
        return (
            f"{self.name}: {self.end - self.start:.6g} s in {steps}{how}; {self.records} "
            f"record{'' if self.records == 1 else 's'}{wall}"
        )

    def _energy(self) -> list[str]:
        first, last = self.energy
        lines = [
            _line(
                "energy",
                f"{first:.6g} J at the start, {last:.6g} J at the end; largest kinetic "
                f"energy {self.kinetic:.4g} J",
            )
        ]
        rounding = 1e-15 * (abs(first) + abs(last) + self.kinetic)
        moved = self.kinetic > 1e3 * rounding
        done = [
            f"{work:.6g} J by {_worker(name)}"
            for name, work in self.works.items()
            if abs(work) > rounding or np.isnan(rounding)
        ]
        if done:
            lines.append(_line("work", ", ".join(done)))
        if self.notes.uncounted:
            lines.append(_line("energy drift", "not known; work is not counted of "
                               + ", ".join(self.notes.uncounted)))  # fmt: skip
        elif np.isnan(self.drift):
            lines.append(_line("energy drift", "not known; the energies are no longer finite"))
        else:
            part = f", {self.relative_drift:.1e} of the largest kinetic energy"
            text = f"{self.drift:.1e} J{part if moved else '; nothing moved'}"
            if self.notes.work_error > 0.1 * self.drift:
                text += f"; of that, works are known to {self.notes.work_error:.1e} J"
            lines.append(_line("energy drift", text))
        return lines

    def _momentum(self) -> list[str]:
        linear, angular = self.momentum
        if np.isnan(linear):
            return []
        most = f"{linear:.4g} kg m/s and {angular:.4g} kg m²/s at most"
        if np.isnan(self.momentum_drift[0]):
            return [_line("momentum", f"{most}; not kept, forces from outside act on it")]
        off = f"drift {self.momentum_drift[0]:.1e} kg m/s and {self.momentum_drift[1]:.1e} kg m²/s"
        return [_line("momentum", f"{most}; {off}")]

    def _loops(self) -> list[str]:
        if not self.loop_place:
            return []
        distance, angle = self.loop
        way = self.notes.stabilization
        kept = ", not kept closed" if way == "none" else f", kept by {way}" * bool(way)
        where = f"{distance:.1e} m, {angle:.1e} rad at most, at {self.loop_place!r}{kept}"
        added = self.notes.added_loop
        if way == "projection" and not np.isnan(added[0]):
            where += f"; one step adds {added[0]:.1e} m, {added[1]:.1e} rad"
        return [_line("loop drift", where)]


def report(
    name: str,
    t: Array,
    channels: Mapping[str, Channel],
    notes: Notes,
    *,
    integrator: str,
    step: float,
    steps: int,
    events: tuple[Event, ...],
    stopped: str | None,
) -> Report:
    """The report of channels over the times t (k,) [s]."""

    def of(channel: str) -> Array:
        known = channels.get(channel)
        return np.full(len(t), np.nan) if known is None else known.values

    total, flow = of("energy.total"), energy_flow(channels)
    drift = float("nan") if notes.uncounted else flow.drift
    sizes = [float(_lengths(of(f"momentum.{kind}")).max()) for kind in ("linear", "angular")]
    loop, place = _loop(channels, notes)
    return Report(
        name=name, start=float(t[0]), end=float(t[-1]), integrator=integrator, step=step,
        steps=steps, records=len(t), energy=(float(total[0]), float(total[-1])),
        kinetic=flow.kinetic, works=flow.works, drift=drift, momentum=(sizes[0], sizes[1]),
        momentum_drift=_kept_momentum(t, channels, notes), loop=loop, loop_place=place,
        touch=_touch(channels), events=events, stopped=stopped, notes=notes,
    )  # fmt: skip


def _kept_momentum(t: Array, channels: Mapping[str, Channel], notes: Notes) -> tuple[float, float]:
    """|p − p_0 − m g t| and |k_c − k_c0| about the centre of mass, at most."""
    names = ("momentum.linear", "momentum.angular", "center_of_mass")
    if len(notes.weight) != 3 or any(name not in channels for name in names):
        return float("nan"), float("nan")
    p, k, c = (channels[name].values for name in names)
    fallen = p - np.array(notes.weight) * (t - t[0])[:, None]
    spin = k - np.cross(c, p)
    return (
        float(_lengths(fallen - fallen[0]).max()),
        float(_lengths(spin - spin[0]).max()),
    )


def _touch(channels: Mapping[str, Channel]) -> str:
    """The deepest penetration, the fastest slip under a force and the residual of all records."""
    deepest, fastest = (0.0, ""), (0.0, "")
    slips = [x.removesuffix(".slip") for x in channels if x.startswith("contact.")]
    slips = [x for x in slips if f"{x}.slip" in channels]
    for x in slips:
        name = x.removeprefix("contact.")
        depth = np.nan_to_num(channels[f"{x}.penetration"].values, nan=0.0)
        pressed = channels[f"{x}.force"].values.any(axis=1)
        deepest = max(deepest, (float(depth.max()), name))
        fastest = max(fastest, (float((pressed * channels[f"{x}.slip"].values).max()), name))
    if not slips:
        return ""
    parts = list[str]()
    if deepest[1]:
        parts.append(f"penetration {deepest[0]:.2g} m at {deepest[1]!r}")
    if fastest[1]:
        parts.append(f"slip {fastest[0]:.2g} m/s at {fastest[1]!r}")
    if "residual" in channels:
        parts.append(f"residual {float(channels['residual'].values.max()):.1e} m/s")
    return f"at most {', '.join(parts)}"


def _loop(channels: Mapping[str, Channel], notes: Notes) -> tuple[tuple[float, float], str]:
    """Largest distance and angle at loops and couplings, and where the largest of all is."""
    most, largest, place = [0.0, 0.0], -1.0, ""
    for i, kind in enumerate(("loop.distance", "loop.angle")):
        if kind not in channels:
            continue
        errors = channels[kind]
        each = errors.values.max(axis=0)
        most[i] = max([*each, *(x for x in notes.worst_loop[i : i + 1] if x == x)], default=0.0)
        if len(each) and each.max() > largest:
            largest, place = float(each.max()), errors.labels[int(each.argmax())]
    return (float(most[0]), float(most[1])), place


def _lengths(values: Array) -> Array:
    return np.linalg.norm(values, axis=-1) if values.ndim == 2 else np.abs(values)


def _worker(name: str) -> str:
    words = {
        "joints": "joint forces",
        "passive": "dampers and springs",
        "forces": "forces from outside",
        "steps": "the steps themselves",
    }
    return words.get(name, name.replace("_", " "))


def _line(head: str, text: str) -> str:
    return f"  {head:<14}{text}"


def _listed(head: str, lines: list[str]) -> list[str]:
    shown = lines[:SHOWN]
    if len(lines) > SHOWN:
        shown.append(f"and {len(lines) - SHOWN} more")
    return [_line(head if i == 0 else "", text) for i, text in enumerate(shown)]


def _seconds(s: float) -> str:
    return f"{1e3 * s:.3g} ms" if s < 1.0 else f"{s:.3g} s"
