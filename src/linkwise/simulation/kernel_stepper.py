"""Many steps of one motion by a kernel, some at a time, and the work that was done in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import WORKERS, AppliedForces
from linkwise.simulation.divergence import is_bounded
from linkwise.simulation.moment import Moment
from linkwise.simulation.rollout_input import FeedbackLaw, commands
from linkwise.simulation.timetable import Counts
from linkwise.spatial.array import Array

BLOCK = 1024
"""Steps whose states are in memory at a time: in a cache, where only few of them are recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelSteps:
    """States after some of many steps.

    Attributes:
        made: After how many steps each of them is (k,).
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv).
        work: Work that was done since the beginning of the run, by each of `WORKERS` (k, n) [J].
        complete: Whether all steps went well; what comes after the last of them has diverged.
        path: q and v at the beginning and after each step (n + 1, nq + nv), if they were kept.
    """

    made: Counts
    q: Array
    v: Array
    work: Array
    complete: bool
    path: Array


class KernelStepper:
    """Makes many steps of one motion by a kernel.

    Attributes:
        mech: The mechanism.
        count_work: Whether work is counted; else it follows from the records.
        law: A control law that is part of the kernel, asked at each step, and its goal; or None.
    """

    def __init__(
        self,
        mech: Mechanism,
        kernel: MotionKernel,
        applied: AppliedForces,
        count_work: bool,
        law: tuple[FeedbackLaw, Any] | None,
    ) -> None:
        self.mech, self.kernel, self.applied, self.count_work = mech, kernel, applied, count_work
        self.law = law
        self._held = {} if law is None else commands(*law)
        self._damped = applied.passive and bool(mech.damping.any())

    @property
    def foreseen(self) -> bool:
        """Whether nothing has to be asked from Python between the ticks of a controller."""
        return self.law is not None or self.applied.foreseen

    def forces(self, ticks: Counts, path: Array, made: int) -> Array:
        """Joint forces of the user (k, nv) from ticks of these numbers on.

        Args:
            ticks: The numbers (k,); of a law, which is asked at each step, those of steps.
        """
        if self.law is None:
            return self.applied.known(ticks)
        (law, goal), at = self.law, path[ticks - made]
        return self.applied.noted(law(at[:, : self.mech.nq], at[:, self.mech.nq :], goal))

    def advance(
        self, now: Moment, h: float, ends: Counts, tau: Array | None, *, kept: bool = True
    ) -> KernelSteps:
        """States at the ends of some intervals.

        Args:
            ends: After how many steps each interval ends (k,), increasing.
            tau: Joint forces that are held in each of them (k, nv); None where a law gives them.
            kept: Whether the states after all steps are kept.
        """
        steps, nq = int(ends[-1]), self.mech.nq
        each = len(ends) == steps
        size = steps if kept or each or tau is None else min(steps, BLOCK)
        path = np.empty((size + 1, self.kernel.width))
        at = path[1:] if each else np.empty((len(ends), self.kernel.width))
        path[0, :nq], path[0, nq:] = now.q, now.v
        acts = None if tau is None else _of_steps(tau, ends)
        measured = Trapezoids(steps, self.mech.damping if self._damped else None)
        call, done, last = None, None, 0
        for begin in range(0, steps, size):
            count = min(size, steps - begin)
            rows, held = path[: count + 1], self._held
            if acts is not None:
                force = acts if len(acts) == 1 else acts[begin : begin + count]
                held = {"tau": force}
            path[0] = path[size] if begin else path[0]
            if call is None or done is None or count < size or (acts is not None and len(acts) > 1):
                course = Course(h, count, 1)
                call, done = self.kernel.repeated(
                    rows[0, :nq], rows[0, nq:], held, course, rows[None, 1:]
                )
            call()
            if done.status[0]:
                rows[1 + int(done.failed[0]) :] = np.nan
            first, last = last, int(np.searchsorted(ends, begin + count, side="right"))
            if not each:
                at[first:last] = rows[ends[first:last] - begin]
            if done.status[0]:
                at[last:] = np.nan
                break
            if self.count_work and acts is not None:
                measured.add(begin, rows[:, nq:], held["tau"])
        good = is_bounded(at[:, :nq], at[:, nq:])  # all of them; else, up to which?
        count = len(ends) if good else next(
            i for i, x in enumerate(at) if not is_bounded(x[:nq], x[nq:])
        )  # fmt: skip
        ends, at, work = ends[:count], at[:count], np.tile(now.work, (count, 1))
        if self.count_work and count:
            if tau is None:
                tau = self.forces(ends - 1, path, 0)
                measured.add(0, path[: int(ends[-1]) + 1, nq:], _of_steps(tau, ends))
            first = np.concatenate([now.q, now.v])[None]
            work = work + self._works(np.concatenate([first, at]), ends, tau[:count], h, measured)
        return KernelSteps(ends, at[:, :nq], at[:, nq:], work, good, path)

    def _works(
        self, states: Array, ends: Counts, tau: Array, h: float, measured: Trapezoids
    ) -> Array:
        """Work of held joint forces, dampers and springs up to each end (k, n).

        The trapezoidal rule with the correction of Euler and Maclaurin, of order four, for each
        interval over which the joint forces are held:
            ∫ P dt = h (½ P₀ + P₁ + … + ½ P_n) + h²/12 (Ṗ₀ − Ṗ_n)

        Args:
            states: q and v at the beginning and at each end (k + 1, nq + nv).
        """
        work = np.zeros((len(ends), len(WORKERS)))
        q, v = (np.ascontiguousarray(x) for x in np.split(states, [self.mech.nq], axis=1))
        stored = np.broadcast_to(self.applied.stored(q), len(states))
        work[:, 1] = stored[0] - stored[1:]
        if not (self._damped or tau.any()):
            return work
        around = (q[:-1], v[:-1]), (q[1:], v[1:])
        if (tau == tau[0]).all():  # the same on both sides of each end
            rate = self._accelerations(q, v, tau[0])
            rates = [rate[:-1], rate[1:]]
        else:
            rates = [self._accelerations(at, speed, tau) for at, speed in around]

        def up_to(trapezoids: Array, slopes: list[Array]) -> Array:
            area = np.cumsum(trapezoids)[ends - 1]
            return h * area + h * h / 12.0 * np.cumsum(slopes[0] - slopes[1])

        if tau.any():
            slopes = [np.einsum("ij,ij->i", tau, rate) for rate in rates]
            work[:, 0] = up_to(measured.driven, slopes)
        if self._damped:
            d, pairs = self.mech.damping, zip(around, rates, strict=True)
            slopes = [-2.0 * (speed * rate) @ d for (_, speed), rate in pairs]
            work[:, 1] += up_to(measured.damped, slopes)
        return work

    def _accelerations(self, q: Array, v: Array, tau: Array) -> Array:
        """v̇ (k, nv) by joint forces, dampers and springs."""
        total, codes = tau + self.applied.resisting(q, v), np.zeros(len(q), dtype=np.int32)
        rate = forward_dynamics(self.mech, q, v, total, status=codes)
        for i in np.flatnonzero(codes)[:1]:
            forward_dynamics(self.mech, q[i], v[i], total[i])  # raises, and says why
        return rate


