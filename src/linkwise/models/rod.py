"""An elastic rod or cable as a chain of rigid links with springs between them."""

from __future__ import annotations

import math

from linkwise.arguments import count
from linkwise.errors import ModelError
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.hinges import Screws
from linkwise.model.mechanism import Mechanism
from linkwise.models.shapes import MOST_BODIES, STEEL, capsule
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose

BEND_Y, BEND_Z, TWIST, STRETCH = range(4)
"""The degrees of freedom of each hinge, in order."""


def rod(
    n: int,
    *,
    length: float = 1.0,
    radius: float = 0.005,
    density: float = 1000.0,
    youngs_modulus: float = 1e7,
    shear_modulus: float | None = None,
    damping: float = 0.01,
) -> Mechanism:
    """A straight elastic rod of round cross-section along x, clamped to the world at its base.

        world o─link_1─o─link_2─o ⋯ ─o─link_n─• node "tip"     o: bend y and z, twist, stretch

    Each hinge carries the elasticity of the rod from the middle of one link to that of the next,
    the first one that of half a link, so that the error falls with n². With A = π r², I = π r⁴ / 4
    and link length ℓ = L / n the springs are E I / ℓ (bending), G 2 I / ℓ (twist) and E A / ℓ
    (stretch), twice that at the base. Bending and twist are angles of a gimbal: keep them below a
    radian for each hinge by enough links. Shear of the cross-section is left out.

    The springs are stiff. `integrator="implicit"` steps over them at steps of the motion one wants
    to see; other integrators need steps below √(m ℓ / (E A)) of a link.

    Args:
        n: Number of links, at least 1; there are 4 n degrees of freedom.
        length: Length L [m].
        radius: Radius r of the cross-section [m].
        density: Density [kg/m³].
        youngs_modulus: E [N/m²].
        shear_modulus: G [N/m²]; default: E / 2.6, as for a Poisson's ratio of 0.3.
        damping: Time [s] by which forces of the springs lead: damper over stiffness of each
            (Kelvin-Voigt).

    Raises:
        ModelError: n is not a whole number from 1, or a number is not positive and finite.
    """
    n = count(n, "the number of links of rod", least=1, most=MOST_BODIES)
    shear = youngs_modulus / 2.6 if shear_modulus is None else shear_modulus
    sizes = {
        **{"length": length, "radius": radius, "density": density},
        **{"youngs_modulus": youngs_modulus, "shear_modulus": shear},
    }
    for name, value in sizes.items():
        if not (0.0 < value < math.inf):
            raise ModelError(f"{name} of a rod is {value}; it must be positive and finite.")
    if not (0.0 <= damping < math.inf):
        raise ModelError(f"damping of a rod is {damping}; it must be zero or positive [s].")
    step, area = length / n, math.pi * radius**2
    moment = 0.25 * math.pi * radius**4
    bend, twist = youngs_modulus * moment / step, 2.0 * shear * moment / step
    springs = (bend, bend, twist, youngs_modulus * area / step)
    hinge = Screws(((0, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0)))
    # A solid cylinder along x; SpatialInertia's is along z.
    turned = Pose.rpy((0.0, 0.5 * math.pi, 0.0), (0.5 * step, 0.0, 0.0))
    inertia = SpatialInertia.solid_cylinder(density * area * step, radius, step).moved(turned)
    shape = (capsule("link", (0.0, 0.0, 0.0), (step, 0.0, 0.0), radius, STEEL),)
    b, parent, inboard = Builder(f"rod_{n}"), "world", Pose.identity()
    drives = [
        Drive(
            stiffness=tuple(c * k for k in springs), damping=tuple(c * damping * k for k in springs)
        )
        for c in (2.0, 1.0)
    ]
    for k in range(1, n + 1):
        drive = drives[min(k - 1, 1)]
        b.body(
            f"link_{k}",
            parent,
            hinge,
            inboard=inboard,
            inertia=inertia,
            drive=drive,
            geometry=shape,
        )
        parent, inboard = f"link_{k}", Pose.translation((step, 0.0, 0.0))
    b.node("tip", parent, inboard)
    return b.build()
