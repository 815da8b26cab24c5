"""Plain physics, written as expressions and swept by the interpreter, against Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from tools.corpus import find_urdf

import linkwise as lw
from linkwise.algebra import B, J, a, bias, f, mass, phi, tau, vdot
from linkwise.algebra.expr import Expr
from linkwise.errors import ParseError, SingularHingeError
from linkwise.io.load import load
from linkwise.model.hinges import Free
from linkwise.pipeline import derive, plan
from linkwise.spatial.array import Array
from linkwise.sweeps.interpret import run
from tests import cases
from tests.oracles.pinocchio_oracle import SWAPPED, read_model, to_pinocchio, velocity_order

pytestmark = pytest.mark.oracle
pin = pytest.importorskip("pinocchio")

FILES = find_urdf()
FLOATING = [
    *(
        "a1.urdf",
        "hyq_no_sensors.urdf",
        "talos_reduced.urdf",
        "simple_humanoid.urdf",
        "solo12.urdf",
    ),
    *("g1_29dof_rev_1_0.urdf", "anymal-kinova.urdf", "borinot_flying_arm_2.urdf", "icub.urdf"),
]
close = partial(cases.close, bound="libraries")
TOLERANCE = cases.BOUNDS["libraries"]


@cache
def swept(expr: Expr) -> Any:
    """The program of the cheapest form."""
    return plan(derive(expr).result)


@dataclass
class Robot:
    """A mechanism and Pinocchio's model of the same file, in the same state."""

    mech: lw.Mechanism
    model: Any
    seed: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.q = self.mech.random(rng)
        self.v = rng.standard_normal(self.mech.nv)
        self.tau = rng.standard_normal(self.mech.nv) * 10.0
        self.vdot = rng.standard_normal(self.mech.nv)
        self.order = velocity_order(self.mech, self.model)
        self.data = self.model.createData()
        self.q_pin = to_pinocchio(self.mech, self.model, self.q)
        self.names = [self.mech.bodies[-1].name, self.mech.bodies[0].name]
        self.f = rng.standard_normal(6 * len(self.names)) * 5.0

    def theirs(self, ours: Array) -> Array:
        out = np.zeros(self.model.nv)
        out[self.order] = ours
        return out

    def run(self, expr: Expr, **given: Array) -> Array:
        values = {"tau": self.tau, "vdot": self.vdot, "f": self.f, **given}
        return run(swept(expr), self.mech, self.q, self.v, nodes=self.names, values=values)

    def jacobian(self, name: str) -> Array:
        """Rows (angular, linear) in the axes of the body, columns in our order."""
        frame = self.model.getFrameId(name, pin.FrameType.BODY)
        full = pin.computeFrameJacobian(
            self.model, self.data, self.q_pin, frame, pin.ReferenceFrame.LOCAL
        )
        return full[np.ix_(SWAPPED, self.order)]

    def forces(self) -> Any:
        """The force at each named body, as Pinocchio takes it: in the frame of its joint."""
        zero = pin.Force(np.zeros(6))
        result = pin.StdVec_Force()
        result.extend([zero] * self.model.njoints)
        for name, ours in zip(self.names, self.f.reshape(-1, 6), strict=True):
            frame = self.model.frames[self.model.getFrameId(name, pin.FrameType.BODY)]
            joint = frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent
            result[joint] = result[joint] + frame.placement.act(pin.Force(ours[SWAPPED]))
        return result


def robot(name: str, *, free: bool = False) -> Robot:
    path = FILES[name]
    mech = load(path, base="free" if free else "fixed")
    if mech.n_bodies == 0:
        pytest.skip("nothing in it moves")
    return Robot(mech, read_model(path, free=free))


def compared(it: Robot) -> None:
    model, data, q, v = it.model, it.data, it.q_pin, it.theirs(it.v)
    M_pin = pin.crba(model, data, q)
    M_pin = (np.triu(M_pin) + np.triu(M_pin, 1).T)[np.ix_(it.order, it.order)]
    close(it.run(mass), M_pin)
    close(it.run(bias), pin.nonLinearEffects(model, data, q, v)[it.order])
    inverse_dynamics = pin.rnea(model, data, q, v, it.theirs(it.vdot))[it.order]
    close(it.run(mass @ vdot + bias), inverse_dynamics)
    for k, name in enumerate(it.names):
        close(it.run(J)[6 * k : 6 * k + 6], it.jacobian(name))
    condition = np.linalg.cond(M_pin)
    if condition > 1e15:  # links without mass at the tips: nothing resists their hinges
        with pytest.raises(SingularHingeError, match="nothing resists"):
            it.run(mass.inv @ (tau - bias))
        return
    forward_dynamics(it, M_pin, v)
    if condition < 1e5:
        M_inv = np.linalg.inv(M_pin)
        close(it.run(mass.inv), M_inv)
        J_pin = np.vstack([it.jacobian(name) for name in it.names])
        close(it.run(J @ mass.inv @ J.T), J_pin @ M_inv @ J_pin.T)


