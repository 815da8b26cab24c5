"""The ledger: every numbered statement of the source documents, executed.

An entry says what a document prints, what it is in the notation of Linkwise, and how it is checked
on mechanisms. Its status is not an opinion: `verdict` runs the check and says what came out.

    entry.py        what an entry is, and how one is written down
    case.py         a mechanism in a state, and its operators as matrices
    verdict.py      entries, run
    document.py     the documents, and where their entries are
    document_NNN/   the entries of one document, in its own order
    literal.py      what loops and checks of all documents are made of
    grasp.py        several arms that hold an object
    recursion.py    the recursions that several documents print
    standard.py     checks of what every document starts from
"""

from linkwise.front_door import open_front_door
from linkwise_ledger.case import Case, cases
from linkwise_ledger.document import DOCUMENTS, Document, document, entries
from linkwise_ledger.entry import Entry, definition, holds, misprint, same
from linkwise_ledger.verdict import Verdict, counts, run

__all__ = [
    "DOCUMENTS",
    "Case",
    "Document",
    "Entry",
    "Verdict",
    "cases",
    "counts",
    "definition",
    "document",
    "entries",
    "holds",
    "misprint",
    "run",
    "same",
]

open_front_door(globals(), __all__, records=("Entry",))
