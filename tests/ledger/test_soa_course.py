"""Document 002: every number it cites has an entry, and every entry is what it claims to be."""

import pytest

from linkwise_ledger import Entry, entries, run
from linkwise_ledger.soa_course import PRINTED


def test_every_number_has_an_entry() -> None:
    numbers = [entry.number for entry in entries("002")]
    cited = {
        part
        for number in numbers
        if number.startswith("(")
        for part in number.strip("()").split(", ")
    }
    assert set(PRINTED) == cited
    assert len(set(numbers)) == len(numbers), "two entries of one number"


@pytest.mark.parametrize("entry", entries("002"), ids=lambda entry: entry.number)
def test_entry(entry: Entry) -> None:
    (verdict,) = run([entry])
    assert verdict.confirmed, verdict.evidence
