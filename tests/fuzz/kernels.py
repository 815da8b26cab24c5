"""Damaged kernels on disk: what was filed comes back to the last byte, or it is compiled again.

A case changes the folder of the cache in some way and asks for two kernels. Machine code with a bit
flipped would run, so nothing but the content that was filed may come back.
"""

from __future__ import annotations

import os
import random
import shutil
from functools import cache as remembered
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.algebra import bias, mass, tau
from linkwise.codegen.cpu import cache
from tests.fuzz.damage import damaged

ASK = 100
"""One case of so many compiles kernels and runs them; the others look at what would be loaded."""


@remembered
def filed() -> dict[str, bytes]:
    """Three kernels: keys and whole files."""
    before = os.environ.get("LINKWISE_CACHE")
    folder = Path(os.environ.get("TMPDIR", "/tmp"), f"linkwise-fuzz-{os.getpid()}")
    os.environ["LINKWISE_CACHE"] = str(folder)
    try:
        for _ in _numbers():
            pass
        ours = folder / cache.FOLDER
        return {x.name: x.read_bytes() for x in ours.iterdir() if x.name != cache.TAG}
    finally:
        shutil.rmtree(folder)
        os.environ.pop("LINKWISE_CACHE")
        if before is not None:
            os.environ["LINKWISE_CACHE"] = before


def _numbers():
    for mech in (lw.models.pendulum(1), lw.models.pendulum(2), lw.models.pendulum(2, mass=3.0)):
        kernel = lw.compile(mass.inv @ (tau - bias), mech)
        yield kernel(np.full(mech.nv, 0.3), np.full(mech.nv, -0.2), np.ones(mech.nv)).tolist()


@remembered
def right() -> list[list[float]]:
    """What the kernels compute."""
    before = os.environ.get("LINKWISE_CACHE")
    os.environ["LINKWISE_CACHE"] = "off"
    try:
        return list(_numbers())
    finally:
        os.environ.pop("LINKWISE_CACHE")
        if before is not None:
            os.environ["LINKWISE_CACHE"] = before


def change(rng: random.Random, folder: Path) -> None:
    """One change of the folder."""
    names = sorted(x.name for x in folder.iterdir())
    name = rng.choice(names)
    file, other = folder / name, folder / rng.choice(names)
    what = rng.randrange(12)
    if any(x.is_file() and x.stat().st_size > 1 << 30 for x in (file, other)):
        return  # it was stretched before, with nothing in it
    if what < 5 and file.is_file():
        file.write_bytes(damaged(rng, file.read_bytes()))
    elif what < 7 and file.is_file() and other.is_file():
        data = file.read_bytes()
        file.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif what == 7 and file.is_file():
        file.unlink()
        file.symlink_to(rng.choice([other.name, "nowhere", "/dev/zero", file.name]))
    elif what == 8 and file.is_file():
        file.unlink()
        rng.choice([file.mkdir, lambda: os.mkfifo(file), lambda: None])()
    elif what == 9 and file.is_file():
        file.chmod(rng.choice([0o000, 0o400, 0o666, 0o620, 0o777]))
    elif what == 10:
        folder.chmod(rng.choice([0o700, 0o500, 0o777, 0o720]))
    elif file.is_file():
        with file.open("r+b") as stream:
            stream.truncate(rng.choice([0, 17, 18, 50, 1 << 40]))


def made(number: int) -> list[str]:
    """What a case is: its keys."""
    return sorted(filed())


def use(number: int, folder: Path) -> str:
    """Change the folder, then look at what would be loaded."""
    rng, base = random.Random(number), folder / "base"
    bystander = folder / ("a" * 64)
    bystander.write_bytes(b"precious")
    before = os.environ.get("LINKWISE_CACHE")
    os.environ["LINKWISE_CACHE"] = str(base)
    try:
        ours = base / cache.FOLDER
        for key, full in filed().items():
            assert cache.write(key, full[len(cache.HEADER) + 32 :])
        for _ in range(rng.choice([1, 1, 2, 4])):
            change(rng, ours)
        verdicts = set[str]()
        for key, full in filed().items():
            result = cache.read(key)
            if result is not None and result != full[len(cache.HEADER) + 32 :]:
                raise ArithmeticError("another content than was filed comes back")
            verdicts.add("compiled again" if result is None else "from disk")
        if number % ASK == 0 and list(_numbers()) != right():
            raise ArithmeticError("a kernel computes other numbers")
        if bystander.read_bytes() != b"precious":
            raise ArithmeticError("a file of somebody else was touched")
        return " and ".join(sorted(verdicts))
    finally:
        os.environ.pop("LINKWISE_CACHE")
        if before is not None:
            os.environ["LINKWISE_CACHE"] = before
        if (base / cache.FOLDER).is_dir():
            (base / cache.FOLDER).chmod(0o700)
        shutil.rmtree(base, ignore_errors=True)
