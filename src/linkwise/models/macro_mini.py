"""Heavy arms that carry light ones, in space and in the plane."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.model import Builder, Drive, Mechanism
from linkwise.model.hinges import Pin, Prismatic
from linkwise.models.shapes import (
    BLUE,
    IVORY,
    ORANGE,
    SLATE,
    STEEL,
    Rgba,
    capsule,
    capsule_inertia,
    solid,
)
from linkwise.spatial import Pose, SpatialInertia, rotation


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
            solid("turntable", "cylinder", (0.12, 0.08), (0.0, 0.0, 0.0), SLATE),
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
            solid("carriage", "box", (0.12, 0.1, 0.08), (0, 0, 0.08), BLUE),
            capsule("rail", (0.0, 0.0, 0.13), (0.0, 0.5, 0.13), 0.012, BLUE),
        ),
    )
    b.body(
        "link_3",
        "link_2",
        Prismatic((0.0, 1.0, 0.0)),
        hinge_name="slider_3",
        inertia=SpatialInertia.point(m_3),
        geometry=(solid("carriage", "box", (0.08, 0.08, 0.06), (0, 0, 0.15), ORANGE),),
    )
    b.node("end_effector", "link_3")
    return b.build()


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Link:
    """One pin and the link it moves.

    Attributes:
        name: Of the hinge; the body is "name_link".
        offset: Where the pin is along z of the link before [m].
        axis: Of the pin.
        posture: Angle that is folded in, so that it is 0 here [rad].
        end: Where the link ends, in its frame [m].
        mass: [kg].
        radius: [m].
        armature: Of the motor, seen at the joint [kg m²].
        limit: Range to either side [rad].
        effort: Largest torque [N m].
        rgba: Colour.
    """

    name: str
    offset: tuple[float, float, float]
    axis: tuple[float, float, float]
    posture: float
    end: tuple[float, float, float]
    mass: float
    radius: float
    armature: float
    limit: float
    effort: float
    rgba: Rgba


_MACRO = (
    _Link("yaw", (0, 0, 0.4), _Z, 0.0, (0, 0, 0.4), 40, 0.16, 30, 2.9, 1500, SLATE),
    _Link("shoulder", (0, 0, 0.4), _Y, 0.5, (0, 0, 1.2), 45, 0.10, 35, 1.2, 2000, IVORY),
    _Link("elbow", (0, 0, 1.2), _Y, 1.4, (0, 0, 1.0), 28, 0.08, 15, 1.2, 1000, IVORY),
    _Link("wrist", (0, 0, 1.0), _Y, np.pi / 2 - 1.9, (0, 0, 0.12), 8, 0.07, 3, 1.5, 250, SLATE),
)
_MINI_ARM = (
    _Link("yaw", (0, 0, 0.05), _X, 0.0, (0, 0, 0.02), 0.4, 0.030, 1e-3, 0.5, 15, STEEL),
    _Link("shoulder", (0, 0, 0.02), _Y, -0.6, (0, 0, 0.12), 0.5, 0.020, 1e-3, 0.5, 15, BLUE),
    _Link("elbow", (0, 0, 0.12), _Y, 1.2, (0, 0, 0.12), 0.4, 0.016, 6e-4, 0.5, 10, BLUE),
)
_MINI_WRIST = (
    _Link("wrist_pitch", (0, 0, 0.12), _Y, -0.6, (0, 0, 0.03), 0.15, 0.015, 1e-4, 0.8, 3, STEEL),
    _Link("wrist_yaw", (0, 0, 0.03), _X, 0.0, (0, 0, 0.03), 0.12, 0.014, 1e-4, 0.8, 3, STEEL),
    _Link("wrist_roll", (0, 0, 0.03), _Z, 0.0, (0, 0, 0.05), 0.10, 0.012, 1e-4, 0.8, 3, ORANGE),
)
_TOOL = 0.05  # from the last hinge of the mini to the tip [m]


def macro_mini(*, wrist: bool = True) -> Mechanism:
    """A heavy arm of four axes with a light arm of six, or of three, at its end.

                  elbow (y)
                  o────────────o──┤▭╲╱o─▶  node "tip"
                 ╱   1.0 m  wrist (y)  the mini, 0.12 m and 0.12 m
          1.2 m ╱
               o  shoulder (y)         z up, x to the right
               │  yaw (z)
             ──┴──  world

    The macro: 121 kg, 0.8 m + 1.2 m + 1.0 m, and geared motors whose reflected inertia (3 to
    35 kg m²) is as large as that of the links. The mini: 1.67 kg, nearly direct drives, and joints
    that turn 0.5 rad to either side (0.8 rad in the wrist): its tip reaches about 0.1 m around. At
    q = 0 the macro is bent, the mini is in the middle of its range and is not singular. Our own
    designs; no maker's data were used.

    It is the macro with the mini mounted on its node "flange"; the names of the mini begin with
    "mini_", and its first hinge, "mini_yaw", is where the two part. Bodies are called after their
    hinges: "mini_yaw_link".

    Args:
        wrist: Whether the mini has a wrist of three axes: 10 dof, for tasks of position and
            orientation. Without it 7 dof, for tasks of position.
    """
    macro = Builder("macro")
    foot = solid("foot", "cylinder", (0.3, 0.2), (0, 0, 0.1), SLATE)
    macro.node("base", "world", geometry=(foot,))
    last = _add(macro, _MACRO)
    macro.node("flange", last, Pose.translation((0.0, 0.0, 0.12)))
    mini = Builder("mini")
    links = (*_MINI_ARM, *_MINI_WRIST) if wrist else _MINI_ARM
    last = _add(mini, links)
    mini.node("tip", last, Pose.translation((0, 0, _TOOL if wrist else links[-1].end[2])))
    mech = macro.build().mount(mini.build(), at="flange", prefix="mini_")
    return _renamed(mech, "macro_mini", "tip")


_PLANAR_MACRO = (
    _Link("shoulder", (0, 0, 0), _Z, 0.3, (1.0, 0, 0), 30, 0.07, 10, 2.6, 600, IVORY),
    _Link("elbow", (1.0, 0, 0), _Z, 1.2, (0.8, 0, 0), 20, 0.06, 5, 1.2, 300, IVORY),
)
_PLANAR_MINI = (
    _Link("shoulder", (0, 0, 0), _Z, -0.8, (0.15, 0, 0), 0.4, 0.018, 5e-4, 0.6, 12, BLUE),
    _Link("elbow", (0.15, 0, 0), _Z, 1.6, (0.15, 0, 0), 0.3, 0.015, 3e-4, 0.6, 8, ORANGE),
)


def planar_macro_mini() -> Mechanism:
    r"""Two long links and two short ones, four pins about z: 4 dof in the horizontal plane.

                   ╱╲ node "tip"         seen from above
                  ╱   mini: 0.15 m and 0.15 m
                 o elbow
              ───╱  macro: 1.0 m and 0.8 m
         o─────╱
       shoulder

    The macro weighs 50 kg, its motors add 10 and 5 kg m²; the mini weighs 0.7 kg and its joints
    turn 0.6 rad to either side. At q = 0 both elbows are bent, and the mini is in the middle of
    its range. The mini's names begin with "mini_", its first hinge is "mini_shoulder".
    """
    macro, mini = Builder("planar macro"), Builder("planar mini")
    last = _add(macro, _PLANAR_MACRO)
    macro.node("flange", last, Pose.translation(_PLANAR_MACRO[-1].end))
    last = _add(mini, _PLANAR_MINI)
    mini.node("tip", last, Pose.translation(_PLANAR_MINI[-1].end))
    mech = macro.build().mount(mini.build(), at="flange", prefix="mini_")
    return _renamed(mech, "planar_macro_mini", "tip")


def _add(b: Builder, links: Sequence[_Link]) -> str:
    """Links in series; returns the name of the last body."""
    parent = "world"
    for link in links:
        inboard = Pose.translation(link.offset)
        if link.posture != 0.0:
            turn = rotation.axis_angle(np.array(link.axis), link.posture)
            inboard = inboard @ Pose.rotation(turn)
        ends = (0.0, 0.0, 0.0), link.end
        b.body(
            f"{link.name}_link",
            parent,
            Pin(link.axis),
            hinge_name=link.name,
            inboard=inboard,
            inertia=capsule_inertia(link.mass, *ends, link.radius),
            drive=Drive(
                armature=link.armature, lower=-link.limit, upper=link.limit, effort=link.effort
            ),
            geometry=(capsule("link", *ends, link.radius, link.rgba),),
        )
        parent = f"{link.name}_link"
    return parent


def _renamed(mech: Mechanism, name: str, tip: str) -> Mechanism:
    """The mechanism under its own name, its tip without the prefix of the mini."""
    nodes = [dataclasses.replace(n, name=tip) if n.name == f"mini_{tip}" else n for n in mech.nodes]
    return dataclasses.replace(mech, name=name, nodes=tuple(nodes))
