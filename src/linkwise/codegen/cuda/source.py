"""From a scalar graph to CUDA: one source that the GPU's compiler turns into a kernel.

32 states are a group. One warp computes a group, one state a lane, in straight-line code; for large
robots several warps (workers) share it, each with the code of some limbs (`split.py`), and exchange
values in shared memory, where they meet between phases. Limbs of equal build run the same code
(`limb_family.py`), so that it fits into the instruction cache. Blocks stay and take one group after
another; while one is computed, the rows of the next are on their way into shared memory.

    run(q, q_step, ..., out, status, report, count)

takes for each input its address and the numbers between two rows (0: one row for all states); rows
of `out` are contiguous. `status` (int32 a state) and `report` (two 64-bit numbers, zero before:
how many states are in trouble, and the complement of the first of them) may be null.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from linkwise.codegen.c.text import comment, condition, number
from linkwise.codegen.cuda.split import Key
from linkwise.codegen.cuda.statement import Constants, loop_round, operation, turn
from linkwise.codegen.cuda.text import COLLECTED, COPIES, MEETING, PRIMITIVES, ROWS, TURN
from linkwise.codegen.cuda.worker_code import WorkerCode
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.graph import Graph
from linkwise.codegen.scalar.trace import Traced

REGISTERS = 65536
"""Registers of a multiprocessor, 32 bits each, on all GPUs since 2014."""

WIDEST = 64
"""Rows longer than this do not go through shared memory as they are."""

PITCH = 33
"""Numbers between collected values in shared memory: 32 states, and one so that banks differ."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The launch shape of a kernel.

    Attributes:
        groups: Groups of 32 states in a block.
        registers: Of a thread, at most; as many blocks as fit run on a multiprocessor.
        table: Whether long constants are read from constant memory, not written into the code.
        ahead: Whether the rows of the next group are fetched while one is computed.
        stay: Whether only as many blocks are started as fit on the GPU, each taking group after
            group; else there is a block for each group.
        collect: Whether the values of long rows of results, each once, are collected in shared
            memory and stored row by row; else each thread stores its own row, number by number.
    """

    groups: int
    registers: int
    table: bool = False
    ahead: bool = True
    stay: bool = True
    collect: bool = True


@dataclass(frozen=True, slots=True)
class CudaSource:
    """The text of a kernel and what a launch has to know."""

    text: str  # the source
    dtype: str  # "float32" or "float64"
    threads: int  # of a block
    states: int  # that a block computes at a time
    shared: int  # shared memory of a block [bytes]
    blocks: int  # of a multiprocessor at a time, as far as registers go
    stay: bool  # whether no more blocks are started than run at a time
    primitives: str  # the part of the text that only a GPU understands


def emit_cuda(
    traced: Traced, codes: Sequence[WorkerCode], shape: Shape, *, dtype: str, title: list[str]
) -> CudaSource:
    """The source of a kernel."""
    return _Emitter(traced, codes, shape, dtype).source(title)


def shared_memory(
    traced: Traced, codes: Sequence[WorkerCode], shape: Shape, *, dtype: str
) -> tuple[int, int]:
    """Shared memory of a block, and of all blocks that have registers on a multiprocessor."""
    emitter = _Emitter(traced, codes, shape, dtype)
    block = emitter.region * emitter.itemsize * shape.groups
    return block, block * emitter.blocks


class _Emitter:
    def __init__(
        self, traced: Traced, codes: Sequence[WorkerCode], shape: Shape, dtype: str
    ) -> None:
        self.traced, self.codes, self.shape, self.dtype = traced, codes, shape, dtype
        self.workers = sum(len(code.workers) for code in codes)
        self.itemsize = 4 if dtype == "float32" else 8
        self.threads = 32 * self.workers * shape.groups
        self.blocks = max(1, REGISTERS // (self.threads * shape.registers))
        self.constant = Constants(dtype, shape.table)
        self.phases = 1 + max((p for code in codes for p in code.phase), default=0)
        self.width = len(traced.outputs)
        self.sizes = [size for _, size in traced.inputs]
        self.staged = [0 < size <= WIDEST for size in self.sizes]
        self.slots, self.slot_count = slots(codes)
        self.bare = _bare(traced, codes)
        self.unseen = _unseen(traced)
        self.pitches = [_pitch(n) if s else 0 for n, s in zip(self.sizes, self.staged, strict=True)]
        self.starts = [32 * sum(self.pitches[:i]) for i in range(len(self.pitches))]
        self.inputs = 32 * sum(self.pitches)  # numbers of one buffer
        self.collected = self.width > WIDEST and shape.collect
        self.direct = not (0 < self.width <= WIDEST or self.collected)
        self.values, self.place, value_count = _values(codes, self.width)
        self.out_pitch = 0 if self.direct or self.collected else _pitch(self.width)
        self.out_start = self.inputs * (1 + shape.ahead)
        room = PITCH * value_count if self.collected else 32 * self.out_pitch
        self.hand_start = self.out_start + -(-room // 4) * 4  # regions begin at 16 bytes
        self.flag_start = self.hand_start + 32 * self.slot_count
        self.region = self.flag_start + 64 * 4 // self.itemsize

    def source(self, title: list[str]) -> CudaSource:
        special = PRIMITIVES[self.dtype] + COPIES + MEETING[self.workers > 1]
        primitives = f"#define WORKERS {self.workers}\n{special}"
        kernel = "\n".join(self._kernel())
        parts = [
            comment(title),
            "typedef long long i64;\n" + primitives,
            TURN[self.dtype].lstrip(),
            ROWS.lstrip(),
            *(self._collecting() if self.collected else ()),
            *self.constant.declared(),
            *self._own_tables(),
            *(
                loop_round(k, loop, self.dtype)
                for k, loop in enumerate(self.traced.graph.plain_loops)
            ),
            kernel,
        ]
        text = "\n".join(parts) + "\n"
        states = 32 * self.shape.groups
        shared = self.region * self.itemsize * self.shape.groups
        return CudaSource(
            text,
            self.dtype,
            self.threads,
            states,
            shared,
            self.blocks,
            self.shape.stay,
            primitives,
        )

    def _collecting(self) -> Iterator[str]:
        yield f"__device__ const unsigned short place[] = {{{', '.join(map(str, self.place))}}};\n"
        yield COLLECTED.lstrip()

    def _own_tables(self) -> Iterator[str]:
        """For each family the numbers in which its limbs differ, limb by limb."""
        for i, code in enumerate(self.codes):
            rows = list(zip(*(x.numbers for x in code.items if x.kind == "table"), strict=True))
            if rows:
                numbers = ", ".join(number(x, self.dtype) for row in rows for x in row)
                yield f"__constant__ T own{i}[] = {{{numbers}}};\n"

    def _kernel(self) -> Iterator[str]:
        groups = self.shape.groups
        arrays = "".join(f"const T *in{i}, i64 step{i}, " for i in range(len(self.sizes)))
        yield "extern __shared__ __align__(16) T memory[];\n"
        yield f'extern "C" __global__ void __launch_bounds__({self.threads}, {self.blocks})'
        yield f"run({arrays}T *__restrict__ out,"
        yield "    int *__restrict__ status, unsigned long long *__restrict__ report, i64 count)"
        yield "{"
        yield "    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;"
        yield f"    const int group = warp % {groups}, worker = warp / {groups};"
        yield "    const int me = worker * 32 + lane;"
        yield f"    T *const region = memory + group * {self.region};"
        yield f"    i64 first = ((i64)blockIdx.x * {groups} + group) * 32;"
        yield f"    const i64 further = (i64)gridDim.x * {32 * groups};"
        yield "    if (first >= count) return;"
        yield "    int rows = count - first < 32 ? (int)(count - first) : 32, turn_now = 0;"
        yield f"    const bool plain = {self._plain()};"
        if self.out_pitch:
            packed = self.out_pitch == self.width
            yield f"    const bool packed = {'aligned(out)' if packed else 'false'};"
        yield from (f"    {line}" for line in self._taking("0", "first", "rows"))
        yield "#pragma unroll 1"
        yield "    for (;;) {"
        yield from (f"        {line}" for line in self._turn())
        yield "    }"
        yield "}"

    def _turn(self) -> Iterator[str]:
        ahead = self.shape.ahead
        buffer = f"region + turn_now * {self.inputs}" if ahead else "region"
        yield f"T *const given = {buffer};"
        yield f"int *const flag = (int *)(region + {self.flag_start}) + turn_now * 32;"
        yield "landed();"
        if self.workers > 1:
            yield "if (worker == 0) flag[lane] = 0;"
        yield "meet(group);"
        yield "const i64 next = first + further;"
        yield "const int next_rows = count - next < 32 ? (int)(count - next) : 32;"
        if ahead:
            yield "if (next < count) {"
            target = f"(1 - turn_now) * {self.inputs}"
            yield from (f"    {line}" for line in self._taking(target, "next", "next_rows"))
            yield "}"
        if not all(self.staged) or self.direct:
            yield "const i64 mine = first + (lane < rows ? lane : rows - 1);"
        for i, size in enumerate(self.sizes):
            if self.staged[i]:
                yield f"T *const x{i} = given + {self.starts[i]} + lane * {self.pitches[i]};"
            elif size:
                yield f"const T *const x{i} = in{i} + mine * step{i};"
        row = f"out + mine * {self.width}"
        apart = 1 if self.collected else self.out_pitch
        place = f"region + {self.out_start} + lane * {apart}"
        yield f"T *const result = {row if self.direct else place};"
        if self.slot_count:
            yield f"T *const hand = region + {self.hand_start} + lane;"
        yield "float sum = 0.0f;"
        yield "int code = 0;"
        for i, code in enumerate(self.codes):
            first, last = code.workers[0], code.workers[-1]
            test = f"worker <= {last}" if i + 1 < len(self.codes) else "true"
            opening = f"if ({test}) {{" if len(self.codes) > 1 else "{"
            yield f"{'} else ' if i else ''}{opening}"
            if len(code.workers) > 1:
                yield f"    const int member = worker - {first};"
            yield from (f"    {line}" for line in _Worker(self, i).lines())
        yield "}"
        yield from self._ending()
        yield "if (next >= count) return;"
        yield "first = next;"
        yield "rows = next_rows;"
        yield "turn_now = 1 - turn_now;"
        if not ahead:
            yield "meet(group);"
            yield from self._taking("0", "first", "rows")

    def _taking(self, buffer: str, first: str, rows: str) -> Iterator[str]:
        staged = [(i, n) for i, n in enumerate(self.sizes) if self.staged[i]]
        rowwise = [(i, n, f"in{i} + {first} * step{i}") for i, n in staged]
        where = [f"region + {buffer} + {self.starts[i]}" for i, _ in staged]
        yield f"if (plain && {rows} == 32) {{"
        for (i, n), to in zip(staged, where, strict=True):
            yield f"    take<{n}>({to}, in{i} + {first} * {n}, me);"
        yield "} else {"
        for (i, n, row), to in zip(rowwise, where, strict=True):
            yield f"    take_slowly({to}, {self.pitches[i]}, {row}, step{i}, {n}, {rows}, me);"
        yield "}"

    def _plain(self) -> str:
        """Whether all rows are contiguous."""
        parts = list[str]()
        for i, n in enumerate(self.sizes):
            if self.staged[i]:
                parts.append(f"step{i} == {n} && aligned(in{i})")
                if self.pitches[i] != n:
                    return "false"
        return " && ".join(parts) or "true"

    def _ending(self) -> Iterator[str]:
        """Which rows are in trouble, and the results."""
        yield "if (!(fabsf(sum) <= 3.0e38f) && !code) code = -1;"
        if self.workers > 1:
            yield "if (code) flag[lane] = code;"
            yield "meet(group);"
            yield "code = flag[lane];"
        else:
            yield "meet(group);"
        yield "const bool fine = !__any_sync(0xffffffffu, code);"
        yield "if (!fine) {"
        yield "    if (code) {"
        yield "        bool sound = true;"
        for i, size in enumerate(self.sizes):
            if size:
                yield f"        sound = sound && all_finite(x{i}, {size});"
        looked = "all_finite_there" if self.collected else "all_finite"
        yield f"        const bool made = {looked}(result, {self.width});"
        yield "        code = !sound ? 1 : code > 0 ? code : !made ? 2 : 0;"
        yield "        if (code && worker == 0 && lane < rows && report) {"
        yield "            atomicAdd(report, 1ull);"
        yield "            atomicMax(report + 1, ~(unsigned long long)(first + lane));"
        yield "        }"
        yield "    }"
        yield "    meet(group); /* every worker finds the same */"
        yield "    flag[lane] = code;"
        if self.direct:
            yield "    if (code && worker == 0) {"
            yield f"        for (int i = 0; i < {self.width}; ++i) result[i] = NOT_A_NUMBER;"
            yield "    }"
        yield "    meet(group);"
        yield "}"
        yield "if (status && worker == 0 && lane < rows) status[first + lane] = code;"
        if self.collected:
            yield f"give_collected<{self.width}>(out + first * {self.width}, "
            yield f"    region + {self.out_start}, flag, fine, rows, me);"
        elif not self.direct:
            row, place = f"out + first * {self.width}", f"region + {self.out_start}"
            slow = f"{row}, {self.width}, {place}, {self.out_pitch}, flag, fine, rows, me"
            yield f"if (packed && fine && rows == 32) give<{self.width}>({row}, {place}, me);"
            yield f"else give_slowly({slow});"


class _Worker:
    """The statements of one list of code."""

    def __init__(self, emitter: _Emitter, index: int) -> None:
        self.e, self.index, self.code = emitter, index, emitter.codes[index]
        self.items, self.dtype = self.code.items, emitter.dtype
        tables = [i for i, item in enumerate(self.items) if item.kind == "table"]
        self.entry = {item: j for j, item in enumerate(tables)}
        self.entries = len(tables)
        self.loaded: dict[int, str] = {}
        self.turned: set[int] = set()

    def lines(self) -> Iterator[str]:
        """All of it; the sum is of everything that has to be finite."""
        code = self.code
        operations = [i for i, item in enumerate(self.items) if item.kind == "op"]
        operations.sort(key=lambda i: (code.phase[i], i))
        yield from self._watched()
        yield from self._wrapped(operations)
        for i in [i for i, item in enumerate(self.items) if item.kind != "op"]:
            yield from self._handed_over(i)
            yield from self._finished(i)
        phase = 0
        for i in operations:
            while phase < code.phase[i]:
                yield "meet(group);"
                phase += 1
                self.loaded.clear()
            yield from self._statement(i)
            yield from self._handed_over(i)
            yield from self._finished(i)
        for _ in range(phase, self.e.phases - 1):
            yield "meet(group);"

    def _handed_over(self, i: int) -> Iterator[str]:
        """What others need: an operation, or a number that a family's own numbers make."""
        code = self.code
        if i in code.given:
            base = self.e.slots[code.given[i][0]]
            shift = base - code.workers.index(code.given[i][0][1])
            member = " + member * 32" if len(code.workers) > 1 else ""
            yield f"hand[{32 * shift}{member}] = {self._name(i)};"

    def _entry_of(self, array: int, entry: int, step: int) -> str:
        return f"x{array}[{entry}{f' + member * {step}' if step else ''}]"

    def _watched(self) -> Iterator[str]:
        """Inputs that may be in trouble without the result showing it, the first worker's task."""
        if self.index == 0:
            for array, entry in self.e.unseen:
                yield f"sum += watch(x{array}[{entry}]);"

    def _wrapped(self, operations: list[int]) -> Iterator[str]:
        """Angles that are inputs: all are looked at together, since few are ever large."""
        angles = dict[int, None]()
        for i in operations:
            item = self.items[i]
            if item.op in ("sin", "cos") and self._is_bare(item.arguments[0]):
                angles[item.arguments[0]] = None
        if not angles:
            return
        names = [f"size_of({self._name(a)})" for a in angles]
        yield f"T widest = {names[0]};"
        yield from (f"widest = larger(widest, {name});" for name in names[1:])
        yield "if (widest > LARGEST) {"
        for array, entry, step, length in self._runs(list(angles)):
            yield f"    wrap(&{self._entry_of(array, entry, step)}, {length});"
        yield "}"

    def _runs(self, angles: list[int]) -> list[tuple[int, int, int, int]]:
        """Neighbouring entries together: (array, entry, step, how many)."""
        runs = list[tuple[int, int, int, int]]()
        places = ((self.items[a].array, self.items[a].entry, self.items[a].step) for a in angles)
        for array, entry, step in sorted(places):
            if runs and runs[-1][:3] == (array, entry - runs[-1][3], step):
                runs[-1] = (*runs[-1][:3], runs[-1][3] + 1)
            else:
                runs.append((array, entry, step, 1))
        return runs

    def _is_bare(self, i: int) -> bool:
        item = self.items[i]
        members = range(len(self.code.workers) if item.step else 1)
        return item.kind == "input" and all(
            (item.array, item.entry + m * item.step) in self.e.bare for m in members
        )

    def _name(self, i: int) -> str:
        item = self.items[i]
        if item.kind == "const":
            return self.e.constant(item.numbers[0])
        if item.kind == "table":
            return f"own{self.index}[{self.entry[i]} + member * {self.entries}]"
        if item.kind == "input":
            return self._entry_of(item.array, item.entry, item.step)
        if item.kind == "hand":
            return self.loaded[i]
        if item.op in ("sin", "cos"):
            return f"{item.op[0]}{item.arguments[0]}"
        if item.op.startswith("part "):
            return f"loop{item.arguments[0]}[{item.op[5:]}]"
        return f"t{i}"

    def _statement(self, i: int) -> Iterator[str]:
        item = self.items[i]
        for x in item.arguments:  # what other workers made is read once a phase
            taken = self.items[x]
            if taken.kind == "hand" and x not in self.loaded:
                self.loaded[x] = f"h{x}_{self.code.phase[i]}"
                yield f"const T {self.loaded[x]} = hand[{32 * self.e.slots[taken.key]}];"
        if item.op in ("sin", "cos"):
            yield from self._turn(item.arguments[0])
        elif item.op.startswith("loop "):
            yield from self._loop(i, int(item.op[5:]))
        elif not item.op.startswith("part "):
            names = [self._name(x) for x in item.arguments]
            yield f"const T t{i} = {operation(item.op, names, self.dtype)};"

    def _loop(self, i: int, number_: int) -> Iterator[str]:
        """All rounds of a loop: x, and behind it whether there should be another."""
        loop = self.e.traced.graph.plain_loops[number_]
        names = [self._name(x) for x in self.items[i].arguments]
        x, given = names[: loop.size + 1], names[loop.size + 1 :]
        yield f"T loop{i}[{loop.size + 1}] = {{{', '.join(x)}}};"
        yield f"const T given{i}[{max(1, len(given))}] = {{{', '.join(given)}}};"
        yield f"for (int k = 0; k < {loop.most} && loop{i}[{loop.size}] > (T)0; ++k)"
        yield f"    round{number_}(loop{i}, given{i});"

    def _turn(self, angle: int) -> Iterator[str]:
        if angle in self.turned:
            return
        self.turned.add(angle)
        yield from turn(angle, self._name(angle), wrapped=not self._is_bare(angle))

    def _finished(self, i: int) -> Iterator[str]:
        stored = [s for s in self.code.stored if s.item == i]
        if stored and self.e.collected:
            places = self.e.values[self.index, i]
            if len(places) == len(self.code.workers) > 1:
                yield f"result[{PITCH * places[0]} + member * {PITCH}] = {self._name(i)};"
            else:
                for m, at in places.items():
                    alone = f"if (member == {m}) " if len(self.code.workers) > 1 else ""
                    yield f"{alone}result[{PITCH * at}] = {self._name(i)};"
        for s in () if self.e.collected else stored:
            member = f" + member * {s.step}" if s.step else ""
            alone = f"if (member == {s.only}) " if s.only >= 0 else ""
            yield f"{alone}result[{s.entry}{member}] = {self._name(i)};"
        if stored and self.items[i].kind not in ("const", "table"):
            yield f"sum += watch({self._name(i)});"
        for check in (c for c in self.code.checked if c.item == i):
            name = self._name(i)
            inside = condition(name, check.low, check.high, self.dtype)
            member = f" + member * {check.step}" if check.step else ""
            if check.only >= 0:
                inside = f"(member != {check.only} || ({inside}))"
            if inside:
                large = f"(code ? code : {status.RESULT})"  # unless another hinge spoils it
                failed = f"({name} == {name} ? {check.code}{member} : {large})"
                yield f"code = {inside} ? code : {failed};"


