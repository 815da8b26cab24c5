"""Linearised steps of a batch in which some states have no result: the others are right."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar import status
from linkwise.errors import ModelError, SimulationError, TroubleWarning
from tests.cases import close

STEP = 1e-3
INTEGRATORS = ("euler", "rk4", "rk4_mujoco", "variational", "implicit")


def ball_and_arm():
    """A ball that carries an arm."""
    inertia = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.25]))
    builder = lw.Builder("ball_and_arm").body("ball", hinge=lw.hinges.Spherical(), inertia=inertia)
    builder.body("arm", "ball", lw.hinges.Pin(), inboard=(0.0, 0.0, 0.3), inertia=inertia)
    return builder.build()


def gimbal():
    """A body on a gimbal hinge, which is locked where the second angle is a right one."""
    inertia = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.25]))
    return lw.Builder("gimbal").body("rotor", hinge=lw.hinges.Gimbal(), inertia=inertia).build()


def states(mech, count=5):
    rng = np.random.default_rng(3)
    q = np.stack([mech.random(rng) for _ in range(count)])
    return q, *rng.normal(size=(2, count, mech.nv))


def compare(mech, given, bad, **options):
    """Rows `bad`, with their codes, are NaN with a status; all others as each by itself."""
    count = len(given[0])
    codes = np.full(count, -1, np.int32)
    some = lw.linearize(mech, *given, status=codes, **options)
    assert dict(enumerate(codes)) == dict.fromkeys(range(count), 0) | bad
    for i in range(count):
        assert np.isnan([*some.A[i].flat, *some.B[i].flat]).all() == (i in bad)
        if i not in bad:
            one = lw.linearize(mech, *(x[i] for x in given), **options)
            assert np.abs(one.A - np.eye(len(one.A))).max() > 1e-4
            close(some.A[i], one.A, 1e-13)
            close(some.B[i], one.B, 1e-13)
    with pytest.warns(TroubleWarning) as warned:
        again = lw.linearize(mech, *given, **options)
    np.testing.assert_array_equal(again.A, some.A)
    return [str(x.message) for x in warned]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_inputs_that_are_not_finite(integrator):
    mech = ball_and_arm()
    q, v, tau = states(mech)
    q[0, 4], v[2, 1], tau[3, 0] = np.nan, np.inf, -np.inf
    q[4, :4] *= 1.5
    bad = dict.fromkeys((0, 2, 3), status.INPUT) | {4: status.quaternion(0)}
    (text,) = compare(mech, (q, v, tau), bad, step=STEP, integrator=integrator)
    assert text.startswith(
        "4 of 5 states have no result and are NaN; row 0: an input is not finite"
    )


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_singular_states(integrator):
    mech = gimbal()
    q, v, tau = states(mech)
    q[1, 1] = np.pi / 2
    bad = {1: status.hinge(0)}
    (text,) = compare(mech, (q, v, tau), bad, step=STEP, integrator=integrator)
    assert "after t = 0 s" in text
    assert "nothing resists it" in text
    with pytest.raises(SimulationError, match=r"nothing resists it.* after t = 0 s"):
        lw.linearize(mech, q[1], v[1], tau[1], step=STEP, integrator=integrator)


def test_both_at_once():
    mech = gimbal()
    q, v, tau = states(mech)
    q[1, 1], v[4, 0] = np.pi / 2, np.nan
    bad = {1: status.hinge(0), 4: status.INPUT}
    assert len(compare(mech, (q, v, tau), bad, step=STEP)) == 2


@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_with_loops_held(integrator):
    mech = lw.models.four_bar()
    guess = np.random.default_rng(1).normal(0.0, 0.2, (3, mech.nv))
    starts = mech.neutral() + guess
    q = np.stack([lw.loops.project_position(mech, x).required() for x in starts])
    v = np.zeros((3, mech.nv))
    tau = np.random.default_rng(0).normal(size=(3, mech.nv))
    v[1, 0] = np.nan
    compare(mech, (q, v, tau), {1: status.INPUT}, step=STEP, integrator=integrator)


def test_commands():
    inertia = lw.SpatialInertia.from_com(1.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.25]))
    builder = lw.Builder("driven").body("arm", hinge=lw.hinges.Pin((0, 1, 0)), inertia=inertia)
    mech = builder.actuator(lw.Actuator.motor("motor", "arm")).build()
    q, v, tau = states(mech)
    number = np.array([0.1, np.nan, 0.3, 0.4, 0.5])
    codes = np.zeros(5, np.int32)
    options = {"step": STEP, "integrator": "implicit", "status": codes}
    for controls in ({"motor": number}, number[:, None]):
        lw.linearize(mech, q, v, tau, controls=controls, **options)
        assert codes.tolist() == [0, status.INPUT, 0, 0, 0]


def test_a_single_state():
    mech = ball_and_arm()
    q, v, tau = (x[0] for x in states(mech))
    v[1] = np.nan
    code = np.array(-1, np.int32)
    A, B = lw.linearize(mech, q, v, tau, step=STEP, status=code)
    assert code == status.INPUT
    assert np.isnan(A).all()
    assert np.isnan(B).all()
    with pytest.raises(ModelError, match=r"v is not finite at .ball\.omega_y."):
        lw.linearize(mech, q, v, tau, step=STEP)
