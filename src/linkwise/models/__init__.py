"""Sample mechanisms, built in: from the pendulum to a humanoid.

Each function builds a new `Mechanism`; its docstring has a sketch, the degrees of freedom, the
source of the numbers and what the neutral configuration looks like. Units are SI.

| function | what it is | dof |
| --- | --- | --- |
| `pendulum(n)` | planar pendulum | n |
| `chain(n)` | serial chain in space | n |
| `rod(n)` | elastic rod or cable of n links | 4 n |
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
| `biped()` | both feet on the ground | 18, of which 6 free |
| `handover()` | free flyer with a box in its left hand | 26, of which 20 free |
| `dual_arm()` | two arms hold an object | 20, of which 8 free |
| `multi_arm(n)` | n arms hold an object | 7 n + 6, of which n + 6 free |
"""

from linkwise.front_door import open_front_door
from linkwise.models.biped import biped as biped
from linkwise.models.chain import chain as chain, pendulum as pendulum
from linkwise.models.free_flyer import free_flyer as free_flyer, handover as handover
from linkwise.models.humanoid import humanoid as humanoid
from linkwise.models.linkages import four_bar as four_bar, peaucellier as peaucellier
from linkwise.models.macro_mini import (
    macro_mini as macro_mini,
    planar_macro_mini as planar_macro_mini,
    planar_rpp as planar_rpp,
)
from linkwise.models.multi_arm import dual_arm as dual_arm, multi_arm as multi_arm
from linkwise.models.platforms import delta as delta, stewart as stewart
from linkwise.models.puma560 import puma560 as puma560
from linkwise.models.quadruped import quadruped as quadruped
from linkwise.models.random_tree import HINGE_KINDS as HINGE_KINDS, random_tree as random_tree
from linkwise.models.rod import rod as rod
from linkwise.models.seven_dof_arm import seven_dof_arm as seven_dof_arm
from linkwise.models.ur_arm import ur_arm as ur_arm

open_front_door(globals())
