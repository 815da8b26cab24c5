"""The hinges. All answer the questions of `Hinge`."""

from linkwise.front_door import open_front_door
from linkwise.model.hinges.ball_hinges import (
    Free as Free,
    SoftFinger as SoftFinger,
    Spherical as Spherical,
)
from linkwise.model.hinges.custom import CustomHinge as CustomHinge
from linkwise.model.hinges.geared import Geared as Geared
from linkwise.model.hinges.hinge import Hinge as Hinge
from linkwise.model.hinges.modal import Modal as Modal
from linkwise.model.hinges.modified import Locked as Locked
from linkwise.model.hinges.plane_hinges import (
    Planar as Planar,
    PointOnPlane as PointOnPlane,
    RollingBall as RollingBall,
)
from linkwise.model.hinges.screw_hinges import (
    Cylindrical as Cylindrical,
    Gimbal as Gimbal,
    Helical as Helical,
    Pin as Pin,
    Prismatic as Prismatic,
    Screws as Screws,
    Translation as Translation,
    Universal as Universal,
)

_ROWS = {"q": "nq", "q0": "nq", "q1": "nq", "v": "nv", "dt": None}
"""Arguments of hinges: coordinates, velocities, and how long they last."""

open_front_door(globals(), records=("CustomHinge", "Modal"), sizes=_ROWS)
