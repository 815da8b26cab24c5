"""What a motion leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.closed.motion.watch import Crossing
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Drift:
    """How far the loops were from closing.

    Attributes:
        distance: Largest distance at a loop, or error of a coupling of a slide [m].
        angle: Largest angle at a loop, or error of a coupling of an angle [rad].
        where: The loop or coupling with the largest of these; "" if there is none.
        t: When [s].
    """

    distance: float = 0.0
    angle: float = 0.0
    where: str = ""
    t: float = 0.0

    @property
    def size(self) -> float:
        """The larger of distance [m] and angle [rad]."""
        return max(self.distance, self.angle)


@dataclass(frozen=True, slots=True, eq=False)
class ConstrainedMotion:
    """A motion of a closed chain, as `constrained_motion` recorded it.

    `str()` of it is a report.

    Attributes:
        name: Name of the mechanism.
        keep: How its loops were kept: "projection", "baumgarte" or "nothing".
        step: The step of time [s].
        steps: How many were made.
        t: Times of the records (k,) [s].
        q: Joint positions (k, nq).
        v: Joint velocities (k, nv).
        tau: Joint forces that acted (k, nv).
        loop_error: Largest distance at a loop, or error of a coupling of a slide (k,) [m].
        angle_error: Largest angle at a loop, or error of a coupling of an angle (k,) [rad].
        velocity_error: Largest entry of |J_c v| (k,) [m/s or rad/s].
        kinetic: Kinetic energy (k,) [J].
        energy: Kinetic and potential energy (k,) [J].
        worst: The largest error of the loops after any step made, not of the records alone.
        worst_before: The same before the projection: what one step adds.
        driven: Whether forces acted whose energy is not counted: then it may change.
        crossings: The margins that were lost, in order of time.
        stopped: Whether the motion ended at the last of them.
    """

    name: str
    keep: str
    step: float
    steps: int
    t: Array
    q: Array
    v: Array
    tau: Array
    loop_error: Array
    angle_error: Array
    velocity_error: Array
    kinetic: Array
    energy: Array
    worst: Drift
    worst_before: Drift
    driven: bool = False
    crossings: tuple[Crossing, ...] = ()
    stopped: bool = False

    @property
    def energy_drift(self) -> float:
        """Largest change of the energy since the beginning [J]; the work of forces, if `driven`."""
        return float(np.abs(self.energy - self.energy[0]).max())

    @property
    def relative_energy_drift(self) -> float:
        """That change as a part of the largest kinetic energy; 0 where nothing moved."""
        largest = float(self.kinetic.max())
        return self.energy_drift / largest if largest > 0.0 else 0.0

    def __len__(self) -> int:
        return len(self.t)

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.t[-1] - self.t[0]:.6g} s in {self.steps} steps of {self.step:.3g} "
            f"s, loops kept by {self.keep}",
            f"  loop error      {_place(self.worst)}",
        ]
        if self.keep == "projection":
            lines.append(f"  one step adds   {self._added()}")
        lines.append(f"  velocity error  {self.velocity_error.max():.1e}")
        if self.driven:
            lines.append(
                f"  energy change   {self.energy_drift:.4g} J at most, by forces that do work; "
                f"largest kinetic energy {self.kinetic.max():.4g} J"
            )
        else:
            lines.append(
                f"  energy drift    {self.energy_drift:.1e} J, {self.relative_energy_drift:.1e} of "
                f"the largest kinetic energy {self.kinetic.max():.4g} J"
            )
        lines += [f"  lost            {crossing}" for crossing in self.crossings]
        if self.stopped:
            lines.append("  stopped there")
        return "\n".join(lines)

    def _added(self) -> str:
        return _place(self.worst_before) if self.steps else "nothing, no step was made"


def _place(drift: Drift) -> str:
    if not drift.where:
        return "none, there is no loop"
    return f"{drift.distance:.1e} m, {drift.angle:.1e} rad; at {drift.where!r}, {drift.t:.6g} s"
