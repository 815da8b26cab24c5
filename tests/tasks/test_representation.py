"""Coordinates of orientations and positions: SciPy's angles, and derivatives by complex steps.

A complex step Im f(x + i h d) / h has no difference in it that could cancel: derivatives come out
to rounding, so that bounds here are rounding times the size of E.
"""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.spatial import quaternion, rotation
from linkwise.tasks.representation import LIMIT, ORIENTATIONS, POSITIONS, SEQUENCES
from tests.cases import close

BOTH = {**ORIENTATIONS, **POSITIONS}
EULER = [f"euler_{sequence}" for sequence in SEQUENCES]
TINY = 1e-30


def places(name: str, count: int = 40) -> np.ndarray:
    rng = np.random.default_rng(7)
    if name in POSITIONS:
        return rng.standard_normal((count, 3))
    return rotation.random_rotation(rng, (count,))


def along(f, x, way):
    """The derivative of f at x along a way, by a complex step."""
    return np.imag(f(x + 1j * TINY * way)) / TINY


def plain(name: str):
    """The place of coordinates, for complex ones too."""
    return quaternion.to_matrix if name == "quaternion" else BOTH[name].place


def test_there_are_twelve_sequences():
    assert len(set(SEQUENCES)) == 12
    assert sum(s[0] == s[2] for s in SEQUENCES) == 6
    assert set(EULER) == {name for name in ORIENTATIONS if name.startswith("euler")}


@pytest.mark.parametrize("name", BOTH)
def test_coordinates_stand_for_the_place_they_were_taken_of(name):
    result = BOTH[name].place(BOTH[name].of(places(name)))
    close(result, places(name), 1e-14)


@pytest.mark.parametrize("name", EULER)
def test_the_angles_are_those_of_scipy(name):
    """Intrinsic sequences are upper case there."""
    turn = pytest.importorskip("scipy.spatial.transform").Rotation
    close(
        ORIENTATIONS[name].of(places(name)),
        turn.from_matrix(places(name)).as_euler(name[-3:].upper()),
        1e-13,
    )


def test_zyx_is_yaw_pitch_roll():
    x = ORIENTATIONS["euler_zyx"].of(rotation.rpy(0.1, -0.4, 0.7))
    close(x, np.array([0.7, -0.4, 0.1]), 1e-14)


@pytest.mark.parametrize("name", BOTH)
def test_the_inverse_is_what_the_place_moves_with(name):
    """ṗ or ω of the place while x moves with ẋ: skew(ω) = Ṙ R*. This fixes axes and signs."""
    rep, x = BOTH[name], BOTH[name].of(places(name))
    xdot = rep.matrix(x) @ np.array([0.3, -1.1, 0.7])  # one that the coordinates can have
    moved = along(plain(name), x, xdot)
    w = moved if name in POSITIONS else rotation.unskew(moved @ np.swapaxes(places(name), -1, -2))
    close((rep.inverse(x) @ xdot[..., None])[..., 0], w, 1e-12)
    close(w, np.broadcast_to([0.3, -1.1, 0.7], w.shape), 1e-12)


@pytest.mark.parametrize("name", BOTH)
def test_the_rate_is_a_derivative(name):
    rep, x = BOTH[name], BOTH[name].of(places(name))
    w = np.random.default_rng(1).standard_normal((*x.shape[:-1], 3))
    xdot = (rep.matrix(x) @ w[..., None])[..., 0]
    expected = along(lambda y: (rep.matrix(y) @ w[..., None])[..., 0], x, xdot)
    close(rep.rate(x, w), expected, 1e-12)
    if name != "cartesian":
        assert np.abs(expected).max() > 0.1


@pytest.mark.parametrize("name", BOTH)
def test_the_inverse_is_the_pseudo_inverse(name):
    """In closed form; for redundant coordinates of unit length it is that of Moore and Penrose."""
    rep, x = BOTH[name], BOTH[name].of(places(name))
    E = rep.matrix(x)
    assert E.shape == (40, len(rep.labels), 3)
    close(rep.inverse(x) @ E, np.broadcast_to(np.eye(3), (40, 3, 3)), 1e-13)
    close(rep.inverse(x), np.linalg.pinv(E), 1e-12)


@pytest.mark.parametrize("name", ["quaternion", "direction_cosines"])
def test_the_rate_of_redundant_coordinates_asks_for_no_turning(name):
    """E⁺ Ė ω = 0: it only keeps lengths one and axes at right angles."""
    rep, x = BOTH[name], BOTH[name].of(places(name))
    w = np.random.default_rng(2).standard_normal((40, 3))
    rate = rep.rate(x, w)
    close((rep.inverse(x) @ rate[..., None])[..., 0], np.zeros((40, 3)), 1e-14, scale=1.0)


@pytest.mark.parametrize("name", [*EULER, "cylindrical", "spherical"])
def test_differences_go_the_short_way_round(name):
    """From 3 to -3 rad it is 0.28 rad on, not 6 back."""
    rep = BOTH[name]
    angle = 0 if name in EULER else rep.labels.index("phi")
    x = np.array([[1.0, 1.0, 1.0]] * 2)
    x[:, angle] = 3.0
    target = x.copy()
    target[:, angle] = -3.0
    expected = np.zeros((2, 3))
    expected[:, angle] = 2.0 * np.pi - 6.0
    close(rep.difference(x, target), expected, 1e-12)


def test_quaternions_and_their_opposites_are_one_target():
    rep = BOTH["quaternion"]
    x = rep.of(places("quaternion"))
    close(rep.difference(x, -x), 0.0 * x, 1e-15, scale=1.0)
    close(
        rep.difference(x, x[::-1]) + x,
        np.where((x * x[::-1]).sum(-1)[:, None] < 0, -1, 1) * x[::-1],
    )


@pytest.mark.parametrize("name", EULER)
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_gimbal_lock_is_found_and_angles_still_stand_for_the_orientation(name, side):
    rep = ORIENTATIONS[name]
    returns = name[6] == name[8]
    locked = (0.0 if side < 0 else np.pi) if returns else side * np.pi / 2
    for away in (0.0, 0.1 * LIMIT):
        x = np.array([0.4, locked - side * away, -0.7])
        result = rep.of(rep.place(x))
        assert rep.singular(result) and rep.singular(x)
        close(rep.place(result), rep.place(x), 1e-14)
    assert not rep.singular(np.array([0.4, locked - side * 10 * LIMIT, -0.7]))


@pytest.mark.parametrize("name", EULER)
def test_the_sequence_that_is_proposed_at_gimbal_lock_is_not_locked(name):
    x = np.array([0.4, 0.0 if name[6] == name[8] else np.pi / 2, -0.7])
    message = ORIENTATIONS[name].trouble(x)
    proposed = next(word.strip("',") for word in message.split() if word.startswith("'euler_"))
    other = ORIENTATIONS[proposed]
    assert other.lock(other.of(ORIENTATIONS[name].place(x))) > 0.5
    assert "gimbal lock" in message and ("90°" in message or "0°" in message)


@pytest.mark.parametrize("name", ["cylindrical", "spherical"])
def test_the_axis_is_singular(name):
    rep = POSITIONS[name]
    at = rep.of(np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [1e-7, 0.0, 2.0], [1e-3, 0.0, 2.0]]))
    assert rep.singular(at).tolist() == [True, True, True, False]
    assert "z axis" in rep.trouble(at[0])
