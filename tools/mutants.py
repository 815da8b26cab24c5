"""How many small mistakes in the source the tests notice: docs/evidence/mutants.md, from mutants.

    python tools/mutants.py [--seed 1] [--packages spatial model] [--workers 1] [--again survived]

Each mutant is one small mistake in one file: a sign, a transpose, a dropped term, a wrong parent, a
skipped check. It is made in a copy of the repository, never in the working tree, and the nearest
tests are run on the copy. Where the file takes part in making kernels, the kernel cache is empty,
so that no kernel made without the mistake hides it; all others only say what a kernel is to
compute, which is in its key, and share a cache. Tests are started for some seconds after the
mutant's function was entered.
Verdicts:

    killed      a test fails, or does not end,
    survived    none of the tests notices,
    equivalent  it survived, and `tools/mutation/equivalent.py` says why nobody can notice,
    broken      the module cannot be imported: no mistake that could stay in,
    unclear     the test that fails does so without the mistake too.

Mutants of functions are tried a few at a time, in children of a process that has collected the
tests, in which the code of the function is replaced (`tools/mutation/together.py`); `--alone` gives
each a process and a file with the mistake.

Results are kept in `--work`, outside the repository, so that an interrupted run goes on where it
was; they are of the text of the function: change it, and its mutants are tried anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.mutation.choice import QUOTAS, chosen, package  # noqa: E402
from tools.mutation.nearest import Nearest  # noqa: E402
from tools.mutation.operators import Mutant  # noqa: E402
from tools.mutation.page import write_page  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "mutants.md"
PARTS = ("src", "tests", "docs", "examples", "tools", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "LICENSE")
MOST = 80
"""A run of tests that takes more seconds of the processor than this does not end."""

MAKES_KERNELS = (
    *("spatial", "model/", "algebra", "sweeps", "codegen", "pipeline.py", "errors.py"),
    *("dynamics/kernels.py", "simulation/rollout", "simulation/integrators"),
)
"""Files that make kernels, or could: their mutants begin with an empty kernel cache."""

SOON = (
    *("spatial", "convert", "models", "model", "estimation", "io", "algebra", "plot", "viewer"),
    *("dynamics", "tasks", "inertial", "simulation", "codegen", "sweeps", "grasp", "loops"),
)
"""The order of the packages: those whose tests are quick come first."""

TOGETHER = 6
"""How many mutants are tried on tests that were collected once."""

QUICK = "not slow and not nightly"
"""Tests that are run on a mutant: those of `make test`, and of `make prove` the quick ones."""

FILES_OF_TESTS = 3
"""How many of the nearest files of tests are run on a mutant."""

BEFORE, AFTER = 7.0, 5.0
"""Seconds of the processor for which tests are started, until the mutant's function has been
entered, and after that."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the repository."""

    root: Path

    @classmethod
    def made(cls, work: Path, name: str) -> Copy:
        """A fresh copy; modification times stay, so that compiled files are valid."""
        root = work / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        left = shutil.ignore_patterns("_build", ".*")
        for part in PARTS:
            shutil.copytree(ROOT / part, root / part, ignore=left)
        for file in FILES:
            shutil.copy2(ROOT / file, root / file)
        return cls(root)

    def run(
        self, *command: str, seconds: int = MOST, kernels: Path | None = None, **more: str
    ) -> tuple[int, str]:
        """A Python command in the copy: its exit status, negative where it did not end, its text.

        Args:
            command: What follows the interpreter.
            seconds: Of the processor, so that a busy machine takes nothing away.
            kernels: The kernel cache; by default one that is empty.
            more: Variables of the environment.
        """

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

        with tempfile.TemporaryDirectory(prefix="kernels_", dir=self.root.parent) as cache:
            env = {
                **os.environ,
                "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root}",
                "LINKWISE_CACHE": str(kernels or Path(cache) / "linkwise"),
                "HYPOTHESIS_PROFILE": "quick",
                **more,
            }
            done = subprocess.run(
                [sys.executable, *command],
                cwd=self.root,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=limited,
            )
            return done.returncode, done.stdout


