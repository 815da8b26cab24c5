"""Links of the documentation lead somewhere: pages, headings, pictures, files; no page is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PUBLISHED = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PUBLISHED]

FENCE = re.compile(r"^(?P<marks>`{3,}|:{3,})(?P<info>.*?)$")
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]\((?P<to>[^()\s]*(?:\([^()]*\))?[^()\s]*)\)"
)
HEADING = re.compile(r"^(?P<level>#{1,6}) +(?P<text>.*?)\s*$")
LABEL = re.compile(r"^\((?P<name>[\w-]+)\)=\s*$")
PICTURE = re.compile(r"^(?:`{3,}|:{3,})\{(?:image|figure)\}\s*(?P<to>\S+)")
INCLUDE = re.compile(r"^(?:`{3,}|:{3,})\{include\}\s*(?P<to>\S+)")


def prose(text: str) -> str:
    """The lines of a page outside of code blocks, without code in backticks; links stay.

    Fences of directives with braces are opened, so that links inside cards are seen too.
    """
    kept: list[str] = []
    closing: str | None = None
    for line in text.splitlines():
        fence = FENCE.match(line)
        if closing is not None:
            closing = None if line.strip() == closing else closing
        elif fence and fence["marks"].startswith("`") and not fence["info"].startswith("{"):
            closing = fence["marks"]
        elif fence and re.match(r"\{(eval-rst|toctree)\}", fence["info"]):
            closing = fence["marks"]
        else:
            kept.append(line)
    return "\n".join(kept)


def slug(heading: str) -> str:
    """The anchor that MyST and GitHub give to a heading."""
    plain = (
        LINK.sub(lambda m: m["text"], heading).replace("`", "").replace("\\", "").strip().lower()
    )
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Headings of the first three levels, numbered where they repeat, and labels."""
    result: list[str] = []
    seen: Counter[str] = Counter()
    for line in prose(with_includes(page)).splitlines():
        if label := LABEL.match(line):
            result.append(label["name"])
        if (heading := HEADING.match(line)) and len(heading["level"]) <= 3:
            name = slug(heading["text"])
            result.append(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(result)


def with_includes(page: Path) -> str:
    """The text of a page, files that it includes in their places, one level of headings down."""

    def included(result: re.Match[str]) -> str:
        text = (page.parent / result["to"]).read_text(encoding="utf-8")
        return re.sub(r"^#", "##", text, flags=re.MULTILINE)

    kernel = re.compile(r"^```\{include\}\s*(?P<to>\S+)\n:heading-offset: 1\n```$", re.MULTILINE)
    return kernel.sub(included, page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Every target of a link or a picture of a page."""
    text = prose(page.read_text(encoding="utf-8"))
    for line in text.splitlines():
        for pattern in (PICTURE, INCLUDE):
            if result := pattern.match(line):
                yield result["to"]
    without_code = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "code", text)
    for link in LINK.finditer(without_code):
        yield link["to"]


def trouble(page: Path, target: str) -> str | None:
    """What is wrong with a link, or None."""
    parts = urlsplit(target)
    if parts.scheme or target.startswith("//"):
        good = parts.scheme == "https" and "." in parts.netloc and " " not in target
        return None if good else "is neither https://host/... nor a file"
    path = (page.parent / parts.path).resolve() if parts.path else page
    if not path.is_relative_to(ROOT):
        return "leaves the repository"
    if not path.exists():
        return "does not exist"
    if parts.fragment and path.suffix == ".md" and parts.fragment not in anchors(path):
        return f"has no heading or label {parts.fragment!r} among {sorted(anchors(path))}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    wrong = {target: said for target in links(page) if (said := trouble(page, target))}
    assert not wrong, "\n".join(f"{page.name}: {to} {said}" for to, said in wrong.items())


def test_links_are_found_at_all():
    """More than a handful a page, on the page that is made of them."""
    assert len(list(links(DOCS / "index.md"))) > 20
    conventions = anchors(DOCS / "explanation" / "conventions.md")
    assert {"other-layouts", "positions-and-velocities-hinge-by-hinge"} <= conventions


def test_broken_links_are_told(tmp_path):
    page = DOCS / "index.md"
    assert trouble(page, "no_such_page.md") == "does not exist"
    assert "has no heading" in str(trouble(page, "explanation/conventions.md#no-such-heading"))
    assert trouble(page, "_static/no_such.png") == "does not exist"
    assert trouble(page, "http:/broken") is not None
    assert trouble(page, "https://example.org/page") is None


TOCTREE = re.compile(r"^(`{3,}|:{3,})\{toctree\}\n(?P<body>.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


def entries(page: Path) -> list[Path]:
    """Documents in the tables of contents of a page."""
    result: list[Path] = []
    for tree in TOCTREE.finditer(page.read_text(encoding="utf-8")):
        lines = [line.strip() for line in tree["body"].splitlines()]
        named = [re.sub(r"^.*<(.*)>$", r"\1", line) for line in lines]
        result += [page.parent / f"{n}.md" for n in named if n and not n.startswith(":")]
    return result


def test_every_page_is_in_one_table_of_contents():
    listed = Counter(entry for page in PUBLISHED for entry in entries(page))
    assert set(listed) == set(PUBLISHED) - {DOCS / "index.md"}
    assert max(listed.values()) == 1


def test_every_picture_is_shown():
    """A picture that no page shows is left over from something."""
    texts = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    pictures = [p.name for p in (DOCS / "_static").iterdir() if p.suffix in (".png", ".svg")]
    assert pictures
    assert not [name for name in pictures if f"_static/{name}" not in texts]
