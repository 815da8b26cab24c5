"""What filter and smoother know of the forces along a chain of bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, unknown_name
from linkwise.estimation import RandomField
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import (
    Axes,
    Theme,
    ThemeLike,
    axes_given,
    legend,
    new_figure,
    style,
    themed,
)
from linkwise.plot.operator import one_state
from linkwise.plot.time_panel import short
from linkwise.spatial.array import Array, ArrayLike

COMPONENTS = ("mx", "my", "mz", "fx", "fy", "fz")
"""Moment [N m] and force [N] in the axes of each body."""

NAMED = 16
"""Bodies labelled by name; more are labelled by their index along the chain."""


def filter_and_smoother(
    mech: Mechanism,
    q: ArrayLike,
    *,
    tip: str | None = None,
    component: str | None = None,
    T: ArrayLike | None = None,
    seed: int = 0,
    ax: Sequence[Axes] | None = None,
    theme: ThemeLike = "light",
) -> list[Axes]:
    """Draw filter and smoother along a chain: their estimates of a force, and how sure they are.

    Bodies are pushed by random forces whose covariance is their inertia, and joint forces T are
    what is measured. Going from the tip to the base, the filter has seen the joints further out,
    the smoother all of them. Left: both estimates with bands of two standard deviations, and the
    force that was drawn; right: standard deviations, before anything is measured, too.

    Args:
        q: Joint positions (nq,) [m or rad].
        tip: Body or node at the end of the chain that is drawn; by default that of the longest.
        component: Of the force at each body, in its axes: "mx" to "fz". By default the force that
            is the least known beforehand.
        T: Joint forces (nv,) that are measured; by default drawn at random.
        seed: Of what is drawn.
        ax: Two Axes to draw into; default: a new figure.

    Returns:
        The Axes of estimates and of standard deviations.

    Raises:
        UnknownNameError: No such tip or component.
        ModelError: A mechanism without bodies; another number of Axes than two.
        MissingExtraError: Matplotlib is not installed.
    """
    check_mechanism(mech)
    look = themed(theme)
    state = one_state(mech, q, "a filter")
    chain = _chain(mech, tip)
    field = RandomField(mech, state)
    before, between, after = (field.deviation(x)[chain] for x in ("X", "X - z", "X - f"))
    i = _component(component, before)
    drawn = field.draw(1, seed=seed)
    measured = drawn.T[0] if T is None else field.measurement(T)
    smoother = field.smooth(measured)
    boards = _boards(ax, look)
    places = np.arange(1, len(chain) + 1)
    left, right = boards
    for spread, estimate, tint, label in (
        (between, smoother.filter.z, look.color(1), "filter z ± 2σ"),
        (after, smoother.f, look.color(0), "smoother f ± 2σ"),
    ):
        line, band = estimate[chain, i], 2.0 * spread[:, i]
        left.fill_between(places, line - band, line + band, color=tint, alpha=0.2, lw=0)
        left.plot(places, line, color=tint, lw=1.4, label=label)
        if len(chain) == 1:  # no line and no band between one body and itself
            left.errorbar(places, line, band, color=tint, fmt="_", ms=14, capsize=5, lw=1.4)
    if T is None:
        dots = {"ls": "none", "marker": "o", "ms": 3.6, "color": look.ink}
        left.plot(places, drawn.X[0, chain, i], label="drawn X", **dots)
    for spread, tint, label in (
        (before, look.faint, "X: nothing measured (R)"),
        (between, look.color(1), "X − z: joints further out (P)"),
        (after, look.color(0), "X − f: all joints (P − P Υ P)"),
    ):
        right.plot(places, spread[:, i], "o-", color=tint, ms=3, lw=1.3, label=label)
    unit = "N m" if i < 3 else "N"
    left.set_ylabel(f"{COMPONENTS[i]} at the body [{unit}]")
    right.set_ylabel(f"standard deviation of {COMPONENTS[i]} [{unit}]")
    right.set_ylim(bottom=0.0)
    for board in boards:
        _bodies(board, [mech.bodies[int(k)].name for k in chain])
        legend(board, look)
    return boards


def _chain(mech: Mechanism, tip: str | None) -> NDArray[np.intp]:
    """Indices of the bodies from the base to the tip."""
    if not mech.n_bodies:
        raise ModelError(f"{mech.name!r} has no bodies to filter along.")
    depth = np.ones(mech.n_bodies, dtype=np.intp)
    for k in range(mech.n_bodies):
        if mech.parent[k] >= 0:
            depth[k] = depth[mech.parent[k]] + 1
    end = int(depth.argmax()) if tip is None else mech.body_index[mech.node(tip).body]
    if end < 0:
        raise ModelError(f"{tip!r} is on the ground; name a body or node that moves.")
    chain = [end]
    while mech.parent[chain[-1]] >= 0:
        chain.append(int(mech.parent[chain[-1]]))
    return np.array(chain[::-1], dtype=np.intp)


def _component(name: str | None, before: Array) -> int:
    if name is None:
        return 3 + int(before[:, 3:].sum(axis=0).argmax())
    if name not in COMPONENTS:
        raise unknown_name("component", name, COMPONENTS, owner="a spatial force")
    return COMPONENTS.index(name)


def _boards(ax: Sequence[Axes] | None, theme: Theme) -> list[Axes]:
    if ax is not None:
        return axes_given(ax, 2)
    figure = new_figure((9.6, 3.7), theme)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    boards = [figure.add_subplot(1, 2, i + 1) for i in range(2)]
    for board in boards:
        style(board, theme)
    return boards


def _bodies(board: Axes, names: list[str]) -> None:
    """The tip on the left: the filter goes from there to the base."""
    count = len(names)
    board.set_xlim(count + 0.35, 0.65)
    if count <= NAMED:
        longest = max(len(name) for name in names)
        board.set_xticks(range(1, count + 1), [short(name, 22) for name in names])
        if longest * count > 60:
            board.tick_params(axis="x", rotation=90)
        board.set_xlabel("tip … base")
    else:
        board.set_xlabel("body along the chain, tip … base")
