"""Draw the two figures of docs/explanation/estimation.md into docs/_static.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/estimation.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

STATIC = Path(__file__).parents[1] / "_static"
INK, FAINT, BLUE, ORANGE, GREEN = "#23303d", "#8a949d", "#2f6fa7", "#d9772b", "#3d8f5f"
STYLE = {
    "font.size": 9.0,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "savefig.dpi": 130,
}


def main() -> None:
    """Both figures."""
    with plt.rc_context(STYLE):
        emergence()
        along_a_chain()


def emergence() -> None:
    """The mass matrix of an arm out of more and more draws, and the error of the average."""
    arm = lw.models.seven_dof_arm()
    field = lw.estimation.RandomField(arm, arm.random(seed=3))
    stages = list(field.watch_mass_matrix(2**18, seed=1))
    last = stages[-1]

    figure = plt.figure(figsize=(9.0, 5.2))
    grid = figure.add_gridspec(2, 4, height_ratios=(1.0, 1.25), hspace=0.3, wspace=0.25)
    size = float(np.abs(last.exact).max())
    shown = [next(x for x in stages if x.count == n) for n in (8, 128, 2048)]
    pictures = [(f"{x.count} draws", x.estimate) for x in shown] + [("mass matrix", last.exact)]
    for column, (title, matrix) in enumerate(pictures):
        axes = figure.add_subplot(grid[0, column])
        # A root shows small inertias beside large ones.
        value = np.sign(matrix) * np.sqrt(np.abs(matrix) / size)
        axes.imshow(value, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
        axes.set_title(title)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)

    axes = figure.add_subplot(grid[1, :])
    lower, upper = last.band(0.95)
    many = last.counts >= 4 * arm.nv  # the band is that of many draws
    edges = last.counts[many], lower[many], upper[many]
    axes.fill_between(*edges, color=BLUE, alpha=0.18, lw=0, label="95 % band")
    axes.loglog(last.counts, last.expected, color=BLUE, lw=1.2, label="√(p (p + 1) / n)")
    for seed in range(2, 8):
        other = field.sample_mass_matrix(2**15, seed=seed)
        axes.loglog(other.counts, other.errors, color=FAINT, lw=0.6)
    axes.loglog(last.counts, last.errors, "o-", color=ORANGE, ms=3.5, lw=1.0, label="error")
    axes.set(xlabel="draws n", ylabel="‖L⁻¹ Ŝ L⁻* − 1‖")
    axes.legend(loc="upper right")
    figure.savefig(STATIC / "mass_matrix_as_covariance.png", bbox_inches="tight")
    plt.close(figure)


def along_a_chain() -> None:
    """What the filter and the smoother know of one force along a pendulum of twelve links."""
    n = 12
    chain = lw.models.pendulum(n)
    field = lw.estimation.RandomField(chain, 0.5 * np.sin(np.arange(n)))
    draws = field.draw(4000, seed=5)
    smoother = field.smooth(draws.T[0])
    kalman, bodies = smoother.filter, np.arange(1, n + 1)

    figure, (left, middle) = plt.subplots(1, 2, figsize=(9.0, 3.4), gridspec_kw={"wspace": 0.28})
    component = 3  # force along the x axis of the body: across the link
    before, after = (np.sqrt(P[:, component, component]) for P in (kalman.P, smoother.error))
    for estimate, spread, color, label in (
        (kalman.z[:, component], before, BLUE, "filter z ± 2σ"),
        (smoother.f[:, component], after, ORANGE, "smoother f ± 2σ"),
    ):
        left.fill_between(
            bodies, estimate - 2 * spread, estimate + 2 * spread, color=color, alpha=0.2, lw=0
        )
        left.plot(bodies, estimate, "-", color=color, lw=1.4, label=label)
    left.plot(bodies, draws.X[0, :, component], "o", color=INK, ms=3.5, label="drawn X")
    left.invert_xaxis()
    left.set(xlabel="body (tip on the left, base on the right)", ylabel="force across the link [N]")
    left.legend(loc="lower left", fontsize=8)

    for name, color, label in (
        ("X", FAINT, "X: nothing measured (R)"),
        ("X - z", BLUE, "X − z: joints further out (P)"),
        ("X - f", ORANGE, "X − f: all joints (P − P Υ P)"),
    ):
        middle.plot(
            bodies, field.deviation(name)[:, component], "o-", color=color, ms=3, label=label
        )
    middle.invert_xaxis()
    middle.set(xlabel="body", ylabel="standard deviation [N]")
    middle.legend(loc="upper left", fontsize=8)
    figure.savefig(STATIC / "filter_and_smoother.png", bbox_inches="tight")
    plt.close(figure)

    figure, pair = plt.subplots(1, 2, figsize=(6.4, 3.0), gridspec_kw={"wspace": 0.15})
    white = field.filter(draws.T).white
    for axes, sample, title in zip(
        pair, (draws.T, white), ("measurements T", "innovations L⁻¹ ε"), strict=True
    ):
        axes.imshow(np.corrcoef(sample.T), cmap="RdBu_r", vmin=-1.0, vmax=1.0)
        axes.set_title(f"correlation of {title}")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    figure.savefig(STATIC / "white_innovations.png", bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    main()
