"""Linearised steps against MuJoCo: `mjd_transitionFD`, which takes differences of its steps.

Its states have other coordinates: the linear velocity of a free body in the axes of the world. The
derivative of that map is taken by differences of order eight, those of MuJoCo are good to 1e-8.
`mjd_transitionFD` refuses RK4, so differences of `mj_step` are taken here.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import linkwise as lw
from tests.algebra.test_differential import STENCIL
from tests.cases import close
from tests.simulation.test_mujoco_trajectories import MODELS, MUNTHE_KAAS, STEP, THEIR_NAME, motion

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.oracle


def differences(function, size, h=1e-3):
    """∂ function(d)/∂d at d = 0, for d (size,)."""
    steps = [(w / h, s * h) for w, s in zip(STENCIL, range(-4, 5), strict=True) if w]
    return np.stack([sum(w * function(s * e) for w, s in steps) for e in np.eye(size)], -1)


def turn(model, start, end):
    """From one configuration of theirs to another."""
    out = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, out, 1.0, start, end)
    return out


def in_their_coordinates(mech, model, q, v):
    """∂(their tangent state)/∂(ours) (2 nv, 2 nv) at a state."""
    layout = lw.convert.mujoco_layout(mech, model)

    def theirs(d):
        there = mech.integrate(q, d[: mech.nv])
        speed = layout.v_to(there, v + d[mech.nv :])
        return np.concatenate([turn(model, layout.q_to(q), layout.q_to(there)), speed])

    return differences(theirs, 2 * mech.nv)


SEVEN_AXES = """
<mujoco model="arm with dampers">
  <compiler angle="radian"/>
  <default>
    <joint armature="0.1" damping="1"/>
    <default class="wrist"><joint armature="0.03" damping="0.3"/></default>
  </default>
  <worldbody>
    <body name="link1" pos="0 0 0.333">
      <joint name="joint1" axis="0 0 1"/>
      <inertial pos="0.004 0.002 -0.05" mass="4.97" fullinertia="0.7 0.7 0.02 0 0.007 0.02"/>
      <body name="link2" quat="0.7071068 -0.7071068 0 0">
        <joint name="joint2" axis="0 0 1"/>
        <inertial pos="-0.003 -0.03 0.0035" mass="0.65" fullinertia="0.01 0.03 0.03 0 0.01 0"/>
        <body name="link3" pos="0 -0.316 0" quat="0.7071068 0.7071068 0 0">
          <joint name="joint3" axis="0 0 1" damping="2.5"/>
          <inertial pos="0.03 0.04 -0.066" mass="3.23" fullinertia="0.04 0.04 0.02 0 -0.01 -0.01"/>
          <body name="link4" pos="0.0825 0 0" quat="0.7071068 0.7071068 0 0">
            <joint name="joint4" axis="0 0 1"/>
            <inertial pos="-0.053 0.1 0.03" mass="3.59" fullinertia="0.03 0.02 0.03 0.005 0 0"/>
            <body name="link5" pos="-0.0825 0.384 0" quat="0.7071068 -0.7071068 0 0">
              <joint name="joint5" axis="0 0 1" class="wrist"/>
              <inertial pos="-0.012 0.04 -0.04" mass="1.23" diaginertia="0.036 0.03 0.0088"/>
              <body name="link6" quat="0.7071068 0.7071068 0 0">
                <joint name="joint6" axis="0 0 1" class="wrist"/>
                <inertial pos="0.06 -0.014 -0.01" mass="1.67" diaginertia="0.002 0.0044 0.0055"/>
                <body name="link7" pos="0.088 0 0" quat="0.7071068 0.7071068 0 0">
                  <joint name="joint7" axis="0 0 1" class="wrist"/>
                  <inertial pos="0.01 0.004 0.06" mass="0.74" diaginertia="0.012 0.01 0.005"/>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="motor1" joint="joint1" gear="50"/>
    <velocity name="servo4" joint="joint4" kv="20"/>
  </actuator>
