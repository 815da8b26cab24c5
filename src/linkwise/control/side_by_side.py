"""Problems of a batch side by side: in the lanes and cores of the processor, or on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen import arrays
from linkwise.codegen.c.text import plain_name
from linkwise.codegen.stepping.cuda_batch import Batch, StagesKernel, most_motions, written_stages
from linkwise.codegen.stepping.cuda_stages import StagesSource, emit_stages
from linkwise.codegen.stepping.stepping import STEP, Loop, placed
from linkwise.control.routine import NOTED, ROUNDS, Routine
from linkwise.control.solver import SHARES, Data, Limits
from linkwise.errors import DeviceError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array

OFTEN = 0.1
"""Time between two reports on a batch, where iterations are faster [s]."""

LARGEST = 100_000
"""Operations of all stages beyond which the GPU's compiler takes too long."""

Report = Callable[[int, float, float, int, int, float, float], None]
"""Takes iterations, the mean cost, the largest violation, problems that have ended, all problems,
and the times since the beginning and that the rest takes at most [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """How a batch ended; on a GPU its first four are there.

    Attributes:
        x: q, v and u of all knots (batch, K, .).
        gain: K of all steps (batch, K - 1, nu 2 nv).
        cost: Without penalties (batch,).
        violation: The largest one (batch,).
        count: Iterations (batch,).
        ended: A code of `solver.py` (batch,).
        notes: `NOTED` of each iteration, NaN where there was none (batch, iterations, 3).
    """

    x: Any
    gain: Any
    cost: Any
    violation: Any
    count: NDArray[np.int64]
    ended: NDArray[np.int64]
    notes: Array


class Side(Protocol):
    """Where the iterations are made."""

    def advance(self, turns: int) -> dict[str, Array]:
        """Make iterations; gives "cost", "ended" and "count" (batch,), and "history"."""
        ...

    def results(self) -> dict[str, Any]:
        """Registers "x" and "gain" (batch, .), and "price" of constraints."""
        ...


def solved(
    routine: Routine,
    data: Data,
    step: float,
    limits: Limits,
    *,
    target: str,
    threads: int | None,
    inform: Report | None,
) -> Solved:
    """Solve all problems.

    With reports a call makes fewer iterations, and the next one goes on from there.

    Args:
        routine: The iterations.
        data: The numbers of the problems.
        step: Length of a step [s].
        limits: When to stop.
        target: "cpu" or "cuda".
        threads: Processor cores; None: chosen from the batch size.
        inform: Called now and then.
    """
    if target == "cpu":
        return _run(OnCores(routine, data, step, limits, threads), routine, data, limits, inform)
    kernel, total = stages_kernel(routine, data), len(data.start)
    most = most_motions(kernel)
    parts = [np.arange(i, min(i + most, total)) for i in range(0, total, most)]
    done = list[Solved]()
    for rows in parts:
        part = data if len(parts) == 1 else data.part(rows)
        side = OnGpu(kernel, routine, part, step, limits)
        done.append(_run(side, routine, part, limits, inform))
    return done[0] if len(done) == 1 else _joined(done)


def _joined(parts: Sequence[Solved]) -> Solved:
    most = max(x.notes.shape[1] for x in parts)

    def there(name: str) -> Any:
        return arrays.cupy().concatenate([getattr(x, name) for x in parts])

    def here(name: str) -> Any:
        return np.concatenate([getattr(x, name) for x in parts])

    notes = [
        np.pad(x.notes, ((0, 0), (0, most - x.notes.shape[1]), (0, 0)), constant_values=np.nan)
        for x in parts
    ]
    return Solved(
        there("x"), there("gain"), there("cost"), there("violation"), here("count"), here("ended"),
        np.concatenate(notes),
    )  # fmt: skip


def _run(side: Side, routine: Routine, data: Data, limits: Limits, inform: Report | None) -> Solved:
    total, K, p, begun = len(data.start), routine.knots, routine.program, time.monotonic()
    turns, made, notes = ROUNDS if inform is None else 1, 0, list[Array]()
    worst = np.zeros(total)
    while True:
        done = side.advance(turns)
        new = int(done["count"].max()) - made
        history = done["history"].reshape(total, ROUNDS, -1)[:, :new]
        notes.append(history)
        made, over = made + new, int(np.count_nonzero(done["ended"]))
        if inform is not None:
            now = time.monotonic() - begun
            last = done["count"].astype(int) - (made - new) - 1  # row of this call
            on = last >= 0  # others ended before
            worst[on] = history[on, last[on], 2]
            left = now / made * (limits.iterations - made)
            cost = float(np.nanmean(done["cost"]))
            inform(made, cost, float(worst.max()), over, total, now, left)
            turns = int(np.clip(OFTEN * made / now, 1, ROUNDS))
        if over == total:
            break
    parts = side.results()
    cost = parts["cost"]
    xp: Any = arrays.cupy() if arrays.is_on_gpu(cost) else np
    violation = xp.zeros(total)
    if routine.bounds:
        bare, off = parts["price"].T
        fine = xp.isfinite(bare)
        cost, violation = xp.where(fine, bare, cost), xp.where(fine, off, np.inf)
    noted, counts = np.concatenate(notes, axis=1), done["count"].astype(np.int64)
    noted[np.arange(made) >= counts[:, None]] = np.nan  # nothing was written there
    noted[..., 1] = np.sqrt(noted[..., 1])
    gain = parts["gain"].reshape(total, K + 1, -1)[:, 1:K, : p.m * p.n]
    x = parts["x"].reshape(total, K + 1, -1)[:, :K]
    return Solved(x, gain, cost, violation, counts, done["ended"].astype(np.int64), noted)


def _given(routine: Routine, data: Data, limits: Limits) -> dict[str, Array]:
    """Everything that a call begins with besides "turns", each (1 or batch, n)."""
    ends = {"tolerance": limits.tolerance, "most": limits.iterations}
    ends |= {"allowed": limits.violation} if routine.bounds else {}
    fixed = {x: np.full((1, 1), float(a)) for x, a in ends.items()}
    fixed |= {"shares": np.array([SHARES[1:]])} if routine.spread else {}
    held = {x: data.held[x] for x in routine.inputs}
    fixed |= {x: a.reshape(len(a), -1) for x, a in held.items()}
    state = {x: a[:, 0] for x, a in routine.first(len(data.start)).items()}
    return fixed | state


TOGETHER = 0.5
"""Share of the lanes whose problems have to go on for a call to do so: lanes whose problems have
ended wait for their neighbours, and are filled anew by another call, which takes its time, too."""


class OnCores:
    """Many iterations of all problems in one call of one kernel, whose lanes hold problems."""

    def __init__(
        self, routine: Routine, data: Data, step: float, limits: Limits, threads: int | None
    ) -> None:
        """Take the numbers."""
        self._kernel, self._total = routine.kernel, len(data.start)
        self._step, self._threads = step, threads
        ends = np.cumsum([0, *self._kernel.shown.values()])
        self._at = {x: slice(*ends[i : i + 2]) for i, x in enumerate(self._kernel.shown)}
        self._state = list(routine.state)
        self._given = _given(routine, data, limits)
        self._given |= {"x": routine.packed(data.start, data.guess)}
        self._records = np.zeros((0, 0))

    def advance(self, turns: int) -> dict[str, Array]:
        """Make iterations."""
        made = np.zeros(self._total, np.intp)
        history = np.full((self._total, ROUNDS, len(NOTED)), np.nan)
        going = self._going(made, turns)
        while len(going):
            before, had = self._count(going), made[going]
            records = self._called(going, turns - had)
            if len(going) == self._total:
                self._records = records
            else:
                self._records[going] = records
            new = self._count(going) - before
            rows = records[:, self._at["history"]].reshape(len(going), ROUNDS, -1)
            for start, count in {*zip(had.tolist(), new.tolist(), strict=True)}:
                alike = (had == start) & (new == count)
                history[going[alike], start : start + count] = rows[alike, :count]
            made[going] += new
            going = self._going(made, turns)
        done = {x: self._records[:, self._at[x]][:, 0] for x in ("cost", "ended", "count")}
        return done | {"history": history}

    def _count(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Iterations of some problems."""
        if not len(self._records):
            return np.zeros(len(rows), np.intp)
        return self._records[rows, self._at["count"].start].astype(np.intp)

    def _going(self, made: NDArray[np.intp], turns: int) -> NDArray[np.intp]:
        """Problems that have not ended, nor made all iterations of a call."""
        if not len(self._records):
            return np.arange(self._total)
        on = self._records[:, self._at["ended"].start] == 0.0
        return np.flatnonzero(on & (made < turns))

    def _called(self, rows: NDArray[np.intp], turns: NDArray[np.intp]) -> Array:
        """Records (rows, .) of some problems after more iterations, one or more of each."""
        kernel, lanes = self._kernel, self._kernel.lanes
        # lanes that are full: the last problem is repeated
        each = np.minimum(np.arange(-(-len(rows) // lanes) * lanes), len(rows) - 1)
        full, least = rows[each], max(TOGETHER * lanes, 1.0) if len(rows) > lanes else 1.0
        given = {x: a if len(a) == 1 else a[full] for x, a in self._given.items()}
        if len(self._records):
            given |= {x: self._records[full, self._at[x]] for x in self._state}
        given |= {"turns": turns[each, None].astype(float), "together": np.full((1, 1), least)}
        inputs, nothing = {x: a[:, None] for x, a in given.items()}, np.zeros((len(full), 0))
        done = kernel.run(nothing, nothing, inputs, self._step, 1, 1, self._threads)
        return done.records[: len(rows), 0]

    def results(self) -> dict[str, Any]:
        """Registers of all problems."""
        parts = {x: self._records[:, where] for x, where in self._at.items()}
        return parts | {"cost": parts["cost"][:, 0]}


class OnGpu:
    """Iterations launch by launch; problems that have ended are left out.

    Attributes:
        batch: The registers of the problems.
    """

    def __init__(
        self, kernel: StagesKernel, routine: Routine, data: Data, step: float, limits: Limits
    ) -> None:
        """Take the memory, and copy the numbers of the problems there."""
        self._routine, self.batch = routine, Batch(kernel, len(data.start))
        self.batch.put(STEP, np.full((1, 1), step))
        for name, rows in _given(routine, data, limits).items():
            self.batch.put(name, rows)
        cp, guess = arrays.cupy(), data.guess
        few = cp.asarray(guess[:, :1] if guess.strides[1] == 0 else guess)
        full = cp.broadcast_to(few, guess.shape)
        self.batch.put("x", routine.packed(cp.asarray(data.start), full, cp))

    def advance(self, turns: int) -> dict[str, Array]:
        """Make iterations."""
        batch = self.batch
        batch.put("turns", np.full((1, 1), float(turns)))
        batch.run(ENTER, batch.every())
        for turn in range(turns):
            which = batch.going("running")
            if not which.size:
                break
            batch.run(ITERATE, which, turn)
        done = {x: batch.get(x, 1)[:, 0].get() for x in ("cost", "ended", "count")}
        return done | {"history": batch.get("history", len(NOTED) * ROUNDS).get()}

    def results(self) -> dict[str, Any]:
        """Registers of all problems, on the GPU."""
        batch, r = self.batch, self._routine
        batch.run(LEAVE, batch.every())
        sizes = dict(r.memory) | ({"price": 2} if r.bounds else {})
        names = ("x", "gain", *(("price",) if r.bounds else ()))
        return {x: batch.get(x, sizes[x]) for x in names} | {"cost": batch.get("cost", 1)[:, 0]}


ENTER, ITERATE, LEAVE = range(3)
"""Parts of the stages: how a call begins, an iteration, and what the end takes."""


@once_per_mechanism
def _kernels(mech: Mechanism) -> dict[Any, StagesKernel]:
    return {}


def stages_kernel(routine: Routine, data: Data) -> StagesKernel:
    """The stages of a routine, where numbers that problems share are in memory once.

    Raises:
        DeviceError: The mechanism is too large for straight code.
    """
    mech, ones = routine.program.mech, tuple(x for x in routine.inputs if len(data.held[x]) == 1)
    known, key = _kernels(mech), (routine.program.structure, routine.knots, routine.timed, ones)
    if key in known:
        return known[key]
    stepping, written = routine.stepping(), set[str]()
    for segment in stepping.segments:
        written |= {placed(name)[0] for name, _ in segment.writes}
    work = sum(s.traced.graph.count(s.traced.roots).total() for s in stepping.segments)
    if work > LARGEST:
        raise DeviceError(
            f"an iteration for {mech.name} takes {work} operations a knot, as straight code on "
            f"the GPU; the limit is {LARGEST}. Use target='cpu'."
        )
    given = STEP, "tolerance", "most", "allowed", "shares", *ones
    common = tuple(x for x in given if x in stepping.registers and x not in written)

    def emit(room: int) -> StagesSource:
        solve, *price = stepping.step
        assert isinstance(solve, Loop)
        parts = stepping.enter, solve.body, tuple(price)
        title = [f"trajectories of {plain_name(mech.name)} that cost least, written by Linkwise"]
        return emit_stages(stepping, parts, common, title=title, room=room)

    return known.setdefault(key, written_stages(emit))