def attempt(copy: Copy, mutant: Mutant, nearest: Nearest, effort: float) -> dict[str, Any]:
    """The verdict on a mutant."""
    path = copy.root / "src" / "linkwise" / mutant.file
    text = path.read_text(encoding="utf-8")
    start, entered = time.monotonic(), copy.root / "entered.txt"
    message = {
        "told": str(entered),
        "shared": (shared := not mutant.file.startswith(MAKES_KERNELS)),
        "first": nearest.noticed_by.get(mutant.key, ""),
        "names": nearest.names(mutant),
        "before": effort * BEFORE,
        "after": effort * AFTER,
    }
    entered.unlink(missing_ok=True)
    try:
        _write(path, mutant.marked(text))
        status, said = copy.run(
            *("-m", "pytest", "-x", "-q", "--tb=line", "-p", "tools.mutation.nearest_first"),
            *("-m", QUICK),
            *("-p", "no:cacheprovider", *nearest.files(mutant, round(FILES_OF_TESTS * effort))),
            seconds=round(MOST * effort),
            kernels=copy.root.parent / "kernels" if shared else None,
            MUTANT=json.dumps(message),
        )
        result = {"seconds": round(time.monotonic() - start, 1), "effort": effort}
        if status < 0:
            return {"verdict": "killed", "by": "it does not end", **result}
        if status != 0 and copy.run("-c", f"import {module_of(mutant)}")[0] != 0:
            return {"verdict": "broken", **result}
        if status == 1 or (status == 2 and "ERROR" in said):
            return {"verdict": "killed", "by": _failed(said), **result}
        if status not in (0, 2):
            return {"verdict": "unclear", "by": said[-400:], **result}
        was = entered.exists() and entered.read_text() == "True"
        by = f"{_count(said)} passed" + ("" if was else ", none enters its function")
        return {"verdict": "survived", "entered": was, "by": by, **result}
    finally:
        _write(path, text)


def attempt_together(
    copy: Copy, some: list[Mutant], nearest: Nearest, effort: float
) -> dict[str, dict[str, Any]]:
    """The verdicts on some mutants whose nearest tests are in the same files."""
    listed, message = list[dict[str, Any]](), copy.root / "mutants.json"
    files = dict.fromkeys(f for m in some for f in nearest.files(m, FILES_OF_TESTS))
    with tempfile.TemporaryDirectory(prefix="kernels_", dir=copy.root.parent) as caches:
        for mutant in some:
            path = copy.root / "src" / "linkwise" / mutant.file
            shared = not mutant.file.startswith(MAKES_KERNELS)
            cache = copy.root.parent / "kernels" if shared else Path(caches) / mutant.key
            listed.append(
                {
                    "key": mutant.key,
                    "module": module_of(mutant),
                    "path": str(path),
                    "scope": mutant.scope,
                    "text": mutant.marked(path.read_text(encoding="utf-8")),
                    "first": nearest.noticed_by.get(mutant.key, ""),
                    "names": nearest.names(mutant),
                    "before": effort * BEFORE,
                    "after": effort * AFTER,
                    "most": round(effort * MOST),
                    "kernels": str(cache),
                    "plain": str(cache if shared else Path(caches) / "plain"),
                }
            )
        message.write_text(json.dumps(listed), encoding="utf-8")
        message.with_suffix(".out").unlink(missing_ok=True)
        copy.run(
            *("-m", "pytest", "-q", "-p", "tools.mutation.together", "-p", "no:cacheprovider"),
            *("-m", QUICK, *files),
            seconds=round(MOST * effort * (1 + len(some))),
            MUTANTS=str(message),
        )
    if not message.with_suffix(".out").exists():
        return {}
    lines = message.with_suffix(".out").read_text(encoding="utf-8").splitlines()
    return {result.pop("key"): result for result in map(json.loads, lines)}


def module_of(mutant: Mutant) -> str:
    """The name of a mutant's module."""
    name = f"linkwise.{mutant.file.removesuffix('.py').replace('/', '.')}"
    return name.removesuffix(".__init__")


