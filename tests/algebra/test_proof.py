"""Every theorem of the table has a proof that replays, checks, and never leans on itself."""

from __future__ import annotations

import pytest

from linkwise.algebra.proof import proof_of
from linkwise.algebra.rules import ALL, BY_NAME
from tests.algebra import trees

THEOREMS = [rule for rule in ALL if rule.kind == "theorem"]
GIVEN = [rule for rule in ALL if rule.kind != "theorem"]


@pytest.mark.parametrize("rule", THEOREMS, ids=lambda rule: rule.name)
def test_theorem_is_proved(rule):
    proof = proof_of(rule)
    assert proof is not None and proof.start is rule.left and proof.result is rule.right
    assert proof.replay()
    assert rule.name not in {step.identity for step in proof}
    draw = trees.serial if rule.where == "serial chains" else trees.branched
    assert proof.needs == rule.needs
    for seed in (0, 5):
        mech = draw(seed).without_armature() if rule.needs else draw(seed)
        assert proof.check(mech, seed=seed) < 1e-9


def test_proofs_rest_on_axioms_and_definitions():
    """Nothing is proved by a theorem that is itself proved by it: one level is all there is."""
    leaning = dict[str, set[str]]()
    for rule in THEOREMS:
        proof = proof_of(rule)
        assert proof is not None
        used = {step.identity for step in proof} & {other.name for other in THEOREMS}
        if used:
            leaning[rule.name] = used
    for name, used in leaning.items():
        assert not used & set(leaning), name


def test_where_a_proof_holds_is_where_its_steps_hold():
    for rule in THEOREMS:
        proof = proof_of(rule)
        assert proof is not None
        if rule.where == "any tree":
            assert proof.where == "any tree", rule.name
        else:
            assert proof.where == "serial chains", rule.name


def test_difference_of_two_theorems():
    rule = BY_NAME["covariance of the filtered state"]
    proof = proof_of(rule)
    assert proof is not None
    names = [step.identity for step in proof]
    assert names[:2] == ["articulated and innovations", "composite decomposition"]


@pytest.mark.parametrize("rule", GIVEN, ids=lambda rule: rule.name)
def test_definitions_and_axioms_are_their_own_proof(rule):
    proof = proof_of(rule)
    assert proof is not None and proof.replay()
    (step,) = (step for step in proof if not step.needs)
    assert step.identity == rule.name and step.source == rule.source
    assert (proof.start, proof.result, proof.needs) == (rule.left, rule.right, rule.needs)
