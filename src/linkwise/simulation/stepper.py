"""From one moment to a later one: single steps in NumPy, or many by a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.errors import (
    ClosureError,
    LoweringError,
    ModelError,
    SingularHingeError,
    TooLargeError,
)
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import WORKERS, AppliedForces
from linkwise.simulation.divergence import blown_up, gave_up, is_bounded
from linkwise.simulation.integrators import Integrator
from linkwise.simulation.loop_keeper import Drift, LoopKeeper
from linkwise.simulation.motion_request import COMPILED, MotionRequest
from linkwise.simulation.rates import in_rates, rates, velocities
from linkwise.simulation.rollout_input import FeedbackLaw, checked_law, commands
from linkwise.simulation.rollout_kernel import motion_kernel, worth_compiling
from linkwise.simulation.timetable import Counts, Timetable
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class KernelSteps:
    """States after some of many steps.

    Attributes:
        made: After how many steps each of them is (k,).
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv).
        work: Work that was done since the beginning of the run, by each of `WORKERS` (k, n) [J].
        complete: Whether all steps went well; what comes after the last of them has diverged.
        path: q and v at the beginning and after each step (n + 1, nq + nv).
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

    def advance(self, now: Moment, h: float, ends: Counts, tau: Array | None) -> KernelSteps:
        """States at the ends of some intervals.

        Args:
            ends: After how many steps each interval ends (k,), increasing.
            tau: Joint forces that are held in each of them (k, nv); None where a law gives them.
        """
        steps, nq = int(ends[-1]), self.mech.nq
        held = self._held
        if tau is not None:
            same = (tau == tau[0]).all()
            held = {"tau": tau[:1] if same else np.repeat(tau, np.diff(ends, prepend=0), axis=0)}
        done = self.kernel.run(now.q, now.v, held, h, steps, 1)
        path = np.concatenate([[[*now.q, *now.v]], done.records[0]])
        at = path[ends]
        good = is_bounded(at[:, :nq], at[:, nq:])  # all of them; else, up to which?
        count = len(ends) if good else next(
            i for i, x in enumerate(at) if not is_bounded(x[:nq], x[nq:])
        )  # fmt: skip
        ends, at, work = ends[:count], at[:count], np.tile(now.work, (count, 1))
        if self.count_work and count:
            v = path[: int(ends[-1]) + 1, nq:]
            q = np.concatenate([now.q[None], at[:, :nq]])
            tau = self.forces(ends - 1, path, 0) if tau is None else tau[:count]
            work = work + self._works(q, v, ends, tau, h)
        return KernelSteps(ends, at[:, :nq], at[:, nq:], work, good, path)

    def _works(self, q: Array, v: Array, ends: Counts, tau: Array, h: float) -> Array:
        """Work of held joint forces, dampers and springs up to each end (k, n).

        The trapezoidal rule with the correction of Euler and Maclaurin, of order four, for each
        interval over which the joint forces are held:
            ∫ P dt = h (½ P₀ + P₁ + … + ½ P_n) + h²/12 (Ṗ₀ − Ṗ_n)

        Args:
            v: Velocities at the beginning and after each step (n + 1, nv).
        """
        applied, d = self.applied, self.mech.damping
        work = np.zeros((len(ends), len(WORKERS)))
        work[:, 1] = applied.stored(q[0]) - applied.stored(q[1:])
        damped = applied.passive and bool(d.any())
        if not (damped or tau.any()):
            return work
        begins = np.concatenate([[0], ends[:-1]])
        around = (q[:-1], v[begins]), (q[1:], v[ends])
        if (tau == tau[0]).all():  # the same on both sides of each end
            rate = self._accelerations(q, v[np.concatenate([[0], ends])], tau[0])
            rates = [rate[:-1], rate[1:]]
        else:
            rates = [self._accelerations(at, speed, tau) for at, speed in around]

        def up_to(trapezoids: Array, slopes: list[Array]) -> Array:
            area = np.concatenate([[0.0], np.cumsum(trapezoids)])[ends]
            return h * area + h * h / 12.0 * np.cumsum(slopes[0] - slopes[1])

        if tau.any():
            mean = 0.5 * (v[:-1] + v[1:])
            acts = np.repeat(tau, ends - begins, axis=0)
            slopes = [np.einsum("ij,ij->i", tau, rate) for rate in rates]
            work[:, 0] = up_to(np.einsum("ij,ij->i", acts, mean), slopes)
        if damped:
            power = -((v * v) @ d)
            pairs = zip(around, rates, strict=True)
            slopes = [-2.0 * (speed * rate) @ d for (_, speed), rate in pairs]
            work[:, 1] += up_to(0.5 * (power[:-1] + power[1:]), slopes)
        return work

    def _accelerations(self, q: Array, v: Array, tau: Array) -> Array:
        """v̇ (k, nv) by joint forces, dampers and springs."""
        total, codes = tau + self.applied.resisting(q, v), np.zeros(len(q), dtype=np.int32)
        rate = forward_dynamics(self.mech, q, v, total, status=codes)
        for i in np.flatnonzero(codes)[:1]:
            forward_dynamics(self.mech, q[i], v[i], total[i])  # raises, and says why
        return rate


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A state on the way.

    Attributes:
        t: The time [s].
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        work: Work that was done since the beginning, by each of `applied.WORKERS` [J].
        drift: Errors of loops there, and before they were projected.
    """

    t: float
    q: Array
    v: Array
    work: Array
    drift: tuple[Drift, Drift] = (Drift(), Drift())


class Stepper:
    """Makes steps of time.

    Attributes:
        held: Joint forces of the controller that are held (nv,), or None to ask it.
        held_for: How long [s] a controller that looks at the state is held; 0 for none.
        kernel_stepper: What makes many steps at once, or None where each is made in NumPy.
        length: The usual length of a step [s]; None for a method that chooses it.
    """

    held: Array | None
    held_for: float
    length: float | None

    def __init__(
        self, mech: Mechanism, scheme: Integrator, applied: AppliedForces, loops: LoopKeeper | None
    ) -> None:
        self.mech, self.scheme, self.applied, self.loops = mech, scheme, applied, loops
        self.held, self.held_for = None, 0.0
        self.length = None
        self.kernel_stepper: KernelStepper | None = None
        self._weights = np.array(scheme.weights)[:, None]
        self.powers = list[Array]()
        self._rate = in_rates(mech, self.accelerate)

    def compile(self, plan: Timetable) -> None:
        """Let a kernel make the steps, if it can and should.

        With a record after each step and a controller that has to be asked, work follows from the
        records. A controller that is a kernel, and is asked at each step, is part of the step.
        """
        name = self.scheme.name
        if self.loops is not None or not self.applied.steady or name not in COMPILED:
            return
        law = self._law() if plan.per_tick == 1 else None
        ruled = checked_law(self.mech, name, None if law is None else law[0])
        request = MotionRequest(self.mech, name, self.applied.passive, law=ruled)
        if not self.mech.nv or not worth_compiling(request, plan.steps):
            return
        try:
            kernel = motion_kernel(request)
        except LoweringError:  # a hinge or a size that is not compiled: steps in NumPy
            return
        count_work = plan.record_every > 1 or law is not None or self.applied.foreseen
        self.kernel_stepper = KernelStepper(self.mech, kernel, self.applied, count_work, law)

    def _law(self) -> tuple[FeedbackLaw, Any] | None:
        """The control law, and its goal, that can be part of a step."""
        tau, controller = self.applied.tau.constant, self.applied.controller
        law = None if controller is None else controller.law
        if law is None or tau is None or tau.any():
            return None
        try:
            checked_law(self.mech, self.scheme.name, law[0])
        except ModelError:  # one that gives more than joint forces, or is of another mechanism
            return None
        return law

    def advance(self, now: Moment, step: float, steps: int = 1) -> Moment:
        """Some steps later.

        Raises:
            SimulationError: The motion cannot go on; says when, where and why.
        """
        try:
            with np.errstate(all="ignore"):  # what is not finite is found below
                return self._advance(now, step, steps)
        except (ClosureError, SingularHingeError, TooLargeError, np.linalg.LinAlgError) as error:
            raise gave_up(self.mech, now.t, now.q, now.v, error) from error

    def _advance(self, now: Moment, step: float, steps: int) -> Moment:
        if self.kernel_stepper is not None and self.kernel_stepper.law is None:
            return self._by_kernel(self.kernel_stepper, now, step, steps)
        for _ in range(steps):
            now = self._step(now, step)
        return now

    def _by_kernel(
        self, kernel_stepper: KernelStepper, now: Moment, h: float, steps: int
    ) -> Moment:
        """Many steps by the kernel, with the same joint forces."""
        tau = self.applied.commanded(now.t, now.q, now.v, self.held)
        done = kernel_stepper.advance(now, h, np.array([steps]), tau[None])
        if done.complete:
            return Moment(now.t + steps * h, done.q[0], done.v[0], done.work[0])
        good = kernel_stepper.advance(now, h, np.arange(1, steps + 1), np.tile(tau, (steps, 1)))
        if len(good.made):  # up to the last step that went well
            now = Moment(now.t + good.made[-1] * h, good.q[-1], good.v[-1], good.work[-1])
        raise blown_up(self.mech, now.t, now.q, now.v)

    def _step(self, now: Moment, h: float) -> Moment:
        """One step by the integrator in plain NumPy."""
        t, q, v, mech = now.t, now.q, now.v, self.mech
        self.powers.clear()
        make, after = self.scheme.step, t + h
        assert make is not None
        f = self.push if self.scheme.takes == "force" else self._rate
        q, u = make(mech, f, t, q, rates(mech, q, v), h)
        if not is_bounded(q, u):
            raise blown_up(mech, t, now.q, now.v)
        v = velocities(mech, q, u)
        work = now.work + h * (self._weights * self.powers[-len(self._weights) :]).sum(axis=0)
        if self.loops is None:
            return Moment(after, q, v, work)
        q, v = self.loops.kept(q, v)
        return Moment(after, q, v, work, self.loops.last)

    def accelerate(self, t: float, q: Array, v: Array) -> Array:
        """v̇ (nv,) by all forces."""
        applied = self.applied
        tau = applied.joints(t, q, v, self.held)
        outside = applied.outside(t, q, v)
        self.powers.append(applied.power.copy())
        if self.loops is not None:
            return self.loops.accelerated(q, v, tau, outside)
        if outside is None:
            return forward_dynamics(self.mech, q, v, tau)
        return forward_dynamics(self.mech, q, v, tau, forces=outside, forces_frame=applied.frame)

    def push(self, t: float, q: Array, v: Array) -> Array:
        """All forces besides gravity as joint forces (nv,)."""
        total = self.applied.generalised(t, q, v, self.held)
        self.powers.append(self.applied.power.copy())
        return total
