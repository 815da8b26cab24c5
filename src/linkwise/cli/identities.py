"""`linkwise identities [NAME]`: what equals what in the operator algebra, where, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from linkwise.algebra.expr import Symbol
from linkwise.algebra.lexeme import width
from linkwise.algebra.prove import inverse_proof_of, proof_of
from linkwise.algebra.rule import Rule
from linkwise.algebra.rules import ALL, BY_NAME
from linkwise.algebra.symbols import VOCABULARY
from linkwise.errors import unknown_name

EXAMPLES = """examples:
  linkwise identities                          the table
  linkwise identities "whitened propagation"   one of them, with its proof
  linkwise identities a.35                     by its number in a document,
  linkwise identities "psi K H phi"            or by a part of its name or statement
  linkwise identities --latex                  the table for a paper

kinds:
  definition, axiom   what proofs start from; axioms are what the recursions say
  theorem             proved from them by the rewriter

Where it says "serial chains", the identity fails on branched trees. Where it says "without
armature", it needs N = 0; all others hold with the armature of the mechanism in mass, D, P and the
rest. All take for granted that every hinge has inertia to move (D is invertible). Sources are the
documents of docs/reference/references.md.
"""


def add_to(commands: Any) -> None:
    """Add this command to the parser."""
    p = commands.add_parser(
        "identities",
        help="the table of identities, and the proof of each",
        description="Identities of the spatial operator algebra: what they say, where they hold, "
        "where they come from; with a name also the proof.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("name", metavar="NAME", nargs="?", help="name, number, or a part of one")
    p.add_argument("--latex", action="store_true", help="print LaTeX")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table, or the selected identities."""
    rules = list(ALL) if options.name is None else matching(options.name)
    if options.latex:
        print("\n".join(_latex(rules)))
    elif options.name is not None and len(rules) <= 3:
        print("\n\n".join("\n".join(_details(rule)) for rule in rules))
    else:
        print("\n".join(_table(rules)))
    return 0


def matching(name: str) -> list[Rule]:
    """Rules of this name; failing that, rules with it in their name, statement or source.

    Raises:
        UnknownNameError: There is none.
    """
    if name in BY_NAME:
        return [BY_NAME[name]]
    text = _plain(name)
    rules = [r for r in ALL if _plain(r.name) == text or r.source.split()[-1] == name]
    rules = rules or [r for r in ALL if text in _plain(f"{r.name} {r} {r.source}")]
    if not text.strip() or not rules:
        raise unknown_name("identity", name, [_ascii(n) for n in BY_NAME], owner="the table")
    return rules


def _ascii(text: str) -> str:
    """Symbols by the names that can be typed."""
    symbols = [s for s in VOCABULARY.values() if isinstance(s, Symbol)]
    for symbol in sorted(symbols, key=lambda s: len(s.name), reverse=True):  # φ̃ before φ
        if not symbol.name.isascii():
            text = text.replace(symbol.name, symbol.ascii)
    return text.replace("⁻¹", "^-1").replace("⁻*", "^-*")


def _plain(text: str) -> str:
    return " ".join(_ascii(text).casefold().split())


def _table(rules: Sequence[Rule]) -> Iterator[str]:
    """Columns; the statement, which may be long, comes last."""
    head = ["name", "kind", "where", "source", "statement"]
    rows = [head, *([r.name, r.kind, r.domain, r.source, str(r)] for r in rules)]
    widths = [max(width(row[i]) for row in rows) for i in range(4)]
    rows.insert(1, ["-" * w for w in (*widths, len("statement"))])
    for row in rows:
        cells = [c + " " * (w - width(c)) for c, w in zip(row[:4], widths, strict=True)]
        yield "  ".join([*cells, row[4]])


def _details(rule: Rule) -> Iterator[str]:
    yield rule.name
    yield f"    {rule}"
    yield f"    {rule.kind}, on {rule.domain}, source {rule.source}"
    if rule.kind != "theorem":
        return
    proof = inverse_proof_of(rule) or proof_of(rule)
    if proof is None:
        yield "    proof: none was found"
        return
    steps = "1 step" if len(proof) == 1 else f"{len(proof)} steps"
    yield f"    proof in {steps}:" if proof.result is rule.right else f"    since, in {steps}:"
    yield from ("", str(proof))


def _latex(rules: Sequence[Rule]) -> Iterator[str]:
    yield r"\begin{align*}"
    for rule in rules:
        sides = f"{rule.left.latex()} &= {rule.right.latex()}"
        yield rf"  {sides} && \text{{{_escaped(rule.source)}}} \\"
    yield r"\end{align*}"


def _escaped(text: str) -> str:
    return _ascii(text).replace("^", r"\^{}").replace("_", r"\_")
