"""One body of a class traced through all stages, its neighbours being symbols.

The statements run as they do for whole mechanisms, on a window of two bodies: index 0 is the parent
and index 1 the body. Quantities of the parent are inputs of the graph. What the body adds to a sum
over children is that sum as the parent sees it, with this body its only child; such sums at the
body itself are inputs again, filled by its own children.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.space import BODY, INBOARD, JOINT, ONE, PLACE, Space
from linkwise.codegen.rolled.body_class import (
    INBOARD as INBOARD_POSE,
    INERTIA,
    OUTBOARD,
    OWN,
    BodyClass,
)
from linkwise.codegen.rolled.layout import WHERE, Fold, Key, Layout, Leaf, Out, Where
from linkwise.codegen.rolled.screw_columns import hinge_of, numbers_of
from linkwise.codegen.rolled.stage import Plan, Stage
from linkwise.codegen.scalar import parameters as parameter
from linkwise.codegen.scalar.arithmetic import GraphArithmetic, leading, objects
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.model.closure import Blocked
from linkwise.model.hinges import Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.bodies import Bodies, first
from linkwise.sweeps.interpret import Interpreter
from linkwise.sweeps.program import Quantity, Statement
from linkwise.sweeps.result_part import SIZES
from linkwise.sweeps.structured_block import ShiftBlock, dense, mirrored

ABOVE, HERE = 0, 1
"""Indices of the window: the parent, the body."""


class Leaves:
    """The graph of one body, and what its input nodes are."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.of: dict[int, Leaf] = {}

    def node(self, leaf: Leaf) -> Scalar:
        """A new input."""
        node = self.graph.input(f"{leaf.kind}{len(self.of)}")
        self.of[node] = leaf
        return Scalar(self.graph, node)

    def nodes(self, leaves: Sequence[Leaf]) -> Any:
        """New inputs as an array (n,)."""
        return objects([self.node(leaf) for leaf in leaves])


class _ColumnNumbers:
    """The numbers of the body: constants, or columns of the table where bodies differ."""

    def __init__(self, kind: BodyClass, leaves: Leaves) -> None:
        self.kind, self.leaves = kind, leaves
        self.varying = {int(c): i for i, c in enumerate(kind.varying)}
        self._known: dict[int, Any] = {}
        hinge, at, nv = kind.hinge, OWN, kind.hinge.nv
        self.drives = objects([self.column(at + i) for i in range(nv)])
        self.thresholds = [self.column(at + nv + i) for i in range(nv)]
        at += 2 * nv
        if kind.structure is not None:
            count = len(numbers_of(hinge))
            hinge = hinge_of(kind.structure, [self.column(at + i) for i in range(count)])
            at += count
        self.hinge, self.node_columns = hinge, at
        self.inboard = self.pose_columns(INBOARD_POSE)
        self.outboard = self.pose_columns(OUTBOARD)
        self.ten = objects([self.column(INERTIA + i) for i in range(10)])

    def column(self, c: int) -> Any:
        if c not in self.varying:
            return float(self.kind.columns[0, c])
        if c not in self._known:
            self._known[c] = self.leaves.node(Leaf("column", 0, True, self.varying[c]))
        return self._known[c]

    def pose_columns(self, start: int) -> tuple[Any, Any]:
        rot = objects([self.column(start + i) for i in range(9)]).reshape(3, 3)
        return rot, objects([self.column(start + 9 + i) for i in range(3)])

    def pose(self, k: int, q: Any) -> Pose:
        moved = self.hinge.pose(q[None])
        rot, p = first(moved.rot, 2), first(moved.p, 1)
        (rot_in, p_in), (rot_out, p_out) = self.inboard, self.outboard
        turned = rot_in @ rot
        return trusted_pose(turned @ rot_out, rot_in @ p + p_in + turned @ p_out)

    def inertia(self, k: int) -> SpatialInertia:
        return leading(parameter.inertia(self.ten))

    def armature(self, k: int) -> Any:
        return self.drives if k == HERE else self.drives[:0]

    def bounds(self, k: int) -> Any:
        return self.thresholds


