# pyright: basic
# (Torch is optional, and has no type information here)
"""Kernels as functions of Torch: differentiated, mapped and compiled as Torch's functions are.

A function has a number. One operator, `linkwise::call`, takes that number and the inputs; its
derivatives are calls with the numbers of other functions (`tangents.py`), so that they can be
differentiated again. `torch.compile` sees the operator; elsewhere the `torch.autograd.Function`
beside it runs, which has forward derivatives too.
"""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from linkwise.codegen import arrays, tangents
from linkwise.codegen.device import ANY
from linkwise.codegen.kernel import Kernel, kernel
from linkwise.codegen.request import Request, once_per_request
from linkwise.errors import ShapeError

torch: Any = import_module("torch")

Trouble: TypeAlias = Literal["raise", "warn", "quiet"]
"""What happens to a state without a result: an error (in a batch a warning), a warning, nothing."""

_functions: weakref.WeakValueDictionary[int, Function]
_numbers = itertools.count()


@dataclass(eq=False)
class Function:
    """A function that Torch can call by its number.

    Attributes:
        request: Its kernel for float64.
        inputs: Name and length of each input.
        size: Length of the result.
        trouble: What happens to a state without a result.
        kernels: The kernels it has, by bytes of a number and target.
        number: Its number.
    """

    request: Request
    inputs: tuple[tuple[str, int], ...]
    size: int
    trouble: Trouble
    kernels: dict[tuple[int, str], Kernel] = field(default_factory=lambda: {})
    maps: dict[object, Function] = field(default_factory=lambda: {})
    number: int = field(default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        _functions[self.number] = self

    def kernel(self, itemsize: int, target: str) -> Kernel:
        """Its kernel for numbers of 8 or 4 bytes."""
        key = itemsize, target
        if key not in self.kernels:
            self.kernels[key] = kernel(replace(self.request, itemsize=itemsize), target)
        return self.kernels[key]

    def derivative(self, kind: Literal["pushforward", "pullback"], by: tuple[bool, ...]) -> int:
        """The number of its derivative by some of its inputs."""
        key = kind, by
        if key not in self.maps:
            chosen = tuple(itertools.compress(self.inputs, by))
            wrt = tuple(name for name, _ in chosen)
            if kind == "pushforward":
                request, size = tangents.pushforward(self.request, wrt), self.size
            else:
                request, size = tangents.pullback(self.request, wrt), sum(n for _, n in chosen)
            inputs = tangents.graph_of(request).inputs
            self.maps[key] = Function(request, inputs, size, self.trouble)
        return self.maps[key].number


_functions = weakref.WeakValueDictionary()


def function_of(request: Request, trouble: Trouble) -> Function:
    """The function that a request computes, of the entries of its inputs."""
    request = replace(request, itemsize=8)
    graph = tangents.graph_of(request)
    return Function(request, graph.inputs, tangents.size_of(request), trouble)


@once_per_request
def _of_kernel(request: Request, trouble: Trouble) -> Function:
    return function_of(request, trouble)


def differentiable(made: Kernel, values: Sequence[Any], status: Any) -> Any:
    """A kernel called with tensors that Torch differentiates: the result follows them.

    Args:
        made: The kernel.
        values: Its inputs.
        status: An array for the code of each state.
    """
    function = _of_kernel(made.request, "raise" if status is None else "quiet")
    function.kernels.setdefault((made.request.itemsize, made.target), made)
    single = made.request.itemsize == 4
    rows = tensors(function.inputs, values, torch.float32 if single else torch.float64)
    result, codes = call(function.number, rows)
    if status is not None:
        if torch._C._are_functorch_transforms_active():
            raise ShapeError(
                "status was given inside a transformation of torch.func, which cannot fill it; "
                "lw.convert.to_torch(..., status=True) returns the codes."
            )
        torch.as_tensor(status).copy_(codes)
    return result.reshape((*result.shape[:-1], *made.signature.shape))


# -------------------------------------------------------------------------------------- calling


def _run(number: int, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Results (..., size) and codes (...) of tensors (..., n), in one call of a kernel."""
    function, first, lead = _functions[number], inputs[0], _lead(inputs)
    made = function.kernel(first.dtype.itemsize, "cuda" if first.is_cuda else "cpu")
    batch = (prod(lead),) if lead else ()
    with arrays.stream(first) if first.is_cuda else nullcontext():
        rows = [_rows(_bare(x.detach()), lead) for x in inputs]
        if lead and all(x.ndim == 1 for x in rows):
            rows[0] = np.broadcast_to(rows[0], (*batch, len(rows[0])))
        result = torch.empty((*lead, function.size), dtype=first.dtype, device=first.device)
        codes = torch.empty(lead, dtype=torch.int32, device=first.device)
        out = _bare(result).reshape((*batch, *made.signature.shape))
        status = _bare(codes).reshape(batch)
        made(*rows, out=out, status=status)
        if function.trouble != "quiet" and status.any():
            if function.trouble == "raise" and not lead:
                made(*rows)
            made.warn(codes.reshape(-1).cpu().numpy())
    return result, codes


def _bare(x: Any) -> Any:
    """The numbers of a tensor as an array of NumPy or CuPy, in the same memory."""
    return arrays.taken("a tensor", x) if x.is_cuda else x.numpy()


def _rows(x: Any, lead: tuple[int, ...]) -> Any:
    """An array (..., n) as rows (batch, n), or (n,) if all states share it."""
    if x.ndim == 1 or (x.ndim == 2 == len(lead) + 1 and len(x) == lead[0]):  # most calls
        return x
    n, before = x.shape[-1], x.shape[:-1]
    if prod(before) == 1:
        return x.reshape(n)
    x = x if before == lead else np.broadcast_to(x, (*lead, n))
    return x.reshape(prod(lead), n)


def _lead(inputs: Sequence[Any]) -> tuple[int, ...]:
    shapes = [x.shape[:-1] for x in inputs]
    longest = shapes[0]
    for shape in shapes:
        longest = shape if len(shape) > len(longest) else longest
    if all(shape == longest or not shape for shape in shapes):  # most calls
        return tuple(longest)
    return tuple(torch.broadcast_shapes(*shapes))


def _mapped(dims: Sequence[int | None], number: int, inputs: Sequence[Any]) -> Any:
    """The operator for tensors with one more axis: that axis in front, one call."""
    pairs = list(zip(inputs, dims, strict=True))
    axes = max(x.ndim - (d is not None) for x, d in pairs)
    moved: list[Any] = []
    for x, d in pairs:
        if d is not None:
            x = x.movedim(d, 0)
            x = x.reshape(x.shape[0], *(1 for _ in range(axes + 1 - x.ndim)), *x.shape[1:])
        moved.append(x)
    return call(number, moved), (0, 0)


def _pulled_back(ctx: Any, needed: Iterable[bool], weight: Any, calling: Any) -> list[Any]:
    """Gradients by the inputs that need one; `calling` is `operator` where that was called."""
    function, by, inputs = ctx.function, tuple(needed), ctx.saved_tensors
    if weight is None:
        return [None] * len(by)
    flat, _ = calling(function.derivative("pullback", by), [*inputs, weight])
    sizes = [n for _, n in itertools.compress(function.inputs, by)]
    parts = iter(flat.split(sizes, -1))
    pairs = zip(inputs, by, strict=True)
    return [next(parts).sum_to_size(x.shape) if chosen else None for x, chosen in pairs]


def _keep(ctx: Any, number: int, inputs: Sequence[Any], output: Any) -> None:
    ctx.function = _functions[number]
    ctx.save_for_backward(*inputs)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _fake(number: int, inputs: Sequence[Any]) -> Any:
    lead = _lead(inputs)
    result = inputs[0].new_empty((*lead, _functions[number].size))
    return result, inputs[0].new_empty(lead, dtype=torch.int32)


operator = torch.library.custom_op(
    "linkwise::call",
    _run,
    mutates_args=(),
    schema="(int number, Tensor[] inputs) -> (Tensor, Tensor)",
)
operator.register_fake(_fake)
operator.register_autograd(
    lambda ctx, weight, _: (None, _pulled_back(ctx, ctx.needs_input_grad[1], weight, operator)),
    setup_context=lambda ctx, inputs, output: _keep(ctx, inputs[0], inputs[1], output),
)
operator.register_vmap(lambda info, dims, number, inputs: _mapped(dims[1], number, inputs))


class Call(torch.autograd.Function):
    """A call outside of `torch.compile`."""

    @staticmethod
    def forward(number: int, *inputs: Any) -> Any:
        """The results and codes."""
        return _run(number, inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the derivatives need."""
        _keep(ctx, inputs[0], inputs[1:], output)
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, weight: Any, _: Any) -> Any:
        """The gradients."""
        return None, *_pulled_back(ctx, ctx.needs_input_grad[1:], weight, call)

    @staticmethod
    def jvp(ctx: Any, _: None, *rates: Any) -> Any:
        """The derivative along directions."""
        push = ctx.function.derivative("pushforward", tuple(x is not None for x in rates))
        given = [*ctx.saved_tensors, *(x for x in rates if x is not None)]
        return call(push, given)[0], None

    @staticmethod
    def vmap(info: Any, dims: Any, number: int, *inputs: Any) -> Any:
        """Many calls as one."""
        return _mapped(dims[1:], number, inputs)


forward: Any = Call.forward
forward.__signature__ = inspect.signature(forward)  # which each call reads


def call(number: int, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Results (..., size) and codes (...) of a function on tensors (..., n) of one dtype."""
    if torch.compiler.is_compiling():
        return operator(number, list(inputs))
    if any(map(_is_batched, inputs)):
        return _mapped_by_autograd(number, inputs)
    return Call.apply(number, *inputs)


_is_batched: Any = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda x: False)


def _mapped_by_autograd(number: int, inputs: Sequence[Any]) -> tuple[Any, Any]:
    """A call inside the older `vmap` that `torch.autograd` has for batches of gradients."""
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    bare = [torch._remove_batch_dim(x, level, 1, 0) if _is_batched(x) else x for x in inputs]
    dims = [0 if _is_batched(x) else None for x in inputs]
    if any(map(_is_batched, bare)):
        raise ShapeError("gradients are batched twice by torch.autograd; use torch.func.vmap.")
    results, _ = _mapped(dims, number, bare)
    return tuple(torch._add_batch_dim(x, 0, level) for x in results)


# --------------------------------------------------------------------------------------- tensors


def tensors(
    inputs: tuple[tuple[str, int], ...], values: Sequence[Any], dtype: Any = None
) -> list[Any]:
    """Inputs as tensors of one dtype on one device, (..., n) each.

    Args:
        inputs: Name and length of each.
        values: Tensors, arrays or numbers.
        dtype: The dtype; default: the one to which Torch promotes those of the tensors.

    Raises:
        ShapeError: One does not fit; says which.
    """
    given = [x for x in values if isinstance(x, torch.Tensor)]
    device = next((x.device for x in given if x.device.type != "cpu"), None)
    if dtype is None:
        kinds = [x.dtype for x in given if x.is_floating_point()]
        dtype = torch.get_default_dtype() if not kinds else kinds[0]
        for kind in kinds[1:]:
            dtype = torch.promote_types(dtype, kind)
    if dtype not in (torch.float32, torch.float64):
        raise ShapeError(f"the inputs are {dtype}; kernels compute in float32 or float64.")
    rows: list[Any] = []  # torch.compile reads this line
    for (name, size), value in zip(inputs, values, strict=True):
        x = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
        if x.ndim == 0 or size not in (x.shape[-1], ANY):
            raise ShapeError(
                f"{name} has shape {tuple(x.shape)}; its last axis must have length {size}."
            )
        if device is not None and x.device != device and isinstance(value, torch.Tensor):
            raise ShapeError(f"{name} is on {x.device}, other inputs are on {device}.")
        rows.append(x.to(device=device, dtype=dtype))
    try:
        _lead(rows)
    except RuntimeError:
        shapes = {n: tuple(x.shape[:-1]) for (n, _), x in zip(inputs, rows, strict=True)}
        raise ShapeError(f"the leading axes of the inputs cannot be combined: {shapes}.") from None
    return rows
