"""Task spaces against references that Pinocchio makes: crba, nle, frame Jacobians and their rates.

Everything that goes into the reference is Pinocchio's: mass matrix, gravity, bias, poses, Jacobians
in LOCAL_WORLD_ALIGNED and LOCAL, and classical accelerations at zero joint acceleration for J̇ v.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from tests.cases import close
from tests.dynamics.oracle_state import PINOCCHIO, InPinocchio, in_pinocchio
from tests.oracles.pinocchio_oracle import SWAPPED
from tests.tasks.dense_task import Node, World, space_of
from tests.tasks.task_cases import cases, tasks_of

pytestmark = pytest.mark.oracle

BOUND = 1e-10

KINDS = ("pose", "oblique", "direction", "relative, node axes", "stack")
QUICK = (
    ("branched pins", "relative, node axes"),
    ("panda.urdf", "pose"),
    ("panda.urdf", "stack"),
)
"""Kernels take a second or two for each; the others are marked slow."""

REST = [(name, kind) for name in PINOCCHIO for kind in KINDS if (name, kind) not in QUICK]
EVERY = [*QUICK, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in REST)]
SOME = [
    pytest.param(name, marks=() if name == "panda.urdf" else pytest.mark.slow) for name in PINOCCHIO
]


def their_frame(it: InPinocchio, name: str) -> int:
    import pinocchio as pin

    if it.model.existBodyName(name):
        return it.model.getFrameId(name, pin.FrameType.BODY)
    return it.model.getFrameId(name)


@cache
def their_world(name: str) -> tuple[InPinocchio, World, str, str]:
    """The matrices of Pinocchio in our order of freedoms, for two nodes."""
    import pinocchio as pin

    it = in_pinocchio(name)
    mech, model, data = it.mech, it.model, it.data
    last = "tool" if "tool" in mech.node_index else mech.bodies[-1].name
    other = mech.bodies[mech.n_bodies // 2].name
    still = np.zeros(model.nv)
    pin.forwardKinematics(model, data, it.q_pin, it.v_pin, still)
    pin.updateFramePlacements(model, data)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    nodes = {}
    for node in (last, other):
        number = their_frame(it, node)
        acceleration = pin.getFrameClassicalAcceleration(model, data, number, aligned).vector
        J = pin.computeFrameJacobian(model, model.createData(), it.q_pin, number, aligned)
        nodes[node] = Node(
            data.oMf[number].rotation,
            data.oMf[number].translation,
            J[SWAPPED] @ it.T,
            acceleration[SWAPPED],
        )
    nodes["world"] = Node(np.eye(3), np.zeros(3), np.zeros((6, mech.nv)), np.zeros(6))
    fresh = model.createData()
    mass = np.array(pin.crba(model, fresh, it.q_pin))
    mass = np.triu(mass) + np.triu(mass, 1).T
    gravity = pin.computeGeneralizedGravity(model, fresh, it.q_pin)
    bias = pin.nonLinearEffects(model, fresh, it.q_pin, it.v_pin)
    world = World(nodes, it.T.T @ mass @ it.T, it.T.T @ (bias - gravity), it.T.T @ gravity, it.v)
    return it, world, last, other


@pytest.mark.few(2, 10)
@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_task_space(name, kind):
    it, world, node, other = their_world(name)
    mech, q, v = it.mech, it.q, it.v
    some = cases(mech, node, other)[kind]
    tasks, theirs = tasks_of(some), space_of(world, [case.dense(mech, world) for case in some])
    close(lw.tasks.task_jacobian(mech, q, tasks), theirs.J, 1e-12)
    far = max(np.abs(part.gamma).max() for part in world.nodes.values())
    close(lw.tasks.task_bias(mech, q, v, tasks), theirs.gamma, 1e-10, scale=far)
    dynamics = lw.tasks.task_dynamics(mech, q, v, tasks)
    space = dynamics.space
    assert space.rank == theirs.rank
    close(space.inverse, theirs.yielding, 1e-10)
    close(space.inertia, theirs.inertia, BOUND)
    close(space.consistent_inverse, theirs.consistent_inverse, BOUND)
    close(space.null_space, theirs.null_space, BOUND, scale=1.0)
    forces = np.abs(theirs.consistent_inverse.T @ world.coriolis).max()
    forces += np.abs(theirs.inertia @ theirs.gamma).max() + np.abs(theirs.gravity).max()
    close(dynamics.coriolis, theirs.coriolis, BOUND, scale=forces)
    close(dynamics.gravity, theirs.gravity, BOUND, scale=forces)
    expected = theirs.span @ np.linspace(1.0, -2.0, theirs.rank)
    tau = lw.tasks.task_torque(mech, q, v, tasks, expected, tau0=it.x)
    full = theirs.torque(expected, it.x)
    close(tau, full, BOUND, scale=np.abs(theirs.J.T).max() * forces + np.abs(full).max())


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SOME)
def test_their_forward_dynamics_has_the_wanted_acceleration(name):
    """aba with our torque, their frame acceleration: ẍ of the position, in world axes."""
    import pinocchio as pin

    it, world, node, _ = their_world(name)
    task = lw.Task.position(node)
    space = lw.tasks.task_space(it.mech, it.q, task)
    expected = space.directions @ np.linspace(1.0, -2.0, space.rank)
    tau = lw.tasks.task_torque(it.mech, it.q, it.v, task, expected, tau0=it.x)
    there = np.linalg.solve(it.T.T, tau)  # forces go by the inverse adjoint
    data = it.model.createData()
    vdot = pin.aba(it.model, data, it.q_pin, it.v_pin, there)
    pin.forwardKinematics(it.model, data, it.q_pin, it.v_pin, vdot)
    pin.updateFramePlacements(it.model, data)
    frame, aligned = their_frame(it, node), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    result = pin.getFrameClassicalAcceleration(it.model, data, frame, aligned).linear
    lost = space.lost @ space.lost.T @ world.nodes[node].gamma[3:]
    close(
        result, expected + lost, 1e-9, scale=np.abs(world.nodes[node].J).max() * np.abs(vdot).max()
    )


@pytest.mark.parametrize("name", SOME)
def test_local_jacobians_are_tasks_in_node_axes(name):
    import pinocchio as pin

    it, _, node, _ = their_world(name)
    local = pin.ReferenceFrame.LOCAL
    data = it.model.createData()
    J = pin.computeFrameJacobian(it.model, data, it.q_pin, their_frame(it, node), local)
    result = lw.tasks.task_jacobian(it.mech, it.q, lw.Task.pose(node, axes="node"))
    close(result, J[SWAPPED] @ it.T, 1e-12)


@pytest.mark.parametrize("name", ["panda.urdf"])
def test_rates_of_their_jacobians(name):
    """J̇ v by their matrix J̇ in both axes: hinges turn about axes that are constant."""
    import pinocchio as pin

    it, _, node, _ = their_world(name)
    data = it.model.createData()
    pin.computeJointJacobiansTimeVariation(it.model, data, it.q_pin, it.v_pin)
    pin.forwardKinematics(it.model, data, it.q_pin, it.v_pin)
    pin.updateFramePlacements(it.model, data)
    frame = their_frame(it, node)
    for axes, view in (
        ("reference", pin.ReferenceFrame.LOCAL_WORLD_ALIGNED),
        ("node", pin.ReferenceFrame.LOCAL),
    ):
        rate = pin.getFrameJacobianTimeVariation(it.model, data, frame, view)
        result = lw.tasks.task_bias(it.mech, it.q, it.v, lw.Task.pose(node, axes=axes))
        close(result, (rate @ it.v_pin)[SWAPPED], 1e-12)
