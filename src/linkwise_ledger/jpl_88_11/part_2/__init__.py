"""JPL 88-11, Part II: its statements in its own order."""

from linkwise_ledger.entry import Entry
from linkwise_ledger.jpl_88_11.part_2.algorithms import ALGORITHMS
from linkwise_ledger.jpl_88_11.part_2.closed_chain import CLOSED_CHAIN, SOLUTION
from linkwise_ledger.jpl_88_11.part_2.contact_models import CONTACTS
from linkwise_ledger.jpl_88_11.part_2.contact_rates import CONTACT_RATES
from linkwise_ledger.jpl_88_11.part_2.free_arms import LOOPS
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import GENERAL
from linkwise_ledger.jpl_88_11.part_2.loose_grasps import LOOSE
from linkwise_ledger.jpl_88_11.part_2.overview import OPERATORS
from linkwise_ledger.jpl_88_11.part_2.problem import PROBLEM
from linkwise_ledger.jpl_88_11.part_2.recursive import STEPS

ENTRIES: tuple[Entry, ...] = (
    *(*PROBLEM, *CLOSED_CHAIN),
    *SOLUTION,
    *GENERAL,
    *(*OPERATORS, *LOOPS),
    *(*STEPS, *ALGORITHMS),
    *(*CONTACTS, *LOOSE, *CONTACT_RATES),
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
    *(*_lettered("5.1", "abcd"), *_lettered("5.2", "ab"), "(5.3)", "(5.4)"),
    *(*_lettered("5.5", "abcd"), *_lettered("5.6", "ab"), *_lettered("5.7", "ab")),
    *(*_lettered("5.8", "ab"), *_lettered("5.9", "abc"), *_lettered("5.10", "abcdefg")),
    *("(5.11)", *_lettered("5.12", "ab"), "(5.13)", *_lettered("5.14", "abcd")),
    *(*_lettered("6.1", "abc"), "(6.2)", "(6.3)", *_lettered("6.4", "abcdef")),
    *(*_lettered("6.5", "ab"), "(6.6)", "(6.7)", *_lettered("6.8", "ab")),
    *(*_lettered("6.9", "ab"), *_lettered("6.10", "abc")),
    *("RCCFD 1", *_lettered("6.11", "abcdefghij")),
    *("(6.12)", "(6.13)", "(6.14)", "(6.15)", "(6.16)", "(6.17)"),
    *("RCCFD 2", *_lettered("6.18", "abcde"), *_lettered("6.19", "ab"), "(6.20)", "(6.21)"),
    *("RCCFD 3", *_lettered("6.22", "abcdefgh")),
    *(f"(a.{i})" for i in range(1, 11)),
    *(*_lettered("b.1", "abcdef"), "(b.2)", "(b.3)", *_lettered("b.4", "abc")),
    *(*_lettered("b.5", "ab"), *_lettered("b.6", "abc"), *_lettered("b.7", "ab"), "(b.8)"),
    *_lettered("b.9", "abcdef"),
    *(f"(b.{i})" for i in range(10, 15)),
)
"""The numbers that Part II prints, and its algorithms, taken from its text."""
