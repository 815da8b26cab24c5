"""Phase portraits: velocity over position of single coordinates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.energy import energy
from linkwise.errors import ModelError, unknown_name
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import (
    Axes,
    Theme,
    ThemeLike,
    axes_for,
    matplotlib,
    new_figure,
    style,
    themed,
)
from linkwise.plot.time_panel import check_recording, short
from linkwise.simulation.recording import Recording
from linkwise.spatial.array import Array

MOST = 36
"""Panels of one figure."""

LEVELS = 9
"""Contours of equal energy behind the motion of a mechanism with nv = 1."""


def phase_portrait(
    rec: Recording,
    hinge: str | Sequence[str] | None = None,
    *,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
    levels: bool = True,
) -> Axes | list[Axes]:
    """Draw the velocity of a coordinate over its position: a ring at the start, a dot at the end.

    A mechanism with nv = 1 gets contours of equal energy behind its motion, which it
    keeps to where nothing drives or brakes it.

    Args:
        rec: The recording.
        hinge: A hinge or its body, or a coordinate like "slide.x"; several, each in a panel; by
            default all whose velocity is the rate of their position.
        ax: The Axes for one of them; default: a new figure.
        levels: Whether lines of equal energy are drawn.

    Returns:
        The Axes of one name; of several, or of all, a list.

    Raises:
        UnknownNameError: No such hinge; names the near ones.
        ModelError: A coordinate that is not the integral of a velocity, or too many.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    rec = check_recording(rec, "a phase portrait")
    if isinstance(hinge, str):
        pairs = _coordinates(rec, hinge)
        if len(pairs) > 1:
            words = " or ".join(repr(rec.channels["q"].labels[i]) for i, _ in pairs[:3])
            raise ModelError(f"{hinge!r} has {len(pairs)} coordinates; draw one of them: {words}.")
        board = axes_for(ax, 2, look)
        _draw(board, rec, *pairs[0], look, levels)
        return board
    names = list(rec.channels["q"].labels) if hinge is None else list(hinge)
    pairs = list[tuple[int, int]]()
    for name in names:
        pairs += _coordinates(rec, name, quiet=hinge is None)
    if not pairs or len(pairs) > MOST:
        what = (
            f"{len(pairs)} coordinates"
            if pairs
            else "no coordinate that is the integral of a velocity"
        )
        raise ModelError(
            f"a phase portrait cannot show {what} of {rec.name!r}; name one to {MOST} hinges."
        )
    if ax is not None:
        raise ModelError("one Axes was given for several portraits; name one hinge, or give none.")
    boards = _grid(len(pairs), look)
    for board, (i, j) in zip(boards, pairs, strict=True):
        _draw(board, rec, i, j, look, levels)
        board.set_title(short(rec.channels["q"].labels[i], 30), fontsize=9, color=look.ink)
        board.set_xlabel(f"q [{rec.channels['q'].units[i]}]")
        board.set_ylabel(f"v [{rec.channels['v'].units[j]}]")
    return boards


def _coordinates(rec: Recording, name: str, *, quiet: bool = False) -> list[tuple[int, int]]:
    """Places in q and in v of the coordinates of a hinge, body or label."""
    q, v = rec.channels["q"].labels, rec.channels["v"].labels
    mech = rec.mech
    if mech is not None and name in mech.body_index and name not in mech.hinge_index:
        name = mech.bodies[mech.body_index[name]].hinge_name
    indices = [i for i, x in enumerate(q) if x == name or x.startswith(f"{name}.")]
    if not indices:
        known = [*dict.fromkeys(x.partition(".")[0] for x in q), *q]
        raise unknown_name("coordinate", name, known, owner=f"the recording of {rec.name!r}")
    rated = {x: j for j, x in enumerate(v)}
    pairs = [(i, rated[q[i]]) for i in indices if q[i] in rated and _is_rate(mech, i)]
    if not pairs and not quiet:
        words = "; of a quaternion draw lw.plot.history" if "quaternion" in q[indices[0]] else ""
        raise ModelError(
            f"{name!r} of {rec.name!r} has no velocity that is the rate of its position{words}."
        )
    return pairs


def _is_rate(mech: Mechanism | None, i: int) -> bool:
    """Whether entry i of q belongs to a hinge whose v is its rate; unknown ones by their names."""
    if mech is None:
        return True
    k = int(np.searchsorted(mech.q_start, i, side="right")) - 1
    hinge = mech.bodies[k].hinge
    still = hinge.neutral()
    unit = np.eye(hinge.nv)
    return hinge.nq == hinge.nv and all(np.array_equal(hinge.qdot(still, x), x) for x in unit)


def _grid(count: int, look: Theme) -> list[Axes]:
    columns = min(count, 2 if count <= 4 else 3 if count <= 9 else 4 if count <= 16 else 6)
    rows = -(-count // columns)
    side = 3.4 if columns <= 2 else 2.7 if columns <= 4 else 2.2
    figure = new_figure((side * columns, 0.92 * side * rows), look)
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    boards = [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    for board in boards:
        style(board, look)
        ticks = matplotlib("matplotlib.ticker", "a figure").MaxNLocator
        board.xaxis.set_major_locator(ticks(5 if columns <= 2 else 3 if columns <= 4 else 2))
        board.yaxis.set_major_locator(ticks(6 if columns <= 2 else 4))
    return boards


def _draw(board: Axes, rec: Recording, i: int, j: int, look: Theme, levels: bool) -> None:
    x, y = rec.q[:, i], rec.v[:, j]
    tint = look.color(0)
    board.plot(x, y, color=tint, lw=1.3, zorder=3)
    mark = {"ls": "none", "marker": "o", "ms": 6, "zorder": 4, "markeredgecolor": tint}
    board.plot(x[:1], y[:1], markerfacecolor=look.paper, **mark)
    board.plot(x[-1:], y[-1:], markerfacecolor=tint, **mark)
    board.margins(0.08)
    name = short(rec.channels["q"].labels[i])
    board.set_xlabel(f"q[{name}] [{rec.channels['q'].units[i]}]")
    board.set_ylabel(f"v[{name}] [{rec.channels['v'].units[j]}]")
    if levels and rec.mech is not None and rec.mech.nv == rec.mech.nq == 1:
        _levels(board, rec.mech, look)


def _levels(board: Axes, mech: Mechanism, look: Theme) -> None:
    """Lines of equal energy over what is seen."""
    left, right = (float(x) for x in board.get_xlim())
    low, high = (float(x) for x in board.get_ylim())
    if not (right > left and high > low):
        return
    q, v = np.linspace(left, right, 90), np.linspace(low, high, 90)
    at_q, at_v = np.meshgrid(q, v)
    total: Array = energy(mech, at_q.reshape(-1, 1), at_v.reshape(-1, 1)).total
    board.contour(
        q, v, total.reshape(at_q.shape), LEVELS, colors=look.faint, linewidths=0.6, alpha=0.55,
        linestyles="solid", zorder=1,
    )  # fmt: skip
    board.set_xlim(left, right)
    board.set_ylim(low, high)
