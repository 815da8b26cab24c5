"""Random fields: its statements in its own order."""

from linkwise_ledger.entry import Entry
from linkwise_ledger.random_field.batch import BATCH, SEQUENTIAL
from linkwise_ledger.random_field.covariance import COVARIANCE
from linkwise_ledger.random_field.filter import FILTER
from linkwise_ledger.random_field.inverse import INVERSE
from linkwise_ledger.random_field.model import MODEL

ENTRIES: tuple[Entry, ...] = (*MODEL, *BATCH, *SEQUENTIAL, *FILTER, *COVARIANCE, *INVERSE)
"""Sections 1-5, 6 and 7, 8, 9, 10, 11."""

PRINTED: tuple[str, ...] = (
    *(f"(5.{i})" for i in range(1, 5)),
    *(f"(6.{i})" for i in range(1, 4)),
    *(f"(7.{i})" for i in range(1, 6)),
    *(f"(8.{i})" for i in range(1, 4)),
    *(f"(9.{i})" for i in range(1, 15)),
    *(f"(10.{i})" for i in range(1, 7)),
    *(f"Lemma {i}" for i in range(1, 14)),
)
"""The numbers that the paper prints."""
