"""The records of a run by implicit steps, and the recording made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.actuator_force import with_activation
from linkwise.simulation.applied_force import AppliedForces
from linkwise.simulation.channel import Channel, Event
from linkwise.simulation.channel_table import Group
from linkwise.simulation.controller import Commands
from linkwise.simulation.implicit.event import limit_impulses
from linkwise.simulation.implicit.joint import on_velocities
from linkwise.simulation.implicit.step_record import NEVER, Steps
from linkwise.simulation.implicit.steps import Stepper
from linkwise.simulation.implicit.work import WORKERS
from linkwise.simulation.observer import Probe, check_probes, probe_channels, probed, together
from linkwise.simulation.recording import Recording
from linkwise.simulation.standard_channel import force_units
from linkwise.spatial.array import Array, read_only

Named = tuple[tuple[str, ...], Array]
"""Names of contacts, and numbers of each (k, c, ...) at some records."""


class ImplicitLog:
    """The records so far.

    Attributes:
        events: What happened.
        unsolved: The largest residual of a step.
    """

    def __init__(
        self,
        stepper: Stepper,
        applied: AppliedForces,
        controls: Commands | None,
        probes: Mapping[str, Probe] | None,
    ) -> None:
        self.stepper, self.applied, self.controls = stepper, applied, controls
        self.mech, self.probes = stepper.mech, check_probes(probes)
        self.events, self.unsolved = list[Event](), 0.0
        self._columns = dict[str, list[Array]]()
        self._work = np.zeros(len(WORKERS))
        self._probed, self._outside = list[list[Array]](), list[dict[str, Array]]()
        self._forces, self._gaps = list[Named](), list[Named]()
        self._count = 0
        self._open = True  # the gaps at the last record are those before the next step

    def __len__(self) -> int:
        return self._count

    def _add(self, **columns: Array) -> None:
        self._count += len(columns.get("t", ()))
        for name, values in columns.items():
            self._columns.setdefault(name, []).append(values)

    def first(self, t: float, q: Array, v: Array) -> None:
        """The beginning; what acts there is known with the first step."""
        self._add(t=np.array([t]), q=q[None], v=v[None], work=self._work[None])
        self._look(t, q, v, np.zeros(self.mech.nv))

    def extend(
        self,
        steps: Steps,
        times: Array,
        work: Array,
        rows: NDArray[np.intp],
        h: float,
        pushed: Array,
        control: Array,
    ) -> None:
        """Records after some of n steps.

        Args:
            times: When each of the steps ends (n,) [s].
            work: In each of them (n, workers) [J].
            rows: The numbers of the steps that are recorded (k,).
            pushed: Joint forces of external forces (1, nv).
            control: Commands of actuators (1, a) or (n, a).
        """
        self.unsolved = max(self.unsolved, float(steps.residual.max(initial=0.0)))
        done = self._worked(work, rows)
        if "tau" not in self._columns:
            self._act(steps, slice(1), h, pushed, control, at_rest=True)
        names, gap = steps.touches.names, steps.touches.gap
        if self._open:
            self._gaps.append((names, gap[:1].copy()))
        self._gaps.append((names, gap[rows[rows < len(steps) - 1] + 1]))
        self._open = len(rows) > 0 and rows[-1] == len(steps) - 1
        at = slice(None) if len(rows) == len(steps) else rows  # all need not be gathered
        q, v = (np.array(x[at]) for x in (steps.q, steps.v))  # copies: a step shows more
        self._add(t=times[at], q=q, v=v, work=done)
        self._act(steps, at, h, pushed, control)
        if not (self.probes or self.applied.at_nodes):
            return
        for i in rows.tolist():
            self._look(float(times[i]), steps.q[i], steps.v[i], steps.effort[i] - pushed[0])

    def _worked(self, work: Array, rows: NDArray[np.intp]) -> Array:
        """Work until each of some steps (k, workers) [J], from that in each step."""
        if len(rows) == len(work):
            done = self._work + np.cumsum(work, axis=0)
            self._work = done[-1]
            return done
        starts = np.concatenate([[0], rows + 1])  # of what comes after the record before
        parts = np.add.reduceat(work, starts[starts < len(work)], axis=0)
        done = self._work + np.cumsum(parts, axis=0)
        self._work = done[-1]
        return done[: len(rows)]

    def _act(
        self,
        steps: Steps,
        rows: NDArray[np.intp] | slice,
        h: float,
        pushed: Array,
        control: Array,
        *,
        at_rest: bool = False,
    ) -> None:
        """What acted in some steps; at rest, without impulses."""
        touches, off = steps.touches.at(rows), 0.0 if at_rest else 1.0
        both = off * np.concatenate([touches.force, touches.slip[..., None]], axis=-1)
        self._forces.append((touches.names, both))
        impulse, count = steps.joints[0][rows], len(touches.gap)
        limit, rub = np.zeros((2, count, self.mech.nv))
        if impulse.any():
            joints, q = self.stepper.joints, steps.before[0][rows]
            force = (off / h) * impulse
            ends = limit_impulses(joints, h * force, h) / h
            limit, rub = (on_velocities(joints, x, q, self.mech.nv) for x in (ends, force - ends))
        self._add(
            tau=steps.effort[rows] - pushed,
            limit=limit,
            rub=rub,
            residual=off * steps.residual[rows],
            activation=off * steps.activation[rows],
            control=control[rows] if len(control) > 1 else np.tile(control, (count, 1)),
        )

    def _look(self, t: float, q: Array, v: Array, tau: Array) -> None:
        """External forces and probes at a record."""
        self._outside.append(self.applied.given(t, q, v) if self.applied.at_nodes else {})
        shown = read_only(q), read_only(v), read_only(tau)
        self._probed.append([probed(name, f, t, *shown) for name, f in self.probes.items()])

    # ------------------------------------------------------------------------------- recording

    def recording(self, gap: Named, **facts: Any) -> Recording:
        """All of it; `gap` at the last record."""
        if "tau" not in self._columns:  # no step was made
            none = np.zeros((1, self.mech.nv))
            self._add(tau=none, limit=none, rub=none, residual=np.zeros(1))
            self._add(activation=np.zeros((1, 0)), control=np.zeros((1, 0)))
        if self._open:
            self._gaps.append((gap[0], gap[1]))
            self._open = False
        columns = {name: np.concatenate(parts) for name, parts in self._columns.items()}
        pushed = self.applied.pushed or any(both.any() for _, both in self._forces)
        work = columns["work"]
        known = ("joints", "passive", "forces", "steps")
        return Recording.of(
            self.mech, columns["t"], columns["q"], columns["v"], columns["tau"],
            works={x: work[:, i] for i, x in enumerate(WORKERS) if x in known or work[:, i].any()},
            forces=together(self._outside), forces_frame=self.applied.frame,
            passive=self.stepper.passive, friction=self.stepper.passive,
            actuated=self.stepper.actuated, pushed=pushed,
            channels=self._channels(columns), events=tuple(self.events), **facts,
        )  # fmt: skip

    def _channels(self, columns: dict[str, Array]) -> list[Channel | Group]:
        """Contacts, limits, friction, actuators and probes."""
        mech, channels = self.mech, list[Channel | Group]()
        touched = list(dict.fromkeys(x for chunk, _ in self._gaps for x in chunk))
        of_contacts = [
            f"contact.{name}.{what}"
            for name in touched
            for what in ("force", "penetration", "slip")
        ]
        channels.append(Group(tuple(of_contacts), lambda: self._contacts(touched)))
        units, names = force_units(mech), mech.velocity_names
        for name, column, about in (
            ("limit.force", "limit", "of joint limits, mean over the step before"),
            ("friction.force", "rub", "of Coulomb friction in joints, likewise"),
        ):
            if columns[column].any():
                channels.append(Channel(name, units, about, columns[column], names))
        if self.stepper.actuated:
            of = tuple(x.name for x in mech.actuators)
            channels.append(Channel("control", "", "commands of actuators", columns["control"], of))
            lasting = tuple(x.name for x in with_activation(mech))
            if lasting:
                a = columns["activation"]
                channels.append(Channel("activation", "", "of actuators", a, lasting))
        if self.stepper.joints or touched:
            about = "largest change of a velocity in the last sweep over the impulses"
            channels.append(Channel("residual", "m/s or rad/s", about, columns["residual"]))
        return channels + probe_channels(self.probes, self._probed)

    def _contacts(self, touched: Sequence[str]) -> list[Channel]:
        """Forces, penetrations and slips of contacts."""
        channels = list[Channel]()
        for name in touched:
            both = _column(self._forces, name, (4,), 0.0)
            depth = -_column(self._gaps, name, (), NEVER)
            channels += [
                Channel(f"contact.{name}.force", "N", "mean over the step before, in world axes",
                        both[:, :3], ("x", "y", "z")),
                Channel(f"contact.{name}.penetration", "m", "negative away from it", depth),
                Channel(f"contact.{name}.slip", "m/s", "sliding speed", both[:, 3]),
            ]  # fmt: skip
        return channels


def _column(chunks: list[Named], name: str, shape: tuple[int, ...], missing: float) -> Array:
    """Numbers of a contact at all records (k, ...)."""
    parts = list[Array]()
    for names, values in chunks:
        if name in names:
            parts.append(values[:, names.index(name)])
        else:
            parts.append(np.full((len(values), *shape), missing))
    return np.concatenate(parts)
