"""Runs that cannot go on, arguments that mean nothing, Ctrl-C and progress."""

from __future__ import annotations

import dataclasses
import io
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError, ShapeError, SimulationError
from linkwise.simulation.timetable import Progress
from tests.simulation.moving import mass_on_spring, pendulum, steps_by_kernel, tumbling
from tests.waiting import PATIENCE

# ------------------------------------------------------------------------------------ divergence


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("integrator", ["rk4", "euler", "rk4_mujoco"])
def test_a_step_that_is_too_long_for_a_spring(integrator, compiled, monkeypatch):
    """ω h = 4 is beyond what each method can do: the energy grows, and the run says so."""
    steps_by_kernel(monkeypatch, compiled)
    mech = mass_on_spring(2.0, stiffness=2.0 * 400.0**2)
    with pytest.raises(SimulationError) as result:
        lw.simulate(mech, [0.1], duration=5.0, step=0.01, integrator=integrator)
    text = str(result.value)
    assert "'slider' diverged at t = 0.0" in text and "nothing drives it" in text
    assert "hinge 'slide' of body 'mass'" in text and "try step=0.001" in text
    rec = result.value.recording
    assert isinstance(rec, lw.Recording) and len(rec) > 1 and np.isfinite(rec.q).all()
    assert rec.stopped == text


@pytest.mark.parametrize("compiled", [True, False])
def test_energy_that_nothing_gave(compiled, monkeypatch):
    """Numbers that stay finite and are wrong. On a spring RK4 multiplies the energy each step by

    1 − y⁶/72 + y⁸/576,   y = ω h:   0.87 for y = 2.8,   1.42 for y = 2.9
    """
    steps_by_kernel(monkeypatch, compiled)
    w, steps = 400.0, 20
    mech = dataclasses.replace(mass_on_spring(2.0, stiffness=2.0 * w**2), gravity=(0, 0, 0))
    rec = lw.simulate(mech, [0.1], duration=steps * 2.8 / w, step=2.8 / w)
    factor = 1.0 - 2.8**6 / 72.0 + 2.8**8 / 576.0
    left = rec["energy.total"] + 0.5 * 2.0 * w**2 * rec.q[:, 0] ** 2
    assert left[-1] / left[0] == pytest.approx(factor**steps, rel=1e-9)
    with pytest.raises(SimulationError, match="nothing drives it") as result:
        lw.simulate(mech, [0.1], duration=steps * 2.9 / w, step=2.9 / w)
    # More than twice what there was: after two steps of 1.42 each.
    assert result.value.recording.t[-1] == pytest.approx(2.0 * 2.9 / w)
    first, factor = 0.5 * 2.0 * (w * 0.1) ** 2, 1.0 - 2.9**6 / 72.0 + 2.9**8 / 576.0
    text = f"grown by {first * (factor**2 - 1.0):.3g} J since the start, from {first:.6g} J;"
    assert text in str(result.value)
    allowed = re.search(r"could have more than (\S+) J", str(result.value))
    assert allowed is not None and 0.5 * first < float(allowed[1]) <= first


def test_a_small_growth_of_a_large_energy_is_told():
    """A pendulum at rest with 12 J of height, and a stiff spring: microjoules are too much."""
    with pytest.raises(SimulationError) as result:
        lw.simulate(pendulum(stiffness=1e7), [1e-9], duration=0.3)
    match = re.search(r"grown by (\S+) J since the start, from -11.772 J", str(result.value))
    allowed = re.search(r"could have more than (\S+) J", str(result.value))
    assert match is not None and allowed is not None
    assert 0.0 < float(allowed[1]) < float(match[1]) < 1e-3


@pytest.mark.parametrize("compiled", [True, False])
def test_gains_that_are_too_large(compiled, monkeypatch):
    """A controller may do work, so only what is not finite any more tells."""
    steps_by_kernel(monkeypatch, compiled)
    mech = lw.models.pendulum(2)
    control_step = 0.01 if compiled else None
    with pytest.raises(
        SimulationError, match=r"'pendulum_2' diverged after t = .* s: its speeds grow"
    ) as e:
        lw.simulate(
            mech, [0.3, 0.1], duration=9.0, step=0.01, control_step=control_step,
            controller=lambda t, q, v: -1e6 * v,
        )  # fmt: skip
    assert "Most of the motion is at hinge 'pin_" in str(e.value)
    assert isinstance(e.value.recording, lw.Recording) and e.value.recording.t[-1] < 9.0


def test_the_adaptive_method_ends_where_speeds_are_infinite():
    """v̇ = v² reaches infinity after 1/v: the time is told."""
    mech = mass_on_spring(1.0).with_gravity((0, 0, 0))
    with pytest.raises(SimulationError, match=r"diverged after t = 0\.(49|5)") as result:
        lw.simulate(
            mech, v=[2.0], duration=1.0, integrator="adaptive", tau=lambda t, q, v: v * abs(v)
        )
    assert result.value.recording.t[-1] < 0.51


