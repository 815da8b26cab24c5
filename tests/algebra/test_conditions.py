"""Every rule in every family and on every topology in which it can fire, and where it must not.

A rule states where it holds (any tree, serial chains) and what it needs (N = 0). The tests are
generated from that: it holds wherever its conditions allow it, and it fails wherever they exclude
it, so that no condition is missing and none is idle.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from linkwise.algebra import (
    BODY,
    JOINT,
    D,
    E_phi,
    G,
    H,
    M,
    N,
    P,
    Upsilon,
    memoryless,
    normal_form as normal,
    search,
    shift,
)
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import Derivation, Step, random_dense, residual
from linkwise.algebra.evidence import Evidence, Sample, samples
from linkwise.algebra.family import Family, riccati
from linkwise.algebra.prove import prove
from linkwise.algebra.replay import in_table
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import ALL, BY_NAME
from linkwise.algebra.words import expand
from linkwise.errors import ExpressionError, ProofError
from linkwise.pipeline import derive
from linkwise.spatial.array import Array
from tests.algebra import trees

OWN_SHIFT = shift("F")
OWN_CORE = memoryless("W", BODY, BODY, definite=True)
OWN_HINGE = memoryless("C", JOINT, BODY, independent=True)
OWN_NOISE = memoryless("S", JOINT, JOINT, definite=True)

FAMILIES = {
    "bare": riccati(E_phi, M, H),
    "armature": riccati(E_phi, M, H, N),
    "own noise": riccati(E_phi, M, H, OWN_NOISE),
    "own core": riccati(E_phi, OWN_CORE, H),
    "own core, armature": riccati(E_phi, OWN_CORE, H, N),
    "own hinge map": riccati(E_phi, M, OWN_HINGE),
    "own operators": riccati(OWN_SHIFT, OWN_CORE, OWN_HINGE),
    "own operators, noise": riccati(OWN_SHIFT, OWN_CORE, OWN_HINGE, OWN_NOISE),
}
FIRES = [
    pytest.param(rule, family, id=f"{rule.name} | {name}")
    for rule in ALL
    for name, family in FAMILIES.items()
    if rule.holds_in(family) or rule.needs
]
TOPOLOGIES = {
    "branched": lambda: [Sample(trees.branched(s), ()) for s in (0, 3)],
    "floating": lambda: [Sample(trees.floating(s), ()) for s in (1, 2)],
    "welded": lambda: [Sample(trees.welded(5), ())],
    "every hinge": lambda: [Sample(trees.every_hinge(7), ())],
    "samples": lambda: list(samples("any tree")),
    "serial": lambda: [Sample(trees.serial(s), ()) for s in (0, 4)],
    "serial samples": lambda: list(samples("serial chains")),
}


@cache
def topology(name: str) -> tuple[Sample, ...]:
    return tuple(TOPOLOGIES[name]())


@cache
def matrices(family: Family, name: str) -> list[Dense]:
    """The operators of a family on the mechanisms of a topology."""
    rules = [rule.about(family) for rule in ALL]
    sides = [side for rule in rules for side in (rule.left, rule.right)]
    result = [
        random_dense(sample.mech, sides, i, sample.nodes or None)
        for i, sample in enumerate(topology(name))
    ]
    for dense in result:
        if family.H is OWN_HINGE:
            dense.values["C"] = [conditioned(block) for block in dense.values["C"]]
    return result


def conditioned(block: Array) -> Array:
    """With singular values between ½ and 2: six random rows are nearly dependent, and D with them.

    Rounding would then hide what is zero by an identity.
    """
    left, _, right = np.linalg.svd(block, full_matrices=False)
    return (left * np.linspace(2.0, 0.5, len(block))) @ right


def apart(rule: Rule, family: Family, name: str) -> float:
    """Largest residual of a rule about a family on the mechanisms of a topology."""
    return max(residual(dense, rule.left, rule.right) for dense in matrices(family, name))


@pytest.mark.parametrize(("rule", "family"), FIRES)
def test_a_rule_holds_exactly_where_its_conditions_say(rule: Rule, family: Family):
    about = rule.about(family)
    for name in TOPOLOGIES:
        result, serial = apart(about, family, name), name.startswith("serial")
        if rule.holds_in(family) and (serial or rule.where == "any tree"):
            assert result < 1e-10, f"{about}: {result:.1e} on {name}"
        elif "samples" in name:
            assert result > 1e-6, f"{about} holds although its conditions exclude {name}"


def test_no_condition_is_idle():
    """Both kinds of conditions occur, and in all four combinations."""
    assert {(rule.where, rule.needs) for rule in ALL} == {
        (where, needs) for where in ("any tree", "serial chains") for needs in ("", "N = 0")
    }


@pytest.mark.parametrize("name", FAMILIES)
def test_what_rewriting_uses_holds_in_the_family(name: str):
    """The rules that normal forms and the search take up for a family are those that hold in it."""
    family = FAMILIES[name]
    modules = (*normal.LYAPUNOV, *normal.COMPOSITE, *normal.COSTATE)
    used = [r.rule for r in normal.replacements([family], modules)]
    may = (BY_NAME[name] for name in (*normal.CORE, *modules))
    assert {rule.name for rule in may if rule.holds_in(family)} <= {rule.name for rule in used}
    for rule in used:
        assert in_table(rule), rule
        assert apart(rule, family, "branched") < 1e-8, rule
    words = expand(family.P)
    for move in search.moves(words, search.SIMPLIFYING, both=True):
        assert in_table(move.rule), move.rule
        assert apart(move.rule, family, "branched") < 1e-8, move.rule


# ------------------------------------------------------------------------------- false proofs

ARMED = FAMILIES["armature"]
FALSE = {
    "H P Υ = H": (H @ ARMED.P @ ARMED.Upsilon, H),
    "G* Υ = D⁻¹ H": (ARMED.G.T @ ARMED.Upsilon, ARMED.D.inv @ H),
    "H P Υ P H* = H P H*": (H @ ARMED.P @ ARMED.Upsilon @ ARMED.P @ H.T, H @ ARMED.P @ H.T),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_holds_without_armature_is_not_proved_with_it(name: str):
    left, right = FALSE[name]
    proof = prove(left, right)
    assert proof.on_trees > 1e-3 and proof.on_chains > 1e-3
    assert proof.proved and proof.derivation.needs == "N = 0"
    assert proof.derivation.replay()
    assert "without armature; with armature the two are not equal" in proof.verdict
    with pytest.raises(ExpressionError, match="without armature"):
        derive(left, to=right)


def test_a_proof_that_numbers_contradict_raises(monkeypatch):
    """With a false rule in the table, prove, derive and replay raise; there is no verdict."""
    wrong = Rule("gain", P @ H.T, 2.0 * (G @ D), "any tree", "nowhere", "axiom")
    monkeypatch.setitem(BY_NAME, "gain", wrong)
    with pytest.raises(ProofError, match="bug in Linkwise"):
        derive(P @ H.T, to=2.0 * (G @ D))
    step = Step(P @ H.T, 2.0 * (G @ D), "gain", str(wrong), "nowhere", "any tree", wrong)
    with pytest.raises(ProofError, match="bug in Linkwise"):
        Derivation(P @ H.T, (step,)).replay()
    assert not prove(P @ H.T, 2.0 * (G @ D)).proved
    monkeypatch.setattr(Evidence, "domain", ("any tree", ""))  # as if its samples were too special
    with pytest.raises(ProofError, match="bug in Linkwise"):
        prove(P @ H.T, 2.0 * (G @ D))


def test_replay_refuses_a_rule_outside_its_conditions():
    """A step by a rule about a family in which it does not hold does not follow."""
    about = BY_NAME["G* Υ"].about(ARMED)
    assert not in_table(about)
    step = Step(about.left, about.right, about.name, str(about), about.source, rule=about)
    assert not Derivation(about.left, (step,)).replay()
    chains = BY_NAME["costate covariance of a chain"]
    wide = Step(chains.left, chains.right, chains.name, str(chains), "004 10.1", rule=chains)
    assert not Derivation(chains.left, (wide,)).replay()  # it claims any tree


@pytest.mark.parametrize("part", ["M", "N"])
def test_riccati_refuses_what_is_not_symmetric(part: str):
    space = BODY if part == "M" else JOINT
    skew = memoryless("A", space, space)
    with pytest.raises(ExpressionError, match=f"A for {part}, which is not known to be symmetric"):
        riccati(E_phi, skew, H) if part == "M" else riccati(E_phi, M, H, skew)


def test_riccati_refuses_other_kinds_of_operators():
    with pytest.raises(ExpressionError, match="for its shift"):
        riccati(M, M, H)
    with pytest.raises(ExpressionError, match="for its projection"):
        riccati(E_phi, M, OWN_SHIFT)
    with pytest.raises(ExpressionError, match="must map JOINT to JOINT"):
        riccati(E_phi, M, H, M)


def test_numbers_of_a_domain_cover_its_chains():
    """What holds on trees must hold on chains, too: a tree sample alone does not decide."""
    numbers = Evidence(Upsilon, Upsilon)
    numbers.__dict__.update(on_trees=0.0, on_chains=1.0, on_bare_trees=0.0, on_bare_chains=1.0)
    assert numbers.in_domain("any tree") == 1.0 and numbers.domain is None
    numbers.__dict__.update(on_chains=float("nan"))
    with pytest.raises(ProofError):
        numbers.check("any tree")
