"""Statements of many motions on a GPU, launch by launch.

A stage is what one launch does, for all motions that are given:

    thread     a thread makes all statements of a motion
    apart      turns of a loop that need nothing of each other: a thread makes one turn of a motion
    shared     a loop over tiles (`Segment.rows`): the warps of a block share its motions, and meet
               after each statement. A warp has the same tile of different motions, so that its
               lanes never part; what only this stage needs is in shared memory

Registers are in one array (groups, numbers, 32): the motions of a group are innermost, so that the
threads of a warp read neighbours. What is the same for all motions is in another array, once.

    NAME(m, g, which, count, outer)

takes both arrays, the numbers of the motions that go on and how many they are, and the turn of the
loop around the stages. Behind the numbers are those of motions of no use, for lanes that are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from linkwise.codegen.c.text import comment
from linkwise.codegen.cuda.statement import Constants, loop_round, tables
from linkwise.codegen.cuda.text import MEETING, PRIMITIVES, TURN
from linkwise.codegen.scalar.graph import Loop as Rounds
from linkwise.codegen.stepping.cuda_group import MULTIPROCESSOR
from linkwise.codegen.stepping.cuda_source import Body
from linkwise.codegen.stepping.llvm import CODE, is_code
from linkwise.codegen.stepping.stepping import Loop, Segment, Statement, Stepping, flat, placed

GROUP = 32
"""Motions that are neighbours in memory, and threads of a warp."""

WARPS = 8
"""Of a block that shares its motions: with more, each has fewer registers."""

THREADS = {"thread": 32, "apart": 64}
"""Of other blocks: few, so that few motions are on all multiprocessors."""

DEALT = 24
"""Operations of a segment from which on its results are dealt out to warps."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What one launch does.

    Attributes:
        kind: "thread", "apart" or "shared".
        statements: Of a motion; of a loop that is apart, its body.
        turns: Turns that are made at the same time.
        when: A register: motions in which it is not above zero are left out. Nothing for none.
        copies: Registers of which each turn has its own part, and their distances.
    """

    kind: str
    statements: tuple[Statement, ...]
    turns: int = 1
    when: str = ""
    copies: tuple[tuple[str, int], ...] = ()


def staged(statements: Sequence[Statement], when: str = "") -> tuple[Stage, ...]:
    """Statements as stages.

    Args:
        statements: The statements.
        when: A register of motions for which they are meant.
    """
    out, run = list[Stage](), list[Statement]()

    def close() -> None:
        if run:
            out.append(Stage("thread", tuple(run), when=when))
            run.clear()

    for x in statements:
        if isinstance(x, Loop) and x.apart:
            close()
            out.append(Stage("apart", x.body, x.count, when, x.copies))
        elif isinstance(x, Loop) and x.count == 1 and x.again and not when:
            close()
            out += staged(x.body, x.again)
        elif isinstance(x, Loop) and any(s.rows for s in flat(x.body)):
            before = list[Statement]()  # what begins it belongs to it
            while run and isinstance(run[-1], Segment):
                before.insert(0, run.pop())
            close()
            out.append(Stage("shared", (*before, x), when=when))
        else:
            run.append(x)
    close()
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch of a stage has to know.

    Attributes:
        name: Of the function.
        about: The segments that it runs.
        threads: Of a block.
        motions: Of a block.
        turns: Turns that are made at the same time.
        shared: Shared memory of a block [bytes].
    """

    name: str
    about: str
    threads: int
    motions: int
    turns: int
    shared: int


@dataclass(frozen=True, slots=True)
class StagesSource:
    """The text of all stages, and where registers are.

    Attributes:
        text: The source.
        primitives: The part of the text that only a GPU understands.
        launches: Of each part, its launches in order.
        offset: Where registers of motions begin.
        size: Numbers of a motion.
        common: Where registers begin that all motions share.
        width: Numbers of these.
    """

    text: str
    primitives: str
    launches: tuple[tuple[Launch, ...], ...]
    offset: dict[str, int]
    size: int
    common: dict[str, int]
    width: int