def forward_dynamics(it: Robot, M_pin: Array, v: Array) -> None:
    """Accelerations; where the mass matrix is badly conditioned, the forces they need."""
    model, data, q = it.model, it.data, it.q_pin
    for expr, extra in (
        (mass.inv @ (tau - bias), ()),
        (mass.inv @ (tau - bias + J.T @ f), (it.forces(),)),
    ):
        ours = it.run(expr)
        theirs = pin.aba(model, data, q, v, it.theirs(it.tau), *extra)[it.order]
        back = pin.rnea(model, data, q, v, it.theirs(ours), *extra)[it.order]
        size = np.abs(M_pin) @ np.abs(ours) + np.abs(it.tau) + np.abs(it.run(bias))
        assert np.abs(back - it.tau).max() < TOLERANCE * size.max()
        if np.linalg.cond(M_pin) < 1e5:
            close(ours, theirs)


def _loads(name: str) -> bool:
    try:
        load(FILES[name])
    except ParseError:
        return False
    return True


@pytest.mark.few(8)
@pytest.mark.parametrize("name", [n for n in FILES if "talos_full" not in n and "dual" not in n])
def test_fixed_base(name):
    if not _loads(name):
        pytest.skip("the file contradicts itself")
    compared(robot(name))


@pytest.mark.few(5)
@pytest.mark.parametrize("short", FLOATING)
def test_floating_base(short):
    name = next(n for n in FILES if n.endswith("/" + short))
    it = robot(name, free=True)
    assert isinstance(it.mech.bodies[0].hinge, Free)
    compared(it)


@pytest.mark.parametrize("short", ["ur5_robot.urdf", "panda.urdf", "kinova.urdf", "xarm7.urdf"])
def test_operational_space_inertia(short):
    """Λ = (J 𝓜⁻¹ J*)⁻¹ of the hand, a dense inverse of a small matrix that sweeps give."""
    it = robot(next(n for n in FILES if n.endswith("/" + short)))
    it.names = it.names[:1]
    it.f = it.f[:6]
    M_pin = pin.crba(it.model, it.data, it.q_pin)
    M_pin = (np.triu(M_pin) + np.triu(M_pin, 1).T)[np.ix_(it.order, it.order)]
    J_pin = it.jacobian(it.names[0])
    small = J_pin @ np.linalg.solve(M_pin, J_pin.T)
    if np.linalg.cond(small) > 1e6:
        pytest.skip("the hand is near a singularity")
    close(it.run((J @ mass.inv @ J.T).inv), np.linalg.inv(small))


def test_gravity_alone():
    """At rest the bias is what gravity does."""
    name = next(n for n in FILES if n.endswith("/ur5_robot.urdf"))
    it = robot(name)
    it.v = np.zeros(it.mech.nv)
    close(it.run(bias), pin.computeGeneralizedGravity(it.model, it.data, it.q_pin)[it.order])
    assert np.abs(it.run(bias)).max() > 1.0


def test_acceleration_of_a_body():
    """α = φ* (H* v̇ + a) at a body, less gravity, is Pinocchio's classical frame acceleration."""
    name = next(n for n in FILES if n.endswith("/simple_humanoid.urdf"))
    it = robot(name, free=True)
    it.names = it.names[:1]
    ours = it.run(J @ vdot + B.T @ phi.T @ a)
    pin.forwardKinematics(it.model, it.data, it.q_pin, it.theirs(it.v), it.theirs(it.vdot))
    frame = it.model.getFrameId(it.names[0], pin.FrameType.BODY)
    theirs = pin.getFrameAcceleration(it.model, it.data, frame, pin.ReferenceFrame.LOCAL)
    rot = it.mech.pose(it.q, it.names[0]).rot
    lifted = theirs.vector[SWAPPED] + np.concatenate([np.zeros(3), rot.T @ [0.0, 0.0, 9.81]])
    close(ours, lifted)
