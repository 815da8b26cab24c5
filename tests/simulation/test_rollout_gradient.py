"""Gradients through rollouts, and linearised steps: against differences, each other, and MuJoCo."""

from __future__ import annotations

import copy
import importlib
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar.parameters import nominal
from linkwise.errors import ClosureError, ModelError, ShapeError, SimulationError, TroubleWarning
from linkwise.simulation import rollout_gradient
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from tests.algebra.test_differential import STENCIL
from tests.cases import close, state, tree
from tests.dynamics.test_passive import BALLS
from tests.io.mjcf_text import read
from tests.simulation.moving import tumbling
from tests.simulation.test_actuators import arm

linearize_module = importlib.import_module("linkwise.simulation.linearize")
EXPLICIT = ("rk4", "euler", "rk4_mujoco")
OF_LAWS = ("kp", "kv", "velocity", "acceleration")
STEP, STEPS = 1e-2, 7


def slope(function, h=1e-3):
    """d function(s)/ds at 0, by differences of order eight."""
    steps = zip(STENCIL, range(-4, 5), strict=True)
    return sum(weight / h * function(s * h) for weight, s in steps if weight)


def check(mech, given, options, seed=0, bound=1e-9, h=1e-3):
    """All gradients of a rollout along random directions, one input after the other."""
    rng = np.random.default_rng(seed)

    def run(values):
        named = {n: x for n, x in values.items() if n not in ("q", "v")}
        return lw.rollout(mech, values["q"], values["v"], **arranged(named, options))

    runs = run(given)
    w_q, w_v = rng.standard_normal(runs.q.shape), rng.standard_normal(runs.v.shape)
    slopes = runs.gradient(w_q, w_v)
    assert not np.any(slopes.status)
    by_name = {"q": slopes.q, "v": slopes.v} | dict(slopes.inputs)
    assert set(by_name) == set(given)
    total = lambda x: float((x.q * w_q).sum() + (x.v * w_v).sum())  # noqa: E731
    for name, x in given.items():
        shape = (*x.shape[:-1], mech.nv) if name == "q" else x.shape
        d = rng.standard_normal(shape) * (1.0 if name == "q" else 0.1 + np.abs(x).max())

        def at(s, name=name, x=x, d=d):
            there = mech.integrate(x, s * d) if name == "q" else x + s * d
            return total(run(given | {name: there}))

        expected = slope(at, h)
        assert by_name[name].shape == shape
        size = np.linalg.norm(by_name[name]) * np.linalg.norm(d)
        assert abs((by_name[name] * d).sum() - expected) < bound * size, name
        assert size > 1e-6, name
    return runs, slopes


def arranged(values, options):
    """Keywords of a rollout: parameters and inputs of a law by name."""
    out = dict(options)
    if "tau" in values:
        out["tau"] = values["tau"]
    law = out.pop("law", None)
    if law is not None:
        out["controller"] = (law, values["goal"])
        out["inputs"] = {n: x for n, x in values.items() if n in OF_LAWS}
    if "control" in values:
        out["controls"] = values["control"]
    numbers = {n: x for n, x in values.items() if n not in ("tau", "goal", "control", *OF_LAWS)}
    return out | {"parameters": numbers, "duration": STEPS * STEP, "step": STEP}


@pytest.mark.few(2)
@pytest.mark.parametrize("integrator", EXPLICIT)
@pytest.mark.parametrize("name", ["every hinge, armature", "every hinge, others", "floating"])
def test_differences(name, integrator):
    mech = tree(name)
    q, v, _ = state(mech, 3)
    tau = np.random.default_rng(1).standard_normal((STEPS, mech.nv))
    check(mech, {"q": q, "v": 0.5 * v, "tau": tau}, {"integrator": integrator})


@pytest.mark.few(0, 5)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("integrator", EXPLICIT)
def test_random_trees(integrator, seed):
    mech = lw.models.random_tree(8, 20 + seed, floating=seed % 2 == 0)
    q, v, _ = state(mech, seed)
    tau = np.random.default_rng(seed).standard_normal((STEPS, mech.nv))
    check(mech, {"q": q, "v": 0.3 * v, "tau": tau}, {"integrator": integrator}, bound=1e-8)


