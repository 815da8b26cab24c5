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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algebra import mass
from linkwise.codegen.scalar.orthogonal import across, independent
from linkwise.dynamics.closure import (
    CLOSED,
    blocked_inputs,
    constraint_bias,
    constraint_jacobian,
    finite_state,
    is_long,
    setting_of,
)
from linkwise.dynamics.mass_root import LARGE, MassRoot, mass_root
from linkwise.dynamics.velocity_space import LEAST, TOLERANCE, scale
from linkwise.model.closure import closure_nodes, constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing


class HeldMotion(NamedTuple):
    """Rows (m, nv) in a closed chain, in a formula.

    Attributes:
        root: L.
        allowed: J C (I - V V*) (m, nv).
        whitened: A (I - Q Q*) (m, nv).
    """

    root: MassRoot
    allowed: Any
    whitened: Any

    @property
    def response(self) -> Any:
        """The accelerations (nv, m) that unit forces along the rows cause."""
        return self.root.unwhitened(self.whitened.T)


def held_motion(at: Writing, J: Any, rows: Any, columns: Any, floor: Any) -> HeldMotion:
    """What loops and couplings leave of the rows J (k, nv).

    Args:
        at: The formula.
        J: The rows.
        rows: D J_c C (m, nv), in one unit.
        columns: C (nv,).
        floor: The least length that the longest row counts with.
    """
    V, exists, _ = independent(at, rows, TOLERANCE, floor)
    root = mass_root(at, at.value(mass) if at.mech.nv < LARGE else None)
    white = root.whitened(np.concatenate([(V / columns).T, J.T], axis=1))
    A = across(at, white.T[len(V) :], white.T[: len(V)], exists)
    opened = J * columns
    return HeldMotion(root, opened - (opened @ V.T) @ V, A)


def loops_of(at: Writing) -> tuple[Any, Any, float]:
    """D J_c C, C and the floor of the mechanism's own loops and couplings, for `held_motion`."""
    measure = scale(at.mech)
    rows = measure.rows[:, None] * constraint_rows(at) * measure.columns
    return rows, measure.columns, LEAST * measure.length


def constraint_rows(at: Writing) -> Any:
    """J_c (m, nv); an input where it has no straight code."""
    mech = at.mech
    if is_long(mech):
        m = sum(constraint_sizes(mech))
        return at.read("J_c", m * mech.nv).reshape(m, mech.nv)
    return at.value(CLOSED["constraint_jacobian"](setting_of(mech)), nodes=closure_nodes(mech))


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


def given_loops(mech: Mechanism, q: ArrayLike) -> list[Array]:
    """The same of another mechanism in the same state, as inputs of a formula (`read_loops`)."""
    measure, (q, _) = scale(mech), finite_state(mech, q)
    rows = measure.rows[:, None] * constraint_jacobian(mech, q) * measure.columns
    floor = np.array([LEAST * measure.length])
    return [_in_a_row(rows), measure.columns, floor]


def read_loops(at: Writing, count: int) -> tuple[Any, Any, Any]:
    """Inputs of a formula: the rows of the loops of another mechanism, C and the floor."""
    nv = at.mech.nv
    rows = at.read("loops", count * nv).reshape(count, nv)
    return rows, at.read("columns", nv), at.read("floor", 1)[0]
