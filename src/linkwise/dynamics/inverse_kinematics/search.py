"""Inverse kinematics: the joints that take nodes to their goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from linkwise import arguments
from linkwise.arguments import generator, option
from linkwise.dynamics.inverse_kinematics import reach
from linkwise.dynamics.inverse_kinematics.center import center_of, with_center
from linkwise.dynamics.inverse_kinematics.descent import (
    LAST,
    Movable,
    Problem,
    Samples,
    Target,
    history,
    solve,
)
from linkwise.dynamics.inverse_kinematics.goal import GoalLike, goal_arrays
from linkwise.dynamics.inverse_kinematics.joints import (
    Couplings,
    Joints,
    couplings,
    joints,
    tightened,
)
from linkwise.dynamics.inverse_kinematics.solution import Later, Solution, verdicts
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

RADIAN = 0.25
"""An error in position of this part of the mechanism's length counts as much as one radian."""

AT_LEAST = 16
"""Least number of samples side by side: they take hardly longer than one."""


def inverse_kinematics(
    mech: Mechanism,
    goals: Mapping[str, GoalLike],
    q0: ArrayLike | None = None,
    *,
    hold: Iterable[str] = (),
    limits: bool = True,
    posture: ArrayLike | None = None,
    tolerance: float | tuple[float, float] = 1e-6,
    iterations: int = 100,
    restarts: int = 30,
    seed: int | np.random.Generator = 0,
    target: Target = "cpu",
    center_of_mass: ArrayLike | None = None,
    center_along: str = "xyz",
) -> Solution:
    """Joint positions that take nodes to their goals, or as near as possible.

    Expression of a step:
        δ = (J* W J + N)⁻¹ J* W e,   `mass.inv @ (J.T @ f)`
    where 𝓜 = H φ (B W B*) φ* H* is the mass matrix of a mechanism whose only inertia is the weights
    W of the errors e at its nodes, N = λ is damping in place of armature, and f = W e.

    Derived form, 2 passes, O(n) for any number of nodes:
        (I - H ψ K)* D⁻¹ H ψ B f

    Source: 000 section 5 and 004 reference [4] (Rodriguez and Scheid 1987), for one arm that is not
    redundant, without N.

    Any hinges and any tree; loops are left open, couplings are obeyed. The search begins at q0 and
    goes downhill; if it ends short of the goals, it begins again at random positions within the
    limits. The result is always within the limits.

    Args:
        goals: Goals by the names of nodes or bodies: a `Pose`, a position (3,), a homogeneous
            matrix (4, 4) or a `lw.dynamics.NodeGoal`, which also has orientations without
            positions, directions, weights and batches.
        q0: Where to begin (nq,), or (batch, nq); default: neutral, or mid-range where neutral is
            outside of the limits. The solution is usually near it.
        hold: Hinges (by their names or their bodies') that stay as in q0. One that follows others
            holds them too.
        limits: Whether the limits of the hinges apply.
        posture: Preferred joint positions (nq,): once the goals are reached, the remaining
            motions go there as far as the goals allow.
        tolerance: Largest error of a goal that is reached, for positions [m] and orientations
            [rad] alike, or one for each.
        iterations: Most steps of one search.
        restarts: Most further searches if the first one fails.
        target: "cpu", or "cuda" for a GPU, which makes thousands of searches at a time; it needs
            the extra `cuda`.
        center_of_mass: Goal of the centre of mass of the whole mechanism in the world (3,) or
            (batch, 3) [m]; it has the weight of a position. `goals` may be empty then.
        center_along: Letters of the axes along which it has a goal, such as "xy".

    Returns:
        A `Solution`: q, whether the goals were reached, the remaining errors, and the reason.

    Raises:
        UnknownNameError: A node or hinge that the mechanism does not have.
        ModelError: A goal that is empty or not finite, a node that no hinge moves, q0 off the
            manifold or outside of the limits.
        ShapeError: An array of the wrong shape.
    """
    check_mechanism(mech)
    center = None if center_of_mass is None else center_of(mech, center_along)
    nodes = _nodes(goals, alone=center is None)
    held = (hold,) if isinstance(hold, str) else tuple(hold)
    length = _length(mech, nodes, center is not None)
    given = goal_arrays(goals, length)
    if center is not None and center_of_mass is not None:
        given = with_center(given, center, center_of_mass, length)
    setting = _setting(mech, nodes, held, bool(limits), center is not None)
    movable = setting.joints
    begin, batch = _begin(setting, q0, given.batch)
    count = len(begin)
    if given.batch is None and count > 1:  # one goal for many starts
        given = replace(given, **{x: np.repeat(getattr(given, x), count, 0) for x in _ARRAYS})
    most = arguments.count(iterations, "iterations", least=1, most=MOST_ITERATIONS)
    rest = None if posture is None else movable.within(mech.check_q(posture)[None])[0]
    fixed = (movable, setting.couplings, setting.movable)
    option(target, ("cpu", "cuda"), "target")
    problem = Problem(given, *fixed, _tolerance(tolerance), most, rest, target)
    best = solve(problem, begin, np.arange(count))
    starts = np.ones(count, dtype=np.int64)
    most = arguments.count(restarts, "restarts")
    if not best.reached.all() or type(seed) is not int or seed < 0:
        rng = generator(seed, stream=1987)
        _shaken(problem, best, rng)
        _again(problem, begin, best, starts, most, rng)
        _settled(problem, best)
    return _solution(problem, best, starts, batch)


