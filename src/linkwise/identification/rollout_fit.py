"""Parameters from positions and joint forces alone: motions are simulated, not differentiated.

The recording is cut into windows. Each is simulated from its first sample with the measured joint
forces, and

    Σ |q̂_k(θ, x_w) ⊖ q_k|² / σ²   is least over the parameters θ and the first states x_w.

A window is short, so that errors of the model do not run away; its first state is free, so that
noise of one sample does not count. Derivatives by all parameters and states are differences, the
columns of one batch of rollouts. σ follows from what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.arguments import count, number, option
from linkwise.dynamics.configuration import difference, integrate
from linkwise.dynamics.kernels import check_mechanism, require_open, tree_of
from linkwise.errors import ModelError, ShapeError
from linkwise.identification import model
from linkwise.identification.fit import interval
from linkwise.identification.rows import base_of
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rollout import rollout
from linkwise.spatial.array import Array, ArrayLike, floats

SIMULATED = ("inertia", "armature", "damping", "stiffness")
"""What explicit steps take as numbers of each motion."""

CHANGE = 1e-6
"""Of a coordinate, for differences."""

ROUNDS = 100
"""Of the search, at most."""

LARGEST = 1e12
"""Damping of a step that ends the search: none is small enough."""

DONE = 1e-8
"""Relative decrease of the sum of squares that ends it."""


@dataclass(frozen=True, slots=True, eq=False)
class RolloutFit:
    """Parameters identified through simulated motions.

    Attributes:
        mech: The mechanism with the identified numbers.
        names: The base parameters, combinations that joint forces depend on.
        estimate: Their values (count,).
        deviation: Their standard deviations (count,).
        parameters: The numbers of `mech` by name.
        noise: Standard deviation of the residuals of positions [m or rad].
        before: The same before the search, with the first states fitted.
        rounds: How many the search took.
        converged: Whether it ended by itself.
        gaps: Windows with numbers that are not finite, which were left out.
    """

    mech: Mechanism
    names: tuple[str, ...]
    estimate: Array
    deviation: Array
    parameters: dict[str, float]
    noise: float
    before: float
    rounds: int
    converged: bool
    gaps: int

    def interval(self, level: float = 0.95) -> Array:
        """Confidence interval of each base parameter (count, 2).

        Args:
            level: Probability that an interval contains the true value, for normal noise.
        """
        return interval(self.estimate, self.deviation, level)

    def __str__(self) -> str:
        end = "" if self.converged else ", not converged"
        lines = [
            f"{len(self.names)} base parameters of {self.mech.name!r} through rollouts: residual "
            f"{self.before:.3g} before, {self.noise:.3g} after {self.rounds} rounds{end}"
        ]
        if self.gaps:
            lines.append(f"{self.gaps} windows with gaps left out")
        rows = zip(self.names, self.estimate, self.deviation, strict=True)
        lines += [f"  {name[:48]:48} {x:11.4g} ± {s:8.2g}" for name, x, s in rows]
        return "\n".join(lines)


def identify_rollout(
    mech: Mechanism,
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    *,
    parameters: Sequence[str] = ("inertia", "damping"),
    window: int = 25,
    prior: float = 1e-3,
    integrator: str = "rk4",
) -> RolloutFit:
    """Identify parameters where velocities and accelerations are not measured.

    Windows of the recording are simulated from free first states with the measured joint forces,
    which are held from each sample to the next; the sum of squares of the errors of positions is
    least. Nothing is differentiated or filtered. What is not identified keeps the value it has in
    `mech`.

    Args:
        t: Times of the samples (samples,) [s], evenly spaced.
        q: Measured positions (samples, nq) [m or rad]. Windows with a NaN are left out.
        tau: Joint forces (samples, nv) [N or N m], each held until the next sample; likewise.
        parameters: What to identify: "inertia", "armature", "damping", "stiffness".
        window: Steps in a window, which has one sample more; no sample is in two windows.
        prior: How strongly the numbers are pulled to those of `mech`, as in `lw.identify`.
        integrator: "rk4" or "euler".

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: Times that are not evenly spaced, gaps in all windows, too few samples, or a
            motion that cannot be simulated.
        ShapeError: Arrays that do not fit.
    """
    check_mechanism(mech)
    require_open(mech, "closed", "lw.identification.identify_rollout")
    mech = tree_of(mech)
    kinds, gained = model.checked_kinds(parameters)
    for kind in (*kinds, *([model.GAIN] if gained else [])):
        option(kind, SIMULATED, "parameters")
    integrator = option(integrator, ("rk4", "euler"), "integrator")
    length, pull = count(window, "window", least=4), number(prior, "prior", above=0.0)
    problem = _Problem.of(mech, kinds, t, q, tau, length, integrator)
    free = model.FreeNumbers.of(mech, kinds)
    base = base_of(mech, kinds, list(range(mech.nv)))
    x = free.first.copy()
    states = _settled(problem, free, x, problem.first)
    search = _Search(problem, free, np.sqrt(pull), x, states, *problem.linear(free, x, states))
    before = search.scale
    rounds, converged = search.run()
    x, J, scale, weight = search.x, search.J, search.scale, search.weight
    A = np.vstack([J / scale, np.eye(len(x), J.shape[1]) * weight])
    covariance = np.linalg.pinv(A.T @ A)[: len(x), : len(x)]
    values, slopes = free.numbers(x)
    rows = base.matrix @ slopes
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, covariance, rows), 0.0))
    named = dict(zip(model.column_names(mech, kinds), values.tolist(), strict=True))
    return RolloutFit(
        model.with_numbers(mech, kinds, values),
        base.names,
        base.matrix @ values,
        deviation,
        named,
        scale,
        before,
        rounds,
        converged,
        problem.left_out,
    )


def _settled(problem: _Problem, free: model.FreeNumbers, x: Array, states: Array) -> Array:
    """First states that fit best with the numbers as they are, by a few rounds of Gauss-Newton."""
    for _ in range(3):
        miss, J = problem.linear(free, x, states)
        step = cast("Array", np.linalg.lstsq(J[:, len(x) :], -miss, rcond=None)[0])
        states = problem.moved(states, step)
    return states


class _Search:
    """Levenberg and Marquardt's search over x and the first states, with σ from the residual."""

    def __init__(
        self,
        problem: _Problem,
        free: model.FreeNumbers,
        weight: float,
        x: Array,
        states: Array,
        miss: Array,
        J: Array,
    ) -> None:
        self.problem, self.free, self.weight = problem, free, weight
        self.x, self.states, self.miss, self.J = x, states, miss, J
        self.scale, self.damping = self._noise(), 1e-3

    def _noise(self) -> float:
        left = max(len(self.miss) - self.J.shape[1], 1)
        return max(float(np.sqrt(self.miss @ self.miss / left)), 1e-12)

    def run(self) -> tuple[int, bool]:
        """Rounds, and whether the search ended by itself."""
        for done in range(1, ROUNDS + 1):
            decrease = self._round()
            if decrease is None:
                return done, True
            noise = self._noise()
            steady = abs(noise - self.scale) < 1e-3 * self.scale
            self.scale = noise
            if steady and decrease < DONE:
                return done, True
        return ROUNDS, False

    def _sides(self, miss: Array, x: Array) -> Array:
        return np.concatenate([miss / self.scale, self.weight * (x - self.free.first)])

    def _round(self) -> float | None:
        """One step that makes the sum of squares smaller, by what share; None if there is none."""
        n, sides = len(self.x), self._sides(self.miss, self.x)
        total, columns = float(sides @ sides), self.J.shape[1]
        A = np.vstack([self.J / self.scale, self.weight * np.eye(n, columns)])
        M, right = A.T @ A, -(A.T @ sides)
        while self.damping < LARGEST:
            held = M + self.damping * np.diag(np.diag(M) + 1e-300)
            step = cast("Array", np.linalg.solve(held, right))
            # Coordinates are logarithms and roots: further than one they are not linear.
            step *= 1.0 / max(1.0, float(np.abs(step[:n]).max()))
            x, states = self.x + step[:n], self.problem.moved(self.states, step[n:])
            trial = self._sides(
                self.problem.misses(self.free.numbers(x)[0][None], states[None])[0], x
            )
            after = float(trial @ trial) if np.isfinite(trial).all() else np.inf
            if after < total:
                self.x, self.states = x, states
                self.damping = max(0.1 * self.damping, 1e-12)
                self.miss, self.J = self.problem.linear(self.free, x, states)
                return (total - after) / total
            self.damping *= 10.0
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Windows of a recording: states (windows, nq + nv), positions and forces of each."""

    mech: Mechanism
    kinds: tuple[str, ...]
    step: float
    integrator: str
    first: Array
    q: Array
    tau: Array
    left_out: int

    @classmethod
    def of(
        cls,
        mech: Mechanism,
        kinds: tuple[str, ...],
        t: ArrayLike,
        q: ArrayLike,
        tau: ArrayLike,
        length: int,
        integrator: str,
    ) -> _Problem:
        times, places, forces = floats(t, "t"), floats(q, "q"), floats(tau, "tau")
        if times.ndim != 1:
            raise ShapeError(f"t has shape {times.shape}; it must be (samples,).")
        shapes = (len(times),), (len(times), mech.nq), (len(times), mech.nv)
        for name, x, shape in zip(("t", "q", "tau"), (times, places, forces), shapes, strict=True):
            if x.shape != shape:
                raise ShapeError(f"{name} has shape {x.shape}; it must be {shape}.")
        if not np.isfinite(times).all():
            raise ModelError("t has gaps; give the times of all samples, and NaN in q or tau.")
        step = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
        if not step > 0.0 or np.abs(np.diff(times) - step).max() > 1e-3 * step:
            raise ModelError("times are not evenly spaced; resample the measurements first.")
        # No sample belongs to two windows, since its noise would count twice.
        windows = len(times) // (length + 1)
        if windows < 1:
            raise ModelError(f"{len(times)} samples are too few for a window of {length} steps.")
        at = (length + 1) * np.arange(windows)[:, None] + np.arange(length + 1)
        complete = np.isfinite(places[at]).all(axis=(1, 2))
        complete &= np.isfinite(forces[at[:, :-1]]).all(axis=(1, 2))
        if not complete.any():
            raise ModelError(f"each window of {length} samples has a gap; take shorter windows.")
        at = at[complete]
        q_of = places[at]
        lead = 2 if length >= 4 else 1
        v = difference(mech, q_of[:, 0], q_of[:, lead]) / (lead * step)
        first = np.concatenate([q_of[:, 0], v], axis=1)
        left_out = int(windows - complete.sum())
        return cls(mech, kinds, step, integrator, first, q_of, forces[at[:, :-1]], left_out)

    def moved(self, states: Array, d: Array) -> Array:
        """States displaced by d (windows * 2 nv,)."""
        nq, nv = self.mech.nq, self.mech.nv
        each = d.reshape(*states.shape[:-1], 2 * nv)
        q = integrate(self.mech, states[..., :nq], each[..., :nv])
        return np.concatenate([q, states[..., nq:] + each[..., nv:]], axis=-1)

    def misses(self, values: Array, states: Array) -> Array:
        """Errors of positions (variants, all) for numbers (variants, columns) and states."""
        mech, (variants, windows) = self.mech, states.shape[:2]
        nv, start, given = mech.nv, 0, dict[str, Any]()
        rows = np.repeat(values, windows, axis=0)
        for kind in self.kinds:
            size = 10 * mech.n_bodies if kind == "inertia" else nv
            given[kind], start = rows[:, start : start + size], start + size
        flat = states.reshape(variants * windows, -1)
        steps = self.tau.shape[1]
        runs = rollout(
            mech,
            flat[:, : mech.nq],
            flat[:, mech.nq :],
            tau=np.tile(self.tau, (variants, 1, 1)),
            duration=steps * self.step,
            step=self.step,
            integrator=self.integrator,
            parameters=given,
        )
        measured = np.tile(self.q, (variants, 1, 1))
        with np.errstate(all="ignore"):
            bad = np.array([not np.isfinite(x).all() for x in runs.q])
            q = np.where(bad[:, None, None], measured, runs.q)
            out = difference(mech, measured, q)
        out[bad] = np.inf
        return out.reshape(variants, -1)

    def linear(self, free: model.FreeNumbers, x: Array, states: Array) -> tuple[Array, Array]:
        """Errors (all,), and their derivatives by x and by the states of all windows.

        All windows are displaced at once in one direction: each has its own rows.
        """
        windows, n = len(states), 2 * self.mech.nv
        change = CHANGE * np.maximum(np.abs(x), 1.0)
        numbers = [free.numbers(x)[0]]
        numbers += [free.numbers(x + h * e)[0] for h, e in zip(change, np.eye(len(x)), strict=True)]
        values = np.vstack([*numbers, *[numbers[0]] * n])
        here = np.tile(states, (1 + len(x) + n, 1, 1))
        for i in range(n):
            d = np.tile(CHANGE * np.eye(n)[i], windows)
            here[1 + len(x) + i] = self.moved(states, d)
        out = self.misses(values, here)
        if not np.isfinite(out).all():
            raise ModelError(
                f"a window of the recording cannot be simulated with the numbers of "
                f"{self.mech.name!r}; take shorter windows, or better first numbers."
            )
        J = np.zeros((out.shape[1], len(x) + windows * n))
        J[:, : len(x)] = ((out[1 : 1 + len(x)] - out[0]) / change[:, None]).T
        slopes = ((out[1 + len(x) :] - out[0]) / CHANGE).reshape(n, windows, -1)
        rows = out.shape[1] // windows
        for w in range(windows):
            columns = slice(len(x) + w * n, len(x) + (w + 1) * n)
            J[w * rows : (w + 1) * rows, columns] = slopes[:, w].T
        return out[0], cast("Array", J)
