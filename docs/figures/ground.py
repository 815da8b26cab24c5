"""Draw docs/_static/ground.png: a quadruped that is dropped, and a block on slopes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/ground.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save

import linkwise as lw

PAGE = "how_to/put_a_robot_on_the_ground.md"


def main() -> None:
    """Forces of the feet after a drop; the acceleration of a block over the slope."""
    page = names_of(PAGE)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.0, 3.9), facecolor=PAPER)
    _drop(left, page)
    _slopes(right, page)
    for panel in (left, right):
        panel.set_facecolor(PAPER)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=INK, labelsize=9)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.legend(frameon=False, fontsize=9, labelcolor=INK)
    figure.subplots_adjust(left=0.06, right=0.985, top=0.9, bottom=0.14, wspace=0.2)
    save(figure, "ground.png")


def _drop(panel: plt.Axes, page: dict) -> None:
    robot, feet, q = page["robot"], page["feet"], page["q"].copy()
    goal = q[7:].copy()
    q[6] += 0.1
    runs = lw.rollout(
        robot, q, duration=0.8, step=1e-3, integrator="implicit", contacts=feet, controls=goal
    )
    for i, point in enumerate(feet):
        name = point.name.replace("_", " ")
        panel.plot(runs.t, runs.contact_forces[:, i, 2], color=COLORS[i], lw=1.2, label=name)
    weight = robot.total_mass * 9.81 / 4.0
    panel.axhline(weight, color=INK, lw=0.8, ls="--")
    panel.text(0.01, weight + 3.0, "a quarter of the weight", color=INK, fontsize=9)
    panel.set_ylim(-5.0, 160.0)
    panel.set_title("a quadruped dropped from 10 cm", color=INK, fontsize=11, loc="left")
    panel.set_xlabel("time [s]", color=INK, fontsize=9)
    panel.set_ylabel("normal force of a foot [N]", color=INK, fontsize=9)


def _slopes(panel: plt.Axes, page: dict) -> None:
    angles = np.linspace(0.0, 0.9, 19)
    for color, mu in zip(COLORS, (0.2, 0.4, 0.6), strict=False):
        law = 9.81 * np.maximum(np.sin(angles) - mu * np.cos(angles), 0.0)
        panel.plot(np.degrees(angles), law, color=color, lw=1.0, label=f"μ = {mu}")
        panel.plot(
            np.degrees(angles), [_slide(page, a, mu) for a in angles], "o", ms=3, color=color
        )
    panel.set_title("a block on a slope: law and rollout", color=INK, fontsize=11, loc="left")
    panel.set_xlabel("angle of the slope [°]", color=INK, fontsize=9)
    panel.set_ylabel("acceleration [m/s²]", color=INK, fontsize=9)


def _slide(page: dict, angle: float, mu: float) -> float:
    """The acceleration in a rollout of 0.1 s, as seen from the slope."""
    ground = page["Ground"](friction=mu)
    block, start = page["block"], page["start"]
    points = [page["ContactPoint"](p.name, p.body, p.point, ground=ground) for p in page["corners"]]
    gravity = (9.81 * np.sin(angle), 0.0, -9.81 * np.cos(angle))
    tilted = lw.Mechanism(block.name, block.bodies, gravity=np.array(gravity))
    runs = lw.rollout(tilted, start, duration=0.1, integrator="implicit", contacts=points)
    return runs.v[-1, 3] / 0.1


if __name__ == "__main__":
    main()
