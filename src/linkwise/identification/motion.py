"""Measured positions made smooth and differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number
from linkwise.brief import brief
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, tree_of
from linkwise.errors import ModelError, ShapeError
from linkwise.identification import closed
from linkwise.identification.least_squares import scipy
from linkwise.identification.samples import even_step
from linkwise.model.hinges import Free, Spherical
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array, ArrayLike, floats

ORDER = 4
"""Of the Butterworth filter; run forwards and back, it has no delay."""

CUT = 3.0
"""Periods of the bandwidth that are cut off at both ends, where the filter is not settled."""

PADDED = 3.0
"""Periods of the bandwidth by which a recording is continued at both ends, mirrored about them."""

FAR = 6.0
"""Standard deviations of the noise beyond which a position is an outlier."""

SMALLEST = 1e-4
"""Outliers are at least this part of the range of the coordinate."""

SHARP = 0.75
"""An outlier differs from its neighbours by this part of its distance from the filtered motion."""

WORST = 0.75
"""Of the distances nearby, the others being large because of an outlier."""

ROUNDS = 10
"""Of the search for outliers, at most."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class SmoothMotion:
    """A smooth motion through measured positions.

    Attributes:
        t: Times (samples,) [s].
        q: Positions (samples, nq) [m or rad].
        v: Velocities (samples, nv) [m/s or rad/s].
        vdot: Accelerations (samples, nv) [m/s² or rad/s²].
        tau: The given joint forces of these samples (samples, nv) [N or N m], not filtered; None
            without forces.
        kept: Which of the given samples these are; the ends are cut off.
        outliers: Which of the given positions (all samples, nq) were far off and were replaced.
    """

    t: Array
    q: Array
    v: Array
    vdot: Array
    tau: Array | None
    kept: slice
    outliers: NDArray[np.bool_]


