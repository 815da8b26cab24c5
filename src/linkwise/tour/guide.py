"""The way through the tour, and the page it leaves behind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from linkwise.atomic_file import write_file
from linkwise.brief import counted
from linkwise.model.mechanism import Mechanism
from linkwise.tour.algebra import algebra, covariance
from linkwise.tour.bench import speed
from linkwise.tour.measure import processor, versions
from linkwise.tour.motion import closed_chain, let_go, under_control
from linkwise.tour.page import page
from linkwise.tour.robot import effective_mass, robot
from linkwise.tour.visit import Station, Visit

STATIONS = (
    robot,
    let_go,
    under_control,
    speed,
    effective_mass,
    closed_chain,
    algebra,
    covariance,
)


def guide(
    mech: Mechanism,
    *,
    report: str | os.PathLike[str] | None,
    quick: bool = False,
    stations: Sequence[Station] = STATIONS,
) -> Visit:
    """Show all stations, and write the page.

    Returns:
        The visit; `failed` is the number of checks that failed.

    Raises:
        WriteError: The page cannot be written.
    """
    begin = time.perf_counter()
    visit = Visit(mech, quick=quick, pictures=report is not None)
    visit.go(stations)
    seconds = time.perf_counter() - begin
    if report is not None:
        target, text = Path(report), written(visit, seconds)
        write_file(target, text)
        size = len(text.encode()) / 1e6
        print(f"\nreport: {target} ({size:.1f} MB, one file, opens in any browser)")
    if visit.missing:
        extras = ", ".join(visit.missing)
        print(f"some pictures need extras ({extras}): pip install 'linkwise[tour]'")
    print("\n" + summary(visit, seconds))
    return visit


def summary(visit: Visit, seconds: float) -> str:
    """How many checks hold, of the robot and of examples, and which stations were skipped."""
    lines = [
        f"{len(visit.checks) - visit.failed} checks passed, {visit.failed} failed, "
        f"in {seconds:.1f} s.",
        f"of {visit.mech.name}: {passed(visit, of_robot=True)}; of built-in examples: "
        f"{passed(visit, of_robot=False)}.",
    ]
    if visit.notes:
        lines.append(f"{counted(len(visit.notes), 'station')} skipped, or ended early:")
        lines += [f"  {note}" for note in visit.notes]
    return "\n".join(lines)


def passed(visit: Visit, *, of_robot: bool) -> str:
    """How many checks of the robot, or of built-in examples, hold: "5 of 6"."""
    checks = [check for check in visit.checks if check.of_robot == of_robot]
    return f"{sum(check.good for check in checks)} of {len(checks)}" if checks else "none"


def written(visit: Visit, seconds: float) -> str:
    """The page of a visit."""
    mech = visit.mech
    figures = {
        "checks of this robot": passed(visit, of_robot=True),
        "checks of examples": passed(visit, of_robot=False),
        "bodies": str(mech.n_bodies),
        "degrees of freedom": str(mech.nv),
        "this run": f"{seconds:.0f} s",
    }
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    times = ", ".join(f"{x.short} {x.seconds:.1f} s" for x in visit.sections)
    footer = [
        f"Every number on this page was measured in one run of `linkwise tour` on "
        f"{time.strftime('%d %B %Y')}: {processor()}.",
        f"Versions: {packages}.",
        f"Times by station: {times}.",
    ]
    return page(mech.name, lede(visit), figures, visit.sections, footer)


def lede(visit: Visit) -> str:
    """An introduction, which also says what is not about the robot."""
    text = (
        "This robot loaded, drawn, set in motion, controlled, timed and checked, in one run on one "
        "machine; then the algebra from which its algorithms are derived."
    )
    if visit.stand_ins:
        names = ", ".join(visit.stand_ins)
        text += f" Built-in mechanisms replace this robot at these stations: {names}."
    if visit.notes:
        were = "was" if len(visit.notes) == 1 else "were"
        text += f" {counted(len(visit.notes), 'station')} {were} skipped or ended early."
    return text