@pytest.mark.parametrize(
    "mech", [lw.models.chain(3), pytest.param(tumbling(), marks=pytest.mark.prove)]
)
def test_variational(mech):
    """An implicit step: the equation of its adjoint is solved as it is itself."""
    q, v, _ = state(mech, 3)
    tau = np.random.default_rng(1).standard_normal((STEPS, mech.nv))
    check(mech, {"q": q, "v": 0.3 * v, "tau": tau}, {"integrator": "variational"})


def test_dampers_and_springs():
    mech = lw.models.random_tree(4, 2, hinges=("pin", "prismatic"))
    assert mech.damping.any() and mech.stiffness.any()
    q, v, _ = state(mech, 3)
    given = {"q": q, "v": v, "tau": np.ones((STEPS, mech.nv))}
    _, with_them = check(mech, given, {})
    _, without = check(mech, given, {"passive": False})
    assert np.abs(with_them.v - without.v).max() > 1e-3
    check(mech, given, {"integrator": "variational"})


def test_parameters():
    mech = lw.models.random_tree(3, 4, floating=True)
    q, v, _ = state(mech, 3)
    names = ["gravity", "inertia", "armature"]
    given = {"q": q, "v": 0.3 * v, "tau": np.ones(mech.nv)}
    given |= {name: nominal(mech, name) for name in names}
    given["armature"] = 0.1 + given["armature"]
    check(mech, given, {"record_every": 3}, h=1e-4, bound=1e-8)


def test_payload_that_is_picked_up():
    """Numbers of the mechanism may change from step to step, and have a gradient for each."""
    mech = lw.models.seven_dof_arm()
    q, v, _ = state(mech, 3)
    node = mech.nodes[-1].name
    payload = np.zeros((STEPS, 10))
    payload[3:] = [1.5, 0.1, 0.0, 0.2, 0.05, 0.06, 0.04, 0.0, 0.0, 0.01]
    given = {"q": q, "v": v, "tau": np.ones(mech.nv), f"payload:{node}": payload}
    check(mech, given, {"integrator": "euler"}, h=1e-4)


def test_laws():
    mech = lw.models.puma560()
    law = lw.control_law(mech, lw.Task.position(mech.nodes[-1].name), kp=80.0, kv=15.0)
    rng = np.random.default_rng(0)
    q = mech.random(rng) * np.ones((3, 1)) + 0.1 * rng.standard_normal((3, mech.nq))
    goal = law.inputs["goal"] + 0.3 * rng.standard_normal((3, STEPS, 3))
    given = {"q": q, "v": np.zeros((3, mech.nv)), "goal": goal}
    given |= {"kp": np.array([60.0, 70.0, 80.0]), "kv": np.full((3, 1, 1), 12.0)}
    given |= {name: rng.standard_normal(3) for name in ("velocity", "acceleration")}
    given["v"] = given["v"] + 0.1 * rng.standard_normal(given["v"].shape)
    check(mech, given, {"law": law}, bound=1e-8)


@pytest.mark.parametrize("integrator", ["rk4", "euler"])
def test_actuators(integrator):
    """Commands have gradients; joint forces that all steps share are not mixed up with them."""
    servo = lw.Actuator.position("servo", "a", kp=40.0, kv=2.0)
    motor = lw.Actuator.motor("motor", "b", gear=3.0)
    mech = arm(servo, motor)
    rng = np.random.default_rng(0)
    given = {"q": np.array([0.3, -0.2]), "v": np.array([0.5, 0.1]), "tau": np.array([0.4, -0.3])}
    given["control"] = rng.standard_normal((STEPS, 2))
    check(mech, given, {"integrator": integrator})


def test_actuators_do_not_act_in_variational_steps():
    mech = arm(lw.Actuator.motor("motor", "a"))
    with pytest.raises(ModelError, match="controls were given with integrator='variational'"):
        lw.rollout(mech, [0.1, 0.2], duration=0.05, integrator="variational", controls=[1.0])


