"""Document 000: its statements in its own order."""

from linkwise.ledger.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
