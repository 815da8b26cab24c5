"""Writing URDF: what is written reads back as the same mechanism, or is reported, or refused."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from linkwise.errors import ModelError
from linkwise.io.load import load
from linkwise.io.report import Reporter
from linkwise.io.save import save
from linkwise.io.urdf.split import split_hinge
from linkwise.io.urdf.write import write_urdf
from linkwise.io.xml import parse_xml
from linkwise.model.builder import Builder
from linkwise.model.contact import ContactPair, ContactRules, Surface
from linkwise.model.drive import Drive
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import (
    CustomHinge,
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
from linkwise.spatial import rotation
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from tests.io.round_trip import differences
from tests.io.urdf_text import again, arm, joint, link, read, robot

RNG = np.random.default_rng(5)


def some_pose() -> Pose:
    return Pose(rotation.random_rotation(RNG), RNG.standard_normal(3))


def some_inertia() -> SpatialInertia:
    solid = SpatialInertia.solid_box(RNG.uniform(0.5, 2.0), RNG.uniform(0.1, 0.5, 3))
    return solid.moved(some_pose())


def chain(*hinges: Hinge, drive: Drive | None = None, away: bool = False) -> Mechanism:
    """Bodies b0, b1 ... on hinges h0, h1 ..., every frame at a general place."""
    builder = Builder("chain")
    parent = "world"
    for i, hinge in enumerate(hinges):
        builder.body(
            f"b{i}",
            parent,
            hinge,
            hinge_name=f"h{i}",
            inboard=some_pose(),
            outboard=some_pose() if away else None,
            inertia=some_inertia(),
            drive=drive or Drive(),
        )
        parent = f"b{i}"
    return builder.build()


@pytest.mark.parametrize("away", [False, True], ids=["frame at hinge", "frame away"])
def test_hinges_that_urdf_has_read_back_the_same(away: bool):
    axis = (0.48, 0.6, 0.64)
    mech = chain(Pin(axis), Prismatic(axis), Planar(axis), Free(), Pin(), away=away)
    back, report = again(mech)
    assert len(report) == 0
    assert [x.hinge.kind for x in back.bodies] == [x.hinge.kind for x in mech.bodies]
    result = differences(mech, back)
    assert max(result.values()) < 1e-13, result
    for one, two in zip(mech.bodies, back.bodies, strict=True):
        np.testing.assert_allclose(one.outboard.matrix, two.outboard.matrix, atol=1e-15)


SPLIT: list[Hinge] = [
    Universal((0.6, 0.8, 0), (0, 0, 1)),
    Gimbal(),
    Cylindrical((0, 0.6, 0.8)),
    Helical((0.6, 0, 0.8), 0.05),
    Translation(),
    Screws(((0, 0, 1, 0.3, 0.1, 0.02), (0, 0, 0, 0.6, 0.8, 0), (1, 0, 0, 0, 0.5, 0))),
    Universal().reversed(),
    Gimbal().reversed(),
]


@pytest.mark.parametrize("away", [False, True], ids=["frame at hinge", "frame away"])
@pytest.mark.parametrize("hinge", SPLIT, ids=lambda hinge: hinge.describe())
def test_other_hinges_become_rows_of_joints_with_the_same_poses(hinge: Hinge, away: bool):
    mech = chain(Pin(), hinge, Pin(), drive=Drive(damping=0.5), away=away)
    back, report = again(mech)
    assert {"b0", "b1", "b2"} <= {body.name for body in back.bodies}
    assert [i.element for i in report] == ["hinge 'h1'"]
    assert "is split into the joints" in report.items[0].reason
    q = RNG.uniform(-1.0, 1.0, mech.nq)
    q_back = back.neutral()
    q_back[back.q_slice("h0")], q_back[back.q_slice("h2")] = q[:1], q[-1:]
    ours = q[mech.q_slice("h1")]
    for dof, coordinate in enumerate(hinge.coordinates):
        name = "h1" if hinge.nv == 1 else f"h1__{coordinate.name}"
        q_back[back.q_slice(name)] = ours[dof]
        assert back.hinge(name).drive.damping == 0.5
    for coupling in back.couplings:  # a screw's travel follows its turn
        ((source, (pitch,)),) = coupling.terms
        q_back[back.q_slice(coupling.dependent)] = pitch * q_back[back.q_slice(source)]
    for name in ("b0", "b1", "b2"):
        np.testing.assert_allclose(
            back.pose(q_back, name).matrix, mech.pose(q, name).matrix, atol=1e-14
        )
    assert float(back.total_mass) == pytest.approx(float(mech.total_mass), rel=1e-15)
    np.testing.assert_allclose(back.center_of_mass(q_back), mech.center_of_mass(q), atol=1e-14)


def test_couplings_of_split_hinges_keep_their_meaning():
    builder = Builder("r")
    builder.body("a", "world", Universal(), hinge_name="h", inertia=some_inertia())
    builder.body("b", "a", Pin(), hinge_name="k", inertia=some_inertia())
    builder.couple("c", "h[1]", {"k": 2.0}, offset=0.1)
    back, _ = again(builder.build())
    (coupling,) = back.couplings
    assert (coupling.dependent, coupling.terms) == ("h__angle_2", (("k", (2.0,)),))


def test_couplings_of_a_planar_hinge_keep_their_meaning():
    builder = Builder("r")
    builder.body("a", "world", Planar(), hinge_name="h", inertia=some_inertia())
    builder.body("b", "a", Pin(), hinge_name="k", inertia=some_inertia())
    builder.couple("c", "h[2]", {"k": 2.0}, offset=0.1)
    mech = builder.build()
    back, report = again(mech)
    assert back.couplings == mech.couplings
    assert [i.element for i in report] == ["coupling 'c'"]


@pytest.mark.parametrize(
    ("hinge", "advice"),
    [
        (Spherical().reversed(), "save it as MJCF, which has ball joints, or use a Gimbal hinge"),
        (RollingBall(0.1), r"use other hinges, or lock it with mech.lock\(\[...\]\) before saving"),
        (Screws(((0, 0, 2, 0, 0, 0),)), "use other hinges"),
    ],
)
def test_hinges_that_urdf_cannot_express(hinge: Hinge, advice: str):
    with pytest.raises(ModelError, match=f"body 'b0' moves on a .*cannot express; {advice}"):
        again(chain(hinge))


def test_split_is_only_for_products_of_screws():
    assert split_hinge(Free()) is None
    assert split_hinge(Spherical().reversed()) is None


def test_locked_bodies_become_fixed_links_where_they_are_held():
    mech = chain(Pin(), Locked(Universal(), (0.3, 0.4)), Pin(), away=True)
    back, _ = again(mech)
    assert [b.name for b in back.bodies] == ["b0", "b2"]
    q = np.array([0.2, 0.7])
    for name in ("b0", "b1", "b2"):
        np.testing.assert_allclose(back.pose(q, name).matrix, mech.pose(q, name).matrix, atol=1e-14)


def test_drives_round_trip():
    drive = Drive(
        rotor_inertia=1e-4,
        gear_ratio=-50.0,
        damping=0.1,
        friction=0.2,
        stiffness=3.0,
        rest=0.4,
        lower=-1.0,
        upper=2.0,
        effort=5.0,
        velocity=6.0,
    )
    mech = chain(Pin(), Prismatic(), drive=drive)
    back, report = again(mech)
    assert [body.drive for body in back.bodies] == [drive, drive]
    assert {i.reason for i in report} == {
        "its spring is written as <linkwise:spring>, which only Linkwise reads"
    }


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"lower": -1.0},
        {"upper": 1.0},
        {"effort": 2.0},
        {"velocity": 2.0},
        {"lower": 0.0, "upper": 0.0},
    ],
)
@pytest.mark.parametrize("hinge", [Pin(), Prismatic()])
def test_infinite_limits_stay_infinite(hinge: Hinge, limits: dict[str, float]):
    mech = chain(hinge, drive=Drive(**limits))
    back, report = again(mech)
    assert back.bodies[0].drive == mech.bodies[0].drive
    assert len(report) == 0
    assert {item.effect for item in back.load_report} == ({"kept"} if limits else set())


@pytest.mark.parametrize("ratio", [0.0, 1e-200, 1e-12, -3.0])
def test_armature_behind_any_gear_is_kept(ratio: float):
    mech = chain(Pin(), drive=Drive(armature=0.2, rotor_inertia=0.1, gear_ratio=ratio))
    np.testing.assert_allclose(again(mech)[0].armature, mech.armature, rtol=1e-15)


def test_a_lock_that_is_not_written_is_reported():
    back, report = again(chain(Pin()).lock(["b0"]))
    assert back.nv == 0
    assert "that it is a pin hinge is not written" in str(report)


def test_armature_goes_into_the_rotor():
    for drive in (Drive(armature=0.5), Drive(armature=0.5, rotor_inertia=0.01, gear_ratio=10.0)):
        mech = chain(Pin(), drive=drive)
        back, _ = again(mech)
        np.testing.assert_allclose(back.armature, mech.armature, rtol=1e-15)
        assert back.bodies[0].drive.gear_ratio == drive.gear_ratio


def test_what_has_no_place_is_reported():
    mech = chain(Free(), drive=Drive(damping=1.0))
    _, report = again(mech)
    assert [(i.element, i.effect, i.affects) for i in report] == [
        ("hinge 'h0'", "ignored", "motion")
    ]
    builder = Builder("moon", gravity=(0, 0, -1.62))
    builder.body("b", "world", Pin(), inertia=some_inertia())
    _, report = again(builder.build())
    assert [(i.element, i.affects) for i in report] == [("gravity", "motion")]


def test_nodes_with_inertia_and_frames():
    builder = Builder("r")
    builder.body("b", "world", Pin(), inertia=some_inertia())
    builder.node("tool", "b", some_pose(), inertia=some_inertia(), kind="link")
    builder.node("load", "b", some_pose(), inertia=some_inertia(), kind="payload")
    builder.node("tcp", "b", some_pose())
    builder.node("camera", "world", some_pose())
    mech = builder.build()
    back, _ = again(mech)
    result = differences(mech, back)
    assert max(result.values()) < 1e-13, result
    assert {n.name for n in back.nodes} == {"tool", "load", "tcp", "camera"}


def test_the_root_link_stays_the_root():
    mech = read(arm("continuous"))
    back, _ = again(mech)
    assert [(n.name, n.body) for n in back.nodes] == [("base", "world")]
    one, two = mech.node("base").inertia, back.node("base").inertia
    assert one is not None and two is not None
    np.testing.assert_allclose(one.matrix, two.matrix, rtol=1e-15)


def test_free_base_is_written_as_a_floating_joint():
    mech = read(arm("continuous"), base="free")
    back, report = again(mech)
    assert back.nv == 7
    assert back.nodes == ()
    assert len(report) == 0
    assert max(differences(mech, back).values()) < 1e-14


def test_geometry_round_trip():
    rgba = (0.1, 0.2, 0.3, 0.4)
    shapes = (
        Geometry("one", "box", (0.1, 0.2, 0.3), some_pose(), "visual", rgba),
        Geometry("", "sphere", (0.1,), Pose.identity(), "collision"),
        Geometry("", "cylinder", (0.1, 0.2), some_pose(), "visual"),
        Geometry(
            "m", "mesh", (), some_pose(), "visual", rgba, "package://p/m.stl", (1.0, 2.0, 3.0)
        ),
    )
    builder = Builder("r")
    builder.body("b", "world", Pin(), inertia=some_inertia(), geometry=shapes)
    back, report = again(builder.build())
    for one, two in zip(shapes, back.bodies[0].geometry, strict=True):
        assert (one.name, one.shape, one.size, one.role) == (
            two.name,
            two.shape,
            two.size,
            two.role,
        )
        assert (one.rgba, one.file, one.scale) == (two.rgba, two.file, two.scale)
        np.testing.assert_allclose(one.pose.matrix, two.pose.matrix, atol=2e-15)
    assert len(report) == 0


def test_capsules_and_ellipsoids_are_written_so_that_readers_know_them():
    pose = some_pose()
    shapes = (
        Geometry("c", "capsule", (0.1, 0.4), pose, "visual", (1.0, 0.0, 0.0, 1.0)),
        Geometry("s", "capsule", (0.1, 0.0), pose, "collision"),
        Geometry("e", "ellipsoid", (0.1, 0.2, 0.3), pose, "visual"),
        Geometry("b", "ellipsoid", (0.2, 0.2, 0.2), pose, "visual"),
    )
    builder = Builder("r")
    builder.body("b", "world", Pin(), inertia=some_inertia(), geometry=shapes)
    mech, reporter = builder.build(), Reporter("out.urdf")
    text = write_urdf(mech, reporter)
    back = read(text).bodies[0].geometry
    assert [(g.shape, g.size, g.role) for g in back] == [
        ("cylinder", (0.1, 0.4), "visual"),
        ("sphere", (0.1,), "visual"),
        ("sphere", (0.1,), "visual"),
        ("sphere", (0.1,), "collision"),
        ("sphere", (0.2,), "visual"),
    ]
    for shape, height in zip(back[1:3], (-0.2, 0.2), strict=True):
        np.testing.assert_allclose(shape.pose.p, pose.apply((0.0, 0.0, height)), atol=1e-15)
        assert shape.rgba == (1.0, 0.0, 0.0, 1.0)
    assert [(i.element, i.effect, i.affects) for i in reporter.report()] == [
        ("shape 'c' of 'b'", "approximate", "appearance"),
        ("shape 's' of 'b'", "approximate", "contact"),
        ("shape 'e' of 'b'", "ignored", "appearance"),
    ]
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(text)
    result = pin.buildGeomFromUrdfString(model, text, pin.GeometryType.VISUAL)
    assert len(result.geometryObjects) == 4  # urdfdom reads every one of them


def test_ball_joints_come_back():
    mech = chain(Spherical())
    back, report = again(mech)
    assert isinstance(back.bodies[0].hinge, Spherical)
    assert max(differences(mech, back).values()) < 1e-14
    assert [(i.effect, i.affects) for i in report] == [("approximate", "motion")]
    assert "'spherical', which is not in the specification" in str(report)
    damped = chain(Spherical(), drive=Drive(damping=0.1))
    reasons = [i.reason for i in again(damped)[1].affecting("motion") if i.effect == "ignored"]
    assert reasons == ["limits, damping or armature of a spherical hinge cannot be written"]


def test_shapes_for_both_and_planes():
    shapes = (
        Geometry("", "box", (0.1, 0.2, 0.3), Pose.identity(), "both"),
        Geometry("floor", "plane", (0.0, 0.0), Pose.identity(), "visual"),
    )
    builder = Builder("r")
    builder.body("b", "world", Pin(), inertia=some_inertia(), geometry=shapes)
    back, report = again(builder.build())
    assert [g.role for g in back.bodies[0].geometry] == ["visual", "collision"]
    assert [i.reason for i in report] == ["a plane has no form in URDF"]


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, 1.5707963, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_rpy_is_exact_at_gimbal_lock(pitch: float, seed: int):
    roll, yaw = np.random.default_rng(seed).uniform(-3, 3, 2)
    builder = Builder("r")
    turn = Pose.rotation(rotation.rpy(roll, pitch, yaw))
    builder.body("b", "world", Pin(), inboard=turn, inertia=some_inertia())
    back, _ = again(builder.build())
    np.testing.assert_allclose(back.bodies[0].inboard.rot, turn.rot, atol=1e-15)


def test_names_are_escaped():
    builder = Builder('r "<&>"')
    names = ["a \"<&>'", "b\nc\td", "ü ☃"]
    parent = "world"
    for name in names:
        builder.body(name, parent, Pin(), hinge_name=f"{name} hinge", inertia=some_inertia())
        parent = name
    back, _ = again(builder.build())
    assert back.name == 'r "<&>"'
    assert [b.name for b in back.bodies] == names


def test_marked_links_in_a_row_are_read_as_they_stand():
    mark = '<origin xyz="0 0 1"/><linkwise:outboard/>'
    text = robot(
        *(link(name, "") for name in "abcd"),
        joint("j", "continuous", "a", "b"),
        joint("f", "fixed", "b", "c", mark),
        joint("g", "fixed", "c", "d", mark),
    )
    mech = read(text)
    assert [b.name for b in mech.bodies] == ["c"]
    assert mech.pose(np.zeros(1), "d").p.tolist() == [0, 0, 2]


def test_generated_names_avoid_the_users():
    builder = Builder("r")
    for name, parent in (("b__hinge", "world"), ("b", "b__hinge"), ("b__outboard", "b")):
        hinge_name = {"b__hinge": "b__outboard"}.get(name, name)
        builder.body(
            name,
            parent,
            Pin(),
            hinge_name=hinge_name if name != "b__outboard" else "last",
            outboard=some_pose(),
            inertia=some_inertia(),
        )
    mech = builder.build()
    assert max(differences(mech, again(mech)[0]).values()) < 1e-13


def test_save_and_load_files(tmp_path):
    mech = read(arm("continuous"))
    assert len(save(mech, tmp_path / "arm.urdf")) == 0
    assert max(differences(mech, load(tmp_path / "arm.urdf")).values()) < 1e-15
    save(mech, tmp_path / "arm.txt", format="urdf")
    assert parse_xml((tmp_path / "arm.txt").read_bytes()).tag == "robot"
    with pytest.raises(
        ModelError, match=r"the suffix of 'arm.txt' does not name a format; use .urdf"
    ):
        save(mech, tmp_path / "arm.txt")


def test_prefixes_are_declared(tmp_path):
    # ElementTree insists on declared prefixes.
    mech = chain(Pin(), drive=Drive(stiffness=1.0, armature=0.1), away=True)
    save(mech, tmp_path / "a.urdf")
    tags = {element.tag for element in ElementTree.parse(tmp_path / "a.urdf").iter()}
    assert {"{urn:linkwise}spring", "{urn:linkwise}outboard"} <= tags


def test_a_first_moment_without_mass_is_refused():
    inertia = SpatialInertia(np.zeros(()), np.array([1.0, 0, 0]), np.eye(3))
    builder = Builder("r")
    builder.body("b", "world", Pin(), inertia=inertia)
    with pytest.raises(ModelError, match="link 'b' has no mass but a first moment"):
        again(builder.build())


def test_custom_hinges_are_refused_by_name():
    def diagonal(q):
        return np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3)), q * np.ones(3)

    hinge = CustomHinge("diagonal", (("way", "m"),), diagonal)
    with pytest.raises(ModelError, match=r"body 'b0' moves on a .*, which URDF cannot express"):
        again(chain(hinge))


def test_second_writing_is_the_first(tmp_path):
    text = robot(
        *(link(name) for name in "abc"),
        joint("j", "revolute", "a", "b", '<limit lower="0" upper="1" effort="1" velocity="1"/>'),
        joint("f", "fixed", "b", "c", '<origin xyz="1 2 3"/>'),
    )
    first, second = tmp_path / "1.urdf", tmp_path / "2.urdf"
    save(read(text), first)
    save(load(first), second)
    assert first.read_text().splitlines()[3:] == second.read_text().splitlines()[3:]


def test_the_root_link_is_written_as_the_root(tmp_path):
    """No link is put above it, and none that moves, or is a frame only, takes its place."""
    text = robot(
        link("pedestal"), link("arm"), joint("j", "continuous", "pedestal", "arm"),
        link("tool"), joint("weld", "fixed", "arm", "tool"),
    )  # fmt: skip
    mech = read(text)
    assert {n.body for n in mech.nodes} == {"world", "arm"}
    save(mech, tmp_path / "r.urdf")
    root = parse_xml((tmp_path / "r.urdf").read_text(), "r.urdf")
    links = {x.attrib["name"] for x in root.children if x.tag == "link"}
    children = {
        y.attrib["link"]
        for x in root.children
        if x.tag == "joint"
        for y in x.children
        if y.tag == "child"
    }
    assert links == {"pedestal", "arm", "tool"} and links - children == {"pedestal"}


def test_the_root_link_of_a_file_stays_its_root(tmp_path):
    """Neither a frame on the ground nor a link that is fixed to a body takes its place."""
    text = """<robot name="r"><link name="base"/><link name="arm"/><link name="plate"/>
        <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint>
        <joint name="weld" type="fixed"><parent link="arm"/><child link="plate"/></joint></robot>"""
    (tmp_path / "read.urdf").write_text(text)
    mech = load(tmp_path / "read.urdf").with_node("mark", "world")
    save(mech, tmp_path / "saved.urdf")
    robot = ElementTree.parse(tmp_path / "saved.urdf").getroot()
    children = {joint.find("child").get("link") for joint in robot.iter("joint")}
    links = {link.get("name") for link in robot.iter("link")}
    assert links == {"base", "arm", "plate", "mark"} and links - children == {"base"}


ROUGH = Surface(0.1, torsional=0.02, condim=4, contype=2, conaffinity=2, margin=0.01)


def touching(*shapes: Geometry, rules: ContactRules | None = None) -> Mechanism:
    builder = Builder("r")
    builder.body("b", "world", Free(), inertia=some_inertia(), geometry=shapes)
    return builder.build(contact_rules=rules)


def test_friction_of_shapes_is_written_whatever_their_priority():
    box = Geometry("box", "box", (0.2, 0.2, 0.2), Pose.identity(), "collision")
    back, report = again(touching(replace(box, surface=Surface(0.1))))
    assert back.body("b").geometry[0].surface == Surface(0.1, priority=1)
    assert [(i.element, i.effect, i.affects) for i in report] == [
        ("friction of 'b'", "approximate", "contact")
    ]
    back, report = again(touching(replace(box, surface=Surface(0.1)), box))
    assert [(i.effect, i.affects) for i in report] == [("ignored", "motion")]
    back, report = again(touching(box))  # nothing but what every file means
    assert back.body("b").geometry[0].surface == Surface() and not len(report)
    seen = replace(box, role="visual", surface=Surface(0.1, contype=0))
    assert not len(again(touching(seen))[1])


def test_contact_laws_that_a_urdf_cannot_say_are_lost_aloud(tmp_path):
    shapes = [
        Geometry("box", "box", (0.2, 0.2, 0.2), Pose.identity(), "both", surface=ROUGH),
        Geometry("egg", "ellipsoid", (0.1, 0.2, 0.3), Pose.identity(), "collision"),
        Geometry("floor", "plane", (0.0, 0.0), Pose.identity()),
    ]
    rules = ContactRules((ContactPair("box", "egg"),), (("b", "world"),), False, False)
    mech = touching(*shapes, rules=rules)
    _, report = again(mech)
    lost = [i.element for i in report if (i.effect, i.affects) == ("ignored", "motion")]
    assert lost == [
        "shape 'egg' of 'b'",
        "shape 'floor' of 'b'",
        "friction of 'b'",
        "masks of 'box'",
        "spinning and rolling friction, or none of 'box'",
        "margins of 'box'",
        "contact pairs 'box' and 'egg'",
        "exclusion of 'b' and 'world'",
        "contacts with parents",
        "contacts that are off",
    ]
    with pytest.warns(UserWarning, match=r"does not move like 'r'(.|\n)*shape 'egg'(.|\n)*5 more"):
        save(mech, tmp_path / "r.urdf")
    for strict in ("motion", True):
        with pytest.raises(ModelError, match="refuses this:\n  shape 'egg' of 'b'"):
            save(mech, tmp_path / "refused.urdf", strict=strict)
    assert not (tmp_path / "refused.urdf").exists()
    save(mech, tmp_path / "r.json", strict=True)
    with pytest.raises(ModelError, match="allowed are False, True and 'motion'"):
        save(mech, tmp_path / "r.json", strict="some")
