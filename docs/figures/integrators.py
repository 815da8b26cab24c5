"""Draw docs/_static/integrators.png: the tables of docs/evidence/integrators.md.

Run from the repository root, with the extras `plot` and `simulate` installed; it takes a minute:

    python docs/figures/integrators.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, save

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import integrators as study

COLOR = dict(zip(("euler", "variational", "rk4", "rk4_mujoco"), COLORS, strict=True))
MARK = {"euler": "o", "variational": "s", "rk4": "D", "rk4_mujoco": "x"}
STYLE = {"rk4_mujoco": ":"}


def main() -> None:
    """Errors over steps, over tolerances, and energy over a million steps."""
    figure, panels = plt.subplots(2, 2, figsize=(11.5, 8.6), facecolor=PAPER)
    _by_step(panels[0, 0], study.energy_errors(study.arm()), "energy")
    _labelled(panels[0, 0], "arm: energy error within 10 s", "step [s]", "[J]")
    _by_step(panels[0, 1], study.path_errors(study.satellite()), "path")
    _labelled(panels[0, 1], "satellite with quaternion: path error after 1 s", "step [s]", "[rad]")
    _by_tolerance(panels[1, 0])
    _over_time(panels[1, 1])
    figure.tight_layout(pad=1.6)
    save(figure, "integrators.png")


def _by_step(panel: plt.Axes, errors: dict[str, list[float]], what: str) -> None:
    for name, values in errors.items():
        order = study.order(study.STEPS, values, study.FLOOR[what])
        panel.loglog(
            study.STEPS,
            values,
            STYLE.get(name, "-"),
            marker=MARK[name],
            ms=5,
            color=COLOR[name],
            label=f"{name}: order {order:.1f}",
            zorder=3 if name == "rk4_mujoco" else 2,
        )
    panel.legend(
        loc="lower left", bbox_to_anchor=(0.0, 0.16), frameon=False, labelcolor=INK, fontsize=9
    )


def _by_tolerance(panel: plt.Axes) -> None:
    result = study.adaptive_errors(study.arm())
    tolerances = [x.tolerance for x in result]
    panel.loglog(tolerances, [x.energy for x in result], "-o", ms=5, color=COLORS[0],
                 label="energy within 10 s [J]")  # fmt: skip
    panel.loglog(tolerances, [x.path for x in result], "-s", ms=5, color=COLORS[1],
                 label="path after 1 s [rad]")  # fmt: skip
    for x in result[::2]:
        panel.annotate(
            f"{x.steps} steps", (x.tolerance, x.energy), xytext=(-6, 6), ha="right",
            textcoords="offset points", color=FAINT, fontsize=8,
        )  # fmt: skip
    panel.set_ylim(5e-13, 1.0)
    panel.legend(loc="lower right", frameon=False, labelcolor=INK, fontsize=9)
    _labelled(panel, "arm: the adaptive integrator", "rtol = atol", "error")


def _over_time(panel: plt.Axes) -> None:
    """The largest error within each of forty parts of the time, of the motion in the middle."""
    for step, style in zip(study.LONG, ("-", "--"), strict=True):
        for name, x in study.long_runs(step).items():
            values = x.largest(40)
            shown = np.isfinite(values)
            if shown.any():
                steps = (np.arange(40)[shown] + 0.5) / 40
                panel.semilogy(steps, values[shown], style, color=COLOR[name], lw=1.8,
                               label=f"{name}, {step * 1e3:g} ms")  # fmt: skip
    panel.set_ylim(1e-10, 1e4)
    panel.legend(
        loc="lower left", bbox_to_anchor=(0.0, 0.185), frameon=False, labelcolor=INK, fontsize=9,
        ncols=2,
    )  # fmt: skip
    _labelled(panel, "arm: energy error over a million steps", "steps [1e6]", "[J]")


def _labelled(panel: plt.Axes, title: str, x: str, y: str) -> None:
    panel.set_facecolor(PAPER)
    panel.set_title(title, color=INK, fontsize=11, loc="left")
    panel.set_xlabel(x, color=INK)
    panel.set_ylabel(y, color=INK)
    panel.grid(True, color=FAINT, alpha=0.2)
    panel.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
