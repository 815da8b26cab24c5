"""What random trees promise."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import models
from linkwise.errors import ModelError
from linkwise.model.hinges import Free, Locked
from linkwise.models import HINGE_KINDS
from tests.dense_kinematics import body_jacobians, difference_jacobians, mass_matrix

SEEDS = range(12)


def fingerprint(mech):
    """Everything that makes up the physics, as one array."""
    q = mech.random(seed=0)
    parts = [mech.parent, mech.poses(q).matrix, mech.inertias.matrix, mech.armature, mech.lower]
    return np.concatenate([np.ravel(part) for part in parts])


def test_the_same_seed_gives_the_same_tree_and_another_seed_another():
    first, again = (fingerprint(models.random_tree(20, 7)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = fingerprint(models.random_tree(20, 8))
    assert first.shape != other.shape or not np.array_equal(first, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_hinge_is_dealt(seed):
    mech = models.random_tree(len(HINGE_KINDS), seed)
    assert len({type(body.hinge) for body in mech.bodies}) == len(HINGE_KINDS) == 13


@pytest.mark.few(3)
@pytest.mark.parametrize("n", [3, 4, 9])
@pytest.mark.parametrize("branching", [0.0, 0.4, 1.0])
def test_some_body_has_two_children(n, branching):
    for seed in SEEDS:
        parents = models.random_tree(n, seed, branching=branching).parent
        assert (parents < np.arange(n)).all()
        assert parents[0] == -1 and (parents[1:] >= 0).all()
        assert np.bincount(parents[1:]).max() >= 2, seed


@pytest.mark.parametrize("seed", SEEDS)
def test_inertias_hold_the_triangle_inequality_strictly(seed):
    mech = models.random_tree(15, seed, mass_ratio=100.0)
    low, middle, high = np.linalg.eigvalsh(mech.inertias.J_com).T
    assert (low > 0.0).all()
    assert (low + middle > 1.02 * high).all()
    masses = mech.inertias.mass
    assert masses.max() / masses.min() <= 100.0
    assert not [finding for finding in mech.validate() if finding.severity == "error"]


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_and_jacobians(seed):
    mech = models.random_tree(15, seed, floating=bool(seed % 2))
    q = mech.random(seed=seed)
    J = body_jacobians(mech, q)
    np.testing.assert_allclose(J, difference_jacobians(mech, q), atol=1e-6)
    assert np.linalg.eigvalsh(mass_matrix(mech, q)).min() > 0.0


def test_frames_are_at_the_hinge_and_away_from_it():
    bodies = models.random_tree(40, 1).bodies
    away = [bool(np.abs(body.outboard.matrix - np.eye(4)).max() > 0.0) for body in bodies]
    assert 8 < sum(away) < 32


def test_drives_can_be_left_out():
    assert models.random_tree(30, 2).armature.max() > 0.0
    plain = models.random_tree(30, 2, drives=False)
    assert plain.armature.max() == 0.0 and np.isinf(plain.upper).all()


def test_floating_and_chosen_hinges():
    mech = models.random_tree(6, 3, floating=True, hinges=("pin", "spherical"))
    assert isinstance(mech.bodies[0].hinge, Free)
    assert {body.hinge.kind for body in mech.bodies[1:]} == {"pin", "spherical"}
    welds = models.random_tree(30, 3, hinges=[kind for kind in HINGE_KINDS if kind != "locked"])
    assert not any(isinstance(body.hinge, Locked) for body in welds.bodies)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": 3, "mass_ratio": 0.5}, "mass_ratio 0.5"),
        ({"n": 3, "branching": 1.5}, "branching 1.5"),
        ({"n": 3, "hinges": ()}, "no kind of hinge"),
        ({"n": 3, "hinges": ("prismatik",)}, "did you mean 'prismatic'"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ModelError, match=message):
        models.random_tree(seed=0, **arguments)


@pytest.mark.parametrize("branching", [0.0, 0.5, 1.0])
def test_every_tip_has_a_node(branching):
    for n in (1, 2, 9):
        mech = models.random_tree(n, 4, branching=branching)
        tips = {b.name for b in mech.bodies} - {b.parent for b in mech.bodies}
        assert {node.body for node in mech.nodes if node.name.startswith("tip_")} == tips
        assert mech.bodies[-1].name in tips
