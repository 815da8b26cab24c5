"""From one state to the next: a step of time, and loops kept closed after it."""

from __future__ import annotations

import numpy as np

from linkwise.closed.motion.acting import Acting, Force, JointForces, OutsideForce, OutsideForces
from linkwise.closed.motion.gap import Gap
from linkwise.closed.motion.keep import (
    Keep,
    baumgarte_closing,
    check_keep,
    check_rates,
    drift,
    velocity_error,
)
from linkwise.closed.motion.recording import Drift
from linkwise.closed.motion.settle import settled
from linkwise.closed.motion.step import rk4_step
from linkwise.closed.motion.watch import State
from linkwise.dynamics.constrained import constrained_forward_dynamics
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ClosureError, ModelError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

START = 1e-6
"""How far [m, rad, m/s, rad/s] from closed a motion may begin; projection takes care of that."""


class Stepper:
    """What stays the same from step to step, and how far loops drifted.

    Attributes:
        acting: Joint forces and forces from outside.
        last: Errors of the loops after the last step that was tried, and before their projection.
        worst: The largest errors of the steps that were made, and of the beginning.
        worst_before: The same before the projection, of steps only.
    """

    def __init__(
        self,
        mech: Mechanism,
        tau: JointForces | Force,
        hold: bool,
        keep: Keep,
        baumgarte: tuple[float, float],
        forces: OutsideForces | OutsideForce | None,
        frame: Frame,
        drift_limit: float,
    ) -> None:
        check_keep(keep)
        self.mech, self.keep, self.rates = mech, keep, check_rates(baumgarte)
        self.limit = _checked_limit(drift_limit)
        self.acting, self.hold = Acting(mech, tau, forces), hold
        self.frame: Frame = frame
        self.open = not (mech.loops or mech.couplings)  # a tree
        self.last = Drift(), Drift()
        self.worst, self.worst_before = Drift(), Drift()

    def force(self, t: float, q: Array, v: Array) -> Array:
        """τ (nv,) at one instant."""
        return self.acting.tau(t, q, v)

    def acceleration(self, t: float, q: Array, v: Array, held: Array | None = None) -> Array:
        """v̇ (nv,) by joint forces now or held; with the pull of Baumgarte if that was asked for."""
        tau = self.force(t, q, v) if held is None else held
        return self.accelerated(q, v, tau, self.acting.forces(t, q, v))

    def accelerated(self, q: Array, v: Array, tau: Array, forces: OutsideForces | None) -> Array:
        """v̇ (nv,) by these joint forces and forces from outside."""
        closing = None
        if self.keep == "baumgarte" and not self.open:
            closing = baumgarte_closing(self.mech, q, v, self.rates)
        vdot = constrained_forward_dynamics(
            self.mech, q, v, tau, forces=forces, frame=self.frame, closing=closing
        )
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
        self.last, self.worst = (off, off), off
        return q, v

    def advance(self, state: State, step: float, *, whole: bool = True) -> State:
        """The state one step later; it counts in the report once it is `made`.

        Args:
            state: The state at its beginning.
            step: Its length [s].
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
                q, v = self.kept(q, v, after)
        except ClosureError as error:
            raise ClosureError(f"{mech.name!r} at t = {after:.9g} s: {error}") from None
        except (SingularHingeError, np.linalg.LinAlgError) as error:
            raise ClosureError(f"{mech.name!r} after t = {t:.9g} s: {error}") from None
        return after, q, v, self.force(after, q, v) if whole or held is None else held

    def kept(self, q: Array, v: Array, t: float) -> tuple[Array, Array]:
        """q and v after a step, with loops kept closed."""
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
        self.last = off, before
        return q, v

    def made(self, last: tuple[Drift, Drift]) -> None:
        """A step counts: errors of its loops after and before projection."""
        self.worst, self.worst_before = (
            new if new.size > old.size or not old.where else old
            for old, new in zip((self.worst, self.worst_before), last, strict=True)
        )


def _checked_limit(limit: object) -> float:
    if isinstance(limit, int | float) and limit > 0.0:
        return float(limit)
    raise ModelError(
        f"drift_limit is {limit!r}; it must be a number above zero [m or rad], or inf for none."
    )


def _unbounded(mech: Mechanism, values: Array) -> ClosureError:
    """The error for a motion whose velocities or accelerations are no longer finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    where = f" of {mech.velocity_names[int(bad[0])]!r}" if len(bad) else ""
    return ClosureError(
        f"the motion{where} is no longer finite, it grows without bounds. Use a shorter step, and "
        "look at the forces."
    )
