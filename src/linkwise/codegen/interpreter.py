"""The target "numpy": sweeps statement by statement; no compiler, no waiting, and slow."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import MOVING, STATE_VECTORS
from linkwise.codegen import stages
from linkwise.codegen.device import ANY, InMemory, Trouble
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.stages import Signature
from linkwise.errors import ExpressionError, ShapeError, SingularHingeError
from linkwise.model.embedded import Embedded
from linkwise.model.task_rows import servo_inputs
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run
from linkwise.sweeps.scan.plan import scan_plan
from linkwise.sweeps.scan.run import check_tree, scanned


class Interpreter(InMemory):
    """The sweeps of a request; trouble raises, for one state and in a batch, without `status`."""

    fast, dtype = None, np.dtype(np.float64)

    def __init__(self, request: Request) -> None:
        if request.parameters or request.itemsize != 8:
            raise ExpressionError(
                "the target 'numpy' has float64 and no run-time parameters; change the mechanism "
                "instead, or use the target 'cpu'."
            )
        if request.schedule == "scan":
            check_tree(request.mech)
        self.request = request

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """Names of the arrays it takes, of lengths that the sweeps look at."""
        program = stages.program(self.request)
        leaves = program.inputs
        sources = [leaf.role.source for leaf in leaves if isinstance(leaf.role, role.Vector)]
        moving = bool(set(MOVING) & set(sources))
        given = [s for s in sources if s not in STATE_VECTORS]
        given += servo_inputs({s.special for s in program.statements})
        names = dict.fromkeys(("q", *(("v",) if moving else ()), *given))
        return tuple((name, ANY) for name in names)

    @property
    def signature(self) -> Signature:
        """What the compiled form takes and gives."""
        return stages.signature(stages.graph(self.request))

    @property
    def source(self) -> str:
        """The sweeps, which is what runs."""
        if self.request.schedule == "sweep":
            return str(stages.program(self.request))
        return str(scan_plan(stages.program(self.request)))

    @property
    def description(self) -> str:
        """How it runs."""
        if self.request.schedule == "sweep":
            return "state by state in NumPy"
        plan, n = scan_plan(stages.program(self.request)), self.request.mech.n_bodies
        return f"all bodies at once in NumPy, {plan.rounds(n)} rounds of scans for a chain of {n}"

    def usable(self, out: Any, rows: list[Any]) -> bool:
        """Never: results are made."""
        return False

    def run(
        self, rows: list[Array], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Array, Trouble | None]:
        """The results, state by state."""
        if batch == 0:
            raise ShapeError("the batch has no states; this target evaluates them one by one.")
        count = 1 if batch is None else batch
        states = [[x if x.ndim == 1 else x[i % len(x)] for x in rows] for i in range(count)]
        if codes is None:
            results = [self._one(state) for state in states]
        else:
            pairs = [self._marked(state) for state in states]
            codes[...] = np.reshape([code for _, code in pairs], codes.shape)
            made = [result for result, _ in pairs if result is not None]
            shape = made[0].shape if made else self.signature.shape
            results = [np.full(shape, np.nan) if x is None else x for x, _ in pairs]
        return results[0] if batch is None else np.stack(results), None

    def _marked(self, rows: list[Array]) -> tuple[Array | None, int]:
        """The result, if there is one, and the status of compiled kernels."""
        if not all(np.isfinite(x).all() for x in rows):
            return None, status.INPUT
        mech = self.request.mech
        tree = mech.mech if isinstance(mech, Embedded) else mech
        for k, body in enumerate(tree.bodies):
            part, q = body.hinge.quaternion, rows[0][int(tree.q_start[k]) :]
            if part is not None and abs(np.linalg.norm(q[part]) - 1.0) > quaternion.TOLERANCE:
                return None, status.quaternion(k)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = self._one(rows)
        except SingularHingeError as error:
            return None, status.hinge(error.body) if error.body >= 0 else status.MATRIX
        except np.linalg.LinAlgError:
            return None, status.MATRIX
        return (result, status.FINE) if np.isfinite(result).all() else (None, status.RESULT)

    def _one(self, rows: list[Array]) -> Array:
        given = {name: row for (name, _), row in zip(self.inputs, rows, strict=True)}
        rest = {name: x for name, x in given.items() if name not in ("q", "v")}
        program, request = stages.program(self.request), self.request
        state = given["q"], given.get("v")
        work = run if request.schedule == "sweep" else scanned
        return work(program, request.mech, *state, nodes=request.nodes, values=rest)
