"""How long calls take."""

from __future__ import annotations

import time
from collections.abc import Callable


def first(call: Callable[[], object]) -> float:
    """Of one call, as it is [s]."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best(call: Callable[[], object], *, seconds: float = 0.05) -> float:
    """Of one call, the best of several rounds [s]; they take about so long together.

    The best, because other programs only ever add to it.
    """
    once = max(first(call), 1e-8)
    loop = max(1, int(0.1 * seconds / once))
    found, until = once, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        for _ in range(loop):
            call()
        end = time.perf_counter()
        found = min(found, (end - begin) / loop)
        if end > until:
            return found


def told(seconds: float) -> str:
    """With the unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
