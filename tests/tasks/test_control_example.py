"""The example of the arm that is driven through singularities."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial import rotation

FILE = Path(__file__).parents[2] / "examples" / "through_singularities.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("through_singularities", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("path", ["through_the_wrist", "beyond_the_reach"])
def test_goals_are_motions(example, path):
    """Velocity and acceleration of each path against differences of its poses."""
    arm = lw.models.ur_arm()
    goal = getattr(example, path)(arm).goal
    h = 1e-4
    for t in (0.3, 0.9):
        before, now, after = (goal(t + d) for d in (-h, 0.0, h))
        ahead = rotation.log(after.position.rot @ before.position.rot.T) / (2 * h)
        speed = np.concatenate([ahead, (after.position.p - before.position.p) / (2 * h)])
        np.testing.assert_allclose(now.velocity, speed, atol=1e-6)
        rush = (np.array(after.velocity) - np.array(before.velocity)) / (2 * h)
        np.testing.assert_allclose(now.acceleration, rush, atol=1e-5)


@pytest.mark.slow
def test_it_runs_and_can_be_drawn(example, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    runs = example.main(str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert "out of bounds" in capsys.readouterr().out
    assert not np.isfinite(runs["wrist", "plain"].end)
