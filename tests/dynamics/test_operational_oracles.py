"""Operational space and control laws beside Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.cases import close
from tests.dynamics.test_oracles import MJCF, ROTATED, robot

pytestmark = pytest.mark.oracle

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")


def their_jacobian(it, names):
    import pinocchio as pin

    local = pin.ReferenceFrame.LOCAL
    numbers = [it.model.getFrameId(name, pin.FrameType.BODY) for name in names]
    result = [
        pin.computeFrameJacobian(it.model, it.data, it.q_pin, number, local) for number in numbers
    ]
    return np.vstack([jacobian[ROTATED] for jacobian in result])


def their_inverse(it):
    import pinocchio as pin

    result = np.array(pin.computeMinverse(it.model, it.data, it.q_pin))
    return np.triu(result) + np.triu(result, 1).T


@pytest.mark.prove
def test_four_feet_on_one_trunk():
    """24 directions and 18 freedoms: cross terms between the legs, and six directions less."""
    it = robot("solo12.urdf")
    J, inverse = their_jacobian(it, FEET), their_inverse(it)
    space = lw.operational_space(it.mech, it.q, FEET)
    yielding = J @ inverse @ J.T
    close(space.inverse, yielding, 1e-10)
    assert np.abs(yielding[:6, 6:12]).max() > 1e-3 * np.abs(yielding).max()
    assert space.rank == np.linalg.matrix_rank(J) == 18
    basis = np.linalg.svd(J)[0][:, :18]
    half = np.linalg.qr(np.linalg.cholesky(inverse).T @ J.T @ basis)[1]
    root = np.linalg.solve(half.T, basis.T)
    close(space.inertia, root.T @ root, 1e-10)


def test_pinocchio_finds_the_motion_that_computed_torque_asks_for():
    """Their forward dynamics of our torque is the wanted acceleration, on a floating base too."""
    import pinocchio as pin

    it = robot("solo12.urdf")
    q_d = it.mech.integrate(it.q, 0.2 * it.x, 1.0)
    v_d = 0.5 * it.v
    tau = lw.computed_torque(it.mech, it.q, it.v, q_d, v_d, it.x, kp=9.0, kv=6.0)
    theirs = pin.aba(it.model, it.data, it.q_pin, it.v_pin, it.layout.force_to(it.q, tau))
    expected = it.x + 6.0 * (v_d - it.v) + 9.0 * it.mech.difference(it.q, q_d)
    close(it.layout.v_from(it.q, theirs), expected, 1e-9)


def test_wen_bayard_has_the_coriolis_matrix_of_pinocchio():
    """Hinges of one freedom: their matrix is the one of Christoffel, and so is ours."""
    import pinocchio as pin

    it = robot("ur5_robot.urdf")
    v_d = 0.7 * it.x
    theirs = np.array(pin.computeCoriolisMatrix(it.model, it.data, it.q_pin, it.v_pin)) @ v_d
    rest = pin.rnea(it.model, it.data, it.q_pin, 0.0 * it.v_pin, it.x_pin)
    tau = lw.papers.wen_bayard(it.mech, it.q, it.v, it.q, v_d, it.x, kp=0.0, kv=0.0)
    close(tau, theirs + rest, 1e-10)


@pytest.mark.prove
def test_two_branches_in_mujoco(tmp_path):
    """Their Jacobians in world axes and their mass matrix: a foot and a tail on a free trunk."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF, encoding="utf-8")
    mech, model = lw.load(path), mujoco.MjModel.from_xml_string(MJCF)
    data, layout = mujoco.MjData(model), lw.convert.mujoco_layout(mech, model)
    q = mech.random(3)
    data.qpos[:] = layout.q_to(q)
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    J = np.zeros((4, 3, model.nv))
    mujoco.mj_jacSite(model, data, J[1], J[0], model.site("foot").id)
    mujoco.mj_jacBody(model, data, J[3], J[2], model.body("tail").id)
    J = J.reshape(12, -1)
    yielding = J @ np.linalg.solve(full, J.T)
    space = lw.operational_space(mech, q, ["foot", "tail"], frame="world")
    close(space.inverse, yielding, 1e-10)
    assert space.rank == np.linalg.matrix_rank(J) == 11
    close(space.inertia, np.linalg.pinv(yielding, rcond=1e-11), 1e-9)
