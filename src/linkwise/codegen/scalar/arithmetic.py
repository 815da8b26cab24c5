"""The arithmetic of kernels: nodes of a scalar graph for numbers (see `sweeps/interpret.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import MOVING, STATE_VECTORS
from linkwise.algebra.expr import Expr, Identity, Symbol
from linkwise.algebra.space import CONSTRAINT, GOAL
from linkwise.algebra.words import is_symmetric
from linkwise.codegen.scalar import parameters as parameter, status
from linkwise.codegen.scalar.closure_solve import solved
from linkwise.codegen.scalar.graph import Check, Graph, Scalar
from linkwise.codegen.scalar.pivots import SINGULAR, aggregate_thresholds, thresholds
from linkwise.errors import ExpressionError, LoweringError, SingularHingeError
from linkwise.model import closure, task_rows
from linkwise.model.closure import Blocked, is_traceable
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.aggregate import Aggregates
from linkwise.sweeps.bodies import Bodies, first
from linkwise.sweeps.factored import factored
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.numbers import split
from linkwise.sweeps.program import Block, Program, Statement
from linkwise.sweeps.structured_block import BlockDiagonal, ShiftBlock, WorldBlock, mirrored

SNAP = 4e-16
"""Entries of constant rotations this close to 0 or ±1 are taken to be that: files print angles."""

QUATERNION_SLACK = {8: 2e-6, 4: 1e-4}
"""How far |quaternion|² may be from 1, by bytes of a number."""

DIRECTIONS, RATES = "S", "S_rate"
"""Inputs of a kernel for loops whose hinge has no formula for the directions it blocks."""

INERTIA, ARMATURE = 12, 22
"""Columns of a body: pose of its hinge (rot row by row, p), ten numbers of inertia, the drives."""


class Constants:
    """The numbers of bodies, to be folded into the code; with other inertias where given."""

    def __init__(
        self,
        mech: Mechanism | Embedded,
        itemsize: int,
        inertias: Sequence[SpatialInertia] | None = None,
    ) -> None:
        self.mech, self.itemsize, self.inertias = mech, itemsize, inertias
        self.tree: Mechanism = mech.mech if isinstance(mech, Embedded) else mech

    def pose(self, k: int, q: Any) -> Pose:
        """X_pk."""
        body = self.tree.bodies[k]
        q_k = q[None, self.tree.q_start[k] : self.tree.q_start[k + 1]]
        return snapped(body.inboard) @ body.hinge.pose(q_k) @ snapped(body.outboard)

    def inertia(self, k: int) -> SpatialInertia:
        """M_k."""
        return self.tree.inertias[k] if self.inertias is None else self.inertias[k]

    def armature(self, k: int) -> Any:
        """The armature (nv_k,)."""
        return self.tree.armature[self.tree.v_start[k] : self.tree.v_start[k + 1]]

    def bounds(self, k: int) -> Any:
        """The smallest pivots of D."""
        if isinstance(self.mech, Embedded):
            return aggregate_thresholds(self.mech, k, self.itemsize)
        return thresholds(self.mech, k, self.itemsize)


class Rows:
    """The numbers of bodies from a row of numbers and symbols: parts of equal build share a graph.

    Args:
        mech: The mechanism.
        itemsize: Bytes of a number.
        row: The numbers of body k (see `numbers`), or None for a body that has constants.
        bounds: The smallest pivots of D at body k.
    """

    def __init__(
        self,
        mech: Mechanism,
        itemsize: int,
        row: Callable[[int], list[Any] | None],
        bounds: Callable[[int], Any],
    ) -> None:
        self.constants, self.row, self.bounds = Constants(mech, itemsize), row, bounds

    def pose(self, k: int, q: Any) -> Pose:
        """X_pk."""
        mech, row = self.constants.tree, self.row(k)
        if row is None or mech.bodies[k].outboard is not Pose.identity():
            return self.constants.pose(k, q)
        moved = mech.bodies[k].hinge.pose(q[None, mech.q_start[k] : mech.q_start[k + 1]])
        rot, p = objects(row[:9]).reshape(3, 3), objects(row[9:12])
        return trusted_pose(rot @ first(moved.rot, 2), rot @ first(moved.p, 1) + p)

    def inertia(self, k: int) -> SpatialInertia:
        """M_k."""
        row = self.row(k)
        if row is None:
            return self.constants.inertia(k)
        return leading(parameter.inertia(objects(row[INERTIA:ARMATURE])))

    def armature(self, k: int) -> Any:
        """The armature (nv_k,)."""
        row = self.row(k)
        return self.constants.armature(k) if row is None else objects(row[ARMATURE:])


class GraphArithmetic:
    """Nodes of a graph; the kinds of inputs are up to `Nodes` and to the window of a rolled kernel.

    Attributes:
        mech: The mechanism.
        numbers: Where the numbers of its bodies come from.
        graph: The graph.
        parameters: Numbers of the mechanism that are inputs, by name.
        welded: For bodies with a payload, where it is and its name.
        checks: For nodes that have to stay above a bound: the code, and the bound.
    """

    kind: Any = object
    structured = True
    given: tuple[str, ...] = ()

    def __init__(self, mech: Any, numbers: Any, itemsize: int, graph: Graph | None = None) -> None:
        self.mech, self.numbers, self.itemsize = mech, numbers, itemsize
        self.graph = graph or Graph()
        self.q: Any = None
        self.v: Any = None
        self.gravity: Any = mech.gravity
        self.parameters: dict[str, Any] = {}
        self.welded: dict[int, list[tuple[Pose, str]]] = {}
        self.checks: dict[int, tuple[int, Any]] = {}
        self._poses: dict[int, Pose] = {}

    def enter(self, k: int) -> None:
        """Nodes made from now on belong to body k."""
        self.graph.here = k

    def pose(self, k: int) -> Pose:
        """X_pk."""
        if k not in self._poses:
            pose = self.numbers.pose(k, self.q)
            self._poses[k] = trusted_pose(first(pose.rot, 2), first(pose.p, 1))
        return self._poses[k]

    def shift(self, pose: Pose) -> ShiftBlock:
        """φ."""
        return ShiftBlock(pose.rot, pose.p)

    def to_world(self, place: Any) -> WorldBlock:
        """φ⁻*."""
        return WorldBlock(place[:, :3], place[:, 3])

    def inertia(self, k: int) -> SpatialInertia:
        """M_k with its payloads; arrays with a leading axis where they are nodes."""
        inertia = self.numbers.inertia(k)
        if "inertia" in self.parameters:
            ten = self.parameters["inertia"][parameter.INERTIA * k :][: parameter.INERTIA]
            inertia = leading(parameter.inertia(ten))
        for pose, name in self.welded.get(k, ()):
            part = leading(parameter.inertia(self.parameters[name])).moved(pose)
            inertia = trusted_inertia(
                inertia.mass + part.mass, inertia.h + part.h, inertia.J + part.J
            )
        return inertia

    def armature(self, k: int) -> Any:
        """The armature (nv_k,)."""
        if "armature" not in self.parameters:
            return self.numbers.armature(k)
        return self.parameters["armature"][self.mech.v_start[k] : self.mech.v_start[k + 1]]

    def check(self, code: int, pivots: Sequence[Any], bounds: Any) -> None:
        """Each of these nodes has to stay above its bound."""
        for d, low in zip(pivots, bounds, strict=True):
            if isinstance(d, Scalar):
                self.checks.setdefault(d.node, (code, low))

    def check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """The margins of the loops of aggregate g have to be positive."""
        self.check(status.loops(self.mech, g), margins, np.zeros(len(margins)))

    def operator(self, leaf: Symbol, shapes: Sequence[tuple[int, int]]) -> list[Any]:
        """Kernels have no inputs for operators."""
        raise ExpressionError(
            f"{leaf} is an operator that the mechanism does not define, and a kernel has no input "
            "for its blocks: it takes vectors, and numbers of the mechanism. The interpreter "
            "(linkwise.sweeps.interpret.run) takes values for it."
        )

    def invert(self, matrix: Any, block: Block, k: int) -> Any:
        """The inverse of a symmetric block, as its factors; its pivots are checked."""
        key = block.symbol.role
        if isinstance(matrix, WorldBlock | BlockDiagonal):
            return matrix.inverse
        is_rotation = isinstance(key, role.Memoryless) and key.source == "rot_W"
        if not matrix.size or is_rotation:
            return matrix.T
        hinge = isinstance(key, role.Riccati) and key.part == "D"
        lockable = hinge and "locked" in self.parameters
        if _is_identity(matrix) and not lockable:
            return factored(matrix)
        composite = isinstance(key, role.Composite) and is_symmetric(key.definition)
        if not block.symbol.symmetric and not composite:
            raise LoweringError(not_symmetric(block.symbol))
        free = None
        if lockable:  # U (U D U + 1 - U)⁻¹ U, with U = 1 if free
            start, stop = self.mech.v_start[k], self.mech.v_start[k + 1]
            free = 1.0 - self.parameters["locked"][start:stop]
        try:
            factors = factored(matrix, free)
            known = hinge and not self.parameters.keys() - {"gravity"}
            bounds = self.numbers.bounds(k) if known else np.zeros(len(factors.pivots))
            self.check(status.hinge(k), factors.pivots, bounds)
            for d, low in zip(factors.pivots, bounds, strict=True):
                if not isinstance(d, Scalar) and not isinstance(low, Scalar) and d < low:
                    raise ZeroDivisionError  # a number, known here and now
            return factors
        except ZeroDivisionError:
            raise SingularHingeError(
                f"{block.symbol} is zero at body {self.mech.bodies[k].name!r} in every state: "
                "nothing resists its hinge. Give the body inertia, or the hinge an armature."
            ) from None

    def node(self, x: Any) -> int:
        """The node of a number."""
        return x.node if isinstance(x, Scalar) else self.graph.constant(float(x))

    def quaternion_checks(self, outputs: list[int]) -> list[Check]:
        """|quaternion|² = 1, for the hinges whose quaternion is used."""
        tree = self.mech.mech if isinstance(self.mech, Embedded) else self.mech
        turning = any(body.hinge.quaternion is not None for body in tree.bodies)
        used, checks = set(self.graph.used(outputs) if turning else ()), list[Check]()
        slack = QUATERNION_SLACK[self.itemsize]
        for k, body in enumerate(tree.bodies):
            part = body.hinge.quaternion
            if part is None:
                continue
            start = int(tree.q_start[k])
            four = self.q[start + part.start : start + part.stop]
            if any(x.node in used for x in four):
                square: Any = sum((x * x for x in four[1:]), four[0] * four[0])
                checks.append(Check(status.quaternion(k), square.node, 1.0 - slack, 1.0 + slack))
        return checks


class Nodes(GraphArithmetic):
    """Nodes of the graph of all bodies, with arrays for inputs.

    Attributes:
        arrays: For each input array its name and length, in order.
        parts: Shape of each result.
        counted: Whether to count the independent rows of loops and couplings.
        independent: How many there are.
    """

    def __init__(
        self,
        program: Program,
        bodies: Bodies | Aggregates,
        parameters: Sequence[str] = (),
        itemsize: int = 8,
        numbers: Any = None,
        graph: Graph | None = None,
    ) -> None:
        mech = bodies.mech
        super().__init__(mech, numbers or Constants(mech, itemsize), itemsize, graph)
        self.program, self.bodies = program, bodies
        self.arrays: list[tuple[str, int]] = []
        self.parts: list[tuple[int, ...]] = []
        self.counted = False
        self.independent: Any = 0.0
        self._inputs: dict[str, Any] = {}
        self.q = self.input("q", mech.nq)
        vectors = [s for s in program.inputs if isinstance(s.role, role.Vector)]
        sources = [s.role.source for s in vectors if isinstance(s.role, role.Vector)]
        moving = bool(set(sources) & set(MOVING))
        self.v = self.input("v", mech.nv) if moving else np.zeros(mech.nv)
        for leaf, source in zip(vectors, sources, strict=True):
            if source not in STATE_VECTORS:
                self.input(source, sum(bodies.sizes(leaf.range)))
        self._take_constraints()
        nodes = [node.name for node in bodies.nodes]
        names = parameter.checked(mech, parameters, nodes)
        self.parameters = {name: self.input(name, parameter.size(mech, name)) for name in names}
        self.gravity = self.parameters.get("gravity", mech.gravity)
        for name in (n for n in names if n.startswith("payload")):
            node = mech.node(parameter.node_of(mech, name, nodes))
            k = mech.body_index[node.body]
            self.welded.setdefault(k, []).append((node.pose, name))

    def input(self, name: str, size: int) -> Any:
        """An input array (size,), the same one each time."""
        if name not in self._inputs:
            self.arrays.append((name, size))
            nodes = [Scalar(self.graph, self.graph.input(f"{name}[{i}]")) for i in range(size)]
            self._inputs[name] = objects(nodes)
        return self._inputs[name]

    def vector(self, leaf: Symbol, sizes: Sequence[int]) -> list[Any]:
        """The blocks of an input."""
        assert isinstance(leaf.role, role.Vector)
        source = leaf.role.source
        return split(self.v if source == "v" else self.input(source, sum(sizes)), sizes)

    # ------------------------------------------------------------------------ constraints

    def _take_constraints(self) -> None:
        """Inputs that belong to rows of constraints, before anything is computed from others."""
        mech, rules = self.mech, {s.special for s in self.program.statements}
        if rules & {"Q", "Q*", "kappa", "kappa_g"} and not all(map(is_traceable, mech.loops)):
            self._rows_input(DIRECTIONS, 6)
        if "kappa" in rules and not all(map(is_traceable, mech.loops)):
            self._rows_input(RATES, 1)
        for name in task_rows.servo_inputs(rules):
            self.input(name, sum(self.bodies.sizes(GOAL if name == "goal" else CONSTRAINT)))

    def _rows_input(self, name: str, width: int) -> Any:
        count = sum(loop.rows for loop in self.mech.loops if not is_traceable(loop))
        return self.input(name, count * width)

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """By the formula of the hinge; for a user's hinge, S and -S Ḣ* W are inputs."""
        loops = self.mech.loops
        if is_traceable(loops[i]):
            return closure.blocked(loops[i].hinge, X_ab, V_ab)
        before = sum(loop.rows for loop in loops[:i] if not is_traceable(loop))
        part = slice(before, before + loops[i].rows)
        S = self._rows_input(DIRECTIONS, 6).reshape(-1, 6)[part]
        if not np.any(V_ab):
            return Blocked(S, np.zeros(len(S)))
        return Blocked(S, self._rows_input(RATES, 1)[part])

    def solve(self, run: Interpreter, statement: Statement) -> Any:
        """A⁻¹ X for a symmetric A, by L D L*; others need pivots, which depend on the state."""
        (matrix, _), (right, _) = statement.reads
        if not is_symmetric(matrix.key):
            raise LoweringError(not_symmetric(matrix.key))
        constrained = statement.target.rows is CONSTRAINT
        A = mirrored(np.concatenate(run.blocks_of(matrix)))
        if constrained and not task_rows.has_tasks(self.mech):
            b, mass = np.concatenate(run.blocks_of(right)), self.mech.total_mass
            x, self.independent = solved(A, b, self.itemsize, mass, counted=self.counted)
            return x
        try:
            factors = factored(A)
            inverse = isinstance(right.key, Identity)
            x = factors.matrix if inverse else factors @ np.concatenate(run.blocks_of(right))
        except ZeroDivisionError:
            raise ExpressionError(
                f"{matrix.key} is singular on {self.mech.name} in every state: it has no inverse."
            ) from None
        small, scale = SINGULAR[self.itemsize], np.zeros(len(A))
        if constrained:  # of tasks
            small, scale = task_rows.SINGULAR[self.itemsize], task_rows.row_scales(self.mech)
        # What is left of a diagonal entry, and for tasks of what an entry is made from.
        left = [d - small * (A[j, j] + scale[j]) for j, d in enumerate(factors.pivots)]
        self.check(status.MATRIX, left, np.zeros(len(left)))
        return x

    # ---------------------------------------------------------------------------- results

    def result(self, expr: Expr, value: Any) -> Any:
        """A symmetric matrix with the same nodes in both halves."""
        if np.ndim(value) == 2 and self.program.chosen.is_all and is_symmetric(expr):
            mirrored(value)
        self.parts.append(np.shape(value))
        return value

    def check_parameters(self, outputs: list[int]) -> None:
        """Every parameter has to make a difference."""
        graph, nodes = self.graph, self.graph.used(outputs) if self.parameters else []
        used = {graph.inputs[graph.a[n]] for n in nodes if graph.op[n] == "input"}
        for name, values in self.parameters.items():
            if values.size and not any(x.startswith(f"{name}[") for x in used):
                raise ExpressionError(
                    f"parameters has {name!r}, but  {self.program.expr}  does not depend on it"
                    + (": it is part of `mass`, and N by itself." if name == "armature" else ".")
                )

    def needed_checks(self, outputs: list[int]) -> list[Check]:
        """Checks of quaternions, and of the pivots that a part of the result is made from."""
        graph, checks = self.graph, self.quaternion_checks(outputs)
        is_all = self.program.chosen.is_all
        used = set(() if is_all else graph.used(outputs))
        for node, (code, low) in self.checks.items():
            of = graph.a[node] if code == status.MATRIX else node
            if is_all or of in used or node in used:
                checks.append(Check(code, node, float(low), np.inf))
        return checks

    def rank_checks(self, rank: int | None) -> list[Check]:
        """The number of independent rows has to be the expected one."""
        if rank is None or not isinstance(self.independent, Scalar):
            return []
        bounds = (rank - 0.5, rank + 0.5)
        return [Check(status.singular(self.mech), self.independent.node, *bounds)]