def emit_stages(
    stepping: Stepping,
    parts: Sequence[tuple[Statement, ...]],
    common: Collection[str],
    *,
    title: list[str],
    room: int = MULTIPROCESSOR,
) -> StagesSource:
    """The source of statements in float64.

    Args:
        stepping: What has the registers.
        parts: Statements that are launched one after another.
        common: Registers with the same numbers for all motions, which no statement writes.
        title: Lines of a comment.
        room: Shared memory that a block may have [bytes].
    """
    return _Emitter(stepping, parts, common, room).source(title)


class _Emitter:
    dtype = "float64"

    def __init__(
        self,
        stepping: Stepping,
        parts: Sequence[tuple[Statement, ...]],
        common: Collection[str],
        room: int,
    ) -> None:
        self.parts = [staged(x) for x in parts]
        self.constant = Constants(self.dtype, True)
        self.loops = list[Rounds]()
        self.declared = list[str]()
        stages = [stage for part in self.parts for stage in part]
        self.sizes = {CODE: 1} | stepping.registers
        for stage in stages:
            for name, apart in stage.copies:
                self.sizes[name] = max(self.sizes[name], apart * stage.turns)
        self.common, self.width = _placed([x for x in self.sizes if x in common], self.sizes)
        used = [_registers(s) for s in stages]
        users = {
            name: [s for s, names in zip(stages, used, strict=True) if name in names]
            for name in self.sizes
        }
        lasting = {*(x for x, _ in (*stepping.begins, *stepping.shown)), CODE}
        self.block: dict[int, tuple[dict[str, int], int]] = {}  # registers in shared memory
        inner = set[str]()
        for stage in (x for x in stages if x.kind == "shared"):
            names = [
                x for x, uses in users.items()
                if uses == [stage] and x not in lasting and x not in common
                and not any(moves for moves in _moves(stage, x))
            ]  # fmt: skip
            self.block[id(stage)] = _placed(names, self.sizes)
            inner |= set(names)
        for stage in (x for x in stages if x.kind == "shared"):
            if self._motions(stage, room) == 0:  # too large: all of it stays in global memory
                inner -= set(self.block[id(stage)][0])
                self.block[id(stage)] = {}, 0
        self.room = room
        rest = [x for x in self.sizes if x not in inner and x not in common]
        self.offset, self.size = _placed(rest, self.sizes)

    def _motions(self, stage: Stage, room: int) -> int:
        """Motions of a block of a stage that shares them."""
        each = 8 * self.block[id(stage)][1]
        return next((x for x in (32, 16, 8) if x * each <= room), 0)

    def round_of(self, loop: Rounds) -> int:
        """The number of the function of one round of a loop."""
        self.loops.append(loop)
        return len(self.loops) - 1

    # ---------------------------------------------------------------------------------- source

    def source(self, title: list[str]) -> StagesSource:
        kernels, launches, segments = list[str](), list[tuple[Launch, ...]](), list[Segment]()
        for i, part in enumerate(self.parts):
            row = list[Launch]()
            for j, stage in enumerate(part):
                writer = _Writer(self, stage, f"stage{i}_{j}", self._motions_of(stage))
                text, launch = writer.kernel()
                kernels.append(text)
                row.append(launch)
                segments += flat(stage.statements)
            launches.append(tuple(row))
        special = PRIMITIVES[self.dtype] + MEETING[True]
        primitives = f"#define WORKERS {WARPS}\n{special}"
        text = [
            comment(title),
            "typedef long long i64;\n" + primitives,
            TURN[self.dtype].lstrip(),
            *self.constant.declared(),
            *tables((s.traced.graph for s in segments), self.dtype),
            *self.declared,
            *(loop_round(k, loop, self.dtype, inline=True) for k, loop in enumerate(self.loops)),
            "extern __shared__ __align__(16) T memory[];\n",
            *kernels,
        ]
        return StagesSource(
            "\n".join(text) + "\n", primitives, tuple(launches), self.offset, self.size,
            self.common, self.width,
        )  # fmt: skip

    def _motions_of(self, stage: Stage) -> int:
        if stage.kind != "shared":
            return THREADS[stage.kind]
        return self._motions(stage, self.room) if self.block[id(stage)][1] else GROUP


