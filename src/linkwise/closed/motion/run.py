"""The motion of a closed chain, step by step."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np

from linkwise.closed.motion.acting import (
    Force,
    JointForces,
    OutsideForce,
    OutsideForces,
    check_arguments,
)
from linkwise.closed.motion.keep import Keep, velocity_error
from linkwise.closed.motion.recording import ConstrainedMotion, Drift
from linkwise.closed.motion.stepper import Stepper
from linkwise.closed.motion.watch import (
    Crossing,
    Margin,
    State,
    check_watch,
    crossings_within,
    margins,
)
from linkwise.dynamics import kinetic_energy, potential_energy
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

PATIENCE = 10.0
"""After this long [s], and each time again, one line on stderr tells how far a run has come."""


def constrained_motion(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    tau: JointForces | Force = 0.0,
    duration: float,
    step: float = 1e-3,
    hold: bool = False,
    keep: Keep = "projection",
    baumgarte: tuple[float, float] = (20.0, 20.0),
    forces: OutsideForces | OutsideForce | None = None,
    frame: Frame = "node",
    potential: Callable[[Array], float] | None = None,
    watch: Mapping[str, Margin] | None = None,
    stop: bool = True,
    record_every: int = 1,
    start: float = 0.0,
    drift_limit: float = 0.05,
    progress: Callable[[float], None] | None = None,
) -> ConstrainedMotion:
    """Move a mechanism with loops and couplings through time.

    Expression:
        v̇ from 𝓜 v̇ + C = τ + J_c* λ, J_c v̇ + γ = 0 (`constrained_forward_dynamics`), by `rk4_step`
    and after every step, with keep="projection", q and v go to the nearest state that the loops
    allow (`project_position`, `project_velocity`). With "baumgarte" J_c v̇ + γ = −2 a (J_c v) − b² e
    instead, and with "nothing" the errors of the steps add up.

    Nothing acts but gravity and what is given: damping, springs, friction and limits of the drives
    are data of the mechanism, no part of its motion. Damping is `tau=lambda t, q, v: -mech.damping
    * v`, and inside the hinges of loops `forces=lambda t, q, v: lw.loop_drive_forces(mech, q, v)`.

    A margin that is watched is looked at after every step. Where it has become negative the instant
    is searched for within the step, to 1e-9 s, by making shorter steps from its beginning. What is
    lost and won back within one step is not seen.

    Args:
        mech: The mechanism; one without loops moves as well.
        q: Joint positions (nq,) at the beginning, with loops closed (`assemble`).
        v: Joint velocities (nv,) at the beginning, with J_c v = 0 (`project_velocity`).
        tau: Joint forces [N or N m]: a number for all, (nv,), numbers by the names of hinges, or a
            function of (t, q, v) that gives one of these.
        duration: How long to move [s].
        step: The step of time [s]; the last one may be shorter.
        hold: Whether `tau` is asked once a step, at its beginning, and held, as by a controller
            that works in steps. It sees closed loops only; within a step they are open a little.
        keep: "projection", "baumgarte" or "nothing".
        baumgarte: a and b [1/s] for keep="baumgarte".
        forces: Forces from outside by node, as in `forward_dynamics`, or a function of (t, q, v)
            that gives them; `hold` does not hold these.
        frame: Axes of `forces`: those of the "node" or of the "world".
        potential: Energy of what `tau` and `forces` store, a function of q [J], to be counted in
            the energy. Without it the report tells a change of the energy where such forces act,
            which do work, and its drift where none do.
        watch: Margins by name: functions of (t, q, v, tau) that are negative when there is trouble.
        stop: Whether to end at the first margin that is lost, or to note it and go on.
        record_every: How many steps from one record to the next; the last state is always recorded.
        start: The time at the beginning [s].
        drift_limit: Errors of loops larger than this [m or rad] after one step end the run.
        progress: Called with the time [s] after every step; without it a run of more than 10 s
            writes a line on stderr now and then, if that is a terminal.

    Returns:
        A recording; `print` it for a report.

    Raises:
        ClosureError: The loops are open at the beginning, cannot be kept closed, or the motion
            grows without bounds; says when, and which loop or hinge.
        ModelError: An argument that means nothing, a force or margin that is not a number.
    """
    _check_whole(mech)
    start = _checked_start(start)
    run = Stepper(mech, tau, hold, keep, baumgarte, forces, frame, drift_limit)
    q, v = run.beginning(mech.check_q(q), mech.check_v(v), start)
    steps = _count(duration, step, record_every)
    watch = check_watch(watch)
    log = _Log(mech, potential)
    state: State = (start, q, v, run.force(start, q, v))
    found = margins(watch, state)
    crossings = [Crossing(n, start, q, v, m) for n, m in found.items() if m < 0.0]
    log.add(state, run.last[0])
    stopped, made, reporter = bool(stop and crossings), 0, _Reporter(duration, start, progress)
    while made < steps and not stopped:
        begin = start + made * step
        length = min(step, start + duration - begin) if made == steps - 1 else step
        before: State = state
        state = run.advance(before, length)
        last, values = run.last, margins(watch, state)
        made += 1

        def within(s: float, old: State = before, end: float = length) -> State:
            return run.advance(old, s, whole=s >= end)

        lost = crossings_within(watch, found, values, within, length)
        found = values
        if lost and stop:
            state, stopped, lost = within(lost[0][0]), True, lost[:1]
            last = run.last
        run.made(last)
        crossings += [crossing for _, crossing in lost]
        if stopped or made % record_every == 0 or made == steps:
            log.add(state, last[0])
        reporter(state[0])
    return log.recording(run, step, made, crossings, stopped)


def _check_whole(mech: object) -> None:
    """Refuse what is no mechanism, and one whose loops are built in."""
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        raise ModelError(
            "constrained_motion moves a mechanism, not one with its loops built in: give it "
            f"embedded.mech, {mech.mech.name!r} itself. A step with independent velocities u is "
            "q = embedded.mech.integrate(q, lw.full_velocity(embedded, q, u), step)."
        )


def _checked_start(start: object) -> float:
    if isinstance(start, int | float) and math.isfinite(start):
        return float(start)
    raise ModelError(f"start is {start!r}; it must be a time [s], a finite number.")


def _check_potential(potential: object) -> None:
    if potential is None:
        return
    if not callable(potential):
        raise ModelError(f"potential is {potential!r}; it is a function of q that gives J.")
    check_arguments(potential, "potential", "q")


def _stored(potential: Callable[[Array], float], state: State) -> float:
    """What `tau` and `forces` store [J]."""
    given: object = potential(state[1])
    try:
        value = float(given)  # pyright: ignore[reportArgumentType]  # told below
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ModelError(
            f"potential gave {given!r} at t = {state[0]:.9g} s; it must give one number, the "
            "energy [J] that belongs to q."
        )
    return value


class _Log:
    """The records so far."""

    def __init__(self, mech: Mechanism, potential: Callable[[Array], float] | None) -> None:
        _check_potential(potential)
        self.mech, self.potential = mech, potential
        self.states = list[State]()
        self.numbers = list[tuple[float, float, float, float, float]]()

    def add(self, state: State, off: Drift) -> None:
        """One record."""
        _, q, v, _ = state
        kinetic = float(kinetic_energy(self.mech, q, v))
        total = kinetic + float(potential_energy(self.mech, q))
        if self.potential is not None:
            total += _stored(self.potential, state)
        speed = velocity_error(self.mech, q, v)
        self.states.append(state)
        self.numbers.append((off.distance, off.angle, speed, kinetic, total))

    def recording(
        self, run: Stepper, step: float, steps: int, crossings: list[Crossing], stopped: bool
    ) -> ConstrainedMotion:
        """All of it."""
        t, q, v, tau = (np.array([state[i] for state in self.states]) for i in range(4))
        loop_error, angle_error, speed, kinetic, total = np.array(self.numbers).T
        return ConstrainedMotion(
            name=self.mech.name,
            keep=run.keep,
            step=step,
            steps=steps,
            t=t,
            q=q,
            v=v,
            tau=tau,
            loop_error=loop_error,
            angle_error=angle_error,
            velocity_error=speed,
            kinetic=kinetic,
            energy=total,
            worst=run.worst,
            worst_before=run.worst_before,
            driven=run.acting.any and self.potential is None,
            crossings=tuple(crossings),
            stopped=stopped,
        )


class _Reporter:
    """Says how far a long run has come."""

    def __init__(
        self, duration: float, start: float, progress: Callable[[float], None] | None
    ) -> None:
        self.duration, self.start, self.progress = duration, start, progress
        self.due = time.monotonic() + PATIENCE

    def __call__(self, t: float) -> None:
        if self.progress is not None:
            self.progress(t)
        elif time.monotonic() > self.due:
            self.due = time.monotonic() + PATIENCE
            if sys.stderr.isatty():
                print(f"{t - self.start:.4g} of {self.duration:.4g} s", file=sys.stderr)


def _count(duration: float, step: float, record_every: int) -> int:
    """Number of steps, the last one perhaps shorter."""
    if not (np.isfinite(duration) and duration >= 0.0 and np.isfinite(step) and step > 0.0):
        raise ModelError(
            f"duration={duration!r} s in steps of {step!r} s is no motion: the duration must not "
            "be negative, the step must be above zero, both finite."
        )
    if record_every < 1:
        raise ModelError(f"record_every={record_every!r}; it counts steps and is at least 1.")
    if not duration / step < 1e9:
        raise ModelError(
            f"{duration:.6g} s in steps of {step:.3g} s are {duration / step:.3g} steps, more than "
            "there is time for."
        )
    return int(np.ceil(duration / step - 1e-9))
