"""Motions of large robots on a GPU: several warps share 32 of them, each with some limbs.

The registers of the motions are in shared memory, lane by lane. The accelerations are divided by
limbs (`codegen/cuda/split.py`), which exchange values there and meet between phases; the short
segments of the integrator are divided by what they write. Segments are functions: each is in the
code once. Arguments and results are those of `cuda_source.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.codegen.c.text import comment
from linkwise.codegen.cuda.source import REGISTERS, slots
from linkwise.codegen.cuda.split import Key, Split, by_limbs
from linkwise.codegen.cuda.statement import Constants, checked, operation, tables, turn
from linkwise.codegen.cuda.text import MEETING, PRIMITIVES, TURN
from linkwise.codegen.cuda.worker_code import WorkerCode, worker_code
from linkwise.codegen.scalar import status
from linkwise.codegen.scalar.trace import Traced
from linkwise.codegen.stepping.cuda_source import MotionSource, head
from linkwise.codegen.stepping.stepping import STEP, Segment, Stepping, straight
from linkwise.model.mechanism import Mechanism

LANES = 32
LIMBS = 1500
"""Operations of a segment from which on it is dealt out by limbs."""

MULTIPROCESSOR = 227 << 10
"""Shared memory of a multiprocessor that blocks can have [bytes], on the GPUs measured."""

KEPT = 1 << 10
"""Shared memory that the GPU keeps for itself with each block [bytes]."""

ALIKE = 8
"""Operations that two results must share to be made by one worker."""


def emit_group_motion(
    stepping: Stepping,
    mech: Mechanism,
    *,
    dtype: str,
    title: list[str],
    warps: int,
    workers: int = 0,
) -> MotionSource | None:
    """The source of a kernel with several warps for 32 motions; None if one thread is better.

    A multiprocessor runs at most `warps`: beyond that registers are too few. 32 motions have
    `workers` warps, by default as many as the largest limb allows to be busy.
    """
    if stepping.shown or stepping.stops or stepping.noise:
        return None  # its records have q and v only, of all steps
    group = _Group(stepping, mech, dtype, workers)
    return None if group.workers < 2 else group.source(title, warps)


@dataclass(frozen=True, slots=True)
class _Dealt:
    """A segment and what its workers do."""

    segment: Segment
    codes: list[WorkerCode]
    phases: int
    slots: dict[Key, int]
    slot_count: int


class _Group:
    def __init__(self, stepping: Stepping, mech: Mechanism, dtype: str, workers: int) -> None:
        self.stepping, self.mech, self.dtype = stepping, mech, dtype
        self.itemsize = 4 if dtype == "float32" else 8
        self.constant = Constants(dtype, dtype == "float64")
        sizes = {s.name: _work(s.traced) for s in stepping.segments}
        large = max(stepping.segments, key=lambda s: _work(s.traced))
        self.workers = by_limbs(self._placed(large), mech.parent.tolist(), workers).workers
        if self.workers < 2 or sizes[large.name] < LIMBS:
            self.workers = 1
            return
        self.dealt = [self._deal(s) for s in stepping.segments]
        self.offset = self._offsets()
        hands = max(d.slot_count for d in self.dealt)
        self.hand_start = LANES * self.top
        self.flag_start = self.hand_start + LANES * hands
        self.shared = self.flag_start * self.itemsize + LANES * 4

    # --------------------------------------------------------------------------------- dealing

    def _placed(self, segment: Segment) -> Traced:
        """The graph; what a segment makes of entries of one body belongs to that body."""
        mech, traced, graph = self.mech, segment.traced, segment.traced.graph
        of_q = [k for k in range(mech.n_bodies) for _ in range(mech.bodies[k].hinge.nq)]
        of_v = [k for k in range(mech.n_bodies) for _ in range(mech.bodies[k].hinge.nv)]
        known = {len(of_v): of_v, len(of_q): of_q}
        flat = [known[n][i] if n in known else -1 for _, n in traced.inputs for i in range(n)]
        body = list(graph.body)
        for node, op in enumerate(graph.op):
            if op == "input":
                body[node] = flat[graph.a[node]] if graph.a[node] < len(flat) else -1
            elif op != "const" and body[node] < 0:
                pair = [x for x in (graph.a[node], graph.b[node]) if x >= 0]
                places = {body[x] for x in pair if graph.op[x] != "const"}
                body[node] = places.pop() if len(places) == 1 else -1
        return dataclasses.replace(traced, graph=dataclasses.replace(graph, body=body))

    def _deal(self, segment: Segment) -> _Dealt:
        traced = segment.traced
        if _work(traced) >= LIMBS:
            traced = self._placed(segment)
            split = by_limbs(traced, self.mech.parent.tolist(), self.workers)
        else:
            split = by_results(traced, self.workers)
        codes = [worker_code(traced, split, [w]) for w in range(split.workers)]
        phases = 1 + max((p for code in codes for p in code.phase), default=0)
        return _Dealt(segment, codes, phases, *slots(codes))

    def _offsets(self) -> dict[str, int]:
        """Where registers begin: those that last, then others, in the place of which are q and v.

        q and v are there before the first step and where a record is made; what no step leaves to
        the next is not needed then.
        """
        stepping, sizes = self.stepping, self.stepping.registers
        written, lasting = set[str](), {*stepping.state, *(name for name, _ in stepping.held)}
        lasting |= {name for segment in straight(stepping.enter) for name, _ in segment.writes}
        for segment in straight(stepping.step):
            lasting |= {name for name, _ in segment.reads} - written
            written |= {name for name, _ in segment.writes}
        if stepping.resumes:  # records are made of several segments
            lasting |= {name for segment in straight(stepping.leave) for name, _ in segment.writes}
        lasting -= {STEP, "q", "v"}
        offset, top = dict[str, int](), 0
        for name in (x for x in sizes if x in lasting):
            offset[name], top = top, top + sizes[name]
        offset["q"], offset["v"] = top, top + stepping.nq
        end = top + stepping.nq + stepping.nv
        for name in (x for x in sizes if x not in (*lasting, "q", "v", STEP)):
            offset[name], top = top, top + sizes[name]
        self.top = max(end, top)
        return offset

    # ---------------------------------------------------------------------------------- source

    def source(self, title: list[str], warps: int) -> MotionSource:
        functions = ["\n".join(self._function(i, d)) + "\n" for i, d in enumerate(self.dealt)]
        blocks = max(1, min(MULTIPROCESSOR // (self.shared + KEPT), warps // self.workers))
        kernel = "\n".join(self._kernel(blocks))
        special = PRIMITIVES[self.dtype] + MEETING[True]
        primitives = f"#define WORKERS {self.workers}\n{special}"
        parts = [
            comment(title),
            "typedef long long i64;\n" + primitives,
            TURN[self.dtype].lstrip(),
            *self.constant.declared(),
            *tables((s.traced.graph for s in self.stepping.segments), self.dtype),
            "extern __shared__ __align__(16) T memory[];\n",
            *functions,
            kernel,
        ]
        text, threads = "\n".join(parts) + "\n", LANES * self.workers
        assert threads * blocks <= REGISTERS
        held = self.stepping.held
        return MotionSource(text, self.dtype, threads, held, primitives, self.workers, self.shared)

    def entry(self, register: str, i: int) -> str:
        return "h" if register == STEP else f"reg[{LANES * (self.offset[register] + i)}]"

    def _function(self, index: int, dealt: _Dealt) -> Iterator[str]:
        yield f"/* {dealt.segment.name} */"
        yield f"__device__ __noinline__ int segment{index}(T *const reg, T h, int worker)"
        yield "{"
        yield "    int code = 0;"
        yield f"    T *const hand = reg + {self.hand_start};"
        for w, code in enumerate(dealt.codes):
            test = f"if (worker == {w}) {{" if w + 1 < len(dealt.codes) else "{"
            yield f"    {'} else ' if w else ''}{test}"
            yield from (f"        {line}" for line in _Worker(self, dealt, code).lines())
        yield "    }"
        yield "    meet(0);"
        yield "    return code;"
        yield "}"

    def _kernel(self, blocks: int) -> Iterator[str]:
        stepping, workers = self.stepping, self.workers
        width = stepping.nq + stepping.nv
        yield f'extern "C" __global__ void __launch_bounds__({LANES * workers}, {blocks})'
        yield from head(stepping)
        yield f"    const int lane = threadIdx.x % {LANES}, worker = threadIdx.x / {LANES};"
        yield f"    const i64 mine = (i64)blockIdx.x * {LANES} + lane;"
        yield "    const bool real = mine < count;"
        yield "    const i64 me = real ? mine : count - 1;"
        yield "    T *const reg = memory + lane;"
        yield f"    int *const flag = (int *)(memory + {self.flag_start}) + lane;"
        yield "    T *to = out + me;"
        yield "    i64 record = 0, pause = every, lost = -1;"
        yield "    int code = 0;"
        yield "    if (worker == 0) *flag = 0;"
        for name, size in (("q", stepping.nq), ("v", stepping.nv)):
            source = f"in_{name}[me * {name}_row + j * {name}_entry]"
            yield from self._each(size, f"reg[{LANES} * ({self.offset[name]} + j)] = {source};")
        yield "    meet(0);"
        if not stepping.resumes:
            yield from self._recorded(width)
        yield from (f"    {line}" for s in straight(stepping.enter) for line in self._call(s))
        for i in range(len(stepping.held)):
            yield f"    const T *given{i} = held{i} + me * row{i};"
        if stepping.resumes:
            yield "    if (!steps) {"
            yield from (f"    {line}" for line in self._given())
            yield from (f"    {line}" for s in straight(stepping.leave) for line in self._call(s))
            yield from (f"    {line}" for line in self._recorded(width))
            yield "    }"
        yield "#pragma unroll 1"
        yield "    for (i64 i = 0; i < steps && __any_sync(0xffffffffu, lost < 0); ++i) {"
        yield from (f"    {line}" for line in self._step(width))
        yield "    }"
        yield "#pragma unroll 1"
        yield "    for (; record < records; ++record) {"
        yield from (
            f"    {x}" for x in self._each(width, "if (real) to[j * count] = NOT_A_NUMBER;")
        )
        yield f"        to += {width} * count;"
        yield "    }"
        yield "    if (worker == 0 && real) {"
        yield "        if (lost >= 0) atomicAdd(report, 1ull);"
        yield "        status[me] = lost < 0 ? 0 : *flag;"
        yield "        failed[me] = lost;"
        yield "    }"
        yield "}"

    def _each(self, size: int, statement: str) -> Iterator[str]:
        if size:
            yield "#pragma unroll 1"
            yield f"    for (int j = worker; j < {size}; j += {self.workers}) {statement}"

    def _recorded(self, width: int) -> Iterator[str]:
        """Store q and v, which are contiguous, in the next record; NaN for failed motions."""
        there = f"reg[{LANES} * ({self.offset['q']} + j)]"
        yield from self._each(
            width, f"if (real) to[j * count] = lost < 0 ? {there} : (T)NOT_A_NUMBER;"
        )
        yield f"    to += {width} * count;"
        yield "    ++record;"

    def _given(self) -> Iterator[str]:
        """What is held over the next step, into its registers."""
        for i, (name, size) in enumerate(self.stepping.held):
            place = f"reg[{LANES} * ({self.offset[name]} + j)]"
            yield from self._each(size, f"{place} = given{i}[j * entry{i}];")
            yield f"    given{i} += step{i};"
        yield "    meet(0);"

    def _step(self, width: int) -> Iterator[str]:
        stepping = self.stepping
        yield from self._given()
        yield from (f"    {line}" for s in straight(stepping.step) for line in self._call(s))
        yield "    bool sound = true;"
        for register in stepping.state:
            x = f"reg[{LANES} * ({self.offset[register]} + j)]"
            size = stepping.registers[register]
            yield from self._each(size, f"sound = sound && {x} - {x} == (T)0;")
        yield f"    if (!sound && !code) code = {status.RESULT};"
        yield "    if (code && lost < 0) *flag = code;"
        yield "    code = 0;"
        yield "    meet(0);"
        yield "    if (*flag && lost < 0) lost = i;"
        yield "    if (--pause == 0 || i + 1 == steps) {"
        yield "    pause = every;"
        yield from (f"    {line}" for s in straight(stepping.leave) for line in self._call(s))
        yield from self._recorded(width)
        yield "    }"
        yield "    meet(0);"

    def _call(self, segment: Segment) -> Iterator[str]:
        """A segment, once or again; the first trouble of a motion is kept."""
        index = next(i for i, d in enumerate(self.dealt) if d.segment is segment)
        call = f"{{ const int found = segment{index}(reg, h, worker); if (!code) code = found; }}"
        if not segment.again:
            yield call
            return
        wish = self.entry(segment.again, 0)
        yield f"for (int k = 0; k < {segment.most}; ++k) {{"
        yield f"    {call}"
        yield f"    const bool more = __any_sync(0xffffffffu, {wish} > (T)0);"
        yield "    meet(0);"
        yield "    if (!more) break;"
        yield "}"


class _Worker:
    """The statements of one worker in one segment."""

    def __init__(self, group: _Group, dealt: _Dealt, code: WorkerCode) -> None:
        self.g, self.dealt, self.code, self.items = group, dealt, code, code.items
        self.loaded: set[int] = set()
        self.turned: set[int] = set()
        self.names = dict[int, str]()
        self.reads = [name for name, _ in dealt.segment.reads]
        self.writes = [(r, i) for r, size in dealt.segment.writes for i in range(size)]

    def lines(self) -> Iterator[str]:
        """Phase by phase; what is written comes when nobody reads what was there before."""
        code, phase = self.code, 0
        operations = [i for i, item in enumerate(self.items) if item.kind == "op"]
        for i in sorted(operations, key=lambda i: (code.phase[i], i)):
            while phase < code.phase[i]:
                yield "meet(0);"
                phase += 1
                self.names = {k: x for k, x in self.names.items() if self.items[k].kind == "op"}
            yield from self._statement(i)
            if i in code.given:
                yield f"hand[{LANES * self.dealt.slots[code.given[i][0]]}] = {self._name(i)};"
        for _ in range(phase, self.dealt.phases - 1):
            yield "meet(0);"
        for check in code.checked:
            yield from self._load(check.item)
            name = self._name(check.item)
            yield from checked(name, check.low, check.high, check.code, self.g.dtype)
        for s in code.stored:
            yield from self._load(s.item)
        if {name for name, _ in self.writes} & set(self.reads):
            yield "meet(0);"
        for s in code.stored:
            yield f"{self.g.entry(*self.writes[s.entry])} = {self._name(s.item)};"

    def _load(self, i: int) -> Iterator[str]:
        """What is in shared memory, read once a phase."""
        item = self.items[i]
        if item.kind not in ("input", "hand") or i in self.names:
            return
        if item.kind == "hand":
            place = f"hand[{LANES * self.dealt.slots[item.key]}]"
        else:
            place = self.g.entry(self.reads[item.array], item.entry)
        self.names[i] = f"x{i}_{len(self.loaded)}"
        self.loaded.add(len(self.loaded))
        yield f"const T {self.names[i]} = {place};"

    def _statement(self, i: int) -> Iterator[str]:
        item = self.items[i]
        for x in item.arguments:
            yield from self._load(x)
        if item.op in ("sin", "cos"):
            angle = item.arguments[0]
            if angle not in self.turned:
                self.turned.add(angle)
                yield from turn(angle, self._name(angle))
            self.names[i] = f"{item.op[0]}{angle}"
        else:
            names = [self._name(x) for x in item.arguments]
            self.names[i] = f"t{i}"
            yield f"const T t{i} = {operation(item.op, names, self.g.dtype)};"

    def _name(self, i: int) -> str:
        item = self.items[i]
        return self.g.constant(item.numbers[0]) if item.kind == "const" else self.names[i]


def by_results(traced: Traced, workers: int) -> Split:
    """A graph dealt out by what it writes: results that share much of their work stay together."""
    graph = traced.graph
    cones = [
        {n for n in graph.used([node]) if graph.op[n] not in ("const", "input")}
        for node in dict.fromkeys(traced.roots)
    ]
    together = list[tuple[list[int], set[int]]]()
    for node, cone in zip(dict.fromkeys(traced.roots), cones, strict=True):
        if together and len(cone & together[-1][1]) >= ALIKE:
            together[-1][0].append(node)
            together[-1][1].update(cone)
        else:
            together.append(([node], set(cone)))
    busy, owner, reads = [0] * workers, dict[int, int](), dict[Key, tuple[Key, ...]]()
    for nodes, cone in sorted(together, key=lambda x: -len(x[1])):
        worker = busy.index(min(busy))
        busy[worker] += len(cone) + len(nodes)
        owner |= dict.fromkeys(nodes, worker)
        for n in cone:
            pair = {x for x in (graph.a[n], graph.b[n]) if x >= 0}
            kept = sorted(x for x in pair if graph.op[x] not in ("const", "input"))
            reads[n, worker] = tuple((x, worker) for x in kept)
    ordered = dict(sorted(reads.items()))
    return Split(workers, 1, ordered, dict.fromkeys(ordered, 0), owner)


def _work(traced: Traced) -> int:
    return traced.graph.count(traced.roots).total()
