"""One chunk of a study: computed, encoded, written. Runs in threads and on workers."""

from __future__ import annotations

import contextlib
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import StudyError
from linkwise.study.folder import PICKLE, TABLE, TRAJECTORIES, Chunk, Folder, opened, sha256
from linkwise.study.kept import Evaluated, Layout
from linkwise.study.study import Study
from linkwise.study.variable import extra

TEXTS = ("stopped", "reason")

BATCH = 1 << 16
"""Rows that are encoded at a time: with the default of 1024, encoding takes 1.6 times as long."""


def computed(study: Study, folder: Folder, index: int, threads: int | None = 1) -> Chunk:
    """Compute a chunk and write its files; its line is still to be appended."""
    start = time.perf_counter()
    begin, end = folder.bounds(index)
    values = study.values(begin, end)
    with _device(study, index):
        result = study.evaluate(values, first=begin, threads=threads, layout=_layout(folder))
    files = {f"{TABLE}/part-{index:07d}.parquet": encoded(study, folder, begin, values, result)}
    for name, about in folder.manifest["trajectories"].items():
        shape = (folder.chunk, *about["shape"])
        records = result.trajectories.get(name)
        if records is None or records.shape != shape:  # the last chunk is filled up
            full = np.full(shape, np.nan)
            if records is not None:
                full[: len(result)] = records
            records = full
        parts = "/".join(["0"] * len(about["shape"]))
        place = f"{TRAJECTORIES}/{name}/c/{index}/{parts}"
        files[place] = np.ascontiguousarray(records, "<f8").reshape(-1).view(np.uint8).data
    folder.store(files)
    failed, seconds = int(result.failed.sum()), time.perf_counter() - start
    checksums = {name: sha256(content) for name, content in files.items()}
    return Chunk(index, begin, end, checksums, failed, seconds)


def encoded(
    study: Study, folder: Folder, begin: int, values: dict[str, Any], result: Evaluated
) -> memoryview:
    """The rows of a chunk as a Parquet file, in the memory where it was made."""
    arrow: Any = extra("pyarrow", "pyarrow", "a study")
    parquet: Any = extra("pyarrow", "pyarrow.parquet", "a study")
    n, known = len(result), folder.manifest["columns"]
    columns: dict[str, Any] = {"case": np.arange(begin, begin + n)}
    columns |= values
    if study.sampling.proposal:
        array = np.stack(list(values.values()), axis=1)
        columns["log_weight"] = study.sampling.log_weights(array)
    for name in known:
        columns[name] = result.columns.get(name, np.full(n, np.nan))
    columns["end_time"] = result.ends
    columns["failed"] = result.failed
    for name, texts in zip(TEXTS, (result.stops, result.reasons), strict=True):
        columns[name] = texts if any(texts) else arrow.repeat("", n)
    table = arrow.table(columns)
    sink = arrow.BufferOutputStream()
    parquet.write_table(
        table,
        sink,
        compression="none",
        use_dictionary=list(TEXTS),
        write_batch_size=BATCH,
        write_statistics=["case"],  # draws are in no order: those of others would skip nothing
        write_page_checksum=True,
    )
    return memoryview(sink.getvalue())


def _layout(folder: Folder) -> Layout:
    """What the first case returned."""
    records = folder.manifest["trajectories"].items()
    shapes = {name: tuple(map(int, about["shape"])) for name, about in records}
    return Layout(tuple(folder.manifest["columns"]), shapes)


@contextlib.contextmanager
def _device(study: Study, index: int) -> Any:
    """Chunks of CUDA kernels take turns on the GPUs of a worker."""
    if not study.on_gpu:
        yield
        return
    cupy: Any = extra("cupy-cuda13x", "cupy", "a study on a GPU", named="cuda")
    with cupy.cuda.Device(index % max(1, cupy.cuda.runtime.getDeviceCount())):
        yield


@lru_cache(maxsize=2)
def loaded(path: str, stamp: str) -> tuple[Study, Folder]:
    """The study of a folder, loaded once by each worker for each manifest.

    Raises:
        StudyError: The folder is not the one that the client sees.
    """
    try:
        folder = opened(path)
        content = (Path(path) / PICKLE).read_bytes()
        there = folder.stamp
    except OSError as error:
        raise StudyError(f"{path} cannot be read on this worker: {error}.") from None
    if there != stamp:
        raise StudyError(f"{path} on this worker holds another study; workers must see one folder.")
    return extra("cloudpickle", "cloudpickle", "a study").loads(content), folder


def on_worker(index: int, *, path: str, stamp: str) -> Chunk:
    """A chunk as a task of Dask: small arguments, the study comes from the folder."""
    study, folder = loaded(path, stamp)
    return computed(study, folder, index)
