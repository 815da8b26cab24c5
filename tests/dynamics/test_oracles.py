"""The named functions against Pinocchio and MuJoCo, through the public layout converters."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tools.corpus import find_urdf

import linkwise as lw
from tests.cases import close, state

pytestmark = pytest.mark.oracle

FILES = find_urdf()
ROBOTS = {"panda.urdf": "fixed", "ur5_robot.urdf": "fixed", "solo12.urdf": "free"}
ROTATED = [3, 4, 5, 0, 1, 2]  # (linear, angular) of (angular, linear)


class WithPinocchio:
    """A robot here and in Pinocchio, in one state."""

    def __init__(self, short: str) -> None:
        import pinocchio as pin

        base = ROBOTS[short]
        path = FILES[next(n for n in FILES if n.endswith("/" + short))]
        self.mech = lw.load(path, base=base)
        self.mech = self.mech.without(*(c.name for c in self.mech.couplings))
        root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        self.model = pin.buildModelFromUrdf(str(path), *root)
        self.model.armature[:] = 0.0
        self.data = self.model.createData()
        self.layout = lw.convert.pinocchio_layout(self.mech, self.model)
        self.q, self.v, self.x = state(self.mech)
        self.q_pin = self.layout.q_to(self.q)
        self.v_pin = self.layout.v_to(self.q, self.v)
        self.x_pin = self.layout.v_to(self.q, self.x)
        # v_pin = T v: T takes their matrices over here.
        self.T = np.stack([self.layout.v_to(self.q, e) for e in np.eye(self.mech.nv)], axis=-1)
        self.hand = self.mech.bodies[-1].name


@cache
def robot(short: str) -> WithPinocchio:
    pytest.importorskip("pinocchio")
    return WithPinocchio(short)


@pytest.fixture(params=ROBOTS)
def it(request) -> WithPinocchio:
    return robot(request.param)


def test_dynamics(it):
    import pinocchio as pin

    mech, q, v, x, back = it.mech, it.q, it.v, it.x, it.layout.v_from
    theirs = pin.aba(it.model, it.data, it.q_pin, it.v_pin, it.layout.force_to(q, x))
    close(lw.forward_dynamics(mech, q, v, x), back(q, theirs), 1e-10)
    forces = pin.rnea(it.model, it.data, it.q_pin, it.v_pin, it.x_pin)
    close(lw.inverse_dynamics(mech, q, v, x), it.layout.force_from(q, forces), 1e-10)
    forces = pin.nonLinearEffects(it.model, it.data, it.q_pin, it.v_pin)
    close(lw.bias_force(mech, q, v), it.layout.force_from(q, forces), 1e-10)
    forces = pin.computeGeneralizedGravity(it.model, it.data, it.q_pin)
    close(lw.gravity_force(mech, q), it.layout.force_from(q, forces), 1e-10)


def test_matrices(it):
    import pinocchio as pin

    theirs = np.array(pin.crba(it.model, it.data, it.q_pin))
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    close(lw.mass_matrix(it.mech, it.q), it.T.T @ theirs @ it.T, 1e-12)
    theirs = np.array(pin.computeMinverse(it.model, it.data, it.q_pin))
    theirs = np.triu(theirs) + np.triu(theirs, 1).T
    close(lw.mass_matrix_inverse(it.mech, it.q), it.T.T @ theirs @ it.T, 1e-9)


@pytest.mark.parametrize("frame", ["node", "world"])
def test_kinematics(it, frame):
    import pinocchio as pin

    number = it.model.getFrameId(it.hand, pin.FrameType.BODY)
    axes = {"node": "LOCAL", "world": "LOCAL_WORLD_ALIGNED"}[frame]
    axes = getattr(pin.ReferenceFrame, axes)
    theirs = pin.computeFrameJacobian(it.model, it.data, it.q_pin, number, axes)
    ours = lw.jacobian(it.mech, it.q, it.hand, frame=frame)
    close(ours, theirs[ROTATED] @ it.T, 1e-12)
    pin.forwardKinematics(it.model, it.data, it.q_pin, it.v_pin)
    pin.updateFramePlacements(it.model, it.data)
    pose = lw.forward_kinematics(it.mech, it.q, it.hand)
    close(pose.rot, it.data.oMf[number].rotation, 1e-12)
    close(pose.p, it.data.oMf[number].translation, 1e-12)
    moving = pin.getFrameVelocity(it.model, it.data, number, axes).vector
    close(lw.node_velocity(it.mech, it.q, it.v, it.hand, frame=frame), moving[ROTATED], 1e-12)


def test_energies(it):
    import pinocchio as pin

    energy = lw.energy(it.mech, it.q, it.v)
    pin.computeAllTerms(it.model, it.data, it.q_pin, it.v_pin)
    theirs = pin.computeKineticEnergy(it.model, it.data, it.q_pin, it.v_pin)
    close(energy.kinetic, theirs, 1e-12)
    close(energy.potential, pin.computePotentialEnergy(it.model, it.data, it.q_pin), 1e-12)


def test_operational_inertia():
    import pinocchio as pin

    it = robot("ur5_robot.urdf")
    number = it.model.getFrameId(it.hand, pin.FrameType.BODY)
    J = pin.computeFrameJacobian(it.model, it.data, it.q_pin, number, pin.ReferenceFrame.LOCAL)
    minv = np.array(pin.computeMinverse(it.model, it.data, it.q_pin))
    minv = np.triu(minv) + np.triu(minv, 1).T
    yielding = (J @ minv @ J.T)[np.ix_(ROTATED, ROTATED)]
    close(lw.dynamics.operational_inertia_inverse(it.mech, it.q, it.hand), yielding, 1e-9)
    ours = lw.operational_inertia(it.mech, it.q, it.hand)
    bound = 20.0 * np.finfo(float).eps * np.linalg.cond(yielding)
    close(ours, np.linalg.inv(yielding), max(bound, 1e-10))


MJCF = """<mujoco><compiler angle="radian"/><option gravity="0 1 -9.81"/><worldbody>
  <body name="trunk"><freejoint name="base"/><geom type="box" size=".2 .1 .05" density="500"/>
    <body name="thigh" pos=".2 .1 0" euler=".1 .2 .3">
      <joint name="hip" axis="0 1 0" armature=".03"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
      <body name="shin" pos="0 0 -.3"><joint name="knee" axis="0 1 .2" armature=".05"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.25" size=".02"/><site name="foot" pos="0 0 -.25"/>
      </body></body>
    <body name="tail" pos="-.2 0 0"><joint name="ball" type="ball" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 -.4 0 .1" size=".02"/></body>
  </body></worldbody></mujoco>"""


def test_mujoco(tmp_path):
    """With armature, a free base and a ball joint; and a push at the foot."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF, encoding="utf-8")
    mech, model = lw.load(path), mujoco.MjModel.from_xml_string(MJCF)
    data, layout = mujoco.MjData(model), lw.convert.mujoco_layout(mech, model)
    q, v, tau = state(mech, 4)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.force_to(q, tau)
    f = np.array([0.3, -0.2, 0.1, 4.0, 5.0, -6.0])
    mujoco.mj_forward(model, data)
    shin, at = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, "shin"), data.site("foot").xpos
    pushed = np.zeros(model.nv)
    mujoco.mj_applyFT(model, data, f[3:], f[:3], at, shin, pushed)
    data.qfrc_applied[:] += pushed
    mujoco.mj_forward(model, data)
    T = np.stack([layout.v_to(q, e) for e in np.eye(mech.nv)], axis=-1)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    close(lw.mass_matrix(mech, q), T.T @ full @ T, 1e-10)
    ours = lw.forward_dynamics(mech, q, v, tau, forces={"foot": f}, forces_frame="world")
    # v_mujoco = T(q) v, so accelerations differ by Ṫ v: the linear part is in world axes there.
    base, spin = mech.v_slice("base"), v[mech.v_slice("base")]
    ours_there = T @ ours
    rot = mech.pose(q, "trunk").rot
    there = layout.v_to(q, np.zeros(mech.nv))
    turned = rot @ np.cross(spin[:3], spin[3:])
    first = model.jnt_dofadr[model.joint("base").id]
    there[first : first + 3] = turned
    assert base.stop - base.start == 6
    close(ours_there + there, np.array(data.qacc), 1e-9)
    turn = data.site("foot").xmat.reshape(3, 3)
    close(lw.forward_kinematics(mech, q, "foot").rot, turn, 1e-12)
    jac = np.zeros((2, 3, model.nv))
    mujoco.mj_jacSite(model, data, jac[1], jac[0], model.site("foot").id)
    J = lw.jacobian(mech, q, "foot", frame="world")
    close(J, jac.reshape(6, -1) @ T, 1e-12)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    energy = lw.energy(mech, q, v)
    close(energy.kinetic, data.energy[1], 1e-10)
    close(energy.potential, data.energy[0], 1e-10)