class Window(GraphArithmetic):
    """The arithmetic of the window: its inputs are entries of arrays, of columns and of neighbours.

    It is also the columns of its run: where those of the result are taken one by one, there is one.
    """

    picked = None

    def __init__(
        self,
        plan: Plan,
        mech: Mechanism,
        kind: BodyClass,
        layout: Layout,
        leaves: Leaves,
        itemsize: int,
    ) -> None:
        numbers = _ColumnNumbers(kind, leaves)
        super().__init__(_window(mech, kind, numbers), numbers, itemsize, leaves.graph)
        self.plan, self.kind_of, self.layout, self.leaves = plan, kind, layout, leaves
        self.node_body = [-1 if i < kind.grounded else HERE for i in range(len(kind.nodes))]
        self.nodes = list[Any]()
        for i in range(len(kind.nodes)):
            rot, p = numbers.pose_columns(numbers.node_columns + 12 * i)
            shift = ShiftBlock(rot, p).dense
            self.nodes.append(SimpleNamespace(pose=SimpleNamespace(rot=rot, p=p, shift=shift)))
        nq, nv = numbers.hinge.nq, numbers.hinge.nv
        self.q = self._array("q", "q", nq)
        self.v = self._array("v", "v", nv) if "v" in layout.arrays else objects([0.0] * nv)
        for name in layout.parameters:
            if name in ("armature", "locked"):
                self.parameters[name] = self._array(name, "v", nv)
            elif name == "inertia":
                ten = self._array(name, "inertia", 10)
                self.parameters[name] = np.concatenate([objects([0.0] * 10), ten])
            else:
                self.parameters[name] = self._array(name, "start", parameter.size(mech, name))
        self.gravity = self.parameters.get("gravity", mech.gravity)
        for name, (k, pose) in layout.payloads.items():
            if k == kind.special:
                self.welded.setdefault(HERE, []).append((pose, name))

    def _array(self, name: str, where: Where, size: int, node: int = -1, stride: int = 6) -> Any:
        index = self.layout.arrays.index(name)
        return self.leaves.nodes(
            [Leaf("input", 0, True, index, where, j, node, stride) for j in range(size)]
        )

    def vector(self, leaf: Symbol, sizes: Sequence[int]) -> list[Any]:
        """The entries of an input that belong to the window."""
        assert isinstance(leaf.role, role.Vector)
        source = leaf.role.source
        if leaf.range.block == "node":
            size = SIZES[leaf.range]
            each = range(len(self.nodes))
            return [self._array(source, "node", size, i, size)[:, None] for i in each]
        if leaf.range is JOINT:
            vector = self.v if source == "v" else self._array(source, "v", self.mech.nv)
            return [np.zeros((0, 1)), vector[:, None]]
        size, where = (12, "place") if leaf.range is PLACE else (6, "body")
        here, above = self._array(source, where, size)[:, None], np.zeros((0, 1))
        if (leaf, False) in self.plan.from_parent and not self.kind_of.root:
            assert where == "body"
            above = self._array(source, "parent_body", size)[:, None]
        return [above, here]

    def width(self, space: Space) -> int:
        """Columns of a quantity: one where they are taken one by one."""
        if space is ONE or space is self.plan.looped:
            return 1
        assert space.block == "node", f"columns over {space} are not taken one by one"
        return SIZES[space] * self.layout.n_nodes

    def identity(self, quantity: Quantity) -> list[Any]:
        """The blocks of the identity."""
        if quantity.columns is not self.plan.looped:
            unit = np.eye(self.width(quantity.columns))
            return [unit[6 * i : 6 * i + 6] for i in self.kind_of.nodes]
        sizes = Bodies(self.mech, self.nodes, self.node_body).sizes(quantity.rows)
        return [self._unit(quantity.rows, i, size) for i, size in enumerate(sizes)]

    def _unit(self, rows: Space, i: int, size: int) -> Any:
        """The part of a column of the identity that belongs to a body or node of the window."""
        on_node = rows.block == "node"
        if i == ABOVE and not on_node:
            if self.kind_of.root or rows not in (BODY, INBOARD):
                return np.zeros((0, 1))
            where: Where = "parent_body"
        else:
            where = "node" if on_node else WHERE[rows]
        level, node = self.plan.first_each, i if on_node else -1
        leaves = [Leaf("unit", level, True, 0, where, r, node, size) for r in range(size)]
        return self.leaves.nodes(leaves)[:, None]

    def input(self, name: str, size: int) -> Any:
        """There are none: rolled kernels have no constraints."""
        raise NotImplementedError  # never called: such programs are not rolled

    def solve(self, run: Interpreter, statement: Statement) -> Any:
        """There are none: dense matrices are solved between the loops."""
        raise NotImplementedError  # never called: such statements are not part of a loop

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """There are none: rolled kernels have no constraints."""
        raise NotImplementedError  # never called: such programs are not rolled

    def result(self, expr: Expr, value: Any) -> Any:
        """As it is."""
        return value


