"""Draw docs/_static/operational_space.png: the wrist of the PUMA on the way to its singularity.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/operational_space.py
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from pages import COLORS, FAINT, INK, PAPER, names_of, save

import linkwise as lw


def main() -> None:
    """Inertias over the angle of joint 5: of the principal motions, and of the one that is lost."""
    names = names_of("how_to/inertia_of_a_hand.md", "Effective mass and belted ellipsoids")
    puma, straight = names["puma"], names["straight"]
    angles = np.linspace(-0.6, 0.6, 240)  # zero is between two of them
    q = straight + np.outer(angles, np.eye(6)[4])
    space, lost = (lw.operational_space(puma, x, "link_6", frame="world") for x in (q, straight))
    # Turning counts at the length: all inertias in kg.
    scale = np.repeat([1.0 / space.length, 1.0], 3)
    masses = np.linalg.eigvalsh(space.inertia * np.outer(scale, scale))
    last = np.linalg.eigvalsh(lost.inertia * np.outer(scale, scale))[1:]
    goes = scale * lost.lost[:, 0]
    heavy = np.einsum("i,nij,j->n", goes, space.inertia, goes)
    figure, panel = plt.subplots(figsize=(7.2, 3.8), facecolor=PAPER)
    panel.set_facecolor(PAPER)
    degrees = np.degrees(angles)
    panel.semilogy(degrees, masses, color=COLORS[1], lw=1.6)
    panel.lines[0].set_label("principal motions")
    panel.semilogy(degrees, heavy, color=COLORS[0], lw=2.2, ls="--", label="the lost motion")
    panel.semilogy(np.zeros(5), last, "o", color=INK, ms=5, label="at the singularity: rank 5")
    panel.legend(frameon=False, fontsize=9, loc="upper right")
    panel.set_title(
        "inertia felt at the hand [kg, turning at the arm's reach]",
        color=INK,
        fontsize=11,
        loc="left",
    )
    panel.set_xlabel("joint 5 [degrees]", color=INK)
    panel.grid(True, color=FAINT, alpha=0.2)
    panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, "operational_space.png")


if __name__ == "__main__":
    main()