def smoothed(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    bandwidth: float,
    loops: Loops = "closed",
) -> SmoothMotion:
    """Velocities and accelerations of measured positions, without delay.

    A Butterworth filter of order four runs over the positions forwards and back, then central
    differences of fourth order follow. Up to the bandwidth f, positions keep 50 % or more of their
    amplitude, at f/2 99.6 %: take f at least twice the highest frequency of the motion. Positions
    that are far from the filtered motion, compared with the noise, are outliers; they are replaced
    like gaps. Joint forces stay as they are: least squares average their noise, and the forces of a
    filtered motion are not the filtered forces.

    Args:
        mech: The mechanism; its hinges have plain coordinates, or are spherical or free.
        t: Times of the samples (samples,) [s], evenly spaced.
        q: Measured positions (samples, nq) [m or rad]. Gaps (NaN) up to a quarter of a period of
            the bandwidth are filled by a cubic. In longer ones, and as far as these reach into the
            filtered motion, q, v and vdot are NaN: gaps again, which `lw.identify` leaves out.
        tau: Measured joint forces (samples, nv) [N or N m]; gaps stay gaps.
        bandwidth: Cut-off frequency f [Hz], at most a fifth of the sampling frequency.
        loops: "closed" moves the filtered motion to the nearest one that loops and couplings allow;
            "open" takes the positions of all hinges as they are.

    Raises:
        ModelError: Times that are not evenly spaced, a bandwidth that is too high, or
            gaps that leave nothing.
        ClosureError: Positions that break loops or couplings by more than noise does.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    held = is_closed(mech, loops)
    linkage, mech = mech, tree_of(mech)
    require_rotations(mech, "lw.identification.smoothed")
    times, places = floats(t, "t"), floats(q, "q")
    if times.ndim != 1 or places.shape != (len(times), mech.nq):
        raise ShapeError(
            f"t has shape {times.shape} and q {places.shape}; they must be (samples,) and "
            f"(samples, {mech.nq})."
        )
    f = number(bandwidth, "bandwidth", above=0.0)
    step = even_step(times)
    if f > 0.2 / step * (1.0 + 1e-9):
        raise ModelError(
            f"bandwidth is {f:g} Hz; with samples every {step:.3g} s it must be at most "
            f"{0.2 / step:.4g} Hz."
        )
    cut = int(np.ceil(CUT / (f * step)))
    if len(times) <= 2 * cut + 16:
        raise ModelError(
            f"{len(times)} samples are too few for a bandwidth of {f:g} Hz: more than "
            f"{2 * cut + 16} are needed. Record for longer, or raise the bandwidth."
        )
    forces, kept = None, slice(cut, len(times) - cut)
    if tau is not None:
        given = floats(tau, "tau")
        if given.shape != (len(times), mech.nv):
            raise ShapeError(f"tau has shape {given.shape}; it must be ({len(times)}, {mech.nv}).")
        forces = given[kept].copy()
    smooth, outliers = _filtered(_continuous(mech, places), f, step)
    smooth = _normalised(mech, smooth)
    five = [smooth[kept.start + i : kept.stop + i] for i in range(-2, 3)]
    state = smooth[kept], *derivatives(mech, five, step)
    unknown = _unknown(places, outliers, longest_gap(f, step), cut)[kept]
    if unknown.all():
        raise ModelError(
            f"gaps leave none of {len(times)} samples: a gap longer than {longest_gap(f, step)} "
            f"samples takes {cut} more on each side at this bandwidth. Raise the bandwidth."
        )
    if held:
        some = closed.obeying(linkage, *(x[~unknown] for x in state))
        for x, here in zip(state, some, strict=True):
            x[~unknown] = here
    for x in state:
        x[unknown] = np.nan
    return SmoothMotion(times[kept], *state, forces, kept, outliers)


def longest_gap(f: float, step: float) -> int:
    """Samples in the longest gap that is filled."""
    return max(1, int(0.25 / (f * step)))


def _unknown(q: Array, outliers: NDArray[np.bool_], longest: int, reach: int) -> NDArray[np.bool_]:
    """Samples in long gaps, and those that the filter does not separate from them."""
    out = np.zeros(len(q), dtype=np.bool_)
    for column, far in zip(q.T, outliers.T, strict=True):
        for first, end in _runs(~np.isfinite(column) | far):
            if end - first > longest or first == 0 or end == len(q):
                out[max(first - reach, 0) : end + reach] = True
    return out


def derivatives(mech: Mechanism, five: Sequence[Array], h: float) -> tuple[Array, Array]:
    """v and v̇ (samples, nv) of positions (samples, nq) at times −2h, −h, 0, h, 2h, of order h⁴.

    A unit quaternion p that turns with ω in body axes has ω = 2 vec(p̄ ṗ) and ω̇ = 2 vec(p̄ p̈). A
    free hinge has the linear velocity R* ẋ, whose rate is R* ẍ − ω × R* ẋ.
    """
    back2, back, q, on, on2 = five
    rate = (back2 - 8.0 * back + 8.0 * on - on2) / (12.0 * h)
    bend = (-back2 + 16.0 * back - 30.0 * q + 16.0 * on - on2) / (12.0 * h**2)
    v, vdot = np.zeros((2, len(q), mech.nv))
    for k, body in enumerate(mech.bodies):
        i = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        j = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if is_plain(body.hinge):
            v[:, j], vdot[:, j] = rate[:, i], bend[:, i]
            continue
        p = q[:, i][:, :4]
        turn, turned = (
            2.0 * quaternion.multiply(quaternion.conjugate(p), x[:, i][:, :4])[:, 1:]
            for x in (rate, bend)
        )
        v[:, j][:, :3], vdot[:, j][:, :3] = turn, turned
        if type(body.hinge) is Free:
            rot = quaternion.to_matrix(p)
            speed, pull = (np.einsum("nji,nj->ni", rot, x[:, i][:, 4:]) for x in (rate, bend))
            v[:, j][:, 3:], vdot[:, j][:, 3:] = speed, pull - np.cross(turn, speed)
    return v, vdot


def require_rotations(mech: Mechanism, function: str) -> None:
    """Refuse hinges that are neither plain, nor spherical, nor free."""
    for body in mech.bodies:
        if not is_plain(body.hinge) and type(body.hinge) not in (Free, Spherical):
            raise ModelError(
                f"{function} was called for {mech.name!r}, whose hinge {body.hinge_name!r} is "
                f"{body.hinge.kind}. It takes hinges with plain coordinates, spherical and free "
                "ones; give q, v and vdot to lw.identify yourself."
            )


def _quaternions(mech: Mechanism) -> list[slice]:
    """Where quaternions are among the coordinates."""
    return [
        slice(int(mech.q_start[k]), int(mech.q_start[k]) + 4)
        for k, body in enumerate(mech.bodies)
        if not is_plain(body.hinge)
    ]


def _continuous(mech: Mechanism, q: Array) -> Array:
    """The same rotations, by quaternions that do not change their sign on the way."""
    q = q.copy()
    for place in _quaternions(mech):
        good = np.flatnonzero(np.isfinite(q[:, place]).all(axis=1))
        p = q[good, place]
        turned = np.cumprod(np.where((p[1:] * p[:-1]).sum(axis=1) < 0.0, -1.0, 1.0))
        p[1:] *= turned[:, None]
        q[good, place] = p
    return q


def _normalised(mech: Mechanism, q: Array) -> Array:
    for place in _quaternions(mech):
        q[:, place] /= np.linalg.norm(q[:, place], axis=1, keepdims=True)
    return q


def _filtered(x: Array, f: float, step: float) -> tuple[Array, NDArray[np.bool_]]:
    """Low-pass filtered columns, with short gaps filled, and outliers found and replaced."""
    signal = scipy("signal")
    coefficients = signal.butter(ORDER, f, fs=1.0 / step, output="sos")
    beyond = min(int(np.ceil(PADDED / (f * step))), len(x) - 1)
    longest = longest_gap(f, step)
    good, far, kept = np.isfinite(x), np.zeros(x.shape, bool), np.zeros(x.shape, bool)
    smooth = x
    for _ in range(ROUNDS):
        filled = _filled(x, good & ~far, longest)
        smooth = np.asarray(signal.sosfiltfilt(coefficients, filled, axis=0, padlen=beyond))
        new = _outliers(x, smooth, good & ~far, max(1, int(0.5 / (f * step)))) & ~kept
        if not new.any():
            break
        for j in np.flatnonzero(new.any(axis=0)).tolist():
            for first, end in _runs(far[:, j] | new[:, j] | ~good[:, j]):
                if end - first > longest:  # a motion that is too fast, not an outlier
                    kept[first:end, j] = True
        far = (far | new) & ~kept
    return smooth, far


def _runs(bad: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First sample and end of each stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _filled(x: Array, good: NDArray[np.bool_], longest: int) -> Array:
    """Columns whose gaps are filled: short ones by cubics, others by straight lines."""
    interpolate, x = scipy("interpolate"), x.copy()
    for j in range(x.shape[1]):
        here = good[:, j]
        if here.all():
            continue
        if here.sum() < 4:
            raise ModelError(f"column {j} of q has {int(here.sum())} samples; the others are gaps.")
        places = np.arange(len(x))
        cubic = interpolate.CubicSpline(places[here], x[here, j])
        straight = np.interp(places, places[here], x[here, j])
        for first, end in _runs(~here):
            short = end - first <= longest and first > 0 and end < len(x)
            x[first:end, j] = cubic(places[first:end]) if short else straight[first:end]
    return x


def _outliers(x: Array, smooth: Array, good: NDArray[np.bool_], near: int) -> NDArray[np.bool_]:
    """Samples that are far from the filtered motion, jump there, and are the worst nearby."""
    outliers = np.zeros(x.shape, bool)
    for j in range(x.shape[1]):
        here = np.flatnonzero(good[:, j])
        y = x[here, j]
        e = np.abs(y - smooth[here, j])
        limit = max(FAR * 1.4826 * float(np.median(e)), SMALLEST * float(np.ptp(y)), 1e-300)
        jump = np.zeros(len(y))
        jump[2:-2] = np.abs(y[:-4] - 4.0 * (y[1:-3] + y[3:-1]) + 6.0 * y[2:-2] + y[4:]) / 6.0
        e[: 2 * near] = e[len(e) - 2 * near :] = 0.0  # the ends are cut off
        for i in np.flatnonzero(e > limit):
            worst = e[max(i - near, 0) : i + near + 1].max()
            sharp = jump[max(i - 2, 0) : i + 3].max() > SHARP * e[i]
            outliers[here[i], j] = sharp and e[i] > WORST * worst
    return outliers
