"""No check of the ledger compares a thing with itself, and none compares zeros alone."""

import numpy as np
import pytest

from linkwise.algebra.symbols import D, H, M, P, mass, phi
from linkwise_ledger import Entry, cases, entries, holds, same
from linkwise_ledger.case import apart
from linkwise_ledger.document import DOCUMENTS
from tests.ledger.sides import opened, watched

ENTRIES = [
    pytest.param(entry, id=f"{document.key} {entry.number}")
    for document in DOCUMENTS
    for entry in entries(document.key)
    if entry.check is not None and entry.status != "definition"
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_both_sides_stand_for_themselves(entry: Entry):
    """On one mechanism: which sides are compared does not depend on it."""
    assert entry.check is not None
    with watched() as sides:
        entry.check(cases(entry.where)[-1])
    assert not sides.alone, f"compared with itself: {sides.alone[0]}"
    assert sides.moving or not sides.count, "zeros are compared with zeros"


def test_what_is_compared_with_itself_is_noticed():
    whole = H @ phi @ M @ phi.T @ H.T
    for left, right in ((M, M), (mass, whole), (2.0 * mass, 2.0 * whole)):
        with watched() as sides:
            assert same(left, right)(cases()[0]) == 0.0
        assert sides.alone
    with watched() as sides:
        same(D, H @ P @ H.T)(cases()[0])
    assert sides.count == 1 and not sides.alone
    assert opened(D) == D != H @ P @ H.T


def test_the_same_array_and_zeros_are_noticed():
    import linkwise_ledger.standard as some

    x = np.arange(3.0)
    with watched() as sides:
        some.apart(x, x), some.apart(x, x.copy())
    assert len(sides.alone) == 1 and sides.moving == 2
    with watched() as sides:
        some.apart(np.zeros(3), np.zeros(3))
    assert not sides.moving
    assert some.apart is apart, "nothing stays behind"


def test_an_entry_without_two_sides_fails():
    with pytest.raises(AssertionError, match="compared with itself"):
        test_both_sides_stand_for_themselves(holds("(1)", "one", "M = M", "the same", same(M, M)))
