"""From one moment to a later one, by steps of a given length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.codegen.stepping.kernel import RolloutKernel
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.errors import ClosureError, LoweringError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import Acting
from linkwise.simulation.divergence import blown_up, gave_up, is_bounded
from linkwise.simulation.integrators import Integrator
from linkwise.simulation.loop_error import Drift
from linkwise.simulation.loop_keeper import LoopKeeper
from linkwise.simulation.rates import in_rates, rates, velocities
from linkwise.simulation.rollout_kernel import COMPILED, rollout_kernel
from linkwise.spatial.array import Array


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
        count_work: Whether work is counted while a kernel makes the steps; where every step is
            recorded it need not be.
        length: The usual length of a step [s]; None for a method that chooses it.
    """

    held: Array | None
    held_for: float
    count_work: bool
    length: float | None

    def __init__(
        self, mech: Mechanism, scheme: Integrator, acting: Acting, loops: LoopKeeper | None
    ) -> None:
        self.mech, self.scheme, self.acting, self.loops = mech, scheme, acting, loops
        self.held, self.held_for, self.count_work = None, 0.0, True
        self.length = None
        self._kernel: RolloutKernel | None = None
        self._weights = np.array(scheme.weights)[:, None]
        self.powers = list[Array]()
        self._rate = in_rates(mech, self.accelerate)

    def compile(self) -> None:
        """Let a kernel make the steps, if it can."""
        if self.loops is not None or not self.acting.steady or self.scheme.name not in COMPILED:
            return
        try:
            self._kernel = rollout_kernel(
                self.mech, self.scheme.name, with_passive=self.acting.passive
            )
        except LoweringError:  # a hinge or a size that is not compiled: steps in NumPy
            return

    @property
    def by_kernel(self) -> bool:
        """Whether a kernel makes the steps."""
        return self._kernel is not None

    def advance(self, now: Moment, step: float, steps: int = 1) -> Moment:
        """Some steps later.

        Args:
            now: Where to begin.
            step: The length of each step [s].
            steps: How many.

        Raises:
            SimulationError: The motion cannot go on; says when, where and why.
        """
        try:
            with np.errstate(all="ignore"):  # what is not finite is found below
                return self._advance(now, step, steps)
        except (ClosureError, SingularHingeError, np.linalg.LinAlgError) as error:
            raise gave_up(self.mech, now.t, now.q, now.v, error) from error

    def _advance(self, now: Moment, step: float, steps: int) -> Moment:
        if self._kernel is not None:
            return self._leap(self._kernel, now, step, steps)
        for _ in range(steps):
            now = self._step(now, step)
        return now

    def _leap(self, kernel: RolloutKernel, now: Moment, h: float, steps: int) -> Moment:
        """Many steps by the kernel."""
        tau = self.acting.commanded(now.t, now.q, now.v, self.held)
        every = 1 if self.count_work else steps
        done = kernel.run(now.q[None], now.v[None], {"tau": tau}, h, steps, every)
        states, good, nq = done.records[0], int(done.failed[0]), self.mech.nq
        if int(done.status[0]) or not is_bounded(states[-1, :nq], states[-1, nq:]):
            if good > 0:  # up to the last step that went well
                q, v, code, _ = kernel.advance(now.q, now.v, {"tau": tau}, h, good)
                now = now if code else Moment(now.t + good * h, q, v, now.work)
            raise blown_up(self.mech, now.t, now.q, now.v)
        work = now.work
        if self.count_work:
            work = work + self._done(now, states[:, nq:], states[-1, :nq], tau, h)
        return Moment(now.t + steps * h, states[-1, :nq], states[-1, nq:], work)

    def _done(self, now: Moment, v: Array, q: Array, tau: Array, h: float) -> Array:
        """Work of constant joint forces, dampers and springs along equal steps.

        The trapezoidal rule with the correction of Euler and Maclaurin, of order four:
            ∫ P dt = h (½ P₀ + P₁ + … + ½ P_n) + h²/12 (Ṗ₀ − Ṗ_n)

        Args:
            now: Where the steps began.
            v: Velocities after each step (n, nv).
            q: Joint positions at the end (nq,).
            tau: Joint forces (nv,).
            h: The length of each step [s].
        """
        work, acting, d = np.zeros(len(now.work)), self.acting, self.mech.damping
        damped = acting.passive and d.any()
        if not (damped or tau.any()):
            work[1] = acting.stored(now.q) - acting.stored(q)
            return work
        speeds = np.concatenate([now.v[None], v])
        ends = (now.q, now.v), (q, v[-1])
        rate = [forward_dynamics(self.mech, x, y, tau + acting.resisting(x, y)) for x, y in ends]

        def integral(power: Array, first: float, last: float) -> float:
            middle = power.sum() - 0.5 * (power[0] + power[-1])
            return float(h * middle + h * h / 12.0 * (first - last))

        work[0] = integral(speeds @ tau, float(tau @ rate[0]), float(tau @ rate[1]))
        if damped:
            slopes = [float(-2.0 * d * y @ a) for (_, y), a in zip(ends, rate, strict=True)]
            work[1] = integral(-((speeds * speeds) @ d), slopes[0], slopes[1])
        work[1] += acting.stored(now.q) - acting.stored(q)
        return work

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
        return forward_dynamics(self.mech, q, v, tau, forces=outside, frame=acting.frame)

    def push(self, t: float, q: Array, v: Array) -> Array:
        """All that acts besides gravity, along the freedoms (nv,)."""
        total = self.acting.generalised(t, q, v, self.held)
        self.powers.append(self.acting.power.copy())
        return total