class Trapezoids:
    """½ (P + P') of each step, with the powers P of held joint forces and of dampers.

    Attributes:
        driven: Of joint forces (n,) [W].
        damped: Of dampers, likewise; zeros where there are none.
    """

    def __init__(self, steps: int, damping: Array | None) -> None:
        self.driven, self.damped, self._damping = np.zeros(steps), np.zeros(steps), damping

    @np.errstate(over="ignore", invalid="ignore")  # before a motion that diverges is noticed
    def add(self, begin: int, v: Array, tau: Array) -> None:
        """Those of steps from velocities (m + 1, nv), with joint forces (1, nv) or (m, nv)."""
        steps = slice(begin, begin + len(v) - 1)
        if len(tau) > 1:
            self.driven[steps] = np.einsum("ij,ij->i", tau, 0.5 * (v[:-1] + v[1:]))
        elif tau.any():
            self.driven[steps] = _means(v @ tau[0])
        if self._damping is not None:
            self.damped[steps] = -_means((v * v) @ self._damping)


def _means(x: Array) -> Array:
    return 0.5 * (x[:-1] + x[1:])


def _of_steps(tau: Array, ends: Counts) -> Array:
    """Joint forces of each step (n, nv), or (1, nv) for all, of those of intervals (k, nv)."""
    same = (tau == tau[0]).all()
    return tau[:1] if same else np.repeat(tau, np.diff(ends, prepend=0), axis=0)
