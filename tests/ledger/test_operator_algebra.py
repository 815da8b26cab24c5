"""Document 000: every number it prints has an entry, and every entry is what it claims to be."""

import pytest

from linkwise_ledger import Entry, entries, run
from linkwise_ledger.operator_algebra import PRINTED


def test_every_number_has_an_entry() -> None:
    numbers = [entry.number for entry in entries("000")]
    assert not set(PRINTED) - set(numbers)
    assert len(set(numbers)) == len(numbers), "two entries of one number"


@pytest.mark.parametrize("entry", entries("000"), ids=lambda entry: entry.number)
def test_entry(entry: Entry) -> None:
    (verdict,) = run([entry])
    assert verdict.confirmed, verdict.evidence
