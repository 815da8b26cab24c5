"""Document 004: every number it prints has an entry, and every entry is what it claims to be."""

import pytest

from linkwise import models
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.symbols import mass
from linkwise_ledger import Case, Entry, entries, run
from linkwise_ledger.random_field import PRINTED


def test_every_number_has_an_entry() -> None:
    numbers = [entry.number for entry in entries("004")]
    assert not set(PRINTED) - set(numbers)
    assert len(set(numbers)) == len(numbers), "two entries of one number"


@pytest.mark.parametrize("entry", entries("004"), ids=lambda entry: entry.number)
def test_entry(entry: Entry) -> None:
    (verdict,) = run([entry])
    assert verdict.confirmed, verdict.evidence


def test_closed_form_of_the_inverse_needs_the_term_across_branches() -> None:
    # Arms and legs are long, so that siblings have something below them to speak of.
    case = Case("humanoid", models.humanoid(), 5)
    closed = BY_NAME["closed form of the inverse"].right
    on_trees = BY_NAME["closed form of the inverse on trees"].right
    assert case.residual(mass.inv, closed) > 1e-6
    assert case.residual(mass.inv, on_trees) < 1e-9
