"""From one moment to a later one, by steps of a given length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.errors import ClosureError, LoweringError, ModelError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import Acting
from linkwise.simulation.divergence import blown_up, gave_up, is_bounded
from linkwise.simulation.integrators import Integrator
from linkwise.simulation.leap import Leaper
from linkwise.simulation.loop_error import Drift
from linkwise.simulation.loop_keeper import LoopKeeper
from linkwise.simulation.rates import in_rates, rates, velocities
from linkwise.simulation.rollout_kernel import COMPILED, check_rollout, rollout_kernel
from linkwise.spatial.array import Array
from linkwise.tasks.law import ControlLaw


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A state on the way.

    Attributes:
        t: The time [s].
        q: Joint positions (nq,).
        v: Joint velocities (nv,).
        work: Work that was done since the beginning, by each of `acting.WORKERS` [J].
        drift: Errors of loops there, and before they were projected.
    """

    t: float
    q: Array
    v: Array
    work: Array
    drift: tuple[Drift, Drift] = (Drift(), Drift())


class March:
    """Makes steps of time.

    Attributes:
        held: Joint forces of the controller that are held (nv,), or None to ask it.
        held_for: How long [s] a controller that looks at the state is held; 0 for none.
        leaper: What makes many steps at once, or None where each is made in NumPy.
        length: The usual length of a step [s]; None for a method that chooses it.
    """

    held: Array | None
    held_for: float
    length: float | None

    def __init__(
        self, mech: Mechanism, scheme: Integrator, acting: Acting, loops: LoopKeeper | None
    ) -> None:
        self.mech, self.scheme, self.acting, self.loops = mech, scheme, acting, loops
        self.held, self.held_for = None, 0.0
        self.length = None
        self.leaper: Leaper | None = None
        self._weights = np.array(scheme.weights)[:, None]
        self.powers = list[Array]()
        self._rate = in_rates(mech, self.accelerate)

    def compile(self, *, record_every: int, per_tick: int) -> None:
        """Let a kernel make the steps, if it can.

        Args:
            record_every: How many steps there are from record to record. If it is one, and a
                controller has to be asked, work follows from the records.
            per_tick: How many steps there are from one question to the controller to the next, or
                0. If it is one, a controller that is a kernel is part of the step.
        """
        if self.loops is not None or not self.acting.steady or self.scheme.name not in COMPILED:
            return
        try:
            law = self._law() if per_tick == 1 else None
            kernel = rollout_kernel(
                self.mech,
                self.scheme.name,
                with_passive=self.acting.passive,
                law=None if law is None else law[0],
            )
        except LoweringError:  # a hinge or a size that is not compiled: steps in NumPy
            return
        count_work = record_every > 1 or law is not None or self.acting.foreseen
        self.leaper = Leaper(self.mech, kernel, self.acting, count_work, law)

    def _law(self) -> tuple[ControlLaw, Any] | None:
        """The control law, and its goal, that can be part of a step."""
        tau, controller = self.acting.tau.constant, self.acting.controller
        law = None if controller is None else controller.law
        if law is None or tau is None or tau.any():
            return None
        try:
            check_rollout(self.mech, self.scheme.name, law[0])
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
        except (ClosureError, SingularHingeError, np.linalg.LinAlgError) as error:
            raise gave_up(self.mech, now.t, now.q, now.v, error) from error

    def _advance(self, now: Moment, step: float, steps: int) -> Moment:
        if self.leaper is not None and self.leaper.law is None:
            return self._leap(self.leaper, now, step, steps)
        for _ in range(steps):
            now = self._step(now, step)
        return now

    def _leap(self, leaper: Leaper, now: Moment, h: float, steps: int) -> Moment:
        """Many steps by the kernel, with the same joint forces."""
        tau = self.acting.commanded(now.t, now.q, now.v, self.held)
        done = leaper.leap(now, h, np.array([steps]), tau[None])
        if done.whole:
            return Moment(now.t + steps * h, done.q[0], done.v[0], done.work[0])
        good = leaper.leap(now, h, np.arange(1, steps + 1), np.tile(tau, (steps, 1)))
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
        """v̇ (nv,) by all that acts."""
        acting = self.acting
        tau = acting.joints(t, q, v, self.held)
        outside = acting.outside(t, q, v)
        self.powers.append(acting.power.copy())
        if self.loops is not None:
            return self.loops.accelerated(q, v, tau, outside)
        if outside is None:
            return forward_dynamics(self.mech, q, v, tau)
        return forward_dynamics(self.mech, q, v, tau, forces=outside, forces_frame=acting.frame)

    def push(self, t: float, q: Array, v: Array) -> Array:
        """All that acts besides gravity, along the freedoms (nv,)."""
        total = self.acting.generalised(t, q, v, self.held)
        self.powers.append(self.acting.power.copy())
        return total
