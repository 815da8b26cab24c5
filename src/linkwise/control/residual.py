"""Rows of costs and constraints, in array code: their values, and how they change with the state.

A cost is ½ Σ w r², a constraint low ≤ c ≤ high. Constraints act through the augmented Lagrangian
with multipliers λ = μ s and penalties μ,

    ½ μ |y − clip(y, low, high)|²,   y = c + s

so that each is one more row r = y − clip(y, low, high) with the weight μ. An equation has
low = high. Where a row is inside its bounds, r and its derivative are zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linkwise.codegen.scalar.trace import Sketch
from linkwise.codegen.sensitivity import pushed, slopes
from linkwise.dynamics.configuration import missing as difference
from linkwise.dynamics.momentum import center_with_slope
from linkwise.dynamics.quantity import expression
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import SIZES
from linkwise.spatial import quaternion
from linkwise.spatial.choice import absolute, clip, root, where
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross
from linkwise.sweeps.sparse import times
from linkwise.tasks.measure import missing
from linkwise.tasks.task import Task

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Kind = Literal["task", "posture", "velocity", "effort", "function", "force", "cone"]

ROUND = 1e-3
"""How far the tip of a friction cone is rounded off, in parts of the weight."""


@dataclass(frozen=True, slots=True)
class Term:
    """Some rows of a cost or a constraint.

    Attributes:
        kind: What the rows are of.
        at: Their places in v, in the joint forces, or in the forces of contacts; empty for tasks
            and functions.
        task: The task.
        bounded: Whether it is a constraint.
        function: Rows of a formula, in array code.
        rows: How many there are.
        friction: Of a cone, its coefficient.
    """

    kind: Kind
    at: tuple[int, ...] = ()
    task: Task | None = None
    bounded: bool = False
    function: Callable[[Any], Any] | None = None
    rows: int = 0
    friction: float = 0.0

    def goals(self, mech: Mechanism) -> int:
        """Numbers of its goal."""
        if self.bounded and self.kind != "task":
            return 0
        match self.kind:
            case "task" if self.task is not None:
                return SIZES[self.task.kind]
            case "posture":
                return mech.nq
            case "velocity" | "effort":
                return len(self.at)
            case _:
                return 0


def rows_of(
    at: Writing,
    terms: tuple[Term, ...],
    tau: Any,
    *,
    derivatives: bool,
    bare: bool = False,
    pull: tuple[Any, Any] | None = None,
) -> Any:
    """The rows r (m,) of all terms, and where wanted their derivatives by q, v and τ.

    Inputs are "goal", and for constraints "shift", "low" and "high"; `bare` rows are c themselves.
    `pull` are the forces λ of loops and contacts, with their derivatives where these are wanted.

    Returns:
        r, (m, nv) by q, by v and by τ (m, nu) or None without derivatives, and by how much each
        bounded row misses its bounds.
    """
    mech = at.mech
    goals = sum(term.goals(mech) for term in terms)
    goal = at.read("goal", goals) if goals else np.zeros(0)
    count = sum(term.rows for term in terms if term.bounded)
    bounds = [at.read(x, count) for x in ("shift", "low", "high")] if count and not bare else []
    values, parts, off, taken, held = list[Any](), list[Any](), list[Any](), 0, 0
    for term in terms:
        size = term.goals(mech)
        if term.kind in ("force", "cone"):
            assert pull is not None
            r, by = _force(mech, term, *pull)
        else:
            r, by = _row(at, term, goal[taken : taken + size], tau, derivatives)
        taken += size
        if term.bounded and not bare:
            shift, low, high = (x[held : held + term.rows] for x in bounds)
            held += term.rows
            off += list(absolute(r - clip(r, low, high)))
            y = r + shift
            r = y - clip(y, low, high)
            on = [_inside(*x) for x in zip(y, low, high, strict=True)]
            by = [None if x is None else np.array(on, dtype=object)[:, None] * x for x in by]
        values.append(r)
        parts.append(by)
    r = np.concatenate([np.zeros(0, dtype=object), *values])
    if not derivatives:
        return r, None, off
    widths = mech.nv, mech.nv, len(tau)
    full = [np.full((len(r), n), 0.0, dtype=object) for n in widths]
    start = 0
    for term, by in zip(terms, parts, strict=True):
        for matrix, part in zip(full, by, strict=True):
            if part is not None:
                matrix[start : start + term.rows] = part
        start += term.rows
    return r, full, off


def _inside(y: Any, low: Any, high: Any) -> Any:
    """1 where y is outside its bounds."""
    over, under = y - high, low - y
    return over.gate(1.0) + under.gate(1.0) - over.gate(under.gate(1.0))


def _row(at: Writing, term: Term, goal: Any, tau: Any, derivatives: bool) -> tuple[Any, list[Any]]:
    mech, nothing = at.mech, [None, None, None]
    places = list(term.at)
    match term.kind:
        case "task":
            assert term.task is not None
            r, by_q = _task(at, term.task, goal, derivatives)
            return r, [by_q, None, None]
        case "posture":
            if term.bounded:  # the coordinates themselves
                r = at.q[[_coordinate(mech, i) for i in places]]
            else:
                r = difference(mech, goal, at.q)[places]
            by_q = slopes(at, [r], "q")[0] if derivatives else None
            return r, [by_q, None, None]
        case "velocity":
            r = at.v[places] if term.bounded else at.v[places] - goal
            return r, [None, np.eye(mech.nv)[places].astype(object), None]
        case "effort":
            r = tau[places] if term.bounded else tau[places] - goal
            return r, [None, None, np.eye(len(tau))[places].astype(object)]
        case "function":
            assert term.function is not None
            r = np.asarray(term.function(at), dtype=object).ravel()
            if not derivatives:
                return r, nothing
            inputs = {"q": at.q, "v": at.v}
            return r, [slopes(at, [r], x)[0] for x in inputs] + [None]
        case _:
            raise AssertionError(term.kind)


def _force(mech: Mechanism, term: Term, force: Any, by: Any) -> tuple[Any, list[Any]]:
    """Forces f of contacts in parts of the weight; or of a cone f_z and μ f_z − |f_xy|."""
    weight = mech.total_mass * (float(np.linalg.norm(mech.gravity)) or 9.81)
    places = list(term.at)
    f = force[places] / weight
    change = [None] * 3 if by is None else [x[places] / weight for x in by]
    if term.kind == "force":
        return f, change
    x, y, z = f
    length = root(x * x + y * y + ROUND**2)
    r = np.array([z, term.friction * z - length + ROUND], dtype=object)
    slope = np.array([[0.0, 0.0, 1.0], [-x / length, -y / length, term.friction]], dtype=object)
    return r, [None if d is None else times(slope, d) for d in change]


def _coordinate(mech: Mechanism, i: int) -> int:
    """The coordinate of a plain hinge that goes with a velocity."""
    k = int(np.searchsorted(mech.v_start, i, side="right")) - 1
    return int(mech.q_start[k]) + i - int(mech.v_start[k])


def _task(at: Writing, task: Task, goal: Any, derivatives: bool) -> tuple[Any, Any]:
    """The error of a task, goal minus position, and its derivative by q (m, nv)."""
    if task.kind == "center_of_mass":
        c, J = center_with_slope(at, jacobian=derivatives)
        S = task.matrix[:, 3:]
        return S @ (goal - c), None if J is None else times(-S, J)
    nodes = task.relative_to, task.node
    X_a, X_b = at.value(expression("node_poses"), nodes=nodes, q=at.q).reshape(2, 3, 4)
    back = X_a[:, :3].T
    R, p = back @ X_b[:, :3], back @ (X_b[:, 3] - X_a[:, 3])
    traced = _error(task)
    given = {"R": R.ravel(), "p": p, "goal": goal}
    flat = np.array(at.replay(traced, given), dtype=object)
    m = len(task.rows)
    if not derivatives:
        return flat[:m], None
    J = at.value(expression("jacobian"), nodes=nodes, q=at.q)
    J_a, J_b = J[:6], J[6:]
    # V_ab = V_b − T V_a at b's origin, in b's axes
    turn, way = J_a[:3], J_a[3:] + np.stack([cross(x, p) for x in J_a[:3].T], axis=1)
    motion = np.concatenate([J_b[:3] - times(R.T, turn), J_b[3:] - times(R.T, way)])
    return flat[:m], times(flat[m:].reshape(m, 6), motion)


def _error(task: Task) -> Any:
    """The graph of an error (m,) with its derivative (m, 6) by the motion of the node."""
    s = Sketch()
    R, p = s.read("R", 9).reshape(3, 3), s.read("p", 3)
    numbers = s.read("goal", SIZES[task.kind])
    if task.kind == "pose":
        X = numbers.reshape(3, 4)
        R_d, p_d = X[:, :3], X[:, 3]
    else:
        R_d = p_d = numbers.reshape(3, 3) if task.kind == "orientation" else numbers
    e = missing(task, R, p, R_d, p_d)
    by = _turned(s, e, R, p) if task.kind == "direction" else _moved(task, R, p, R_d, p_d)
    s.write("e", list(e))
    s.write("by", list(by.ravel()))
    return s.traced()


def _turned(s: Sketch, e: Any, R: Any, p: Any) -> Any:
    """The derivative of an error by the motion of the node, by its graph."""
    nodes, columns = [s.scalar(x).node for x in e], list[Any]()
    for j in range(6):
        axis = np.eye(3)[j % 3]
        rate = np.stack([cross(row, axis) for row in R]) if j < 3 else np.zeros((3, 3))
        way = R @ axis if j >= 3 else np.zeros(3)
        seeds = {
            x.node: s.scalar(y).node
            for x, y in zip((*R.ravel(), *p), (*rate.ravel(), *way), strict=True)
        }
        columns.append(s.scalars(pushed(s.graph, nodes, seeds)))
    return np.stack(columns, axis=1)


def _moved(task: Task, R: Any, p: Any, R_d: Any, p_d: Any) -> Any:
    """The same of turns φ = log(R* R_d) and ways d = p_d − p, and of parts of them.

        φ' = −(1 − ½ φ~ + c φ~²) ω,   (R φ)' = −R (1 + ½ φ~ + c φ~²) ω
        (R* d)' = (R* d)~ ω − u,   d' = −R u

    of the velocities ω, u in the axes of the node, and c |φ|² = 1 − ½ |φ| cot ½ |φ|.
    """
    back, outside = R.T, task.axes == "reference"
    by = np.full((len(task.rows), 6), 0.0, dtype=object)
    if task.kind != "position":
        half = quaternion.from_matrix(back @ R_d)
        turn, (w, *axis) = quaternion.log(half), half
        square, sine = turn @ turn, np.array(axis) @ np.array(axis)
        there = square - 1e-8  # below, c is 1 / 12 to rounding
        scale = (turn @ np.array(axis)) / where(there, sine, 1.0)  # |φ| / sin ½ |φ|
        c = where(there, (1.0 - 0.5 * w * scale) / where(there, square, 1.0), 1.0 / 12.0)
        across = skew(turn)
        rate = (0.5 if outside else -0.5) * across + c * times(across, across)
        rate = -(np.eye(3) + rate)
        rate = times(R, rate) if outside else rate
        by[:, :3] = by[:, :3] + times(task.matrix[:, :3], rate)
    if task.kind != "orientation":
        way = -R if outside else -np.eye(3)
        by[:, 3:] = by[:, 3:] + times(task.matrix[:, 3:], way)
        if not outside:
            by[:, :3] = by[:, :3] + times(task.matrix[:, 3:], skew(back @ (p_d - p)))
    return by
