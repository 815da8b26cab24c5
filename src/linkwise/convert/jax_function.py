# pyright: basic
# (JAX is optional, and its interface for new operations has no type information)
"""Functions of JAX for whatever a kernel computes.

A kernel is one operation of JAX, `linkwise`, with the rules that its transformations need. XLA
calls its machine code directly (`codegen/cpu/xla.py`, `codegen/cuda/xla.py`). Derivatives are
kernels too, made when they are needed (`codegen/tangents.py`), and operations of the same
kind, so that they can be transformed again:

    jvp         along(f)(x, dx), which is linear in dx
    transpose   of along(f) is back(f), and of back(f) along(f)
    vmap        one more leading axis: one call for all states
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import threading
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.codegen import tangents
from linkwise.codegen.cpu import machine
from linkwise.codegen.cpu.device import Processor
from linkwise.codegen.cpu.digest import file_key
from linkwise.codegen.kernel import kernel
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status as status_code
from linkwise.codegen.stages import MOST_BODIES, Signature
from linkwise.errors import MissingExtraError, ModelError, ShapeError, TroubleWarning
from linkwise.loops.named import Named, requested_by
from linkwise.pipeline import Tree, written_by

if TYPE_CHECKING:
    from linkwise.sweeps.result_part import Names


def to_jax(
    expr: Named,
    mech: Tree,
    *,
    nodes: Sequence[str] = (),
    rows: Names | None = None,
    columns: Names | None = None,
    parameters: Sequence[str] = (),
    derive: bool = True,
    status: bool = False,
) -> Callable[..., Any]:
    """A function of JAX: for `jit`, `vmap`, `grad`, `jacfwd`, `jacrev`, `hessian`, as often nested.

        f = lw.convert.to_jax("forward_dynamics", mech)
        jax.grad(lambda q: f(q, v, tau) @ f(q, v, tau))(q)

    It takes the arrays of the kernel, in order or by name, (..., n) with any leading axes, which
    are broadcast. float64 and float32 follow from the arrays; 64 bits have to be enabled in JAX.
    XLA runs the machine code on its own arrays, on the processor or the GPU that has them.

    States without a result are NaN, in values and in gradients, since nothing can raise inside XLA;
    see `status`. On the processor a `TroubleWarning` reports the first one that each machine code
    meets. JAX raises at them where `jax_debug_nans` is set.

    Derivatives are by the entries of arrays. Quaternions in q are scaled to unit length first, so
    that gradients by their four numbers are tangent to the sphere: add a multiple of them, and the
    result is scaled again.

    Args:
        expr: As in `lw.compile`: an expression, several by name, or a formula; or the name of a
            quantity (`lw.dynamics.QUANTITIES`, and those of closed chains), such as
            "forward_dynamics", "mass_matrix" or "forward_dynamics_derivatives"; or a control law.
        status: Whether the function returns the codes (...) of the states too, 0 for success, as
            the second of a pair; `Kernel.describe` explains them. Values are then not reported,
            gradients are.

    Returns:
        The function. Of several results it returns a dictionary.

    Raises:
        MissingExtraError: JAX is not installed: the extra `jax`.
        ModelError: The kernel has no machine code: a formula of a mechanism with many bodies.
    """
    jax, operation = _operation()
    request = requested_by(
        expr, mech, nodes=nodes, rows=rows, columns=columns, parameters=parameters, derive=derive
    )
    with written_by(expr):
        signature = kernel(request).signature
    root = root_call(request, signature, reports=not status)
    layout = _layout(request, signature)
    names = tuple(name for name, _ in signature.inputs)

    @jax.jit
    def run(*arrays: Any) -> Any:
        aligned, lead = _aligned(jax.numpy, signature.inputs, arrays)
        flat, codes = operation.bind(*aligned, call=root)
        parts = {name: flat[..., at].reshape(*lead, *shape) for name, at, shape in layout}
        value = parts if request.names else parts[""]
        return (value, codes.reshape(lead)) if status else value

    declared = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )

    def function(*arrays: Any, **named: Any) -> Any:
        if named or len(arrays) != len(names):
            try:
                arrays = declared.bind(*arrays, **named).args
            except TypeError as error:
                raise ShapeError(f"{error}; this function takes {', '.join(names)}.") from None
        if any(type(x) in (list, tuple) for x in arrays):
            arrays = tuple(map(jax.numpy.asarray, arrays))
        return run(*arrays)

    function.__signature__ = declared  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = expr if isinstance(expr, str) else "linkwise"
    function.__doc__ = f"{request}: ({', '.join(names)}), each (..., n)."
    return function


def _layout(request: Request, signature: Signature) -> list[tuple[str, slice, tuple[int, ...]]]:
    """For each result its name, its place in a row and its shape."""
    shapes = signature.parts if request.names else (signature.shape,)
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
    places = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
    return list(zip(request.names or ("",), places, shapes, strict=True))


def _aligned(jnp: Any, inputs: Any, arrays: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Arrays of one kind of number, (*lead, n) or (n,) for all states, and the leading axes."""
    dtype = jnp.result_type(*arrays) if arrays else jnp.result_type(float)
    if not jnp.issubdtype(dtype, jnp.floating):
        if jnp.issubdtype(dtype, jnp.complexfloating):
            raise ShapeError("an array of complex numbers was given; kernels take real ones.")
        dtype = jnp.result_type(float)
    dtype = jnp.promote_types(dtype, jnp.float32)
    for (name, size), x in zip(inputs, arrays, strict=True):
        if not jnp.ndim(x) or jnp.shape(x)[-1] != size:
            raise ShapeError(
                f"{name} has shape {jnp.shape(x)}; it must be ({size},), or (..., {size}) with "
                "leading axes."
            )
    try:
        lead = jnp.broadcast_shapes(*(jnp.shape(x)[:-1] for x in arrays))
    except ValueError:
        shapes = ", ".join(
            f"{name} {jnp.shape(x)}" for (name, _), x in zip(inputs, arrays, strict=True)
        )
        raise ShapeError(f"leading axes cannot be broadcast together: {shapes}.") from None
    aligned = list[Any]()
    for x in arrays:
        x, n = jnp.asarray(x, dtype), jnp.shape(x)[-1]
        shared = math.prod(x.shape[:-1]) == 1
        aligned.append(x.reshape(n) if shared else jnp.broadcast_to(x, (*lead, n)))
    return aligned, lead


