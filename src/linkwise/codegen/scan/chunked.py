"""Chunked scans: the same loops over bodies, for runs of a chain at once.

A chain is cut into runs, each of which one thread sweeps:

    fold     each run from nothing, which gives the element of the run (`sweeps/scan/element.py`)
    scan     the elements of all runs, which gives what comes in at each
    apply    each run again, with what comes in

The element needs statements that a sweep does not have: A of an affine recursion, A and J of a
Riccati recursion. They are added here to the program, which is then rolled as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from linkwise.algebra.expr import Symbol
from linkwise.algebra.space import BODY, JOINT, ONE
from linkwise.algebra.symbols import memoryless
from linkwise.codegen.rolled.layout import Key
from linkwise.codegen.rolled.roll import Rolled, roll
from linkwise.errors import LoweringError
from linkwise.model.hinges import Modal
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.interpret import family_of_part
from linkwise.sweeps.program import (
    Block,
    Direction,
    Ident,
    Pass,
    Program,
    Quantity,
    Statement,
    Term,
)
from linkwise.sweeps.scan.plan import SCANNED, Group, is_own, scan_plan
from linkwise.sweeps.scan.run import check_tree
from linkwise.sweeps.schedule import OPEN_PLACE, direction


@dataclass(frozen=True, slots=True)
class Carried:
    """What one pass hands from body to body.

    Attributes:
        kind: Affine maps, or Kalman elements.
        stage: The stage of the rolled program.
        direction: Its direction.
        state: The entries of y (6) or of P, row by row of its upper triangle (21).
        through: The entries of A (36).
        inverse: The entries of J (21), for Kalman elements.
    """

    kind: Literal["affine", "Riccati"]
    stage: int
    direction: Direction
    state: tuple[Key, ...]
    through: tuple[Key, ...]
    inverse: tuple[Key, ...] = ()

    @property
    def entries(self) -> tuple[Key, ...]:
        """All of them, in the order of an element."""
        return (*self.through, *self.state, *self.inverse)


@dataclass(frozen=True, slots=True)
class Chunked:
    """A rolled program whose stages are scanned."""

    rolled: Rolled
    carried: tuple[Carried | None, ...]  # for each stage


def _check_rigid(mech: Mechanism) -> None:
    """Refuse mechanisms whose bodies differ in size."""
    if check_tree(mech).flexible:
        bent = any(isinstance(mech.bodies[k].hinge, Modal) for k in mech.flexible)
        what = "flexible bodies" if bent else "motors with rotors (lw.Builder.motor)"
        raise LoweringError(
            f"schedule='scan' on a GPU was given for {mech.name!r}, which has {what}: its bodies "
            "differ in size. The target 'numpy' scans it; or leave schedule out."
        )


def chunked(program: Program, mech: Mechanism, itemsize: int) -> Chunked:
    """The loops of a program on a serial chain, with what elements need.

    Raises:
        LoweringError: It is not a chain, or the expression has other recursions or matrices.
    """
    _check_rigid(mech)
    if any(int(p) != k - 1 for k, p in enumerate(mech.parent)):
        raise LoweringError(
            f"{mech.name!r} has branches; schedule='scan' on a GPU is for serial chains. The "
            "target 'numpy' scans trees."
        )
    plan = scan_plan(program)
    scans = [g for g in plan.groups if g.kind in SCANNED]
    wrong = [g for g in scans if g.kind not in ("affine", "Riccati")]
    result = program.result
    alone = result.columns is ONE and result.rows in (JOINT, BODY) and not program.more
    if wrong or not alone or not scans or not program.chosen.is_all:
        raise LoweringError(
            f"{program.expr} has no scan on GPUs: these are for vectors over joints or bodies that "
            "take affine and Riccati recursions. The target 'numpy' has the others."
        )
    passes, carriers = _passes(plan.groups)
    split = replace(program, passes=passes)
    variable = [q for group in carriers for q in group[1]]
    rolled = roll(split, mech, itemsize=itemsize, most_classes=1, variable=variable)
    carried: list[Carried | None] = [None] * len(rolled.plan.stages)
    for group, quantities in carriers:
        stage = rolled.plan.made[quantities[0].ident]
        state, through, *inverse = (_entries(q) for q in quantities)
        kind = "affine" if group.kind == "affine" else "Riccati"
        one = Carried(kind, stage, group.direction, state, through, *inverse)
        carried[stage] = one
    return Chunked(rolled, tuple(carried))


def _entries(quantity: Quantity) -> tuple[Key, ...]:
    symmetric = quantity.block and isinstance(quantity.key, Symbol) and quantity.key.symmetric
    columns = 6 if quantity.block else 1
    return tuple(
        (quantity.ident, r, c) for r in range(6) for c in range(r if symmetric else 0, columns)
    )


def _passes(
    groups: Sequence[Group],
) -> tuple[tuple[Pass, ...], list[tuple[Group, list[Quantity]]]]:
    """Passes with one recursion each, and the quantities that each carries."""
    level, taken = dict[Ident, int](), set[int]()
    placed = dict[int, list[Statement]]()
    carried = list[tuple[Group, list[Quantity]]]()
    made = {s.target.ident for g in groups for s in g.statements}
    for number, group in enumerate(groups):
        statements, quantities = list(group.statements), list[Quantity]()
        if group.kind == "Riccati":
            more, quantities = _kalman(group, number)
            statements += [s for s in more if s.target.ident not in made]
        elif group.kind == "affine":
            statements, quantities = _affine(group, number)
        statements = [s for s in statements if s.target.ident not in level]
        if not statements:
            continue
        idents = {s.target.ident for s in statements}
        needs = [(x, place) for s in statements for x, place in s.needs()]
        i = 0
        while True:
            right = group.kind == "map" or (direction(i, START) == group.direction)
            if right and not (quantities and i in taken) and _fits(needs, idents, level, i):
                break
            i += 1
        level |= dict.fromkeys(idents, i)
        placed.setdefault(i, []).extend(statements)
        if quantities:
            taken.add(i)
            carried.append((group, quantities))
    passes = tuple(Pass(direction(i, START), tuple(placed[i])) for i in sorted(placed))
    return passes, carried


START: Direction = "base_to_tip"


def _fits(needs: Sequence[tuple[Ident, str]], idents: set[Ident], level: dict[Ident, int], i: int):
    came_from = OPEN_PLACE[direction(i, START)]
    for x, place in needs:
        there = i if x in idents else level.get(x, -1)
        if there > i or (there == i and place not in ("k", came_from)):
            return False
    return True


def _affine(group: Group, number: int) -> tuple[list[Statement], list[Quantity]]:
    """A(k) = A(k,c) A(c), or from the parent."""
    carried, *rest = group.statements
    if carried.target.rows is not BODY or carried.target.columns is not ONE:
        raise LoweringError(f"{carried.target} is not a vector over bodies: no scan on GPUs.")
    A = _operator(f"A_{number}")
    terms = tuple(replace(t, operand=A) for t in carried.terms if is_own(t, carried))
    return [carried, Statement(A, terms), *rest], [carried.target, A]


def _kalman(group: Group, number: int) -> tuple[list[Statement], list[Quantity]]:
    """A(k) = Σ ψ(k,c) A(c), J(k) = Σ (J + (H A)* D⁻¹ H A)(c)."""
    P = group.statements[0].target
    f = family_of_part(P.key)
    assert f is not None
    A, J, J_plus = (_operator(f"{x}_{number}", symmetric=x != "A") for x in ("A", "J", "J⁺"))
    seen = _operator(f"HA_{number}", rows=JOINT)
    edge = Block(f.E, step=True, place="p")
    shift = Block(f.E_psi, step=True, place="c")
    H_A, inverse = Block(_key(seen)), Block(f.D, inverse=True)
    outside = Term(1.0, (replace(H_A, adjoint=True), inverse, H_A))
    statements = [
        Statement(_block(f.Pi_bar), (Term(1.0), Term(-1.0, (Block(f.G), Block(f.H))))),
        Statement(_block(f.E_psi), (Term(1.0, (edge, Block(f.Pi_bar))),)),
        Statement(A, (Term(1.0, (shift,), A, "c"),)),
        Statement(seen, (Term(1.0, (Block(f.H),), A),)),
        Statement(J, (Term(1.0, (), J_plus, "c"),)),
        Statement(J_plus, (Term(1.0, (), J), outside)),
    ]
    return statements, [P, A, J]


def _operator(name: str, *, rows: object = BODY, symmetric: bool = False) -> Quantity:
    return _block(memoryless(f"scan {name}", rows, BODY, symmetric=symmetric))  # type: ignore[arg-type]


def _block(leaf: Symbol) -> Quantity:
    return Quantity(leaf.name, leaf.range, leaf.domain, leaf, block=True)


def _key(quantity: Quantity) -> Symbol:
    assert isinstance(quantity.key, Symbol)
    return quantity.key
