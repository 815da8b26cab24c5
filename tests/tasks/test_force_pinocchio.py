"""Motion and force control of a panda whose forward dynamics is Pinocchio's."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.oracle_state import in_pinocchio
from tests.oracles.pinocchio_oracle import SWAPPED

pytestmark = pytest.mark.oracle

NORMAL = np.array([0.48, -0.36, 0.8])


@pytest.mark.parametrize("kind", ["pose", "position"])
def test_equations_15_and_16_in_their_forward_dynamics(kind):
    """aba with our torque and a wrench at the hand; their acceleration of its frame."""
    pin = pytest.importorskip("pinocchio")
    it = in_pinocchio("panda.urdf")
    mech, model, data, q, v = it.mech, it.model, it.data, it.q, it.v
    node = mech.bodies[-1].name
    task = lw.Task.pose(node) if kind == "pose" else lw.Task.position(node)
    m = len(task.rows)
    servo = lw.tasks.ForceServo(kf=0.07, kv=31.0)
    selection = lw.tasks.Selection.along_normal(NORMAL)
    controller = lw.tasks.MotionForceController(
        mech, task, selection, kp=90.0, kv=17.0, servo=servo, posture=lw.tasks.Posture.damping(3.0)
    )
    rng = np.random.default_rng(3)
    sensed, accelerate = 15.0 * rng.normal(size=6), rng.normal(size=m)
    moving = lw.tasks.task_velocity(mech, q, v, task)
    tau = controller.torque(
        q, v, goal=lw.tasks.task_position(mech, q, task), velocity=moving,
        acceleration=accelerate, force=20.0, contact=sensed,
    )  # fmt: skip

    number = model.getFrameId(node)
    aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    J = pin.computeFrameJacobian(model, model.createData(), it.q_pin, number, aligned)[SWAPPED]
    pushed = J.T @ sensed
    vdot = pin.aba(model, data, it.q_pin, it.v_pin, it.T @ tau + pushed)
    pin.forwardKinematics(model, data, it.q_pin, it.v_pin, vdot)
    result = pin.getFrameClassicalAcceleration(model, data, number, aligned).vector[SWAPPED]
    happens = result if kind == "pose" else result[3:]

    along = np.zeros(m)
    along[-3:] = NORMAL
    exerted = -NORMAL @ sensed[3:]
    # 20 N against the normal are wanted: along it, f_d = - 20.
    active = servo.kf * (-20.0 - exerted) - servo.kv * (along @ moving)
    expected = accelerate + along * (active - along @ accelerate)
    scale = 1.0 + np.abs(expected).max() + np.abs(pushed).max()
    assert np.allclose(happens, expected, rtol=0.0, atol=1e-10 * scale)
