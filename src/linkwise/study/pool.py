"""What computes chunks: threads of this process, or tasks of Dask."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from linkwise.arguments import count, shown
from linkwise.errors import ModelError, StudyError
from linkwise.study.chunk import computed, on_worker
from linkwise.study.folder import Chunk, Folder
from linkwise.study.rollouts import Rollouts
from linkwise.study.study import Study
from linkwise.study.variable import extra

BESIDE_GPU = 8
"""The most chunks at a time where a GPU moves them: more are no faster, and take memory."""

REACHED = 20.0
"""Seconds to wait for a scheduler."""

LOOK = 2.0
"""Seconds after which workers are counted again."""

PATIENCE = 60.0
"""Seconds without any worker after which a study ends."""


ADDRESS = re.compile(r"[\w+-]+://\S+|[^\s:/]+:\d+")
"""Of a scheduler of Dask: "tcp://10.0.0.1:8786", "host:8786"."""


def checked_workers(workers: Any) -> Any:
    """What computes: None, a number of processes, an address, a cluster or a client of Dask.

    Raises:
        ModelError: Something else.
    """
    is_dask = any(hasattr(workers, x) for x in ("scheduler_address", "nthreads"))
    if workers is None or (is_dask and not isinstance(workers, type)):
        return workers
    if isinstance(workers, str) and ADDRESS.fullmatch(workers):
        return workers
    try:
        return count(workers, "workers", least=1, most=4096)
    except ModelError:
        raise ModelError(
            f"workers is {shown(workers)}; it must be None, a number of processes from 1 to 4096, "
            "the address of a scheduler like 'tcp://10.0.0.1:8786', or a cluster or a Client of "
            "Dask."
        ) from None


def threads_of(study: Study) -> int:
    """Chunks at a time: beside a GPU, some are drawn and encoded while another one moves."""
    if not isinstance(study.work, Rollouts):
        return 1  # Python code gains nothing from more
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores or 1, BESIDE_GPU) if study.on_gpu else cores or 1


def client_of(workers: Any, opened: contextlib.ExitStack) -> Any:
    """A client of Dask; what is made here is closed with `opened`."""
    if hasattr(workers, "nthreads"):
        return workers
    distributed = extra("distributed", "distributed", "a study on several processes")
    if isinstance(workers, int):
        workers = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
        opened.callback(workers.close)
    try:
        client = distributed.Client(workers, timeout=REACHED)
    except (OSError, ValueError) as error:
        raise StudyError(f"the scheduler {workers} cannot be reached: {error}") from None
    opened.callback(client.close)
    return client


class Pool(Protocol):
    """Something that computes chunks."""

    size: int

    def submit(self, indices: Sequence[int]) -> None:
        """Begin chunks."""
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

    def submit(self, indices: Sequence[int]) -> None:
        """Begin chunks."""
        for index in indices:
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
    """Tasks of Dask, on any cluster whose workers see the folder.

    Tasks that end put themselves into one queue: a pass costs what ended, not what is under way.
    """

    def __init__(self, client: Any, folder: Folder) -> None:
        self.client, self.folder = client, folder
        self._given = {"path": str(folder.path.resolve()), "stamp": folder.stamp}
        self._under_way = dict[Any, int]()
        self._ended = SimpleQueue[Any]()
        self._seen = self._looked = time.monotonic()
        self.size = max(1, sum(client.nthreads().values()))

    def submit(self, indices: Sequence[int]) -> None:
        """Begin chunks."""
        futures = self.client.map(on_worker, indices, **self._given, pure=False, retries=0)
        for index, future in zip(indices, futures, strict=True):
            self._under_way[future] = index
            future.add_done_callback(self._ended.put)

    def done(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        """Wait for some chunks; raises when no worker or no scheduler is left."""
        try:
            yield from self._finished()
        except (OSError, *CANCELLED):
            raise StudyError("the scheduler of Dask cannot be reached any more") from None

    def _finished(self) -> Iterator[tuple[int, Chunk | BaseException]]:
        finished = list[Any]()
        while not finished:
            if time.monotonic() - self._looked > LOOK:
                self._look()
                # of a scheduler that was lost, tasks end without a call
                finished += [x for x in self._under_way if x.status != "pending"]
            with contextlib.suppress(Empty):
                finished.append(self._ended.get(timeout=LOOK))
                while True:
                    finished.append(self._ended.get_nowait())
        for future in dict.fromkeys(finished):
            index = self._under_way.pop(future, None)
            if index is None:  # it was here before
                continue
            if future.status == "finished":
                yield index, future.result()
            elif future.status in ("cancelled", "lost"):
                yield index, StudyError("the scheduler dropped the chunk")
            else:
                yield index, future.exception()
            future.release()

    def _look(self) -> None:
        """Workers that are there; raises if there were none for a while."""
        self._looked = time.monotonic()
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