def test_what_motions_and_steps_share_is_summed():
    mech = lw.models.puma560()
    rng = np.random.default_rng(0)
    q, v = mech.random(rng), 0.3 * rng.standard_normal((4, mech.nv))
    tau = rng.standard_normal((4, STEPS, mech.nv))
    w = rng.standard_normal((4, STEPS + 1, mech.nq))
    options = {"duration": STEPS * STEP, "step": STEP}
    each = lw.rollout(mech, np.tile(q, (4, 1)), v, tau=tau, **options).gradient(w)
    close(lw.rollout(mech, q, v, tau=tau, **options).gradient(w).q, each.q.sum(axis=0), 1e-13)
    same = np.broadcast_to(tau[:1, :1], tau.shape)
    each = lw.rollout(mech, q, v, tau=same, **options).gradient(w)
    for shared in (tau[0, 0], tau[:1, :1], same[:, :1], same[0]):
        slopes = lw.rollout(mech, q, v, tau=shared, **options).gradient(w)
        shape = (1,) * (3 - shared.ndim) + shared.shape
        axes = tuple(i for i in (0, 1) if shape[i] == 1)
        close(slopes.tau, each.tau.sum(axis=axes, keepdims=True).reshape(shared.shape), 1e-12)
    for i in range(4):  # a batch is its motions
        one = lw.rollout(mech, q, v[i], tau=same[i], **options).gradient(w[i])
        close(each.tau[i], one.tau, 1e-12)
        close(each.v[i], one.v, 1e-12)


@pytest.mark.parametrize("memory", [1 << 26, 1])
def test_checkpoints(memory, monkeypatch):
    """Fewer records need less memory, and give the same; so do parts of the way back."""
    monkeypatch.setitem(rollout_gradient.MEMORY, "cpu", memory)
    mech, steps = lw.models.puma560(), 11
    rng = np.random.default_rng(0)
    q, v = mech.random(rng), rng.standard_normal((2, mech.nv))
    tau = rng.standard_normal((steps, mech.nv))
    motion = {"duration": steps * STEP, "step": STEP, "tau": tau}
    parameters = {"gravity": np.array([0.0, 1.0, -9.0])}
    every = lw.rollout(mech, q, v, **motion, parameters=parameters)
    for apart in (2, 3, 5, 11, 20):
        runs = lw.rollout(mech, q, v, **motion, parameters=parameters, record_every=apart)
        w_q, w_v = rng.standard_normal(runs.q.shape), rng.standard_normal(runs.v.shape)
        all_q, all_v = np.zeros(every.q.shape), np.zeros(every.v.shape)
        at = np.round(runs.t / STEP).astype(int)
        all_q[:, at], all_v[:, at] = w_q, w_v
        slopes, expected = runs.gradient(w_q, w_v), every.gradient(all_q, all_v)
        for name in ("tau", "gravity"):
            close(slopes.inputs[name], expected.inputs[name], 1e-12)
        close(slopes.q, expected.q, 1e-12)
        close(slopes.v, expected.v, 1e-12)


def test_weights_of_the_last_record():
    mech = lw.models.puma560()
    runs = lw.rollout(mech, mech.random(seed=1), duration=0.1, step=STEP)
    w = np.arange(1.0, 1.0 + mech.nq)
    dense = np.zeros_like(runs.q)
    dense[-1] = w
    close(runs.gradient(q=w).q, runs.gradient(q=dense).q, 1e-14)
    close(runs.gradient(v=w).tau, runs.gradient(v=dense).tau, 1e-14)
    first = np.zeros_like(runs.q)
    first[0] = w  # the state the motion begins with
    close(runs.gradient(q=first).q, w, 1e-15)
    assert not runs.gradient(q=first).tau.any() and not runs.gradient().q.any()


