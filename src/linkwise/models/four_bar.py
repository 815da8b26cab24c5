"""The planar four-bar linkage."""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Pin
from linkwise.models.capsule import BLUE, ORANGE, SLATE, STEEL, capsule, capsule_inertia
from linkwise.spatial import Array, Pose


def four_bar(
    *,
    ground: float = 0.4,
    crank: float = 0.1,
    coupler: float = 0.5,
    rocker: float = 0.4,
    density: float = 2.0,
) -> Mechanism:
    """Crank, coupler and rocker in the x-z plane, closed by a pin. One freedom.

                            C
              coupler   ___o        at q = 0 the crank is upright; with the default lengths
                  __---    |        A = (0, 0), B = (0, 0.1), C = (0.4, 0.4), D = (0.4, 0),
          B   o--          |        so BC = 0.5 is the long side of a 3-4-5 triangle and
        crank |            | rocker the rocker is upright too
          A   o            o   D
             /// ground   ///

    In the tree the crank and then the coupler hang on A, the rocker on D: three pins, 3 dof. Loop
    "coupler_rocker" joins the nodes "coupler_end" and "rocker_end" by a pin about y: five
    constraints of which two are independent in the plane (a pin keeps two parallel axes parallel
    three times over), so one freedom is left. It holds exactly at the neutral configuration, for
    all lengths: the coupler's frame is laid out from the point C where the circles about B and D
    meet. All link frames are parallel to the world's there, at the inner pin of the link.

    The default lengths satisfy Grashof's condition, shortest + longest = 0.6 < 0.8: the crank goes
    round, the rocker swings.

    Args:
        ground: Distance AD [m].
        crank: Length AB [m].
        coupler: Length BC [m].
        rocker: Length CD [m].
        density: Mass per length of the bars [kg/m].

    Raises:
        ModelError: the lengths cannot be put together with the crank upright.
    """
    p_B, p_D = np.array([0.0, 0.0, crank]), np.array([ground, 0.0, 0.0])
    p_C = _meeting_point(p_B, p_D, coupler, rocker)
    b = Builder("four_bar")
    pin, radius = Pin((0.0, 1.0, 0.0)), 0.012
    b.node("ground", "world", geometry=(capsule("ground", (0, 0, 0), p_D, 0.5 * radius, SLATE),))
    for name, parent, start, end, length, drive, rgba in (
        ("crank", "world", np.zeros(3), p_B, crank, Drive(damping=0.01, effort=20.0), ORANGE),
        ("coupler", "crank", p_B, p_C - p_B, coupler, Drive(), STEEL),
        ("rocker", "world", p_D, p_C - p_D, rocker, Drive(), BLUE),
    ):
        b.body(
            name,
            parent,
            pin,
            hinge_name=f"{name}_pin",
            inboard=Pose.translation(start),
            inertia=capsule_inertia(density * length, (0, 0, 0), end, radius),
            drive=drive,
            geometry=(capsule("bar", (0, 0, 0), end, radius, rgba),),
        )
    b.node("coupler_end", "coupler", Pose.translation(p_C - p_B))
    b.node("rocker_end", "rocker", Pose.translation(p_C - p_D))
    b.loop("coupler_rocker", "coupler_end", "rocker_end", pin)
    return b.build()


def _meeting_point(p_B: Array, p_D: Array, coupler: float, rocker: float) -> Array:
    """The upper of the two points at `coupler` from B and at `rocker` from D, in the x-z plane."""
    along = p_D - p_B
    far = float(np.linalg.norm(along))
    if not abs(coupler - rocker) < far < coupler + rocker:
        raise ModelError(
            f"four_bar with the crank upright has its outer pins {far:.6g} m apart; coupler and "
            f"rocker of {coupler:.6g} and {rocker:.6g} m cannot join them. Their sum must exceed "
            "that distance, their difference stay below it."
        )
    unit = along / far
    # Foot of the height over BD, by the law of cosines, then up along the normal in the plane.
    foot = (far**2 + coupler**2 - rocker**2) / (2.0 * far)
    height = np.sqrt(coupler**2 - foot**2)
    normal = np.array([-unit[2], 0.0, unit[0]])
    return p_B + foot * unit + height * normal
