"""Identified parameters, and how well they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number
from linkwise.dynamics.kernels import is_closed, tree_of
from linkwise.errors import ModelError
from linkwise.identification import closed, model
from linkwise.identification.least_squares import scipy
from linkwise.identification.samples import complete_samples, known_forces
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """Identified parameters, and how well they are known.

    Attributes:
        mech: The mechanism with the identified numbers: inertias that bodies can have, friction
            and armature that are not negative.
        names: The base parameters, combinations that joint forces depend on.
        estimate: Their values (count,) by weighted least squares.
        deviation: Their standard deviations (count,).
        consistent: Their values (count,) in `mech`.
        distance: How far these are from the estimate, in standard deviations (root mean square);
            much above 1 means that no mechanism fits the forces as well as the estimate does.
        parameters: The numbers of `mech` by name.
        condition: Condition number of the scaled equations; below 100 is good.
        noise: Standard deviation of the residual of each measured joint [N or N m]; of robust fits
            from the median of its size, which outliers hardly move.
        error: The same relative to the standard deviation of its forces.
        joints: Names of the measured joint velocities.
        samples: Measurements that were used; those with a gap are left out.
        gaps: Samples with numbers that are not finite.
        outliers: Rows whose weight was reduced.
        offset: Offsets of the sensors of the measured joints [N or N m], zero unless identified;
            `forces` leaves them out.
        memory: For how many samples the residual of each joint is correlated, as filters make it;
            0 for white noise. Deviations take it into account.
        references: Hinges whose gain is the unit of others, as nothing known fixes the scale:
            their gain is the one of `mech`, and not identified.
    """

    mech: Mechanism
    names: tuple[str, ...]
    estimate: Array
    deviation: Array
    consistent: Array
    distance: float
    parameters: dict[str, float]
    condition: float
    noise: Array
    error: Array
    joints: tuple[str, ...]
    samples: int
    gaps: int
    outliers: int
    offset: Array
    memory: NDArray[np.intp]
    references: tuple[str, ...] = ()
    _measured: tuple[int, ...] = field(default=(), repr=False)
    _gain: Array = field(default_factory=lambda: np.ones(1), repr=False)
    _base: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    def in_terms_of(self, other: Identification) -> Array:
        """The estimate (count,) in the base parameters of another fit of this mechanism.

        With loops the choice depends on the motion: of parameters that depend on each other, those
        are kept that it shows best.

        Raises:
            ModelError: Rows of other hinges, or gains in another unit.
        """
        if self.names == other.names and self.joints == other.joints:
            return self.estimate
        some, there = self._base, other._base
        turn, alike = np.eye(len(some)), False
        if some.shape == there.shape:
            turn = np.linalg.lstsq(some.T, there.T, rcond=None)[0].T
            alike = np.allclose(turn @ some, there, atol=1e-6)
        if self.joints != other.joints or not alike or self.references or other.references:
            raise ModelError(
                f"parts of the recording show other forces or base parameters of "
                f"{self.mech.name!r}: those of {', '.join(self.joints)} in one and of "
                f"{', '.join(other.joints)} in another. Take fewer parts, or a longer recording."
            )
        return np.concatenate([turn @ self.estimate[: len(some)], self.estimate[len(some) :]])

    def interval(self, level: float = 0.95) -> Array:
        """Confidence interval of each base parameter (count, 2).

        Args:
            level: Probability that an interval contains the true value, for normal noise.
        """
        return interval(self.estimate, self.deviation, level)

    def forces(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Forces of the measured joints that `mech` needs for a motion, with friction and springs.

        With loops these are the forces along the independent velocities, X* τ.

        Args:
            q: Joint positions (samples, nq) [m or rad].
            v: Joint velocities (samples, nv) [m/s or rad/s].
            vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
        """
        state, _ = complete_samples(self.mech, q, v, vdot)
        return self._predicted(*self._along(state))

    def _along(self, state: Sequence[Array]) -> tuple[Sequence[Array], closed.Motions | None]:
        if not is_closed(self.mech, "closed"):
            return state, None
        state = closed.obeying(self.mech, *state)
        still = [i for i in range(self.mech.nv) if i not in self._measured]
        return state, closed.motions(self.mech, state[0], still, [], self._places)

    def _predicted(self, state: Sequence[Array], motions: closed.Motions | None) -> Array:
        kinds, tree = model.KINDS[:-1], tree_of(self.mech)
        return self._rows(model.design(tree, kinds, *state) @ model.nominal(tree, kinds), motions)

    def _rows(self, forces: Array, motions: closed.Motions | None) -> Array:
        return forces[:, self._places] if motions is None else motions.along(forces)

    @property
    def _places(self) -> list[int]:
        return [self.mech.velocity_names.index(name) for name in self.joints]

    def compared(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        tau: ArrayLike,
        *,
        applied: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Predicted and measured joint forces (samples, joints) of other measurements.

        Samples with a gap are left out. Measured forces are less identified offsets and known
        forces; currents are multiplied by the identified gains.

        Args:
            q: Joint positions (samples, nq) [m or rad].
            v: Joint velocities (samples, nv) [m/s or rad/s].
            vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
            tau: Measured joint forces (samples, nv) [N or N m], or currents.
            applied: As in `lw.identify`.
        """
        load = known_forces(self.mech, q, applied, None, "node")
        arrays, _ = complete_samples(self.mech, q, v, vdot, tau, load, places=self._measured)
        *given, measured, load = arrays
        others = [i for i in range(self.mech.nv) if i not in self._measured]
        measured[:, others] = load[:, others] = 0.0
        state, motions = self._along(given)
        names = self.mech.velocity_names
        load = load - np.array([self.parameters.get(f"offset({x})", 0.0) for x in names])
        force = self._rows(self._gain * measured + load, motions)
        return self._predicted(state, motions), force

    def validate(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        tau: ArrayLike,
        *,
        applied: ArrayLike | None = None,
    ) -> dict[str, float]:
        """Errors of the joint forces of `mech` on other measurements, relative to their spread.

        An error is a root mean square, constant parts included, except for identified offsets.

        Args:
            q: Joint positions (samples, nq) [m or rad].
            v: Joint velocities (samples, nv) [m/s or rad/s].
            vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
            tau: Measured joint forces (samples, nv) [N or N m], or currents.
            applied: As in `lw.identify`.
        """
        predicted, measured = self.compared(q, v, vdot, tau, applied=applied)
        miss = np.sqrt(np.mean((measured - predicted) ** 2, axis=0))
        spread = np.std(measured, axis=0)
        return dict(zip(self.joints, (miss / np.maximum(spread, 1e-300)).tolist(), strict=True))

    def __str__(self) -> str:
        longest = int(self.memory.max(initial=0))
        lines = [
            f"{len(self.names)} base parameters of {self.mech.name!r} from {self.samples} samples, "
            f"condition {self.condition:.3g}",
            f"mechanism {self.distance:.2f} standard deviations from the estimate",
        ]
        if self.gaps or self.outliers:
            lines.append(f"{self.gaps} samples with gaps left out, {self.outliers} rows weigh less")
        if longest:
            lines.append(
                f"residuals correlated over up to {longest} samples; deviations include it"
            )
        if self.references:
            lines.append(
                "no known force fixes the scale: what is over gain("
                + "), gain(".join(self.references)
                + ") is known relative to it only"
            )
        rows = zip(self.names, self.estimate, self.deviation, self.consistent, strict=True)
        for name, value, deviation, used in rows:
            short = name if len(name) <= 48 else name[:45] + "..."
            lines.append(f"  {short:48} {value:11.4g} ± {deviation:8.2g}  used {used:11.4g}")
        for joint, noise, error in zip(self.joints, self.noise, self.error, strict=True):
            lines.append(f"  residual of {joint}: {noise:.3g}, {100 * error:.2g} % of its force")
        return "\n".join(lines)


def interval(estimate: Array, deviation: Array, level: float) -> Array:
    """Confidence intervals (count, 2) of normal estimates."""
    level = number(level, "level", above=0.0, most=0.999999)
    width = scipy("stats").norm.ppf(0.5 + 0.5 * level) * deviation
    return np.stack([estimate - width, estimate + width], axis=-1)
