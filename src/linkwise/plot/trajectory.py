"""Pictures of optimised motions, and of how the optimiser came there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.control.optimize import Trajectory
from linkwise.errors import ModelError
from linkwise.plot.canvas import Axes, ThemeLike, axes_given, legend, panels, themed
from linkwise.plot.time_panel import legend_beside, short


def trajectory(
    motion: Trajectory,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
) -> list[Axes]:
    """Draw velocities, joint forces and forces of contacts over time, and the convergence.

    The first panel has the velocities of the hinges, the second the joint forces of those that are
    driven, with normal forces of contacts dashed. The third has the cost with penalties, the gaps
    between knots and the largest violation of a bound at each iteration; penalties grow where
    bounds are violated.

    Args:
        motion: What `lw.optimize` returned, for a single problem.
        ax: Where to draw: three Axes; by default a new figure.

    Returns:
        The three Axes.

    Raises:
        ModelError: It is not a trajectory, or a batch of them; another number of Axes.
        MissingExtraError: Matplotlib is not installed.
    """
    look = themed(theme)
    if not isinstance(motion, Trajectory):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"motion is a {type(motion).__name__}; lw.optimize makes one.")
    if motion.q.ndim != 2:
        raise ModelError(f"motion holds {len(motion.q)} trajectories; optimise one alone.")
    boards = panels(1, 3, theme=look, size=(13.0, 4.0))[1] if ax is None else axes_given(ax, 3)
    names = [short(name) for name in motion.mech.velocity_names]
    for name, v, tau in zip(names, motion.v.T, motion.tau.T, strict=True):
        boards[0].plot(motion.time, v, lw=1.2, label=name)
        if np.any(tau):
            boards[1].step(motion.time[:-1], tau, where="post", lw=1.2, label=name)
    for node, force in motion.forces.items():
        boards[1].step(motion.time[:-1], force[:, 2], where="post", lw=1.0, ls="--", label=node)
    done = motion.history
    boards[2].semilogy(np.maximum(done.cost, 1e-16), lw=1.4, label="cost with penalties")
    boards[2].semilogy(np.maximum(done.gap, 1e-16), lw=1.0, ls="--", label="gaps")
    if np.any(done.violation):
        off = np.maximum(done.violation, 1e-16)
        boards[2].semilogy(off, lw=1.0, ls=":", label="largest violation")
    titles = (
        "velocities [m/s or rad/s]",
        "joint forces, and of contacts [N or N m]",
        motion.message,
    )
    for board, title, below in zip(boards, titles, ("t [s]", "t [s]", "iteration"), strict=True):
        board.set(title=title, xlabel=below)
        beside = ax is None and board is not boards[2] and len(board.lines) > 4
        (legend_beside if beside else legend)(board, look)
    return list(boards)
