"""`linkwise study plan|run|status|resume|report FILE`: studies of many motions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from linkwise.cli.arguments import check_place, open_robot
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism

EXAMPLES = """examples:
  linkwise study plan payload.toml              what it will need: chunks, memory, disk
  linkwise study run payload.toml               run it, or go on where it was interrupted
  linkwise study run payload.toml --workers 4   on four processes of Dask
  linkwise study run payload.toml --scheduler tcp://10.0.0.1:8786
  linkwise study status payload.toml            how far it is, why cases failed, checksums
  linkwise study report payload.toml            a page with all columns; --output names the file

docs/how_to/run_a_study.md describes the file. Exit status: 0, 1 if cases failed, 2 for an error.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "study",
        help="run many cases of a motion; resume and report them",
        description="Runs a study that a TOML file describes, and reads its results.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "action", choices=("plan", "run", "status", "resume", "report"), help="what to do"
    )
    p.add_argument("file", metavar="FILE", help="a TOML file")
    p.add_argument("--workers", type=int, metavar="N", help="processes (default: threads)")
    p.add_argument("--scheduler", metavar="ADDRESS", help="scheduler of a Dask cluster")
    p.add_argument("--output", metavar="FILE", help="of the report (default: FILE.html)")
    p.add_argument("--quiet", action="store_true", help="no progress")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run, look or report."""
    from linkwise.study import load
    from linkwise.study.file import load_file

    path = Path(options.file)
    file = load_file(path, _robot, trial=options.action in ("plan", "run", "resume"))
    given = (options.scheduler, options.workers, file.workers)
    workers: Any = next((x for x in given if x is not None), None)
    if options.action == "plan":
        print(file.study.plan(workers=workers, chunk=file.chunk))
        return 0
    if options.action in ("run", "resume"):
        if options.action == "resume" and not (file.folder / "manifest.json").exists():
            raise ModelError(
                f"{file.folder} has no study to resume; linkwise study run begins one."
            )
        progress = False if options.quiet else True
        results = file.study.run(file.folder, workers=workers, chunk=file.chunk, progress=progress)
        print(results)
        for reason, count in results.reasons(3) if results.failed else ():
            print(f"  {count} cases: {reason}")
        return 1 if results.failed else 0
    results = load(file.folder)
    if options.action == "status":
        print(results)
        if damaged := results.check():
            print(f"  {len(damaged)} chunks are damaged, `run` computes them again: {damaged[0]}")
            return 2
        for reason, count in results.reasons(5) if results.failed else ():
            print(f"  {count} cases: {reason}")
        return 0
    from linkwise.tour.study_page import study_page

    output = options.output or str(path.with_suffix(".html"))
    check_place("--output", output, options.file)
    print(f"wrote {study_page(results, output)}")
    return 0


def _robot(name: str, base: str) -> Mechanism:
    return open_robot(name, base=base)