def _write(path: Path, text: str) -> None:
    """Writes a module, and forgets what was compiled of it: times of files are coarse."""
    path.write_text(text, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _count(said: str) -> int:
    return sum(line.count(".") for line in said.splitlines() if set(line[:20]) <= set(".sxX "))


def _failed(text: str) -> str:
    for line in text.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    return "a test"


def main() -> None:
    """Runs the mutants that have no result yet, and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=float, default=1.0, help="how many times the quotas")
    parser.add_argument("--packages", nargs="*", help=f"some of {', '.join(QUOTAS)}")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--again", nargs="*", default=[], help="verdicts that are tried anew")
    parser.add_argument("--alone", action="store_true", help="each mutant in its own process")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mutants")
    parser.add_argument("--effort", type=float, default=1.0, help="how many times the tests")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.work / "results.json"
    results: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    every = chosen(ROOT / "src" / "linkwise", options.seed, options.times)
    expected = [m for m in every if options.packages is None or package(m.file) in options.packages]
    if not options.page:
        _try_all(expected, results, options, kept)
    write_page(PAGE, every, results, options.seed, Nearest(ROOT).noticed_by)


def _try_all(
    expected: list[Mutant], results: dict[str, Any], request: argparse.Namespace, kept: Path
) -> None:
    def due(mutant: Mutant) -> bool:
        result = results.get(f"{mutant.key}:{mutant.scope_hash}")
        return result is None or result["verdict"] in request.again

    todo = [m for m in expected if due(m)]
    copies = SimpleQueue[Copy]()
    for i in range(request.workers):
        copies.put(Copy.made(request.work, f"copy_{i}"))
    nearest = Nearest(request.work / "copy_0")
    counts, lock = defaultdict[str, int](int), threading.Lock()

    def keep(mutant: Mutant, result: dict[str, Any]) -> None:
        results[f"{mutant.key}:{mutant.scope_hash}"] = result
        fresh = kept.with_suffix(".new")
        fresh.write_text(json.dumps(results, indent=1))
        fresh.replace(kept)
        counts[result["verdict"]] += 1
        change = f"{mutant.kind}: {mutant.before!r} -> {mutant.after!r}"
        place = f"[{sum(counts.values())}/{len(todo)}] {result['verdict']}"
        print(f"{place} {mutant.file}:{mutant.line} {change} ({result.get('by', '')})", flush=True)

    def some(group: list[Mutant]) -> None:
        copy = copies.get()
        try:
            result = dict[str, dict[str, Any]]()
            if group[0].scope and not request.alone:
                result = attempt_together(copy, group, nearest, request.effort)
            for mutant in group:
                one = result.get(mutant.key, {"verdict": "alone"})
                if one["verdict"] == "alone" or one.get("together"):
                    one = attempt(copy, mutant, nearest, request.effort)
                    if one["verdict"] == "killed" and _fails_anyway(copy, one["by"]):
                        one = {"verdict": "unclear", "by": f"{one['by']} fails without it too"}
                with lock:
                    keep(mutant, one)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(request.workers) as pool:
        for _ in pool.map(some, _groups(todo, nearest)):
            pass
    print(dict(counts))


def _fails_anyway(copy: Copy, test: str) -> bool:
    """Whether a test fails in the copy without a mistake."""
    if not test.startswith("tests/"):
        return False
    return copy.run("-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", test)[0] != 0


def _groups(todo: list[Mutant], nearest: Nearest) -> list[list[Mutant]]:
    """Mutants of functions whose nearest file of tests is the same, a few at a time."""
    by_file = defaultdict[str, list[Mutant]](list)
    for mutant in todo:
        by_file[nearest.files(mutant, 1)[0] if mutant.scope else mutant.key].append(mutant)
    groups = [x[i : i + TOGETHER] for x in by_file.values() for i in range(0, len(x), TOGETHER)]
    ranks = {name: i for i, name in enumerate(SOON)}
    return sorted(groups, key=lambda group: ranks.get(group[0].file.split("/")[0], len(SOON)))


if __name__ == "__main__":
    main()
