"""Linearised steps against MuJoCo: `mjd_transitionFD`, which takes differences of its steps.

Its states have other coordinates: the linear velocity of a free body in the axes of the world. The
derivative of that map is taken by differences of order eight, those of MuJoCo are good to 1e-8.
`mjd_transitionFD` refuses RK4, so differences of `mj_step` are taken here.
"""

from __future__ import annotations

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
