"""Many steps at once by a kernel, where nothing has to be asked from Python in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen.stepping.kernel import RolloutKernel
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import WORKERS, Acting
from linkwise.simulation.divergence import FASTEST
from linkwise.simulation.rollout_input import commands
from linkwise.simulation.timetable import Counts
from linkwise.spatial.array import Array
from linkwise.tasks.law import ControlLaw

if TYPE_CHECKING:
    from linkwise.simulation.march import Moment


@dataclass(frozen=True, slots=True, eq=False)
class Leap:
    """States after some of many steps.

    Attributes:
        made: After how many steps each of them is (k,).
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv).
        work: Work that was done since the beginning of the run, by each of `WORKERS` (k, n) [J].
        whole: Whether all steps went well; what comes after the last of them has diverged.
        path: q and v at the beginning and after each step (n + 1, nq + nv).
    """

    made: Counts
    q: Array
    v: Array
    work: Array
    whole: bool
    path: Array


class Leaper:
    """Makes many steps of one motion by a kernel.

    Attributes:
        mech: The mechanism.
        count_work: Whether work is counted; else it follows from the records.
        law: A control law that is part of the kernel, asked at each step, and its goal; or None.
    """

    def __init__(
        self,
        mech: Mechanism,
        kernel: RolloutKernel,
        acting: Acting,
        count_work: bool,
        law: tuple[ControlLaw, Any] | None,
    ) -> None:
        self.mech, self.kernel, self.acting, self.count_work = mech, kernel, acting, count_work
        self.law = law
        self._held = {} if law is None else commands(*law)

    @property
    def foreseen(self) -> bool:
        """Whether nothing has to be asked from Python between the ticks of a controller."""
        return self.law is not None or self.acting.foreseen

    def forces(self, ticks: Counts, path: Array, made: int) -> Array:
        """Joint forces of the user (k, nv) from ticks of these numbers on.

        Args:
            ticks: The numbers (k,); of a law, which is asked at each step, those of steps.
        """
        if self.law is None:
            return self.acting.known(ticks)
        (law, goal), at = self.law, path[ticks - made]
        return self.acting.noted(law(at[:, : self.mech.nq], at[:, self.mech.nq :], goal))

    def leap(self, now: Moment, h: float, ends: Counts, tau: Array | None) -> Leap:
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
        done = self.kernel.run(now.q[None], now.v[None], held, h, steps, 1)
        path = np.concatenate([[[*now.q, *now.v]], done.records[0]])
        at = path[ends]
        good = np.isfinite(at).all(axis=1) & (np.abs(at[:, nq:]).max(axis=1, initial=0.0) < FASTEST)
        count = len(ends) if good.all() else int(np.argmin(good))
        ends, at, work = ends[:count], at[:count], np.tile(now.work, (count, 1))
        if self.count_work and count:
            v = path[: int(ends[-1]) + 1, nq:]
            q = np.concatenate([now.q[None], at[:, :nq]])
            tau = self.forces(ends - 1, path, 0) if tau is None else tau[:count]
            work = work + self._works(q, v, ends, tau, h)
        return Leap(ends, at[:, :nq], at[:, nq:], work, count == len(good), path)

    def _works(self, q: Array, v: Array, ends: Counts, tau: Array, h: float) -> Array:
        """Work of held joint forces, dampers and springs up to each end (k, n).

        The trapezoidal rule with the correction of Euler and Maclaurin, of order four, for each
        interval over which the joint forces are held:
            ∫ P dt = h (½ P₀ + P₁ + … + ½ P_n) + h²/12 (Ṗ₀ − Ṗ_n)

        Args:
            v: Velocities at the beginning and after each step (n + 1, nv).
        """
        acting, d = self.acting, self.mech.damping
        work = np.zeros((len(ends), len(WORKERS)))
        work[:, 1] = acting.stored(q[0]) - acting.stored(q[1:])
        damped = acting.passive and bool(d.any())
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

        mean = 0.5 * (v[:-1] + v[1:])
        acts = np.repeat(tau, ends - begins, axis=0)
        work[:, 0] = up_to(
            np.einsum("ij,ij->i", acts, mean), [(tau * rate).sum(axis=1) for rate in rates]
        )
        if damped:
            power = -((v * v) @ d)
            pairs = zip(around, rates, strict=True)
            slopes = [-2.0 * (speed * rate) @ d for (_, speed), rate in pairs]
            work[:, 1] += up_to(0.5 * (power[:-1] + power[1:]), slopes)
        return work

    def _accelerations(self, q: Array, v: Array, tau: Array) -> Array:
        """v̇ (k, nv) by joint forces, dampers and springs."""
        total, codes = tau + self.acting.resisting(q, v), np.zeros(len(q), dtype=np.int32)
        rate = forward_dynamics(self.mech, q, v, total, status=codes)
        for i in np.flatnonzero(codes)[:1]:
            forward_dynamics(self.mech, q[i], v[i], total[i])  # raises, and says why
        return rate
