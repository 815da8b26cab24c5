"""Draw docs/_static/optimise_a_motion.png and pushed_arm.png, of docs/how_to/optimise_a_motion.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/optimise_a_motion.py
"""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save

EXAMPLE = Path(__file__).parents[2] / "examples" / "predictive_arm.py"


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


def pushed_arm() -> None:
    """The example of a receding horizon: distance to the goal, and the time of ticks."""
    example = runpy.run_path(str(EXAMPLE))
    run, far, spent = example["pushed"]()
    figure, (place, clock) = plt.subplots(
        1, 2, figsize=(9.5, 3.0), facecolor=PAPER, width_ratios=[2, 1]
    )
    place.semilogy(run.t, 1e3 * far, color=COLORS[0], lw=1.4)
    for begin, length in example["PUSHES"]:
        place.axvspan(begin, begin + length, color=COLORS[1], alpha=0.3, lw=0)
    place.axvline(0.9, color=INK, lw=0.8, ls=":")
    place.set_title("distance of the hand to its goal [mm] over time [s]; pushes, new goal dotted")
    clock.plot(np.sort(1e3 * spent), np.linspace(0.0, 1.0, len(spent)), color=COLORS[2], lw=1.4)
    clock.axvline(1e3 * example["TICK"], color=INK, lw=0.8, ls=":")
    clock.set_xlim(0.0, 1.2e3 * example["TICK"])
    clock.set_title("share of ticks that take less [ms]")
    for panel in (place, clock):
        panel.set_facecolor(PAPER)
        panel.title.set(color=INK, fontsize=10)
        panel.tick_params(colors=FAINT, labelsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.tight_layout()
    save(figure, "pushed_arm.png")


if __name__ == "__main__":
    main()
    pushed_arm()