def _pitch(size: int) -> int:
    """Numbers between rows in shared memory: rows must not begin in the same few banks."""
    return size if math.gcd(size, 32) <= 4 else size + 1


def _values(
    codes: Sequence[WorkerCode], width: int
) -> tuple[dict[tuple[int, int], dict[int, int]], list[int], int]:
    """Places of the values that results consist of, each once.

    Returns for each list's item the places of the members that need one, side by side in order if
    all do; the place of each entry of a row; and how many there are. They follow the order of the
    rows, so that neighbours in a row mostly lie in different banks.
    """
    needed = list[tuple[int, tuple[int, int], int]]()  # entry, list and item, member
    members = dict[tuple[int, int], set[int]]()
    for c, code in enumerate(codes):
        for s in code.stored:
            for m in range(len(code.workers)) if s.only < 0 else (s.only,):
                needed.append((s.entry + m * s.step, (c, s.item), m))
                members.setdefault((c, s.item), set()).add(m)
    places, place, count = dict[tuple[int, int], dict[int, int]](), [0] * width, 0
    for entry, item, member in sorted(needed):
        if item not in places:
            places[item] = {m: count + j for j, m in enumerate(sorted(members[item]))}
            count += len(places[item])
        place[entry] = places[item][member]
    return places, place, count


