"""Stations about the robot itself: what it is, and how heavy its hand is."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.brief import counted
from linkwise.dynamics import forward_dynamics, jacobian
from linkwise.dynamics.velocity_space import reach
from linkwise.inertial import inertial_properties
from linkwise.loops import constraint_error
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Figure, Theme, panels, style
from linkwise.plot.inertial import belted_ellipsoid
from linkwise.spatial.array import Array
from linkwise.tour.posture import hand, posture
from linkwise.tour.text import TREE_HEAD, tree_rows
from linkwise.tour.visit import Visit
from linkwise.viewer.video import picture

MOST_DENSE = 40
"""Bodies of a mechanism that is compared with explicit matrices."""


def robot(visit: Visit) -> None:
    """The robot: a tree of bodies on hinges."""
    mech = visit.mech
    loops = f", {counted(len(mech.loops), 'loop')}" if mech.loops else ""
    ties = f", {counted(len(mech.couplings), 'coupling')}" if mech.couplings else ""
    gravity = ", ".join(f"{g:.4g}" for g in mech.gravity)
    size = "1 degree of freedom" if mech.nv == 1 else f"{mech.nv} degrees of freedom"
    visit.say(
        f"`{mech.name}` has {counted(mech.n_bodies, 'body', 'bodies')}, "
        f"{size} (nq = {mech.nq}){loops}{ties}, and "
        f"{mech.total_mass:.6g} kg; gravity is ({gravity}) m/s²."
    )
    if mech.n_bodies:
        q = posture(mech)
        visit.image(
            lambda theme: picture(mech, q, size=(840, 600), theme=theme, detail=3000),
            f"{mech.name} in a slightly bent posture, with the shapes of its file, or with "
            "generated ones where the file has none.",
        )
    visit.table(TREE_HEAD, tree_rows(mech), "Base first; `q` and `v` are indices into the state.")
    _validated(visit, mech)
    if mech.nv:
        q, v = posture(mech), mech.random_velocity(0)
        short = 0.1 / max(1.0, float(np.abs(v).max()))  # far less than half a turn
        gap = np.abs(mech.difference(q, mech.integrate(q, v, short)) - short * v).max()
        visit.check("difference undoes integrate", float(gap), 1e-12)
    if mech.loops:
        open_by = float(
            np.linalg.norm(constraint_error(mech, posture(mech), per="loop")[:, 3:], axis=1).max()
        )
        visit.check("loops closed in the posture shown [m]", open_by, 1e-6)


def _validated(visit: Visit, mech: Mechanism) -> None:
    findings = mech.validate()
    if findings:
        visit.lines("\n".join(str(finding) for finding in findings), "Findings of the validation.")
    wrong = [finding for finding in findings if finding.severity == "error"]
    for finding in wrong:
        visit.check(f"errors of {finding.where}, found by validation: {finding.code}", 1.0, 0.0)
    if mech.n_bodies and not wrong:
        visit.check("errors found by validation", 0.0, 0.0)
    if len(mech.load_report):
        visit.say(
            f"From `{mech.load_report.source}`: {mech.load_report.summary()} "
            "(`linkwise info --report` lists them)."
        )


def small(visit: Visit) -> Mechanism:
    """The robot; or a PUMA, where it is too large for explicit matrices or cannot move."""
    mech = visit.mech
    if not mech.nv:
        why = "has no body" if not mech.n_bodies else "has no hinge that moves"
    elif mech.n_bodies > MOST_DENSE:
        why = f"has {mech.n_bodies} bodies, and matrices of more than {MOST_DENSE} are not shown"
    else:
        return mech
    return visit.instead(models.puma560(), why)


def effective_mass(visit: Visit) -> None:
    """How heavy the hand is: its effective mass in every direction."""
    mech = small(visit)
    node = hand(mech)
    assert node is not None  # something moves
    visit.say(
        f"Push at `{node}`, and it accelerates. Force over acceleration, direction by direction, "
        "is the effective mass: it depends on the posture, and it is infinite along blocked "
        "directions."
    )
    rows, gaps, drawn = list[list[str]](), list[float](), list[Array]()
    for name, q in zip(("first", "second"), _postures(mech, node), strict=False):
        properties = inertial_properties(mech, q, node)
        masses = properties.principal_masses
        rows.append([name, *(f"{m:.4g}" if np.isfinite(m) else "blocked" for m in masses)])
        finite = np.isfinite(masses)
        gaps += [
            abs(pushed(mech, q, node, axis) - m) / m
            for m, axis in zip(masses[finite], properties.mass_axes.T[finite], strict=True)
        ]
        drawn += [q] if finite.any() else []
    visit.table(
        ["posture", "lightest [kg]", "middle [kg]", "heaviest [kg]"],
        rows,
        f"Effective masses of `{node}` along its principal directions.",
    )
    if not drawn:
        return
    visit.check(
        "the same by pushing: force over acceleration of forward dynamics, relative",
        float(np.max(gaps)),
        1e-8,
    )
    visit.picture(
        lambda theme: _ellipsoids(mech, node, drawn, theme),
        f"Belted ellipsoids at `{node}`: the distance of the surface from the node is the "
        "effective mass in that direction; the waist points along light directions.",
        form="png",
    )


def _postures(mech: Mechanism, node: str) -> list[Array]:
    """The two of several postures whose largest effective mass is smallest."""
    if mech.loops:
        return [posture(mech)]
    every = [posture(mech, seed, bent=0.5) for seed in range(1, 9)]
    masses = [inertial_properties(mech, q, node).principal_masses for q in every]
    heaviest = [float(m[np.isfinite(m)].max(initial=0.0)) for m in masses]
    return [every[i] for i in sorted(range(len(every)), key=lambda i: heaviest[i])[:2]]


def pushed(mech: Mechanism, q: Array, node: str, direction: Array) -> float:
    """Force over acceleration at a node, by forward dynamics with and without the force [kg]."""
    still, rows = np.zeros(mech.nv), direction @ jacobian(mech, q, node, frame="world")[3:]
    with_it, without = (forward_dynamics(mech, q, still, tau) for tau in (rows, 0.0 * rows))
    gained = float(rows @ (with_it - without))
    return 1.0 / gained if gained != 0.0 else float("inf")


def _ellipsoids(mech: Mechanism, node: str, postures: list[Array], theme: Theme) -> Figure:
    figure, axes = panels(1, len(postures), dimension=3, theme=theme, size=(9.0, 4.6))
    masses = [inertial_properties(mech, q, node).principal_masses for q in postures]
    heaviest = [float(m[np.isfinite(m)].max()) for m in masses]
    scale = None  # one scale for both, unless they differ too much
    if len(heaviest) > 1 and max(heaviest) <= 6.0 * min(heaviest):
        scale = 0.25 * reach(mech, (node,)) / max(heaviest)
    for ax, q in zip(axes, postures, strict=True):
        style(ax, theme)
        belted_ellipsoid(mech, q, node, ax=ax, theme=theme, scale=scale, alpha=0.5, resolution=40)
        ax.view_init(20, -60)
    return figure
