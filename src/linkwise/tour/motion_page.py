"""One motion on a page: its report, plots and playback."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import numpy as np

from linkwise.atomic_file import write_file
from linkwise.plot.canvas import LIGHT, off_screen
from linkwise.plot.energy_budget import energy_budget
from linkwise.plot.history import history
from linkwise.simulation.recording import Recording
from linkwise.tour.measure import processor, versions
from linkwise.tour.page import page
from linkwise.tour.visit import Visit
from linkwise.viewer.export import html_page


def plot(rec: Recording, path: str | os.PathLike[str]) -> None:
    """Plot q, v, joint forces and energies over time into a file.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        WriteError: The file cannot be written; an existing one is unchanged.
    """
    with off_screen():
        figure = history(rec, [*_joints(rec), "energy.*"], theme=LIGHT)[0].figure
        picture = io.BytesIO()
        form = Path(path).suffix.removeprefix(".").lower() or "png"
        figure.savefig(picture, format=form, dpi=120, facecolor=LIGHT.paper)
    write_file(path, picture.getvalue())


def motion_page(rec: Recording) -> str:
    """The page of a recording that has its mechanism."""
    assert rec.mech is not None

    def motion(visit: Visit) -> None:
        """The motion."""
        visit.lines(str(rec), "The report of the recording.")
        visit.playback(
            lambda theme: html_page(rec, theme=theme),
            f"{rec.name} over {rec.duration:.4g} s. Drag to turn, scroll to zoom.",
        )

    def energy(visit: Visit) -> None:
        """Energy and work."""
        visit.picture(
            lambda theme: energy_budget(rec, theme=theme)[0].figure,
            "Kinetic and potential energy and their sum, the works, and the drift.",
        )

    def joints(visit: Visit) -> None:
        """The joints over time."""
        visit.picture(
            lambda theme: history(rec, _joints(rec), theme=theme)[0].figure,
            "Positions and velocities of all hinges, and joint forces where there are any.",
        )

    visit = Visit(rec.mech, quiet=True)
    visit.go((motion, energy, joints))
    drift = rec.report.relative_drift
    figures = {
        "duration": f"{rec.duration:.4g} s",
        "steps": str(rec.steps),
        "integrator": rec.integrator,
        "relative energy drift": f"{drift:.1e}" if np.isfinite(drift) else "unknown",
    }
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    footer = [f"{time.strftime('%d %B %Y')}, {processor()}. Versions: {packages}."]
    lede = "A recorded motion: its report, playback, energy and joints."
    return page(rec.name, lede, figures, visit.sections, footer, kind="a motion")


def _joints(rec: Recording) -> list[str]:
    return ["q", "v", *(["tau"] if rec.tau.any() else [])]