def test_quaternions_that_turn_without_bounds(monkeypatch):
    steps_by_kernel(monkeypatch, False)
    mech = tumbling()
    with pytest.raises(SimulationError, match="diverged"):
        lw.simulate(mech, v=mech.random_velocity(seed=1), duration=1.0, step=0.02,
                    tau=lambda t, q, v: 1e3 * v * np.abs(v))  # fmt: skip


def test_loops_that_cannot_be_kept():
    mech = lw.models.four_bar()
    q = mech.neutral()
    v = lw.loops.project_velocity(mech, q, np.array([3.0, 0.0, 0.0]))
    with pytest.raises(
        SimulationError, match=r"'four_bar' cannot go on after t = .*: loop .* opened"
    ) as result:
        lw.simulate(mech, q, v, duration=5.0, step=0.05, drift_limit=1e-7)
    assert isinstance(result.value.recording, lw.Recording)
    with pytest.raises(ClosureError, match="cannot begin to move"):
        lw.simulate(mech, q + 0.1, duration=0.1)


# --------------------------------------------------------------------------- controllers and forces


def test_a_controller_of_two_arguments_is_told_how_to_write_it():
    def brake(q, v):
        return -v

    mech = pendulum()
    with pytest.raises(ModelError) as result:
        lw.simulate(mech, duration=0.1, controller=brake)
    advice = "takes (q, v), and a simulation calls (t, q, v): write controller=lambda t, q, v: "
    assert f"controller=brake {advice}brake(q, v)" in str(result.value)
    with pytest.raises(ModelError, match=r"tau takes \(x, y\).*tau=lambda t, q, v: \.\.\."):
        lw.simulate(mech, duration=0.1, tau=lambda x, y: -y)
    lw.simulate(mech, duration=0.1, controller=lambda t, q, v: brake(q, v))  # and that works


@pytest.mark.parametrize("control_step", [None, 0.01])
def test_a_controller_that_gives_nan(control_step):
    arm = lw.models.pendulum(3)

    def controller(t, q, v):
        tau = np.zeros(3)
        tau[1] = np.nan if t > 0.0995 else 0.0
        return tau

    with pytest.raises(SimulationError) as result:
        lw.simulate(arm, duration=1.0, controller=controller, control_step=control_step)
    text, at = str(result.value), "0.1 s" if control_step else "0.0995 s"
    assert f"controller at t = {at}" in text or "controller at t = 0.1 s" in text
    assert "gave nan for 'pin_2'" in text
    rec = result.value.recording
    assert rec.t[-1] == pytest.approx(0.1, abs=2e-3) and "gave nan" in rec.stopped


def test_other_numbers_that_are_none():
    mech = pendulum()
    for bad in (lambda t, q, v: np.inf, lambda t, q, v: {"swing": -np.inf}):
        with pytest.raises(SimulationError, match=r"tau at t = 0 s gave -?inf for"):
            lw.simulate(mech, duration=0.1, tau=bad)
    with pytest.raises(SimulationError, match=r"forces at t = 0 s gave .* on 'bob'"):
        lw.simulate(mech, duration=0.1, forces=lambda t, q, v: {"bob": np.full(6, np.nan)})
    with pytest.raises(ModelError, match=r"forces gave .* on 'bob'"):
        lw.simulate(mech, duration=0.1, forces={"bob": np.full(6, np.nan)})


def test_controllers_that_do_not_fit():
    mech = pendulum()
    law = lw.control_law(mech, lw.Task.joints(["swing"]), kp=1.0, kv=1.0)
    cases = [
        (law, ModelError, r"is called with \(q, v, goal\).*controller=\(ControlLaw, goal\)"),
        (lambda q: 0.0, ModelError, r"controller is a function of \(q\)"),
        (lambda t, q, v: np.zeros(3), ShapeError, r"controller at t = 0 s: tau has shape \(3,\)"),
        (lambda t, q, v: None, ShapeError, "controller at t = 0 s: tau is None"),
        (lambda t, q, v: "much", ShapeError, "controller at t = 0 s"),
        ("strong", ShapeError, "tau is 'strong'"),
        ([1.0, 2.0], ShapeError, r"tau has shape \(2,\)"),
        (np.zeros((5, 1)), ModelError, "say with control_step"),
        ({"swim": 1.0}, ModelError, "did you mean 'swing'"),
    ]
    for controller, error, words in cases:
        with pytest.raises(error, match=words):
            lw.simulate(mech, duration=0.1, controller=controller)
    with pytest.raises(ShapeError, match=r"5 rows; 0.1 s in ticks of 0.01 s need 10"):
        lw.simulate(mech, duration=0.1, controller=np.zeros((5, 1)), control_step=0.01)


def test_errors_of_the_user_say_when():
    def controller(t, q, v):
        if t > 0.0103:
            raise ZeroDivisionError("mine")
        return 0.0

    with pytest.raises(ZeroDivisionError) as result:
        lw.simulate(pendulum(), duration=0.1, controller=controller)
    assert result.value.__notes__ == ["lw.simulate had reached t = 0.01 s."]


