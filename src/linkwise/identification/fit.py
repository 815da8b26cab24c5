"""Parameters of a mechanism from measured motions and joint forces.

    τ = W θ + noise                                                      linear in θ (`model.py`)
    W θ = W_b b,   b = K θ                               what can be identified: base parameters
    b̂ = argmin Σ_j |τ_j − W_bj b|² / σ_j²                `least_squares.py`; with gains of motors
                                                         (`gain.py`), along loops (`closed.py`)
    θ̂ = argmin |b̂ − K θ|² in the metric of b̂'s covariance,   over inertias that bodies can have

The last step needs no measurement any more: it is a small problem in free coordinates
(`pseudo_inertia.py`), with a weak pull towards the numbers that the mechanism came with, which
decides what the measurements leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import flag, number
from linkwise.dynamics.kernels import Forces, Loops, check_mechanism, is_closed, tree_of
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.regressor import BaseParameters
from linkwise.errors import ModelError
from linkwise.identification import closed, model
from linkwise.identification.gain import Gains, gains_of, nominal_gain, with_gains
from linkwise.identification.least_squares import Equations, Fit, least_squares, noise_of, scipy
from linkwise.identification.rows import Rows, base_and_equations
from linkwise.identification.samples import complete_samples, known_forces
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.spatial.array import Array, ArrayLike

MOST = 200
"""Evaluations of one search, at most."""

SHARES = (1e-6, 1e-4, 1e-2, 1.0)
"""Measurements count by this share in one search after the other: precise ones leave a narrow
valley, which is easier to follow than to find."""


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
        both = model.design(tree, kinds, *state) @ model.nominal(tree, kinds)
        return both[:, self._places] if motions is None else motions.along(both)

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
        if motions is None:
            force = (self._gain * measured + load)[:, self._places]
        else:
            force = motions.along(self._gain * measured + load)
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


def identify(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    tau: ArrayLike,
    *,
    parameters: Sequence[str] = ("inertia", "damping", "friction"),
    measured: Sequence[str] | None = None,
    weighted: bool = True,
    robust: bool = False,
    slow: float = model.STILL,
    prior: float = 1e-3,
    commanded: Sequence[str] | None = None,
    applied: ArrayLike | None = None,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    loops: Loops = "closed",
) -> Identification:
    """Identify inertias, friction, armature and springs from measured motions and joint forces.

    Joint forces are linear in all of them: τ = Y π + N v̇ + d v + f sign(v) + k (q − rest) + offset.
    Least squares find the combinations that joint forces depend on, the base parameters, with
    standard deviations; what is not identified keeps the value it has in `mech`. The mechanism of
    the result has inertias with a positive definite pseudo-inertia. Where the measurements leave a
    choice, it stays near `mech`.

    With "gain" among the parameters, `tau` has motor currents or commands u, τ = g u, and the
    gains g of motors with their gears are identified as well. A known force must fix their scale:
    inertias or springs that are not identified, `applied`, `forces`, or a hinge whose force is
    measured. Else only ratios are known, to the gain of one hinge in `references`.

    With loops and couplings, forces along the motions that they allow are compared, which have no
    part of the forces within loops. Hinges without a motor are measured, too: their force is zero.

    Args:
        q: Joint positions (samples, nq) [m or rad].
        v: Joint velocities (samples, nv) [m/s or rad/s].
        vdot: Joint accelerations (samples, nv) [m/s² or rad/s²]; `lw.identification.smoothed` finds
            v and vdot of measured positions.
        tau: Measured joint forces (samples, nv) [N or N m]. A sample with a number that is not
            finite anywhere is a gap, and left out; columns of hinges that are not `measured` may
            have any numbers.
        parameters: What to identify: "inertia", "armature", "damping", "friction", "stiffness",
            "offset" of force sensors.
        measured: Names of the hinges whose forces were measured; default: all.
        weighted: Whether joints weigh by the noise of their forces, found from the residuals.
        robust: Whether outliers weigh less (Huber's function ψ); deviations are those of
            (A* ψ' A)⁻¹ A* ψ² A (A* ψ' A)⁻¹.
        slow: Speed [m/s or rad/s] up to which forces of a joint with friction are left out, since
            its direction is uncertain. More than the default after a filter, which blurs reversals.
        prior: How strongly θ̂ is pulled to the numbers of `mech`, in free coordinates: one standard
            deviation of the measurements is worth a change by 1/√prior.
        commanded: With "gain": names of the hinges for which `tau` has currents or commands u;
            default: the measured ones, but those for which it is zero.
        applied: Known joint forces that act besides the motors (samples, nv) [N or N m], such as
            the weight of a known load, -lw.inverse_dynamics(load_alone, q, v, vdot).
        forces: Measured forces from outside by node name, (moment, force) (samples, 6) each, such
            as those of a load cell at the hand.
        forces_frame: Their axes, "node" or "world".
        loops: "closed" holds loops and couplings; "open" takes the tree, whose joints move freely.

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: The motion does not show all base parameters; names those it does not show.
            A gain whose scale is hardly known.
        ClosureError: Measured motions break loops or couplings by more than noise does.
        ShapeError: Arrays that do not fit.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    held = is_closed(mech, loops)
    mech, tree = mech if held else tree_of(mech), tree_of(mech)
    kinds, gained = model.checked_kinds(parameters)
    weighted, robust = flag(weighted, "weighted"), flag(robust, "robust")
    pull, least = number(prior, "prior", above=0.0), number(slow, "slow", least=0.0)
    load = known_forces(tree, q, applied, forces, forces_frame)
    at = moved_places(tree, measured, "measured")
    arrays, good = complete_samples(tree, q, v, vdot, tau, load, places=at)
    *state, force, load = arrays
    others = [i for i in range(tree.nv) if i not in at]
    force[:, others] = load[:, others] = 0.0  # any numbers
    driven = [i for i in at if force[:, i].any()]
    rows = Rows.of(mech, state, at, driven) if held else Rows(tree, at)
    state, places = rows.state or state, rows.places
    columns, k = rows.equations(kinds, state, load)
    base, drawn = base_and_equations(kinds, rows)
    known = rows.known(kinds, state[1], least)
    mixed = rows.mixed([i for i in driven if i not in places])
    if mixed is not None:
        known = known * known.min(axis=1)[:, None]
    gains = _gains(tree, rows, gained, commanded, driven, base, drawn, load)
    y = rows.along(force)
    y[:, gains.rows] = force[:, [places[i] for i in gains.rows]]
    if mixed is not None and (robust or gains.rows):
        what = "robust=True" if robust else "gains"
        raise ModelError(
            f"{mech.name!r} has more driven hinges than degrees of freedom: their noise is mixed. "
            f"{what} cannot be had from such measurements; leave it out."
        )
    share = np.ones(len(places))
    share[gains.rows] = 1.0 / gains.nominal
    free = [gains.rows[i] for i in gains.free]
    each = [*base.names, *(gains.names[i] for i in gains.free)]
    eq = Equations(columns[..., base.columns], k, y, known, each, free, share, mixed)
    fit = least_squares(eq, weighted, robust, good)
    factors = gains.scales(fit.estimate, base.matrix @ model.nominal(tree, kinds), eq.W)
    fit, sizes = fit.scaled(factors), gains.sizes * factors
    for i in gains.reference:
        share[gains.rows[i]] /= factors[gains.unit.index(i)]
    eq = replace(eq, share=share)
    values, motors = _consistent(tree, kinds, base, fit, pull)
    used = np.concatenate([base.matrix @ values, motors])
    gain, share = np.ones(tree.nv), 1.0 / share
    share[free] = motors
    gain[[places[i] for i in gains.rows]] = share[gains.rows]
    x = fit.estimate.copy()
    x[len(base.names) :] = 1.0 / x[len(base.names) :]
    miss = eq.linear(x)[1]
    noise = noise_of(miss, known, 1.0, robust) * np.abs(share)
    force = y - miss if robust else y  # outliers are no part of the force
    spread = np.maximum(np.std(force * share, axis=0), 1e-300)
    named = dict(zip(model.column_names(tree, kinds), values.tolist(), strict=True))
    named |= dict(zip(gains.names, share[gains.rows].tolist(), strict=True))
    joints = tuple(tree.velocity_names[i] for i in places)
    return Identification(
        with_gains(model.with_numbers(mech, kinds, values), places, gains, share),
        tuple(gains.in_units(each)),
        fit.estimate / sizes,
        fit.deviation / np.abs(sizes),
        used / sizes,
        _distance(base, fit, values, motors),
        named,
        fit.condition,
        noise,
        noise / spread,
        joints,
        len(y),
        int(len(good) - good.sum()),
        fit.outliers,
        np.array([named.get(f"offset({name})", 0.0) for name in joints]),
        fit.memory,
        tuple(joints[gains.rows[i]] for i in gains.reference),
        tuple(at),
        gain,
        base.matrix,
    )


def _gains(
    mech: Mechanism,
    rows: Rows,
    gained: bool,
    commanded: Sequence[str] | None,
    driven: list[int],
    base: BaseParameters,
    drawn: tuple[Array, Array],
    load: Array,
) -> Gains:
    """The gains that are identified, and what is known of their scale."""
    if not gained:
        if commanded is not None:
            raise ModelError("commanded is for gains; add 'gain' to the parameters.")
        return Gains([], [], np.zeros(0), [], [-1] * len(base.names))
    places = driven if commanded is None else moved_places(mech, commanded, "commanded")
    for i in places:
        if i not in rows.places or i not in driven:
            why = "zero throughout" if i not in driven else "not measured by itself"
            raise ModelError(
                f"the gain of {mech.velocity_names[i]!r} was requested, but its current is {why}. "
                f"Gains can be found of {', '.join(mech.velocity_names[j] for j in driven)}."
            )
    some = [rows.places.index(i) for i in places]
    names = [f"gain({mech.velocity_names[i]})" for i in places]
    nominal = np.array([nominal_gain(mech, i) for i in places])
    W, k = drawn
    outside = np.abs(rows.along(load)).max(axis=0) > 0.0
    k = k + outside * np.random.default_rng(2).standard_normal(k.shape) * np.abs(W).max(initial=1.0)
    return gains_of(W[..., base.columns], k, some, names, nominal)


def interval(estimate: Array, deviation: Array, level: float) -> Array:
    """Confidence intervals (count, 2) of normal estimates."""
    level = number(level, "level", above=0.0, most=0.999999)
    width = scipy("stats").norm.ppf(0.5 + 0.5 * level) * deviation
    return np.stack([estimate - width, estimate + width], axis=-1)


def _consistent(
    mech: Mechanism, kinds: tuple[str, ...], base: BaseParameters, fit: Fit, pull: float
) -> tuple[Array, Array]:
    """θ̂ and gains: numbers that a mechanism can have, nearest to b̂ in its metric.

    Squares have no bounds, and a fast search; where it ends far away, since they have no slope at
    zero, a slower one has bounds.
    """
    near = _nearest(model.FreeNumbers.of(mech, kinds), base, fit, pull)
    if _distance(base, fit, *near) <= 1.0:
        return near
    other = _nearest(model.FreeNumbers.of(mech, kinds, straight=True), base, fit, pull)
    return min(near, other, key=lambda x: _distance(base, fit, *x))


def _distance(base: BaseParameters, fit: Fit, values: Array, gains: Array) -> float:
    """How far numbers are from the estimate, in standard deviations."""
    miss = fit.information @ (np.concatenate([base.matrix @ values, gains]) - fit.estimate)
    return float(np.sqrt(np.mean(miss**2)))


def _nearest(
    free: model.FreeNumbers, base: BaseParameters, fit: Fit, pull: float
) -> tuple[Array, Array]:
    """Numbers in these coordinates that are nearest to the estimate."""
    info = fit.information
    count, size = len(base.names), len(free.first)
    if not size:
        return free.start, fit.estimate[count:]
    weight, gains = np.sqrt(pull), np.maximum(np.abs(fit.estimate[count:]), 1e-300)

    def misses(x: Array, share: float) -> Array:
        both = np.concatenate([base.matrix @ free.numbers(x[:size])[0], gains * x[size:]])
        miss = info @ (both - fit.estimate)
        return np.concatenate([share * miss, weight * (x - first)[:size]])

    def slopes(x: Array, share: float) -> Array:
        rows = base.matrix @ free.numbers(x[:size])[1]
        both = np.hstack([info[:, :count] @ rows, info[:, count:] * gains])
        return np.vstack([share * both, weight * np.eye(size, len(x))])

    x = np.concatenate([free.first, fit.estimate[count:] / gains])
    first = x
    low, how = np.full(len(x), -np.inf), dict[str, Any](method="lm")
    if free.bounded.any():
        low[:size][free.bounded] = 0.0
        how = {"bounds": (low, np.inf)}
    solve = scipy("optimize").least_squares
    for share in SHARES:
        x = np.maximum(x, low)
        x = solve(misses, x, slopes, args=(share,), x_scale="jac", max_nfev=MOST, **how).x
    return free.numbers(x[:size])[0], gains * x[size:]
