"""Choices whose sides are computed where they are taken: for code that does one state at a time.

"x where c > 0, else y" computes both sides, so that all states of a batch do the same. One state
can go one way. That pays where a side has roots or quotients, which others wait for, and nothing
else needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from linkwise.codegen.scalar.graph import Graph

SLOW = ("inv", "sqrt")
"""Operations that are worth a branch."""

Choice = tuple[int, int, int]
"""c, x and y of "x where c > 0, else y"; -1 means zero."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Choices with the same condition, and what only one of their sides needs."""

    condition: int
    choices: tuple[int, ...]
    sides: tuple[tuple[Step, ...], tuple[Step, ...]]  # behind one another, each in order


Step = int | Fork
"""A node to compute, or several of which a part is left out."""


def where_of(graph: Graph, node: int) -> Choice | None:
    """The choice that a node is, as `spatial/choice.py` writes it.

    gate(c, x) + (y - gate(c, y)) is one of both numbers to the bit, and so is y - gate(c, y). With
    y = -z the graph has gate(c, x) - (z + gate(c, -z)).
    """
    op, a, b = graph.op, graph.a, graph.b

    def rest(n: int) -> tuple[int, int] | None:
        """c and y of y - gate(c, y)."""
        fits = op[n] == "sub" and op[b[n]] == "gate" and b[b[n]] == a[n]
        return (a[b[n]], a[n]) if fits else None

    if op[node] == "sub" and (other := rest(node)) is not None:
        return other[0], -1, other[1]
    if op[node] == "sub" and op[a[node]] == "gate" and op[b[node]] == "add":
        condition, chosen, left = a[a[node]], b[a[node]], b[node]
        for z, gated in ((a[left], b[left]), (b[left], a[left])):
            if op[gated] == "gate" and a[gated] == condition:
                minus = b[gated]
                if op[minus] == "neg" and a[minus] == z:
                    return condition, chosen, minus
    if op[node] != "add":
        return None
    for first, second in ((a[node], b[node]), (b[node], a[node])):
        other = rest(second)
        if other is not None and op[first] == "gate" and a[first] == other[0]:
            return other[0], b[first], other[1]
    return None


def compared(graph: Graph, choice: Choice) -> tuple[int, int] | None:
    """x and y, in the order in which a choice is the larger or the smaller one of them.

    Its condition is their difference: x - y, or x + z for y = -z, or -(z + y) for x = -z. Comparing
    them is the same to the bit, and processors choose the larger one of two numbers at once.
    """
    op, a, b = graph.op, graph.a, graph.b
    c, *sides = choice
    turned = op[c] == "neg"
    c = a[c] if turned else c
    pair = (a[c], b[c])
    if op[c] == "sub" and not turned:
        return pair if set(sides) == set(pair) else None
    for x, z in (pair, pair[::-1]) if op[c] == "add" else ():
        y = sides[sides[0] == x]
        if x in sides and y >= 0 and op[y] == "neg" and a[y] == z:
            return (y, x) if turned else (x, y)
    return None


def arguments(graph: Graph, n: int) -> tuple[int, ...]:
    """What a node is made of, where choices are one operation."""
    choice = where_of(graph, n)
    return graph.arguments(n) if choice is None else tuple(x for x in choice if x >= 0)


def steps(graph: Graph, order: Sequence[int], roots: Collection[int]) -> tuple[Step, ...]:
    """What computes the roots, in order, with forks where they pay.

    Args:
        graph: The graph.
        order: Nodes, each behind what it is made of; all others are known.
        roots: Those that are needed in the end.
    """
    needed, uses = set(roots), defaultdict[int, list[int]](list)
    for n in reversed(order):
        for x in arguments(graph, n) if n in needed else ():
            needed.add(x)
            uses[x].append(n)
    order = [n for n in order if n in needed]
    choices = defaultdict[int, list[int]](list)
    for n in order:
        choice = where_of(graph, n)
        if choice is not None:
            choices[choice[0]].append(n)
    forks, taken = dict[int, Fork](), set[int]()  # forks by their last choice; what they replace
    for condition, nodes in reversed(choices.items()):
        if taken.isdisjoint(nodes):
            sides = [_side(graph, order, uses, roots, nodes, k) for k in (1, 2)]
            slow = any(graph.op[n] in SLOW for side in sides for n in side)
            if slow and not _depend(graph, order, {condition, *sides[0], *sides[1]}, nodes):
                parts = [steps(graph, x, _ends(graph, x, nodes)) for x in sides]
                forks[nodes[-1]] = Fork(condition, tuple(nodes), (parts[0], parts[1]))
                taken.update(nodes, *sides)
    out: list[Step] = [forks.get(n, n) for n in order if n in forks or n not in taken]
    return _sorted(graph, out) if forks else tuple(out)


def _side(
    graph: Graph,
    order: Sequence[int],
    uses: dict[int, list[int]],
    roots: Collection[int],
    choices: Sequence[int],
    k: int,
) -> list[int]:
    """What only the first (1) or the second (2) sides of some choices need, in order."""
    inside = set[int]()
    chosen = {n: where_of(graph, n) or (-1, -1, -1) for n in choices}

    def serves(n: int, user: int) -> bool:
        if user not in chosen:
            return user in inside
        return chosen[user][k] == n and n not in (chosen[user][0], chosen[user][3 - k])

    for n in reversed(order):
        if n not in roots and uses[n] and all(serves(n, user) for user in uses[n]):
            inside.add(n)
    return [n for n in order if n in inside]


def _ends(graph: Graph, side: Sequence[int], choices: Sequence[int]) -> set[int]:
    """The nodes of a side that are chosen."""
    chosen = {x for n in choices for x in where_of(graph, n) or ()}
    return chosen.intersection(side)


def _depend(graph: Graph, order: Sequence[int], these: set[int], on: Sequence[int]) -> bool:
    """Whether any of these, or what is chosen, is made of some choices."""
    made, chosen = set(on), {x for n in on for x in arguments(graph, n)}
    for n in order:
        if n not in on and not made.isdisjoint(arguments(graph, n)):
            made.add(n)
    return not made.isdisjoint(these | chosen)


def outside(graph: Graph, fork: Fork) -> set[int]:
    """What a fork needs that it does not compute."""
    inside = set(fork.choices)
    needed = {x for n in fork.choices for x in arguments(graph, n)} | {fork.condition}
    for step in (*fork.sides[0], *fork.sides[1]):
        if isinstance(step, Fork):
            inside.update(step.choices)
            needed |= outside(graph, step)
        else:
            inside.add(step)
            needed.update(arguments(graph, step))
    return needed - inside


def _sorted(graph: Graph, out: Sequence[Step]) -> tuple[Step, ...]:
    """Each step behind what it needs, else in the order that there is."""
    maker = dict[int, Step]()
    for step in out:
        maker |= dict.fromkeys(step.choices if isinstance(step, Fork) else (step,), step)
    ready, done = list[Step](), set[int]()
    waiting = list(reversed(out))
    while waiting:
        step = waiting[-1]
        makes = step.choices if isinstance(step, Fork) else (step,)
        needs = outside(graph, step) if isinstance(step, Fork) else arguments(graph, step)
        first = [] if makes[0] in done else [x for x in needs if x in maker and x not in done]
        waiting += [maker[x] for x in sorted(first, reverse=True)]
        if not first:
            waiting.pop()
            ready += [] if makes[0] in done else [step]
            done.update(makes)
    return tuple(ready)
