"""Draw the figures of docs/explanation/estimation.md into docs/_static.

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
    """All figures."""
    with plt.rc_context(STYLE):
        along_a_chain()


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
