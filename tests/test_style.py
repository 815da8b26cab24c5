"""The words of the source: prose without phrases that read badly, names that say what they hold.

A file passes once its folder is off the list TO_DO. docs/developer pages and style rules say why.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PHRASES = {
    r"\b(is|are|was|were|be|been|not|as) told\b|\btold (by|of|in|about|before|with)\b": "reported",
    r"\btells? (of|how|where|which|whether|what|when|why|the|it|so)\b": "says, reports, shows",
    r"(?<!degrees of )(?<!degree of )(?<![.-])\bfreedoms?\b(?!=)": "degrees of freedom",
    r"\b(a|the|one|graphics) card\b|\bcards\b": "GPU",
    r"\bthat there (is|are) not\b|\bthat is not there\b": "an unknown ...",
    r"\bcan be had\b|\bto be had\b": "is available",
    r"\bso many\b": "n, the number of",
    r"\bstands? (in|for|at|on|beside|there|behind|here)\b": "is in, means, holds",
    r"\bas many as are worth it\b": "default: chosen from the batch size",
    r"\bthousand million\b": "billion",
    r"\b(is|are) no (mechanism|number|name|array|rotation|task|grasp|pose|file)\b": "is not a ...",
    r"\bbelongs? into\b": "must be added to",
    r"\bwhat (is|are) (asked for|wanted)\b": "the requested ...",
    r"\b(is|are|was|were) asked (of|for)\b": "was requested",
    r"\bcomes? of it\b|\bcomes? out\b": "results",
    r"\bone after the other\b|\bone behind the other\b": "in sequence, contiguous",
    r"\bof its own\b|\bof their own\b": "its own ..., separate",
    r"\ball that\b": "everything that, all ...",
    r"\bat last\b": "finally",
    r"\bby and by\b|\bas it were\b|\bin vain\b": "(leave out)",
}
"""What to avoid, and what to write instead."""

NAMES = frozenset("found told wanted asked own whole".split())
"""Names of variables and arguments that do not say what they hold."""

NEWLINE = "\n"

TO_DO: frozenset[str] = frozenset()
"""Folders (with all below them) and files that do not pass yet."""

FOLDERS = sorted(
    {*"src/linkwise src/linkwise_ledger docs examples benchmarks README.md CONTRIBUTING.md".split()}
    | {str(p.parent.relative_to(ROOT)) for p in (ROOT / "src/linkwise").glob("*/__init__.py")}
)


PRINTED = re.compile(r"^```(?:output|console)\n.*?^```$", re.DOTALL | re.MULTILINE)
"""What a page shows as printed; the source that prints it has its own folder here."""


def prose(path: Path) -> list[tuple[int, str]]:
    """The sentences of a file, by line: all of a page; strings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = PRINTED.sub(lambda block: "\n" * block[0].count("\n"), text)
        return list(enumerate(text.splitlines(), 1))
    lines = list[tuple[int, str]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            lines += enumerate(token.string.splitlines(), token.start[0])
    return lines


CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A code block of a page."""


def code(path: Path) -> list[tuple[int, str]]:
    """The Python of a file with the lines before it: a module, or the code blocks of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [(0, text)]
    return [(text[: block.start(1)].count("\n"), block[1]) for block in CODE.finditer(text)]


def names(path: Path) -> list[tuple[int, str]]:
    """Variables, arguments, attributes and functions of a file, by line."""
    return [
        (before + node.lineno, getattr(node, NAMED[type(node)]))
        for before, text in code(path)
        for node in ast.walk(ast.parse(text))
        if type(node) in NAMED
    ]


NAMED = {ast.Name: "id", ast.arg: "arg", ast.Attribute: "attr", ast.FunctionDef: "name"}
"""Nodes with a name, and their attribute that holds it."""


def findings(path: Path) -> list[str]:
    where, lines = path.relative_to(ROOT), prose(path)
    text = "\n".join(line for _, line in lines)
    phrases = [
        f"{where}:{lines[text.count(NEWLINE, 0, match.start())][0]}: {match[0]!r}; write: {better}"
        for pattern, better in PHRASES.items()
        for match in re.finditer(pattern, text, re.I)
    ]
    return phrases + bad_names(path)


def bad_names(path: Path) -> list[str]:
    bad = [(line, name) for line, name in names(path) if name.strip("_") in NAMES]
    return [f"{path.relative_to(ROOT)}:{line}: a name {name!r}" for line, name in bad]


def files(folder: str) -> list[Path]:
    """The files of a folder: of `src/linkwise` those right in it, of others all below."""
    place = ROOT / folder
    if place.is_file():
        return [place]
    if folder == "src/linkwise":
        return sorted(place.glob("*.py"))
    return sorted(
        p for p in place.rglob("*") if p.suffix in (".py", ".md") and "_build" not in str(p)
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_words(folder):
    if folder in TO_DO:
        pytest.skip("not rewritten yet")
    wrong = [text for path in files(folder) for text in findings(path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", ["tests", "tools"])
def test_names(folder):
    """The prose of tests is free; their names are not."""
    paths = [path for path in files(folder) if path.suffix == ".py"]
    wrong = [
        text
        for path in paths
        if str(path.relative_to(ROOT)) not in TO_DO
        for text in bad_names(path)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_bad_word_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_style.ROOT", tmp_path)
    page = tmp_path / "a.py"
    page.write_text('"""The rest is told by a warning."""\nfound = 1\n')
    assert len(findings(page)) == 2
    page = tmp_path / "a.md"
    page.write_text("# A page\n\n```python\nx = 1\nwanted = 2\n```\n\n```output\nown = 3\n```\n")
    assert findings(page) == ["a.md:5: a name 'wanted'"]
