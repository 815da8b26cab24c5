"""Draw docs/_static/simulation.png: what examples/quadruped_landing.py computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/simulation.py
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
from raycast import Camera, Solid, picture, solids

import linkwise as lw
from linkwise.model import Geometry

EXAMPLE = Path(__file__).parents[2] / "examples" / "quadruped_landing.py"
SIZE, VIEW = (420, 340), Camera(-55.0, 12.0)
TIMES = (0.0, 0.45, 1.5)


def main() -> None:
    """Three moments of the landing; forces of the ground; where the energy went."""
    example = _example()
    rec = example.drop()
    figure = plt.figure(figsize=(13.0, 6.6), facecolor=PAPER)
    grid = figure.add_gridspec(2, 6, height_ratios=(1.15, 1.0), wspace=0.9, hspace=0.18)
    for i, t in enumerate(TIMES):
        _scene(figure.add_subplot(grid[0, 2 * i : 2 * i + 2]), rec, t)
    force, energy = figure.add_subplot(grid[1, :3]), figure.add_subplot(grid[1, 3:])
    _forces(force, example, rec)
    _budget(energy, rec)
    for panel, title in ((force, "force of the ground"), (energy, "where the energy went")):
        panel.set_facecolor(PAPER)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=INK, labelsize=9)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
        panel.set_xlabel("time [s]", color=INK, fontsize=9)
        panel.set_xlim(0.0, rec.t[-1])
    figure.subplots_adjust(left=0.055, right=0.985, top=0.95, bottom=0.08)
    save(figure, "simulation.png")


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("quadruped_landing", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _scene(panel: Any, rec: lw.Recording, t: float) -> None:
    assert rec.mech is not None
    q, _ = rec.at(t)
    shapes = solids(rec.mech, q)
    slab = Geometry("ground", "box", (0.66, 0.42, 0.02), lw.Pose.identity())
    place = lw.Pose.translation((-0.02, 0.0, -0.035))
    shapes.append(Solid(slab, place, np.array(to_rgb("#cdd3cf"))))
    # An unseen mark at the top keeps the three views on one scale.
    mark = Geometry("mark", "sphere", (0.001,), lw.Pose.identity())
    shapes.append(Solid(mark, lw.Pose.translation((0, 0, 0.6)), np.array(to_rgb(PAPER))))
    paper = np.array(to_rgb(PAPER))
    panel.imshow(picture(shapes, VIEW, SIZE, paper=paper, shadow=np.array(to_rgb("#b4bcb6"))))
    panel.set_axis_off()
    panel.set_title(f"{t:.3g} s", color=INK, fontsize=11, loc="left")


def _forces(panel: Any, example: Any, rec: lw.Recording) -> None:
    for color, side in ((COLORS[1], "front"), (COLORS[0], "hind")):
        both = sum(rec[f"contact.{side}_{x}_foot.force"][:, 2] for x in ("left", "right"))
        panel.plot(rec.t, both, color=color, lw=1.6, label=f"both {side} feet")
    assert rec.mech is not None
    weight = 9.81 * rec.mech.total_mass
    panel.axhline(0.5 * weight, color=FAINT, lw=1.0, ls="--", label="half of the weight")
    panel.set_ylabel("force [N]", color=INK, fontsize=9)
    panel.legend(frameon=False, fontsize=9, loc="upper right", labelcolor=INK)


def _budget(panel: Any, rec: lw.Recording) -> None:
    left = rec["energy.total"] - rec["energy.total"][0]
    panel.plot(rec.t, rec["energy.kinetic"], color=FAINT, lw=1.2, label="kinetic energy")
    panel.plot(rec.t, left, color=INK, lw=1.8, label="total energy, from the start")
    for color, kind, label in (
        (COLORS[0], "contacts", "work of the ground"),
        (COLORS[1], "joints", "work of the motors"),
    ):
        panel.plot(rec.t, rec[f"work.{kind}"], color=color, lw=1.6, label=label)
    panel.set_ylabel("energy [J]", color=INK, fontsize=9)
    panel.legend(frameon=False, fontsize=9, loc="lower left", labelcolor=INK, ncols=2)
    panel.set_ylim(-52.0, 38.0)


if __name__ == "__main__":
    main()
