"""The interpreter: a program, statement by statement, in the arithmetic it is given.

With numbers (`Numbers`) it is the readable reference for all kernels; with nodes of a scalar graph
(`codegen/scalar/trace.py`) it writes kernels. What a body is, rigid or an aggregate of several, is
up to its `Bodies` (`bodies.py`, `aggregate.py`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.family import Family
from linkwise.algebra.space import CONSTRAINT, ONE, Space
from linkwise.model.closure import Blocked
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import check_rows
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.sweeps.closure_statement import ClosureStatements
from linkwise.sweeps.program import PLACED, Block, Ident, Program, Quantity, Statement, Term
from linkwise.sweeps.result_part import bodies as body_numbers, entries
from linkwise.sweeps.sparse import times
from linkwise.sweeps.structured_block import ArticulatedBlock, dense, mirrored

if TYPE_CHECKING:
    from linkwise.sweeps.aggregate import Aggregates
    from linkwise.sweeps.bodies import Bodies

GIVEN_OR_MADE = ("a", "b", "kappa", "kappa_g", "servo", "task_error", *PLACED)
"""Vectors that have a statement, unless their values are given."""

MADE = ("phi", "H", "Delta_phi", "rot_W", "to_W", "A_V", "B_V")
"""Operators whose blocks come from statements."""


class Arithmetic(Protocol):
    """What the interpreter computes with: numbers, or nodes of a graph.

    Attributes:
        kind: The dtype of arrays.
        itemsize: Bytes of a number.
        structured: Whether blocks keep their structure, which saves operations: φ is a rotation
            and an offset, ψ is never multiplied out, and what meets under one shift is added up
            before it is shifted.
        q: Coordinates (nq,).
        v: Velocities (nv,).
        gravity: Acceleration of free fall (3,).
    """

    kind: Any
    itemsize: int
    structured: bool
    q: Any
    v: Any
    gravity: Any

    @property
    def given(self) -> Container[str]:
        """Names of vectors whose values are given, although they have a statement."""
        ...

    def enter(self, k: int) -> None:
        """The statements of body k follow."""
        ...

    def vector(self, leaf: Symbol, sizes: Sequence[int]) -> list[Any]:
        """The blocks of an input vector, each (size, 1)."""
        ...

    def operator(self, leaf: Symbol, shapes: Sequence[tuple[int, int]]) -> list[Any]:
        """The blocks of an operator that the mechanism does not define."""
        ...

    def input(self, name: str, size: int) -> Any:
        """An input of the servo (size,)."""
        ...

    def pose(self, k: int) -> Pose:
        """X_pk of a body of the mechanism."""
        ...

    def shift(self, pose: Pose) -> Any:
        """φ of a pose."""
        ...

    def to_world(self, place: Any) -> Any:
        """φ⁻* of a pose (rot | p), (3, 4)."""
        ...

    def inertia(self, k: int) -> SpatialInertia:
        """The inertia of a body of the mechanism."""
        ...

    def armature(self, k: int) -> Any:
        """The armature of a hinge (nv_k,)."""
        ...

    def invert(self, matrix: Any, block: Block, k: int) -> Any:
        """The inverse of a block at body k; raises where it is singular."""
        ...

    def solve(self, run: Interpreter, statement: Statement) -> Any:
        """The solution of a statement "dense_solve", all rows."""
        ...

    def blocked(self, i: int, X_ab: Pose, V_ab: Any) -> Blocked:
        """The directions that loop i blocks; arrays with a leading axis unless constant."""
        ...

    def check_loops(self, g: int, margins: Sequence[Any]) -> None:
        """The margins of the loops of aggregate g have to be positive."""
        ...

    def result(self, expr: Expr, value: Any) -> Any:
        """The value of an expression, as it is returned."""
        ...


class Columns:
    """The columns of matrices: one for each entry of a space, or the chosen ones of a result."""

    def __init__(self, program: Program, bodies: Bodies | Aggregates) -> None:
        self.bodies, self.of = bodies, program.result.columns
        names = [node.name for node in bodies.nodes]
        self.picked = picked_columns(program, bodies.mech, names)

    def width(self, space: Space) -> int:
        """Columns of a quantity that has one for each entry of a space."""
        if self.picked is not None and space is self.of:
            return len(self.picked)
        return sum(self.bodies.sizes(space))

    def identity(self, quantity: Quantity) -> list[Any]:
        """The blocks of the identity."""
        sizes = self.bodies.sizes(quantity.rows)
        unit = np.eye(sum(sizes))
        if self.picked is not None and quantity.columns is self.of:
            unit = unit[:, self.picked]
        return np.split(unit, np.cumsum(sizes)[:-1]) if sizes else []


class Interpreter:
    """The values of one run: for each quantity a list with one array a body (or node).

    Attributes:
        program: What runs.
        bodies: What the bodies are.
        arithmetic: What it computes with.
        value: The blocks of each quantity.
    """

    def __init__(
        self,
        program: Program,
        bodies: Bodies | Aggregates,
        arithmetic: Arithmetic,
        columns: Any = None,
    ) -> None:
        self.program, self.bodies, self.arithmetic = program, bodies, arithmetic
        self.mech: Any = bodies.mech
        self.columns = Columns(program, bodies) if columns is None else columns
        self.closure = ClosureStatements(self)
        self.value: dict[Ident, list[Any]] = {}
        is_vector = [isinstance(leaf.role, role.Vector) for leaf in program.inputs]
        leaves = sorted(zip(is_vector, program.inputs, strict=True), key=lambda x: not x[0])
        for _, leaf in leaves:  # vectors first
            self._load(leaf)

    def result(self) -> Any:
        """Run all passes and assemble the result; several results are concatenated."""
        for step in self.program.passes:
            order = range(self.mech.n_bodies)
            todo = [s for s in step.statements if not self._is_given(s)]
            each = [s for s in todo if not s.at_once]
            for statement in each:
                self.value[statement.target.ident] = self.empty(statement.target)
            for statement in (s for s in todo if s.at_once):  # read earlier passes, or each other
                if statement.special == "dense_solve":
                    self._solve(statement)
                else:
                    self.value[statement.target.ident] = self.closure.value(statement)
            for k in order if step.direction == "base_to_tip" else reversed(order):
                for statement in each:
                    self.execute(statement, k)
        if not self.program.more:
            return self._assembled(self.program.expr, self.program.result)
        results = [(self.program.expr, self.program.result), *self.program.more]
        return np.concatenate([self._assembled(*x).ravel() for x in results])

    def _assembled(self, expr: Expr, result: Quantity) -> Any:
        chosen, blocks = self.program.chosen, self.blocks_of(result)
        if result.block:
            return self.arithmetic.result(expr, self._block_result(blocks))
        columns = 1 if result.columns is ONE else self.columns.width(result.columns)
        stacked = np.concatenate([np.zeros((0, columns)), *blocks])
        if self.program.mirrored:  # bodies are stored base first: descendants are to the right
            stacked = np.triu(stacked) + np.triu(stacked, 1).T
        names = [node.name for node in self.bodies.nodes]
        if chosen.rows is not None:
            stacked = stacked[entries(chosen.rows, result.rows, self.mech, names)]
        if chosen.columns is not None and self.columns.picked is None:
            stacked = stacked[:, entries(chosen.columns, result.columns, self.mech, names)]
        return self.arithmetic.result(expr, stacked[:, 0] if result.columns is ONE else stacked)

    def _block_result(self, blocks: list[Any]) -> Any:
        """Blocks as one array (bodies, r, c), with zeros where some are smaller."""
        result, rows = self.program.result, self.program.chosen.rows
        shape = tuple(max(self.bodies.sizes(x), default=0) for x in (result.rows, result.columns))
        chosen = body_numbers(range(self.mech.n_bodies) if rows is None else rows, self.mech)
        out = np.zeros((len(chosen), *shape), dtype=self.arithmetic.kind)
        for i, k in enumerate(chosen.tolist()):
            block = dense(blocks[k])
            out[i, : block.shape[0], : block.shape[1]] = block
        return out

    def _is_given(self, statement: Statement) -> bool:
        return statement.special in GIVEN_OR_MADE and statement.special in self.arithmetic.given

    def _load(self, leaf: Symbol) -> None:
        source = getattr(leaf.role, "source", "")
        if isinstance(leaf.role, role.Vector):
            if source in GIVEN_OR_MADE and source not in self.arithmetic.given:
                return  # computed by their statements
            blocks = self.bodies.vector(self, source)
            if leaf.range is CONSTRAINT:
                check_rows(self.mech, leaf)
            if blocks is None:
                blocks = self.arithmetic.vector(leaf, self.bodies.sizes(leaf.range))
            self.value[leaf, False] = blocks
            return
        blocks = self.bodies.operator(self, leaf)
        if blocks is not None:
            self.value[leaf, True] = blocks
        elif isinstance(leaf.role, role.Shift | role.Memoryless) and source not in MADE:
            sizes = (self.bodies.sizes(leaf.range), self.bodies.sizes(leaf.domain))
            shapes = list(zip(*sizes, strict=True))
            self.value[leaf, True] = self.arithmetic.operator(leaf, shapes)

    def empty(self, quantity: Quantity) -> list[Any]:
        """Room for the blocks of a quantity."""
        if quantity.rows.block == "one":  # summed over the bodies
            shape = (sum(self.bodies.sizes(quantity.rows)), self.columns.width(quantity.columns))
            return [np.zeros(shape).astype(self.arithmetic.kind)]
        on_nodes = quantity.rows.block == "node"
        count = len(self.bodies.nodes) if on_nodes else self.mech.n_bodies
        return [np.zeros(0)] * count

    def blocks_of(self, quantity: Quantity) -> list[Any]:
        """One array for each body (or node, or constraint)."""
        if quantity.ident not in self.value:
            self.value[quantity.ident] = self.columns.identity(quantity)
        return self.value[quantity.ident]

    # ------------------------------------------------------------------------- statements

    def execute(self, statement: Statement, k: int) -> None:
        """Run a statement at body k."""
        target = statement.target
        self.arithmetic.enter(k)
        if target.block and target.key in self.unmultiplied:
            return
        if target.rows.block == "one":
            self._accumulate(statement, k)
        elif target.rows.block == "node":
            for i in self.bodies.nodes_of(k):
                self.value[target.ident][i] = self.evaluated(statement, k, i)
        else:
            self.value[target.ident][k] = self.evaluated(statement, k)

    def evaluated(self, statement: Statement, k: int, node: int | None = None) -> Any:
        """What a statement gives at body k, or at a node on it."""
        if statement.special in PLACED or (statement.special and node is not None):
            return self.bodies.place(self, statement, k, node)
        if statement.special:
            return self.bodies.special(self, statement, k)
        if not self.arithmetic.structured:
            return self.total(statement, k, node)
        value = self.bodies.filtered_inertia(self, statement, k)
        if value is not None:
            return value
        value, key = self.total(statement, k, node), statement.target.key
        if statement.target.block and isinstance(key, Symbol) and key.symmetric:
            mirrored(value)
        return value

    def _accumulate(self, statement: Statement, k: int) -> None:
        """A number: Σ_k x*(k) y(k), over nodes where x and y belong to nodes."""
        (total,) = self.value[statement.target.ident]
        for term in statement.terms:
            assert term.operand is not None
            if term.operand.rows.block == "node":
                for i in self.bodies.nodes_of(k):
                    total += self.product(term, k, k, node=i)
            elif term.operand.rows.block == "constraint":
                if k == 0:  # x* y over the constraints, once
                    (x,) = (self.value[block.ident] for block in term.left)
                    for one, other in zip(x, self.blocks_of(term.operand), strict=True):
                        total += term.number * (one.T @ other)
            elif term.operand.rows.block != "one" or k == 0:  # a number counts once
                total += self.product(term, k, k, node=None)

    def total(self, statement: Statement, k: int, node: int | None = None) -> Any:
        """Σ terms at body k; what comes from a child under one shift is added up first."""
        plain, shifted = list[Term](), dict[Symbol, list[Term]]()
        for term in statement.terms:
            shift = self._shift_of(term)
            if shift is None or not self.mech.children[k]:
                plain.append(term)
            else:
                shifted.setdefault(shift, []).append(term)
        total: Any = None
        for term in plain:
            part = self._term(term, k, node)
            if part is not None:
                total = part if total is None else total + part
        if total is None:
            total = self._zero(statement.target, k) if plain or not shifted else 0.0
        for shift, terms in shifted.items():
            for c in self.mech.children[k]:
                total = total + self.value[shift, True][c] @ self._gathered(terms, c)
        return total

    def _zero(self, target: Quantity, k: int) -> Array:
        on_node = target.rows.block == "node"
        rows = self.bodies.sizes(target.rows)[0 if on_node else k]
        if target.block:
            return np.zeros((rows, self.bodies.sizes(target.columns)[k]))
        return np.zeros((rows, self.columns.width(target.columns)))

    def _term(self, term: Term, k: int, node: int | None) -> Any:
        if term.place == "c":
            parts = [self.product(term, k, c, node) for c in self.mech.children[k]]
            return sum(parts[1:], parts[0]) if parts else None
        if term.place == "p" or any(block.place == "p" for block in term.left):
            p = int(self.mech.parent[k])
            return None if p < 0 else self.product(term, p, k, node)
        factors = self._by_factors(term, k) if len(term.left) == 3 else None
        return self.product(term, k, k, node) if factors is None else term.number * factors

    def product(self, term: Term, outer: int, inner: int, node: int | None) -> Any:
        """number · left · operand · right, for the edge (outer, inner) where there is one."""
        # Place c: this body is `outer`, the child `inner`; place p: the parent is `outer`.
        here = outer if term.place == "c" else inner
        there = {"k": inner, "c": inner, "p": outer, "all": 0}[term.place]
        left, result = list(term.left), None
        if term.operand is not None:
            blocks = self.blocks_of(term.operand)
            if term.operand.rows.block != "node":
                result = blocks[there]  # the only block of a number
            elif node is not None:
                result = blocks[node]
            else:
                leaf = left.pop().symbol  # B: forces at the nodes of this body, summed
                columns = self.columns.width(term.operand.columns)
                result = self._from_nodes(leaf, blocks, there, columns)
        factors = [self.block(block, here, inner, outer, node) for block in left]
        if result is not None and self._rows_first(factors, result):
            while len(factors) > 1:  # H A, which multiplies all columns
                factors[:2] = [times(factors[0], factors[1])]
        for matrix in reversed(factors):
            result = matrix if result is None else times(matrix, result)
        for block in term.right:
            assert result is not None
            result = times(result, self.block(block, here, inner, outer, node))
        if result is None:  # a bare number is a multiple of the identity
            result = np.eye(self.bodies.sizes(term.rows)[here])
        return dense(result) if term.number == 1.0 else term.number * dense(result)

    def _rows_first(self, factors: Sequence[Any], right: Any) -> bool:
        """Whether factors are multiplied with each other before a matrix of many columns."""
        if not self.arithmetic.structured or not all(isinstance(x, np.ndarray) for x in factors):
            return False
        return len(factors) > 1 and len(factors[0]) < min(len(right), right.shape[1])

    def _from_nodes(self, leaf: Symbol, blocks: list[Any], body: int, columns: int) -> Any:
        total = np.zeros((self.bodies.sizes(leaf.range)[body], columns))
        for i, (k, block) in enumerate(zip(self.bodies.node_body, blocks, strict=True)):
            if k == body:
                total = total + self.bodies.pick_off(i, leaf.domain) @ block
        return total

    def block(
        self, block: Block, here: int, inner: int, outer: int, node: int | None = None
    ) -> Any:
        """The block of an operator in a term."""
        if block.symbol in self.unmultiplied:
            family = self.unmultiplied[block.symbol]
            shift, G = (self.value[x, True][inner] for x in (family.E, family.G))
            H = self.value[family.H, True][inner] if block.symbol is family.E_psi else None
            articulated = ArticulatedBlock(shift, G, H)
            return articulated.T if block.adjoint else articulated
        if isinstance(block.symbol.role, role.PickOff):
            assert node is not None
            matrix = self.bodies.pick_off(node, block.symbol.domain)
        elif block.symbol.range.block == "node":
            assert node is not None
            matrix = self.value[block.ident][node]
        elif block.step:
            matrix = self.value[block.symbol, True][inner]  # the edge belongs to the child
        else:
            matrix = self.value[block.ident][outer if block.place == "p" else here]
        matrix = matrix.T if block.adjoint else matrix
        return self.arithmetic.invert(matrix, block, here) if block.inverse else matrix

    def _solve(self, statement: Statement) -> None:
        sizes = self.bodies.sizes(statement.target.rows)
        self.value[statement.target.ident] = []
        if sizes:
            x = self.arithmetic.solve(self, statement)
            self.value[statement.target.ident] = np.split(x, np.cumsum(sizes)[:-1])

    # ------------------------------------------------------------------ articulated bodies

    def _by_factors(self, term: Term, k: int) -> Any:
        """P H* D⁻¹, and G H P as (H P)* D⁻¹ H P, by the factors of D: see `factored.py`.

        None for other products, and where the hinge is locked.
        """
        family = family_of_part(term.left[0].symbol)
        if family is None or term.operand is not None:
            return None
        again = term.left == (Block(family.G), Block(family.H), Block(family.P))
        if term.left != _gained(family) and not (again and family.G in self.gains):
            return None
        P, H = (self.block(Block(x), k, k, k) for x in (family.P, family.H))
        if not len(H):
            return None
        D_inverse: Any = self.block(Block(family.D, inverse=True), k, k, k)
        if again:
            return self.gains[family.G] * D_inverse.congruence(H @ P)
        return (P @ H.T) @ D_inverse

    @cached_property
    def gains(self) -> dict[Symbol, float]:
        """The number c of each gain that is G = c P H* D⁻¹."""
        gains = dict[Symbol, float]()
        for statement in self.program.statements:
            family = family_of_part(statement.target.key)
            if family is not None and statement.target.key is family.G:
                if [term.left for term in statement.terms] == [_gained(family)]:
                    gains[family.G] = statement.terms[0].number
        return gains

    @cached_property
    def unmultiplied(self) -> dict[Symbol, Family]:
        """ψ = E (I - G H) and K = E G that are applied factor by factor: see `ArticulatedBlock`.

        Those whose statements are just that, with the rigid shift, which keeps its structure.
        """
        symbols = dict[Symbol, Family]()
        if not self.arithmetic.structured:
            return symbols
        terms = {s.target.key: s.terms for s in self.program.statements if s.target.block}
        for key in terms:
            family = family_of_part(key)
            if family is None or not _is_rigid(family.E):
                continue
            edge = Block(family.E, step=True, place="p")
            if key is family.K and terms[key] == (Term(1.0, (edge, Block(family.G))),):
                symbols[family.K] = family
            left = (Term(1.0), Term(-1.0, (Block(family.G), Block(family.H))))
            if key is family.E_psi and terms.get(family.Pi_bar) == left:
                if terms[key] == (Term(1.0, (edge, Block(family.Pi_bar))),):
                    symbols[family.E_psi] = family
        return symbols

    def _shift_of(self, term: Term) -> Symbol | None:
        """The rigid shift under which a term arrives from the children."""
        if term.place != "c" or len(term.left) != 1 or term.right or term.operand is None:
            return None
        if term.left[0].adjoint or not self.arithmetic.structured:
            return None
        symbol = term.left[0].symbol
        if symbol in self.unmultiplied:
            return self.unmultiplied[symbol].E
        return symbol if _is_rigid(symbol) else None

    def _gathered(self, terms: Sequence[Term], c: int) -> Any:
        """What arrives from child c under one shift: s + G g."""
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


def picked_columns(
    program: Program, mech: Mechanism | Embedded, nodes: Sequence[str]
) -> NDArray[np.int64] | None:
    """Columns of the identity that are enough; None where all are needed."""
    columns: Any = program.chosen.columns
    if columns is None or any(s.special == "dense_solve" for s in program.statements):
        return None  # a matrix that is solved needs all its columns
    assert isinstance(mech, Mechanism)
    return entries(columns, program.result.columns, mech, nodes)


def family_of_part(key: Expr) -> Family | None:
    """The Riccati recursion that a symbol is a quantity of."""
    part = key.role if isinstance(key, Symbol) else None
    return Family(*part.family) if isinstance(part, role.Riccati) else None


def _gained(family: Family) -> tuple[Block, ...]:
    """P H* D⁻¹."""
    return Block(family.P), Block(family.H, adjoint=True), Block(family.D, inverse=True)


def _is_rigid(symbol: Symbol) -> bool:
    return isinstance(symbol.role, role.Shift) and symbol.role.source == "phi"


def interpreted(
    program: Program,
    mech: Mechanism | Embedded,
    q: Array,
    v: Array | None = None,
    *,
    nodes: Sequence[str] = (),
    values: Mapping[str, Array | Sequence[Array]] | None = None,
) -> Interpreter:
    """The interpreter of a program on numbers; `result` runs it."""
    from linkwise.sweeps.bodies import bodies_of
    from linkwise.sweeps.numbers import Numbers

    shape = bodies_of(mech, nodes)
    return Interpreter(program, shape, Numbers(mech, q, v, values or {}))


def run(
    program: Program,
    mech: Mechanism | Embedded,
    q: Array,
    v: Array | None = None,
    *,
    nodes: Sequence[str] = (),
    values: Mapping[str, Array | Sequence[Array]] | None = None,
) -> Array:
    """The value of a program: (n,) for a vector, (n, m) for an operator.

    Args:
        program: What to run.
        mech: The mechanism.
        q: Its coordinates (nq,).
        v: Velocities (nv,), zero by default.
        nodes: Names of the nodes of the space NODE, in order.
        values: Vectors (n,) and lists of blocks by the names of their symbols.
    """
    return interpreted(program, mech, q, v, nodes=nodes, values=values).result()
