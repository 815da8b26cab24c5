"""From a scalar graph to CUDA: one source that the card's own compiler turns into a kernel.

32 states are a group. One warp computes a group, one state a lane, in straight-line code; for large
robots several warps (workers) share it, each with the code of some limbs (`split.py`), and hand
values over in shared memory, where they meet between phases. Rows of the arrays come in through
shared memory, so that global memory is read and written sixteen bytes at a time.

    run(q, q_step, ..., out, status, report, count)

takes for each input its address and the numbers between two rows (0: one row for all states); rows
of `out` are contiguous. `status` (int32 a state) and `report` (two 64-bit numbers, zero before:
how many states are in trouble, and the complement of the first of them) may be null.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.codegen.c import number
from linkwise.codegen.c_text import comment
from linkwise.codegen.cuda_text import MEETING, PRIMITIVES, ROWS, TURN
from linkwise.codegen.split import Key, Split
from linkwise.codegen.trace import Check, Traced
from linkwise.errors import LoweringError

REGISTERS = 65536
"""Registers of a multiprocessor, 32 bits each, on all cards since 2014."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel lies on the card.

    Attributes:
        groups: Groups of 32 states in a block.
        registers: Of a thread, at most; as many blocks as fit run on a multiprocessor.
        table: Whether long constants are read from constant memory, not written into the code.
    """

    groups: int
    registers: int
    table: bool = False


@dataclass(frozen=True, slots=True)
class CudaSource:
    """The text of a kernel and what a launch has to know.

    Attributes:
        text: The source.
        dtype: "float32" or "float64".
        threads: Of a block.
        states: That a block computes.
        shared: Shared memory of a block [bytes].
        primitives: The part of the text that only a card understands.
    """

    text: str
    dtype: str
    threads: int
    states: int
    shared: int
    primitives: str


def emit_cuda(
    traced: Traced, split: Split, shape: Shape, *, dtype: str, title: list[str]
) -> CudaSource:
    """The source of a kernel.

    Args:
        traced: The scalar graph.
        split: Who computes what.
        shape: How it lies on the card.
        dtype: "float32" or "float64".
        title: Lines of a comment at the top.
    """
    return _Emitter(traced, split, shape, dtype).source(title)


class _Emitter:
    def __init__(self, traced: Traced, split: Split, shape: Shape, dtype: str) -> None:
        self.traced, self.split, self.shape, self.dtype = traced, split, shape, dtype
        self.graph = traced.graph
        self.itemsize = 4 if dtype == "float32" else 8
        self.threads = 32 * split.workers * shape.groups
        self.table: dict[str, int] = {}
        self.places = [(i, j) for i, (_, size) in enumerate(traced.inputs) for j in range(size)]
        self.width = len(traced.outputs)
        self.slots, self.slot_count = _slots(split)
        pitches = [_pitch(size) for _, size in traced.inputs]
        self.pitches, self.out_pitch = pitches, _pitch(self.width)
        self.starts = [32 * sum(pitches[:i]) for i in range(len(pitches))]
        self.out_start = 32 * sum(pitches)
        self.hand_start = self.out_start + 32 * self.out_pitch
        self.flag_start = self.hand_start + 32 * self.slot_count
        self.region = self.flag_start + 32 * 4 // self.itemsize

    def source(self, title: list[str]) -> CudaSource:
        special = PRIMITIVES[self.dtype] + MEETING[self.split.workers > 1]
        primitives = f"#define WORKERS {self.split.workers}\n{special}"
        kernel = "\n".join(self._kernel())
        parts = [
            comment(title),
            "typedef long long i64;\n" + primitives,
            TURN[self.dtype].lstrip(),
            ROWS.lstrip(),
            *([f"__constant__ T table[] = {{{', '.join(self.table)}}};\n"] if self.table else []),
            kernel,
        ]
        text = "\n".join(parts) + "\n"
        states = 32 * self.shape.groups
        shared = self.region * self.itemsize * self.shape.groups
        return CudaSource(text, self.dtype, self.threads, states, shared, primitives)

    def _kernel(self) -> Iterator[str]:
        split, groups, inputs = self.split, self.shape.groups, range(len(self.traced.inputs))
        blocks = max(1, REGISTERS // (self.threads * self.shape.registers))
        yield "extern __shared__ __align__(16) T memory[];\n"
        yield f'extern "C" __global__ void __launch_bounds__({self.threads}, {blocks})'
        arrays = ", ".join(f"const T *__restrict__ in{i}, i64 step{i}" for i in inputs)
        yield f"run({arrays}{', ' if arrays else ''}T *__restrict__ out,"
        yield "    int *__restrict__ status, unsigned long long *__restrict__ report, i64 count)"
        yield "{"
        yield "    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;"
        yield f"    const int group = warp % {groups}, worker = warp / {groups};"
        yield "    const int me = worker * 32 + lane;"
        yield f"    const i64 first = ((i64)blockIdx.x * {groups} + group) * 32;"
        yield "    if (first >= count) return;"
        yield "    const int rows = count - first < 32 ? (int)(count - first) : 32;"
        yield f"    T *const region = memory + group * {self.region};"
        yield f"    int *const flag = (int *)(region + {self.flag_start});"
        for i, (_, size) in enumerate(self.traced.inputs):
            if size:
                row = f"in{i} + first * step{i}, step{i}"
                where = f"region + {self.starts[i]}"
                yield f"    take<{size}, {self.pitches[i]}>({where}, {row}, rows, me);"
        yield "    if (worker == 0) flag[lane] = 0;"
        yield "    meet(group);"
        for i, (_, size) in enumerate(self.traced.inputs):
            if size:
                where = f"region + {self.starts[i]} + lane * {self.pitches[i]}"
                yield f"    const T *const x{i} = {where};"
        yield f"    T *const result = region + {self.out_start} + lane * {self.out_pitch};"
        yield f"    T *const hand = region + {self.hand_start} + lane;"
        for worker in range(split.workers):
            opening = f"if (worker == {worker}) {{" if split.workers > 1 else "{"
            yield f"    {'} else ' if worker else ''}{opening}"
            yield from (f"        {line}" for line in _Worker(self, worker).lines())
        yield "    }"
        yield "    meet(group);"
        yield from self._ending()
        yield "}"

    def constant(self, value: float) -> str:
        """As a literal, or as an entry of the table if an instruction has no room for it."""
        text = number(value, self.dtype)
        if not self.shape.table or struct.unpack("<II", struct.pack("<d", value))[0] == 0:
            return text
        return f"table[{self.table.setdefault(text, len(self.table))}]"

    def _ending(self) -> Iterator[str]:
        """Which rows are in trouble, and the results."""
        yield "    const bool fine = !__any_sync(0xffffffffu, flag[lane]);"
        yield "    if (!fine) {"
        yield "        int code = flag[lane];"
        yield "        if (code) {"
        yield "            bool given = true, made = true;"
        for i, (_, size) in enumerate(self.traced.inputs):
            yield f"            given = given && all_finite(x{i}, {size});"
        yield f"            made = all_finite(result, {self.width});"
        yield "            code = !given ? 1 : code > 0 ? code : !made ? 2 : 0;"
        yield "            if (code && worker == 0 && lane < rows && report) {"
        yield "                atomicAdd(report, 1ull);"
        yield "                atomicMax(report + 1, ~(unsigned long long)(first + lane));"
        yield "            }"
        yield "        }"
        yield "        __syncwarp();"
        yield "        flag[lane] = code; /* every worker finds the same */"
        yield "        __syncwarp();"
        yield "    }"
        yield "    if (status && worker == 0 && lane < rows) status[first + lane] = flag[lane];"
        if self.width:
            row = f"out + first * {self.width}, region + {self.out_start}"
            yield f"    give<{self.width}, {self.out_pitch}>({row}, flag, fine, rows, me);"


class _Worker:
    """The statements of one worker."""

    def __init__(self, emitter: _Emitter, worker: int) -> None:
        self.e, self.worker = emitter, worker
        self.graph, self.split, self.dtype = emitter.graph, emitter.split, emitter.dtype
        self.keys = [key for key in self.split.reads if key[1] == worker]
        self.named: dict[int, str] = {}
        self.turned: set[int] = set()
        self.angles: dict[int, str] = {}
        traced = emitter.traced
        self.stored: dict[int, list[int]] = defaultdict(list)
        for j, node in enumerate(traced.outputs):
            if self.split.owner[node] == worker:
                self.stored[node].append(j)
        self.checks: dict[int, list[Check]] = defaultdict(list)
        for check in traced.checks:
            if self.split.owner[check.node] == worker:
                self.checks[check.node].append(check)

    def lines(self) -> Iterator[str]:
        """All of it; the sum is of everything that has to be finite."""
        yield "float sum = 0.0f;"
        yield "int code = 0;"
        yield from self._inputs()
        yield from self._angles()
        for node in [n for n in self.stored if self._leaf(n)]:
            yield from self._finished(node)
        for node in [n for n in self.checks if self._leaf(n)]:
            yield from self._checked(node)
        phase = 0
        for key in self.keys:
            while phase < self.split.phase[key]:
                yield "meet(group);"
                phase += 1
                self._forget_loaded()
            yield from self._taken(key)
            yield from self._statement(key[0])
            if key in self.e.slots:
                yield f"hand[{32 * self.e.slots[key]}] = {self.named[key[0]]};"
            yield from self._finished(key[0])
            yield from self._checked(key[0])
        for _ in range(phase, self.split.phases - 1):
            yield "meet(group);"
        yield "if (!(fabsf(sum) <= 3.0e38f) && !code) code = -1;"
        yield "if (code) flag[lane] = code;"

    def _leaf(self, node: int) -> bool:
        return self.graph.op[node] in ("const", "input")

    def _inputs(self) -> Iterator[str]:
        """This worker's share of the inputs is watched; they are read where they are used."""
        mine = [m for m in range(len(self.e.places)) if self._watched_by(m) == self.worker]
        for m in mine:
            i, j = self.e.places[m]
            yield f"sum += watch(x{i}[{j}]);"

    def _watched_by(self, place: int) -> int:
        return place * self.split.workers // max(1, len(self.e.places))

    def _angles(self) -> Iterator[str]:
        """Angles that are inputs: all are looked at together, since few are ever large."""
        graph = self.graph
        turns = [n for n, _ in self.keys if graph.op[n] in ("sin", "cos")]
        angles = sorted({graph.a[n] for n in turns if graph.op[graph.a[n]] == "input"})
        for a in angles:
            self.angles[a] = f"a{a}"
            yield f"T a{a} = {self._name(a)};"
        if angles:
            yield f"T widest = size_of(a{angles[0]});"
            yield from (f"widest = larger(widest, size_of(a{a}));" for a in angles[1:])
            yield "if (widest > LARGEST) {"
            yield from (f"    a{a} = wrapped(a{a});" for a in angles)
            yield "}"

    def _name(self, node: int) -> str:
        if self.graph.op[node] == "const":
            return self.e.constant(self.graph.value[node])
        if self.graph.op[node] == "input":
            i, j = self.e.places[self.graph.a[node]]
            return f"x{i}[{j}]"
        return self.named[node]

    def _taken(self, key: Key) -> Iterator[str]:
        """What other workers made is read once a phase."""
        for read in self.split.reads[key]:
            if read[1] != self.worker and read[0] not in self.named:
                name = f"h{read[0]}_{self.split.phase[key]}"
                yield f"const T {name} = hand[{32 * self.e.slots[read]}];"
                self.named[read[0]] = name

    def _forget_loaded(self) -> None:
        self.named = {n: name for n, name in self.named.items() if name[0] != "h"}

    def _statement(self, node: int) -> Iterator[str]:
        graph = self.graph
        op, a, b = graph.op[node], graph.a[node], graph.b[node]
        if op in ("sin", "cos"):
            if a not in self.turned:
                self.turned.add(a)
                angle = self.angles.get(a)
                if angle is None:
                    angle = f"a{a}"
                    yield f"T a{a} = {self._name(a)};"
                    yield f"if (size_of(a{a}) > LARGEST) a{a} = wrapped(a{a});"
                yield f"T s{a}, c{a};"
                yield f"turn({angle}, s{a}, c{a});"
            self.named[node] = f"{op[0]}{a}"
            return
        self.named[node] = f"t{node}"
        yield f"const T t{node} = {self._formula(op, a, b)};"

    def _formula(self, op: str, a: int, b: int) -> str:
        if op in ("add", "sub", "mul"):
            sign = {"add": "+", "sub": "-", "mul": "*"}[op]
            return f"{self._name(a)} {sign} {self._name(b)}"
        if op == "neg":
            return f"-{self._name(a)}"
        if op == "inv":
            return f"reciprocal({self._name(a)})"
        if op == "sqrt":
            return f"{'sqrtf' if self.dtype == 'float32' else 'sqrt'}({self._name(a)})"
        raise LoweringError(f"the operation {op!r} has no form in CUDA.")

    def _finished(self, node: int) -> Iterator[str]:
        places = self.stored.get(node, ())
        for j in places:
            yield f"result[{j}] = {self._name(node)};"
        if places and self.graph.op[node] != "const":
            yield f"sum += watch({self._name(node)});"

    def _checked(self, node: int) -> Iterator[str]:
        for check in self.checks.get(node, ()):
            name, parts = self._name(node), list[str]()
            if math.isfinite(check.low):
                parts.append(f"{name} > {number(check.low, self.dtype)}")
            if math.isfinite(check.high):
                parts.append(f"{name} < {number(check.high, self.dtype)}")
            if parts:
                yield f"code = {' && '.join(parts)} ? code : {check.code};"


def _pitch(size: int) -> int:
    """Numbers between rows in shared memory: rows must not begin in the same few banks."""
    return size if math.gcd(size, 32) <= 2 else size + 1


def _slots(split: Split) -> tuple[dict[Key, int], int]:
    """Places of what is handed over; free again in the phase after the last that reads it."""
    last: dict[Key, int] = {}
    for key, reads in split.reads.items():
        for read in reads:
            if read[1] != key[1]:
                last[read] = max(last.get(read, 0), split.phase[key])
    found: dict[Key, int] = {}
    until = list[int]()
    for key in sorted(last, key=lambda key: (split.phase[key], key)):
        free = [i for i, end in enumerate(until) if end < split.phase[key]]
        if free:
            found[key] = free[0]
            until[free[0]] = last[key]
        else:
            found[key] = len(until)
            until.append(last[key])
    return found, len(until)