def _window(mech: Mechanism, kind: BodyClass, numbers: _ColumnNumbers) -> Any:
    """The two bodies, as far as the interpreter looks at a mechanism."""
    of, hinge = mech.bodies[int(kind.bodies[0])], numbers.hinge
    outboard = SimpleNamespace(shift=ShiftBlock(*numbers.outboard).dense)
    here = SimpleNamespace(
        name=of.name, hinge_name=of.hinge_name, hinge=hinge, outboard=outboard, inboard=None
    )
    above = SimpleNamespace(name="", hinge_name="", hinge=Locked(), outboard=None, inboard=None)
    return SimpleNamespace(
        name=mech.name,
        bodies=(above, here),
        n_bodies=2,
        parent=[-1, -1 if kind.root else ABOVE],
        children=((HERE,), (), ()),
        q_start=[0, 0, hinge.nq],
        v_start=[0, 0, hinge.nv],
        nq=hinge.nq,
        nv=hinge.nv,
        gravity=mech.gravity,
    )


class Step:
    """The trace of one body.

    Attributes:
        leaf: What each input node is.
        handed: What children may read at this body, by entry.
        added: What this body adds to sums of its parent, by entry.
        results: Entries of the result.
        totals: What it adds to numbers that belong to no body.
        exports: Entries of nodes that a dense matrix is made of.
    """

    def __init__(
        self,
        plan: Plan,
        mech: Mechanism,
        kind: BodyClass,
        layout: Layout,
        fold: Fold,
        itemsize: int,
    ) -> None:
        self.plan, self.kind, self.layout, self.fold = plan, kind, layout, fold
        self.leaves = Leaves()
        self.graph, self.leaf = self.leaves.graph, self.leaves.of
        self.handed: dict[Key, Any] = {}
        self.added: dict[Key, Any] = {}
        self.results: list[Out] = []
        self.totals: list[Out] = []
        self.exports: list[Out] = []
        self.window = Window(plan, mech, kind, layout, self.leaves, itemsize)
        bodies = Bodies(self.window.mech, self.window.nodes, self.window.node_body)
        self.run = Interpreter(plan.program, bodies, self.window, self.window)
        self.value = self.run.value

    def trace(self) -> None:
        """Run all stages on the body."""
        for number, stage in enumerate(self.plan.stages):
            for statement in stage.solves:
                self.value[statement.target.ident] = self._solved(statement.target, number)
            for statement in stage.statements:
                self._begin(statement.target, number)
            for statement in stage.statements:
                self._execute(statement)
                self._hand_over(statement.target)
            if not self.kind.root:
                self._add(stage)
        self._results()

    def _begin(self, target: Quantity, number: int) -> None:
        if target.rows is ONE:
            self.value[target.ident] = [self._numbers(target, number + 1)]
            return
        blocks = self.run.empty(target)
        if target.ident in self.plan.from_parent and not self.kind.root:
            outward = self.plan.stages[number].direction == "base_to_tip"
            kept = target.ident in self.plan.kept
            level = number if outward else number + 1
            blocks[ABOVE] = self._entries("parent", target, level, kept, self.fold.parent)
        self.value[target.ident] = blocks

    def _entries(
        self,
        kind: Literal["parent", "sum"],
        target: Quantity,
        level: int,
        kept: bool,
        fold: dict[Key, float | None],
    ) -> Any:
        """A quantity of a neighbour: nodes, and constants where all bodies have the same."""
        assert target.rows is not JOINT
        rows, columns = 12 if target.rows is PLACE else 6, 6
        out = np.empty(
            (rows, columns if target.block else self.window.width(target.columns)), dtype=object
        )
        for key in _keys(target, out.shape):
            constant = fold.get(key, 0.0)
            if constant is None:
                leaf = Leaf(kind, level, kept, key=key, each=target.ident in self.plan.each)
                out[key[1], key[2]] = self.leaves.node(leaf)
            else:
                out[key[1], key[2]] = constant
        return mirrored(out) if _symmetric(target) else out

    def _execute(self, statement: Statement) -> None:
        target, run = statement.target, self.run
        self.window.enter(HERE)
        if target.rows is ONE:
            self._accumulate(statement)
        elif target.rows.block == "node":
            for i in range(len(self.window.nodes)):
                self.value[target.ident][i] = run.evaluated(statement, HERE, i)
            for i, block in enumerate(self.value[target.ident]):
                self._export(target, i, block)
        elif not any(term.place == "c" for term in statement.terms):
            run.execute(statement, HERE)
        elif not (target.block and target.key in run.unmultiplied):
            self.value[target.ident][HERE] = self._with_children(statement)

    def _with_children(self, statement: Statement) -> Any:
        """A statement with sums over children: these are inputs."""
        target = statement.target
        here = tuple(term for term in statement.terms if term.place != "c")
        level = self.plan.gathered[target.ident]
        sums = {} if self.kind.leaf else self.fold.sums
        gathered = self._entries("sum", target, level, False, sums)
        value = gathered
        if here:
            value = self.run.total(Statement(target, here), HERE) + gathered
        return mirrored(value) if _symmetric(target) else value

    def _accumulate(self, statement: Statement) -> None:
        """What the body adds to a number that belongs to no body."""
        target, run = statement.target, self.run
        stage, slot = self.plan.made[target.ident], self.layout.slot[target.ident]
        columns = self.window.width(target.columns)
        total: Any = np.full((1, columns), 0.0, dtype=object)
        for term in statement.terms:
            assert term.operand is not None
            if term.operand.rows.block == "node":
                for i in range(len(self.window.nodes)):
                    total = total + run.product(term, HERE, HERE, node=i)
            elif term.operand.rows is not ONE:
                total = total + run.product(term, HERE, HERE, node=None)
        for c in range(columns):
            node = self.window.node(total[0, c])
            self.totals.append(Out(stage, node, "start", 0, index=slot + c))

    def _hand_over(self, target: Quantity) -> None:
        if target.ident not in self.plan.from_parent:
            return
        block = self.value[target.ident][HERE]
        for key in _keys(target, block.shape):
            self.handed[key] = block[key[1], key[2]]

    def _add(self, stage: Stage) -> None:
        """What the sums of the parent get from this body."""
        for statement in stage.gathers:
            terms = tuple(term for term in statement.terms if term.place == "c")
            block = self.run.total(Statement(statement.target, terms), ABOVE)
            for key in _keys(statement.target, np.shape(block)):
                self.added[key] = block[key[1], key[2]]

    # ----------------------------------------------------------------- numbers without a body

    def _numbers(self, target: Quantity, level: int) -> Any:
        slot, columns = self.layout.slot[target.ident], self.window.width(target.columns)
        each = target.ident in self.plan.each
        leaves = [Leaf("whole", level, True, slot + c, each=each) for c in range(columns)]
        return self.leaves.nodes(leaves)[None]

    def _solved(self, target: Quantity, number: int) -> list[Any]:
        """The solution of a dense matrix, read at the nodes of the body."""
        if target.rows is ONE:
            return [self._numbers(target, number)]
        columns, slot = self.window.width(target.columns), self.layout.slot[target.ident]
        each, blocks = target.ident in self.plan.each, list[Any]()
        for i in range(len(self.window.nodes)):
            leaves = [
                Leaf("whole", number, True, slot, "node", j, i, 6 * columns, each=each)
                for j in range(6 * columns)
            ]
            blocks.append(self.leaves.nodes(leaves).reshape(6, columns))
        return blocks

    def _export(self, target: Quantity, i: int, block: Any) -> None:
        if target.ident not in self.layout.slot:
            return
        stage, slot = self.plan.made[target.ident], self.layout.slot[target.ident]
        flat = np.asarray(block, dtype=object).ravel()
        for j, x in enumerate(flat):
            self.exports.append(Out(stage, self.window.node(x), "node", j, i, slot, len(flat)))

    def _results(self) -> None:
        """Entries of the result at this body: their place, times the columns there are."""
        result = self.plan.program.result
        if result.rows is ONE:
            return
        blocks = self.run.blocks_of(result)
        if result.block:
            self._block_result(dense(blocks[HERE]))
            return
        on_node = result.rows.block == "node"
        earliest = self.plan.first_each if self.plan.looped is not None else 0
        for i, block in enumerate(blocks):
            if not on_node and i != HERE:
                continue
            if self.layout.columns is not None and self.plan.looped is None:
                block = block[:, self.layout.columns]
            for j, x in enumerate(np.asarray(block, dtype=object).ravel()):
                at = "node" if on_node else WHERE[result.rows]
                rows = len(block)
                self.results.append(
                    Out(earliest, self.window.node(x), at, j, i if on_node else -1, 0, rows)
                )

    def _block_result(self, block: Any) -> None:
        rows, columns = self.layout.block
        for r in range(rows):
            for c in range(columns):
                inside = r < block.shape[0] and c < block.shape[1]
                node = self.window.node(block[r, c] if inside else 0.0)
                offset, size = r * columns + c, rows * columns
                self.results.append(Out(0, node, "block", offset, stride=size))


def _symmetric(target: Quantity) -> bool:
    return target.block and isinstance(target.key, Symbol) and target.key.symmetric


def _keys(target: Quantity, shape: tuple[int, ...]) -> list[Key]:
    """The entries of a quantity; of a symmetric one, the upper triangle."""
    rows, columns = shape
    upper = _symmetric(target)
    return [(target.ident, r, c) for r in range(rows) for c in range(r if upper else 0, columns)]
