"""Programs: statements that give one quantity at body k, grouped into passes over the tree.

The grammar, on one screen:

    program    ::=  pass, pass, ...
    pass       ::=  direction, statement, statement, ...        (tip to base, or base to tip)
    statement  ::=  target(k) = term + term + ...  |  target(k) = special(reads)
    term       ::=  number · block · ... · operand(place) · block · ...
    block      ::=  A(k), A*(k), A⁻¹(k)      a memoryless operator at a place
                 |  E(k, c), E*(p, k)        a step between a body and its child or parent
    place      ::=  k | c (each child, summed over) | p (the parent) | all

A target in the space ONE is a number: its terms x*(k) y(k) are summed over all bodies, and it is
read, at place "all", by later passes only. Quantities of constraints have no place in the tree:
they are computed before the pass they are in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from linkwise.algebra.expr import Expr, Symbol
from linkwise.algebra.role import Vector
from linkwise.algebra.space import (
    BODY,
    COORDINATE,
    GRAVITY,
    INERTIA,
    NODE_INERTIA,
    ONE,
    Space,
)
from linkwise.brief import counted
from linkwise.front_door import open_front_door
from linkwise.model.closure_form import is_form
from linkwise.model.closure_rate import RATES
from linkwise.sweeps.result_part import ALL, ResultPart

Place = Literal["k", "c", "p", "all"]
Direction = Literal["tip_to_base", "base_to_tip"]

PLACED = ("a_g", "X", "X_B", "weight")
"""Vectors that follow from the poses of bodies, each by a special statement."""

AT_ONCE = (
    *("dense_solve", "gram", "spread", "Q", "Q*", "Y", "Y*", "kappa", "kappa_g", "servo"),
    *("task_error", "scale"),
    *(rule + star for rule in RATES for star in ("", "*")),  # and their adjoints
)
"""Special rules that run at once, between passes, not body by body."""

Ident = tuple[Expr, bool]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that has a value at every body (or node): a vector, columns, or a block."""

    name: str  # as printed
    rows: Space  # the space one column belongs to
    # ONE for a vector, another space for a matrix with a column for each entry of it
    columns: Space
    key: Expr  # the expression it is the value of
    leaf: bool = False  # whether it is given, not computed
    block: bool = False  # whether it is the block of an operator at each body, not its columns

    @property
    def ident(self) -> Ident:
        """What distinguishes it from other quantities."""
        return self.key, self.block

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Block:
    """A factor of a term: an operator's block at a place."""

    symbol: Symbol  # the operator
    adjoint: bool = False  # whether it is the adjoint
    inverse: bool = False  # whether it is the inverse
    step: bool = False  # the block belongs to an edge: E(k, c) for place c, E*(p, k) for place p
    place: Place = "k"  # where, or which edge

    @property
    def ident(self) -> Ident:
        """What gives its value: the blocks of an operator, or a vector used as one."""
        return self.symbol, not isinstance(self.symbol.role, Vector)


@dataclass(frozen=True, slots=True)
class Term:
    """number · left ... · operand(place) · right ...; without operand, a product of blocks.

    With neither, it is a multiple of the identity on `rows`.
    """

    number: float
    left: tuple[Block, ...] = ()
    operand: Quantity | None = None
    place: Place = "k"
    right: tuple[Block, ...] = ()
    rows: Space = BODY


@dataclass(frozen=True, slots=True)
class Statement:
    """target(k) = Σ terms, or a special rule by name; a number is summed over all bodies."""

    target: Quantity  # what it gives
    terms: tuple[Term, ...] = ()  # the sum
    special: str = ""  # "" or one of "phi(q)", "H(q)", "a", "b", "X", "rot_W" ..., or of `AT_ONCE`
    # for a special rule, the quantities it needs and where
    reads: tuple[tuple[Quantity, Place], ...] = ()

    @property
    def at_once(self) -> bool:
        """Whether it runs at once: it belongs to no body."""
        listed = self.special in AT_ONCE or is_form(self.special)
        return listed or self.target.rows.block == "constraint"

    def needs(self) -> list[tuple[Ident, Place]]:
        """Everything it reads, with the place; its own recursion included."""
        needs: list[tuple[Ident, Place]] = [(q.ident, place) for q, place in self.reads]
        for term in self.terms:
            if term.operand is not None:
                needs.append((term.operand.ident, term.place))
            blocks = (*term.left, *term.right)
            needs.extend((block.ident, _where(block)) for block in blocks)
        return needs


