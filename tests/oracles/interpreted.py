"""The everyday functions, run by the interpreter: no compiler, so that many robots can be asked.

Every function of `linkwise.dynamics` gets its kernel from `compile`. In here that gives the sweeps
of the same derived expression, run statement by statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import linkwise as lw
from linkwise.algebra.expr import Expr
from linkwise.codegen.formula import Formula
from linkwise.codegen.kernel import Kernel, kernel
from linkwise.codegen.request import Request
from linkwise.spatial.array import Array
from linkwise.sweeps.result_part import choice

COMPILING = [f"linkwise.dynamics.{name}" for name in ("kernels", "hybrid", "mass_matrix")]


class Interpreted:
    """A kernel of the interpreter with the options that the functions pass on."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.arguments = kernel, kernel.arguments
        self.signature = SimpleNamespace(inputs=[(name, 0) for name in kernel.arguments])

    @property
    def quick(self) -> Callable[..., Array]:
        return self

    def __call__(
        self, *arrays: Any, out: Any = None, status: Any = None, threads: Any = None, **named: Any
    ) -> Array:
        del threads
        value = self.kernel(*arrays, **named)
        if status is not None:
            status[...] = 0  # trouble raises here
        if out is None:
            return value
        out[...] = value
        return out


def _compile(
    expr: Expr | Formula,
    mech: lw.Mechanism,
    *,
    nodes: Any = (),
    rows: Any = None,
    columns: Any = None,
    blocks: bool = False,
    derive: bool = True,
) -> Any:
    if isinstance(expr, Formula):  # array code has no sweeps: it is compiled
        return lw.compile(expr, mech, nodes=nodes)
    part = choice(rows, columns, blocks)
    request = Request((expr,), mech, tuple(nodes), chosen=part, derive=derive)
    return Interpreted(kernel(request, "numpy"))


@contextmanager
def interpreted() -> Iterator[None]:
    """Mechanisms asked for the first time in here get no machine code, then or later."""
    with ExitStack() as stack:
        for module in map(import_module, COMPILING):
            stack.enter_context(patch.object(module, "compile", _compile))
        yield
