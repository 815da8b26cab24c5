# pyright: basic
# (CuPy is optional, and has no type information here)
"""Motions on the GPU: compiled when first called, all steps in one launch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.c.text import plain_name
from linkwise.codegen.cuda.device import ROOM
from linkwise.codegen.stepping.cuda_group import emit_group_motion
from linkwise.codegen.stepping.cuda_source import MotionSource, Shape, emit_motion
from linkwise.codegen.stepping.kernel import describe
from linkwise.codegen.stepping.stepping import Place, Stepping
from linkwise.errors import DeviceError, ShapeError
from linkwise.model.mechanism import Mechanism

LARGEST = 100_000
"""Operations of a step, written out, beyond which the GPU's compiler takes too long."""

MIDDLING = 3000
"""Operations of a step, written out, from which a thread is worth all registers."""

SHARED = {8: 3000, 4: 6000}
"""Operations from which several warps share 32 motions, by the bytes of a number."""

ALONE = ("implicit",)
"""Integrators whose steps one thread makes at any size: in the sweeps over impulses, which go from
row to row, warps would wait for each other."""

WARPS = 16
"""Of a multiprocessor, where several share a motion."""

WARP = 32


@dataclass(frozen=True, slots=True)
class GpuMotions:
    """What a call gives; on the GPU the axis of motions is the innermost one in memory."""

    q: Any  # joint positions (batch, records, nq), the beginning first, the end last
    v: Any  # joint velocities (batch, records, nv)
    status: Any  # a code for each motion, 0 for success (batch,), in NumPy
    failed: Any  # the step in which that code came, -1 for none (batch,), in NumPy
    # what else is shown (batch, records, n): of CuPy where q was on the GPU, else of NumPy
    more: Any