MOST_ITERATIONS = 1_000_000
"""The history of a search has an entry for each of its steps."""

_ARRAYS = ("p", "rot", "heading")

SHAKE = 0.03
"""Size of the disturbance of joints [rad, or of the mechanism's size]."""


def _shaken(problem: Problem, best: Samples, rng: np.random.Generator) -> None:
    """Continue searches that rest short of their goals from nearby, once.

    A stretched arm whose goal is straight behind its hand is not pulled at any joint: its error
    is stationary, though not least. After a small disturbance it bends.
    """
    rows = np.flatnonzero(~best.reached & best.settled)
    if not len(rows):
        return
    step = rng.standard_normal((len(rows), problem.joints.mech.nv))
    step = np.where(problem.joints.fixed, 0.0, SHAKE * step / problem.joints.per_turn)
    start = problem.couplings.followed(problem.joints.moved(best.q[rows], step))
    fit = ~problem.couplings.outside(start)
    _on(best, rows[fit], solve(problem, start[fit], rows[fit]))


def _settled(problem: Problem, best: Samples) -> None:
    """Continue searches that end short of their goals until they are as near as possible."""
    rows = np.flatnonzero(~best.reached & best.settled)
    if len(rows):
        _on(best, rows, solve(problem, best.q[rows], rows, slow=LAST))


def _on(best: Samples, rows: NDArray[np.int64], continued: Samples) -> None:
    """Accept the continued searches that are better, with their starts."""
    better = np.flatnonzero(continued.cost < best.cost[rows])
    best.carry_on(rows[better], continued, better)


