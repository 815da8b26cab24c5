"""What a run will need: chunks, memory and disk, estimated from one case."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import StudyWarning, caller
from linkwise.study.chunk import encoded
from linkwise.study.folder import Folder
from linkwise.study.kept import Evaluated
from linkwise.study.pool import threads_of
from linkwise.study.rollouts import Rollouts
from linkwise.study.study import Study

OVERHEAD = 300_000_000
"""Bytes of a process with its libraries and kernels, where the system does not tell."""

FEW = (16, 48)
"""Cases of the two batches whose memory is compared."""


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
        processes: How many processes compute on this machine; 0 for those of another cluster.
    """

    chunks: int
    chunk: int
    memory: int
    disk: int
    processes: int = 1

    def __str__(self) -> str:
        return (
            f"{self.chunks:,} chunks of {self.chunk:,} cases; about {self.memory / 1e6:,.0f} MB of "
            f"memory in each process and {self.disk / 1e6:,.0f} MB on the disk"
        )


def estimated(study: Study, folder: Folder, sample: Evaluated, workers: Any) -> Plan:
    """An estimate of what a run needs, from one case that was computed."""
    encoded(study, folder, 0, study.values(0, 1), sample)  # loads what every chunk needs
    processes = 1 if workers is None else workers if isinstance(workers, int) else 0
    threads = threads_of(study) if workers is None else 1
    row = 8 * (len(sample.columns) + len(study.names) + 5)
    kept = sum(x[0].nbytes for x in sample.trajectories.values())
    each = 3 * (row + kept) + _growth(study)
    memory = _resident() + threads * min(folder.chunk, study.cases) * each
    disk = study.cases * (row + kept)
    return Plan(folder.count, folder.chunk, memory, disk, processes)


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


def check_memory(needs: Plan) -> None:
    """Warn where the processes of this machine need more memory than is free."""
    total, free = needs.memory * needs.processes - _resident(), _available()
    if needs.processes and free is not None and total > free:
        warnings.warn(
            f"the study needs about {total / 1e6:,.0f} MB of memory more, and {free / 1e6:,.0f} MB "
            "are free. Use a smaller chunk, fewer workers, or keep less.",
            StudyWarning,
            stacklevel=caller(),
        )


def _available() -> int | None:
    """Bytes of memory that are free; None where the system does not tell."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None
