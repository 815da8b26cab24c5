"""The interpreter called like a kernel: no compiler, no waiting, and slow."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import MOVING, STATE_VECTORS
from linkwise.codegen import stages
from linkwise.codegen.request import Request
from linkwise.codegen.stages import Signature, Stages
from linkwise.errors import ExpressionError, ShapeError
from linkwise.front_door import open_front_door
from linkwise.model.aim import SERVO
from linkwise.spatial.array import Array, floats
from linkwise.sweeps.interpret import run


@dataclass(frozen=True, slots=True)
class NumpyKernel(Stages):
    """An expression of one mechanism, run statement by statement in NumPy.

    Called like a compiled kernel, one state or a batch; trouble raises in both.

    Attributes:
        request: What was asked for.
    """

    request: Request

    def __post_init__(self) -> None:
        if self.request.parameters or self.request.itemsize != 8:
            raise ExpressionError(
                "the target 'numpy' has float64 and no run-time parameters; change the mechanism "
                "instead, or use the target 'cpu'."
            )

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays it takes, in order."""
        vectors = [leaf.role for leaf in self.program.inputs if isinstance(leaf.role, role.Vector)]
        sources = [key.source for key in vectors]
        moving = bool(set(MOVING) & set(sources))
        given = [s for s in sources if s not in STATE_VECTORS]
        given += SERVO if "servo" in sources else ()
        return ("q", *(("v",) if moving else ()), *given)

    @property
    def ops(self) -> Counter[str]:
        """Scalar operations of the compiled form, by kind."""
        return self.signature.ops

    @property
    def signature(self) -> Signature:
        """What it takes and gives when compiled."""
        return stages.signature(stages.graph(self.request))

    @property
    def source(self) -> str:
        """The sweeps, which is what runs."""
        return str(self.program)

    def explain(self) -> str:
        """The derivation and the sweeps."""
        return f"{self.derivation}\n\n{self.program}"

    def __call__(self, *arrays: Any, **named: Any) -> Array:
        """The value for one state (n,), or for a batch (batch, n), state by state."""
        names = self.arguments
        given = dict(zip(names, arrays, strict=False)) | named
        if len(arrays) > len(names) or set(given) != set(names):
            raise ShapeError(f"this kernel takes {', '.join(names)}; given: {', '.join(given)}.")
        rows = {name: floats(value, name) for name, value in given.items()}
        sizes = {len(x) for x in rows.values() if x.ndim == 2}
        if not sizes:
            return self._one(rows)
        count = max(sizes)
        if count == 0:
            raise ShapeError("the batch has no states; this target evaluates them one by one.")
        for name, x in rows.items():
            if x.ndim == 2 and len(x) not in (1, count):
                raise ShapeError(f"{name} has {len(x)} rows; the batch has {count}.")
        return np.stack([self._one(_row(rows, i)) for i in range(count)])

    def _one(self, rows: dict[str, Array]) -> Array:
        rest = {name: x for name, x in rows.items() if name not in ("q", "v")}
        nodes = self.request.nodes
        return run(self.program, self.mech, rows["q"], rows.get("v"), nodes=nodes, values=rest)


def _row(rows: dict[str, Array], i: int) -> dict[str, Array]:
    return {n: x if x.ndim == 1 else x[i if len(x) > 1 else 0] for n, x in rows.items()}


open_front_door(globals(), ("NumpyKernel",))
