"""Draw docs/_static/differentiate_a_motion.png: gains tuned by gradient descent.

It shows what docs/how_to/differentiate_a_motion.md computes. Run from the repository root, with the
extra `plot` installed:

    python docs/figures/differentiate_a_motion.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """The cost over iterations, and the errors of all joints before and after."""
    names = names_of(
        "how_to/differentiate_a_motion.md", before="Fit a payload to a measured motion"
    )
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.4), facecolor=PAPER)
    panels[0].plot(names["costs"], color=COLORS[0], lw=1.8)
    panels[0].set_ylim(0.0, 1.0)
    panels[0].set_xlabel("iteration", color=INK)
    panels[0].set_ylabel("cost", color=INK)
    for panel, key in zip(panels[1:], ("before", "after"), strict=True):
        runs = names[key]
        panel.plot(runs.t, runs.q - names["goal"], color=COLORS[1], lw=1.2, alpha=0.8)
        panel.set_ylim(-1.3, 0.7)
        panel.set_xlabel("time [s]", color=INK)
    panels[1].set_ylabel("errors of the joints [rad]", color=INK)
    titles = ("gradient descent", "gains to begin with", "tuned gains")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_facecolor(PAPER)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, "differentiate_a_motion.png")


if __name__ == "__main__":
    main()
