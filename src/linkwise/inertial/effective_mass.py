"""Effective mass and inertia: what is felt by who pushes a node along a line, or turns it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.response import Loops, felt, unit_directions
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


@runtime_checkable
class HasInverse(Protocol):
    """A space with a response to forces: `lw.dynamics.OperationalSpace`, a task space."""

    @property
    def inverse(self) -> Array:
        """Λ⁻¹ (m, m) or (batch, m, m)."""
        ...


def effective_mass(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: str,
    direction: ArrayLike,
    *,
    frame: Frame = "world",
    loops: Loops = "closed",
    tolerance: float = TOLERANCE,
) -> float | Array:
    """The mass that is felt at a node by a force along a direction.

    Expression:
        1 / m_u = u* Λ_v⁻¹ u = J_u 𝓜⁻¹ J_u*,   Λ_v⁻¹ = J_v 𝓜⁻¹ J_v*,   J_u = u* J_v
    with the armature of the mechanism in 𝓜. From rest, and without gravity, a unit force
    along u makes the node's origin accelerate by 1 / m_u along u; it is free to turn, and to move
    across u, as it likes.
    Source: 003 (28) and (30).

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        node: Name of a node or body; the force acts at its origin.
        direction: u (3,), or (batch, 3) with one for each state; of any length but zero. With one
            state, a batch of directions asks for all of them.
        frame: Axes of the direction: those of the "world" or of the "node".
        loops: Whether loops and couplings of the mechanism act, "closed", or are left "open".
        tolerance: Motions below this fraction of the largest are called blocked.

    Returns:
        m_u [kg], a float or (batch,). Infinite where the node cannot move along u at all: no force
        along it has an answer.

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those near.
        ShapeError: A direction that is zero, or of another shape.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning tells.
    """
    return felt(mech, q, node, direction, False, frame, loops, tolerance)


def effective_rotational_inertia(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: str,
    direction: ArrayLike,
    *,
    frame: Frame = "world",
    loops: Loops = "closed",
    tolerance: float = TOLERANCE,
) -> float | Array:
    """The inertia that is felt at a node by a moment about a direction.

    Expression:
        1 / I_u = u* Λ_ω⁻¹ u = J_u 𝓜⁻¹ J_u*,   Λ_ω⁻¹ = J_ω 𝓜⁻¹ J_ω*,   J_u = u* J_ω
    From rest, and without gravity, a unit moment about u makes the node accelerate by 1 / I_u about
    u. It does not depend on which point of a body is asked about. The document calls it effective
    inertia; `lw.operational_inertia` is all of Λ.
    Source: 003 (29) and (31).

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        node: Name of a node or body.
        direction: u (3,), or (batch, 3) with one for each state; of any length but zero. With one
            state, a batch of directions asks for all of them.
        frame: Axes of the direction: those of the "world" or of the "node".
        loops: Whether loops and couplings of the mechanism act, "closed", or are left "open".
        tolerance: Motions below this fraction of the largest are called blocked.

    Returns:
        I_u [kg m²], a float or (batch,). Infinite where the node cannot turn about u.

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those near.
        ShapeError: A direction that is zero, or of another shape.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning tells.
    """
    return felt(mech, q, node, direction, True, frame, loops, tolerance)


ROUNDING = 1e-13
"""Responses below this part of the largest are rounding of a matrix that was squared before."""


def directional_inertia(
    space: HasInverse | ArrayLike, direction: ArrayLike, *, tolerance: float = ROUNDING
) -> float | Array:
    """The inertia of a space along one of its directions, whatever the space is.

    Expression:
        σ_w(Λ) = 1 / (w* Λ⁻¹ w),   w of unit length
    Source: 003 section 5.2, in Theorem 2.

    With w in three dimensions this is (30) or (31). A space that mixes turning and moving has
    w of mixed units, and σ_w then depends on the unit of length; an inequality between two σ_w of
    one w, as in Theorem 2, does not.

    Args:
        space: A `lw.dynamics.OperationalSpace`, the space of a task, or the response Λ⁻¹ (m, m) or
            (batch, m, m) itself: symmetric, with no negative eigenvalue.
        direction: w (m,) or (batch, m), of any length but zero; scaled to length one.
        tolerance: What is below this part of the largest entry of Λ⁻¹ is called zero.

    Returns:
        σ_w, a float or (batch,). Infinite where no motion has a component along w.

    Raises:
        ShapeError: Shapes that do not fit, a matrix that is not symmetric, a direction of zero.
        ModelError: w* Λ⁻¹ w is negative: this is not the response of a mechanism.
    """
    inverse = space.inverse if isinstance(space, HasInverse) else space
    matrix = response_matrix(inverse, tolerance)
    w = unit_directions(direction, matrix.shape[-1])
    try:
        value = np.einsum("...i,...ij,...j->...", w, matrix, w)
    except ValueError:
        raise ShapeError(
            f"the space has {len(matrix)} states and direction {len(w)} rows; give one direction "
            "for all, or one for each."
        ) from None
    small = tolerance * np.abs(matrix).max(axis=(-1, -2))
    if (value < -small).any():
        raise ModelError(
            f"w* Λ⁻¹ w is {float(np.min(value)):.3g}, below zero: the matrix is not the response "
            "Λ⁻¹ of a mechanism. Give lw.operational_inertia_inverse, or a block of it."
        )
    return _inverse(np.where(value <= small, 0.0, value))


def response_matrix(value: ArrayLike, tolerance: float = ROUNDING) -> Array:
    """A checked Λ⁻¹ (..., m, m): square, finite, symmetric."""
    if not 0.0 < tolerance < 1.0:
        raise ModelError(f"tolerance is {tolerance!r}; it must be a number between 0 and 1.")
    matrix = floats(value, "the response Λ⁻¹")
    if matrix.ndim not in (2, 3) or matrix.shape[-1] != matrix.shape[-2] or not matrix.size:
        raise ShapeError(
            f"the response Λ⁻¹ has shape {matrix.shape}; it must be (m, m) or (batch, m, m)."
        )
    if not np.isfinite(matrix).all():
        raise ShapeError("the response Λ⁻¹ must be finite; found NaN or infinite entries.")
    skew = np.abs(matrix - np.swapaxes(matrix, -1, -2)).max()
    if skew > 1e-9 * np.abs(matrix).max():
        raise ShapeError(
            f"the response Λ⁻¹ is not symmetric: two entries differ by {skew:.3g}. Give it as "
            "lw.operational_inertia_inverse has it."
        )
    return matrix


def _inverse(value: Array) -> float | Array:
    """1 / value, infinite for zero."""
    with np.errstate(divide="ignore"):
        found = 1.0 / value
    return float(found) if np.ndim(found) == 0 else found
