"""Every theorem of the table has a proof that replays, checks, and never leans on itself."""

from __future__ import annotations

import pytest

from linkwise.algebra import (
    D,
    E_phi,
    E_psi,
    G,
    H,
    I,
    J,
    K,
    M,
    N,
    P,
    P_plus,
    Upsilon,
    Xi,
    mass,
    phi,
    psi,
    tau,
)
from linkwise.algebra.prove import inverse_proof_of, proof_of, prove
from linkwise.algebra.rules import ALL, BY_NAME
from linkwise.algebra.symbols import bare_tree
from tests.algebra import trees

THEOREMS = [rule for rule in ALL if rule.kind == "theorem"]
GIVEN = [rule for rule in ALL if rule.kind != "theorem"]


@pytest.mark.few(30)
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


BARE, BODIES = bare_tree, H @ phi @ M @ phi.T @ H.T
TWICE = mass + N
WITH_ARMATURE = {
    "inverse of a sum": (mass.inv, BODIES.inv - mass.inv @ N @ BODIES.inv),
    "from the other side": (mass.inv, BODIES.inv - BODIES.inv @ N @ mass.inv),
    "twice": (
        mass.inv,
        BODIES.inv - BODIES.inv @ N @ BODIES.inv + BODIES.inv @ N @ mass.inv @ N @ BODIES.inv,
    ),
    "inside another": ((I + BODIES.inv @ N).inv @ BODIES.inv, mass.inv),
    "seen at nodes": (J @ (BODIES.inv - mass.inv) @ J.T, J @ mass.inv @ N @ BODIES.inv @ J.T),
    "more armature": (TWICE.inv, mass.inv - mass.inv @ N @ TWICE.inv),
    "more armature, multiplied": (TWICE.inv @ mass, I - TWICE.inv @ N),
    "half the armature": ((mass + BODIES).inv @ (2.0 * mass - N), I),
    "accelerations": (mass.inv @ tau, BODIES.inv @ (tau - N @ mass.inv @ tau)),
    "articulated inertias": (P - BARE.P, E_phi @ (P_plus - BARE.P_plus) @ E_phi.T),
    "hinge inertias": (D - BARE.D, H @ E_phi @ (P_plus - BARE.P_plus) @ E_phi.T @ H.T + N),
    "articulated shifts": (psi - BARE.psi, psi @ (BARE.K - K) @ H @ BARE.psi),
    "Υ by its recursion": (Upsilon, E_psi.T @ Upsilon @ E_psi - Xi + H.T @ D.inv @ H),
    "H P Υ": (H @ P @ Upsilon, H - N @ (D.inv @ H - K.T @ Upsilon @ E_psi) - D @ G.T @ Xi),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", WITH_ARMATURE)
def test_identities_with_armature_are_proved(name: str):
    """What armature changes, on any tree."""
    left, right = WITH_ARMATURE[name]
    proof = prove(left, right)
    assert proof.proved and not proof.derivation.needs, proof.verdict
    assert (proof.derivation.where, proof.derivation.result) == ("any tree", right + 0.0 * left)
    assert proof.derivation.replay()


def test_the_inverse_is_proved_by_multiplying_out():
    """Not by opening 𝓜⁻¹, which would use what is to be proved."""
    for name in ("inverse of the mass operator", "whitening inverts coloring", "a.10", "a.11"):
        proof = inverse_proof_of(BY_NAME[name])
        assert proof is not None and proof.replay() and str(proof.result) == "I"
        known = {r.name for r in ALL if r.kind != "theorem"} | {"definitions"}
        assert {step.identity for step in proof} <= known
    assert inverse_proof_of(BY_NAME["whitened propagation"]) is None