def _again(
    problem: Problem,
    begin: Array,
    best: Samples,
    starts: NDArray[np.int64],
    restarts: int,
    rng: np.random.Generator,
) -> None:
    """Search from random positions for the goals that were not reached; `best` is updated."""
    each = 1
    while restarts:
        missing = np.flatnonzero(~best.reached)
        if not len(missing):
            return
        each = min(restarts, max(each, AT_LEAST // len(missing), 1))
        which = np.repeat(missing, each)
        drawn = problem.couplings.followed(problem.joints.random(begin[which], rng))
        keep = ~problem.couplings.outside(drawn)
        which, drawn = which[keep], drawn[keep]
        samples = solve(problem, drawn, which)
        starts[missing] += each
        restarts -= each
        each *= 2  # the remaining ones are hard
        # The least error of each goal's samples: those that reached it come first.
        order = np.lexsort((samples.cost, ~samples.reached, which))
        at, first = np.unique(which[order], return_index=True)
        rows = order[first]
        better = samples.reached[rows] | (samples.cost[rows] < best.cost[at])
        best.take(at[better], samples, rows[better])


@once_per_mechanism
def _length(mech: Mechanism, nodes: tuple[str, ...], center: bool) -> float:
    """The unit of positions [m]; raises for nodes that cannot move."""
    for node in nodes:
        if reach.from_ground(mech, node, limits=False) is None:
            raise ModelError(f"no hinge moves {node!r}: it is fixed to the ground.")
    ends = (*nodes, *(body.name for body in mech.bodies)) if center else nodes
    return RADIAN * reach.size(mech, ends)


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What does not depend on the goals."""

    joints: Joints
    couplings: Couplings
    movable: Movable
    start: Array


@once_per_mechanism
def _setting(
    mech: Mechanism, nodes: tuple[str, ...], hold: tuple[str, ...], limits: bool, center: bool
) -> _Setting:
    movable = joints(mech, hold, limits=limits, length=_length(mech, nodes, center))
    moved = {k for node in nodes for k in reach.path(mech, mech.node(node).body)}
    moved |= set(range(mech.n_bodies)) if center else set()
    coupled = couplings(mech, moved, limits=limits)
    if coupled.rows and limits:
        lower, upper = tightened(coupled, movable.lower, movable.upper)
        movable = replace(movable, lower=lower, upper=upper)
    movable = replace(movable, fixed=coupled.held_with(movable.fixed))
    touched = {j for k in moved for j in range(*mech.v_start[k : k + 2].tolist())}
    idle = np.ones(mech.nv, dtype=bool)
    idle[[*touched, *coupled.velocity.values()]] = False
    for node in nodes:
        way = reach.path(mech, mech.node(node).body)
        if all(movable.fixed[mech.v_start[k] : mech.v_start[k + 1]].all() for k in way):
            raise ModelError(f"hold leaves no hinge that moves {node!r}: let one of them go.")
    if center and movable.fixed.all():
        raise ModelError("hold leaves no hinge that moves the centre of mass: let one of them go.")
    movable = replace(movable, fixed=movable.fixed | idle)
    return _Setting(movable, coupled, Movable.of(movable, coupled), movable.start())


def _nodes(goals: Mapping[str, GoalLike], *, alone: bool) -> tuple[str, ...]:
    wrong = not isinstance(goals, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
    if wrong or (alone and not goals):
        raise ModelError(
            "goals must be a dictionary of goals by node name, as in {'hand': pose}; found "
            f"{goals!r}."
        )
    return tuple(goals)


def _begin(setting: _Setting, q0: ArrayLike | None, batch: int | None) -> tuple[Array, bool]:
    """The start of each search (batch, nq), and whether there is a batch."""
    movable, mech = setting.joints, setting.joints.mech
    q = setting.start if q0 is None else mech.check_q(q0)
    if q.ndim > 2 or (q.ndim == 2 and batch not in (None, len(q))):
        many = "(batch, nq)" if batch is None else f"({batch}, {mech.nq}) like the goals"
        raise ShapeError(f"q0 has shape {q.shape}; it must be ({mech.nq},) or {many}.")
    rows = np.array(np.atleast_2d(q))
    if mech.couplings:
        rows = mech.couple(rows)
    if q0 is not None:
        movable.check(rows)
    rows = movable.within(rows)
    if (beyond := setting.couplings.outside(rows)).any():
        i = int(np.flatnonzero(beyond)[0])
        names = movable.names(setting.couplings.beyond(rows[i]))
        raise ModelError(
            f"the search cannot begin where couplings take {', '.join(map(repr, names))} beyond "
            "limits. Give a q0 at which all coordinates that follow others are within theirs."
        )
    if batch is not None and len(rows) != batch:
        rows = np.repeat(rows, batch, axis=0)
    return rows, batch is not None or q.ndim == 2


def _tolerance(value: float | tuple[float, float]) -> tuple[float, float]:
    """Largest angle and largest distance."""
    if type(value) is float and value > 0.0:
        return value, value
    pair = floats(value, "tolerance")
    if pair.shape not in ((), (2,)) or not (pair > 0.0).all():
        raise ModelError(
            f"tolerance is {value!r}; it must be a positive number, or one for positions [m] and "
            "one for orientations [rad]."
        )
    return (float(pair), float(pair)) if pair.ndim == 0 else (float(pair[1]), float(pair[0]))


def _solution(problem: Problem, best: Samples, starts: NDArray[np.int64], batch: bool) -> Solution:
    goals, movable = problem.goals, problem.joints
    sizes = problem.sizes(best.error)
    limits, reasons = verdicts(problem, best, starts)
    turned = goals.turned | goals.pointed
    at = slice(None) if batch else 0
    return Solution(
        best.q[at],
        best.reached[at],
        {n: sizes[at, i, 1] for i, n in enumerate(goals.names) if goals.placed[i]},
        {n: sizes[at, i, 0] for i, n in enumerate(goals.names) if turned[i]},
        best.iterations[at],
        starts[at],
        Later(len(best.q), partial, (history, problem, best)),
        movable.at_limit(best.q)[at],
        limits,
        reasons,
    )
