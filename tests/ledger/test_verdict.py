"""What is wrong is found wrong: differences, verdicts, and entries that lack a check."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra.dense import Dense
from linkwise.algebra.derivation import residual
from linkwise.algebra.symbols import M, phi, tau, v
from linkwise_ledger import Entry, cases, definition, entries, holds, misprint, run, same
from linkwise_ledger.case import apart

HOLDS = holds("(1)", "one", "M = M", "the same", same(M, M))


def verdict(entry: Entry):
    (found,) = run([entry])
    return found


def test_difference_of_arrays():
    assert apart([1.0, 2.0], [1.0, 1.0]) == 0.5
    assert apart(np.zeros(3), np.zeros(3)) == apart(np.zeros(0), np.zeros(0)) == 0.0
    assert apart(np.zeros(3), np.zeros((3, 1))) == np.inf
    assert apart(np.zeros(2), [0.0, 1e-300]) == 1.0
    for bad in (np.nan, np.inf):
        assert not apart([1.0, bad], [1.0, 2.0]) < 1e-9
        assert not apart([1.0, 2.0], [bad, 2.0]) < 1e-9
        assert not apart([bad], [bad]) < 1e-9


def test_difference_of_expressions():
    case = cases()[0]
    assert case.residual(M, M) == 0.0
    assert case.residual(phi @ M, M) > 1e-3
    dense = Dense(case.mech, case.q, case.v, values={"tau": np.full(len(case.v), np.nan)})
    assert not residual(dense, tau, 0.0 * tau) < 1e-9
    assert not residual(dense, v, tau) < 1e-9


@pytest.mark.parametrize("error", [1e-8, np.nan, np.inf])
def test_statements_that_fail_on_one_mechanism_are_not_confirmed(error):
    last = cases()[-1]
    wrong = replace(HOLDS, check=lambda case: error if case is last else 0.0)
    assert verdict(HOLDS).confirmed
    assert not verdict(wrong).confirmed
    assert verdict(wrong).evidence.endswith(f"(on {last.name})")


def test_chains_are_not_asked_of_trees():
    entry = replace(HOLDS, check=lambda case: 0.0 if case.is_chain else 0.5).on_chains()
    assert verdict(entry).confirmed
    assert verdict(entry).evidence == "0e+00; on branched trees 5.0e-01"


def test_misprints_need_both():
    right, wrong = (lambda case: 1e-15), (lambda case: 0.25)
    found = verdict(misprint("(1)", "one", "a", "b", right, wrong))
    assert found.confirmed and found.evidence == "1e-15; as printed 2.5e-01"
    assert not verdict(misprint("(1)", "one", "a", "b", wrong, wrong)).confirmed
    assert not verdict(misprint("(1)", "one", "a", "b", right, right)).confirmed
    never = misprint("(1)", "one", "a", "b", right, lambda case: float("inf"))
    assert verdict(never).evidence == "1e-15; as printed it does not fit"


def test_entries_need_their_checks():
    assert verdict(definition("(1)", "one", "a")).evidence == "by definition"
    with pytest.raises(lw.LinkwiseError, match="needs a check"):
        replace(HOLDS, check=None)
    with pytest.raises(lw.LinkwiseError, match="checked for misprints"):
        replace(HOLDS, check_printed=same(M, M))
    with pytest.raises(lw.LinkwiseError, match="checked for misprints"):
        replace(HOLDS, status="misprint")


def test_what_is_said_reads_by_itself():
    assert HOLDS.said == "M = M"
    assert replace(HOLDS, statement="the same, twice").said == "M = M, twice"
    assert replace(HOLDS, statement="at the same time").said == "at the same time"


@pytest.mark.parametrize("key", ["000", "001", "001-II", "002", "003", "004"])
def test_only_definitions_go_unchecked(key):
    for entry in entries(key):
        assert entry.check is not None or entry.status == "definition", entry.number
        assert entry.printed and entry.statement and entry.title
