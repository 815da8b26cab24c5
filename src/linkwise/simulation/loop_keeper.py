"""Three ways of keeping loops closed while time goes on."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics.closure import constraint_jacobian
from linkwise.dynamics.constrained import constrained_forward_dynamics
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ClosureError, ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.acting import OutsideForces
from linkwise.simulation.loop_error import Drift, Gap
from linkwise.simulation.settle import settled
from linkwise.spatial.array import Array, floats

Keep: TypeAlias = Literal["projection", "baumgarte", "nothing"]
"""projection: after each step q and v go to the nearest that the loops allow;
baumgarte: the accelerations pull errors back; nothing: the accelerations alone, for comparison."""

START = 1e-6
"""How far [m, rad, m/s, rad/s] from closed a motion may begin; projection takes care of that."""

DRIFT_LIMIT = 0.05
"""Errors of loops larger than this [m or rad] after one step end a motion, by default."""


class LoopKeeper:
    """Keeps loops and couplings of a mechanism closed, and knows how far they drifted.

    Attributes:
        last: Errors after the last step that was tried, and before their projection.
        worst: The largest errors of the steps that were made, and of the beginning.
        worst_before: The same before the projection, of steps only.
    """

    def __init__(
        self,
        mech: Mechanism,
        keep: Keep = "projection",
        baumgarte: tuple[float, float] = (20.0, 20.0),
        frame: Frame = "node",
        drift_limit: float = DRIFT_LIMIT,
    ) -> None:
        if keep not in get_args(Keep):
            known = ", ".join(repr(name) for name in get_args(Keep))
            raise ModelError(f"keep={keep!r} is an unknown way to keep loops closed; use {known}.")
        self.mech, self.keep, self.rates = mech, keep, check_rates(baumgarte)
        self.limit = number(drift_limit, "drift_limit", above=0.0, finite=False)
        self.frame: Frame = frame
        self.open = not (mech.loops or mech.couplings)  # a tree
        self.last = Drift(), Drift()
        self.worst, self.worst_before = Drift(), Drift()

    def accelerated(self, q: Array, v: Array, tau: Array, forces: OutsideForces | None) -> Array:
        """v̇ (nv,) by these joint forces and forces from outside, with the pull of Baumgarte."""
        closing = None
        if self.keep == "baumgarte":
            closing = baumgarte_closing(self.mech, q, v, self.rates)
        vdot = constrained_forward_dynamics(
            self.mech, q, v, tau, forces=forces, forces_frame=self.frame, closing=closing
        )
        bad = np.flatnonzero(~np.isfinite(vdot))
        if len(bad):
            raise ClosureError(
                f"the motion of {self.mech.velocity_names[int(bad[0])]!r} is no longer finite, it "
                "grows without bounds. Use a shorter step, and look at the forces."
            )
        return vdot

    def beginning(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state to begin with: closed, or so nearly that projection is harmless."""
        if self.open:
            return q, v
        gap = Gap(self.mech, q)
        off = gap.drift
        speed = float(np.abs(constraint_jacobian(self.mech, q) @ v).max(initial=0.0))
        if off.size > START:
            raise ClosureError(
                f"{self.mech.name!r} cannot begin to move: loop {off.where!r} is open by "
                f"{off.distance:.3g} m and {off.angle:.3g} rad. Close it with "
                f"lw.loops.assemble(mech, q)."
            )
        if speed > START:
            raise ClosureError(
                f"{self.mech.name!r} cannot begin to move: the velocities pull its loops apart, "
                f"|J_c v| = {speed:.3g}. Use lw.loops.project_velocity(mech, q, v)."
            )
        if self.keep == "projection":
            q, v, gap = settled(self.mech, q, v, gap)
            off = gap.drift
        self.last, self.worst = (off, off), off
        return q, v

    def kept(self, q: Array, v: Array) -> tuple[Array, Array]:
        """q and v after a step, with loops kept closed."""
        gap = Gap(self.mech, q)
        off = before = gap.drift
        if before.size > self.limit:
            raise ClosureError(
                f"loop {before.where!r} opened to {before.distance:.3g} m and {before.angle:.3g} "
                f"rad, more than drift_limit = {self.limit:.3g}. A shorter step may help; near "
                "singular configurations or with growing velocities nothing does."
            )
        if self.keep == "projection":
            q, v, gap = settled(self.mech, q, v, gap)
            off = gap.drift
        self.last = off, before
        return q, v

    def made(self, last: tuple[Drift, Drift]) -> None:
        """A step counts: errors of its loops after and before projection."""
        self.worst, self.worst_before = (
            new if new.size > old.size or not old.where else old
            for old, new in zip((self.worst, self.worst_before), last, strict=True)
        )


def baumgarte_closing(mech: Mechanism, q: Array, v: Array, rates: tuple[float, float]) -> Array:
    """What J_c v̇ + γ has to be so that errors fade: −2 a (J_c v) − b² e.

    With rates a = b [1/s] the error e fades like exp(−a t), without swinging. It does so only while
    a times the step is small against one, and new errors come in with each step: they stay in
    balance at some size.
    """
    a, b = rates
    return -2.0 * a * (constraint_jacobian(mech, q) @ v) - b * b * Gap(mech, q).rows


def check_rates(rates: object) -> tuple[float, float]:
    """The two rates of Baumgarte [1/s]; raises for what is not that."""
    found = floats(rates, "baumgarte")
    if found.shape != (2,) or not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise ModelError(
            f"baumgarte is {rates!r}; it is two rates (a, b) [1/s], not negative and finite: with "
            "negative ones errors would grow."
        )
    return float(found[0]), float(found[1])
