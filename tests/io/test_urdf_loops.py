"""Loop closures and couplings in URDF: the extension, its relatives, and writing them back."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import ParseError
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.hinges import (
    Cylindrical,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    PointOnPlane,
    Prismatic,
    RollingBall,
    Screws,
    SoftFinger,
    Spherical,
    Translation,
    Universal,
)
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import random_rotation
from tests.io.round_trip import differences
from tests.io.urdf_text import again, arm, joint, link, read, robot

BARS = (
    *(link(name) for name in ("base", "left", "right")),
    joint("j1", "continuous", "base", "left"),
    joint("j2", "continuous", "base", "right"),
)


def closed(inside: str, kind: str = "revolute", extra: str = "") -> str:
    return robot(*BARS, f'<loop_joint name="c" type="{kind}"{extra}>{inside}</loop_joint>')


ENDS = '<link1 link="left" xyz="1 0 0"/><link2 link="right" xyz="0 1 0" rpy="0 0 1.5"/>'


def test_revolute_loop():
    (loop,) = (mech := read(closed(ENDS + '<axis xyz="0 0 2"/>'))).loops
    assert (loop.name, loop.hinge, loop.rows) == ("c", Pin((0, 0, 1)), 5)
    a, b = mech.node(loop.node_a), mech.node(loop.node_b)
    assert (a.body, a.pose.p.tolist()) == ("left", [1, 0, 0])
    assert (b.body, b.pose.p.tolist()) == ("right", [0, 1, 0])
    assert len(mech.load_report) == 0


def test_two_elements_called_link1_are_taken_in_order():
    (loop,) = (mech := read(closed(ENDS.replace("link2", "link1"), "spherical"))).loops
    assert mech.node(loop.node_b).body == "right"
    assert loop.hinge == Spherical()


def test_loop_ends_may_be_fixed_links_and_the_root():
    text = robot(
        *BARS,
        link("tool"),
        joint("f", "fixed", "left", "tool", '<origin xyz="0 0 1"/>'),
        '<loop_joint type="fixed"><link1 link="tool" xyz="0 0 1"/><link2 link="base"/>'
        "</loop_joint>",
    )
    (loop,) = (mech := read(text)).loops
    assert loop.name == "loop_1"
    assert (mech.node(loop.node_a).body, mech.node(loop.node_a).pose.p[2]) == ("left", 2.0)
    assert mech.node(loop.node_b).body == "world"


def test_proposed_constraint_element():
    text = robot(
        *BARS,
        '<constraint name="c" type="revolute"><parent link="left"/><parent_origin xyz="1 0 0"/>'
        '<parent_axis xyz="0 0 1"/><child link="right"/><child_origin xyz="0 1 0"/>'
        '<child_axis xyz="0 1 0"/></constraint>',
    )
    (loop,) = (mech := read(text)).loops
    assert loop.hinge == Pin((0, 0, 1))
    # The child's frame is turned so that its axis is the parent's.
    turned = mech.node(loop.node_b).pose.rot @ [0, 0, 1]
    np.testing.assert_allclose(turned, [0, 1, 0], atol=1e-15)


def test_drake_ball_constraint():
    text = robot(
        *BARS,
        '<drake:ball_constraint><drake:ball_constraint_body_A name="left"/>'
        '<drake:ball_constraint_p_AP value="1 2 3"/><drake:ball_constraint_body_B name="right"/>'
        '<drake:ball_constraint_p_BQ value="4 5 6"/></drake:ball_constraint>',
    )
    (loop,) = (mech := read(text)).loops
    assert loop.hinge == Spherical()
    assert mech.node(loop.node_b).pose.p.tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (closed(ENDS, "wavy"), "r.urdf:7: <loop_joint name=\"c\">: attribute 'type' is 'wavy'"),
        (closed('<link1 link="left"/>'), "1 links are given; write one <link1> and one <link2>"),
        (
            closed(ENDS.replace("right", "rihgt")),
            "no link called 'rihgt' in the file; did you mean",
        ),
        (closed(ENDS, "universal"), "0 axes are given; a universal loop takes 2"),
        (closed(ENDS, "helical"), "attribute 'pitch' is missing"),
        (closed(ENDS + '<axis xyz="0 0 1"/>' * 2, "universal"), "are parallel"),
        (closed(ENDS + '<axis xyz="0 0 0"/>'), "is the zero vector"),
        (closed(ENDS, "screws"), "screws have shape"),
        (closed(ENDS, "rolling_ball", ' radius="-1"'), "it must be positive"),
        (closed(ENDS, "floating"), "leaves all six directions free"),
    ],
)
def test_refused(text: str, expected: str):
    with pytest.raises(ParseError) as caught:
        read(text)
    assert expected in str(caught.value)


LOOP_HINGES: list[Hinge] = [
    Locked(),
    Locked(Pin((0, 1, 0)), (0.3,)),
    Pin((0.6, 0, 0.8)),
    Prismatic((0, 1, 0)),
    Helical((0, 0, 1), 0.02),
    Cylindrical((1, 0, 0)),
    Planar((0, 0.6, 0.8)),
    Universal((1, 0, 0), (0, 1, 0)),
    Gimbal(),
    Spherical(),
    Translation(),
    RollingBall(0.25),
    SoftFinger((0.6, 0, 0.8)),
    PointOnPlane(0.1, (0, 0.6, 0.8)),
    Screws(((0, 0, 1, 0.1, 0, 0), (0, 0, 0, 0, 1, 0))),
]


@pytest.mark.parametrize("hinge", LOOP_HINGES, ids=lambda hinge: hinge.describe())
def test_every_loop_hinge_is_written_and_read_back(hinge: Hinge):
    rng = np.random.default_rng(3)
    builder = Builder("loop")
    for name in ("left", "right"):
        builder.body(name, "world", Pin((0, 1, 0)), inertia=SpatialInertia.solid_sphere(1.0, 0.1))
    builder.node("l.a", "left", Pose(random_rotation(rng), rng.standard_normal(3)))
    builder.node("hand", "right", Pose(random_rotation(rng), rng.standard_normal(3)))
    builder.loop("l", "l.a", "hand", hinge)
    mech = builder.build()
    back, report = again(mech)
    (one,), (two,) = mech.loops, back.loops
    if isinstance(hinge, Locked):
        assert two.hinge == Locked()
    else:
        assert two.hinge == hinge
    q = np.array([0.3, -0.7])
    held = one.hinge.pose(np.zeros(0)) if isinstance(hinge, Locked) else Pose.identity()
    a, b = mech.pose(q, one.node_a) @ held, mech.pose(q, one.node_b)
    np.testing.assert_allclose(back.pose(q, two.node_a).matrix, a.matrix, atol=1e-14)
    np.testing.assert_allclose(back.pose(q, two.node_b).matrix, b.matrix, atol=1e-14)
    assert [(i.element, i.affects) for i in report] == [("loop 'l'", "motion")]


def test_reversed_loop_hinge_swaps_its_ends():
    builder = Builder("loop")
    for name in ("left", "right"):
        builder.body(name, "world", Pin((0, 1, 0)), inertia=SpatialInertia.solid_sphere(1.0, 0.1))
    builder.loop("l", "left", "right", Universal().reversed())
    (loop,) = (back := again(builder.build())[0]).loops
    assert loop.hinge == Universal()
    assert (back.node(loop.node_a).body, back.node(loop.node_b).body) == ("right", "left")


def test_drive_of_a_loop():
    inside = ENDS + '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="2" velocity="3"/>'
    mech = read(closed(inside + '<dynamics damping="0.1" friction="0.2"/>'))
    drive = Drive(lower=-1, upper=1, effort=2, velocity=3, damping=0.1, friction=0.2)
    assert mech.loops[0].drive == drive
    assert again(mech)[0].loops[0].drive == drive


def test_a_continuous_loop_has_no_range():
    inside = ENDS + '<axis xyz="0 1 0"/><limit effort="2" velocity="3"/>'
    assert read(closed(inside, "continuous")).loops[0].drive == Drive(effort=2, velocity=3)


def test_graph_with_a_loop_round_trip():
    builder = Builder("four bar")
    for name in ("crank", "coupler", "rocker"):
        builder.body(name, None, inertia=SpatialInertia.solid_box(1.0, (0.1, 0.1, 1.0)))
    y = (0.0, 1.0, 0.0)
    builder.joint("a", "world", "crank", Pin(y))
    builder.joint("b", "crank", "coupler", Pin(y), at_a=(0, 0, 1), at_b=(0, 0, -0.5))
    builder.joint("d", "world", "rocker", Pin(y), at_a=(2, 0, 0))
    builder.joint("c", "coupler", "rocker", Pin(y), at_a=(0, 0, 0.5), at_b=(0, 0, 1))
    mech = builder.build()
    assert len(mech.loops) == 1
    result = differences(mech, again(mech)[0])
    assert max(result.values()) < 1e-14, result


def test_couplings_beyond_a_mimic():
    text = robot(
        *BARS,
        link("tip"),
        joint("j3", "continuous", "right", "tip"),
        '<linkwise:coupling name="d" dependent="j3" offset="0.5"><term joint="j1" '
        'coefficients="1 2"/><term joint="j2" coefficients="-1"/></linkwise:coupling>',
    )
    mech = read(text)
    (coupling,) = mech.couplings
    assert (coupling.name, coupling.dependent, coupling.offset) == ("d", "j3", 0.5)
    assert dict(coupling.terms) == {"j1": (1.0, 2.0), "j2": (-1.0,)}
    back, report = again(mech)
    assert back.couplings == mech.couplings
    assert "written as <linkwise:coupling>" in str(report)
    with pytest.raises(ParseError, match=r"r\.urdf:9: .*no joint called 'j9'"):
        read(text.replace('joint="j1"', 'joint="j9"'))


def test_a_mimic_named_with_its_index_is_not_lost():
    builder = Builder("r")
    for name in ("a", "b", "c[3]"):
        builder.body(name, "world", Pin(), inertia=SpatialInertia.solid_sphere(1.0, 0.1))
    builder.couple("b_mimic", "b[0]", {"a[0]": 2.0}, offset=0.5)
    builder.couple("c[3]_mimic", "c[3]", {"a": 3.0})
    back = again(builder.build())[0]
    assert [(c.dependent, c.terms, c.offset) for c in back.couplings] == [
        ("b", (("a", (2.0,)),), 0.5),
        ("c[3]", (("a", (3.0,)),), 0.0),
    ]


def test_mimic_is_written_back():
    inside = '<mimic joint="k" multiplier="-2.5" offset="0.1"/>'
    mech = read(arm("continuous", inside, link("end"), joint("k", "continuous", "tip", "end")))
    back, report = again(mech)
    assert back.couplings == mech.couplings
    assert len(report) == 0
