"""The page: one HTML file that needs nothing else, no network and no other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from linkwise.tour.block import (
    Block,
    Cell,
    Check,
    Formula,
    Listing,
    Math,
    Missing,
    Picture,
    Playback,
    Section,
    Sweeps,
    Table,
    Words,
)
from linkwise.tour.frames import frame, script
from linkwise.tour.mathml import mathml
from linkwise.tour.style import style

_CODE = re.compile(r"`([^`]*)`")
_NUMBER = re.compile(r"[-+−]?\d[\d.,]*(e[-+]?\d+)?( ?(s|ms|µs|ns|×|%|J|kg|m|mm|rad|N|N m))?")


WIDE = 1.5
"""Width over height of a picture that is scrolled on a narrow page, not shrunk."""


def page(
    title: str,
    lede: str,
    figures: Mapping[str, str],
    sections: Sequence[Section],
    footer: Sequence[str],
    *,
    kind: str = "a tour",
) -> str:
    """The whole page as text.

    Args:
        title: Its head line.
        lede: What the reader is going to see, in two sentences.
        figures: A few figures in large letters, by what they are.
        sections: The stations.
        footer: Paragraphs at the end: the machine, the versions.
        kind: What is on it, in the line above its title.
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
        f'<li><a href="#{_anchor(i)}"><span class="number">{i}</span>{_short(section)}</a></li>'
        for i, section in enumerate(sections, start=1)
    )
    body = "\n".join(_section(i, section) for i, section in enumerate(sections, start=1))
    blocks = [block for section in sections for block in section.blocks]
    motions = script([block for block in blocks if isinstance(block, Playback)])
    ending = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in footer)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<header>\n'
        f'<p class="eyebrow">Linkwise, {_text(kind)}</p>\n<h1>{_text(title)}</h1>\n'
        f'<p class="lede">{_text(lede)}</p>\n<dl class="figures">{large}</dl>\n'
        f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n</header>\n'
        f"<main>\n{body}\n</main>\n"
        f"<footer><section>{ending}</section></footer>\n{motions}\n</body>\n</html>\n"
    )


def _anchor(i: int) -> str:
    return f"station-{i}"


def _short(section: Section) -> str:
    """Its title up to the colon."""
    return _text(section.title.partition(":")[0])


def _section(i: int, section: Section) -> str:
    inside = "\n".join(_grouped(section.blocks))
    head = f'<h2><span class="number">{i}</span>{_text(section.title)}</h2>'
    return f'<section id="{_anchor(i)}">\n{head}\n{inside}\n</section>'


def _grouped(blocks: Sequence[Block]) -> Iterator[str]:
    """Formulas that follow one another are one derivation, checks are one table."""
    for kind, found in groupby(blocks, key=type):
        if kind is Formula:
            inside = "".join(_block(block) for block in found)
            yield f'<div class="derivation">{inside}</div>'
        elif kind is Check:
            yield _checks([block for block in found if isinstance(block, Check)])
        else:
            yield from (_block(block) for block in found)


def _block(block: Block) -> str:
    match block:
        case Words(text):
            return f"<p>{_text(text)}</p>"
        case Listing(text, caption):
            return f'<figure><pre tabindex="0">{escape(text)}</pre>{_caption(caption)}</figure>'
        case Sweeps(passes, caption):
            inside = f'<div class="derivation">{_sweeps(passes)}</div>'
            return f"<figure>{inside}{_caption(caption)}</figure>"
        case Formula(latex, remark):
            said = f'<div class="remark">{_text(remark)}</div>' if remark else ""
            return f'<div class="formula">{mathml(latex)}{said}</div>'
        case Table():
            return _table(block)
        case Picture():
            return _picture(block)
        case Playback():
            inside = frame(block)
            return f'<figure class="playback">{inside}{_caption(block.caption)}</figure>'
        case Missing(what, extra):
            return (
                f'<div class="missing">Not drawn: {_text(what)} This needs an extra: '
                f"<code>pip install 'linkwise[{escape(extra)}]'</code></div>"
            )
        case Check():
            return _checks([block])


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


def _sweeps(passes: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Loops, one after the other."""
    found = list[str]()
    for loop, rows in passes:
        inside = "".join(f'<div class="formula">{mathml(row)}</div>' for row in rows)
        found.append(f'<p>{_text(loop)}</p><div class="loop">{inside}</div>')
    return "".join(found)


def _table(block: Table) -> str:
    columns = range(len(block.head))
    right = [bool(block.rows) and all(_is_number(row[i]) for row in block.rows) for i in columns]
    drawn = [any(_is_branch(row[i]) for row in block.rows) for i in columns]
    named = [" class=number" if right[i] else " class=tree" if drawn[i] else "" for i in columns]
    head = "".join(f"<th{named[i]}>{_text(block.head[i])}</th>" for i in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td{named[i]}>{_cell(row[i])}</td>" for i in columns) + "</tr>"
        for row in block.rows
    )
    return (
        '<figure class="table"><div class="wide" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{_caption(block.caption)}</figure>"
    )


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and (not cell or _NUMBER.fullmatch(cell) is not None)


def _is_branch(cell: Cell) -> bool:
    return isinstance(cell, str) and cell.startswith(("├", "└", "│"))


def _cell(cell: Cell) -> str:
    return mathml(cell.latex) if isinstance(cell, Math) else _text(cell)


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
    """Words with `names` in them."""
    return _CODE.sub(r"<code>\1</code>", escape(text, quote=False))
