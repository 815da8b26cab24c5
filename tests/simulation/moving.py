"""Mechanisms and plain references for tests of motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.simulation import stepper
from linkwise.simulation.integrators import INTEGRATORS
from linkwise.simulation.rates import in_rates, rates, velocities


def tumbling() -> lw.Mechanism:
    """A free body with a ball joint and a pin, so that turns that do not commute matter."""
    build = lw.Builder("tumbling")
    heavy = lw.SpatialInertia.from_com(2.0, (0.1, 0.05, -0.02), (0.1, 0.2, 0.25))
    build.body("base", hinge=lw.hinges.Free(), inertia=heavy)
    middle = lw.SpatialInertia.from_com(1.0, (0.2, -0.1, 0.1), (0.05, 0.04, 0.02))
    build.body(
        "arm", parent="base", hinge=lw.hinges.Spherical(), inboard=(0.3, 0.1, 0.0), inertia=middle
    )
    light = lw.SpatialInertia.from_com(0.5, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))
    build.body(
        "tip", parent="arm", hinge=lw.hinges.Pin((0, 1, 0)), inboard=(0.3, 0, 0), inertia=light
    )
    return build.build()


def other_hinges() -> lw.Mechanism:
    """Hinges that move by rules of their own: a planar one, and a rolling ball."""
    build = lw.Builder("other hinges")
    heavy = lw.SpatialInertia.from_com(2.0, (0.1, 0.05, 0.02), (0.1, 0.2, 0.25))
    build.body("plate", hinge=lw.hinges.Planar(), inertia=heavy)
    middle = lw.SpatialInertia.from_com(1.0, (0.02, -0.01, 0.01), (0.05, 0.04, 0.02))
    build.body("ball", parent="plate", hinge=lw.hinges.RollingBall(0.2), inertia=middle)
    light = lw.SpatialInertia.from_com(0.5, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))
    build.body(
        "rod", parent="plate", hinge=lw.hinges.Universal(), inboard=(0.3, 0, 0), inertia=light
    )
    return build.build()


def pendulum(length: float = 0.8, mass: float = 1.5, **drive: float) -> lw.Mechanism:
    """A point on a rod without mass that swings about y, hanging down at q = 0."""
    build = lw.Builder("pendulum")
    bob = lw.SpatialInertia.from_com(mass, (0.0, 0.0, -length), (0.0, 0.0, 0.0))
    build.body(
        "rod",
        hinge=lw.hinges.Pin((0, 1, 0)),
        hinge_name="swing",
        inertia=bob,
        drive=lw.Drive(**drive),
    )
    build.node("bob", "rod", pose=(0.0, 0.0, -length))
    return build.build()


def mass_on_spring(mass: float = 2.0, **drive: float) -> lw.Mechanism:
    """A mass that slides along z, with gravity along -z."""
    build = lw.Builder("slider")
    lump = lw.SpatialInertia.from_com(mass, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    build.body(
        "mass",
        hinge=lw.hinges.Prismatic((0, 0, 1)),
        hinge_name="slide",
        inertia=lump,
        drive=lw.Drive(**drive),
    )
    build.node("foot", "mass")
    return build.build()


def reference(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, duration: float, force=None):
    """q and v after a while: q̇ and v̇ as one plain equation, with quaternions as four numbers."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        q, v = mech.normalise(y[: mech.nq]), y[mech.nq :]
        tau = np.zeros(mech.nv) if force is None else force(t, q, v)
        return np.concatenate([mech.qdot(q, v), lw.forward_dynamics(mech, q, v, tau)])

    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}
    end = solve_ivp(rate, (0.0, duration), np.concatenate([q, v]), **options).y[:, -1]
    return mech.normalise(end[: mech.nq]), end[mech.nq :]


def distance(mech: lw.Mechanism, a, b) -> float:
    """How far two states (q, v) are from each other; poses for hinges that are not holonomic."""
    apart = [x.p - y.p for x, y in zip(poses(mech, a[0]), poses(mech, b[0]), strict=True)]
    turned = [x.rot - y.rot for x, y in zip(poses(mech, a[0]), poses(mech, b[0]), strict=True)]
    parts = [np.ravel(x) for x in (*apart, *turned, a[1] - b[1])]
    return float(np.linalg.norm(np.concatenate(parts)))


def poses(mech: lw.Mechanism, q: np.ndarray):
    """Poses of all bodies."""
    return [mech.pose(q, body.name) for body in mech.bodies]


def rk4_step(mech, f, t, q, v, h):
    """q and v after a step of Runge and Kutta along accelerations f(t, q, v)."""
    step = INTEGRATORS["rk4"].step
    q, u = step(mech, in_rates(mech, f), t, q, rates(mech, q, v), h)
    return q, velocities(mech, q, u)


@dataclass(frozen=True, eq=False)
class Given:
    """The request for a kernel of segments that are there already; it is not filed."""

    mech: lw.Mechanism
    content: Any
    itemsize: int = 8
    alone: bool = False

    @property
    def integrator(self):
        return self.content.integrator

    def stepping(self, target):
        return self.content


def calls_of_kernels(monkeypatch):
    """A list that receives the number of steps of each call of a kernel."""
    steps, make, prepare = list[int](), MotionKernel.run, MotionKernel.repeated

    def repeated(kernel, q, v, held, course, out=None):
        call, done = prepare(kernel, q, v, held, course, out)
        return lambda: (steps.append(course.steps), call())[1], done

    monkeypatch.setattr(MotionKernel, "run", lambda *x: (steps.append(x[5]), make(*x))[1])
    monkeypatch.setattr(MotionKernel, "repeated", repeated)
    return steps


def steps_by_kernel(monkeypatch, compiled):
    """Let `lw.simulate` make all steps by a kernel, or none."""
    monkeypatch.setattr(stepper, "worth_compiling", lambda *_, **__: compiled)
