"""Dampers and springs: against numbers by hand, against MuJoCo, and in the equations of motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.oracles.mujoco_oracle import read_model

SPRUNG = """
<mujoco model="sprung">
  <compiler angle="radian"/>
  <worldbody>
    <body name="flyer" pos="1 0 2">
      <freejoint name="flyer"/>
      <inertial pos="0.05 0.02 0" mass="1.5" diaginertia="0.02 0.03 0.045"/>
      <body name="slide" pos="0.1 0 -0.3">
        <joint name="slide" type="slide" axis="0.6 0 0.8" damping="3" stiffness="120"
               springref="0.05"/>
        <inertial pos="0 0.03 0" mass="0.8" diaginertia="0.004 0.006 0.005"/>
        <body name="wrist" pos="0 0 -0.2">
          <joint name="wrist" type="ball" damping="0.01"/>
          <inertial pos="0.05 0.01 -0.1" mass="0.5" diaginertia="0.003 0.002 0.004"/>
          <body name="tip" pos="0 0.2 -0.2">
            <joint name="tip" axis="0 1 0.5" damping="0.05" stiffness="4" springref="-0.3"/>
            <inertial pos="0.02 0 -0.1" mass="0.3" diaginertia="0.001 0.001 0.0005"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def sprung() -> lw.Mechanism:
    rod = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder = lw.Builder("sprung")
    builder.body(
        "a", hinge=lw.hinges.Pin((0, 0, 1)), inertia=rod,
        drive=lw.Drive(damping=0.5, stiffness=10.0, rest=0.2),
    )  # fmt: skip
    builder.body(
        "b", "a", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=rod, drive=lw.Drive(damping=2.0)
    )
    return builder.build()


def test_it_is_minus_damping_times_speed_minus_stiffness_times_what_is_off_rest():
    result = lw.passive_force(sprung(), [0.5, 3.0], [2.0, -1.0])
    assert result == pytest.approx([-0.5 * 2.0 - 10.0 * 0.3, 2.0], abs=1e-15)


def test_batches_are_state_by_state_and_one_state_serves_all():
    mech, rng = sprung(), np.random.default_rng(0)
    q, v = rng.standard_normal((2, 5, 2))
    result = lw.passive_force(mech, q, v)
    assert np.array_equal(result, [lw.passive_force(mech, x, y) for x, y in zip(q, v, strict=True)])
    assert np.array_equal(lw.passive_force(mech, q[0], v)[3], lw.passive_force(mech, q[0], v[3]))
    assert lw.passive_force(mech, q[0], v).shape == lw.passive_force(mech, q, v[0]).shape == (5, 2)


def test_it_is_what_a_simulation_adds():
    """One step of semi-implicit Euler is h v̇, and v̇ is that of forward dynamics with it."""
    mech, q, v = sprung(), np.array([0.7, 0.1]), np.array([1.0, -2.0])
    tau, step = np.array([0.3, 0.4]), 1e-3
    vdot = lw.forward_dynamics(mech, q, v, tau + lw.passive_force(mech, q, v))
    rec = lw.simulate(mech, q, v, duration=step, step=step, integrator="euler", tau=tau)
    run = lw.rollout(mech, q, v, duration=step, step=step, integrator="euler", tau=tau)
    assert rec.v[-1] == pytest.approx(v + step * vdot, abs=1e-14)
    assert run.v[-1] == pytest.approx(v + step * vdot, abs=1e-14)


@pytest.mark.oracle
def test_it_is_that_of_mujoco(tmp_path: Path):
    mujoco = pytest.importorskip("mujoco")
    file = tmp_path / "sprung.xml"
    file.write_text(SPRUNG, encoding="utf-8")
    mech, model = lw.load(file), read_model(file)
    layout, data = lw.convert.mujoco_layout(mech, model), mujoco.MjData(model)
    for seed in range(3):
        q, v = mech.random(seed=seed), mech.random_velocity(seed=seed)
        data.qpos[:], data.qvel[:] = layout.q_to(q), layout.v_to(q, v)
        mujoco.mj_forward(model, data)
        ours = layout.force_to(q, lw.passive_force(mech, q, v))
        assert np.abs(data.qfrc_passive).min(where=model.dof_damping > 0, initial=1.0) > 0.0
        assert ours == pytest.approx(data.qfrc_passive, rel=1e-12, abs=1e-12)


def test_what_does_not_fit_is_refused():
    mech = sprung()
    with pytest.raises(lw.ShapeError, match="v has 3 rows; the batch has 2"):
        lw.passive_force(mech, np.zeros((2, 2)), np.zeros((3, 2)))
    with pytest.raises(lw.ShapeError):
        lw.passive_force(mech, np.zeros(3), np.zeros(2))
    with pytest.raises(lw.ModelError, match=r"lw\.load"):
        lw.passive_force("arm.urdf", [0.0], [0.0])  # type: ignore[arg-type]
    with pytest.raises(lw.ModelError, match=r"embedded\.mech"):
        lw.passive_force(lw.loops.embed(lw.models.four_bar()), np.zeros(1), np.zeros(1))  # type: ignore[arg-type]
