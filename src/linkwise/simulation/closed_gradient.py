"""Gradients through rollouts with loops held by projections: steps of linear algebra in reverse.

Such a motion begins with a projection, and each of its steps ends with one. With the derivatives
A_k, B_k of the steps (`closed_transition.py`) and S of the first projection,

    g_k = A_k* g_{k+1} + weights of record k,   ∂/∂τ_k = B_k* g_{k+1},   ∂/∂(q, v) = S* g_0

S and all A_k lead to displacements that keep loops closed. Their derivatives leave out what is of
second order in the drift of one step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.kernels import written
from linkwise.errors import LoweringError, ModelError
from linkwise.simulation.closed_transition import BEGINNING, closed_transition, without_derivative
from linkwise.simulation.rates import along_velocities
from linkwise.simulation.rollout_gradient import Origin, RolloutGradient, finished, weights_of
from linkwise.simulation.stepwise import moved_stepwise
from linkwise.spatial.array import Array

MEMORY = 1 << 26
"""Matrices of steps that are in memory at a time [bytes]."""


def closed_gradient(
    records: tuple[Array, Array],
    status: NDArray[np.int32],
    origin: Origin,
    weights: tuple[Any, Any],
    like: Any = None,
) -> RolloutGradient:
    """The gradient of Σ weights · records, as `rollout_gradient.gradient`.

    Raises:
        ModelError: A step of this mechanism has no derivative; says why.
    """
    mech, course = origin.request.mech, origin.course
    reason = without_derivative(mech, origin.request.integrator)
    if reason:
        raise ModelError(
            f"this rollout of {mech.name!r} has no gradient: {reason}. Hold its loops and "
            "couplings with integrator='implicit', or open them with loops='open'."
        )
    single, bad = records[0].ndim == 2, np.atleast_1d(status) != 0
    states = [x[None] if single else x for x in records]
    given = zip(records, weights, ("q", "v"), strict=True)
    (q_last, q_before), (v_last, v_before) = (weights_of(np, *x) for x in given)
    ends = [x[:, -1] for x in states]
    path = _path(origin, states)
    usable = ~bad & np.isfinite(path[0]).all(axis=(1, 2)) & np.isfinite(path[1]).all(axis=(1, 2))
    q, v = (np.where(usable[:, None, None], x, x[:, :1]) for x in path)

    def along(at: Array, by_q: Array, by_v: Array) -> Array:
        return np.concatenate([along_velocities(mech, np.ascontiguousarray(at), by_q), by_v], -1)

    g = along(np.where(usable[:, None], ends[0], q[:, 0]), q_last, v_last)
    codes = np.where(bad, np.atleast_1d(status), 0).astype(np.int32)
    by_tau = np.zeros((len(q), course.steps, mech.nv))
    block = max(MEMORY // (8 * 6 * mech.nv**2 * max(len(q), 1)), 1)
    for end in range(course.steps, 0, -block):
        begin = max(end - block, 0)
        A, B, trouble = _slopes(origin, q, v, begin, end)
        codes = np.where(codes != 0, codes, trouble)
        for k in range(end - 1, begin - 1, -1):
            by_tau[:, k] = np.einsum("bij,bi->bj", B[:, k - begin], g)
            g = np.einsum("bij,bi->bj", A[:, k - begin], g)
            row, apart = divmod(k, course.every)
            if not apart:
                now = [w if w.ndim == 1 else w[:, row] for w in (q_before, v_before)]
                each = map(np.broadcast_to, now, (q_last.shape, v_last.shape))
                g = g + along(q[:, k], *each)
    S = written(mech, BEGINNING)(np.ascontiguousarray(q[:, 0]), np.ascontiguousarray(v[:, 0]))
    g = np.einsum("bij,bi->bj", S, g)
    full = {"q": g[:, None, : mech.nv], "v": g[:, None, mech.nv :], "tau": by_tau}
    for x in full.values():
        x[codes != 0] = np.nan
    return finished(origin, full, codes, bad, single, like)


def _path(origin: Origin, states: list[Array]) -> list[Array]:
    """q and v (batch, steps + 1, ...) at all steps: the records, or the motion made once more."""
    course = origin.course
    if course.every == 1:
        return states
    again = replace(course, every=1)
    begin = np.ascontiguousarray(states[0][:, 0]), np.ascontiguousarray(states[1][:, 0])
    reason = LoweringError("its steps end with a projection")
    motions = moved_stepwise(origin.request, None, begin, origin.held, again, reason)
    return [motions.q, motions.v]


def _slopes(
    origin: Origin, q: Array, v: Array, begin: int, end: int
) -> tuple[Array, Array, NDArray[np.int32]]:
    """A and B (batch, end - begin, ...) of some steps, and a code for each motion."""
    mech, course, request = origin.request.mech, origin.course, origin.request
    tau = origin.held["tau"]
    tau = tau if tau.ndim == 1 or tau.shape[-2] == 1 else tau[..., begin:end, :]
    lead = len(q), end - begin
    tau = np.ascontiguousarray(np.broadcast_to(tau, (*lead, mech.nv)))
    after = np.concatenate([q[:, begin + 1 : end + 1], v[:, begin + 1 : end + 1]], axis=-1)
    rows = [x.reshape(-1, x.shape[-1]) for x in (q[:, begin:end], v[:, begin:end], tau, after)]
    formula = closed_transition(request.integrator, request.passive, known_rank(mech, rows[0]))
    codes = np.zeros(lead[0] * lead[1], np.int32)
    step = np.array([course.step])
    parts = written(mech, formula)(*rows[:3], step, rows[3], status=codes, threads=course.threads)
    A, B = (parts[name].reshape(*lead, *parts[name].shape[-2:]) for name in ("A", "B"))
    return A, B, codes.reshape(lead).max(axis=1, initial=0)
