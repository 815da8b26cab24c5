"""Sample mechanisms, built in: from the pendulum to a humanoid.

Each function builds a new `Mechanism`; its docstring has a sketch, the degrees of freedom, where
the numbers come from and what the neutral configuration looks like. Units are SI.

| function | what it is | dof |
| --- | --- | --- |
| `pendulum(n)` | planar pendulum | n |
| `chain(n)` | serial chain in space | n |
| `random_tree(n, seed)` | any tree, any hinge | as drawn |
| `planar_rpp()` | macro/mini example of Khatib | 3 |
| `macro_mini()` | heavy arm that carries a light one | 10, or 7 |
| `planar_macro_mini()` | the same in the plane | 4 |
| `puma560()` | PUMA 560, measured parameters | 6 |
| `ur_arm()` | UR-type arm: three parallel axes, no spherical wrist | 6 |
| `seven_dof_arm()` | arm with shoulder, elbow, wrist | 7 |
| `quadruped()` | four legs on a free base | 18 |
| `humanoid()` | an average man on a free base | 30 |
| `free_flyer()` | satellite with two arms, no gravity | 20 |
| `four_bar()` | planar linkage, one loop | 3, of which 1 free |
| `peaucellier()` | linkage that draws a straight line, three loops | 7, of which 1 free |
| `delta()` | platform that never turns, six loops | 21, of which 3 free |
| `stewart()` | platform on six legs, six loops | 24, of which 6 free |
| `biped()` | stands on both feet | 18, of which 6 free |
| `handover()` | free flyer with a box in its left hand | 26, of which 20 free |
| `dual_arm()` | two arms hold an object | 20, of which 8 free |
| `multi_arm(n)` | n arms hold an object | 7 n + 6, of which n + 6 free |
"""

from linkwise.front_door import open_front_door
from linkwise.models.biped import biped
from linkwise.models.chain import chain
from linkwise.models.delta import delta
from linkwise.models.four_bar import four_bar
from linkwise.models.free_flyer import free_flyer
from linkwise.models.handover import handover
from linkwise.models.humanoid import humanoid
from linkwise.models.macro_mini import macro_mini, planar_macro_mini
from linkwise.models.multi_arm import dual_arm, multi_arm
from linkwise.models.peaucellier import peaucellier
from linkwise.models.pendulum import pendulum
from linkwise.models.planar_rpp import planar_rpp
from linkwise.models.puma560 import puma560
from linkwise.models.quadruped import quadruped
from linkwise.models.random_tree import HINGE_KINDS, random_tree
from linkwise.models.seven_dof_arm import seven_dof_arm
from linkwise.models.stewart import stewart
from linkwise.models.ur_arm import ur_arm

__all__ = [
    "HINGE_KINDS",
    "biped",
    "chain",
    "delta",
    "dual_arm",
    "four_bar",
    "free_flyer",
    "handover",
    "humanoid",
    "macro_mini",
    "multi_arm",
    "peaucellier",
    "pendulum",
    "planar_macro_mini",
    "planar_rpp",
    "puma560",
    "quadruped",
    "random_tree",
    "seven_dof_arm",
    "stewart",
    "ur_arm",
]

open_front_door(globals(), __all__)
