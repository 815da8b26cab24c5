"""Motions: a robot that is let go, an arm under control, a closed chain."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import LinkwiseError, ModelError
from linkwise.loops import project_velocity
from linkwise.model.mechanism import Mechanism
from linkwise.plot.canvas import Axes, Figure, panels
from linkwise.plot.energy_budget import energy_budget
from linkwise.plot.theme import Theme
from linkwise.simulation.loop_keeper import Keep
from linkwise.simulation.recording import Recording
from linkwise.simulation.rollout import rollout
from linkwise.simulation.run import simulate
from linkwise.spatial.array import Array
from linkwise.tasks import Goal, Posture, Servo, TaskController
from linkwise.tasks.task import Task
from linkwise.tour.posture import dexterous, floats, hand, posture
from linkwise.tour.timing import best, told
from linkwise.tour.visit import Visit
from linkwise.viewer.export import html_page

MOST_MOVED = 60
"""Bodies of a robot that is simulated."""

TITLE = "motion"
"""Of all playbacks: what they have in common, from the first letter on, is kept once."""

INTEGRATORS = ("euler", "variational", "rk4")
"""Those that are compared, the plainest first."""


def let_go(visit: Visit) -> None:
    """Let go: the robot swings freely, and its energy tells how well time was stepped."""
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
        "Nothing holds it but its hinges. A compiled kernel steps positions and velocities through "
        "time; energy, works and momentum are recorded, and what is not modelled is said."
    )
    duration = (0.2 if visit.quick else 0.5) if closed else (0.5 if visit.quick else 2.0)
    rec = _refined(mech, q, v, duration, 2e-3 if closed else 1e-3)
    visit.lines(str(rec), "What the recording tells of itself.")
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
        lambda theme: _figure(energy_budget(rec, theme=theme)),
        f"Energy of {mech.name} over time: kinetic, potential and their sum; what dampers and "
        "springs of the drives take; and what is left over, the error of the steps.",
    )
    visit.playback(
        lambda theme: html_page(rec, theme=theme, title=TITLE),
        f"{mech.name}, let go in a bent posture and already moving a little. Drag to turn, scroll "
        "to come nearer.",
    )
    if not closed and not visit.quick:
        _compare(visit, mech, q, v)


def _refined(mech: Mechanism, q: Array, v: Array, duration: float, step: float) -> Recording:
    """The motion, with shorter steps where energy is not kept; at last without stiff dampers."""
    found, trouble = list[Recording](), ""
    for passive in (True, False):
        for cut in (1.0, 4.0, 16.0):
            try:
                rec = simulate(
                    mech, q, v, duration=min(duration, 2000 * step / cut), step=step / cut,
                    passive=passive, progress=False,
                )  # fmt: skip
            except LinkwiseError as error:
                trouble = str(error)
                continue
            if rec.report.relative_drift < 1e-4:
                return rec
            found.append(rec)
        if found or not (mech.damping.any() or mech.stiffness.any()):
            break
    if found:
        return found[-1]
    raise ModelError(trouble)


def _compare(visit: Visit, mech: Mechanism, q: Array, v: Array) -> None:
    """Integrators on the same motion, without dampers."""
    rows, step, steps = list[list[str]](), 2e-3, 500
    for name in INTEGRATORS:
        try:
            rec = simulate(
                mech, q, v, integrator=name, duration=steps * step, step=step, passive=False,
                progress=False,
            )  # fmt: skip
            each = _step_time(mech, q, v, name, step)
        except LinkwiseError:
            continue
        drift = [f"{rec.report.drift:.1e}", f"{rec.report.relative_drift:.1e}"]
        rows.append([name, *drift, told(each)])
    if rows:
        visit.table(
            ["integrator", "drift [J]", "relative", "a step"],
            rows,
            "One second in steps of 2 ms, without dampers: the largest drift of energy, in joules "
            "and as a part of the largest kinetic energy; and what a step takes in `lw.rollout`, "
            "where all steps are one call of one kernel. Euler's steps are of first order, "
            "variational ones of second and without a trend, Runge and Kutta's of fourth.",
        )


def _step_time(mech: Mechanism, q: Array, v: Array, integrator: str, step: float) -> float:
    """Of a step in a rollout [s]."""
    count = 500

    def run() -> object:
        return rollout(
            mech, q, v, duration=count * step, step=step, integrator=integrator, passive=False,
            record_every=count,
        )  # fmt: skip

    return best(run) / count


# ------------------------------------------------------------------------------------- control


def under_control(visit: Visit) -> None:
    """Under control: the hand goes round a circle, led by forces that the model gives."""
    mech, node, why = _arm(visit.mech)
    q, margin = dexterous(mech, node)
    if why:
        visit.instead(mech, why)
    seconds = 1.0 if visit.quick else 2.0
    path = circle(mech, q, node, seconds, margin)
    servo = Servo(Task.position(node), kp=400.0, kv=40.0)
    law = TaskController(mech, servo, Posture(q, 25.0, 10.0, by="acceleration"))
    visit.say(
        f"`{node}` should go round a circle of {1e3 * path.radius:.0f} mm in {seconds:.0f} s. The "
        "controller takes gravity and Coriolis forces out and makes the hand a unit mass on a "
        "spring; what is left free is drawn to a posture. It is asked every millisecond, and its "
        "joint forces are held in between. Dampers of the drives are left out."
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
    visit.lines(str(rec), "What the recording tells of itself.")
    off = float(np.max(rec["off"]))
    visit.check("the hand is off its path by [m]", off, 0.02 * path.radius)
    visit.check("energy drift, of the largest kinetic energy", rec.report.relative_drift, 1e-3)
    visit.picture(
        lambda theme: _followed(rec, theme),
        f"Left, how far `{node}` is from where it should be. Right, the joint forces that lead it.",
    )
    visit.picture(
        lambda theme: _figure(energy_budget(rec, theme=theme)),
        "The budget of energy: what joint forces put in is found again as energy of motion and of "
        "height; the last panel is what is not, the error of steps and of their works.",
    )
    visit.playback(
        lambda theme: html_page(
            rec, theme=theme, title=TITLE, nodes=node, show=("shapes", "grid", "traces")
        ),
        f"{mech.name} under control, with the path of `{node}`.",
    )


class Circle:
    """A circle that is begun and ended at rest."""

    def __init__(self, start: Array, axes: Array, radius: float, duration: float) -> None:
        self.start, self.axes, self.radius, self.duration = start, axes, radius, duration

    def goal(self, t: float) -> Goal:
        """Place, velocity and acceleration at a time."""
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
        return float(np.linalg.norm(forward_kinematics(mech, q, node).p - self.goal(t).target))


def circle(mech: Mechanism, q: Array, node: str, duration: float, margin: float) -> Circle:
    """A circle for a node, upright, through where it is.

    Args:
        mech: The robot.
        q: Where it begins (nq,).
        node: What goes round.
        duration: How long it takes [s].
        margin: How far the node can go about [m]; a quarter of it is the radius.
    """
    start = np.asarray(forward_kinematics(mech, q, node).p)
    away = start * (1.0, 1.0, 0.0)
    along = away / np.linalg.norm(away) if np.linalg.norm(away) > 1e-6 else np.array([1.0, 0, 0])
    return Circle(start, np.stack([along, [0.0, 0.0, 1.0]]), 0.25 * margin, duration)


def _arm(mech: Mechanism) -> tuple[Mechanism, str, str]:
    """The robot and its hand, or an arm in its place and why."""
    stand_in = models.seven_dof_arm()
    node = hand(mech)
    why = ""
    if mech.loops or mech.couplings:
        why = "has loops or couplings, which this controller leaves open"
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
    """A closed chain: a crank goes round, and the loop stays closed."""
    mech = models.four_bar()
    visit.example(f"a built-in linkage, `{mech.name}`")
    q = mech.neutral()
    v = project_velocity(mech, q, np.array([8.0, 0.0, 0.0]))
    duration = 0.4 if visit.quick else 1.2
    rec = simulate(mech, q, v, duration=duration, step=2e-3, progress=False)
    visit.say(
        "Four bars and four pins: the tree is cut at one of them, and the force that holds the cut "
        "together is found with the accelerations. After every step positions and velocities are "
        "projected to where the loop is closed."
    )
    visit.lines(str(rec), "What the recording tells of itself.")
    visit.check("the loop stays closed [m]", rec.report.loop[0], 1e-9)
    visit.check("energy drift, of the largest kinetic energy", rec.report.relative_drift, 1e-4)
    if not visit.quick:
        _kept(visit, mech, q, v)
    visit.picture(
        lambda theme: _loop(rec, theme),
        "Left, the angles of the three hinges of the tree; right, the budget of energy's drift and "
        "the opening of the loop, which stays at rounding.",
    )
    visit.playback(lambda theme: html_page(rec, theme=theme, title=TITLE), "The four-bar linkage.")


def _kept(visit: Visit, mech: Mechanism, q: Array, v: Array) -> None:
    """The same motion with the loop kept in three ways."""
    rows, short = list[list[str]](), 0.4
    ways: tuple[Keep, ...] = ("projection", "baumgarte", "nothing")
    for keep in ways:
        other = simulate(mech, q, v, duration=short, step=2e-3, keep=keep, progress=False)
        rows.append([keep, f"{other.report.loop[0]:.1e}", f"{other.report.relative_drift:.1e}"])
    visit.table(
        ["loops kept by", "loop error [m]", "energy drift"],
        rows,
        f"{short} s of the same motion, with the loop kept in three ways.",
    )


def _loop(rec: Recording, theme: Theme) -> Figure:
    figure, (left, right) = panels(1, 2, theme=theme, size=(9.0, 3.4))
    for i, name in enumerate(rec.channel("q").labels):
        left.plot(rec.t, rec.q[:, i], color=theme.color(i), lw=1.4, label=name)
    left.set(xlabel="time [s]", ylabel="angle [rad]")
    left.legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    lines = {"loop open by [m]": rec["loop.distance"], "energy drift [J]": rec["energy.balance"]}
    for i, (name, values) in enumerate(lines.items()):
        size = np.abs(np.asarray(values).reshape(len(rec), -1)).max(axis=1)
        right.semilogy(rec.t, np.maximum(size, 1e-17), color=theme.color(i), lw=1.2, label=name)
    right.set(xlabel="time [s]")
    right.legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _figure(axes: list[Axes]) -> Figure:
    """The figure that axes are in."""
    return axes[0].figure
