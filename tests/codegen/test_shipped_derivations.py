"""The derivations that come with the library are those that the search finds today."""

from __future__ import annotations

import pickle

import pytest

import linkwise as lw
from linkwise.algebra.armature import no_armature
from linkwise.algebra.budget import Budget
from linkwise.algebra.derivation import Derivation
from linkwise.codegen.cheapest import search_key, searched, shipped
from linkwise.dynamics.quantity import expression

STALE = "the code of the search has changed: run  python tools/derivations.py"
SAMPLE = 25


def derivations() -> list[Derivation]:
    return [pickle.loads(result) for result in shipped().values()]


def test_they_belong_to_this_code():
    keys = {search_key(result.start, Budget()) for result in derivations()}
    assert keys == set(shipped()), STALE


def test_everyday_quantities_are_among_them():
    starts = {result.start for result in derivations()}
    for name in ("forward_dynamics", "mass_matrix", "inverse_dynamics", "jacobian"):
        assert {expression(name), no_armature(expression(name)).result} <= starts
    linkage = lw.loops.closed_expression(lw.models.four_bar(), "forward_dynamics")
    assert linkage in starts


@pytest.mark.parametrize("number", range(0, 120, SAMPLE))
def test_searching_again_finds_the_same(number: int):
    ordered = sorted(derivations(), key=lambda result: str(result.start))
    known = ordered[number % len(ordered)]
    again = searched(known.start, Budget())
    assert again.result is known.result, STALE
    assert str(again) == str(known)
