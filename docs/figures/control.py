"""Draw docs/_static/control.png: the errors that docs/how_to/track_a_pose.md computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/control.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """Largest error of the six joints over time, with the right model and with a load."""
    names = names_of("how_to/track_a_pose.md")
    figure, panels = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, facecolor=PAPER)
    titles = ("exact model", "2 kg unknown to the controllers")
    for panel, title, runs in zip(
        panels, titles, (names["exact"], names["surprised"]), strict=True
    ):
        panel.set_facecolor(PAPER)
        for color, (name, errors) in zip(COLORS, runs.items(), strict=False):
            size = 1e3 * np.abs(errors).max(axis=1)
            panel.semilogy(0.004 * np.arange(len(size)), size, color=color, label=name, lw=1.8)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
        panel.set_xlabel("time [s]", color=INK)
        panel.set_ylim(1e-4, 1e3)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("largest error of a joint [mrad]", color=INK)
    panels[0].legend(frameon=False, fontsize=9, loc="center right")
    figure.tight_layout()
    save(figure, "control.png")


if __name__ == "__main__":
    main()
