"""Running a program in NumPy, one statement at a time: the readable reference for all kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import role
from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.family import Family
from linkwise.algebra.space import BODY, CONSTRAINT, NODE, NODE_PLACE, ONE, PLACE, Space
from linkwise.algebra.symbols import M
from linkwise.errors import (
    ExpressionError,
    LoweringError,
    ShapeError,
    SingularHingeError,
    SingularTaskError,
)
from linkwise.model import rows
from linkwise.model.body import Body
from linkwise.model.closure import constraint_sizes
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.rows import has_tasks
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross_force, cross_velocity
from linkwise.sweeps.chosen import bodies, entries
from linkwise.sweeps.closing import Closing, generalised_solve
from linkwise.sweeps.factored import factored
from linkwise.sweeps.program import PLACED, Block, Ident, Program, Quantity, Statement, Term

GIVEN_OR_MADE = ("a", "b", "kappa", "kappa_g", "servo", *PLACED)
"""Vectors that have a statement of their own, unless their values are given."""


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
    if isinstance(mech, Embedded):
        from linkwise.sweeps.aggregate import AggregateRun

        return AggregateRun(program, cast(Any, mech), q, v, nodes, values or {}).result()
    return Run(program, mech, q, v, nodes, values or {}).result()


class Run:
    """The values of one run: for each quantity a list with one array a body (or node)."""

    def __init__(
        self,
        program: Program,
        mech: Mechanism,
        q: Array,
        v: Array | None,
        nodes: Sequence[str],
        values: Mapping[str, Array | Sequence[Array]],
    ) -> None:
        self.program, self.mech = program, mech
        self.q = mech.check_q(q)
        self.v = np.zeros(mech.nv) if v is None else mech.check_v(v)
        self.nodes = [mech.node(name) for name in nodes]
        self.node_body = [mech.body_index[node.body] for node in self.nodes]
        self.given = values
        self.gravity: Array = mech.gravity
        self.picked = picked_columns(program, mech, nodes)
        self.closing = Closing(self)
        self.value: dict[Ident, list[Array]] = {}
        for leaf in program.inputs:
            self._load(leaf)

    def result(self) -> Array:
        """Run all passes, then put the blocks of the result together; several one after another."""
        for step in self.program.passes:
            bodies = range(self.mech.n_bodies)
            order = bodies if step.direction == "base_to_tip" else reversed(bodies)
            whole = [s for s in step.statements if s.whole and not self._known(s)]
            each = [s for s in step.statements if not s.whole and not self._known(s)]
            for statement in each:
                self.value[statement.target.ident] = self._empty(statement.target)
            for statement in whole:  # they need earlier passes only, or each other
                if statement.special == "dense_solve":
                    self._dense_solve(statement)
                else:
                    self.value[statement.target.ident] = self.closing.value(statement)
            for k in order:
                for statement in each:
                    self._execute(statement, k)
        if not self.program.more:
            return self._put_together(self.program.expr, self.program.result)
        wanted = [(self.program.expr, self.program.result), *self.program.more]
        return np.concatenate([self._put_together(*x).ravel() for x in wanted])

    def _put_together(self, expr: Expr, result: Quantity) -> Array:
        """The blocks of a result as one array."""
        chosen, blocks = self.program.chosen, self.blocks_of(result)
        if result.block:
            return self._side_by_side(blocks)
        columns = 1 if result.columns is ONE else self.width(result.columns)
        stacked = np.concatenate([np.zeros((0, columns)), *blocks])
        if self.program.mirrored:  # bodies are stored base first: descendants are to the right
            stacked = np.triu(stacked) + np.triu(stacked, 1).T
        names = [node.name for node in self.nodes]
        if chosen.rows is not None:
            stacked = stacked[entries(chosen.rows, result.rows, self.mech, names)]
        if chosen.columns is not None and self.picked is None:
            stacked = stacked[:, entries(chosen.columns, result.columns, self.mech, names)]
        return stacked[:, 0] if result.columns is ONE else stacked

    def _side_by_side(self, blocks: list[Array]) -> Array:
        """Blocks as one array (bodies, r, c), with zeros where some are smaller."""
        result, rows = self.program.result, self.program.chosen.rows
        shape = tuple(max(self.sizes(x), default=0) for x in (result.rows, result.columns))
        wanted = range(self.mech.n_bodies) if rows is None else bodies(rows, self.mech).tolist()
        out = np.zeros((len(wanted), *shape), dtype=self._kind)
        for i, k in enumerate(wanted):
            block = self._dense(blocks[k])
            out[i, : block.shape[0], : block.shape[1]] = block
        return out

    itemsize = 8
    """Bytes of a number."""

    _kind: Any = np.float64
    """Of arrays of numbers."""

    def _dense(self, block: Any) -> Any:
        """A block as an array."""
        return block

    def _known(self, statement: Statement) -> bool:
        """Whether what it gives was given: a or b of one's own."""
        return statement.special in GIVEN_OR_MADE and statement.special in self.given

    # ----------------------------------------------------------------------------- spaces

    def sizes(self, space: Space) -> list[int]:
        """Length of each block of a space."""
        if space.name == "JOINT":
            return [body.hinge.nv for body in self.mech.bodies]
        if space.block == "node":
            return [12 if space is NODE_PLACE else 6] * len(self.nodes)
        if space is ONE:
            return [1]
        if space.name in ("BODY", "INBOARD"):
            return [6] * self.mech.n_bodies
        if space is PLACE:
            return [12] * self.mech.n_bodies
        if space is CONSTRAINT:
            return constraint_sizes(self.mech)
        raise LoweringError(f"the space {space} has no blocks in a mechanism.")

    def size(self, space: Space) -> int:
        """Length of a vector of a space."""
        return sum(self.sizes(space))

    def width(self, space: Space) -> int:
        """Columns of a quantity that has one for each entry of a space, or for those wanted."""
        if self.picked is not None and space is self.program.result.columns:
            return len(self.picked)
        return self.size(space)

    def _empty(self, quantity: Quantity) -> list[Array]:
        if quantity.rows is ONE:  # summed up over the bodies
            return [np.zeros((1, self.width(quantity.columns)))]
        count = len(self.nodes) if quantity.rows.block == "node" else self.mech.n_bodies
        return [np.zeros(0)] * count

    def blocks_of(self, quantity: Quantity) -> list[Array]:
        """One array for each body (or node, or constraint)."""
        found = self.value.get(quantity.ident)
        if found is None:  # columns of the identity
            sizes = self.sizes(quantity.rows)
            starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
            whole = np.eye(int(starts[-1]))
            if self.picked is not None and quantity.columns is self.program.result.columns:
                whole = whole[:, self.picked]
            found = [whole[starts[i] : starts[i + 1]] for i in range(len(sizes))]
            self.value[quantity.ident] = found
        return found

    # ------------------------------------------------------------------------- statements

    def _execute(self, statement: Statement, k: int) -> None:
        target = statement.target
        if target.rows is ONE:
            self._accumulate(statement, k)
            return
        if target.rows.block == "node":
            for i, body in enumerate(self.node_body):
                if max(body, 0) == k:  # nodes on the ground are done with the first body
                    self.value[target.ident][i] = (
                        self._place(statement, k, node=i)
                        if statement.special
                        else self._sum(statement, k, node=i)
                    )
            return
        if statement.special in PLACED:
            self.value[target.ident][k] = self._place(statement, k)
        elif statement.special:
            self.value[target.ident][k] = self._special(statement, k)
        else:
            self.value[target.ident][k] = self._sum(statement, k)

    def _accumulate(self, statement: Statement, k: int) -> None:
        """A number: Σ_k x*(k) y(k), over nodes where x and y belong to nodes."""
        (total,) = self.value[statement.target.ident]
        for term in statement.terms:
            assert term.operand is not None
            if term.operand.rows.block == "node":
                for i, body in enumerate(self.node_body):
                    if max(body, 0) == k:
                        total += self._product(term, k, k, node=i)
            elif term.operand.rows is CONSTRAINT:
                if k == 0:  # x* y over the constraints, once
                    (x,) = (self.value[block.ident] for block in term.left)
                    for one, other in zip(x, self.blocks_of(term.operand), strict=True):
                        total += term.number * (one.T @ other)
            elif term.operand.rows is not ONE or k == 0:  # a number counts once
                total += self._product(term, k, k, node=None)

    def _sum(self, statement: Statement, k: int, node: int | None = None) -> Array:
        total: Array | None = None
        for term in statement.terms:
            part = self._term(term, k, node)
            if part is not None:
                total = part if total is None else total + part
        if total is not None:
            return total
        return self._zero(statement.target, k, node)

    def _zero(self, target: Quantity, k: int, node: int | None) -> Array:
        rows = 6 if node is not None else self.sizes(target.rows)[k]
        if target.block:
            return np.zeros((rows, self.sizes(target.columns)[k]))
        return np.zeros((rows, self.width(target.columns)))

    def _term(self, term: Term, k: int, node: int | None) -> Array | None:
        if term.place == "c":
            parts = [self._product(term, k, c, node) for c in self.mech.children[k]]
            return sum(parts[1:], parts[0]) if parts else None
        if term.place == "p" or any(block.place == "p" for block in term.left):
            p = int(self.mech.parent[k])
            return None if p < 0 else self._product(term, p, k, node)
        found = self._by_factors(term, k) if len(term.left) == 3 else None
        return self._product(term, k, k, node) if found is None else term.number * found

    def _by_factors(self, term: Term, k: int) -> Any:
        """P H* D⁻¹, and G H P as (H P)* D⁻¹ H P, by the factors of D: see `factored.py`.

        None for other products, and where the hinge has no freedoms.
        """
        family = family_of_part(term.left[0].symbol)
        if family is None or term.operand is not None:
            return None
        again = term.left == (Block(family.G), Block(family.H), Block(family.P))
        if term.left != _gained(family) and not (again and family.G in self.gains):
            return None
        P, H = (self._block(Block(x), k, k, k, None) for x in (family.P, family.H))
        if not len(H):
            return None
        D_inverse: Any = self._block(Block(family.D, inverse=True), k, k, k, None)
        if again:
            return self.gains[family.G] * D_inverse.congruence(H @ P)
        return (P @ H.T) @ D_inverse

    @cached_property
    def gains(self) -> dict[Symbol, float]:
        """The number c of each gain that is G = c P H* D⁻¹."""
        found = dict[Symbol, float]()
        for statement in self.program.statements:
            family = family_of_part(statement.target.key)
            if family is not None and statement.target.key is family.G:
                if [term.left for term in statement.terms] == [_gained(family)]:
                    found[family.G] = statement.terms[0].number
        return found

    def _product(self, term: Term, outer: int, inner: int, node: int | None) -> Array:
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
                left.pop()  # B: forces at the nodes of this body, summed up
                result = self._from_nodes(blocks, there, self.width(term.operand.columns))
        for block in reversed(left):
            matrix = self._block(block, here, inner, outer, node)
            result = matrix if result is None else matrix @ result
        for block in term.right:
            assert result is not None
            result = result @ self._block(block, here, inner, outer, node)
        if result is None:  # a bare number stands for a multiple of the identity
            result = np.eye(self.sizes(term.rows)[here])
        return term.number * self._dense(result)

    def _from_nodes(self, blocks: list[Array], body: int, columns: int) -> Array:
        total = np.zeros((6, columns))
        for node, k, block in zip(self.nodes, self.node_body, blocks, strict=True):
            if k == body:
                total = total + node.pose.shift @ block
        return total

    def _block(self, block: Block, here: int, inner: int, outer: int, node: int | None) -> Array:
        if isinstance(block.symbol.role, role.PickOff):
            assert node is not None
            moving = self.node_body[node] >= 0  # a node on the ground never moves
            matrix = self.nodes[node].pose.shift if moving else np.zeros((6, 6))
        elif block.symbol.range is NODE:
            assert node is not None
            matrix = self.value[block.ident][node]
        elif block.step:
            matrix = self.value[block.symbol, True][inner]  # the edge belongs to the child
        else:
            matrix = self.value[block.ident][outer if block.place == "p" else here]
        matrix = matrix.T if block.adjoint else matrix
        return self._inverted(matrix, block, here) if block.inverse else matrix

    def _inverted(self, matrix: Array, block: Block, k: int) -> Any:
        try:
            if _part(block.symbol) != "D":
                return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
            found = factored(matrix)
            if min(found.pivots, default=1.0) > 0.0:
                return found
        except (np.linalg.LinAlgError, ZeroDivisionError):
            pass
        raise SingularHingeError(
            f"{block.symbol} is singular at body {self.mech.bodies[k].name!r}: nothing resists "
            "its hinge. Give the body, or what it carries, inertia, or the hinge an armature."
        )

    # --------------------------------------------------------------------------- specials

    def _dense_solve(self, statement: Statement) -> None:
        (matrix, _), (right, _) = statement.reads
        A = np.concatenate(self.blocks_of(matrix))
        if statement.target.rows is CONSTRAINT and has_tasks(self.mech):
            self._check_tasks(A)
        elif statement.target.rows is CONSTRAINT:
            x = generalised_solve(A, np.concatenate(self.blocks_of(right)), matrix.key)
            self.value[statement.target.ident] = self.closing.cut(x)
            return
        try:
            x = np.linalg.solve(A, np.concatenate(self.blocks_of(right))).astype(np.float64)
        except np.linalg.LinAlgError:
            raise ExpressionError(
                f"the inverse of {matrix.key} is asked for, which is singular on {self.mech.name} "
                "in this state."
            ) from None
        sizes = self.sizes(statement.target.rows)
        self.value[statement.target.ident] = np.split(x, np.cumsum(sizes)[:-1])

    def _check_tasks(self, A: Array) -> None:
        """Rows of tasks shall not depend on each other, as those of loops may."""
        if not np.isfinite(A).all():
            raise ExpressionError("what tasks make of a force is not finite.")
        least = rows.SINGULAR[8] * (np.diag(A) + rows.row_scales(self.mech))
        try:
            pivots = np.array(factored(A).pivots)
        except ZeroDivisionError:
            pivots = np.zeros(len(A))
        if not (pivots > least).all():
            raise SingularTaskError(
                f"the tasks ask for more than {self.mech.name!r} can do in this state: their rows "
                "follow from each other, or it is singular; lw.tasks.task_space tells what is lost."
            )

    def _special(self, statement: Statement, k: int) -> Array:
        mech, body = self.mech, self.mech.bodies[k]
        q_k = self.q[mech.q_start[k] : mech.q_start[k + 1]]
        v_k = self.v[mech.v_start[k] : mech.v_start[k + 1]]
        match statement.special:
            case "phi(q)" | "Delta_phi(q)":
                return body.pose(q_k).shift
            case "H(q)":
                return body.hinge.hinge_map(q_k) @ body.outboard.shift
            case "a":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                H_k = body.hinge.hinge_map(q_k) @ body.outboard.shift
                rate = body.outboard.shift_velocity(body.hinge.bias(q_k, v_k))
                a_k = cross_velocity(V_k, H_k.T @ v_k) + rate
                if mech.parent[k] < 0:
                    up = np.concatenate([np.zeros(3), -mech.gravity])
                    a_k = a_k + body.pose(q_k).shift_velocity(up)
                return a_k[:, None]
            case "A_V":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                H_k = body.hinge.hinge_map(q_k) @ body.outboard.shift
                rate = body.hinge.hinge_map_rate(q_k, v_k) @ body.outboard.shift
                return (cross_velocity(V_k, H_k) + rate).T
            case "B_V":
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                return mech.inertias[k].coriolis_factor(V_k)
            case "cross" | "swap" | "H_rate" | "bias_rate_q" | "bias_rate_v":
                x = self.blocks_of(statement.reads[0][0])[k][:, 0]
                return derivative_block(statement, body, q_k, v_k, x)
            case "to_W":
                place = self.blocks_of(statement.reads[0][0])[k].reshape(3, 4)
                rot = place[:, :3]
                return blocks(rot, np.zeros((3, 3)), skew(place[:, 3]) @ rot, rot)
            case _:
                V_k = self.blocks_of(statement.reads[0][0])[k][:, 0]
                return cross_force(V_k, mech.inertias[k].apply(V_k))[:, None]

    def _pose(self, k: int) -> Any:
        """X_pk, with its `rot` and `p`."""
        start, stop = self.mech.q_start[k], self.mech.q_start[k + 1]
        return self.mech.bodies[k].pose(self.q[start:stop])

    def _place(self, statement: Statement, k: int, node: int | None = None) -> Array:
        """Poses as columns (12, 1), the rows of (rot | p) one after the other; see PLACED."""
        up = -self.gravity
        match statement.special:
            case "a_g":
                rot = self._pose(k).rot
                lifted = rot.T @ up if self.mech.parent[k] < 0 else np.zeros(3)
                return np.concatenate([np.zeros(3), lifted])[:, None]
            case "weight":
                M_k = self.value[M, True][k]  # [[J, h~], [-h~, m]]
                moment = np.stack([M_k[2, 4], M_k[0, 5], M_k[1, 3], M_k[5, 5]])
                return np.outer(up, moment).reshape(12, 1)
            case "X":
                p, pose = int(self.mech.parent[k]), self._pose(k)
                above = None if p < 0 else self.blocks_of(statement.target)[p].reshape(3, 4)
                return placed(above, pose.rot, pose.p).reshape(12, 1)
            case _:
                assert node is not None
                fixed, on_ground = self.nodes[node].pose, self.node_body[node] < 0
                above = (
                    None if on_ground else self.blocks_of(statement.reads[0][0])[k].reshape(3, 4)
                )
                place = placed(above, fixed.rot, fixed.p)
                if statement.special == "X_B":
                    return place.reshape(12, 1)
                zero = np.zeros((3, 3))
                return np.block([[place[:, :3], zero], [zero, place[:, :3]]])

    # ----------------------------------------------------------------------------- inputs

    def _load(self, leaf: Symbol) -> None:
        key, mech = leaf.role, self.mech
        if isinstance(key, role.Vector):
            if key.source in GIVEN_OR_MADE and key.source not in self.given:
                return  # computed by their statements
            self.value[leaf, False] = self._split(leaf, key.source)
        elif isinstance(key, role.Memoryless) and key.source == "M":
            self.value[leaf, True] = list(mech.inertias.matrix)
        elif isinstance(key, role.Memoryless) and key.source == "N":
            self.value[leaf, True] = [
                np.diag(mech.armature[mech.v_start[k] : mech.v_start[k + 1]])
                for k in range(mech.n_bodies)
            ]
        elif isinstance(key, role.Selection):
            named = set(key.hinges)
            self.value[leaf, True] = [
                float(body.hinge_name in named) * np.eye(body.hinge.nv) for body in mech.bodies
            ]
        elif isinstance(key, role.Gather):
            self.value[leaf, True] = [np.eye(6)] * mech.n_bodies
        elif isinstance(key, role.Shift | role.Memoryless) and key.source not in (
            *("phi", "H", "Delta_phi"),
            *("rot_W", "to_W", "A_V", "B_V"),
        ):
            if key.source not in self.given:
                raise ExpressionError(
                    f"no value was given for {leaf}: values={{'{key.source}': ...}}."
                )
            self.value[leaf, True] = self._given(leaf, self.given[key.source])

    def _given(self, leaf: Symbol, values: Sequence[Array] | Array) -> list[Array]:
        """Blocks of an operator of one's own, with their shapes checked."""
        blocks = [np.asarray(x, dtype=np.float64) for x in values]
        rows, columns = self.sizes(leaf.range), self.sizes(leaf.domain)
        shapes = list(zip(rows, columns, strict=True))
        if [block.shape for block in blocks] != shapes:
            raise ShapeError(
                f"{leaf} has blocks of shapes {[block.shape for block in blocks]}; one for each "
                f"{leaf.range.block} is wanted: {shapes}."
            )
        return blocks

    def _split(self, leaf: Symbol, source: str) -> list[Array]:
        if source in self.given:
            vector = np.asarray(self.given[source], dtype=np.float64)
        elif source == "v":
            vector = self.v
        else:
            raise ExpressionError(f"no value was given for {leaf}: values={{'{source}': ...}}.")
        sizes = self.sizes(leaf.range)
        if vector.shape != (sum(sizes),):
            raise ShapeError(
                f"{leaf} has shape {vector.shape}; a {leaf.range} vector has ({sum(sizes)},) here."
            )
        ends = np.cumsum(sizes)
        return [vector[end - size : end, None] for end, size in zip(ends, sizes, strict=True)]