class _Writer:
    """The functions of one stage."""

    def __init__(self, emitter: _Emitter, stage: Stage, name: str, motions: int) -> None:
        self.e, self.stage, self.name, self.motions = emitter, stage, name, motions
        self.workers = GROUP * WARPS // motions if stage.kind == "shared" else 1
        self.block, inner = emitter.block.get(id(stage), ({}, 0))
        self.shared = 8 * motions * inner
        self.number = {id(s): i for i, s in enumerate(flat(stage.statements))}

    def kernel(self) -> tuple[str, Launch]:
        """All of them, the kernel last."""
        stage, meeting = self.stage, self.stage.kind == "shared"
        threads = GROUP * WARPS if meeting else self.motions
        functions = ["\n".join(self._function(s)) for s in flat(stage.statements)]
        lines = [f'extern "C" __global__ void __launch_bounds__({threads}, 1)']
        lines += [f"{self.name}(T *m, const T *g, const int *which, int count, int outer)", "{"]
        if meeting:
            assert not stage.when
            lines.append(f"    const int lane = threadIdx.x % {self.motions};")
            lines.append(f"    const int worker = threadIdx.x / {self.motions};")
            lines.append(f"    const int n = blockIdx.x * {self.motions} + lane;")
            lines.append("    const int p = which[n];")
            lines.append("    T *const s = memory + lane;")
        else:
            lines.append(f"    const int blocks = (count + {threads - 1}) / {threads};")
            lines.append(f"    const int n = blockIdx.x % blocks * {threads} + threadIdx.x;")
            lines.append("    if (n >= count) return;")
            lines.append("    const int p = which[n], worker = 0;")
            lines.append("    T *const s = 0;")
        place = f"(i64)(p / {GROUP}) * {GROUP * self.e.size} + p % {GROUP}"
        lines.append(f"    T *const r = m + {place};")
        apart = "(int)(blockIdx.x / blocks)" if stage.kind == "apart" else "0"
        lines.append(f"    const int copy = {apart};")
        if stage.when:
            lines.append(f"    if (!({self.entry(stage.when)} > (T)0)) return;")
        turn = "outer" if stage.kind != "apart" else "copy"
        lines += self._calls(stage.statements, turn, 0)
        lines.append("}\n")
        text = "\n".join([*functions, "\n".join(lines)])
        about = ", ".join(dict.fromkeys(s.name for s in flat(stage.statements)))
        return text, Launch(self.name, about, threads, self.motions, stage.turns, self.shared)

    def _calls(self, statements: tuple[Statement, ...], turn: str, depth: int) -> Iterator[str]:
        space = "    " * (depth + 1)
        meeting = self.stage.kind == "shared"
        for i, x in enumerate(statements):
            if isinstance(x, Segment):
                assert not x.again and not x.when
                yield f"{space}{self.name}_{self.number[id(x)]}(r, s, g, {turn}, copy, worker);"
                after = statements[i + 1] if i + 1 < len(statements) else None
                # tiles of neighbours with the same name are of different places
                alike = x.rows and isinstance(after, Segment) and after.name == x.name
                if meeting and not (alike and isinstance(after, Segment) and after.rows):
                    yield f"{space}meet(0);"
                continue
            index = f"t{depth}"
            assert not (meeting and x.again)
            alive = f" && {self.entry(x.again)} > (T)0" if x.again else ""
            yield "#pragma unroll 1"
            yield f"{space}for (int {index} = 0; {index} < {x.count}{alive}; ++{index}) {{"
            inner = f"{x.count - 1} - {index}" if x.down else index
            yield from self._calls(x.body, inner, depth + 1)
            yield f"{space}}}"

    # -------------------------------------------------------------------------------- segments

    def entry(self, name: str, i: int = 0) -> str:
        """A number of a register that does not move."""
        pointer, step = self.pointer(name)
        return f"({pointer})[{step * i}]"

    def pointer(self, name: str) -> tuple[str, int]:
        """The first number of a register or of a part of one, and the distance of two."""
        register, start = placed(name)
        register = CODE if is_code(register) else register
        if register in self.e.common:
            base, step = f"g + {self.e.common[register] + start}", 1
        elif register in self.block:
            step = self.motions
            base = f"s + {step * (self.block[register] + start)}"
        else:
            base, step = f"r + {GROUP * (self.e.offset[register] + start)}", GROUP
        apart = dict(self.stage.copies).get(register, 0)
        return f"{base} + {step * apart} * copy" if apart else base, step

    def _function(self, segment: Segment) -> Iterator[str]:
        number = self.number[id(segment)]
        pieces = (*segment.reads, *segment.writes)
        moves, variables, shifts = dict(segment.moves), list[str](), list[str]()
        if segment.rows:
            variables, shifts = self._rows(segment, number)
        yield f"/* {segment.name} */"
        yield f"__device__ __forceinline__ void {self.name}_{number}("
        yield "    T *const r, T *const s, const T *const g, const int t, const int copy,"
        yield "    const int worker)"
        yield "{"
        yield "    (void)s, (void)g, (void)t, (void)copy, (void)worker;"
        if segment.rows:
            yield "#pragma unroll 2"
            count = len(segment.rows)
            first = self._first_worker(segment)
            begin = f"(worker + {self.workers - first}) % {self.workers}" if first else "worker"
            yield f"    for (int n = {begin}; n < {count}; n += {self.workers}) {{"
        yield from (f"    {x}" for x in variables)
        at = list[str]()
        for i, (piece, _) in enumerate(pieces):
            pointer, step = self.pointer(piece)
            if moves.get(piece):
                pointer += f" + {step * moves[piece]} * t"
            if segment.rows and shifts[i]:
                pointer += f" + {step} * ({shifts[i]})"
            const = "const " if i < len(segment.reads) else ""
            at.append(f"    {const}T *const at{i} = {pointer};")
        yield from at
        yield from (f"    {x}" for x in self._code(segment))
        if segment.rows:
            yield "    }"
        yield "}\n"

    def _code(self, segment: Segment) -> Iterator[str]:
        entries = _Entries(self, segment)
        # where steps follow each other, all loads of one are under way at the same time
        early = any(isinstance(x, Loop) for x in self.stage.statements)
        if segment.rows or self.workers == 1:
            early = early and not segment.rows
            yield from self._checked(segment, Body(entries, segment, early=early).lines())
            return
        for w, results in enumerate(_dealt(segment, self.workers)):
            yield f"if (worker == {w}) {{"
            body = Body(entries, segment, only=results)
            yield from self._checked(segment, body.lines())
            yield "}"

    def _checked(self, segment: Segment, lines: Iterator[str]) -> Iterator[str]:
        if not segment.traced.checks:
            yield from lines
            return
        yield "int code = 0;"
        yield from lines
        there = self.entry(CODE)
        yield f"if (code && {there} == (T)0) {there} = (T)code;"

    def _first_worker(self, segment: Segment) -> int:
        """The worker that begins: those before are busy with tiles of the same name."""
        name, begun, next_ = "", 0, 0
        for x in flat(self.stage.statements):
            begun = next_ if x.name == name else 0
            if x is segment:
                break
            name, next_ = x.name, begun + len(x.rows)
        return begun % self.workers

    def _rows(self, segment: Segment, number: int) -> tuple[list[str], list[str]]:
        """Variables with the shifts of a row, and the shift of each piece.

        Pieces whose shifts differ by the same number in all rows share a variable.
        """
        columns = list(zip(*segment.rows, strict=True))
        known = dict[tuple[int, ...], int]()
        shifts = list[str]()
        for column in columns:
            off = column[0]
            shape = tuple(x - off for x in column)
            if not any(shape):
                shifts.append(str(off) if off else "")
                continue
            shifts.append(f"x{known.setdefault(shape, len(known))} + {off}")
        wide = max(len(known), 1)
        flat_rows = [str(x) for row in zip(*known, strict=True) for x in row] or ["0"]
        table = f"{self.name}_rows{number}"
        self.e.declared.append(f"__constant__ int {table}[] = {{{', '.join(flat_rows)}}};\n")
        return [f"const int x{i} = {table}[{wide} * n + {i}];" for i in range(len(known))], shifts


