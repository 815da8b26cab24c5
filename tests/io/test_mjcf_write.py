"""Mechanisms of every kind written as MJCF: what is kept exactly, and what is reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tools.corpus import find_urdf

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.io.mjcf import write_mjcf
from linkwise.io.report import Reporter
from linkwise.model.builder import Builder
from linkwise.model.drive import Drive
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Gimbal,
    Helical,
    Hinge,
    Locked,
    Pin,
    Planar,
    Prismatic,
    RollingBall,
    Screws,
    Spherical,
    Translation,
    Universal,
)
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from tests.io.mjcf_text import again, read
from tests.io.round_trip import differences
from tests.oracles.mujoco_oracle import agreement, parse_model

PLACE = Pose.rpy((0.3, -0.4, 0.9), (0.1, -0.2, 0.3))
MASS = SpatialInertia.from_com(2.0, (0.1, 0.2, -0.1), np.diag([0.3, 0.4, 0.5])).moved(PLACE)


def two(hinge: Hinge, *, inboard: Pose = PLACE, outboard: Pose | None = None, **more) -> Mechanism:
    """A body on a pin and one behind it on the hinge."""
    builder = Builder("two")
    builder.body("arm", "world", Pin((1, 0, 0)), inertia=MASS, inboard=(0, 0, 1))
    builder.body("hand", "arm", hinge, inertia=MASS, inboard=inboard, outboard=outboard, **more)
    return builder.build()


def poses_match(mech: Mechanism, back: Mechanism, q: np.ndarray, q_back: np.ndarray) -> bool:
    ours, theirs = mech.pose(q, "hand"), back.pose(q_back, "hand")
    return bool(np.abs(ours.matrix - theirs.matrix).max() < 1e-13)


ROWS = {
    "cylindrical": Cylindrical((1, 2, 3)),
    "universal": Universal((1, 0, 0.2), (0, 1, 0)),
    "gimbal": Gimbal(),
    "translation": Translation(),
    "planar": Planar((1, 1, 0)),
    "reversed universal": Universal((1, 0, 0.2), (0, 1, 0)).reversed(),
    "screws": Screws(((0, 0, 1, 0.3, 0, 0), (0, 0, 0, 0, 1, 0), (1, 0, 0, 0, 0.2, 0))),
}


@pytest.mark.parametrize("name", ROWS)
def test_hinges_that_are_rows_of_joints(name: str):
    mech = two(ROWS[name], outboard=PLACE)
    back, report = again(mech)
    assert not report.affecting("motion")
    assert back.nv == mech.nv
    assert back.total_mass == mech.total_mass
    names = {b.hinge_name for b in back.bodies}
    for seed in range(3):
        q = mech.random(seed)
        q_back = np.zeros(back.nq)
        for i, c in enumerate(mech.hinge("hand").hinge.coordinates):
            assert f"hand_{c.name}" in names
            q_back[back.coordinate(f"hand_{c.name}")] = q[1 + i]
        q_back[back.coordinate("arm")] = q[0]
        assert poses_match(mech, back, q, q_back)


SAME = {
    "pin": Pin((1, 2, 3)),
    "prismatic": Prismatic((1, 2, 3)),
    "spherical": Spherical(),
    "locked pin": Locked(Pin((1, 2, 3)), (0.7,)),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("away", [Pose.identity(), Pose.translation((0.2, -0.1, 0.4)), PLACE])
def test_hinges_that_come_back_the_same(name: str, away: Pose):
    mech = two(SAME[name], outboard=away)
    back, report = again(mech, keep_fixed=True)
    if name == "spherical" and away is PLACE:
        assert [i.reason for i in report] == ["its coordinates change to those of the body frame"]
        return
    assert not len(report)
    assert max(differences(mech, back).values()) < 1e-14


def test_a_body_turned_against_its_ball_joint_keeps_its_motion():
    mech = two(Spherical(), outboard=PLACE)
    back, _ = again(mech)
    q = mech.random(0)
    # The same rotation, seen from the body's axes.
    turn = lw.spatial.quaternion.from_matrix(PLACE.rot)
    ours = lw.spatial.quaternion.multiply(
        lw.spatial.quaternion.multiply(lw.spatial.quaternion.conjugate(turn), q[1:]), turn
    )
    assert poses_match(mech, back, q, np.concatenate([q[:1], ours]))


def test_a_free_hinge_between_bodies_is_three_slides_and_a_ball():
    mech = two(Free())
    back, report = again(mech)
    assert next(i.reason for i in report) == (
        "a free hinge between bodies becomes three slides and a ball joint"
    )
    q = mech.random(0)
    q_back = np.concatenate([q[:1], q[5:], q[1:5]])
    assert poses_match(mech, back, q, q_back)


def test_a_helical_hinge_is_a_hinge_and_a_slide_that_follows():
    mech = two(Helical((1, 2, 3), 0.05))
    back, report = again(mech)
    (item,) = report.affecting("motion")
    assert item.element == "hinge 'hand'"
    assert item.reason == (
        "a helical hinge becomes 2 joints, the slide following the hinge by an equality constraint"
    )
    assert back.nv == 3
    (coupling,) = back.couplings
    assert dict(coupling.terms)["hand_angle"] == pytest.approx((0.05,), rel=1e-15)
    q = mech.random(0)
    q_back = np.zeros(3)
    q_back[[back.coordinate("arm"), back.coordinate("hand_angle")]] = q
    assert poses_match(mech, back, q, back.couple(q_back))


def test_hinges_without_joints_are_refused_by_name():
    for hinge in (RollingBall(0.1), Screws(((0, 0, 2, 0, 0, 0),))):
        with pytest.raises(ModelError) as caught:
            again(two(hinge))
        assert str(caught.value) == (
            f"body 'hand' moves on a {hinge.describe()} hinge, which MJCF cannot express; lock it, "
            "or replace it by pin, prismatic, spherical and free hinges"
        )


def test_drives_come_back():
    drive = Drive(
        armature=0.1,
        damping=0.2,
        friction=0.3,
        stiffness=4.0,
        rest=0.5,
        lower=-1.0,
        upper=2.0,
        effort=7.0,
    )
    mech = two(Pin(), drive=drive)
    back, report = again(mech)
    assert not len(report)
    assert back.body("hand").drive == drive
    ball = two(Spherical(), drive=Drive(damping=2.0, max_angle=1.5))
    assert again(ball)[0].body("hand").drive == Drive(damping=2.0, max_angle=1.5)


def test_what_a_joint_cannot_say_is_reported():
    def reasons(hinge: Hinge, drive: Drive) -> list[tuple[str, str]]:
        return [(i.reason, i.affects) for i in again(two(hinge, drive=drive))[1]]

    assert reasons(Pin(), Drive(velocity=3.0)) == [("MJCF has no limit of velocity", "control")]
    assert reasons(Pin(), Drive(rotor_inertia=0.1, gear_ratio=10.0)) == [
        ("rotor and gear are written as the armature they make", "other")
    ]
    assert reasons(Pin(), Drive(lower=-1.0)) == [
        ("a limit on one side is written with 1e+10 on the other", "other")
    ]
    assert reasons(Spherical(), Drive(damping=(1.0, 2.0, 3.0))) == [
        ("a ball joint has one 'damping'; the mean is written", "motion")
    ]
    assert reasons(Pin(), Drive(lower=1.0, upper=0.0)) == [
        ("limits 1 and 0 leave no room; MJCF refuses them", "control")
    ]
    assert reasons(Spherical(), Drive(effort=2.0)) == [
        ("a ball joint of MJCF has no limit of effort", "control")
    ]
    assert reasons(Pin(), Drive(effort=0.0)) == [("MJCF has no limit of effort at 0", "control")]
    back, _ = again(two(Pin(), drive=Drive(rotor_inertia=0.1, gear_ratio=10.0)))
    assert back.armature[1] == pytest.approx(10.0)


def test_nodes_payloads_and_shapes_come_back():
    shapes = (
        Geometry("box", "box", (1.0, 2.0, 3.0), PLACE, "visual", (1.0, 0.5, 0.0, 1.0)),
        Geometry("", "capsule", (0.1, 2.0), PLACE, "collision"),
        Geometry("ball", "sphere", (0.1,), PLACE),
        Geometry("l", "mesh", (), PLACE, "both", None, "meshes/l.stl", (1.0, 2.0, 3.0)),
    )
    builder = Builder("shown")
    builder.body("arm", "world", Pin(), inertia=MASS, geometry=shapes)
    builder.node("tip", "arm", PLACE)
    builder.node("cover", "arm", PLACE, inertia=MASS, kind="link", geometry=shapes[:1])
    builder.node("base", "world", PLACE, inertia=MASS, kind="link")
    mech = builder.build().with_payload("tip", MASS, name="load")
    back, report = again(mech)
    assert max(differences(mech, back).values()) < 1e-13
    assert [i.reason for i in report] == ["a payload that carries something reads back as a link"]
    assert {n.name: n.kind for n in back.nodes} == {
        "tip": "frame",
        "cover": "link",
        "base": "link",
        "load": "link",
    }
    for one, two_ in zip(shapes, back.body("arm").geometry, strict=True):
        for field in ("name", "shape", "size", "role", "rgba", "file", "scale"):
            assert getattr(one, field) == getattr(two_, field)
        assert np.abs(one.pose.matrix - two_.pose.matrix).max() < 1e-15


@pytest.mark.oracle
def test_inertias_at_the_edge_are_written_so_that_mujoco_takes_them():
    pytest.importorskip("mujoco")
    point = SpatialInertia.point(2.0, (0.3, 0.1, -0.7))
    disc = SpatialInertia.from_com(2.0, (0.3, 0.1, -0.7), np.diag([1.0, 1.0, 2.0]))
    builder = Builder("edge").body("arm", "world", Pin(), inertia=MASS)
    for i in range(20):
        turn = lw.spatial.rotation.random_rotation(np.random.default_rng(i))
        for name, inertia in (("point", point), ("disc", disc)):
            moved = inertia.moved(Pose.rotation(turn, (0.1 * i, 1.0, 0.0)))
            builder.node(f"{name}{i}", "arm", inertia=moved, kind="link")
    mech = builder.build()
    reporter = Reporter("out.xml")
    text = write_mjcf(mech, reporter)
    assert not len(reporter.report())
    back = read(text)
    assert max(differences(mech, back).values()) < 1e-14
    assert agreement(back, parse_model(text)).inertia < 1e-13


def test_impossible_inertias_are_kept_and_reported():
    impossible = SpatialInertia.from_com(1.0, J_com=(1.0, 1.0, 5.0))
    mech = Builder("m").body("a", "world", Pin(), inertia=impossible).build()
    back, report = again(mech)
    assert [(i.element, i.reason) for i in report] == [
        ("inertia of 'a'", "MuJoCo refuses moments of inertia that no body can have")
    ]
    assert np.array_equal(back.body("a").inertia.J, impossible.J)


def test_a_plane_that_moves_is_left_out():
    plane = Geometry("p", "plane", (1.0, 1.0), PLACE)
    back, report = again(two(Pin(), geometry=(plane,)))
    assert [(i.element, i.affects) for i in report] == [("plane on 'hand'", "motion")]
    assert not back.body("hand").geometry


def looped(hinge: Hinge, drive: Drive | None = None) -> Mechanism:
    builder = Builder("looped")
    builder.body("a", "world", Pin(), inertia=MASS)
    builder.body("b", "world", Pin(), inertia=MASS)
    builder.node("on_a", "a", PLACE).node("on_b", "b", PLACE)
    builder.loop("ring", "on_a", "on_b", hinge, drive=drive or Drive())
    return builder.build()


def test_loops_come_back():
    for hinge in (Locked(), Spherical()):
        mech = looped(hinge)
        back, report = again(mech)
        assert not len(report)
        assert max(differences(mech, back).values()) < 1e-14
    held, _ = again(looped(Locked(Pin((1, 2, 3)), (0.4,))))
    assert isinstance(held.loops[0].hinge, Locked)


def test_a_pin_in_a_loop_is_two_points():
    mech = looped(Pin((0, 0, 1)))
    back, report = again(mech)
    assert not report.affecting("motion")
    assert [loop.hinge for loop in back.loops] == [Spherical(), Spherical()]
    q = back.random(0)
    for loop, shift in zip(back.loops, (0.0, 1.0), strict=True):
        for node, body in ((loop.node_a, "on_a"), (loop.node_b, "on_b")):
            point = mech.pose(q, body).apply(np.array([0.0, 0.0, shift]))
            assert np.abs(back.pose(q, node).p - point).max() < 1e-14


def test_other_loops_are_reported():
    back, report = again(looped(Prismatic(), Drive(damping=1.0)))
    assert not back.loops
    assert [i.reason for i in report.affecting("motion")] == [
        "MJCF cannot express what acts inside the hinge of a loop",
        "MJCF has no loop that leaves a prismatic z hinge free",
    ]


def coupled(terms: dict[str, list[float]], hinge: Hinge | None = None) -> Mechanism:
    builder = Builder("coupled")
    for name in "abc":
        builder.body(name, "world", hinge if hinge and name == "a" else Pin(), inertia=MASS)
    dependent = "a[1]" if hinge else "a"
    return builder.couple("gear", dependent, terms, offset=0.3).build()


@pytest.mark.parametrize(
    "terms", [{"b": [2.0]}, {"b": [2.0, 0.0, 0.3, 0.1]}, {"b": [2.0], "c": [-0.5]}]
)
def test_couplings_come_back(terms: dict[str, list[float]]):
    mech = coupled(terms)
    back, report = again(mech)
    assert not len(report)
    assert max(differences(mech, back).values()) < 1e-15


def test_a_coupling_of_one_of_several_coordinates():
    back, _ = again(coupled({"b": [2.0]}, Universal()))
    assert back.couplings[0].dependent == "a_angle_2"


def test_couplings_beyond_a_quartic_are_reported():
    for terms in ({"b": [1.0, 0.0, 0.0, 0.0, 1.0]}, {"b": [1.0, 2.0], "c": [1.0]}):
        back, report = again(coupled(terms))
        assert not back.couplings
        assert [i.reason for i in report.affecting("motion")] == [
            "MJCF couples by one quartic polynomial, or by several linear terms"
        ]


@pytest.mark.prove
def test_order_depth_and_massless_bodies_are_reported():
    builder = Builder("order")
    builder.body("a", "world", Pin(), inertia=MASS).body("b", "world", Pin(), inertia=MASS)
    builder.body("a2", "a", Pin(), inertia=MASS)
    _, report = again(builder.build())
    assert [i.reason for i in report] == [
        "bodies are written, and read back, depth first: their order changes"
    ]
    reporter = Reporter("deep.xml")
    write_mjcf(lw.models.chain(2100), reporter)
    assert [i.reason for i in reporter.report()] == [
        "the tree nests 2102 levels; `load` reads 2000"
    ]
    bare = Builder("bare").body("a", "world", Pin()).build()
    assert [i.reason for i in again(bare)[1]] == [
        "MuJoCo refuses moving bodies without mass or moments of inertia"
    ]


def test_bodies_without_mass_between_hinges_become_joints_of_one_body():
    builder = Builder("wrist")
    builder.body("x", "world", Pin((1, 0, 0)), inboard=PLACE)
    builder.body("y", "x", Pin((0, 1, 0)), inboard=PLACE, outboard=PLACE)
    builder.body("hand", "y", Pin((0, 0, 1)), inboard=PLACE, inertia=MASS)
    mech = builder.build()
    back, report = again(mech)
    assert [b.name for b in back.bodies] == ["hand:x", "hand:y", "hand"]
    assert [i.element for i in report] == ["body 'x'", "body 'y'"]
    q = mech.random(0)
    assert poses_match(mech, back, q, q)


def test_names_that_xml_cannot_hold_are_refused():
    mech = Builder("m").body("a\x00", "world", Pin(), inertia=MASS).build()
    with pytest.raises(ModelError, match="which XML cannot hold"):
        again(mech)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda: lw.models.chain(12),
        lambda: lw.models.puma560(),
        lambda: lw.models.seven_dof_arm(),
        lambda: lw.models.quadruped(),
        lambda: lw.models.humanoid(),
        lambda: lw.models.four_bar(),
        lambda: lw.models.stewart(),
        lambda: lw.models.dual_arm(),
        lambda: lw.models.free_flyer(),
    ],
)
def test_samples_mean_the_same_to_mujoco(make):
    pytest.importorskip("mujoco")
    mech = make()
    text = write_mjcf(mech, Reporter("out.xml"))
    back = read(text)
    rows = agreement(back, parse_model(text))
    assert rows.dof[0] == rows.dof[1] == mech.nv
    assert rows.worst < 1e-12, rows
    assert rows.inertia < 1e-12, rows
    assert rows.drive < 1e-12, rows
    assert float(back.total_mass) == pytest.approx(float(mech.total_mass), rel=1e-14)


URDF = list(find_urdf().items())[3::7]


@pytest.mark.oracle
@pytest.mark.parametrize("path", [p for _, p in URDF], ids=[n for n, _ in URDF])
def test_robots_in_urdf_become_the_same_robots_in_mjcf(path: str):
    mech = lw.load(path)
    back, report = again(mech)
    assert not report.affecting("motion")
    result = differences(mech, back)
    del result["drive"]  # MJCF has no limits of velocity
    assert max(result.values()) < 1e-12


def test_a_loop_that_is_lost_is_warned_of(tmp_path):
    b = Builder("rail")
    b.body("a", hinge=Pin((0, 1, 0)), inertia=MASS)
    b.body("b", hinge=Pin((0, 1, 0)), inertia=MASS)
    b.loop("slide", "a", "b", Prismatic((1, 0, 0)))
    b.loop("bolt", "a", "b", Pin((0, 1, 0)))
    with pytest.warns(UserWarning, match=r"'x.xml' does not move like 'rail'.*\n  loop 'slide'"):
        report = lw.save(b.build(), tmp_path / "x.xml")
    assert len(report) == 2 and len(lw.load(tmp_path / "x.xml").loops) == 2  # two points for a pin
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # written as it is: nothing to warn of
        lw.save(b.build(), tmp_path / "x.urdf")
