"""Parameters from positions and joint forces alone: motions are simulated, not differentiated.

The recording is cut into windows. Each is simulated from its first sample with the measured joint
forces, and

    Σ |q̂_k(θ, x_w) ⊖ q_k|² / σ²   is least over the parameters θ and the first states x_w.

A window is short, so that errors of the model do not run away; its first state is free, so that
noise of one sample does not count. Derivatives by all parameters and states are differences, the
columns of one batch of rollouts. σ follows from what is left.

Steps have errors, too. With d the difference of positions between steps of h and h/2, estimates are
off by about

    (J* J)⁻¹ J* d / (1 − 2⁻ᵖ)          of an integrator of order p

and steps are halved until that is small beside the deviations. Friction acts in implicit steps, in
which loops hold as well; first states then move along what loops allow. These steps are of order
one, and positions q(h) after them are replaced by 2 q(h/2) − q(h), of order two.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, number, option
from linkwise.dynamics.configuration import difference, integrate
from linkwise.dynamics.kernels import check_mechanism, is_closed, tree_of
from linkwise.dynamics.regressor import BaseParameters
from linkwise.errors import ModelError, ShapeError, TroubleWarning, caller
from linkwise.identification import closed, model
from linkwise.identification.fit import interval
from linkwise.identification.rows import Rows, base_and_equations, base_of
from linkwise.loops.projection import project_position, project_velocity
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.rollout import rollout
from linkwise.spatial.array import Array, ArrayLike, floats

SIMULATED = ("inertia", "armature", "damping", "friction", "stiffness")
"""What steps take as numbers of each motion; friction those of "implicit" alone."""

ORDERS = {"rk4": 4, "euler": 2, "implicit": 2}
"""Of the integrators; those of order two extrapolate steps of order one."""

CHANGE = 1e-6
"""Of a coordinate, for differences."""

WIDE = (1e-3, 1e-2, 1e-4)
"""The same with friction: its kinks catch a search that has narrow ones. One is tried after the
other."""

BEGIN = 4
"""Steps between two samples at first, with friction: kinks are smaller by that."""

FARTHEST = 0.2
"""Change of a coordinate of an inertia in one step."""

LEFT, KINKED = 0.01, 0.1
"""Relative decrease of the sum of squares that linear equations promise at the end of a search that
has converged: bodies cannot be flatter than flat. The second with friction."""

FINE = 0.2
"""Part of a deviation by which an estimate may be off because of the steps."""

MOST = 64
"""Steps between two samples."""

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
        converged: Whether it ended where nothing is left to gain; a `TroubleWarning` if not.
        gaps: Windows with numbers that are not finite, which were left out.
        substeps: Steps of the simulation between two samples.
        step_error: How far the length of the steps moves an estimate, in deviations, at most.
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
    substeps: int
    step_error: float

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
            f"{self.before:.3g} before, {self.noise:.3g} after {self.rounds} rounds{end}",
            f"{self.substeps} steps between samples move estimates by {self.step_error:.2g} "
            "deviations at most",
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
    integrator: str | None = None,
) -> RolloutFit:
    """Identify parameters where velocities and accelerations are not measured.

    Windows of the recording are simulated from free first states with the measured joint forces,
    which are held from each sample to the next; the sum of squares of the errors of positions is
    least. Nothing is differentiated or filtered. What is not identified keeps the value it has in
    `mech`. Steps between samples are halved until their errors are small beside the deviations.

    Args:
        t: Times of the samples (samples,) [s], evenly spaced.
        q: Measured positions (samples, nq) [m or rad]. Windows with a NaN are left out.
        tau: Joint forces (samples, nv) [N or N m], each held until the next sample; likewise.
        parameters: What to identify: "inertia", "armature", "damping", "friction", "stiffness".
        window: Steps in a window, which has one sample more; no sample is in two windows.
        prior: How strongly the numbers are pulled to those of `mech`, as in `lw.identify`.
        integrator: "rk4", "euler" or "implicit"; default: "implicit" with friction, loops or
            couplings, which the others do not have, else "rk4".

    Returns:
        Estimates, their deviations, and the mechanism with identified numbers.

    Raises:
        ModelError: Times that are not evenly spaced, gaps in all windows, too few samples, or a
            motion that cannot be simulated; friction or loops with explicit steps.
        ClosureError: Positions break loops by more than noise does.
        ShapeError: Arrays that do not fit.
    """
    check_mechanism(mech)
    kinds, gained = model.checked_kinds(parameters)
    for kind in (*kinds, *([model.GAIN] if gained else [])):
        option(kind, SIMULATED, "parameters")
    scheme = _integrator(mech, kinds, integrator)
    length, pull = count(window, "window", least=4), number(prior, "prior", above=0.0)
    problem = _Problem.of(mech, kinds, t, q, tau, length, scheme)
    free = model.FreeNumbers.of(tree_of(mech), kinds, straight=True)
    base = _base(mech, kinds, problem)
    x, weight = free.first.copy(), np.sqrt(pull)
    while not problem.is_finite(x, free) and 2 * problem.substeps <= MOST:
        problem = problem.finer()
    states = _settled(problem, free, x, problem.first)
    before, total = None, 0
    while True:
        search = _Search(problem, free, weight, x, states, *problem.linear(free, x, states))
        before = search.scale if before is None else before
        rounds, converged = search.run()
        x, states, J, scale, total = search.x, search.states, search.J, search.scale, total + rounds
        A = np.vstack([J / scale, np.eye(len(x), J.shape[1]) * weight])
        covariance: Array = np.asarray(np.linalg.pinv(A.T @ A)[: len(x)], dtype=np.float64)
        values, slopes = free.numbers(x)
        rows = base.matrix @ slopes
        spread = np.einsum("ij,jk,ik->i", rows, covariance[:, : len(x)], rows)
        deviation = np.sqrt(np.maximum(spread, 0.0))
        off = search.miss - problem.finer().misses(values[None], states[None])[0]
        off /= 1.0 - 0.5 ** ORDERS[scheme]
        moved = rows @ (covariance @ (J.T @ off)) / scale**2
        step_error = float(np.max(np.abs(moved) / np.maximum(deviation, 1e-300), initial=0.0))
        if step_error <= FINE or 2 * problem.substeps > MOST:
            break
        problem = problem.finer()
    if not converged:
        warnings.warn(
            f"the search over the numbers of {mech.name!r} ended where the errors could still be "
            "smaller: take shorter windows, better first numbers, or fewer parameters.",
            TroubleWarning,
            stacklevel=caller(),
        )
    if step_error > FINE:
        warnings.warn(
            f"{problem.substeps} steps between samples move an estimate by {step_error:.1f} of its "
            "standard deviations: intervals are too narrow by that. Sample more often, or take "
            "integrator='rk4' if there is no friction.",
            TroubleWarning,
            stacklevel=caller(),
        )
    named = dict(zip(model.column_names(tree_of(mech), kinds), values.tolist(), strict=True))
    return RolloutFit(
        model.with_numbers(mech, kinds, values),
        base.names,
        base.matrix @ values,
        deviation,
        named,
        scale,
        before,
        total,
        converged,
        problem.left_out,
        problem.substeps,
        step_error,
    )


def _integrator(mech: Mechanism, kinds: tuple[str, ...], given: str | None) -> str:
    """The integrator, which has to have what acts on the mechanism."""
    rubs = "friction" in kinds or bool(mech.friction.any())
    if given is None:
        return "implicit" if rubs or is_closed(mech) else "rk4"
    name = option(given, tuple(ORDERS), "integrator")
    if name != "implicit" and (rubs or is_closed(mech)):
        what = "friction" if rubs else "loops or couplings"
        raise ModelError(
            f"{mech.name!r} has {what}, which do not act in steps of {name!r}; take 'implicit'."
        )
    return name


def _base(mech: Mechanism, kinds: tuple[str, ...], problem: _Problem) -> BaseParameters:
    """The combinations that motions depend on."""
    everything = list(range(mech.nv))
    if not is_closed(mech):
        return base_of(mech, kinds, everything)
    nq, none = mech.nq, np.zeros((len(problem.first), mech.nv))
    driven = [i for i in everything if problem.tau[..., i].any()]
    rows = Rows.of(mech, (problem.first[:, :nq], none, none), everything, driven)
    return base_and_equations(kinds, rows)[0]


def _settled(problem: _Problem, free: model.FreeNumbers, x: Array, states: Array) -> Array:
    """First states that fit best with the numbers as they are, by a few rounds of Gauss-Newton."""
    numbers = free.numbers(x)[0][None]
    for _ in range(3):
        miss, J = problem.linear(free, x, states)
        step = cast("Array", np.linalg.lstsq(J[:, len(x) :], -miss, rcond=None)[0])
        tried = problem.moved(states, step)
        after = problem.misses(numbers, tried[None])[0]
        if not (np.isfinite(after).all() and after @ after < miss @ miss):
            break  # too far for a straight step; the search takes shorter ones
        states = tried
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
        """Rounds, and whether the search ended where nothing is left to gain."""
        rounds, limit = 0, KINKED if self.problem.rubs else LEFT
        for width in WIDE if self.problem.rubs else (CHANGE,):
            if width != self.problem.width:
                self.problem, self.damping = replace(self.problem, width=width), 1e-3
                self.miss, self.J = self.problem.linear(self.free, self.x, self.states)
            rounds += self._descend()
            if self._promise() < limit:
                return rounds, True
        return rounds, False

    def _descend(self) -> int:
        """Rounds until no step leads down by much."""
        for done in range(1, ROUNDS + 1):
            decrease = self._round()
            if decrease is None:
                return done
            noise = self._noise()
            steady = abs(noise - self.scale) < 1e-3 * self.scale
            self.scale = noise
            if steady and decrease < DONE:
                return done
        return ROUNDS

    def _promise(self) -> float:
        """By what share the sum of squares would decrease if the equations were linear."""
        n, sides = len(self.x), self._sides(self.miss, self.x)
        A = np.vstack([self.J / self.scale, self.weight * np.eye(n, self.J.shape[1])])
        A[:, self._at_bounds(A.T @ sides)] = 0.0
        step = cast("Array", np.linalg.lstsq(A, -sides, rcond=None)[0])
        after = sides + A @ step
        return 1.0 - float(after @ after) / float(sides @ sides)

    def _at_bounds(self, slope: Array) -> NDArray[np.intp]:
        """Coordinates that are zero and would become negative."""
        n = len(self.x)
        return np.flatnonzero(self.free.bounded & (self.x <= 0.0) & (slope[:n] > 0.0))

    def _sides(self, miss: Array, x: Array) -> Array:
        return np.concatenate([miss / self.scale, self.weight * (x - self.free.first)])

    def _round(self) -> float | None:
        """One step that makes the sum of squares smaller, by what share; None if there is none."""
        n, sides = len(self.x), self._sides(self.miss, self.x)
        total, columns = float(sides @ sides), self.J.shape[1]
        A = np.vstack([self.J / self.scale, self.weight * np.eye(n, columns)])
        held = self._at_bounds(A.T @ sides)
        A[:, held] = 0.0
        M, right = A.T @ A, -(A.T @ sides)
        M[held, held] = 1.0
        while self.damping < LARGEST:
            damped = M + self.damping * np.diag(np.diag(M) + 1e-300)
            step = cast("Array", np.linalg.solve(damped, right))
            # Coordinates of inertias are logarithms: long steps lead to where bodies are flat.
            curved = 10 * len(self.free.bodies)
            step *= FARTHEST / max(FARTHEST, float(np.abs(step[:curved]).max(initial=0.0)))
            x, states = self.x + step[:n], self.problem.moved(self.states, step[n:])
            x = np.where(self.free.bounded, np.maximum(x, 0.0), x)
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
    """Windows of a recording: states (windows, nq + nv), positions and forces of each.

    First states move along `ways` (windows, nv, free).
    """

    mech: Mechanism
    kinds: tuple[str, ...]
    step: float
    integrator: str
    first: Array
    q: Array
    tau: Array
    left_out: int
    ways: Array
    rubs: bool
    substeps: int = 1
    width: float = CHANGE

    def finer(self) -> _Problem:
        """With steps of half the length."""
        return replace(self, substeps=2 * self.substeps)

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
        ways, q = np.broadcast_to(np.eye(mech.nv), (len(v), mech.nv, mech.nv)), q_of[:, 0]
        if is_closed(mech):
            q, v, _ = closed.obeying(mech, q, v, np.zeros_like(v))
            ways = closed.ways(mech, q)
        first = np.concatenate([q, v], axis=1)
        left_out = int(windows - complete.sum())
        tau_of = forces[at[:, :-1]]
        rubs = "friction" in kinds or bool(mech.friction.any())
        each = (mech, kinds, step, integrator, first, q_of, tau_of, left_out, ways, rubs)
        return cls(*each, BEGIN, WIDE[0]) if rubs else cls(*each)

    def moved(self, states: Array, d: Array) -> Array:
        """States displaced by d (windows * 2 free,)."""
        nq, free = self.mech.nq, self.ways.shape[-1]
        each = d.reshape(*states.shape[:-1], 2, free) @ np.swapaxes(self.ways, 1, 2)
        q = integrate(self.mech, states[..., :nq], each[..., 0, :])
        v = states[..., nq:] + each[..., 1, :]
        if is_closed(self.mech):
            flat = project_position(self.mech, q.reshape(-1, nq)).required()
            v = project_velocity(self.mech, flat, v.reshape(len(flat), -1)).reshape(v.shape)
            q = flat.reshape(q.shape)
        return np.concatenate([q, v], axis=-1)

    def misses(self, values: Array, states: Array) -> Array:
        """Errors of positions (variants, all) for numbers (variants, columns) and states."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TroubleWarning)  # rows that are not finite tell
            out = self._of_steps(values, states)
            if ORDERS[self.integrator] == 2:
                out = 2.0 * self.finer()._of_steps(values, states) - out
        return np.where(np.isfinite(out), out, np.inf)

    def _of_steps(self, values: Array, states: Array) -> Array:
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
            tau=np.tile(np.repeat(self.tau, self.substeps, axis=1), (variants, 1, 1)),
            duration=steps * self.step,
            step=self.step / self.substeps,
            record_every=self.substeps,
            integrator=self.integrator,
            parameters=given,
            contacts=() if self.integrator == "implicit" else None,
        )
        measured = np.tile(self.q, (variants, 1, 1))
        with np.errstate(all="ignore"):
            bad = np.array([not np.isfinite(x).all() for x in runs.q])
            q = np.where(bad[:, None, None], measured, runs.q)
            out = difference(mech, measured, q)
        out[bad] = np.nan
        return out.reshape(variants, -1)

    def is_finite(self, x: Array, free: model.FreeNumbers) -> bool:
        """Whether all windows can be simulated from their first samples."""
        return bool(np.isfinite(self.misses(free.numbers(x)[0][None], self.first[None])).all())

    def linear(self, free: model.FreeNumbers, x: Array, states: Array) -> tuple[Array, Array]:
        """Errors (all,), and their derivatives by x and by the states of all windows.

        All windows are displaced at once in one direction: each has its own rows.
        """
        windows, n, small = len(states), 2 * self.ways.shape[-1], self.width
        change = small * np.maximum(np.abs(x), 1.0)
        numbers = [free.numbers(x)[0]]
        numbers += [free.numbers(x + h * e)[0] for h, e in zip(change, np.eye(len(x)), strict=True)]
        values = np.vstack([*numbers, *[numbers[0]] * n])
        here = np.tile(states, (1 + len(x) + n, 1, 1))
        for i in range(n):
            d = np.tile(small * np.eye(n)[i], windows)
            here[1 + len(x) + i] = self.moved(states, d)
        out = self.misses(values, here)
        if not np.isfinite(out).all():
            raise ModelError(
                f"a window of the recording cannot be simulated with the numbers of "
                f"{self.mech.name!r}; take shorter windows, or better first numbers."
            )
        J = np.zeros((out.shape[1], len(x) + windows * n))
        J[:, : len(x)] = ((out[1 : 1 + len(x)] - out[0]) / change[:, None]).T
        slopes = ((out[1 + len(x) :] - out[0]) / small).reshape(n, windows, -1)
        rows = out.shape[1] // windows
        for w in range(windows):
            columns = slice(len(x) + w * n, len(x) + (w + 1) * n)
            J[w * rows : (w + 1) * rows, columns] = slopes[:, w].T
        return out[0], cast("Array", J)