# -------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"duration": -1.0}, "duration is -1.0; it must be"),
        ({"duration": np.nan}, "duration is nan"),
        ({"duration": "long"}, "duration"),
        ({"step": 0.0}, "step is 0.0; it must be a finite number above zero"),
        ({"step": np.inf}, "step is inf"),
        ({"step": 1e-300}, "more than there is time for"),
        ({"integrator": "rk5"}, "integrator='rk5' is unknown"),
        ({"limits": "hard"}, "limits='hard' says nothing"),
        ({"stabilization": "glue"}, "stabilization='glue'"),
        ({"forces_frame": "body"}, "frame"),
        ({"record_every": 0}, "record_every=0; it counts steps"),
        ({"record_every": 1.5}, "record_every=1.5"),
        ({"record_every": True}, "record_every=True"),
        ({"control_step": 0.01}, "without a controller"),
        ({"control_step": -1.0, "controller": [0.0]}, "control_step is -1.0"),
        ({"watch": [1]}, "watch is a list"),
        ({"probes": [1]}, "probes is a list"),
        ({"probes": {"x": 1}}, "probe 'x' is 1"),
        ({"probes": {"x": lambda t: t}}, r"probe 'x' is a function of \(t\)"),
        ({"probes": {"x": lambda t, q, v, tau: "no"}}, "probe 'x' gave 'no' at t = 0 s"),
        ({"probes": {"q": lambda t, q, v, tau: t}}, "two channels are called 'q'"),
        ({"forces": 3.0}, "forces is 3.0"),
        ({"forces": {"bob": [1.0]}}, r"'bob' has the shape \(1,\)"),
        ({"forces": {"bop": np.zeros(6)}}, "'bop'"),
        ({"start": np.nan}, "start"),
        ({"rtol": 0.0, "integrator": "adaptive"}, "rtol is 0.0"),
        ({"progress": 3}, "progress is 3"),
        ({"q": [1.0, 2.0]}, "q has shape"),
        ({"q": [[1.0], [2.0]]}, "begins with one state"),
        ({"q": [np.nan]}, "q is not finite"),
        ({"v": [np.inf]}, "v is not finite"),
    ],
)
def test_arguments_that_mean_nothing(given, words):
    with pytest.raises((ModelError, ShapeError), match=words):
        lw.simulate(pendulum(), **{"duration": 0.1, **given})


def test_what_is_no_mechanism():
    with pytest.raises(ModelError, match="mechanism"):
        lw.simulate("pendulum", duration=1.0)
    embedded = lw.loops.embed(lw.models.four_bar())
    with pytest.raises(ModelError, match=r"pass embedded\.mech"):
        lw.simulate(embedded, duration=1.0)


def test_a_beginning_beyond_the_limits():
    mech = pendulum(upper=0.1)
    with pytest.raises(ModelError, match=r"'swing' is 0\.4 beyond its limit"):
        lw.simulate(mech, [0.5], duration=1.0, limits="stop")


# --------------------------------------------------------------------------------- Ctrl-C, progress


@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_an_interrupted_run_keeps_what_was_computed(integrator):
    def controller(t, q, v):
        if t > 0.05:
            raise KeyboardInterrupt
        return 0.0

    rec = lw.simulate(pendulum(), [0.3], duration=1.0, controller=controller, integrator=integrator,
                      control_step=0.01)  # fmt: skip
    assert rec.stopped == "interrupted at t = 0.06 s" and rec.t[-1] == pytest.approx(0.06)
    assert "interrupted" in str(rec)


def test_ctrl_c_is_heard_while_a_kernel_runs():
    """A signal to a process that makes a billion steps: it ends within moments, with a report."""
    code = """
import signal

import linkwise as lw

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs begin without it
told = []

def progress(t):
    if not told:
        told.append(print("moving", flush=True))

rec = lw.simulate(
    lw.models.pendulum(1), [0.3], duration=1e6, record_every=10**7, progress=progress
)
print(rec.stopped, rec.t[-1] > 0.0)
"""
    done = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert done.stdout is not None and done.stdout.readline() == "moving\n"
    done.send_signal(signal.SIGINT)
    out, _ = done.communicate(timeout=PATIENCE)
    assert out.startswith("interrupted at t = ") and out.endswith("True\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal():
    screen = Terminal()
    with Progress(True, 1.0, 2.0, stream=screen) as bar:
        bar(2.0)
        assert "50 %  1 of 2 s" in screen.getvalue() and "\n" not in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")  # and it is gone at the end
    quiet = Terminal()
    with Progress(None, 0.0, 1.0, stream=quiet) as bar:
        bar(0.5)
    assert quiet.getvalue() == ""  # it took less than a second
    file = io.StringIO()
    with Progress(True, 0.0, 1.0, stream=file) as bar:
        bar(0.5)
    assert file.getvalue() == ""


def test_progress_may_be_a_function(monkeypatch):
    steps_by_kernel(monkeypatch, False)
    seen = list[float]()
    lw.simulate(pendulum(), duration=0.01, progress=seen.append)
    assert seen == pytest.approx(1e-3 * np.arange(1, 11))
