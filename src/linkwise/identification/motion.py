"""Measured positions made smooth and differentiated; motions that show much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.arguments import count, generator, number
from linkwise.dynamics.kernels import check_mechanism, tree_of
from linkwise.errors import ModelError, ShapeError
from linkwise.identification import model
from linkwise.identification.fit import base_of, scipy
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

ORDER = 4
"""Of the Butterworth filter; run forwards and back, it has no delay."""

MOST_SAMPLES = 10_000_000
"""Of a motion: a day of samples every 10 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothMotion:
    """A smooth motion through measured positions.

    Attributes:
        t: Times (samples,) [s].
        q: Positions (samples, nq) [m or rad].
        v: Velocities (samples, nv) [m/s or rad/s].
        vdot: Accelerations (samples, nv) [m/s² or rad/s²].
        tau: Joint forces through the same filter (samples, nv) [N or N m]; None without forces.
        kept: Which of the given samples these are; the ends are cut off.
    """

    t: Array
    q: Array
    v: Array
    vdot: Array
    tau: Array | None
    kept: slice


def smoothed(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    bandwidth: float,
) -> SmoothMotion:
    """Velocities and accelerations of measured positions, without delay.

    A Butterworth filter of order four runs over the samples forwards and back, then central
    differences follow. Forces pass the same filter, so that both sides of the equations of motion
    lose the same. Up to the bandwidth f, positions keep 50 % or more of their amplitude, at f/2
    99.6 %; differences shorten accelerations of frequency f by (2π f h)²/12 for samples h apart.

    Args:
        mech: The mechanism; hinges whose velocities are not rates of coordinates are refused.
        t: Times of the samples (samples,) [s], evenly spaced.
        q: Measured positions (samples, nq) [m or rad]. Gaps (NaN) up to a quarter of a period of
            the bandwidth are filled by a cubic; longer ones are refused.
        tau: Measured joint forces (samples, nv) [N or N m], likewise.
        bandwidth: Cut-off frequency f [Hz], at most a fifth of the sampling frequency.

    Raises:
        ModelError: Times that are not evenly spaced, a bandwidth that is too high, a long gap.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    mech = tree_of(mech)
    _require_plain(mech, "lw.identification.smoothed")
    times, places = floats(t, "t"), floats(q, "q")
    if times.ndim != 1 or places.shape != (len(times), mech.nq):
        raise ShapeError(
            f"t has shape {times.shape} and q {places.shape}; they must be (samples,) and "
            f"(samples, {mech.nq})."
        )
    f = number(bandwidth, "bandwidth", above=0.0)
    step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    if not step > 0.0 or np.abs(np.diff(times) - step).max() > 1e-3 * step:
        raise ModelError("times are not evenly spaced; resample the measurements first.")
    if f > 0.2 / step:
        raise ModelError(
            f"bandwidth is {f:g} Hz; with samples every {step:.3g} s it must be at most "
            f"{0.2 / step:.4g} Hz."
        )
    cut = int(np.ceil(2.0 / (f * step)))
    if len(times) <= 2 * cut + 16:
        raise ModelError(f"{len(times)} samples are too few; more than {2 * cut + 16} are needed.")
    longest = max(1, int(0.25 / (f * step)))
    smooth = _filtered(places, f, step, longest, "q")
    forces = None
    if tau is not None:
        given = floats(tau, "tau")
        if given.shape != (len(times), mech.nv):
            raise ShapeError(f"tau has shape {given.shape}; it must be ({len(times)}, {mech.nv}).")
        forces = _filtered(given, f, step, longest, "tau")
    kept = slice(cut, len(times) - cut)
    before, here, after = (
        smooth[cut - 1 : -cut - 1],
        smooth[kept],
        smooth[cut + 1 :][: len(smooth[kept])],
    )
    v, vdot = (after - before) / (2.0 * step), (after - 2.0 * here + before) / step**2
    return SmoothMotion(times[kept], here, v, vdot, None if forces is None else forces[kept], kept)


def _filtered(x: Array, f: float, step: float, longest: int, name: str) -> Array:
    """Low-pass filtered columns, with short gaps filled."""
    signal, interpolate = scipy("signal"), scipy("interpolate")
    x = x.copy()
    for j in range(x.shape[1]):
        good = np.isfinite(x[:, j])
        if good.all():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[0], (~good).astype(int), [0]])))
        lengths = edges[1::2] - edges[::2]
        if lengths.max() > longest or not (good[0] and good[-1]):
            raise ModelError(
                f"{name} has a gap of {int(lengths.max())} samples; gaps of at most {longest}, and "
                "not at the ends, can be filled at this bandwidth. Cut the measurement there."
            )
        places = np.arange(len(x))
        x[~good, j] = interpolate.CubicSpline(places[good], x[good, j])(places[~good])
    coefficients = signal.butter(ORDER, f, fs=1.0 / step, output="sos")
    return np.asarray(signal.sosfiltfilt(coefficients, x, axis=0))


def exciting_motion(
    mech: Mechanism,
    *,
    duration: float = 10.0,
    step: float = 1e-2,
    harmonics: int = 5,
    parameters: tuple[str, ...] = ("inertia", "damping", "friction"),
    tries: int = 100,
    seed: int | np.random.Generator | None = 0,
) -> SmoothMotion:
    """A periodic motion that shows the parameters of a mechanism well, within its limits.

    Each joint follows a Fourier series over the duration. The amplitudes are drawn, scaled to the
    limits of position and speed, and improved by trial: those with the largest determinant of the
    information matrix W* W, the smallest volume of uncertainty, stay.

    Args:
        mech: The mechanism; joints without limits move within ±π or ±0.5 m.
        duration: The period [s].
        step: Time between samples [s].
        harmonics: Terms of the series, the highest with `harmonics` periods.
        parameters: What is to be identified, as in `lw.identify`.
        tries: Motions that are looked at.

    Raises:
        ModelError: A mechanism that cannot move, too few or too many samples, or no motion that
            shows all base parameters.
    """
    check_mechanism(mech)
    mech, kinds = tree_of(mech), model.checked_kinds(parameters)
    _require_plain(mech, "lw.identification.exciting_motion")
    if not mech.nv:
        raise ModelError(f"{mech.name!r} has no degrees of freedom; no motion can excite it.")
    length, h = number(duration, "duration", above=0.0), number(step, "step", above=0.0)
    terms, tried = count(harmonics, "harmonics", least=1), count(tries, "tries", least=1)
    rng = generator(seed)
    if length / h > MOST_SAMPLES:
        raise ModelError(
            f"{length:g} s in steps of {h:g} s are {length / h:.3g} samples; at most "
            f"{MOST_SAMPLES} are allowed. Shorten the duration, or take a longer step."
        )
    t = np.arange(0.0, length, h)
    if len(t) < 4 * terms:
        raise ModelError(f"{len(t)} samples cannot show {terms} harmonics; shorten the step.")
    phase = 2.0 * np.pi / length * np.outer(np.arange(1, terms + 1), t)
    columns = base_of(mech, kinds, list(range(mech.nv))).columns
    sparse = slice(None, None, max(1, len(t) // 200))

    def motion(a: Array) -> tuple[Array, Array, Array]:
        w = 2.0 * np.pi / length * np.arange(1, terms + 1)[:, None]
        series = a[0] @ np.sin(phase) + a[1] @ np.cos(phase)
        rate = a[0] @ (w * np.cos(phase)) - a[1] @ (w * np.sin(phase))
        bend = -a[0] @ (w**2 * np.sin(phase)) - a[1] @ (w**2 * np.cos(phase))
        return _within(mech, series, rate, bend)

    def shown(state: tuple[Array, Array, Array]) -> float:
        W = model.design(mech, kinds, *(x[sparse] for x in state))[..., columns]
        A = W.reshape(-1, len(columns))
        sign, size = np.linalg.slogdet(A.T @ A)
        return float(size) if sign > 0.0 else -np.inf

    best, value = np.zeros((2, mech.nv, terms)), -np.inf
    for i in range(tried):
        fresh = i < tried // 3 or not np.isfinite(value)
        drawn = rng.standard_normal(best.shape)
        a = drawn if fresh else best + 0.3 * np.abs(best).mean() * drawn
        if (size := shown(motion(a))) > value:
            best, value = a, size
    if not np.isfinite(value):
        raise ModelError(f"no motion of {mech.name!r} that was tried shows all base parameters.")
    q, v, vdot = motion(best)
    return SmoothMotion(t, q, v, vdot, None, slice(0, len(t)))


def _within(mech: Mechanism, q: Array, v: Array, vdot: Array) -> tuple[Array, Array, Array]:
    """A motion of each joint (nv, samples) scaled and moved into its limits; (samples, nv)."""
    wide = np.array([np.pi if unit else 0.5 for unit in _turns(mech)])
    lower = np.where(np.isfinite(mech.lower), mech.lower, -wide)
    upper = np.where(np.isfinite(mech.upper), mech.upper, wide)
    span, middle = q.max(axis=1) - q.min(axis=1), 0.5 * (q.max(axis=1) + q.min(axis=1))
    room = 0.95 * (upper - lower) / span
    fast = 0.95 * mech.velocity_limit / np.abs(v).max(axis=1)
    scale = np.minimum(room, fast)[:, None]
    centre = 0.5 * (lower + upper)[:, None]
    return (centre + scale * (q - middle[:, None])).T, (scale * v).T, (scale * vdot).T


def _turns(mech: Mechanism) -> list[bool]:
    """Whether each coordinate is an angle."""
    return [body.hinge.kind != "prismatic" for body in mech.bodies for _ in range(body.hinge.nq)]


def _require_plain(mech: Mechanism, function: str) -> None:
    for body in mech.bodies:
        if not is_plain(body.hinge):
            raise ModelError(
                f"{function} was called for {mech.name!r}, whose hinge {body.hinge_name!r} is "
                f"{body.hinge.kind}: its velocities are not rates of coordinates. Give q, v and "
                "vdot to lw.identify yourself."
            )
