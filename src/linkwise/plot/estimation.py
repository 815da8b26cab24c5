"""Pictures of filters: estimates with their bounds, and whether the bounds are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.errors import ModelError
from linkwise.filtering.consistency import Consistency
from linkwise.filtering.smoother import Filtered
from linkwise.plot.canvas import Axes, ThemeLike, axes_for, axes_given, legend, panels, themed
from linkwise.plot.time_panel import short
from linkwise.spatial.array import ArrayLike

BAND = 2.0
"""Standard deviations of the bounds that are drawn."""


def estimates(
    run: Filtered,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
) -> list[Axes]:
    """Draw positions and velocities of a filter with bounds, and its innovations.

    With the true state, the first two panels have the errors instead: they should stay within the
    bounds of two standard deviations for 95 % of the time. The third has the innovations of all
    sensors, relative to their own spread; measurements that were refused are crosses.

    Args:
        run: What `Filter.run` returned, for a single motion.
        q: True joint positions (ticks, nq) [m or rad], if known.
        v: True joint velocities (ticks, nv) [m/s or rad/s], if known.
        ax: Where to draw: three Axes; by default a new figure.

    Returns:
        The three Axes.

    Raises:
        ModelError: It is no run of a filter, or a batch of them; one of q and v alone; another
            number of Axes.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    if not isinstance(run, Filtered):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"run is a {type(run).__name__}; filter.run makes one.")
    if run.q.ndim != 2:
        raise ModelError(f"run holds {len(run.q)} motions; filter one alone.")
    if (q is None) != (v is None):
        raise ModelError("only one of q and v is given; give both, or neither.")
    boards = panels(1, 3, theme=look, size=(13.0, 4.0))[1] if ax is None else axes_given(ax, 3)
    mech, t = run.filter.mech, run.filter.step * np.arange(1, len(run.q) + 1)
    nv, deviation = mech.nv, BAND * run.deviation
    if q is not None and v is not None:
        errors = run.errors(q, v)
        lines, names = (errors[:, :nv], errors[:, nv : 2 * nv]), (mech.velocity_names,) * 2
        titles = ("error of positions [m or rad]", "error of velocities [m/s or rad/s]")
    else:
        lines, names = (run.q, run.v), (mech.coordinate_names, mech.velocity_names)
        titles = ("positions [m or rad]", "velocities [m/s or rad/s]")
    for k in range(2):
        for i, name in enumerate(names[k]):
            color, y = look.color(i), lines[k][:, i]
            boards[k].plot(t, y, lw=1.2, color=color, label=short(name))
            if lines[k].shape[1] == nv:  # one bound for each velocity
                middle, wide = (0.0 if q is not None else y), deviation[:, k * nv + i]
                boards[k].fill_between(t, middle - wide, middle + wide, color=color, alpha=0.15)
        boards[k].set(title=titles[k], xlabel="t [s]")
        legend(boards[k], look)
    for i, (name, innovation) in enumerate(run.innovation.items()):
        came = np.isfinite(innovation).all(axis=-1)
        if not came.any():
            continue
        spread = np.maximum(np.std(innovation[came], axis=0), 1e-300)
        used = np.asarray(run.accepted[name])
        used = used if used.ndim == 2 else np.repeat(used[:, None], innovation.shape[-1], axis=1)
        share = innovation / spread
        for j in range(innovation.shape[-1]):
            label = name if j == 0 else None
            good, bad = came & used[:, j], came & ~used[:, j]
            boards[2].plot(t[good], share[good, j], ".", ms=2, color=look.color(i), label=label)
            boards[2].plot(t[bad], share[bad, j], "x", ms=4, color=look.color(i))
    boards[2].set(title="innovations / spread", xlabel="t [s]")
    legend(boards[2], look)
    return list(boards)


def consistency(result: Consistency, *, ax: Axes | None = None, theme: ThemeLike = "light") -> Axes:
    """Draw averages of NEES or NIS over the ticks, with their bounds.

    Args:
        result: What `lw.filtering.consistency` returned.
        ax: Where to draw; by default a new figure.

    Raises:
        ModelError: It is no result of `lw.filtering.consistency`.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    if not isinstance(result, Consistency):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"result is a {type(result).__name__}; lw.filtering.consistency makes it.")
    board = axes_for(ax, 2, look)
    ticks = np.arange(1, len(result.average) + 1)
    board.axhspan(result.lower, result.upper, color=look.color(0), alpha=0.15)
    board.plot(ticks, result.average, lw=1.2, color=look.color(0))
    board.set(
        title=f"{100.0 * result.inside:.0f} % inside the bounds", xlabel="tick", ylabel="average"
    )
    return board
