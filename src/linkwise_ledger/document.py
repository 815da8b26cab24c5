"""The papers, and where their entries are written down."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from linkwise.errors import unknown_name
from linkwise_ledger.entry import Entry


@dataclass(frozen=True, slots=True)
class Document:
    """A source paper.

    Attributes:
        key: The folder with its entries, below `linkwise_ledger`. A part that numbers its equations
            anew has its own key.
        title: Authors and title.
        scope: Which part of it is in the ledger.
    """

    key: str
    title: str
    scope: str = "all of it"


DOCUMENTS = (
    Document(
        "operator_algebra",
        "Rodriguez, Kreutz-Delgado, Jain: A Spatial Operator Algebra for Manipulator "
        "Modeling and Control",
        "open chains, the closed chain of two arms, several arms that hold an object",
    ),
    Document("jpl_88_11", "Rodriguez, Kreutz: JPL Publication 88-11", "Part I with its appendices"),
    Document(
        "jpl_88_11.part_2",
        "Rodriguez, Kreutz: JPL Publication 88-11",
        "Part II with its appendices: several arms that hold an object",
    ),
    Document(
        "soa_course",
        "Jain: Spatial Operator Algebra, 3. Serial-Chain, Rigid-Body Kinematics",
    ),
    Document(
        "object_level",
        "Khatib: Inertial Properties in Robotic Manipulation: An Object-Level Framework",
    ),
    Document("random_field", "Rodriguez: Random Field Estimation Approach to Robot Dynamics"),
)


def document(key: str) -> Document:
    """A paper by its key."""
    for paper in DOCUMENTS:
        if paper.key == key:
            return paper
    raise unknown_name("document", key, [paper.key for paper in DOCUMENTS], owner="the ledger")


def entries(key: str) -> tuple[Entry, ...]:
    """The entries of a paper, in its order."""
    return tuple(importlib.import_module(f"linkwise_ledger.{document(key).key}").ENTRIES)
