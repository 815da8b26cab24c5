# pyright: basic
# (CuPy, Torch and JAX are optional, and have no type information here)
"""Arrays on the card as CuPy sees them, not copied.

DLPack makes the stream that reads an array wait for the one that wrote it.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

from linkwise.codegen import arrays
from linkwise.errors import DeviceError, MissingExtraError, ShapeError

_seen: dict[str, Any] = {}
"""CuPy, once it was seen to have a card."""


def cupy() -> Any:
    """CuPy, with a card.

    Raises:
        MissingExtraError: It is not installed.
        DeviceError: There is no card it could use.
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
        f"no CUDA card can be used here ({reason}). kernel.source and kernel.explain() need none; "
        "target='cpu' makes a kernel for this processor."
    )


def taken(name: str, value: Any) -> Any:
    """The caller's array as CuPy sees it: a view of the same memory.

    Raises:
        ShapeError: It is not an array on the card; says how to get it there.
    """
    cp = cupy()
    if isinstance(value, cp.ndarray):
        return value
    if not arrays.is_on_card(value):
        known = hasattr(value, "__array__") or isinstance(value, float | int | list | tuple)
        if not known and not hasattr(value, "__dlpack__"):
            raise ShapeError(
                f"{name} is a {type(value).__name__}; an array of CuPy, Torch or JAX is wanted."
            )
        raise ShapeError(
            f"{name} is in the memory of the computer ({type(value).__name__}), and this kernel "
            f"runs on the card. Move it there: cupy.asarray({name}), torch.tensor({name}, "
            f"device='cuda') or jax.device_put({name}); or compile with target='cpu'."
        )
    if getattr(value, "requires_grad", False):
        raise ShapeError(
            f"{name} wants a gradient, which kernels do not give; use {name}.detach()."
        )
    try:
        return cp.from_dlpack(value)
    except (AttributeError, BufferError, TypeError, RuntimeError, ValueError):
        if not hasattr(value, "__cuda_array_interface__"):
            raise
        return cp.asarray(value)


def stream(like: Any) -> AbstractContextManager[Any]:
    """The stream on which the caller works: Torch has a current one of its own."""
    torch = sys.modules.get("torch")
    if arrays.library(like) != "torch" or torch is None:
        return nullcontext()
    address = torch.cuda.current_stream().cuda_stream
    cp = cupy()
    return cp.cuda.ExternalStream(address) if address else cp.cuda.Stream.null


def card_of(values: Any) -> int:
    """The card on which the first of some arrays is, or the current one."""
    cp = cupy()
    for value in values:
        if isinstance(value, cp.ndarray):
            return int(value.device.id)
        if arrays.is_on_card(value) and hasattr(value, "__dlpack_device__"):
            return int(value.__dlpack_device__()[1])
    return int(cp.cuda.runtime.getDevice())
