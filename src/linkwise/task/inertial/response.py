"""How a node answers to a push, with enough digits to tell what is heavy from what is blocked.

The response to forces, Λ⁻¹ = J 𝓜⁻¹ J*, is a product of rows with themselves: with the innovations
of the rows of J,

    A = (D^(-½) (I - H ψ K) J*)*,       Λ⁻¹ = A A*,       w* Λ⁻¹ w = |A* w|².

Λ⁻¹ itself comes quickest, from the kernel of `operational_inertia_inverse`. What is so small in it
that rounding shows is taken from A, which is not squared: half of the digits more. A direction is
blocked where J* w is nothing beside the largest motion there is, with turning measured at a length.

With loops closed, rows of J_c are whitened in the same way and taken out of A (000, section 6):
A (I - Q Q*), A_c* = Q T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.diagonal import innovations
from linkwise.dynamics.kernels import check_mechanism, kernel
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.operational_space import TOLERANCE, reach
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.dynamics.velocity_space import VelocitySpace, velocity_spaces
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

WEAK = 1e-4
"""Responses below this part of the largest are computed without squares: 1e-12 of them is left."""


TURNING, MOVING = slice(0, 3), slice(3, 6)
"""Rows of angular and of linear velocities."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked about, checked: one node of a mechanism.

    Attributes:
        mech: The mechanism.
        node: Name of the node.
        frame: Axes of directions.
        closed: Whether there are loops or couplings that act.
        length: Where turning is compared with moving [m].
        tolerance: Motions below this part of the largest are called blocked.
    """

    mech: Mechanism | Embedded
    node: str
    frame: Frame
    closed: bool
    length: float
    tolerance: float

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
    """Check what does not depend on the state; raises for what is unknown."""
    check_mechanism(mech)
    _check_axes(frame)
    if not isinstance(node, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"node is a {type(node).__name__}; it must be the name of one node or body."
        )
    mech.node(node)  # raises for one that is not there
    if not (isinstance(tolerance, float | int) and 0.0 < tolerance < 1.0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"tolerance is {tolerance!r}; it must be a number between 0 and 1.")
    closed = is_closed(mech, loops)
    length = reach(mech, (node,))
    mech = mech if closed else tree_of(mech)
    return Setting(mech, node, frame, closed, length, float(tolerance))


def _check_axes(frame: object) -> None:
    """Raise unless it is a word for axes; tells where another one is meant."""
    try:
        check_frame(frame)
    except ModelError as error:
        meant = {"reference": "world", "base": "world", "body": "node", "local": "node"}
        word = meant.get(frame) if isinstance(frame, str) else None
        hint = f" Here {frame!r} is {word!r}." if word else ""
        raise ModelError(
            f"{error} These are the axes of directions and results; inertial properties have those "
            f"of the 'world' by default.{hint}"
        ) from None


def unit_directions(direction: ArrayLike, size: int, what: str = "direction") -> Array:
    """Directions of any length as unit vectors (size,) or (batch, size)."""
    found = floats(direction, what)
    if found.ndim not in (1, 2) or found.shape[-1] != size:
        raise ShapeError(
            f"{what} has shape {found.shape}; it must be ({size},) or (batch, {size})."
        )
    if not np.isfinite(found).all():
        raise ShapeError(f"{what} must be finite; found {found.tolist()}.")
    largest = np.abs(found).max(axis=-1, keepdims=True)
    if not largest.all():
        row = "" if found.ndim == 1 else f" in row {int(np.argmin(largest))}"
        raise ShapeError(f"{what} is the zero vector{row}; give a direction of any other length.")
    found = found / largest  # so that neither very long nor very short ones are lost in squares
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def response(at: Setting, q: ArrayLike, w: Array) -> Array:
    """w* Λ⁻¹ w for a state and directions w (6,) or (batch, 6): () or (batch,); 0 where blocked.

    States and directions are of one batch, or one of them is single.
    """
    q = at.mech.check_q(q)
    lead = _lead(q, w)
    if at.closed:
        rows = lead or (1,)
        found = motions(at, np.broadcast_to(q, (*rows, q.shape[-1])))
        return found.response(np.broadcast_to(w, (*rows, 6))).reshape(lead)
    inside = kernel(at.mech, "operational_inertia_inverse", at.node, frame=at.frame)(q)
    value = np.einsum("...i,...ij,...j->...", w, inside, w)
    # In one unit: w / scale is a force, scale Λ⁻¹ scale a response in 1/kg.
    largest = (np.diagonal(inside, axis1=-2, axis2=-1) * at.scale**2).max(axis=-1)
    size = np.linalg.norm(w / at.scale, axis=-1)
    weak = np.broadcast_to(value <= WEAK * largest * size**2, lead)
    if weak.any():
        value = np.array(np.broadcast_to(value, lead))
        states = np.broadcast_to(q, (*lead, q.shape[-1]))[weak]
        value[weak] = _without_squares(at, states, np.broadcast_to(w, (*lead, 6))[weak])
    return np.asarray(value)


def _lead(q: Array, w: Array) -> tuple[int, ...]:
    if q.ndim > 2:
        raise ShapeError(f"q has shape {q.shape}; it must be (nq,) or (batch, nq).")
    try:
        return np.broadcast_shapes(q.shape[:-1], w.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"q has {len(q)} states and direction {len(w)} rows; give one direction for all, or "
            "one for each state."
        ) from None


def _without_squares(at: Setting, q: Array, w: Array) -> Array:
    """|D^(-½) (I - H ψ K) J* w|² of states in a row, 0 where J* w is nothing."""
    J = kernel(at.mech, "jacobian", at.node, frame=at.frame)(q)
    tau = np.einsum("nij,ni->nj", J, w)
    largest = np.linalg.norm(J * at.scale[:, None], axis=(-1, -2))
    size = np.linalg.norm(w / at.scale, axis=-1)
    there = np.linalg.norm(tau, axis=-1) > at.tolerance * largest * size
    found = np.zeros(len(q))
    if there.any():
        eps = whitened(at.mech, q[there], tau[there, None])[:, 0]
        found[there] = np.einsum("ni,ni->n", eps, eps)
    return found


def whitened(mech: Mechanism | Embedded, q: Array, rows: Array) -> Array:
    """Innovations (n, k, nv) of rows of joint forces (n, k, nv) in states (n, nq)."""
    if not rows.size:
        return rows
    if isinstance(mech, Embedded):  # D of aggregates differ in size: by the root of 𝓜 as a whole
        root = np.linalg.cholesky(kernel(mech, "mass_matrix")(q))
        found = np.linalg.solve(root, np.swapaxes(rows, 1, 2))
        return np.asarray(np.swapaxes(found, 1, 2), dtype=np.float64)
    flat = innovations(mech, np.repeat(q, rows.shape[1], axis=0), rows.reshape(-1, rows.shape[2]))
    return flat.reshape(rows.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """Rows of the motions of a node and the same whitened, for each of n states.

    Attributes:
        at: What it is about.
        rows: Rows in metres (n, 6, nv) of motions that loops leave, angular ones first.
        A: The same rows whitened, in their own units (n, 6, nv): Λ⁻¹ = A A*.
        largest: The largest motion of each state, with loops open (n,) [m].
    """

    at: Setting
    rows: Array
    A: Array
    largest: Array

    @property
    def fine(self) -> NDArray[np.bool_]:
        """States with a result (n,); the others are in trouble, which a warning told."""
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
        """What a block of A does, by its singular values."""
        values = np.linalg.svd(self.rows[:, block], compute_uv=False)
        rank = (values > self.at.tolerance * self.largest[:, None]).sum(axis=1)
        # By the triangle first: A is as wide as there are freedoms.
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
        rank: How many of them are motions that exist (n,); the others are blocked.
    """

    roots: Array
    axes: Array
    rank: NDArray[np.int64]


