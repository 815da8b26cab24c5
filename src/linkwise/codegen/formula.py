"""Formulas: kernels written in array code, on top of the values of expressions.

    def speed(at: Writing) -> Any:
        V = at.value(J @ v)
        return root(sum(V[3:] * V[3:]))

The function runs once, on graph nodes instead of numbers, as hinges do. Whatever it computes is one
kernel, for every target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.model.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.codegen.request import Request
    from linkwise.codegen.scalar.trace import Traced


class TooLongError(Exception):
    """Straight code of an expression would be too long: see `evaluated.py`."""


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A function that writes a kernel. Make each once: kernels are found again by it.

    Attributes:
        write: Given a `Writing` and the options, returns an array, or a tuple of several. A
            function of a module, so that its kernels can be kept on disk.
        options: What else it depends on.
        names: Of its results, where it returns several.
    """

    write: Callable[..., Any]
    options: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.write.__name__

    def traced(self, request: Request) -> Traced:
        """Its graph on a mechanism.

        Raises:
            TooLongError: The mechanism is large.
        """
        from linkwise.codegen.rolled.worth import MOST_BODIES
        from linkwise.codegen.scalar.trace import Traced
        from linkwise.codegen.writing import Writing

        mech = cast(object, request.mech)  # or an embedded one
        if isinstance(mech, Mechanism) and mech.n_bodies > MOST_BODIES:
            raise TooLongError
        at = Writing(request)
        results = self.write(at, *self.options)
        arrays = [np.asarray(x, dtype=object) for x in (results if self.names else [results])]
        for i, array in enumerate(arrays):
            at.write(str(i), array.ravel().tolist())
        made, shapes = at.traced(), tuple(x.shape for x in arrays)
        shape, parts = (made.shape, shapes) if self.names else (shapes[0], ())
        return Traced(made.graph, made.inputs, made.outputs, shape, made.checks, parts)
