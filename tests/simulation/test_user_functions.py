"""Functions of the user: they cannot change the motion behind its back, nor it what they gave."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ShapeError
from tests.simulation.moving import mass_on_spring, pendulum


def spoils(which):
    """A function that writes into its argument of that number."""

    def function(t, q, v, tau=None):
        np.asarray((t, q, v, tau)[which])[...] = 0.3
        return 0.0

    return function


@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
@pytest.mark.parametrize("which", [1, 2], ids=["q", "v"])
@pytest.mark.parametrize("kind", ["tau", "controller", "held", "law", "forces", "probe", "watch"])
def test_a_function_cannot_write_into_the_state(kind, which, integrator):
    wrong = spoils(which)
    given = {
        "tau": {"tau": lambda t, q, v: wrong(t, q, v)},
        "controller": {"controller": lambda t, q, v: wrong(t, q, v)},
        "held": {"controller": lambda t, q, v: wrong(t, q, v), "control_step": 0.01},
        "law": {"controller": (lambda q, v, goal: wrong(goal, q, v), 0.0)},
        "forces": {"forces": lambda t, q, v: wrong(t, q, v) and {}},
        "probe": {"probes": {"x [1]": wrong}},
        "watch": {"watch": {"x": wrong}},
    }[kind]
    with pytest.raises(ValueError, match="read-only") as result:
        lw.simulate(pendulum(), [0.2], duration=0.02, integrator=integrator, **given)
    assert any("lw.simulate had reached t = 0 s" in x for x in result.value.__notes__)


@pytest.mark.parametrize("kind", ["probe", "watch"])
def test_a_function_cannot_write_into_the_joint_forces(kind):
    wrong = {"x": spoils(3)}
    given = {"probes": wrong} if kind == "probe" else {"watch": wrong}
    with pytest.raises(ValueError, match="read-only"):
        lw.simulate(pendulum(), [0.2], duration=0.02, tau=lambda t, q, v: 1.0 + 0.0 * v, **given)


@pytest.mark.parametrize("control_step", [None, 0.01])
def test_answers_in_a_buffer_that_is_used_again(control_step):
    """The same numbers as from functions that make a new array each time."""
    buffer, wrench = np.zeros(1), np.zeros(6)

    def tau(t, q, v):
        buffer[0] = 3.0 * np.sin(20.0 * t)
        return buffer

    def controller(t, q, v):
        buffer[0] = -2.0 * q[0]
        return buffer

    def forces(t, q, v):
        wrench[3] = np.cos(30.0 * t)
        return {"bob": wrench}

    def run(*functions):
        names = ("tau", "controller", "forces")
        given = dict(zip(names, functions, strict=True))
        return lw.simulate(pendulum(), [0.2], duration=0.1, control_step=control_step, **given)

    rec = run(tau, controller, forces)
    fresh = run(
        lambda t, q, v: tau(t, q, v).copy(),
        lambda t, q, v: controller(t, q, v).copy(),
        lambda t, q, v: {"bob": forces(t, q, v)["bob"].copy()},
    )
    assert np.array_equal(rec.q, fresh.q)
    assert np.array_equal(rec.tau, fresh.tau) and np.ptp(rec.tau) > 1.0
    assert np.array_equal(rec["force.bob"], fresh["force.bob"])
    assert rec["force.bob[fx]"] == pytest.approx(np.cos(30.0 * rec.t), abs=1e-15)


def test_a_table_is_read_once():
    table = np.ones((10, 1))

    def spoil(t, q, v, tau):
        table[:] = 7.0
        return 0.0

    options = {"duration": 0.1, "control_step": 0.01, "probes": {"x [1]": spoil}}
    assert not (lw.simulate(pendulum(), controller=table, **options).tau - 1.0).any()


@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
@pytest.mark.parametrize("start", [0.0, 1.7e9, -3.1e8])
def test_a_table_has_a_row_for_each_tick(start, integrator):
    """0.07 s is no binary number, and clocks count seconds since long ago: 1.7e9 s, to 2e-7 s."""
    count = 40
    table = np.arange(1.0, count + 1.0)[:, None]
    rec = lw.simulate(
        mass_on_spring(), duration=0.07 * count, step=0.07, controller=table, control_step=0.07,
        start=start, integrator=integrator, record_every=1,
    )  # fmt: skip
    assert len(rec) == count + 1
    assert np.array_equal(rec.tau[:-1], table)
    # The impulse of all rows: Σ τ Δt − m g t = m v, whatever the times are called.
    gained = 0.07 * table.sum() - 2.0 * 9.81 * 0.07 * count
    close = 1e-9 if integrator == "rk4" else 1e-4  # its steps are cut at times with 2e-7 s
    assert 2.0 * rec.v[-1, 0] == pytest.approx(gained, rel=close)


@pytest.mark.parametrize("given", [np.ones((1, 1)), [[1.0]], np.ones((2, 1)), np.ones(2)])
@pytest.mark.parametrize("what", ["controller", "tau"])
def test_joint_forces_of_a_wrong_shape(what, given):
    with pytest.raises(ShapeError, match=rf"{what} at t = 0 s"):
        lw.simulate(pendulum(), duration=0.1, **{what: lambda t, q, v: given})
