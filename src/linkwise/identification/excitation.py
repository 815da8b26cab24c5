"""Motions that show the parameters of a mechanism well, within its limits.

    x(t) = c + s Σ_k a_k sin(k w t) + b_k cos(k w t),     w = 2π / duration

for each joint, with the largest determinant of the information matrix W* W, the smallest volume of
uncertainty. The amplitudes s keep positions and speeds within limits. One more factor for all
joints keeps joint forces within them. Random series are compared first; the best of them is
improved by a quasi-Newton search over a, b and c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, generator, number
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, tree_of
from linkwise.dynamics.passive import passive
from linkwise.errors import ModelError
from linkwise.identification import model
from linkwise.identification.closed_excitation import IMPROVED, RANDOM, ClosedSeries, excited
from linkwise.identification.least_squares import scipy
from linkwise.identification.motion import SmoothMotion, derivatives, require_rotations
from linkwise.identification.progress import Progress, Reporter
from linkwise.identification.rows import base_of
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.state import moved_places
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array

MOST_SAMPLES = 10_000_000
"""Of a motion: a day of samples every 10 ms."""

COMPARED = 200
"""Samples by which motions are compared."""

MARGIN = 0.95
"""Share of a limit that is used."""

TURNED = 0.5
"""Largest rotation [rad] and displacement [m] of hinges without plain coordinates."""

HALVINGS = 12
"""Of the interval in which the largest admissible amplitude is sought."""

PRICE = 300.0
"""Of joint forces beyond their limits, in a search."""

INSIDE = 0.9
"""Share of the admissible joint forces above which a search pays."""

POWER = 20
"""Of a mean in place of a maximum."""

ROUNDED = 0.05
"""Of a magnitude without a kink."""

LOUD = 3.0
"""Joints use the share 1 / (1 + exp(-LOUD)) of their amplitudes where a search begins."""

MOST_USED = 0.999
"""The largest of these shares after a search."""

CHANGE = 1e-6
"""Of a coefficient, for differences."""

NEAR = 1e-3
"""Distance of the points of differences in time, in periods of the highest harmonic."""


def exciting_motion(
    mech: Mechanism,
    *,
    duration: float = 10.0,
    step: float = 1e-2,
    harmonics: int = 5,
    parameters: Sequence[str] = ("inertia", "damping", "friction"),
    tries: int = 100,
    rounds: int = 10,
    seed: int | np.random.Generator | None = 0,
    driven: Sequence[str] | None = None,
    loops: Loops = "closed",
    progress: Callable[[Progress], None] | None = None,
) -> SmoothMotion:
    """A periodic motion that shows the parameters of a mechanism well, within its limits.

    Each joint follows a Fourier series over the duration, within its limits of position, speed and
    force; the forces are those of `mech`, friction and springs included. Motions with a large
    determinant of the information matrix W* W, a small volume of uncertainty, are best.

    With loops and couplings as many hinges follow series as can move independently; the others
    follow so that loops stay closed, within their limits of position and speed. Motions keep away
    from where loops are singular. Limits of force are those of the independent hinges, as if only
    they had motors.

    Args:
        mech: The mechanism; joints without limits move within ±π or ±0.5 m, spherical and free
            hinges within about half a radian and half a metre.
        duration: The period [s].
        step: Time between samples [s].
        harmonics: Terms of the series, the highest with `harmonics` periods.
        parameters: What is to be identified, as in `lw.identify`.
        tries: Random motions that are compared.
        rounds: Steps of the search that improves the best of them; 0 for none. With loops ten
            random changes each.
        seed: Of the random motions; the same seed gives the same motion.
        driven: With loops and couplings, names of hinges that are independent rather than others,
            such as those with motors; default: those that move the others best.
        loops: "closed" holds loops and couplings; "open" moves all hinges of the tree.
        progress: Called with a `Progress` after tenths of the random motions, and after each round.

    Raises:
        ModelError: A mechanism that cannot move or hold itself within its force limits, too few or
            too many samples, or no motion that shows all base parameters.
        ClosureError: Loops that cannot be closed.
        MissingExtraError: SciPy is not installed (extra `optimize`).
    """
    check_mechanism(mech)
    name = "lw.identification.exciting_motion"
    held = is_closed(mech, loops)
    mech, (kinds, _) = mech if held else tree_of(mech), model.checked_kinds(parameters)
    first = moved_places(mech, driven, "driven") if held and driven is not None else []
    if driven is not None and not held:
        raise ModelError("driven is for loops and couplings; without them all joints move.")
    if not held:
        require_rotations(mech, name)
    if not mech.nv:
        raise ModelError(f"{mech.name!r} has no degrees of freedom; no motion can excite it.")
    length, h = number(duration, "duration", above=0.0), number(step, "step", above=0.0)
    terms, tried = count(harmonics, "harmonics", least=1), count(tries, "tries", least=1)
    steps, rng, report = count(rounds, "rounds"), generator(seed), Reporter(progress)
    if length / h > MOST_SAMPLES:
        raise ModelError(
            f"{length:g} s in steps of {h:g} s are {length / h:.3g} samples; at most "
            f"{MOST_SAMPLES} are allowed. Shorten the duration, or take a longer step."
        )
    t = np.arange(0.0, length, h)
    if len(t) < 4 * terms:
        raise ModelError(f"{len(t)} samples cannot show {terms} harmonics; shorten the step.")
    if held:
        w: Array = 2.0 * np.pi / length * np.arange(1, terms + 1, dtype=np.float64)
        closed = ClosedSeries.of(mech, kinds, w, first, rng)
        motion = excited(closed, t, tried, steps, rng, report)
        q, v, vdot = motion.q, motion.v, motion.vdot
        return SmoothMotion(t, q, v, vdot, None, slice(0, len(t)), np.zeros(q.shape, bool))
    series = _Series.of(mech, kinds, length, terms)
    few = t[:: max(1, len(t) // COMPARED)]
    best, value = series.drawn(rng, tried, few, report)
    best = series.improved(best, value, few, steps, report) if steps else best
    q, v, vdot = series.motion(best, series.share(best, few), few, t)
    return SmoothMotion(t, q, v, vdot, None, slice(0, len(t)), np.zeros(q.shape, bool))


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """Fourier series of all joints, as numbers x.

    First a and b (2, nv, terms), then c (nv,) in shares of half the range, then how much of its
    amplitude each joint uses (nv,), as a number without bounds.

    Attributes:
        w: Angular frequencies (terms,) [rad/s].
        columns: The columns of the base parameters.
        lower: Lower limits along velocities (nv,).
        upper: Upper ones.
    """

    mech: Mechanism
    kinds: tuple[str, ...]
    w: Array
    columns: NDArray[np.int64]
    lower: Array
    upper: Array

    @classmethod
    def of(cls, mech: Mechanism, kinds: tuple[str, ...], length: float, terms: int) -> _Series:
        lower, upper = np.full((2, mech.nv), TURNED)
        lower = -lower
        for k, body in enumerate(mech.bodies):
            if is_plain(body.hinge):
                i = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
                j = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
                wide = 0.5 if body.hinge.kind == "prismatic" else np.pi
                lower[j] = np.where(np.isfinite(mech.lower[i]), mech.lower[i], -wide)
                upper[j] = np.where(np.isfinite(mech.upper[i]), mech.upper[i], wide)
        w: Array = 2.0 * np.pi / length * np.arange(1, terms + 1, dtype=np.float64)
        columns = base_of(mech, kinds, list(range(mech.nv))).columns
        return cls(mech, kinds, w, columns, lower, upper)

    @property
    def size(self) -> int:
        """Numbers in x."""
        return self.mech.nv * (2 * len(self.w) + 2)

    def motion(
        self, x: Array, share: float, few: Array, t: Array, *, soft: bool = False
    ) -> tuple[Array, Array, Array]:
        """q, v and v̇ (samples, ...) at times t, with this share of the admissible amplitudes.

        A soft maximum, of smooth slopes, is for searches.
        """
        nv, w = self.mech.nv, self.w
        a, b = x[: -2 * nv].reshape(2, nv, len(w))
        along = np.outer(w, few)
        sin, cos = np.sin(along), np.cos(along)
        reach = _largest(a @ sin + b @ cos, soft)
        speed = _largest((a * w) @ cos - (b * w) @ sin, soft)
        half, middle = 0.5 * (self.upper - self.lower), 0.5 * (self.upper + self.lower)
        centre = np.clip(x[-2 * nv : -nv], -0.9, 0.9)
        used = _shares(x, nv)
        c = middle + half * centre
        off = np.sqrt(centre**2 + (ROUNDED if soft else 0.0) ** 2)
        room = half * np.maximum(1.0 - off, 0.01) / reach
        fast = self.mech.velocity_limit / speed
        scale = share * MARGIN * (used * np.minimum(room, fast))[:, None]
        a, b = scale * a, scale * b

        def places(times: Array) -> Array:
            along = np.outer(w, times)
            return _placed(self.mech, (c[:, None] + a @ np.sin(along) + b @ np.cos(along)).T)

        if not _rotates(self.mech):
            along = np.outer(w, t)
            sin, cos = np.sin(along), np.cos(along)
            v = ((a * w) @ cos - (b * w) @ sin).T
            return places(t), v, -((a * w**2) @ sin + (b * w**2) @ cos).T
        h = NEAR * 2.0 * np.pi / float(w[-1])
        five = [places(t + i * h) for i in range(-2, 3)]
        return five[2], *derivatives(self.mech, five, h)

    def excess(self, q: Array, v: Array, vdot: Array) -> Array:
        """The largest joint forces (nv,), as shares of what the limits admit."""
        mech = self.mech
        springs = passive(mech)
        tau = inverse_dynamics(mech, q, v, vdot) + mech.damping * v + mech.friction * np.sign(v)
        tau = tau + mech.stiffness * (q[:, springs.at] - springs.rest)
        return np.abs(tau).max(axis=0) / (MARGIN * np.maximum(mech.effort_limit, 1e-300))

    def share(self, x: Array, few: Array) -> float:
        """The largest admissible share of the amplitudes; NaN if standing still is too much."""
        if not np.isfinite(self.mech.effort_limit).any():
            return 1.0

        def fits(share: float) -> bool:
            return bool((self.excess(*self.motion(x, share, few, few)) <= 1.0).all())

        if fits(1.0):
            return 1.0
        if not fits(0.0):
            return np.nan
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def scores(self, xs: Array, share: float, few: Array, *, soft: bool = False) -> Array:
        """log det W* W of many motions; soft, less a price of forces beyond their limits."""
        out = np.empty(len(xs))
        limited = np.isfinite(self.mech.effort_limit).any()
        for i, x in enumerate(xs):
            state = self.motion(x, share, few, few, soft=soft)
            W = model.design(self.mech, self.kinds, *state)[..., self.columns]
            A = W.reshape(-1, len(self.columns))
            sign, size = np.linalg.slogdet(A.T @ A)
            out[i] = float(size) if sign > 0.0 else -np.inf
            if limited and soft:
                over = np.maximum(self.excess(*state) - INSIDE, 0.0)
                out[i] -= PRICE * float(over @ over)
        return out

    def drawn(
        self, rng: np.random.Generator, tries: int, few: Array, report: Reporter
    ) -> tuple[Array, float]:
        """The best of random motions, and its score."""
        report.begin(RANDOM, tries)
        best, value, held = np.zeros(self.size), -np.inf, False
        for i in range(tries):
            if i and i % max(1, tries // 10) == 0:
                report(i, -value)
            fresh = i < tries // 3 or not np.isfinite(value)
            x = rng.standard_normal(self.size)
            centres = rng.uniform(-1.0, 1.0, self.mech.nv) * (i % 2 if not held else 0.3)
            if fresh:
                x[-2 * self.mech.nv : -self.mech.nv] = centres
            else:
                x = best + 0.3 * np.abs(best).mean() * x
            share = self.share(x, few)
            held = held or share > 0.0
            if not np.isfinite(share) or share == 0.0:
                continue
            if (score := float(self.scores(x[None], share, few)[0])) > value:
                best, value = x, score
        if not held:
            self._refuse(best, few)
        if not np.isfinite(value):
            raise ModelError(
                f"no motion of {self.mech.name!r} that was tried shows all base parameters."
            )
        return best, value

    def _refuse(self, x: Array, few: Array) -> None:
        excess = self.excess(*self.motion(x, 0.0, few, few[:1]))
        worst = int(np.argmax(excess))
        needed = MARGIN * float(excess[worst] * self.mech.effort_limit[worst])
        raise ModelError(
            f"{self.mech.name!r} cannot hold itself in any place that was tried: joint "
            f"{self.mech.velocity_names[worst]!r} needs {needed:.4g} in the middle of its range, "
            f"its limit is {self.mech.effort_limit[worst]:.4g}. Correct the limit (mech.with_drive "
            "with effort=...) or try more places with tries=..."
        )

    def improved(self, x: Array, value: float, few: Array, rounds: int, report: Reporter) -> Array:
        """A better motion near x, or x."""
        nv, steps = self.mech.nv, CHANGE * np.eye(self.size)
        start = _with_shares(x, nv, self.share(x, few) * _shares(x, nv))

        def price(x: Array) -> tuple[float, Array]:
            values = self.scores(np.vstack([x, x + steps]), 1.0, few, soft=True)
            if not np.isfinite(values).all():
                return 1e10, np.zeros(self.size)
            return -float(values[0]), -(values[1:] - values[0]) / CHANGE

        done = 0

        def after_round(intermediate_result: Any) -> None:
            nonlocal done
            done += 1
            report(done, float(intermediate_result.fun))

        report.begin(IMPROVED, rounds)
        how = dict[str, Any](jac=True, method="L-BFGS-B", options={"maxiter": rounds})
        better = scipy("optimize").minimize(price, start, callback=after_round, **how).x
        better = _with_shares(
            better, nv, MOST_USED / _shares(better, nv).max() * _shares(better, nv)
        )
        there = self.share(better, few)
        if np.isfinite(there) and float(self.scores(better[None], there, few)[0]) > value:
            return better
        return x


def _largest(y: Array, soft: bool) -> Array:
    """The largest magnitude in each row."""
    most = np.maximum(np.abs(y).max(axis=1), 1e-300)
    if not soft:
        return most
    return most * np.mean((np.abs(y) / most[:, None]) ** POWER, axis=1) ** (1.0 / POWER)


def _shares(x: Array, nv: int) -> Array:
    """The shares of their amplitudes that the joints use."""
    return 1.0 / (1.0 + np.exp(-LOUD - x[-nv:]))


def _with_shares(x: Array, nv: int, used: Array) -> Array:
    return np.concatenate([x[:-nv], np.log(used / (1.0 - used)) - LOUD])


def _rotates(mech: Mechanism) -> bool:
    return not all(is_plain(body.hinge) for body in mech.bodies)


def _placed(mech: Mechanism, y: Array) -> Array:
    """Coordinates (samples, nq) of numbers (samples, nv): rotation vectors become quaternions."""
    if not _rotates(mech):
        return y
    q = np.zeros((len(y), mech.nq))
    for k, body in enumerate(mech.bodies):
        i = slice(int(mech.q_start[k]), int(mech.q_start[k + 1]))
        j = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if is_plain(body.hinge):
            q[:, i] = y[:, j]
        else:
            q[:, i][:, :4] = quaternion.exp(y[:, j][:, :3])
            q[:, i][:, 4:] = y[:, j][:, 3:]
    return q
