"""Gradients of rollouts by explicit integrators with loops and couplings held.

The reference is the motion itself: eighth-order differences of whole rollouts along states that
stay closed, good to about 1e-12. The gradient leaves out what is of second order in the drift of
one step: 1e-8 at most here.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar.parameters import nominal
from linkwise.dynamics.state_feedback import StateFeedback
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


def plain(mech):
    """Velocities (nv,) of hinges that may have springs: their coordinates have these rates."""
    hinges = [body.hinge for body in mech.bodies]
    return np.concatenate([np.full(h.nv, h.nq == h.nv) for h in hinges])


def numbers_of(mech):
    """Numbers of a mechanism that all count, and that differ from its own."""
    rng = np.random.default_rng(5)
    given = {name: nominal(mech, name) for name in ("gravity", "inertia", "armature")}
    given["gravity"] = given["gravity"] + np.array([0.5, -0.3, 0.2])
    given["armature"] = given["armature"] + 0.1 + 0.1 * rng.random(mech.nv)
    given["damping"] = 0.2 + rng.random(mech.nv)
    given["stiffness"] = np.where(plain(mech), 1.0 + rng.random(mech.nv), 0.0)
    node = mech.bodies[-1].name
    given[f"payload:{node}"] = np.array([0.7, 0.1, 0.0, 0.2, 0.2, 0.3, 0.25, 0.0, 0.01, 0.02])
    return given


@pytest.mark.parametrize(
    ("name", "integrator"),
    [
        ("four-bar", "rk4"),
        ("four-bar", "euler"),
        pytest.param("gears", "rk4_mujoco", marks=pytest.mark.prove),
        pytest.param("cams and a free hinge", "euler", marks=pytest.mark.prove),
        pytest.param("universal loop", "euler", marks=pytest.mark.prove),
    ],
)
def test_numbers_of_the_mechanism(name, integrator):
    """Some are the same in all steps, some are not; the motion depends on each of them."""
    it = Sample(name, integrator)
    given, rng = numbers_of(it.mech), np.random.default_rng(7)
    some = np.linspace(0.5, 1.5, STEPS)[:, None]
    given |= {x: some * y for x, y in given.items() if x.startswith("payload") or x == "damping"}

    def cost(numbers):
        runs = lw.rollout(it.mech, it.q, it.v, tau=it.tau, parameters=numbers, **it.options)
        return runs, np.sum(it.w_q * runs.q) + np.sum(it.w_v * runs.v)

    slopes = cost(given)[0].gradient(q=it.w_q, v=it.w_v)
    assert set(slopes.inputs) == {"tau", *given}
    for name, x in given.items():
        d = rng.standard_normal(x.shape) * 0.2 * np.abs(x).max()
        if name == "stiffness":
            d, sprung = np.where(plain(it.mech), d, 0.0), slopes.inputs[name] != 0.0
            assert np.array_equal(sprung, plain(it.mech))
        expected = differences(lambda s, name=name, x=x, d=d: cost(given | {name: x + s * d})[1])
        by = slopes.inputs[name]
        assert by.shape == x.shape
        assert abs(expected) > 1e-9
        close(np.sum(by * d), expected, 1e-8, scale=np.linalg.norm(by) * np.linalg.norm(d))


def test_numbers_of_many_motions():
    """A batch is its motions; with the numbers it has, a mechanism moves as without any."""
    it = Sample("four-bar", "rk4", every=3)
    numbers = {x: nominal(it.mech, x) for x in ("gravity", "inertia", "armature")}
    plain = lw.rollout(it.mech, it.q, it.v, tau=it.tau, **it.options)
    given = lw.rollout(it.mech, it.q, it.v, tau=it.tau, parameters=numbers, **it.options)
    close(given.v, plain.v, 1e-12)
    w_q = np.random.default_rng(0).standard_normal((2, *plain.q.shape))
    numbers = {x: np.stack([y, 1.5 * y + 0.1])[:, None] for x, y in numbers.items()}
    q, v = (np.stack([x, x]) for x in (it.q, it.v))
    both = lw.rollout(it.mech, q, v, tau=it.tau, parameters=numbers, **it.options)
    assert np.abs(both.v[0] - both.v[1]).max() > 1e-4
    slopes = both.gradient(q=w_q)
    for i in range(2):
        some = {x: y[i, 0] for x, y in numbers.items()}
        one = lw.rollout(it.mech, it.q, it.v, tau=it.tau, parameters=some, **it.options)
        alone = one.gradient(q=w_q[i])
        close(slopes.q[i], alone.q, 1e-11)
        for x in numbers:
            close(slopes.inputs[x][i, 0], alone.inputs[x], 1e-11)


def test_a_long_mechanism_moves_with_given_numbers():
    """Its step is too long to be differentiated, but not to be made."""
    mech = lw.models.stewart()
    q, pull = lw.loops.assemble(mech, mech.neutral()).q, np.array([1.0, 0.0, -8.0])
    options = {"duration": 3.0 * STEP, "step": STEP}
    given = lw.rollout(mech, q, parameters={"gravity": pull}, **options)
    expected = lw.rollout(mech.with_gravity(pull), q, **options)
    assert np.abs(expected.v - lw.rollout(mech, q, **options).v).max() > 1e-3
    close(given.v, expected.v, 1e-10)


def test_drift_is_projected_by_the_mass_that_is_given():
    """With a long step: what the measure of the projection changes shows up at 1e-5."""
    it = Sample("four-bar", "euler")
    options = it.options | {"step": 20.0 * STEP, "duration": 20.0 * STEP * STEPS}
    given = nominal(it.mech, "armature") + np.array([0.3, 0.1, 0.2])
    d = np.array([0.1, -0.05, 0.2])

    def cost(armature):
        numbers = {"armature": armature}
        runs = lw.rollout(it.mech, it.q, it.v, tau=it.tau, parameters=numbers, **options)
        return runs, np.sum(it.w_q * runs.q) + np.sum(it.w_v * runs.v)

    by = cost(given)[0].gradient(q=it.w_q, v=it.w_v).inputs["armature"]
    close(by @ d, differences(lambda s: cost(given + s * d)[1]), 1e-4)


@pytest.mark.parametrize("kind", ["task", "state"])
def test_laws(kind):
    """Goals and gains, and the state by way of the law; with a number of the mechanism."""
    it = Sample("four-bar", "rk4" if kind == "task" else "euler")
    rng, nv = np.random.default_rng(0), it.mech.nv
    given = {"gravity": np.array([0.0, 1.0, -9.0])}
    if kind == "task":
        law = lw.control_law(it.mech, lw.Task.joints("crank"), kp=60.0, kv=9.0, loops="open")
        given |= {"goal": it.q[:1] + 0.2 * rng.standard_normal((STEPS, 1)), "kp": np.array([55.0])}
        given |= {"kv": np.linspace(5.0, 12.0, STEPS)[:, None], "velocity": np.array([0.3])}
    else:
        law = StateFeedback.of(it.mech, rng.standard_normal((nv, 2 * nv)), it.q, it.v, it.tau[0])
        given |= {"goal": it.q + 0.1, "tau0": it.tau, "gain": law.inputs["gain"]}

    def run(numbers, start):
        named = dict(numbers)
        parameters = {"gravity": named.pop("gravity")}
        goal = named.pop("goal")
        options = it.options | {"controller": (law, goal), "inputs": named}
        return lw.rollout(it.mech, *start, parameters=parameters, **options)

    def cost(numbers, s=0.0):
        runs = run(numbers, it.start(s))
        return np.sum(it.w_q * runs.q) + np.sum(it.w_v * runs.v)

    slopes = run(given, it.start(0.0)).gradient(q=it.w_q, v=it.w_v)
    for name, x in given.items():
        d = rng.standard_normal(x.shape) * (0.1 + np.abs(x).max())
        expected = differences(lambda s, name=name, x=x, d=d: cost(given | {name: x + s * d}))
        by = slopes.inputs[name]
        assert by.shape == x.shape and abs(expected) > 1e-7
        close(np.sum(by * d), expected, 1e-8, scale=np.linalg.norm(by) * np.linalg.norm(d))
    assert set(slopes.inputs) >= set(given) and "tau" not in slopes.inputs
    speed = differences(lambda s: it.start(s)[1])
    expected = differences(lambda s: cost(given, s))
    close(slopes.q @ it.along + slopes.v @ speed, expected, 1e-8)


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
