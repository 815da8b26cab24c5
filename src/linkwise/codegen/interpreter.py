"""The target "numpy": sweeps statement by statement; no compiler, no waiting, and slow."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import MOVING, STATE_VECTORS
from linkwise.codegen import stages
from linkwise.codegen.device import ANY, InMemory, Trouble
from linkwise.codegen.request import Request
from linkwise.codegen.stages import Signature
from linkwise.errors import ExpressionError, ShapeError
from linkwise.model.task_rows import SERVO
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run


class Interpreter(InMemory):
    """The sweeps of a request; trouble raises, for one state and in a batch."""

    fast, dtype = None, np.dtype(np.float64)

    def __init__(self, request: Request) -> None:
        if request.parameters or request.itemsize != 8:
            raise ExpressionError(
                "the target 'numpy' has float64 and no run-time parameters; change the mechanism "
                "instead, or use the target 'cpu'."
            )
        self.request = request

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Names of the arrays it takes, of lengths that the sweeps look at."""
        leaves = stages.program(self.request).inputs
        sources = [leaf.role.source for leaf in leaves if isinstance(leaf.role, role.Vector)]
        moving = bool(set(MOVING) & set(sources))
        given = [s for s in sources if s not in STATE_VECTORS]
        given += SERVO if "servo" in sources else ()
        return tuple((name, ANY) for name in ("q", *(("v",) if moving else ()), *given))

    @property
    def signature(self) -> Signature:
        """What the compiled form takes and gives."""
        return stages.signature(stages.graph(self.request))

    @property
    def source(self) -> str:
        """The sweeps, which is what runs."""
        return str(stages.program(self.request))

    @property
    def description(self) -> str:
        """How it runs."""
        return "state by state in NumPy"

    def usable(self, out: Any, rows: list[Any]) -> bool:
        """Never: results are made."""
        return False

    def run(
        self, rows: list[Array], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Array, Trouble | None]:
        """The results, state by state."""
        if codes is not None:
            codes[...] = 0
        if batch is None:
            return self._one(rows), None
        if batch == 0:
            raise ShapeError("the batch has no states; this target evaluates them one by one.")
        states = ([x if x.ndim == 1 else x[i % len(x)] for x in rows] for i in range(batch))
        return np.stack([self._one(state) for state in states]), None

    def _one(self, rows: list[Array]) -> Array:
        given = {name: row for (name, _), row in zip(self.inputs, rows, strict=True)}
        rest = {name: x for name, x in given.items() if name not in ("q", "v")}
        program, request = stages.program(self.request), self.request
        state = given["q"], given.get("v")
        return run(program, request.mech, *state, nodes=request.nodes, values=rest)
