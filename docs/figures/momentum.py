"""Draw docs/_static/momentum.png: the satellite of docs/how_to/compute_dynamics.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/momentum.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from pages import COLORS, FAINT, INK, PAPER, names_of, save
from raycast import Camera, picture, solids


def main() -> None:
    """The robot at the start, half a loop later and at the end; the loop; the angle."""
    names = names_of("how_to/compute_dynamics.md")
    robot, path, steps = names["robot"], names["path"], names["steps"]
    figure = plt.figure(figsize=(11.5, 6.6), facecolor=PAPER)
    shown = (("at the start", 0), ("half a loop", steps // 2), ("after four loops", -1))
    for i, (title, at) in enumerate(shown):
        panel = figure.add_axes((0.01 + 0.33 * i, 0.43, 0.32, 0.50))
        panel.set_axis_off()
        image = picture(
            solids(robot, path[at]),
            Camera(32.0, 18.0),
            (330, 370),
            paper=np.array(to_rgb(PAPER)),
            shadow=None,
        )
        panel.imshow(image, interpolation="nearest")
        panel.set_title(title, color=INK, fontsize=11)
    s = np.linspace(0.0, 2.0 * np.pi, 200)
    where = np.array([names["loop"](x)[0][:2] for x in s])
    panel = figure.add_axes((0.07, 0.09, 0.24, 0.28))
    panel.plot(*where.T, color=COLORS[0], lw=1.8)
    panel.plot(*where[0], "o", color=COLORS[0])
    panel.annotate("", where[30], where[22], arrowprops={"arrowstyle": "->", "color": COLORS[0]})
    _labelled(panel, "the loop of both shoulders", "yaw [rad]", "pitch [rad]")
    panel = figure.add_axes((0.40, 0.09, 0.56, 0.28))
    rot = robot.poses(path).rot[:, 0]
    roll = np.degrees(
        np.unwrap(np.arctan2(rot[:, 2, 1] - rot[:, 1, 2], rot[:, 1, 1] + rot[:, 2, 2]))
    )
    panel.plot(np.arange(len(roll)) / steps, roll, color=COLORS[1], lw=1.8)
    panel.plot(range(names["loops"] + 1), roll[::steps], "o", color=COLORS[1])
    _labelled(panel, "the bus about its own x axis, momentum zero throughout", "loops", "[deg]")
    save(figure, "momentum.png")


def _labelled(panel: plt.Axes, title: str, x: str, y: str) -> None:
    panel.set_facecolor(PAPER)
    panel.set_title(title, color=INK, fontsize=11, loc="left")
    panel.set_xlabel(x, color=INK)
    panel.set_ylabel(y, color=INK)
    panel.grid(True, color=FAINT, alpha=0.2)
    panel.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
