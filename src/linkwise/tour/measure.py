"""How long calls take, and on which machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = ("numpy", "llvmlite", "scipy", "matplotlib", "viser", "pin", "mujoco")


def first(call: Callable[[], object]) -> float:
    """The time of one call [s]."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best(call: Callable[[], object], *, seconds: float = 0.05) -> float:
    """The time of one call [s]: the best of several rounds, which take about `seconds` together.

    The best, because other programs only ever add to it.
    """
    once = max(first(call), 1e-8)
    loop = max(1, int(0.1 * seconds / once))
    least, until = once, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        for _ in range(loop):
            call()
        end = time.perf_counter()
        least = min(least, (end - begin) / loop)
        if end > until:
            return least


def as_time(seconds: float) -> str:
    """A time with a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def processor() -> str:
    """Model name of the processor, its cores, and the system; no host names, no paths."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    affinity = getattr(os, "sched_getaffinity", None)
    cores = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return f"{name}, {cores} core{'' if cores == 1 else 's'}, {platform.system()}"


def versions() -> dict[str, str]:
    """Versions of Python, Linkwise and the installed packages that matter here."""
    import linkwise

    known = {"Python": platform.python_version(), "linkwise": linkwise.__version__}
    for package in PACKAGES:
        try:
            known[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return known
