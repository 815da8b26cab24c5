"""Hybrid dynamics while loops and couplings hold, by dense matrices, state by state.

With U the driven freedoms, Ū the prescribed ones, h = 𝓜 Ū v̇ + C - J* f and r = J_c Ū v̇ + γ:

    𝓜_UU v̇_U = τ_U - h_U + J_U* λ,     J_U v̇_U = -r,     J_U the columns of J_c that are driven

With 𝓜_UU = L L* and W = J_U L⁻*, y = L* v̇_U is  y₀ - W⁺ (W y₀ + r),  y₀ = L⁻¹ (τ_U - h_U).  Rows
of W may follow from others; where r is not in its range, no motion obeys what is prescribed.
λ is the least with W* λ = y - y₀, measured by D (`velocity_space.scale`), and

    τ_Ū = (𝓜 v̇ + C - J* f - J_c* λ)_Ū.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.scalar import status as trouble
from linkwise.dynamics.allowed_motion import OBEYED, broken_rows
from linkwise.dynamics.closure import constraint_jacobian
from linkwise.dynamics.closure_kernels import closed_kernel, run
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import Status
from linkwise.dynamics.mass_matrix import mass_matrix
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import TOLERANCE, scale
from linkwise.errors import ModelError, ShapeError, SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats


def held_hybrid(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: Array,
    vdot: Array,
    driven: NDArray[np.bool_],
    *,
    forces: Mapping[str, ArrayLike] | None,
    forces_frame: Frame,
    status: Status | None,
) -> tuple[Array, Array]:
    """All accelerations and all joint forces, (nv,) or (batch, nv) each.

    Args:
        mech: The mechanism, with loops or couplings.
        tau: Joint forces (nv,) or (batch, nv), zero where hinges are prescribed.
        vdot: Joint accelerations (nv,) or (batch, nv), zero where hinges are driven.
        driven: Which freedoms are driven (nv,).
        forces_frame: Axes of these.

    Raises:
        ClosureError: What is prescribed breaks a loop or coupling.
        SingularHingeError: Nothing resists the driven hinges.
    """
    q, v = floats(q, "q"), floats(v, "v")
    arrays = {"q": q, "v": v, "vdot": vdot}
    try:
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in (*arrays.values(), tau)))
    except ValueError:
        shown = ", ".join(f"{name} {x.shape}" for name, x in {**arrays, "tau": tau}.items())
        raise ShapeError(f"{shown} do not go together: their batches differ.") from None
    arrays = {name: np.broadcast_to(x, (*lead, x.shape[-1])) for name, x in arrays.items()}
    single = not lead and status is None
    codes = np.zeros(lead, np.int32) if status is None else status
    asked: dict[str, Any] = {} if single else {"status": codes}
    pushed: dict[str, Any] = {"forces": forces, "forces_frame": forces_frame}
    needed = inverse_dynamics(mech, **arrays, **pushed, loops="open", **asked)
    unseen = {} if single else {"status": np.zeros(lead, np.int32)}
    rows = run(mech, "constraint_acceleration", arrays, options=unseen)
    fine = np.isfinite(rows).all(axis=-1) & np.isfinite(needed).all(axis=-1)
    fine = np.broadcast_to(fine & np.isfinite(tau).all(axis=-1), lead)
    codes[~fine & (codes == 0)] = trouble.INPUT
    if single and not fine:
        raise ModelError("tau is not finite.")
    motion, force = np.full((2, codes.size, mech.nv), np.nan)
    each = [
        np.broadcast_to(x, (*lead, x.shape[-1])).reshape(codes.size, -1)
        for x in (arrays["q"], tau, vdot, needed, rows)
    ]
    told = codes.reshape(-1)
    for i in np.flatnonzero(fine):
        state = _State(mech, *(x[i] for x in each))
        code, motion[i], force[i] = _solved(state, driven, raises=single)
        told[i] = told[i] or code
    if lead and status is None:
        closed_kernel(mech, "constraint_acceleration").warn(told)
    return motion.reshape(*lead, mech.nv), force.reshape(*lead, mech.nv)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """One state: what is given, h and r."""

    mech: Mechanism
    q: Array
    tau: Array
    vdot: Array
    needed: Array
    rows: Array


def _solved(at: _State, driven: NDArray[np.bool_], *, raises: bool) -> tuple[int, Array, Array]:
    """A code, v̇ and τ of one state."""
    mech, q, tau, vdot, needed, rows = at.mech, at.q, at.tau, at.vdot, at.needed, at.rows
    nothing = np.full(mech.nv, np.nan)
    mass, jacobian, measure = mass_matrix(mech, q), constraint_jacobian(mech, q), scale(mech)
    try:
        root = np.linalg.cholesky(mass[np.ix_(driven, driven)])
    except np.linalg.LinAlgError:
        if raises:
            raise SingularHingeError(
                f"nothing resists the driven hinges of {mech.name!r}: their part of the mass "
                "matrix is not positive definite. Give bodies inertia, or hinges armature."
            ) from None
        return trouble.MATRIX, nothing, nothing
    W = np.linalg.solve(root, (measure.rows[:, None] * jacobian[:, driven]).T).T  # D J_U L⁻*
    y = free = np.linalg.solve(root, (tau - needed)[driven])
    left, values, right = np.linalg.svd(W, full_matrices=False)
    r = int((values > TOLERANCE * values.max(initial=0.0)).sum())
    off = measure.rows * rows + W @ y
    push = (left[:, :r].T @ off) / values[:r]
    y = y - right[:r].T @ push
    rest = off - left[:, :r] @ (left[:, :r].T @ off)
    size = np.linalg.norm(measure.rows * rows) + np.linalg.norm(W @ free)
    size += measure.length * np.linalg.norm(vdot / measure.columns)
    if np.linalg.norm(rest) > OBEYED * size:
        if raises:
            raise broken_rows(mech, rest / measure.rows)
        return trouble.broken(mech), nothing, nothing
    motion, force = vdot.copy(), tau.copy()
    motion[driven] = np.linalg.solve(root.T, y)
    lam = measure.rows * (left[:, :r] @ (-push / values[:r]))
    whole = needed + mass[:, driven] @ motion[driven] - lam @ jacobian
    force[~driven] = whole[~driven]
    return trouble.FINE, motion, force
