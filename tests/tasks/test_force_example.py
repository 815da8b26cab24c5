"""A PUMA 560 meets an oblique wall that gives way, and slides along it: the example, in short."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

FILE = Path(__file__).parents[2] / "examples" / "puma_on_wall.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("puma_on_wall", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_reference_is_a_motion_on_the_wall(example):
    h = 1e-4
    for t in (0.1, 0.55, 1.2, 1.9, 2.1):
        before, (now, velocity, acceleration), after = (
            example.reference(t + d) for d in (-h, 0, h)
        )
        assert abs(example.WALL.clearance(now.p)) < 1e-12
        assert np.allclose((after[0].p - before[0].p) / (2 * h), velocity[3:], atol=1e-6)
        second = (after[0].p - 2.0 * now.p + before[0].p) / h**2
        assert np.allclose(second, acceleration[3:], atol=1e-5)


@pytest.mark.prove
def test_approach_impact_and_a_steady_force_while_it_slides(example):
    run = example.slide(0.64)
    assert [name for name, _ in run.phases] == ["approach", "impact", "contact"]
    force = run.force
    pressing = run.t > run.began("impact")
    assert force[pressing].min() > 1.0  # it does not bounce
    # v_a - ẋ = k_d x: the impact ends with 5 mm/s left, 0.95 mm deep, k x + d ẋ = 19.25 N.
    begin = run.began("contact")
    assert np.interp(begin, run.t, force) == pytest.approx(19.25, rel=1e-3)
    # At 40 rad/s, e^{-40 t} of what is left after the impact with t = 0.35 s: 1e-6 N.
    assert run.steady(0.6, 0.64) < 1e-3
    assert np.linalg.norm(run.tip[-1] - example.TOUCHED) > 8e-3  # it has moved
    assert run.off_path.max() < 1e-6
    assert run.turned.max() < 1e-6
    # Friction opposes the sliding and is not small: the path knows nothing of it.
    touch = example.WALL.touch(example.ARM, run.q[-1], run.v[-1], "tip")
    across = touch.force - touch.pressure * example.NORMAL
    assert np.linalg.norm(across) > 3.0


def test_the_loop_in_steps_is_stable_by_its_poles(example):
    q = example.start()
    J = lw.jacobian(example.ARM, q, "tip", frame="world")
    v = np.linalg.solve(J, np.append(np.zeros(3), -0.1 * example.NORMAL))
    mass = lw.tasks.impact_estimate(example.ARM, q, v, "tip", example.WALL).mass
    for ki in (0.0, 1.0):
        loop = example.controller(ki).servo.loop(example.WALL, mass=mass, step=1e-3)
        assert loop.stable and loop.settling_time < 0.5


@pytest.mark.slow
def test_the_whole_example(example, capsys):
    example.main()
    assert "never lost" in capsys.readouterr().out
