"""The source documents, and where their entries are written down."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from linkwise.errors import unknown_name
from linkwise.ledger.entry import Entry


@dataclass(frozen=True, slots=True)
class Document:
    """A source document.

    Attributes:
        key: "000" ...; a part of a document that numbers its equations anew has a key of its own.
        title: Authors and title.
        scope: What of it is in the ledger.
        module: Where its entries are, below `linkwise.ledger`; by default "document_" and the key.
    """

    key: str
    title: str
    scope: str = "all of it"
    module: str = ""


DOCUMENTS = (
    Document(
        "000",
        "Rodriguez, Kreutz-Delgado, Jain: A Spatial Operator Algebra for Manipulator "
        "Modeling and Control",
        "open chains, the closed chain of two arms, several arms that hold an object",
    ),
    Document("001", "Rodriguez, Kreutz: JPL Publication 88-11", "Part I with its appendices"),
    Document(
        "001-II",
        "Rodriguez, Kreutz: JPL Publication 88-11",
        "Part II with its appendices: several arms that hold an object",
        "document_001.part_2",
    ),
    Document("002", "Jain: Spatial Operator Algebra, 3. Serial-Chain, Rigid-Body Kinematics"),
    Document(
        "003",
        "Khatib: Inertial Properties in Robotic Manipulation: An Object-Level Framework",
    ),
    Document("004", "Rodriguez: Random Field Estimation Approach to Robot Dynamics"),
)


def document(key: str) -> Document:
    """A document by its key."""
    for found in DOCUMENTS:
        if found.key == key:
            return found
    raise unknown_name("document", key, [d.key for d in DOCUMENTS], owner="the ledger")


def entries(key: str) -> tuple[Entry, ...]:
    """The entries of a document, in its own order."""
    found = document(key)
    module = importlib.import_module(f"linkwise.ledger.{found.module or f'document_{found.key}'}")
    return tuple(module.ENTRIES)
