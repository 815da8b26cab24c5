"""Draw docs/_static/closed_chains.png: the four-bar linkage that docs/how_to/close_a_loop.md turns.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/closed_chains.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """The linkage with the curve of a point of its coupler; torque and pin force over a turn."""
    names = names_of("how_to/close_a_loop.md")
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 4.0), facecolor=PAPER, width_ratios=(1.0, 1.2)
    )
    for panel in (left, right):
        panel.set_facecolor(PAPER)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=INK)
    _linkage(left, names)
    _forces(right, names)
    figure.tight_layout(w_pad=3.0)
    save(figure, "closed_chains.png")


def _linkage(panel, names) -> None:  # type: ignore[no-untyped-def]
    linkage, curve = names["linkage"], names["curve"]
    panel.plot(curve[:, 0], curve[:, 2], color=COLORS[0], lw=1.8)
    for i, alpha in ((0, 1.0), (24, 0.35), (48, 0.35)):
        q = names["positions"][i]
        points = [linkage.pose(q, name).p for name in ("crank", "coupler", "coupler_end")]
        points.append(np.array([0.4, 0.0, 0.0]))
        x, z = np.array(points)[:, 0], np.array(points)[:, 2]
        panel.plot(x, z, color=COLORS[1], alpha=alpha, lw=2.5, marker="o", ms=5, mfc=PAPER)
        tip = [*points[1:3], curve[i]]
        panel.fill(*np.array(tip)[:, [0, 2]].T, color=COLORS[1], alpha=0.12 * alpha, lw=0)
    panel.plot([0.0, 0.4], [0.0, 0.0], color=FAINT, lw=1.0, ls=":")
    panel.set_aspect("equal")
    panel.set_xlim(-0.13, 0.45)
    panel.set_ylim(-0.07, 0.56)
    panel.set_xlabel("x [m]", color=INK)
    panel.set_ylabel("z [m]", color=INK)
    panel.set_title("one loop, one degree of freedom", color=INK, fontsize=11, loc="left")
    panel.text(-0.11, 0.475, "path of a point\nof the coupler", color=COLORS[0], fontsize=9)


def _forces(panel, names) -> None:  # type: ignore[no-untyped-def]
    degrees = np.degrees(names["angles"])
    panel.plot(degrees, names["force"], color=COLORS[1], lw=1.8, label="force in the pin [N]")
    panel.plot(
        degrees, 10.0 * names["turn"][:, 0], color=COLORS[0], lw=1.8,
        label="torque of the crank × 10 [N m]",
    )  # fmt: skip
    panel.axhline(0.0, color=FAINT, lw=0.8)
    panel.set_xlim(0, 360)
    panel.set_xticks(range(0, 361, 60))
    panel.set_xlabel("crank [degrees]", color=INK)
    panel.set_title("at 20 rad/s", color=INK, fontsize=11, loc="left")
    panel.grid(True, color=FAINT, alpha=0.2)
    panel.legend(frameon=False, fontsize=9, loc="upper right")


if __name__ == "__main__":
    main()
