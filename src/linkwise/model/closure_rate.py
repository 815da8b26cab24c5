"""How the requirements of loops and couplings change with the configuration.

A displacement Δ of the nodes of a loop, each in its own axes, changes the pose of b seen from a by
Δ_ab = Δ_b - T Δ_a, and so

    δT x = [T x ×] Δ_ab        δT* y = T* [y ×̄] Δ_ab        δS = Σ_j ∂_j S (Δ_ab)_j

With c = T V_a, d = V_b - c and κ = S (d × c) + r(X_ab, d), where r = -S Ḣ* W (`closure.py`):

    (δQ) x  = (∂S (x_b - T x_a) - S [T x_a ×]) Δ_ab
    (δQ*) y = (-T* (∂S* y + [S* y ×̄]), ∂S* y) Δ_ab                  at a and at b
    δκ      = ∂S (d × c) Δ_ab + r_X Δ_ab + S [d ×] δc + (r_d - S [c ×]) δd

The results are lists of blocks (row, column, matrix): rows and columns are numbers of constraints,
nodes or bodies. Directions that turn, and couplings, are differentiated by running their formulas
on Taylor series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import closure
from linkwise.model.body import Coupling, Loop
from linkwise.model.hinges.jet import Jet
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import JointRow, Rows, missing
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross_velocity, cross_velocity_matrix

Blocks = list[tuple[int, int, Any]]

OF_LOOPS = ("Q_rate", "Q_rate_adjoint", "kappa_X", "kappa_V")
OF_COUPLINGS = ("Y_rate", "Y_rate_adjoint", "kappa_q", "kappa_v")
OF_ERRORS = ("error_X", "error_goal")
RATES = (*OF_LOOPS, *OF_COUPLINGS, *OF_ERRORS)
"""Derivatives of Q x, Q* x, Y x, Y* x, of κ by poses and velocities of nodes, by q and by v, and
of the errors of tasks by poses of nodes and by goals."""


def of_loops(mech: Mechanism, rule: str, poses: Sequence[Pose], x: Sequence[Any]) -> Blocks:
    """The derivative of a rule of `OF_LOOPS`.

    Args:
        mech: The mechanism.
        rule: Which one.
        poses: X_ab of each loop, with a leading axis.
        x: The vector: at nodes, or in the rows of each constraint for Q* x; for κ velocities.
    """
    every = Blocks()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        if rule == "Q_rate":
            every += _velocity_rate(i, loop, X_ab, x[2 * i], x[2 * i + 1])
        elif rule == "Q_rate_adjoint":
            every += _force_rate(i, loop, X_ab, x[i])
        else:
            rates = _bias_rates(i, loop, X_ab, x[2 * i], x[2 * i + 1])
            every += rates[0 if rule == "kappa_X" else 1]
    return every


def of_couplings(mech: Mechanism, rule: str, q: Any, v: Any, x: Sequence[Any]) -> Blocks:
    """The derivative of a rule of `OF_COUPLINGS`, at q (nq,) and v (nv,).

    Args:
        mech: The mechanism.
        rule: Which one.
        q: Coordinates.
        v: Velocities.
        x: The vector: at bodies, or in the rows of each constraint for Y* x; not read for κ.
    """
    every = Blocks()
    for i, coupling in enumerate(mech.couplings, start=len(mech.loops)):
        for rate in _follower_rates(mech, coupling, q, v):
            k = rate.body
            if rule == "Y_rate":
                every += [(i, k, (x[j] @ part)[None]) for j, part in rate.terms]
            elif rule == "Y_rate_adjoint":
                every += [(j, k, part * x[i][0]) for j, part in rate.terms]
            else:
                every.append((i, k, (rate.by_q if rule == "kappa_q" else rate.by_v)[None]))
    return every


def of_errors(
    mech: Mechanism, rule: str, poses: Sequence[Pose], goals: Sequence[Any], itemsize: int = 8
) -> Blocks:
    """The derivative of the errors of tasks, `task_rows.missing`, by a rule of `OF_ERRORS`.

    Args:
        mech: A mechanism that holds tasks as loops and couplings.
        rule: Which one.
        poses: X_ab of each loop, with a leading axis.
        goals: The goal of each loop and coupling.
        itemsize: Bytes of a number.
    """
    every = Blocks()
    for i, (loop, X_ab) in enumerate(zip(mech.loops, poses, strict=True)):
        hinge, rot, p, goal = loop.hinge, X_ab.rot, X_ab.p, goals[i][None]
        assert isinstance(hinge, Rows)

        def formula(rot: Any, p: Any, goal: Any, hinge: Rows = hinge) -> Any:
            return missing(hinge, trusted_pose(rot, p), goal, itemsize)

        columns = list[Any]()
        for e in np.eye(6 if rule == "error_X" else goal.shape[-1]):
            rates: tuple[Any, ...] = (None, None, e[None])
            if rule == "error_X":
                rates = rot @ skew(e[:3]), (rot @ e[3:]).reshape(np.shape(p)), None
            columns.append(Jet.slope(formula, *zip((rot, p, goal), rates, strict=True))[0])
        by = np.stack(columns, axis=-1)
        every += _halves(i, i, by @ _relative(_step(X_ab))) if rule == "error_X" else [(i, i, by)]
    if rule == "error_goal":
        every += [(i, i, np.eye(1)) for i in range(len(mech.loops), len(goals))]
    return every


def require_formula(loop: Loop) -> None:
    """Raise unless the directions that a loop blocks are a formula in the pose."""
    if not closure.is_traceable(loop):
        raise ModelError(
            f"a derivative of loop {loop.name!r} was requested: the directions that its hinge "
            f"({loop.hinge.kind}) blocks are found by a search, which has no derivative."
        )


@dataclass(frozen=True, slots=True)
class _Directions:
    """S (rows, 6) of a loop and r, with their derivatives by Δ_ab and by the relative velocity."""

    S: Any
    S_by_pose: Any  # (rows, 6, 6): of entry (i, j) by Δ_ab
    rate_by_pose: Any  # (rows, 6)
    rate_by_speed: Any  # (rows, 6)

    def turned(self, x: Any) -> Any:
        """∂S x (rows, 6), for x (6,)."""
        return (self.S_by_pose * x[None, :, None]).sum(axis=1)


def _directions(loop: Loop, X_ab: Pose, d: Any) -> _Directions:
    """Of a loop at a pose with a leading axis, and a relative velocity (6,)."""
    hinge, rows = loop.hinge, loop.rows
    require_formula(loop)
    still = closure.blocked(hinge, X_ab, d[None])
    S = still.S[0] if np.ndim(still.S) == 3 else still.S
    turns = hinge.outer if isinstance(hinge, Rows) else closure.constant_directions(hinge) is None
    if not turns:
        return _Directions(S, np.zeros((rows, 6, 6)), np.zeros((rows, 6)), np.zeros((rows, 6)))

    def formula(rot: Any, p: Any, velocity: Any) -> Any:
        made = closure.blocked(hinge, trusted_pose(rot, p), velocity)
        return np.concatenate([made.S, made.rate[..., None]], axis=-1)

    rot, p = X_ab.rot, X_ab.p
    by_pose, by_speed = list[Any](), list[Any]()
    for e in np.eye(6):
        turned = (rot, rot @ skew(e[:3])), (p, (rot @ e[3:]).reshape(np.shape(p)))
        by_pose.append(Jet.slope(formula, *turned, (d[None], None))[0])
        by_speed.append(Jet.slope(formula, (rot, None), (p, None), (d[None], e[None]))[0])
    X, D = np.stack(by_pose, axis=-1), np.stack(by_speed, axis=-1)  # (rows, 7, 6)
    return _Directions(S, X[:, :6], X[:, 6], D[:, 6])


def _step(X_ab: Pose) -> Any:
    """T (6, 6)."""
    return X_ab.shift_velocity(np.eye(6)).T


def _relative(T: Any) -> Any:
    """[-T, I] (6, 12), which takes Δ_a and Δ_b to Δ_ab."""
    return np.concatenate([-T, np.eye(6)], axis=1)


def _halves(i: int, row: int, matrix: Any) -> Blocks:
    """A matrix (rows, 12) as blocks at the nodes of loop i."""
    return [(row, 2 * i, matrix[:, :6]), (row, 2 * i + 1, matrix[:, 6:])]


def _velocity_rate(i: int, loop: Loop, X_ab: Pose, x_a: Any, x_b: Any) -> Blocks:
    """(δQ) x of loop i by displacements of nodes, for x (6,) at its nodes."""
    T = _step(X_ab)
    c = T @ x_a
    at = _directions(loop, X_ab, x_b - c)
    by_pose = at.turned(x_b - c) - at.S @ cross_velocity_matrix(c)
    return _halves(i, i, by_pose @ _relative(T))


def _force_rate(i: int, loop: Loop, X_ab: Pose, y: Any) -> Blocks:
    """(δQ*) y of loop i by displacements of nodes, for y (rows,)."""
    T = _step(X_ab)
    at = _directions(loop, X_ab, np.zeros(6))
    on_b, turned = at.S.T @ y, (at.S_by_pose * y[:, None, None]).sum(axis=0)
    w, u = skew(on_b[:3]), skew(on_b[3:])
    swapped = blocks(-w, -u, -u, np.zeros((3, 3)))
    relative = _relative(T)
    on_a = _halves(i, 2 * i, -T.T @ (turned + swapped) @ relative)
    return on_a + _halves(i, 2 * i + 1, turned @ relative)


def _bias_rates(i: int, loop: Loop, X_ab: Pose, V_a: Any, V_b: Any) -> tuple[Blocks, Blocks]:
    """δκ of loop i by displacements of nodes with their velocities V held, and by δV."""
    T = _step(X_ab)
    c = T @ V_a
    d = V_b - c
    at, turn = _directions(loop, X_ab, d), cross_velocity_matrix(c)
    by_c, by_d = at.S @ cross_velocity_matrix(d), at.rate_by_speed - at.S @ turn
    by_pose = (
        at.turned(cross_velocity(d[None], c[None])[0]) + at.rate_by_pose + (by_c - by_d) @ turn
    )
    speeds = np.concatenate([(by_c - by_d) @ T, by_d], axis=1)
    return _halves(i, i, by_pose @ _relative(T)), _halves(i, i, speeds)


@dataclass(frozen=True, slots=True)
class _FollowerRate:
    """How the row of a coupling changes with the coordinates of one body.

    Attributes:
        body: The body, k.
        terms: For each body j in the row, the derivative (nv_j, nv_k) of its coefficients.
        by_q: That of the rate (nv_k,) along the velocities of the body.
        by_v: That of the rate by the velocities themselves (nv_k,).
    """

    body: int
    terms: tuple[tuple[int, Any], ...]
    by_q: Any
    by_v: Any


def _follower_rates(mech: Mechanism, coupling: Coupling, q: Any, v: Any) -> list[_FollowerRate]:
    """The derivatives of `closure.follower` at q (nq,) and v (nv,)."""
    if isinstance(coupling, JointRow):
        return []
    here = closure.follower(mech, coupling, q[None], v[None])
    places = [k for k, _ in here.terms]

    def formula(q: Any, v: Any) -> Any:
        row = closure.follower(mech, coupling, q, v)
        return np.concatenate([*(x for _, x in row.terms), row.rate[..., None]], axis=-1)

    rates = list[_FollowerRate]()
    for k in sorted(set(places)):
        hinge, part = mech.bodies[k].hinge, slice(mech.q_start[k], mech.q_start[k + 1])
        by_q, by_v = list[Any](), list[Any]()
        for j, e in enumerate(np.eye(hinge.nv)):
            along_q, along_v = np.full(mech.nq, 0.0, dtype=object), np.zeros(mech.nv)
            along_q[part] = hinge.qdot(q[None, part], e[None])[0]
            along_v[mech.v_start[k] + j] = 1.0
            by_q.append(Jet.slope(formula, (q[None], along_q[None]), (v[None], None))[0])
            by_v.append(Jet.slope(formula, (q[None], None), (v[None], along_v[None]))[0])
        moved, faster = np.stack(by_q, axis=-1), np.stack(by_v, axis=-1)
        sizes = [mech.bodies[j].hinge.nv for j in places]
        each = np.split(moved[:-1], np.cumsum(sizes)[:-1])
        terms = tuple(zip(places, each, strict=True))
        rates.append(_FollowerRate(k, terms, moved[-1], faster[-1]))
    return rates
