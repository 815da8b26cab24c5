"""Every identity of the table on hundreds of random mechanisms, where its domain says it holds.

The tests are generated from the data: a new rule is tested by being in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import BODY, JOINT, memoryless, shift
from linkwise.algebra.derivation import random_dense, residual
from linkwise.algebra.family import riccati
from linkwise.algebra.rule import Rule, rule
from linkwise.algebra.rules import ALL, BY_NAME
from linkwise.algebra.symbols import H, M, P, Xi, bare_tree, phi, psi
from linkwise.errors import ExpressionError
from tests.algebra import trees

TOLERANCE = 1e-10
HOLDING = [rule.about(bare_tree) if rule.needs else rule for rule in ALL]
"""Each about a family in which it holds: with armature, or without where it needs that."""

ANY_TREE = [rule for rule in HOLDING if rule.where == "any tree"]
CHAINS = [rule for rule in HOLDING if rule.where == "serial chains"]
ALL_CHAINS = [rule for rule in ALL if rule.where == "serial chains"]


def residuals(
    draw: Callable[[int], lw.Mechanism], seeds: Iterable[int], rules: Iterable[Rule] = HOLDING
) -> dict[str, tuple[float, float, int]]:
    """For each rule its smallest and largest residual, and the seed of the largest."""
    rules = list(rules)
    result = {rule.name: (np.inf, 0.0, -1) for rule in rules}
    seeds, used = list(seeds), 0
    for seed in seeds:
        mech = draw(seed)
        sides = [side for rule in rules for side in (rule.left, rule.right)]
        dense = random_dense(mech, sides, seed)
        if trees.condition(dense) > 1e5:  # a gimbal near its lock, say
            continue
        used += 1
        for one in rules:
            value = residual(dense, one.left, one.right)
            low, high, worst = result[one.name]
            result[one.name] = (min(low, value), max(high, value), seed if value > high else worst)
    assert used > 0.9 * len(seeds)
    return result


@pytest.fixture(scope="module", params=["branched", "floating", "welded", "every_hinge"])
def on_trees(request):
    return request.param, residuals(getattr(trees, request.param), range(30), ANY_TREE)


@pytest.fixture(scope="module")
def on_chains():
    return residuals(trees.serial, range(30)), residuals(lw.models.chain, range(1, 13))


@pytest.fixture(scope="module")
def chain_rules_on_trees():
    # Without armature, which would make branches feel less of each other.
    return residuals(trees.bushy, range(40), [rule.about(bare_tree) for rule in ALL_CHAINS])


@pytest.mark.parametrize("name", [rule.name for rule in ANY_TREE])
def test_holds_on_any_tree(name, on_trees):
    kind, result = on_trees
    _, worst, seed = result[name]
    assert worst < TOLERANCE, f"{BY_NAME[name]}: {worst:.1e} on trees.{kind}({seed})"


@pytest.mark.parametrize("name", [rule.name for rule in ALL])
def test_holds_on_chains(name, on_chains):
    for result in on_chains:
        _, worst, seed = result[name]
        assert worst < TOLERANCE, f"{BY_NAME[name]}: {worst:.1e} for seed {seed}"


@pytest.mark.parametrize("name", [rule.name for rule in CHAINS])
def test_fails_on_branched_trees(name, chain_rules_on_trees):
    least, _, _ = chain_rules_on_trees[name]
    assert least > 1e-3, f"{BY_NAME[name]} holds on a branched tree: {least:.1e}"


def test_cross_branch_term_is_zero_on_chains_only():
    dense = random_dense(trees.serial(3), [Xi], 3)
    assert np.abs(dense.matrix(Xi)).max() < 1e-14
    dense = random_dense(trees.branched(3), [Xi], 3)
    assert np.abs(dense.matrix(Xi)).max() > 1e-3


# ------------------------------------------------------------------------- other families


def test_rules_hold_for_any_family_of_the_same_roles():
    """The same statements about another shift, core and projection, none of them mechanical."""
    E = shift("F")
    core = memoryless("Q", BODY, BODY, definite=True)
    projection = memoryless("C", JOINT, BODY, independent=True)
    family = riccati(E, core, projection)
    rules = [one.about(family) for one in ALL if not _speaks_of_inboard(one)]
    assert len(rules) > 60
    for draw, where in ((trees.branched, "any tree"), (trees.serial, "serial chains")):
        chosen = [one for one in rules if one.where in ("any tree", where)]
        for name, (_, worst, seed) in residuals(draw, range(12), chosen).items():
            # Random shifts grow along a path: what cancels is larger than what is left.
            assert worst < 1e-8, f"{name}: {worst:.1e} for seed {seed}"


def _speaks_of_inboard(one: Rule) -> bool:
    return "001 a." in one.source and one.name.startswith(("a.", "E_φ = S", "E_ψ = S", "K = S"))


# -------------------------------------------------------------------------------- the table


def test_appendix_a_is_complete():
    """Identities A.1 to A.7 of 001 are its equations a.6 to a.43; then a.46 to a.50."""
    sources = {one.source.removesuffix(", with N") for one in ALL}
    named = {*range(6, 18), *range(22, 28), *range(32, 44), 46, 47, 48, 50}
    missing = [n for n in sorted(named) if f"001 a.{n}" not in sources]
    assert missing == []


def test_every_rule_has_a_source_and_a_domain():
    for one in ALL:
        assert one.source and one.where in ("any tree", "serial chains")
        assert one.needs in ("", "N = 0")
        assert one.kind in ("definition", "axiom", "theorem")
        assert one.left is not one.right
        assert (one.left.range, one.left.domain) == (one.right.range, one.right.domain)
    assert len({one.name for one in ALL}) == len(ALL)


def test_the_adjoint_of_a_rule_is_the_rule_about_the_adjoints():
    for one in ALL:
        twice = one.adjoint.adjoint
        assert twice.left is one.left and twice.right is one.right


def test_a_rule_between_different_spaces_is_refused():
    with pytest.raises(ExpressionError, match="maps"):
        rule("wrong", H @ phi, psi @ P, "nowhere")
    with pytest.raises(ExpressionError):
        rule("wrong", M, H @ M @ H.T, "nowhere")