class _Entries:
    """How the numbers of the pieces of a segment are called."""

    def __init__(self, writer: _Writer, segment: Segment) -> None:
        self.constant, self.dtype, self.round_of = (
            writer.e.constant, writer.e.dtype, writer.e.round_of,
        )  # fmt: skip
        reads, writes = ([name for name, _ in x] for x in (segment.reads, segment.writes))
        self._step = {name: writer.pointer(name)[1] for name in (*reads, *writes)}
        self._reads = {name: i for i, name in enumerate(reads)}
        self._writes = {name: i for i, name in enumerate(writes, len(reads))}

    def entry(self, name: str, i: int = 0) -> str:
        """A number of a piece that is read."""
        return f"at{self._reads[name]}[{self._step[name] * i}]"

    def target(self, name: str, i: int = 0) -> str:
        """A number of a piece that is written."""
        return f"at{self._writes[name]}[{self._step[name] * i}]"


def _placed(names: list[str], sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Where registers begin, one after another, and where the last one ends."""
    offset, top = dict[str, int](), 0
    for name in names:
        offset[name] = top
        top += sizes[name]
    return offset, top


def _registers(stage: Stage) -> set[str]:
    out = {stage.when}
    for s in flat(stage.statements):
        out |= {placed(name)[0] for name, _ in (*s.reads, *s.writes)}
        out |= {CODE} if s.traced.checks else set()
    loops = [x for x in stage.statements if isinstance(x, Loop)]
    while loops:
        x = loops.pop()
        out.add(x.again)
        loops += [y for y in x.body if isinstance(y, Loop)]
    return out


def _moves(stage: Stage, register: str) -> Iterator[int]:
    """By how much a register moves with turns of a loop."""
    for s in flat(stage.statements):
        yield from (by for name, by in s.moves if placed(name)[0] == register)


def _dealt(segment: Segment, workers: int) -> list[list[int]]:
    """Results of a segment for each worker: those that share much of their work together.

    Those that read what another one writes are made by one worker, which reads first.
    """
    graph, outputs = segment.traced.graph, segment.traced.outputs
    both = {placed(n)[0] for n, _ in segment.reads} & {placed(n)[0] for n, _ in segment.writes}
    inputs = [placed(name)[0] for name, size in segment.reads for _ in range(size)]
    registers = [placed(name)[0] for name, size in segment.writes for _ in range(size)]
    if segment.traced.checks:
        return [list(range(len(outputs)))]
    groups, tied = list[tuple[list[int], set[int]]](), (list[int](), set[int]())
    for k, node in enumerate(outputs):
        used = graph.used([node])
        cone = {n for n in used if graph.op[n] not in ("const", "input")}
        reads = {inputs[graph.a[n]] for n in used if graph.op[n] == "input"}
        if registers[k] in both or reads & both:
            group = tied
        elif groups and len(cone & groups[-1][1]) >= DEALT:
            group = groups[-1]
        else:
            group = list[int](), set[int]()
            groups.append(group)
        group[0].append(k)
        group[1].update(cone)
    out, busy = [list[int]() for _ in range(workers)], [0] * workers
    for results, cone in sorted([tied, *groups], key=lambda x: -len(x[1])):
        w = busy.index(min(busy))
        out[w] += results
        busy[w] += len(cone) + len(results)
    return [sorted(x) for x in out if x]
