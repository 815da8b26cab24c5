"""Tracing: the interpreter run on graph nodes instead of numbers gives the scalar graph.

What runs is the same code as the reference; only blocks keep their structure here (`block.py`), so
that a shift costs two rotations and a cross product, ψ is never multiplied out, and what meets
under one shift is added up before it is shifted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.dense import MOVING, STATE_BLOCKS
from linkwise.algebra.expr import Expr, Identity, Symbol
from linkwise.algebra.family import Family
from linkwise.algebra.space import CONSTRAINT
from linkwise.algebra.words import is_symmetric
from linkwise.codegen.scalar import parameters as parameter, status
from linkwise.codegen.scalar.block import ArticulatedBlock, ShiftBlock, WorldBlock
from linkwise.codegen.scalar.check import Check
from linkwise.codegen.scalar.closing import TracedClosing
from linkwise.codegen.scalar.graph import Graph, Scalar
from linkwise.codegen.scalar.pivots import SINGULAR, thresholds
from linkwise.errors import ExpressionError, LoweringError, SingularHingeError
from linkwise.model import rows
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.vector import cross_force, cross_velocity
from linkwise.sweeps.factored import factored
from linkwise.sweeps.interpret import Run, derivative_block, family_of_part, picked_columns
from linkwise.sweeps.program import Block, Program, Quantity, Statement, Term

KNOWN = (*STATE_BLOCKS, "phi")
"""Operators that a mechanism has blocks for."""

SNAP = 4e-16
"""Entries of constant rotations this close to 0 or ±1 are taken to be that: files print angles."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A program of one mechanism as a graph.

    Attributes:
        graph: All nodes.
        inputs: For each input array its name and length, in order.
        outputs: Node of each entry of the result, row by row.
        shape: Shape of the result for one state.
        checks: What has to hold for the result to mean something.
        parts: Of several results that stand one after another, the shape of each.
    """

    graph: Graph
    inputs: tuple[tuple[str, int], ...]
    outputs: list[int]
    shape: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()

    @property
    def wanted(self) -> list[int]:
        """The nodes that are stored or checked."""
        return [*self.outputs, *(check.node for check in self.checks)]

    def by_columns(self) -> list[int]:
        """All nodes that are needed, in an order in which values are used soon after they are made.

        That is the order they were made in, the sweeps. In a matrix, what serves one column only
        comes after what all share, a few columns at a time: few values are then waiting.
        """
        needed = self.graph.used(self.wanted)
        if len(self.shape) != 2:
            return needed
        shared, width = -1, self.shape[1]
        column = dict.fromkeys((check.node for check in self.checks), shared)
        for i, node in enumerate(self.outputs):
            column.setdefault(node, i % width)  # of a symmetric matrix, the upper half
        for node in reversed(needed):
            own = column[node]
            for x in self.graph.arguments(node):
                column[x] = own if column.get(x, own) == own else shared
        return sorted(needed, key=lambda node: (column[node] // ABREAST, node))


ABREAST = 2
"""Columns of a matrix that are done together: one would leave the processor waiting."""

QUATERNION_SLACK = {8: 2e-6, 4: 1e-4}
"""How far |quaternion|² may be from 1, by bytes of a number."""


def trace(
    program: Program,
    mech: Mechanism | Embedded,
    nodes: Sequence[str] = (),
    parameters: Sequence[str] = (),
    *,
    itemsize: int = 8,
    rank: int | None = None,
) -> Traced:
    """The scalar graph of a program on a mechanism.

    Args:
        program: The sweeps.
        mech: The mechanism.
        nodes: Nodes of the space NODE.
        parameters: Numbers that stay inputs (`parameters.py`).
        itemsize: Bytes of a number, on which the bounds of the checks depend.
        rank: How many rows of loops and couplings have to be independent; None leaves it out.
    """
    run = _of_kind(program, mech, nodes, parameters, itemsize)
    run.closing.rank = rank
    result = run.result()
    flat = [
        x if isinstance(x, Scalar) else Scalar(run.graph, run.graph.constant(float(x)))
        for x in np.asarray(result, dtype=object).ravel()
    ]
    outputs = [x.node for x in flat]
    run.check_parameters(outputs)
    checks = run.quaternion_checks(outputs) + run.needed_checks(outputs) + run.closing.checks
    parts = tuple(run.parts) if program.more else ()
    return Traced(run.graph, tuple(run.arrays), outputs, np.shape(result), tuple(checks), parts)


def _of_kind(program: Program, mech: Mechanism | Embedded, *options: Any) -> Trace:
    if isinstance(mech, Embedded):
        from linkwise.codegen.scalar.aggregate_trace import AggregateTrace

        return AggregateTrace(program, cast("Any", mech), *options)
    return Trace(program, mech, *options)


class Trace(Run):
    """The interpreter, with graph nodes for q, v and all vectors."""

    def __init__(
        self,
        program: Program,
        mech: Mechanism,
        nodes: Sequence[str],
        parameters: Sequence[str] = (),
        itemsize: int = 8,
    ) -> None:
        self.graph = Graph()
        self.itemsize = itemsize
        self.checks: dict[int, Check] = {}
        self.parameters: dict[str, Any] = {}
        self.arrays: list[tuple[str, int]] = []
        self.parts: list[tuple[int, ...]] = []
        self.program, self.mech = program, mech
        self.nodes = [mech.node(name) for name in nodes]
        self.node_body = [mech.body_index[node.body] for node in self.nodes]
        self.given: dict[str, Any] = {}
        self.picked = picked_columns(program, mech, nodes)
        self.closing = TracedClosing(self)
        self.value = {}
        self.q = self.taken("q", mech.nq)
        sources = {s.role.source for s in program.inputs if isinstance(s.role, role.Vector)}
        moving = bool(sources & set(MOVING))
        self.v = self.taken("v", mech.nv) if moving else np.zeros(mech.nv)
        vectors = [leaf for leaf in program.inputs if isinstance(leaf.role, role.Vector)]
        for leaf in vectors:
            self._load(leaf)
        self.closing.take_inputs()
        names = parameter.checked(mech, parameters, nodes)
        self.parameters = {name: self.taken(name, parameter.size(mech, name)) for name in names}
        self.gravity: Any = self.parameters.get("gravity", mech.gravity)
        self.welded: dict[int, list[tuple[Pose, str]]] = {}
        for name in (n for n in names if n.startswith("payload")):
            node = mech.node(parameter.node_of(mech, name, nodes))
            k = mech.body_index[node.body]
            self.welded.setdefault(k, []).append((node.pose, name))
        for leaf in program.inputs:
            if leaf not in vectors:
                self._load(leaf)

    def taken(self, name: str, size: int) -> Any:
        """A new input array."""
        self.arrays.append((name, size))
        out = np.empty(size, dtype=object)
        for i in range(size):
            out[i] = Scalar(self.graph, self.graph.input(f"{name}[{i}]"))
        return out

    def _put_together(self, expr: Expr, result: Quantity) -> Any:
        found = super()._put_together(expr, result)
        if np.ndim(found) == 2 and self.program.chosen.whole and is_symmetric(expr):
            mirror(found)
        self.parts.append(np.shape(found))
        return found

    # ------------------------------------------------------------------------- parameters

    def _load(self, leaf: Symbol) -> None:
        key, mech = leaf.role, self.mech
        source = key.source if isinstance(key, role.Memoryless) else ""
        if isinstance(key, role.Shift | role.Memoryless) and key.source not in KNOWN:
            raise ExpressionError(
                f"{leaf} is an operator of one's own, and a kernel has no input for its blocks: it "
                "takes vectors, and numbers of the mechanism. The interpreter "
                "(linkwise.sweeps.interpret.run) takes values for it."
            )
        if source == "M" and ("inertia" in self.parameters or self.welded):
            self.value[leaf, True] = [
                first(self._inertia(k).matrix, 2) for k in range(mech.n_bodies)
            ]
        elif source == "N" and "armature" in self.parameters:
            given = self.parameters["armature"]
            blocks = list[Any]()
            for k in range(mech.n_bodies):
                part = given[mech.v_start[k] : mech.v_start[k + 1]]
                block = np.full((len(part), len(part)), 0.0, dtype=object)
                np.fill_diagonal(block, part)
                blocks.append(block)
            self.value[leaf, True] = blocks
        else:
            super()._load(leaf)

    def _inertia(self, k: int) -> SpatialInertia:
        """The inertia of body k with what is welded to it; arrays with a leading axis."""
        own = self._own_inertia(k)
        if "inertia" in self.parameters:
            start = parameter.INERTIA * k
            own = leading(
                parameter.inertia(self.parameters["inertia"][start : start + parameter.INERTIA])
            )
        for pose, name in self.welded.get(k, ()):
            part = leading(parameter.inertia(self.parameters[name])).moved(pose)
            own = trusted_inertia(own.mass + part.mass, own.h + part.h, own.J + part.J)
        return own

    def _own_inertia(self, k: int) -> SpatialInertia:
        return self.mech.inertias[k]

    def check_parameters(self, outputs: list[int]) -> None:
        """Every parameter has to make a difference."""
        used = {
            self.graph.inputs[self.graph.a[n]]
            for n in self.graph.used(outputs)
            if self.graph.op[n] == "input"
        }
        for name in self.parameters:
            if self.parameters[name].size and not any(x.startswith(f"{name}[") for x in used):
                raise ExpressionError(
                    f"parameters has {name!r}, but  {self.program.expr}  does not depend on it"
                    + (": it is part of `mass`, and N by itself." if name == "armature" else ".")
                )

    def quaternion_checks(self, outputs: list[int]) -> list[Check]:
        """|quaternion|² = 1, for the hinges whose quaternion is used."""
        used, found = set(self.graph.used(outputs)), list[Check]()
        slack = QUATERNION_SLACK[self.itemsize]
        for k, body in enumerate(self.mech.bodies):
            part = body.hinge.quaternion
            if part is None:
                continue
            start = int(self.mech.q_start[k])
            four = self.q[start + part.start : start + part.stop]
            if any(x.node in used for x in four):
                square: Any = sum((x * x for x in four[1:]), four[0] * four[0])
                found.append(Check(status.quaternion(k), square.node, 1.0 - slack, 1.0 + slack))
        return found

    def needed_checks(self, outputs: list[int]) -> list[Check]:
        """Checks of pivots; of a part of the result, those of what it is made from."""
        if self.program.chosen.whole:
            return list(self.checks.values())
        used, graph = set(self.graph.used(outputs)), self.graph
        found = list[Check]()
        for check in self.checks.values():
            of = graph.a[check.node] if check.code == status.MATRIX else check.node
            if of in used or check.node in used:
                found.append(check)
        return found

    _kind: Any = object

    def _dense(self, block: Any) -> Any:
        return block @ np.eye(6) if isinstance(block, ShiftBlock | WorldBlock) else block

    def _split(self, leaf: Symbol, source: str) -> list[Array]:
        sizes = self.sizes(leaf.range)
        vector = self.v if source == "v" else self.taken(source, sum(sizes))
        ends = np.cumsum(sizes)
        return [vector[end - size : end, None] for end, size in zip(ends, sizes, strict=True)]

    def _empty(self, quantity: Quantity) -> list[Array]:
        return [x.astype(object) for x in super()._empty(quantity)]  # nodes are summed up in them

    def _dense_solve(self, statement: Statement) -> None:
        """A⁻¹ X for a symmetric A, by L D L*; others need pivots, which depend on the state."""
        (matrix, _), (right, _) = statement.reads
        if not is_symmetric(matrix.key):
            raise LoweringError(
                f"the inverse of {matrix.key} cannot be compiled: it is not symmetric, and solving "
                "with it needs pivots that depend on the state. The interpreter evaluates it."
            )
        if not self.sizes(statement.target.rows):  # no constraints in this part of a mechanism
            self.value[statement.target.ident] = []
            return
        A = np.concatenate(self.blocks_of(matrix))
        mirror(A)
        if statement.target.rows is CONSTRAINT and not rows.has_tasks(self.mech):
            x = self.closing.solved(A, np.concatenate(self.blocks_of(right)), self.itemsize)
            self.value[statement.target.ident] = self.closing.cut(x)
            return
        try:
            found = factored(A)
            whole = isinstance(right.key, Identity)
            x = found.matrix if whole else found @ np.concatenate(self.blocks_of(right))
        except ZeroDivisionError:
            raise ExpressionError(
                f"{matrix.key} is singular on {self.mech.name} in every state: it has no inverse."
            ) from None
        small, scale = SINGULAR[self.itemsize], np.zeros(len(A))
        if statement.target.rows is CONSTRAINT:  # of tasks
            small, scale = rows.SINGULAR[self.itemsize], rows.row_scales(self.mech)
        # What is left of a diagonal entry, and for tasks of what an entry is made from.
        left = [d - small * (A[j, j] + scale[j]) for j, d in enumerate(found.pivots)]
        self._check(status.MATRIX, left, np.zeros(len(left)))
        sizes = self.sizes(statement.target.rows)
        self.value[statement.target.ident] = np.split(x, np.cumsum(sizes)[:-1])

    def _check(self, code: int, pivots: Sequence[Any], bounds: Array) -> None:
        for d, low in zip(pivots, bounds, strict=True):
            if isinstance(d, Scalar):
                self.checks.setdefault(d.node, Check(code, d.node, float(low), math.inf))

    # ------------------------------------------------------------------------- structured blocks

    def _block(self, block: Block, here: int, inner: int, outer: int, node: int | None) -> Any:
        if block.symbol in self.unmultiplied:
            family = self.unmultiplied[block.symbol]
            shift: Any = self.value[family.E, True][inner]
            G = self.value[family.G, True][inner]
            H = self.value[family.H, True][inner] if block.symbol is family.E_psi else None
            found = ArticulatedBlock(shift, G, H)
            return found.T if block.adjoint else found
        return super()._block(block, here, inner, outer, node)

    @cached_property
    def unmultiplied(self) -> dict[Symbol, Family]:
        """ψ = E (I - G H) and K = E G that are applied factor by factor: see `ArticulatedBlock`.

        Those whose statements say just that, with the rigid shift, which keeps its structure.
        """
        terms = {s.target.key: s.terms for s in self.program.statements if s.target.block}
        found = dict[Symbol, Family]()
        for key in terms:
            family = family_of_part(key)
            if family is None or not _is_rigid(family.E):
                continue
            edge = Block(family.E, step=True, place="p")
            if key is family.K and terms[key] == (Term(1.0, (edge, Block(family.G))),):
                found[family.K] = family
            left = (Term(1.0), Term(-1.0, (Block(family.G), Block(family.H))))
            if key is family.E_psi and terms.get(family.Pi_bar) == left:
                if terms[key] == (Term(1.0, (edge, Block(family.Pi_bar))),):
                    found[family.E_psi] = family
        return found

    def _bounds(self, k: int) -> Array:
        """Least pivots of D at body k."""
        return thresholds(self.mech, k, self.itemsize)

    def _inverted(self, matrix: Any, block: Block, k: int) -> Any:
        if isinstance(matrix, WorldBlock):
            return matrix.inverse
        if not matrix.size or _is_turn(block.symbol):
            return matrix.T
        hinge = isinstance(block.symbol.role, role.Riccati) and block.symbol.role.part == "D"
        lockable = hinge and "locked" in self.parameters
        if _is_one(matrix) and not lockable:
            return factored(matrix)
        if not _is_symmetric(block.symbol):
            raise LoweringError(
                f"the inverse of {block.symbol} cannot be compiled: it is not symmetric, and "
                "solving with it needs pivots that depend on the state. The interpreter evaluates "
                "it."
            )
        free = None
        if lockable:  # U (U D U + 1 - U)⁻¹ U, with U = 1 if free
            held = self.parameters["locked"][self.mech.v_start[k] : self.mech.v_start[k + 1]]
            free = 1.0 - held
        try:
            found = factored(matrix, free)
            varies = bool(self.parameters.keys() - {"gravity"})
            known = hinge and not varies
            bounds = self._bounds(k) if known else np.zeros(len(found.pivots))
            self._check(status.hinge(k), found.pivots, bounds)
            return found
        except ZeroDivisionError:
            raise SingularHingeError(
                f"{block.symbol} is zero at body {self.mech.bodies[k].name!r} in every state: "
                "nothing resists its hinge. Give the body inertia, or the hinge an armature."
            ) from None

    def _execute(self, statement: Statement, k: int) -> None:
        self.graph.here = k
        symbol = statement.target.key
        if statement.target.block and symbol in self.unmultiplied:
            return
        super()._execute(statement, k)
        if statement.target.block and isinstance(symbol, Symbol) and symbol.symmetric:
            mirror(self.value[statement.target.ident][k])

    def _sum(self, statement: Statement, k: int, node: int | None = None) -> Array:
        """What comes from a child under one shift is added up first: φ (s + G g)."""
        plain = list[Term]()
        shifted = dict[Symbol, list[Term]]()
        for term in statement.terms:
            shift = self._shift_of(term)
            if shift is None:
                plain.append(term)
            else:
                shifted.setdefault(shift, []).append(term)
        if not shifted or not self.mech.children[k]:
            return super()._sum(statement, k, node)
        rest = Statement(statement.target, tuple(plain))
        total: Any = super()._sum(rest, k, node) if plain else 0.0
        for shift, terms in shifted.items():
            for c in self.mech.children[k]:
                total = total + self.value[shift, True][c] @ self._gathered(terms, c)
        return total

    def _shift_of(self, term: Term) -> Symbol | None:
        """The rigid shift under which a term arrives from the children."""
        if term.place != "c" or len(term.left) != 1 or term.right or term.operand is None:
            return None
        if term.left[0].adjoint:
            return None
        symbol = term.left[0].symbol
        if symbol in self.unmultiplied:
            return self.unmultiplied[symbol].E
        return symbol if _is_rigid(symbol) else None

    def _gathered(self, terms: Sequence[Term], c: int) -> Any:
        straight: Any = 0.0
        gains = dict[Symbol, Any]()
        for term in terms:
            assert term.operand is not None
            x = term.number * self.blocks_of(term.operand)[c]
            symbol = term.left[0].symbol
            family = self.unmultiplied.get(symbol)
            if family is None or symbol is not family.K:
                straight = straight + x
            if family is not None:
                gained = x if symbol is family.K else -(self.value[family.H, True][c] @ x)
                gains[family.G] = gains.get(family.G, 0.0) + gained
        for gain, g in gains.items():
            straight = straight + self.value[gain, True][c] @ g
        return straight

    # ------------------------------------------------------------------------------- specials

    def _special(self, statement: Statement, k: int) -> Any:
        mech, body = self.mech, self.mech.bodies[k]
        q_k = self.q[None, mech.q_start[k] : mech.q_start[k + 1]]
        v_k = self.v[None, mech.v_start[k] : mech.v_start[k + 1]]
        away = body.outboard is not Pose.identity()
        match statement.special:
            case "phi(q)" | "Delta_phi(q)":
                return self._pose(k)
            case "H(q)":
                H = first(body.hinge.hinge_map(q_k), 2)
                return H @ body.outboard.shift if away else H
            case "a":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                H_k = first(body.hinge.hinge_map(q_k), 2)
                rate = first(body.hinge.bias(q_k, v_k), 1)
                if away:
                    H_k = H_k @ body.outboard.shift
                    rate = body.outboard.shift.T @ rate
                a_k = cross_velocity(V_k[None], (H_k.T @ v_k[0])[None])[0] + rate
                if mech.parent[k] < 0:
                    up = np.concatenate([np.zeros(3), -self.gravity])[:, None]
                    a_k = a_k + (self._pose(k).T @ up)[:, 0]
                return a_k[:, None]
            case "A_V":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                H_k = first(body.hinge.hinge_map(q_k), 2)
                rate = first(body.hinge.hinge_map_rate(q_k, v_k), 2)
                if away:
                    H_k, rate = H_k @ body.outboard.shift, rate @ body.outboard.shift
                return (cross_velocity(V_k[None], H_k) + rate).T
            case "B_V":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                return first(self._inertia(k).coriolis_factor(V_k[None]), 2)
            case "cross" | "swap" | "H_rate" | "bias_rate_q" | "bias_rate_v":
                x = self.blocks_of(statement.reads[0][0])[k][:, 0]
                return derivative_block(statement, body, q_k, v_k, x)
            case "to_W":
                place = self.blocks_of(statement.reads[0][0])[k].reshape(3, 4)
                return WorldBlock(place[:, :3], place[:, 3])
            case _:
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                momentum = self._inertia(k).apply(V_k[None])
                return cross_force(V_k[None], momentum)[0][:, None]

    def _pose(self, k: int) -> ShiftBlock:
        body, mech = self.mech.bodies[k], self.mech
        q_k = self.q[None, mech.q_start[k] : mech.q_start[k + 1]]
        pose = snapped(body.inboard) @ body.hinge.pose(q_k) @ snapped(body.outboard)
        return ShiftBlock(first(pose.rot, 2), first(pose.p, 1))


def _is_rigid(symbol: Symbol) -> bool:
    """Whether it is the rigid shift E_φ."""
    return isinstance(symbol.role, role.Shift) and symbol.role.source == "phi"


def _is_symmetric(symbol: Symbol) -> bool:
    key = symbol.role
    return symbol.symmetric or (isinstance(key, role.Composite) and is_symmetric(key.definition))


def _is_one(matrix: Any) -> bool:
    """Whether a block is the identity in every state, as that of a hinge nothing passes through."""

    def number(x: Any) -> float | None:
        if not isinstance(x, Scalar):
            return float(x)
        return x.graph.value[x.node] if x.graph.op[x.node] == "const" else None

    return [number(x) for x in matrix.ravel()] == np.eye(*matrix.shape).ravel().tolist()


def _is_turn(symbol: Symbol) -> bool:
    """Whether the blocks are rotations."""
    return isinstance(symbol.role, role.Memoryless) and symbol.role.source == "rot_W"


def first(array: Any, axes: int) -> Any:
    """Without the leading axis that tracing adds; constants may come without it."""
    return array[0] if np.ndim(array) > axes else array


def leading(inertia: SpatialInertia) -> SpatialInertia:
    """With the leading axis that formulas on nodes need."""
    return trusted_inertia(inertia.mass[None], inertia.h[None], inertia.J[None])


def snapped(pose: Pose) -> Pose:
    """With zeros and ones where a rotation is within rounding of them."""
    if pose is Pose.identity():
        return pose
    rot = pose.rot.copy()
    for value in (0.0, 1.0, -1.0):
        rot[np.abs(rot - value) < SNAP] = value
    return trusted_pose(rot, pose.p)


def mirror(matrix: Any) -> None:
    """A symmetric block: the lower triangle is the upper one, the same nodes."""
    n = len(matrix)
    for i in range(n):
        for j in range(i):
            matrix[i, j] = matrix[j, i]
