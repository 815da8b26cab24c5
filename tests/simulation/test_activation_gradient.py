"""Derivatives of motions and steps with activations of actuators, against differences."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation import rollout_gradient
from tests.cases import close
from tests.simulation.test_actuators import arm
from tests.simulation.test_rollout_gradient import STEPS, check, slope

LAGGED = lw.Actuator("lagged", (("a", 2.0),), gain=(8.0, 0.0, -0.3), bias=(0.0, -3.0, -0.2),
                     dynamics="filter", time_constant=0.03)  # fmt: skip
SUMMED = lw.Actuator("summed", (("b", 1.0),), gain=(30.0, 2.0, 0.0), dynamics="integrator")
PLAIN = lw.Actuator.position("plain", "b", kp=20.0, kv=1.0)
STATE = {"q": np.array([0.3, -0.2]), "v": np.array([0.5, 0.1])}


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit"])
def test_gradients_of_rollouts(integrator):
    """Commands of each step, and one that all steps share."""
    mech = arm(LAGGED, PLAIN, SUMMED)
    commands = np.random.default_rng(0).standard_normal((STEPS, 3))
    tau = {"tau": np.array([0.4, -0.3])}
    check(mech, STATE | tau | {"control": commands}, {"integrator": integrator}, bound=1e-8)
    runs, slopes = check(mech, STATE | tau | {"control": commands[0]}, {"integrator": integrator},
                         bound=1e-8)  # fmt: skip
    assert slopes.inputs["control"].shape == (3,) and runs.origin.request.actuated


def test_many_motions_and_checkpoints(monkeypatch):
    mech = arm(LAGGED, PLAIN, SUMMED)
    rng = np.random.default_rng(1)
    commands, w = rng.standard_normal((3, 20, 3)), rng.standard_normal(2)
    options = {"duration": 0.2, "step": 1e-2, "integrator": "euler"}
    q, v = STATE.values()
    each = [lw.rollout(mech, q, v, controls=u, **options).gradient(q=w) for u in commands]
    many = lw.rollout(mech, [q] * 3, v, controls=commands, **options).gradient(q=np.tile(w, (3, 1)))
    seldom = lw.rollout(mech, [q] * 3, v, controls=commands, record_every=6, **options)
    monkeypatch.setitem(rollout_gradient.MEMORY, "cpu", 1000)
    again = seldom.gradient(q=np.tile(w, (3, 1)))
    for k, one in enumerate(each):
        for x in (many, again):
            close(x.inputs["control"][k], one.inputs["control"], 1e-12)
            close(x.q[k], one.q, 1e-12)
    assert min(np.abs(one.inputs["control"][:-1]).min() for one in each) > 1e-9
    last = np.stack([one.inputs["control"][-1] for one in each])
    assert not last[:, [0, 2]].any() and last[:, 1].all()  # activations of a step came before it


def test_bounds_hold():
    """Commands and activations that are cut have no slope while they are."""
    bounded = lw.Actuator("bounded", (("b", 1.0),), dynamics="integrator", gain=(40.0, 0.0, 0.0),
                          control=(-3.0, 3.0), activation=(-0.05, 0.05))  # fmt: skip
    mech, (q, v) = arm(bounded), STATE.values()
    # up to the bound, held there by the command, back, and a command beyond its range
    commands = np.array([2.0, 2.0, 2.0, 2.5, -1.0, -1.5, -4.0, 0.5, 0.3, 0.2])[:, None]
    w = np.random.default_rng(2).standard_normal(2)

    def last(u):
        runs = lw.rollout(mech, q, v, controls=u, duration=0.1, step=1e-2, integrator="euler")
        return runs, float(runs.q[-1] @ w)

    slopes = last(commands)[0].gradient(q=w).inputs["control"]
    expected = [slope(lambda s, e=e: last(commands + s * e)[1]) for e in np.eye(10)[..., None]]
    close(slopes[:, 0], np.array(expected), 1e-9)
    # 2 and 3 at the bound of the activation, 6 at that of the command, 9 acts after the end
    assert np.flatnonzero(slopes).tolist() == [0, 1, 4, 5, 7, 8]


def stepped(mech, x, u, tau, h, integrator):
    """x = (q, v, a) after a step of a simulator, whose state is set."""
    seen = ("q", "v", "activation")
    sim = lw.Simulator(mech, q=x[:2], v=x[2:4], step=h, integrator=integrator, observations=seen)
    sim.state[-len(x[4:]) :] = x[4:]
    sim.inputs["tau"][...] = tau
    return sim.step(u).copy()


@pytest.mark.parametrize("integrator", ["euler", "rk4", "implicit"])
def test_linearized_steps(integrator):
    """A and B of (q, v, a), where an activation changes a servo's stiffness as well."""
    mech, h = arm(LAGGED, PLAIN, SUMMED), 1e-2
    u, tau = np.array([0.7, -0.3, 1.1]), np.array([0.4, -0.3])
    x, options = np.array([0.3, -0.2, 0.5, 0.1, 0.35, -0.02]), {"integrator": integrator}
    given = {"controls": u, "activations": x[4:], "step": h} | options
    A, B = lw.linearize(mech, x[:2], x[2:4], tau, **given)
    assert A.shape == (6, 6) and B.shape == (6, 2)
    d = np.random.default_rng(4).standard_normal((6, 8))
    for row in d:
        expected = slope(
            lambda s, row=row: stepped(mech, x + s * row[:6], u, tau + s * row[6:], h, integrator)
        )
        close(np.concatenate([A, B], axis=1) @ row, expected, 1e-9)
    assert np.abs(A[2:4, 4:]).min(axis=0).min() > 0.0 and not A[4:, :4].any() and not B[4:].any()
    both = lw.linearize(mech, [x[:2]] * 2, x[2:4], tau, **given)
    close(both.A, np.stack([A, A]), 1e-14)
    again = lw.linearize(mech, [x[:2]] * 2, x[2:4], tau, out=both, **given)
    assert again.A is both.A
    status = np.zeros(2, np.int32)
    some = lw.linearize(mech, [x[:2], [np.nan, 0.0]], x[2:4], tau, status=status, **given)
    close(some.A[0], A, 1e-14)
    assert status[0] == 0 and status[1] != 0 and np.isnan(some.A[1, :4]).all()


