"""Kernels: compiled expressions that are called with arrays."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import is_tracked
from linkwise.codegen import arrays
from linkwise.codegen.derivative_form import DerivativeForm
from linkwise.codegen.device import ANY, Device, Trouble, trouble
from linkwise.codegen.formula import Formula, TooLongError
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import parameters, status
from linkwise.codegen.stages import Signature, Stages
from linkwise.errors import (
    LinkwiseError,
    ModelError,
    ShapeError,
    TroubleWarning,
    caller,
    unknown_name,
)
from linkwise.front_door import open_front_door
from linkwise.model.state import quaternion_advice
from linkwise.spatial.array import Array

Status = NDArray[np.int32]

TARGETS = ("cpu", "cuda", "c", "numpy")

SHOWN = 40
"""Lines of the source that `explain` shows."""


@dataclass(frozen=True, slots=True)
class Kernel(Stages):
    """A compiled expression of one mechanism, or several whose results have names.

    Call it with its arrays, in the order of `arguments` or by name; each is (n,) for one state or
    (batch, n) for many, and arrays without the batch axis are used for all states. Arrays are
    NumPy's or those of CuPy, Torch, JAX or another library that supports DLPack; the result is of
    the same library, on the same device. Several results are returned as a dictionary of views of
    one array, in which they are concatenated, matrices row by row.

    Attributes:
        request: The request.
        target: "cpu", "cuda" or "numpy".
        device: Where it runs.
    """

    request: Request
    target: str
    device: Device
    _fast: Callable[..., Any] = field(init=False, repr=False)
    _layout: tuple[tuple[str, slice, tuple[int, ...]], ...] = field(init=False, repr=False)
    _other: list[Device] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        layout, start = list[tuple[str, slice, tuple[int, ...]]](), 0
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            layout.append((name, slice(start, start + size), shape))
            start += size
        object.__setattr__(self, "_layout", tuple(layout))
        object.__setattr__(self, "_other", [])
        bare, names = self.device.fast, tuple(self.shapes)

        def parted(*given: Any) -> Any:
            result = None if bare is None else bare(*given)
            return None if result is None else dict(zip(names, result, strict=True))

        object.__setattr__(self, "_fast", bare if bare is not None and not layout else parted)

    def __repr__(self) -> str:
        result = ", ".join(self.shapes) or f"array {self.signature.shape}"
        result = result if len(result) <= 40 else f"{len(self.shapes)} results"
        taken = ", ".join(self.arguments)
        return f"<Kernel of {self.mech.name!r} for {self.target!r}: ({taken}) -> {result}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return kernel, (self.request, self.target)  # machine code belongs to its process

    def __copy__(self) -> Kernel:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> Kernel:
        return self

    @property
    def signature(self) -> Signature:
        """Its inputs and results."""
        return self.device.signature

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        return tuple(name for name, _ in self.device.inputs)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each result that has a name, for one state."""
        names = self.request.names
        return dict(zip(names, self.signature.parts, strict=True)) if names else {}

    @property
    def quick(self) -> Callable[..., Any] | None:
        """The fast call for one state: no options, and None where `__call__` is needed."""
        return self._fast if self.device.fast is not None else None

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations for one state, by kind."""
        return self.signature.ops

    @property
    def dtype(self) -> np.dtype[Any]:
        """Kind of its numbers."""
        return np.dtype(np.float64 if self.request.itemsize == 8 else np.float32)

    @property
    def source(self) -> str:
        """The text of its code, before optimisation."""
        return self.device.source

    def nominal(self, parameter: str) -> Array:
        """The value of a run-time parameter for the mechanism as it is."""
        return parameters.nominal(self.mech, parameter)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The value: the shape of the expression, with the batch axis in front if there is one.

        In a batch, states without a result are NaN and the others are right; without `status` a
        `TroubleWarning` reports how many and why. A single state without a result raises. On a
        GPU, nothing waits for the result if `status` is given.

        Args:
            arrays: The inputs, in the order of `arguments`.
            named: Inputs by name, and the options below.
            out: The array for the result; default: a new one.
            status: Array of int32 (batch,), or () for one state, that receives a code for each
                state, 0 for success; `describe` explains the others. Numerical failures then do
                not raise.
            threads: Processor cores for a batch; default: chosen from the batch size.

        Raises:
            ShapeError: An array is missing or does not fit; says which.
            ModelError: An input of a single state is not finite, or a quaternion is not of unit
                length; says which.
            SingularHingeError: Nothing resists a hinge of a single state; says which.
        """
        if not named:
            quick = self._fast(*arrays)
            if quick is None and any(type(x) in (list, tuple) for x in arrays):
                quick = self._fast(*map(_as_array, arrays))
            if quick is not None:
                return quick
        return self._careful(arrays, **named)

    def _careful(
        self,
        given: tuple[Any, ...],
        out: Any = None,
        status: Any = None,
        threads: int | None = None,
        **named: Any,
    ) -> Any:
        if not named:
            quick = self.device.whole_batch(given, out, status, threads)
            if quick is not None:
                return self._parted(quick)
        values = self._values(given, named)
        if any(map(is_tracked, values)):
            return self._parted(self._tracked(values, out, status))
        device, like = self._device(values), arrays.foreign(values)
        with device.entered(values, like):
            rows, batch = self._rows(device, values)
            lead = () if batch is None else (batch,)
            shape = lead if out is None else (*lead, *self.signature.shape)
            place = None if out is None else device.place("out", out, shape, self.dtype)
            codes = None if status is None else device.place("status", status, lead, np.int32)
            direct = place is not None and device.usable(place, rows)
            result, bad = device.run(rows, batch, place if direct else None, codes, threads)
            if place is not None and not direct:
                place[...] = result
            if bad is not None:
                self._tell(device, bad, rows, batch)
            return self._parted(arrays.given_back(result, like) if out is None else out)

    def _tracked(self, values: list[Any], out: Any, status: Any) -> Any:
        """The result for tensors that Torch differentiates."""
        from linkwise.codegen.torch_call import differentiable

        if out is not None:
            raise ShapeError(
                "out was given together with a tensor that requires a gradient; leave out out=, or "
                "detach the inputs: x.detach()."
            )
        return differentiable(self, values, status)

    def _parted(self, flat: Any) -> Any:
        """The results by name, as views of an array (total,) or (batch, total)."""
        if not self._layout:
            return flat
        lead = () if flat.ndim == 1 else (len(flat),)  # DLPack's arrays need have no more
        return {n: flat[..., at].reshape((*lead, *shape)) for n, at, shape in self._layout}

    def describe(self, code: int) -> str:
        """The meaning of a status code, naming the body."""
        return status.describe(int(code), self.mech)

    @property
    def derivative_form(self) -> DerivativeForm | None:
        """Of a derivative by `lw.jvp` or `lw.vjp`, the form that runs; None for anything else."""
        from linkwise.codegen.sensitivity import form_of

        return form_of(self.request)

    def explain(self) -> str:
        """The derivation, the sweeps, the operation count and the beginning of the source.

        A formula has no derivation. For a derivative by `lw.jvp` or `lw.vjp` it says
        whether the scalar graph or the algebra was differentiated, and what each takes.
        """
        if isinstance(self.request.quantity, Formula):
            what = f"{self.request}, written in array code on top of expressions"
            what += "" if (form := self.derivative_form) is None else f"\n{form}"
        else:
            what = f"{self.derivation}\n\n{self.program}"
        try:
            lines = self.source.splitlines()
        except TooLongError:  # evaluated on kernels of its expressions
            return f"{what}\n\n{self.dtype}, array code on kernels with loops over bodies"
        counts = ", ".join(f"{n} {op}" for op, n in sorted(self.ops.items()))
        head = "\n".join(lines[:SHOWN])
        more = f"\n... {len(lines) - SHOWN} more lines: kernel.source" if len(lines) > SHOWN else ""
        return (
            f"{what}\n\noperations for one state: {counts}\n"
            f"{self.dtype}, {self.device.description}\n\n{head}{more}"
        )

    # ------------------------------------------------------------------------------- arrays

    def _values(self, given: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        names = self.arguments
        takes = f"this kernel takes {', '.join(names)}"
        if len(given) > len(names):
            raise ShapeError(f"{len(given)} arrays were given; {takes}.")
        values = dict(zip(names, given, strict=False))
        for name in named:
            if name in values or name not in names:
                what = "is given twice" if name in values else "is not known"
                raise ShapeError(f"{name} {what}; {takes}.")
        values |= named
        for name in names:
            if name not in values:
                raise ShapeError(f"{name} is missing; {takes}.")
        return [values[name] for name in names]

    def _device(self, values: list[Any]) -> Device:
        """The device of the arrays: a kernel for "cpu" runs on the GPU that has them."""
        if self.target != "cpu" or not any(map(arrays.is_on_gpu, values)):
            return self.device
        if not self._other:
            self._other.append(_device(self.request, "cuda"))
        return self._other[0]

    def _rows(self, device: Device, values: list[Any]) -> tuple[list[Any], int | None]:
        """The inputs as the device reads them, and the size of the batch if there is one."""
        rows, batch = list[Any](), None
        for (name, size), value in zip(self.device.inputs, values, strict=True):
            array = device.taken(name, value)
            if array.ndim not in (1, 2) or size not in (array.shape[-1], ANY):
                wide = "n" if size == ANY else size
                raise ShapeError(
                    f"{name} has shape {array.shape}; it must be ({wide},) or (batch, {wide})."
                )
            if array.ndim == 2:
                if batch not in (None, 1, len(array)) and len(array) != 1:
                    raise ShapeError(f"{name} has {len(array)} rows; the batch has {batch}.")
                batch = len(array) if batch in (None, 1) else batch
            rows.append(array)
        return rows, batch

    # ------------------------------------------------------------------------------ trouble

    def _tell(self, device: Device, bad: Trouble, rows: list[Any], batch: int | None) -> None:
        if batch is None:
            raise self._error(bad.code, [device.numbers(row) for row in rows])
        self._warn(bad, batch)

    def warn(self, codes: Status) -> None:
        """Warn about the states of a batch that have a code (batch,), if there are any."""
        if np.ndim(codes) != 1 or np.asarray(codes).dtype.kind not in "iu":
            raise ShapeError(f"codes must be integers (batch,); found {codes!r}.")
        bad = trouble(np.asarray(codes))
        if bad is not None:
            self._warn(bad, len(codes))

    def _warn(self, bad: Trouble, batch: int) -> None:
        worst, times = bad.often
        alike = times in (0, bad.count)
        often = "" if alike else f" Most often ({times} times): {self.describe(worst)}."
        warnings.warn(
            f"{bad.count} of {batch} states have no result and are NaN; row {bad.first}: "
            f"{self.describe(bad.code)}.{often} Give status= to get a code for each state instead "
            "of this warning.",
            TroubleWarning,
            stacklevel=caller(),
        )

    def _error(self, code: int, rows: list[NDArray[Any]]) -> LinkwiseError:
        for name, row in zip(self.arguments, rows, strict=True):
            finite = np.isfinite(row.reshape(-1))
            if code == status.INPUT and not finite.all():
                entry = int(np.argmin(finite))
                tree = getattr(self.mech, "mech", self.mech)  # q of an embedded one is all of it
                known = {"q": tree.coordinate_names, "v": self.mech.velocity_names}
                which = f" at {known[name][entry]!r}" if name in known else ""
                return ModelError(f"{name} is not finite{which} (entry {entry}).")
            if name == "q" and (body := status.with_quaternion(code, self.mech)) is not None:
                k, tree = body
                q_k = row.reshape(-1)[int(tree.q_start[k]) : int(tree.q_start[k + 1])]
                return ModelError(
                    f"the quaternion of body {tree.bodies[k].name!r} is not of unit length: it has "
                    f"length {float(np.linalg.norm(q_k[:4])):.6g}. {quaternion_advice(q_k)}"
                )
        return status.error(code, self.mech)


def kernel(request: Request, target: str = "cpu") -> Kernel:
    """The kernel of a request, compiled, or loaded from disk."""
    return Kernel(request, target, _device(request, target))


def _device(request: Request, target: str) -> Device:
    match target:
        case "cpu":
            from linkwise.codegen.cpu.device import Processor

            return Processor.of(request)
        case "cuda" if request.schedule == "scan":
            from linkwise.codegen.scan.device import ChainGpu

            return ChainGpu(request)
        case "cuda":
            from linkwise.codegen.cuda.device import Gpu

            return Gpu(request)
        case "numpy":
            from linkwise.codegen.interpreter import Interpreter

            return Interpreter(request)
        case _:
            raise unknown_name("target", target, TARGETS, owner="lw.compile")


def _as_array(x: Any) -> Any:
    """Lists of numbers as an array; other values as they are."""
    if type(x) in (list, tuple):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            array = np.array(x)
            return array.astype(np.float64) if array.dtype.kind in "iu" else array
    return x


open_front_door(globals(), ("Kernel",))
