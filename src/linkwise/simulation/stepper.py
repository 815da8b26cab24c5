"""From one moment to a later one: single steps in NumPy, or many by a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.errors import (
    ClosureError,
    LoweringError,
    ModelError,
    SingularHingeError,
    TooLargeError,
)
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import AppliedForces
from linkwise.simulation.divergence import blown_up, gave_up, is_bounded
from linkwise.simulation.integrators import Integrator
from linkwise.simulation.kernel_stepper import KernelStepper
from linkwise.simulation.loop_keeper import LoopKeeper
from linkwise.simulation.moment import Moment
from linkwise.simulation.motion_request import COMPILED, MotionRequest
from linkwise.simulation.rates import in_rates, rates, velocities
from linkwise.simulation.rollout_input import FeedbackLaw, checked_law
from linkwise.simulation.rollout_kernel import motion_kernel, worth_compiling
from linkwise.simulation.timetable import Timetable
from linkwise.spatial.array import Array


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
