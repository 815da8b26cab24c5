"""Draw docs/_static/optimise_a_motion.png, of docs/how_to/optimise_a_motion.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/optimise_a_motion.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """The cart-pole in space, its force and position over time, and the cost."""
    motion = names_of("how_to/optimise_a_motion.md", "Reach with tasks, within bounds")["motion"]
    figure, panels = plt.subplots(2, 2, figsize=(9.5, 5.6), facecolor=PAPER)
    space, force, place, cost = panels.ravel()
    knots = range(0, len(motion.q), 3)
    for i, k in enumerate(knots):
        x, angle = motion.q[k]
        share = i / (len(knots) - 1)
        tip = x + 0.5 * np.sin(angle), 0.5 * np.cos(angle)
        space.plot([x, tip[0]], [0.0, tip[1]], color=COLORS[1], lw=1.6, alpha=0.15 + 0.8 * share)
        space.plot(x, 0.0, "s", color=COLORS[0], ms=5, alpha=0.15 + 0.8 * share)
    space.set_aspect("equal")
    space.set_title("the pole swings up, later states darker [m]")
    for bound in (-0.8, 0.8):
        space.axvline(bound, color=INK, lw=0.8, ls=":")
        place.axhline(bound, color=INK, lw=0.8, ls=":")
    force.step(motion.time[:-1], motion.tau[:, 0], where="post", color=COLORS[0], lw=1.4)
    for bound in (-12.0, 12.0):
        force.axhline(bound, color=INK, lw=0.8, ls=":")
    force.set_title("force of the motor within its limit [N]")
    place.plot(motion.time, motion.q[:, 0], color=COLORS[0], lw=1.4, label="cart [m]")
    place.plot(motion.time, motion.q[:, 1], color=COLORS[1], lw=1.4, label="pole [rad]")
    place.legend(frameon=False)
    place.set_title("positions over time [s]; rail dotted")
    values = motion.history.cost
    cost.semilogy(values - values.min() + 1e-9, color=COLORS[2], lw=1.4)
    cost.set_title("cost above the least, by iteration")
    for panel in panels.ravel():
        panel.set_facecolor(PAPER)
        panel.title.set(color=INK, fontsize=10)
        panel.tick_params(colors=FAINT, labelsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.tight_layout()
    save(figure, "optimise_a_motion.png")


if __name__ == "__main__":
    main()
