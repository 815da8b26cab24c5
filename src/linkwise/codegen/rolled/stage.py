"""Passes as loops over bodies: what each loop computes, hands to its neighbours, and keeps.

A matrix is computed one column at a time, by running the vector program on columns of the identity.
Statements that know nothing of the column come first, in loops that run once; the others follow
in loops that run for each column. Each pass is therefore up to two stages.

A sum over the children of body k is added up in an accumulator of k, by the children themselves
when they are visited: in the stage of the statement if that comes from the tips, else in one
before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.algebra.expr import Identity, Symbol
from linkwise.algebra.role import Vector
from linkwise.algebra.space import NODE, ONE, Space
from linkwise.algebra.words import is_symmetric
from linkwise.sweeps.program import Direction, Ident, Program, Quantity, Statement


@dataclass(slots=True)
class Stage:
    """One loop over the bodies."""

    direction: Direction  # in which order they are visited
    each: bool  # whether it runs for each column of the result
    statements: list[Statement] = field(default_factory=lambda: [])  # what is computed at each body
    # statements whose sum over children is added up here
    gathers: list[Statement] = field(default_factory=lambda: [])
    # small dense matrices solved before the loop
    solves: list[Statement] = field(default_factory=lambda: [])


@dataclass(frozen=True, slots=True)
class Plan:
    """All loops of a program."""

    program: Program  # the program
    # the loops, in order; those that run for each column are the last ones
    stages: tuple[Stage, ...]
    looped: Space | None  # the space whose columns are taken one by one, or None
    made: dict[Ident, int]  # the stage that computes each quantity
    gathered: dict[Ident, int]  # the stage in which each sum over children is added up
    from_parent: dict[Ident, Quantity]  # quantities that are read at the parent
    kept: frozenset[Ident]  # those among them that a later stage reads
    each: frozenset[Ident]  # quantities that have another value for each column
    # the result is symmetric, and stages that run for each column only visit the bodies up to the
    # one that the column belongs to: what is right of the diagonal is mirrored
    halved: bool

    @property
    def first_each(self) -> int:
        """The first stage that runs for each column."""
        return next((i for i, s in enumerate(self.stages) if s.each), len(self.stages))


def planned(program: Program) -> Plan:
    """The loops of a program."""
    looped = _looped(program)
    stages = list[Stage]()
    for each in (False, True):
        for step in program.passes:
            chosen = [s for s in step.statements if _by_column(s.target, looped) == each]
            if not chosen:
                continue
            stage = Stage(step.direction, each)
            stage.solves = [s for s in chosen if s.special == "dense_solve"]
            stage.statements = [s for s in chosen if s.special != "dense_solve"]
            late = [s for s in stage.statements if _sums(s)]
            if late and stage.direction == "tip_to_base":
                stage.gathers = late
            elif late:
                if not stages or stages[-1].each != each or stages[-1].direction != "tip_to_base":
                    stages.append(Stage("tip_to_base", each))
                stages[-1].gathers += late
            stages.append(stage)
    if not stages or (looped is not None and not stages[-1].each):
        stages.append(Stage("base_to_tip", looped is not None))
    made, gathered = dict[Ident, int](), dict[Ident, int]()
    for i, stage in enumerate(stages):
        made |= {s.target.ident: i for s in (*stage.statements, *stage.solves)}
        gathered |= {s.target.ident: i for s in stage.gathers}
    above, kept = _from_parent(stages, made)
    each = frozenset(ident for ident, i in made.items() if stages[i].each)
    halved = looped is not None and _halved(program, [s.direction for s in stages if s.each])
    return Plan(program, tuple(stages), looped, made, gathered, above, kept, each, halved)


def _halved(program: Program, directions: list[Direction]) -> bool:
    """Whether bodies behind that of the column can be left out.

    Coming from the tips, a column is zero there; going back out, its rows there are known from the
    other half.
    """
    if directions not in (["tip_to_base"], ["tip_to_base", "base_to_tip"]):
        return False
    result = program.result
    square = result.rows is result.columns and result.rows.block == "body"
    return square and program.chosen.is_all and (program.mirrored or is_symmetric(program.expr))


def _looped(program: Program) -> Space | None:
    """The columns of the result, unless they are nodes and a matrix over nodes is solved."""
    columns = program.result.columns
    if columns is ONE or program.result.block:
        return None
    solved = any(s.special == "dense_solve" for s in program.statements)
    return None if columns is NODE and solved else columns


def _by_column(quantity: Quantity, looped: Space | None) -> bool:
    return looped is not None and not quantity.block and quantity.columns is looped


def _sums(statement: Statement) -> bool:
    return any(term.place == "c" for term in statement.terms)


def _from_parent(
    stages: list[Stage], made: dict[Ident, int]
) -> tuple[dict[Ident, Quantity], frozenset[Ident]]:
    quantities = {s.target.ident: s.target for stage in stages for s in stage.statements}
    above, kept = dict[Ident, Quantity](), set[Ident]()
    for i, stage in enumerate(stages):
        for statement in stage.statements:
            for ident, place in statement.needs():
                if place != "p":
                    continue
                if isinstance(ident[0], Identity):
                    continue  # columns of the identity are known everywhere
                if ident in quantities:
                    above[ident] = quantities[ident]
                    if made[ident] < i:
                        kept.add(ident)
                else:
                    above[ident] = _leaf(ident)
    return above, frozenset(kept)


def _leaf(ident: Ident) -> Quantity:
    symbol = ident[0]
    assert isinstance(symbol, Symbol) and isinstance(symbol.role, Vector), f"{symbol} at the parent"
    return Quantity(symbol.name, symbol.range, ONE, symbol, leaf=True)
