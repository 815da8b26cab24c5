"""The method of Dormand and Prince of order eight, with adaptive steps and dense output.

The state is y = (x, u, works): local coordinates of the configuration (`chart.py`), rates, and the
work that was done. The chart is made anew where bodies have turned far from where it was made, and
the method begins anew with the same step: at contacts and limits, where the controller is asked,
and, with loops, after each step, when they were put back to where they are closed.

Source: SciPy's DOP853, after Hairer, Norsett and Wanner; errors are estimated by orders 5 and 3,
its interpolant is of order seven.
"""

from __future__ import annotations

import bisect
import importlib
from typing import Any

import numpy as np

from linkwise.errors import (
    ClosureError,
    MissingExtraError,
    SimulationError,
    SingularHingeError,
    TooLargeError,
)
from linkwise.model.hinges import Free, Hinge, Spherical
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import WORKERS
from linkwise.simulation.divergence import blown_up, fastest, gave_up, is_bounded
from linkwise.simulation.moment import Moment
from linkwise.simulation.observer import MOST, Observer
from linkwise.simulation.rates import moved, rate_acceleration, rates, turning, velocities
from linkwise.simulation.timetable import Progress
from linkwise.spatial.array import Array

FAR = 1.5
"""Rotation vectors longer than this [rad] ask for a new chart; at 2π it ends."""


class Chart:
    """x = (θ, raw): q = q₀ ⊕ θ, and q itself for hinges with a special rule.

    For hinges with plain coordinates θ̇ = u, for free and ball hinges θ̇ = dexp⁻¹ u
    (`rates.turning`). Planar hinges, rolling balls and others have the entries of q in `raw`, with
    the rate that the hinge says, and quaternions among them are made of unit length.

    Attributes:
        about: The configuration q₀ (nq,) the chart is about.
        size: How many coordinates x has.
    """

    def __init__(self, mech: Mechanism, about: Array) -> None:
        self.mech, self.about = mech, about
        self._others = list[tuple[Hinge, slice, slice, slice]]()
        self._balls = list[int]()
        size = mech.nv
        for k, body in enumerate(mech.bodies):
            in_q = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
            in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
            if type(body.hinge) in (Free, Spherical):
                self._balls.append(in_v.start)
            elif type(body.hinge).integrate is not Hinge.integrate:
                in_x = slice(size, size + body.hinge.nq)
                size = in_x.stop
                self._others.append((body.hinge, in_q, in_v, in_x))
        self.size = size

    def begin(self) -> Array:
        """x of the configuration that the chart is about."""
        x = np.zeros(self.size)
        for _, in_q, _, in_x in self._others:
            x[in_x] = self.about[in_q]
        return x

    def q(self, x: Array) -> Array:
        """q (nq,) of x (size,)."""
        q = moved(self.mech, self.about, x[: self.mech.nv], 1.0)
        for hinge, in_q, _, in_x in self._others:
            q[in_q] = hinge.normalise(x[in_x])
        return q

    def rate(self, x: Array, q: Array, u: Array) -> Array:
        """ẋ (size,) at x, which is q, with rates u (nv,)."""
        out = np.empty(self.size)
        nv = self.mech.nv
        out[:nv] = turning(self.mech, x[:nv], u)
        for hinge, in_q, in_v, in_x in self._others:
            out[in_v] = 0.0
            out[in_x] = hinge.qdot(q[in_q], u[in_v])
        return out

    def is_far(self, x: Array) -> bool:
        """Whether a rotation vector is long."""
        return any(x[j : j + 3] @ x[j : j + 3] > FAR * FAR for j in self._balls)


LOOKS = 4
"""In how many parts a step is looked at for events, at least."""

CHATTER = 1e-4
"""Contacts and limits that go on and off so often in this time [s] are stuck there. The `step` of
a run says nothing of it: here it is only how often there are records."""

PACES = ((500, 2e5, 1e5), (2000, 1e9, 0.0))
"""A run would never end: after this many steps, with this many left at the current pace, and a
speed above this [rad/s or m/s]. Speeds of 1e5 in short steps are those of a motion that diverges;
stiff mechanisms and forces that switch may take long, but not for years."""

UNCHECKED = 1e300
"""Absolute tolerance of the works: they do not decide about steps."""


