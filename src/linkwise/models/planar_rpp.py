"""The three-degree-of-freedom macro/mini manipulator of Khatib's inertial-properties paper."""

from __future__ import annotations

from linkwise.model import Builder, Geometry, Mechanism
from linkwise.model.hinges import Pin, Prismatic
from linkwise.models.capsule import BLUE, ORANGE, SLATE, capsule
from linkwise.spatial import Pose, SpatialInertia


def planar_rpp(*, I_1: float = 1.0, m_2: float = 2.0, m_3: float = 1.0) -> Mechanism:
    r"""One pin that carries two sliders: a macro of one, a mini of two degrees of freedom.

              y₁          q₃ ↑  ■ link_3, node "end_effector" (m₃)
               \              |
                \      q₂     |          seen from above; the pin is about z,
                 o─────────→──■ link_2    the frame of link_1 is the frame R₁
            (I₁) pin q₁      (m₂)

    In R₁ link_2 is at (q₂, 0) and link_3, with the end effector, at (q₂, q₃). Link 2 is a point
    mass on the axis of slider 3, link 3 a point mass at the end effector, as the example assumes:

        J in R₁ = [[-q₃, 1, 0], [q₂, 0, 1]]
        A = [[I₁ + m₂ q₂² + m₃ (q₂² + q₃²), -m₃ q₃, m₃ q₂], [-m₃ q₃, m₂ + m₃, 0], [m₃ q₂, 0, m₃]]
        Λ_mini = diag(m₂ + m₃, m₃)
        Λ in R₁ = diag(η m₂ + m₃, m₃),   η = (I₁ + m₂ q₂²) / (I₁ + m₂ (q₂² + q₃²)) ≤ 1

    The paper prints the first entry of the last line as m₂ + m₃ × η. That does not follow from its
    own A and J (`tests/models/test_planar_rpp.py`): η multiplies m₂. The plane is horizontal, so
    gravity does no work.

    Source: O. Khatib, "Inertial properties in robotic manipulation: an object-level framework",
    International Journal of Robotics Research 14(1), 1995, section 5.2 and figure 10.

    Args:
        I_1: Inertia of link 1 about the pin [kg m²]. Its mass, 1 kg on the axis, never shows.
        m_2: Mass of link 2 [kg].
        m_3: Mass of link 3 [kg].
    """
    b = Builder("planar_rpp")
    b.body(
        "link_1",
        "world",
        Pin((0.0, 0.0, 1.0)),
        hinge_name="pin_1",
        inertia=SpatialInertia.from_com(1.0, J_com=(I_1, I_1, I_1)),
        geometry=(
            Geometry("turntable", "cylinder", (0.12, 0.08), Pose.identity(), "both", SLATE),
            capsule("rail", (0.0, 0.0, 0.06), (0.8, 0.0, 0.06), 0.015, SLATE),
        ),
    )
    b.body(
        "link_2",
        "link_1",
        Prismatic((1.0, 0.0, 0.0)),
        hinge_name="slider_2",
        inertia=SpatialInertia.point(m_2),
        geometry=(
            Geometry(
                "carriage", "box", (0.12, 0.1, 0.08), Pose.translation((0, 0, 0.08)), "both", BLUE
            ),
            capsule("rail", (0.0, 0.0, 0.13), (0.0, 0.5, 0.13), 0.012, BLUE),
        ),
    )
    b.body(
        "link_3",
        "link_2",
        Prismatic((0.0, 1.0, 0.0)),
        hinge_name="slider_3",
        inertia=SpatialInertia.point(m_3),
        geometry=(
            Geometry(
                "carriage",
                "box",
                (0.08, 0.08, 0.06),
                Pose.translation((0, 0, 0.15)),
                "both",
                ORANGE,
            ),
        ),
    )
    b.node("end_effector", "link_3")
    return b.build()
