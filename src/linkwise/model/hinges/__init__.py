"""The hinges, one file each. All answer the questions of `Hinge`."""

from linkwise.front_door import open_front_door
from linkwise.model.hinges.custom import CustomHinge
from linkwise.model.hinges.cylindrical import Cylindrical
from linkwise.model.hinges.free import Free
from linkwise.model.hinges.gimbal import Gimbal
from linkwise.model.hinges.helical import Helical
from linkwise.model.hinges.hinge import Coordinate as Coordinate, Hinge, ScrewHinge as ScrewHinge
from linkwise.model.hinges.locked import Locked
from linkwise.model.hinges.pin import Pin
from linkwise.model.hinges.planar import Planar
from linkwise.model.hinges.point_on_plane import PointOnPlane
from linkwise.model.hinges.prismatic import Prismatic
from linkwise.model.hinges.reversed import Reversed as Reversed
from linkwise.model.hinges.rolling_ball import RollingBall
from linkwise.model.hinges.screws import Screws
from linkwise.model.hinges.soft_finger import SoftFinger
from linkwise.model.hinges.spherical import Spherical
from linkwise.model.hinges.translation import Translation
from linkwise.model.hinges.universal import Universal

__all__ = [
    "CustomHinge",
    "Cylindrical",
    "Free",
    "Gimbal",
    "Helical",
    "Hinge",
    "Locked",
    "Pin",
    "Planar",
    "PointOnPlane",
    "Prismatic",
    "RollingBall",
    "Screws",
    "SoftFinger",
    "Spherical",
    "Translation",
    "Universal",
]

ROWS = {"q": "nq", "q0": "nq", "q1": "nq", "v": "nv", "dt": None}
"""Arguments of hinges: coordinates, velocities, and how long they last."""

open_front_door(globals(), __all__, records=("CustomHinge",), sizes=ROWS)
