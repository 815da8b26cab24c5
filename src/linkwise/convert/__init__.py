"""Converters of q, v, forces and spatial vectors to and from the layouts of other libraries.

Each function takes a mechanism and the other library's model of the same robot, matches hinges by
name, and gives a `Layout`. The other library is not imported; only its model is read.
"""

from linkwise.convert.layout import Layout as Layout
from linkwise.convert.libraries import (
    drake_layout as drake_layout,
    mujoco_layout as mujoco_layout,
    pinocchio_layout as pinocchio_layout,
)
from linkwise.front_door import open_front_door

open_front_door(globals())
