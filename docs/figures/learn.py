"""Draw the figures of docs/tutorial/algebra_course.md.

Run from the repository root, with the extra `plot` installed:

    python docs/figures/learn.py
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse, FancyArrowPatch
from pages import COLORS, FAINT, INK, PAPER, save

import linkwise as lw
import linkwise.plot as lp
from linkwise.algebra import E_phi, P, R, mass, phi
from linkwise.algebra.dense import Dense

A, B = np.array([-1.1, -0.35]), np.array([1.1, 0.35])


def arrow(ax: Any, start: np.ndarray, by: np.ndarray, color: str, style: str = "-|>") -> None:
    """One straight arrow."""
    ax.add_patch(
        FancyArrowPatch(start, start + by, arrowstyle=style, mutation_scale=16, lw=2.2, color=color)
    )


def turn(ax: Any, at: np.ndarray, color: str, size: float = 0.4) -> None:
    """An arrow that goes most of the way round a point."""
    angles = np.linspace(-0.5, 3.9, 60)
    around = at[:, None] + size * np.stack([np.cos(angles), np.sin(angles)])
    ax.plot(*around[:, :-4], color=color, lw=2.2)
    arrow(ax, around[:, -6], around[:, -1] - around[:, -6], color)


def label(ax: Any, at: np.ndarray, x: float, y: float, text: str, color: str) -> None:
    """A remark beside a point."""
    ax.text(at[0] + x, at[1] + y, text, color=color, fontsize=10)


def body(ax: Any, title: str) -> None:
    """A rigid body with two frames on it."""
    ax.add_patch(Ellipse((0, 0), 3.6, 1.7, angle=17, color="#e7e4dc", zorder=0))
    for name, at, side in (("A", A, -1), ("B", B, 1)):
        ax.plot(*at, "o", color=INK, ms=6)
        ax.text(at[0] + 0.16 * side, at[1] - 0.34, name, color=INK, fontsize=13, ha="center")
    ax.set(xlim=(-2.3, 2.3), ylim=(-1.4, 1.85), aspect="equal")
    ax.set_axis_off()
    ax.set_title(title, color=INK, fontsize=12, y=0.97)


def shift() -> None:
    """A force goes in, a velocity goes out."""
    figure, (forces, velocities) = plt.subplots(1, 2, figsize=(9.6, 3.5), facecolor=PAPER)
    body(forces, r"forces go in:  $f_A = \phi(A,B)\, f_B$")
    push = np.array([0.25, 1.0])
    arrow(forces, B, push, COLORS[0])
    arrow(forces, A, push, COLORS[1])
    turn(forces, A, COLORS[1])
    label(forces, B, 0.42, 0.75, "force", COLORS[0])
    label(forces, A, -0.55, 1.2, "the same force,\nand its moment", COLORS[1])
    body(velocities, r"velocities go out:  $\mathcal{V}_B = \phi^*(A,B)\, \mathcal{V}_A$")
    turn(velocities, A, COLORS[0])
    arm = 0.42 * np.array([-(B - A)[1], (B - A)[0]])
    turn(velocities, B, COLORS[1])
    arrow(velocities, B, arm, COLORS[1])
    label(velocities, A, -0.95, 0.62, "turning", COLORS[0])
    label(velocities, B, -2.55, 0.8, "the same turning,\nand moving", COLORS[1])
    figure.tight_layout()
    save(figure, "learn_shift.png")


def filled(matrix: np.ndarray, size: int) -> np.ndarray:
    """Which blocks of a matrix are not zero."""
    n = len(matrix) // size
    return np.abs(matrix).reshape(n, size, n, size).max(axis=(1, 3)) > 1e-12


def tree() -> lw.Mechanism:
    """Two bodies, then two branches of two bodies each."""
    b = lw.Builder("branched")
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.05, 1.0)
    parents = ("world", "1", "2", "3", "2", "5")
    for k, parent in enumerate(parents, start=1):
        at = (0.0, 0.0, 0.0) if k == 1 else (0.1 * k, 0.0, 1.0)
        b.body(str(k), parent, lw.hinges.Pin((0, 1, 0)), inertia=rod, inboard=at)
    return b.build()


PLACES = {0: (0, 0), 1: (0, 1), 2: (0, 2), 3: (-0.7, 3), 4: (-0.9, 4), 5: (0.7, 3), 6: (0.9, 4)}


def propagation() -> None:
    """A tree and its matrices, block by block."""
    mech = tree()
    dense = Dense(mech, mech.random(seed=0))
    figure, (sketch, *panels) = plt.subplots(1, 4, figsize=(11.4, 3.3), facecolor=PAPER)
    for k, parent in enumerate(mech.parent, start=1):
        start, end = PLACES[int(parent) + 1], PLACES[k]
        sketch.plot(*zip(start, end, strict=True), color=FAINT, lw=2, zorder=0)
        sketch.plot(*end, "o", color=COLORS[1], ms=19)
        sketch.text(*end, str(k), color="white", ha="center", va="center", fontsize=11)
    sketch.plot(0, 0, "s", color=INK, ms=13)
    sketch.set(xlim=(-1.5, 1.5), ylim=(-0.5, 4.6))
    sketch.set_axis_off()
    sketch.set_title("a tree", color=INK, fontsize=12)
    shown = (
        (r"$\mathcal{E}_\phi$: one step to the parent", filled(dense(E_phi), 6)),
        (r"$\phi$: all descendants", filled(dense(phi), 6)),
        (r"$\mathcal{M} = H\phi M\phi^* H^*$", filled(dense(mass), 1)),
    )
    step = filled(dense(E_phi), 6)
    for ax, (title, blocks) in zip(panels, shown, strict=True):
        n = len(blocks)
        for i in range(n):
            for j in range(n):
                if blocks[i, j]:
                    near = i == j or step[i, j] or step[j, i]
                    color = COLORS[1] if near else "#a9cbe0"
                    ax.add_patch(plt.Rectangle((j + 0.05, i + 0.05), 0.9, 0.9, color=color, lw=0))
        ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal")
        ax.set_xticks(np.arange(n) + 0.5, range(1, n + 1), color=FAINT)
        ax.set_yticks(np.arange(n) + 0.5, range(1, n + 1), color=FAINT)
        ax.tick_params(length=0)
        ax.set_facecolor("white")
        ax.spines[:].set_color(FAINT)
        ax.set_title(title, color=INK, fontsize=12)
    figure.tight_layout()
    save(figure, "learn_propagation.png")


def articulated() -> None:
    """How heavy the links are across a hanging chain, locked and free."""
    n = 12
    chain = lw.models.pendulum(n)
    dense = Dense(chain, np.zeros(n))
    across = np.arange(n) * 6 + 3
    locked, free = (np.diag(dense(x))[across] for x in (R, P))
    figure, ax = plt.subplots(figsize=(7.2, 3.4), facecolor=PAPER)
    ax.set_facecolor(PAPER)
    links = np.arange(1, n + 1)
    ax.plot(links, locked, "o-", color=COLORS[0], label="hinges locked: composite inertia R")
    ax.plot(links, free, "o-", color=COLORS[1], label="hinges free: articulated inertia P")
    ax.legend(frameon=False, labelcolor=INK)
    ax.set_title("mass felt across the chain [kg]", loc="left", color=INK, fontsize=11)
    ax.set_xlabel("link, from the top; each has 1 kg", color=INK)
    ax.set_ylim(0, n + 1)
    ax.set_xticks(links)
    ax.grid(True, color=FAINT, alpha=0.2)
    ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, "learn_articulated.png")


def hand() -> None:
    """Effective mass at the tip of two links, in four postures."""
    arm = lw.models.pendulum(2)
    figure, axes = lp.panels(1, 4, size=(11.4, 3.4))
    for k, (ax, elbow) in enumerate(zip(axes, (1.9, 1.3, 0.8, 0.45), strict=True)):
        q = np.array([-0.5 * elbow, elbow])
        lp.belted_ellipsoid(arm, q, "tip", plane="xz", ax=ax, scale=0.16, color=COLORS[k])
        masses = np.linalg.eigvalsh(
            lw.tasks.task_space(arm, q, lw.Task.position("tip", "xz")).inertia
        )
        ax.set_title(f"{masses[0]:.2f} kg and {masses[1]:.2f} kg")
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlim(-1.0, 1.0)
        ax.set_ylim(-2.75, 0.2)
    save(figure, "learn_lambda.png")


def main() -> None:
    """All four."""
    shift()
    propagation()
    articulated()
    hand()


if __name__ == "__main__":
    main()
