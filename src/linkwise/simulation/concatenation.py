"""Two recordings as one: `rec + other`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linkwise.errors import ModelError
from linkwise.simulation.channel import Channel, Event
from linkwise.simulation.recording import Dense, Recording, made
from linkwise.simulation.report import Notes
from linkwise.spatial.array import Array

JUMP = 1e-9
"""States farther apart than this [rad, m, rad/s or m/s] are reported as a jump."""


def concatenated(first: Recording, second: Recording) -> Recording:
    """The second motion after the first; see `Recording.__add__`."""
    _check(first, second)
    shift = float(first.t[-1] - second.t[0])
    t = np.concatenate([first.t, second.t[1:] + shift])
    events = [*first.events, *(replace(x, t=x.t + shift) for x in second.events)]
    if first.stopped is not None:
        events.append(Event(float(first.t[-1]), "stop", first.name, first.stopped))
    gap = max(
        float(np.abs(a[-1] - b[0]).max(initial=0.0))
        for a, b in ((first.q, second.q), (first.v, second.v))
    )
    if gap > JUMP:
        text = f"the state jumps by {gap:.3g} from one recording to the next"
        events.append(Event(float(first.t[-1]), "jump", first.name, text, gap))
    names = dict.fromkeys((*first.channels, *second.channels))
    channels = [_channel(first, second, name) for name in names]
    same = {first.integrator, second.integrator}
    return made(
        second.mech if first.mech is None else first.mech,
        first.name,
        t,
        channels,
        _notes(first.report.notes, second.report.notes),
        integrator=first.integrator
        if len(same) == 1
        else f"{first.integrator}, then {second.integrator}",
        step=first.step if first.step == second.step else float("nan"),
        steps=first.steps + second.steps,
        events=tuple(sorted(events, key=lambda x: x.t)),
        stopped=second.stopped,
        dense=_dense(first, second, shift),
    )


def _check(first: Recording, second: Recording) -> None:
    labels = [[rec.channels[name].labels for name in ("q", "v")] for rec in (first, second)]
    if first.name != second.name or labels[0] != labels[1]:
        raise ModelError(
            f"a recording of {second.name!r} (q: {', '.join(labels[1][0])}) cannot follow one of "
            f"{first.name!r} (q: {', '.join(labels[0][0])}); both must be of the same mechanism."
        )


def _channel(first: Recording, second: Recording, name: str) -> Channel:
    """Both parts of a channel. A part that is missing, or has other columns, is NaN."""
    known = first.channels[name] if name in first.channels else second.channels[name]
    parts = list[Array]()
    for rec in (first, second):
        part = rec.channels.get(name)
        fits = part is not None and part.values.shape[1:] == known.values.shape[1:]
        shape = (len(rec), *known.values.shape[1:])
        parts.append(part.values if part is not None and fits else np.full(shape, np.nan))
    before, after = parts
    if name.startswith("work.") or name == "energy.balance":  # sums since the first record
        after = after - after[0] + before[-1]
    values = np.concatenate([before, after[1:]])
    return Channel(known.name, known.unit, known.about, values, known.labels)


def _notes(a: Notes, b: Notes) -> Notes:
    def largest(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
        return float(np.fmax(x[0], y[0])), float(np.fmax(x[1], y[1]))

    return Notes(
        not_modelled=tuple(dict.fromkeys((*a.not_modelled, *b.not_modelled))),
        uncounted=tuple(dict.fromkeys((*a.uncounted, *b.uncounted))),
        work_error=a.work_error + b.work_error,
        weight=a.weight if a.weight == b.weight else (),
        worst_loop=largest(a.worst_loop, b.worst_loop),
        added_loop=largest(a.added_loop, b.added_loop),
        stabilization=a.stabilization if a.stabilization == b.stabilization else "",
        wall=a.wall + b.wall,
        compiling=a.compiling + b.compiling,
    )


def _dense(first: Recording, second: Recording, shift: float) -> Dense | None:
    early, late, end = first.dense, second.dense, float(first.t[-1])
    if early is None or late is None:
        return None
    return lambda t: early(t) if t <= end else late(t - shift)
