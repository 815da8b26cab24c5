"""What a measurement was made on: processor, system, versions. No host names, no paths."""

import importlib.metadata
import os
import platform
from pathlib import Path


def processor() -> str:
    """Model name of the CPU and the number of cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {cores} cores"


def versions(*packages: str) -> str:
    """Python and the given packages, those that are installed."""
    result = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            result.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            result.append(f"{package} (not installed)")
    return ", ".join(result)


def load() -> str:
    """Average number of running processes over the last minute, this measurement's own included."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def description(*packages: str) -> str:
    """Two lines of Markdown for the head of a table of results."""
    system = f"{platform.system()} {platform.machine()}"
    return f"Machine: {processor()}, {system}.\n\nVersions: {versions(*packages)}.\n"
