"""Steps until the targets are reached or nothing helps any more: Levenberg and Marquardt's method.

Many samples go side by side, each with its own damping λ. A step that does not lessen the error

    E = ½ Σ e* W e

is not taken; instead λ grows, and with it N = λ · scale, so that steps become shorter and turn to
the steepest way down. Since J* W e is the exact slope of E (the logarithm of a rotation keeps its
axis), some λ lessens E unless it is least already: the error never grows, and a singular pose is
no worse than any other. Freedoms at a limit that are pulled against it are held for the step, and
what a step carries beyond a limit is put back: the projected Newton method for bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.inverse_kinematics.coupled import Couplings
from linkwise.dynamics.inverse_kinematics.limits import Joints
from linkwise.dynamics.inverse_kinematics.step import Kernels
from linkwise.dynamics.inverse_kinematics.target import Goals
from linkwise.spatial.array import Array

FIRST_DAMPING = 1e-2
"""λ of the first step; J* W J is about one."""

LEAST_DAMPING, LARGEST_DAMPING = 1e-10, 1e8
"""Below the first, rounding in P would be felt; above the second steps are below rounding."""

SLOW, LAST = 1e-5, 1e-12
"""A smaller relative gain in E is none: while searching, and when all has been tried."""

PATIENCE = 5
"""Steps in a row without gain after which a sample gives up."""


@dataclass(slots=True, eq=False)
class Samples:
    """Where samples ended; one row each.

    Attributes:
        q: Coordinates (s, nq).
        error: Errors e of the nodes (s, k, 6).
        cost: E (s,).
        reached: Whether all errors are within tolerance (s,).
        settled: Whether it had come to rest, or ran out of iterations (s,).
        iterations: Steps that were tried (s,).
        history: √(2 E) after each step (s, iterations + 1), NaN after the last.
    """

    q: Array
    error: Array
    cost: Array
    reached: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    history: Array

    def take(self, at: int, other: Samples, i: int) -> None:
        """Put sample i of others in the place of one of these."""
        for name in ("q", "error", "cost", "reached", "settled", "iterations"):
            getattr(self, name)[at] = getattr(other, name)[i]
        size = min(self.history.shape[1], other.history.shape[1])
        self.history[at] = np.nan
        self.history[at, :size] = other.history[i, :size]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What stays the same in all iterations.

    Attributes:
        goals: What is asked.
        joints: What may move.
        couplings: Coordinates that follow others.
        kernels: What runs.
        tolerance: Largest errors that count as reached [rad, m].
        iterations: How many steps a sample may try.
    """

    goals: Goals
    joints: Joints
    couplings: Couplings
    kernels: Kernels
    tolerance: tuple[float, float]
    iterations: int

    def error(self, q: Array, which: NDArray[np.int64]) -> tuple[Array, Array, Array]:
        """Errors e (s, k, 6), forces f = W e (s, 6 k), and E (s,)."""
        goals = self.goals
        rows = self.kernels.rows(self.kernels.poses, q)
        e = goals.error(rows.reshape(len(q), len(goals.nodes), 3, 4), which)
        force = (e * goals.weights).reshape(len(q), 6 * len(goals.nodes))
        return e, force, 0.5 * (e.reshape(force.shape) * force).sum(axis=1)

    def sizes(self, e: Array) -> Array:
        """Angles and distances (s, k, 2) of errors [rad, m]."""
        return np.sqrt((e * e).reshape(*e.shape[:-1], 2, 3).sum(axis=-1))

    def is_reached(self, e: Array, cost: Array) -> NDArray[np.bool_]:
        """Whether all errors are within tolerance (s,)."""
        # Where all errors are within tolerance, E is at most this; told without looking at each.
        most = 0.51 * (self.goals.weights[:, ::3] * np.square(self.tolerance)).sum()
        if (cost > most).all():
            return np.zeros(len(e), dtype=bool)
        return np.all(self.sizes(e) <= self.tolerance, axis=(1, 2))


