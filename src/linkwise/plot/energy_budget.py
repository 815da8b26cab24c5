"""A picture of where the energy of a motion came from and went to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.plot.canvas import Axes, ThemeLike, themed
from linkwise.plot.time_panel import (
    check_recording,
    legend_beside,
    line_look,
    mark_events,
    short,
    span_times,
    stacked,
)
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array

WORDS = {
    "joints": "joint forces",
    "passive": "dampers, springs",
    "forces": "outside forces",
}


def energy_budget(
    rec: Recording,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
    events: bool = True,
) -> list[Axes]:
    """Draw the budget of energy: what there is, what was done, and what is left over.

    The first panel has kinetic and potential energy, the second from its value at the start, and
    their sum; dashed, what works say the sum has to be. The second panel, where work was done, has
    the work of each kind of force, one on the other: those that put energy in upwards from zero,
    those that take it out downwards. The last one is the difference, the drift.

    Args:
        rec: The recording.
        ax: Where to draw: one Axes for each panel, three, or two where no work was done; by default
            a new figure.
        events: Whether events are marked.

    Returns:
        The Axes of the panels, from the first to the last.

    Raises:
        ModelError: It is no recording; another number of Axes than panels.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    rec = check_recording(rec, "a budget of energy")
    works = {
        name.removeprefix("work."): channel.values
        for name, channel in rec.channels.items()
        if name.startswith("work.") and channel.values.ndim == 1 and channel.values.any()
    }
    boards = stacked([2.6, *([1.7] if works else []), 1.3], look, given=ax)
    first, last = boards[0], boards[-1]
    kinetic, potential = rec["energy.kinetic"], rec["energy.potential"]
    stored = potential - potential[0]
    first.plot(rec.t, kinetic, label="kinetic", **line_look(0, look))
    first.plot(rec.t, stored, label="potential − start", **line_look(1, look))
    first.plot(rec.t, kinetic + stored, label="sum", color=look.ink, lw=1.6)
    if works:
        said = kinetic[0] + sum(works.values(), np.zeros(len(rec)))
        dashes = {"color": look.color(2), "ls": (0, (3, 2)), "lw": 1.4}
        first.plot(rec.t, said, label="start + works", **dashes)
        _stack(boards[1], rec.t, works, look.colors)
        boards[1].set_ylabel("work [J]")
        legend_beside(boards[1], look)
    first.set_ylabel("energy [J]")
    legend_beside(first, look)
    last.plot(rec.t, rec["energy.balance"], **line_look(0, look))
    last.axhline(0.0, color=look.faint, lw=0.6)
    last.set_ylabel("drift [J]")
    last.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3), useMathText=True)
    last.yaxis.get_offset_text().set(color=look.faint, fontsize=8)
    if rec.report.notes.uncounted:
        said = f"with work of {', '.join(rec.report.notes.uncounted)} that is not counted"
        last.set_title(said, fontsize=8, color=look.faint, loc="right")
    span_times(boards, rec)
    if events:
        mark_events(boards, rec, look)
    first.figure.align_ylabels(boards)
    return boards


def _stack(board: Axes, t: Array, works: dict[str, Array], colors: tuple[str, ...]) -> None:
    """Works one on the other: positive ones upwards from zero, negative ones downwards."""
    up, down = np.zeros(len(t)), np.zeros(len(t))
    for i, (name, values) in enumerate(works.items()):
        gain, loss = np.maximum(values, 0.0), np.minimum(values, 0.0)
        look = {"color": colors[i % len(colors)], "lw": 0.0}
        label = short(WORDS.get(name, name))
        board.fill_between(t, up, up + gain, alpha=0.55, label=label, **look)
        board.fill_between(t, down, down + loss, alpha=0.55, **look)
        up, down = up + gain, down + loss
    board.axhline(0.0, color="0.5", lw=0.6)