def _where(block: Block) -> Place:
    """A block of an edge is kept at the child: E(k, c) at c, E*(p, k) at k."""
    if not block.step:
        return block.place
    return "c" if block.place == "c" else "k"


@dataclass(frozen=True, slots=True)
class Pass:
    """Statements that run together in one walk over the tree."""

    direction: Direction
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """An expression as passes over the tree.

    Attributes:
        expr: What it computes.
        result: The quantity that holds it.
        passes: The passes, in order.
        inputs: Leaves it needs: vectors, and operators of the mechanism.
        mirrored: The result is a symmetric matrix of which the passes give the upper half.
        chosen: The part of the result to compute.
        more: Other expressions that the same passes compute, and the quantities that hold them.
    """

    expr: Expr
    result: Quantity
    passes: tuple[Pass, ...]
    inputs: tuple[Symbol, ...] = field(default=())
    mirrored: bool = False
    chosen: ResultPart = ALL
    more: tuple[tuple[Expr, Quantity], ...] = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements, in order."""
        return tuple(s for p in self.passes for s in p.statements)

    @property
    def constrained(self) -> bool:
        """Whether something in it belongs to constraints."""
        return any(s.at_once and s.special != "dense_solve" for s in self.statements)

    @property
    def loopable(self) -> bool:
        """Whether it can run as loops over bodies: not with constraints, nor by parameters."""
        spaces = {x for s in self.statements for x in (s.target.rows, s.target.columns)}
        spaces |= {space for leaf in self.inputs for space in (leaf.range, leaf.domain)}
        return not self.constrained and not spaces & {INERTIA, NODE_INERTIA, GRAVITY, COORDINATE}

    def __repr__(self) -> str:
        return f"<Program of {self.expr}: {counted(len(self.passes), 'pass', 'passes')}>"

    def __str__(self) -> str:
        from linkwise.sweeps.show import program_text

        return program_text(self)

    def latex(self) -> str:
        """As LaTeX."""
        from linkwise.sweeps.show import program_latex

        return program_latex(self)


def distributed(program: Program) -> Program:
    """H (A x + B y) as H A x + H B y at each body, for matrices with a column for each joint.

    H A is one row where hinges have one degree of freedom, and multiplies all columns.
    """
    reads = Counter(ident for s in program.statements for ident, _ in s.needs())
    results = {program.result.ident, *(quantity.ident for _, quantity in program.more)}
    passes = list[Pass]()
    for step in program.passes:
        made = {
            s.target.ident: s
            for s in step.statements
            if s.terms and not s.target.block and s.target.rows is BODY
            if s.target.columns is not ONE and reads[s.target.ident] == 1
            if s.target.ident not in results
        }
        statements, gone = list[Statement](), set[Ident]()
        for statement in step.statements:
            terms = list[Term]()
            for term in statement.terms:
                inner = made.get(term.operand.ident) if term.operand is not None else None
                if inner is None or statement.target.rows is BODY or not _is_local(term):
                    terms.append(term)
                    continue
                gone.add(inner.target.ident)
                terms += [
                    replace(x, number=term.number * x.number, left=term.left + x.left)
                    for x in inner.terms
                ]
            statements.append(replace(statement, terms=tuple(terms)))
        kept = tuple(s for s in statements if s.target.ident not in gone)
        passes.append(replace(step, statements=kept))
    return replace(program, passes=tuple(passes))


def _is_local(term: Term) -> bool:
    """Whether a term has blocks of body k on the left only."""
    here = all(not block.step and block.place == "k" for block in term.left)
    return term.place == "k" and bool(term.left) and not term.right and here


open_front_door(globals(), ("Program",))
