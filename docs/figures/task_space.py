"""Draw docs/_static/task_space.png: a hand that is held while torques act in a null space.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/task_space.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """Left, how the elbow goes; right, where the hand is meanwhile."""
    names = names_of("explanation/task_space.md")
    arm, place = names["arm"], names["place"]
    figure, panels = plt.subplots(1, 2, figsize=(8.6, 3.6), facecolor=PAPER)
    for color, (label, inverse) in zip(
        COLORS[1::-1],
        (("dynamically consistent", "consistent"), ("Moore-Penrose", "moore_penrose")),
        strict=True,
    ):
        motion = names["run"](names[inverse])
        points = names["lw"].tasks.task_position(arm, motion.q, place)
        away = np.linalg.norm(points - points[0], axis=1)
        panels[0].plot(motion.t, motion.q[:, 2] - motion.q[0, 2], color=color, lw=2.0, label=label)
        panels[1].plot(motion.t, 1e3 * away, color=color, lw=2.0, label=label)
    panels[0].set_title("rotation of the upper arm [rad]", color=INK, fontsize=11, loc="left")
    panels[1].set_title("displacement of the hand [mm]", color=INK, fontsize=11, loc="left")
    panels[0].legend(frameon=False, fontsize=9, loc="upper left", title="τ₀ through the null space")
    for panel in panels:
        panel.set_facecolor(PAPER)
        panel.set_xlabel("time [s]", color=INK)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
    panels[1].set_ylim(bottom=-3.0)
    figure.tight_layout()
    save(figure, "task_space.png")


if __name__ == "__main__":
    main()
