"""Draw the figures of docs/how_to/inertia_of_a_hand.md from what the page computes.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/inertial_properties.py
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from pages import COLORS, FAINT, INK, names_of, save

import linkwise as lw
import linkwise.plot as lp


def construction(ax: Any) -> None:
    """From an ellipse to a belted one, ray by ray."""
    response = np.diag([1.0 / 2.4, 1.0 / 0.5])
    belted = lw.inertial.ellipsoid(response, resolution=160)
    ring = lw.inertial.ellipsoid(response, "gyration", resolution=160)
    lp.shape(belted, (0.0, 0.0), ax=ax, label="belted: at m")
    around = np.concatenate([ring.points, ring.points[:1]])
    ax.plot(*around.T, color=COLORS[1], lw=1.4, ls="--", label="gyration: at √m")
    for k in (0, 12, 24, 40, 150, 128, 112, 80):
        ax.plot(*np.stack([ring.points[k], belted.points[k]]).T, color=FAINT, lw=0.9)
        ax.plot(*ring.points[k], "o", color=COLORS[1], ms=3.5)
        ax.plot(*belted.points[k], "o", color=COLORS[0], ms=3.5)
    ax.set_aspect("equal", adjustable="datalim")
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)
    ax.set_title("w = |v| v")
    ax.set_xlabel("kg, √kg")


def belted_ellipsoids() -> None:
    """Figures 5 and 6 of the document."""
    figure, (first, *flat) = lp.panels(1, 3, size=(12.6, 4.5))
    construction(first)
    puma = lw.models.puma560()
    postures = ((0.0, -1.0, 3.0, 0.0, 0.6, 0.0), (0.0, -0.4, 2.3, 0.0, 0.5, 0.0))
    titles = ("PUMA 560, bent", "PUMA 560, further out")
    for k, (old, q, title) in enumerate(zip(flat, postures, titles, strict=True)):
        old.remove()
        ax = figure.add_subplot(1, 3, k + 2, projection="3d")
        lp.canvas.style(ax, lp.LIGHT)
        lp.belted_ellipsoid(puma, np.array(q), "flange", ax=ax, scale=0.008, alpha=0.45)
        ax.view_init(20, -66)
        ax.set(xlim=(0.0, 1.2), ylim=(-0.45, 0.75), zlim=(-0.6, 0.6))
        ax.set_title(title)
    save(figure, "belted_ellipsoids.png")


def postures(names: dict[str, Any]) -> None:
    """Figure 7 of the document."""
    figure, axes = lp.panels(1, 3, size=(11.5, 3.4))
    for k, (ax, q) in enumerate(zip(axes, names["postures"], strict=True)):
        lp.belted_ellipsoid(
            names["planar"], q, "tip", plane="xz", ax=ax, scale=0.3, color=COLORS[k]
        )
        masses = [
            lw.inertial.effective_mass(names["planar"], q, "tip", u) for u in np.eye(3)[[0, 2]]
        ]
        ax.set_title(f"{masses[0]:.2f} kg along x, {masses[1]:.2f} kg along z")
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlim(-2.1, 1.1)
        ax.set_ylim(-1.75, 0.4)
    save(figure, "inertial_postures.png")


def macro_mini(names: dict[str, Any]) -> None:
    """Figures 9 and 10 of the document."""
    figure, axes = lp.panels(2, 2, size=(10.6, 9.2))
    full, macro = names["whole"], names["macro"]
    ax = axes[0]
    lp.belted_ellipsoid(
        macro, macro.neutral(), "tip", plane="xy", ax=ax, color=COLORS[2], robot=False, scale=0.01
    )
    lp.skeleton(full, full.neutral(), plane="xy", ax=ax)
    ax.set_title("the macro alone: the mini is held")
    ax = axes[1]
    drawn = {"plane": "xz", "ax": ax, "scale": 0.25, "alpha": 0.25}
    four, mini, bent = names["four"], names["last_two"], names["bent"]
    lp.belted_ellipsoid(
        mini, bent[2:], "tip", color=COLORS[1], robot=False, label="last two links alone", **drawn
    )
    lp.belted_ellipsoid(four, bent, "tip", color=COLORS[0], label="all four links", **drawn)
    ax.set_title("four equal links")
    for ax, q_3 in zip(axes[2:], (0.15, 0.7), strict=True):
        example(ax, names["rpp"], np.array([0.3, 0.5, q_3]))
    save(figure, "inertial_macro_mini.png")


def example(ax: Any, rpp: lw.Mechanism, q: np.ndarray) -> None:
    """The arm of figure 10, with its mini alone."""
    mini = rpp.lock({"pin_1": q[:1]})
    drawn = {"plane": "xy", "ax": ax, "scale": 0.12, "alpha": 0.25}
    lp.belted_ellipsoid(
        mini, q[1:], "end_effector", color=COLORS[1], robot=False, label="mini alone", **drawn
    )
    lp.belted_ellipsoid(rpp, q, "end_effector", color=COLORS[0], label="macro and mini", **drawn)
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlim(-0.35, 0.95)
    ax.set_ylim(-0.2, 1.1)
    ax.legend(frameon=False, fontsize=8, loc="upper left", labelcolor=INK)
    ax.set_title(f"pin and two sliders, q₃ = {q[2]:g} m")


def main() -> None:
    """All of them."""
    names = names_of("how_to/inertia_of_a_hand.md", "A light arm on a heavy one")
    belted_ellipsoids()
    postures(names)
    macro_mini(names)


if __name__ == "__main__":
    main()
