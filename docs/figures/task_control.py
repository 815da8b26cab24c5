"""Draw docs/_static/{task_control,through_singularities}.png for docs/how_to/track_a_pose.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/task_control.py
"""

from __future__ import annotations

import importlib.util
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, DOCS, FAINT, INK, PAPER, names_of, save


def main() -> None:
    """What the page computes, and what the example does."""
    names = names_of("how_to/track_a_pose.md", "A control law as one kernel")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), facecolor=PAPER)
    t, labels = names["motion"].t, ("x", "y", "z")
    for color, label, row in zip(COLORS, labels, (3, 4, 5), strict=False):
        left.plot(t, 1e3 * names["expected"][:, row], color=color, lw=5.0, alpha=0.3)
        left.plot(
            t, 1e3 * names["errors"][:, row], color=color, lw=1.4, label=f"{label}, simulated"
        )
    left.plot([], [], color=FAINT, lw=5.0, alpha=0.3, label="formula (broad, pale)")
    left.set_title("the hand is a unit mass on a spring", color=INK, fontsize=11, loc="left")
    left.set_ylabel("error [mm]", color=INK)
    t = names["record"].t
    for color, (name, e) in zip(COLORS, names["left"].items(), strict=False):
        size = np.linalg.norm(e, axis=1)
        right.semilogy(t, np.maximum(size, 1e-6), color=color, lw=1.8, label=name)
    right.set_title("three levels of priority", color=INK, fontsize=11, loc="left")
    right.set_ylabel("error [m or rad]", color=INK)
    right.set_ylim(1e-4, 1.0)
    for panel in (left, right):
        panel.set_facecolor(PAPER)
        panel.set_xlabel("time [s]", color=INK)
        panel.grid(True, color=FAINT, alpha=0.2)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    save(figure, "task_control.png")
    through_singularities()


def through_singularities() -> None:
    """The figure of the example."""
    file = DOCS.parent / "examples" / "through_singularities.py"
    spec = importlib.util.spec_from_file_location("through_singularities", file)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example  # its dataclasses look there
    spec.loader.exec_module(example)
    example.main(str(DOCS / "_static" / "through_singularities.png"))


if __name__ == "__main__":
    main()
