"""Draw docs/_static/diagonal.png: the motion that docs/explanation/paper_algorithms.md computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/diagonal.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """Joint velocities, diagonal velocities, and the energy that is the sum of their squares."""
    names = names_of("explanation/paper_algorithms.md", "Arms that hold an object")
    t, nu, v = np.array(names["times"]), names["residuals"], names["velocities"]
    figure, panels = plt.subplots(1, 3, figsize=(11.5, 3.3), facecolor=PAPER)
    curves = (
        ("joint velocities v [rad/s]", v, ("v₁", "v₂")),
        ("diagonal velocities ν [√J]", nu, ("ν₁", "ν₂")),
    )
    for panel, (title, values, labels) in zip(panels, curves, strict=False):
        for column, label, color in zip(values.T, labels, COLORS, strict=False):
            panel.plot(t, column, color=color, label=label, lw=1.6)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
    panel = panels[2]
    halves = 0.5 * nu**2
    panel.stackplot(
        t, *halves.T, colors=COLORS[:2], alpha=0.75, labels=("½ ν₁²", "½ ν₂²"), linewidth=0
    )
    panel.plot(t, names["kinetic"], color=INK, lw=1.0, label="kinetic energy")
    panel.set_title("kinetic energy [J]", color=INK, fontsize=11, loc="left")
    for panel in panels:
        panel.set_facecolor(PAPER)
        panel.set_xlabel("time [s]", color=INK)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
        low, high = panel.get_ylim()
        panel.set_ylim(low, high + 0.15 * (high - low))  # room for the legend, above the curves
        panel.legend(frameon=False, fontsize=9, loc="upper right", ncols=3, columnspacing=1.2)
    figure.tight_layout()
    save(figure, "diagonal.png")


if __name__ == "__main__":
    main()
