"""The examples that simulate: a quadruped that lands, an arm that draws a circle."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_quadruped_lands_on_its_feet():
    example = loaded("quadruped_landing")
    rec = example.drop(0.26)
    touched = [x for x in rec.events if x.text.startswith("touches")][:4]
    assert sorted(x.name for x in touched) == sorted(example.FEET)
    assert [x.t for x in touched] == pytest.approx([np.sqrt(0.5 / 9.81)] * 4, abs=1e-8)
    assert rec.report.relative_drift < 1e-4
    # Left and right are alike.
    left, right = (rec[f"contact.front_{side}_foot.force"] for side in ("left", "right"))
    assert left[:, 2] == pytest.approx(right[:, 2], abs=1e-3)


def test_the_circle_is_a_motion():
    """Velocity and acceleration of the goal against differences of its positions."""
    circle = loaded("simulate_arm").circle
    center, h = np.array([0.4, 0.1, 0.5]), 1e-4
    for t in (0.4, 1.7):
        before, now, after = (circle(center, t + d) for d in (-h, 0.0, h))
        speed = (after.position - before.position) / (2.0 * h)
        np.testing.assert_allclose(now.velocity, speed, atol=1e-6)
        rush = (np.array(after.velocity) - np.array(before.velocity)) / (2.0 * h)
        np.testing.assert_allclose(now.acceleration, rush, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulate_arm", "quadruped_landing"])
def test_examples_run(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    loaded(name).main()
    assert "energy drift" in capsys.readouterr().out


def test_the_hand_follows():
    example = loaded("simulate_arm")
    rec, off = example.draw(1e-3, duration=0.5)
    assert off < 0.05 and rec.report.relative_drift < 1e-9
