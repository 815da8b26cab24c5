"""From one state to the next: a step of time, and loops kept closed after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from linkwise.closed.constrained import constrained_forward_dynamics
from linkwise.closed.motion.gap import Gap
from linkwise.closed.motion.keep import Keep, baumgarte_closing, check_keep, drift, velocity_error
from linkwise.closed.motion.recording import Drift
from linkwise.closed.motion.settle import settled
from linkwise.closed.motion.step import rk4_step
from linkwise.closed.motion.watch import State
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ClosureError, LinkwiseError, ModelError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

Force: TypeAlias = Callable[[float, Array, Array], ArrayLike]
"""Joint forces (nv,) from the time [s], q (nq,) and v (nv,)."""

START = 1e-6
"""How far [m, rad, m/s, rad/s] from closed a motion may begin; projection takes care of that."""


class Stepper:
    """What stays the same from step to step, and how far loops drifted: last, and at most."""

    def __init__(
        self,
        mech: Mechanism,
        tau: ArrayLike | Force,
        hold: bool,
        keep: Keep,
        baumgarte: tuple[float, float],
        forces: Mapping[str, ArrayLike] | None,
        frame: Frame,
        drift_limit: float,
    ) -> None:
        check_keep(keep)
        self.mech, self.keep, self.rates, self.limit = mech, keep, baumgarte, drift_limit
        self.forces = forces
        self.frame: Frame = frame
        self.given, self.hold = tau, hold
        self.held = None if callable(tau) else mech.check_v(_spread(tau, mech.nv), "tau")
        self.open = not (mech.loops or mech.couplings)  # a tree
        self.off, self.worst, self.worst_before = Drift(), Drift(), Drift()

    def force(self, t: float, q: Array, v: Array) -> Array:
        """τ (nv,) at one instant."""
        if self.held is not None:
            return self.held
        assert callable(self.given)
        tau = self.given(t, q, v)
        try:
            return self.mech.check_v(_spread(tau, self.mech.nv), "tau")
        except LinkwiseError as error:
            raise type(error)(f"the joint forces at t = {t:.9g} s: {error}") from None

    def acceleration(self, t: float, q: Array, v: Array, held: Array | None = None) -> Array:
        """v̇ (nv,) by joint forces now or held; with the pull of Baumgarte if that was asked for."""
        closing = None
        if self.keep == "baumgarte" and not self.open:
            closing = baumgarte_closing(self.mech, q, v, self.rates)
        vdot = constrained_forward_dynamics(
            self.mech, q, v, self.force(t, q, v) if held is None else held,
            forces=self.forces, frame=self.frame, closing=closing,
        )  # fmt: skip
        if not np.isfinite(vdot).all():
            raise _unbounded(self.mech, vdot)
        return vdot

    def beginning(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """The state to begin with: closed, or so nearly that projection is harmless."""
        if q.ndim != 1 or v.ndim != 1:
            raise ModelError(f"a motion begins with one state; q is {q.shape}, v is {v.shape}.")
        if self.open:
            return q, v
        gap = Gap(self.mech, q)
        off, speed = drift(self.mech, gap, t), velocity_error(self.mech, q, v)
        if off.size > START:
            raise ClosureError(
                f"{self.mech.name!r} cannot begin to move: loop {off.where!r} is open by "
                f"{off.distance:.3g} m and {off.angle:.3g} rad. Close it with lw.assemble(mech, q)."
            )
        if speed > START:
            raise ClosureError(
                f"{self.mech.name!r} cannot begin to move: the velocities pull its loops apart, "
                f"|J_c v| = {speed:.3g}. Use lw.project_velocity(mech, q, v)."
            )
        if self.keep == "projection":
            q, v, gap = settled(self.mech, q, v, gap)
            off = drift(self.mech, gap, t)
        self.off = self.worst = off
        return q, v

    def advance(self, state: State, step: float, *, note: bool = True, whole: bool = True) -> State:
        """The state one step later.

        Args:
            state: The state at its beginning.
            step: Its length [s].
            note: Whether errors of the loops count in the report.
            whole: Whether the step ends there: forces that are held are asked anew then.
        """
        t, q, v, tau = state
        mech, after, held = self.mech, t + step, tau if self.hold else None

        def accelerate(t: float, q: Array, v: Array) -> Array:
            return self.acceleration(t, q, v, held)

        try:
            q, v = rk4_step(mech, accelerate, t, q, v, step)
            if not (np.isfinite(v).all() and np.isfinite(q).all()):
                raise _unbounded(mech, v)
            if not self.open:
                q, v = self._kept(q, v, after, note)
        except ClosureError as error:
            raise ClosureError(f"{mech.name!r} at t = {after:.9g} s: {error}") from None
        except (SingularHingeError, np.linalg.LinAlgError) as error:
            raise ClosureError(f"{mech.name!r} after t = {t:.9g} s: {error}") from None
        return after, q, v, self.force(after, q, v) if whole or held is None else held

    def _kept(self, q: Array, v: Array, t: float, note: bool) -> tuple[Array, Array]:
        """Loops kept closed, errors noted."""
        gap = Gap(self.mech, q)
        before = drift(self.mech, gap, t)
        if before.size > self.limit:
            raise ClosureError(
                f"loop {before.where!r} opened to {before.distance:.3g} m and {before.angle:.3g} "
                f"rad, more than drift_limit = {self.limit:.3g}. A shorter step may help; near "
                "singular configurations or with growing velocities nothing does."
            )
        off = before
        if self.keep == "projection":
            q, v, gap = settled(self.mech, q, v, gap)
            off = drift(self.mech, gap, t)
        self.off = off
        if note:
            self.worst = max(self.worst, off, key=_size)
            self.worst_before = max(self.worst_before, before, key=_size)
        return q, v


def _size(drift: Drift) -> float:
    return drift.size


def _spread(tau: ArrayLike, nv: int) -> ArrayLike:
    """One number for all, or as it is."""
    return np.full(nv, tau) if np.ndim(tau) == 0 else tau


def _unbounded(mech: Mechanism, values: Array) -> ClosureError:
    """The error for a motion whose velocities or accelerations are no longer finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    where = f" of {mech.velocity_names[int(bad[0])]!r}" if len(bad) else ""
    return ClosureError(
        f"the motion{where} is no longer finite, it grows without bounds. Use a shorter step, and "
        "look at the forces."
    )
