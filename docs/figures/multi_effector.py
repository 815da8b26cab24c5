"""Draw docs/_static/multi_effector.png: what examples/three_pumas.py computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/multi_effector.py
"""

from __future__ import annotations

import runpy
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

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_pumas.py"
SIZE, VIEW = (330, 380), Camera(-78.0, 38.0)
SHADOW = "#e7e4dc"


def main() -> None:
    """Arms and disc, its way from above, errors of both runs, tensions between the hands."""
    example = runpy.run_path(str(EXAMPLE))
    cell = example["Cell"].build()
    motion, other = cell.move(), cell.move(forget=True)
    figure = plt.figure(figsize=(15.5, 3.9), facecolor=PAPER)
    grid = figure.add_gridspec(1, 4, width_ratios=(1.15, 1.0, 1.0, 1.0))
    scene = figure.add_subplot(grid[0])
    _arms(scene, cell, motion)
    scene.set_axis_off()
    scene.set_title("three arms and a disc", color=INK, fontsize=11, loc="left")
    panels = [figure.add_subplot(grid[i]) for i in (1, 2, 3)]
    example["draw"](cell, motion, other, panels, COLORS, INK)
    titles = ("path of its centre, from above", "distance from the path", "inside the grasp")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_facecolor(PAPER)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
    figure.tight_layout()
    save(figure, "multi_effector.png")


def _arms(scene: Any, cell: Any, motion: lw.Recording) -> None:
    """The cell at the end."""
    shapes = list(solids(cell.mech, motion.q[-1]))
    paper, shadow = np.array(to_rgb(PAPER)), np.array(to_rgb(SHADOW))
    scene.imshow(picture(shapes, VIEW, SIZE, paper=paper, shadow=shadow))


if __name__ == "__main__":
    main()
