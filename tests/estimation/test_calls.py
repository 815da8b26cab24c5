"""Wrong input is answered with what was wrong."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.estimation import RandomField
from tests.estimation.fields import bare_tip, close, field, massless


@pytest.fixture(scope="module")
def arm() -> RandomField:
    return field("puma560")


@pytest.mark.parametrize("call", ["filter", "smooth", "batch", "log_likelihood"])
def test_measurements_of_the_wrong_shape(arm, call):
    for T in (np.zeros(5), np.zeros((2, 7)), 0.0, np.zeros((2, 2, 6)), "abc", [1.0, [2.0]]):
        with pytest.raises(lw.ShapeError, match="T"):
            getattr(arm, call)(T)
    with pytest.raises(lw.LinkwiseError, match=r"T .*finite"):
        getattr(arm, call)([0, 0, np.nan, 0, 0, 0])


def test_configurations_that_do_not_fit():
    puma, flyer = lw.models.puma560(), lw.models.quadruped()
    with pytest.raises(lw.ShapeError, match=r"q has shape \(5,\)"):
        RandomField(puma, np.zeros(5))
    with pytest.raises(lw.ShapeError, match="one configuration"):
        RandomField(puma, np.zeros((3, 6)))
    with pytest.raises(lw.ModelError, match="quaternion"):
        RandomField(flyer, 2.0 * flyer.neutral())


def test_noise_that_does_not_fit():
    puma = lw.models.puma560()
    q = puma.neutral()
    with pytest.raises(lw.ShapeError, match=r"noise has shape \(2,\)"):
        RandomField(puma, q, noise=[1.0, 2.0])
    with pytest.raises(lw.ModelError, match="'joint_2' has variance -1"):
        RandomField(puma, q, noise=[1, -1, 1, 1, 1, 1])
    with pytest.raises(lw.ModelError, match="not negative"):
        RandomField(puma, q, noise=np.inf)
    with pytest.raises(lw.ModelError, match="'armature', None"):
        RandomField(puma, q, noise="rotor")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("count", [0, -3, 2.5, "many", None])
def test_counts_that_are_none(arm, count):
    for call in (arm.draw, arm.draw_measurements):
        with pytest.raises(lw.ModelError, match="count"):
            call(count)


def test_unknown_names(arm):
    with pytest.raises(lw.ModelError, match=r"no covariance called 'X-z'.*'X - z'"):
        arm.covariance("X-z")
    with pytest.raises(lw.ModelError, match="no operator called"):
        arm.expression("gain")
    # Blocks of what is not block diagonal, and T into what takes no T, would be other numbers.
    with pytest.raises(lw.ModelError, match="no block diagonal operator called 'z'"):
        arm.blocks("z")
    with pytest.raises(lw.ModelError, match="no operator on T called 'D'"):
        arm.apply("D", np.zeros(6))
    close(arm.apply("vdot", [1, 0, 0, 0, 0, 0]), arm.smooth([1, 0, 0, 0, 0, 0]).vdot, 0.0)


def test_nothing_resists():
    """Draws and the covariance of T exist; what needs 𝓜⁻¹ says which hinge; noise resists."""
    bare = RandomField(bare_tip(), [0.3, 0.4])
    close(bare.covariance("T"), lw.mass_matrix(bare.mech, bare.q), 1e-14)
    T = np.ones(2)
    for call in (
        lambda: bare.filter(T).z,
        lambda: bare.filter(np.ones((3, 2))).z,
        lambda: bare.filter(np.ones((30, 2))).z,
        lambda: bare.smooth(T).vdot,
        lambda: bare.batch(T).f,
        lambda: bare.covariance("X - f"),
    ):
        with pytest.raises(lw.LinkwiseError, match="'tip'"):
            call()
    noisy = RandomField(bare_tip(), [0.3, 0.4], noise=[0.0, 0.1])
    close(noisy.smooth(T).vdot, noisy.batch(T).vdot, 1e-13)


def test_a_hinge_that_only_rounding_resists():
    """D of 1e-33 is not taken for inertia."""
    b = lw.Builder("on axis")
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    point = lw.SpatialInertia.from_com(1.0, 0.7 * axis)
    b.body("bead", "world", lw.hinges.Pin(axis), inertia=point)
    bead = RandomField(b.build(), [0.2])
    with pytest.raises(lw.LinkwiseError, match="'bead'"):
        _ = bead.smooth([1.0]).vdot
    b.body("outer bead", "bead", lw.hinges.Pin(axis), inboard=tuple(0.3 * axis), inertia=point)
    beads = RandomField(b.build(), [0.2, 0.1])
    with pytest.raises(lw.LinkwiseError, match="'outer bead'"):  # both: it is nearer to the tips
        _ = beads.smooth([1.0, 1.0]).vdot


def test_one_massless_body_between_hinges_is_fine():
    cross = RandomField(massless(), [0.3, -0.2])
    assert np.linalg.matrix_rank(cross.filter([1.0, 1.0]).P[0]) == 5  # P⁺ of the rod, and no more
    assert cross.draw(3, seed=0).W[:, 0].any() == np.False_


def test_fields_are_copied_and_pickled(arm):
    T = np.arange(6.0)
    expected = arm.smooth(T).vdot
    for twin in (copy.deepcopy(arm), pickle.loads(pickle.dumps(arm))):
        close(twin.smooth(T).vdot, expected, 1e-15)
    assert "puma560" in repr(arm)


def test_the_outermost_hinge_that_nothing_resists_is_named():
    """What is inboard of it is built on it: of two links without mass, the last is to blame."""
    b = lw.Builder("bare")
    rod = lw.SpatialInertia.from_com(2.0, (0.0, 0.1, -0.3), (0.05, 0.06, 0.02))
    b.body("rod", "world", lw.hinges.Pin((0.0, 1.0, 0.0)), inertia=rod)
    b.body("stick", "rod", lw.hinges.Pin((0.0, 1.0, 0.0)), inboard=(0.0, 0.0, -1.0))
    b.body("tip", "stick", lw.hinges.Pin((0.0, 1.0, 0.0)), inboard=(0.0, 0.0, -1.0))
    bare = RandomField(b.build(), [0.3, 0.4, 0.5])
    for call in (lambda: bare.smooth(np.ones(3)).vdot, lambda: bare.covariance("X - f")):
        with pytest.raises(lw.LinkwiseError, match="'tip'"):
            call()
