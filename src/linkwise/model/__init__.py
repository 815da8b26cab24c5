"""What a mechanism is: bodies, hinges, nodes, loops and couplings."""

from linkwise.front_door import open_front_door
from linkwise.model.actuator import Actuator as Actuator
from linkwise.model.body import (
    WORLD as WORLD,
    Body as Body,
    Coupling as Coupling,
    Loop as Loop,
    Node as Node,
)
from linkwise.model.builder import Builder as Builder
from linkwise.model.drive import Drive as Drive
from linkwise.model.geometry import Geometry as Geometry
from linkwise.model.mechanism import Mechanism as Mechanism
from linkwise.model.report import LoadItem as LoadItem, LoadReport as LoadReport
from linkwise.model.validate import Finding as Finding

open_front_door(globals(), records=("Body", "Coupling", "Geometry", "LoadItem", "Loop", "Node"))
