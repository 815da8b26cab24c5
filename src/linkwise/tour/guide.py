"""The way through the tour, and the page it leaves behind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from linkwise.atomic_file import write_file
from linkwise.model.mechanism import Mechanism
from linkwise.tour.machine import processor, versions
from linkwise.tour.page import page
from linkwise.tour.place import check_place
from linkwise.tour.stations.algebra import algebra
from linkwise.tour.stations.compiled import compiled
from linkwise.tour.stations.covariance import covariance
from linkwise.tour.stations.ellipsoids import ellipsoids
from linkwise.tour.stations.motion import closed_chain, let_go, under_control
from linkwise.tour.stations.others import files, hinges, made_from_it, mistakes, papers
from linkwise.tour.stations.robot import robot
from linkwise.tour.text import count
from linkwise.tour.visit import Station, Visit

STATIONS = (
    robot,
    algebra,
    compiled,
    covariance,
    ellipsoids,
    let_go,
    under_control,
    closed_chain,
    made_from_it,
    hinges,
    files,
    mistakes,
    papers,
)


def guide(
    mech: Mechanism,
    *,
    report: str | os.PathLike[str] | None,
    quick: bool = False,
    stations: Sequence[Station] = STATIONS,
) -> Visit:
    """Show all stations, and write the page.

    Args:
        mech: The robot.
        report: Where the page goes; None for none.
        quick: Whether to leave out what takes long.
        stations: What is shown, in order.

    Returns:
        What was seen; `failed` tells how many checks failed.

    Raises:
        ModelError: The page cannot be written there.
    """
    begin = time.perf_counter()
    target = None if report is None else Path(report)
    if target is not None:
        check_place("--report", target)
    visit = Visit(mech, quick=quick, pictures=target is not None)
    visit.go(stations)
    seconds = time.perf_counter() - begin
    if target is not None:
        text = written(visit, seconds)
        write_file(target, text)
        size = len(text.encode()) / 1e6
        print(f"\nreport: {target} ({size:.1f} MB, one file, opens in any browser)")
    if visit.missing:
        print(
            f"some pictures need extras ({', '.join(visit.missing)}): pip install 'linkwise[tour]'"
        )
    print("\n" + summary(visit, seconds))
    return visit


def summary(visit: Visit, seconds: float) -> str:
    """How many checks hold, of what, and what was not shown."""
    passed = len(visit.checks) - visit.failed
    lines = [
        f"{passed} checks passed, {visit.failed} failed, in {seconds:.1f} s.",
        f"of {visit.mech.name}: {held(visit, own=True)}; of what is built in: "
        f"{held(visit, own=False)}.",
    ]
    if visit.notes:
        lines.append(f"{count(len(visit.notes), 'station')} skipped, or ended early:")
        lines += [f"  {note}" for note in visit.notes]
    return "\n".join(lines)


def held(visit: Visit, *, own: bool) -> str:
    """How many checks of the robot, or of what is built in, hold: "5 of 6"."""
    checks = [check for check in visit.checks if check.own == own]
    return f"{sum(check.good for check in checks)} of {len(checks)}" if checks else "none"


def written(visit: Visit, seconds: float) -> str:
    """The page of a visit."""
    mech = visit.mech
    figures = {
        "checks of this robot": held(visit, own=True),
        "checks of built-in examples": held(visit, own=False),
        "bodies": str(mech.n_bodies),
        "degrees of freedom": str(mech.nv),
        "this run": f"{seconds:.0f} s",
    }
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    footer = [
        f"Every number on this page was measured in one run of `linkwise tour` on "
        f"{time.strftime('%d %B %Y')}: {processor()}.",
        f"Versions: {packages}.",
        "Times by station: "
        + ", ".join(f"{section.short} {section.seconds:.1f} s" for section in visit.sections)
        + ".",
    ]
    return page(mech.name, lede(visit), figures, visit.sections, footer)


def lede(visit: Visit) -> str:
    """What the reader is going to see, and what of it is not about the robot."""
    subject = "Mechanics" if "algebra" in visit.stand_ins else "The mechanics of this robot"
    text = (
        f"{subject}, written as one line of operator algebra; derived into sweeps, compiled, "
        "checked, timed, set in motion and drawn, in one run on one machine."
    )
    if visit.stand_ins:
        text += (
            " Built-in mechanisms stand in for this robot at these stations: "
            f"{', '.join(visit.stand_ins)}."
        )
    if visit.notes:
        were = "was" if len(visit.notes) == 1 else "were"
        text += f" {count(len(visit.notes), 'station')} {were} skipped or ended early."
    return text
