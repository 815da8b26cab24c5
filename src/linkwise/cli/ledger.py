"""`linkwise ledger [PAPER] [NUMBER]`: the equations of the source papers, executed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from linkwise.algebra.lexeme import width
from linkwise.errors import unknown_name
from linkwise_ledger.document import DOCUMENTS, Document, document, entries
from linkwise_ledger.entry import Entry
from linkwise_ledger.verdict import Verdict, counts, run

COLUMNS = 86
"""Width of the text of one statement, after its labels: 100 in all."""

EXAMPLES = """examples:
  linkwise ledger                     how many statements of each paper hold
  linkwise ledger jpl_88_11           every statement of one paper
  linkwise ledger jpl_88_11 "(4.2)"   one of them: what is printed and what holds
  linkwise ledger --misprints         the misprints of all papers

Every statement is evaluated on chains while you wait and, unless it is about chains only, on
branched trees. "holds": its two sides agree to 1e-9. "misprint": the printed form does not hold,
and the one given instead does. Definitions introduce names. docs/reference/references.md lists the
papers. Give a number as it is printed, or a part of the title:
  linkwise ledger operator_algebra "Lemma 4.3"
Exit status: 0 if every statement is what the ledger claims, 1 otherwise.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "ledger",
        help="the equations of the source papers, executed",
        description="Runs the numbered statements of the source papers on mechanisms and reports "
        "which hold and which are misprinted.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    keys = [paper.key for paper in DOCUMENTS]
    p.add_argument(
        "document", metavar="PAPER", nargs="?", help=f"{', '.join(keys[:-1])} or {keys[-1]}"
    )
    p.add_argument("number", metavar="NUMBER", nargs="?", help="of a statement, as it is printed")
    p.add_argument("--misprints", action="store_true", help="misprints only, in full")
    p.set_defaults(run=execute)


def execute(options: argparse.Namespace) -> int:
    """Print the requested statements; status 1 if an entry is not what it claims to be."""
    papers = DOCUMENTS if options.document is None else (document(options.document),)
    every = list[Verdict]()
    for paper in papers:
        statements = _matching(paper, options.number)
        if options.misprints:
            statements = [entry for entry in statements if entry.status == "misprint"]
        verdicts = list(_watched(paper, statements))
        every += verdicts
        if options.misprints or options.number is not None:
            print("".join(f"{text}\n" for v in verdicts for text in _details(paper, v)), end="")
        else:
            if options.document is not None:
                print("\n".join(_table(verdicts)), end="\n\n")
            print(f"{paper.key}: {_summary(verdicts)}\n    {paper.title} ({paper.scope})")
    if options.misprints and not every:
        print("no misprint among them")
    if len(papers) > 1 and not options.misprints:
        print(f"all: {_summary(every)}")
    return 0 if all(v.confirmed for v in every) else 1


def _matching(paper: Document, number: str | None) -> list[Entry]:
    every = list(entries(paper.key))
    if number is None:
        return every
    text = _bare(number)
    matches = [entry for entry in every if _bare(entry.number) == text]
    matches = matches or [e for e in every if text in _bare(f"{e.number} {e.title}")]
    if not text or not matches:
        raise unknown_name("statement", number, [e.number for e in every], owner=paper.key)
    return matches


def _bare(number: str) -> str:
    return " ".join(number.casefold().replace("(", " ").replace(")", " ").split())


def _watched(paper: Document, statements: Sequence[Entry]) -> Iterator[Verdict]:
    """The verdicts; a terminal shows the progress."""
    show = sys.stderr.isatty()
    for i, verdict in enumerate(run(statements)):
        if show:
            progress = f"\r{paper.key}: {i + 1} of {len(statements)}"
            print(progress, end="", file=sys.stderr, flush=True)
        yield verdict
    if show:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def _summary(verdicts: Sequence[Verdict]) -> str:
    count = counts(verdicts)
    parts = [f"{len(verdicts)} statements", f"{count['holds']} hold"]
    parts += [f"{count['definition']} definitions", f"{count['misprint']} misprints"]
    if count["not confirmed"]:
        parts.append(f"{count['not confirmed']} NOT CONFIRMED")
    return ", ".join(parts)


def _table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Columns; the statement, which may be long, comes last."""
    head = ["number", "status", "where", "off by", "statement"]
    rows = [head]
    for v in verdicts:
        off = "" if v.error is None else f"{v.error:.0e}"
        status = v.entry.status if v.confirmed else "NOT CONFIRMED"
        rows.append([v.entry.number, status, v.entry.where, off, v.entry.said])
    widths = [max(width(row[i]) for row in rows) for i in range(4)]
    rows.insert(1, ["-" * w for w in (*widths, len("statement"))])
    for row in rows:
        cells = [c + " " * (w - width(c)) for c, w in zip(row[:4], widths, strict=True)]
        yield "  ".join([*cells, row[4]]).rstrip()


def _details(paper: Document, verdict: Verdict) -> Iterator[str]:
    entry = verdict.entry
    yield f"{paper.key} {entry.number}  {entry.title}"
    lines = {
        "printed": entry.printed,
        "means" if entry.status == "definition" else "holds": entry.said,
        "status": f"{entry.status}, on {entry.where}: {verdict.evidence}",
        "note": entry.note,
    }
    for label, text in lines.items():
        for i, line in enumerate(wrap(text, COLUMNS, break_long_words=False)):
            yield f"    {'' if i else label:<8}  {line}"