def picked_columns(
    program: Program, mech: Mechanism, nodes: Sequence[str]
) -> NDArray[np.int64] | None:
    """Columns of the identity that are enough; None where all are needed."""
    columns = program.chosen.columns
    if columns is None or any(s.special == "dense_solve" for s in program.statements):
        return None  # a matrix that is solved needs its own columns
    return entries(columns, program.result.columns, mech, nodes)


def _part(key: Expr) -> str:
    """Which quantity of a Riccati recursion a symbol is, if it is one."""
    found = key.role if isinstance(key, Symbol) else None
    return found.part if isinstance(found, role.Riccati) else ""


def family_of_part(key: Expr) -> Family | None:
    """The Riccati recursion that a symbol is a quantity of."""
    found = key.role if isinstance(key, Symbol) else None
    return Family(*found.family) if isinstance(found, role.Riccati) else None


def _gained(family: Family) -> tuple[Block, ...]:
    """P H* D⁻¹."""
    return Block(family.P), Block(family.H, adjoint=True), Block(family.D, inverse=True)


def placed(above: Array | None, rot: Array, p: Array) -> Array:
    """X_WP X_PB as (rot | p), (3, 4); without the first, X_PB is seen from the world itself."""
    if above is None:
        return np.concatenate([rot, p[:, None]], axis=1)
    turned = above[:, :3] @ rot
    moved = above[:, :3] @ p + above[:, 3]
    return np.concatenate([turned, moved[:, None]], axis=1)


def derivative_block(statement: Statement, body: Body, q_k: Any, v_k: Any, x: Any) -> Any:
    """x×, x×̄, ∂(H* x)/∂q, ∂(H x)/∂q or ∂(Ḣ* v) at a body: numbers, or nodes of a graph."""
    if statement.special in ("cross", "swap"):
        w, u = skew(x[:3]), skew(x[3:])
        zero = np.zeros((3, 3))
        return blocks(-w, -u, -u, zero) if statement.special == "swap" else blocks(w, zero, u, w)
    if statement.special == "H_rate":
        rates = body.hinge.map_derivative(q_k)
        rates = (rates[0] if rates.ndim > 3 else rates) @ body.outboard.shift
        star = statement.target.rows is BODY
        columns = [(rate.T if star else rate) @ x for rate in rates]
        return np.stack(columns, axis=-1) if columns else np.zeros((6 if star else 0, 0))
    rate = body.hinge.bias_derivative(q_k, v_k)[0 if statement.special == "bias_rate_q" else 1]
    return body.outboard.shift.T @ (rate[0] if rate.ndim > 2 else rate)
