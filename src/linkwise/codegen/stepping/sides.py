"""What limbs of equal build have alike in the segments of a step, and places for it together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from linkwise.codegen.scalar.forks import SLOW
from linkwise.codegen.scalar.packs import Pack, Packs
from linkwise.codegen.stepping.stepping import STEP, Segment, Stepping, placed

Entry = tuple[str, int]
"""A register, and which of its numbers."""


class Sides:
    """What the segments of a step have alike for limbs.

    Attributes:
        packs: The packs of a segment, by its `id`, where it has some.
        entries: Entries of registers that are alike, in packs.
    """

    def __init__(self, stepping: Stepping, entries: dict[int, list[Pack]]) -> None:
        self.packs, self.entries = dict[int, Packs](), list[tuple[Entry, ...]]()
        registers, known = stepping.registers, set[Entry]()
        given = ("q", "v", *stepping.state, *(name for name, _ in stepping.held))
        for name in given if any(entries.values()) else ():
            for places in entries.get(registers[name], ()):
                self._add(known, [(name, i) for i in places])
        for segment in stepping.segments if known else ():
            if not segment.rows and not segment.moves and not _forks(segment):
                self._find(segment, known)

    def of(self, segment: Segment) -> Packs:
        """The packs of a segment, if there are any."""
        graph = segment.traced.graph
        none = Packs(graph, graph.used(segment.traced.roots), ())
        return self.packs.get(id(segment), none)

    def _add(self, known: set[Entry], places: Iterable[Entry]) -> None:
        pack = tuple(places)
        if not known.intersection(pack):
            known.update(pack)
            self.entries.append(pack)

    def _find(self, segment: Segment, known: set[Entry]) -> None:
        """The packs of a segment, which make some of what it writes alike."""
        graph = segment.traced.graph
        order = graph.used(segment.traced.roots)
        node_of = {graph.a[n]: n for n in order if graph.op[n] == "input"}
        read = {e: node_of[i] for i, e in enumerate(entries_of(segment.reads)) if i in node_of}
        alike = [tuple(read[e] for e in pack) for pack in self.entries if read.keys() >= {*pack}]
        packs = Packs(graph, order, alike)
        if not any(map(packs.computed, range(len(packs.packs)))):
            return
        self.packs[id(segment)] = packs
        written = defaultdict[int, list[Entry]](list)
        for entry, n in zip(entries_of(segment.writes), segment.traced.outputs, strict=True):
            written[n].append(entry)
        for nodes in packs.packs:
            for places in zip(*(written[n] for n in nodes), strict=False):
                self._add(known, places)

    def offsets(self, stepping: Stepping, top: int) -> dict[Entry, int]:
        """Places from `top` on of registers that serve within a step only: packs together."""
        fixed = {"q", "v", STEP, *stepping.state, *(x.register for x in stepping.noise)}
        for more in (stepping.held, stepping.record, stepping.begins, stepping.memory):
            fixed |= {name for name, _ in more}
        for segment in stepping.segments:
            fixed |= {placed(x)[0] for x in (segment.again, segment.when) if x}
            if segment.rows or segment.moves:
                fixed |= {placed(x)[0] for x, _ in (*segment.reads, *segment.writes)}
        free = {x: size for x, size in stepping.registers.items() if x not in fixed}
        packs = (pack for pack in self.entries if all(name in free for name, _ in pack))
        each = (entry for pack in packs for entry in pack)
        rest = ((name, i) for name, size in free.items() for i in range(size))
        return {entry: top + i for i, entry in enumerate(dict.fromkeys((*each, *rest)))}


def _forks(segment: Segment) -> bool:
    """Whether one side of slow choices is computed only, which limbs side by side could not."""
    graph = segment.traced.graph
    return bool(segment.again) and any(
        graph.op[n] in SLOW for n in graph.used(segment.traced.roots)
    )


def entries_of(pieces: Sequence[tuple[str, int]]) -> list[Entry]:
    """The entries of registers or parts of them, one after another."""
    places = [(*placed(name), size) for name, size in pieces]
    return [(name, start + j) for name, start, size in places for j in range(size)]
