"""Draw an arm on its way to a goal, and how errors fall: docs/_static/inverse_kinematics.png.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/inverse_kinematics.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import linkwise as lw

OUTPUT = Path(__file__).parents[1] / "_static" / "inverse_kinematics.png"
PAPER, INK, FAINT, ACCENT = "#fbfaf7", "#23303d", "#9aa5ae", "#c2542d"
COLORS = {"a pose": ACCENT, "at full stretch": "#2f6f9f", "0.31 m out of reach": "#6a7f3a"}
TARGET = lw.Pose.rpy((np.pi, 0.0, 0.3), (0.45, 0.2, 0.4))


def sticks(arm: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Points from the base to the hand (k, 3)."""
    return np.concatenate([np.zeros((1, 3)), arm.poses(q).p, arm.pose(q, "hand").p[None]])


def way(arm: lw.Mechanism) -> list[np.ndarray]:
    """Where the joints are after each step: searches that are stopped one step later each."""
    full = lw.inverse_kinematics(arm, {"hand": TARGET}, restarts=0)
    result = [arm.neutral()]
    for count in range(1, int(full.iterations) + 1):
        result.append(lw.inverse_kinematics(arm, {"hand": TARGET}, restarts=0, iterations=count).q)
    return result


def draw_arm(axes: Axes, arm: lw.Mechanism) -> None:
    """Stick figures, seen from the side; the later, the darker."""
    rows = way(arm)
    for i, q in enumerate(rows):
        points = sticks(arm, q)
        last = i + 1 == len(rows)
        shade = 0.12 + 0.5 * i / len(rows)
        axes.plot(
            *(points[:, 0], points[:, 2], "-o"),
            color=INK,
            alpha=1.0 if last else shade,
            linewidth=2.4 if last else 1.2,
            markersize=4 if last else 2.5,
        )
    tip = TARGET.p
    axes.plot(tip[0], tip[2], "o", color=ACCENT, markersize=11, markerfacecolor="none")
    for j, style in ((0, "-"), (2, "-")):
        end = tip + 0.12 * TARGET.rot[:, j]
        axes.plot([tip[0], end[0]], [tip[2], end[2]], style, color=ACCENT, linewidth=1.5)
    axes.set_aspect("equal")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("z [m]")
    axes.set_title("from neutral to the goal", fontsize=10, color=INK)


def draw_errors(axes: Axes, arm: lw.Mechanism) -> None:
    """Errors after each step, for three goals."""
    top = arm.pose(arm.neutral(), "hand")
    begin = arm.random(seed=0)
    cases = {
        "a pose": ({"hand": TARGET}, None),
        "at full stretch": ({"hand": top}, begin),
        "0.31 m out of reach": ({"hand": top.p + np.array([0.0, 0.0, 0.31])}, begin),
    }
    for name, (goal, q0) in cases.items():
        result = lw.inverse_kinematics(arm, goal, q0, restarts=0)
        axes.semilogy(result.history[:16], "-o", color=COLORS[name], markersize=3, label=name)
    axes.set_xlabel("step")
    axes.set_title("weighted error", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(color=FAINT, alpha=0.3, linewidth=0.6)


def main() -> None:
    """Draw both, side by side."""
    arm = lw.models.seven_dof_arm()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.4, 4.2), width_ratios=(1, 1.7), facecolor=PAPER
    )
    for axes in (left, right):
        axes.set_facecolor(PAPER)
        axes.tick_params(labelsize=8, colors=INK)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    draw_arm(left, arm)
    draw_errors(right, arm)
    figure.tight_layout(w_pad=3.0)
    figure.savefig(OUTPUT, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
