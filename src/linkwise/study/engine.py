"""Running a study: chunks in threads of this process, or as tasks of Dask.

At any time a bounded number of chunks is under way: memory does not grow with the study, and the
scheduler of Dask holds a few tasks, not millions. A chunk counts when its line is on the disk.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from linkwise.arguments import count, path as checked_path, shown
from linkwise.errors import ModelError, StudyError, WriteError
from linkwise.study.chunk import computed, encoded, on_worker
from linkwise.study.folder import Chunk, Folder, locked, made, prepared
from linkwise.study.kept import Evaluated
from linkwise.study.results import Results
from linkwise.study.rollouts import Rollouts
from linkwise.study.study import Study
from linkwise.study.variable import extra

AHEAD = 2
"""Chunks under way for each thread of a worker: one computes, one waits."""

ATTEMPTS = 3
"""How often a chunk is given to workers before it is left out."""

BESIDE_GPU = 8
"""The most chunks at a time where a GPU moves them: more are no faster, and take memory."""

PATIENCE = 60.0
"""Seconds without any worker after which a study ends."""

OVERHEAD = 300_000_000
"""Bytes of a process with its libraries and kernels, where the system does not tell."""

FEW = (16, 48)
"""Cases of the two batches whose memory is compared."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a study is.

    Attributes:
        done: Cases that are on the disk.
        cases: All cases.
        failed: Those of them that failed.
        rate: Cases per second in this run.
        left: Seconds until the end, at this rate.
    """

    done: int
    cases: int
    failed: int
    rate: float
    left: float

    def __str__(self) -> str:
        rest = f"{self.rate:,.0f} cases/s, {_duration(self.left)} left"
        failed = f", {self.failed:,} failed" if self.failed else ""
        share = 100 * self.done / self.cases
        return f"{self.done:,} of {self.cases:,} cases ({share:.1f} %), {rest}{failed}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will need.

    Attributes:
        chunks: How many chunks there are.
        chunk: Cases of a chunk.
        memory: Bytes of memory of each process, about: what this one holds after one case (the
            interpreter, libraries, kernels, the Parquet writer), and the arrays of the chunks that
            are computed at a time.
        disk: Bytes on the disk, about.
    """

    chunks: int
    chunk: int
    memory: int
    disk: int

    def __str__(self) -> str:
        return (
            f"{self.chunks:,} chunks of {self.chunk:,} cases; about {self.memory / 1e6:,.0f} MB of "
            f"memory in each process and {self.disk / 1e6:,.0f} MB on the disk"
        )


