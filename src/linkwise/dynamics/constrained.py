"""Motions that loops and couplings allow, and the forces that keep them closed.

Accelerations obey them where J_c v̇ + γ = 0, to rounding: no joint forces cause others while loops
and couplings hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as codes
from linkwise.dynamics.closure import closed_kernel, constraint_jacobian, lead, run
from linkwise.dynamics.kernels import Forces, Status, check_mechanism
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError, ModelError, ShapeError
from linkwise.model.closure import constraint_names, constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

Result = TypeVar("Result", Array, dict[str, Array])
"""An array, or several by name."""

OBEYED = 1e-6
"""Part of a velocity, or of an acceleration, that may break the constraints."""

DEPENDENT = 1e-10
"""Singular values of J_c below this part of the largest belong to rows that depend on others."""


def obeyed(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    compute: Callable[..., Result],
    options: Mapping[str, Any],
) -> Result:
    """What `compute(**options)` gives, for accelerations that obey loops and couplings.

    Raises:
        ClosureError: A single state breaks a loop or coupling, which is named.
    """
    arrays = {"q": q, "v": v, "vdot": vdot}
    try:
        batch = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arrays.values()))
    except ValueError:  # the kernel says what does not fit
        return compute(**options)
    status = options.get("status")
    if not batch and status is None:
        rows = run(mech, "constraint_acceleration", arrays)
        if breaking(mech, v, vdot, rows).any():
            raise broken_rows(mech, rows)
        return compute(**options)
    row_status = np.zeros(batch, np.int32)
    rows = run(mech, "constraint_acceleration", arrays, options={"status": row_status})
    total: Status = np.zeros(batch, np.int32) if status is None else status
    result = compute(**{**options, "status": total})
    off = breaking(mech, v, vdot, rows)
    np.copyto(total, row_status, where=total == 0)
    np.copyto(total, np.int32(codes.broken(mech)), where=(total == 0) & off)
    for part in result.values() if isinstance(result, dict) else [result]:
        part[total != 0] = np.nan
    if status is None:
        closed_kernel(mech, "constraint_acceleration").warn(total.reshape(-1))
    return result


def breaking(mech: Mechanism, v: ArrayLike, vdot: ArrayLike, rows: Array) -> NDArray[np.bool_]:
    """Which accelerations break loops: J_c v̇ + γ is not zero compared with its terms."""
    measure = scale(mech)
    speed, rate = (np.linalg.norm(floats(x, "v") / measure.columns, axis=-1) for x in (v, vdot))
    size = measure.length * (rate + speed**2)
    return np.linalg.norm(rows * measure.rows, axis=-1) > OBEYED * size


def broken_rows(mech: Mechanism, rows: Array) -> ClosureError:
    """The error for J_c v̇ + γ (m,) that is not zero; names the worst row."""
    row = int(np.argmax(np.abs(rows * scale(mech).rows)))
    name = constraint_names(mech)[row]
    return ClosureError(
        f"vdot breaks {name!r} of {mech.name!r} by {abs(float(rows[row])):.3g} (rad/s² or m/s²): "
        "no joint forces cause it while loops and couplings hold. "
        "lw.loops.independent_coordinates and lw.loops.full_acceleration give accelerations that "
        'obey them; loops="open" leaves them open.'
    )


def constraint_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Forces | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
) -> Array:
    """λ: the forces that keep loops and couplings closed, along the rows of the constraints.

    Expression:
        Ω λ = −(J_c 𝓜⁻¹ (τ − C) + γ),   Ω = J_c 𝓜⁻¹ J_c*
    The force on node b of a loop is S* λ in b's axes, that on node a the opposite.

    Where rows depend on each other λ is not unique, since part of it only squeezes. Then it is the
    one of least norm. `lw.loops.mobility` reports how many rows are redundant.

    Args:
        closing: See `lw.forward_dynamics`.

    Returns:
        (m,) or (batch, m) [N or N m], in the order of `constraint_names`.
    """
    check_mechanism(mech)
    check_closing(mech, closing)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q, v, tau), 0))
    arrays = {"q": q, "v": v, "tau": tau}
    lam = run(
        mech, "constraint_forces", arrays, forces=forces, forces_frame=forces_frame, closing=closing
    )
    return least(mech, q, lam)


def least(mech: Mechanism, q: ArrayLike, lam: Array) -> Array:
    """Of all forces with the same effect J_c* λ, that of least norm: the one in the range of J_c.

    Which rows depend on others is judged with rows that turn and rows that move in one unit, so
    that no size of a mechanism makes one kind look redundant: by D J_c with D = `scale(mech).rows`.
    """
    rows = scale(mech).rows
    scaled = rows[:, None] * constraint_jacobian(mech, q)
    fine = np.asarray(np.isfinite(scaled).all(axis=(-1, -2)), dtype=np.bool_)[..., None]
    left, values, _ = np.linalg.svd(np.where(fine[..., None], scaled, 0.0), full_matrices=False)
    counts = values > DEPENDENT * values[..., :1]
    if counts.all() and values.shape[-1] == lam.shape[-1]:
        return lam
    span = np.where(counts[..., None, :], left / rows[:, None], 0.0)  # the range of J_c
    back = np.asarray(np.linalg.pinv(span), dtype=np.float64)
    return np.where(fine, (span @ (back @ lam[..., None]))[..., 0], np.nan)


def check_closing(mech: Mechanism, closing: ArrayLike | None) -> None:
    """Raise unless it is finite, with one number for each row of the constraints."""
    if closing is None:
        return
    rows, array = sum(constraint_sizes(mech)), floats(closing, "closing")
    if array.ndim not in (1, 2) or array.shape[-1] != rows:
        raise ShapeError(
            f"closing has shape {array.shape}; {mech.name!r} takes ({rows},) or (batch, {rows}), a "
            "number for each of lw.loops.constraint_names."
        )
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][-1])
        raise ModelError(f"closing is not finite at {constraint_names(mech)[row]!r} (entry {row}).")
