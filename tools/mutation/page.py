"""The page that records the kill rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tools.mutation.choice import QUOTAS, package
from tools.mutation.equivalent import EQUIVALENT
from tools.mutation.operators import Mutant

HEAD = """# Mutants

A mutant is the source with one small mistake: a wrong sign, an extra transpose, a missing term or
factor, the wrong parent, a skipped check, an index off by one. This page counts how many of them
the tests notice. `make mutants` writes it (`tools/mutants.py`): no number here was typed by hand.

Mistakes are drawn by seed {seed} and spread over all packages, kinds of mistake and functions;
{count} of the {every} that are drawn have been tried. Each runs in a copy of the repository on the
tests nearest to its function, for a few seconds, without cached kernels. Names decide which tests
are near, and {first} mutants were killed by tests chosen in this way. For the other {hand} they
mostly led to no test that notices the mistake in so little time, and a test was found or written
by hand; `tools/mutation/noticed_by.json` lists these tests, and a run starts with them. All
verdicts come from runs of the tool; only the reasons for equivalence are written by hand. A verdict
is kept until the text of the function changes, also while code around it changes.

- *killed*: a test fails, or does not end.
- *survived*: none of these tests notices.
- *equivalent*: the behaviour is unchanged, for the reason given below.
- *broken*: the module cannot be imported, so the mistake could not remain.

The kill rate is killed / (killed + survived). A survivor needs a new test, or its test is not among
those that were run.
"""


def verdict_of(mutant: Mutant, results: dict[str, dict[str, Any]]) -> str:
    """Of a mutant; survivors with a reviewed reason are equivalent."""
    result = results.get(f"{mutant.key}:{mutant.scope_hash}", {}).get("verdict", "not tried")
    return "equivalent" if result == "survived" and mutant.key in EQUIVALENT else result


def write_page(
    path: Path,
    every: list[Mutant],
    results: dict[str, dict[str, Any]],
    seed: int,
    known: Collection[str],
):
    """Write docs/evidence/mutants.md; for the mutants in `known` the first test was given."""
    tried = [m for m in every if verdict_of(m, results) != "not tried"]
    killed = [m for m in tried if verdict_of(m, results) == "killed"]
    hand = sum(m.key in known for m in killed)
    columns = ("killed", "survived", "equivalent", "broken")
    counts = {"count": len(tried), "every": len(every), "first": len(killed) - hand, "hand": hand}
    lines = [HEAD.format(**counts, seed=seed).rstrip(), ""]
    lines += _table("package", tried, results, lambda m: package(m.file) or "(top)", columns)
    lines += ["", "## By kind of mistake", ""]
    lines += _table("kind", tried, results, lambda m: m.kind, columns)
    left = [m for m in tried if verdict_of(m, results) == "survived"]
    lines += ["", "## Survivors", ""]
    lines += [f"- {_line(m)}" for m in left] or ["None."]
    lines += ["", "## Equivalent mutants", ""]
    lines += [
        f"- {_line(m)}: {EQUIVALENT[m.key]}"
        for m in tried
        if verdict_of(m, results) == "equivalent"
    ] or ["None."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(m: Mutant) -> str:
    before, after = (" ".join(x.split()) for x in (m.before, m.after))
    return f"`{m.file}` line {m.line}, {m.kind}: `{before}` → `{after or '(nothing)'}`"


def _table(
    title: str,
    tried: list[Mutant],
    results: dict[str, dict[str, Any]],
    group: Any,
    columns: tuple[str, ...],
) -> list[str]:
    counts = Counter((group(m), verdict_of(m, results)) for m in tried)
    order = list(QUOTAS)
    names = sorted({group(m) for m in tried}, key=lambda n: (n in order and order.index(n), n))
    lines = [
        f"| {title} | mutants | {' | '.join(columns)} | kill rate |",
        "|---|" + "---:|" * (len(columns) + 2),
    ]
    for name in [*names, None]:
        rows = [n for n in names if name is None or n == name]
        numbers = [sum(counts[n, c] for n in rows) for c in columns]
        full = sum(v for (n, _), v in counts.items() if n in rows)
        base = numbers[0] + numbers[1]
        rate = f"{100 * numbers[0] / base:.0f} %" if base else ""
        shown = "**all**" if name is None else name
        lines.append(f"| {shown} | {full} | {' | '.join(map(str, numbers))} | {rate} |")
    return lines
