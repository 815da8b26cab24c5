"""`linkwise ledger [DOCUMENT] [NUMBER]`: the equations of the source documents, executed."""

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
"""Of the text of one statement, behind its heads: 100 in all."""

EXAMPLES = """examples:
  linkwise ledger               how many statements of each document hold
  linkwise ledger 001           every statement of one document
  linkwise ledger 001 "(4.2)"   one of them, with what is printed and what holds
  linkwise ledger --misprints   what is printed wrong, in all of them

Every statement is evaluated on chains and, unless it speaks of chains only, on branched trees while
you wait. "holds": its two sides agree to 1e-9. "misprint": as printed they do not, and what is said
instead does. Definitions give names; docs/reference/references.md lists the documents. The number
of a statement is as it is printed, or a part of its title: linkwise ledger 000 "Lemma 4.3".
Exit status: 0 if every statement is what the ledger says of it, 1 if one is not.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "ledger",
        help="the equations of the source documents, executed",
        description="Runs the numbered statements of the source documents on mechanisms, and says "
        "which hold and which are misprinted.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument(
        "document", metavar="DOCUMENT", nargs="?", help="000, 001, 001-II, 002, 003 or 004"
    )
    p.add_argument("number", metavar="NUMBER", nargs="?", help="of a statement, as it is printed")
    p.add_argument("--misprints", action="store_true", help="only those, in full")
    p.set_defaults(run=execute)


def execute(options: argparse.Namespace) -> int:
    """Print what was asked for; status 1 if an entry is not what it claims to be."""
    chosen = DOCUMENTS if options.document is None else (document(options.document),)
    found = list[Verdict]()
    for source in chosen:
        picked = _picked(source, options.number)
        if options.misprints:
            picked = [entry for entry in picked if entry.status == "misprint"]
        verdicts = list(_watched(source, picked))
        found += verdicts
        if options.misprints or options.number is not None:
            print("".join(f"{text}\n" for v in verdicts for text in _details(source, v)), end="")
        else:
            if options.document is not None:
                print("\n".join(_table(verdicts)))
                print()
            print(f"{source.key}  {_summary(verdicts)}\n     {source.title} ({source.scope})")
    if options.misprints and not found:
        print("no misprint among them")
    if len(chosen) > 1 and not options.misprints:
        print(f"all  {_summary(found)}")
    return 0 if all(v.confirmed for v in found) else 1


def _picked(source: Document, number: str | None) -> list[Entry]:
    every = list(entries(source.key))
    if number is None:
        return every
    asked = _bare(number)
    found = [entry for entry in every if _bare(entry.number) == asked]
    found = found or [entry for entry in every if asked in _bare(f"{entry.number} {entry.title}")]
    if not asked or not found:
        raise unknown_name(
            "statement", number, [e.number for e in every], owner=f"document {source.key}"
        )
    return found


def _bare(number: str) -> str:
    return " ".join(number.casefold().replace("(", " ").replace(")", " ").split())


def _watched(source: Document, picked: Sequence[Entry]) -> Iterator[Verdict]:
    """The verdicts; a terminal sees how far it is."""
    show = sys.stderr.isatty()
    for i, verdict in enumerate(run(picked)):
        if show:
            print(f"\r{source.key}: {i + 1} of {len(picked)}", end="", file=sys.stderr, flush=True)
        yield verdict
    if show:
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def _summary(verdicts: Sequence[Verdict]) -> str:
    found = counts(verdicts)
    said = [f"{len(verdicts)} statements", f"{found['holds']} hold"]
    said += [f"{found['definition']} definitions", f"{found['misprint']} misprints"]
    if found["not confirmed"]:
        said.append(f"{found['not confirmed']} NOT CONFIRMED")
    return ", ".join(said)


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


def _details(source: Document, verdict: Verdict) -> Iterator[str]:
    entry = verdict.entry
    yield f"{source.key} {entry.number}  {entry.title}"
    lines = {
        "printed": entry.printed,
        "means" if entry.status == "definition" else "holds": entry.statement,
        "status": f"{entry.status}, on {entry.where}: {verdict.evidence}",
        "note": entry.note,
    }
    for head, text in lines.items():
        for i, line in enumerate(wrap(text, COLUMNS, break_long_words=False)):
            yield f"    {'' if i else head:<8}  {line}"
