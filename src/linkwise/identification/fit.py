"""Parameters of a mechanism from measured motions and joint forces.

    τ = W θ + noise                                                      linear in θ (`model.py`)
    W θ = W_b b,   b = K θ                               what can be identified: base parameters
    b̂ = argmin Σ_j |τ_j − W_bj b|² / σ_j²                σ_j of each joint from its own residual
    θ̂ = argmin |b̂ − K θ|² in the metric of b̂'s covariance,   over inertias that bodies can have

The last step needs no measurement any more: it is a small problem in free coordinates
(`pseudo_inertia.py`), with a weak pull towards the numbers that the mechanism came with, which
decides what the measurements leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import flag, names, number
from linkwise.dynamics.joint_force import equivalent_force
from linkwise.dynamics.kernels import (
    Forces,
    Loops,
    acting,
    check_mechanism,
    require_open,
    tree_of,
)
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.regressor import BaseParameters, independent
from linkwise.errors import MissingExtraError, ModelError, ShapeError, unknown_name
from linkwise.identification import correlated, model
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

SMALL = 1e-10
"""What is left of a column that depends on others, relative to its length."""

CLEAR = 1e8
"""Condition number above which the motion does not show all base parameters."""

HUBER = 1.345
"""Residuals beyond this many standard deviations count as outliers and weigh less."""

NORMAL = 1.482602218505602
"""Standard deviation of normal noise, relative to the median of its absolute values."""

FINEST = 1e-7
"""Noise of joint forces that are exact, relative to the largest."""

NOTHING = 1e-100
"""Joint forces [N or N m] below which nothing acts."""

ROUNDS = 30
"""Of weights, at most."""

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
        noise: Standard deviation of the residual of each measured joint [N or N m].
        error: The same relative to the standard deviation of its forces.
        joints: Names of the measured joint velocities.
        samples: Measurements that were used; those with a gap are left out.
        gaps: Samples with numbers that are not finite.
        outliers: Rows whose weight was reduced.
        offset: Offsets of the sensors of the measured joints [N or N m], zero unless identified;
            `forces` leaves them out.
        memory: For how many samples the residual of each joint is correlated, as filters make it;
            0 for white noise. Deviations take it into account.
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

    def interval(self, level: float = 0.95) -> Array:
        """Confidence interval of each base parameter (count, 2).

        Args:
            level: Probability that an interval contains the true value, for normal noise.
        """
        return interval(self.estimate, self.deviation, level)

    def forces(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike) -> Array:
        """Forces of the measured joints that `mech` needs for a motion, with friction and springs.

        Args:
            q: Joint positions (samples, nq) [m or rad].
            v: Joint velocities (samples, nv) [m/s or rad/s].
            vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
        """
        (*state, _), _ = complete_samples(self.mech, q, v, vdot, vdot)
        kinds = model.KINDS[:-1]
        both = model.design(self.mech, kinds, *state) @ model.nominal(self.mech, kinds)
        return both[:, self._places]

    @property
    def _places(self) -> list[int]:
        return [self.mech.velocity_names.index(name) for name in self.joints]

    def validate(
        self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, tau: ArrayLike
    ) -> dict[str, float]:
        """Errors of the joint forces of `mech` on other measurements, relative to their spread.

        An error is a root mean square, constant parts included, except for identified offsets.

        Args:
            q: Joint positions (samples, nq) [m or rad].
            v: Joint velocities (samples, nv) [m/s or rad/s].
            vdot: Joint accelerations (samples, nv) [m/s² or rad/s²].
            tau: Measured joint forces (samples, nv) [N or N m].
        """
        arrays, _ = complete_samples(self.mech, q, v, vdot, tau, places=self._places)
        *state, measured = arrays
        measured = measured[:, self._places]
        miss = np.sqrt(np.mean((measured - self.forces(*state) - self.offset) ** 2, axis=0))
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
            lines.append(f"{self.gaps} samples with gaps left out, {self.outliers} outlying rows")
        if longest:
            lines.append(
                f"residuals correlated over up to {longest} samples; deviations include it"
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
        forces: Measured forces from outside by node name, (moment, force) (samples, 6) each, such
            as those of a load cell at the hand.
        forces_frame: Their axes, "node" or "world".
        loops: "open" leaves loops and couplings open; "closed" raises if there are any.

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: The motion does not show all base parameters; names those it does not show.
            Loops.
        ShapeError: Arrays that do not fit.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    require_open(mech, loops, "lw.identify", "Give loops='open' for the tree.")
    mech, kinds = tree_of(mech), model.checked_kinds(parameters)
    weighted, robust = flag(weighted, "weighted"), flag(robust, "robust")
    pull, least = number(prior, "prior", above=0.0), number(slow, "slow", least=0.0)
    if acting(forces):
        tau = floats(tau, "tau") + forces_from_outside(mech, q, forces, forces_frame)
    places = measured_places(mech, measured)
    arrays, good = complete_samples(mech, q, v, vdot, tau, places=places)
    *state, force = arrays
    base = base_of(mech, kinds, places)
    W = model.design(mech, kinds, *state)[:, places][..., base.columns]
    y = (force - model.fixed_forces(mech, kinds, *state))[:, places]
    known = np.ones_like(y)
    if "friction" in kinds or mech.friction.any():
        known[np.abs(state[1][:, places]) <= least] = 0.0
    fit = _least_squares(W, y, known, weighted, robust, base, good)
    values = _consistent(mech, kinds, base, fit, pull)
    used = base.matrix @ values
    residual = (y - W @ fit.estimate) * known
    spread = np.maximum(np.std(force[:, places], axis=0), 1e-300)
    noise = np.sqrt((residual**2).sum(axis=0) / np.maximum(known.sum(axis=0) - 1.0, 1.0))
    named = dict(zip(model.column_names(mech, kinds), values.tolist(), strict=True))
    joints = tuple(mech.velocity_names[i] for i in places)
    return Identification(
        model.with_numbers(mech, kinds, values),
        base.names,
        fit.estimate,
        fit.deviation,
        used,
        float(np.sqrt(np.mean((fit.information @ (used - fit.estimate)) ** 2))),
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
    )


def interval(estimate: Array, deviation: Array, level: float) -> Array:
    """Confidence intervals (count, 2) of normal estimates."""
    level = number(level, "level", above=0.0, most=0.999999)
    width = scipy("stats").norm.ppf(0.5 + 0.5 * level) * deviation
    return np.stack([estimate - width, estimate + width], axis=-1)


def complete_samples(
    mech: Mechanism, *given: ArrayLike, places: Sequence[int] | None = None
) -> tuple[list[Array], NDArray[np.bool_]]:
    """q, v, v̇ and τ of all samples without a gap, and which samples these are.

    Of τ, only the columns at `places` count, by default all.
    """
    arrays = list[Array]()
    for name, size, x in zip(
        ("q", "v", "vdot", "tau"), (mech.nq, mech.nv, mech.nv, mech.nv), given, strict=True
    ):
        array = floats(x, name)
        if array.ndim != 2 or array.shape[1] != size:
            raise ShapeError(f"{name} has shape {array.shape}; it must be (samples, {size}).")
        arrays.append(array)
    if len({len(x) for x in arrays}) > 1:
        raise ShapeError(f"q, v, vdot and tau have {[len(x) for x in arrays]} samples.")
    *state, tau = arrays
    counted = state, [tau if places is None else tau[:, list(places)]]
    good = np.all([np.isfinite(x).all(axis=1) for part in counted for x in part], axis=0)
    if not good.any():
        raise ModelError("every sample has a number that is not finite.")
    return [x[good] for x in arrays], good


def forces_from_outside(mech: Mechanism, q: ArrayLike, forces: Forces, frame: Frame) -> Array:
    """J* f (samples, nv); NaN where a force or a position is."""
    places, total = floats(q, "q"), np.zeros((len(floats(q, "q")), mech.nv))
    for name, given in forces.items():
        f = floats(given, f"the force on {name!r}")
        if f.shape != (len(places), 6):
            raise ShapeError(
                f"the force on {name!r} has shape {f.shape}; it must be ({len(places)}, 6)."
            )
        good = np.isfinite(places).all(axis=1) & np.isfinite(f).all(axis=1)
        part = np.full_like(total, np.nan)
        part[good] = equivalent_force(mech, places[good], {name: f[good]}, frame=frame)
        total = total + part
    return total


def measured_places(mech: Mechanism, given: Sequence[str] | None) -> list[int]:
    """Places in v of the hinges whose forces were measured."""
    if given is None:
        return list(range(mech.nv))
    places = list[int]()
    for hinge in names(given, "measured"):
        if hinge not in mech.hinge_index:
            raise unknown_name("hinge", hinge, mech.hinge_index, owner=f"mechanism {mech.name!r}")
        part = mech.v_slice(hinge)
        places += range(part.start, part.stop)
    if not places:
        raise ModelError("measured names no hinge that moves.")
    return places


def base_of(mech: Mechanism, kinds: tuple[str, ...], places: list[int]) -> BaseParameters:
    """What these joint forces depend on, from random states."""
    rng, columns = np.random.default_rng(0), model.column_names(mech, kinds)
    count = 8 + 4 * len(columns) // len(places)
    q = np.stack([mech.random(rng) for _ in range(count)])
    v, vdot = 2.0 * rng.standard_normal((2, count, mech.nv))
    W = model.design(mech, kinds, q, v, vdot)[:, places]
    return independent(W.reshape(-1, len(columns)), columns, SMALL)


@dataclass(frozen=True, slots=True)
class _Fit:
    estimate: Array
    deviation: Array
    information: Array  # a square root L of the inverse covariance: |L (b − b̂)|
    condition: float
    outliers: int
    memory: NDArray[np.intp]


def _least_squares(
    W: Array,
    y: Array,
    known: Array,
    weighted: bool,
    robust: bool,
    base: BaseParameters,
    good: NDArray[np.bool_],
) -> _Fit:
    """b̂ with weights of joints and samples, found together; `good` samples are these."""
    joints, count = W.shape[1:]
    if known.sum() <= count:
        raise ModelError(
            f"{int(known.sum())} measured forces are too few for {count} base parameters."
        )
    if not np.abs(y * known).max() > NOTHING:
        raise ModelError("the measured joint forces are zero; there is nothing to identify.")
    scale: Array = np.asarray(
        np.linalg.norm((W * known[..., None]).reshape(-1, count), axis=0), dtype=np.float64
    )
    _check_shown(W, known, scale, base)
    deviation, share = np.ones(joints), known
    estimate, factor, Q = np.zeros(count), np.eye(count), np.zeros((W.shape[0] * joints, count))
    least = FINEST * np.abs(y).max(initial=1e-300)
    for _ in range(ROUNDS):
        weight = (np.sqrt(share) / deviation).reshape(-1)
        A = W.reshape(-1, count) / scale * weight[:, None]
        Q, R = np.linalg.qr(A)
        factor = np.asarray(R, dtype=np.float64)
        right = Q.T @ (y.reshape(-1) * weight)
        new = floats(cast("Any", np.linalg.solve(factor, right)) / scale, "b")
        done = np.abs((new - estimate) * scale).max() <= 1e-9 * np.abs(new * scale).max()
        estimate = new
        if done:
            break
        each = _scale(y - W @ estimate, known, count / joints, robust)
        each = each if weighted else np.full(joints, float(np.sqrt(np.mean(each**2))))
        deviation = np.maximum(each, least)
        if robust:
            far = np.abs(y - W @ estimate) / deviation
            share = known * np.minimum(1.0, HUBER / np.maximum(far, 1e-300))
    condition = float(np.linalg.cond(factor))
    miss = known * (y - W @ estimate) / deviation
    if robust:  # U* U = A* ψ'(r) A,  Q = A U⁻¹,  and the noise is ψ(r)
        inside, A = known * (np.abs(miss) <= HUBER), W / scale * (known / deviation)[..., None]
        _check_shown(W, inside, scale, base)
        factor = np.linalg.qr((A * inside[..., None]).reshape(-1, count))[1]
        Q = np.linalg.solve(factor.T, A.reshape(-1, count).T).T
        miss = np.clip(miss, -HUBER, HUBER)
    # Samples with a gap have their place in time.
    columns, misses, counts = (
        np.zeros((len(good), *x.shape[1:])) for x in (Q.reshape(W.shape), y, known)
    )
    columns[good], misses[good], counts[good] = Q.reshape(W.shape), miss, known
    noise, memory = correlated.noise_of_rows(columns, misses, counts, (least / deviation) ** 2)
    root = np.linalg.cholesky(noise)
    spread = np.linalg.norm(np.linalg.solve(factor, root), axis=1) / scale
    information = np.linalg.solve(root, factor) * scale
    outliers = int(np.count_nonzero((share < known) & (known > 0.0)))
    return _Fit(estimate, spread, information, condition, outliers, memory)


def _scale(miss: Array, known: Array, taken: float, robust: bool) -> Array:
    """Standard deviation of the noise of each joint; by the median, which outliers hardly move."""
    left = np.maximum(known.sum(axis=0) - taken, 1.0)
    if not robust:
        return np.sqrt((known * miss**2).sum(axis=0) / left)
    medians = np.array(
        [
            np.median(np.abs(x[k > 0.0])) if k.any() else 0.0
            for x, k in zip(miss.T, known.T, strict=True)
        ]
    )
    return NORMAL * medians * np.sqrt(known.sum(axis=0) / left)


def _check_shown(W: Array, known: Array, scale: Array, base: BaseParameters) -> None:
    """Raise unless the motion shows every base parameter."""
    least = scale.max(initial=0.0) / CLEAR
    hidden = [base.names[i] for i in np.flatnonzero(scale <= least)]
    if not hidden:
        A = (W * known[..., None]).reshape(-1, len(scale)) / scale
        values, vectors = np.linalg.eigh(A.T @ A)
        if values[0] > values[-1] / CLEAR**2:
            return
        part = np.abs(vectors[:, 0])
        hidden = [base.names[i] for i in np.flatnonzero(part > 0.3 * part.max())]
    raise ModelError(
        f"the motion does not show all base parameters: {'; '.join(hidden[:6])} cannot be "
        "separated from others. Move all joints in more ways "
        "(lw.identification.exciting_motion), or identify fewer parameters."
    )


def _consistent(
    mech: Mechanism, kinds: tuple[str, ...], base: BaseParameters, fit: _Fit, pull: float
) -> Array:
    """θ̂: numbers that a mechanism can have, nearest to b̂ in its metric."""
    info, free = fit.information, model.FreeNumbers.of(mech, kinds)
    if not len(free.first):
        return free.start
    weight = np.sqrt(pull)

    def misses(x: Array, share: float) -> Array:
        miss = info @ (base.matrix @ free.numbers(x)[0] - fit.estimate)
        return np.concatenate([share * miss, weight * (x - free.first)])

    def slopes(x: Array, share: float) -> Array:
        return np.vstack([share * info @ base.matrix @ free.numbers(x)[1], weight * np.eye(len(x))])

    x, solve = free.first, scipy("optimize").least_squares
    for share in SHARES:
        x = solve(misses, x, slopes, args=(share,), method="lm", x_scale="jac", max_nfev=MOST).x
    return free.numbers(x)[0]


def scipy(module: str) -> Any:
    """A module of SciPy."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtraError("lw.identify", package="scipy", extra="optimize") from None
