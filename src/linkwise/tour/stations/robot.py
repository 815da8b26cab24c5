"""The robot itself."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ClosureError
from linkwise.model.closure import coordinates, error
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Figure, panels
from linkwise.plot.skeleton import skeleton
from linkwise.plot.theme import Theme
from linkwise.tour.posture import posture
from linkwise.tour.text import count
from linkwise.tour.tree import HEAD, tree_rows
from linkwise.tour.visit import Visit

MOST_DRAWN = 200
"""Bodies of a skeleton that is drawn."""


def robot(visit: Visit) -> None:
    """The robot: a tree of bodies on hinges."""
    mech = visit.mech
    visit.say(described(mech))
    visit.table(HEAD, tree_rows(mech), "Base first; `q` and `v` are places in the state vectors.")
    findings = mech.validate()
    if findings:
        visit.lines("\n".join(str(finding) for finding in findings), "What validation found.")
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
    if mech.nv:
        q, v = posture(mech), mech.random_velocity(0)
        short = 0.1 / max(1.0, float(np.abs(v).max()))  # far less than half a turn
        there = mech.integrate(q, v, short)
        gap = np.abs(mech.difference(q, there) - short * v).max()
        visit.check("difference undoes integrate", float(gap), 1e-12)
    if mech.loops:
        visit.check("loops closed in the posture shown [m]", opening(mech), 1e-6)
    if 0 < mech.n_bodies <= MOST_DRAWN:
        visit.picture(
            lambda theme: _drawn(mech, theme),
            f"{mech.name} as lines through its joints, in a posture that is a little bent. Rings "
            "turn, double lines slide, triangles stand on the ground, dots are nodes.",
        )


def described(mech: Mechanism) -> str:
    """Its size in a sentence."""
    loops = f", {count(len(mech.loops), 'loop')}" if mech.loops else ""
    ties = f", {count(len(mech.couplings), 'coupling')}" if mech.couplings else ""
    gravity = ", ".join(f"{g:.4g}" for g in mech.gravity)
    return (
        f"`{mech.name}` has {count(mech.n_bodies, 'body', 'bodies')}, "
        f"{count(mech.nv, 'degree')} of freedom (nq = {mech.nq}){loops}{ties}, and "
        f"{mech.total_mass:.6g} kg; gravity is ({gravity}) m/s²."
    )


def opening(mech: Mechanism) -> float:
    """The largest distance at a loop [m] in the posture that is shown."""
    q, gaps = posture(mech), list[float]()
    for loop in mech.loops:
        X_ab = forward_kinematics(mech, q, loop.node_a).inverse() @ forward_kinematics(
            mech, q, loop.node_b
        )
        off = error(loop.hinge, X_ab, coordinates(loop.hinge, X_ab))
        gaps.append(float(np.linalg.norm(off[3:])))
    worst = float(np.max(gaps))
    if not np.isfinite(worst):
        raise ClosureError(f"the loops of {mech.name!r} cannot be measured.")
    return worst


def _drawn(mech: Mechanism, theme: Theme) -> Figure:
    figure, (ax,) = panels(1, 1, dimension=3, theme=theme, size=(6.4, 5.2))
    skeleton(mech, posture(mech), ax=ax, theme=theme)
    ax.view_init(20, -60)
    return figure