class _Flow:
    """The equation ẏ = f(t, y) in one chart, and what y means."""

    def __init__(self, observer: Observer, chart: Chart) -> None:
        self.observer, self.chart = observer, chart
        self.mech, self.stepper = observer.stepper.mech, observer.stepper

    def y(self, now: Moment) -> Array:
        """y of a moment the chart is about."""
        u = rates(self.mech, now.q, now.v)
        return np.concatenate([self.chart.begin(), u, now.work])

    def parts(self, y: Array) -> tuple[Array, Array, Array]:
        """x, u and works."""
        n, nv = self.chart.size, self.mech.nv
        return y[:n], y[n : n + nv], y[n + nv :]

    def state(self, y: Array) -> tuple[Array, Array]:
        """q and v."""
        x, u, _ = self.parts(y)
        q = self.chart.q(x)
        return q, velocities(self.mech, q, u)

    def moment(self, t: float, y: Array) -> Moment:
        """A moment, with loops kept closed."""
        q, v = self.state(y)
        work, loops = self.parts(y)[2], self.stepper.loops
        if loops is None:
            return Moment(t, q, v, work)
        q, v = loops.kept(q, v)
        return Moment(t, q, v, work, loops.last)

    def __call__(self, t: float, y: Array) -> Array:
        x, u, _ = self.parts(y)
        q = self.chart.q(x)
        v = velocities(self.mech, q, u)
        self.stepper.powers.clear()
        vdot = self.stepper.accelerate(t, q, v)
        udot = rate_acceleration(self.mech, q, v, vdot)
        return np.concatenate([self.chart.rate(x, q, u), udot, self.stepper.applied.power])


class DenseOutput:
    """q and v at any time of a run; the interpolants of all steps."""

    def __init__(self) -> None:
        self._times = list[float]()
        self._pieces = list[tuple[_Flow, Any]]()

    def add(self, flow: _Flow, piece: Any) -> None:
        """One more step; what an earlier one said of later times counts no longer."""
        self._times.append(float(piece.t_old))
        self._pieces.append((flow, piece))

    def left(self, count: int, end: float) -> float:
        """How many steps there are up to a time [s] at the pace of the last few; 0 if not known."""
        if len(self._times) < count:
            return 0.0
        now = float(self._pieces[-1][1].t)
        return count * (end - now) / max(now - self._times[-count], 1e-300)

    def __call__(self, t: float) -> tuple[Array, Array]:
        """q and v at a time [s]."""
        flow, piece = self._pieces[max(0, bisect.bisect_right(self._times, t) - 1)]
        return flow.state(piece(t))


def adaptive_steps(observer: Observer, bar: Progress, rtol: float, atol: float) -> None:
    """All of a run.

    Args:
        observer: The run; its timetable says when the controller is asked and records are made.

    Raises:
        MissingExtraError: SciPy is not installed.
        SimulationError: The motion cannot go on; says when, where and why.
    """
    try:
        method: Any = importlib.import_module("scipy.integrate").DOP853
    except ImportError:
        call = "lw.simulate(..., integrator='adaptive')"
        raise MissingExtraError(call, package="scipy", extra="simulate") from None
    plan, dense = observer.plan, DenseOutput()
    rtol = max(rtol, 100.0 * float(np.finfo(np.float64).eps))  # what SciPy would warn of
    observer.dense = dense if plan.steps and observer.stepper.mech.nv else None
    first, ticks = None, 0
    while observer.now.t < plan.end and observer.stopped is None and observer.dense is not None:
        ticks += 1
        bound = plan.time(ticks * plan.per_tick) if plan.per_tick else plan.end
        while observer.now.t < bound and observer.stopped is None:
            first = _until(observer, bar, dense, method, bound, first, rtol, atol)
            recent = observer.events[-MOST:]
            if len(recent) == MOST and recent[0].t > observer.now.t - CHATTER:
                raise _chatters(observer)
        if bound < plan.end and observer.stopped is None:
            observer.tick(ticks)  # before the record: it has what acts from there on
            if plan.records_at(ticks * plan.per_tick):
                observer.record()
                observer.check()
    if observer.dense is None:  # nothing can move
        observer.now = Moment(plan.end, observer.now.q, observer.now.v, observer.now.work)


