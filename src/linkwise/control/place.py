"""Where problems are solved, and in which memory their numbers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.codegen import arrays
from linkwise.control.cost import Bound, Cost

RETURNED = ("q", "v", "tau", "gain", "cost", "violation")
"""Fields of a trajectory that stay on the GPU where q is there."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where problems are solved.

    Attributes:
        target: "cpu" or "cuda".
        there: Whether results stay on the GPU.
        like: An array of the library that results are returned in; None for NumPy and CuPy.
        device: The number of the GPU.
    """

    target: str
    there: bool
    like: Any
    device: int

    @staticmethod
    def of(target: str, q: Any, v: Any) -> Place:
        """The place for a start.

        Raises:
            ShapeError: Arrays of a GPU for the processor.
            DeviceError: There is no GPU.
        """
        if target == "cpu":
            for name, x in {"q": q, "v": v}.items():
                if arrays.is_on_gpu(x):
                    arrays.here(name, x)  # says how to copy it
            return Place(target, False, None, 0)
        return Place(target, arrays.is_on_gpu(q), arrays.foreign((q, v)), arrays.device_of((q, v)))

    def entered(self) -> AbstractContextManager[Any]:
        """The GPU of the arrays, and the stream of their library."""
        both = ExitStack()
        if self.target == "cuda":
            both.enter_context(arrays.cupy().cuda.Device(self.device))
            both.enter_context(arrays.stream(self.like))
        return both

    def here(self, q: Any, v: Any) -> tuple[Any, Any]:
        """A start in the memory of the computer."""
        return (arrays.copied("q", q), arrays.copied("v", v)) if self.target == "cuda" else (q, v)

    def each(self, given: Any) -> Any:
        """Costs or bounds with goals in the memory of the computer."""
        if self.target == "cpu" or not isinstance(given, Cost | Bound | Sequence):
            return given
        if isinstance(given, Sequence):
            return [self.each(x) for x in given]  # pyright: ignore[reportUnknownVariableType]
        goal = arrays.copied("goal", given.goal)
        return given if goal is given.goal else replace(given, goal=goal)

    def named(self, given: Any) -> Any:
        """A guess or parameters in the memory of the computer."""
        if self.target == "cpu" or given is None:
            return given
        if isinstance(given, Mapping):
            return {name: arrays.copied(str(name), x) for name, x in given.items()}  # pyright: ignore
        if not all(hasattr(given, name) for name in ("q", "v", "tau")):
            return given
        return {name: arrays.copied(name, getattr(given, name)) for name in ("q", "v", "tau")}

    def kept(self, array: Any) -> Any:
        """A result where it is returned."""
        return array if self.there or self.target == "cpu" else arrays.copied("result", array)

    def returned(self, result: Any) -> dict[str, Any]:
        """Fields of a trajectory as arrays of the caller's library."""
        if self.like is None:
            return {}
        cp, jax = arrays.cupy() if self.there else None, arrays.library(self.like) in arrays.JAX

        def back(x: Any) -> Any:
            if not arrays.is_on_gpu(x):
                x = np.asarray(x)  # a single number, too
            return arrays.given_back(cp.ascontiguousarray(x) if jax and cp else x, self.like)

        out = {name: back(getattr(result, name)) for name in RETURNED}
        return out | {"forces": {name: back(x) for name, x in result.forces.items()}}
