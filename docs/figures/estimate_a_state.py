"""Draw docs/_static/estimate_a_state.png: the run that docs/how_to/estimate_a_state.md computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/estimate_a_state.py
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """Position and velocity of the second joint, the bias, and the observed push."""
    n = names_of("how_to/estimate_a_state.md")
    figure, panels = plt.subplots(2, 2, figsize=(9.5, 5.6), sharex=True, facecolor=PAPER)
    t = n["step"] * np.arange(1, n["ticks"] + 1)
    run, q, v = n["run"], n["q"], n["v"]
    panels = panels.ravel()
    panels[0].plot(t, n["positions"][:, 1], ".", color=FAINT, ms=2, label="encoder")
    panels[0].plot(t, q[:, 1], color=INK, lw=3, alpha=0.35, label="truth")
    panels[0].plot(t, run.q[:, 1], color=COLORS[0], lw=1.4, label="filter")
    panels[0].set_title("position of joint 2 [rad]; points above are refused", **TITLE)
    panels[0].set_ylim(-0.9, 2.4)
    band = 2.0 * run.deviation[:, 3]
    error = run.v[:, 1] - v[:, 1]
    panels[1].fill_between(t, -band, band, color=COLORS[0], alpha=0.2, lw=0, label="95 %")
    panels[1].plot(t, error, color=COLORS[0], lw=1.2, label="filter")
    smooth = n["smooth"].v[:, 1] - v[:, 1]
    panels[1].plot(t, smooth, color=COLORS[1], lw=1.2, label="smoother")
    panels[1].set_ylim(-0.12, 0.12)
    panels[1].set_title("error of its velocity [rad/s]", **TITLE)
    for i, axis in enumerate("xyz"):
        panels[2].plot(t, run.part("gyroscope tip")[:, i], color=COLORS[i], lw=1.4, label=axis)
        panels[2].axhline(n["bias"][i], color=INK, lw=0.8, ls=":")
    panels[2].set_title("bias of the gyroscope [rad/s]", **TITLE)
    panels[3].plot(t, n["push"], color=INK, lw=3, alpha=0.35, label="push")
    panels[3].plot(t, n["forces"][:, 1], color=COLORS[0], lw=1.4, label="observed, joint 2")
    panels[3].plot(t, n["forces"][:, 0], color=COLORS[1], lw=1.4, label="observed, joint 1")
    panels[3].set_title("moments from outside [N m]", **TITLE)
    for k, panel in enumerate(panels):
        panel.set_facecolor(PAPER)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=9, loc="upper left" if k == 3 else "upper right")
        if k > 1:
            panel.set_xlabel("time [s]", color=INK)
    figure.tight_layout()
    save(figure, "estimate_a_state.png")


TITLE: dict[str, Any] = {"color": INK, "fontsize": 11, "loc": "left"}

if __name__ == "__main__":
    main()
