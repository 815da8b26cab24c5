"""Three ways of keeping loops closed while time goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from linkwise.arguments import number
from linkwise.dynamics import mass_matrix_inverse
from linkwise.dynamics.closure import constraint_jacobian, relative_poses
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError, ModelError
from linkwise.loops.mobility import mobility
from linkwise.loops.projection import (
    CLOSED,
    CREEPING,
    ROUNDED,
    MassInverse,
    nearest,
    project_position,
    project_velocity,
)
from linkwise.model import closure
from linkwise.model.closure import coupling_error, loop_error
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.applied_force import OutsideForces
from linkwise.simulation.rates import moved, rates
from linkwise.spatial.array import Array, floats

_STILL = np.zeros(6)


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """How far the loops were from closing.

    Attributes:
        distance: Largest distance at a loop, or error of a coupling of a slide [m].
        angle: Largest angle at a loop, or error of a coupling of an angle [rad].
        where: The loop or coupling with the largest of these; "" if there is none.
    """

    distance: float = 0.0
    angle: float = 0.0
    where: str = ""

    @property
    def size(self) -> float:
        """The larger of distance [m] and angle [rad]."""
        return max(self.distance, self.angle)


class Gap:
    """Errors of loops and couplings.

    Attributes:
        loops: Rotation vector [rad] and translation [m] of each loop (loops, 6).
        couplings: Error of each coupling [rad or m].
        rows: The errors in the order of `constraint_names` (m,).
    """

    def __init__(self, mech: Mechanism, q: Array) -> None:
        self.mech, self.loops = mech, np.zeros((len(mech.loops), 6))
        parts = list[Array]()
        pairs = zip(mech.loops, relative_poses(mech, q), strict=True)
        for i, (loop, X_ab) in enumerate(pairs):
            e = self.loops[i] = loop_error(loop.hinge, X_ab)
            parts.append(closure.blocked(loop.hinge, X_ab, _STILL).S @ e)
        self.couplings = np.array([float(coupling_error(mech, x, q)) for x in mech.couplings])
        self.rows = np.concatenate([*parts, self.couplings])

    @property
    def size(self) -> float:
        """The largest error of a row [rad or m]."""
        return float(np.abs(self.rows).max(initial=0.0))

    @property
    def drift(self) -> Drift:
        """The largest errors, and where they are."""
        mech = self.mech
        names = [*(x.name for x in mech.loops), *(x.name for x in mech.couplings)]
        if not names:
            return Drift()
        off, slides = np.abs(self.couplings), coupled_slides(mech)
        distance = np.concatenate([np.linalg.norm(self.loops[:, 3:], axis=-1), off * slides])
        angle = np.concatenate([np.linalg.norm(self.loops[:, :3], axis=-1), off * ~slides])
        where = names[int(np.argmax(np.maximum(distance, angle)))]
        return Drift(float(distance.max()), float(angle.max()), where)


def coupled_slides(mech: Mechanism) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which couplings are of a coordinate in metres."""
    units = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
    which = [units[mech.coordinate(x.dependent)] == "m" for x in mech.couplings]
    return np.array(which, dtype=np.bool_)


TOLERANCE = 1e-10
"""Eigenvalues of J_c 𝓜⁻¹ J_c* below this part of the largest count as zero."""

SMALL = 1e-4
"""Largest drift [rad or m] for which the short way is tried."""


def settled(
    mech: Mechanism, q: Array, v: Array, gap: Gap, inverse: MassInverse | None = None
) -> tuple[Array, Array, Gap]:
    """The nearest state that loops and couplings allow, and the remaining errors.

    `project_position` and `project_velocity` do this from any nearby state. After one step of a
    simulation the errors are so small that Newton steps with constant J_c and 𝓜⁻¹ suffice:

        G = 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺        at the state that drifted
        q ← q ⊕ (-G e(q))                     until e is zero to rounding
        v ← v - G J_c(q) v                    twice, with J_c at the new q

    Both move as little as possible, measured by kinetic energy, and by internal forces alone, so
    momentum is kept. Each iteration shrinks the error by a factor of the size of the first drift.
    Where it does not, near singular configurations, the two functions above take over.

    Args:
        inverse: 𝓜⁻¹ where its numbers are not those of the mechanism.
    """
    if gap.size < SMALL:
        result = _by_newton(mech, q, v, gap, inverse)
        if result is not None:
            return result
    if inverse is not None:
        q, v = nearest(mech, q, v, inverse)
        return q, v, Gap(mech, q)
    q = project_position(mech, q, weight="mass").required()
    return q, project_velocity(mech, q, v), Gap(mech, q)


