"""Dampers, springs and carried weight: one force, and the same keyword wherever it acts."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from tests.io.mjcf_text import read

BALLS = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="a" gravcomp="0.6"><joint axis="0 1 0" stiffness="3" springref="0.4" damping="0.2"/>
    <geom size="0.1" pos="0.3 0 0.1"/>
    <body name="b" pos="0.5 0 0"><joint type="ball" stiffness="2.5" damping="0.1"/>
      <geom size="0.05 0.1 0.2" type="box" pos="0.2 0.1 0"/></body></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def mech():
    return read(BALLS)


@pytest.mark.oracle
def test_passive_forces_and_accelerations_are_those_of_mujoco(mech):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(BALLS)
    data = mujoco.MjData(model)
    q, v, tau = mech.random(4), np.array([0.3, -1.0, 0.7, 0.2]), [0.1, 0.2, -0.3, 0.4]
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(lw.passive_force(mech, q, v), data.qfrc_passive, rtol=1e-9)
    vdot = lw.forward_dynamics(mech, q, v, tau, passive=True)
    np.testing.assert_allclose(vdot, data.qacc, rtol=1e-9)


def test_the_keyword_adds_the_same_force_everywhere(mech):
    rng = np.random.default_rng(5)
    q = np.array([mech.random(i) for i in range(3)])
    v, tau = rng.standard_normal((2, 3, 4))
    total = tau + lw.passive_force(mech, q, v)
    vdot = lw.forward_dynamics(mech, q, v, tau, passive=True)
    np.testing.assert_allclose(vdot, lw.forward_dynamics(mech, q, v, total), rtol=1e-12)
    h = 1e-6
    for integrator in ("euler", "rk4", "implicit"):
        run = lw.rollout(mech, q, v, tau=tau[:, None], duration=h, step=h, integrator=integrator)
        np.testing.assert_allclose((run.v[:, -1] - v) / h, vdot, rtol=2e-4, atol=2e-4)
    rec = lw.simulate(mech, q[0], v[0], tau=tau[0], duration=h, step=h, progress=False)
    np.testing.assert_allclose((rec["v"][-1] - v[0]) / h, vdot[0], rtol=2e-4, atol=2e-4)
    with pytest.raises(ModelError, match=r"passive .*must be True or False"):
        lw.forward_dynamics(mech, q, v, tau, passive="no")  # type: ignore[arg-type]


def test_derivatives_and_linearisation_include_it(mech):
    rng = np.random.default_rng(6)
    q, v, tau = mech.random(rng), rng.standard_normal(4), rng.standard_normal(4)
    slopes = lw.forward_dynamics_derivatives(mech, q, v, tau, passive=True)
    h, eye = 1e-6, np.eye(4)

    def vdot(q, v):
        return lw.forward_dynamics(mech, q, v, tau, passive=True)

    def change(at):
        return np.stack([(at(h * e) - at(-h * e)) / (2 * h) for e in eye], axis=-1)

    by_q = change(lambda d: vdot(mech.integrate(q, d), v))
    np.testing.assert_allclose(slopes.q, by_q, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(slopes.v, change(lambda d: vdot(q, v + d)), rtol=1e-7, atol=1e-7)
    model = lw.linearize(mech, q, v, tau)
    np.testing.assert_allclose(model.A[4:], np.hstack([slopes.q, slopes.v]), rtol=1e-12, atol=1e-12)
    bare = lw.linearize(mech, q, v, tau, passive=False)
    np.testing.assert_allclose(
        bare.A[4:, 4:], lw.forward_dynamics_derivatives(mech, q, v, tau).v, rtol=1e-12, atol=1e-12
    )
    assert np.abs(bare.A - model.A).max() > 0.1
    again = lw.linearize(mech, q, v, tau, out=bare)
    assert again.A is bare.A and np.array_equal(again.A, model.A)


@pytest.mark.parametrize(("integrator", "order"), [("rk4", 4), ("variational", 2)])
def test_the_energy_adds_up_with_springs_of_balls_and_carried_weight(mech, integrator, order):
    def left(step):
        rec = lw.simulate(
            mech, mech.random(4), duration=0.2, step=step, integrator=integrator, progress=False
        )
        assert np.ptp(rec["work.passive"]) > 0.5
        return np.abs(rec["energy.balance"]).max()

    assert left(1e-3) < 0.7 * 2.0**-order * left(2e-3) * 2.0 < 1e-3


def test_the_budget_of_implicit_steps_closes_with_them(mech):
    rec = lw.simulate(
        mech, mech.random(4), duration=0.2, step=1e-3, integrator="implicit", progress=False
    )
    assert np.ptp(rec["work.passive"]) > 0.5
    assert np.abs(rec["energy.balance"]).max() < 1e-10 * np.ptp(rec["energy.potential"])


@pytest.mark.parametrize("integrator", ["euler", "implicit"])
def test_steps_have_derivatives_where_the_spring_of_a_ball_is_at_rest(mech, integrator):
    q, v, tau, h = mech.neutral(), np.zeros(4), np.zeros(4), 0.01
    model = lw.linearize(mech, q, v, tau, step=h, integrator=integrator)
    moved = np.concatenate([np.eye(4), -np.eye(4)]) * 1e-6
    starts = np.stack([mech.integrate(q, d) for d in moved])
    run = lw.rollout(mech, starts, v, tau=tau, duration=h, step=h, integrator=integrator)
    by_q = (run.v[:4, -1] - run.v[4:, -1]).T / 2e-6
    np.testing.assert_allclose(model.A[4:, :4], by_q, rtol=1e-6, atol=1e-8)
