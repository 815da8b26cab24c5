"""The planar pendulum of n links."""

from __future__ import annotations

from linkwise.arguments import count
from linkwise.model import Builder, Geometry, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.capsule import BLUE, ORANGE, capsule
from linkwise.models.size import MOST_BODIES
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
        bob = Geometry("bob", "sphere", (0.07 * length,), below, "both", ORANGE)
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
