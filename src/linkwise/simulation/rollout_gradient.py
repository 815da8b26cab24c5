"""Gradients through rollouts: the motion in reverse, from its last step to its first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.brief import brief
from linkwise.codegen import arrays
from linkwise.codegen.stepping.device import Course
from linkwise.codegen.stepping.kernel import MotionKernel, describe
from linkwise.dynamics.kernels import is_closed
from linkwise.errors import ShapeError, SimulationError, TroubleWarning, caller, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.activation import Following, lasting, without_dynamics
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rates import along_velocities
from linkwise.simulation.rollout_kernel import motion_kernel
from linkwise.spatial.array import Array, floats

MEMORY = {"cpu": 1 << 26, "cuda": 1 << 30}
"""States and gradients of steps that are in memory at a time [bytes], besides the records."""


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """What a rollout was made of.

    Attributes:
        request: The request of its kernel.
        target: "cpu" or "cuda".
        held: Inputs that were held over each step, by name, (n,), (steps, n), (batch, 1, n) or
            (batch, steps, n).
        shapes: Of what the caller gave: q, v, and each input.
        course: How far motions went.
    """

    request: MotionRequest
    target: str
    held: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]
    course: Course

    @property
    def projected(self) -> bool:
        """Whether steps end with a projection that closes loops."""
        return self.request.integrator != "implicit" and is_closed(self.request.mech)


@brief
@dataclass(frozen=True, slots=True, eq=False)
class RolloutGradient:
    """The gradient of a weighted sum of the records of a rollout.

    Each has the shape of what the rollout was given; what several motions or steps share has the
    sum of their gradients.

    Attributes:
        q: By the initial positions, (nv,) or (batch, nv): along velocities, as in `mech.integrate`.
        v: By the initial velocities, (nv,) or (batch, nv).
        inputs: By all other inputs, by name: "tau", or those of the control law ("goal", "kp",
            "kv" ...), "control" of actuators, and parameters ("inertia", "payload:hand" ...).
        status: A code for each motion, () or (batch,); 0 means success. Gradients of other motions
            are NaN.
    """

    q: Array
    v: Array
    inputs: Mapping[str, Array]
    status: NDArray[np.int32]

    @property
    def tau(self) -> Array:
        """By the joint forces."""
        if "tau" not in self.inputs:
            raise unknown_name("input", "tau", list(self.inputs), owner="the rollout")
        return self.inputs["tau"]


def gradient(
    records: tuple[Array, Array],
    status: NDArray[np.int32],
    origin: Origin,
    weights: tuple[Any, Any],
    like: Any = None,
) -> RolloutGradient:
    """The gradient of Σ weights · records.

    Args:
        records: q (k, nq) or (batch, k, nq), and v (k, nv) or (batch, k, nv), both of NumPy or of
            CuPy.
        status: A code for each motion, () or (batch,).
        weights: Those of q and v: one for each entry of each record, or of the last record, or
            None for zeros.
        like: An array of the library whose arrays are returned; default: NumPy's.
    """
    mech, given = origin.request.mech, origin
    library: Any = arrays.cupy() if arrays.is_on_gpu(records[0]) else np
    there = {n: arrays.taken(n, x) for n, x in origin.held.items() if arrays.is_on_gpu(x)}
    origin = replace(origin, held={**origin.held, **there})
    origin, follow = _known_activations(origin, library)
    single, bad = records[0].ndim == 2, np.atleast_1d(status) != 0
    states = [x[None] if single else x for x in records]
    pairs = [
        weights_of(library, x, w, n) for x, w, n in zip(records, weights, ("q", "v"), strict=True)
    ]
    actuated = "control" in origin.held  # by which the forces of each single step count
    sums = tuple(
        name
        for name, x in origin.held.items()
        if (x.ndim == 1 or x.shape[-2] == 1) and not (actuated and name == "tau")
    )
    back = motion_kernel(replace(origin.request, reverse=sums), origin.target)
    sweep = _Sweep(library, back, states, pairs, origin, sums)
    codes = np.where(bad, np.atleast_1d(status), sweep.run())
    lost = library.asarray(codes != 0)
    raw = library.where(lost[:, None], states[0].dtype.type(0.0), sweep.by_q)
    start = library.where(lost[:, None], library.asarray(mech.neutral()), states[0][:, 0])
    start = library.ascontiguousarray(start, dtype=states[0].dtype)  # some could not begin
    by_q = along_velocities(mech, start, raw)
    full = {"q": by_q[:, None], "v": sweep.by_v[:, None], **sweep.by_inputs}
    if follow is not None:
        full["control"] = follow(full["control"])
    for x in full.values():
        x[lost] = np.nan
    return finished(given, full, codes, bad, single, like)


def finished(
    origin: Origin,
    full: dict[str, Array],
    codes: NDArray[np.int32],
    before: Any,
    single: bool,
    like: Any = None,
) -> RolloutGradient:
    """Gradients in the shapes of what was given; the codes are reported.

    Args:
        full: By "q" and "v" along velocities (batch, 1, nv), and by inputs (batch, steps or 1, n).
        before: Which motions failed.
    """
    mech = origin.request.mech
    shapes = dict(origin.shapes) | {"q": (*origin.shapes["q"][:-1], mech.nv)}
    used = {name: x.shape for name, x in origin.held.items()}
    used |= {name: _padded(shapes[name]) for name in ("q", "v")}
    full.pop("locked", None)  # held or not: nothing in between
    parts = {
        name: arrays.given_back(_summed(x, used[name], shapes[name]), like)
        for name, x in full.items()
    }
    _report(mech, origin.request.integrator, codes, before, single)
    return RolloutGradient(parts.pop("q"), parts.pop("v"), parts, codes[0] if single else codes)


def _known_activations(origin: Origin, library: Any) -> tuple[Origin, Callable[[Any], Any] | None]:
    """The same motions of actuators without dynamics, and gradients by commands of those by them.

    No record contains activations, which commands alone determine (`activation.py`).
    """
    mech, course = origin.request.mech, origin.course
    if not origin.request.actuated or not lasting(mech):
        return origin, None
    following = Following(mech, course.step)
    acts, keeps, takes = following.along(origin.held["control"], course.steps)
    request = replace(origin.request, mech=without_dynamics(mech))
    held = {**origin.held, "control": acts}
    if library is np:
        keeps, takes = (arrays.copied("control", x) for x in (keeps, takes))
    slopes = library.asarray(keeps), library.asarray(takes)
    return replace(origin, request=request, held=held), lambda by: following.back(by, *slopes)


def _padded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a state, as one of an input that is the same in all steps."""
    return shape if len(shape) == 1 else (shape[0], 1, shape[1])


