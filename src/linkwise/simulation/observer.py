"""What happens during a run, and its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from linkwise.arguments import check_arguments
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import WORKERS, AppliedForces
from linkwise.simulation.channel import Channel, Event, split_unit
from linkwise.simulation.divergence import EnergyGuard
from linkwise.simulation.margin import MarginGroup, State, lost_within
from linkwise.simulation.moment import Moment
from linkwise.simulation.recording import Recording
from linkwise.simulation.report import EnergyFlow
from linkwise.simulation.standard_channel import energies, force_units
from linkwise.simulation.stepper import Stepper
from linkwise.simulation.stiffness import Stiffness
from linkwise.simulation.timetable import Timetable
from linkwise.spatial.array import Array, read_only

Probe: TypeAlias = Callable[[float, Array, Array, Array], Any]
"""A number or (n,) from the time [s], q (nq,), v (nv,) and the joint forces (nv,) of the user."""

States: TypeAlias = tuple[Array, Array, Array, Array, Array]
"""t (k,), q (k, nq), v (k, nv), tau (k, nv) and work (k, n) of some records."""

More: TypeAlias = tuple[dict[str, Array], Array, Array, list[Array]]
"""Forces by node, contacts, forces of limits and probes of one record."""


class Log:
    """The records so far."""

    def __init__(self, mech: Mechanism, applied: AppliedForces, probes: object) -> None:
        self.mech, self.applied, self.probes = mech, applied, check_probes(probes)
        self._states = list[States]()
        self._more, self._count = list[More](), 0  # none where nothing more is recorded
        self._energies: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def last(self) -> float:
        """When the last record was made [s]."""
        return float(self._states[-1][0][-1]) if self._states else -np.inf

    @property
    def states(self) -> States:
        """All records, concatenated."""
        if len(self._states) > 1:
            columns = zip(*self._states, strict=True)
            t, q, v, tau, work = (np.concatenate(x) for x in columns)
            self._states = [(t, q, v, tau, work)]
        return self._states[0]

    def add(self, now: Moment, held: Array | None) -> None:
        """One record; none if there is one of that time."""
        t, q, v = now.t, now.q, now.v
        if t <= self.last:
            return
        tau = self.applied.commanded(t, q, v, held)
        self.extend((np.array([t]), q[None], v[None], tau[None], now.work[None]))

    def extend(self, states: States) -> None:
        """Some records, later than all others."""
        applied = self.applied
        self._states.append(states)
        self._count += len(states[0])
        if not (self.probes or applied.at_nodes or applied.springs):
            return
        for at, q, v, tau, _ in zip(*states, strict=True):
            t = float(at)
            touch = applied.contacts.recorded(q, v) if applied.contacts.names else np.zeros((0, 4))
            pushed = np.zeros(0) if applied.springs is None else applied.springs.force(q, v)
            shown = read_only(q), read_only(v), read_only(tau)
            probes = [probed(name, f, t, *shown) for name, f in self.probes.items()]
            self._more.append((applied.given(t, q, v), touch, pushed, probes))

    @np.errstate(over="ignore", invalid="ignore")  # values that are not finite are reported
    def flow(self) -> EnergyFlow:
        """Where the energy comes from and goes to, where all work is counted."""
        _, q, v, _, work = self.states
        self._energies = kinetic, potential = energies(self.mech, q, v)
        spent = work - work[0]
        left = kinetic + potential - spent.sum(axis=1)
        works: dict[str, float] = dict(zip(WORKERS, spent[-1].tolist(), strict=True))
        return EnergyFlow(float(kinetic.max()), works, float(np.abs(left - left[0]).max()))

    def recording(self, *, counted: bool, **facts: Any) -> Recording:
        """All of it."""
        mech, applied = self.mech, self.applied
        t, q, v, tau, work = self.states
        works = dict[str, Array | None]()  # what is left out is found from the records
        if counted:
            known = ("joints", "passive", "forces")
            works = {name: work[:, i] for i, name in enumerate(WORKERS)
                     if name in known or work[:, i].any()}  # fmt: skip
        return Recording.of(
            mech, t, q, v, tau,
            works=works,
            energy=self._energies,
            forces=together([x[0] for x in self._more]),
            forces_frame=applied.frame,
            held=not counted,
            passive=applied.passive,
            contacts=bool(applied.contacts.names),
            pushed=applied.pushed,
            channels=self._channels(),
            **facts,
        )  # fmt: skip

    def _channels(self) -> list[Channel]:
        """Contacts, limits and probes."""
        records, channels = self._more, list[Channel]()
        for i, name in enumerate(self.applied.contacts.names):
            both = np.array([x[1][i] for x in records])
            about = f"of the surface on {self.applied.contacts.nodes[i]!r}, in world axes"
            axes = ("x", "y", "z")
            channels += [
                Channel(f"contact.{name}.force", "N", about, both[:, :3], axes),
                Channel(f"contact.{name}.penetration", "m", "negative away from it", both[:, 3]),
            ]
        if self.applied.springs is not None:
            forces = force_units(self.mech)
            pushed = np.reshape([x[2] for x in records], (len(records), self.mech.nv))
            about = "of the springs at the ends of joint ranges"
            channels.append(Channel("limit.force", forces, about, pushed, self.mech.velocity_names))
        return channels + probe_channels(self.probes, [x[3] for x in records])


def probe_channels(
    probes: Mapping[str, Probe], records: Sequence[Sequence[Array]]
) -> list[Channel]:
    """Channels of what the probes gave at each record."""
    channels = list[Channel]()
    for i, text in enumerate(probes):
        values = [x[i] for x in records]
        if len({x.shape for x in values}) > 1:
            shapes = sorted({str(x.shape) for x in values})
            raise ShapeError(
                f"probe {text!r} gave arrays of the shapes {' and '.join(shapes)}; it must "
                "give the same shape at every time."
            )
        channels.append(Channel.of(text, np.array(values), about="probe"))
    return channels


def check_probes(probes: object) -> dict[str, Probe]:
    """The probes, if they are functions by name."""
    if probes is None:
        return {}
    if not isinstance(probes, Mapping):
        raise ModelError(
            f"probes is a {type(probes).__name__}; it is a dictionary of functions of "
            '(t, q, v, tau) by "name [unit]".'
        )
    for name, probe in cast("Mapping[Any, object]", probes).items():
        if not isinstance(name, str) or not callable(probe):
            raise ModelError(
                f"probe {name!r} is {probe!r}; it must be a function of (t, q, v, tau) that gives "
                "a number or an array (n,)."
            )
        split_unit(name)
        check_arguments(probe, f"probe {name!r}", "t, q, v, tau")
    return dict(cast("Mapping[str, Probe]", probes))


def probed(name: str, probe: Probe, t: float, q: Array, v: Array, tau: Array) -> Array:
    """What a probe gives at one instant."""
    given: object = probe(t, q, v, tau)
    try:
        value = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        value = np.zeros((0, 0))
    if value.ndim > 1:
        raise ModelError(
            f"probe {name!r} gave {given!r} at t = {t:.9g} s; it must give a number or (n,)."
        )
    return np.array(value)


def together(forces: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """(moment, force) at each record (k, 6) by node; zero where there was none."""
    nodes = dict.fromkeys(node for each in forces for node in each)
    none = np.zeros(6)
    return {node: np.array([each.get(node, none) for each in forces]) for node in nodes}


MOST = 50
"""Events that are resolved within one step; contacts that chatter more are not."""


class Observer:
    """Looks at a motion after every step.

    Attributes:
        now: The moment the run has come to.
        events: What happened so far.
        stopped: Why the run has ended early, or None.
        made: How many steps were made.
        stiffness: Whether adaptive steps are short to stay stable.
        dense: Dense output of the integrator: q and v of a time [s], or None.
    """

    now: Moment

    def __init__(
        self,
        stepper: Stepper,
        plan: Timetable,
        groups: list[MarginGroup],
        log: Log,
        guard: EnergyGuard,
    ) -> None:
        self.stepper, self.plan, self.groups, self.log, self.guard = (
            stepper,
            plan,
            groups,
            log,
            guard,
        )
        self.events = list[Event]()
        self.stopped: str | None = None
        self.made = 0
        self.dense: Callable[[float], tuple[Array, Array]] | None = None
        self.chattered = set[str]()
        self.stiffness = Stiffness()
        self._watched = any(x.kind == "watch" for x in groups)
        self._margins = list[Array]()

    def begin(self, first: Moment) -> None:
        """Look at the beginning, and record it."""
        self.now = first
        if self.plan.per_tick:
            self.tick(0)
        self.stepper.applied.given(first.t, first.q, first.v)  # reports mistakes at once
        self._look(first)
        state = self.state(first)
        for group, margins in zip(self.groups, self._margins, strict=True):
            for i in np.flatnonzero(margins < 0.0).tolist():
                if group.kind == "watch":
                    self._happened(group, i, state, float(margins[i]))
        self.record()

    def tick(self, number: int) -> None:
        """Ask the controller at the tick of that number, and hold what it gives."""
        now = self.now
        self.stepper.held = self.stepper.applied.command(number, now.t, now.q, now.v)

    def state(self, moment: Moment) -> State:
        """t, q, v and all joint forces; these only where someone watches."""
        t, q, v = moment.t, moment.q, moment.v
        if not self._watched:
            return t, q, v, v
        return t, q, v, self.stepper.applied.joints(t, q, v, self.stepper.held)

    def _look(self, moment: Moment) -> None:
        state = self.state(moment)
        self._margins = [x.margins(state) for x in self.groups]

    def passed(self, before: Moment, after: Moment, end: float, length: float) -> None:
        """A step was made: find what happened within it, and go on to its end or stop.

        Args:
            end: When it ends [s], without the rounding of a sum.
        """
        after = dataclasses.replace(after, t=end)
        for _ in range(MOST):

            def at(s: float, begin: Moment = before) -> Moment:
                return self.stepper.advance(begin, s)

            cut = self.within(before, after, at, length)
            if cut is None or self.stopped is not None:
                return
            before, length = cut, end - cut.t
            if length <= 0.0:
                return
            after = dataclasses.replace(self.stepper.advance(before, length), t=end)
        self._settle(after)

    def within(
        self, before: Moment, after: Moment, at: Callable[[float], Moment], length: float
    ) -> Moment | None:
        """What happened between two moments; the one at which the step had to be cut, if any.

        Args:
            at: The moment some time [s] after the earlier one.
        """
        if not self.groups:
            self._made(after)
            return None
        was = self._margins
        self._look(after)
        lost = lost_within(self.groups, was, self._margins, lambda s: self.state(at(s)), length)
        reported = set[tuple[int, int]]()
        for s, group, i, margin in lost:
            moment = at(s) if s < length else after
            reported.add((id(group), i))
            self._happened(group, i, self.state(moment), margin)
            if group.ends or group.cuts:
                self._cut(moment, was, reported)
                return moment
            self.log.add(moment, self.stepper.held)
        self._made(after)
        return None

    def _cut(self, moment: Moment, was: list[Array], reported: set[tuple[int, int]]) -> None:
        """A step ends here: what else was lost by then, at the same instant, happened as well."""
        state = self.state(moment)
        for group, before in zip(self.groups, was, strict=True):
            margins = group.margins(state)
            for i in np.flatnonzero((before >= 0.0) & (margins < 0.0)).tolist():
                if (id(group), i) not in reported:
                    self._happened(group, i, state, float(margins[i]))
        self._made(moment)
        self.record()
        if self.stopped is None:
            self._look(moment)

    def _made(self, moment: Moment) -> None:
        self.now = moment
        if self.stepper.loops is not None:
            self.stepper.loops.made(moment.drift)

    def _happened(self, group: MarginGroup, i: int, state: State, margin: float) -> None:
        event = group.happened(i, state, margin)
        self.events.append(event)
        if group.ends and self.stopped is None:
            self.stopped = f"{event.name!r} {event.text}" if event.kind == "limit" else (
                f"{event.name!r} was lost"
            )  # fmt: skip

    def _settle(self, after: Moment) -> None:
        """Too much happened within one step: what presses at its end, presses from there on."""
        self._made(after)
        applied = self.stepper.applied
        for group in (applied.contacts, applied.springs):
            if group is None or not group.names:
                continue
            was = group.on.copy()
            group.begin(after.q, after.v)
            self.chattered |= {group.names[i] for i in np.flatnonzero(was != group.on)}
        self._look(after)

    def record(self) -> None:
        """Record the moment."""
        self.log.add(self.now, self.stepper.held)

    def advance_by_kernel(self, most: int) -> bool:
        """Make up to `most` steps at once if they need no Python; return whether any were made.

        What is looked at is looked at for all of them together. The step in which a margin is lost,
        or which diverges, is left to be made by itself.
        """
        stepper, plan, made = self.stepper, self.plan, self.made
        kernel_stepper, nq = stepper.kernel_stepper, stepper.mech.nq
        foreseen = kernel_stepper is not None and kernel_stepper.foreseen
        if (
            kernel_stepper is None
            or most < 1
            or not (foreseen and all(x.of_positions for x in self.groups))
        ):
            return False
        ends = plan.breaks(made, most)
        ticks = plan.ticks(made + ends, made)
        tau = stepper.applied.known(ticks) if kernel_stepper.law is None else None
        kept = bool(self.groups)
        done = kernel_stepper.advance(self.now, plan.step, ends, tau, kept=kept)
        for group in self.groups:
            lost = (group.along(done.path[1:, :nq]) < 0.0).any(axis=1)
            if lost.any():
                return self.advance_by_kernel(int(np.argmax(lost)))
        at = made + done.made
        rows = np.flatnonzero((at % plan.record_every == 0) | (at == plan.steps))
        all_rows = len(rows) == len(at)  # which need not be copied
        recorded: Any = slice(None) if all_rows else rows
        sound = self.guard.sound(done.q[recorded], done.v[recorded])
        stop = len(at) if sound == len(rows) else int(rows[sound]) + 1
        if not stop:
            return False
        if len(rows):
            recorded = slice(sound + 1) if all_rows else rows[: sound + 1]
            times, acts = at[recorded], plan.ticks(at[recorded])
            acts = kernel_stepper.forces(acts, done.path, made)
            columns = done.q[recorded], done.v[recorded], acts, done.work[recorded]
            self.log.extend((plan.times(times), *columns))
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
        self.guard.check(now.t, now.q, now.v, self.stepper.length)

    @property
    def counted(self) -> bool:
        """Whether all work is counted; else it follows from the records."""
        kernel_stepper = self.stepper.kernel_stepper
        return kernel_stepper is None or kernel_stepper.count_work

    def recording(self, **facts: Any) -> Recording:
        """The recording so far."""
        loops = self.stepper.loops
        if loops is not None:
            facts["worst_loop"] = (loops.worst.distance, loops.worst.angle)
            facts["added_loop"] = (loops.worst_before.distance, loops.worst_before.angle)
        if self.chattered:
            names = ", ".join(repr(x) for x in sorted(self.chattered))
            line = f"more than {MOST} events within one step of {names}"
            facts["not_modelled"] = [*facts.get("not_modelled", ()), line]
        fixed = self.stepper.scheme.step is not None
        return self.log.recording(
            counted=self.counted,
            step=self.plan.step if fixed else float("nan"),
            steps=self.made,
            events=tuple(self.events),
            stopped=self.stopped,
            dense=self.dense,
            **facts,
        )
