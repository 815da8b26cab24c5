"""The notation page and the linter's list of allowed upper-case names are the same list."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def allowed_by_ruff() -> set[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(config["tool"]["ruff"]["lint"]["pep8-naming"]["extend-ignore-names"])


def rows_of_notation_page() -> list[list[str]]:
    text = (ROOT / "docs" / "explanation" / "notation.md").read_text(encoding="utf-8")
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows]


def code_names() -> set[str]:
    """Names in the column `in code` of every table of the page."""
    names: set[str] = set()
    column = None
    for row in rows_of_notation_page():
        if "in code" in row:
            column = row.index("in code")
        elif column is not None and len(row) > column:
            names |= set(re.findall(r"`([^`]+)`", row[column]))
    return names


def needs_permission(name: str) -> bool:
    """Whether the naming rules would reject the name."""
    return any(letter.isupper() for letter in name) and "." not in name


def test_linter_allows_exactly_the_notation_page():
    on_page = {name for name in code_names() if needs_permission(name)}
    assert on_page, "the notation page has lost its tables"
    assert allowed_by_ruff() == on_page


def test_no_symbol_is_listed_twice():
    cells = [
        name
        for row in rows_of_notation_page()
        if len(row) >= 4
        for name in re.findall(r"`([^`]+)`", row[1])
    ]
    assert sorted(cells) == sorted(set(cells))