@dataclass(frozen=True)
class CudaMotion:
    """Motions of one mechanism with one integrator on a GPU."""

    mech: Mechanism  # the mechanism
    stepping: Stepping  # what a motion does
    dtype: np.dtype[Any]  # kind of its numbers
    shape: Shape | None = None  # the launch shape; None for one that suits the size
    _loaded: dict[int, Any] = field(default_factory=lambda: {}, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    @cached_property
    def emitted(self) -> MotionSource:
        """The source and what a launch has to know, for a GPU with much shared memory.

        Raises:
            DeviceError: The mechanism is too large for straight code.
        """
        shared, large = None, self.work >= SHARED[self.dtype.itemsize]
        if self.shape is None and large and self.stepping.integrator not in ALONE:
            kind = {"dtype": str(self.dtype), "title": self._title}
            shared = emit_group_motion(self.stepping, self.mech, warps=WARPS, **kind)
        return shared or self.alone

    @cached_property
    def alone(self) -> MotionSource:
        """The same with one thread for a motion."""
        shape = self.shape or suited(self.stepping, self.work, self.dtype.itemsize)
        return emit_motion(self.stepping, shape, dtype=str(self.dtype), title=self._title)

    @cached_property
    def work(self) -> int:
        """Operations of a step as they are written out: what is called several times, once."""
        work = sum(s.traced.graph.count(s.traced.roots).total() for s in self.stepping.segments)
        if work > LARGEST:
            raise DeviceError(
                f"a step of {self.mech.name} takes {work} operations, as straight code on the "
                f"GPU; the limit is {LARGEST}. Use target='cpu'."
            )
        return work

    @property
    def _title(self) -> list[str]:
        name = plain_name(self.mech.name)
        return [f"motions of {name} by {self.stepping.integrator}, written by Linkwise"]

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of one step, by kind.

        A loop counts once: for a variational step that is one round, while solving it takes
        several.
        """
        return self.stepping.ops

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """What is held over each step, with lengths."""
        return self.stepping.held

    @property
    def layout(self) -> tuple[Place, ...]:
        """What records of steps that resume are made of."""
        return self.stepping.layout

    @property
    def source(self) -> str:
        """The CUDA source."""
        return self.emitted.text

    def describe(self, code: int) -> str:
        """The meaning of a status code, naming the body."""
        return describe(self.mech, code)

    def __call__(
        self,
        q: Any,
        v: Any,
        held: Mapping[str, Any],
        *,
        step: float,
        steps: int,
        every: int,
        seed: int = 0,
        first: int = 0,
    ) -> GpuMotions:
        """All motions of a batch, from arrays on the GPU or of NumPy.

        Arrays of NumPy go to the GPU and results come back; where q is on the GPU, results stay
        there, as arrays of the same library. Joint forces that differ from motion to motion are
        read fastest where motions are the innermost axis in memory, as in
        `cupy.empty((steps, nv, batch)).transpose(2, 0, 1)`; others are laid out so first.

        Args:
            q: Joint positions (nq,) or (batch, nq).
            v: Joint velocities (nv,) or (batch, nv).
            held: What is held over each step, by name: (n,) for all steps, (steps, n), or
                (batch, steps, n). One row is for all motions, or all steps.
            step: The length of a step [s].
            steps: How many.
            every: Steps from one record to the next.
            seed: Of random numbers.
            first: Number of the first motion in their counters.

        Raises:
            MissingExtraError: CuPy is not installed.
            DeviceError: There is no GPU.
            ShapeError: An array does not fit; says which.
        """
        cp, nq = arrays.cupy(), self.stepping.nq
        there, like = arrays.is_on_gpu(q), arrays.foreign([q])
        with cp.cuda.Device(arrays.device_of([q])), arrays.stream(like):
            given = {
                "q": self._rows(cp, "q", q, nq),
                "v": self._rows(cp, "v", v, self.stepping.nv),
            }
            given |= {n: self._held(cp, n, held[n], size, steps) for n, size in self.stepping.held}
            count = _count({n: x for n, x in given.items() if n in ("q", "v") or x.ndim == 3})
            arguments, kept = list[Any](), list[Any]()  # arrays live as long as the call
            for name, array in given.items():
                axes = 2 if name in ("q", "v") else 3
                if array.ndim == 3 and len(array) >= WARP and array.strides[0] != array.itemsize:
                    array = cp.ascontiguousarray(array.transpose(1, 2, 0)).transpose(2, 0, 1)
                kept.append(array)
                arguments += (array, *_strides(array, axes))
            records = 1 + -(-steps // every)
            width = sum(n for _, n in self.stepping.record)
            out = cp.empty((records, width, count), self.dtype)
            status, failed = cp.empty(count, np.int32), cp.empty(count, np.int64)
            report = cp.zeros(1, np.uint64)
            counts = (np.int64(x) for x in (steps, every, records))
            results = (failed, out, status, report)
            arguments += (self.dtype.type(step), *counts, *results, np.int64(count))
            arguments += (
                (np.int64(seed), np.int64(first), np.int64(0)) if self.stepping.noise else ()
            )
            if count:
                self.start(cp, arguments, count)
            moved = out.transpose(2, 0, 1)
            end = nq + self.stepping.nv
            parts = (moved[..., :nq], moved[..., nq:end])
            q_all, v_all = (_returned(cp, x, like, there) for x in parts)
            more = moved[..., end:] if there else cp.ascontiguousarray(moved[..., end:]).get()
            if not int(report.get()[0]):  # as a rule: nothing else has to come back
                fine = [np.broadcast_to(x, (count,)) for x in (np.int32(0), np.int64(-1))]
                return GpuMotions(q_all, v_all, fine[0], fine[1], more)
            return GpuMotions(q_all, v_all, status.get(), failed.get(), more)

    # ----------------------------------------------------------------------------------- arrays

    def _rows(self, cp: Any, name: str, value: Any, size: int) -> Any:
        array = self._taken(cp, name, value)
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be ({size},) or (batch, {size})."
            )
        return array

    def _held(self, cp: Any, name: str, value: Any, size: int, steps: int) -> Any:
        array = self._taken(cp, name, value)
        fits = array.ndim in (1, 2, 3) and array.shape[-1] == size
        if not fits or (array.ndim > 1 and array.shape[-2] not in (1, steps)):
            raise ShapeError(
                f"{name} has shape {array.shape}; it must be ({size},), ({steps}, {size}) or "
                f"(batch, {steps}, {size})."
            )
        return array

    def _taken(self, cp: Any, name: str, value: Any) -> Any:
        if arrays.is_on_gpu(value):
            array = arrays.taken(name, value)
        else:
            array = cp.asarray(np.asarray(arrays.here(name, value), self.dtype))
        if array.dtype != self.dtype:
            raise ShapeError(
                f"{name} is {array.dtype}, and this kernel computes in {self.dtype}; convert it, "
                f"or use dtype={str(array.dtype)!r}."
            )
        if any(s % array.itemsize for s in array.strides) or array.data.ptr % array.itemsize:
            array = cp.ascontiguousarray(array)
        return array

    # ---------------------------------------------------------------------------------- running

    def start(self, cp: Any, arguments: Sequence[Any], count: int) -> None:
        """Launch on the current stream; blocks are small for few motions."""
        device = int(cp.cuda.runtime.getDevice())
        with self._lock:
            loaded = self._loaded.get(device)
            if loaded is None:
                loaded = self._loaded[device] = _load(cp, self, device)
        function, source, parts = loaded
        threads = source.threads
        if source.workers == 1:
            threads = min(threads, -(-count // (WARP * parts)) * WARP)
        blocks = -(-count * source.workers // threads)
        function((blocks,), (threads,), tuple(arguments), shared_mem=source.shared)


def suited(stepping: Stepping, work: int, itemsize: int) -> Shape:
    """The launch shape for the operations of the code: from measurements."""
    if itemsize == 8:
        return Shape(128, 168 if work < MIDDLING else 255)
    if work >= MIDDLING:
        return Shape(128, 255)
    several = len(set(map(id, stepping.step))) < len(stepping.step)
    return Shape(128, 96 if several else 128)  # a called function has its own registers


def _load(cp: Any, motion: CudaMotion, device: int) -> tuple[Any, MotionSource, int]:
    """The function on a GPU, its source, and how many multiprocessors the GPU has."""
    attributes = cp.cuda.Device(device).attributes
    source = motion.emitted
    if source.shared > attributes[ROOM]:
        source = motion.alone
    module = cp.RawModule(code=source.text, options=("--std=c++17",), backend="nvrtc")
    function = module.get_function("run")
    function.max_dynamic_shared_size_bytes = source.shared
    # Where registers are not in shared memory, they may be in the cache that has the same place.
    function.preferred_shared_memory_carveout = 100 if source.shared else 0
    return function, source, int(attributes["MultiProcessorCount"])


def _count(arrays: Mapping[str, Any]) -> int:
    """How many motions there are: rows of q and v, and first axes of what is held."""
    rows = {n: x.shape[0] for n, x in arrays.items() if x.ndim > 1}
    sizes = set(rows.values()) - {1} or set(rows.values()) or {1}
    if len(sizes) > 1:
        shapes = ", ".join(f"{name} {arrays[name].shape}" for name in rows)
        raise ShapeError(f"batches differ: {shapes}.")
    return int(sizes.pop())


def _strides(array: Any, axes: int) -> tuple[Any, ...]:
    """Numbers between two motions, two steps and two entries; 0 where one is for all."""
    axes_here = zip(array.shape, array.strides, strict=True)
    apart = [np.int64(s // array.itemsize if n > 1 else 0) for n, s in axes_here]
    return (*(np.int64(0) for _ in range(axes - len(apart))), *apart)


def _returned(cp: Any, array: Any, like: Any, there: bool) -> Any:
    """An array of the caller's library, where q was."""
    if not there:
        return arrays.given_back(cp.ascontiguousarray(array).get(), like)
    if arrays.library(like) in arrays.JAX:  # which takes no axes in another order
        array = cp.ascontiguousarray(array)
    return arrays.given_back(array, like)
