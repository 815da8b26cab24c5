"""Why a search ended where it ended, in words."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.inverse_kinematics import reach
from linkwise.dynamics.inverse_kinematics.descent import Problem, Samples, as_input, solve
from linkwise.dynamics.inverse_kinematics.limits import joints
from linkwise.dynamics.inverse_kinematics.solution import in_words
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


def verdicts(
    problem: Problem, best: Samples, starts: NDArray[np.int64]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """For each target the hinges that limits hold back, and the reason."""
    blocked = _blocked(problem, best)
    unlimited = _without_limits(problem, best, blocked)
    proofs = _proofs(problem, best)
    reasons = list[str]()
    for i in range(len(best.q)):
        if best.reached[i]:
            steps, count = int(best.iterations[i]), int(starts[i])
            plural = "" if steps == 1 else "s"
            reasons.append(
                f"reached in {steps} step{plural}"
                + ("" if count == 1 else f", after the first of {count} starts had failed")
            )
            continue
        near = f"nearest found: {_errors(problem, best, i)}"
        at = ", ".join(repr(name) for name in blocked[i])
        if i in proofs:
            reasons.append(f"{proofs[i]}; {near}")
        elif unlimited[i]:
            which = "limit" if len(blocked[i]) == 1 else "limits"
            reasons.append(f"blocked by the {which} of {at}: without limits it is reached; {near}")
        else:
            tried = f"not reached from {starts[i]} start" + ("" if starts[i] == 1 else "s")
            if not best.settled[i]:
                tried += ", and still coming nearer: more iterations would help"
            reasons.append(f"{tried}; {near}" + (f", with {at} at a limit" if at else ""))
    return tuple(blocked), tuple(reasons)


def _errors(problem: Problem, best: Samples, i: int) -> str:
    goals, sizes = problem.goals, problem.sizes(best.error)[i]
    turned = goals.turned | goals.pointed
    rows = list[tuple[str, float | None, float | None]]()
    for j, node in enumerate(goals.nodes):
        distance = float(sizes[j, 1]) if goals.placed[j] else None
        rows.append((node, distance, float(sizes[j, 0]) if turned[j] else None))
    return in_words(rows)


def _blocked(problem: Problem, best: Samples) -> list[tuple[str, ...]]:
    """Hinges at a limit that the targets pull against it."""
    movable, mech = problem.joints, problem.joints.mech
    if best.reached.all():
        return [()] * len(best.q)
    at = movable.at_limit(best.q)
    found = list[tuple[str, ...]]()
    for i in range(len(best.q)):
        if best.reached[i]:
            found.append(())
            continue
        against = np.zeros(mech.nq, dtype=bool)
        against[movable.plain_q] = best.blocked[i, movable.plain_v]
        for _, in_q, _ in movable.others:  # which way they are pulled is not asked
            against[in_q] = at[i, in_q]
        found.append(movable.names(against))
    return found


def _without_limits(
    problem: Problem, best: Samples, blocked: list[tuple[str, ...]]
) -> NDArray[np.bool_]:
    """Whether the targets would be reached from there if there were no limits."""
    reached = np.zeros(len(best.q), dtype=bool)
    at = np.array([i for i, names in enumerate(blocked) if names], dtype=np.int64)
    if len(at):
        mech, old = problem.joints.mech, problem.joints
        free = joints(mech, (), limits=False, length=1.0)
        free = replace(free, fixed=old.fixed, per_turn=old.per_turn, scale=old.scale)
        nowhere = np.full(mech.nq, np.inf)
        rules = replace(problem.couplings, lower=-nowhere, upper=nowhere)
        open_ = replace(problem, joints=free, couplings=rules, movable=as_input(free, rules))
        reached[at] = solve(open_, best.q[at], at).reached
    return reached


def _proofs(problem: Problem, best: Samples) -> dict[int, str]:
    """For the targets that are certainly out of reach, how far and why."""
    found, mech = dict[int, str](), problem.joints.mech
    rows = np.flatnonzero(~best.reached)
    if not len(rows):
        return found
    held = _held(problem)
    at = np.array([i for k in held for i in range(*mech.q_start[k : k + 2].tolist())], np.int64)
    # Held hinges may stand elsewhere in each row of a batch; in most they do not.
    _, same = np.unique(best.q[rows][:, at], axis=0, return_inverse=True)
    same = same.reshape(len(rows))  # which NumPy 2.0 gives another shape
    for group in range(int(same.max()) + 1):
        asked = np.zeros(len(best.q), dtype=bool)
        asked[rows[same == group]] = True
        stiff = reach.with_held(mech, held, best.q[asked][0])
        _prove(found, problem, stiff, asked)
    return found


def _held(problem: Problem) -> list[int]:
    """Bodies on the way to the targets whose hinges are held."""
    mech, fixed = problem.joints.mech, problem.joints.fixed
    ways = {k for node in problem.goals.nodes for k in reach.path(mech, mech.node(node).body)}
    spans = {k: fixed[mech.v_start[k] : mech.v_start[k + 1]] for k in sorted(ways)}
    return [k for k, span in spans.items() if len(span) and span.all()]


def _prove(
    found: dict[int, str], problem: Problem, mech: Mechanism, asked: NDArray[np.bool_]
) -> None:
    """Compare the distances of the targets with what the sticks of `mech` can span."""
    goals = problem.goals
    limits = bool(problem.joints.cones) or bool(np.isfinite(problem.joints.upper).any())
    placed = [j for j in range(len(goals.nodes)) if goals.placed[j]]
    for j in placed:
        span = reach.from_ground(mech, goals.nodes[j], limits=limits)
        assert span is not None
        far = np.linalg.norm(goals.p[:, j] - span.start, axis=-1)
        what = f"{goals.nodes[j]!r} can be at most {{}} m from the hinge {span.first!r}"
        _compare(found, asked, far, span, what, "the target is {} m away")
    for a, b in combinations(placed, 2):
        span = reach.between(mech, goals.nodes[a], goals.nodes[b], limits=limits)
        far = np.linalg.norm(goals.p[:, a] - goals.p[:, b], axis=-1)
        what = f"{goals.nodes[a]!r} and {goals.nodes[b]!r} can be at most {{}} m apart"
        _compare(found, asked, far, span, what, "the targets are {} m apart")


def _compare(
    found: dict[int, str],
    asked: NDArray[np.bool_],
    far: Array,
    span: reach.Span,
    what: str,
    subject: str,
) -> None:
    slack = 1e-9 * (1.0 + far)
    for i in np.flatnonzero(asked & (far > span.most + slack)).tolist():
        text = f"{what.format(f'{span.most:.4g}')}, and {subject.format(f'{far[i]:.4g}')}"
        found.setdefault(i, f"out of reach by at least {far[i] - span.most:.3g} m: {text}")
    for i in np.flatnonzero(asked & (far < span.least - slack)).tolist():
        text = f"{what.format(f'{span.least:.4g}')}, and {subject.format(f'{far[i]:.4g}')}"
        text = text.replace("at most", "no nearer than")
        found.setdefault(i, f"out of reach by at least {span.least - far[i]:.3g} m: {text}")