def plan(study: Study, sample: Evaluated, chunk: int, threads: int = 1) -> Plan:
    """An estimate of what a run needs, from one case that was computed and encoded before."""
    row = 8 * (len(sample.columns) + len(study.names) + 5)
    kept = sum(x[0].nbytes for x in sample.trajectories.values())
    each = 3 * (row + kept) + _growth(study)
    memory = _resident() + threads * min(chunk, study.cases) * each
    return Plan(-(-study.cases // chunk), chunk, memory, study.cases * (row + kept))


def _growth(study: Study) -> int:
    """Bytes that one more case takes in a batch of motions, measured; others run one by one."""
    if not isinstance(study.work, Rollouts):
        return 0
    traced, peaks = tracemalloc.is_tracing(), list[int]()
    if not traced:
        tracemalloc.start()
    try:
        for size in FEW:
            values = {k: np.repeat(x, size) for k, x in study.values(0, 1).items()}
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            study.evaluate(values, threads=1)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not traced:
            tracemalloc.stop()
    return max(0, peaks[1] - peaks[0]) // (FEW[1] - FEW[0])


def _resident() -> int:
    """Bytes of memory that this process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):  # not Linux
        return OVERHEAD


class Pool(Protocol):
    """Something that computes chunks."""

    size: int

    def submit(self, index: int) -> None:
        """Begin a chunk."""
        ...

    def done(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        """Wait for some chunks that are finished or failed."""
        ...

    def close(self) -> None:
        """End it; chunks under way are dropped."""
        ...


class Threads:
    """Threads of this process, a core each: kernels run without the interpreter."""

    def __init__(self, study: Study, folder: Folder, workers: int) -> None:
        self.study, self.folder, self.size = study, folder, workers
        self._pool = ThreadPoolExecutor(workers)
        self._under_way = dict[Future[Chunk], int]()

    def submit(self, index: int) -> None:
        """Begin a chunk."""
        self._under_way[self._pool.submit(computed, self.study, self.folder, index)] = index

    def done(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        """Wait for some chunks."""
        while True:  # in short waits, so that Ctrl-C is heard
            finished, _ = wait(self._under_way, timeout=0.5, return_when=FIRST_COMPLETED)
            if finished:
                break
        for future in finished:
            index, error = self._under_way.pop(future), future.exception()
            yield index, future.result() if error is None else error

    def close(self) -> None:
        """End it."""
        self._pool.shutdown(wait=True, cancel_futures=True)


CANCELLED = asyncio.CancelledError, CancelledError
"""What waiting for tasks raises when their scheduler is gone."""


class Tasks:
    """Tasks of Dask, on any cluster whose workers see the folder."""

    def __init__(self, client: Any, folder: Folder) -> None:
        self.client, self.folder = client, folder
        self._under_way = dict[Any, int]()
        self._seen = time.monotonic()
        self.size = max(1, sum(client.nthreads().values()))
        self._distributed = extra("distributed", "distributed", "a study on Dask")

    def submit(self, index: int) -> None:
        """Begin a chunk."""
        manifest = self.folder.manifest
        given = str(self.folder.path.resolve()), manifest["digest"], self.folder.cases, index
        future = self.client.submit(on_worker, *given, pure=False, retries=0)
        self._under_way[future] = index

    def done(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        """Wait for some chunks; raises when no worker or no scheduler is left."""
        try:
            yield from self._finished()
        except (OSError, *CANCELLED):
            raise StudyError("the scheduler of Dask cannot be reached any more") from None

    def _finished(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        while True:
            try:
                finished, _ = self._distributed.wait(
                    list(self._under_way), timeout=2.0, return_when="FIRST_COMPLETED"
                )
                break
            except (TimeoutError, self._distributed.TimeoutError):
                self._look()
        for future in finished:
            index = self._under_way.pop(future)
            if future.status == "finished":
                yield index, future.result()
            elif future.status == "cancelled":
                yield index, StudyError("the scheduler dropped the chunk")
            else:
                yield index, future.exception()
            future.release()

    def _look(self) -> None:
        """Workers that are there; raises if there were none for a while."""
        if self.client.status not in ("running", "connecting"):
            raise StudyError("the scheduler of Dask cannot be reached any more")
        try:
            threads = sum(self.client.nthreads().values())
        except Exception as error:  # connections fail in many ways
            raise StudyError(f"the scheduler of Dask cannot be reached any more: {error}") from None
        if threads:
            self._seen, self.size = time.monotonic(), threads
        elif time.monotonic() - self._seen > PATIENCE:
            raise StudyError(f"no worker was there for {PATIENCE:.0f} s")

    def close(self) -> None:
        """Drop what is under way."""
        for future in self._under_way:
            future.release()
        self._under_way.clear()


def run(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    workers: Any = None,
    chunk: int | None = None,
    progress: Any = None,
) -> Results:
    """Compute what is missing; see `Study.run`."""
    place = checked_path(folder, "folder")
    chunk = None if chunk is None else count(chunk, "chunk", least=1)
    tell = _teller(progress)
    extra("pyarrow", "pyarrow.parquet", "a study")
    sample = study.trial()
    made(place)
    with locked(place):
        home = prepared(study, place, chunk, sample)
        home.clean()
        done = home.finished()
        missing = [k for k in range(home.count) if k not in done]
        if missing:
            encoded(study, home, 0, study.values(0, 1), sample)  # loads what every chunk needs
            threads = _threads(study) if workers is None else 1
            needs = plan(study, sample, home.chunk, threads)
            _check_disk(home, needs, len(missing))
            if tell is not None:
                tell(needs)
            _run(study, home, missing, workers, tell)
    return Results(home)


def _check_disk(folder: Folder, needs: Plan, missing: int) -> None:
    free = folder.free
    still = needs.disk * missing // max(needs.chunks, 1)
    if still > free:
        raise StudyError(
            f"{folder.path}: the study needs about {still / 1e6:,.0f} MB more, and "
            f"{free / 1e6:,.0f} MB are free. Free some space, keep less, or use another disk."
        )


def _run(
    study: Study,
    folder: Folder,
    missing: list[int],
    workers: Any,
    tell: Callable[[object], None] | None,
) -> None:
    cluster: Any = None
    client: Any = None
    if workers is None or isinstance(workers, bool):
        pool: Pool = Threads(study, folder, _threads(study))
    elif hasattr(workers, "submit") and hasattr(workers, "nthreads"):
        pool = Tasks(workers, folder)
    else:
        try:
            number = count(workers, "workers", least=1, most=4096)
        except ModelError:
            raise ModelError(
                f"workers is {shown(workers)}; it must be None, a number of processes, or a "
                "dask.distributed.Client."
            ) from None
        distributed = extra("distributed", "distributed", "a study on several processes")
        cluster = distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        client = distributed.Client(cluster)
        pool = Tasks(client, folder)
    try:
        _loop(folder, missing, pool, tell)
    finally:
        pool.close()
        for thing in (client, cluster):
            if thing is not None:
                thing.close()


def _threads(study: Study) -> int:
    """Chunks at a time: beside a GPU, some are drawn and encoded while another one moves."""
    if not isinstance(study.work, Rollouts):
        return 1  # Python code gains nothing from more
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, BESIDE_GPU) if study.on_gpu else cores or 1


def _loop(
    folder: Folder, missing: list[int], pool: Pool, tell: Callable[[object], None] | None
) -> None:
    """Keep the pool busy until all chunks are done or given up."""
    start, first = time.monotonic(), folder.lines()
    before = sum(x.end - x.begin for k, x in first.items() if k not in set(missing))
    failed = sum(x.failed for k, x in first.items() if k not in set(missing))
    done, attempts, given_up = before, Counter[int](), dict[int, str]()
    waiting, under_way = iter(missing), 0
    again = list[int]()
    try:
        while True:
            while under_way < AHEAD * pool.size:
                index = again.pop() if again else next(waiting, None)
                if index is None:
                    break
                pool.submit(index)
                under_way += 1
            if not under_way:
                break
            for index, result in pool.done():
                under_way -= 1
                if isinstance(result, Chunk):
                    folder.append(result)
                    done, failed = done + result.end - result.begin, failed + result.failed
                elif _is_fatal(result):
                    raise result
                elif attempts[index] + 1 < ATTEMPTS:
                    attempts[index] += 1
                    again.append(index)
                else:
                    given_up[index] = f"{type(result).__name__}: {result}"
            if tell is not None:
                spent = max(time.monotonic() - start, 1e-9)
                rate = (done - before) / spent
                left = (folder.cases - done) / rate if rate else float("inf")
                tell(Progress(done, folder.cases, failed, rate, left))
    except KeyboardInterrupt:
        if tell is not None:
            done = sum(x.end - x.begin for x in folder.finished(check=False).values())
            tell(f"interrupted: {done:,} of {folder.cases:,} cases are safe in {folder.path}")
        raise
    except (StudyError, OSError) as error:
        raise StudyError(
            f"{str(error).rstrip('.')}. {done:,} of {folder.cases:,} cases are safe in "
            f"{folder.path}; when the cause is removed, the same command goes on."
        ) from error
    if given_up:
        index, reason = next(iter(given_up.items()))
        a, b = folder.bounds(index)
        raise StudyError(
            f"{len(given_up)} of {folder.count} chunks could not be computed in {ATTEMPTS} "
            f"attempts each; the first is that of cases {a} to {b - 1}: {reason}. All others are "
            f"safe in {folder.path}, and the same command tries these again."
        )


FATAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""Errors of a disk that every chunk would meet."""


def _is_fatal(error: BaseException) -> bool:
    if not isinstance(error, Exception):
        return True
    return isinstance(error, WriteError | OSError) and error.errno in FATAL


def _teller(progress: Any) -> Callable[[object], None] | None:
    """How progress is reported: lines on a terminal, a function of the caller, nothing."""
    if progress is None:
        progress = sys.stderr.isatty()
    if progress is False:
        return None
    if progress is True:
        return _Line()
    if not callable(progress):
        raise ModelError(f"progress is {shown(progress)}; it must be True, False or a function.")
    return cast("Callable[[object], None]", progress)


class _Line:
    """One line on the terminal that is written over, at most ten times a second."""

    def __init__(self) -> None:
        self._last, self._open = 0.0, False

    def __call__(self, what: object) -> None:
        now = time.monotonic()
        if isinstance(what, Progress):
            if now - self._last < 0.1 and what.done < what.cases:
                return
            self._last, self._open = now, what.done < what.cases
            end = "" if self._open and sys.stderr.isatty() else "\n"
            print(f"\r{what}   ", end=end, file=sys.stderr, flush=True)
            return
        print(("\n" if self._open else "") + str(what), file=sys.stderr, flush=True)
        self._open = False


def _duration(seconds: float) -> str:
    if seconds == float("inf"):
        return "unknown time"
    rounded = round(seconds)
    if rounded < 120:
        return f"{rounded} s"
    if rounded < 7200:
        return f"{rounded // 60} min"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
