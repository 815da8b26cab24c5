"""The response of a node to a push, accurate enough to distinguish heavy from blocked directions.

The response to forces, Λ⁻¹ = J 𝓜⁻¹ J*, is a product of rows with themselves: with the innovations
of the rows of J,

    A = (D^(-½) (I - H ψ K) J*)*,       Λ⁻¹ = A A*,       w* Λ⁻¹ w = |A* w|².

Results come from A, which is not squared and keeps twice as many digits. A direction is blocked if
J* w is negligible next to the largest motion, with turning measured at a length.

With closed loops, the rows of J_c are whitened in the same way and projected out of A (000, section
6): A (I - Q Q*), A_c* = Q T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import J, f, rot_W
from linkwise.algebra.symbols import articulated
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import dot, singular
from linkwise.dynamics.innovations import innovations
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, kernel, tree_of, written
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.dynamics.velocity_space import reach, velocity_spaces
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import absolute, gate, maximum, norm, where

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

TURNING, MOVING = slice(0, 3), slice(3, 6)
"""Rows of angular and of linear velocities."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One node of a mechanism and the options of a request, checked.

    Attributes:
        mech: The mechanism.
        node: Name of the node.
        frame: Axes of directions.
        closed: Whether loops or couplings act.
        length: At which turning is compared with moving [m].
        tolerance: Motions below this fraction of the largest count as blocked.
    """

    mech: Mechanism | Embedded
    node: str
    frame: Frame
    closed: bool
    length: float
    tolerance: float

    @property
    def by_kernel(self) -> bool:
        """Whether it is an open tree, for which there are formulas."""
        return not self.closed and not isinstance(self.mech, Embedded)

    @property
    def least(self) -> Array:
        """Length and tolerance (2,), as formulas take them."""
        return np.array([self.length, self.tolerance])

    @property
    def scale(self) -> Array:
        """Rows of J times this are in metres (6,)."""
        return np.repeat([self.length, 1.0], 3)


def setting(
    mech: Mechanism | Embedded,
    node: str,
    frame: Frame,
    loops: Loops = "closed",
    tolerance: float = TOLERANCE,
) -> Setting:
    """Check everything that does not depend on the state."""
    check_mechanism(mech)
    try:
        check_frame(frame)
    except ModelError as error:
        raise ModelError(
            f"{error} These are the axes of directions and results; inertial properties have those "
            f"of the 'world' by default.{_meant(frame)}"
        ) from None
    if not isinstance(node, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"node is a {type(node).__name__}; it must be the name of one node or body."
        )
    mech.node(node)  # raises for an unknown one
    if not (isinstance(tolerance, float | int) and 0.0 < tolerance < 1.0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"tolerance is {tolerance!r}; it must be a number between 0 and 1.")
    closed = is_closed(mech, loops)
    length = reach(mech, (node,))
    mech = mech if closed else tree_of(mech)
    return Setting(mech, node, frame, closed, length, float(tolerance))


def _meant(frame: object) -> str:
    names = {"reference": "world", "base": "world", "body": "node", "local": "node"}
    word = names.get(frame) if isinstance(frame, str) else None
    return f" Here {frame!r} is {word!r}." if word else ""


def unit_directions(direction: ArrayLike, size: int, what: str = "direction") -> Array:
    """Directions of any length as unit vectors (size,) or (batch, size)."""
    u = floats(direction, what)
    if u.ndim not in (1, 2) or u.shape[-1] != size:
        raise ShapeError(f"{what} has shape {u.shape}; it must be ({size},) or (batch, {size}).")
    if not np.isfinite(u).all():
        raise ShapeError(f"{what} must be finite; found {u.tolist()}.")
    largest = np.abs(u).max(axis=-1, keepdims=True)
    if not largest.all():
        row = "" if u.ndim == 1 else f" in row {int(np.argmin(largest))}"
        raise ShapeError(f"{what} is the zero vector{row}; give a direction of any other length.")
    u = u / largest  # so that squares neither overflow nor underflow
    return u / np.linalg.norm(u, axis=-1, keepdims=True)


def felt(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    direction: ArrayLike,
    node: str,
    turning: bool,
    *options: Any,
) -> float | Array:
    """1 / (u* Λ⁻¹ u) for a state and directions u (3,) or (batch, 3): () or (batch,).

    Infinite where blocked. States and directions are one batch, or one of them is single.
    """
    at, kernel = _prepared(mech, node, turning, *options)
    if kernel is not None:
        value = kernel(q, direction, at.least)
        if not value.all():
            unit_directions(direction, 3)  # raises for a zero direction: then nothing is blocked
    else:
        u = unit_directions(direction, 3)
        both = (u, np.zeros_like(u)) if turning else (np.zeros_like(u), u)
        value = _response(at, at.mech.check_q(q), np.concatenate(both, axis=-1))
    if value.ndim == 0:
        return 1.0 / float(value) if value else math.inf
    with np.errstate(divide="ignore"):
        return 1.0 / value


def felt_call(
    mech: Mechanism | Embedded, node: str, turning: bool, *options: Any
) -> Callable[..., float | None] | None:
    """The bare call of `felt` for one state and direction, in which the node can move."""
    at, kernel = _prepared(mech, node, turning, *options)
    if kernel is None or kernel.quick is None:
        return None
    bare, least = kernel.quick, at.least

    def one_state(q: ArrayLike, direction: ArrayLike) -> float | None:
        value = bare(q, direction, least)
        return 1.0 / float(value) if value is not None and value else None

    return one_state


@once_per_mechanism
def _prepared(
    mech: Mechanism | Embedded,
    node: str,
    turning: bool,
    frame: Frame,
    loops: Loops,
    tolerance: float,
) -> tuple[Setting, Any]:
    """The checked request, and the kernel for an open tree."""
    at = setting(mech, node, frame, loops, tolerance)
    if not at.by_kernel:
        return at, None
    return at, written(cast(Mechanism, at.mech), ALONG[frame, turning], node)


def _response(at: Setting, q: Array, w: Array) -> Array:
    """w* Λ⁻¹ w for directions w (6,) or (batch, 6), 0 where blocked."""
    if q.ndim > 2:
        raise ShapeError(f"q has shape {q.shape}; it must be (nq,) or (batch, nq).")
    try:
        lead = np.broadcast_shapes(q.shape[:-1], w.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"q has {len(q)} states and direction {len(w)} rows; give one direction for all, or "
            "one for each state."
        ) from None
    rows = lead or (1,)
    node_motions = motions(at, np.broadcast_to(q, (*rows, q.shape[-1])))
    return node_motions.response(np.broadcast_to(w, (*rows, 6))).reshape(lead)


def along(at: Writing, frame: Frame, turning: bool) -> Any:
    """u* Λ⁻¹ u as a formula: |D^(-½) (I - H ψ K) J* w|², 0 where J* w is negligible."""
    _, u, (length, tolerance) = at.q, at.read("direction", 3), at.read("least", 2)
    largest = maximum(maximum(absolute(u[0]), absolute(u[1])), absolute(u[2]))
    u = u / largest  # so that squares neither overflow nor underflow
    u, none = u / norm(u), np.zeros(3)
    w = np.concatenate([u, none] if turning else [none, u])
    of_node = rot_W @ J if frame == "world" else J
    jacobian, pull = at.value(of_node, articulated.whitening @ of_node.T @ f, f=w)
    size = np.concatenate([w[:3] / length, w[3:]])
    largest = norm(_scaled(jacobian, length).ravel())
    there = norm(jacobian.T @ w) - tolerance * largest * norm(size)
    eps = root_of(at).solved(pull[:, None])[:, 0]
    return gate(there, dot(eps, eps))


def principal(at: Writing, frame: Frame) -> Any:
    """The formula of Λ⁻¹ (6, 6), and for turning and moving Λ, roots and axes.

    Roots of principal responses (3,) are zero where blocked; the largest entry of an axis, a
    column, is positive.
    """
    _, (length, tolerance) = at.q, at.read("least", 2)
    of_node = rot_W @ J if frame == "world" else J
    jacobian, columns = at.value(of_node, articulated.whitening @ of_node.T)
    A, rows = root_of(at).solved(columns).T, _scaled(jacobian, length)
    results, least = [A @ A.T], tolerance * norm(rows.ravel())
    for block in (TURNING, MOVING):
        _, values = singular(at, rows[block], vectors=False)
        axes, roots = singular(at, A[block])
        exists = np.array([gate(value - least, 1.0) for value in values])
        inverse = exists / np.array([where(e, r, 1.0) for e, r in zip(exists, roots, strict=True)])
        half = axes * inverse
        results += [half @ half.T, exists * roots, np.array([_signed(x) for x in axes.T]).T]
    return tuple(results)


def _signed(axis: Any) -> Any:
    """The axis (3,) with its largest entry positive."""
    largest = axis[0]
    for entry in axis[1:]:
        largest = where(absolute(entry) - absolute(largest), entry, largest)
    return where(-largest, -1.0, 1.0) * axis


def _scaled(jacobian: Any, length: Any) -> Any:
    """Rows in metres (6, nv)."""
    return np.concatenate([length * jacobian[:3], jacobian[3:]])


FRAMES: tuple[Frame, ...] = ("node", "world")
ALONG = {(x, turn): Formula(along, (x, turn)) for x in FRAMES for turn in (False, True)}
PRINCIPAL = {frame: Formula(principal, (frame,), tuple("abcdefg")) for frame in FRAMES}


def whitened(mech: Mechanism | Embedded, q: Array, rows: Array) -> Array:
    """Innovations (n, k, nv) of rows of joint forces (n, k, nv) in states (n, nq)."""
    if not rows.size:
        return rows
    if isinstance(mech, Embedded):  # blocks of D differ in size: use the root of the whole 𝓜
        A: Array = kernel(mech, "mass_matrix")(q)
        root = np.linalg.cholesky(A)
        columns = np.linalg.solve(root, np.swapaxes(rows, 1, 2))
        return np.asarray(np.swapaxes(columns, 1, 2), dtype=np.float64)
    flat = innovations(mech, np.repeat(q, rows.shape[1], axis=0), rows.reshape(-1, rows.shape[2]))
    return flat.reshape(rows.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """Rows of the motions of a node and the same whitened, for each of n states.

    Attributes:
        at: The node.
        rows: Rows in metres (n, 6, nv) of motions that loops allow, angular ones first.
        A: The same rows whitened, not scaled (n, 6, nv): Λ⁻¹ = A A*.
        largest: The largest motion of each state, with open loops (n,) [m].
    """

    at: Setting
    rows: Array
    A: Array
    largest: Array

    @property
    def fine(self) -> NDArray[np.bool_]:
        """States with a result (n,); a warning has reported the others."""
        return np.asarray(np.isfinite(self.A).all(axis=(1, 2)), dtype=np.bool_)

    @property
    def inverse(self) -> Array:
        """Λ⁻¹ (n, 6, 6)."""
        return self.A @ np.swapaxes(self.A, 1, 2)

    def response(self, w: Array) -> Array:
        """w* Λ⁻¹ w for w (n, 6), 0 where blocked (n,)."""
        moved = np.einsum("nij,ni->nj", self.rows, w / self.at.scale)
        size = np.linalg.norm(w / self.at.scale, axis=-1)
        there = np.linalg.norm(moved, axis=-1) > self.at.tolerance * self.largest * size
        eps = np.einsum("nij,ni->nj", self.A, w)
        return np.where(there, np.einsum("ni,ni->n", eps, eps), 0.0)

    def principal(self, block: slice) -> Principal:
        """The singular values of a block of A."""
        values = np.linalg.svd(self.rows[:, block], compute_uv=False)
        rank = (values > self.at.tolerance * self.largest[:, None]).sum(axis=1)
        # Through the triangle: A has one column for each degree of freedom.
        A = np.where(self.fine[:, None, None], self.A[:, block], 0.0)
        padded = np.zeros((len(A), A.shape[1], A.shape[1]))
        R = np.linalg.qr(np.swapaxes(A, 1, 2))[1]
        padded[:, : R.shape[1]] = R
        left, singular, _ = np.linalg.svd(np.swapaxes(padded, 1, 2))
        return Principal(singular, left, rank)


@dataclass(frozen=True, slots=True, eq=False)
class Principal:
    """A block of the response along its axes, for each of n states.

    Attributes:
        roots: Roots of the principal responses (n, 3), the easiest first.
        axes: Their directions (n, 3, 3), as columns.
        rank: How many of them are possible motions (n,); the others are blocked.
    """

    roots: Array
    axes: Array
    rank: NDArray[np.int64]


def motions(at: Setting, q: Array) -> Motions:
    """The motions of a node in states (n, nq), with the loops that act closed."""
    J = kernel(at.mech, "jacobian", at.node, frame=at.frame)(q)
    scaled = at.scale[:, None] * J
    if not at.closed:
        return Motions(at, scaled, whitened(at.mech, q, J), np.linalg.norm(scaled, axis=(-1, -2)))
    assert isinstance(at.mech, Mechanism)
    rows, A, largest = np.zeros(J.shape), np.zeros(J.shape), np.zeros(len(q))
    for i, space in enumerate(velocity_spaces(at.mech, q)):
        blocked = np.concatenate([J[i], space.blocked])[None]
        A[i] = _projected(whitened(at.mech, q[i : i + 1], blocked)[0])
        opened = scaled[i] * space.scale.columns
        rows[i] = opened - opened @ space.right.T @ space.right
        largest[i] = np.linalg.norm(opened)
    return Motions(at, rows, A, largest)


def _projected(rows: Array) -> Array:
    """The first six rows without their components along the others."""
    A, across = rows[:6], np.linalg.qr(rows[6:].T)[0]  # Q
    for _ in range(2):  # twice, for orthogonality to the last digit
        A = A - A @ across @ across.T
    return A
