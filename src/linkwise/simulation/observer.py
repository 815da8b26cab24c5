"""What a run has come to: the moment, what happened, what was recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.simulation.divergence import EnergyGuard
from linkwise.simulation.event import Event
from linkwise.simulation.gauge import Gauge, State, lost_within
from linkwise.simulation.log import Log
from linkwise.simulation.march import March, Moment
from linkwise.simulation.recording import Recording
from linkwise.simulation.timetable import Timetable
from linkwise.spatial.array import Array

MOST = 50
"""So many events within one step are told apart; contacts that chatter more are not."""


class Observer:
    """Looks at a motion after every step.

    Attributes:
        now: The moment the run has come to.
        events: What happened so far.
        stopped: Why the run has ended early, or None.
        made: How many steps were made.
        dense: Dense output of the integrator: q and v of a time [s], or None.
    """

    now: Moment

    def __init__(
        self, march: March, plan: Timetable, gauges: list[Gauge], log: Log, guard: EnergyGuard
    ) -> None:
        self.march, self.plan, self.gauges, self.log, self.guard = march, plan, gauges, log, guard
        self.events = list[Event]()
        self.stopped: str | None = None
        self.made = 0
        self.dense: Callable[[float], tuple[Array, Array]] | None = None
        self.chattered = set[str]()
        self._watched = any(x.kind == "watch" for x in gauges)
        self._margins = list[Array]()

    def begin(self, first: Moment) -> None:
        """Look at the beginning, and record it."""
        self.now = first
        if self.plan.per_tick:
            self.tick(0)
        self.march.acting.given(first.t, first.q, first.v)  # what is wrong is told at once
        self._look(first)
        state = self.state(first)
        for gauge, margins in zip(self.gauges, self._margins, strict=True):
            for i in np.flatnonzero(margins < 0.0).tolist():
                if gauge.kind == "watch":
                    self._happened(gauge, i, state, float(margins[i]))
        self.record()

    def tick(self, number: int) -> None:
        """Ask the controller at the tick of that number, and hold what it gives."""
        now = self.now
        self.march.held = self.march.acting.command(number, now.t, now.q, now.v)

    def state(self, moment: Moment) -> State:
        """t, q, v and all joint forces; these only where someone watches."""
        t, q, v = moment.t, moment.q, moment.v
        if not self._watched:
            return t, q, v, v
        return t, q, v, self.march.acting.joints(t, q, v, self.march.held)

    def _look(self, moment: Moment) -> None:
        state = self.state(moment)
        self._margins = [x.margins(state) for x in self.gauges]

    def passed(self, before: Moment, after: Moment, end: float, length: float) -> None:
        """A step was made: find what happened within it, and go on to its end or stop.

        Args:
            end: When it ends [s], without the rounding of a sum.
        """
        after = dataclasses.replace(after, t=end)
        for _ in range(MOST):

            def at(s: float, begin: Moment = before) -> Moment:
                return self.march.advance(begin, s)

            cut = self.within(before, after, at, length)
            if cut is None or self.stopped is not None:
                return
            before, length = cut, end - cut.t
            if length <= 0.0:
                return
            after = dataclasses.replace(self.march.advance(before, length), t=end)
        self._settle(after)

    def within(
        self, before: Moment, after: Moment, at: Callable[[float], Moment], length: float
    ) -> Moment | None:
        """What happened between two moments; the one at which the step had to be cut, if any.

        Args:
            at: The moment some time [s] after the earlier one.
        """
        if not self.gauges:
            self._made(after)
            return None
        was = self._margins
        self._look(after)
        found = lost_within(self.gauges, was, self._margins, lambda s: self.state(at(s)), length)
        told = set[tuple[int, int]]()
        for s, gauge, i, margin in found:
            moment = at(s) if s < length else after
            told.add((id(gauge), i))
            self._happened(gauge, i, self.state(moment), margin)
            if gauge.ends or gauge.cuts:
                self._cut(moment, was, told)
                return moment
            self.log.add(moment, self.march.held)
        self._made(after)
        return None

    def _cut(self, moment: Moment, was: list[Array], told: set[tuple[int, int]]) -> None:
        """A step ends here: what else was lost by then, at the same instant, happened as well."""
        state = self.state(moment)
        for gauge, before in zip(self.gauges, was, strict=True):
            margins = gauge.margins(state)
            for i in np.flatnonzero((before >= 0.0) & (margins < 0.0)).tolist():
                if (id(gauge), i) not in told:
                    self._happened(gauge, i, state, float(margins[i]))
        self._made(moment)
        self.record()
        if self.stopped is None:
            self._look(moment)

    def _made(self, moment: Moment) -> None:
        self.now = moment
        if self.march.loops is not None:
            self.march.loops.made(moment.drift)

    def _happened(self, gauge: Gauge, i: int, state: State, margin: float) -> None:
        event = gauge.happened(i, state, margin)
        self.events.append(event)
        if gauge.ends and self.stopped is None:
            self.stopped = f"{event.name!r} {event.text}" if event.kind == "limit" else (
                f"{event.name!r} was lost"
            )  # fmt: skip

    def _settle(self, after: Moment) -> None:
        """Too much happened within one step: what presses at its end, presses from there on."""
        self._made(after)
        acting = self.march.acting
        for gauge in (acting.contacts, acting.springs):
            if gauge is None or not gauge.names:
                continue
            was = gauge.on.copy()
            gauge.begin(after.q, after.v)
            self.chattered |= {gauge.names[i] for i in np.flatnonzero(was != gauge.on)}
        self._look(after)

    def record(self) -> None:
        """Record the moment."""
        self.log.add(self.now, self.march.held)

    def leapt(self, most: int) -> bool:
        """Make at most so many steps at once, if they need nothing from Python; whether some were.

        What is looked at is looked at for all of them together. The step in which a margin is lost,
        or which diverges, is left to be made by itself.
        """
        march, plan, made = self.march, self.plan, self.made
        leaper, nq = march.leaper, march.mech.nq
        foreseen = leaper is not None and leaper.foreseen
        if (
            leaper is None
            or most < 1
            or not (foreseen and all(x.of_positions for x in self.gauges))
        ):
            return False
        ends = plan.breaks(made, most)
        ticks = plan.ticks(made + ends, made)
        tau = march.acting.known(ticks) if leaper.law is None else None
        done = leaper.leap(self.now, plan.step, ends, tau)
        for gauge in self.gauges:
            lost = (gauge.along(done.path[1:, :nq]) < 0.0).any(axis=1)
            if lost.any():
                return self.leapt(int(np.argmax(lost)))
        at = made + done.made
        rows = np.flatnonzero((at % plan.record_every == 0) | (at == plan.steps))
        sound = self.guard.sound(done.q[rows], done.v[rows])
        stop = len(at) if sound == len(rows) else int(rows[sound]) + 1
        if not stop:
            return False
        kept = rows[: sound + 1]
        if len(kept):
            acts = leaper.forces(plan.ticks(at[kept]), done.path, made)
            columns = done.q[kept], done.v[kept], acts, done.work[kept]
            self.log.extend((plan.times(at[kept]), *columns))
        self.made, last = int(at[stop - 1]), stop - 1
        self.now = Moment(plan.time(self.made), done.q[last], done.v[last], done.work[last])
        if plan.per_tick:  # what acts now
            self.tick(int(plan.ticks(at[last : last + 1])[0]))
        self._look(self.now)
        if sound < len(rows):
            self.check()
        return True

    def check(self) -> None:
        """Look whether the energy can be right."""
        now = self.now
        self.guard.check(now.t, now.q, now.v, self.march.length)

    def recording(self, **told: Any) -> Recording:
        """All that was recorded."""
        loops, leaper = self.march.loops, self.march.leaper
        if loops is not None:
            told["worst_loop"] = (loops.worst.distance, loops.worst.angle)
            told["added_loop"] = (loops.worst_before.distance, loops.worst_before.angle)
        if self.chattered:
            names = ", ".join(repr(x) for x in sorted(self.chattered))
            line = f"more than {MOST} events within one step of {names}"
            told["not_modelled"] = [*told.get("not_modelled", ()), line]
        fixed = self.march.scheme.step is not None
        return self.log.recording(
            counted=leaper is None or leaper.count_work,
            step=self.plan.step if fixed else float("nan"),
            steps=self.made,
            events=tuple(self.events),
            stopped=self.stopped,
            dense=self.dense,
            **told,
        )