# ------------------------------------------------------------------------------------------ calls


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A kernel as an operation. JAX recognises it by its identity: each is made once.

    Attributes:
        request: What runs.
        inputs: For each input its name and length.
        width: Length of a row of results.
        linear: How many of its last inputs it is linear in.
        transpose: The call of its transpose, where it is linear.
        reports: Whether the first state without a result is reported.
    """

    request: Request
    inputs: tuple[tuple[str, int], ...]
    width: int
    linear: int = 0
    transpose: Callable[[], Call] | None = None
    reports: bool = True
    _made: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def along(self, wrt: tuple[str, ...]) -> Call:
        """Its derivative along directions of some inputs, which are its last inputs."""
        if ("along", wrt) not in self._made:
            sizes = dict(self.inputs)
            self._made["along", wrt] = Call(
                tangents.pushforward(self.request, wrt),
                (*self.inputs, *((tangents.unused(f"d{x}", sizes), sizes[x]) for x in wrt)),
                self.width,
                len(wrt),
                lambda: self.back(wrt),
            )
        return self._made["along", wrt]

    def back(self, wrt: tuple[str, ...]) -> Call:
        """Its gradients by some inputs, for weights of its results, which are the last input."""
        if ("back", wrt) not in self._made:
            sizes = dict(self.inputs)
            self._made["back", wrt] = Call(
                tangents.pullback(self.request, wrt),
                (*self.inputs, (tangents.unused(tangents.WEIGHT, sizes), self.width)),
                sum(sizes[name] for name in wrt),
                1,
                lambda: self.along(wrt),
            )
        return self._made["back", wrt]

    def target(self, platform: str, itemsize: int, batch: int) -> str:
        """The name under which XLA finds its machine code; compiled where it is not known."""
        with _LOCK:
            many = batch > 1
            key = platform, itemsize, many
            if key not in self._made:
                request = replace(self.request, itemsize=itemsize)
                self._made[key] = _registered(request, platform, many, self.reports)
            return self._made[key]


def root_call(request: Request, signature: Signature, *, reports: bool = True) -> Call:
    """The call of a request, with quaternions of any length."""
    tree = getattr(request.mech, "mech", request.mech)  # of an embedded mechanism
    named = any(name == "q" for name, _ in signature.inputs)
    runs = tangents.value(request) if named and tangents.quaternions(tree) else request
    return Call(runs, signature.inputs, math.prod(signature.shape), reports=reports)


_LOCK = threading.RLock()
_HANDLERS: dict[str, Any] = {}
"""Handlers by the name under which XLA knows them; it never forgets one."""


def _registered(request: Request, platform: str, many: bool, reports: bool) -> str:
    key = file_key(request, machine.versions()) or uuid.uuid4().hex
    kind = f"{'many' if many else 'one'}_{'reporting' if reports else 'quiet'}"
    name = f"linkwise_{platform}_{kind}_{key[:40]}"
    if name not in _HANDLERS:
        handler = _handler(request, platform, many, reports)
        ffi = importlib.import_module("jax.ffi")
        ffi.register_ffi_target(name, handler.capsule, platform=platform)
        _HANDLERS[name] = handler
    return name


def _handler(request: Request, platform: str, many: bool, reports: bool) -> Any:
    if platform == "CUDA":
        from linkwise.codegen.cuda.device import Gpu
        from linkwise.codegen.cuda.xla import gpu_handler

        devices = importlib.import_module("jax").local_devices(backend="gpu")
        return gpu_handler(Gpu(request), [device.local_hardware_id for device in devices])
    from linkwise.codegen.cpu.xla import processor_handler

    device = kernel(request).device
    assert isinstance(device, Processor)
    if device.machine.evaluated is not None:
        raise ModelError(
            f"{request} has no machine code: formulas are compiled for about {MOST_BODIES} bodies "
            f"at most, and {request.mech.name!r} has {request.mech.n_bodies}."
        )
    return processor_handler(device, many=many, report=_reporter(request) if reports else None)


def _reporter(request: Request) -> Callable[[int], None]:
    """Warns of a state without a result, by its code."""

    def report(code: int) -> None:
        text = (
            f"a state has no result in {tangents.described(request)}, called by JAX, and is NaN: "
            f"{status_code.describe(code, request.mech)}. This is reported once; to_jax(..., "
            "status=True) gives a code for each state."
        )
        warnings.warn(text, TroubleWarning, stacklevel=1)

    return report


# ------------------------------------------------------------------------------------------ rules


@cache
def _operation() -> tuple[Any, Any]:
    """JAX, and the operation with its rules."""
    try:
        jax = importlib.import_module("jax")
        ffi = importlib.import_module("jax.ffi")
        core = importlib.import_module("jax.extend.core")
        ad, batching, mlir = (
            importlib.import_module(f"jax.interpreters.{name}")
            for name in ("ad", "batching", "mlir")
        )
    except ImportError:
        raise MissingExtraError("lw.convert.to_jax", package="jax", extra="jax") from None
    jnp, shaped = jax.numpy, jax.core.ShapedArray
    p = core.Primitive("linkwise")
    p.multiple_results = True

    @p.def_abstract_eval
    def abstract(*args: Any, call: Call) -> Any:
        lead = next((x.shape[:-1] for x in args if x.ndim > 1), ())
        return shaped((*lead, call.width), args[0].dtype), shaped(lead, np.dtype(np.int32))

    @p.def_impl
    def run(*args: Any, call: Call) -> Any:
        with jax.disable_jit(False), jax.debug_nans(False):  # either would call this again
            return jax.jit(lambda *x: p.bind(*x, call=call))(*args)

    def differentiated(primals: Any, tangents_in: Any, *, call: Call) -> Any:
        split = len(primals) - call.linear
        flat, codes = p.bind(*primals, call=call)
        moving = [i for i, t in enumerate(tangents_in) if type(t) is not ad.Zero]
        inner = [i for i in moving if i < split]
        rates = list[Any]()
        if len(inner) < len(moving):  # linear in these: the same operation
            directions = map(ad.instantiate_zeros, tangents_in[split:])
            rates.append(p.bind(*primals[:split], *directions, call=call)[0])
        if inner:
            derivative = call.along(tuple(call.inputs[i][0] for i in inner))
            directions = (tangents_in[i] for i in inner)
            rates.append(p.bind(*primals, *directions, call=derivative)[0])
        still = ad.Zero(shaped(codes.shape, jax.dtypes.float0))
        return (flat, codes), (sum(rates[1:], rates[0]), still)

    def transposed(cotangents: Any, *args: Any, call: Call) -> Any:
        split = len(args) - call.linear
        weight, _ = cotangents
        if type(weight) is ad.Zero:
            return [None] * len(args)
        assert call.transpose is not None
        other = call.transpose()
        pieces = jnp.split(weight, _ends(other), axis=-1)
        flat, _ = p.bind(*args[:split], *pieces, call=other)
        pieces = jnp.split(flat, _ends(call), axis=-1)
        return [None] * split + [
            _summed(piece, x.aval.ndim) if ad.is_undefined_primal(x) else None
            for x, piece in zip(args[split:], pieces, strict=True)
        ]

    def batched(args: Any, dims: Any, *, call: Call) -> Any:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        each = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
        leads = [x.shape[d is not None : -1] for x, d in zip(each, dims, strict=True)]
        lead = max(leads, key=len)

        def aligned(x: Any, d: int | None) -> Any:
            n = x.shape[-1]
            if d is None:
                return x if x.ndim == 1 else jnp.broadcast_to(x, (size, *lead, n))
            if x.ndim == 2:
                x = x.reshape(size, *(1 for _ in lead), n)
            return jnp.broadcast_to(x, (size, *lead, n))

        results = p.bind(*(aligned(x, d) for x, d in zip(each, dims, strict=True)), call=call)
        return results, (0, 0)

    def lowered(platform: str) -> Any:
        def rule(context: Any, *operands: Any, call: Call) -> Any:
            values, codes = context.avals_out
            name = call.target(platform, values.dtype.itemsize, math.prod(codes.shape))
            return ffi.ffi_lowering(name)(context, *operands)

        return rule

    ad.primitive_jvps[p] = differentiated
    ad.primitive_transposes[p] = transposed
    batching.primitive_batchers[p] = batched
    mlir.register_lowering(p, lowered("cpu"), platform="cpu")
    mlir.register_lowering(p, lowered("CUDA"), platform="cuda")
    return jax, p


def _ends(call: Call) -> list[int]:
    """Where the pieces of its linear inputs end, one after another, without the last."""
    linear = call.inputs[len(call.inputs) - call.linear :]
    return list(itertools.accumulate(size for _, size in linear))[:-1]


def _summed(x: Any, ndim: int) -> Any:
    """Over the leading axes that an input of `ndim` axes does not have."""
    return x.sum(axis=tuple(range(x.ndim - ndim)))
