"""examples/three_pumas.py: two and three arms along the beginning of the path."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw

FILE = Path(__file__).parents[2] / "examples" / "three_pumas.py"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(FILE))


@pytest.mark.parametrize("arms", [2, 3])
def test_the_path_is_followed_with_the_tension_that_is_asked_for(
    example: dict[str, Any], arms: int
) -> None:
    cell = example["Cell"].build(arms)
    motion = cell.move(duration=0.6)
    turned = lw.spatial.rotation.log(example["desired_pose"](0.6).rot)
    assert np.abs(turned).max() > 0.02  # it has gone somewhere
    assert np.abs(cell.errors(motion)).max() < 3e-4
    assert len(cell.bars) == (1 if arms == 2 else 3)
    tensions = cell.tensions(motion)
    assert np.allclose(tensions[:-1], 10.0, atol=1e-8)
    # At the end the torque of the last tick, 4 ms ago, still acts.
    assert np.allclose(tensions[-1], 10.0, atol=0.5)


def test_velocities_and_accelerations_of_the_path(example: dict[str, Any]) -> None:
    """ω and v are those of the pose: by differences of half the step, better by h² than 1e-5."""
    start, h = lw.Pose.identity(), 5e-4
    for t in (0.4, 1.3):
        goal = example["desired"](start, t)
        ahead, back = (example["desired_pose"](t + s) for s in (h, -h))
        turn = lw.spatial.rotation.log(ahead.rot @ back.rot.T) / (2.0 * h)
        assert np.allclose(
            goal.velocity, np.append(turn, (ahead.p - back.p) / (2.0 * h)), atol=1e-5
        )
        later, sooner = (example["desired"](start, t + s).velocity for s in (h, -h))
        assert np.allclose(goal.acceleration, (later - sooner) / (2.0 * h), atol=2e-4)