def slots(codes: Sequence[WorkerCode]) -> tuple[dict[Key, int], int]:
    """Places of what is handed over; free again in the phase after the last that reads it.

    Workers that share their code have places side by side.
    """
    last: dict[Key, int] = {}
    for code in codes:
        for i, item in enumerate(code.items):
            for x in item.arguments:
                if code.items[x].kind == "hand":
                    key = code.items[x].key
                    last[key] = max(last.get(key, 0), code.phase[i])
    handed = [
        (code.phase[i], max(last[key] for key in keys), code.workers, keys)
        for code in codes
        for i, keys in code.given.items()
    ]
    slot_of: dict[Key, int] = {}
    until = list[int]()
    for begin, end, workers, keys in sorted(handed, key=lambda x: (x[0], x[2], x[3])):
        room, at = len(workers), 0
        while any(until[j] >= begin for j in range(at, min(at + room, len(until)))):
            at += 1
        until.extend([-1] * (at + room - len(until)))
        until[at : at + room] = [end] * room
        for key in keys:
            slot_of[key] = at + workers.index(key[1])
    return slot_of, len(until)


def _bare(traced: Traced, codes: Sequence[WorkerCode]) -> set[tuple[int, int]]:
    """Entries of inputs that are angles and nothing else: they may be replaced by equal angles."""
    angles, others = set[tuple[int, int]](), set[tuple[int, int]]()
    for code in codes:
        stored = {s.item for s in code.stored} | {c.item for c in code.checked}
        for i, item in enumerate(code.items):
            kept = [*item.arguments, *([i] if i in stored else [])]
            for x in (code.items[j] for j in kept):
                if x.kind == "input":
                    members = range(len(code.workers) if x.step else 1)
                    places = {(x.array, x.entry + m * x.step) for m in members}
                    (angles if item.op in ("sin", "cos") else others).update(places)
    return {x for x in angles - others if traced.inputs[x[0]][1] <= WIDEST}


def _unseen(traced: Traced) -> list[tuple[int, int]]:
    """Inputs whose trouble may not reach the result: 1/x makes 0 of ∞, and gates may be shut.

    Sums, products, roots, sines and cosines of what is not finite are not finite.
    """
    graph: Graph = traced.graph
    seen, stack = set[int](), list(traced.outputs)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if graph.op[node] not in ("inv", "gate", "part"):
                stack.extend(graph.arguments(node))
    reached = {graph.a[n] for n in seen if graph.op[n] == "input"}
    places = [(i, j) for i, (_, size) in enumerate(traced.inputs) for j in range(size)]
    return [place for m, place in enumerate(places) if m not in reached]
