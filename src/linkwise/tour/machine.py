"""What figures were measured on: processor, system, versions. No host names, no paths."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = (
    *("linkwise", "numpy", "llvmlite", "scipy", "matplotlib", "viser"),
    *("pin", "mujoco"),
)


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Model name of the processor, and its cores."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    count = cores()
    return f"{name}, {count} core{'' if count == 1 else 's'}, {platform.system()}"


def versions() -> dict[str, str]:
    """Python and the packages that matter here, those that are installed."""
    import linkwise

    found = {"Python": platform.python_version(), "linkwise": linkwise.__version__}
    for package in PACKAGES[1:]:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
