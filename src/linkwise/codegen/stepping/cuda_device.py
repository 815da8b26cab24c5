# pyright: basic
# (CuPy is optional, and has no type information here)
"""Motions on the GPU: compiled when first called, all steps in one launch."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.codegen.c.text import plain_name
from linkwise.codegen.cuda.memory import ROOM, PerGpu, function_of, module_of
from linkwise.codegen.stepping.cuda_group import emit_group_motion
from linkwise.codegen.stepping.cuda_resident import CudaResident
from linkwise.codegen.stepping.cuda_source import MotionSource, Shape, emit_motion
from linkwise.codegen.stepping.device import Course, Facts, Motions, StepRequest
from linkwise.codegen.stepping.stepping import Stepping
from linkwise.errors import DeviceError, ShapeError

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


@dataclass(frozen=True)
class Gpu:
    """A GPU for the motions of a request (`MotionDevice`)."""

    request: StepRequest  # the request
    stepping: Stepping  # its segments
    facts: Facts  # what a call has to know of them

    @property
    def dtype(self) -> np.dtype[Any]:
        """Kind of its numbers."""
        return np.dtype(f"float{8 * self.request.itemsize}")

    @cached_property
    def emitted(self) -> MotionSource:
        """The source and what a launch has to know, for a GPU with much shared memory.

        Raises:
            DeviceError: The mechanism is too large for straight code.
        """
        stepping, shared = self.stepping, None
        large = self.work >= SHARED[self.dtype.itemsize]
        if large and stepping.divides and stepping.integrator not in ALONE:
            kind = {"dtype": str(self.dtype), "title": self._title}
            shared = emit_group_motion(stepping, self.request.mech, warps=WARPS, **kind)
        return shared or self.alone

    @cached_property
    def alone(self) -> MotionSource:
        """The same with one thread for a motion."""
        shape = suited(self.stepping, self.work, self.dtype.itemsize)
        return emit_motion(self.stepping, shape, dtype=str(self.dtype), title=self._title)

    @cached_property
    def work(self) -> int:
        """Operations of a step as they are written out: what is called several times, once."""
        work = sum(s.traced.graph.count(s.traced.roots).total() for s in self.stepping.segments)
        if work > LARGEST:
            raise DeviceError(
                f"a step of {self.request.mech.name} takes {work} operations, as straight code on "
                f"the GPU; the limit is {LARGEST}. Use target='cpu'."
            )
        return work

    @property
    def _title(self) -> list[str]:
        name = plain_name(self.request.mech.name)
        return [f"motions of {name} by {self.stepping.integrator}, written by Linkwise"]

    @cached_property
    def _loaded(self) -> PerGpu[tuple[Any, MotionSource, int]]:
        return PerGpu(lambda cp, device: _load(cp, self, device))

    @property
    def source(self) -> str:
        """The CUDA source."""
        return self.emitted.text

    @contextmanager
    def entered(self, q: Any) -> Generator[None]:
        """The GPU of q, and the stream of its library."""
        device = arrays.cupy().cuda.Device(arrays.device_of([q]))
        with device, arrays.stream(arrays.foreign([q])):
            yield

    def moved(self, given: Mapping[str, Any], count: int, course: Course, like: Any) -> Motions:
        """All motions, the beginning first: `MotionDevice.moved`."""
        cp, facts = arrays.cupy(), self.facts
        arguments, kept = list[Any](), list[Any]()  # arrays live as long as the call
        for name, array in given.items():
            held = name not in ("q", "v")
            if held and len(array) >= WARP and array.strides[0] != array.itemsize:
                array = cp.ascontiguousarray(array.transpose(1, 2, 0)).transpose(2, 0, 1)
            kept.append(array)
            over_batch, over_time, apart = _strides(array)
            arguments += (array, over_batch, *([over_time] if held else []), apart)
        records = 1 + course.records
        out = cp.empty((records, facts.width, count), self.dtype)
        status, failed = cp.empty(count, np.int32), cp.empty(count, np.int64)
        report = cp.zeros(1, np.uint64)
        arguments.append(self.dtype.type(course.step))
        arguments += [np.int64(x) for x in (course.steps, course.every, records)]
        arguments += [failed, out, status, report, np.int64(count)]
        if facts.noise:
            arguments += [np.int64(course.seed), np.int64(course.first), np.int64(0)]
        if count:
            self.start(cp, arguments, count)
        moved, end, there = out.transpose(2, 0, 1), facts.nq + facts.nv, arrays.is_on_gpu(like)
        library = arrays.foreign([like])
        parts = (moved[..., : facts.nq], moved[..., facts.nq : end])
        q_all, v_all = (_returned(cp, x, library, there) for x in parts)
        more = moved[..., end:] if there else cp.ascontiguousarray(moved[..., end:]).get()
        if int(report.get()[0]):
            return Motions(q_all, v_all, more, status.get(), failed.get())
        # as a rule: nothing else has to come back
        fine = np.broadcast_to(np.int32(0), (count,)), np.broadcast_to(np.int64(-1), (count,))
        return Motions(q_all, v_all, more, *fine)

    def resident(self, inputs: Mapping[str, Any], course: Course) -> CudaResident:
        """A batch of motions that stay on the GPU."""
        return CudaResident(self, inputs, course)

    def taken(self, name: str, value: Any) -> Any:
        """An array of the caller on the GPU, of numbers of the right kind."""
        cp = arrays.cupy()
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
        function, source, parts = self._loaded.here()
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


def _load(cp: Any, motion: Gpu, device: int) -> tuple[Any, MotionSource, int]:
    """The function on a GPU, its source, and how many multiprocessors the GPU has."""
    attributes = cp.cuda.Device(device).attributes
    source = motion.emitted
    if source.shared > attributes[ROOM]:
        source = motion.alone
    function = function_of(module_of(cp, source.text), "run", source.shared)
    return function, source, int(attributes["MultiProcessorCount"])


def _strides(array: Any) -> list[Any]:
    """Numbers between two motions, two steps and two entries; 0 where one is for all."""
    each = zip(array.shape, array.strides, strict=True)
    return [np.int64(s // array.itemsize if n > 1 else 0) for n, s in each]


def _returned(cp: Any, array: Any, like: Any, there: bool) -> Any:
    """An array of the caller's library, where q was."""
    if not there:
        return arrays.given_back(cp.ascontiguousarray(array).get(), like)
    if arrays.library(like) in arrays.JAX:  # which takes no axes in another order
        array = cp.ascontiguousarray(array)
    return arrays.given_back(array, like)
