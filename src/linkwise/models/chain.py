"""The serial chain of n links, for sizes from one to a hundred thousand and more."""

from __future__ import annotations

from linkwise.arguments import count
from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.capsule import BLUE, STEEL, capsule, capsule_inertia
from linkwise.models.size import MOST_BODIES
from linkwise.spatial import Pose


def chain(
    n: int,
    *,
    length: float = 0.1,
    mass: float = 0.1,
    damping: float = 0.0,
    armature: float = 0.0,
) -> Mechanism:
    """n equal links in a row along x at q = 0, with pins about z and y in turn.

        world o─link_1─o─link_2─o─link_3─o ⋯ ─o─link_n─• node "tip"
              z        y        z             (axes of the pins)

    Neighbouring axes are perpendicular, so the chain moves in space. Each link's frame is at its
    inner pin and its far end is at (length, 0, 0). All links share two hinges, one pose, one
    inertia and one drive: a link costs its name and its place in the tree.

    Args:
        n: Number of links, at least 1; also the number of degrees of freedom.
        length: Length of one link [m].
        mass: Mass of one link [kg], spread evenly over a capsule of radius length/8.
        damping: Viscous damping of each pin [N m s/rad].
        armature: Reflected rotor inertia at each pin [kg m²].

    Raises:
        ModelError: n is not a whole number from 1, or more than a machine holds.
    """
    n = count(n, "the number of links of chain", least=1, most=MOST_BODIES)
    far_end, radius = (length, 0.0, 0.0), length / 8.0
    pins = (Pin((0.0, 1.0, 0.0)), Pin((0.0, 0.0, 1.0)))
    drive = Drive(damping=damping, armature=armature)
    inertia = capsule_inertia(mass, (0.0, 0.0, 0.0), far_end, radius)
    shapes = tuple(
        (capsule("link", (0.0, 0.0, 0.0), far_end, radius, colour),) for colour in (STEEL, BLUE)
    )
    outward = Pose.translation(far_end)
    b = Builder(f"chain_{n}")
    parent, inboard = "world", Pose.identity()
    for k in range(1, n + 1):
        name = f"link_{k}"
        b.body(
            name,
            parent,
            pins[k % 2],
            inboard=inboard,
            inertia=inertia,
            drive=drive,
            geometry=shapes[k % 2],
        )
        parent, inboard = name, outward
    b.node("tip", parent, outward)
    return b.build()
