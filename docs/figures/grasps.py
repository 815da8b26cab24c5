"""Draw docs/_static/grasps.png: what examples/three_arms_soft_fingers.py computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/grasps.py
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
from raycast import Camera, Solid, picture, solids

import linkwise as lw
from linkwise.model import Geometry
from linkwise.spatial.rotation import aligning

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_arms_soft_fingers.py"
PER_NEWTON = 0.02  # length of the rods that show forces [m]
SHADOW = "#e7e4dc"


def main() -> None:
    """The arms at the instant of the slip, the margins until then, the forces in the cone."""
    example = runpy.run_path(str(EXAMPLE))
    cell = example["Cell"].build()
    motion = example["shake"](cell)
    figure = plt.figure(figsize=(13.0, 3.9), facecolor=PAPER)
    grid = figure.add_gridspec(1, 3, width_ratios=(1.25, 1.0, 1.0))
    scene = figure.add_subplot(grid[0])
    scene.imshow(_arms(cell, motion))
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


def _arms(cell: Any, motion: lw.ConstrainedMotion) -> np.ndarray:
    """The scene, with a rod for every contact force."""
    q, v, tau = motion.q[-1], motion.v[-1], motion.tau[-1]
    shapes = solids(cell.mech, q)
    forces = lw.contact_forces(cell.grasp, q, v, tau)
    X_WO = cell.mech.pose(q, "object")
    for i, contact in enumerate(cell.grasp.contacts.values()):
        X_WC = X_WO @ contact.pose
        f = X_WC.rot @ forces[i, 3:]
        length = PER_NEWTON * float(np.linalg.norm(f))
        along = aligning(np.array([0.0, 0.0, 1.0]), f / np.linalg.norm(f))
        # The rod ends at the contact, above the disc so that it can be seen.
        middle = X_WC.p - 0.5 * PER_NEWTON * f + 0.16 * X_WO.rot[:, 2]
        rod = Geometry("force", "capsule", (0.02, length), lw.Pose.identity())
        color = np.array(to_rgb(COLORS[i]))
        shapes.append(Solid(rod, lw.Pose(along, middle), color))
    return picture(
        shapes,
        Camera(-62.0, 38.0),
        (330, 440),
        paper=np.array(to_rgb(PAPER)),
        shadow=np.array(to_rgb(SHADOW)),
    )


if __name__ == "__main__":
    main()
