"""Recordings: channels by name, states between records, cutting, errors that help."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.closed.motion import rk4_step
from linkwise.simulation import Recording


def moved(mech, *, duration=0.5, h=1e-3, every=5, tau=None, seed=3, speed=0.5):
    """t, q, v, tau of a motion by fourth-order Runge-Kutta."""
    q, v = mech.random(seed), speed * mech.random_velocity(seed)
    force = (lambda t, q, v: np.zeros(mech.nv)) if tau is None else tau

    def acceleration(t, q, v):
        return lw.forward_dynamics(mech, q, v, force(t, q, v) - mech.damping * v)

    rows = [(0.0, q, v, force(0.0, q, v))]
    for k in range(round(duration / h)):
        q, v = rk4_step(mech, acceleration, k * h, q, v, h)
        if (k + 1) % every == 0:
            t = (k + 1) * h
            rows.append((t, q, v, force(t, q, v)))
    return tuple(np.array(x) for x in zip(*rows, strict=True))


@pytest.fixture(scope="module")
def arm():
    mech = lw.models.puma560()
    return Recording.of(mech, *moved(mech)[:3], integrator="rk4", step=1e-3, steps=500)


def test_standard_channels_are_the_numbers_of_each_record(arm):
    mech, i = arm.mech, 40
    q, v = arm.q[i], arm.v[i]
    assert arm["energy.kinetic"][i] == pytest.approx(0.5 * v @ lw.mass_matrix(mech, q) @ v)
    c = mech.center_of_mass(q)
    assert arm["energy.potential"][i] == pytest.approx(-mech.total_mass * mech.gravity @ c)
    assert np.allclose(arm["center_of_mass"][i], c)
    both = lw.momentum(mech, q, v, about="world")
    assert np.allclose(arm["momentum.linear"][i], both[3:])
    assert np.allclose(arm["momentum.angular"][i], both[:3])
    assert arm.channels["q"].units == ("rad",) * 6
    assert arm.channels["v"].units == ("rad/s",) * 6
    assert arm.channels["tau"].units == ("N m",) * 6