@pytest.mark.few(2)
@pytest.mark.parametrize("integrator", [*EXPLICIT, "variational"])
def test_linearized_steps(integrator):
    """A and B: against differences of the step, and their product against the gradient."""
    mech = tumbling()
    q, v, _ = state(mech, 5)
    forces = np.random.default_rng(2).standard_normal((STEPS, mech.nv))
    options = {"step": STEP, "integrator": integrator}
    runs = lw.rollout(mech, q, v, tau=forces, duration=STEPS * STEP, **options)
    A, B = lw.linearize(mech, runs.q[:-1], runs.v[:-1], forces, **options)
    direction = np.random.default_rng(0).standard_normal(3 * mech.nv)

    def after(s):
        d = s * direction
        start = mech.integrate(q, d[: mech.nv]), v + d[mech.nv : 2 * mech.nv]
        one = lw.rollout(mech, *start, tau=forces[0] + d[2 * mech.nv :], duration=STEP, **options)
        return np.concatenate([mech.difference(runs.q[1], one.q[-1]), one.v[-1]])

    close(np.concatenate([A[0], B[0]], axis=1) @ direction, slope(after), 1e-9)
    w = np.random.default_rng(1).standard_normal(mech.nv)
    slopes = runs.gradient(v=w)
    row = np.concatenate([np.zeros(mech.nv), w])
    for n in reversed(range(STEPS)):
        close(slopes.tau[n], row @ B[n], 1e-9)
        row = row @ A[n]
    close(np.concatenate([slopes.q, slopes.v]), row, 1e-9)
    one = lw.linearize(mech, runs.q[2], runs.v[2], forces[2], **options)
    close(one.A, A[2], 1e-12)


