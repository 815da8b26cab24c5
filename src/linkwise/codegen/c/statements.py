"""Segments and loops (`codegen.stepping`) as C: functions on one array of numbers.

Each segment becomes a function `NAME_i(m, t)` of the memory m and the turn t of the loop around it;
loops become loops. Nothing is allocated: all registers, and the code of what failed, are in m.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from linkwise.codegen.c.emit import Straight, sincos_function
from linkwise.codegen.c.header import Interface
from linkwise.codegen.c.text import condition, number
from linkwise.codegen.stepping.llvm import CODE, STATUS
from linkwise.codegen.stepping.stepping import Segment, Statement, flat, placed


class Statements:
    """The functions of statements, and the lines that call them.

    Attributes:
        name: Of the function they belong to.
        offset: Where each register begins.
        size: Numbers of the memory.
    """

    def __init__(self, name: str, registers: Mapping[str, int], statements: tuple[Statement, ...]):
        """Place the registers.

        Args:
            name: Of the function they belong to.
            registers: All registers with their lengths.
            statements: What is written.
        """
        self.name, self._statements = name, statements
        self.offset, self.size = {CODE: STATUS}, STATUS + 1
        for register, length in registers.items():
            if register != CODE:
                self.offset[register] = self.size
                self.size += length
        self._number = {id(s): i for i, s in enumerate(flat(statements))}

    def functions(self) -> Iterator[str]:
        """A function for each segment."""
        for segment in flat(self._statements):
            yield from self._segment(segment)

    def calls(self) -> Iterator[str]:
        """The lines of the body of a function that has the memory m."""
        yield from self._calls(self._statements, "0", 0)

    # ------------------------------------------------------------------------------ loops

    def _calls(self, statements: tuple[Statement, ...], turn: str, depth: int) -> Iterator[str]:
        space = "    " * (depth + 1)
        for x in statements:
            if isinstance(x, Segment):
                assert not x.again and not x.when
                yield f"{space}{self.name}_{self._number[id(x)]}(m, {turn});"
                continue
            index = f"t{depth}"
            alive = f" && m[{self.offset[x.again]}] > 0.0" if x.again else ""
            yield f"{space}for (long {index} = 0; {index} < {x.count}{alive}; ++{index}) {{"
            inner = f"{x.count - 1} - {index}" if x.down else index
            yield from self._calls(x.body, inner, depth + 1)
            yield f"{space}}}"

    # --------------------------------------------------------------------------- segments

    def _segment(self, segment: Segment) -> Iterator[str]:
        name = f"{self.name}_{self._number[id(segment)]}"
        face = Interface(name, "float64", (), (), (), (), "", (), "")
        pieces = (*segment.reads, *segment.writes)
        body = Straight(segment.traced, face)
        ops = segment.traced.graph.count(segment.traced.roots)
        if ops["sin"] + ops["cos"]:
            yield sincos_function(name, "float64")
        entries = [f"a{i}[{j}]" for i, (_, size) in enumerate(segment.reads) for j in range(size)]
        named = dict[int, str]()
        lines = list(body.straight(entries, "out", named))
        yield from body.rounds
        head = [f"/* {segment.name} */", f"static void {name}(double *m, long t)", "{"]
        space = "    "
        wide = len(pieces)
        if segment.rows:
            flat_rows = ", ".join(str(x) for row in segment.rows for x in row)
            head.append(f"    static const int shift[] = {{{flat_rows}}};")
            head.append(f"    for (long n = 0; n < {len(segment.rows)}; ++n) {{")
            space = "        "
        head.append(f"{space}double out[{max(len(segment.traced.outputs), 1)}];")
        head.append(f"{space}int i = 0;")
        moves = dict(segment.moves)
        for i, (piece, _) in enumerate(pieces):
            register, start = placed(piece)
            at = f"m + {self.offset[register] + start}"
            if moves.get(piece):
                at += f" + {moves[piece]} * t"
            if segment.rows:
                at += f" + shift[{wide} * n + {i}]"
            const = "const " if i < len(segment.reads) else ""
            head.append(f"{space}{const}double *a{i} = {at};")
        tail = list[str]()
        for check in segment.traced.checks:
            inside = condition(named[check.node], check.low, check.high, "float64")
            tail.append(f"{space}if (m[{STATUS}] == 0.0 && !({inside})) {{")
            tail.append(f"{space}    m[{STATUS}] = {number(float(check.code), 'float64')};")
            tail.append(f"{space}}}")
        tail += [f"{space}(void)a{i};" for i in range(len(segment.reads))]
        done = 0
        for i, (_, size) in enumerate(segment.writes, len(segment.reads)):
            tail.append(f"{space}for (i = 0; i < {size}; ++i) {{")
            tail.append(f"{space}    a{i}[i] = out[{done} + i];")
            tail.append(f"{space}}}")
            done += size
        tail.append(f"{space}(void)t;")
        if segment.rows:
            tail.append("    }")
        yield "\n".join([*head, *lines, *tail, "}", ""])
