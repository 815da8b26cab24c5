"""Draw docs/_static/force_control.png: what examples/puma_on_wall.py computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/force_control.py
"""

from __future__ import annotations

import importlib.util
import sys
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

EXAMPLE = Path(__file__).parents[2] / "examples" / "puma_on_wall.py"
SIZE, VIEW = (480, 360), Camera(-125.0, 22.0)
SHADOW = "#e7e4dc"
HERE = lw.Pose.identity()
TINTS = {"approach": "#ffffff", "impact": "#f0c9bd", "contact": "#e4ecdf"}


def main() -> None:
    """The arm on the wall; the impact; force and path over time."""
    example = _example()
    exact, steps = example.slide(), example.slide_in_steps(ki=1.0)
    figure = plt.figure(figsize=(13.0, 5.2), facecolor=PAPER)
    grid = figure.add_gridspec(2, 3, width_ratios=(0.9, 0.85, 1.2), wspace=0.27, hspace=0.42)
    scene = figure.add_subplot(grid[:, 0])
    _arm(scene, example, exact)
    impact = figure.add_subplot(grid[0, 1])
    path = figure.add_subplot(grid[1, 1])
    force = figure.add_subplot(grid[0, 2])
    off = figure.add_subplot(grid[1, 2])
    _force(impact, example, exact, steps)
    began = exact.began("impact")
    impact.set_xlim(began - 0.035, began + 0.115)
    impact.set_ylim(-1.0, 29.0)
    for name, t in exact.phases[1:]:
        impact.text(t + 0.002, 27.6, name, color=INK, fontsize=8, va="top")
    impact.text(began - 0.002, 27.6, "approach", color=INK, fontsize=8, va="top", ha="right")
    _force(force, example, exact, steps)
    force.legend(frameon=False, fontsize=8, loc="lower right")
    force.set_xlim(0.0, 2.2)
    _path(path, example, exact)
    _off(off, exact, steps)
    for panel, title in (
        (impact, "the impact"),
        (force, "force along the normal"),
        (path, "the path on the wall"),
        (off, "distance from the path"),
    ):
        panel.set_facecolor(PAPER)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=INK, labelsize=9)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.set_title(title, color=INK, fontsize=11, loc="left")
    figure.subplots_adjust(left=0.01, right=0.985, top=0.93, bottom=0.1)
    save(figure, "force_control.png")


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("puma_on_wall", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["puma_on_wall"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def _arm(scene: Any, example: Any, run: Any) -> None:
    """Arm and wall, the path as beads on it, the force as an arrow."""
    q, n = run.q[int(np.searchsorted(run.t, 1.5))], example.NORMAL
    shapes = solids(example.ARM, q)
    tip, flange = (example.ARM.pose(q, name).p for name in ("tip", "flange"))
    dark = np.array(to_rgb(INK))
    shapes.append(Solid(Geometry("tool", "capsule", (0.01, 0.08), HERE), _along(flange, tip), dark))
    middle = example.TOUCHED - example.RADIUS * example.ACROSS[0] - 0.016 * n
    board = lw.Pose.rotation(example.ROT, middle)
    grey = np.array(to_rgb("#b9c4c9"))
    shapes.append(Solid(Geometry("wall", "box", (0.34, 0.34, 0.03), HERE), board, grey))
    red = np.array(to_rgb(COLORS[0]))
    for p in run.tip[(run.t > run.began("contact"))][::4]:
        bead = lw.Pose.translation(p + 0.002 * n)
        shapes.append(Solid(Geometry("bead", "sphere", (0.0045,), HERE), bead, red))
    paper, shadow = np.array(to_rgb(PAPER)), np.array(to_rgb(SHADOW))
    scene.imshow(picture(shapes, VIEW, SIZE, paper=paper, shadow=shadow))
    scene.set_axis_off()
    scene.set_title("on a compliant wall, 20 kN/m", color=INK, fontsize=11, loc="left")


def _along(a: np.ndarray, b: np.ndarray) -> lw.Pose:
    """A pose half way from a to b, with z along."""
    return lw.Pose(aligning(np.array([0.0, 0.0, 1.0]), b - a), 0.5 * (a + b))


def _force(panel: Any, example: Any, exact: Any, steps: Any) -> None:
    ends = [t for _, t in exact.phases[1:]] + [exact.t[-1]]
    for (name, begin), end in zip(exact.phases, ends, strict=True):
        panel.axvspan(begin, end, color=TINTS[name], alpha=0.7, lw=0)
    desired = [example.pressed(t) for t in exact.t]
    panel.plot(exact.t, desired, color=FAINT, lw=1.0, ls="--", label="desired in contact")
    panel.plot(
        steps.t, steps.force, color=COLORS[1], lw=1.2, label="1 kHz, 0.4 kg unknown, with integral"
    )
    panel.plot(exact.t, exact.force, color=COLORS[0], lw=1.6, label="exact model")
    panel.set_ylabel("force [N]", color=INK, fontsize=9)
    panel.set_xlabel("time [s]", color=INK, fontsize=9, loc="right", labelpad=0)


def _path(panel: Any, example: Any, run: Any) -> None:
    there = (run.tip - example.TOUCHED) @ example.ACROSS.T
    pressing = run.t > run.began("impact")
    panel.plot(1e3 * there[:, 0], 1e3 * there[:, 1], color=FAINT, lw=1.0)
    dots = panel.scatter(
        *1e3 * there[pressing].T, c=run.force[pressing], s=7, cmap="viridis", zorder=3,
        vmin=18.0, vmax=31.0,
    )  # fmt: skip
    bar = panel.figure.colorbar(dots, ax=panel, fraction=0.05, pad=0.03)
    bar.ax.set_title("N", color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    panel.set_aspect("equal")
    panel.set_xlabel("mm", color=INK, fontsize=9, loc="right", labelpad=0)


def _off(panel: Any, exact: Any, steps: Any) -> None:
    panel.semilogy(steps.t, steps.off_path + 1e-12, color=COLORS[1], lw=1.2)
    panel.semilogy(exact.t, exact.off_path + 1e-12, color=COLORS[0], lw=1.6)
    panel.set_ylim(1e-11, 2e-2)
    panel.set_xlim(0.0, 2.2)
    panel.set_ylabel("distance [m]", color=INK, fontsize=9)
    panel.set_xlabel("time [s]", color=INK, fontsize=9, loc="right", labelpad=0)


if __name__ == "__main__":
    main()