def test_linearized_in_continuous_time():
    mech, u, tau = arm(LAGGED, PLAIN, SUMMED), np.array([0.7, -0.3, 1.1]), np.array([0.4, -0.3])
    q, v, a = np.array([0.3, -0.2]), np.array([0.5, 0.1]), np.array([0.35, -0.02])

    def rate(x):
        given = {"controls": u, "activations": x[4:6], "passive": True}
        vdot = lw.forward_dynamics(mech, x[:2], x[2:4], x[6:], **given)
        return np.concatenate([x[2:4], vdot, [(u[0] - x[4]) / 0.03, u[2]]])

    x = np.concatenate([q, v, a, tau])
    options = {"controls": u, "activations": a}
    full = np.concatenate(lw.linearize(mech, q, v, tau, **options), axis=1)
    expected = np.stack([slope(lambda s, e=e: rate(x + s * e)) for e in np.eye(8)], axis=1)
    close(full, expected, 1e-9)
    by = lw.forward_dynamics_derivatives(mech, q, v, tau, passive=True, **options)
    close(by.q, full[2:4, :2], 1e-12)
    status = np.zeros(2, np.int32)
    many = lw.linearize(mech, [q, q], v, tau, activations=[a, a + 1e-3], controls=u, status=status)
    close(many.A[0], full[:, :6], 1e-13)
    assert np.abs(many.A[1] - many.A[0]).max() > 1e-6 and not status.any()


def test_a_bound_holds_an_activation():
    bounds = {"dynamics": "filter", "time_constant": 0.1, "activation": (-1.0, 0.5)}
    mech = arm(lw.Actuator("m", (("a", 1.0),), **bounds))
    state = [0.1, 0.2], [0.0, 0.0], [0.0, 0.0]
    for u, rate in ((0.9, 0.0), (0.4, -10.0)):
        both = [lw.linearize(mech, *state, controls=[u], activations=a) for a in (0.5, 7.0)]
        assert both[0].A[4, 4] == rate and np.array_equal(both[0].A, both[1].A)
        one = lw.linearize(mech, *state, controls=[u], activations=0.5, step=0.01)
        close(one.A[4, 4], np.exp(-0.1) if rate else 0.0, 1e-14)


def test_mistakes_are_named():
    mech, state = arm(LAGGED), ([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
    for step in (None, 0.01):
        with pytest.raises(ModelError, match="activations were given without controls"):
            lw.linearize(mech, *state, activations=[0.1], step=step)
        with pytest.raises(ModelError, match="'lagged' have an activation"):
            lw.linearize(mech, *state, controls=[0.1], step=step)
        with pytest.raises(ModelError, match="no actuator of 'arm' has one"):
            lw.linearize(arm(PLAIN), *state, controls=[0.1], activations=[0.1], step=step)
    with pytest.raises(ModelError, match="without controls"):
        lw.forward_dynamics_derivatives(mech, *state, activations=[0.1])
