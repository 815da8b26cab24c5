"""A Sphinx extension: the directive `{ledger}`, statements run while the page is built.

Its argument is the key of a paper, or "counts" for the table of all. An entry that is not what
it claims to be is a warning, which fails the build.
"""

from functools import cache

from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class Ledger(SphinxDirective):
    """One table, a row a statement."""

    required_arguments = 1

    def run(self):
        """The nodes of the table."""
        key = self.arguments[0]
        lines = totals() if key == "counts" else statements(key)
        return self.parse_text_to_nodes(StringList(lines, source=__file__))


@cache
def verdicts(key: str) -> list:
    """The entries of a paper, run once a build."""
    from linkwise_ledger import entries, run

    result = list(run(entries(key)))
    for verdict in result:
        if not verdict.confirmed:
            logger.warning("%s %s: %s", key, verdict.entry.number, verdict.evidence)
    return result


def totals() -> list[str]:
    """How many statements of each status a paper has."""
    from linkwise_ledger import DOCUMENTS, counts

    lines = ["| paper | statements | hold | definitions | misprints |", "| --- " * 5 + "|"]
    for source in DOCUMENTS:
        result, count = verdicts(source.key), counts(verdicts(source.key))
        numbers = [len(result), count["holds"], count["definition"], count["misprint"]]
        cells = " | ".join(map(str, numbers))
        lines.append(f"| {source.title}: {source.scope} (`{source.key}`) | {cells} |")
    return lines


def statements(key: str) -> list[str]:
    """What is printed, what holds, and how far off it was."""
    lines = ["| number | statement | status | off by |", "| --- " * 4 + "|"]
    for verdict in verdicts(key):
        entry = verdict.entry
        said = f"{_text(entry.title)} <br> {_code(entry.said)}"
        if entry.status == "misprint":
            said += f" <br> printed: {_code(entry.printed)}"
        if entry.note:
            said += f" <br> {_text(entry.note)}"
        where = "" if entry.where == "trees" else ", chains"
        status = f"**{entry.status}**" if entry.status == "misprint" else entry.status
        lines.append(f"| {_text(entry.number)} | {said} | {status}{where} | {verdict.evidence} |")
    return lines


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(0x2223)).replace('`', chr(0x27))}`"  # a bar ends a cell


def _text(text: str) -> str:
    return text.replace("|", chr(0x2223)).replace("*", r"\*").replace("_", r"\_")


def setup(app) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("ledger", Ledger)
    return {"parallel_read_safe": True}
