"""The result of a simulation: states and named channels with units over time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from linkwise.arguments import all_are, flag, function, is_a
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation import standard_channel as standard
from linkwise.simulation.channel import (
    Channel,
    Event,
    as_channels,
    as_event,
    checked_force,
    checked_times,
    split_label,
)
from linkwise.simulation.channel_table import ChannelTable, Group
from linkwise.simulation.inactive import of_the_file
from linkwise.simulation.interpolation import between
from linkwise.simulation.on_read import FieldOnRead, OnRead
from linkwise.simulation.report import Notes, Report, report
from linkwise.simulation.standard_channel import not_modelled as left_out
from linkwise.simulation.work import budget, checked_energies, checked_works, work_names
from linkwise.spatial.array import Array, ArrayLike, constant, floats, frozen

Dense: TypeAlias = Callable[[float], tuple[Array, Array]]
"""q (nq,) and v (nv,) at a time [s], from an integrator with dense output."""


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """A motion that was recorded; `print` of it is a report.

        rec["energy.total"]        a channel's values (k,), or (k, n)
        rec["q[elbow]"]            one column of it, by its label
        rec.at(0.5)                q and v at a time, between records too
        rec[0.5:1.0]               the part between two times
        rec + other                one motion after the other
        rec.save("run.npz")        with names, units and labels; lw.load_recording reads it
        rec.save("run.mp4")        a film with the shapes of the viewer

    Energies, momentum, errors of loops and the report are computed when they are first read.

    Attributes:
        mech: The mechanism; None in a recording that was loaded without one.
        name: The mechanism's name.
        t: Times of the records (k,) [s].
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv).
        tau: Joint forces (k, nv), those of dampers and springs not among them.
        channels: All channels by name, q, v and tau among them.
        events: What happened, in order of time.
        report: Energy, momentum, loops, what was not modelled.
        integrator: How time was stepped.
        step: The step [s]; NaN where it is no fixed one.
        steps: How many were made.
        stopped: Why the motion ended early; None where it did not.
        dense: Dense output of the integrator, if it has any; not saved.
    """

    mech: Mechanism | None
    name: str
    t: Array
    q: Array
    v: Array
    tau: Array
    channels: Mapping[str, Channel]
    events: tuple[Event, ...]
    if TYPE_CHECKING:
        report: Report
    else:
        report: Report = FieldOnRead()
    integrator: str
    step: float
    steps: int
    stopped: str | None = None
    dense: Dense | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        mech: Mechanism,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        integrator: str = "",
        step: float = float("nan"),
        steps: int | None = None,
        stopped: str | None = None,
        events: Iterable[object] = (),
        channels: Mapping[str, ArrayLike] | Sequence[Channel | Group] = (),
        works: Mapping[str, ArrayLike | None] | None = None,
        work_error: float = 0.0,
        energy: tuple[Array, Array] | None = None,
        forces: Mapping[str, ArrayLike] | None = None,
        forces_frame: Frame = "node",
        held: bool = False,
        passive: bool = True,
        limits: str = "ignore",
        contacts: bool | str | Sequence[str] = False,
        friction: bool = False,
        actuated: bool = False,
        pushed: bool = False,
        not_modelled: Sequence[str] = (),
        stabilization: str = "",
        worst_loop: tuple[float, float] = (float("nan"), float("nan")),
        added_loop: tuple[float, float] = (float("nan"), float("nan")),
        dense: Dense | None = None,
        wall: float = float("nan"),
    ) -> Recording:
        """A recording of states that were computed, with its standard channels.

        Args:
            t: Times (k,) [s], increasing.
            q: Joint positions (k, nq).
            v: Joint velocities (k, nv).
            tau: Joint forces (k, nv), without those of dampers and springs; none by default.
            integrator: How time was stepped.
            step: The step [s].
            steps: How many were made; by default one from record to record.
            stopped: Why it ended early.
            events: `Event`s, or anything with a time `t`, a `name` and a `str()`.
            channels: More channels; or arrays by "name [unit]".
            works: Work since the first record (k,) [J] by name: "joints", "passive", "forces" and
                others, as "contacts". One that is None did work that is not known. What is not
                given is integrated from the records.
            work_error: How far the given works may be off [J].
            energy: Kinetic and potential energy at each record (k,) [J], if they are known.
            forces: Forces from outside at the records, (moment, force) (k, 6) by node.
            forces_frame: Their axes, "node" or "world".
            held: Whether the joint forces of each record act unchanged until the next one.
            passive: Whether dampers and springs of the drives acted.
            limits: What became of joint limits: "ignore", or the way in which they acted.
            contacts: Whether contacts were given; "bodies" where bodies touch each other; or lines
                about what does not touch.
            friction: Whether Coulomb friction of joints acted.
            actuated: Whether the actuators acted.
            pushed: Whether something pushed from outside that the records need not show, as a
                force that acts between two of them: then no momentum is kept.
            not_modelled: More lines about what did not act.
            stabilization: How loops were kept closed.
            worst_loop: Largest distance [m] and angle [rad] at loops after any step, if known.
            added_loop: The same before they were projected.
            dense: Dense output: a function of the time [s] that gives q and v.
            wall: How long it took to compute [s].

        Raises:
            ShapeError: Arrays that do not go together, or are not finite.
            ModelError: Times that do not increase, two channels of one name.
        """
        check_mechanism(mech)
        is_a(str, integrator, "integrator")
        if stopped is not None:
            is_a(str, stopped, "stopped")
        if dense is not None:
            function(dense, "dense")
        for value, what in (
            (held, "held"), (passive, "passive"), (friction, "friction"), (actuated, "actuated"),
            (pushed, "pushed"),
        ):  # fmt: skip
            flag(value, what)
        if not isinstance(contacts, bool | str):
            contacts = all_are(str, contacts, "contacts")
        for text, what in ((limits, "limits"), (stabilization, "stabilization")):
            is_a(str, text, what)
        check_frame(forces_frame, "forces_frame")
        work_error = float(constant(work_error, (), "work_error"))
        for pair, what in ((worst_loop, "worst_loop"), (added_loop, "added_loop")):
            floats(pair, what)
        not_modelled = tuple(not_modelled)
        times = checked_times(t)
        q, v = mech.check_q(q), mech.check_v(v)
        force = np.zeros((len(times), mech.nv)) if tau is None else mech.check_v(tau, "tau")
        force = np.broadcast_to(force, (len(times), mech.nv)) if force.ndim == 1 else force
        for what, array, size in (("q", q, mech.nq), ("v", v, mech.nv), ("tau", force, mech.nv)):
            if array.shape != (len(times), size):
                raise ShapeError(
                    f"{what} of a recording has the shape {array.shape}; for {len(times)} times of "
                    f"{mech.name!r} it is ({len(times)}, {size})."
                )
        acting = {node: checked_force(node, f, len(times)) for node, f in (forces or {}).items()}
        for node in acting:
            mech.node(node)
        q, v, force = (frozen(np.array(x)) for x in (q, v, force))  # nobody writes into these
        axes = "of the node" if forces_frame == "node" else "of the world"
        pushes = [
            Channel(f"force.{node}", ("N m",) * 3 + ("N",) * 3, f"from outside, in axes {axes}", f,
                    ("mx", "my", "mz", "fx", "fy", "fz"))
            for node, f in acting.items()
        ]  # fmt: skip
        acting = {node: x.values for node, x in zip(acting, pushes, strict=True)}
        known = checked_works(works or {}, len(times))
        if energy is not None:
            energy = checked_energies(energy, len(times))
        energies = OnRead(lambda: standard.energy_channels(mech, q, v, energy))
        spent = OnRead(lambda: budget(
            mech, times, (q, v, force), energies()[-1].values, works=known, error=work_error,
            forces=acting, forces_frame=forces_frame, held=held, passive=passive,
        ))  # fmt: skip

        def notes() -> Notes:
            weight = ()
            if not (pushed or spent().outside):
                weight = standard.weight_alone(mech, force, passive=passive)
            lines = left_out(
                mech, q, v, force, passive=passive, limits=limits, contacts=contacts,
                friction=friction, actuated=actuated,
            )  # fmt: skip
            return Notes(
                not_modelled=(*not_modelled, *lines, *of_the_file(mech)),
                uncounted=spent().uncounted,
                work_error=spent().error,
                weight=weight,
                worst_loop=worst_loop,
                added_loop=added_loop,
                stabilization=stabilization if mech.loops or mech.couplings else "",
                wall=wall,
            )

        columns: list[Channel | Group] = [
            Group(standard.STATES, lambda: standard.state_channels(mech, q, v, force)),
            Group(standard.ENERGIES, energies),
            Group(work_names(known), lambda: spent().channels),
            Group(standard.momentum_names(mech), lambda: standard.momentum_channels(mech, q, v)),
            Group(standard.loop_names(mech), lambda: standard.loop_channels(mech, q, v)),
            *pushes,
            *(as_channels(channels) if isinstance(channels, Mapping) else channels),
        ]
        return made(
            mech, mech.name, times, columns, notes,
            integrator=integrator, step=float(step),
            steps=len(times) - 1 if steps is None else int(steps),
            events=tuple(as_event(x) for x in events), stopped=stopped, dense=dense,
            states=(q, v, force),
        )  # fmt: skip

    # ------------------------------------------------------------------------------- reading

    @property
    def duration(self) -> float:
        """From the first record to the last [s]."""
        return float(self.t[-1] - self.t[0])

    def __len__(self) -> int:
        return len(self.t)

    def channel(self, name: str) -> Channel:
        """A channel, or some of its columns: "energy.total", "q[elbow]", "q[base]".

        Args:
            name: Its name; in brackets a label, a hinge or body with several, or a number.

        Raises:
            UnknownNameError: There is none; names the near ones.
        """
        owner = f"the recording of {self.name!r}"
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"{name!r} does not name a channel; {owner} has them by name, like 'q' or "
                "'energy.total', and is cut by times, like rec[0.5:1.0]."
            )
        if name in self.channels:
            return self.channels[name]
        head, label = split_label(name)
        if label is None or head not in self.channels:
            known = [
                x for channel in self.channels.values() for x in (channel.name, *channel.columns)
            ]
            raise unknown_name("channel", name, known, owner=owner)
        return self.channels[head].column(label, hinge=self._hinge(label))

    def _hinge(self, label: str) -> str | None:
        """The hinge of a body of that name."""
        k = -1 if self.mech is None else self.mech.body_index.get(label, -1)
        return None if self.mech is None or k < 0 else self.mech.bodies[k].hinge_name

    def __getitem__(self, key: str | slice) -> Any:
        """Values of a channel, (k,) or (k, n), by name; a part of the recording by times."""
        if isinstance(key, slice):
            return self._between(key)
        return self.channel(key).values

    def __add__(self, other: object) -> Recording:
        """This motion followed by another of the same mechanism, whose times continue.

        The first record of the other motion coincides with the last of this one and is left out;
        if the state differs there, an event "jump" reports it. Works continue; a channel that only
        one of the two has is NaN in the other.

        Raises:
            ModelError: The mechanisms differ, by name or by coordinates.
        """
        if not isinstance(other, Recording):
            return NotImplemented
        from linkwise.simulation.concatenation import concatenated

        return concatenated(self, other)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.channels

    __iter__ = None  # neither over records nor over channels: say which

    def __reduce__(self) -> tuple[Any, ...]:  # dense output is a function, and stays behind
        parts = (self.mech, self.name, self.t, list(self.channels.values()), self.report.notes)
        rest = (self.integrator, self.step, self.steps, self.events, self.stopped)
        return _again, (parts, rest)

    def _between(self, times: slice) -> Recording:
        if times.step is not None:
            raise ModelError(
                f"a recording is cut as rec[start:stop], in seconds; found a step {times.step!r}. "
                "rec.at(times) gives states at times of your own."
            )
        start = self.t[0] if times.start is None else float(floats(times.start, "start"))
        stop = self.t[-1] if times.stop is None else float(floats(times.stop, "stop"))
        slack = 1e-9 * max(1.0, abs(float(self.t[-1])))  # times are sums of steps
        rows = np.flatnonzero((self.t >= start - slack) & (self.t <= stop + slack))
        if not len(rows):
            raise ModelError(
                f"no record of {self.name!r} lies between {start:.6g} s and {stop:.6g} s; it has "
                f"{len(self)}, from {self.t[0]:.6g} s to {self.t[-1]:.6g} s."
            )
        cut = slice(int(rows[0]), int(rows[-1]) + 1)
        t = self.t[cut]
        channels = [channel.taken(cut) for channel in self.channels.values()]
        steps = round(self.steps * (len(t) - 1) / max(len(self) - 1, 1))
        if np.isfinite(self.step) and self.step > 0.0:
            steps = round(float(t[-1] - t[0]) / self.step)
        within = (x for x in self.events if t[0] <= x.t <= t[-1])
        stopped = self.stopped if rows[-1] == len(self) - 1 else None
        unknown = (np.nan, np.nan)
        notes = replace(
            self.report.notes, worst_loop=unknown, added_loop=unknown, wall=np.nan, compiling=0.0
        )
        return made(
            self.mech, self.name, t, channels, notes, integrator=self.integrator,
            step=self.step, steps=steps, events=tuple(within), stopped=stopped, dense=self.dense,
        )  # fmt: skip

    def at(self, t: ArrayLike) -> tuple[Array, Array]:
        """q and v at a time, or at several.

        By the dense output of the integrator where it has one, else by a cubic from record to
        record on the configuration manifold, which meets q and v at both: the error over an
        interval h between records is O(h⁴) in q and O(h³) in v.

        Args:
            t: A time [s] within the recording, or several (m,).

        Returns:
            q (nq,) and v (nv,), or (m, nq) and (m, nv).

        Raises:
            ModelError: Before the first record or after the last; or the recording was loaded
                without its mechanism.
        """
        times = floats(t, "t")
        if times.ndim > 1 or not np.isfinite(times).all():
            raise ShapeError(f"t is {t!r}; it is a time [s] or several (m,), finite.")
        flat = np.atleast_1d(times)
        slack = 1e-9 * max(1.0, float(np.abs(self.t).max()))
        wrong = flat[(flat < self.t[0] - slack) | (flat > self.t[-1] + slack)]
        if len(wrong):
            raise ModelError(
                f"there is no state at {wrong[0]:.9g} s; the recording of {self.name!r} covers "
                f"{self.t[0]:.9g} s to {self.t[-1]:.9g} s."
            )
        flat = np.clip(flat, self.t[0], self.t[-1])
        if self.dense is not None:
            states = [self.dense(float(x)) for x in flat]
            q = np.array([x[0] for x in states]).reshape(len(flat), self.q.shape[1])
            v = np.array([x[1] for x in states]).reshape(len(flat), self.v.shape[1])
        else:
            q, v = between(self._mech("a state between records"), self.t, self.q, self.v, flat)
        return (q[0], v[0]) if times.ndim == 0 else (q, v)

    def _mech(self, purpose: str) -> Mechanism:
        if self.mech is None:
            raise ModelError(
                f"{purpose} needs the mechanism, and the recording of {self.name!r} was loaded "
                "without: lw.load_recording(path, mech)."
            )
        return self.mech

    # ------------------------------------------------------------------------------- writing

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to a file; the suffix selects the format.

        .npz keeps times and channels to the last bit, with names, units and labels; also the
        mechanism's name, integrator, step, events, the notes of the report and the version of
        Linkwise. `lw.load_recording` reads it. .csv is a table for other programs: one row a
        record under names with units.

        .mp4 and .gif (extra `video`) are films, drawn with the shapes of the viewer without a
        display; `lw.viewer.export_video` has options for them.

        Args:
            path: The file; one that exists is replaced once the new one is complete.

        Raises:
            ModelError: An unknown suffix, a missing folder, or two columns of one name.
            WriteError: The file cannot be written; an existing one is unchanged.
            MissingExtraError: The package for films is not installed.
        """
        from linkwise.simulation.recording_file import save_recording

        save_recording(self, path)

    def with_channel(self, name: str, values: ArrayLike, *, labels: Sequence[str] = (),
                     about: str = "") -> Recording:  # fmt: skip
        """The same recording with one more channel, named "name [unit]".

        Args:
            name: Its name, with the unit in brackets behind it.
            values: (k,) or (k, n).
            labels: A name for each column.
            about: What it is.
        """
        new = Channel.of(name, values, labels=labels, about=about)
        channels = ChannelTable([*self.channels.values(), new], len(self))
        return replace(self, channels=channels)

    def with_notes(self, **notes: Any) -> Recording:
        """The same recording with other `Notes` in its report, by name."""

        def noted() -> Report:
            return replace(self.report, notes=replace(self.report.notes, **notes))

        return replace(self, report=cast("Report", OnRead(noted)))

    def __str__(self) -> str:
        return str(self.report)

    def __repr__(self) -> str:
        return (
            f"<Recording of {self.name!r}: {self.duration:.6g} s, {len(self)} records, "
            f"{len(self.channels)} channels>"
        )


def made(
    mech: Mechanism | None,
    name: str,
    t: Array,
    channels: Sequence[Channel | Group],
    notes: Notes | Callable[[], Notes],
    *,
    integrator: str,
    step: float,
    steps: int,
    events: tuple[Event, ...],
    stopped: str | None,
    dense: Dense | None = None,
    states: tuple[Array, Array, Array] | None = None,
) -> Recording:
    """A recording of channels that are complete: with q, v and tau, and its report.

    Args:
        states: The values of q, v and tau, if they are at hand.
    """
    known, times = ChannelTable(channels, len(t)), frozen(np.array(t))
    summary = OnRead(lambda: report(
        name, times, known, notes() if callable(notes) else notes, integrator=integrator,
        step=step, steps=steps, events=events, stopped=stopped,
    ))  # fmt: skip
    q, v, tau = states or (known[x].values for x in standard.STATES)
    return Recording(
        mech, name, times, q, v, tau, known, events, cast("Report", summary), integrator, step,
        steps, stopped, dense,
    )  # fmt: skip


def _again(parts: tuple[Any, ...], rest: tuple[Any, ...]) -> Recording:
    names = ("integrator", "step", "steps", "events", "stopped")
    return made(*parts, **dict(zip(names, rest, strict=True)))
