# pyright: basic
# (CuPy is optional, and has no type information here)
"""The device of long chains: their bodies run in parallel on a GPU, not the states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from linkwise.algebra.symbols import D, M, articulated
from linkwise.codegen import arrays as caller_arrays, stages
from linkwise.codegen.cuda.memory import InGpuMemory, PerGpu, module_of
from linkwise.codegen.device import Trouble
from linkwise.codegen.request import Request
from linkwise.codegen.scalar import status
from linkwise.codegen.scan.chunked import Chunked, chunked
from linkwise.codegen.scan.element_code import THREADS
from linkwise.codegen.scan.source import scan_source
from linkwise.codegen.stages import Signature
from linkwise.errors import ExpressionError
from linkwise.model.mechanism import Mechanism
from linkwise.sweeps.lower import lower
from linkwise.sweeps.result_part import ResultPart
from linkwise.sweeps.scan.path import Indices
from linkwise.sweeps.scan.riccati import resists
from linkwise.sweeps.scan.run import Stacked

SHORTEST = 8
"""Bodies of a run, at least: fewer make more elements than they save steps."""

MOST_RUNS = 16_384
"""Runs of a chain, at most: as many as two rounds of blocks scan."""

THREADS_OF_RUNS = 32
"""Threads of a block that sweep a run each."""

MOST_GRAPHS = 16
"""Sets of arrays whose kernels are kept as graphs."""

SIZES = {"affine": 42, "Riccati": 78}
"""Numbers of an element."""

ADDRESSES = ("start", "kind", "q_at", "v_at", "table", "record")
"""What the kernels know by address, in order."""


@dataclass(frozen=True, slots=True)
class Runs:
    """A chain as runs of neighbouring bodies.

    Attributes:
        start: The first body of each run, and the number of bodies.
        place: Where the numbers of each body are among those of its kind.
        room: How many places there are.
    """

    start: Indices
    place: Indices
    room: int


def runs_of(mech: Mechanism) -> Runs:
    """Runs of equal length, whose outermost bodies resist their hinges by themselves."""
    n = mech.n_bodies
    length = max(SHORTEST, -(-n // MOST_RUNS))
    heavy = _heavy(mech)
    start = [0]
    for cut in range(length, n, length):
        while cut > start[-1] and not heavy[cut - 1]:
            cut -= 1
        if cut > start[-1]:
            start.append(cut)
    edges = np.array([*start, n])
    count = len(edges) - 1
    run = np.repeat(np.arange(count), np.diff(edges))
    place = (np.arange(n) - edges[run]) * count + run
    return Runs(edges, place, int(np.diff(edges).max()) * count)


def _heavy(mech: Mechanism) -> np.ndarray:
    """Whether the inertia of each body resists its hinge, also compared with that of its child."""
    run = Stacked(lower(D, ResultPart(blocks=True)), mech, mech.neutral(), None, (), {})
    for group in run.plan.groups:
        if group.kind == "map" and group.statements[0].special:
            run.set(group.statements[0], run.everybody)
    inward = run.everybody[::-1]
    inertia = run.value[M, True][inward]
    return resists(run, articulated, inward, inertia, inward == mech.n_bodies - 1)[::-1]


class ChainGpu(InGpuMemory):
    """Code of a request for one long chain on a GPU; states of a batch run one after another."""

    fast = None

    def __init__(self, request: Request) -> None:
        self.request, self.dtype = request, np.dtype(np.float64)
        if request.itemsize != 8 or request.parameters:
            raise ExpressionError(
                "schedule='scan' on a GPU supports float64 only, without run-time parameters. Use "
                "dtype=float64, and change the numbers in the mechanism."
            )
        self._loaded = PerGpu(lambda cp, _: Loaded(cp, self.code))
        assert self.chunked  # or it raises: not a chain, or no scan

    @cached_property
    def chunked(self) -> Chunked:
        """The loops and what they hand on."""
        return chunked(stages.program(self.request), self.request.mech, self.request.itemsize)

    @cached_property
    def runs(self) -> Runs:
        """The runs of the chain."""
        return runs_of(self.request.mech)

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """For each input array its name and length."""
        return self.signature.inputs

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        rolled = self.chunked.rolled
        return Signature(rolled.inputs, rolled.shape, rolled.ops)

    @property
    def source(self) -> str:
        """The CUDA source."""
        return self._text

    @cached_property
    def _text(self) -> str:
        return scan_source(self.chunked)

    @property
    def code(self) -> ChainCode:
        """What a GPU needs."""
        chunks, runs = self.chunked, self.runs
        kinds = tuple(None if x is None else x.kind for x in chunks.carried)
        record = max(code.records[0] for code in chunks.rolled.codes)
        count = len(runs.start) - 1
        beside = _beside(chunks)
        return ChainCode(self.source, kinds, beside, tables(chunks, runs), count, runs.room, record)

    @property
    def description(self) -> str:
        """How it runs."""
        count = len(self.runs.start) - 1
        return f"{count} runs of bodies in parallel, {self.depth} scans; the CUDA source:"

    @property
    def depth(self) -> int:
        """Scans."""
        return sum(x is not None for x in self.chunked.carried)

    def whole_batch(self, arrays: tuple[Any, ...], out: Any, codes: Any, threads: Any) -> Any:
        """None: states run one after another."""
        return None

    def run(
        self, rows: list[Any], batch: int | None, out: Any, codes: Any, threads: Any
    ) -> tuple[Any, Trouble | None]:
        """The results, state by state."""
        cp, shape = caller_arrays.cupy(), self.signature.shape
        count = 1 if batch is None else batch
        out = cp.empty(shape if batch is None else (batch, *shape)) if out is None else out
        marks = cp.zeros(count, np.int32)
        loaded = self._loaded.here()
        for i in range(count):
            state = [x if x.ndim == 1 else x[i % len(x)] for x in rows]
            loaded(state, out if batch is None else out[i], marks[i : i + 1])
        if codes is not None:
            codes[...] = marks.reshape(codes.shape)
            return out, None
        reported = marks.get()
        bad = np.flatnonzero(reported)
        if not len(bad):
            return out, None
        for i in bad:
            (out if batch is None else out[i])[...] = np.nan
        first = int(bad[0])
        finite = all(bool(cp.isfinite(x if x.ndim == 1 else x[first % len(x)]).all()) for x in rows)
        code = int(reported[first]) if finite else status.INPUT
        return out, Trouble(len(bad), first, code)


def _beside(chunked: Chunked) -> tuple[bool, ...]:
    """Whether each stage reads nothing that the one before it makes."""
    out = list[bool]()
    made = chunked.rolled.plan.made
    for stage in range(len(chunked.carried)):
        free = stage > 0 and not (out and out[-1])
        for code in chunked.rolled.codes:
            visit, before = code.visits[stage], code.visits[stage - 1]
            read = {made[leaf.key[0]] for n in visit.leaves if (leaf := code.leaf[n]).key}
            if stage - 1 in read or set(before.kept) & set(visit.fetched) or before.results:
                free = False
        out.append(free)
    return tuple(out)


def tables(chunked: Chunked, runs: Runs) -> dict[str, np.ndarray]:
    """The tables of a chain, as the kernels read them."""
    rolled = chunked.rolled
    mech_rows, table = rolled.places, rolled.table
    kind = np.ascontiguousarray(mech_rows.rows[:, mech_rows.column("class")], dtype=np.int32)
    begin = mech_rows.rows[:, mech_rows.column("table")].astype(np.int64)
    widths = np.array([len(code.kind.varying) for code in rolled.codes])
    spread = np.zeros((int(widths.max(initial=0)), runs.room))
    for i, width in enumerate(widths.tolist()):
        ks = np.flatnonzero(kind == i)
        spread[:width, runs.place[ks]] = table[begin[ks][:, None] + np.arange(width)].T
    return {
        "start": runs.start.astype(np.int32),
        "kind": kind,
        "q_at": mech_rows.rows[:, mech_rows.column("q")].astype(np.int32),
        "v_at": mech_rows.rows[:, mech_rows.column("v")].astype(np.int32),
        "table": spread,
    }


@dataclass(frozen=True, slots=True)
class ChainCode:
    """What a GPU needs to run a chain.

    Attributes:
        source: The CUDA source.
        kinds: For each stage "affine", "Riccati", or None without a scan.
        beside: Whether each stage needs nothing of the one before, and can run beside it.
        tables: The tables of the chain.
        runs: The number of runs.
        room: Places for an entry of all bodies.
        record: Numbers that a body keeps for later stages.
    """

    source: str
    kinds: tuple[str | None, ...]
    beside: tuple[bool, ...]
    tables: dict[str, np.ndarray]
    runs: int
    room: int
    record: int


class Loaded:
    """Machine code and tables on one GPU."""

    def __init__(self, cp: Any, code: ChainCode) -> None:
        self.cp, self.code, self.blocks = cp, code, -(-code.runs // THREADS)
        self.module = module_of(cp, code.source)
        held = {name: cp.asarray(x) for name, x in code.tables.items()}
        held["record"] = cp.empty(code.record * code.room)
        address = [code.runs, code.room, *(held[name].data.ptr for name in ADDRESSES)]
        held["chain"] = cp.asarray(np.array(address, dtype=np.int64))
        self.held, self.functions = held, dict[str, Any]()
        most = max(SIZES[x] for x in code.kinds if x)
        # elements of runs and of blocks, for stages that run side by side
        sides = range(1 + any(code.beside))
        self.elements = [(cp.empty(most * code.runs), cp.empty(most * self.blocks)) for _ in sides]
        self.graphs = dict[tuple[int, ...], Any]()
        self.side = cp.cuda.Stream(non_blocking=True)

    def _function(self, name: str, shared: int = 0) -> Any:
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = self.module.get_function(name)
            if shared:
                function.max_dynamic_shared_size_bytes = shared
        return function

    def launches(self, stage: int, given: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
        """The kernels of a stage in order: their names, and what starts each."""
        runs, kind = self.code.runs, self.code.kinds[stage]
        grid, block = (-(-runs // THREADS_OF_RUNS),), (THREADS_OF_RUNS,)
        elements, totals = self.elements[int(self.code.beside[stage])]
        given = (self.held["chain"], elements, totals, *given)
        if kind is not None:
            fold = self._function(f"fold_{stage}")
            yield f"fold {stage}", partial(fold, grid, block, given)
            which = "affine" if kind == "affine" else "kalman"
            room = 2 * 8 * THREADS * SIZES[kind]  # two halves
            scan, threads = self._function(f"scan_{which}", room), (THREADS,)
            of_runs = (elements, np.int32(runs), totals)
            yield "scan", partial(scan, (self.blocks,), threads, of_runs, shared_mem=room)
            if self.blocks > 1:
                of_blocks = (totals, np.int32(self.blocks), np.uint64(0))
                yield "scan", partial(scan, (1,), threads, of_blocks, shared_mem=room)
        apply = self._function(f"apply_{stage}")
        yield f"apply {stage}", partial(apply, grid, block, given)

    def __call__(self, rows: list[Any], out: Any, mark: Any) -> None:
        """Start all kernels for one state; arrays that come again are started as one graph."""
        key = tuple(x.data.ptr for x in (*rows, out, mark))
        graph = self.graphs.get(key)
        if graph is None and key in self.graphs:  # the second time
            recorder = self.cp.cuda.Stream(non_blocking=True)
            with recorder:
                recorder.begin_capture()
                self._start(rows, out, mark)
                graph = self.graphs[key] = recorder.end_capture()
        if graph is not None:
            graph.launch(self.cp.cuda.get_current_stream())
            return
        if len(self.graphs) >= MOST_GRAPHS:
            self.graphs.clear()
        self.graphs[key] = None
        self._start(rows, out, mark)

    def _start(self, rows: list[Any], out: Any, mark: Any) -> None:
        """Start all kernels, on the current stream and one beside it."""
        given, beside = (*rows, out, mark), (*self.code.beside, False)
        main = self.cp.cuda.get_current_stream()
        for stage in range(len(self.code.kinds)):
            if beside[stage]:
                continue  # it was started with the one before
            if beside[stage + 1]:
                self.side.wait_event(main.record())
                with self.side:
                    for _, launch in self.launches(stage + 1, given):
                        launch()
                joined = self.side.record()
            for _, launch in self.launches(stage, given):
                launch()
            if beside[stage + 1]:
                main.wait_event(joined)
