"""Gradients through rollouts with loops held by projections: steps of linear algebra in reverse.

Such a motion begins with a projection, and each of its steps ends with one. With the derivatives
A_k, B_k of the steps (`closed_transition.py`), a law τ(x, i) and S of the first projection,

    y_k = B_k* g_{k+1},    g_k = A_k* g_{k+1} + (∂τ/∂x)* y_k + weights of record k
    ∂/∂τ_k = y_k,          ∂/∂i_k = (∂τ/∂i)* y_k,           ∂/∂(q, v) = S* g_0

Numbers of the mechanism act by the forces they cause in each call of the integrator, and in the
projection (`given_numbers.py`). S and all A_k lead to displacements that keep loops closed. Their
derivatives leave out what is of second order in the drift of one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.kernel import Kernel, kernel
from linkwise.codegen.tangents import pullback
from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.kernels import written
from linkwise.errors import LoweringError, ModelError
from linkwise.simulation.closed_transition import BEGINNING, closed_transition, without_derivative
from linkwise.simulation.given_numbers import gradients
from linkwise.simulation.integrators.command import INTERNAL
from linkwise.simulation.rates import along_velocities
from linkwise.simulation.rollout_gradient import Origin, RolloutGradient, finished, weights_of
from linkwise.simulation.stepwise import law_arrays, moved_stepwise
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
    some = path if not usable.any() else [x[np.argmax(usable)] for x in path]
    q, v = (np.where(usable[:, None, None], x, y) for x, y in zip(path, some, strict=True))
    held = _held(origin, len(q))
    law = None if origin.request.law is None else _Law(origin, q, v, held)
    held["tau"] = held["tau"] if law is None else law.tau

    def along(at: Array, by_q: Array, by_v: Array) -> Array:
        return np.concatenate([along_velocities(mech, np.ascontiguousarray(at), by_q), by_v], -1)

    g = along(np.where(usable[:, None], ends[0], q[:, 0]), q_last, v_last)
    codes = np.where(bad, np.atleast_1d(status), 0).astype(np.int32)
    names = origin.request.parameters
    full = {name: np.zeros((len(q), course.steps, x.shape[-1])) for name, x in held.items()}
    room = 8 * mech.nv**2 * (18 if names else 6) * max(len(q), 1)
    block = max(MEMORY // room, 1)
    for end in range(course.steps, 0, -block):
        begin = max(end - block, 0)
        parts, trouble = _slopes(origin, q, v, held, begin, end)
        codes = np.where(codes != 0, codes, trouble)
        A, B = parts["A"], parts["B"]
        forces = np.zeros((len(q), end - begin, B.shape[-1] // mech.nv, mech.nv))
        for k in range(end - 1, begin - 1, -1):
            y = np.einsum("bij,bi->bj", B[:, k - begin], g).reshape(len(q), -1, mech.nv)
            forces[:, k - begin] = y
            full["tau"][:, k] = y[:, :-2].sum(axis=1) if names else y[:, 0]
            g = np.einsum("bij,bi->bj", A[:, k - begin], g)
            if law is not None:
                each = law.back(k, full["tau"][:, k])
                g = g + along(q[:, k], each.pop("q"), each.pop("v"))
                for name, x in each.items():
                    full[name][:, k] = x
            row, apart = divmod(k, course.every)
            if not apart:
                now = [w if w.ndim == 1 else w[:, row] for w in (q_before, v_before)]
                each = map(np.broadcast_to, now, (q_last.shape, v_last.shape))
                g = g + along(q[:, k], *each)
        if names:
            some = {name: _rows(held[name], begin, end) for name in names}
            points = {name: _flat(parts[name]) for name in ("q", "v", "vdot")}
            by = gradients(mech, names, origin.request.passive, points, _flat(forces), some)
            for name, x in by.items():
                full[name][:, begin:end] = x.reshape(len(q), end - begin, -1)
    S = written(mech, BEGINNING)(np.ascontiguousarray(q[:, 0]), np.ascontiguousarray(v[:, 0]))
    g = np.einsum("bij,bi->bj", S, g)
    if law is not None:
        del full["tau"]
    full = {"q": g[:, None, : mech.nv], "v": g[:, None, mech.nv :], **full}
    for x in full.values():
        x[codes != 0] = np.nan
    return finished(origin, full, codes, bad, single, like)


class _Law:
    """A control law at the beginning of each step, and in reverse.

    Attributes:
        tau: Its joint forces (batch, steps, nv).
    """

    def __init__(self, origin: Origin, q: Array, v: Array, held: Mapping[str, Array]) -> None:
        request = origin.request.law
        assert request is not None
        forward = kernel(request)
        steps = q.shape[1] - 1
        every = law_arrays(forward, q[:, :-1], v[:, :-1], held)
        self.given = {name: np.ascontiguousarray(x) for name, x in every.items()}
        self.names = tuple(self.given)
        flat = {name: _flat(x) for name, x in self.given.items()}
        self.tau = np.asarray(forward(**flat)).reshape(len(q), steps, -1)
        self.pull: Kernel = kernel(pullback(request, self.names))

    def back(self, k: int, weights: Array) -> dict[str, Array]:
        """The gradients by its inputs in step k, and by entries of q and v."""
        now = [np.ascontiguousarray(x[:, k]) for x in self.given.values()]
        flat = np.asarray(self.pull(*now, weights))
        ends = np.cumsum([x.shape[-1] for x in now])[:-1]
        parts = dict(zip(self.names, np.split(flat, ends, axis=-1), strict=True))
        return {INTERNAL if name == "tau" else name: x for name, x in parts.items()}


def _held(origin: Origin, batch: int) -> dict[str, Array]:
    """What is held over each step (batch, steps, n)."""
    steps = origin.course.steps
    out = dict[str, Array]()
    for name, x in origin.held.items():
        x = x if x.ndim == 3 else np.atleast_2d(x)[None]
        out[name] = np.broadcast_to(x, (batch, steps, x.shape[-1]))
    return out


def _rows(array: Array, begin: int, end: int) -> Array:
    """Some steps of all motions in one row, (batch * steps, n)."""
    return _flat(array[:, begin:end])


def _flat(array: Array) -> Array:
    """The steps of all motions in sequence."""
    return np.ascontiguousarray(array).reshape(-1, *array.shape[2:])


def _path(origin: Origin, states: list[Array]) -> list[Array]:
    """q and v (batch, steps + 1, ...) at all steps: the records, or the motion made once more."""
    course = origin.course
    if course.every == 1:
        return states
    again = replace(course, every=1)
    begin = np.ascontiguousarray(states[0][:, 0]), np.ascontiguousarray(states[1][:, 0])
    reason = LoweringError("its steps end with a projection")
    motions = moved_stepwise(origin.request, begin, origin.held, again, reason)
    return [motions.q, motions.v]


def _slopes(
    origin: Origin, q: Array, v: Array, held: Mapping[str, Array], begin: int, end: int
) -> tuple[dict[str, Array], NDArray[np.int32]]:
    """A, B ... (batch, end - begin, ...) of some steps, and a code for each motion."""
    mech, course, request = origin.request.mech, origin.course, origin.request
    after = np.concatenate([q[:, 1:], v[:, 1:]], axis=-1)
    arrays = {"q": q, "v": v, "tau": held["tau"], "after": after}
    arrays |= {name: held[name] for name in request.parameters}
    rows = {name: _rows(x, begin, end) for name, x in arrays.items()}
    rank = known_rank(mech, rows["q"])
    formula = closed_transition(request.integrator, request.passive, rank, request.parameters)
    codes = np.zeros(len(rows["q"]), np.int32)
    options = {"status": codes, "threads": course.threads}
    parts = written(mech, formula)(**rows, h=np.array([course.step]), **options)
    lead = len(q), end - begin
    split = {name: x.reshape(*lead, *x.shape[1:]) for name, x in parts.items()}
    return split, codes.reshape(lead).max(axis=1, initial=0)
