"""The ledger: every numbered statement of the source papers, executed.

An entry says what a paper prints, what it means in the notation of Linkwise, and how it is checked
on mechanisms. `run` executes the check and reports the verdict.

    document.py     the papers, and where their entries are
    entry.py        an entry and its check
    section.py      how statements are written down: each above its check
    case.py         a mechanism in a state, and its operators as matrices
    verdict.py      entries, run
    literal.py      what loops and checks of all papers are made of
    recursion.py    the recursions that several papers print
    standard.py     checks of the operators that every paper starts from
    grasp.py        several arms that hold an object

One folder per paper has its statements in the paper's own order.
"""

from linkwise.front_door import open_front_door
from linkwise_ledger.case import Case, cases
from linkwise_ledger.document import DOCUMENTS, Document, document, entries
from linkwise_ledger.entry import Entry
from linkwise_ledger.verdict import Verdict, counts, run

__all__ = [
    "DOCUMENTS",
    "Case",
    "Document",
    "Entry",
    "Verdict",
    "cases",
    "counts",
    "document",
    "entries",
    "run",
]

open_front_door(globals(), __all__, records=("Entry",))
