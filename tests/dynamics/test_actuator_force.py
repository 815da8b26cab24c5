"""Actuators in continuous time: accelerations against MuJoCo, and their derivatives."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError

EPS = 1e-6
PIN = lw.hinges.Pin((0, 1, 0))


def arm(*actuators, drive=None, closed=False):
    """Two bodies on pins, with dampers and springs; in a loop if `closed`."""
    inertia = lw.SpatialInertia.from_com(1.5, (0.0, 0.02, 0.2), (0.02, 0.02, 0.005))
    drive = lw.Drive(damping=0.3, stiffness=2.0, armature=0.05) if drive is None else drive
    b = lw.Builder("arm").body("a", "world", PIN, inertia=inertia, drive=drive)
    axis = PIN if closed else lw.hinges.Pin((0.6, 0.8, 0))
    b.body("b", "a", axis, inboard=(0, 0, 0.4), inertia=inertia, drive=drive)
    b.node("tip", "b", (0.1, 0.0, 0.4)).node("anchor", "world", (0.5, 0.1, 0.3))
    if closed:
        b.body("c", "world", PIN, inboard=(0.3, 0, 0), inertia=inertia)
        b.node("b end", "b", (0.3, 0, 0)).node("c end", "c", (0, 0, 0.4))
        b.loop("loop", "b end", "c end", PIN)
    return b.actuator(*actuators).build()


KINDS = {
    "motor": lw.Actuator.motor("m", "a", gear=3.0),
    "servo": lw.Actuator.position("m", "b", kp=30.0, kv=2.0),
    "command out of range": lw.Actuator.motor("m", "b", gear=2.0, control=(-1.0, 0.3)),
    "force out of range": lw.Actuator.position("m", "a", kp=1e3, force=(-0.2, 0.3)),
    "affine gain": lw.Actuator("m", (("a", 2.0),), gain=(1.0, 0.5, -0.1), bias=(0.1, 0.3, -0.2)),
    "coupled": lw.Actuator("m", (("a", 0.5), ("b", -1.5)), gain=(2.0, 0.0, 0.0), bias=(0, -3.0, 0)),
    "node": lw.Actuator("m", node="tip", wrench=(0.0, 0.1, 0.0, 1.0, -2.0, 0.5)),
    "cable": lw.Actuator("m", cables=(("anchor", "tip", 1.5),), bias=(0.0, -40.0, -1.0)),
}
Q, V, TAU, U = np.array([0.4, -0.7]), np.array([0.5, 1.0]), np.array([0.2, -0.1]), np.array([0.7])


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_are_those_of_mujoco(kind, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    mech = arm(KINDS[kind])
    lw.save(mech, tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:], data.qfrc_applied[:] = Q, V, U, TAU
    mujoco.mj_forward(model, data)
    vdot = lw.forward_dynamics(mech, Q, V, TAU, passive=True, controls=U)
    np.testing.assert_allclose(vdot, data.qacc, rtol=0, atol=1e-9)
    without = lw.forward_dynamics(mech, Q, V, TAU, passive=True)
    assert np.abs(vdot - without).max() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passive", [True, False])
def test_derivatives_are_those_of_accelerations(kind, passive):
    mech, acting = arm(KINDS[kind]), {"passive": passive, "controls": U}
    check(mech, Q, V, TAU, acting)


def test_derivatives_with_loops_held():
    mech = arm(KINDS["servo"], closed=True)
    q, along = np.array([0.5, -0.5, 0.5]), np.array([1.0, -1.0, 1.0])  # a parallelogram
    v, acting = 0.7 * along, {"passive": True, "controls": U}
    model = lw.linearize(mech, q, v, np.zeros(3), **acting)

    def vdot(q, v):
        return lw.forward_dynamics(mech, q, v, np.zeros(3), **acting)

    e = EPS * along
    by_q, by_v = vdot(q + e, v) - vdot(q - e, v), vdot(q, v + e) - vdot(q, v - e)
    np.testing.assert_allclose(model.A[3:, :3] @ along, by_q / (2 * EPS), atol=1e-6)
    np.testing.assert_allclose(model.A[3:, 3:] @ along, by_v / (2 * EPS), atol=1e-6)
    bare = lw.linearize(mech, q, v, np.zeros(3))
    assert np.abs((bare.A - model.A)[3:]).max() > 1.0


def check(mech, q, v, tau, acting):
    n = mech.nv
    model = lw.linearize(mech, q, v, tau, **acting)
    slopes = lw.forward_dynamics_derivatives(mech, q, v, tau, **acting)

    def vdot(q, v, tau):
        return lw.forward_dynamics(mech, q, v, tau, **acting)

    for i, e in enumerate(EPS * np.eye(n)):
        columns = (
            (model.A[n:, i], slopes.q[:, i], vdot(q + e, v, tau) - vdot(q - e, v, tau)),
            (model.A[n:, n + i], slopes.v[:, i], vdot(q, v + e, tau) - vdot(q, v - e, tau)),
            (model.B[n:, i], slopes.tau[:, i], vdot(q, v, tau + e) - vdot(q, v, tau - e)),
        )
        for one, other, difference in columns:
            scale = 1.0 + np.abs(one).max()
            np.testing.assert_allclose(one, difference / (2 * EPS), rtol=0, atol=1e-6 * scale)
            np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12)


def test_batches_outputs_and_forces_go_along():
    mech, many = arm(KINDS["servo"], KINDS["cable"].__class__.motor("n", "a")), np.array([Q, 2 * Q])
    u = np.array([[0.1, 0.2], [0.3, 0.4]])
    push = {"tip": [0.0, 0.0, 0.0, 1.0, 2.0, 0.5]}
    both = lw.linearize(mech, many, V, TAU, controls=u, forces=push)
    for k in range(2):
        one = lw.linearize(mech, many[k], V, TAU, controls=u[k], forces=push)
        np.testing.assert_allclose(both.A[k], one.A, rtol=1e-12, atol=1e-12)
        vdot = lw.forward_dynamics(mech, many, V, TAU, controls=u, forces=push)[k]
        alone = lw.forward_dynamics(mech, many[k], V, TAU, controls=u[k], forces=push)
        np.testing.assert_allclose(vdot, alone, rtol=1e-12)


def test_mistakes_are_named():
    slow = lw.Actuator("slow", (("a", 1.0),), dynamics="filter", time_constant=0.1)
    for mech, controls, error, text in (
        (arm(), [1.0], ModelError, "has no actuators"),
        (arm(slow), [1.0], ModelError, "'slow' have an activation"),
        (arm(KINDS["motor"]), [1.0, 2.0], ShapeError, r"it must be \(1,\)"),
        (arm(KINDS["motor"]), [np.nan], ModelError, "not finite"),
    ):
        for function in (lw.forward_dynamics, lw.linearize, lw.forward_dynamics_derivatives):
            with pytest.raises(error, match=text):
                function(mech, Q, V, TAU, controls=controls)
