"""What a mechanism is: bodies, hinges, nodes, loops and couplings."""

from linkwise.front_door import open_front_door
from linkwise.model.body import WORLD, Body, Coupling, Loop, Node
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.geometry import Geometry
from linkwise.model.mechanism import Mechanism
from linkwise.model.report import LoadItem, LoadReport
from linkwise.model.validate import Finding

__all__ = [
    "WORLD",
    "Body",
    "Builder",
    "Coupling",
    "Drive",
    "Finding",
    "Geometry",
    "LoadItem",
    "LoadReport",
    "Loop",
    "Mechanism",
    "Node",
]

open_front_door(
    globals(),
    __all__,
    records=("Body", "Coupling", "Geometry", "LoadItem", "Loop", "Node"),
)