def principal_responses(at: Setting, q: Array) -> tuple[Array, Principal, Principal]:
    """Λ⁻¹ (n, 6, 6) of states (n, nq), and its principal values for turning and for moving.

    By the eigenvalues of the kernel's Λ⁻¹; where one is weak, without squares. States in trouble
    have NaN in Λ⁻¹, and anything for the rest.
    """
    if at.closed:
        found = motions(at, q)
        return found.inverse, found.principal(TURNING), found.principal(MOVING)
    inverse = kernel(at.mech, "operational_inertia_inverse", at.node, frame=at.frame)(q)
    inverse = 0.5 * (inverse + np.swapaxes(inverse, 1, 2))
    fine = np.asarray(np.isfinite(inverse).all(axis=(1, 2)), dtype=np.bool_)
    clean = np.where(fine[:, None, None], inverse, np.eye(6))
    largest = (np.diagonal(clean, axis1=1, axis2=2) * at.scale**2).max(axis=1)
    strong, parts = np.ones(len(q), dtype=np.bool_), list[Principal]()
    for block, length in ((TURNING, at.length), (MOVING, 1.0)):
        values, axes = np.linalg.eigh(clean[:, block, block])
        strong &= values[:, 0] * length**2 > WEAK * largest
        roots = np.sqrt(np.maximum(values[:, ::-1], 0.0))
        parts.append(Principal(roots, axes[:, :, ::-1].copy(), np.full(len(q), 3)))
    weak = np.flatnonzero(fine & ~strong)
    if len(weak):
        found = motions(at, q[weak])
        for part, block in zip(parts, (TURNING, MOVING), strict=True):
            exact = found.principal(block)
            part.roots[weak], part.axes[weak] = exact.roots, exact.axes
            part.rank[weak] = exact.rank
    return inverse, parts[0], parts[1]


def motions(at: Setting, q: Array) -> Motions:
    """The motions of a node in states (n, nq), with loops closed where they act."""
    J = kernel(at.mech, "jacobian", at.node, frame=at.frame)(q)
    scaled = at.scale[:, None] * J
    if not at.closed:
        return Motions(at, scaled, whitened(at.mech, q, J), np.linalg.norm(scaled, axis=(-1, -2)))
    assert isinstance(at.mech, Mechanism)
    rows, found = np.zeros(J.shape), np.zeros(J.shape)
    largest = np.zeros(len(q))
    for i, space in enumerate(velocity_spaces(at.mech, q)):
        found[i] = _left(whitened(at.mech, q[i : i + 1], _with(J[i], space))[0])
        opened = scaled[i] * space.scale.columns
        rows[i] = opened - opened @ space.right.T @ space.right
        largest[i] = np.linalg.norm(opened)
    return Motions(at, rows, found, largest)


def _with(J: Array, space: VelocitySpace) -> Array:
    """The rows of a node (6, nv), with those that loops block below them."""
    return np.concatenate([J, space.blocked])[None]


def _left(rows: Array) -> Array:
    """What is left of the first six rows without the directions of the others."""
    A, across = rows[:6], np.linalg.qr(rows[6:].T)[0]  # Q
    for _ in range(2):  # twice, so that what is left is orthogonal to the last digit
        A = A - A @ across @ across.T
    return A
