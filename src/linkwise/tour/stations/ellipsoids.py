"""Belted ellipsoids at the hand."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics import forward_dynamics, jacobian
from linkwise.dynamics.operational_space import reach
from linkwise.inertial import inertial_properties
from linkwise.loops import constrained_forward_dynamics
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Figure, panels, style
from linkwise.plot.inertial import belted_ellipsoid
from linkwise.plot.theme import Theme
from linkwise.spatial.array import Array
from linkwise.tour.posture import hand, posture
from linkwise.tour.stations.algebra import shown
from linkwise.tour.visit import Visit


def ellipsoids(visit: Visit) -> None:
    """How heavy the hand is: its effective mass in every direction."""
    mech = shown(visit)
    node = hand(mech)
    assert node is not None  # something moves
    visit.say(
        f"Push at `{node}` and it answers with an acceleration. Force over acceleration, direction "
        "by direction, is the effective mass there: it depends on the posture, and it is infinite "
        "along what is blocked."
    )
    postures = _postures(mech, node)
    rows, gaps, drawn = list[list[str]](), list[float](), list[Array]()
    for name, q in zip(("first", "second"), postures, strict=False):
        found = inertial_properties(mech, q, node)
        masses = found.principal_masses
        rows.append([name, *(f"{m:.4g}" if np.isfinite(m) else "blocked" for m in masses)])
        if not np.isfinite(masses).any():
            continue
        drawn.append(q)
        for m, axis in zip(masses, found.mass_axes.T, strict=True):
            if np.isfinite(m):
                again = pushed(mech, q, node, axis)
                gaps.append(abs(again - m) / m)
    visit.table(
        ["posture", "lightest [kg]", "middle [kg]", "heaviest [kg]"],
        rows,
        f"Effective masses of `{node}` along its principal directions.",
    )
    if drawn:
        visit.check(
            "the same by pushing: force over acceleration of forward dynamics, relative",
            float(np.max(gaps)),
            1e-8,
        )
        visit.picture(
            lambda theme: _drawn(mech, node, drawn, theme),
            f"Belted ellipsoids at `{node}`: the distance of the surface from the node is the "
            "effective mass in that direction; the waist is along what is light.",
            form="png",
        )


def _postures(mech: Mechanism, node: str) -> list[Array]:
    """Two of several: those in which the hand is lightest where it is heaviest."""
    if mech.loops:
        return [posture(mech)]
    found = [posture(mech, seed, bent=0.5) for seed in range(1, 9)]
    masses = [inertial_properties(mech, q, node).principal_masses for q in found]
    heaviest = [float(m[np.isfinite(m)].max(initial=0.0)) for m in masses]
    order = sorted(range(len(found)), key=lambda i: heaviest[i])
    return [found[i] for i in order[:2]]


def pushed(mech: Mechanism, q: Array, node: str, direction: Array) -> float:
    """Force over acceleration at a node, by forward dynamics with the force and without it [kg]."""
    still, rows = np.zeros(mech.nv), direction @ jacobian(mech, q, node, frame="world")[3:]
    tied = bool(mech.loops or mech.couplings)
    solve = constrained_forward_dynamics if tied else forward_dynamics
    with_it, without = (solve(mech, q, still, tau) for tau in (rows, 0.0 * rows))
    gained = float(rows @ (with_it - without))
    return 1.0 / gained if gained != 0.0 else float("inf")


def _drawn(mech: Mechanism, node: str, postures: list[Array], theme: Theme) -> Figure:
    figure, axes = panels(1, len(postures), dimension=3, theme=theme, size=(9.0, 4.6))
    scale = _scale(mech, node, postures)
    for ax, q in zip(axes, postures, strict=True):
        style(ax, theme)
        belted_ellipsoid(mech, q, node, ax=ax, theme=theme, scale=scale, alpha=0.5, resolution=40)
        ax.view_init(20, -60)
    return figure


def _scale(mech: Mechanism, node: str, postures: list[Array]) -> float | None:
    """Metres for a kilogram: one for all, unless they differ too much."""
    heaviest = list[float]()
    for q in postures:
        masses = inertial_properties(mech, q, node).principal_masses
        heaviest.append(float(masses[np.isfinite(masses)].max()))
    if len(heaviest) < 2 or max(heaviest) > 6.0 * min(heaviest):
        return None
    return 0.25 * reach(mech, (node,)) / max(heaviest)
