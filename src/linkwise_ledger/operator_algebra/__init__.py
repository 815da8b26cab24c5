"""The operator algebra: its statements in its own order."""

from linkwise_ledger.entry import Entry
from linkwise_ledger.operator_algebra.closed_chain import CLOSED_CHAIN
from linkwise_ledger.operator_algebra.dynamics import JACOBIAN, NEWTON_EULER
from linkwise_ledger.operator_algebra.inversion import APPENDIX, DIAGONAL, INVERSION
from linkwise_ledger.operator_algebra.several_arms import CONTROL, SEVERAL_ARMS
from linkwise_ledger.operator_algebra.tip import TIP

ENTRIES: tuple[Entry, ...] = (
    *(*JACOBIAN, *NEWTON_EULER, *INVERSION),
    *(*TIP, *CLOSED_CHAIN, *SEVERAL_ARMS, *DIAGONAL, *CONTROL, *APPENDIX),
)
"""Sections 2, 3, 4, 5 (with its three applications), 6 and the appendix."""

PRINTED: tuple[str, ...] = (
    "(2.1)",
    *(f"(3.{i})" for i in range(1, 7)),
    *(f"(4.{i})" for i in range(1, 9)),
    *(f"(5.{i})" for i in range(1, 12)),
    *("Lemma 4.1", "Lemma 4.2", "Lemma 4.3", "Lemma 5.1", "Lemma A.1", "Algorithm FD"),
)
"""The numbers that the paper prints."""
