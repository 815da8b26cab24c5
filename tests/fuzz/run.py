"""A long run of the fuzzers, in processes of their own: a crash is a failure like any other.

python -m tests.fuzz.run --cases 1000                     each target
python -m tests.fuzz.run --target meshes --cases 25000
python -m tests.fuzz.run --target meshes --only 1234      one case, and its traceback
python -m tests.fuzz.run ... --results results.json       counts for docs/evidence/fuzzing.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.fuzz.case import TARGETS, Outcome, limit_memory, run_range

CHUNK = 500
"""Cases of one process."""


def chunk(target: str, first: int, count: int) -> list[Outcome]:
    """Cases in a process of their own; where it dies, another one goes on behind the culprit."""
    done, last = list[Outcome](), first + count
    while first < last:
        with tempfile.NamedTemporaryFile("r") as file:
            part = ["--target", target, "--first", str(first), "--cases", str(last - first)]
            words = [sys.executable, "-m", "tests.fuzz.run", *part, "--log", file.name]
            died = subprocess.run(words, capture_output=True, text=True)
            new = [Outcome(**json.loads(line)) for line in file]
        done += new
        first += len(new)
        if first < last:
            trouble = f"the process died ({died.returncode}): {died.stderr[-2000:]}"
            done.append(Outcome(target, first, "CRASHED", 0.0, trouble))
            first += 1
    return done


def add_results(path: Path, outcomes: list[Outcome]) -> None:
    """Add the counts of a run to those of others."""
    known = json.loads(path.read_text()) if path.exists() else {}
    for outcome in outcomes:
        entry = known.setdefault(outcome.target, {"cases": 0, "verdicts": {}, "slowest": 0.0})
        entry["cases"] += 1
        entry["verdicts"][outcome.verdict] = entry["verdicts"].get(outcome.verdict, 0) + 1
        entry["slowest"] = max(entry["slowest"], outcome.seconds)
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def main() -> int:
    """Run many cases and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="one case: print what happens")
    parser.add_argument("--results", type=Path, help="a file for the counts")
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        (outcome,) = run_range(options.target[0], options.only, 1)
        print(outcome.verdict, f"{outcome.seconds:.3f} s", outcome.trouble, sep="\n")
        return 1 if outcome.trouble else 0
    if options.log is not None:  # one of the processes
        list(run_range(options.target[0], options.first, 1))  # what is imported on first use
        limit_memory()
        with options.log.open("a") as log:
            for outcome in run_range(options.target[0], options.first, options.cases):
                print(json.dumps(asdict(outcome)), file=log, flush=True)
        return 0
    failures = 0
    for target in options.target or TARGETS:
        seen, slowest, last = Counter[str](), 0.0, options.first + options.cases
        for first in range(options.first, last, CHUNK):
            outcomes = chunk(target, first, min(CHUNK, last - first))
            for outcome in outcomes:
                seen[outcome.verdict] += 1
                slowest = max(slowest, outcome.seconds)
                if outcome.trouble:
                    failures += 1
                    print(f"{target} {outcome.number}: {outcome.trouble}", flush=True)
            if options.results is not None:
                add_results(options.results, outcomes)
        print(f"{target}: {options.cases} cases, {dict(seen)}, slowest {slowest:.2f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
