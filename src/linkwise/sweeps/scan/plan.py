"""The scan schedule of a program: statements for all bodies at once, and associative scans.

Statements that read each other round a circle (y at k from y at a child) are a recursion; all
others are computed for all bodies at once. A recursion is one of

    gather, scatter   y(k) = Σ A y(c) + x(k), or from the parent: affine maps
    Lyapunov          R(k) = Σ A R(c) B + M(k), or from the parent: affine maps of matrices
    poses             X(k) = X(p) X_pk: rigid motions
    Riccati           P, D, G, P⁺: Kalman elements

and is scanned; anything else would be swept, depth by depth. A recursion comes one level after
those that it reads, so independent ones share a level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from linkwise.algebra import role
from linkwise.algebra.expr import Symbol
from linkwise.algebra.show import UNICODE
from linkwise.brief import counted
from linkwise.errors import LoweringError
from linkwise.sweeps.interpret import family_of_part
from linkwise.sweeps.program import Direction, Ident, Program, Statement, Term
from linkwise.sweeps.scan.element import rounds

Kind = Literal["map", "at once", "affine", "Lyapunov", "poses", "Riccati", "sweep"]

SCANNED = ("affine", "Lyapunov", "poses", "Riccati", "sweep")
WHAT = {
    "affine": "affine maps",
    "Lyapunov": "affine maps of matrices",
    "poses": "rigid motions",
    "Riccati": "Kalman elements",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Statements that run together.

    Attributes:
        kind: How they run.
        statements: The statements; of a scan the first is what is carried from body to body.
        direction: Where a recursion goes.
        level: The number of scans that have to be finished before it is.
    """

    kind: Kind
    statements: tuple[Statement, ...]
    direction: Direction = "base_to_tip"
    level: int = 0


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A program as levels of scans; prints as such.

    Attributes:
        program: The program.
        groups: What runs, in order.
    """

    program: Program
    groups: tuple[Group, ...]

    @property
    def depth(self) -> int:
        """Scans that run one after another."""
        return max((group.level for group in self.groups), default=0)

    def rounds(self, bodies: int) -> int:
        """Rounds in which a chain of `bodies` is computed, with as many processors."""
        return self.depth * rounds(bodies)

    def __repr__(self) -> str:
        return f"<ScanPlan of {self.program.expr}: {counted(self.depth, 'scan')}>"

    def __str__(self) -> str:
        from linkwise.sweeps.show import statement_text

        lines = [f"{self.program.result} = {self.program.expr}"]
        lines += [f"{result} = {expr}" for expr, result in self.program.more]
        before = ""
        for group in self.groups:
            head = "for all k at once" if group.kind in ("map", "at once") else _head(group)
            if head != before or group.kind not in ("map", "at once"):
                lines += ["", head]
            before = head
            lines += [f"    {statement_text(s, UNICODE)}" for s in group.statements]
        lines += ["", f"{self.depth} scans one after another, each in 2 log₂ N rounds"]
        return "\n".join(lines)


def _head(group: Group) -> str:
    way = "tips … base" if group.direction == "tip_to_base" else "base … tips"
    if group.kind == "sweep":
        return f"for k = {way}, depth by depth"
    return f"scan {group.level} over k = {way}, of {WHAT[group.kind]}"


def scan_plan(program: Program) -> ScanPlan:
    """The scans of a program.

    Raises:
        LoweringError: The program belongs to constraints, or is a derivative by parameters.
    """
    if not program.loopable:
        raise LoweringError(
            f"{program.expr} belongs to constraints, or is a derivative by parameters; "
            "schedule='scan' is for expressions over bodies, joints and nodes. Leave it out."
        )
    statements = {s.target.ident: s for s in program.statements}
    level = dict[Ident, int]()
    groups = list[Group]()
    for idents in _circles(statements):
        members = tuple(statements[x] for x in idents)
        group = _group(members)
        reads = {x for s in members for x, _ in s.needs()} - set(idents)
        after = max((level.get(x, 0) for x in reads), default=0)
        group = replace(group, level=after + (group.kind in SCANNED))
        groups.append(group)
        level |= dict.fromkeys(idents, group.level)
    # Of one level, scans come first: what follows from them is of the same level.
    order = sorted(groups, key=lambda group: (group.level, group.kind not in SCANNED))
    return ScanPlan(program, tuple(order))


def _circles(statements: dict[Ident, Statement]) -> list[list[Ident]]:
    """Statements that depend on each other, what they read first (Tarjan 1972)."""
    index, low = dict[Ident, int](), dict[Ident, int]()
    stack, circles = list[Ident](), list[list[Ident]]()
    waiting = set[Ident]()

    def visit(x: Ident) -> None:
        index[x] = low[x] = len(index)
        stack.append(x)
        waiting.add(x)
        for y, _ in statements[x].needs():
            if y not in statements:
                continue
            if y not in index:
                visit(y)
                low[x] = min(low[x], low[y])
            elif y in waiting:
                low[x] = min(low[x], index[y])
        if low[x] == index[x]:
            start = stack.index(x)
            members = set(stack[start:])
            del stack[start:]
            waiting.difference_update(members)
            circles.append([y for y in statements if y in members])

    for x in statements:
        if x not in index:
            visit(x)
    return circles


def _group(members: tuple[Statement, ...]) -> Group:
    """How statements run that read each other, or one that reads itself, or does not."""
    idents = {s.target.ident for s in members}
    places = {place for s in members for x, place in s.needs() if x in idents}
    if not places:
        return Group("at once" if members[0].at_once else "map", members)
    direction: Direction = "tip_to_base" if "c" in places else "base_to_tip"
    if members[0].special == "X":
        return Group("poses", members, direction)
    parts = {_part(s): s for s in members}
    if set(parts) == {"P", "D", "G", "P_plus"} and _is_standard(parts["P"]):
        order = tuple(parts[x] for x in ("P", "D", "G", "P_plus"))
        return Group("Riccati", order, direction)
    carried = {x for s in members for x, place in s.needs() if x in idents and place != "k"}
    if len(carried) == 1 and not any(s.special for s in members):
        rest = tuple(s for s in members if s.target.ident not in carried)
        first = next(s for s in members if s.target.ident in carried)
        first = replace(first, terms=_inlined(first.terms, {s.target.ident: s for s in rest}))
        kinds: list[Kind | None] = [_affine(t) for t in first.terms if is_own(t, first)]
        kind = kinds[0] if len(set(kinds)) == 1 else None
        if kind is not None:
            return Group(kind, (first, *rest), direction)
    return Group("sweep", members, direction)


def is_own(term: Term, statement: Statement) -> bool:
    """Whether a term reads the quantity that the statement defines."""
    return term.operand is not None and term.operand.ident == statement.target.ident


def _affine(term: Term) -> Kind | None:
    """Whether a term is A y(c) or A R(c) B; None for other forms."""
    at_own_body = all(b.step or b.place == "k" for b in (*term.left, *term.right))
    if term.place not in ("c", "p") or not at_own_body:
        return None
    return "Lyapunov" if term.right else "affine"


def _inlined(terms: Sequence[Term], rest: dict[Ident, Statement]) -> tuple[Term, ...]:
    """Terms, with quantities of the same circle replaced by what they are."""
    out = list[Term]()
    for term in terms:
        inner = rest.get(term.operand.ident) if term.operand is not None else None
        if inner is None or term.place != "k":
            out.append(term)
            continue
        for t in _inlined(inner.terms, rest):
            left, right = term.left + t.left, t.right + term.right
            out.append(replace(t, number=term.number * t.number, left=left, right=right))
    return tuple(out)


def _part(statement: Statement) -> str:
    key = statement.target.key
    if isinstance(key, Symbol) and isinstance(key.role, role.Riccati):
        return key.role.part
    return str(statement.target)


def _is_standard(statement: Statement) -> bool:
    """P = Σ E P⁺ E* + M, and nothing else that comes from children."""
    family = family_of_part(statement.target.key)
    assert family is not None
    return [t.place for t in statement.terms if t.operand is not None] == ["c"]
