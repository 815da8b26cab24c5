"""Requirements of loops, couplings and tasks as forms, differentiated any number of times.

    kind        form of the slots f, x, y, d_1 ... d_n
    "Q"         f* D_n ... D_1 Q x              x of nodes
    "Y"         f* D_n ... D_1 Y x              x of joints
    "kappa"     f* D_n ... D_1 κ(x, y)          of loops: κ(x, x) is κ at velocities x of nodes
    "kappa_Y"   f* D_n ... D_1 κ(x, y)          of couplings, with x and y of joints
    "error"     f* D_n ... D_1 e                the errors of tasks

D_i is the derivative along d_i, the first one innermost: displacements of the nodes of a loop, each
in its own axes, velocities of hinges for couplings, or changes of a goal. f is a vector of the
rows of constraints. κ is quadratic in velocities, so that κ(x, y) = (κ(x + y) - κ(x - y)) / 4.

Two slots are open: the result is an operator from one to the other, as a list of blocks (row,
column, matrix), where rows and columns are numbers of constraints, nodes or bodies. First
derivatives have separate blocks, with fewer operations (`closure_rate.py`); these forms are
what further ones are made of. They run the formulas of the rows on nested Taylor series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.model import closure
from linkwise.model.body import Coupling, Loop
from linkwise.model.closure_rate import Blocks, require_formula
from linkwise.model.hinges.jet import Jet
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import JointRow, Rows, missing
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, cross_velocity

OF_LOOPS, OF_COUPLINGS = ("Q", "kappa", "error"), ("Y", "kappa_Y")

HELD = {"Q": 1, "Y": 1, "kappa": 2, "kappa_Y": 2, "error": 0}
"""Slots of each kind between f and the directions."""

_PREFIX = "form"

Formula = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class FormRule:
    """A form as a rule of sweeps.

    Attributes:
        kind: "Q", "Y", "kappa", "kappa_Y" or "error".
        spaces: For each slot "c" for constraints, "n" for nodes, "j" for joints, "g" for goals.
        marks: For each slot "row" or "column" where it is open, else "".
    """

    kind: str
    spaces: tuple[str, ...]
    marks: tuple[str, ...]

    @property
    def name(self) -> str:
        """As sweeps spell it: "form Q row:c n column:n"."""
        slots = zip(self.spaces, self.marks, strict=True)
        return " ".join([_PREFIX, self.kind, *(f"{m}:{s}" if m else s for s, m in slots)])

    @staticmethod
    def named(rule: str) -> FormRule | None:
        """The form of a rule by its name, or by that of its adjoint; None for other rules."""
        words = rule.removesuffix("*").split()
        if not words or words[0] != _PREFIX:
            return None
        pairs = [word.rpartition(":") for word in words[2:]]
        return FormRule(words[1], tuple(x[2] for x in pairs), tuple(x[0] for x in pairs))

    @property
    def has_poses(self) -> bool:
        """Whether it takes the poses of the nodes of loops."""
        return self.kind in OF_LOOPS


def is_form(rule: str) -> bool:
    """Whether a rule of sweeps is a form or its adjoint."""
    return FormRule.named(rule) is not None


def of_loops(
    mech: Mechanism,
    form: FormRule,
    poses: Sequence[Pose],
    vectors: Sequence[Sequence[Any]],
    goals: Sequence[Any] = (),
    itemsize: int = 8,
) -> Blocks:
    """The blocks of a form of loops.

    Args:
        mech: The mechanism.
        form: The form.
        poses: X_ab of each loop, with a leading axis.
        vectors: The vectors of the slots that are not open, in order, each as its blocks.
        goals: The goal of each loop and coupling, for errors.
        itemsize: Bytes of a number.
    """
    every = Blocks()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        require_formula(loop)
        goal = goals[i] if form.kind == "error" else np.zeros(0)
        sizes = {"c": loop.rows, "n": 12, "g": len(goal)}

        def part(space: str, x: Sequence[Any], i: int = i) -> Any:
            return np.concatenate(x[2 * i : 2 * i + 2]) if space == "n" else x[i]

        def value(held: Sequence[Any], along: Sequence[Any], loop: Loop = loop) -> Any:
            start = _bilinear(_OF_LOOP[form.kind](loop, itemsize), held)
            first = 1 + HELD[form.kind]
            moves = [_moved_pose(s, d) for s, d in zip(form.spaces[first:], along, strict=True)]
            return _derivative(start, moves)(X_ab.rot, X_ab.p, goal[None])[0]  # noqa: B023

        places = {"c": [(i, sizes["c"])], "n": [(2 * i, 6), (2 * i + 1, 6)], "g": [(i, len(goal))]}
        every += _blocks(form, vectors, part, value, places)
    return every


def of_couplings(
    mech: Mechanism, form: FormRule, q: Any, vectors: Sequence[Sequence[Any]]
) -> Blocks:
    """The blocks of a form of couplings, at q (nq,); vectors of joints are given for each body."""
    every = Blocks()
    for i, coupling in enumerate(mech.couplings, start=len(mech.loops)):
        if isinstance(coupling, JointRow):
            continue  # constant
        still = np.zeros((1, mech.nv))
        terms = closure.follower(mech, coupling, q[None], still).terms
        bodies = sorted({k for k, _ in terms})
        widths = [mech.bodies[k].hinge.nv for k in bodies]

        def part(space: str, x: Sequence[Any], i: int = i, bodies: list[int] = bodies) -> Any:
            return np.concatenate([x[k] for k in bodies]) if space == "j" else x[i]

        def value(
            held: Sequence[Any],
            along: Sequence[Any],
            coupling: Coupling = coupling,
            bodies: list[int] = bodies,
        ) -> Any:
            full = [_of_all_joints(mech, bodies, x) for x in held]
            start = _bilinear(_OF_COUPLING[form.kind](mech, coupling), full)
            moves = [_moved_coordinates(mech, bodies, d) for d in along]
            return _derivative(start, moves)(q[None])[0]

        places = {"c": [(i, 1)], "j": list(zip(bodies, widths, strict=True))}
        every += _blocks(form, vectors, part, value, places)
    return every


def _blocks(
    form: FormRule,
    vectors: Sequence[Sequence[Any]],
    part: Callable[[str, Sequence[Any]], Any],
    value: Callable[[Sequence[Any], Sequence[Any]], Any],
    places: dict[str, list[tuple[int, int]]],
) -> Blocks:
    """Of one constraint, whose rows `value` gives from the slots after f.

    Args:
        form: The form.
        vectors: Those of slots that are not open.
        part: What a vector of a space has for this constraint.
        value: The rows, from the held vectors and the directions.
        places: For each space the numbers of its blocks, and their sizes.
    """
    rest = iter(vectors)
    slots: list[Any] = [
        None if mark else part(space, next(rest))
        for space, mark in zip(form.spaces, form.marks, strict=True)
    ]
    row, column = form.marks.index("row"), form.marks.index("column")
    size = [sum(n for _, n in places[form.spaces[slot]]) for slot in (row, column)]
    n = 1 + HELD[form.kind]

    def at(**open_slots: Any) -> Any:
        given = list(slots)
        given[column] = open_slots["column"]
        if row:
            given[row] = open_slots["row"]
        return value(given[1:n], given[n:])

    columns = list[Any]()
    for e in np.eye(size[1]):
        if row == 0:
            columns.append(at(column=e))
        else:
            columns.append([slots[0] @ at(column=e, row=u) for u in np.eye(size[0])])
    matrix, out, top = np.stack([np.asarray(x) for x in columns], axis=-1), Blocks(), 0
    for i, height in places[form.spaces[row]]:
        left = 0
        for j, width in places[form.spaces[column]]:
            out.append((i, j, matrix[top : top + height, left : left + width]))
            left += width
        top += height
    return out


def _derivative(formula: Formula, moves: Sequence[Callable[..., Any]]) -> Formula:
    """D_n ... D_1 of a formula: a formula again. A move gives the rates of its arguments."""
    if not moves:
        return formula
    inner, rates = _derivative(formula, moves[:-1]), moves[-1]

    def derivative(*x: Any) -> Any:
        return Jet.slope(inner, *zip(x, rates(*x), strict=True))

    return derivative


def _bilinear(formula: Formula, held: Sequence[Any]) -> Formula:
    """A formula with its held vectors: as it is, or by polarisation of one that is quadratic."""
    if len(held) < 2:
        return lambda *x: formula(*x, *held)
    x, y = held
    return lambda *at: 0.25 * (formula(*at, x + y) - formula(*at, x - y))


def _moved_pose(space: str, d: Any) -> Callable[..., Any]:
    """X_ab moves as its nodes do: Ṙ = R ω_b× - ω_a× R, ṗ = R v_b - v_a - ω_a × p; or the goal."""

    def rates(R: Any, p: Any, goal: Any) -> tuple[Any, Any, Any]:
        if space == "g":
            return None, None, np.broadcast_to(d, np.shape(goal))
        a, b = d[:6], d[6:]
        turn = R @ skew(b[:3]) - skew(a[:3]) @ R
        way = (R @ b[3:, None])[..., 0] - a[3:] - cross(np.broadcast_to(a[:3], np.shape(p)), p)
        return turn, way, None

    return rates


def _moved_coordinates(mech: Mechanism, bodies: Sequence[int], d: Any) -> Callable[..., Any]:
    """q̇ = N(q) d of some bodies."""

    def rates(q: Any) -> tuple[Any]:
        out, start = np.zeros(np.shape(q), dtype=object), 0
        for k in bodies:
            part, hinge = slice(mech.q_start[k], mech.q_start[k + 1]), mech.bodies[k].hinge
            along = np.broadcast_to(d[start : start + hinge.nv], (*np.shape(q)[:-1], hinge.nv))
            out[..., part] = hinge.qdot(q[..., part], along)
            start += hinge.nv
        return (out,)

    return rates


def _of_all_joints(mech: Mechanism, bodies: Sequence[int], x: Any) -> Any:
    """A vector of joints (nv,) from its entries at some bodies."""
    out, start = np.zeros(mech.nv, dtype=object), 0
    for k in bodies:
        width = mech.bodies[k].hinge.nv
        out[mech.v_start[k] : mech.v_start[k + 1]] = x[start : start + width]
        start += width
    return out


# ------------------------------------------------------------------------------------- formulas


def _velocity_rows(loop: Loop, itemsize: int) -> Formula:
    """Q x of a loop, for x (12,) at its nodes."""

    def formula(R: Any, p: Any, goal: Any, x: Any) -> Any:
        X_ab = trusted_pose(R, p)
        d = x[6:] - X_ab.shift_velocity(np.broadcast_to(x[:6], (*np.shape(p)[:-1], 6)))
        S = closure.blocked(loop.hinge, X_ab, np.zeros(np.shape(d))).S
        return (S @ d[..., None])[..., 0]

    return formula


def _bias_rows(loop: Loop, itemsize: int) -> Formula:
    """κ of a loop at velocities x (12,) of its nodes."""

    def formula(R: Any, p: Any, goal: Any, x: Any) -> Any:
        X_ab = trusted_pose(R, p)
        c = X_ab.shift_velocity(np.broadcast_to(x[:6], (*np.shape(p)[:-1], 6)))
        at = closure.blocked(loop.hinge, X_ab, x[6:] - c)
        turned = cross_velocity(x[6:] - c, c)
        return (at.S @ turned[..., None])[..., 0] + at.rate

    return formula


def _error_rows(loop: Loop, itemsize: int) -> Formula:
    """e of a task."""
    hinge = loop.hinge
    assert isinstance(hinge, Rows)

    def formula(R: Any, p: Any, goal: Any) -> Any:
        return missing(hinge, trusted_pose(R, p), goal, itemsize)

    return formula


def _follower_row(mech: Mechanism, coupling: Coupling) -> Formula:
    """Y x of a coupling, for x (nv,)."""

    def formula(q: Any, x: Any) -> Any:
        total: Any = 0.0
        for k, row in closure.follower(mech, coupling, q, np.zeros((*q.shape[:-1], mech.nv))).terms:
            total = total + (row * x[mech.v_start[k] : mech.v_start[k + 1]]).sum(axis=-1)
        return total[..., None]

    return formula


def _follower_bias(mech: Mechanism, coupling: Coupling) -> Formula:
    """κ of a coupling at velocities x (nv,)."""

    def formula(q: Any, x: Any) -> Any:
        speed = np.broadcast_to(x, (*q.shape[:-1], mech.nv))
        return closure.follower(mech, coupling, q, speed).rate[..., None]

    return formula


_OF_LOOP = {"Q": _velocity_rows, "kappa": _bias_rows, "error": _error_rows}
_OF_COUPLING = {"Y": _follower_row, "kappa_Y": _follower_bias}