def _until(
    observer: Observer,
    bar: Progress,
    dense: DenseOutput,
    method: Any,
    bound: float,
    first: float | None,
    rtol: float,
    atol: float,
) -> float | None:
    """Steps in one chart: up to a time, or where the method has to begin anew.

    Returns:
        The step to begin with then.
    """
    now, mech, loops = observer.now, observer.stepper.mech, observer.stepper.loops
    flow = _Flow(observer, Chart(mech, now.q))
    y = flow.y(now)
    tolerance = np.full(len(y), atol)
    tolerance[len(y) - len(WORKERS) :] = UNCHECKED
    if first is not None:
        first = min(first, bound - now.t)
    try:
        with np.errstate(all="ignore"):
            if not np.isfinite(flow(now.t, y)).all():
                raise _stuck(observer, "the accelerations are not finite.")
            solver = method(flow, now.t, y, bound, first_step=first, rtol=rtol, atol=tolerance)
            while solver.status == "running" and observer.stopped is None:
                trouble: str | None = solver.step()
                if trouble is not None:
                    raise _stuck(observer, trouble)
                piece = solver.dense_output()
                dense.add(flow, piece)
                observer.stiffness.look(solver, len(y) - len(WORKERS))
                _check_pace(observer, dense, flow.state(solver.y))
                observer.made += 1
                cut = _looked_at(observer, flow, piece, bound)
                bar(observer.now.t)
                if cut or loops is not None or flow.chart.is_far(solver.y):
                    break
            return float(solver.h_abs) or None
    except (ClosureError, SingularHingeError, TooLargeError, np.linalg.LinAlgError) as error:
        raise gave_up(mech, observer.now.t, observer.now.q, observer.now.v, error) from error


def _looked_at(observer: Observer, flow: _Flow, piece: Any, bound: float) -> bool:
    """Records and events within one step; whether it was cut."""
    begin, end = float(piece.t_old), float(piece.t)
    plan = observer.plan
    due = set(plan.records_within(begin, end))
    if bound < plan.end:
        due.discard(bound)  # recorded when the controller was asked
    looks = set[float]()
    if observer.groups:
        looks = {begin + (end - begin) * i / LOOKS for i in range(1, LOOKS)}
    for t in [*sorted(due | looks), end]:
        before = observer.now
        moment = flow.moment(t if t < end else min(end, bound), piece(t))

        def at(s: float, start: float = before.t) -> Moment:
            return flow.moment(start + s, piece(start + s))

        if observer.within(before, moment, at, moment.t - before.t) is not None:
            return True
        if t in due or moment.t >= plan.end:
            observer.record()
            observer.check()
    return False


def _check_pace(observer: Observer, dense: DenseOutput, state: tuple[Array, Array]) -> None:
    """Raise where the state is none of a motion that goes on, or the run would never end."""
    now, stepper, end = observer.now, observer.stepper, observer.plan.end
    if not is_bounded(*state):
        raise blown_up(stepper.mech, now.t, now.q, now.v)
    speed = float(np.abs(state[1]).max(initial=0.0))
    for count, most, fast in PACES:
        left = dense.left(count, end)
        if left > most and speed > fast:
            why = f"at this pace {left:.2g} steps are left until t = {end:.9g} s."
            if fast:
                now_at = (now.t, now.q, now.v)
                raise blown_up(stepper.mech, *now_at, why.capitalize())
            raise _stuck(observer, why)


def _stuck(observer: Observer, why: str) -> SimulationError:
    now, mech = observer.now, observer.stepper.mech
    return SimulationError(
        f"{mech.name!r} cannot go on after t = {now.t:.9g} s: the adaptive integrator found no "
        f"step short enough; {why.strip()} {fastest(mech, now.q, now.v)} The motion grows without "
        "bounds there, or what acts on it jumps: hold a controller that switches with "
        "control_step=..., or use integrator='rk4'."
    )


def _chatters(observer: Observer) -> SimulationError:
    now, mech = observer.now, observer.stepper.mech
    names = ", ".join(dict.fromkeys(repr(x.name) for x in observer.events[-MOST:]))
    return SimulationError(
        f"{mech.name!r} chatters at t = {now.t:.9g} s: more than {MOST} events within "
        f"{CHATTER:.3g} s, of {names}. {fastest(mech, now.q, now.v)} Give contacts or "
        "limits more damping, or use integrator='rk4'."
    )
