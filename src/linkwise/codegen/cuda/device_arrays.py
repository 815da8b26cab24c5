# pyright: basic
# (CuPy, Torch and JAX are optional, and have no type information here)
"""Arrays on the card from CuPy, Torch or JAX: taken as they are, given back in kind, not copied.

An array of another library is seen through DLPack, which hands over the address of its numbers and
makes the stream that reads them wait for the one that wrote them.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from linkwise.errors import DeviceError, MissingExtraError, ShapeError

ON_CARD = (2, 13)
"""DLPack's numbers for memory of a CUDA card, its own and managed."""

CUPY, TORCH, JAX = "cupy", "torch", "jax"

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
        found: Any = import_module("cupy")
    except ImportError:
        raise MissingExtraError(
            "running a kernel with target='cuda'", package="cupy", extra="cuda"
        ) from None
    try:
        count = found.cuda.runtime.getDeviceCount()
    except Exception as error:  # of the driver, or that there is none
        reason = str(error)
    else:
        if count:
            _seen["cupy"] = found
            return found
        reason = "CUDA counts no devices"
    raise DeviceError(
        f"no CUDA card can be used here ({reason}). kernel.source and kernel.explain() need none; "
        "target='cpu' makes a kernel for this processor."
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """An array of the caller as CuPy sees it.

    Attributes:
        array: A view of the same memory.
        library: Whose it is.
    """

    array: Any
    library: str


def taken(name: str, value: Any) -> Taken:
    """The caller's array as CuPy sees it.

    Raises:
        ShapeError: It is not an array on the card; says how to get it there.
    """
    cp = cupy()
    if isinstance(value, cp.ndarray):
        return Taken(value, CUPY)
    library = library_of(value)
    if isinstance(value, np.ndarray | np.generic | float | int | list | tuple):
        raise ShapeError(
            f"{name} is in the memory of the computer ({type(value).__name__}), and this kernel "
            f"runs on the card. Move it there: cupy.asarray({name}), torch.tensor({name}, "
            f"device='cuda') or jax.device_put({name}); or compile with target='cpu'."
        )
    if not hasattr(value, "__dlpack__") and not hasattr(value, "__cuda_array_interface__"):
        raise ShapeError(
            f"{name} is a {type(value).__name__}; an array of CuPy, Torch or JAX is wanted."
        )
    if getattr(value, "requires_grad", False):
        raise ShapeError(
            f"{name} wants a gradient, which kernels do not give; use {name}.detach()."
        )
    if hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) not in ON_CARD:
        how = {TORCH: f"{name}.cuda()", JAX: f"jax.device_put({name}, jax.devices('gpu')[0])"}
        raise ShapeError(
            f"{name} is in the memory of the computer, and this kernel runs on the card. Move it "
            f"there: {how.get(library, f'cupy.asarray({name})')}."
        )
    try:
        return Taken(cp.from_dlpack(value), library)
    except (BufferError, TypeError, RuntimeError, ValueError):
        if not hasattr(value, "__cuda_array_interface__"):
            raise
        return Taken(cp.asarray(value), library)


def library_of(value: Any) -> str:
    """Whose array it is, by the module of its class."""
    root = type(value).__module__.split(".")[0]
    return {"torch": TORCH, "jax": JAX, "jaxlib": JAX}.get(root, CUPY)


def stream(library: str) -> AbstractContextManager[Any]:
    """The stream on which the caller works: Torch has a current one of its own."""
    torch = sys.modules.get("torch")
    if library != TORCH or torch is None:
        return nullcontext()
    address = torch.cuda.current_stream().cuda_stream
    cp = cupy()
    return cp.cuda.ExternalStream(address) if address else cp.cuda.Stream.null


def made(library: str, shape: tuple[int, ...], dtype: Any, device: int) -> tuple[Any, Any]:
    """A new array: as the caller gets it (None if that comes later), and as CuPy sees it."""
    if library == TORCH:
        torch = import_module("torch")
        kind = torch.float64 if np.dtype(dtype) == np.float64 else torch.float32
        array = torch.empty(shape, dtype=kind, device=f"cuda:{device}")
        return array, cupy().from_dlpack(array)
    return None, cupy().empty(shape, dtype)


def given_back(library: str, array: Any) -> Any:
    """An array of CuPy as one of the caller's library, the same memory."""
    if library == TORCH:
        return import_module("torch").from_dlpack(array)
    if library == JAX:
        return import_module("jax.dlpack").from_dlpack(array)
    return array