</mujoco>
"""


def transition(model, data):
    """∂(state after a step)/∂(state before it), in their tangent spaces."""
    if model.opt.integrator != mujoco.mjtIntegrator.mjINT_RK4:
        out = np.zeros((2 * model.nv, 2 * model.nv))
        mujoco.mjd_transitionFD(model, data, 1e-6, True, out, None, None, None)
        return out
    q, v, there = data.qpos.copy(), data.qvel.copy(), mujoco.MjData(model)
    there.qfrc_applied[:] = data.qfrc_applied

    def after(d):
        there.qpos[:], there.qvel[:] = q, v + d[model.nv :]
        mujoco.mj_integratePos(model, there.qpos, d[: model.nv], 1.0)
        mujoco.mj_step(model, there)
        return there.qpos.copy(), there.qvel.copy()

    end, _ = after(np.zeros(2 * model.nv))
    return differences(
        lambda d: np.concatenate([turn(model, end, (x := after(d))[0]), x[1]]), 2 * model.nv
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("integrator", ["euler", "rk4_mujoco"])
@pytest.mark.parametrize("name", ["arm", "balls and springs", "puma"])
def test_transitions(name, integrator, tmp_path):
    if integrator == "rk4_mujoco" and name == "balls and springs" and not MUNTHE_KAAS:
        pytest.skip("MuJoCo before 4.0 has another method on quaternions")
    case = motion(MODELS[name](), tmp_path)
    mech, model, q, v, tau = case.mech, case.model, case.q, case.v, case.tau[0]
    layout = lw.convert.mujoco_layout(mech, model)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, THEIR_NAME[integrator])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.force_to(q, tau)
    theirs = transition(model, data)
    A, _ = lw.linearize(mech, q, v, tau, step=STEP, integrator=integrator)
    after = lw.rollout(mech, q, v, tau=tau, duration=STEP, step=STEP, integrator=integrator)
    before = in_their_coordinates(mech, model, q, v)
    ours = in_their_coordinates(mech, model, after.q[-1], after.v[-1]) @ A @ np.linalg.inv(before)
    close(ours, theirs, 1e-7)
    n = mech.nv
    close(ours[:n, :n] - np.eye(n), theirs[:n, :n] - np.eye(n), 1e-4)
    close(ours[n:, :n], theirs[n:, :n], 1e-6)


def without_springs():
    """The tree with balls, a free body and dampers."""
    return re.sub(r'stiffness="[\d.]*"', 'stiffness="0"', MODELS["balls and springs"]())


@pytest.mark.parametrize(("name", "step"), [("arm", 2e-3), ("tree", 1e-3)])
def test_implicit_steps_with_dampers(name, step, tmp_path):
    """As `implicitfast`: dampers and velocity servos act at the end of a step.

    Springs do so here only, so that these have none.
    """
    case = motion({"arm": SEVEN_AXES, "tree": without_springs()}[name], tmp_path)
    mech, model, q, v, tau = case.mech, case.model, case.q, case.v, case.tau[0]
    layout = lw.convert.mujoco_layout(mech, model)
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_IMPLICITFAST, step
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
    data.qfrc_applied[:] = layout.force_to(q, tau)
    command = np.array([0.3, -0.4])[: model.nu]
    data.ctrl[:] = command
    theirs = transition(model, data)
    options = {"step": step, "integrator": "implicit", "controls": command if model.nu else None}
    A, _ = lw.linearize(mech, q, v, tau, **options)
    options["duration"] = step
    after = lw.rollout(mech, q, v, tau=tau, **options)
    mujoco.mj_step(model, data)
    close(after.q[-1], layout.q_from(data.qpos), 1e-12)
    before = in_their_coordinates(mech, model, q, v)
    ours = in_their_coordinates(mech, model, after.q[-1], after.v[-1]) @ A @ np.linalg.inv(before)
    close(ours, theirs, 1e-7)
    n = mech.nv
    close(ours[:n, :n] - np.eye(n), theirs[:n, :n] - np.eye(n), 1e-4)
    close(ours[n:, :n], theirs[n:, :n], 1e-6)
    explicit, _ = lw.linearize(mech, q, v, tau, step=step, integrator="euler")
    assert np.abs(explicit - A).max() > 1e-4  # what dampers at the end of a step change
