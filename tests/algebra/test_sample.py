"""Samples are not special: each false statement that a special mechanism makes true is refuted."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import B, H, I, J, N, Q, R, Y, mass, phi
from linkwise.algebra.dense import Dense
from linkwise.algebra.evidence import Evidence, samples
from linkwise.algebra.rules import BY_NAME
from linkwise.errors import ExpressionError
from linkwise.models.random_tree import HINGE_KINDS

WHERE = ("any tree", "serial chains")
LEMMA_12 = BY_NAME["closed form of the inverse"]
BARE = H @ phi @ lw.algebra.M @ phi.T @ H.T


def test_lemma_12_without_the_cross_branch_term_fails_on_trees():
    proof = lw.prove(LEMMA_12.left, LEMMA_12.right)
    assert proof.on_trees > 1e-2 and proof.on_chains < 1e-9
    assert proof.proved and proof.derivation.where == "serial chains"
    for sample in samples("any tree"):
        numbers = Dense(sample.mech, sample.mech.random(1), nodes=sample.nodes)
        result = np.abs(numbers(LEMMA_12.left) - numbers(LEMMA_12.right)).max()
        assert result > 1e-3 * np.abs(numbers(LEMMA_12.left)).max(), sample.mech.name


@pytest.mark.parametrize(
    ("left", "right"),
    [(B.T @ B, I), (H @ H.T, I), ((BARE + N).inv, BARE.inv), (Q @ J, 2.0 * (Q @ J))],
    ids=["nodes", "hinges", "armature", "loops"],
)
def test_false_statements_are_refuted_on_trees_and_on_chains(left, right):
    proof = lw.prove(left, right)
    assert proof.on_trees > 1e-3 and proof.on_chains > 1e-3
    assert not proof.proved or proof.derivation.needs
    with pytest.raises(ExpressionError, match=r"not equal|without armature"):
        lw.derive(left, to=right)


def test_samples_are_what_statements_need():
    mechs = [sample.mech for where in WHERE for sample in samples(where)]
    kinds = {type(body.hinge) for mech in mechs for body in mech.bodies}
    rng = np.random.default_rng(0)
    assert kinds == {type(make(rng)) for make in HINGE_KINDS.values()}
    for mech in mechs:
        assert (mech.armature > 0.0).all() and len(set(mech.armature)) == mech.nv
        assert mech.bodies[0].hinge.nv > 0, "a root that does not move"
        for node in mech.nodes:
            assert np.abs(node.pose.p).max() > 0.01
            assert np.abs(node.pose.rot - np.eye(3)).max() > 0.1
        assert all(np.abs(body.outboard.p).max() > 0.01 for body in mech.bodies)


def test_trees_have_two_deep_sides_that_move():
    for sample in samples("any tree"):
        mech = sample.mech
        ours = np.array([body.hinge.nv for body in mech.bodies])
        path = np.zeros(mech.n_bodies, dtype=int)
        depth = np.zeros(mech.n_bodies, dtype=int)
        for k, p in enumerate(mech.parent.tolist()):
            path[k] = ours[k] + (path[p] if p >= 0 else 0)
            depth[k] = 0 if p < 0 else depth[p] + 1
        assert depth.max() >= 3
        first, second = (mech.body_index[mech.node(name).body] for name in sample.nodes)
        assert min(depth[first], depth[second]) >= 2
        sides = [k for k, p in enumerate(mech.parent.tolist()) if p == 0]
        assert len(sides) == 2 and all(mech.children[k] for k in sides)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("closed", [False, True])
def test_nodes_and_constraints_are_independent(where: str, closed: bool):
    """(J 𝓜⁻¹ J*)⁻¹ exists, and J_c has full rank: what is compared is no round-off."""
    for i, sample in enumerate(samples(where, closed=closed)):
        mech = sample.mech
        dense = Dense(mech, mech.random(np.random.default_rng(i)), nodes=sample.nodes)
        rows = dense(Q @ J + Y) if closed else dense(J)
        assert np.linalg.cond(rows @ np.linalg.solve(dense(mass), rows.T)) < 1e8
        assert len(rows) > 0


def test_armature_enters_only_where_it_is_written():
    assert Evidence(R, R + 0.0 * R).on_bare_trees == 0.0
    numbers = Evidence((BARE + N).inv, BARE.inv)
    assert numbers.on_bare_trees < 1e-12 < numbers.on_trees
    assert numbers.domain == ("any tree", "N = 0")
