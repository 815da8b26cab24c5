"""Forward dynamics of mechanisms with loops and couplings, and the forces that keep them closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.dynamics.closure import constraint_jacobian, lead
from linkwise.dynamics.closure_kernels import run
from linkwise.dynamics.closure_rank import accelerated
from linkwise.dynamics.forward_dynamics import forward_dynamics
from linkwise.dynamics.kernels import Status, check_mechanism, one_state
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ModelError, ShapeError
from linkwise.model.closure import constraint_names, constraint_sizes
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

DEPENDENT = 1e-10
"""Singular values of J_c below this part of the largest belong to rows that follow from others."""


def closure_inertia_inverse(mech: Mechanism, q: ArrayLike) -> Array:
    """Ω = J_c 𝓜⁻¹ J_c*: what a force along one row of the constraints moves along another.

    Expression:
        `J_c @ mass.inv @ J_c.T`, for arms that hold an object J 𝓜⁻¹ J* + A M(C)⁻¹ A*
    with the armature of the mechanism in 𝓜.

    Derived form for loops, 3 passes, O(n), and a product as large as the constraints:
        Q B* ψ* H* D⁻¹ H ψ B Q*
    Source: JPL 88-11-II (3.1), (4.7).

    It is singular where rows follow from each other; `lw.loops.mobility` tells the rank.

    Returns:
        (m, m) or (batch, m, m), in the order of `constraint_names`.
    """
    check_mechanism(mech)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q), 0, 0))
    return run(mech, "closure_inertia_inverse", {"q": q})


def constrained_forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint accelerations caused by joint forces while loops and couplings hold.

    Expression:
        v̇ = 𝓜⁻¹ (τ − C + J_c* λ),   Ω λ = −(J_c 𝓜⁻¹ (τ − C) + γ),   Ω = J_c 𝓜⁻¹ J_c*
    with J_c = Q J + Y, γ = J̇_c v, and the armature of the mechanism in 𝓜.

    Derived form for loops, 3 passes, O(n) + O(m³) for m rows of constraints:
        (I - H ψ K)* D⁻¹ (τ - H ψ (b + K τ + M φ* a) - H ψ B Q* (Q B* ψ* H* D⁻¹ H ψ B Q*)⁻¹ (κ + κ_g
        + Q B* φ* a + Q B* ψ* H* D⁻¹ (τ - H ψ (b + K τ + M φ* a))))
    Source: JPL 88-11-II, (6.18), for arms that hold an object; 000 section 5, application 3.
    Departs: any loops, any blocked directions; λ acts on node b of a loop, as f(0) on the object.

    Rows may follow from others: accelerations are unique all the same, since Ω is made definite
    by 1e-13 of its diagonal and the residual is solved for once more. Where the constraints do not
    hold at (q, v), J_c v̇ + γ is zero nevertheless; see `project_position`, `project_velocity`,
    `closing`. Near singular configurations digits are lost with the square of the condition of J_c:
    about 4e-16 times it; rows that nearly follow from others, as parallel axes with rounded digits
    do, are taken as they are and may lock a linkage. `lw.loops.mobility` tells of both. Where fewer
    rows are independent than in configurations nearby, accelerations are not unique: a
    `RankWarning`, or the status of the state, tells (`closure_rank.py`).

    Args:
        mech: The mechanism; without loops and couplings this is `forward_dynamics`.
        q: Joint positions (nq,) or (batch, nq) [m or rad]; loops shall be closed there.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s]; J_c v shall be zero.
        forces_frame: See `forward_dynamics`.
        closing: What J_c v̇ + γ shall be instead of zero (m,) or (batch, m), in the order of
            `constraint_names`: −2 a J_c v − a² e is Baumgarte's.

    Returns:
        Joint accelerations (nv,) or (batch, nv). The errors are those of `forward_dynamics`.
    """
    quick = one_state(mech).forward_dynamics
    plain = type(forces_frame) is str and forces_frame == "node"
    if quick is not None and plain and forces is closing is out is status is None:
        result = quick(q, v, tau)
        if result is not None:
            return result
    check_mechanism(mech)
    _check_closing(mech, closing)
    asked: dict[str, Any] = {"out": out, "status": status, "threads": threads}
    if not constraint_sizes(mech):
        return forward_dynamics(mech, q, v, tau, forces=forces, forces_frame=forces_frame, **asked)
    return accelerated(mech, {"q": q, "v": v, "tau": tau}, forces, forces_frame, closing, asked)


def constraint_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    closing: ArrayLike | None = None,
) -> Array:
    """λ: the forces that keep loops and couplings closed, along the rows of the constraints.

    Expression:
        Ω λ = −(J_c 𝓜⁻¹ (τ − C) + γ),   Ω = J_c 𝓜⁻¹ J_c*
    The force on node b of a loop is S* λ in b's axes, that on node a the opposite.

    Where rows follow from each other λ is not unique, since some of it only squeezes. Then it is
    the one of least norm. `lw.loops.mobility` tells how many rows are redundant.

    Args:
        forces_frame: See `forward_dynamics`.
        closing: See `constrained_forward_dynamics`.

    Returns:
        (m,) or (batch, m) [N or N m], in the order of `constraint_names`.
    """
    check_mechanism(mech)
    _check_closing(mech, closing)
    if not constraint_sizes(mech):
        return np.zeros((*lead(mech, q, v, tau), 0))
    arrays = {"q": q, "v": v, "tau": tau}
    lam = run(mech, "constraint_forces", arrays, forces=forces, frame=forces_frame, closing=closing)
    return least(mech, q, lam)


def least(mech: Mechanism, q: ArrayLike, lam: Array) -> Array:
    """Of all forces with the same effect J_c* λ, that of least norm: the one in the range of J_c.

    Which rows follow from others is judged with rows that turn and rows that move in one unit, so
    that no size of a mechanism makes one kind look redundant: by D J_c with D = `scale(mech).rows`.

    Args:
        lam: Forces along the rows of the constraints (m,) or (batch, m).
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


def _check_closing(mech: Mechanism, closing: ArrayLike | None) -> None:
    if closing is None:
        return
    rows, found = sum(constraint_sizes(mech)), floats(closing, "closing")
    if found.ndim not in (1, 2) or found.shape[-1] != rows:
        raise ShapeError(
            f"closing has shape {found.shape}; {mech.name!r} takes ({rows},) or (batch, {rows}), a "
            "number for each of lw.loops.constraint_names."
        )
    if not np.isfinite(found).all():
        row = int(np.argwhere(~np.isfinite(found))[0][-1])
        raise ModelError(f"closing is not finite at {constraint_names(mech)[row]!r} (entry {row}).")
