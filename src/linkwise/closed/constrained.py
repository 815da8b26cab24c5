"""Forward dynamics of mechanisms with loops and couplings, and the forces that keep them closed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.closed.closure import (
    constraint_bias,
    constraint_jacobian,
    constraint_names,
    constraint_sizes,
)
from linkwise.closed.velocity_space import scale
from linkwise.dynamics import forward_dynamics, mass_matrix_inverse
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

TOLERANCE = 1e-10
"""Singular values below this part of the largest count as zero."""


def closure_inertia_inverse(mech: Mechanism, q: ArrayLike) -> Array:
    """Ω = J_c 𝓜⁻¹ J_c*: how easily the constraints' rows are moved, one by the force of another.

    Expression:
        `J_c @ mass.inv @ J_c.T`; for arms that hold an object J 𝓜⁻¹ J* + A M(C)⁻¹ A*

    Source:
        JPL 88-11-II (3.1), (4.7)

    Args:
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].

    Returns:
        (m, m) or (batch, m, m).
    """
    J_c = constraint_jacobian(mech, q)
    return J_c @ mass_matrix_inverse(mech, q) @ np.swapaxes(J_c, -1, -2)


def constraint_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    frame: Frame = "node",
    closing: ArrayLike | None = None,
) -> Array:
    """λ: the forces along the rows of the constraints, of least norm where they are not unique."""
    return _solved(mech, q, v, tau, forces, frame, closing)[1]


def constrained_forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    frame: Frame = "node",
    closing: ArrayLike | None = None,
) -> Array:
    """v̇ under joint forces τ while loops and couplings hold."""
    return _solved(mech, q, v, tau, forces, frame, closing)[0]


def _solved(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Mapping[str, ArrayLike] | None,
    frame: Frame,
    closing: ArrayLike | None,
) -> tuple[Array, Array]:
    free = forward_dynamics(mech, q, v, tau, forces=forces, frame=frame)
    J_c, bias = constraint_jacobian(mech, q), constraint_bias(mech, q, v)
    compliance = mass_matrix_inverse(mech, q) @ np.swapaxes(J_c, -1, -2)
    wanted = _checked_closing(mech, closing) - bias - _times(J_c, free)
    # Rows that turn and rows that move are compared in one unit, so that no size of a mechanism
    # makes one kind look redundant: D Ω D with D = `scale(mech).rows`.
    D = scale(mech).rows if len(mech.loops) + len(mech.couplings) else np.zeros(0)
    omega = D[:, None] * (J_c @ compliance) * D
    values, vectors = np.linalg.eigh(omega)
    counts = values > TOLERANCE * values.max(axis=-1, initial=0.0, keepdims=True)
    inverse = np.where(counts, 1.0 / np.where(counts, values, 1.0), 0.0)
    inner = inverse * _times(np.swapaxes(vectors, -1, -2), D * wanted)
    lam = D * _times(vectors, inner)
    # Of all that do the same the least is in the range of J_c, which is that of D⁻¹ U_r.
    span = np.where(counts[..., None, :], vectors / D[:, None], 0.0)
    if not counts.all():
        lam = _times(span, _times(np.asarray(np.linalg.pinv(span), dtype=np.float64), lam))
    return free + _times(compliance, lam), lam


def _checked_closing(mech: Mechanism, closing: ArrayLike | None) -> Array:
    """What J_c v̇ + γ is to be (..., m): zeros by default."""
    rows = sum(constraint_sizes(mech))
    found = np.zeros(rows) if closing is None else floats(closing, "closing")
    if found.ndim not in (1, 2) or found.shape[-1] != rows:
        raise ShapeError(
            f"closing has shape {found.shape}; {mech.name!r} takes ({rows},) or (batch, {rows}), a "
            "number for each of lw.constraint_names."
        )
    if not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0][-1])
        raise ModelError(f"closing is not finite at {constraint_names(mech)[row]!r} (entry {row}).")
    return found


def _times(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]
