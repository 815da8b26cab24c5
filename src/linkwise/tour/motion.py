"""Stations with motions: the robot let go, an arm under control, a closed chain."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import LinkwiseError, ModelError
from linkwise.loops import project_velocity
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Figure, Theme, panels
from linkwise.plot.energy_budget import energy_budget
from linkwise.simulation.recording import Recording
from linkwise.simulation.run import simulate
from linkwise.spatial.array import Array
from linkwise.tasks import Goal, Posture, Servo, TaskController
from linkwise.tasks.task import Task
from linkwise.tour.posture import dexterous, floats, hand, posture
from linkwise.tour.visit import Visit
from linkwise.viewer.export import html_page

MOST_MOVED = 60
"""Largest number of bodies of a robot that is simulated."""

TITLE = "motion"
"""Title of every playback: the page stores their common beginning once."""


def let_go(visit: Visit) -> None:
    """Let go: the robot swings freely, and its energy shows how accurate the steps are."""
    mech = visit.mech
    if not mech.nv:
        visit.sorry("let go", "nothing moves.")
        return
    if mech.n_bodies > MOST_MOVED:
        why = f"has {mech.n_bodies} bodies, and more than {MOST_MOVED} are not moved here"
        mech = visit.instead(models.puma560(), why)
    q, v = posture(mech), 0.4 * mech.random_velocity(1)
    closed = bool(mech.loops or mech.couplings)
    if closed:
        v = project_velocity(mech, q, v)
    visit.say(
        "Only its hinges hold it. A compiled kernel steps positions and velocities through time; "
        "energy, work and momentum are recorded, and the report lists what is not modelled."
    )
    duration = (0.2 if visit.quick else 0.5) if closed else (0.5 if visit.quick else 2.0)
    rec = _refined(mech, q, v, duration, 2e-3 if closed else 1e-3)
    visit.lines(str(rec), "The report of the recording.")
    drift = rec.report.relative_drift
    visit.check("energy drift, of the largest kinetic energy", drift, 1e-3)
    if not drift <= 1e-3:
        visit.say(
            f"Steps of {rec.step:.1e} s are too long for it; lw.simulate(..., "
            "integrator='adaptive') chooses its own."
        )
    if mech.loops:
        visit.check("loops stay closed [m]", rec.report.loop[0], 1e-9)
    kept = rec.report.momentum_drift
    if np.isfinite(kept[0]):
        size = max(rec.report.momentum[0], 1.0)
        visit.check("momentum is kept, gravity taken off, relative", kept[0] / size, 1e-6)
    visit.picture(
        lambda theme: energy_budget(rec, theme=theme)[0].figure,
        f"Energy of {mech.name} over time: kinetic, potential and their sum; what dampers and "
        "springs of the drives take; and the remainder, the error of the steps.",
    )
    visit.playback(
        lambda theme: html_page(rec, theme=theme, title=TITLE),
        f"{mech.name}, let go in a bent posture and already moving a little. Drag to turn, scroll "
        "to zoom.",
    )


def _refined(mech: Mechanism, q: Array, v: Array, duration: float, step: float) -> Recording:
    """The motion, with shorter steps while energy drifts, and finally without stiff dampers."""
    attempts, message = list[Recording](), ""
    for passive in (True, False):
        for cut in (1.0, 4.0, 16.0):
            try:
                rec = simulate(
                    mech, q, v, duration=min(duration, 2000 * step / cut), step=step / cut,
                    passive=passive, progress=False,
                )  # fmt: skip
            except LinkwiseError as error:
                message = str(error)
                continue
            if rec.report.relative_drift < 1e-4:
                return rec
            attempts.append(rec)
        if attempts or not (mech.damping.any() or mech.stiffness.any()):
            break
    if attempts:
        return attempts[-1]
    raise ModelError(message)


# ------------------------------------------------------------------------------------- control


def under_control(visit: Visit) -> None:
    """Under control: the hand follows a circle, driven by forces from the model."""
    mech, node, why = _arm(visit.mech)
    q, margin = dexterous(mech, node)
    if why:
        visit.instead(mech, why)
    seconds = 1.0 if visit.quick else 2.0
    path = circle(mech, q, node, seconds, margin)
    servo = Servo(Task.position(node), kp=400.0, kv=40.0)
    law = TaskController(mech, servo, Posture(q, 25.0, 10.0, by="acceleration"))
    visit.say(
        f"`{node}` follows a circle of {1e3 * path.radius:.0f} mm in {seconds:.0f} s. The "
        "controller compensates gravity and Coriolis forces and makes the hand a unit mass on a "
        "spring; the remaining degrees of freedom return to a posture. It runs every millisecond, "
        "and its joint forces are held in between. Dampers of the drives are left out."
    )
    visit.formula(
        r"\tau = J^{*} \left(\Lambda \left(F^{*} - \gamma\right) + \overline{J}^{*} \mathcal{C}"
        r"\right) + N^{*} \Gamma_0",
        "τ = J* (Λ (F* - γ) + J̄* C) + N* Γ₀",
    )
    visit.print("")
    rec = simulate(
        mech, q, duration=seconds, step=1e-3, passive=False, progress=False,
        controller=lambda t, q, v: law(q, v, path.goal(t)), control_step=1e-3,
        probes={"off [m]": lambda t, q, v, tau: path.off(mech, q, node, t)},
    )  # fmt: skip
    visit.lines(str(rec), "The report of the recording.")
    off = float(np.max(rec["off"]))
    visit.check("distance of the hand from its path [m]", off, 0.02 * path.radius)
    visit.check("energy drift, of the largest kinetic energy", rec.report.relative_drift, 1e-3)
    visit.picture(
        lambda theme: _followed(rec, theme),
        f"Left, the distance of `{node}` from its path. Right, the joint forces.",
    )
    visit.playback(
        lambda theme: html_page(
            rec, theme=theme, title=TITLE, nodes=node, show=("shapes", "grid", "traces")
        ),
        f"{mech.name} under control, with the path of `{node}`.",
    )


class Circle:
    """A circle that begins and ends at rest."""

    def __init__(self, start: Array, axes: Array, radius: float, duration: float) -> None:
        self.start, self.axes, self.radius, self.duration = start, axes, radius, duration

    def goal(self, t: float) -> Goal:
        """Position, velocity and acceleration at a time."""
        s = min(max(t / self.duration, 0.0), 1.0)
        turn = 2.0 * np.pi
        angle = turn * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        rate = turn * 30.0 * s**2 * (1.0 - s) ** 2 / self.duration
        growth = turn * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / self.duration**2
        e, f = self.axes * self.radius
        ring = np.cos(angle) * e + np.sin(angle) * f
        along = np.cos(angle) * f - np.sin(angle) * e
        return Goal(self.start + ring - e, rate * along, growth * along - rate**2 * ring)

    def off(self, mech: Mechanism, q: Array, node: str, t: float) -> float:
        """Distance of a node from where it should be [m]."""
        return float(np.linalg.norm(forward_kinematics(mech, q, node).p - self.goal(t).position))


def circle(mech: Mechanism, q: Array, node: str, duration: float, margin: float) -> Circle:
    """An upright circle through the position of a node, of a quarter of its `margin` [m]."""
    start = np.asarray(forward_kinematics(mech, q, node).p)
    away = start * (1.0, 1.0, 0.0)
    along = away / np.linalg.norm(away) if np.linalg.norm(away) > 1e-6 else np.array([1.0, 0, 0])
    return Circle(start, np.stack([along, [0.0, 0.0, 1.0]]), 0.25 * margin, duration)


def _arm(mech: Mechanism) -> tuple[Mechanism, str, str]:
    """The robot and its hand; or another arm, and why."""
    stand_in = models.seven_dof_arm()
    node = hand(mech)
    why = ""
    if mech.loops or mech.couplings:
        why = "has loops or couplings, which this controller does not hold"
    elif floats(mech):
        why = "floats"
    elif node is None or mech.n_bodies > MOST_MOVED:
        why = "is too large" if mech.n_bodies else "has no body"
    elif dexterous(mech, node)[1] < 0.01:
        why = f"cannot move {node!r} in all three directions"
    elif any(finding.severity == "error" for finding in mech.validate()):
        why = "has impossible inertias"
    if why or node is None:
        return stand_in, "hand", why
    return mech, node, ""


def _followed(rec: Recording, theme: Theme) -> Figure:
    figure, (left, right) = panels(1, 2, theme=theme, size=(9.0, 3.4))
    left.plot(rec.t, 1e6 * rec["off"], color=theme.color(0), lw=1.4)
    left.set(xlabel="time [s]", ylabel="off the path [µm]")
    for i, (name, line) in enumerate(zip(rec.channel("tau").labels, rec.tau.T, strict=True)):
        if i < 8:
            look = "-" if i < len(theme.colors) else "--"
            right.plot(rec.t, line, look, color=theme.color(i), lw=1.2, label=name)
    right.set(xlabel="time [s]", ylabel="joint force [N m or N]")
    right.legend(frameon=False, fontsize=7, labelcolor=theme.ink, ncols=2)
    return figure


# -------------------------------------------------------------------------------- closed chains


def closed_chain(visit: Visit) -> None:
    """A closed chain: a crank turns, and the loop stays closed."""
    mech = models.four_bar()
    visit.example(f"a built-in linkage, `{mech.name}`")
    q = mech.neutral()
    v = project_velocity(mech, q, np.array([8.0, 0.0, 0.0]))
    duration = 0.4 if visit.quick else 1.2
    rec = simulate(mech, q, v, duration=duration, step=2e-3, progress=False)
    visit.say(
        "Four bars and four pins: the tree is cut at one pin, and the force across the cut is "
        "computed together with the accelerations. After every step, positions and velocities are "
        "projected onto the closed loop."
    )
    visit.lines(str(rec), "The report of the recording.")
    visit.check("the loop stays closed [m]", rec.report.loop[0], 1e-9)
    visit.check("energy drift, of the largest kinetic energy", rec.report.relative_drift, 1e-4)
    visit.playback(lambda theme: html_page(rec, theme=theme, title=TITLE), "The four-bar linkage.")
