"""Steps until the goals are reached or nothing improves: the Levenberg-Marquardt method.

All steps of a search are one kernel. A step that does not reduce the error

    E = ½ Σ e* W e

is rejected; instead λ grows, and with it N = λ · scale, so that steps become shorter and turn to
the steepest descent. Since J* W e is the exact slope of E (the logarithm of a rotation keeps its
axis), some λ reduces E unless it is least already: the error never grows, and a singular pose is
no worse than any other. Joints at a limit that are pulled against it are held for the step, and
those beyond a limit are put back: the projected Newton method for bounds.

A posture uses the motions that are left once the goals are reached. A step towards it is N p with
p the remaining way: (J* W J + N)⁻¹ N p is the part of p that moves no node.

A step is a damped least-squares step, computed as forward dynamics. Errors e at the nodes are to be
undone by the joint steps δ that make

    (e − J δ)* W (e − J δ) + δ* N δ,      δ = (J* W J + N)⁻¹ J* W e,      J = B* φ* H*

least: W weighs the errors, N holds the joints back. J* W J + N = H φ (B W B*) φ* H* + N is a mass
matrix: that of a mechanism whose only inertia is W at its nodes, with armature N. So the step is
the acceleration 𝓜⁻¹ J* f of that mechanism, pulled at its nodes with the forces f = W e, and has
the recursion of forward dynamics: a Kalman filter from the tips to the base, in which W is the
covariance of the process noise and N that of the measurements, and a Bryson-Frazier smoother back.
A joint at a limit is held: D⁻¹ is zero in its direction.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import X_B, J, f, mass, tau
from linkwise.codegen.arrays import cupy
from linkwise.codegen.formula import Formula
from linkwise.dynamics.configuration import coordinates, missing, moved
from linkwise.dynamics.inverse_kinematics.goal import GoalArrays
from linkwise.dynamics.inverse_kinematics.joints import Couplings, Joints
from linkwise.dynamics.kernels import written
from linkwise.model.body import Coupling
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array
from linkwise.spatial.choice import absolute, angle, clip, gate, maximum, minimum, norm, where
from linkwise.spatial.inertia import SpatialInertia
from linkwise.sweeps.factored import factored

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Target: TypeAlias = Literal["cpu", "cuda"]

FIRST_DAMPING = 1e-2
"""λ of the first step; J* W J is about one."""

LEAST_DAMPING, LARGEST_DAMPING = 1e-10, 1e8
"""Below the first, rounding in P matters; above the second, steps are below rounding."""

SLOW, LAST = 1e-5, 1e-12
"""A smaller relative gain in E counts as none: while searching, and at the end."""

PATIENCE = 5
"""Consecutive steps without gain after which a sample gives up."""

FAR = 1e30
"""A limit that never applies."""

HOLDING = 1e-8
"""λ of steps towards a posture: the part that still moves the nodes is smaller by it."""

NEARER = 1e-6
"""A step that brings the posture nearer by less than this part is the last."""

LONGEST, SHORTEST = 0.25, 1e-4
"""Longest step towards a posture [rad], and the smallest part of the way that is tried."""

STEP = mass.inv @ (J.T @ f + tau)
"""The step, on the mechanism whose only inertia is the weights of its goals."""

PULL = J.T @ f
"""The pull of the goals at each joint: the slope of the error, with the sign changed."""

NAMES = ("q", "error", "cost", "iterations", "reached", "settled", "blocked")


@once_per_mechanism
def weightless(mech: Mechanism) -> Mechanism:
    """The same tree without any inertia."""
    none = SpatialInertia.zero()
    bodies = tuple(dataclasses.replace(b, inertia=none, geometry=()) for b in mech.bodies)
    nodes = tuple(
        dataclasses.replace(n, inertia=None, kind="frame", geometry=()) for n in mech.nodes
    )
    return replaced(mech, bodies=bodies, nodes=nodes, loops=(), couplings=())


def weight_numbers(position: Any, orientation: Any) -> Any:
    """A weight as the ten numbers of an inertia about the node: W = [[Θ, 0], [0, m 1]].

    Args:
        position: m, the weight of errors in position.
        orientation: Θ (3, 3), the weight of errors in orientation, in the node's axes.
    """
    t = orientation
    moments = [t[0, 0], t[1, 1], t[2, 2], t[0, 1], t[0, 2], t[1, 2]]
    return np.array([position, 0.0, 0.0, 0.0, *moments])


@dataclass(slots=True, eq=False)
class Samples:
    """Results of samples; one row each.

    Attributes:
        q: Coordinates (s, nq).
        error: Errors e of the nodes (s, k, 6).
        cost: E (s,).
        reached: Whether all errors are within tolerance (s,).
        settled: Whether it was at rest, or ran out of iterations (s,).
        iterations: Steps that were tried (s,).
        blocked: Velocities (s, nv) at a limit that the goals pull against it.
        start: Where the last search of each began (s, nq).
        slow: The relative gain that counted in it (s,).
        since: Number of entries of `earlier` that another sample has replaced (s,).
        earlier: Searches that were continued: their rows, starts and gains.
    """

    q: Array
    error: Array
    cost: Array
    reached: NDArray[np.bool_]
    settled: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    blocked: NDArray[np.bool_]
    start: Array
    slow: Array
    since: NDArray[np.int64]
    earlier: list[tuple[NDArray[np.int64], Array, Array]]

    def take(self, at: NDArray[np.int64], other: Samples, rows: NDArray[np.int64]) -> None:
        """Replace some of these by rows of others."""
        for name in RESULTS:
            getattr(self, name)[at] = getattr(other, name)[rows]
        self.since[at] = len(self.earlier)

    def carry_on(self, at: NDArray[np.int64], other: Samples, rows: NDArray[np.int64]) -> None:
        """Replace some of these by rows of others that continue them."""
        since, steps = self.since[at], self.iterations[at]
        self.earlier.append((at, self.start[at], self.slow[at]))
        self.take(at, other, rows)
        self.since[at] = since
        self.iterations[at] += steps

    def searches(self, i: int) -> list[tuple[Array, float]]:
        """The searches that led to sample i: their starts, and the gain that counted."""
        path = list[tuple[Array, float]]()
        for rows, start, slow in self.earlier[self.since[i] :]:
            path.extend((start[k], float(slow[k])) for k in np.flatnonzero(rows == i))
        return [*path, (self.start[i], float(self.slow[i]))]


RESULTS = (
    "q", "error", "cost", "reached", "settled", "iterations", "blocked", "start", "slow",
)  # fmt: skip
"""The arrays of samples that have a row for each, and describe it."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The constants of a search.

    Attributes:
        goals: The goals.
        joints: The joints.
        couplings: Coordinates that follow others.
        movable: Limits of these and more, as the kernel takes them.
        tolerance: Largest errors that count as reached [rad, m].
        iterations: Most steps of a sample.
        posture: Preferred joint positions (nq,), or None.
        target: "cpu" or "cuda": where the searches run.
    """

    goals: GoalArrays
    joints: Joints
    couplings: Couplings
    movable: Movable
    tolerance: tuple[float, float]
    iterations: int
    posture: Array | None = None
    target: Target = "cpu"

    def sizes(self, e: Array) -> Array:
        """Angles and distances (s, k, 2) of errors [rad, m]."""
        return np.sqrt((e * e).reshape(*e.shape[:-1], 2, 3).sum(axis=-1))

    @property
    def kernel(self) -> Any:
        """The search, compiled."""
        goals, movable = self.goals, self.movable
        which = (goals.placed, goals.turned, goals.pointed)
        senses = tuple(zip(*(x.tolist() for x in which), strict=True))
        formula = _formula(senses, *movable.structure, self.posture is not None, goals.center)
        mech = weightless(self.joints.mech)
        if self.target == "cuda":
            return _on_gpu(mech, formula, goals.nodes)
        return written(mech, formula, goals.nodes)

    def search(self, q: Array, inputs: list[Array]) -> dict[str, Array]:
        """The results of the kernel for starts (s, nq), by name."""
        if self.target == "cuda":
            cp = cupy()
            made = self.kernel(cp.asarray(q), *map(cp.asarray, inputs))
            return {name: x.get() for name, x in made.items()}
        if len(q) != 1:
            return self.kernel(q, *inputs)
        # the call for one state is the fast one
        made = self.kernel(q[0], *(x[0] if x.ndim == 2 else x for x in inputs))
        return {name: x[None] for name, x in made.items()}

    def inputs(self, which: NDArray[np.int64], slow: float, iterations: Array | int) -> list[Array]:
        """The inputs of the kernel besides q, for samples with these goals."""
        goals = self.goals
        count, k = len(which), len(goals.names)
        goal = np.empty((count, k, 18))
        goal[..., :3], goal[..., 3:12] = goals.p[which], goals.rot[which].reshape(count, k, 9)
        goal[..., 12:15] = goals.heading if len(goals.heading) == 1 else goals.heading[which]
        goal[..., 15:], goal = goals.axis, goal.reshape(count, 18 * k)
        options = np.empty((count, 4))
        options[:, 0], options[:, 1] = self.tolerance
        options[:, 2], options[:, 3] = slow, iterations
        posture = [] if self.posture is None else [self.posture]
        return [goal, goals.weights.ravel(), self.movable.numbers, options, *posture]


@once_per_mechanism
def _on_gpu(mech: Mechanism, formula: Formula, nodes: tuple[str, ...]) -> Any:
    return compile(formula, mech, nodes=nodes, target="cuda")


@dataclass(frozen=True, slots=True, eq=False)
class Movable:
    """Joints and couplings as the kernel takes them.

    Attributes:
        numbers: Their limits and more.
        structure: What its formula depends on: places of plain coordinates, couplings, cones.
    """

    numbers: Array
    structure: tuple[Any, ...]

    @staticmethod
    def of(joints: Joints, rules: Couplings) -> Movable:
        """What moves."""
        bounds = np.concatenate([joints.lower, joints.upper, rules.lower, rules.upper])
        rest = (joints.scale, joints.turning, joints.fixed.astype(np.float64))
        numbers = np.concatenate([np.clip(bounds, -FAR, FAR), *rest])
        cones = tuple((part.start, largest) for part, largest, _ in joints.cones)
        plain = tuple(zip(joints.plain_q.tolist(), joints.plain_v.tolist(), strict=True))
        return Movable(numbers, (plain, tuple((c, _places(rules, c)) for c in rules.rows), cones))


def _places(rules: Couplings, rule: Coupling) -> tuple[tuple[int, int], ...]:
    """Places in q and in v of the one that follows and of those it follows."""
    names = (rule.dependent, *(name for name, _ in rule.terms))
    return tuple((rules.mech.coordinate(name), rules.velocity[name]) for name in names)


def solve(
    problem: Problem,
    q: Array,
    which: NDArray[np.int64],
    *,
    slow: float = SLOW,
    iterations: Array | None = None,
) -> Samples:
    """Each sample from its start to its end.

    Args:
        problem: The problem.
        q: Starts of the samples (s, nq), within limits.
        which: The goal in the batch of each sample (s,).
        slow: A smaller relative gain in E counts as none.
        iterations: Most steps of each (s,); default: those of the problem.
    """
    most = problem.iterations if iterations is None else iterations
    inputs, shape = problem.inputs(which, slow, most), (len(q), len(problem.goals.names), 6)
    result = problem.search(q, inputs)
    return Samples(
        result["q"],
        result["error"].reshape(shape),
        result["cost"],
        np.asarray(result["reached"] > 0.0, dtype=np.bool_),
        np.asarray(result["settled"] > 0.0, dtype=np.bool_),
        result["iterations"].astype(np.int64),
        np.asarray(result["blocked"] > 0.0, dtype=np.bool_),
        np.array(q),
        np.full(len(q), slow),
        np.zeros(len(q), dtype=np.int64),
        [],
    )


def history(problem: Problem, best: Samples, i: int) -> Array:
    """√(2 E) before the first step of sample i and after each."""
    parts = list[Array]()
    for start, slow in best.searches(i):
        ends = int(solve(problem, start[None], np.array([i]), slow=slow).iterations[0])
        rows, counts = np.repeat(start[None], ends + 1, axis=0), np.arange(ends + 1.0)
        which = np.full(len(rows), i)
        cost = solve(problem, rows, which, slow=slow, iterations=counts).cost
        parts.append(np.sqrt(2.0 * cost)[1 if parts else 0 :])
    return np.minimum.accumulate(np.concatenate(parts))


# ------------------------------------------------------------------------------- the formula


@cache
def _formula(*options: Any) -> Formula:
    return Formula(descent, options, NAMES)


@dataclass(frozen=True, slots=True)
class _Given:
    """The constants of a search, split from one vector."""

    goal: Any
    weights: Any
    lower: Any
    upper: Any
    least: Any
    most: Any
    scale: Any
    turning: Any
    fixed: Any
    tolerance: Any
    slow: Any
    iterations: Any


def _parted(at: Writing, k: int, flat: Any) -> _Given:
    nq, nv = at.mech.nq, at.mech.nv
    sizes = [18 * k, 6 * k, nq, nq, nq, nq, nv, nv, nv, 2, 1, 1]
    parts = np.split(flat[: sum(sizes)], np.cumsum(sizes)[:-1])
    goal, weights, *rest = parts
    *middle, slow, iterations = rest
    shaped: Any = (goal.reshape(k, 18), weights.reshape(k, 6), *middle)
    return _Given(*shaped, slow=slow[0], iterations=iterations[0])


def descent(
    at: Writing, senses: Any, plain: Any, rules: Any, cones: Any, posed: bool, center: Any
) -> Any:
    """The search, as a formula: from q to its end.

    Args:
        at: The formula.
        senses: For each node whether it has a position, an orientation, a direction.
        plain: Places in q and v of coordinates whose rate is a velocity.
        rules: Couplings, with the places of their coordinates.
        cones: Where quaternions with a largest turn begin in q, and that turn [rad].
        posed: Whether there is a posture.
        center: The centre of mass, if it has the last goal.
    """
    mech, k = at.mech, len(senses)
    q, nq, nv = coordinates(at), mech.nq, mech.nv
    given = np.concatenate(
        [
            *(at.read("goal", 18 * k), at.read("weights", 6 * k)),
            *(at.read("movable", 4 * nq + 3 * nv), at.read("options", 4)),
            *((at.read("posture", nq),) if posed else ()),
        ]
    )
    make = Search(senses, plain, rules, cones, center)
    first = _parted(at, k, given)
    error, cost = make.error(at, first, q)
    reached = make.reached(first, error)
    x = np.concatenate([q, error.ravel(), [cost, reached, 0.0, FIRST_DAMPING, 2.0, 0.0, 0.0]])
    x, _ = at.loop(make.step, x, given, most=MOST)
    q, error, (cost, reached, count, *_, settled) = make.split(at, x)
    if posed:
        begin = np.concatenate([q, error.ravel(), [1.0, 0.0, FAR]])
        better, better_error, _ = make.split(at, at.loop(make.settle, begin, given, most=MOST)[0])
        q, error = where(reached, better, q), where(reached, better_error, error)
        cost = make.cost(first, error)
    pull = make.reduced(q, make.pulled(at, q, (first.weights * error).ravel()))
    blocked = make.held(first, q, pull) * (1.0 - first.fixed)
    return q, error, cost, count, reached, settled, blocked


MOST = 1_000_000
"""Rounds of the loop; the number of steps is an input."""


class Search:
    """One step of a search in array code, for one structure of goals and rules."""

    def __init__(self, senses: Any, plain: Any, rules: Any, cones: Any, center: Any = None) -> None:
        self.senses, self.plain, self.rules, self.cones = senses, plain, rules, cones
        self.center = center

    def split(self, at: Writing, x: Any) -> tuple[Any, Any, Any]:
        """q, errors and the other variables."""
        nq, k = at.mech.nq, len(self.senses)
        return x[:nq], x[nq : nq + 6 * k].reshape(k, 6), x[nq + 6 * k :]

    def step(self, at: Writing, x: Any, given: Any) -> tuple[Any, Any]:
        """One step; `again` is positive while the search goes on."""
        g, (q, error, rest) = _parted(at, len(self.senses), given), self.split(at, x)
        cost, reached, count, damping, growth, idle, settled = rest
        going = gate(g.iterations - count - 0.5, 1.0 - reached)
        force = (g.weights * error).ravel()
        noise = damping * g.scale
        pull = self.reduced(q, self.pulled(at, q, force))
        held = self.held(g, q, pull)
        step = self.answer(at, g, q, force, np.zeros(at.mech.nv), noise, held)
        if self.rules:
            step = self.obeyed(at, g, q, step, noise, held)
        fine = gate(FAR - sum(s * s for s in step), 1.0)  # else rounding beat the damping
        step = gate(fine, step)
        part = self.shortened(g, step, 1.0)
        step = part * step
        trial = self.within(g, moved(at.mech, q, step))
        error_new, cost_new = self.error(at, g, trial)
        cost_new = where(self.outside(g, trial), FAR, cost_new)
        better = gate(cost - cost_new, going)
        gain = gate(better, cost - cost_new)
        # pull* s − ½ s* J* W J s of a part s = t δ of the step, pull = (J* W J + N) δ.
        foreseen = (1.0 - 0.5 * part) * sum(step * pull) + 0.5 * sum(step * noise * step)
        ratio = clip(gain / maximum(foreseen, 1e-300), 0.0, 1.0)
        odd = 2.0 * ratio - 1.0
        less = maximum(damping * maximum(0.1, 1.0 - odd * odd * odd), LEAST_DAMPING)
        q, error = where(better, trial, q), where(better, error_new, error)
        cost = where(better, cost_new, cost)
        idle = where(gain - g.slow * cost, 0.0, idle + better)
        damping = where(better, less, damping * growth)
        growth = where(better, 2.0, 2.0 * growth)
        reached = where(going, self.reached(g, error), reached)
        still = 1.0 - gate(sum(absolute(s) for s in step), 1.0)
        rest = maximum(gate(idle - PATIENCE + 0.5, 1.0), gate(damping - LARGEST_DAMPING, 1.0))
        settled = where(going, maximum(rest, gate(fine, still)), settled)
        count = count + going
        more = gate(g.iterations - count - 0.5, going * (1.0 - reached) * (1.0 - settled))
        numbers = [cost, reached, count, damping, growth, idle, settled]
        return np.concatenate([q, error.ravel(), numbers]), more

    def settle(self, at: Writing, x: Any, given: Any) -> tuple[Any, Any]:
        """One step towards the posture that moves no node, and one that brings them back.

        It is accepted where it comes nearer; else half of it is tried.
        """
        g = _parted(at, len(self.senses), given)
        posture = given[len(given) - at.mech.nq :]
        q, error, (part, count, gain) = self.split(at, x)
        way = missing(at.mech, q, posture) * (1.0 - g.fixed)
        aside = self._damped(at, g, q, None, HOLDING * g.scale * (part * way))
        trial = self.within(g, moved(at.mech, q, self.shortened(g, aside, LONGEST) * aside))
        for _ in range(2):
            off, _ = self.error(at, g, trial)
            back = self._damped(at, g, trial, (g.weights * off).ravel(), None)
            trial = self.within(g, moved(at.mech, trial, self.shortened(g, back, LONGEST) * back))
        error_new, _ = self.error(at, g, trial)
        before, left = self.apart(at, g, q, posture), self.apart(at, g, trial, posture)
        fits = where(self.outside(g, trial), 0.0, self.reached(g, error_new))
        nearer = gate(before - left, fits)
        gain = where(nearer, before - left, gain)
        q, error = where(nearer, trial, q), where(nearer, error_new, error)
        part, count = where(nearer, minimum(2.0 * part, 1.0), 0.5 * part), count + 1.0
        more = gate(gain - NEARER * before, gate(part - SHORTEST, g.iterations - count))
        return np.concatenate([q, error.ravel(), [part, count, gain]]), more

    def _damped(self, at: Writing, g: _Given, q: Any, force: Any, pull: Any) -> Any:
        """A step with hardly any damping, for errors or for a pull at the joints."""
        noise = HOLDING * g.scale
        force = np.zeros(6 * len(self.senses)) if force is None else force
        torque = np.zeros(at.mech.nv) if pull is None else pull
        felt = self.pulled(at, q, force) if pull is None else pull
        held = self.held(g, q, self.reduced(q, felt))
        step = self.answer(at, g, q, force, torque, noise, held)
        return self.obeyed(at, g, q, step, noise, held) if self.rules else step

    def apart(self, at: Writing, g: _Given, q: Any, posture: Any) -> Any:
        """The squared distance of the posture."""
        way = missing(at.mech, q, posture) * (1.0 - g.fixed)
        return sum(g.scale * way * way)

    def shortened(self, g: _Given, step: Any, most: float) -> Any:
        """The part of a step in which no joint turns by more than `most` [rad]."""
        largest: Any = most
        for s in step * g.turning:
            largest = maximum(largest, absolute(s))
        return most / largest

    # --------------------------------------------------------------------------- its parts

    def error(self, at: Writing, g: _Given, q: Any) -> tuple[Any, Any]:
        """E, and e (k, 6), (angular, linear) in node axes: the twist that would undo the errors."""
        rows, k = list[Any](), len(at.nodes)
        poses = at.value(X_B, q=q).reshape(k, 3, 4) if k else ()
        each = zip(self.senses[:k], poses, g.goal[:k], strict=True)
        for (placed, turned, pointed), X, goal in each:
            back, none = X[:, :3].T, np.full(3, 0.0, dtype=object)
            turn = none
            if turned:
                turn = rotation.log(back @ goal[3:12].reshape(3, 3))
            elif pointed:
                turn = _turn_to(goal[15:18], back @ goal[12:15])
            rows.append(np.concatenate([turn, back @ (goal[:3] - X[:, 3]) if placed else none]))
        if self.center is not None:
            rows.append(self.center.error(at, q, g.goal[k]))
        errors = np.array(rows)
        return errors, self.cost(g, errors)

    def pulled(self, at: Writing, q: Any, force: Any) -> Any:
        """The pull of forces at the goals (6 k,) at each joint."""
        k = len(at.nodes)
        pull = at.value(PULL, q=q, f=force[: 6 * k]) if k else np.zeros(at.mech.nv)
        return pull if self.center is None else pull + self.center.pull(at, q, force[6 * k :])

    def cost(self, g: _Given, error: Any) -> Any:
        """E."""
        return 0.5 * (g.weights * error * error).sum()

    def reached(self, g: _Given, error: Any) -> Any:
        """1 where all errors are within tolerance, else 0."""
        reached: Any = 1.0
        for e in error:
            for part, most in ((e[:3], g.tolerance[0]), (e[3:], g.tolerance[1])):
                reached = gate(most - norm(part), reached) if any(part) else reached
        return reached

    def answer(
        self, at: Writing, g: _Given, q: Any, force: Any, pull: Any, noise: Any, held: Any
    ) -> Any:
        """(J* W J + N)⁻¹ (J* f + τ) with some joints held."""
        k, none = len(at.nodes), np.zeros(6 * len(at.nodes))
        if self.center is None:
            return self._of_nodes(at, g, q, force, pull, noise, held)
        pull = pull + self.center.pull(at, q, force[6 * k :])
        x = self._of_nodes(at, g, q, force[: 6 * k], pull, noise, held)

        def inverse(row: Any) -> Any:
            return self._of_nodes(at, g, q, none, row, noise, held)

        return self.center.answer(at, q, g.weights[k, 3], x, inverse)

    def _of_nodes(
        self, at: Writing, g: _Given, q: Any, force: Any, pull: Any, noise: Any, held: Any
    ) -> Any:
        """The same, of the goals of nodes alone."""
        if not at.nodes:
            return pull * (1.0 - held) / noise
        inputs = {"q": q, "f": force, "tau": pull, "armature": noise, "locked": held}
        for i, node in enumerate(at.nodes):
            inputs[f"payload:{node}"] = self._weight(g, i)
        names = [*(f"payload:{node}" for node in at.nodes), "armature", "locked"]
        return at.value(STEP, parameters=names, **inputs)

    def _weight(self, g: _Given, i: int) -> Any:
        turn, axis = g.weights[i, 0], g.goal[i, 15:18]
        theta = turn * np.eye(3)
        if self.senses[i][2]:  # the turn about the axis is free
            theta = theta - turn * np.outer(axis, axis)
        return weight_numbers(g.weights[i, 3], theta)

    def held(self, g: _Given, q: Any, pull: Any) -> Any:
        """1 for velocities (nv,) that cannot follow the pull: fixed ones, and those at a limit."""
        held = g.fixed.copy()
        for i, j in self.plain:
            below = 1.0 - gate(q[i] - g.lower[i], 1.0)
            above = 1.0 - gate(g.upper[i] - q[i], 1.0)
            against = gate(-pull[j], below) + gate(pull[j], above)
            held[j] = maximum(held[j], against)
        return held

    def within(self, g: _Given, q: Any) -> Any:
        """The nearest coordinates within limits, with followers set."""
        q = clip(q, g.lower, g.upper)
        for start, largest in self.cones:
            part = slice(start, start + 4)
            turn = quaternion.log(q[None, part])[0]
            size = norm(turn)
            shrunk = quaternion.exp((turn * (largest / maximum(size, largest)))[None])[0]
            q[part] = where(size - largest, shrunk, q[part])
        for rule, ((d, _), *others) in self.rules:
            known = {n: q[i] for (n, _), (i, _) in zip(rule.terms, others, strict=True)}
            q[d] = rule.value(known)
            near = clip(q[d], g.least[d], g.most[d])
            q[d] = where(1e-9 - absolute(near - q[d]), near, q[d])
        return q

    def outside(self, g: _Given, q: Any) -> Any:
        """Positive where some follower is beyond its limits."""
        outside: Any = 0.0
        for _, ((d, _), *_) in self.rules:
            beyond = gate(g.least[d] - q[d], 1.0) + gate(q[d] - g.most[d], 1.0)
            outside = maximum(outside, beyond)
        return outside

    def reduced(self, q: Any, pull: Any) -> Any:
        """Pulls (nv,) with those at followers passed on to the coordinates they follow."""
        pull = pull.copy()
        for rule, ((_, d), *others) in reversed(self.rules):
            for slope, (_, j) in zip(self._slopes(rule, q, others), others, strict=True):
                pull[j] = pull[j] + slope * pull[d]
            pull[d] = 0.0
        return pull

    def _slopes(self, rule: Coupling, q: Any, others: Any) -> list[Any]:
        known = {n: q[i] for (n, _), (i, _) in zip(rule.terms, others, strict=True)}
        return list(rule.slopes(known).values())

    def obeyed(self, at: Writing, g: _Given, q: Any, step: Any, noise: Any, held: Any) -> Any:
        """The best step (nv,) among those that obey: δ − A⁻¹ G* (G A⁻¹ G*)⁻¹ G δ."""
        G = np.full((len(self.rules), at.mech.nv), 0.0, dtype=object)
        for row, (rule, ((_, d), *others)) in zip(G, self.rules, strict=True):
            row[d] = 1.0
            for slope, (_, j) in zip(self._slopes(rule, q, others), others, strict=True):
                row[j] = row[j] - slope
        none = np.zeros(6 * len(self.senses))
        answers = [self.answer(at, g, q, none, row, noise, held) for row in G]
        yielding = np.array(answers).T  # A⁻¹ G*
        square = G @ yielding
        size = sum(np.diagonal(square))
        for i in range(len(square)):  # a rule whose joints are all held has no effect
            square[i, i] = square[i, i] + 1e-12 * size + 1e-300
        return step - yielding @ (factored(square) @ (G @ step)[:, None])[:, 0]


def _turn_to(a: Any, b: Any) -> Any:
    """The shortest turn (3,) that takes the unit vector a to the direction of b."""
    normal = np.cross(a, b)
    sine = norm(normal)
    turn = angle(sine, sum(a * b))
    sideways = where(0.6 - absolute(a[0]), 1.0, 0.0)
    across = np.cross(a, np.array([sideways, 1.0 - sideways, 0.0], dtype=object))
    across = across / norm(across)
    small = 1e-12 - sine
    return turn * where(small, across, normal / where(small, 1.0, sine))
