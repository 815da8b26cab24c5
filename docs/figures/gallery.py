"""Draw every sample mechanism into one contact sheet, docs/_static/gallery.png.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/gallery.py
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from raycast import Camera, picture, solids

from linkwise import models
from linkwise.model import Mechanism

OUTPUT = Path(__file__).parents[1] / "_static" / "gallery.png"
PAPER, INK, FAINT, SHADOW = "#fbfaf7", "#23303d", "#707b85", "#e7e4dc"
DPI, COLUMNS, ROWS = 96, 5, 4


@dataclass(frozen=True)
class Panel:
    """One mechanism: its place on the sheet, the configuration shown, and where from."""

    mech: Mechanism
    title: str
    caption: str
    cell: tuple[int, slice]
    azimuth: float = -55.0
    elevation: float = 20.0
    q: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)
    floor: bool = True


def panels() -> list[Panel]:
    """What is on the sheet, row by row. Mechanisms with loops stay at neutral, where they close."""
    # Odd pins are upright: a serpentine. Even ones lift the head of the snake.
    snake = {f"link_{k}": 0.85 * np.cos(np.pi * (k - 1) / 8) for k in range(1, 33, 2)}
    snake |= {f"link_{k}": -0.005 * k for k in range(18, 33, 2)}
    return [
        Panel(
            models.pendulum(3),
            "pendulum(3)",
            "3 dof",
            _cell(0, 0),
            q={"pin_1": 0.7, "pin_2": -0.5, "pin_3": -0.9},
            floor=False,
        ),
        Panel(
            models.planar_rpp(),
            "planar_rpp()",
            "macro/mini, 3 dof",
            _cell(0, 1),
            azimuth=-60.0,
            elevation=42.0,
            q={"pin_1": 0.3, "slider_2": 0.6, "slider_3": 0.35},
        ),
        Panel(models.four_bar(), "four_bar()", "1 loop, 1 dof", _cell(0, 2), -72.0, 10.0),
        Panel(
            models.puma560(),
            "puma560()",
            "measured parameters, 6 dof",
            _cell(0, 3),
            q={"joint_1": 0.45, "joint_2": -0.7, "joint_3": 2.0, "joint_5": 0.5},
        ),
        Panel(
            models.seven_dof_arm(),
            "seven_dof_arm()",
            "7 dof",
            _cell(0, 4),
            q={
                "shoulder_yaw": 0.3,
                "shoulder_pitch": 0.5,
                "shoulder_roll": 0.4,
                "elbow_pitch": 1.4,
                "wrist_pitch": 0.7,
            },
        ),
        Panel(
            models.chain(32),
            "chain(32)",
            "32 dof; 100 000 links build in seconds",
            (1, slice(0, 2)),
            elevation=24.0,
            q=snake,
        ),
        Panel(
            models.random_tree(16, 5),
            "random_tree(16, seed=5)",
            "every kind of hinge",
            _cell(1, 2),
            floor=False,
        ),
        Panel(models.quadruped(), "quadruped()", "free base, 18 dof", _cell(1, 3), -50.0, 18.0),
        Panel(
            models.humanoid(),
            "humanoid()",
            "free base, 30 dof",
            _cell(1, 4),
            azimuth=-35.0,
            elevation=12.0,
            q={
                "left_shoulder": (0.5, 0.15, 0.0),
                "right_shoulder": (-0.6, -0.15, 0.0),
                "left_elbow": 0.5,
                "right_elbow": 0.9,
                "left_hip": (-0.45, 0.0, 0.0),
                "left_knee": 0.5,
                "left_ankle": (-0.05, 0.0),
                "right_hip": (0.25, 0.0, 0.0),
                "right_knee": 0.15,
                "right_ankle": (-0.4, 0.0),
            },
        ),
        Panel(models.stewart(), "stewart()", "6 loops, 6 dof", _cell(2, 0)),
        Panel(models.dual_arm(), "dual_arm()", "2 loops, 8 dof", _cell(2, 1), -65.0, 16.0),
        Panel(
            models.multi_arm(5),
            "multi_arm(5)",
            "five arms hold one object, 11 dof",
            (2, slice(2, 4)),
            -50.0,
            26.0,
        ),
        Panel(
            models.free_flyer(),
            "free_flyer()",
            "no gravity, 20 dof",
            _cell(2, 4),
            azimuth=-38.0,
            elevation=24.0,
            floor=False,
        ),
        Panel(
            models.peaucellier(),
            "peaucellier()",
            "3 loops, 1 dof, a straight line",
            _cell(3, 0),
            -80.0,
            8.0,
            floor=False,
        ),
        Panel(models.delta(), "delta()", "6 loops, 3 dof", _cell(3, 1), -50.0, 14.0),
        Panel(models.biped(), "biped()", "on both feet, 6 dof", _cell(3, 2), -35.0, 14.0),
        Panel(
            models.ur_arm(),
            "ur_arm()",
            "three parallel axes, 6 dof",
            _cell(3, 3),
            azimuth=-130.0,
            q={"waist": 0.3, "shoulder": -1.1, "elbow": 1.6, "wrist_1": -2.0, "wrist_2": -1.4},
        ),
        Panel(
            models.handover(),
            "handover()",
            "a box changes hands, no gravity",
            _cell(3, 4),
            azimuth=-38.0,
            elevation=24.0,
            floor=False,
        ),
    ]


def _cell(row: int, column: int) -> tuple[int, slice]:
    return row, slice(column, column + 1)


def draw(figure: Figure, panel: Panel) -> None:
    """Put one mechanism into its cell: name, size, picture."""
    row, columns = panel.cell
    left, right = columns.start / COLUMNS, columns.stop / COLUMNS
    top, bottom = 1.0 - row / ROWS, 1.0 - (row + 1) / ROWS
    centre, line = 0.5 * (left + right), 0.051 / ROWS
    figure.text(centre, top - line, panel.title, **_text(11, INK), family="monospace")
    figure.text(centre, top - 2.1 * line, panel.caption, **_text(8.5, FAINT))
    ax = figure.add_axes((left, bottom + 0.3 * line, right - left, top - bottom - 3.4 * line))
    ax.set_axis_off()
    box = ax.get_window_extent()
    q = panel.mech.neutral()
    for hinge, value in panel.q.items():
        q[panel.mech.q_slice(hinge)] = value
    image = picture(
        solids(panel.mech, q),
        Camera(panel.azimuth, panel.elevation),
        (round(box.height), round(box.width)),
        paper=np.array(to_rgb(PAPER)),
        shadow=np.array(to_rgb(SHADOW)) if panel.floor else None,
    )
    ax.imshow(image, interpolation="nearest", aspect="auto")


def _text(size: float, colour: str) -> dict[str, object]:
    return {"ha": "center", "va": "top", "fontsize": size, "color": colour}


def main() -> None:
    """Draw the sheet and write it, with 256 colours, which is half the size."""
    figure = plt.figure(figsize=(15.0, 10.0 / 3.0 * ROWS), dpi=DPI, facecolor=PAPER)
    for panel in panels():
        draw(figure, panel)
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=DPI, facecolor=PAPER)
    sheet = Image.open(memory).convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(OUTPUT, optimize=True)


if __name__ == "__main__":
    main()