STEPPED = {
    "springs of balls, carried weight": lambda: read(BALLS),
    "free": tumbling,
    "every hinge": lambda: lw.models.random_tree(2, 4, mass_ratio=3.0, drives=True),
    "arm": lw.models.puma560,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("integrator", EXPLICIT)
@pytest.mark.parametrize("name", STEPPED)
def test_steps_by_one_kernel(name, integrator, passive, monkeypatch):
    """The same matrices as those of other integrators, gradients of rollouts; batches as well."""
    mech = STEPPED[name]()
    monkeypatch.setattr(linearize_module, "MOST", dict.fromkeys(EXPLICIT, 12))
    assert mech.nv <= 12
    q, v, tau = state(mech, 3)
    batch = tuple(np.stack([x, x]) for x in (q, v, tau))
    options = {"step": STEP, "integrator": integrator, "passive": passive}
    one, both = lw.linearize(mech, q, v, tau, **options), lw.linearize(mech, *batch, **options)
    kernel = linearize_module._one_step(mech, integrator, passive, STEP)
    monkeypatch.setattr(linearize_module, "MOST", {})
    slow = lw.linearize(STEPPED[name](), *batch, **options)
    assert np.abs(one.A - np.eye(2 * mech.nv)).max() > 1e-3
    for x, by_kernel, y, expected in zip(one, kernel(q, v, tau), both, slow, strict=True):
        assert np.array_equal(x, by_kernel)
        close(x, expected[0], 1e-11)
        close(y, expected, 1e-11)


def test_a_short_step_is_continuous_time():
    mech = tumbling()
    q, v, tau = state(mech, 1)
    h = 1e-5
    A, B = lw.linearize(mech, q, v, tau, step=h, integrator="euler", passive=False)
    slow = lw.linearize(mech, q, v, tau)
    close((A - np.eye(2 * mech.nv)) / h, slow.A, 1e-3)
    close(B[mech.nv :] / h, slow.B[mech.nv :], 1e-3)


@pytest.mark.parametrize(
    "make", [lw.models.puma560, pytest.param(lw.models.quadruped, marks=pytest.mark.prove)]
)
def test_operations(make):
    """The rollout and its gradient together cost less than four times the rollout."""
    requests = (MotionRequest(make(), reverse=x) for x in (None, ()))
    there, back = (motion_kernel(request).ops.total() for request in requests)
    assert there + back < 4.0 * there


def test_single_precision():
    mech = lw.models.puma560()
    q, v, tau = state(mech, 1)
    motion = {"duration": 0.05, "step": STEP, "tau": tau}
    w = np.ones(mech.nq)
    slopes = lw.rollout(mech, q, v, **motion, dtype=np.float32).gradient(q=w)
    assert slopes.tau.dtype == np.float32
    exact = lw.rollout(mech, q, v, **motion).gradient(q=w)
    close(slopes.tau, exact.tau, 1e-4)
    close(slopes.q, exact.q, 1e-4)


def test_motions_that_fail():
    """Gradients of NaN, a code, and a warning; never a silent NaN."""
    mech = lw.models.pendulum(2)
    v = np.array([[1.0, 1.0], [1e200, -1e200]])
    with pytest.warns(TroubleWarning, match="1 of 2 motions"):
        runs = lw.rollout(mech, np.zeros(2), v, duration=0.1, step=STEP)
    w = np.ones((2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slopes = runs.gradient(q=w)
    assert slopes.status.tolist() == runs.status.tolist() and slopes.status[1]
    assert np.isfinite(slopes.v[0]).all() and np.isnan(slopes.v[1]).all()
    good = lw.rollout(mech, np.zeros(2), v[:1], duration=0.1, step=STEP)
    close(slopes.v[0], good.gradient(q=w[:1]).v[0], 1e-13)
    huge = np.full((11, 2), 1e308)
    one = lw.rollout(mech, np.zeros(2), v[0], duration=0.1, step=STEP)
    with pytest.raises(SimulationError, match="gradient"):
        one.gradient(q=huge)
    both = lw.rollout(mech, np.zeros(2), v[[0, 0]], duration=0.1, step=STEP)
    with pytest.warns(TroubleWarning, match="gradients of 1 of 2"):
        slopes = both.gradient(q=np.stack([huge, huge / 1e308]))
    assert np.isnan(slopes.v[0]).all() and np.isfinite(slopes.v[1]).all()
    assert slopes.status[0] and not slopes.status[1]


def test_status_of_a_linearized_step():
    mech = lw.models.pendulum(2)
    v, codes = np.array([[1.0, 1.0], [1e200, -1e200]]), np.zeros(2, np.int32)
    A, _ = lw.linearize(mech, np.zeros(2), v, np.zeros(2), step=STEP, status=codes)
    assert codes[0] == 0 and codes[1]
    assert np.isfinite(A[0]).all() and np.isnan(A[1]).all()
    with pytest.raises(SimulationError):
        lw.linearize(mech, np.zeros(2), v[1], np.zeros(2), step=STEP)


def test_what_has_no_gradient():
    mech = lw.models.stewart()  # its step is too long for one kernel
    runs = lw.rollout(mech, lw.loops.assemble(mech).q, duration=0.02, step=STEP)
    with pytest.raises(ModelError, match="loops='open'"):
        runs.gradient(q=np.ones(mech.nq))
    mech = lw.models.four_bar()
    still = mech.neutral(), np.zeros(mech.nv), np.zeros(mech.nv)
    with pytest.raises(ClosureError, match="continuous time"):
        lw.linearize(mech, *still, step=STEP, integrator="variational")
    opened = lw.linearize(mech, *still, step=STEP, loops="open")
    assert opened.A.shape == (2 * mech.nv, 2 * mech.nv)
    arm = lw.models.puma560()
    q = arm.neutral()
    runs = lw.rollout(arm, q, duration=0.02, step=STEP)
    with pytest.raises(ShapeError, match=r"\(3, 6\)"):
        runs.gradient(q=np.ones((2, 6)))
    with pytest.raises(ModelError, match="copy"):
        copy.copy(runs).gradient(q=np.ones(6))
    with pytest.raises(ModelError, match="variational"):
        lw.rollout(
            arm,
            arm.neutral(),
            duration=0.02,
            integrator="variational",
            parameters={"gravity": [0, 0, 1]},
        )
    with pytest.raises(ShapeError, match="10 numbers"):
        lw.rollout(
            arm, arm.neutral(), duration=0.02, parameters={f"payload:{arm.nodes[-1].name}": [1.0]}
        )
    with pytest.raises(ModelError, match="'locked', which does not work with the loops"):
        lw.rollout(mech, mech.neutral(), duration=0.02, parameters={"locked": np.zeros(mech.nv)})
