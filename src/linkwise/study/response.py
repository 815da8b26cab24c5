"""One column of many cases, in parts of bounded size: what searches and chains ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from linkwise.errors import unknown_name
from linkwise.spatial.array import Array
from linkwise.study.pool import checked_workers, client_of
from linkwise.study.study import Study

Response = Callable[[Mapping[str, Array]], Array]
"""From what varies (cases,) by name to a column (cases,), infinite where a case fails."""


@contextlib.contextmanager
def response(study: Study, name: str, workers: Any = None) -> Generator[Response]:
    """A column as a function of what varies.

    At most `study.chunk_size` cases are computed at a time, so that memory stays bounded.

    Args:
        study: The study.
        name: The column.
        workers: As for `Study.run`.

    Raises:
        UnknownNameError: The study has no such column.
    """
    workers, sample = checked_workers(workers), study.trial()
    if name not in sample.columns:
        raise unknown_name("column", name, sample.columns, owner="the study")
    size = study.chunk_size(sample)
    with contextlib.ExitStack() as opened:
        if workers is None:
            yield lambda values: np.concatenate(
                [_column(study, name, x, first) for first, x in _parts(values, size)]
            )
            return
        client = client_of(workers, opened)
        there = client.scatter(study, broadcast=True)

        def on_workers(values: Mapping[str, Array]) -> Array:
            n = len(next(iter(values.values())))
            even = -(-n // max(1, sum(client.nthreads().values())))
            parts = _parts(values, min(size, even))
            tasks = [client.submit(_column, there, name, x, k, 1, pure=False) for k, x in parts]
            return np.concatenate(client.gather(tasks))

        yield on_workers


def _parts(values: Mapping[str, Array], size: int) -> list[tuple[int, dict[str, Array]]]:
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
