"""The source documents, and where their entries are written down."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache

from linkwise.errors import unknown_name
from linkwise.ledger.entry import Entry


@dataclass(frozen=True, slots=True)
class Document:
    """A source document.

    Attributes:
        key: "000" ...
        title: Authors and title.
        scope: What of it is in the ledger.
    """

    key: str
    title: str
    scope: str = "all of it"


DOCUMENTS = (
    Document(
        "000",
        "Rodriguez, Kreutz-Delgado, Jain: A Spatial Operator Algebra for Manipulator "
        "Modeling and Control",
        "open chains, and the closed chain of two arms",
    ),
    Document("001", "Rodriguez, Kreutz: JPL Publication 88-11", "Part I with its appendices"),
    Document("002", "Jain: Spatial Operator Algebra, 3. Serial-Chain, Rigid-Body Kinematics"),
    Document("004", "Rodriguez: Random Field Estimation Approach to Robot Dynamics"),
)


def document(key: str) -> Document:
    """A document by its key."""
    for found in DOCUMENTS:
        if found.key == key:
            return found
    raise unknown_name("document", key, [d.key for d in DOCUMENTS], owner="the ledger")


@cache
def entries(key: str) -> tuple[Entry, ...]:
    """The entries of a document, in its own order."""
    module = importlib.import_module(f"linkwise.ledger.document_{document(key).key}")
    return tuple(module.ENTRIES)
