"""Free coordinates of inertias, and the search for a mechanism near an estimate."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.identification import model, pseudo_inertia
from linkwise.identification.least_squares import Fit, scipy
from linkwise.identification.possible import Target, distance, possible
from linkwise.identification.rows import base_of
from linkwise.spatial.array import Array

KINDS = ("inertia", "damping")


def differences(function: Any, x: Array, h: float = 1e-5) -> Array:
    return np.stack(
        [(function(x + h * e) - function(x - h * e)) / (2.0 * h) for e in np.eye(len(x))], axis=-1
    )


def test_second_derivatives_of_inertias() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, slope = 0.7 * rng.standard_normal(10), rng.standard_normal(10)
        first = differences(lambda y: pseudo_inertia.parameters(y)[0], x)
        assert np.allclose(first, pseudo_inertia.parameters(x)[1], atol=1e-7)
        second = differences(lambda y, s=slope: pseudo_inertia.parameters(y)[1].T @ s, x)
        assert np.allclose(second, pseudo_inertia.bending(x, slope), atol=1e-6)


def test_steps_of_numbers_are_straight_up_to_the_border() -> None:
    mech = lw.models.ur_arm().with_drive("elbow", damping=0.5)
    free = model.FreeNumbers.of(mech, KINDS)
    rng = np.random.default_rng(1)
    x = free.first + 0.1 * rng.standard_normal(len(free.first))
    step = rng.standard_normal(len(x))
    values, slopes = free.numbers(x)
    most = free.share_to_border(x, step)
    assert 0.0 < most < np.inf
    for share in (0.3 * most, 0.999 * most):
        there = free.numbers(free.along(x, share * step))[0]
        assert np.allclose(there, values + share * (slopes @ step), atol=1e-12)
    beyond = values + 1.001 * most * (slopes @ step)
    flat = any(not pseudo_inertia.is_consistent(beyond[10 * k : 10 * k + 10]) for k in free.bodies)
    assert flat or beyond[free.joints].min() < 0.0
    slope = rng.standard_normal(len(x))
    assert np.allclose(free.slope_by_numbers(slopes, slope) @ slopes, slope)
    weights = rng.standard_normal(len(values))
    second = differences(lambda y: free.numbers(y)[1].T @ weights, x)
    assert np.allclose(second, free.bending(x, weights), atol=1e-5)


def arm() -> lw.Mechanism:
    """Three boxes on hinges of different directions."""
    build, before = lw.Builder("boxes"), "world"
    for i, axis in enumerate(((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))):
        box = lw.SpatialInertia.solid_box(2.0 - 0.5 * i, (0.3, 0.05, 0.08))
        build.body(
            f"box_{i}", before, lw.hinges.Pin(axis), inboard=(0.3 if i else 0.0, 0.0, 0.0),
            inertia=box.moved(lw.Pose.translation((0.15, 0.02, 0.01))),
            drive=lw.Drive(damping=0.2),
        )  # fmt: skip
        before = f"box_{i}"
    return build.build()


@pytest.mark.parametrize("noise", [3e-2, 1e-3])
def test_no_search_in_free_coordinates_comes_lower(noise: float) -> None:
    """Against SciPy's search from the end, and from the numbers of the mechanism."""
    mech, rng = arm(), np.random.default_rng(2)
    base = base_of(mech, KINDS, list(range(3)))
    right = base.matrix @ model.nominal(mech, KINDS)
    size = len(right)
    info = rng.standard_normal((size, size)) / np.sqrt(size) + np.eye(size)
    info = info / (noise * np.abs(right).max() * rng.uniform(0.05, 1.0, size))
    estimate = right + np.linalg.solve(info, rng.standard_normal(size))
    fit = Fit(estimate, np.ones(size), info, 1.0, 0, np.zeros(3, dtype=np.intp))
    values, gains = possible(mech, KINDS, base, fit, 1e-3)
    free = model.FreeNumbers.of(mech, KINDS)
    assert not len(gains)
    assert all(pseudo_inertia.is_consistent(values[10 * k : 10 * k + 10]) for k in free.bodies)
    assert values[free.joints].min() >= 0.0
    target = Target(free, info @ base.matrix, np.zeros((size, 0)), info @ estimate, 1e-3)
    x = target.refined(target.approached(free.first))
    assert np.allclose(free.numbers(x)[0], values)
    assert 0.02 < distance(base, fit, values, gains) < 1.0

    def misses(y: Array) -> Array:
        return np.concatenate([target.miss(y), np.sqrt(1e-3) * target.off(y)])

    def slopes(y: Array) -> Array:
        return np.vstack([target.slopes(y)[1], np.sqrt(1e-3) * np.eye(len(y))])

    least = target.value(x)
    for start in (x, free.first):
        search = scipy("optimize").least_squares(misses, start, slopes, method="lm", x_scale="jac")
        assert least < 1.01 * 2.0 * search.cost


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
def test_bodies_of_any_size_have_coordinates(size: float) -> None:
    """What can be is kept, thin plates also; rods and point masses become a little thicker."""
    shape = np.diag([1.0, 0.3, 1e-6]) * size**2
    for second, kept in ((shape, True), (shape * [1.0, 0.0, 0.0], False), (0.0 * shape, False)):
        J, c = np.zeros((4, 4)), size * np.array([0.3, -1.0, 0.5])
        J[:3, :3] = 2.0 * (second + np.outer(c, c))
        J[:3, 3] = J[3, :3] = 2.0 * c
        J[3, 3] = 2.0
        ten = pseudo_inertia.FROM_PSEUDO @ J.ravel()
        back = pseudo_inertia.parameters(pseudo_inertia.coordinates(ten))[0]
        assert pseudo_inertia.is_consistent(back)
        assert np.allclose(back[:4], ten[:4], rtol=1e-9)
        change = np.abs(back[4:] - ten[4:]).max() / np.abs(ten[4:]).max()
        assert change < 1e-9 if kept else 1e-3 < change < 0.05
