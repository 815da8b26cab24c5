"""One column of many cases, in parts of bounded size: what searches and chains ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np

from linkwise.errors import unknown_name
from linkwise.spatial.array import Array
from linkwise.study.journal import Journal
from linkwise.study.pool import checked_workers, client_of
from linkwise.study.study import Study
from linkwise.study.variable import extra

Response = Callable[[Mapping[str, Array]], Array]
"""From what varies (cases,) by name to a column (cases,), infinite where a case fails."""


Part = tuple[int, dict[str, Array]]
"""Cases that are computed together: the number of the first one, and what varies."""


@contextlib.contextmanager
def response(
    study: Study, name: str, workers: Any = None, kept: Journal | None = None
) -> Generator[Response]:
    """A column as a function of what varies.

    At most `study.chunk_size` cases are computed at a time, so that memory stays bounded.

    Args:
        study: The study.
        name: The column.
        workers: As for `Study.run`.
        kept: Where answers are found that were computed before.

    Raises:
        UnknownNameError: The study has no such column.
    """
    workers, sample = checked_workers(workers), study.trial()
    if name not in sample.columns:
        raise unknown_name("column", name, sample.columns, owner="the study")
    size = study.chunk_size(sample)

    def here(parts: list[Part]) -> Iterator[tuple[int, Array]]:
        for i, (first, x) in enumerate(parts):
            yield i, _column(study, name, x, first)

    kept = kept or Journal()
    with contextlib.ExitStack() as opened:
        if workers is None:
            yield lambda values: _answers(kept, _parts(values, size), here)
            return
        client = client_of(workers, opened)
        there = client.scatter(study, broadcast=True)

        def on_workers(values: Mapping[str, Array]) -> Array:
            n = max(len(np.atleast_1d(x)) for x in values.values())
            even = -(-n // max(1, sum(client.nthreads().values())))
            return _answers(kept, _parts(values, min(size, even)), with_dask)

        def with_dask(parts: list[Part]) -> Iterator[tuple[int, Array]]:
            tasks = [client.submit(_column, there, name, x, k, 1, pure=False) for k, x in parts]
            place = {task.key: i for i, task in enumerate(tasks)}
            for task in extra("distributed", "distributed", "workers").as_completed(tasks):
                yield place[task.key], task.result()

        yield on_workers


def _answers(
    kept: Journal,
    parts: list[Part],
    compute: Callable[[list[Part]], Iterator[tuple[int, Array]]],
) -> Array:
    """The column of all parts: what was kept, and the rest computed and kept."""
    keys = [kept.key(*part) for part in parts]
    answers = [
        kept.read(key, len(next(iter(x.values())))) for key, (_, x) in zip(keys, parts, strict=True)
    ]
    missing = [i for i, y in enumerate(answers) if y is None]
    for j, y in compute([parts[i] for i in missing]):
        kept.write(keys[missing[j]], y)
        answers[missing[j]] = y
    return np.concatenate([y for y in answers if y is not None])


def _parts(values: Mapping[str, Array], size: int) -> list[Part]:
    """Values of at most `size` cases, with the number of the first one."""
    n = max(len(np.atleast_1d(x)) for x in values.values())
    each = {k: np.broadcast_to(x, n) for k, x in values.items()}
    return [(a, {k: x[a : a + size] for k, x in each.items()}) for a in range(0, n, size)]


def _column(
    study: Study, name: str, values: dict[str, Array], first: int, threads: int | None = None
) -> Array:
    result = study.evaluate(values, first=first, threads=threads)
    y = result.columns.get(name, np.full(len(result), np.nan))
    return np.where(result.failed, np.inf, y)
