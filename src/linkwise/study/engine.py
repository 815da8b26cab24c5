"""Running a study: chunks in threads of this process, or as tasks of Dask.

At any time a bounded number of chunks is under way: memory does not grow with the study, and the
scheduler of Dask holds a few tasks, not millions. A chunk counts when its line is on the disk.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from linkwise.arguments import count, path as checked_path, shown
from linkwise.errors import ModelError, StudyError, WriteError
from linkwise.study.folder import Chunk, Folder, locked, made, manifest_of, prepared
from linkwise.study.plan import Plan, check_memory, estimated
from linkwise.study.pool import Pool, Tasks, Threads, checked_workers, client_of, threads_of
from linkwise.study.results import Results
from linkwise.study.study import Study
from linkwise.study.variable import extra

AHEAD = 2
"""Chunks under way for each thread of a worker: one computes, one waits."""

ATTEMPTS = 3
"""How often a chunk is given to workers before it is left out."""


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


def plan(study: Study, *, workers: Any = None, chunk: int | None = None) -> Plan:
    """What a run will need; see `Study.plan`."""
    workers, chunk = checked_workers(workers), checked_chunk(chunk)
    sample = study.trial()
    return estimated(study, Folder(Path(), manifest_of(study, chunk, sample)), sample, workers)


def checked_chunk(chunk: int | None) -> int | None:
    """Cases of a chunk, or None for a choice."""
    return None if chunk is None else count(chunk, "chunk", least=1)


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
    chunk, workers = checked_chunk(chunk), checked_workers(workers)
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
            needs = estimated(study, home, sample, workers)
            _check_disk(home, needs, len(missing))
            check_memory(needs)
            if tell is not None:
                tell(needs)
            _run(study, home, missing, workers, tell)
            home.clean()  # of workers that were lost on the way
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
    with contextlib.ExitStack() as opened:
        pool: Pool = (
            Threads(study, folder, threads_of(study))
            if workers is None
            else Tasks(client_of(workers, opened), folder)
        )
        opened.callback(pool.close)
        _loop(folder, missing, pool, tell)


def _loop(
    folder: Folder, missing: list[int], pool: Pool, tell: Callable[[object], None] | None
) -> None:
    """Keep the pool busy until all chunks are done or given up."""
    start, still = time.monotonic(), set(missing)
    there = [x for k, x in folder.lines().items() if k not in still]
    before, failed = sum(x.end - x.begin for x in there), sum(x.failed for x in there)
    done, attempts, given_up = before, Counter[int](), dict[int, str]()
    waiting, under_way = iter(missing), 0
    again = list[int]()
    try:
        while True:
            fresh = again[: max(0, AHEAD * pool.size - under_way)]
            del again[: len(fresh)]
            fresh += itertools.islice(waiting, max(0, AHEAD * pool.size - under_way - len(fresh)))
            if fresh:
                pool.submit(fresh)
                under_way += len(fresh)
            if not under_way:
                break
            results = [(k, _checked(folder, x)) for k, x in pool.done()]
            chunks = [x for _, x in results if isinstance(x, Chunk)]
            folder.append(chunks)
            under_way -= len(results)
            done, failed = (
                done + sum(x.end - x.begin for x in chunks),
                failed + sum(x.failed for x in chunks),
            )
            for index, result in results:
                if isinstance(result, Chunk):
                    continue
                if _is_fatal(result):
                    raise result
                if attempts[index] + 1 < ATTEMPTS:
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
    if done != folder.cases:
        raise StudyError(
            f"{folder.path} has {done:,} of {folder.cases:,} cases after all chunks were computed: "
            "it changed meanwhile. The same command computes the rest."
        )


def _checked(folder: Folder, result: Chunk | BaseException) -> Chunk | BaseException:
    """What a chunk gave; a chunk of other cases than this study's is an error."""
    if isinstance(result, Chunk) and (result.begin, result.end) != folder.bounds(result.index):
        return StudyError(
            f"a worker computed cases {result.begin} to {result.end - 1} as chunk {result.index}: "
            "it has another study"
        )
    return result


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
