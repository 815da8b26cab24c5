"""Inertia as covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.dynamics import bias_force, forward_dynamics
from linkwise.estimation import RandomField
from linkwise.estimation.mass_matrix_sample import MassMatrixSample
from linkwise.plot.canvas import Figure, matplotlib, panels, style
from linkwise.plot.filter_and_smoother import filter_and_smoother
from linkwise.plot.theme import Theme
from linkwise.tour.posture import posture
from linkwise.tour.stations.algebra import shown
from linkwise.tour.visit import Visit

SHOWN = (8, 128, 2048)
"""Numbers of draws whose averages are drawn."""


def covariance(visit: Visit) -> None:
    """Inertia is covariance: push bodies at random, and the joints feel the mass matrix."""
    mech = shown(visit)
    visit.say(
        "Let every body be pushed at random, with its spatial inertia as the covariance of the "
        "push. The joint forces T = H φ W then have the covariance H φ M φ* H*: the mass matrix. "
        "Forward dynamics is the optimal smoother of that random field. Both can be tried."
    )
    q = posture(mech)
    field = RandomField(mech, q)
    draws = 2**13 if visit.quick else 2**16
    stages = list(field.watch_mass_matrix(draws, seed=5))
    last = stages[-1]
    rows = [
        [f"{n}", f"{error:.3f}", f"{expected:.3f}"]
        for n, error, expected in zip(last.counts, last.errors, last.expected, strict=True)
    ]
    visit.table(
        ["draws", "error", "expected"],
        rows[-6:],
        "The error ‖L⁻¹ Ŝ L⁻* − 1‖ of the average Ŝ of T T*, with 𝓜 = L L*, and its expected size.",
    )
    visit.picture(
        lambda theme: _emergence(stages, theme),
        f"{mech.name}: averages of T T* over more and more draws, beside the mass matrix (red "
        "positive, blue negative, as roots, so that small inertias show beside large ones); below, "
        "the error over the number of draws, on the line √(p (p + 1) / n) and its 95 % band.",
    )
    visit.picture(
        lambda theme: filter_and_smoother(mech, q, theme=theme)[0].figure,
        "Filter and smoother along the longest chain: what they make of one force, with two "
        "standard deviations, and how sure they are. The filter has seen the joints further out, "
        "the smoother all of them.",
    )
    low, high = (float(side[-1]) for side in last.band(1.0 - 1e-9))
    inside = max(last.error / high, low / last.error)
    visit.check("the error is one that chance allows: its place in the band", inside, 1.0)
    forces, still = np.random.default_rng(5).standard_normal(mech.nv), np.zeros(mech.nv)
    vdot = forward_dynamics(mech, q, still, forces, loops="open")
    smoothed = field.smooth(forces - bias_force(mech, q, still)).vdot
    size = float(np.abs(vdot).max(initial=0.0)) or 1.0
    gap = float(np.abs(smoothed - vdot).max(initial=0.0)) / size
    visit.check("the smoother is forward dynamics, relative", gap, 1e-9)


def _emergence(stages: list[MassMatrixSample], theme: Theme) -> Figure:
    last = stages[-1]
    figure, axes = panels(1, 1, theme=theme, size=(8.6, 5.4))
    axes[0].remove()
    grid = figure.add_gridspec(2, len(SHOWN) + 1, height_ratios=(1.0, 1.25))
    size = float(np.abs(last.exact).max(initial=0.0)) or 1.0
    chosen = [next(stage for stage in stages if stage.count == n) for n in SHOWN]
    pictures = [(f"{x.count} draws", x.estimate) for x in chosen]
    for column, (title, matrix) in enumerate([*pictures, ("mass matrix", last.exact)]):
        ax = figure.add_subplot(grid[0, column])
        _heat(ax, matrix / size, title, theme)
    ax = figure.add_subplot(grid[1, :])
    style(ax, theme)
    lower, upper = last.band(0.95)
    many = last.counts >= 4 * len(last.exact)  # the band is that of many draws
    blue, red = theme.color(1), theme.color(0)
    ax.fill_between(
        last.counts[many], lower[many], upper[many], color=blue, alpha=0.2, lw=0, label="95 % band"
    )
    ax.loglog(last.counts, last.expected, color=blue, lw=1.2, label="√(p (p + 1) / n)")
    ax.loglog(last.counts, last.errors, "o-", color=red, ms=3.5, lw=1.0, label="error")
    ax.set(xlabel="draws n", ylabel="error")
    ax.legend(loc="upper right", frameon=False, labelcolor=theme.ink, fontsize=9)
    return figure


def _heat(ax: Any, matrix: Any, title: str, theme: Theme) -> None:
    colours = matplotlib("matplotlib.colors", "a heat map").LinearSegmentedColormap
    ramp = colours.from_list("house", [theme.color(1), theme.paper, theme.color(0)])
    value = np.sign(matrix) * np.sqrt(np.abs(matrix))
    ax.imshow(value, cmap=ramp, vmin=-1.0, vmax=1.0, interpolation="nearest")
    ax.set_title(title, color=theme.ink, fontsize=10)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(theme.beyond)
