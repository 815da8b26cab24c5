"""Motions that loops and couplings leave, in formulas: rows of nodes or tasks, and their inertia.

With L a root of the mass matrix, 𝓜 = L L*, whitened rows A = J L⁻* and R the independent rows of
J_c (`velocity_space.py`), whitened R L⁻* = T* Q*:

    A (I - Q Q*)                        whose product with its adjoint is J 𝓜_c⁻¹ J*
    L⁻* (I - Q Q*) A*                   the accelerations that forces along the rows cause
    J C (I - V V*)                      the possible motions, measured by C,   R = V* C⁻¹

with 𝓜_c⁻¹ = 𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹. Nothing is squared before it is inverted, and
nothing large is subtracted: rows of J_c that are redundant, or nearly so, cost no digits.
Source: 000 (5.11) and section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algebra import mass
from linkwise.arguments import untracked
from linkwise.codegen.scalar.orthogonal import (
    Reflected,
    across,
    independent,
    longest_square,
    reflected,
    solved,
)
from linkwise.dynamics.closure import (
    CLOSED,
    blocked_inputs,
    constraint_bias,
    constraint_jacobian,
    finite_state,
    is_long,
    program_of,
    setting_of,
)
from linkwise.dynamics.kernels import Loops, is_closed
from linkwise.dynamics.mass_root import LARGE, MassRoot, mass_root
from linkwise.dynamics.velocity_space import LEAST, TOLERANCE, scale
from linkwise.errors import LinkwiseError
from linkwise.model.closure import closure_nodes, constraint_sizes, is_traceable
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.choice import gate, minimum
from linkwise.sweeps.interpret import interpreted

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


SURE = 1e-3
"""Rows of J_c of which this part of the longest is left across to those before are independent of
them, whatever the order."""


class HeldRows(NamedTuple):
    """J_c, in a formula.

    Attributes:
        rows: D J_c C (m, nv), in one unit.
        columns: C (nv,).
        floor: The least length that the longest row counts with.
        usual: Rows that are usually independent, on which all others usually depend; none where
            that is not known.
    """

    rows: Any
    columns: Any
    floor: Any
    usual: tuple[int, ...]


class HeldMotion(NamedTuple):
    """Rows (k, nv) in a closed chain, in a formula.

    Attributes:
        root: L.
        allowed: Rows (k, p) with the products of J C (I - V V*).
        whitened: Rows (k, p) with the products of A (I - Q Q*).
        rows: A (I - Q Q*) (k, nv); none where they are not needed.
        doubtful: Whether rows were chosen one by one, as a number that is positive then.
    """

    root: MassRoot
    allowed: Any
    whitened: Any
    rows: Any
    doubtful: Any

    @property
    def response(self) -> Any:
        """The accelerations (nv, k) that unit forces along the rows cause."""
        return self.root.unwhitened(self.rows.T)


def held_motion(
    at: Writing, J: Any, held: HeldRows, *, response: bool = False, scaled: bool = True
) -> HeldMotion:
    """What loops and couplings leave of the rows J (k, nv).

    The usual rows are reflected as they are. In states where one of them depends on others, or
    another one does not, rows are chosen one by one, the longest first.

    Args:
        at: The formula.
        J: The rows.
        held: Those of loops and couplings.
        response: Whether the response is needed.
        scaled: Whether possible motions are measured by C; otherwise J C (I - V V*) C⁻¹ counts.
    """
    rows, columns, floor, usual = held
    root = mass_root(at, at.value(mass) if at.mech.nv < LARGE else None)
    opened, (k, n), m, r = J * columns, J.shape, len(rows), len(usual)
    unit: Any = 1.0 if scaled else columns
    if not usual:
        V, exists, _ = independent(at, rows, TOLERANCE, floor)
        white = root.whitened(np.concatenate([(V / columns).T, J.T], axis=1)).T
        A = across(at, white[m:], white[:m], exists)
        return HeldMotion(root, (opened - (opened @ V.T) @ V) / unit, A, A, 1.0)
    span, width = reflected(rows[list(usual)]), k if n > k else n
    white = root.whitened(np.concatenate([(rows[list(usual)] / columns).T, J.T], axis=1)).T
    seen, free = reflected(white[:r]), white[r:]
    inside = seen.across(free)
    back = seen.back(inside) if response else free[:0]
    allowed = span.across(opened)
    allowed = allowed if scaled else span.back(allowed) / columns
    parts = [_fitted(allowed, width), _fitted(inside, width), back]

    doubtful = _doubt(rows, usual, span, floor)
    V, exists, _ = independent(at, rows, TOLERANCE, floor, when=doubtful)
    above = np.triu_indices(n)

    def whiten(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        triangle = np.full((n, n), 0.0, dtype=object)
        triangle[above] = given
        return solved(triangle, (x.reshape(m, n) / columns).T).T.ravel(), 0.0

    def choose(at: Any, x: Any, given: Any) -> tuple[Any, Any]:
        V, opened, A = np.split(given.reshape(-1, n), [m, m + k])
        allowed = _fitted((opened - (opened @ V.T) @ V) / unit, width)
        return _joined([allowed, _fitted(A, width), A if response else A[:0]]), 0.0

    R, _ = at.loop(whiten, V.ravel(), root.triangle[above], most=1, when=doubtful)
    A = across(at, free, R.reshape(m, n), exists, when=doubtful)
    x, _ = at.loop(choose, _joined(parts), _joined([V, opened, A]), most=1, when=doubtful)
    each = np.split(x, np.cumsum([part.size for part in parts])[:-1])
    allowed, A, back = (y.reshape(part.shape) for y, part in zip(each, parts, strict=True))
    return HeldMotion(root, allowed, A, back, doubtful)


def _joined(arrays: list[Any]) -> Any:
    return np.concatenate([x.ravel() for x in arrays])


def _fitted(W: Any, width: int) -> Any:
    """Rows with the same products in another number of columns."""
    if W.shape[1] > width:
        return reflected(W).triangle
    return np.concatenate([W, np.zeros((len(W), width - W.shape[1]))], axis=1)


def _doubt(rows: Any, usual: tuple[int, ...], span: Reflected, floor: Any) -> Any:
    """Positive where it takes a closer look to see which rows are independent."""
    square = longest_square(rows, floor)
    left = reduce(minimum, [x * x for x in span.triangle.diagonal()])
    clear: Any = gate(left - SURE * SURE * square, 1.0)
    others = span.across(np.delete(rows, usual, axis=0))
    if len(others):
        clear = gate(TOLERANCE**2 * square - longest_square(others, 0.0), clear)
    return 0.5 - clear


@dataclass(slots=True, eq=False)
class _Usual:
    """Rows of J_c that are independent in the first state; None before there is one."""

    rows: tuple[int, ...] | None = None


@once_per_mechanism
def _usual(mech: Mechanism) -> _Usual:
    return _Usual()


def usual_rows(
    mech: Mechanism | Embedded, q: ArrayLike, loops: Loops = "closed"
) -> tuple[int, ...]:
    """Rows of J_c that are usually independent: those of the first state, if that is clear.

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq).
        loops: "open" for none.
    """
    if not is_closed(mech, loops):
        return ()
    assert isinstance(mech, Mechanism)
    known = _usual(mech)
    if known.rows is None:
        if mech.nv >= LARGE or is_long(mech) or not all(map(is_traceable, mech.loops)):
            known.rows = ()
            return ()
        try:
            rows = np.reshape(finite_state(mech, untracked(q))[0], (-1, mech.nq))
        except LinkwiseError:
            return ()  # the kernel says what does not fit
        if not len(rows):
            return ()
        known.rows = _independent_rows(mech, rows[0])
    return known.rows


def _independent_rows(mech: Mechanism, q: Array) -> tuple[int, ...]:
    """Rows of J_c in a state of which something is left across to those before."""
    program, measure = program_of(mech, "constraint_jacobian"), scale(mech)
    J_c = interpreted(program, mech, q, nodes=closure_nodes(mech)).result()
    left = measure.rows[:, None] * J_c * measure.columns
    longest = max(float(np.linalg.norm(left, axis=1).max()), LEAST * measure.length)
    usual = list[int]()
    for i in range(len(left)):
        row, size = left[i], float(np.linalg.norm(left[i]))
        if SURE * longest < size:
            usual.append(i)
            left = left - np.outer(left @ row, row) / size**2
        elif size > TOLERANCE * longest:
            return ()
    return tuple(usual)


def loops_of(at: Writing, usual: tuple[int, ...] = (), mech: Mechanism | None = None) -> HeldRows:
    """The loops and couplings of the mechanism, or of another one of the same bodies."""
    measure = scale(mech or at.mech)
    rows = measure.rows[:, None] * constraint_rows(at, mech) * measure.columns
    return HeldRows(rows, measure.columns, LEAST * measure.length, usual)


def constraint_rows(at: Writing, mech: Mechanism | None = None) -> Any:
    """J_c (m, nv); an input where it has no straight code."""
    held = mech or at.mech
    if is_long(held):
        m = sum(constraint_sizes(held))
        return at.read("J_c", m * held.nv).reshape(m, held.nv)
    J_c = CLOSED["constraint_jacobian"](setting_of(held))
    return at.value(J_c, nodes=closure_nodes(held), mech=held)


def bias_rows(at: Writing) -> Any:
    """γ = J̇_c v (m,); an input where it has no straight code."""
    mech = at.mech
    if is_long(mech):
        return at.read("gamma", sum(constraint_sizes(mech)))
    return at.value(CLOSED["constraint_bias"](setting_of(mech)), nodes=closure_nodes(mech))


def held_inputs(
    mech: Mechanism, kernel: Kernel, q: ArrayLike, v: ArrayLike | None = None
) -> Mapping[str, Array]:
    """Inputs of a kernel of such a formula that are not formulas of q and v.

    Args:
        mech: The mechanism.
        kernel: The kernel.
        q: Joint positions (nq,) or (batch, nq).
        v: Joint velocities (nv,) or (batch, nv), for the bias.
    """
    names = [name for name, _ in kernel.device.inputs]
    if "J_c" not in names and "S" not in names:
        return {}
    q, v = finite_state(mech, q, v)
    if "J_c" in names:
        given = {"J_c": _in_a_row(constraint_jacobian(mech, q))}
        return given if v is None else {**given, "gamma": constraint_bias(mech, q, v)}
    given = blocked_inputs(mech, q, v)
    return {name: x for name, x in given.items() if name in names}


def _in_a_row(matrix: Array) -> Array:
    """Rows of matrices (..., m, n) behind one another (..., m n), of an empty batch too."""
    *lead, m, n = matrix.shape
    return matrix.reshape(*lead, m * n)
