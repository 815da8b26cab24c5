"""A short run of the fuzzer, and the cases that once failed."""

from __future__ import annotations

import pytest

from tests.fuzz.models import run_range

CHUNK = 75


@pytest.mark.parametrize("first", range(0, 8 * CHUNK, CHUNK))
def test_mutated_files_never_surprise(first):
    outcomes = run_range(first, CHUNK)
    failures = [f"case {o.number}: {o.trouble}" for o in outcomes if o.trouble]
    assert not failures, "\n".join(failures)
    verdicts = {o.verdict for o in outcomes}
    assert "loaded" in verdicts  # the fuzzer must not only make rubbish
    assert "ParseError" in verdicts
