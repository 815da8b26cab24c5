"""Packages for a machine with a GPU that lacks them: importing this makes them importable.

`python benchmarks/carried.py` packs them into build/carried. They hold no code for one version of
Python: llvmlite is a library in C with a layer of ctypes.
"""

import importlib.util
import lzma
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "carried"
PACKED = FOLDER / "packages.tar.xz"
NEEDED = ("llvmlite", "lazy_loader")


def pack() -> None:
    """Write them into one file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with lzma.open(PACKED, "wb", preset=1) as file, tarfile.open(fileobj=file, mode="w") as packed:
        for name in NEEDED:
            spec = importlib.util.find_spec(name)
            assert spec is not None and spec.origin is not None
            packed.add(Path(spec.origin).parent, name, filter=_needed)
    print(f"{PACKED.stat().st_size >> 20} MiB in {PACKED.relative_to(ROOT)}")


def _needed(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in item.name or "/tests" in item.name else item


def unpack() -> None:
    """Put them on the path, where they are missing."""
    if importlib.util.find_spec("linkwise") is None:
        sys.path.insert(0, str(ROOT / "src"))
    if PACKED.exists() and not all(map(importlib.util.find_spec, NEEDED)):
        site = FOLDER / "site"
        if not site.exists():
            with tarfile.open(PACKED) as packed:
                packed.extractall(site, filter="data")
        sys.path.append(str(site))


if __name__ == "__main__":
    pack()
else:
    unpack()