def _summed(full: Array, used: tuple[int, ...], given: tuple[int, ...]) -> Array:
    """A gradient (batch, steps or 1, n) by an array that motions or steps have in common."""
    used = (1,) * (3 - len(used)) + used
    axes = tuple(i for i in (0, 1) if used[i] == 1)
    out = full.sum(axis=axes, keepdims=True)
    if given[-1:] != out.shape[-1:]:  # one number was for all entries
        out = out.sum(axis=-1, keepdims=True)
    return out.reshape(given)


def weights_of(library: Any, records: Array, given: Any, name: str) -> tuple[Array, Array]:
    """Weights of the last record (batch, n), and of those before it (batch, k - 1, n) or (n,)."""
    shape, n = records.shape, records.shape[-1]
    last = (*shape[:-2], n)
    if arrays.is_on_gpu(given) and library is not np:
        array = arrays.taken(name, given)
    else:
        array = np.zeros(last) if given is None else floats(given, name)
    array = library.asarray(array, dtype=records.dtype)
    if array.shape == last:
        return array.reshape(-1, n), library.zeros(n, dtype=records.dtype)
    if array.shape != shape:
        raise ShapeError(
            f"the weights of {name} have shape {array.shape}; it must be {shape}, a weight for "
            f"each entry of each record, or {last} for the last record alone."
        )
    array = array if array.ndim == 3 else array[None]
    return array[:, -1], array[:, :-1]


