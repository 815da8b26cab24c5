"""The solution of inverse kinematics, and the reason why the search ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import row
from linkwise.brief import SHORT, counted
from linkwise.dynamics.inverse_kinematics import reach
from linkwise.dynamics.inverse_kinematics.descent import Movable, Problem, Samples, solve
from linkwise.dynamics.inverse_kinematics.joints import joints
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Later(Sequence[Any]):
    """function(*arguments, i) for each i below a length, made when it is read.

    Of a batch of a hundred thousand few are looked at. Slices are tuples, and so is what it equals.
    """

    length: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return tuple(self[k] for k in range(self.length)[i])
        return self.function(*self.arguments, row(i, self.length, "this list"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Later):
            return NotImplemented
        return self[:] == tuple(cast("tuple[Any, ...] | Later", other))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return repr(self[:]) if self.length <= SHORT else f"<{self.length}, made when read>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Solution:
    """Joint positions that take nodes to their goals, or as near as possible.

    For one set of goals the shapes are as said; for a batch all arrays have (batch,) in front,
    and `solution[i]` is one of them.

    Attributes:
        q: Joint positions (nq,), within limits [m or rad].
        reached: Whether all goals are met within the tolerance ().
        position_error: Distance of each node from its goal position () [m], by name.
        orientation_error: Angle between each node and its goal orientation or direction () [rad],
            by name.
        iterations: Steps of the search that found it ().
        starts: Number of searches ().
        searches: Functions that recompute the history of each search; one for one.
        at_limit: Coordinates at a limit (nq,).
        blocked: For each set of goals that was not reached, the hinges that are pulled against
            a limit; a tuple of one for one.
        reasons: For each set of goals, why the search ended, in words; one for one.
    """

    q: Array
    reached: NDArray[np.bool_]
    position_error: dict[str, Array]
    orientation_error: dict[str, Array]
    iterations: NDArray[np.int64]
    starts: NDArray[np.int64]
    searches: Sequence[Callable[[], Array]]
    at_limit: NDArray[np.bool_]
    blocked: tuple[tuple[str, ...], ...]
    reasons: Sequence[str]

    @property
    def history(self) -> Array:
        """Weighted error √(e* W e) before the first step and after each (iterations + 1,).

        It never grows. In a batch, padded with NaN.
        """
        histories = [search() for search in self.searches]
        if self.q.ndim == 1:
            return histories[0]
        out = np.full((len(histories), max(map(len, histories), default=0)), np.nan)
        for errors, into in zip(histories, out, strict=True):
            into[: len(errors)] = errors
        return out

    @property
    def reason(self) -> str:
        """Why the search ended, in words; for a batch, of the first that was not reached."""
        if self.q.ndim == 1:
            return self.reasons[0]
        head = f"{int(self.reached.sum())} of {len(self)} reached"
        missing = np.flatnonzero(~self.reached)
        return f"{head}; {missing[0]}: {self.reasons[missing[0]]}" if len(missing) else head

    @property
    def limits(self) -> tuple[str, ...]:
        """Hinges that are pulled against a limit; for a batch, those of any."""
        return tuple(dict.fromkeys(name for names in self.blocked for name in names))

    def __len__(self) -> int:
        if self.q.ndim == 1:
            raise TypeError("this solution is a single one, not a batch")
        return len(self.q)

    def __getitem__(self, i: int) -> Solution:
        """One state of a batch."""
        i = row(i, None if self.q.ndim == 1 else len(self), "this solution")
        return Solution(
            self.q[i],
            self.reached[i],
            {name: error[i] for name, error in self.position_error.items()},
            {name: error[i] for name, error in self.orientation_error.items()},
            self.iterations[i],
            self.starts[i],
            (self.searches[i],),
            self.at_limit[i],
            (self.blocked[i],),
            (self.reasons[i],),
        )

    def __iter__(self) -> Iterator[Solution]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<Solution: {self.reason}>"


def in_words(errors: list[tuple[str, float | None, float | None]]) -> str:
    """Errors of nodes: "'hand' is 0.31 m and 0.2 rad away"."""
    parts = list[str]()
    for node, distance, angle in errors:
        sizes = [] if distance is None else [f"{distance:.3g} m"]
        sizes += [] if angle is None else [f"{angle:.3g} rad"]
        parts.append(f"{node!r} is {' and '.join(sizes)} away")
    return ", ".join(parts)


def verdicts(
    problem: Problem, best: Samples, starts: NDArray[np.int64]
) -> tuple[tuple[tuple[str, ...], ...], Sequence[str]]:
    """For each goal the hinges that limits hold back, and the reason."""
    count = len(best.q)
    if best.reached.all():
        return ((),) * count, Later(count, _success, (best, starts))
    blocked = _blocked(problem, best)
    unlimited = _without_limits(problem, best, blocked)
    proofs = _proofs(problem, best)
    facts = (problem, best, starts, blocked, unlimited, proofs)
    return tuple(blocked), Later(count, _reason, facts)


def _success(best: Samples, starts: NDArray[np.int64], i: int) -> str:
    steps, count = int(best.iterations[i]), int(starts[i])
    failed = "" if count == 1 else f", after the first of {count} starts had failed"
    return f"reached in {counted(steps, 'step')}{failed}"


def _reason(
    problem: Problem,
    best: Samples,
    starts: NDArray[np.int64],
    blocked: Sequence[tuple[str, ...]],
    unlimited: Sequence[bool],
    proofs: Mapping[int, str],
    i: int,
) -> str:
    if best.reached[i]:
        return _success(best, starts, i)
    near = f"nearest found: {_errors(problem, best, i)}"
    at = ", ".join(repr(name) for name in blocked[i])
    if i in proofs:
        return f"{proofs[i]}; {near}"
    if unlimited[i]:
        which = "limit" if len(blocked[i]) == 1 else "limits"
        return f"blocked by the {which} of {at}: without limits it is reached; {near}"
    tried = f"not reached from {counted(int(starts[i]), 'start')}"
    if not best.settled[i]:
        tried += ", and still improving: more iterations would help"
    return f"{tried}; {near}" + (f", with {at} at a limit" if at else "")


def _errors(problem: Problem, best: Samples, i: int) -> str:
    goals, sizes = problem.goals, problem.sizes(best.error)[i]
    turned = goals.turned | goals.pointed
    rows = list[tuple[str, float | None, float | None]]()
    for j, node in enumerate(goals.names):
        distance = float(sizes[j, 1]) if goals.placed[j] else None
        rows.append((node, distance, float(sizes[j, 0]) if turned[j] else None))
    return in_words(rows)


def _blocked(problem: Problem, best: Samples) -> list[tuple[str, ...]]:
    """Hinges at a limit that the goals pull against it."""
    movable, mech = problem.joints, problem.joints.mech
    at = movable.at_limit(best.q)
    blocked = list[tuple[str, ...]]()
    for i in range(len(best.q)):
        if best.reached[i]:
            blocked.append(())
            continue
        against = np.zeros(mech.nq, dtype=bool)
        against[movable.plain_q] = best.blocked[i, movable.plain_v]
        for _, in_q, _ in movable.others:  # in whichever direction they are pulled
            against[in_q] = at[i, in_q]
        blocked.append(movable.names(against))
    return blocked


def _without_limits(
    problem: Problem, best: Samples, blocked: list[tuple[str, ...]]
) -> NDArray[np.bool_]:
    """Whether the goals would be reached from there if there were no limits."""
    reached = np.zeros(len(best.q), dtype=bool)
    at = np.array([i for i, names in enumerate(blocked) if names], dtype=np.int64)
    if len(at):
        mech, old = problem.joints.mech, problem.joints
        free = joints(mech, (), limits=False, length=1.0)
        free = replace(free, fixed=old.fixed, per_turn=old.per_turn, scale=old.scale)
        nowhere = np.full(mech.nq, np.inf)
        rules = replace(problem.couplings, lower=-nowhere, upper=nowhere)
        open_ = replace(problem, joints=free, couplings=rules, movable=Movable.of(free, rules))
        reached[at] = solve(open_, best.q[at], at).reached
    return reached


def _proofs(problem: Problem, best: Samples) -> dict[int, str]:
    """For the goals that are certainly out of reach, the distance and the reason."""
    proofs, mech = dict[int, str](), problem.joints.mech
    rows = np.flatnonzero(~best.reached)
    if not len(rows):
        return proofs
    held = _held(problem)
    at = np.array([i for k in held for i in range(*mech.q_start[k : k + 2].tolist())], np.int64)
    # Held hinges may differ between the rows of a batch; usually they do not.
    _, same = np.unique(best.q[rows][:, at], axis=0, return_inverse=True)
    same = same.reshape(len(rows))  # which NumPy 2.0 gives another shape
    for group in range(int(same.max()) + 1):
        selected = np.zeros(len(best.q), dtype=bool)
        selected[rows[same == group]] = True
        stiff = reach.with_held(mech, held, best.q[selected][0])
        _prove(proofs, problem, stiff, selected)
    return proofs


def _held(problem: Problem) -> list[int]:
    """Bodies on the way to the goals whose hinges are held."""
    mech, fixed = problem.joints.mech, problem.joints.fixed
    ways = {k for node in problem.goals.nodes for k in reach.path(mech, mech.node(node).body)}
    spans = {k: fixed[mech.v_start[k] : mech.v_start[k + 1]] for k in sorted(ways)}
    return [k for k, span in spans.items() if len(span) and span.all()]


def _prove(
    proofs: dict[int, str], problem: Problem, mech: Mechanism, selected: NDArray[np.bool_]
) -> None:
    """Compare the distances of the goals with the span of the sticks of `mech`."""
    goals = problem.goals
    limits = bool(problem.joints.cones) or bool(np.isfinite(problem.joints.upper).any())
    placed = [j for j in range(len(goals.nodes)) if goals.placed[j]]
    for j in placed:
        span = reach.from_ground(mech, goals.nodes[j], limits=limits)
        assert span is not None
        far = np.linalg.norm(goals.p[:, j] - span.start, axis=-1)
        what = f"{goals.nodes[j]!r} can be at most {{}} m from the hinge {span.first!r}"
        _compare(proofs, selected, far, span, what, "the goal is {} m away")
    for a, b in combinations(placed, 2):
        span = reach.between(mech, goals.nodes[a], goals.nodes[b], limits=limits)
        far = np.linalg.norm(goals.p[:, a] - goals.p[:, b], axis=-1)
        what = f"{goals.nodes[a]!r} and {goals.nodes[b]!r} can be at most {{}} m apart"
        _compare(proofs, selected, far, span, what, "the goals are {} m apart")


def _compare(
    proofs: dict[int, str],
    selected: NDArray[np.bool_],
    far: Array,
    span: reach.Span,
    what: str,
    subject: str,
) -> None:
    slack = 1e-9 * (1.0 + far)
    for i in np.flatnonzero(selected & (far > span.most + slack)).tolist():
        text = f"{what.format(f'{span.most:.4g}')}, and {subject.format(f'{far[i]:.4g}')}"
        proofs.setdefault(i, f"out of reach by at least {far[i] - span.most:.3g} m: {text}")
    for i in np.flatnonzero(selected & (far < span.least - slack)).tolist():
        text = f"{what.format(f'{span.least:.4g}')}, and {subject.format(f'{far[i]:.4g}')}"
        text = text.replace("at most", "no nearer than")
        proofs.setdefault(i, f"out of reach by at least {span.least - far[i]:.3g} m: {text}")
