"""A scan plan in NumPy: a quantity is one array with a row for each body, (n, r, c).

Blocks of hinges with fewer degrees of freedom than others, and of bodies with fewer parts
(`slot.py`), are filled with zeros, and the empty part of D with ones. Trees run path by path
(`path.py`): what other children hand to a path is known before its scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import JOINT, ONE, Space
from linkwise.errors import LoweringError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.sweeps.bodies import bodies_of
from linkwise.sweeps.interpret import GIVEN_OR_MADE, Interpreter, family_of_part
from linkwise.sweeps.numbers import Numbers
from linkwise.sweeps.program import Block, Ident, Program, Quantity, Statement, Term
from linkwise.sweeps.scan import element
from linkwise.sweeps.scan.element import cholesky, prefixes, solve, star
from linkwise.sweeps.scan.path import Indices, heavy_paths
from linkwise.sweeps.scan.plan import Group, is_own, scan_plan
from linkwise.sweeps.scan.riccati import scanned_riccati
from linkwise.sweeps.scan.slot import slots_of
from linkwise.sweeps.structured_block import dense


class Stacked:
    """The values of one run, all bodies at once.

    Attributes:
        mech: The mechanism.
        program: What runs.
        value: For each quantity an array (bodies or nodes, r, c).
    """

    def __init__(
        self,
        program: Program,
        mech: Mechanism,
        q: Array,
        v: Array | None,
        nodes: Sequence[str],
        values: Mapping[str, Any],
    ) -> None:
        self.mech, self.program, self.plan = mech, program, scan_plan(program)
        bodies = bodies_of(mech, nodes)
        # One body at a time, for what has no form for all of them.
        self.single = Interpreter(replace(program, inputs=()), bodies, Numbers(mech, q, v, values))
        self.bodies, self.numbers = bodies, self.single.arithmetic
        self.n, self.parent = mech.n_bodies, np.asarray(mech.parent)
        self.paths, self.everybody = heavy_paths(mech), np.arange(self.n)
        self.slots = slots_of(mech)
        self._filled: dict[Space, Array | None] = {}
        self.value: dict[Ident, Array] = {}
        for leaf in program.inputs:
            self._load(leaf)

    def result(self) -> Array:
        """Run all levels; what the reference interpreter returns."""
        for group in self.plan.groups:
            if all(self._is_given(s) for s in group.statements):
                continue
            match group.kind:
                case "map":
                    self.set(group.statements[0], self.everybody)
                case "at once":
                    self._solve(group.statements[0])
                case "affine":
                    self._affine(group)
                case "Lyapunov":
                    self._lyapunov(group)
                case "poses":
                    self._poses(group.statements[0])
                case "Riccati":
                    scanned_riccati(self, group)
                case _:
                    self._sweep(group)
        results = [self.program.result, *(quantity for _, quantity in self.program.more)]
        for quantity in results:
            if quantity.ident in self.value:
                self.single.value[quantity.ident] = self.blocks(quantity)
        return replace_passes(self.single).result()

    # ----------------------------------------------------------------------------- values

    def _is_given(self, statement: Statement) -> bool:
        return statement.special in GIVEN_OR_MADE and statement.special in self.numbers.given

    def _load(self, leaf: Symbol) -> None:
        source = getattr(leaf.role, "source", "")
        ident = (leaf, not isinstance(leaf.role, role.Vector))
        if isinstance(leaf.role, role.Memoryless) and source == "M" and len(self.slots) == 1:
            self.value[ident] = np.asarray(self.mech.inertias.matrix)
            return
        self.single._load(leaf)  # pyright: ignore[reportPrivateUsage]
        if ident in self.single.value:
            rows, columns = leaf.range, leaf.domain if ident[1] else ONE
            self.value[ident] = self._stack(self.single.value[ident], rows, columns, ident[1])

    def _shape(self, rows: Space, columns: Space, block: bool) -> tuple[int, int]:
        height = max(self.bodies.sizes(rows), default=0)
        if not block:
            return height, 1 if columns is ONE else self.single.columns.width(columns)
        return height, max(self.bodies.sizes(columns), default=0)

    def _stack(self, blocks: Sequence[Any], rows: Space, columns: Space, block: bool) -> Array:
        out = np.zeros((len(blocks), *self._shape(rows, columns, block)))
        for into, x in zip(out, map(dense, blocks), strict=True):
            into[: x.shape[0], : x.shape[1]] = x
        return out

    def blocks(self, quantity: Quantity) -> list[Array]:
        """One array for each body, without what fills it up."""
        array = self.of(quantity)
        if quantity.rows.block in ("one", "node"):
            return list(array)
        heights = self.bodies.sizes(quantity.rows)
        widths = self.bodies.sizes(quantity.columns) if quantity.block else [None] * len(heights)
        return [x[:r, :c] for x, r, c in zip(array, heights, widths, strict=True)]

    def of(self, quantity: Quantity) -> Array:
        """The array of a quantity."""
        if quantity.ident not in self.value:
            unit = self.single.columns.identity(quantity)
            self.value[quantity.ident] = self._stack(unit, quantity.rows, quantity.columns, False)
        return self.value[quantity.ident]

    def room(self, quantity: Quantity) -> Array:
        """Where the blocks of a quantity go."""
        if quantity.ident not in self.value:
            count = {"one": 1, "node": len(self.bodies.nodes)}.get(quantity.rows.block, self.n)
            shape = self._shape(quantity.rows, quantity.columns, quantity.block)
            self.value[quantity.ident] = np.zeros((count, *shape))
        return self.value[quantity.ident]

    # --------------------------------------------------------------------- statements at once

    def set(self, statement: Statement, ks: Indices) -> None:
        """Run a statement at bodies `ks`, which do not depend on each other in it."""
        target = statement.target
        room = self.room(target)
        if target.rows.block == "one":
            room[0] = sum(self._total_of(term) for term in statement.terms)
        elif target.rows.block == "node":
            for k in sorted({max(k, 0) for k in self.bodies.node_body}):
                self._one_by_one(statement, np.array([k]))
        elif statement.special:
            self._special(statement, ks)
        else:
            room[ks] = self.total(statement, statement.terms, ks)

    def total(self, statement: Statement, terms: Sequence[Term], ks: Indices) -> Array:
        """Σ terms at bodies `ks`."""
        target = statement.target
        family = family_of_part(target.key) if target.block else None
        if family is not None and target.key in (family.G, family.P_plus):
            gain = self._filtered(statement, family, ks)
            if gain is not None:
                return gain
        shape = self._shape(target.rows, target.columns, target.block)
        total = np.zeros((len(ks), *shape))
        for term in terms:
            if term.place == "c":
                self.add_children(total, term, ks, self.everybody)
            elif term.place == "p" or any(block.place == "p" for block in term.left):
                inner = np.flatnonzero(self.parent[ks] >= 0)
                if len(inner):
                    at = ks[inner]
                    total[inner] += self.product(term, self.parent[at], at, shape)
            else:
                total += self.product(term, ks, ks, shape)
        return self._masked(total, target, ks)

    def add_children(self, total: Array, term: Term, ks: Indices, among: Indices) -> None:
        """Add a term over the children of `ks` that are among others."""
        row = np.full(self.n + 1, -1)
        row[ks] = np.arange(len(ks))
        inner = among[row[self.parent[among]] >= 0]
        if len(inner):
            outer = self.parent[inner]
            np.add.at(total, row[outer], self.product(term, outer, inner, total.shape[1:]))

    def product(self, term: Term, outer: Indices, inner: Indices, shape: tuple[int, ...]) -> Array:
        """number · left · operand · right for edges (outer, inner): see `Interpreter.product`."""
        here = outer if term.place == "c" else inner
        left, result = list(term.left), None
        if term.operand is not None:
            array = self.of(term.operand)
            if term.operand.rows.block == "node":
                left.pop()
                result = self._from_nodes(array, inner)
            elif term.place == "all" or term.operand.rows.block == "one":
                result = np.broadcast_to(array[0], (len(inner), *array.shape[1:]))
            else:
                result = array[outer if term.place == "p" else inner]
        for block in reversed(left):
            result = self.times(block, here, inner, outer, result)
        for block in term.right:
            matrix = self.times(block, here, inner, outer, None)
            result = matrix if result is None else result @ matrix
        if result is None:
            result = np.broadcast_to(np.eye(shape[0]), (len(inner), shape[0], shape[0]))
        return term.number * result

    def times(
        self, block: Block, here: Indices, inner: Indices, outer: Indices, right: Array | None
    ) -> Array:
        """A block times something, or by itself."""
        at = inner if block.step else (outer if block.place == "p" else here)
        matrix = self.value[block.ident][at]
        matrix = star(matrix) if block.adjoint else matrix
        if not block.inverse:
            return matrix if right is None else matrix @ right
        matrix = matrix + self.filler(block.symbol.range, at)
        if isinstance(block.symbol.role, role.Riccati) and block.symbol.role.part == "D":
            lower = self.factor(matrix, block, at)
            right = (
                np.broadcast_to(np.eye(matrix.shape[-1]), matrix.shape) if right is None else right
            )
            return solve(star(lower), solve(lower, right))
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        return inverse if right is None else inverse @ right

    def factor(self, D: Array, block: Block, ks: Indices) -> Array:
        """L with L L* = D; raises where a hinge has nothing that resists it."""
        try:
            return cholesky(D)
        except np.linalg.LinAlgError:
            for k, matrix in zip(ks.tolist(), D, strict=True):
                nv = int(self.mech.v_start[k + 1] - self.mech.v_start[k])
                self.numbers.invert(matrix[:nv, :nv], block, k)  # names the body
            raise

    def _filtered(self, statement: Statement, family: Any, ks: Indices) -> Array | None:
        """G = P H* D⁻¹ and P⁺ = P - (H P)* D⁻¹ H P, by the factors of D: see `factored.py`."""
        if statement.target.key is family.G and len(statement.terms) != 1:
            return None
        P, H, D = (self.value[x, True][ks] for x in (family.P, family.H, family.D))
        lower = self.factor(D + self.filler(JOINT, ks), Block(family.D, inverse=True), ks)
        Y = solve(lower, H @ P)
        if statement.target.key is family.G:
            return star(solve(star(lower), Y))
        return P - star(Y) @ Y

    def present(self, space: Space) -> Array | None:
        """Ones where the block of each body has entries (n, size), else zeros; None if all have."""
        if space not in self._filled:
            sizes = self.bodies.sizes(space)
            alike = space.block in ("one", "node") or len({*sizes}) < 2
            there = np.arange(max(sizes, default=0)) < np.array(sizes)[:, None]
            self._filled[space] = None if alike else there.astype(np.float64)
        return self._filled[space]

    def filler(self, space: Space, ks: Indices) -> Array | float:
        """Ones on the diagonal where bodies `ks` have no entries and others do."""
        present = self.present(space)
        if present is None:
            return 0.0
        return np.eye(present.shape[1]) * (1.0 - present[ks])[:, None, :]

    def _masked(self, total: Array, target: Quantity, ks: Indices) -> Array:
        rows = self.present(target.rows)
        columns = self.present(target.columns) if target.block else None
        if rows is not None:
            total *= rows[ks][:, :, None]
        if columns is not None:
            total *= columns[ks][:, None, :]
        return total

    def _total_of(self, term: Term) -> Array:
        """Σ_k x*(k) y(k), over nodes where x and y belong to nodes."""
        assert term.operand is not None
        array = self.of(term.operand)
        for block in reversed(term.left):
            matrix = self.value[block.ident]
            array = (star(matrix) if block.adjoint else matrix) @ array
        return term.number * array.sum(axis=0)

    def _from_nodes(self, array: Array, ks: Indices) -> Array:
        """B x: forces at the nodes of each body, summed."""
        total = np.zeros((self.n, 6 * len(self.slots), array.shape[-1]))
        for i, k in enumerate(self.bodies.node_body):
            if k >= 0:
                force = self.bodies.pick_off(i) @ array[i]
                total[k, : len(force)] += force
        return total[ks]

    # ------------------------------------------------------------------------ special rules

    @cached_property
    def poses(self) -> tuple[Pose, ...]:
        """X_pk of the parts of each slot."""
        return tuple(slot.poses(self.numbers.q) for slot in self.slots)

    def _special(self, statement: Statement, ks: Indices) -> None:
        room, reads = self.value[statement.target.ident], statement.reads
        numbers = self.numbers
        match statement.special:
            case "phi(q)":
                for slot, pose in zip(self.slots, self.poses, strict=True):
                    room[slot.bodies, :6, slot.rows] = pose.shift
            case "H(q)":
                for slot in self.slots:
                    slot.add_maps(room, numbers.q)
            case "a":
                V = self.of(reads[0][0])[:, :, 0]
                for slot, pose in zip(self.slots, self.poses, strict=True):
                    slot.add_bias_accelerations(room, V, numbers.q, numbers.v)
                    on_ground = self.parent[slot.bodies] < 0
                    up = np.concatenate([np.zeros(3), -np.asarray(numbers.gravity)])
                    lifted = pose.shift_velocity(up)[on_ground]
                    room[slot.bodies[on_ground], slot.rows, 0] += lifted
            case "b":
                V = self.of(reads[0][0])[:, :, 0]
                for slot in self.slots:
                    slot.add_gyroscopic_forces(room, V)
            case _:
                self._one_by_one(statement, ks)

    def _one_by_one(self, statement: Statement, ks: Indices) -> None:
        """A special rule that has no form for all bodies at once."""
        for ident, _ in statement.needs():
            key, block = ident
            if ident in self.value:
                columns = key.domain if block else ONE
                quantity = Quantity("", key.range, columns, key, block=block)
                self.single.value[ident] = self.blocks(quantity)
        for leaf in self.program.inputs:
            if (leaf, True) in self.value and (leaf, True) not in self.single.value:
                self.single.value[leaf, True] = list(self.value[leaf, True])
        target = statement.target
        self.single.value[target.ident] = self.blocks(target)
        for k in ks.tolist():
            self.single.execute(statement, k)
        made = self.single.value[target.ident]
        filled = self._stack(made, target.rows, target.columns, target.block)
        self.value[target.ident][...] = filled

    def _solve(self, statement: Statement) -> None:
        for quantity, _ in statement.reads:
            self.single.value[quantity.ident] = self.blocks(quantity)
        x = self.numbers.solve(self.single, statement)
        self.room(statement.target)[...] = x.reshape(self.room(statement.target).shape)

    # -------------------------------------------------------------------------------- scans

    def levels(self, group: Group) -> list[Indices]:
        """The bodies of each level of paths in the order of a recursion."""
        if group.direction == "base_to_tip":
            return list(self.paths.levels)
        return [level[::-1] for level in reversed(self.paths.levels)]

    def ends(self, group: Group, ks: Indices) -> Array:
        """Where a path of a level begins, in the order of a recursion: zero there, else one."""
        outward = group.direction == "base_to_tip"
        first = self.paths.top[ks] == ks if outward else self.paths.heavy[ks] < 0
        return (~first).astype(float)[:, None, None]

    def edges(self, group: Group, ks: Indices) -> tuple[Indices, Indices]:
        """The edge that comes in along the path at each body; any edge where the path begins."""
        if group.direction == "base_to_tip":
            return self.parent[ks], ks
        return ks, np.where(self.paths.heavy[ks] < 0, ks, self.paths.heavy[ks])

    def rest(self, group: Group, ks: Indices) -> Array:
        """What does not come in along the path: other terms, and those of other children."""
        carried = group.statements[0]
        incoming = [t for t in carried.terms if is_own(t, carried)]
        others = [t for t in carried.terms if not is_own(t, carried)]
        total = self.total(carried, others, ks)
        light = self.everybody[self.paths.top == self.everybody]  # bodies that begin a path
        for term in incoming:
            if group.direction == "tip_to_base":
                self.add_children(total, term, ks, light)
                continue
            first = np.flatnonzero((self.paths.top[ks] == ks) & (self.parent[ks] >= 0))
            at = ks[first]
            total[first] += self.product(term, self.parent[at], at, total.shape[1:])
        return total

    def _affine(self, group: Group) -> None:
        carried = group.statements[0]
        room = self.room(carried.target)
        for ks in self.levels(group):
            outer, inner = self.edges(group, ks)
            size = room.shape[1]
            terms = [t for t in carried.terms if is_own(t, carried)]
            A = sum(
                self.product(replace(t, operand=None), outer, inner, (size, size)) for t in terms
            )
            room[ks] = prefixes((A * self.ends(group, ks), self.rest(group, ks)), element.affine)[1]
        for statement in group.statements[1:]:
            self.set(statement, self.everybody)

    def _lyapunov(self, group: Group) -> None:
        carried = group.statements[0]
        room = self.room(carried.target)
        terms = [t for t in carried.terms if is_own(t, carried)]
        if len(terms) != 1:
            return self._sweep(group)
        left, right = (replace(terms[0], operand=None, right=()), terms[0].right)
        for ks in self.levels(group):
            outer, inner = self.edges(group, ks)
            A = self.product(left, outer, inner, room.shape[1:2] * 2)
            only = replace(left, number=1.0, left=right)
            B = self.product(only, outer, inner, room.shape[2:] * 2)
            keep = self.ends(group, ks)
            elements = (A * keep, B * keep, self.rest(group, ks))
            room[ks] = prefixes(elements, element.congruence)[2]
        for statement in group.statements[1:]:
            self.set(statement, self.everybody)
        return None

    def _poses(self, statement: Statement) -> None:
        room, (poses, *others) = self.room(statement.target), self.poses
        frames = np.zeros((self.n, 3, 4))
        group = Group("poses", (statement,))
        for ks in self.levels(group):
            rot, p, above = poses.rot[ks], poses.p[ks][..., None], self.parent[ks]
            for i in np.flatnonzero((self.paths.top[ks] == ks) & (above >= 0)):
                up = frames[above[i]]
                rot[i], p[i] = up[:, :3] @ rot[i], up[:, :3] @ p[i] + up[:, 3:]
            parts = prefixes((rot, p, self.ends(group, ks)), element.pose)
            frames[ks] = np.concatenate(parts[:2], axis=-1)
        room[:, :12, 0] = frames.reshape(self.n, 12)
        ground = np.concatenate([frames, np.eye(3, 4)[None]])  # the parent -1
        for slot, pose in zip(self.slots[1:], others, strict=True):  # lumps hang on the parent
            up = ground[self.parent[slot.bodies]]
            there = trusted_pose(up[:, :, :3], up[:, :, 3]) @ pose
            place = np.concatenate([there.rot, there.p[..., None]], axis=-1).reshape(-1, 12)
            room[slot.bodies, 12 * slot.number : 12 * slot.number + 12, 0] = place

    def _sweep(self, group: Group) -> None:
        """Depth by depth: for a recursion that is none of those that can be scanned."""
        depth = self._depth
        order = range(int(depth.max(initial=-1)) + 1)
        for d in order if group.direction == "base_to_tip" else reversed(order):
            for statement in group.statements:
                self.set(statement, np.flatnonzero(depth == d))

    @cached_property
    def _depth(self) -> Indices:
        depth = np.zeros(self.n, dtype=np.int64)
        for k in range(self.n):
            depth[k] = 0 if self.parent[k] < 0 else depth[self.parent[k]] + 1
        return depth


def replace_passes(single: Interpreter) -> Interpreter:
    """The same values, with nothing left to run: its result is what they are."""
    single.program = replace(single.program, passes=())
    return single


def check_tree(mech: Mechanism | Embedded) -> Mechanism:
    """The mechanism, unless its loops are built in."""
    if isinstance(mech, Embedded):
        raise LoweringError(
            f"schedule='scan' was given for {mech.name!r}, which has its loops and couplings built "
            "in: several bodies of it share one block. Leave it out."
        )
    return mech


def scanned(
    program: Program,
    mech: Mechanism | Embedded,
    q: Array,
    v: Array | None = None,
    *,
    nodes: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> Array:
    """The value of a program by scans, O(log N) deep; arguments as those of `interpret.run`."""
    return Stacked(program, check_tree(mech), q, v, nodes, values or {}).result()
