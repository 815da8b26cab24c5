"""Pictures of a study: distributions, probabilities, dependence, indices, bands, designs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from linkwise.arguments import is_a
from linkwise.errors import ModelError
from linkwise.plot.canvas import Axes, ThemeLike, axes_for, legend, themed
from linkwise.study.design import WORST, Design
from linkwise.study.rare_event import RareEvent
from linkwise.study.results import Results
from linkwise.study.sensitivity import Sensitivity
from linkwise.study.statistics import Estimate, band, chance, column as numbers, quantile

DOTS = 4000
"""Cases that a scatter shows, at most: every k-th."""

POINTS = 80
"""Bounds of a curve of probabilities."""


def study_distribution(
    results: Results,
    column: str,
    *,
    bins: int = 60,
    mark: Sequence[float] = (0.05, 0.5, 0.95),
    ax: Axes | None = None,
    theme: ThemeLike = "light",
) -> Axes:
    """Draw the distribution of a column, with some quantiles.

    Args:
        results: The results of a study.
        column: Its name.
        bins: How many bars.
        mark: Quantiles that are marked.
    """
    look = themed(theme)
    y, weight, _ = numbers(results, column)
    fine = np.isfinite(y)
    board: Axes = axes_for(ax, 2, look)
    board.hist(
        y[fine], bins=bins, weights=weight[fine], color=look.color(1), alpha=0.8, density=True
    )
    for share in mark:
        at = cast(Estimate, quantile(results, column, share)).value
        board.axvline(at, color=look.color(0), linewidth=1.0)
        board.annotate(f"{100 * share:g} %", (at, 1.0), xycoords=("data", "axes fraction"),
                    fontsize=7, color=look.ink, rotation=90, va="top", ha="right")  # fmt: skip
    board.set_xlabel(column)
    board.set_ylabel("density")
    return board


def study_scatter(
    results: Results, x: str, y: str, *, ax: Axes | None = None, theme: ThemeLike = "light"
) -> Axes:
    """Draw one column over another, with the median and the 90 % range in ten parts.

    Args:
        results: The results of a study.
        x: The column along the abscissa, as a variable.
        y: The column along the ordinate.
    """
    look = themed(theme)
    a, b = (np.asarray(results[name], np.float64) for name in (x, y))
    fine = np.isfinite(a) & np.isfinite(b)
    a, b = a[fine], b[fine]
    board: Axes = axes_for(ax, 2, look)
    every = max(1, len(a) // DOTS)
    board.plot(a[::every], b[::every], ".", markersize=2, color=look.color(1), alpha=0.35,
               rasterized=True)  # fmt: skip
    if len(a) >= 100:
        order = np.array_split(np.argsort(a, kind="stable"), 10)
        middle = [float(np.median(a[part])) for part in order]
        low, mid, high = np.transpose([np.quantile(b[part], (0.05, 0.5, 0.95)) for part in order])
        board.fill_between(middle, low, high, color=look.color(0), alpha=0.2, label="90 %")
        board.plot(middle, mid, color=look.color(0), linewidth=1.6, label="median")
        legend(board, look)
    board.set_xlabel(x)
    board.set_ylabel(y)
    return board


def study_band(
    results: Results,
    trajectory: str,
    *,
    entry: str | None = None,
    q: Sequence[float] = (0.05, 0.5, 0.95),
    level: float = 0.95,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
) -> Axes:
    """Draw quantiles of a trajectory over time.

    Args:
        results: The results of a study.
        trajectory: The trajectory, as named in `keep`.
        entry: The label of its entry; default: the first one.
        q: The lower quantile, the middle and the upper one.
        level: Of the confidence intervals around the three lines; one without an end is not drawn.
    """
    look = themed(theme)
    bands = band(results, trajectory, q=q, entry=entry, level=level)
    t, middle = bands.t, len(bands.q) // 2
    board: Axes = axes_for(ax, 2, look)
    board.fill_between(t, bands.values[0], bands.values[-1], color=look.color(1), alpha=0.25,
                    label=f"{100 * q[0]:g} % to {100 * q[-1]:g} %")  # fmt: skip
    for low, high in zip(bands.low, bands.high, strict=True):
        board.fill_between(t, low, high, color=look.color(0), alpha=0.25, linewidth=0.0)
    board.plot(t, bands.values[middle], color=look.color(0), label=f"{100 * q[middle]:g} %")
    board.set_xlabel("t [s]")
    board.set_ylabel(trajectory if entry is None else f"{trajectory}[{entry}]")
    legend(board, look)
    return board


def study_indices(
    indices: Sensitivity, *, ax: Axes | None = None, theme: ThemeLike = "light"
) -> Axes:
    """Draw Sobol or Morris indices, the largest on top.

    Args:
        indices: From `lw.study.sensitivity`.
    """
    look = themed(theme)
    indices = is_a(Sensitivity, indices, "indices", "lw.study.sensitivity makes them.")
    board: Axes = axes_for(ax, 2, look)
    order: list[int] = np.argsort(indices.total, kind="stable").tolist()
    names = [indices.names[i] for i in order]
    sobol = indices.kind == "sobol"
    parts = ((indices.first, indices.first_error, "first order" if sobol else "mu*"),
             (indices.total, indices.total_error, "total" if sobol else "sigma"))  # fmt: skip
    for k, (values, errors, label) in enumerate(parts):
        place = np.arange(len(order)) + 0.2 - 0.4 * k
        width = np.nan_to_num(errors[order])
        board.barh(place, values[order], 0.38, xerr=width, color=look.color(1 - k), label=label,
                error_kw={"ecolor": look.ink, "elinewidth": 0.8})  # fmt: skip
    board.set_yticks(range(len(order)), names)
    board.set_xlabel(f"indices of {indices.column}")
    legend(board, look)
    return board


def study_probability(
    results: Results,
    column: str,
    *,
    level: float = 0.95,
    ax: Axes | None = None,
    theme: ThemeLike = "light",
) -> Axes:
    """Draw the probability that a column is above a bound, over the bound, with its interval.

    Args:
        results: The results of a study. Failed cases count as being above every bound.
        column: Its name.
        level: Of the confidence interval.
    """
    look = themed(theme)
    y, weight, failed = numbers(results, column)
    finite = y[np.isfinite(y)]
    if not len(finite):
        raise ModelError(f"{column!r} has no case with a number.")
    bounds = np.linspace(float(finite.min()), float(finite.max()), POINTS)
    with np.errstate(invalid="ignore"):
        each = [chance((y > b) | failed, weight, level) for b in bounds]
    board: Axes = axes_for(ax, 2, look)
    value = np.array([x.value for x in each])
    floor = 0.3 * float(value[value > 0].min(initial=1.0))  # of a logarithmic axis
    low = [max(x.low, floor) for x in each]
    there = value > 0.0  # beyond, nothing is known but a bound
    share = f"{100 * level:g} % interval"
    board.fill_between(
        bounds, low, [x.high for x in each], where=there, color=look.color(1), alpha=0.25,
        label=share,
    )  # fmt: skip
    board.plot(bounds[there], value[there], color=look.color(0), label="estimate")
    board.set_yscale("log")
    board.set_xlabel(column)
    board.set_ylabel("probability of more")
    legend(board, look)
    return board


def study_rare_event(
    event: RareEvent, *, ax: Axes | None = None, theme: ThemeLike = "light"
) -> Axes:
    """Draw the levels of subset simulation and their probabilities, down to the rare event.

    Args:
        event: From `lw.study.rare_event`.
    """
    look = themed(theme)
    event = is_a(RareEvent, event, "event", "lw.study.rare_event makes it.")
    board: Axes = axes_for(ax, 2, look)
    board.plot(event.levels, event.chances, "o-", color=look.color(1), label="levels")
    last = event.probability
    width = [[last.value - last.low], [last.high - last.value]]
    label = f"{last.value:.2g}, {100 * last.level:g} % interval"
    board.errorbar(
        event.levels[-1:], [last.value], yerr=width, fmt="o", color=look.color(0), capsize=4,
        label=label,
    )  # fmt: skip
    board.set_yscale("log")
    board.set_xlabel("bound")
    board.set_ylabel("probability of more")
    legend(board, look)
    return board


def study_design(design: Design, *, ax: Axes | None = None, theme: ThemeLike = "light") -> Axes:
    """Draw the objective of each design that was tried, and the best one so far.

    Args:
        design: From `lw.study.optimize`.
    """
    look = themed(theme)
    design = is_a(Design, design, "design", "lw.study.optimize makes it.")
    board: Axes = axes_for(ax, 2, look)
    trials = np.arange(1, len(design.history) + 1)
    fine = design.history < WORST  # without designs whose cases fail
    board.plot(trials[fine], design.history[fine], ".", color=look.color(1), label="designs")
    best = np.minimum.accumulate(design.history)
    board.step(trials[best < WORST], best[best < WORST], where="post", color=look.color(0),
               label="the best so far")  # fmt: skip
    board.set_xlabel("design")
    board.set_ylabel("objective")
    legend(board, look)
    return board
