"""Several results from one kernel: what they share is computed once."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkwise.codegen.cpu.kernel import Kernel
    from linkwise.codegen.cuda.kernel import CudaKernel
    from linkwise.codegen.numpy_kernel import NumpyKernel


@dataclass(frozen=True, slots=True)
class Several:
    """A kernel whose results have names.

    Called like any kernel, it gives a dictionary of arrays. They are views of one array, in which
    the results stand one after another, matrices row by row.

    Attributes:
        kernel: The kernel, which gives that one array.
        names: Of the results, in order.
    """

    kernel: Kernel | CudaKernel | NumpyKernel
    names: tuple[str, ...]
    _layout: tuple[tuple[str, slice, tuple[int, ...]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        layout, start = list[tuple[str, slice, tuple[int, ...]]](), 0
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            layout.append((name, slice(start, start + size), shape))
            start += size
        object.__setattr__(self, "_layout", tuple(layout))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        return self.kernel.arguments

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each result for one state."""
        return dict(zip(self.names, self.kernel.signature.parts, strict=True))

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations for one state, by kind."""
        return self.kernel.ops

    def __call__(self, *arrays: Any, **options: Any) -> dict[str, Any]:
        """The results by name, for one state or with the batch in front."""
        return self.parted(self.kernel(*arrays, **options))

    def parted(self, flat: Any) -> dict[str, Any]:
        """The results in an array (total,) or (batch, total)."""
        if flat.ndim == 1:  # one state: what takes time is making views
            return {
                n: flat[at] if len(shape) == 1 else flat[at].reshape(shape)
                for n, at, shape in self._layout
            }
        return {n: flat[:, at].reshape(len(flat), *shape) for n, at, shape in self._layout}

    def explain(self) -> str:
        """The sweeps that all results come from."""
        return self.kernel.explain()
