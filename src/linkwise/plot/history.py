"""Pictures of channels over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from linkwise.errors import ModelError, unknown_name
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
from linkwise.simulation.channel import Channel
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array

LINES = 8
"""Lines in a panel, at most: four colours, solid and dashed."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Lines of one unit that are drawn together.

    Attributes:
        title: On the axis.
        lines: Label and values (k,) of each.
    """

    title: str
    lines: list[tuple[str, Array]]


def history(
    rec: Recording,
    channels: str | Sequence[str] | None = None,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
    events: bool = True,
    lines: int = LINES,
) -> list[Axes]:
    """Draw channels over time, with their units.

        lw.plot.history(rec)                               q, v and tau
        lw.plot.history(rec, ["q[elbow]", "energy.*"])

    Panels stand one above the other over one time axis. Columns of different units, and more than
    `lines` of one, get separate panels, in two columns if there are many.

    Args:
        rec: The recording.
        channels: Names of channels, with a label in brackets for some columns, or with * for all
            that match; by default q, v, and tau where there are joint forces.
        ax: One Axes for each panel; default: a new figure.
        events: Whether events are marked.
        lines: Lines in a panel, at most.

    Returns:
        The Axes of the panels, from the first to the last.

    Raises:
        UnknownNameError: No such channel; names the near ones.
        ModelError: Nothing to draw; another number of Axes than panels.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    rec = check_recording(rec, "a history")
    if lines < 1:
        raise ModelError(f"lines is {lines!r}; a panel has one or more.")
    chosen = _panels(_chosen(rec, channels), lines)
    if not chosen:
        raise ModelError(f"the channels {channels!r} of {rec.name!r} have no columns to draw.")
    columns = 2 if len(chosen) > 6 else 1
    height = 3.0 if len(chosen) == 1 else 2.0 if len(chosen) <= 3 else 1.55
    least = [0.25 + 0.142 * len(panel.lines) for panel in chosen]  # its legend has to fit beside it
    boards = stacked([max(height, x) for x in least], look, columns=columns, given=ax)
    for board, panel in zip(boards, chosen, strict=True):
        for i, (label, values) in enumerate(panel.lines):
            name = label if len(panel.lines) > 1 else None
            board.plot(rec.t, values, label=name, **line_look(i, look))
        board.set_ylabel(panel.title)
        legend_beside(board, look)
    span_times(boards, rec)
    if events:
        mark_events(boards, rec, look)
    boards[0].figure.align_ylabels(boards)
    return boards


def _chosen(rec: Recording, channels: str | Sequence[str] | None) -> list[Channel]:
    if channels is None:
        names = ["q", "v", *(["tau"] if rec.tau.any() else [])]
        return [rec.channel(name) for name in names]
    chosen = list[Channel]()
    for name in [channels] if isinstance(channels, str) else channels:
        if name not in rec.channels and "*" in name:
            matching = [x for x in rec.channels if fnmatchcase(x, name)]
            if not matching:
                owner = f"the recording of {rec.name!r}"
                raise unknown_name("channel", name, rec.channels, owner=owner)
            chosen += [rec.channel(x) for x in matching]
        else:
            chosen.append(rec.channel(name))
    return chosen


def _panels(channels: Sequence[Channel], most: int) -> list[Panel]:
    """Single channels of one kind and unit go together; columns go apart by their units."""
    result, last = list[Panel](), ""
    for channel in channels:
        if channel.values.ndim == 1:
            kind, unit = channel.name.partition(".")[0], channel.units[0]
            key = f"{kind} {unit}"
            line = (short(channel.name), channel.values)
            if key == last and len(result[-1].lines) < most:
                lines = [*result.pop().lines, line]
                result.append(Panel(_title(kind, unit), lines))
            else:
                result.append(Panel(_title(channel.name, unit), [line]))
            last = key
            continue
        last = ""
        for unit in dict.fromkeys(channel.units):
            which = [i for i, x in enumerate(channel.units) if x == unit]
            parts = -(-len(which) // most)
            for part in np.array_split(np.array(which), parts):
                chosen = [int(i) for i in part]
                lines = [(short(channel.labels[i]), channel.values[:, i]) for i in chosen]
                title = channel.name if len(lines) > 1 else channel.columns[int(part[0])]
                result.append(Panel(_title(title, unit), lines))
    return result


def _title(name: str, unit: str) -> str:
    return f"{short(name)} [{unit}]" if unit else short(name)
