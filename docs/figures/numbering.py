"""Draw E_φ and φ of one tree in three orders of its bodies, docs/_static/numbering.png.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/numbering.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import linkwise as lw
from linkwise.algebra import E_phi, phi
from linkwise.algebra.dense import Dense

OUTPUT = Path(__file__).parents[1] / "_static" / "numbering.png"
PAPER, INK, FAINT = "#fbfaf7", "#23303d", "#707b85"
STEP, FAR, OWN = "#2f6f9f", "#a9cbe0", "#d9d4c7"


def blocks(matrix: np.ndarray) -> np.ndarray:
    """Which 6×6 blocks are not zero."""
    n = len(matrix) // 6
    return np.abs(matrix).reshape(n, 6, n, 6).max(axis=(1, 3)) > 0


def draw(ax: Axes, step: np.ndarray, full: np.ndarray, names: list[str], title: str) -> None:
    """One matrix: its blocks, coloured by what they are."""
    n = len(names)
    for i in range(n):
        for j in range(n):
            if full[i, j]:
                color = OWN if i == j else STEP if step[i, j] else FAR
                ax.add_patch(plt.Rectangle((j + 0.06, i + 0.06), 0.88, 0.88, color=color, lw=0))
    for k in range(n + 1):
        ax.axhline(k, color=PAPER, lw=0.5)
        ax.axvline(k, color=PAPER, lw=0.5)
    ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
    ax.set_xticks(np.arange(n) + 0.5, names, fontsize=7, color=FAINT)
    ax.set_yticks(np.arange(n) + 0.5, names, fontsize=7, color=FAINT)
    ax.tick_params(length=0)
    ax.xaxis.tick_top()
    ax.set_title(title, fontsize=10, color=INK, pad=18)
    for side in ax.spines.values():
        side.set_color(FAINT)
        side.set_linewidth(0.6)


def main() -> None:
    """The drawing."""
    mech = lw.models.random_tree(9, 4, hinges=("pin",), branching=0.6)
    ours = [body.name for body in mech.bodies]
    mixed = [ours[i] for i in np.random.default_rng(3).permutation(len(ours))]
    orders = {
        "tips first, as in the sources": ours[::-1],
        "base first, as in Linkwise": ours,
        "any order": mixed,
    }
    dense = Dense(mech, mech.random(0))
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.7), facecolor=PAPER)
    for ax, (title, order) in zip(axes, orders.items(), strict=True):
        there = lw.dynamics.renumbering(mech, order)
        step, full = (blocks(there.body_matrix(dense(x))) for x in (E_phi, phi))
        ax.set_facecolor("white")
        draw(ax, step, full, [name.removeprefix("body_") for name in order], title)
    handles = [plt.Rectangle((0, 0), 1, 1, color=color) for color in (OWN, STEP, FAR)]
    labels = ["identity", "one step to the parent: $\\mathcal{E}_\\phi$", "further ancestors"]
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.subplots_adjust(left=0.04, right=0.98, top=0.82, bottom=0.12, wspace=0.15)
    figure.savefig(OUTPUT, dpi=144, facecolor=PAPER, metadata={"Software": None})


if __name__ == "__main__":
    main()
