"""The source documents, and where their entries are written down."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from linkwise.errors import unknown_name
from linkwise_ledger.entry import Entry


@dataclass(frozen=True, slots=True)
class Document:
    """A source document.

    Attributes:
        key: "000" ...; a part of a document that numbers its equations anew has a key of its own.
        module: Where its entries are, below `linkwise_ledger`.
        title: Authors and title.
        scope: What of it is in the ledger.
    """

    key: str
    module: str
    title: str
    scope: str = "all of it"


DOCUMENTS = (
    Document(
        "000",
        "operator_algebra",
        "Rodriguez, Kreutz-Delgado, Jain: A Spatial Operator Algebra for Manipulator "
        "Modeling and Control",
        "open chains, the closed chain of two arms, several arms that hold an object",
    ),
    Document(
        "001", "jpl_88_11", "Rodriguez, Kreutz: JPL Publication 88-11", "Part I with its appendices"
    ),
    Document(
        "001-II",
        "jpl_88_11.part_2",
        "Rodriguez, Kreutz: JPL Publication 88-11",
        "Part II with its appendices: several arms that hold an object",
    ),
    Document(
        "002",
        "soa_course",
        "Jain: Spatial Operator Algebra, 3. Serial-Chain, Rigid-Body Kinematics",
    ),
    Document(
        "003",
        "object_level",
        "Khatib: Inertial Properties in Robotic Manipulation: An Object-Level Framework",
    ),
    Document(
        "004", "random_field", "Rodriguez: Random Field Estimation Approach to Robot Dynamics"
    ),
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
    module = importlib.import_module(f"linkwise_ledger.{found.module}")
    return tuple(module.ENTRIES)
