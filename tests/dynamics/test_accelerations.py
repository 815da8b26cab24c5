"""Accelerations of bodies and nodes: rates of velocities, matrices, Pinocchio, MuJoCo."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import H, a, a_g, phi, vdot
from linkwise.algebra.dense import Dense
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.sweeps.interpret import run
from tests.cases import TREES, close, state, states, tree
from tests.dense_kinematics import body_jacobians, node_jacobian
from tests.dynamics.oracle_state import (
    MUJOCO,
    PINOCCHIO,
    in_mujoco,
    in_pinocchio,
    spatial_force,
)

NODES = ("tool", "body_2")
PUSH = {"tool": np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0]), "body_1": np.arange(6.0)}


@cache
def small() -> lw.Mechanism:
    """A ball, a slide and a pin, branched, with armature."""
    kinds = ("spherical", "prismatic", "pin")
    mech = lw.models.random_tree(3, 5, hinges=kinds, branching=0.5)
    return mech.with_node("tool", mech.bodies[-1].name, lw.Pose.rpy((0.3, 0.5, -1), (0.1, 0.2, 0)))


def evaluated(mech, name, q, v, nodes=(), frame="node", **values):
    """A named quantity by the interpreter."""
    expr = lw.dynamics.expression(name, frame=frame)
    return run(lw.plan(expr), mech, q, v, nodes=nodes, values=values)


def rate(mech, q, v, x, value):
    """d/dt of something of (q, v) along the motion with v̇ = x; good to 1e-8 or so."""
    h = 1e-5
    ahead, behind = (value(mech.integrate(q, v + 0.5 * s * x, s), v + s * x) for s in (h, -h))
    return (ahead - behind) / (2.0 * h)


@pytest.mark.parametrize("name", TREES)
def test_they_are_rates_of_velocities(name):
    """Component by component, in the axes of each body; and gravity is no part of them."""
    mech = tree(name)
    q, v, x = state(mech)
    result = evaluated(mech, "body_accelerations", q, v, vdot=x).reshape(-1, 6)
    slopes = rate(mech, q, v, x, lambda q, v: body_jacobians(mech, q) @ v)
    close(result, slopes, 1e-7)
    other = evaluated(mech.with_gravity((1.0, 2.0, 3.0)), "body_accelerations", q, v, vdot=x)
    close(other.reshape(-1, 6), result, 1e-13)


@pytest.mark.parametrize("name", TREES)
def test_of_forces_and_of_the_motion_they_cause(name):
    """FD2: the same accelerations, without the joint accelerations in between."""
    mech = tree(name)
    q, v, x = state(mech, 1)
    motion = evaluated(mech, "forward_dynamics", q, v, tau=x)
    result = evaluated(mech, "body_accelerations_of_forces", q, v, tau=x)
    expected = Dense(mech, q, v, values={"vdot": motion})(phi.T @ (H.T @ vdot + a - a_g))
    close(result, expected, 1e-10)
    for frame in ("node", "world"):
        of_forces = evaluated(mech, "node_acceleration_of_forces", q, v, NODES, frame, tau=x)
        of_motion = evaluated(mech, "node_acceleration", q, v, NODES, frame, vdot=motion)
        close(of_forces, of_motion, 1e-10)


def node_velocity(mech, q, v, node, frame):
    turn = np.eye(3) if frame == "node" else mech.pose(q, node).rot
    return np.kron(np.eye(2), turn) @ node_jacobian(mech, q, node) @ v


@pytest.mark.parametrize("frame", ["node", "world"])
def test_what_the_kinds_are(frame):
    mech = small()
    q, v, x = state(mech)
    slope = np.concatenate(
        [rate(mech, q, v, x, lambda q, v, n=n: node_velocity(mech, q, v, n, frame)) for n in NODES]
    )
    close(lw.node_acceleration(mech, q, v, NODES, vdot=x, frame=frame), slope, 1e-7)
    J, J_dot_v = (
        lw.jacobian(mech, q, NODES, frame=frame),
        lw.dynamics.jacobian_bias(mech, q, v, NODES, frame=frame),
    )
    close(lw.node_acceleration(mech, q, v, NODES, vdot=x, frame=frame), J @ x + J_dot_v, 1e-12)
    # The classical one is the second derivative of the position, turned into the axes asked for.
    result = lw.node_acceleration(mech, q, v, "tool", vdot=x, frame=frame, kind="classical")
    second = rate(mech, q, v, x, lambda q, v: node_velocity(mech, q, v, "tool", "world")[3:])
    turn = np.eye(3) if frame == "world" else mech.pose(q, "tool").rot.T
    close(result[3:], turn @ second, 1e-7)
    # The spatial one in world axes is that in node axes, turned.
    ours = lw.node_acceleration(mech, q, v, "tool", vdot=x, kind="spatial")
    turned = lw.node_acceleration(mech, q, v, "tool", vdot=x, kind="spatial", frame="world")
    close(turned, np.kron(np.eye(2), mech.pose(q, "tool").rot) @ ours, 1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("frame", ["node", "world"])
@pytest.mark.parametrize("axes", ["node", "world"])
def test_with_forces_at_other_nodes(axes, frame):
    mech = small()
    q, v, x = state(mech)
    motion = lw.forward_dynamics(mech, q, v, x, forces=PUSH, forces_frame=axes)
    ask = {"tau": x, "forces": PUSH, "forces_frame": axes}
    alpha = lw.dynamics.body_accelerations(mech, q, v, **ask)
    close(alpha, lw.dynamics.body_accelerations(mech, q, v, vdot=motion), 1e-11)
    ask["frame"] = frame
    for nodes in (NODES, "body_2"):
        result = lw.node_acceleration(mech, q, v, nodes, **ask)
        close(result, lw.node_acceleration(mech, q, v, nodes, vdot=motion, frame=frame), 1e-11)
    many = lw.node_acceleration(mech, np.stack([q, q]), v, NODES, kind="classical", **ask)
    one = lw.node_acceleration(mech, q, v, NODES, vdot=motion, frame=frame, kind="classical")
    close(many, np.stack([one, one]), 1e-11)


def test_batches_and_places():
    mech = small()
    q, v, x = states(mech, 5)
    result = lw.dynamics.body_accelerations(mech, q, v, vdot=x)
    assert result.shape == (5, 3, 6)
    for i in range(5):
        close(result[i], lw.dynamics.body_accelerations(mech, q[i], v[i], vdot=x[i]), 1e-13)
    out = np.empty((5, 3, 6))
    assert lw.dynamics.body_accelerations(mech, q, v, vdot=x, out=out) is out
    close(out, result, 1e-15)
    many = lw.node_acceleration(mech, q[0], v[0], "tool", vdot=x, kind="classical")
    assert many.shape == (5, 6)
    close(
        many[2], lw.node_acceleration(mech, q[0], v[0], "tool", vdot=x[2], kind="classical"), 1e-13
    )
    status = np.empty(5, dtype=np.int32)
    v[3, 0] = np.nan
    many = lw.node_acceleration(mech, q, v, "tool", vdot=x, frame="world", status=status)
    assert status.tolist() == [0, 0, 0, 1, 0] and np.isnan(many[3]).all()


def test_what_cannot_be_meant():
    mech = small()
    q, v, x = state(mech)
    with pytest.raises(ModelError, match="body_accelerations was given neither of vdot and tau"):
        lw.dynamics.body_accelerations(mech, q, v)
    with pytest.raises(TypeError, match="positional"):  # is it vdot or tau?
        lw.dynamics.body_accelerations(mech, q, v, x)  # type: ignore[misc]
    with pytest.raises(ModelError, match="forces_frame is 'body'; it must be 'node' or 'world'"):
        lw.dynamics.body_accelerations(mech, q, v, vdot=x, forces_frame="body")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="forces_frame is 'body'; it must be 'node' or 'world'"):
        lw.node_acceleration(mech, q, v, "tool", vdot=x, forces_frame="body")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="node_acceleration was given both of vdot and tau"):
        lw.node_acceleration(mech, q, v, "tool", vdot=x, tau=x)
    with pytest.raises(ModelError, match=r"forces at tool.*Give tau= instead"):
        lw.dynamics.body_accelerations(mech, q, v, vdot=x, forces={"tool": np.zeros(6)})
    with pytest.raises(ModelError, match="kind is 'proper'; it must be 'rate', 'classical' or"):
        lw.node_acceleration(mech, q, v, "tool", vdot=x, kind="proper")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no node or body called 'hand'"):
        lw.node_acceleration(mech, q, v, "hand", vdot=x)
    with pytest.raises(ShapeError, match=r"out has shape \(3, 5\)"):
        lw.dynamics.body_accelerations(mech, q, v, vdot=x, out=np.zeros((3, 5)))
    bent, ball = q.copy(), next(b for b in mech.bodies if b.hinge.quaternion is not None)
    bent[mech.q_slice(ball.hinge_name)] *= 1.1
    with pytest.raises(ModelError, match=f"quaternion of body '{ball.name}' is not of unit length"):
        lw.dynamics.body_accelerations(mech, bent, v, vdot=x)


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.oracle
@pytest.mark.parametrize("name", PINOCCHIO)
def test_with_pinocchio(name):
    import pinocchio as pin

    it = in_pinocchio(name)
    pin.forwardKinematics(it.model, it.data, it.q_pin, it.v_pin, it.accelerated(it.x))
    pin.updateFramePlacements(it.model, it.data)
    result = evaluated(it.mech, "body_accelerations", it.q, it.v, vdot=it.x).reshape(-1, 6)
    for ours, body in zip(result, it.mech.bodies, strict=True):
        if body.hinge.nv:
            theirs = it.placed(body.name).actInv(it.data.a[it.joint(body.name)])
            close(ours, spatial_force(theirs.vector), 1e-10)
    hand = it.mech.bodies[-1].name
    number = it.model.getFrameId(hand)
    local, aligned = pin.ReferenceFrame.LOCAL, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    spatial = pin.getFrameAcceleration(it.model, it.data, number, local).vector
    classical = pin.getFrameClassicalAcceleration(it.model, it.data, number, aligned).vector
    result = evaluated(it.mech, "node_acceleration", it.q, it.v, (hand,), vdot=it.x)
    close(result, spatial_force(spatial), 1e-10)
    result = evaluated(it.mech, "node_acceleration", it.q, it.v, (hand,), "world", vdot=it.x)
    V = node_velocity(it.mech, it.q, it.v, hand, "world")
    result[3:] += np.cross(V[:3], V[3:])
    close(result, spatial_force(classical), 1e-10)


@pytest.mark.oracle
@pytest.mark.parametrize("source", MUJOCO)
def test_with_mujoco(source):
    """Accelerations that forces cause; MuJoCo has them less gravity, as an accelerometer would."""
    import mujoco

    it = in_mujoco(source)
    number, six = it.model.site(it.site).id, np.zeros(6)
    kind = mujoco.mjtObj.mjOBJ_SITE
    for ours, frame in ((0, "world"), (1, "node")):
        mujoco.mj_objectAcceleration(it.model, it.data, kind, number, six, ours)
        turn = np.eye(3) if frame == "world" else it.mech.pose(it.q, it.site).rot.T
        theirs = six + np.concatenate([np.zeros(3), turn @ it.mech.gravity])
        result = lw.node_acceleration(
            it.mech, it.q, it.v, it.site, tau=it.tau, frame=frame, kind="classical"
        )
        close(result, theirs, 1e-10)
