"""The cost of a program compared with others: passes, then the work at the bodies.

Blocks are counted with their structure: a rigid shift on a six-vector takes two 3×3 rotations and
a cross product. Nothing is folded, so this is not a number of scalar operations: those belong to a
kernel on a mechanism, `kernel.ops`. Hinges count with their degrees of freedom on a mechanism, and
with one on the nominal tree on which rewriting compares forms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from linkwise.algebra import role
from linkwise.algebra.space import JOINT, ONE
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.program import Block, Ident, Place, Program, Quantity, Statement, Term

NOMINAL_BODIES = 12
"""Bodies of the nominal tree, which give the width of its matrices."""

NOMINAL_SUBTREE = 4.0
"""Bodies of an average subtree of the nominal tree, itself included."""


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """Compared passes first, then work.

    Attributes:
        passes: Walks over the tree.
        work: Operations of the blocks, over all bodies: to compare forms, not to predict a kernel.
    """

    passes: int
    work: float


def cost(program: Program, mech: Mechanism | None = None) -> Cost:
    """Cost on a mechanism, or on the nominal tree."""
    supports = _supports(program)
    tree = _Tree.nominal() if mech is None else _Tree.of(mech)
    counted = sum(
        bodies * _statement(statement, nv, tree, supports)
        for nv, bodies in Counter(tree.nv).items()
        for statement in program.statements
    )
    return Cost(len(program.passes), counted)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Degrees of freedom of each body, and the average number of bodies in a subtree."""

    nv: list[int]
    subtree: float

    @staticmethod
    def nominal() -> _Tree:
        return _Tree([1] * NOMINAL_BODIES, NOMINAL_SUBTREE)

    @staticmethod
    def of(mech: Mechanism) -> _Tree:
        depth = [0] * mech.n_bodies
        for k, p in enumerate(mech.parent.tolist()):
            depth[k] = 1 + (depth[p] if p >= 0 else 0)
        # The sum of subtree sizes is the sum of depths: each body counts in all its ancestors.
        return _Tree([b.hinge.nv for b in mech.bodies], sum(depth) / max(len(depth), 1))


Support = Literal["own", "path", "all"]
"""Which columns of a matrix with a column for each entry of a tree space can be non-zero at body k:
those of k itself, those of its subtree (or of its ancestors), or all."""


def _supports(program: Program) -> dict[Ident, Support]:
    """Support of every quantity with columns, from the statements in order."""
    supports: dict[Ident, Support] = {}
    for statement in program.statements:
        if statement.special or statement.target.columns is ONE or statement.target.block:
            continue
        inputs = set[Support]()
        steps = set[Place]()
        for term in statement.terms:
            if term.operand is None:
                continue
            if term.place != "k":
                steps.add(term.place)
            if term.operand.ident != statement.target.ident:
                inputs.add(supports.get(term.operand.ident, "own" if term.operand.leaf else "all"))
        supports[statement.target.ident] = _support(inputs, bool(steps))
    return supports


def _support(inputs: set[Support], steps: bool) -> Support:
    if "all" in inputs:
        return "all"
    if "path" in inputs:
        return "all" if steps else "path"
    return "path" if steps else "own"


def _statement(statement: Statement, nv: int, tree: _Tree, supports: dict[Ident, Support]) -> float:
    if statement.special:
        return {"phi(q)": 30, "H(q)": 0, "a": 18, "b": 60, "X": 63, "B_V": 60}.get(
            statement.special, 0
        )
    columns = _columns(statement.target, nv, tree, supports)
    rows = {JOINT: nv, ONE: 1}.get(statement.target.rows, 6)
    each = [_term(term, columns, nv) for term in statement.terms]
    return sum(each) + (len(each) - 1) * rows * columns


def _columns(quantity: Quantity, nv: int, tree: _Tree, supports: dict[Ident, Support]) -> float:
    if quantity.columns is ONE:
        return 1
    if quantity.block:
        return nv if quantity.columns is JOINT else 6
    if quantity.columns.block != "body":
        return 6
    each = sum(tree.nv) / max(len(tree.nv), 1) if quantity.columns is JOINT else 6.0
    bodies = {"own": 1.0, "path": tree.subtree, "all": float(len(tree.nv))}
    return each * bodies[supports.get(quantity.ident, "all")]


def _term(term: Term, columns: float, nv: int) -> float:
    blocks = len(term.left) + len(term.right)
    if term.operand is None:
        width = 6.0 if blocks else 0.0
        return sum(_apply(block, width if i else 0.0, nv) for i, block in enumerate(term.left))
    work = sum(_apply(block, columns, nv) for block in term.left)
    return work + sum(_apply(block, 6.0, nv) for block in term.right)


def _apply(block: Block, columns: float, nv: int) -> float:
    """Operations to multiply a block with that many columns."""
    key = block.symbol.role
    if isinstance(key, role.Shift) or isinstance(key, role.PickOff):
        return 42.0 * columns
    if isinstance(key, role.Gather):
        return 0.0
    rows = nv if block.symbol.range is JOINT else 6
    width = {JOINT: nv, ONE: 1}.get(block.symbol.domain, 6)
    if isinstance(key, role.Memoryless) and key.source == "H":
        return 2.0 * nv * columns  # a hinge map has a few ones and zeros
    if isinstance(key, role.Memoryless) and key.source == "M":
        return 14.0 * columns  # of a link along an axis: m, h of one entry and a diagonal tensor
    if block.inverse:
        return rows * rows * columns + rows**3
    return rows * (2.0 * width - 1.0) * columns