def not_symmetric(what: object) -> str:
    """The message for the inverse of a matrix that is not symmetric."""
    return (
        f"the inverse of {what} cannot be compiled: it is not symmetric, and solving with it needs "
        "pivots that depend on the state. The interpreter evaluates it."
    )


def _is_identity(matrix: Any) -> bool:
    """Whether a block is the identity in every state, as that of a hinge nothing passes through."""
    values = [x.constant if isinstance(x, Scalar) else float(x) for x in matrix.ravel()]
    return values == np.eye(*matrix.shape).ravel().tolist()


def leading(inertia: SpatialInertia) -> SpatialInertia:
    """With the leading axis that formulas on nodes need."""
    return trusted_inertia(inertia.mass[None], inertia.h[None], inertia.J[None])


def snap(rot: Array) -> None:
    """Set entries of rotations that are within rounding of 0 or ±1 to these."""
    for value in (0.0, 1.0, -1.0):
        rot[np.abs(rot - value) < SNAP] = value


def snapped(pose: Pose) -> Pose:
    """A pose whose rotation is snapped."""
    if pose is Pose.identity():
        return pose
    rot = pose.rot.copy()
    snap(rot)
    return trusted_pose(rot, pose.p)


def pose_numbers(pose: Pose) -> Array:
    """The twelve numbers of a pose, its rotation snapped; the two zeros are one."""
    return np.concatenate([snapped(pose).rot.ravel(), pose.p]) + 0.0


def numbers(mech: Mechanism, k: int) -> Array:
    """The numbers of a body that may differ between parts of equal build."""
    drives = mech.armature[mech.v_start[k] : mech.v_start[k + 1]]
    ten = parameter.numbers(mech.inertias[k])
    return np.concatenate([pose_numbers(mech.bodies[k].inboard), ten, drives]) + 0.0


def objects(values: Sequence[Any]) -> Any:
    """An array (n,) of numbers and graph nodes."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
