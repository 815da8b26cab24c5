"""Runs all fuzzers and writes the table of docs/evidence/fuzzing.md.

python tools/fuzzing.py                        100,000 cases; a quarter of an hour of one core
python tools/fuzzing.py --cases 0 --results f  the table of a run that was done before
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence" / "fuzzing.md"

SHARES = {"models": 0.20, "meshes": 0.30, "recordings": 0.25, "kernels": 0.20, "commands": 0.05}
"""Of all cases, by what a case costs."""

TITLES = {
    "models": "URDF and MJCF files",
    "meshes": "meshes: STL, OBJ, MSH, COLLADA",
    "recordings": "recordings",
    "kernels": "kernels on disk",
    "commands": "the command line",
}
WRONG = ("FAILED", "CRASHED")


def table(results: dict[str, dict[str, Any]]) -> str:
    """A row for each target."""
    lines = ["| target | cases | outcomes | failures | slowest |"]
    lines += ["| --- | ---: | --- | ---: | ---: |"]
    cases = failures = 0
    for target in TITLES:
        entry = results.get(target)
        if entry is None:
            continue
        verdicts = dict(entry["verdicts"])
        wrong = sum(verdicts.pop(name, 0) for name in WRONG)
        ordered = sorted(verdicts.items(), key=lambda x: -x[1])
        shown = ", ".join(f"{n:,} {name}" for name, n in ordered)
        row = [TITLES[target], f"{entry['cases']:,}", shown, wrong, f"{entry['slowest']:.1f} s"]
        lines.append(f"| {' | '.join(map(str, row))} |")
        cases, failures = cases + int(entry["cases"]), failures + wrong
    return "\n".join([*lines, f"| all | {cases:,} | | {failures} | |"])


def main() -> int:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=10_000)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = options.results or Path(folder) / "results.json"
        status = 0
        for target, share in SHARES.items():
            count = round(share * options.cases)
            if count:
                words = ["--target", target, "--cases", str(count), "--first", str(options.first)]
                words = [sys.executable, "-m", "tests.fuzz.run", *words, "--results", str(results)]
                status |= subprocess.run(words, cwd=ROOT, check=False).returncode
        text = PAGE.read_text(encoding="utf-8")
        new = f"<!-- table -->\n\n{table(json.loads(results.read_text()))}\n\n<!-- end -->"
        PAGE.write_text(
            re.sub(r"<!-- table -->.*<!-- end -->", lambda _: new, text, flags=re.DOTALL),
            encoding="utf-8",
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
