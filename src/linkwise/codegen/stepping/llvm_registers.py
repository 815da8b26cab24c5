"""The straight code of a segment, from registers to registers in work memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.codegen.cpu import ir
from linkwise.codegen.cpu.emit import Emitter, Finite
from linkwise.codegen.cpu.ir import INT
from linkwise.codegen.cpu.llvm import GraphBody, Place, get, put
from linkwise.codegen.stepping.sides import Entry, entries_of
from linkwise.codegen.stepping.stepping import Segment, placed

CODE = "status"
"""The name under which segments read and write the code of a motion."""


def is_code(name: str) -> bool:
    """Whether a register is the code, be it of statements with a prefix."""
    return name.rpartition(".")[2] == CODE


STATUS, FAILED, ACTIVE, FIRST = 0, 1, 2, 3
"""Places in front of the registers: a code, the step it came in, whether a motion takes part in a
round of what is run again, and where registers begin."""


LONGEST = 9000
"""Nodes of code that stays in one piece: parts would exchange values in memory, which takes longer
than the compiler does for it."""


def _register(name: str) -> str:
    register, _ = placed(name)
    return CODE if is_code(register) else register


class RegisterBody(GraphBody):
    """The straight code of a segment: inputs and outputs are registers, in `place.output`.

    Numbers are loaded where they are needed first, and stored as soon as they are there, unless
    the segment also reads their register: held until the end, most would wait in memory.
    """

    def __init__(
        self,
        emit: Emitter,
        segment: Segment,
        offset: dict[str, int],
        placed_apart: dict[Entry, int],
    ) -> None:
        super().__init__(emit, segment.traced)
        self.longest = LONGEST
        self.span = 1
        moves, self.pieces = dict(segment.moves), (*segment.reads, *segment.writes)

        def places(pieces: Sequence[tuple[str, int]]) -> list[int]:
            entries = entries_of(pieces)
            return [placed_apart.get((x, j), offset.get(x, 0) + j) for x, j in entries]

        self.read_at, self.write_at = places(segment.reads), places(segment.writes)
        self.stride = [moves.get(name, 0) for name, _ in self.pieces]
        owner = [i for i, (_, size) in enumerate(self.pieces) for _ in range(size)]
        self.reads, self.writes = owner[: len(self.read_at)], owner[len(self.read_at) :]
        self.first_written = len(segment.reads)
        read = {_register(name) for name, _ in segment.reads}
        self.apart = [_register(name) not in read for name, _ in segment.writes]
        self.repeated = bool(segment.again)
        self.frozen = self.repeated and emit.lanes > 1
        register, first = placed(segment.when)
        self.when = offset[register] + first if segment.when else None
        self.masks = dict[int, Any]()
        self.sets_code = any(is_code(name) for name, _ in segment.writes)
        self.base = dict[int, Any]()  # where pieces begin, while one function is written
        self.shift = list[Any]()  # of pieces, in segments that are run row by row

    def _bases(self, build: ir.IRBuilder, place: Place, pieces: Sequence[int]) -> dict[int, Any]:
        """Where pieces of registers begin, with the turn of the loop in `place.state`."""
        known = dict[tuple[int, Any], Any]()
        return {i: self._base(build, place, i, known) for i in dict.fromkeys(pieces)}

    def _base(
        self, build: ir.IRBuilder, place: Place, i: int, known: dict[tuple[int, Any], Any]
    ) -> Any:
        stride, shift = self.stride[i], self.shift[i] if self.shift else None
        if (stride, shift) not in known:
            at = place.output
            if stride:
                turns = ir.Constant(INT, stride * self.emit.lanes)
                at = build.gep(at, [build.mul(place.state, turns)])
            known[stride, shift] = at if shift is None else build.gep(at, [shift])
        return known[stride, shift]

    def loaded(self, build: ir.IRBuilder, place: Place) -> list[Any]:
        """All entries that are read, in order."""
        base = self._bases(build, place, self.reads)
        both = zip(self.reads, self.read_at, strict=True)
        return [get(self.emit, build, base[i], at) for i, at in both]

    def first_status(self, build: ir.IRBuilder, place: Place) -> Any:
        """The status before the first check."""
        return get(self.emit, build, place.output, STATUS)

    def conclude(
        self, build: ir.IRBuilder, place: Place, status: Any, given: Any, result: Any
    ) -> None:
        """Put the status."""
        del given, result  # once a step is enough
        if self.sets_code:
            return
        put(self.emit, build, place.output, STATUS, self._kept(build, place, STATUS, status))

    def stored(
        self, build: ir.IRBuilder, values: list[Any], place: Place, start: int, result: Finite
    ) -> None:
        """Put entries that are written."""
        del result
        base = self.base or self._bases(build, place, self.writes[start : start + len(values)])
        for k, x in enumerate(values, start):
            to = self.write_at[k]
            put(self.emit, build, base[self.writes[k]], to, self._kept(build, place, to, x))

    def _kept(self, build: ir.IRBuilder, place: Place, to: int, x: Any) -> Any:
        """A number, or the one before where a motion is done: none depends on its neighbours."""
        if not self.frozen:
            return x
        emit = self.emit
        return build.select(self._takes_part(build, place), x, get(emit, build, place.output, to))

    def _takes_part(self, build: ir.IRBuilder, place: Place) -> Any:
        """Which motions are not done, and need this: as it was before anything is stored."""
        function = id(build.function)
        if function not in self.masks:
            emit = self.emit

            def above(at: int) -> Any:
                x = get(emit, build, place.output, at)
                return build.fcmp_ordered(">", x, emit.constant(0.0))

            mask = above(ACTIVE)
            mask = mask if self.when is None else build.and_(mask, above(self.when))
            self.masks[function] = mask
        return self.masks[function]

    def groups(self) -> list[tuple[int, list[int]]]:
        """Each output alone: all lanes of one are together in memory."""
        return [(k, [node]) for k, node in enumerate(self.traced.outputs)]

    def _in_one_function(self, build: ir.IRBuilder, place: Place) -> ir.IRBuilder:
        emit, op = self.emit, self.graph.op
        base = self.base = self._bases(build, place, [*self.reads, *self.writes])
        value, result = dict[int, Any](), Finite(emit)
        status = self.first_status(build, place)

        def fetch(nodes: Sequence[int]) -> None:
            for x in nodes:
                if op[x] == "input" and x not in value:
                    i = self.graph.a[x]
                    value[x] = get(emit, build, base[self.reads[i]], self.read_at[i])

        fetch([self.graph.a[n] for n in self.needed if op[n] in ("sin", "cos")])
        build = emit.angles(build, self.graph, self.needed, value)
        soon, late = dict[int, list[int]](), list[tuple[int, int]]()
        for k, node in enumerate(self.traced.outputs):
            if self.apart[self.writes[k] - self.first_written]:
                soon.setdefault(node, []).append(k)
            else:
                late.append((k, node))
        for node in self.needed:
            fetch(self.graph.arguments(node))
            if node in soon or node in self.checks:
                fetch([node])
            if op[node] != "input":
                build = self.node(build, node, value, place.work)
            if node in self.checks:
                status = emit.checked(build, self.checks[node], value[node], status)
            for k in soon.get(node, ()):
                self.stored(build, [value[node]], place, k, result)
        fetch([node for _, node in late])
        for k, node in late:
            self.stored(build, [value[node]], place, k, result)
        self.conclude(build, place, status, None, None)
        self.base = {}
        return build
