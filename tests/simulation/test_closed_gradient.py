"""Gradients of rollouts by explicit integrators with loops and couplings held.

The reference is the motion itself: eighth-order differences of whole rollouts along states that
stay closed, good to about 1e-12. The gradient leaves out what is of second order in the drift of
one step: 1e-8 at most here.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, SimulationError, TroubleWarning
from tests.cases import close
from tests.loops import embedding_cases as cases
from tests.simulation.test_closed_transition import CASES, LEFT_OUT, differences

STEP, STEPS = 1e-3, 8
QUICK = ("four-bar", "gears")


class Sample:
    """A closed mechanism in motion, and weights of its records."""

    def __init__(self, name, integrator, every=1):
        self.mech = mech = CASES[name]()
        rng = np.random.default_rng(1)
        self.tree = lw.loops.embed(mech)
        self.q = lw.loops.project_position(mech, cases.near(mech, 1)).required()
        self.u, self.du, self.dv = rng.standard_normal((3, self.tree.nv))
        self.tau, self.dtau = rng.standard_normal((2, STEPS, mech.nv))
        self.along = lw.loops.full_velocity(self.tree, self.q, self.du)
        self.v = lw.loops.full_velocity(self.tree, self.q, self.u)
        count = STEPS // every + 1
        self.w_q, self.w_v = (rng.standard_normal((count, n)) for n in (mech.nq, mech.nv))
        self.options = {"step": STEP, "integrator": integrator, "duration": STEP * STEPS}
        self.options["record_every"] = every

    def start(self, s):
        moved = self.mech.integrate(self.q, s * self.along)
        there = lw.loops.project_position(self.mech, moved, weight="mass").required()
        return there, lw.loops.full_velocity(self.tree, there, self.u + s * self.dv)

    def cost(self, q, v, tau):
        runs = lw.rollout(self.mech, q, v, tau=tau, **self.options)
        return np.sum(self.w_q * runs.q) + np.sum(self.w_v * runs.v)

    def gradient(self):
        runs = lw.rollout(self.mech, self.q, self.v, tau=self.tau, **self.options)
        return runs.gradient(q=self.w_q, v=self.w_v)


@pytest.mark.parametrize(
    ("name", "integrator"),
    [
        pytest.param(name, x, marks=[] if name in QUICK else pytest.mark.prove)
        for name in CASES
        for x in ("rk4", "euler", "rk4_mujoco")
        if (name, x) not in LEFT_OUT
    ],
)
def test_differences_of_rollouts(name, integrator):
    it = Sample(name, integrator)
    slope = differences(lambda s: it.cost(*it.start(s), it.tau + s * it.dtau))
    slopes, speed = it.gradient(), differences(lambda s: it.start(s)[1])
    parts = [slopes.q @ it.along, slopes.v @ speed, np.sum(slopes.tau * it.dtau)]
    assert np.abs(parts).min() > 1e-5 * abs(slope)
    close(sum(parts), slope, 1e-8)


def test_states_that_are_not_quite_closed():
    """The first projection is differentiated too; differences of such small states are good to
    1e-7 only."""
    it = Sample("four-bar", "rk4")
    h, slopes = 2e-7, it.gradient()
    for by, at in ((slopes.q, 0), (slopes.v, 1)):
        for i in range(it.mech.nv):
            d = h * np.eye(it.mech.nv)[i]
            ends = [
                it.cost(*((it.mech.integrate(it.q, s * d), it.v), (it.q, it.v + s * d))[at], it.tau)
                for s in (1.0, -1.0)
            ]
            close(by[i], (ends[0] - ends[1]) / (2.0 * h), 1e-6, scale=np.abs(by).max())
    blocked = lw.loops.constraint_jacobian(it.mech, it.q)
    # What pulls loops apart is undone, so that it counts for nothing.
    across = np.linalg.solve(lw.mass_matrix(it.mech, it.q), blocked.T)
    close(across.T @ slopes.v, np.zeros(len(blocked)), 1e-12, scale=np.abs(slopes.v).max())


def test_records_apart():
    """States between records are made once more."""
    it = Sample("gears", "rk4", every=4)
    some = it.gradient()
    every = Sample("gears", "rk4")
    every.w_q, every.w_v = (np.zeros((STEPS + 1, w.shape[1])) for w in (it.w_q, it.w_v))
    every.w_q[::4], every.w_v[::4] = it.w_q, it.w_v
    full = every.gradient()
    for name in ("q", "v", "tau"):
        close(getattr(some, name), getattr(full, name), 1e-11)


def test_batches_and_shared_inputs():
    it = Sample("four-bar", "rk4")
    mech, held = it.mech, it.tau[0]
    starts = [it.start(s) for s in (0.0, 0.1, -0.2)]
    q, v = (np.stack(x) for x in zip(*starts, strict=True))
    runs = lw.rollout(mech, q, v, tau=held, **it.options)
    slopes = runs.gradient(q=np.broadcast_to(it.w_q, runs.q.shape))
    each = [
        lw.rollout(mech, *x, tau=np.tile(held, (STEPS, 1)), **it.options).gradient(q=it.w_q)
        for x in starts
    ]
    for name in ("q", "v"):
        close(getattr(slopes, name), np.stack([getattr(x, name) for x in each]), 1e-12)
    assert slopes.tau.shape == held.shape
    close(slopes.tau, sum(x.tau.sum(axis=0) for x in each), 1e-12)
    last = runs.gradient(v=np.ones_like(v))
    assert last.status.tolist() == [0, 0, 0]


def test_motions_that_fail():
    it = Sample("four-bar", "rk4")
    q, v = np.stack([it.q, it.q]), np.stack([it.v, 1e6 * it.v])
    with pytest.warns(TroubleWarning):
        runs = lw.rollout(it.mech, q, v, tau=it.tau, **it.options)
    slopes = runs.gradient(q=np.ones_like(runs.q))
    assert slopes.status[0] == 0 and slopes.status[1] == runs.status[1] != 0
    assert np.isfinite(slopes.q[0]).all() and np.isnan(slopes.q[1]).all()
    runs = lw.rollout(it.mech, it.q, it.v, tau=it.tau, **it.options)
    close(slopes.q[0], runs.gradient(q=np.ones_like(runs.q)).q, 1e-12)
    with pytest.raises(SimulationError):
        lw.rollout(it.mech, it.q, 1e6 * it.v, tau=it.tau, **it.options)


def test_what_has_none_says_why():
    mech = lw.models.stewart()
    q = lw.loops.assemble(mech, mech.neutral()).q
    runs = lw.rollout(mech, q, duration=STEP, step=STEP)
    with pytest.raises(ModelError, match=r"too long for one kernel.*integrator='implicit'"):
        runs.gradient(q=np.ones(mech.nq))
