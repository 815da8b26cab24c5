"""Spatial tendons through sites: lengths, moment arms and motions against MuJoCo."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation.actuation import cable_length

STEP = 1e-3
ARM = """
<mujoco><compiler angle="radian"/>
  <option timestep="0.001" integrator="Euler"/>
  <worldbody>
    <site name="anchor" pos="0.05 0.02 1.3"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" contype="0" conaffinity="0"/>
      <site name="on_upper" pos="0.3 0.02 0.06"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" contype="0" conaffinity="0"/>
        <site name="on_lower" pos="0.1 -0.01 0.05"/>
        <site name="tip" pos="0.3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="cable"><site site="anchor"/><site site="on_upper"/><site site="on_lower"/>
      <pulley divisor="2"/><site site="anchor"/><site site="tip"/></spatial>
    <spatial name="direct"><site site="anchor"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <motor name="pull" tendon="cable" gear="-1.5" ctrlrange="0 40" ctrllimited="true"/>
    <position name="servo" tendon="direct" kp="60" kv="4"/>
    <general name="filtered" tendon="direct" dyntype="filterexact" dynprm="0.05" gainprm="7"/>
  </actuator>
</mujoco>"""


@pytest.mark.oracle
@pytest.mark.parametrize("form", ["read", "written"])
def test_a_cable_driven_arm_moves_as_in_mujoco(form, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    model = mujoco.MjModel.from_xml_path(str(path))
    mech = lw.load(path)
    if form == "written":
        lw.save(mech, tmp_path / "again.xml")
        mech = lw.load(tmp_path / "again.xml")
    names = [x.name for x in mech.actuators]
    data = mujoco.MjData(model)
    data.qpos[:] = [-0.3, 0.2, 0.9]
    rng = np.random.default_rng(0)
    commands = np.repeat(rng.uniform([0.0, 0.2, -1.0], [40.0, 0.7, 1.0], (20, 3)), 20, axis=0)
    mujoco.mj_forward(model, data)
    for actuator in mech.actuators:
        i = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, actuator.name)
        np.testing.assert_allclose(
            cable_length(mech, data.qpos, actuator), data.actuator_length[i], rtol=1e-12
        )
    states = list[np.ndarray]()
    for command in commands:
        data.ctrl[:] = command
        mujoco.mj_step(model, data)
        states.append(data.qpos.copy())
    columns = [["pull", "servo", "filtered"].index(x) for x in names]
    runs = lw.rollout(
        mech,
        [-0.3, 0.2, 0.9],
        duration=0.4,
        step=STEP,
        integrator="euler",
        controls=commands[:, columns],
        contacts=(),
    )
    assert np.ptp(runs.q, axis=0).min() > 0.05
    np.testing.assert_allclose(runs.q[1:], states, atol=1e-9)


def test_a_moment_arm_is_the_gradient_of_the_length(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    mech = lw.load(tmp_path / "arm.xml")
    q, h = np.array([-0.3, 0.2, 0.9]), 1e-6
    pull = mech.actuators[0]
    ends = (cable_length(mech, q + s * h * np.eye(3)[i], pull) for i in range(3) for s in (1, -1))
    slope = -np.diff(np.reshape(list(ends), (3, 2)), axis=1)[:, 0] / (2 * h)
    # one short step: the joint forces of a motor of 5 N, 5 ∂l/∂q
    step = {"duration": 1e-5, "step": 1e-5, "integrator": "euler", "contacts": ()}
    still = lw.simulation.hold_commands(mech, q)
    command = np.array([5.0, still[1], 0.0])
    moved = lw.rollout(mech, q, controls=command, **step).v[-1]
    free = lw.rollout(mech, q, controls=command * [0, 1, 1], **step).v[-1]
    np.testing.assert_allclose(
        lw.mass_matrix(mech, q) @ (moved - free) / 1e-5, 5 * slope, rtol=1e-6
    )
    assert np.abs(slope).min() > 1e-3


def test_cables_hold_in_implicit_steps_and_in_parts_of_mechanisms(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    mech = lw.load(tmp_path / "arm.xml")
    servo = lw.Actuator(
        "servo", gain=(60.0, 0, 0), bias=(0, -60.0, -4.0), cables=[("anchor", "tip", 1.0)]
    )
    mech = lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=[servo])
    both = [
        lw.rollout(
            mech, [-0.3, 0.2, 0.9], duration=0.1, step=1e-5, integrator=x, controls=[0.4],
            contacts=(), record_every=1000,
        ).q[-1]
        for x in ("implicit", "rk4")
    ]  # fmt: skip
    np.testing.assert_allclose(*both, atol=1e-4)
    with pytest.raises(ModelError, match="'tipp'"):
        lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=[
            lw.Actuator("x", cables=[("anchor", "tipp", 1.0)])])  # fmt: skip


def test_a_tendon_around_a_geom_is_refused_by_name(tmp_path):
    wrapped = ARM.replace(
        '<site site="anchor"/><site site="tip"/></spatial>\n  </tendon>',
        '<site site="anchor"/><geom geom="roll"/><site site="tip"/></spatial>\n  </tendon>',
    ).replace(
        '<site name="anchor"', '<geom name="roll" size="0.01" contype="0"/><site name="anchor"'
    )
    (tmp_path / "arm.xml").write_text(wrapped)
    mech = lw.load(tmp_path / "arm.xml")
    assert [x.name for x in mech.actuators] == ["pull"]
    assert "'direct' wraps around geoms" in str(mech.load_report)
