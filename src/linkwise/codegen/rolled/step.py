"""One body of a class traced through all stages, its neighbours being symbols.

The statements run as they do for whole mechanisms (`trace.py`), on a window of two bodies: index 0
is the parent and index 1 the body. What stands at the parent are inputs of the graph; what the body
adds to a sum over children is that sum as the parent sees it, with this body its only child; and
such sums at the body itself are inputs again, filled by its own children.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import BODY, INBOARD, JOINT, NODE_PLACE, ONE, PLACE, Space
from linkwise.codegen.rolled.body_class import (
    INBOARD as INBOARD_POSE,
    INERTIA,
    OUTBOARD,
    OWN,
    BodyClass,
)
from linkwise.codegen.rolled.layout import Layout
from linkwise.codegen.rolled.leaf import WHERE, Fold, Key, Leaf, Out, Where
from linkwise.codegen.rolled.screw_columns import hinge_of, numbers_of
from linkwise.codegen.rolled.stage import Plan, Stage
from linkwise.codegen.scalar import parameters as parameter
from linkwise.codegen.scalar.block import ShiftBlock
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.codegen.scalar.trace import Check, Trace, first, leading, mirror
from linkwise.model.hinges import Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.inertia import SpatialInertia
from linkwise.sweeps.program import Quantity, Statement

ABOVE, HERE = 0, 1
"""Indices of the window: the parent, the body."""


class Step(Trace):
    """The trace of one body.

    Attributes:
        leaf: What each input node stands for.
        handed: What children may read at this body, by entry.
        added: What this body adds to sums of its parent, by entry.
        results: Entries of the result.
        totals: What it adds to numbers that belong to no body: (stage, slot, node).
        exports: Entries of nodes that a dense matrix is made of.
    """

    def __init__(
        self,
        plan: Plan,
        mech: Mechanism,
        kind: BodyClass,
        nodes: list[Any],
        layout: Layout,
        fold: Fold,
        itemsize: int,
    ) -> None:
        self.plan, self.kind, self.layout, self.fold = plan, kind, layout, fold
        self.graph, self.itemsize = Graph(), itemsize
        self.checks: dict[int, Check] = {}
        self.leaf: dict[int, Leaf] = {}
        self.bounds: dict[int, Any] = {}
        self.arrays = []
        self.program, self.picked = plan.program, None
        self.given, self.value = {}, {}
        self.whole = mech
        self.handed: dict[Key, Any] = {}
        self.added: dict[Key, Any] = {}
        self.results: list[Out] = []
        self.totals: list[Out] = []
        self.exports: list[Out] = []
        self.varying = {int(c): i for i, c in enumerate(kind.varying)}
        self.mech: Any = self._window(mech)
        self.node_body = [-1 if i < kind.grounded else HERE for i in range(len(kind.nodes))]
        self.nodes = self._nodes(nodes)
        self._inputs(mech)

    # --------------------------------------------------------------------------- the window

    def _scalar(self, leaf: Leaf) -> Scalar:
        node = self.graph.input(f"{leaf.kind}{len(self.leaf)}")
        self.leaf[node] = leaf
        return Scalar(self.graph, node)

    def _column(self, c: int) -> Any:
        """A number of the body: the same for all, or a column of the table."""
        if c not in self.varying:
            return float(self.kind.columns[0, c])
        found = self._columns.get(c)
        if found is None:
            found = self._columns[c] = self._scalar(Leaf("column", 0, True, self.varying[c]))
        return found

    def _pose_columns(self, start: int) -> tuple[Any, Any]:
        rot = _objects([self._column(start + i) for i in range(9)]).reshape(3, 3)
        return rot, _objects([self._column(start + 9 + i) for i in range(3)])

    def _window(self, mech: Mechanism) -> Any:
        kind = self.kind
        self._columns: dict[int, Any] = {}
        hinge, at = kind.hinge, OWN
        nv = hinge.nv
        armature = [self._column(at + i) for i in range(nv)]
        self.thresholds = [self._column(at + nv + i) for i in range(nv)]
        at += 2 * nv
        if kind.structure is not None:
            count = len(numbers_of(hinge))
            hinge = hinge_of(kind.structure, [self._column(at + i) for i in range(count)])
            at += count
        self.node_columns = at
        self.inboard = self._pose_columns(INBOARD_POSE)
        self.outboard = self._pose_columns(OUTBOARD)
        self.inertia_columns = _objects([self._column(INERTIA + i) for i in range(10)])
        dense = ShiftBlock(*self.outboard) @ np.eye(6)
        name = mech.bodies[int(kind.bodies[0])].name
        body = SimpleNamespace(
            name=name, hinge=hinge, outboard=SimpleNamespace(shift=dense), inboard=None
        )
        above = SimpleNamespace(name="", hinge=Locked(), outboard=None, inboard=None)
        nq = hinge.nq
        return SimpleNamespace(
            name=mech.name,
            bodies=(above, body),
            n_bodies=2,
            parent=[-1, -1 if kind.root else ABOVE],
            children=((HERE,), (), ()),
            q_start=[0, 0, nq],
            v_start=[0, 0, nv],
            nq=nq,
            nv=nv,
            armature=_objects(armature),
            gravity=mech.gravity,
        )

    def _nodes(self, nodes: list[Any]) -> list[Any]:
        found = list[Any]()
        for i in range(len(self.kind.nodes)):
            rot, p = self._pose_columns(self.node_columns + 12 * i)
            dense = ShiftBlock(rot, p) @ np.eye(6)
            found.append(SimpleNamespace(pose=SimpleNamespace(rot=rot, p=p, shift=dense)))
        return found

    def _inputs(self, mech: Mechanism) -> None:
        layout = self.layout
        self.q = self._array("q", "q", self.mech.nq)
        zero = _objects([0.0] * self.mech.nv)
        self.v = self._array("v", "v", self.mech.nv) if "v" in layout.arrays else zero
        names = layout.parameters
        self.parameters: dict[str, Any] = {}
        for name in names:
            if name in ("armature", "locked"):
                self.parameters[name] = self._array(name, "v", self.mech.nv)
            elif name == "inertia":
                ten = self._array(name, "inertia", 10)
                self.parameters[name] = np.concatenate([_objects([0.0] * 10), ten])
            else:
                self.parameters[name] = self._array(name, "start", parameter.size(mech, name))
        self.gravity = self.parameters.get("gravity", mech.gravity)
        self.welded = {}
        for name, (k, pose) in layout.payloads.items():
            if k == self.kind.special:
                self.welded.setdefault(HERE, []).append((pose, name))
        for leaf in self.program.inputs:
            self._load(leaf)

    def _array(self, name: str, where: Where, size: int, node: int = -1, stride: int = 6) -> Any:
        index = self.layout.arrays.index(name)
        leaves = [Leaf("input", 0, True, index, where, j, node, stride) for j in range(size)]
        return _objects([self._scalar(leaf) for leaf in leaves])

    def _load(self, leaf: Symbol) -> None:
        key = leaf.role
        if isinstance(key, role.Memoryless) and key.source == "M":
            self.value[leaf, True] = [np.zeros(0), first(self._inertia(HERE).matrix, 2)]
            return
        if isinstance(key, role.Selection):  # the same for all bodies of the class
            name = self.whole.bodies[int(self.kind.bodies[0])].hinge_name
            own = float(name in key.hinges) * np.eye(self.mech.nv)
            self.value[leaf, True] = [np.zeros((0, 0)), own]
            return
        super()._load(leaf)

    def _inertia(self, k: int) -> SpatialInertia:
        if "inertia" in self.parameters or self.welded:
            return super()._inertia(k)
        return leading(parameter.inertia(self.inertia_columns))

    def _own_inertia(self, k: int) -> SpatialInertia:
        return leading(parameter.inertia(self.inertia_columns))

    def _split(self, leaf: Symbol, source: str) -> list[Any]:
        if leaf.range.block == "node":
            size = 12 if leaf.range is NODE_PLACE else 6
            each = range(len(self.nodes))
            return [self._array(source, "node", size, i, size)[:, None] for i in each]
        if leaf.range is JOINT:
            vector = self.v if source == "v" else self._array(source, "v", self.mech.nv)
            return [np.zeros((0, 1)), vector[:, None]]
        size, where = (12, "place") if leaf.range is PLACE else (6, "body")
        own = self._array(source, where, size)[:, None]
        above = np.zeros((0, 1))
        if (leaf, False) in self.plan.from_parent and not self.kind.root:
            assert where == "body"
            above = self._array(source, "parent_body", size)[:, None]
        return [above, own]

    # ------------------------------------------------------------------------------- spaces

    def sizes(self, space: Space) -> list[int]:
        """Lengths of the blocks in the window."""
        if space is JOINT:
            return [0, self.mech.nv]
        if space in (BODY, INBOARD):
            return [6, 6]
        return super().sizes(space)

    def size(self, space: Space) -> int:
        """Columns: one where they are taken one by one."""
        if space is ONE or space is self.plan.looped:
            return 1
        assert space.block == "node", f"columns over {space} are not taken one by one"
        return (12 if space is NODE_PLACE else 6) * self.layout.n_nodes

    def blocks_of(self, quantity: Quantity) -> list[Any]:
        """One array for each body (or node)."""
        found = self.value.get(quantity.ident)
        if found is not None:
            return found
        sizes = self.sizes(quantity.rows)
        if quantity.columns is self.plan.looped:
            found = [self._unit(quantity.rows, i, size) for i, size in enumerate(sizes)]
        else:
            whole = np.eye(self.size(quantity.columns))
            found = [whole[6 * i : 6 * i + 6] for i in self.kind.nodes]
        self.value[quantity.ident] = found
        return found

    def _unit(self, rows: Space, i: int, size: int) -> Any:
        """The part of a column of the identity that belongs to a body or node of the window."""
        on_node = rows.block == "node"
        if i == ABOVE and not on_node:
            if self.kind.root or rows not in (BODY, INBOARD):
                return np.zeros((0, 1))
            where: Where = "parent_body"
        else:
            where = "node" if on_node else WHERE[rows]
        level, node = self.plan.first_each, i if on_node else -1
        leaves = [Leaf("unit", level, True, 0, where, r, node, size) for r in range(size)]
        return _objects([self._scalar(leaf) for leaf in leaves])[:, None]

    # --------------------------------------------------------------------------- statements

    def trace(self) -> None:
        """Run all stages on the body."""
        for number, stage in enumerate(self.plan.stages):
            for statement in stage.solves:
                self.value[statement.target.ident] = self._solved(statement.target, number)
            for statement in stage.statements:
                self._begin(statement.target, number)
            for statement in stage.statements:
                self._execute(statement, HERE)
                self._hand_over(statement.target, number)
            if not self.kind.root:
                self._add(stage)
        self._results()

    def _begin(self, target: Quantity, number: int) -> None:
        if target.rows is ONE:
            self.value[target.ident] = [self._numbers(target, number + 1)]
            return
        blocks = self._empty(target)
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
        out = np.empty(self._shape(target), dtype=object)
        for key in _keys(target, out.shape):
            constant = fold.get(key, 0.0)
            if constant is None:
                leaf = Leaf(kind, level, kept, key=key, each=target.ident in self.plan.each)
                out[key[1], key[2]] = self._scalar(leaf)
            else:
                out[key[1], key[2]] = constant
        if _symmetric(target):
            mirror(out)
        return out

    def _shape(self, target: Quantity) -> tuple[int, int]:
        rows = 12 if target.rows is PLACE else 6
        assert target.rows is not JOINT
        return rows, 6 if target.block else self.size(target.columns)

    def _execute(self, statement: Statement, k: int) -> None:
        target = statement.target
        if target.rows.block != "node":
            super()._execute(statement, k)
            return
        for i in range(len(self.nodes)):
            self.value[target.ident][i] = (
                self._place(statement, k, node=i)
                if statement.special
                else self._sum(statement, k, node=i)
            )
        for i, block in enumerate(self.value[target.ident]):
            self._export(target, i, block)

    def _accumulate(self, statement: Statement, k: int) -> None:
        """What the body adds to a number that belongs to no body."""
        target = statement.target
        stage, slot = self.plan.made[target.ident], self.layout.slot[target.ident]
        columns = self.size(target.columns)
        total: Any = np.full((1, columns), 0.0, dtype=object)
        for term in statement.terms:
            assert term.operand is not None
            if term.operand.rows.block == "node":
                for i in range(len(self.nodes)):
                    total = total + self._product(term, k, k, node=i)
            elif term.operand.rows is not ONE:
                total = total + self._product(term, k, k, node=None)
        for c in range(columns):
            node = self.number(total[0, c])
            self.totals.append(Out(stage, node, "start", 0, index=slot + c))

    def _sum(self, statement: Statement, k: int, node: int | None = None) -> Any:
        own = tuple(term for term in statement.terms if term.place != "c")
        if k == ABOVE or len(own) == len(statement.terms):
            return super()._sum(statement, k, node)
        level = self.plan.gathered[statement.target.ident]
        sums = {} if self.kind.leaf else self.fold.sums
        gathered = self._entries("sum", statement.target, level, False, sums)
        return (
            super()._sum(Statement(statement.target, own), k, node) + gathered if own else gathered
        )

    def _hand_over(self, target: Quantity, number: int) -> None:
        """What children read here."""
        if target.ident not in self.plan.from_parent:
            return
        block = self.value[target.ident][HERE]
        for key in _keys(target, block.shape):
            self.handed[key] = block[key[1], key[2]]

    def _add(self, stage: Stage) -> None:
        """What the sums of the parent get from this body."""
        for statement in stage.gathers:
            terms = tuple(term for term in statement.terms if term.place == "c")
            block = self._sum(Statement(statement.target, terms), ABOVE)
            for key in _keys(statement.target, np.shape(block)):
                self.added[key] = block[key[1], key[2]]

    # ----------------------------------------------------------------- numbers without a body

    def _numbers(self, target: Quantity, level: int) -> Any:
        slot, columns = self.layout.slot[target.ident], self.size(target.columns)
        each = target.ident in self.plan.each
        leaves = [Leaf("whole", level, True, slot + c, each=each) for c in range(columns)]
        return _objects([self._scalar(leaf) for leaf in leaves])[None]

    def _solved(self, target: Quantity, number: int) -> list[Any]:
        """The solution of a dense matrix, read at the nodes of the body."""
        if target.rows is ONE:
            return [self._numbers(target, number)]
        columns, slot = self.size(target.columns), self.layout.slot[target.ident]
        each = target.ident in self.plan.each
        found = list[Any]()
        for i in range(len(self.nodes)):
            leaves = [
                Leaf("whole", number, True, slot, "node", j, i, 6 * columns, each=each)
                for j in range(6 * columns)
            ]
            entries = _objects([self._scalar(leaf) for leaf in leaves])
            found.append(entries.reshape(6, columns))
        return found

    def _export(self, target: Quantity, i: int, block: Any) -> None:
        if target.ident not in self.layout.slot:
            return
        stage, slot = self.plan.made[target.ident], self.layout.slot[target.ident]
        flat = np.asarray(block, dtype=object).ravel()
        for j, x in enumerate(flat):
            self.exports.append(Out(stage, self.number(x), "node", j, i, slot, len(flat)))

    def _results(self) -> None:
        """Entries of the result at this body: where they stand, times the columns there are."""
        result = self.program.result
        if result.rows is ONE:
            return
        blocks = self.blocks_of(result)
        if result.block:
            self._block_result(self._dense(blocks[HERE]))
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
                    Out(earliest, self.number(x), at, j, i if on_node else -1, 0, rows)
                )

    def _block_result(self, block: Any) -> None:
        """The block at this body, with zeros where it is smaller than others."""
        rows, columns = self.layout.block
        for r in range(rows):
            for c in range(columns):
                inside = r < block.shape[0] and c < block.shape[1]
                node = self.number(block[r, c] if inside else 0.0)
                offset, size = r * columns + c, rows * columns
                self.results.append(Out(0, node, "block", offset, stride=size))

    def number(self, x: Any) -> int:
        """The node of a number."""
        return x.node if isinstance(x, Scalar) else self.graph.constant(float(x))

    # ------------------------------------------------------------------------------ specials

    def _bounds(self, k: int) -> Any:
        return self.thresholds

    def _check(self, code: int, pivots: Any, bounds: Any) -> None:
        for d, low in zip(pivots, bounds, strict=True):
            if isinstance(d, Scalar) and d.node not in self.checks:
                self.checks[d.node] = Check(code, d.node, 0.0, np.inf)
                self.bounds[d.node] = low

    def _pose(self, k: int) -> ShiftBlock:
        body = self.mech.bodies[k]
        moved = body.hinge.pose(self.q[None])
        rot, p = first(moved.rot, 2), first(moved.p, 1)
        (rot_in, p_in), (rot_out, p_out) = self.inboard, self.outboard
        turned = rot_in @ rot
        return ShiftBlock(turned @ rot_out, rot_in @ p + p_in + turned @ p_out)


def _objects(values: list[Any]) -> Any:
    out = np.empty(len(values), dtype=object)
    for i, x in enumerate(values):
        out[i] = x
    return out


def _symmetric(target: Quantity) -> bool:
    return target.block and isinstance(target.key, Symbol) and target.key.symmetric


def _keys(target: Quantity, shape: tuple[int, ...]) -> list[Key]:
    """The entries of a quantity; of a symmetric one, the upper triangle."""
    rows, columns = shape
    upper = _symmetric(target)
    return [(target.ident, r, c) for r in range(rows) for c in range(r if upper else 0, columns)]
