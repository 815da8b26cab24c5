"""Pages as they are set: code in two columns fits into its column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAIRS = re.compile(r"^:::::\{container\} side-by-side\n(.*?)^:::::$", re.DOTALL | re.MULTILINE)
COLUMN = 56
"""Characters that a column has room for, as docs/_theme/linkwise.css sets it."""


PAGES = sorted((DOCS / "how_to").glob("coming_from_*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_side_by_side_is_not_cut_off(page):
    pairs = PAIRS.findall(page.read_text(encoding="utf-8"))
    assert pairs
    long = [line for pair in pairs for line in pair.splitlines() if len(line) > COLUMN]
    assert not long, f"docs/{page.name} has lines of more than {COLUMN} characters: {long}"
