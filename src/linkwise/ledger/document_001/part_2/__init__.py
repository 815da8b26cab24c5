"""Document 001, Part II: its statements in its own order."""

from linkwise.ledger.document_001.part_2.closed_chain import CLOSED_CHAIN
from linkwise.ledger.document_001.part_2.general_algorithm import DERIVATION, GENERAL
from linkwise.ledger.document_001.part_2.problem import ARMS, OBJECT
from linkwise.ledger.document_001.part_2.solution import SOLUTION
from linkwise.ledger.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *(*ARMS, *OBJECT, *CLOSED_CHAIN),
    *SOLUTION,
    *(*DERIVATION, *GENERAL),
)


def _lettered(number: str, letters: str) -> tuple[str, ...]:
    return tuple(f"({number}{letter})" for letter in letters)


PRINTED: tuple[str, ...] = (
    *(*_lettered("2.1", "abcd"), "(2.2)", *_lettered("2.3", "abcd"), "(2.4)"),
    *(*_lettered("2.5", "ab"), "(2.6)", *_lettered("2.7", "ab"), *_lettered("2.8", "ab"), "(2.9)"),
    *(*_lettered("2.10", "abc"), "(2.11)", "(2.12)", *_lettered("2.13", "ab"), "(2.14)"),
    *_lettered("2.15", "ab"),
    *("(3.1)", "(3.2)", "(3.3)", "(3.4)", *_lettered("3.5", "ab"), *_lettered("3.6", "ab")),
    *(*_lettered("4.1", "ab"), *_lettered("4.2", "ab"), "(4.3)", "(4.4)", "(4.5)", "(4.6)"),
    *("(4.7)", "(4.8)", "CCFD", *_lettered("4.9", "abcdefgh")),
)
"""The numbers that Part II prints, and its algorithms, taken from its text."""