class _Sweep:
    """From the last step to the first, over parts that fit into memory.

    With every step recorded, the records are all states that the way back needs. Otherwise they
    are checkpoints: the steps between them are made again, part by part.
    """

    def __init__(
        self,
        library: Any,
        back: MotionKernel,
        states: Sequence[Array],
        weights: Sequence[tuple[Array, Array]],
        origin: Origin,
        sums: tuple[str, ...],
    ) -> None:
        self.library, self.mech, self.back = library, back.mech, back
        self.states, self.weights, self.origin = states, weights, origin
        self.batch, self.dtype = len(states[0]), states[0].dtype
        self.by_q, self.by_v = (library.array(last) for last, _ in weights)
        self.sums = sums
        self.inputs = back.held[4:]  # besides q_from, v_from, w_q and w_v
        self.by_inputs = {
            name: library.zeros(
                (self.batch, 1 if name in sums else origin.course.steps, n), self.dtype
            )
            for name, n in self.inputs
        }

    def run(self) -> NDArray[np.int32]:
        """All parts; returns the status of each motion."""
        codes = np.zeros(self.batch, np.int32)
        for begin, end in self._parts():
            new = self._part(begin, end)
            codes = np.where(codes != 0, codes, new)
        return codes

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Steps from one record to another, the last ones first."""
        every, steps = self.origin.course.every, self.origin.course.steps
        width = 2 * sum(x.shape[-1] for x in self.states) if every > 1 else 0
        width += sum(x.shape[-1] for n, x in self.by_inputs.items() if n not in self.sums)
        room = MEMORY[self.origin.target]
        most = room // max(self.batch * width * self.dtype.itemsize, 1) if width else steps
        apart, end = max(most // every, 1) * every, steps
        while end > 0:
            begin = max(0, -(-(end - apart) // every) * every)
            yield begin, end
            end = begin

    def _part(self, begin: int, end: int) -> NDArray[np.int32]:
        held = {name: _rows(x, begin, end) for name, x in self.origin.held.items()}
        q, v = self._states(begin, end, held)
        w_q, w_v = (self._spread(w, begin, end) for _, w in self.weights)
        held |= {"q_from": q, "v_from": v, "w_q": w_q, "w_v": w_v}
        reverse = {name: x if x.ndim == 1 else x[..., ::-1, :] for name, x in held.items()}
        # Sums go on from part to part; gradients by inputs of single steps begin with anything.
        before = [self.by_v, *(self.by_inputs[name][:, 0] for name, _ in self.inputs)]
        count = end - begin
        apart = count if len(self.sums) == len(self.inputs) else 1
        start = self.by_q, self.library.concatenate(before, axis=1)
        by_q, rest, status = self._moved(self.back, *start, reverse, count, apart)
        ends = np.cumsum([self.mech.nv, *(n for _, n in self.inputs)]).tolist()
        by_v, *pieces = self.library.split(rest, ends[:-1], axis=-1)
        self.by_q, self.by_v = by_q[:, -1], by_v[:, -1]
        for (name, _), piece in zip(self.inputs, pieces, strict=True):
            if name in self.sums:
                self.by_inputs[name][:, 0] = piece[:, -1]
            else:
                self.by_inputs[name][:, begin:end] = piece[:, ::-1]
        return status

    def _moved(
        self, kernel: MotionKernel, q: Array, v: Array, held: Mapping[str, Array], steps: int,
        every: int,
    ) -> tuple[Array, Array, NDArray[np.int32]]:  # fmt: skip
        """The records of a motion without its beginning, (batch, k, nq) and (batch, k, nv)."""
        done = kernel.moved(q, v, held, replace(self.origin.course, steps=steps, every=every))
        return done.q[:, 1:], done.v[:, 1:], done.status

    def _states(self, begin: int, end: int, held: Mapping[str, Array]) -> tuple[Array, Array]:
        """q and v (batch, steps, ...) at the beginning of each step."""
        every, (q, v) = self.origin.course.every, self.states
        if every == 1:
            return q[:, begin:end], v[:, begin:end]
        count, nq = end - begin, self.mech.nq
        path = self.library.empty((self.batch, count, nq + self.mech.nv), self.dtype)
        path[:, 0, :nq], path[:, 0, nq:] = q[:, begin // every], v[:, begin // every]
        if count > 1:
            before = {name: _rows(x, 0, count - 1) for name, x in held.items()}
            first = path[:, 0, :nq], path[:, 0, nq:]
            forth = motion_kernel(self.origin.request, self.origin.target)
            path[:, 1:, :nq], path[:, 1:, nq:], _ = self._moved(forth, *first, before, count - 1, 1)
        return path[..., :nq], path[..., nq:]

    def _spread(self, weights: Array, begin: int, end: int) -> Array:
        """Weights of the state at the beginning of each step: zero where it is not recorded."""
        every = self.origin.course.every
        if weights.ndim == 1 or every == 1:
            return _rows(weights, begin, end)
        out = self.library.zeros((len(weights), end - begin, weights.shape[-1]), self.dtype)
        out[:, ::every] = weights[:, begin // every : -(-end // every)]
        return out


def _rows(array: Array, begin: int, end: int) -> Array:
    """The rows of some steps, of an array that has rows for steps."""
    return array if array.ndim == 1 or array.shape[-2] == 1 else array[..., begin:end, :]


def _report(
    mech: Mechanism, integrator: str, codes: NDArray[np.int32], before: Any, single: bool
) -> None:
    """Raise if the gradient of a single motion failed; warn if some of many did."""
    new = np.flatnonzero((codes != 0) & ~before)
    if not len(new):
        return
    why = describe(mech, int(codes[new[0]]))
    if single:
        raise SimulationError(
            f"the gradient of a motion of {mech.name!r} by {integrator!r} does not exist: {why}. "
            "A shorter step or a shorter motion may help."
        )
    warnings.warn(
        f"the gradients of {len(new)} of {len(codes)} motions of {mech.name!r} do not exist and "
        f"are NaN; the first is number {new[0]}. Most often: {why}.",
        TroubleWarning,
        stacklevel=caller(),
    )
