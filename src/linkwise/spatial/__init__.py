"""Six-vectors, rotations, poses, rigid shifts and spatial inertias. Knows no tree.

Everything is vectorised over leading axes: a function of a 3-vector takes `(..., 3)`.
"""

from linkwise.front_door import open_front_door
from linkwise.spatial import quaternion, rotation, vector
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

__all__ = ["Array", "Pose", "SpatialInertia", "quaternion", "rotation", "vector"]

SIX = {"V": 6, "V_A": 6, "f_B": 6, "points": 3}
"""Arguments of poses and inertias: spatial vectors, and points."""

open_front_door(globals(), __all__, sizes=SIX)
