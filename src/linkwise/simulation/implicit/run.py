"""`lw.simulate` by implicit steps: many at a time, then what happened in them.

Impulses belong to a step as a whole. So nothing is looked for within one: functions of the user are
called at the beginning of steps, events happen at their ends, and no step is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linkwise.codegen.stepping.kernel import describe
from linkwise.dynamics.kinematics import jacobian
from linkwise.errors import SimulationError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import AppliedForces
from linkwise.simulation.channel import Event
from linkwise.simulation.controller import Commands
from linkwise.simulation.implicit.event import Happenings
from linkwise.simulation.implicit.inside import warn_inside
from linkwise.simulation.implicit.log import ImplicitLog
from linkwise.simulation.implicit.segments import warn_unsolved
from linkwise.simulation.implicit.step_record import State, Steps
from linkwise.simulation.implicit.steps import Stepper
from linkwise.simulation.margin import Watch
from linkwise.simulation.observer import Probe
from linkwise.simulation.recording import Recording
from linkwise.simulation.timetable import Timetable
from linkwise.spatial.array import Array

MOST_NUMBERS = 1 << 21
"""Joint velocities of all steps that are made before they are looked at: a bound of the memory."""


class Source:
    """Rows of commands for the steps to come.

    Attributes:
        each: Whether the commands have to be called for before every step.
        ticks: Whether they have to be called for at every tick.
    """

    def __init__(self, commands: Commands | None, plan: Timetable, *, held: bool) -> None:
        self._commands, self._plan = commands, plan
        called = commands is not None and commands.sees_state
        self.each, self.ticks = called and not held, called and held
        self._held: Array | None = None

    def rows(self, made: int, steps: int, t: float, q: Array, v: Array) -> Array:
        """Commands (1, size) or (steps, size) of the steps after `made` steps."""
        commands, plan = self._commands, self._plan
        if commands is None:
            return np.zeros((1, 0))
        if commands.constant is not None:
            return commands.constant[None]
        if not commands.sees_state:
            return commands.at_ticks(plan.ticks(np.arange(made, made + steps)))
        if self.each:
            return commands(t, q, v)[None]
        if self._held is None or made % plan.per_tick == 0:
            self._held = commands(t, q, v)
        return self._held[None]


class ImplicitRun:
    """A run by implicit steps.

    Attributes:
        made: How many steps were made.
        now: The state after them.
        stopped: Why the run has ended early, or None.
        log: What was recorded.
    """

    def __init__(
        self,
        stepper: Stepper,
        plan: Timetable,
        applied: AppliedForces,
        controls: Commands | None,
        watch: Watch,
        probes: Mapping[str, Probe] | None,
        *,
        stop_at_limits: bool,
        hold: bool,
    ) -> None:
        self.mech: Mechanism = stepper.mech
        self.stepper, self.plan, self.applied, self.watch = stepper, plan, applied, watch
        self._tau = Source(applied.tau, plan, held=False)
        self._controller = Source(applied.controller, plan, held=hold)
        self._controls = Source(controls, plan, held=hold)
        self._sources = (self._tau, self._controller, self._controls)
        self._stop_at_limits = stop_at_limits
        self._events = Happenings(self.mech, stepper.joints, stepper.contacts)
        self._margins = np.zeros(0)
        self.log = ImplicitLog(stepper, applied, controls, probes)
        self.made, self.stopped = 0, None
        self.now: State

    @property
    def time(self) -> float:
        """The time that the run has reached [s]."""
        return self.plan.time(self.made)

    def begin(self, q: Array, v: Array) -> None:
        """Look at the beginning, and record it."""
        self.now = self.stepper.first(q, v)
        self.applied.given(self.time, q, v)  # reports mistakes at once
        self.log.first(self.time, q, v)
        if self.watch.names:
            at = self.time, q, v, self._user(self.made, 1)[0][0]
            self._margins = self.watch.margins(at)
            for i in np.flatnonzero(self._margins < 0.0).tolist():
                self._lost(i, self.time)

    def run(self, bar: Callable[[float], None]) -> None:
        """All steps.

        Raises:
            SimulationError: A step has no result; says when, where and why.
        """
        while self.made < self.plan.steps and self.stopped is None:
            self._advance(self._ahead())
            bar(self.time)

    def _ahead(self) -> int:
        """How many steps can be made before Python has to run."""
        plan, made = self.plan, self.made
        if self.applied.at_nodes or any(x.each for x in self._sources):
            return 1
        ahead = max(min(plan.equal(made), MOST_NUMBERS // max(self.mech.nv, 1)), 1)
        if any(x.ticks for x in self._sources):
            ahead = min(ahead, plan.per_tick - made % plan.per_tick)
        return ahead

    def _user(self, made: int, steps: int) -> tuple[Array, Array]:
        """Joint forces of the user, and those of external forces."""
        t, q, v = self.plan.time(made), self.now.q, self.now.v
        tau = self._tau.rows(made, steps, t, q, v)
        if self.applied.controller is not None:
            tau = tau + self._controller.rows(made, steps, t, q, v)
        return self.applied.noted(tau), self._pushed(t, q, v)

    def _pushed(self, t: float, q: Array, v: Array) -> Array:
        """External forces as joint forces (1, nv): J* f."""
        total = np.zeros((1, self.mech.nv))
        for node, wrench in (self.applied.outside(t, q, v) or {}).items():
            total += np.asarray(wrench) @ jacobian(self.mech, q, node, frame=self.applied.frame)
        return total

    def _advance(self, ahead: int) -> None:
        """Make some steps, and look at what they did."""
        now, made, h = self.now, self.made, self.plan.length(self.made)
        tau, pushed = self._user(made, ahead)
        control = self._controls.rows(made, ahead, self.time, now.q, now.v)
        steps = self.stepper.advance(now, h, ahead, tau + pushed, control)
        if not made and len(steps):
            warn_inside(self.mech, steps.touches.names, steps.touches.gap[0])
        times = self.plan.times(made + 1 + np.arange(len(steps)))
        work, events = np.zeros((0, 0)), list[tuple[int, Event]]()
        if len(steps):
            work, limited = self.stepper.works(steps, h, _cut(tau, len(steps)), pushed)
            events = self._events.of(steps, times, limited, h)
        count = self._watched(steps, times, events)
        if count < len(steps):
            steps = steps.taken(count)
            events = [(i, event) for i, event in events if i < count]
        if count:
            self.made, self.now = made + count, steps.last
            due = (made + 1 + np.arange(count)) % self.plan.record_every == 0
            due[[i for i, _ in events]] = True
            due[-1] |= self.stopped is not None or self.made == self.plan.steps
            rows = np.flatnonzero(due)
            self.log.extend(
                steps, times[:count], work[:count], rows, h, pushed, _cut(control, count)
            )
            self.log.events += [event for _, event in events]
        if steps.status and self.stopped is None:
            raise SimulationError(
                f"{self.mech.name!r} cannot go on after t = {self.time:.9g} s: "
                f"{describe(self.mech, steps.status)}. Try a shorter step, or look at forces and "
                "gains."
            )

    def _watched(self, steps: Steps, times: Array, events: list[tuple[int, Event]]) -> int:
        """How many steps count: up to the one that ends the run."""
        count = len(steps)
        if self._stop_at_limits:
            for i, event in events:
                if event.kind == "limit" and self.stopped is None:
                    self.stopped, count = f"{event.name!r} {event.text}", i + 1
        if not self.watch.names:
            return count
        for i in range(count):
            at = float(times[i]), steps.q[i], steps.v[i], steps.effort[i]
            was, self._margins = self._margins, self.watch.margins(at)
            for k in np.flatnonzero((was >= 0.0) & (self._margins < 0.0)).tolist():
                self._lost(k, float(times[i]))
            if self.stopped is not None and self.watch.ends:
                return i + 1
        return count

    def _lost(self, i: int, t: float) -> None:
        """A margin is lost."""
        name, margin = self.watch.names[i], float(self._margins[i])
        self.log.events.append(Event(t, "watch", name, "is lost", margin))
        if self.watch.ends and self.stopped is None:
            self.stopped = f"{name!r} was lost"

    def recording(self, **facts: Any) -> Recording:
        """The recording so far."""
        gap = self.stepper.gaps(self.now, self.plan.step)
        warn_unsolved(self.mech, self.log.unsolved, self.plan.step)
        return self.log.recording(
            gap, step=self.plan.step, steps=self.made, stopped=self.stopped, **facts
        )


def _cut(rows: Array, count: int) -> Array:
    """The first rows, where there is one for each step."""
    return rows if len(rows) == 1 else rows[:count]
