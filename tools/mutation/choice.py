"""Which mistakes are tried: by seed, spread over packages, kinds of mistake and functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tools.mutation.operators import Mutant, digest, mutants

QUOTAS = {
    "": 3,  # errors.py and pipeline.py
    "spatial": 12,
    "model": 12,
    "model/hinges": 10,
    "models": 5,
    "io": 16,
    "convert": 6,
    "algebra": 22,
    "sweeps": 12,
    "codegen": 3,
    "codegen/scalar": 8,
    "codegen/cpu": 6,
    "codegen/c": 6,
    "codegen/cuda": 6,
    "codegen/rolled": 6,
    "codegen/stepping": 6,
    "dynamics": 16,
    "loops": 8,
    "grasp": 8,
    "tasks": 12,
    "inertial": 4,
    "estimation": 10,
    "simulation": 16,
    "control": 4,
    "identification": 4,
    "filtering": 6,
    "flexible": 4,
    "study": 6,
    "plot": 4,
    "viewer": 5,
    "tour": 3,
    "cli": 4,
}
"""How many of each package; a file belongs to the longest name that fits."""

NAMED = (
    ("simulation/loop_keeper.py", "b * b * Gap", "b * Gap"),
    ("simulation/limits.py", "0.5 * (self._k", "1.0 * (self._k"),
    ("codegen/scalar/pivots.py", "OWN = 0.01", "OWN = 1.01"),
    ("codegen/scalar/pivots.py", "OWN = 0.01", "OWN = 1e-9"),
    ("tasks/control/servo.py", "over(kv, times(kp, error))", "times(kv, times(kp, error))"),
)
"""Mistakes that tests once did not notice: always tried."""


def package(file: str) -> str:
    """The package of a file, as in `QUOTAS`."""
    folder = file.rsplit("/", 1)[0] if "/" in file else ""
    while folder not in QUOTAS:
        folder = folder.rpartition("/")[0]
    return folder


def chosen(source: Path, seed: int, times: float = 1.0) -> list[Mutant]:
    """The mistakes that are tried.

    Kinds of mistake take turns and no function has two before all others had one. A change
    of a file leaves the choice in others as it is.

    Args:
        source: The folder src/linkwise.
        seed: Of the choice.
        times: How many times the quotas.
    """
    by_package = defaultdict[str, list[Mutant]](list)
    named = list[Mutant]()
    for path in sorted(source.rglob("*.py")):
        file, text = path.relative_to(source).as_posix(), path.read_text(encoding="utf-8")
        by_package[package(file)] += mutants(file, text)
        named += [_named(file, text, *change) for name, *change in NAMED if name == file]
    out = {m.key: m for m in named}
    for name, quota in QUOTAS.items():
        for mutant in _spread(by_package[name], seed, round(times * quota), source):
            out.setdefault(mutant.key, mutant)
    return list(out.values())


def _spread(result: list[Mutant], seed: int, quota: int, source: Path) -> list[Mutant]:
    def rank(mutant: Mutant) -> str:
        return digest(f"{seed}:{mutant.key}")

    kinds = defaultdict[str, list[Mutant]](list)
    for mutant in sorted(result, key=rank):
        kinds[mutant.kind].append(mutant)
    out, functions = list[Mutant](), set[tuple[str, str]]()
    while len(out) < quota and any(kinds.values()):
        for queue in kinds.values():
            while queue and len(out) < quota:
                mutant = queue.pop(0)
                place = (mutant.file, mutant.scope or str(mutant.line))
                if place not in functions and _readable(mutant, source):
                    out.append(mutant)
                    functions.add(place)
                    break
    return out


def _readable(mutant: Mutant, source: Path) -> bool:
    try:
        ast.parse(mutant.applied((source / mutant.file).read_text(encoding="utf-8")))
    except SyntaxError:
        return False
    return True


def _named(file: str, text: str, before: str, after: str) -> Mutant:
    start = text.index(before)
    line = text.count("\n", 0, start) + 1
    span = (start, start + len(before))
    return Mutant(file, "", "named", before, after, 1, line, span, digest(text))
