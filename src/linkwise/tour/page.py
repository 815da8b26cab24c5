"""The report: its pieces, and one HTML file of them that needs no network and no other file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from typing import TypeAlias

from linkwise.tour.mathml import mathml
from linkwise.tour.style import style

_CODE = re.compile(r"`([^`]*)`")
_NUMBER = re.compile(r"[-+−]?\d[\d.,]*(e[-+]?\d+)?( ?(s|ms|µs|ns|×|%|J|kg|m|mm|rad|N|N m))?")

WIDE = 1.5
"""Width over height of a picture that scrolls on a narrow page instead of shrinking."""

SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
const parts = JSON.parse(document.getElementById("playbacks").textContent);
const frames = [...document.querySelectorAll("figure.playback iframe")];
function fill(frame) {
  frame.srcdoc = parts.shared + parts[dark.matches ? "dark" : "light"][frames.indexOf(frame)];
}
const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (entry.isIntersecting) { seen.unobserve(entry.target); fill(entry.target); }
}), { rootMargin: "300px" });
frames.forEach((frame) => seen.observe(frame));
dark.addEventListener("change", () => frames.forEach((frame) => frame.srcdoc && fill(frame)));
"""
"""Fills a frame when it comes into sight, in the colours of the page."""


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph; `names` between backticks."""

    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Preformatted lines: a program, a report."""

    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Formula:
    """A displayed equation, with its justification."""

    latex: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Loops over bodies: the direction of each, and its lines as LaTeX."""

    passes: tuple[tuple[str, tuple[str, ...]], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A claim with the measured error and the largest allowed one.

    Attributes:
        claim: What is checked.
        error: The measured error.
        bound: The largest allowed error.
        of_robot: Whether it is about the visitor's robot, not about a built-in mechanism.
    """

    claim: str
    error: float
    bound: float
    of_robot: bool = True

    @property
    def good(self) -> bool:
        """Whether the claim holds; with a NaN it does not."""
        return bool(self.error <= self.bound)

    def __str__(self) -> str:
        mark = "ok  " if self.good else "FAIL"
        return f"{mark} {self.claim}: {self.error:.1e} (at most {self.bound:.0e})"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as data addresses, for light and for dark paper."""

    light: str
    dark: str
    caption: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Playback:
    """A page inside the page: a motion in space, for light and for dark paper."""

    light: str
    dark: str
    caption: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A piece that could not be made, and the extra it needs."""

    what: str
    extra: str


Block: TypeAlias = Words | Listing | Table | Formula | Sweeps | Check | Picture | Playback | Missing


@dataclass(slots=True)
class Section:
    """A station of the tour.

    Attributes:
        title: What it shows, in a sentence.
        short: The same in a word or two.
        blocks: Its pieces.
        seconds: How long it took.
        of_robot: Whether it shows the visitor's robot, not a built-in mechanism.
    """

    title: str
    short: str
    blocks: list[Block] = field(default_factory=list[Block])
    seconds: float = 0.0
    of_robot: bool = True

    @property
    def checks(self) -> list[Check]:
        """Its checks."""
        return [block for block in self.blocks if isinstance(block, Check)]


def page(
    title: str,
    lede: str,
    figures: Mapping[str, str],
    sections: Sequence[Section],
    footer: Sequence[str],
    *,
    kind: str = "a tour",
) -> str:
    """The page as text.

    Args:
        footer: Paragraphs at the end: the machine, the versions.
    """
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, '
        'initial-scale=1">\n<meta name="generator" content="linkwise">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>\n{style()}</style>"
    )
    large = "".join(
        f"<div><dt>{_text(k)}</dt><dd>{_text(v)}</dd></div>" for k, v in figures.items()
    )
    contents = "".join(
        f'<li><a href="#station-{i}"><span class="number">{i}</span>'
        f"{_text(section.title.partition(':')[0])}</a></li>"
        for i, section in enumerate(sections, start=1)
    )
    body = "\n".join(_section(i, section) for i, section in enumerate(sections, start=1))
    blocks = [block for section in sections for block in section.blocks]
    motions = _motions([block for block in blocks if isinstance(block, Playback)])
    ending = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in footer)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<header>\n'
        f'<p class="eyebrow">Linkwise, {_text(kind)}</p>\n<h1>{_text(title)}</h1>\n'
        f'<p class="lede">{_text(lede)}</p>\n<dl class="figures">{large}</dl>\n'
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n</header>\n'
        f"<main>\n{body}\n</main>\n"
        f"<footer><section>{ending}</section></footer>\n{motions}\n</body>\n</html>\n"
    )


def _section(i: int, section: Section) -> str:
    inside = "\n".join(_grouped(section.blocks))
    head = f'<h2><span class="number">{i}</span>{_text(section.title)}</h2>'
    return f'<section id="station-{i}">\n{head}\n{inside}\n</section>'


