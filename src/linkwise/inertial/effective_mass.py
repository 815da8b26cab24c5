"""Effective mass and inertia: what a push along a line or a turn about it feels at a node."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from linkwise.arguments import option
from linkwise.bare_call import begins_bare
from linkwise.dynamics.held_motion import usual_rows
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.response import Loops, felt, felt_call, unit_directions
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call
from linkwise.spatial.array import Array, ArrayLike, floats

What: TypeAlias = Literal["mass", "rotation"]
"""Translation or rotation."""


@runtime_checkable
class HasInverse(Protocol):
    """A space with a response to forces: `lw.dynamics.OperationalSpace`, a task space."""

    @property
    def inverse(self) -> Array:
        """Λ⁻¹ (m, m) or (batch, m, m)."""
        ...


@begins_bare("node", "what", "frame", "loops", "tolerance")
def effective_mass(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: str,
    direction: ArrayLike,
    *,
    what: What = "mass",
    frame: Frame = "world",
    loops: Loops = "closed",
    tolerance: float = TOLERANCE,
) -> float | Array:
    """The mass at a node along a direction, or the rotational inertia about it.

    Expression:
        1 / m_u = u* Λ_v⁻¹ u = J_u 𝓜⁻¹ J_u*,   Λ_v⁻¹ = J_v 𝓜⁻¹ J_v*,   J_u = u* J_v     "mass"
        1 / I_u = u* Λ_ω⁻¹ u = J_u 𝓜⁻¹ J_u*,   Λ_ω⁻¹ = J_ω 𝓜⁻¹ J_ω*,   J_u = u* J_ω     "rotation"
    with the armature of the mechanism in 𝓜. From rest, without gravity, a unit force along u
    accelerates the node's origin by 1 / m_u along u; the node is free to turn, and to move
    perpendicular to u. A unit moment about u accelerates it by 1 / I_u about u, for any point of a
    body. (003 calls I_u the effective inertia; `lw.operational_inertia` is the full Λ.)
    Source: 003 (28) to (31).

    Args:
        node: Name of a node or body; the force acts at its origin.
        direction: u (3,), or (batch, 3) with one for each state, of any nonzero length. For one
            state, a batch of directions gives one result for each.
        what: "mass", or "rotation" for the rotational inertia.
        frame: Axes of the direction: those of the "world" or of the "node".
        tolerance: Motions below this fraction of the largest count as blocked.

    Returns:
        m_u [kg] or I_u [kg m²], a float or (batch,). Infinite where the node cannot move along u,
        or turn about it.

    Raises:
        UnknownNameError: The mechanism has no such node.
        ShapeError: A direction that is zero, or of another shape.
        SingularHingeError: Nothing resists the hinge of the named body. In a batch its row is NaN
            instead, with a warning.
    """
    option(what, get_args(What), "what")
    usual = usual_rows(mech, q, loops)
    options = node, what == "rotation", frame, loops, tolerance, usual
    choices = node, what, frame, loops, tolerance
    keep_bare_call(mech, "effective_mass", choices, felt_call(mech, *options))
    return felt(mech, q, direction, *options)


ROUNDING = 1e-13
"""Responses below this fraction of the largest are rounding of a matrix product."""


def directional_inertia(
    space: HasInverse | ArrayLike, direction: ArrayLike, *, tolerance: float = ROUNDING
) -> float | Array:
    """The inertia of any space along one of its directions.

    Expression:
        σ_w(Λ) = 1 / (w* Λ⁻¹ w),   w of unit length
    Source: 003 section 5.2, in Theorem 2.

    With w in three dimensions this is (30) or (31). In a space that mixes turning and moving, w has
    mixed units and σ_w depends on the unit of length; an inequality between two σ_w of one w, as in
    Theorem 2, does not.

    Args:
        space: A `lw.dynamics.OperationalSpace`, a task space, or the response Λ⁻¹ (m, m) or
            (batch, m, m): symmetric, with no negative eigenvalue.
        direction: w (m,) or (batch, m), of any nonzero length; scaled to length one.
        tolerance: Responses below this fraction of the largest entry of Λ⁻¹ count as zero.

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
            "Λ⁻¹ of a mechanism. Use lw.dynamics.operational_inertia_inverse, or a block of it."
        )
    with np.errstate(divide="ignore"):
        result = 1.0 / np.where(value <= small, 0.0, value)
    return float(result) if np.ndim(result) == 0 else result


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
            f"the response Λ⁻¹ is not symmetric: two entries differ by {skew:.3g}. Use the result "
            "of lw.dynamics.operational_inertia_inverse."
        )
    return matrix
