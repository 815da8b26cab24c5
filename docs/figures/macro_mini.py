"""Draw docs/_static/macro_mini.png, what examples/dextrous_coordination.py computes, and the arm.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/macro_mini.py
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from pages import COLORS, FAINT, INK, PAPER, save
from raycast import Camera, picture, solids

import linkwise as lw

EXAMPLE = Path(__file__).parents[2] / "examples" / "dextrous_coordination.py"
FREQUENCIES = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 26.0, 32.0)


def example() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("dextrous_coordination", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def joints_of(arm: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The corners of the arm in the plane (5, 2)."""
    names = ["shoulder_link", "elbow_link", "mini_shoulder_link", "mini_elbow_link", "tip"]
    return lw.forward_kinematics(arm, q, names).p[:, :2]


def draw_arm(panel: Any, arm: lw.Mechanism, q: np.ndarray, color: str, alpha: float) -> None:
    """The macro thick, the mini thin."""
    at = joints_of(arm, q)
    panel.plot(*at[:3].T, color=FAINT, lw=5, alpha=0.55 * alpha, solid_capstyle="round")
    panel.plot(*at[2:].T, color=color, lw=2.4, alpha=alpha, solid_capstyle="round")
    panel.plot(*at[:4].T, "o", color=INK, ms=2.6, alpha=alpha)


def plain_look(panel: Any, title: str) -> None:
    """The house look."""
    panel.set_facecolor(PAPER)
    panel.set_title(title, color=INK, fontsize=10.5, loc="left")
    panel.grid(True, color=FAINT, alpha=0.2)
    panel.spines[["top", "right"]].set_visible(False)


def sample() -> None:
    """The arm in space, and its mini enlarged, into docs/_static/macro_mini_arm.png."""
    arm = lw.models.macro_mini()
    mini = lw.papers.macro_mini(arm, "mini_yaw", "tip").mini_at(arm.neutral())
    figure = plt.figure(figsize=(7.6, 3.4), dpi=96, facecolor=PAPER)
    for mech, (left, width), shadow in ((arm, (0.0, 0.62), "#e7e4dc"), (mini, (0.62, 0.38), None)):
        ax = figure.add_axes((left, 0.0, width, 1.0))
        ax.set_axis_off()
        box = ax.get_window_extent()
        image = picture(
            solids(mech, mech.neutral()),
            Camera(-62.0, 16.0),
            (round(box.height), round(box.width)),
            paper=np.array(to_rgb(PAPER)),
            shadow=None if shadow is None else np.array(to_rgb(shadow)),
        )
        ax.imshow(image, interpolation="nearest", aspect="auto")
    save(figure, "macro_mini_arm.png")


def main() -> None:
    """Where the arm ends up, how much of its range the mini uses, how fast a sine it draws."""
    e = example()
    arm = lw.models.planar_macro_mini()
    home = lw.tasks.task_position(arm, arm.neutral(), e.TASK)
    dextrous = e.coordination_of(arm)
    controllers = {
        "plain": lw.TaskController(arm, e.SERVO),
        "coordinated": lw.TaskController(arm, e.SERVO, posture=dextrous.posture),
    }
    path = e.journey(home)
    figure = plt.figure(figsize=(11.0, 4.2), facecolor=PAPER)
    grid = figure.add_gridspec(2, 3, width_ratios=(1.15, 1.0, 1.0))
    scene, share = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1])
    miss, gains = figure.add_subplot(grid[1, 1]), figure.add_subplot(grid[:, 2])
    draw_arm(scene, arm, arm.neutral(), INK, 0.35)
    for color, (name, controller) in zip(COLORS, controllers.items(), strict=False):
        run, error = e.led(arm, controller, path, 2.2, stops=True, strength=True)
        draw_arm(scene, arm, run.q[-1], color, 1.0)
        share.plot(run.t, dextrous.share(run.q).max(axis=1), color=color, lw=1.8, label=name)
        miss.semilogy(run.t, 1e3 * np.maximum(error, 1e-7), color=color, lw=1.8)
    way = np.array([path(t).position[:2] for t in np.linspace(0.0, 2.0, 40)])
    scene.plot(*way.T, ":", color=INK, lw=1.3)
    scene.plot(*way[-1], "x", color=INK, ms=8)
    plain_look(scene, "led 0.58 m away")
    scene.set_aspect("equal")
    scene.set_xlabel("[m]", color=INK)
    plain_look(share, "share of the mini's range")
    share.axhline(1.0, color=INK, lw=0.8, ls="--")
    share.legend(frameon=False, fontsize=9, loc="center right")
    plain_look(miss, "distance of the tip from its goal [mm]")
    miss.set_xlabel("time [s]", color=INK)
    held = arm.lock(e.MINI)
    macro = lw.TaskController(held, e.SERVO)
    both = [e.gain(arm, controllers["coordinated"], f) for f in FREQUENCIES]
    alone = [e.gain(held, macro, f) for f in FREQUENCIES]
    gains.semilogx(FREQUENCIES, both, "o-", color=COLORS[1], lw=1.8, ms=4, label="coordinated")
    gains.semilogx(FREQUENCIES, alone, "s-", color=COLORS[2], lw=1.8, ms=4, label="mini held")
    plain_look(gains, "what is left of a sine of 10 mm")
    gains.set_ylim(0.0, 1.15)
    gains.set_xticks([1, 2, 5, 10, 20, 30], ["1", "2", "5", "10", "20", "30"])
    gains.set_xlabel("frequency [Hz]", color=INK)
    gains.legend(frameon=False, fontsize=9, loc="lower left")
    figure.tight_layout()
    save(figure, "macro_mini.png")


if __name__ == "__main__":
    sample()
    main()