def _grouped(blocks: Sequence[Block]) -> Iterator[str]:
    """Adjacent formulas form one derivation, adjacent checks one table."""
    for kind, group in groupby(blocks, key=type):
        if kind is Formula:
            yield f'<div class="derivation">{"".join(_block(block) for block in group)}</div>'
        elif kind is Check:
            yield _checks([block for block in group if isinstance(block, Check)])
        else:
            yield from (_block(block) for block in group)


def _block(block: Block) -> str:
    match block:
        case Words(text):
            return f"<p>{_text(text)}</p>"
        case Listing(text, caption):
            return f'<figure><pre tabindex="0">{escape(text)}</pre>{_caption(caption)}</figure>'
        case Sweeps(passes, caption):
            loops = "".join(
                f'<p>{_text(loop)}</p><div class="loop">'
                + "".join(f'<div class="formula">{mathml(row)}</div>' for row in rows)
                + "</div>"
                for loop, rows in passes
            )
            return f'<figure><div class="derivation">{loops}</div>{_caption(caption)}</figure>'
        case Formula(latex, remark):
            said = f'<div class="remark">{_text(remark)}</div>' if remark else ""
            return f'<div class="formula">{mathml(latex)}{said}</div>'
        case Table():
            return _table(block)
        case Picture():
            return _picture(block)
        case Playback():
            # The frame may run its own script and nothing else: it reaches neither this page nor
            # a network.
            return (
                f'<figure class="playback"><iframe sandbox="allow-scripts" '
                f'title="{escape(block.caption)}"></iframe><noscript><p>Motions in space need '
                f"JavaScript.</p></noscript>{_caption(block.caption)}</figure>"
            )
        case Missing(what, extra):
            return (
                f'<div class="missing">Not drawn: {_text(what)} This needs an extra: '
                f"<code>pip install 'linkwise[{escape(extra)}]'</code></div>"
            )
        case Check():
            return _checks([block])


def _motions(playbacks: Sequence[Playback]) -> str:
    """The script that fills the frames: the viewer, which all pages begin with, is there once."""
    if not playbacks:
        return ""
    pages = [text for playback in playbacks for text in (playback.light, playback.dark)]
    low, high = min(pages), max(pages)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    parts = {
        "shared": low[:same],
        "light": [playback.light[same:] for playback in playbacks],
        "dark": [playback.dark[same:] for playback in playbacks],
    }
    data = json.dumps(parts).replace("<", "\\u003c")  # so that no tag inside ends the script
    return (
        f'<script type="application/json" id="playbacks">{data}</script>\n<script>{SCRIPT}</script>'
    )


def _picture(block: Picture) -> str:
    size = f'width="{block.width}" height="{block.height}"'
    drawn = (
        '<picture><source media="screen and (prefers-color-scheme: dark)" '
        f'srcset="{block.dark}"><img src="{block.light}" {size} '
        f'alt="{escape(block.caption)}"></picture>'
    )
    if block.width > WIDE * block.height:
        hint = '<p class="hint" aria-hidden="true">Scroll this picture sideways →</p>'
        drawn = f'{hint}<div class="sideways" tabindex="0">{drawn}</div>'
    return f"<figure>{drawn}{_caption(block.caption)}</figure>"


def _caption(text: str) -> str:
    return f"<figcaption>{_text(text)}</figcaption>" if text else ""


def _table(block: Table) -> str:
    columns = range(len(block.head))
    right = [bool(block.rows) and all(_is_number(row[i]) for row in block.rows) for i in columns]
    tree = [any(row[i].startswith(("├", "└", "│")) for row in block.rows) for i in columns]
    kinds = [" class=number" if right[i] else " class=tree" if tree[i] else "" for i in columns]
    head = "".join(f"<th{kinds[i]}>{_text(block.head[i])}</th>" for i in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td{kinds[i]}>{_text(row[i])}</td>" for i in columns) + "</tr>"
        for row in block.rows
    )
    return (
        '<figure class="table"><div class="wide" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{_caption(block.caption)}</figure>"
    )


def _is_number(cell: str) -> bool:
    return not cell or _NUMBER.fullmatch(cell) is not None


def _checks(checks: Sequence[Check]) -> str:
    rows = "".join(
        f'<tr><td class="{"good" if c.good else "bad"}">{"✓ holds" if c.good else "✗ fails"}</td>'
        f'<td>{_text(c.claim)}</td><td class="number">{c.error:.1e}</td>'
        f'<td class="number">{c.bound:.0e}</td></tr>'
        for c in checks
    )
    head = '<th></th><th>checked</th><th class="number">found</th><th class="number">at most</th>'
    return (
        '<figure class="table"><div class="wide" tabindex="0"><table class="checks"><thead>'
        f"<tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></figure>"
    )


def _text(text: str) -> str:
    """Escaped words, with `names` as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text, quote=False))
