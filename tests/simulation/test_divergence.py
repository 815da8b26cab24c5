"""Motions that grow without bounds end soon, whatever makes the steps, and the advice fits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import EnergyWarning, SimulationError
from tests.simulation.moving import mass_on_spring, steps_by_kernel


def held_too_long(**options):
    """Damping by a controller in ticks: by 1 − g T/m it grows a few times from tick to tick."""
    return lw.simulate(
        lw.models.pendulum(2), [0.3, 0.1], duration=5.0, control_step=0.01, progress=False,
        controller=lambda t, q, v: -800.0 * v, **options,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["compiled", "in Python", "adaptive"])
def test_a_controller_that_is_held_too_long_is_told_as_the_cause(way, monkeypatch):
    """With feedback in ticks of 10 ms no shorter step and no other integrator helps."""
    steps_by_kernel(monkeypatch, way == "compiled")
    options = {"integrator": "adaptive"} if way == "adaptive" else {"step": 1e-3}
    with pytest.raises(SimulationError) as result:
        held_too_long(**options)
    text = str(result.value)
    assert "'pendulum_2' diverged after t = " in text and "its speeds grow without bounds" in text
    held = text.index("The controller is held for 0.01 s")
    assert text[held:].startswith(
        "The controller is held for 0.01 s; try a shorter control_step or smaller gains."
    )
    assert "integrator='adaptive'" not in text
    rec = result.value.recording
    assert isinstance(rec, lw.Recording) and np.isfinite(rec.v).all() and rec.t[-1] < 1.0


def test_without_ticks_the_step_is_the_cause():
    with pytest.raises(SimulationError, match=r"A step of 0\.01 s is too long") as result:
        lw.simulate(
            lw.models.pendulum(2), [0.3, 0.1], duration=9.0, step=0.01,
            controller=lambda t, q, v: -1e6 * v,
        )  # fmt: skip
    assert "held" not in str(result.value)


def test_a_table_in_ticks_has_no_gains():
    table = np.full((100, 2), 1e13)
    with pytest.raises(SimulationError, match="diverged") as result:
        lw.simulate(
            lw.models.pendulum(2), [0.3, 0.1], duration=1.0, controller=table, control_step=0.01
        )
    assert "held" not in str(result.value)


def test_adaptive_steps_do_not_follow_speeds_that_nothing_has():
    """Growth without feedback from ticks: e-fold in 10 ms, and steps as short as turns are."""
    request = []
    with pytest.raises(SimulationError, match="diverged after t = 0") as result:
        lw.simulate(
            lw.models.pendulum(2), [0.3, 0.1], [1.0, 0.0], duration=5.0, integrator="adaptive",
            tau=lambda t, q, v: request.append(t) or 100.0 * v, progress=False,
        )  # fmt: skip
    assert 100 < len(request) < 1e6
    assert "steps" in str(result.value) and "held" not in str(result.value)
    assert isinstance(result.value.recording, lw.Recording)


def test_the_bound_of_speeds_is_that_of_fixed_steps():
    """Along a straight line nothing shortens the steps of the adaptive method."""
    mech = mass_on_spring(1.0).with_gravity((0, 0, 0))
    with pytest.raises(SimulationError, match="diverged after t = ") as result:
        lw.simulate(mech, v=[1.0], duration=5.0, integrator="adaptive", tau=lambda t, q, v: 10 * v)
    # v = exp(10 t) is a thousand million at t = 2.07
    assert result.value.recording.t[-1] == pytest.approx(np.log(1e9) / 10.0, abs=0.2)


def test_the_adaptive_method_gives_up_where_no_step_is_short_enough():
    """ẍ = −1/x² from rest at 1 is at 0 after π/√8; the time tells."""
    mech = mass_on_spring(1.0).with_gravity((0, 0, 0))
    with pytest.raises(SimulationError, match="found no step short enough") as result:
        lw.simulate(
            mech, [1.0], duration=3.0, integrator="adaptive", tau=lambda t, q, v: -1.0 / q**2
        )
    assert f"cannot go on after t = {np.pi / 8**0.5:.6f}"[:-1] in str(result.value)
    assert isinstance(result.value.recording, lw.Recording)


@pytest.mark.slow
def test_forces_that_switch_at_every_step_do_not_keep_it_for_ever():
    """Dry friction asked at every stage sticks: each step ends within 1e-10 m/s of rest."""
    with pytest.raises(SimulationError, match=r"at this pace .* hold a controller that switches"):
        lw.simulate(
            mass_on_spring(1.0), [0.1], duration=10.0, integrator="adaptive",
            tau=lambda t, q, v: -50.0 * np.sign(v), progress=False,
        )  # fmt: skip


def test_fast_motions_that_are_none_of_this_go_on():
    """A satellite at 8 km/s, and a wheel with 20000 rad/s for a few turns."""
    mech = mass_on_spring(1.0).with_gravity((0, 0, 0))
    rec = lw.simulate(mech, v=[8e3], duration=1e4, step=10.0, integrator="adaptive")
    assert rec.q[-1] == pytest.approx([8e7])
    wheel = lw.models.pendulum(1).with_gravity((0, 0, 0))
    rec = lw.simulate(wheel, v=[2e4], duration=0.01, integrator="adaptive")
    assert rec.q[-1] == pytest.approx([200.0])


def pushed_on(t, q, v):
    """A controller with the wrong sign: it drives the motion on, whatever the step."""
    return 30.0 * q + 3.0 * v


@pytest.mark.few(2)
@pytest.mark.parametrize("step", [1e-3, 1e-2])
@pytest.mark.parametrize("ticks", [True, False])
def test_shorter_steps_are_not_recommended_where_they_do_not_help(step, ticks):
    control_step = step if ticks else None
    with pytest.raises(SimulationError, match="diverged") as result:
        lw.simulate(
            mass_on_spring(stiffness=0.0), [0.1], duration=60.0, step=step, controller=pushed_on,
            control_step=control_step, progress=False,
        )  # fmt: skip
    text = str(result.value)
    assert "Shorter steps do not help" in text and "signs and gains of the controller" in text
    assert "try" not in text


@pytest.mark.parametrize(
    ("integrator", "step"), [("rk4", 0.5), ("euler", 0.2), ("rk4_mujoco", 0.5), ("adaptive", 0.5)]
)
def test_energy_that_does_not_add_up_is_warned_of(integrator, step):
    arm = lw.models.pendulum(1)
    rough = {"rtol": 0.1, "atol": 0.1} if integrator == "adaptive" else {}
    named = r"in steps of 0\.\d s, .* Try step=0\.0" if not rough else "smaller rtol"
    with pytest.warns(EnergyWarning, match=named) as message:
        rec = lw.simulate(arm, [2.0], duration=3.0, step=step, integrator=integrator, **rough)
    assert message[0].filename == __file__
    assert rec.report.relative_drift > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.simulate(arm, [2.0], duration=2.0, step=5e-3, integrator=integrator)
        lw.simulate(arm, [0.0], duration=0.1, step=0.05, integrator=integrator)  # at rest


def test_work_of_dampers_and_joints_is_no_missing_energy():
    arm = lw.models.pendulum(2).with_drive(["pin_1", "pin_2"], damping=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rec = lw.simulate(arm, [2.0, 0.3], tau=[1.0, -0.5], duration=2.0, step=5e-3)
    assert abs(rec.report.works["passive"]) > 1.0
