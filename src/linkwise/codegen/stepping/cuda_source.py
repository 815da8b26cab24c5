"""From the segments of a step to CUDA: one thread moves one motion through all its steps.

A segment becomes a function on the registers of a motion (`struct Motion`). One that occurs in a
step several times, the accelerations at each stage, is called; the others are written into the
loop over time, where their registers are registers of the GPU.

    run(q, q_row, q_entry, v, v_row, v_entry, held, held_row, held_step, held_entry, ...,
        h, steps, every, records, failed, out, status, report, count)

takes for each input its address and how many numbers lie between two motions (`row`), two steps
and two entries; 0 where one is for all. `out` is (records, width, count): motions are innermost,
so that the threads of a warp store, and best also read, neighbours. Record r is the state after
r `every` steps; the last one is that after all of them. `status` (int32) and `failed` (int64), a
number for each motion, are 0 and -1, or a code (`scalar/status.py`) and the step that met it. All
records from then on are NaN, or the last state where a condition ended the motion. `report` (one
64-bit number, zero before) counts motions with a code. `seed`, and the number of the
`first` motion, follow where numbers are random.
Steps that resume do not record the beginning: record r is then the state after r + 1 times `every`
steps, and one call without steps makes one record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from linkwise.codegen.c.text import comment
from linkwise.codegen.cuda.source import REGISTERS
from linkwise.codegen.cuda.statement import (
    Constants,
    checked,
    loop_round,
    named,
    operation,
    tables,
    turn,
)
from linkwise.codegen.cuda.text import PRIMITIVES, TURN
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.graph import Graph, Loop
from linkwise.codegen.stepping.noise import cuda_function, cuda_lines
from linkwise.codegen.stepping.stepping import STEP, Segment, Stepping, placed, rounds, straight


@dataclass(frozen=True, slots=True)
class Shape:
    """The launch shape of motions.

    Attributes:
        threads: Of a block, at most; a launch takes fewer when there are few motions.
        registers: Of a thread, at most; as many blocks as fit run on a multiprocessor.
        table: Whether long constants are read from constant memory, not written into the code.
        longest: Operations of a segment from which on it is a function that is called, even if it
            occurs in the step only once: its registers then do not disturb the others.
    """

    threads: int = 128
    registers: int = 255
    table: bool = True
    longest: int = 3000

    @property
    def blocks(self) -> int:
        """Of a multiprocessor, as far as registers go."""
        return max(1, REGISTERS // (self.threads * self.registers))


@dataclass(frozen=True, slots=True)
class MotionSource:
    """The text of a kernel and what a launch has to know."""

    text: str  # the source
    dtype: str  # "float32" or "float64"
    threads: int  # of a block, at most
    # inputs that are held over a step, with their lengths, in the order of arguments
    held: tuple[tuple[str, int], ...]
    primitives: str  # the part of the text that only a GPU understands
    workers: int = 1  # threads of a motion; a block of several has 32 motions
    shared: int = 0  # shared memory of a block [bytes]


def emit_motion(stepping: Stepping, shape: Shape, *, dtype: str, title: list[str]) -> MotionSource:
    """The source of a kernel."""
    return _Emitter(stepping, shape, dtype).source(title)


class _Emitter:
    def __init__(self, stepping: Stepping, shape: Shape, dtype: str) -> None:
        self.stepping, self.shape, self.dtype = stepping, shape, dtype
        self.constant = Constants(dtype, dtype == "float64" and shape.table)
        names = list(stepping.registers)
        self.member = {
            name: name if name.isidentifier() else f"r{i}" for i, name in enumerate(names)
        }
        self.width = sum(n for _, n in stepping.record)
        self.loops = list[Loop]()

    def round_of(self, loop: Loop) -> int:
        """The number of the function of one round of a loop."""
        self.loops.append(loop)
        return len(self.loops) - 1

    def source(self, title: list[str]) -> MotionSource:
        functions = [
            "\n".join(self._function(i, segment)) + "\n"
            for i, segment in enumerate(self.stepping.segments)
        ]
        kernel = "\n".join(self._kernel())
        primitives = PRIMITIVES[self.dtype]
        parts = [
            comment(title),
            "typedef long long i64;\n" + primitives,
            TURN[self.dtype].lstrip(),
            *self.constant.declared(),
            *tables((s.traced.graph for s in self.stepping.segments), self.dtype),
            "\n".join(self._registers()),
            *(["\n".join(cuda_function())] if self.stepping.noise else []),
            *(loop_round(k, loop, self.dtype) for k, loop in enumerate(self.loops)),
            *functions,
            kernel,
        ]
        text = "\n".join(parts) + "\n"
        held = self.stepping.held
        return MotionSource(text, self.dtype, self.shape.threads, held, primitives)

    # -------------------------------------------------------------------------------- segments

    def _registers(self) -> Iterator[str]:
        yield "/* The registers of one motion. */"
        yield "struct Motion {"
        for name, size in self.stepping.registers.items():
            note = "" if self.member[name] == name else f" /* {name!r} */"
            if size:
                yield f"    T {self.member[name]}[{size}];{note}"
        yield "};\n"

    def _called(self, segment: Segment) -> bool:
        work = segment.traced.graph.count(segment.traced.roots).total()
        many = sum(s is segment for s in straight(self.stepping.step)) > 1
        return many or work >= self.shape.longest

    def _function(self, index: int, segment: Segment) -> Iterator[str]:
        inline = "__noinline__" if self._called(segment) else "__forceinline__"
        yield f"/* {segment.name} */"
        yield f"__device__ {inline} void segment{index}(Motion &m, int &code)"
        yield "{"
        yield from (f"    {line}" for line in Body(self, segment).lines())
        yield "}"

    # ---------------------------------------------------------------------------------- motion

    def _kernel(self) -> Iterator[str]:
        stepping, of = self.stepping, self.member
        inputs = [("q", stepping.nq), ("v", stepping.nv)]
        yield 'extern "C" __global__ void'
        yield f"__launch_bounds__({self.shape.threads}, {self.shape.blocks})"
        yield from head(stepping)
        yield "    const i64 me = (i64)blockIdx.x * blockDim.x + threadIdx.x;"
        yield "    if (me >= count) return;"
        yield "    Motion m;"
        yield "    int code = 0;"
        yield "    i64 record = 0, pause = every, lost = -1;"
        yield f"    m.{of[STEP]}[0] = h;"
        for name, size in inputs:
            for i in range(size):
                yield f"    m.{of[name]}[{i}] = in_{name}[me * {name}_row + {i} * {name}_entry];"
        yield "    T *to = out + me;"
        if not stepping.resumes:
            yield from (f"    {line}" for line in self._recorded(first=True))
        yield from (f"    {line}" for line in self._calls(straight(stepping.enter)))
        for i in range(len(stepping.held)):
            yield f"    const T *given{i} = held{i} + me * row{i};"
        if stepping.resumes:
            yield "    if (!steps) {"
            yield from (f"        {line}" for line in self._given())
            yield from (f"        {line}" for line in self._calls(straight(stepping.leave)))
            yield from (f"        {line}" for line in self._recorded())
            yield "    }"
        yield "#pragma unroll 1"
        yield "    for (i64 i = 0; i < steps && !code; ++i) {"
        yield from (f"        {line}" for line in self._step())
        yield "    }"
        if stepping.stops:
            yield f"    if (code >= {stepping.stops}) {{"
            yield from (f"        {line}" for line in self._calls(straight(stepping.leave)))
            yield "#pragma unroll 1"
            yield "        while (record < records) {"
            yield from (f"            {line}" for line in self._recorded())
            yield "        }"
            yield "    }"
        yield "#pragma unroll 1"
        yield "    for (; record < records; ++record) {"
        yield f"        for (int j = 0; j < {self.width}; ++j) to[j * count] = NOT_A_NUMBER;"
        yield f"        to += {self.width} * count;"
        yield "    }"
        yield "    if (code) atomicAdd(report, 1ull);"
        yield "    status[me] = code;"
        yield "    failed[me] = lost;"
        yield "}"

    def _given(self) -> Iterator[str]:
        """What is held over the next step, into its registers."""
        for i, (name, size) in enumerate(self.stepping.held):
            for j in range(size):
                yield f"m.{self.member[name]}[{j}] = given{i}[{j} * entry{i}];"
            yield f"given{i} += step{i};"

    def _step(self) -> Iterator[str]:
        stepping = self.stepping
        yield from self._given()
        for chance in stepping.noise:
            yield from cuda_lines(chance, self.member[chance.register])
        yield from self._calls(straight(stepping.step))
        yield from self._finite()
        yield "if (code) lost = i;"
        yield "else if (--pause == 0 || i + 1 == steps) {"
        yield "    pause = every;"
        yield from (f"    {line}" for line in self._calls(straight(stepping.leave)))
        yield from (f"    {line}" for line in self._recorded())
        yield "}"

    def entry(self, name: str, i: int = 0) -> str:
        """A number of a register, or of a part of one."""
        register, start = placed(name)
        return f"m.{self.member[register]}[{start + i}]"

    target = entry

    def _calls(self, segments: tuple[Segment, ...]) -> Iterator[str]:
        for group in rounds(segments):
            assert isinstance(group, tuple)
            if not group[0].again:
                yield self._call(group[0])
                continue
            wish = self.entry(group[0].again)
            yield f"{wish} = 1;"
            yield f"for (int k = 0; k < {group[0].most} && {wish} > 0; ++k) {{"
            yield from (f"    {self._call(segment)}" for segment in group)
            yield "}"

    def _call(self, segment: Segment) -> str:
        index = next(i for i, s in enumerate(self.stepping.segments) if s is segment)
        condition = f"if ({self.entry(segment.when)} > 0) " if segment.when else ""
        return f"{condition}segment{index}(m, code);"

    def _recorded(self, *, first: bool = False) -> Iterator[str]:
        """q, v and what else is shown of this motion into the next record; before steps, zeros."""
        start = 0
        for name, size in self.stepping.record:
            for j in range(size):
                known = not first or name in ("q", "v")
                value = f"m.{self.member[name]}[{j}]" if known else "(T)0"
                yield f"to[{start + j} * count] = {value};"
            start += size
        yield f"to += {self.width} * count;"
        yield "++record;"

    def _finite(self) -> Iterator[str]:
        """Trouble if the state is not finite: first their sum, then each of them."""
        sizes = self.stepping.registers
        state = [f"m.{self.member[r]}[{j}]" for r in self.stepping.state for j in range(sizes[r])]
        yield "float sum = 0.0f;"
        yield from (f"sum += watch({x});" for x in state)
        yield "if (!(fabsf(sum) <= 3.0e38f) && !code) {"
        yield "    bool sound = true;"
        yield from (f"    sound = sound && {x} - {x} == (T)0;" for x in state)
        yield f"    if (!sound) code = {status.RESULT};"
        yield "}"


class Emits(Protocol):
    """What the statements of a segment are written for."""

    @property
    def dtype(self) -> str:
        """Kind of numbers."""
        ...

    @property
    def constant(self) -> Constants:
        """The text of constants."""
        ...

    def entry(self, name: str, i: int = 0) -> str:
        """A number of a register, or of a part of one."""
        ...

    def target(self, name: str, i: int = 0) -> str:
        """The same, to be written."""
        ...

    def round_of(self, loop: Loop) -> int:
        """The number of the function of one round of a loop."""
        ...


class Body:
    """The statements of a segment: values in the order they were made."""

    def __init__(
        self, emitter: Emits, segment: Segment, *, only: Collection[int] = (), early: bool = False
    ) -> None:
        """Prepare it.

        Args:
            emitter: What it is written for.
            segment: The segment.
            only: Places of results that are computed and stored; nothing for all of them.
            early: Whether all registers are read before anything is computed.
        """
        self.e, self.segment, self.dtype = emitter, segment, emitter.dtype
        self.traced, self.graph = segment.traced, segment.traced.graph
        self.turned: set[int] = set()
        self.looped: set[int] = set()
        self.places = [(name, i) for name, size in segment.reads for i in range(size)]
        self.only, self.early = only or range(len(self.traced.outputs)), early

    def lines(self) -> Iterator[str]:
        """A register is read where it is first needed and written as soon as its value is there.

        Both keep fewer values alive. What is read and written again has to be read first.
        """
        graph, traced = self.graph, self.traced
        outputs = [traced.outputs[i] for i in self.only]
        checks = traced.checks if len(outputs) == len(traced.outputs) else ()
        used = graph.used([*outputs, *(check.node for check in checks)])
        read_, written = (
            {placed(name)[0] for name, _ in x} for x in (self.segment.reads, self.segment.writes)
        )
        again = read_ & written
        first = {graph.a[n] for n in used if graph.op[n] in ("sin", "cos")}
        inputs = [n for n in used if graph.op[n] == "input"]
        first |= {n for n in inputs if self.early or placed(self.places[graph.a[n]][0])[0] in again}
        places = [(name, i) for name, size in self.segment.writes for i in range(size)]
        stores = dict[int, list[str]]()
        for (register, i), n in ((places[k], traced.outputs[k]) for k in self.only):
            stores.setdefault(n, []).append(f"{self.e.target(register, i)} = {self._name(n)};")
        known = set[int]()

        def read(n: int) -> Iterator[str]:
            if graph.op[n] == "input" and n not in known:
                known.add(n)
                register, i = self.places[graph.a[n]]
                yield f"const T t{n} = {self.e.entry(register, i)};"

        for n in sorted(first):
            yield from read(n)
        yield from self._wrapped(used)
        for n in used:
            if graph.op[n] in ("sin", "cos"):
                yield from self._turn(graph.a[n])
            elif graph.op[n] == "part":
                for x in graph.arguments(n):
                    yield from read(x)
                yield from self._loop(graph.a[n])
                yield from stores.pop(n, ())
            elif graph.op[n] not in ("const", "input"):
                for x in graph.arguments(n):
                    yield from read(x)
                yield f"const T t{n} = {self._formula(n)};"
                yield from stores.pop(n, ())
        for check in checks:
            yield from read(check.node)
            name = self._name(check.node)
            yield from checked(name, check.low, check.high, check.code, self.dtype)
        for n in stores:
            yield from read(n)
        for each in stores.values():
            yield from each

    def _wrapped(self, used: list[int]) -> Iterator[str]:
        """Angles that are read from registers: all are looked at together, few are ever large."""
        graph = self.graph
        turns = {graph.a[n]: None for n in used if graph.op[n] in ("sin", "cos")}
        angles = [a for a in turns if graph.op[a] == "input"]
        if not angles:
            return
        yield from (f"T a{a} = t{a};" for a in angles)
        yield f"T widest = size_of(t{angles[0]});"
        yield from (f"widest = larger(widest, size_of(t{a}));" for a in angles[1:])
        yield "if (widest > LARGEST) {"
        yield from (f"    a{a} = wrapped(a{a});" for a in angles)
        yield "}"

    def _turn(self, angle: int) -> Iterator[str]:
        if angle in self.turned:
            return
        self.turned.add(angle)
        if self.graph.op[angle] != "input":
            yield from turn(angle, self._name(angle))
            return
        yield f"T s{angle}, c{angle};"
        yield f"turn(a{angle}, s{angle}, c{angle});"

    def _loop(self, number: int) -> Iterator[str]:
        """All rounds of a loop: x, and behind it whether there should be another."""
        if number in self.looped:
            return
        self.looped.add(number)
        loop = self.graph.plain_loops[number]
        names = [self._name(n) for n in loop.inputs]
        x, given = names[: loop.size + 1], names[loop.size + 1 :] or ["(T)0"]
        yield f"T loop{number}[{loop.size + 1}] = {{{', '.join(x)}}};"
        yield f"const T given{number}[{len(given)}] = {{{', '.join(given)}}};"
        yield f"for (int k = 0; k < {loop.most} && loop{number}[{loop.size}] > (T)0; ++k)"
        yield f"    round{self.e.round_of(loop)}(loop{number}, given{number});"

    def _name(self, n: int) -> str:
        graph = self.graph
        if graph.op[n] == "const":
            return self.e.constant(graph.value[n])
        if graph.op[n] == "part":
            return f"loop{graph.a[n]}[{graph.b[n]}]"
        if graph.op[n] in ("sin", "cos"):
            return f"{graph.op[n][0]}{graph.a[n]}"
        return f"t{n}"

    def _formula(self, n: int) -> str:
        graph: Graph = self.graph
        names = [self._name(x) for x in (graph.a[n], graph.b[n]) if x >= 0]
        return operation(named(graph, n), names, self.dtype)


def head(stepping: Stepping) -> Iterator[str]:
    """Name and parameters of a kernel, as `cuda_device.py` launches it, and its opening brace."""
    yield "run(const T *__restrict__ in_q, i64 q_row, i64 q_entry,"
    yield "    const T *__restrict__ in_v, i64 v_row, i64 v_entry,"
    for i, (name, _) in enumerate(stepping.held):
        yield f"    const T *__restrict__ held{i}, i64 row{i}, i64 step{i}, i64 entry{i},"
        yield f"    /* {name!r} */"
    yield "    T h, i64 steps, i64 every, i64 records, i64 *__restrict__ failed,"
    yield "    T *__restrict__ out, int *__restrict__ status,"
    seed = ", i64 seed, i64 first, i64 past" if stepping.noise else ""
    yield f"    unsigned long long *__restrict__ report, i64 count{seed})"
    yield "{"
