"""Every number that a paper prints has an entry, and every entry is what it claims to be.

No check compares a thing with itself, and none compares zeros alone.
"""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from linkwise.algebra.symbols import D, H, M, P, mass, phi
from linkwise_ledger import DOCUMENTS, Case, Entry, cases, entries, run
from linkwise_ledger.case import apart
from linkwise_ledger.section import Section, same
from tests.ledger.sides import Sides, opened, watched

KEYS = [document.key for document in DOCUMENTS]
IN_ORDER = {"jpl_88_11.part_2", "object_level"}
"""Papers whose numbers are entered in the order in which they are printed."""

ENTRIES = [
    pytest.param(entry, id=f"{key} {entry.number}") for key in KEYS for entry in entries(key)
]


@pytest.mark.parametrize("key", KEYS)
def test_every_number_has_one_entry(key: str) -> None:
    printed = importlib.import_module(f"linkwise_ledger.{key}").PRINTED
    numbers = [entry.number for entry in entries(key)]
    assert len(set(numbers)) == len(numbers), "two entries of one number"
    if key == "soa_course":  # cites the numbers of a book, several at a time
        cited = [number.strip("()").split(", ") for number in numbers if number.startswith("(")]
        numbers = [number for group in cited for number in group]
        assert set(numbers) == set(printed)
    assert not set(printed) - set(numbers)
    if key in IN_ORDER:
        assert [number for number in numbers if number in printed] == list(printed)


@pytest.mark.few(60)
@pytest.mark.parametrize("entry", ENTRIES)
def test_entry(entry: Entry) -> None:
    """Confirmed on all mechanisms; what is compared is looked at on the last of them."""
    sides, last = Sides(), cases(entry.where)[-1]

    def check(case: Case) -> float:
        assert entry.check is not None
        if case is not last:
            return entry.check(case)
        with watched(sides):
            return entry.check(case)

    (verdict,) = run([entry if entry.check is None else replace(entry, check=check)])
    assert verdict.confirmed, verdict.evidence
    assert entry.printed and entry.statement and entry.title
    if entry.status != "definition":
        sides.assert_two()


def test_what_is_compared_with_itself_is_noticed() -> None:
    whole_mass = H @ phi @ M @ phi.T @ H.T
    for left, right in ((M, M), (mass, whole_mass), (2.0 * mass, 2.0 * whole_mass)):
        with watched() as sides:
            assert same(left, right)(cases()[0]) == 0.0
        assert sides.alone
        with pytest.raises(AssertionError, match="compared with itself"):
            sides.assert_two()
    with watched() as sides:
        same(D, H @ P @ H.T)(cases()[0])
    assert sides.count == 1 and not sides.alone
    assert opened(D) == D != H @ P @ H.T


def test_the_same_array_and_zeros_are_noticed() -> None:
    import linkwise_ledger.standard as some

    x = np.arange(3.0)
    with watched() as sides:
        some.apart(x, x), some.apart(x, x.copy())
    assert len(sides.alone) == 1 and sides.moving == 2
    with watched() as sides:
        some.apart(np.zeros(3), np.zeros(3))
    assert not sides.moving
    with pytest.raises(AssertionError, match="zeros"):
        sides.assert_two()
    assert some.apart is apart, "nothing stays behind"


def test_an_entry_without_two_sides_fails() -> None:
    section = Section()
    section.algebra("""(1)  one
        holds    M = M
    """)
    with pytest.raises(AssertionError, match="compared with itself"):
        test_entry(next(iter(section)))
