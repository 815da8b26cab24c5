"""Serial chains of n links: the planar pendulum, and one that moves in space."""

from __future__ import annotations

from linkwise.arguments import count
from linkwise.model import Builder, Drive, Geometry, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.shapes import BLUE, MOST_BODIES, ORANGE, STEEL, capsule, capsule_inertia, solid
from linkwise.spatial import Pose, SpatialInertia


def pendulum(
    n: int = 1, *, length: float = 1.0, mass: float = 1.0, point_masses: bool = False
) -> Mechanism:
    """n equal links that swing in the x-z plane, hanging straight down at q = 0.

        ///o///  world, pin about y
           |
           |  link_1        m = mass, l = length
           o
           |  link_2        each link's frame is at its upper pin, its far end at (0, 0, -l)
           ⋮
           •  node "tip"

    A positive q turns about +y, so the tip of one link is at x = -l sin q, z = -l cos q. With thin
    uniform rods one link has the mass matrix m l²/3 and, for small swings, the angular frequency
    √(3 g / 2 l); with point masses at the far ends m l² and √(g / l).

    Args:
        n: Number of links, at least 1; also the number of degrees of freedom.
        length: Length of one link [m].
        mass: Mass of one link [kg].
        point_masses: Put each mass at the far end of a massless rod instead of along it.

    Raises:
        ModelError: n is not a whole number from 1, or more than a machine holds.
    """
    n = count(n, "the number of links of pendulum", least=1, most=MOST_BODIES)
    b = Builder(f"pendulum_{n}")
    far_end = (0.0, 0.0, -length)
    pin, below = Pin((0.0, 1.0, 0.0)), Pose.translation(far_end)
    rod = capsule("rod", (0.0, 0.0, 0.0), far_end, 0.02 * length, BLUE)
    shapes: tuple[Geometry, ...]
    if point_masses:
        bob = solid("bob", "sphere", (0.07 * length,), below, ORANGE)
        inertia, shapes = SpatialInertia.point(mass, far_end), (rod, bob)
    else:
        across = mass * length**2 / 12.0
        centre = (0.0, 0.0, -0.5 * length)
        inertia = SpatialInertia.from_com(mass, centre, (across, across, 0.0))
        shapes = (rod,)
    for k in range(1, n + 1):
        b.body(
            f"link_{k}",
            "world" if k == 1 else f"link_{k - 1}",
            pin,
            hinge_name=f"pin_{k}",
            inboard=Pose.identity() if k == 1 else below,
            inertia=inertia,
            geometry=shapes,
        )
    b.node("tip", f"link_{n}", below)
    return b.build()


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
