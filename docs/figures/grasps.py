"""Draw docs/_static/grasps.png: what examples/three_arms_soft_fingers.py computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/grasps.py
"""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import Normal, Stroke
from pages import COLORS, FAINT, INK, PAPER, save
from raycast import Camera, picture, pixels, solids

import linkwise as lw

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_arms_soft_fingers.py"
PER_NEWTON = 0.025  # length of the arrows that show forces [m]
ABOVE = 0.1  # the disc's middle, where arrows are drawn [m]
PALE = 0.6  # how far the arms' colours are mixed with the paper's
SIZE, VIEW = (330, 440), Camera(-88.0, 50.0)
SHADOW = "#e7e4dc"


def main() -> None:
    """The arms at the instant of the slip, the margins until then, the forces in the cone."""
    example = runpy.run_path(str(EXAMPLE))
    cell = example["Cell"].build()
    motion = example["shake"](cell)
    figure = plt.figure(figsize=(13.0, 3.9), facecolor=PAPER)
    grid = figure.add_gridspec(1, 3, width_ratios=(1.25, 1.0, 1.0))
    scene = figure.add_subplot(grid[0])
    _arms(scene, cell, motion)
    scene.set_axis_off()
    scene.set_title("when the first finger slips", color=INK, fontsize=11, loc="left")
    panels = [figure.add_subplot(grid[i]) for i in (1, 2)]
    example["draw"](cell, motion, panels, COLORS)
    for panel, title in zip(panels, ("until then", "in the friction cone"), strict=True):
        panel.set_facecolor(PAPER)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
    figure.tight_layout()
    save(figure, "grasps.png")


def _arms(scene: Any, cell: Any, motion: lw.Recording) -> None:
    """Arms, pale, and the object, with an arrow for every contact force in front of them."""
    q, v, tau = motion.q[-1], motion.v[-1], motion.tau[-1]
    disc = cell.mech.body("object").geometry
    paper = np.array(to_rgb(PAPER))
    shapes = [
        solid if solid.shape in disc else replace(solid, rgb=_mixed(solid.rgb, paper))
        for solid in solids(cell.mech, q)
    ]
    shadow = np.array(to_rgb(SHADOW))
    scene.imshow(picture(shapes, VIEW, SIZE, paper=paper, shadow=shadow))
    forces = cell.grasp.contact_forces(q, v, tau)
    X_WO = cell.mech.pose(q, "object")
    for i, contact in enumerate(cell.grasp.contacts.values()):
        X_WC = X_WO @ contact.pose
        tip = X_WC.p + ABOVE * X_WO.rot[:, 2]  # above the contact
        ends = np.stack([tip - PER_NEWTON * (X_WC.rot @ forces[i, 3:]), tip])
        tail, head = pixels(ends, shapes, VIEW, SIZE, shadow=True)
        arrow = FancyArrowPatch(
            tuple(tail),
            tuple(head),
            arrowstyle="-|>",
            mutation_scale=15,
            shrinkA=0.0,
            shrinkB=0.0,
            lw=2.8,
            color=COLORS[i],
        )
        arrow.set_path_effects([Stroke(linewidth=5.5, foreground=PAPER), Normal()])
        scene.add_patch(arrow)


def _mixed(rgb: np.ndarray, paper: np.ndarray) -> np.ndarray:
    return (1.0 - PALE) * rgb + PALE * paper


if __name__ == "__main__":
    main()
