"""How things print: numbers with nouns; results with their fields, and shapes of long arrays."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

import numpy as np

SHORT = 6
"""Arrays of up to so few numbers are printed in full."""

T = TypeVar("T")


def counted(n: int, one: str, many: str = "") -> str:
    """A number with its noun: 1 body, 2 bodies; the plural has an s if it is not given."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def degrees_of_freedom(n: int) -> str:
    """1 degree of freedom, 2 degrees of freedom."""
    return counted(n, "degree of freedom", "degrees of freedom")


def extent(bodies: int, nv: int) -> str:
    """How large a mechanism is: 7 bodies, 7 degrees of freedom."""
    return f"{counted(bodies, 'body', 'bodies')}, {degrees_of_freedom(nv)}"


def brief(cls: type[T]) -> type[T]:
    """Print objects of this class as `<Linearization: A (18, 18), B (18, 9)>`.

    For a named tuple or a dataclass. Fields that are None or begin with an underscore are left out.
    """
    cls.__repr__ = _line
    return cls


def _line(self: Any) -> str:
    names = getattr(self, "_fields", None)
    if names is None:
        names = [f.name for f in dataclasses.fields(self) if f.repr and f.name[0] != "_"]
    values = [(name, getattr(self, name)) for name in names]
    parts = [_part(name, value) for name, value in values if value is not None]
    return f"<{type(self).__name__}: {', '.join(parts)}>"


def _part(name: str, value: object) -> str:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(cast("np.ndarray[Any, Any]", value))
        if array.size <= SHORT and array.ndim <= 1:
            return f"{name}={np.array2string(array, precision=4)}"
        return f"{name} {array.shape}"
    if isinstance(value, float):
        return f"{name}={value:.5g}"
    shape = getattr(value, "shape", None)  # arrays of CuPy, Torch and JAX
    return f"{name}={value!r}" if shape is None else f"{name} {tuple(shape)}"
