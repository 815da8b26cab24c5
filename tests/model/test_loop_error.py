"""How far a loop is from closed: the part of the pose that its hinge does not allow."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.closure import loop_error
from linkwise.spatial import rotation


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.48, -0.6, 0.64), (-0.36, 0.48, 0.8)])
@pytest.mark.parametrize("angle", [0.0, 0.7, -2.5, 3.1])
def test_the_error_of_a_pin_is_its_swing(axis: tuple[float, float, float], angle: float):
    """A turn about the axis is allowed, the swing that is left is e, and p in the axes of b."""
    pin, a = lw.hinges.Pin(axis), np.array(axis)
    across = np.cross(a, [0.3, 0.5, -0.2])
    across /= np.linalg.norm(across)
    p = np.array([0.1, -0.2, 0.3])
    for swing in (0.4, -1.2, 2.0):
        turn = rotation.axis_angle(a, angle)
        result = loop_error(pin, lw.Pose(turn @ rotation.axis_angle(across, swing), p))
        np.testing.assert_allclose(result[:3], swing * across, atol=1e-12)
        np.testing.assert_allclose(result[3:], turn.T @ p, atol=1e-12)
