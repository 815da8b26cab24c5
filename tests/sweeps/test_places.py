"""Poses, weights and gravity as leaves of the algebra: dense, swept and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import X_B, H, J, M, X, a, a_g, b, phi, rot_W, tau, weight
from linkwise.algebra.dense import Dense
from linkwise.pipeline import plan
from linkwise.sweeps.interpret import run
from tests.algebra import trees

DRAWS = (trees.branched, trees.floating, trees.welded, trees.every_hinge)


def swept(expr, mech, q, v=None, **options):
    return run(plan(expr), mech, q, v, **options)


@pytest.mark.parametrize("draw", DRAWS)
def test_places_are_the_poses_of_the_mechanism(draw):
    mech = draw(5)
    q = mech.random(1)
    expected = mech.poses(q).matrix[:, :3].ravel()
    for result in (Dense(mech, q)(X), swept(X, mech, q), lw.compile(X, mech)(q)):
        np.testing.assert_allclose(result, expected, atol=1e-13)


def test_nodes_anywhere():
    """On a body, away from it, on the ground, and the ground itself."""
    mech = lw.models.random_tree(5, 3).with_node("tool", "body_4", (0.1, -0.2, 0.3))
    mech = mech.with_node("post", "world", lw.Pose.rpy((0.1, 0.2, 0.3), (1.0, 2.0, 3.0)))
    names = ["tool", "post", mech.bodies[0].name, "world"]
    q = mech.random(0)
    poses = [mech.pose(q, name) for name in names]
    expected = np.concatenate([pose.matrix[:3].ravel() for pose in poses])
    result = [
        Dense(mech, q, nodes=names)(X_B),
        swept(X_B, mech, q, nodes=names),
        lw.compile(X_B, mech, nodes=names)(q),
    ]
    for value in result:
        np.testing.assert_allclose(value, expected, atol=1e-13)
    turns = np.zeros((24, 24))
    for i, pose in enumerate(poses):
        turns[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = np.kron(np.eye(2), pose.rot)
    np.testing.assert_allclose(Dense(mech, q, nodes=names)(rot_W), turns, atol=1e-14)
    np.testing.assert_allclose(swept(rot_W, mech, q, nodes=names), turns, atol=1e-14)
    turned = lw.compile(rot_W @ J, mech, nodes=names)(q)
    np.testing.assert_allclose(turned, turns @ Dense(mech, q, nodes=names)(J), atol=1e-12)


@pytest.mark.parametrize("draw", DRAWS)
def test_potential_energy_is_weight_times_place(draw):
    """-g · (total mass) (centre of mass), with gravity in any direction."""
    mech = draw(6).with_gravity((1.0, -2.0, 5.0))
    q = mech.random(2)
    expected = -mech.total_mass * mech.gravity @ mech.center_of_mass(q)
    expr = weight.T @ X
    for result in (Dense(mech, q)(expr), swept(expr, mech, q), lw.compile(expr, mech)(q)):
        np.testing.assert_allclose(result, [expected], rtol=1e-12)


@pytest.mark.parametrize("draw", DRAWS)
def test_bias_at_rest_is_what_gravity_does(draw):
    mech = draw(7)
    q = mech.random(3)
    at_rest = Dense(mech, q)(H @ phi @ (M @ phi.T @ a + b))
    expr = H @ phi @ M @ phi.T @ a_g
    scale = np.abs(at_rest).max(initial=1.0)
    for result in (Dense(mech, q)(expr), swept(expr, mech, q), lw.compile(expr, mech)(q)):
        np.testing.assert_allclose(result / scale, at_rest / scale, atol=1e-13)


def test_gravity_is_the_slope_of_potential_energy():
    mech = trees.floating(4)
    q, h = mech.random(4), 1e-5
    energy = lw.compile(weight.T @ X, mech)
    slopes = [
        (energy(mech.integrate(q, e, h)) - energy(mech.integrate(q, -e, h)))[0] / (2 * h)
        for e in np.eye(mech.nv)
    ]
    result = lw.compile(H @ phi @ M @ phi.T @ a_g, mech)(q)
    np.testing.assert_allclose(result, slopes, atol=1e-6 * np.abs(result).max())


def test_values_of_ones_own_win():
    mech, rng = trees.branched(3), np.random.default_rng(0)
    q, given = mech.random(0), {"X": rng.standard_normal(12 * trees.branched(3).n_bodies)}
    result = swept(weight.T @ X, mech, q, values=given)
    np.testing.assert_allclose(result, Dense(mech, q, values=given)(weight.T @ X), rtol=1e-12)


def test_they_print():
    text = str(plan(weight.T @ X))
    assert "X(k) = X(p) X_pk(q(k))" in text
    assert "weight(k) = -g (h*(k), m(k))" in text
    assert "if p is the ground, else 0" in str(plan(a_g))
    for expr in (rot_W @ J, X_B, a_g, weight.T @ X, H @ phi @ M @ phi.T @ a_g + tau):
        assert "textbf{for }" in plan(expr).latex()