def _by_newton(
    mech: Mechanism, q: Array, v: Array, gap: Gap, inverse: MassInverse | None
) -> tuple[Array, Array, Gap] | None:
    """The short way; None where it does not get there."""
    # Rows that turn and rows that move are compared in one unit, as in the dynamics.
    D = scale(mech).rows
    J = D[:, None] * constraint_jacobian(mech, q)
    back = (mass_matrix_inverse(mech, q) if inverse is None else inverse(q)) @ J.T
    G = back @ np.linalg.pinv(J @ back, rcond=TOLERANCE, hermitian=True) * D
    before = np.inf
    for _ in range(4):
        # what no step reduces is the digits of a file
        if gap.size <= (ROUNDED if gap.size > (1.0 - CREEPING) * before else CLOSED):
            break
        before, q = gap.size, moved(mech, q, rates(mech, q, G @ gap.rows), -1.0)
        gap = Gap(mech, q)
    else:
        return None
    J = constraint_jacobian(mech, q)
    for _ in range(2):
        v = v - G @ (J @ v)
    if float(np.abs(J @ v).max()) > 1e-12 * (1.0 + float((np.abs(J) @ np.abs(v)).max())):
        return None
    return q, v, gap


Stabilization: TypeAlias = Literal["projection", "baumgarte", "none"]
"""projection: after each step q and v go to the nearest that the loops allow;
baumgarte: the accelerations pull errors back; nothing: the accelerations alone, for comparison."""

START = 1e-6
"""How far [m, rad, m/s, rad/s] from closed a motion may begin; projection takes care of that."""

EXACT = 1e-10
"""Errors of closed loops [m or rad] above this are digits of a file."""

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
        stabilization: Stabilization = "projection",
        baumgarte: tuple[float, float] = (20.0, 20.0),
        frame: Frame = "node",
        drift_limit: float = DRIFT_LIMIT,
    ) -> None:
        if stabilization not in get_args(Stabilization):
            known = ", ".join(repr(name) for name in get_args(Stabilization))
            raise ModelError(f"stabilization={stabilization!r} is unknown; use {known}.")
        self.mech, self.stabilization, self.rates = mech, stabilization, check_rates(baumgarte)
        self.limit = number(drift_limit, "drift_limit", above=0.0, finite=False)
        self.frame: Frame = frame
        self.open = not (mech.loops or mech.couplings)  # a tree
        self.last = Drift(), Drift()
        self.worst, self.worst_before = Drift(), Drift()

    def accelerated(self, q: Array, v: Array, tau: Array, forces: OutsideForces | None) -> Array:
        """v̇ (nv,) by these joint forces and forces from outside, with the pull of Baumgarte."""
        closing = None
        if self.stabilization == "baumgarte":
            closing = baumgarte_closing(self.mech, q, v, self.rates)
        vdot = forward_dynamics(
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
        if self.stabilization == "projection":
            q, v, gap = settled(self.mech, q, v, gap)
            off = gap.drift
            if gap.size > EXACT:
                _check_rows(self.mech, q, gap)
        self.last, self.worst = (off, off), off
        return q, v

    def kept(self, q: Array, v: Array, inverse: MassInverse | None = None) -> tuple[Array, Array]:
        """q and v after a step, with loops kept closed; for `inverse` see `settled`."""
        gap = Gap(self.mech, q)
        off = before = gap.drift
        if before.size > self.limit:
            raise ClosureError(
                f"loop {before.where!r} opened to {before.distance:.3g} m and {before.angle:.3g} "
                f"rad, more than drift_limit = {self.limit:.3g}. A shorter step may help; near "
                "singular configurations or with growing velocities nothing does."
            )
        if self.stabilization == "projection":
            q, v, gap = settled(self.mech, q, v, gap, inverse)
            off = gap.drift
        self.last = off, before
        return q, v

    def made(self, last: tuple[Drift, Drift]) -> None:
        """A step counts: errors of its loops after and before projection."""
        self.worst, self.worst_before = (
            new if new.size > old.size or not old.where else old
            for old, new in zip((self.worst, self.worst_before), last, strict=True)
        )


def _check_rows(mech: Mechanism, q: Array, gap: Gap) -> None:
    """Raise where the digits of a file leave loops open, and may lock them."""
    doubtful = mobility(mech, q).doubtful
    if doubtful:
        raise ClosureError(
            f"loops of {mech.name!r} close only to {gap.size:.2g} m or rad, and {doubtful} of "
            "their rows nearly depend on others: by digits of the file, which would lock the "
            "mechanism here. Use integrator='implicit', which leaves such rows out; "
            "lw.loops.mobility(mech, q) says more."
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
    pair = floats(rates, "baumgarte")
    if pair.shape != (2,) or not (np.isfinite(pair).all() and (pair >= 0.0).all()):
        raise ModelError(
            f"baumgarte is {rates!r}; it is two rates (a, b) [1/s], not negative and finite: with "
            "negative ones errors would grow."
        )
    return float(pair[0]), float(pair[1])
