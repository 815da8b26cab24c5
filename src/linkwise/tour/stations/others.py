"""What else there is: hinges, mechanisms made from others, files, mistakes, the papers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from linkwise import models
from linkwise.io.load import load
from linkwise.io.save import save
from linkwise.model import Builder, Mechanism
from linkwise.model.hinges import Pin, RollingBall
from linkwise.model.state import split_coordinate
from linkwise.spatial import SpatialInertia
from linkwise.tour.visit import Visit


def hinges(visit: Visit) -> None:
    """A hinge says its pose, its map H and how H changes: a ball that rolls without slipping."""
    visit.example("a hinge of its own")
    ball = RollingBall(radius=0.1)
    q, v = ball.integrate(ball.neutral(), np.array([0.3, -0.8, 0.4])), np.array([1.0, 2.0, -0.5])
    with np.printoptions(precision=4, suppress=True):
        visit.lines(f"H(q) = {ball.hinge_map(q)}".replace("\n", "\n       "))
    h = 1e-5
    ahead, behind = (ball.hinge_map(ball.integrate(q, v, s)).T @ v for s in (h, -h))
    slope = (ahead - behind) / (2 * h)
    visit.check("bias is the derivative of H* v", _gap(ball.bias(q, v), slope), 1e-8)
    V = ball.hinge_map(q).T @ v
    rot = ball.pose(q).rot
    slip = rot @ V[3:] + np.cross(rot @ V[:3], [0.0, 0.0, -ball.radius])
    visit.check("the point of contact does not slip [m/s]", float(np.abs(slip).max()), 1e-15)


def made_from_it(visit: Visit) -> None:
    """From one mechanism others are made: locked, loaded, mounted, renumbered."""
    mech = visit.mech
    q = mech.random(1)
    tied = {
        split_coordinate(n, mech.hinge_index)[0]
        for c in mech.couplings
        for n in [c.dependent, *dict(c.terms)]
    }
    free = [b for b in mech.bodies if b.hinge.nv and b.hinge_name not in tied]
    if not free:
        visit.sorry("made from it", "all of its hinges are locked or coupled.")
        return
    tip = free[-1]
    held = mech.lock({tip.hinge_name: q[mech.q_slice(tip.hinge_name)]})
    load_kg = SpatialInertia.solid_sphere(2.0, 0.05)
    rows = [
        ["as it is", _size(mech)],
        [f"{tip.hinge_name} locked", _size(held)],
        ["and melted into the parent", _size(held.merge_locked())],
        ["released again", _size(held.release())],
        [f"with 2 kg on {tip.name}", f"{mech.with_payload(tip.name, load_kg).total_mass:.6g} kg"],
        [
            "a pendulum mounted on it",
            _size(mech.mount(models.pendulum(2), at=tip.name, prefix="mounted_")),
        ],
    ]
    visit.table(["mechanism", "gives"], rows)
    if mech.total_mass == 0.0:
        return
    again = mech.renumber([b.name for b in reversed(mech.bodies)])
    q_again = np.concatenate([q[mech.q_slice(b.hinge_name)] for b in again.bodies])
    gap = _com_gap(mech, q, again, q_again)
    visit.check("renumbered bodies: same centre of mass, relative", gap, 1e-12)


def files(visit: Visit) -> None:
    """Files: URDF and MJCF out and in again, the same physics."""
    robot = models.puma560()
    visit.example(f"a built-in robot, `{robot.name}`")
    q = robot.random(2)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("urdf", "xml"):
            path = Path(folder) / f"puma560.{ending}"
            report = save(robot, path)
            back = load(path)
            q_back = np.concatenate([q[robot.q_slice(b.hinge_name)] for b in back.bodies])
            visit.say(f"`{path.name}`: {path.stat().st_size} bytes; {report.summary()}.")
            gap = _com_gap(robot, q, back, q_back)
            visit.check(f"{path.name}: same centre of mass, relative", gap, 1e-12)


def mistakes(visit: Visit) -> None:
    """Mistakes are found and named, with a repair."""
    visit.example("a mechanism that is made wrong")
    builder = Builder("broken")
    thin = SpatialInertia.from_com(1.0, J_com=(0.1, 0.1, 0.9))
    builder.body("arm", "world", Pin((0, 1, 0)), inertia=thin).body("hand", "arm", Pin((1, 0, 0)))
    findings = builder.build().validate()
    for finding in findings:
        visit.say(str(finding))
    missed = {"triangle", "massless-tip"} - {finding.code for finding in findings}
    visit.check("findings missed", float(len(missed)), 0)


def papers(visit: Visit) -> None:
    """The source documents, executed: what the first of them prints wrong."""
    import linkwise_ledger as ledger

    visit.example("random trees")
    visit.say("All of them, equation by equation: `linkwise ledger`.")
    wrong = [entry for entry in ledger.entries("operator_algebra") if entry.status == "misprint"]
    for verdict in ledger.run(wrong):
        entry = verdict.entry
        visit.lines(f"{entry.number}\n    prints  {entry.printed}\n    holds   {entry.statement}")
        visit.check(f"{entry.number}: what holds, evaluated", verdict.error or 0.0, 1e-9)


def _size(mech: Mechanism) -> str:
    return f"{mech.n_bodies} bodies, nq = {mech.nq}, nv = {mech.nv}"


def _gap(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


def _com_gap(a: Mechanism, q_a: Any, b: Mechanism, q_b: Any) -> float:
    """Distance of two centres of mass, over the size of the mechanism."""
    size = max(1.0, float(np.abs(a.poses(q_a).p).max(initial=0.0)))
    return _gap(a.center_of_mass(q_a), b.center_of_mass(q_b)) / size
