"""Motions of a batch whose inputs cannot be used: a status each, and nothing for the others."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.errors import ModelError, TroubleWarning

BAD = {
    "q": lambda x: x["q"].__setitem__((1, 0), np.nan),
    "quaternion": lambda x: x["q"].__setitem__((1, slice(0, 4)), 0.7),
    "v": lambda x: x["v"].__setitem__((1, 2), np.inf),
    "tau": lambda x: x["tau"].__setitem__((1, 3, 0), np.nan),
    "gravity": lambda x: x["gravity"].__setitem__((1, 0, 0), np.nan),
}


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
@pytest.mark.parametrize("what", BAD)
def test_motions_that_cannot_begin(what, integrator):
    """They have a status; the others move as without them, and so do their gradients."""
    mech, rng = lw.models.random_tree(4, 2, floating=True), np.random.default_rng(0)
    some = {"q": np.stack([mech.random(rng) for _ in range(3)])}
    some |= {"v": 0.1 * rng.standard_normal((3, mech.nv))}
    some |= {"tau": rng.standard_normal((3, 5, mech.nv)), "gravity": rng.standard_normal((3, 1, 3))}

    def run(given):
        rest = {"duration": 5e-3, "step": 1e-3, "integrator": integrator}
        numbers = {"gravity": given["gravity"]}
        return lw.rollout(
            mech, given["q"], given["v"], tau=given["tau"], parameters=numbers, **rest
        )

    expected = run({name: x.copy() for name, x in some.items()})
    BAD[what](some)
    with pytest.warns(TroubleWarning, match="1 of 3 motions.*the first is number 1"):
        runs = run(some)
    code = status.quaternion(0) if what == "quaternion" else status.INPUT
    assert runs.status.tolist() == [0, code, 0] and runs.failed_step.tolist() == [-1, -1, -1]
    assert np.isnan(runs.q[1]).all() and np.isnan(runs.v[1]).all()
    w = np.ones(runs.v.shape)
    slopes, usual = runs.gradient(v=w), expected.gradient(v=w)
    for i in (0, 2):
        assert np.array_equal(runs.q[i], expected.q[i])
        assert np.array_equal(slopes.q[i], usual.q[i])
        assert np.array_equal(slopes.inputs["gravity"][i], usual.inputs["gravity"][i])
    assert np.isnan(slopes.q[1]).all() and slopes.status.tolist() == [0, code, 0]
    with pytest.raises(ModelError):  # a single motion, and what all share
        run({name: x[1] if name != "gravity" else x[1, 0] for name, x in some.items()})


def test_closed_motions_that_cannot_begin():
    mech = lw.models.four_bar()
    q, tau = np.zeros((3, 3)), np.array([0.0, 0.2, 0.1])[:, None, None] * np.ones(3)
    options = {"duration": 5e-3, "step": 1e-3, "tau": tau}
    expected = lw.rollout(mech, q, **options)
    q[0, 1] = np.nan
    with pytest.warns(TroubleWarning, match="1 of 3 motions"):
        runs = lw.rollout(mech, q, **options)
    assert runs.status.tolist() == [status.INPUT, 0, 0]
    slopes, usual = runs.gradient(v=np.ones((3, 3))), expected.gradient(v=np.ones((3, 3)))
    assert np.isnan(slopes.tau[0]).all() and np.array_equal(slopes.tau[1:], usual.tau[1:])
    assert np.abs(usual.tau[1:]).max() > 1e-6


def test_a_goal_may_be_a_pose() -> None:
    arm = lw.models.seven_dof_arm()
    law = lw.control_law(arm, lw.Task.pose("hand"), kp=50.0, kv=14.0)
    start = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    goal = lw.forward_kinematics(arm, start + 0.05, "hand")
    q = np.stack([start, start * np.nan])
    with pytest.warns(TroubleWarning):
        runs = lw.rollout(arm, q, controller=(law, goal), duration=0.02, step=0.01)
    alone = lw.rollout(arm, start, controller=(law, goal), duration=0.02, step=0.01)
    assert runs.status.tolist() == [0, status.INPUT]
    np.testing.assert_allclose(runs.q[0], alone.q, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_batch_in_which_no_motion_begins(rows):
    """All have a status; so has a batch of one, while a single motion raises."""
    mech, options = lw.models.puma560(), {"duration": 5e-3, "step": 1e-3}
    q = np.full((rows, 6), np.nan)
    with pytest.warns(TroubleWarning, match=f"{rows} of {rows} motions"):
        runs = lw.rollout(mech, q, **options)
    assert runs.status.tolist() == [status.INPUT] * rows
    assert np.isnan(runs.q).all() and np.isnan(runs.gradient(q=np.ones((rows, 6))).tau).all()
    with pytest.raises(ModelError, match="q is not finite"):
        lw.rollout(mech, q[0], **options)
    four = lw.models.four_bar()
    with pytest.raises(ModelError, match="q is not finite"):  # where would it be closed?
        lw.rollout(four, np.full((rows, 3), np.nan), **options)


def test_motions_that_share_what_is_wrong():
    """It is an error of the call, which names the entry."""
    mech, q = lw.models.puma560(), np.zeros((3, 6))
    tau = np.zeros((5, 6))
    tau[2, 1] = np.nan  # in step 2 of all motions
    with pytest.raises(ModelError, match=r"tau is not finite, first at \(2, 1\)"):
        lw.rollout(mech, q, tau=tau, duration=5e-3, step=1e-3)
    many = np.zeros((3, 6))
    many[1, 0] = np.inf  # of motion 1, in all of its steps
    with pytest.warns(TroubleWarning, match="1 of 3 motions"):
        runs = lw.rollout(mech, q, tau=many, duration=5e-3, step=1e-3)
    assert runs.status.tolist() == [0, status.INPUT, 0]
