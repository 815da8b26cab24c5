"""Kernels of motions: many steps of many motions in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.codegen.scalar import status
from linkwise.codegen.stepping.device import (
    Course,
    Facts,
    MotionDevice,
    Motions,
    Records,
    StepRequest,
)
from linkwise.codegen.stepping.processor import Processor
from linkwise.codegen.stepping.stepping import Place, Stepping
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array


class MotionKernel:
    """An integrator on one mechanism, for the processor or a GPU.

    Attributes:
        request: What its code depends on.
        target: "cpu" or "cuda".
        device: Where it runs.
        mech: The mechanism.
        integrator: Name of the integrator.
        dtype: Kind of its numbers.
    """

    device: MotionDevice

    def __init__(self, request: StepRequest, target: str = "cpu") -> None:
        """Compile it, or load it from disk; for a GPU when it is first called."""
        self.request, self.target = request, target
        self.mech, self.integrator = request.mech, request.integrator
        self.dtype: np.dtype[Any] = np.dtype(f"float{8 * request.itemsize}")
        if target == "cuda":
            from linkwise.codegen.stepping.cuda_device import Gpu

            self.device = Gpu(request, self.stepping, Facts.of(self.stepping))
        else:
            self.device = Processor(request)
        self._facts = self.device.facts

    @cached_property
    def stepping(self) -> Stepping:
        """The segments."""
        return self.request.stepping(self.target)

    @property
    def held(self) -> tuple[tuple[str, int], ...]:
        """What is held over each step, with lengths."""
        return self._facts.held

    @property
    def begins(self) -> tuple[tuple[str, int], ...]:
        """What is given at the beginning besides q and v, with lengths."""
        return self._facts.begins

    @property
    def shown(self) -> dict[str, int]:
        """What records have behind q and v, with lengths."""
        return self._facts.shown

    @property
    def layout(self) -> tuple[Place, ...]:
        """What records of steps that resume are made of."""
        return self._facts.layout

    @property
    def width(self) -> int:
        """Numbers of a record: q, v, and what else is shown."""
        return self._facts.width

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of one step, by kind.

        A loop counts once: for a variational step that is one round, while solving it takes
        several.
        """
        return self._facts.ops

    @property
    def source(self) -> str:
        """The text of its code, before optimisation."""
        return self.device.source

    @property
    def processor(self) -> Processor:
        """The device of a kernel for "cpu"."""
        assert isinstance(self.device, Processor), "the kernel is for a GPU"
        return self.device

    @property
    def lanes(self) -> int:
        """Motions in one vector register of the processor."""
        return self.processor.lanes

    def describe(self, code: int) -> str:
        """The meaning of a status code, naming the body."""
        return describe(self.mech, code)

    # ------------------------------------------------------------------------------- calls

    def __call__(
        self,
        q: Any,
        v: Any,
        held: Mapping[str, Any],
        *,
        step: float,
        steps: int,
        every: int,
        threads: int | None = None,
        seed: int = 0,
        first: int = 0,
    ) -> Motions:
        """All motions of a batch, the beginning first.

        On a GPU, arrays of NumPy are copied there and results come back; where q is there, results
        stay, as arrays of the same library. Inputs that differ from motion to motion are
        read fastest where they are laid out so too, as in
        `cupy.empty((steps, nv, batch)).transpose(2, 0, 1)`; others are laid out so first.

        Args:
            q: Joint positions (nq,) or (batch, nq).
            v: Joint velocities (nv,) or (batch, nv).
            held: Inputs by name: (n,) for all steps, (steps, n), or (batch, steps, n). One row is
                for all motions, or all steps. They may be in any distance in memory, also a
                negative one. Of `begins` the first step counts.
            step: The length of a step [s].
            steps: How many.
            every: Steps from one record to the next; the last state is recorded too.
            threads: Processor cores; default: chosen from the batch size.
            seed: Of random numbers.
            first: Number of the first motion in their counters.

        Raises:
            MissingExtraError: CuPy is not installed.
            DeviceError: There is no GPU, or the mechanism is too large for straight code there.
            ShapeError: An array does not fit; says which.
        """
        course = Course(step, steps, every, threads, seed, first)
        return self.moved(q, v, held, course)

    def moved(self, q: Any, v: Any, held: Mapping[str, Any], course: Course) -> Motions:
        """The same, with how far motions go in one argument."""
        with self.device.entered(q):
            return self.device.moved(*self._given(q, v, held, course.steps), course, q)

    def run(
        self,
        q: Array,
        v: Array,
        held: Mapping[str, Array],
        step: float,
        steps: int,
        every: int,
        threads: int | None = None,
    ) -> Records:
        """The same on the processor, without the beginning."""
        course = Course(step, steps, every, threads)
        return self.processor.run(*self._given(q, v, held, steps), course)

    def repeated(
        self,
        q: Array,
        v: Array,
        held: Mapping[str, Array],
        course: Course,
        out: Array | None = None,
    ) -> tuple[Callable[[], None], Records]:
        """A call without arguments that makes such a run, and where it puts the results.

        It reads the arrays each time anew, where they have contiguous rows of its kind of numbers,
        and fills the same results, `out` (batch, records, width) with contiguous rows. Records of
        motions with a code are as far as they came.
        """
        return self.processor.repeated(*self._given(q, v, held, course.steps), course, out)

    def _given(
        self, q: Any, v: Any, held: Mapping[str, Any], steps: int
    ) -> tuple[dict[str, Any], int]:
        """All inputs as (motions or 1, steps or 1, n), in the order of the code; how many motions.

        Raises:
            ShapeError: An array does not fit; says which.
        """
        facts, given = self._facts, dict[str, Any]()
        inputs = [("q", facts.nq, q), ("v", facts.nv, v)]
        inputs += [(name, size, held[name]) for name, size in (*facts.begins, *facts.held)]
        count = 1
        for k, (name, size, value) in enumerate(inputs):
            array, most = self.device.taken(name, value), 2 if k < 2 else 3
            axes, shape = array.ndim, array.shape
            fits = 0 < axes <= most and shape[-1] == size
            if not fits or (k > 1 and axes > 1 and shape[-2] not in (1, steps)):
                over = f"({steps}, {size}) or (batch, {steps}, {size})" if k > 1 else ""
                over = over or f"or (batch, {size})"
                raise ShapeError(f"{name} has shape {shape}; it must be ({size},), {over}.")
            if axes == most and shape[0] != 1:
                if count not in (1, shape[0]):
                    raise ShapeError(
                        f"batches differ: {name} has shape {shape}, and arrays before it {count} "
                        "motions."
                    )
                count = shape[0]
            array = array[..., None, :] if k < 2 else array
            given[name] = array if array.ndim == 3 else array[(None,) * (3 - array.ndim)]
        return given, count


def describe(mech: Mechanism, code: int) -> str:
    """A code of the status of a motion in words, naming the body."""
    k = code - status.turned(mech, 0)
    if 0 <= k < mech.n_bodies:
        return (
            f"body {mech.bodies[k].name!r} turns by more than half a turn in one step: the step is "
            "too long, or the motion grows without bounds"
        )
    if code == status.unsolved(mech):
        return "a variational step is not solved: the step is too long for the speed of the motion"
    if code == status.RESULT:
        return "numbers are no longer finite: the motion grows without bounds"
    return status.describe(code, mech)
