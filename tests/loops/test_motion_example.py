"""The example of the Stewart platform, in short."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.pose import log

FILE = Path(__file__).parents[2] / "examples" / "stewart_tracking.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("stewart_tracking", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_platform_follows_the_path(example):
    result = example.track(0.25, step=5e-3)
    path = np.linalg.norm(example.desired(0.25).p)
    assert path > 2e-4  # it does move
    assert result.distance.max() < 0.02 * path
    assert result.run.report.loop[0] < 1e-9
    passive = np.delete(
        result.run.tau, [lw.models.stewart().v_slice(x).start for x in example.SLIDERS], 1
    )
    assert not passive.any()


def test_the_reference_is_a_motion(example):
    """Velocity and acceleration of the path against finer differences of its poses."""
    t, h = 2.0, 1e-4
    _, V, A = example.desired_motion(t)
    before, after = example.desired_motion(t - h), example.desired_motion(t + h)
    np.testing.assert_allclose(log(before[0].inverse() @ after[0]) / (2.0 * h), V, atol=1e-5)
    np.testing.assert_allclose((after[1] - before[1]) / (2.0 * h), A, atol=1e-4)


def test_it_can_be_drawn(example, tmp_path):
    pytest.importorskip("matplotlib")
    result = example.track(0.03, step=1e-2)
    example.plot(result, result, str(tmp_path / "figure.png"))
    assert (tmp_path / "figure.png").stat().st_size > 10_000