def solve(
    problem: Problem,
    q: Array,
    which: NDArray[np.int64],
    *,
    first_only: bool = False,
    slow: float = SLOW,
) -> Samples:
    """Each sample from where it starts to where it ends.

    Args:
        problem: What is asked, and of what.
        q: Where samples start (s, nq), within limits.
        which: Which target of the batch each is after (s,).
        first_only: Give up all others after the same target once one sample has reached it.
        slow: A smaller relative gain in E counts as none.
    """
    joints, kernels, couplings = problem.joints, problem.kernels, problem.couplings
    payloads = problem.goals.payloads()
    e, force, cost = problem.error(q, which)
    done = Samples(
        *(q.copy(), e, cost.copy(), problem.is_reached(e, cost), np.zeros(len(q), dtype=bool)),
        np.zeros(len(q), dtype=np.int64),
        np.full((len(q), problem.iterations + 1), np.nan),
    )
    done.history[:, 0] = np.sqrt(2.0 * cost)
    at = np.flatnonzero(~done.reached)  # rows of those still on their way
    q, which, e, force, cost = q[at], which[at], e[at], force[at], cost[at]
    damping, growth = np.full(len(at), FIRST_DAMPING), np.full(len(at), 2.0)
    idle = np.zeros(len(at))
    for count in range(1, problem.iterations + 1):
        if not len(at):
            break
        noise = damping[:, None] * joints.scale
        pull = couplings.reduced(q, kernels.rows(kernels.pull, q, force))
        held = joints.held(q, pull).astype(np.float64)
        step: Array = kernels.rows(kernels.step, q, force, *payloads, noise, held)
        if couplings.rows:
            step = couplings.obeyed(kernels, q, step, payloads, noise, held)
        broken = ~np.isfinite(step).all(axis=1)  # rounding beat the damping: more of it is needed
        step[broken] = 0.0
        part: Array = 1.0 / np.maximum(np.abs(step * joints.turning).max(axis=1), 1.0)
        step = part[:, None] * step  # no joint turns by more than a radian at once
        trial: Array = couplings.followed(joints.moved(q, step))
        e_new, force_new, cost_new = problem.error(trial, which)
        if couplings.rows:
            cost_new = np.where(couplings.outside(trial), np.inf, cost_new)

        better = cost_new < cost
        gain = np.where(better, cost - cost_new, 0.0)
        # pull* s − ½ s* J* W J s of a part s = t δ of the step, pull = (J* W J + N) δ.
        slope = (step * pull).sum(axis=1)
        foreseen = (1.0 - 0.5 * part) * slope + 0.5 * (step * noise * step).sum(axis=1)
        idle = np.where(gain > slow * cost, 0, idle + better)
        damping, growth = _adapted(damping, growth, better, gain, foreseen)
        if better.all():
            q, e, force, cost = trial, e_new, force_new, cost_new
        elif better.any():
            q = np.where(better[:, None], trial, q)
            e = np.where(better[:, None, None], e_new, e)
            force = np.where(better[:, None], force_new, force)
            cost = np.where(better, cost_new, cost)
        done.history[at, count] = np.sqrt(2.0 * cost)

        reached = problem.is_reached(e, cost)
        rest = (idle >= PATIENCE) | (damping > LARGEST_DAMPING) | ~(step.any(axis=1) | broken)
        gone = reached | rest
        if first_only and reached.any():
            gone |= np.isin(which, which[reached])
        if count == problem.iterations:
            gone[:] = True
        if gone.any():
            to, go = at[gone], ~gone
            done.q[to], done.error[to], done.cost[to] = q[gone], e[gone], cost[gone]
            done.reached[to], done.settled[to] = reached[gone], rest[gone]
            done.iterations[to] = count
            at, q, which, e, force, cost = at[go], q[go], which[go], e[go], force[go], cost[go]
            damping, growth, idle = damping[go], growth[go], idle[go]
    return done


def _adapted(
    damping: Array, growth: Array, better: NDArray[np.bool_], gain: Array, foreseen: Array
) -> tuple[Array, Array]:
    """Damping for the next step: less where the gain was what a linear model had foreseen.

    A step that failed is tried again with twice, then 8, 64, ... times the damping.
    """
    ratio = np.clip(gain / np.maximum(foreseen, 1e-300), 0.0, 1.0)
    factor = np.maximum(0.1, 1.0 - (2.0 * ratio - 1.0) ** 3)
    less = np.maximum(damping * factor, LEAST_DAMPING)
    return np.where(better, less, damping * growth), np.where(better, 2.0, 2.0 * growth)
