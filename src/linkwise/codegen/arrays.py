# pyright: basic
# (CuPy, Torch and JAX are optional, and have no type information here)
"""Arrays of callers: NumPy, CuPy, Torch, JAX, and whatever speaks DLPack.

Arrays of other libraries are viewed through DLPack or their own protocol, which gives the address
of the numbers: nothing is copied. Results are returned as arrays of the same library. DLPack makes
the stream that reads an array wait for the one that wrote it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from linkwise.arguments import gradient_is_lost, has_no_numbers, is_tracer, shown
from linkwise.errors import DeviceError, MissingExtraError, ShapeError

ON_GPU = (2, 13)
"""DLPack's numbers for memory of a GPU, its own and managed."""

JAX = ("jax", "jaxlib")


def library(value: Any) -> str:
    """The library of an array, by the module of its class."""
    return type(value).__module__.split(".")[0]


def is_on_gpu(value: Any) -> bool:
    """Whether numbers are on a GPU, and not in the memory of the computer."""
    cupy = sys.modules.get("cupy")
    if type(value) is np.ndarray or value is None:
        return False
    if cupy is not None and isinstance(value, cupy.ndarray):
        return True
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return hasattr(value, "__cuda_array_interface__")
    return int(value.__dlpack_device__()[0]) in ON_GPU


def foreign(values: Iterable[Any]) -> Any:
    """The first array that is neither NumPy's nor CuPy's: results are returned in its library."""
    cupy = sys.modules.get("cupy")
    known = (np.ndarray, np.generic) if cupy is None else (np.ndarray, np.generic, cupy.ndarray)
    return next((x for x in values if hasattr(x, "__dlpack__") and not isinstance(x, known)), None)


def given_back(array: Any, like: Any) -> Any:
    """An array of NumPy or CuPy as one of another library, in the same memory where possible."""
    if like is None:
        return array
    if library(like) in JAX:
        if isinstance(array, np.ndarray):
            return import_module("jax.numpy").asarray(array)
        return import_module("jax.dlpack").from_dlpack(array)
    if library(like) == "torch":
        return import_module("torch").from_dlpack(array)
    return like.__array_namespace__().from_dlpack(array)


def here(name: str, value: Any) -> Any:
    """An array in the memory of the computer as a NumPy array; numbers as a new one.

    Raises:
        ShapeError: It is on a GPU (says how to copy it), or has rows of different lengths.
    """
    if type(value) is np.ndarray:
        return value
    if is_on_gpu(value):
        raise ShapeError(
            f"{name} is on a GPU ({type(value).__name__}), and this runs on the processor. "
            f"Copy it, cupy.asnumpy({name}) or {name}.cpu(), or use target='cuda'."
        )
    if is_tracer(value):
        raise has_no_numbers(name)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(value)
    except ValueError:
        raise ShapeError(
            f"{name} must be an array, with rows of equal length; found {shown(value)}."
        ) from None


def copied(name: str, value: Any) -> Any:
    """An array on a GPU as one of NumPy; anything else as it is."""
    return taken(name, value).get() if is_on_gpu(value) else value


_seen: dict[str, Any] = {}
"""CuPy, after it was checked that there is a GPU."""


def cupy() -> Any:
    """CuPy, with a GPU.

    Raises:
        MissingExtraError: It is not installed.
        DeviceError: There is no GPU that it can use.
    """
    known = sys.modules.get("cupy")
    if known is not None and known is _seen.get("cupy"):
        return known
    try:
        module: Any = import_module("cupy")
    except ImportError:
        raise MissingExtraError(
            "running a kernel with target='cuda'", package="cupy", extra="cuda"
        ) from None
    try:
        count = module.cuda.runtime.getDeviceCount()
    except Exception as error:  # of the driver, or that there is none
        reason = str(error)
    else:
        if count:
            _seen["cupy"] = module
            return module
        reason = "CUDA counts no devices"
    raise DeviceError(
        f"no GPU is available ({reason}). kernel.source and kernel.explain() need none; "
        "target='cpu' makes a kernel for this processor."
    )


def taken(name: str, value: Any) -> Any:
    """The caller's array as a CuPy array: a view of the same memory.

    Raises:
        ShapeError: It is not an array on the GPU; says how to copy it there.
    """
    cp = cupy()
    if isinstance(value, cp.ndarray):
        return value
    if not is_on_gpu(value):
        known = hasattr(value, "__array__") or isinstance(value, float | int | list | tuple)
        if not known and not hasattr(value, "__dlpack__"):
            raise ShapeError(
                f"{name} is a {type(value).__name__}; an array of CuPy, Torch or JAX is needed."
            )
        raise ShapeError(
            f"{name} is in the memory of the computer ({type(value).__name__}), and this kernel "
            f"runs on the GPU. Move it there: cupy.asarray({name}), torch.tensor({name}, "
            f"device='cuda') or jax.device_put({name}); or compile with target='cpu'."
        )
    if getattr(value, "requires_grad", False):
        raise gradient_is_lost(name)
    try:
        return cp.from_dlpack(value)
    except (AttributeError, BufferError, TypeError, RuntimeError, ValueError):
        if not hasattr(value, "__cuda_array_interface__"):
            raise
        return cp.asarray(value)


def stream(like: Any) -> AbstractContextManager[Any]:
    """The stream of the caller: Torch has its own current stream."""
    torch = sys.modules.get("torch")
    if library(like) != "torch" or torch is None:
        return nullcontext()
    address = torch.cuda.current_stream(like.device).cuda_stream
    cp = cupy()
    return cp.cuda.ExternalStream(address) if address else cp.cuda.Stream.null


def device_of(values: Any) -> int:
    """The GPU that has the first of these arrays, or the current one."""
    cp = cupy()
    for value in values:
        if isinstance(value, cp.ndarray):
            return int(value.device.id)
        if is_on_gpu(value) and hasattr(value, "__dlpack_device__"):
            return int(value.__dlpack_device__()[1])
    return int(cp.cuda.runtime.getDevice())
