"""Scheduling: which pass each statement joins, so that there are as few passes as possible.

A statement joins a pass if everything it needs is known by then: at its own body earlier in the
pass, at the children if the pass comes from the tips, at the parent if it comes from the base,
anywhere if an earlier pass has computed it. Fusion of sweeps is nothing but this.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algebra.space import CONSTRAINT
from linkwise.sweeps.program import Direction, Ident, Pass, Place, Statement

ALTERNATING: dict[Direction, Direction] = {
    "tip_to_base": "base_to_tip",
    "base_to_tip": "tip_to_base",
}
OPEN_PLACE: dict[Direction, Place] = {"tip_to_base": "c", "base_to_tip": "p"}
"""The neighbour that a pass has just come from."""


def scheduled(statements: Sequence[Statement]) -> tuple[Pass, ...]:
    """The passes: the shorter of the two schedules that start from the base or from the tips."""
    starts: tuple[Direction, Direction] = ("base_to_tip", "tip_to_base")
    candidates = [_passes(statements, start) for start in starts]
    return min(candidates, key=len)


def _passes(statements: Sequence[Statement], start: Direction) -> tuple[Pass, ...]:
    level = _levels(statements, start)
    passes = list[Pass]()
    for i in range(max(level.values(), default=0) + 1):
        chosen = [s for s in statements if level[_key(s)] == i]
        if chosen:
            passes.append(Pass(direction(i, start), tuple(_ordered(chosen))))
    return tuple(passes)


def direction(level: int, start: Direction) -> Direction:
    """Passes alternate."""
    return start if level % 2 == 0 else ALTERNATING[start]


def _key(statement: Statement) -> Ident:
    return statement.target.ident


def _levels(statements: Sequence[Statement], start: Direction) -> dict[Ident, int]:
    """The earliest pass for each statement: raised until nothing needs a later one."""
    level = {_key(s): 0 for s in statements}
    # Solves over nodes, which rolled kernels have too, come one a pass.
    wholes = {
        _key(s)
        for s in statements
        if s.at_once and (s.special != "dense_solve" or s.target.rows is CONSTRAINT)
    }
    listed = [(_key(s), s.at_once, [n for n in s.needs() if n[0] in level], s) for s in statements]
    changed = True
    while changed:
        changed = False
        for key, at_once, needs, statement in listed:
            earliest = level[key]
            while not _can_join(key, at_once, needs, earliest, level, wholes, start):
                earliest += 1
                assert earliest <= 2 * len(statements) + 2, f"{statement.target} waits for itself"
            if earliest > level[key]:
                level[key] = earliest
                changed = True
    return level


def _can_join(
    target: Ident,
    at_once: bool,
    needs: Sequence[tuple[Ident, Place]],
    i: int,
    level: dict[Ident, int],
    wholes: set[Ident],
    start: Direction,
) -> bool:
    """Whether a statement can join pass i; `needs` leaves out what is given from outside."""
    came_from = OPEN_PLACE[direction(i, start)]
    for key, place in needs:
        there = i if key == target else level[key]
        if there < i:
            continue
        if there == i and at_once:
            if key in wholes and key != target:
                continue  # in sequence, before the pass
            return False
        if there > i or place not in ("k", came_from) or (key == target and place == "k"):
            return False
    return True


def _ordered(statements: Sequence[Statement]) -> list[Statement]:
    """Within a pass: what a statement reads at its own body comes before it."""
    waiting = {_key(s): s for s in statements}
    done = list[Statement]()
    visiting = set[Ident]()

    def visit(key: Ident) -> None:
        statement = waiting.get(key)
        if statement is None or key in visiting:
            return
        visiting.add(key)
        for read, place in statement.needs():
            if place == "k" or statement.at_once:
                visit(read)
        done.append(statement)

    for statement in statements:
        visit(_key(statement))
    return done
