"""Converters of q, v, forces and spatial vectors to and from the layouts of other libraries.

Each function takes a mechanism and the other library's model of the same robot, matches hinges by
name, and gives a `Layout`. The other library is not imported: its model is only asked questions.
"""

from linkwise.convert.drake import drake_layout
from linkwise.convert.layout import Layout
from linkwise.convert.mujoco import mujoco_layout
from linkwise.convert.pinocchio import pinocchio_layout
from linkwise.front_door import open_front_door

__all__ = ["Layout", "drake_layout", "mujoco_layout", "pinocchio_layout"]

open_front_door(globals(), __all__)
