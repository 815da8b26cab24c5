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
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.algebra import J, f, mass, rot_W
from linkwise.algebra.symbols import articulated
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import dot, singular, solved, triangle_of
from linkwise.dynamics.held_motion import held_inputs, held_motion, loops_of
from linkwise.dynamics.kernels import Loops, check_mechanism, is_closed, tree_of, written
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.dynamics.velocity_space import reach
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import absolute, gate, maximum, norm, where

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

Kind: TypeAlias = tuple[Literal["open", "held", "embedded"], tuple[int, ...]]
"""A tree; one whose loops and couplings are held, with the rows that are usually independent; one
that has them built in."""

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
        usual: Rows of loops and couplings that are usually independent.
        length: At which turning is compared with moving [m].
        tolerance: Motions below this fraction of the largest count as blocked.
    """

    mech: Mechanism | Embedded
    node: str
    frame: Frame
    closed: bool
    usual: tuple[int, ...]
    length: float
    tolerance: float

    @property
    def kind(self) -> Kind:
        """Which form the equations have."""
        if self.closed:
            return "held", self.usual
        return "embedded" if isinstance(self.mech, Embedded) else "open", ()

    def arrays(self, q: ArrayLike, formula: Kernel, **given: ArrayLike) -> list[Any]:
        """The inputs of a formula's kernel."""
        given |= {"q": q, "least": self.least}
        if self.closed:
            assert isinstance(self.mech, Mechanism)
            given |= held_inputs(self.mech, formula, q)
        return [given[name] for name, _ in formula.device.inputs]

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
    usual: tuple[int, ...] = (),
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
    return Setting(mech, node, frame, closed, usual, length, float(tolerance))


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
    value = kernel(*at.arrays(q, kernel, direction=direction))
    if not value.all():
        unit_directions(direction, 3)  # raises for a zero direction: then nothing is blocked
    if value.ndim == 0:
        return 1.0 / float(value) if value else math.inf
    with np.errstate(divide="ignore"):
        return 1.0 / value


def felt_call(
    mech: Mechanism | Embedded, node: str, turning: bool, *options: Any
) -> Callable[..., float | None] | None:
    """The bare call of `felt` for one state and direction, in which the node can move."""
    at, kernel = _prepared(mech, node, turning, *options)
    names = [name for name, _ in kernel.device.inputs]
    if kernel.quick is None or names != ["q", "direction", "least"]:
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
    usual: tuple[int, ...],
) -> tuple[Setting, Any]:
    """The checked request and its kernel."""
    at = setting(mech, node, frame, loops, tolerance, usual)
    return at, written(at.mech, _along(at.kind, frame, turning), node)


def along(at: Writing, kind: Kind, frame: Frame, turning: bool) -> Any:
    """u* Λ⁻¹ u as a formula: |L⁻¹ J* w|², 0 where J* w is negligible."""
    _, u, (length, tolerance) = at.q, at.read("direction", 3), at.read("least", 2)
    largest = maximum(maximum(absolute(u[0]), absolute(u[1])), absolute(u[2]))
    u = u / largest  # so that squares neither overflow nor underflow
    u, none = u / norm(u), np.zeros(3)
    w = np.concatenate([u, none] if turning else [none, u])
    size = np.concatenate([w[:3] / length, w[3:]])
    of_node = rot_W @ J if frame == "world" else J
    if kind[0] == "open":
        jacobian, pull = at.value(of_node, articulated.whitening @ of_node.T @ f, f=w)
        opened, allowed = jacobian, jacobian.T @ w
        eps = root_of(at).solved(pull[:, None])[:, 0]
    else:
        jacobian = at.value(of_node)
        A, rows, opened = _moved(at, kind, jacobian, (jacobian.T @ w)[None])
        eps, allowed = A[0], rows[0]
    largest = norm(_scaled(opened, length).ravel())
    return gate(norm(allowed) - tolerance * largest * norm(size), dot(eps, eps))


def _moved(at: Writing, kind: Kind, jacobian: Any, rows: Any) -> tuple[Any, Any, Any]:
    """Rows of a node whitened, what loops leave of them, and J as it would be with loops open."""
    if kind[0] == "held":
        loops = loops_of(at, kind[1])
        held = held_motion(at, rows, loops)
        return held.whitened, held.allowed, jacobian * loops.columns
    if kind[0] == "embedded":  # the blocks of D differ in size: by the root of 𝓜
        return solved(triangle_of(at.value(mass)), rows.T).T, rows, jacobian
    raise AssertionError(kind)


def principal(at: Writing, kind: Kind, frame: Frame) -> Any:
    """The formula of Λ⁻¹ (6, 6), and for turning and moving Λ, roots and axes.

    Roots of principal responses (3,) are zero where blocked; the largest entry of an axis, a
    column, is positive.
    """
    _, (length, tolerance) = at.q, at.read("least", 2)
    of_node = rot_W @ J if frame == "world" else J
    if kind[0] == "open":
        jacobian, columns = at.value(of_node, articulated.whitening @ of_node.T)
        A, allowed, opened = root_of(at).solved(columns).T, jacobian, jacobian
    else:
        jacobian = at.value(of_node)
        A, allowed, opened = _moved(at, kind, jacobian, jacobian)
    rows, least = _scaled(allowed, length), tolerance * norm(_scaled(opened, length).ravel())
    results = [A @ A.T]
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


@cache
def _along(kind: Kind, frame: Frame, turning: bool) -> Formula:
    return Formula(along, (kind, frame, turning))


@cache
def principal_formula(kind: Kind, frame: Frame) -> Formula:
    """The formula of `principal`, made once."""
    return Formula(principal, (kind, frame), tuple("abcdefg"))
