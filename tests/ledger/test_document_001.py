"""Document 001, Part I: every entry is what it claims to be, and none is forgotten."""

import pytest

from linkwise.ledger import Entry, entries, run

ENTRIES = entries("001")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_the_entry_is_what_it_claims_to_be(entry: Entry) -> None:
    (verdict,) = run([entry])
    assert verdict.confirmed, verdict.evidence
