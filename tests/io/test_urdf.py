"""Reading URDF: what each element becomes, checked by hand on small robots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ParseError
from linkwise.io.load import load
from linkwise.io.report import Reporter
from linkwise.io.urdf.write import write_urdf
from linkwise.model.contact import Surface, combined
from linkwise.model.hinges import Free, Locked, Pin, Planar, Prismatic, Spherical, Translation
from linkwise.spatial import rotation
from tests.io.urdf_text import INERTIAL, arm, joint, link, read, robot

LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


@pytest.mark.parametrize(
    ("kind", "hinge", "nv"),
    [
        ("revolute", Pin((0, 0, 1)), 1),
        ("continuous", Pin((0, 0, 1)), 1),
        ("prismatic", Prismatic((0, 0, 1)), 1),
        ("planar", Planar((0, 0, 1)), 3),
        ("floating", Free(), 6),
        ("spherical", Spherical(), 3),
    ],
)
def test_joint_types(kind: str, hinge: object, nv: int):
    mech = read(arm(kind, '<axis xyz="0 0 2"/>'))
    assert mech.hinge("j").hinge == hinge
    assert mech.nv == nv
    assert mech.hinge("j").name == "tip"


def test_fixed_joint_melts_into_its_parent_or_stays():
    text = robot(
        link("base"),
        link("tip"),
        link("tool"),
        joint("j", "revolute", "base", "tip", LIMIT),
        joint("f", "fixed", "tip", "tool", '<origin xyz="0 0 1" rpy="0 1.5 0"/>'),
    )
    mech = read(text)
    assert [b.name for b in mech.bodies] == ["tip"]
    assert {(n.name, n.body, n.kind) for n in mech.nodes} == {
        ("base", "world", "link"),
        ("tool", "tip", "link"),
    }
    assert mech.total_mass == 4.0  # the base stands on the ground and does not count
    kept = read(text, keep_fixed=True)
    assert isinstance(kept.hinge("f").hinge, Locked)
    q = np.array([0.3])
    np.testing.assert_allclose(kept.pose(q, "tool").matrix, mech.pose(q, "tool").matrix, atol=1e-15)
    np.testing.assert_allclose(kept.center_of_mass(q), mech.center_of_mass(q), atol=1e-15)


def test_default_axis_is_x_and_any_length_will_do():
    assert read(arm("continuous")).hinge("j").hinge == Pin((1, 0, 0))
    axis = read(arm("continuous", '<axis xyz="0 3e-200 4e-200"/>')).hinge("j").hinge
    np.testing.assert_allclose(axis.axis, (0, 0.6, 0.8), atol=1e-15)


def test_origin_and_inertial_are_turned_by_their_rpy():
    text = robot(
        link("base"),
        link(
            "tip",
            '<inertial><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><mass value="2"/>'
            '<inertia ixx="3" ixy="0" ixz="0" iyy="4" iyz="0" izz="5"/></inertial>',
        ),
        joint("j", "prismatic", "base", "tip", LIMIT + '<origin xyz="0 0 1" rpy="0.3 0.2 0.1"/>'),
    )
    body = read(text).body("tip")
    rot = rotation.rpy(0.1, 0.2, 0.3)
    np.testing.assert_allclose(body.inertia.com, (1, 2, 3), atol=1e-15)
    np.testing.assert_allclose(body.inertia.J_com, rot @ np.diag([3, 4, 5]) @ rot.T, atol=1e-13)
    np.testing.assert_allclose(body.inboard.rot, rotation.rpy(0.3, 0.2, 0.1), atol=1e-15)


def test_quaternion_in_origin():
    half = np.sqrt(0.5)
    text = f'<origin xyz="0 0 1" quat_xyzw="0 0 {half} {half}"/>'
    body = read(arm("continuous", text)).body("tip")
    np.testing.assert_allclose(body.inboard.rot, rotation.rpy(0, 0, np.pi / 2), atol=1e-15)


def test_limits_and_dynamics():
    inside = LIMIT + '<dynamics damping="0.5" friction="0.25"/>'
    drive = read(arm("revolute", inside)).hinge("j").drive
    assert (drive.lower, drive.upper, drive.effort, drive.velocity) == (-1, 2, 3, 4)
    assert (drive.damping, drive.friction) == (0.5, 0.25)
    free = read(arm("continuous", LIMIT))
    assert (free.lower[0], free.upper[0]) == (-np.inf, np.inf)
    assert free.hinge("j").drive.effort == 3
    reasons = [i.reason for i in free.load_report if i.effect != "kept"]
    assert reasons == ["a continuous joint has no lower and upper"]
    huge = '<limit lower="-1e308" upper="1e308" effort="1e308" velocity="1"/>'
    assert read(arm("prismatic", huge)).upper[0] == np.inf


def test_limits_default_to_zero_as_specified():
    drive = read(arm("revolute", '<limit effort="1" velocity="1"/>')).hinge("j").drive
    assert (drive.lower, drive.upper) == (0.0, 0.0)


def test_order_is_the_files_depth_first():
    text = robot(
        *(link(name) for name in "abcde"),
        joint("j4", "continuous", "c", "e"),
        joint("j1", "continuous", "a", "c"),
        joint("j2", "continuous", "a", "b"),
        joint("j3", "continuous", "b", "d"),
    )
    assert [b.name for b in read(text).bodies] == ["c", "e", "b", "d"]


@pytest.mark.parametrize(("base", "nv"), [("auto", 1), ("fixed", 1), ("free", 7)])
def test_base(base: str, nv: int):
    mech = read(arm("revolute", LIMIT), base=base)
    assert mech.nv == nv
    if base == "free":
        assert mech.hinge("root_joint").name == "base"
        assert mech.total_mass == 4.0


def test_base_by_a_hinge_of_ones_own():
    mech = read(arm("revolute", LIMIT), base=Translation())
    assert mech.hinge("root_joint").hinge == Translation()
    with pytest.raises(ModelError, match="allowed are 'auto', 'fixed', 'free' or a Hinge"):
        read(arm("revolute", LIMIT), base="floating")


def test_a_root_called_world_is_the_ground():
    text = robot(link("world", ""), link("tip"), joint("j", "floating", "world", "tip"))
    mech = read(text)
    assert mech.nodes == ()
    assert len(mech.load_report) == 0
    heavy = read(robot(link("world"), link("tip"), joint("j", "floating", "world", "tip")))
    assert [n.name for n in heavy.nodes] == ["world_link"]
    assert "means the ground here; this link is called 'world_link'" in str(heavy.load_report)


def test_geometry_and_materials():
    text = robot(
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        link(
            "base",
            '<visual name="v"><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry>'
            '<material name="red"/></visual>'
            '<visual><geometry><mesh filename="package://x/y.stl" scale="2 2 2"/></geometry>'
            '<material name="blue"><color rgba="0 0 1 0.5"/></material></visual>'
            '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>'
            '<collision><geometry><sphere radius="3"/></geometry></collision>'
            '<collision><geometry><capsule radius="1" length="2"/></geometry></collision>',
        ),
    )
    mech = read(text)
    box, mesh, cylinder, sphere, capsule = mech.nodes[0].geometry
    assert (box.name, box.shape, box.size, box.role, box.rgba) == (
        ("v", "box", (1, 2, 3), "visual", (1, 0, 0, 1))
    )
    assert box.pose.p.tolist() == [1, 0, 0]
    assert (mesh.shape, mesh.file, mesh.scale) == ("mesh", "package://x/y.stl", (2, 2, 2))
    assert mesh.rgba == (0, 0, 1, 0.5)
    assert (cylinder.size, cylinder.role) == ((1, 2), "collision")
    assert (sphere.shape, sphere.size) == ("sphere", (3,))
    assert (capsule.shape, capsule.size) == ("capsule", (1, 2))
    assert [(i.element, i.affects) for i in mech.load_report] == [("<mesh>", "appearance")]


def test_mimic_becomes_a_coupling_and_chains_are_resolved():
    text = robot(
        *(link(name) for name in "abcd"),
        joint("j1", "continuous", "a", "b", '<mimic joint="j2" multiplier="2" offset="0.5"/>'),
        joint("j2", "continuous", "b", "c", '<mimic joint="j3" multiplier="3" offset="0.25"/>'),
        joint("j3", "continuous", "c", "d"),
    )
    mech = read(text)
    result = {c.dependent: (c.terms, c.offset) for c in mech.couplings}
    assert result == {"j1": ((("j3", (6.0,)),), 1.0), "j2": ((("j3", (3.0,)),), 0.25)}


def test_a_joint_that_follows_a_fixed_one_is_locked():
    text = robot(
        *(link(name) for name in "abc"),
        joint("j1", "fixed", "a", "b"),
        joint("j2", "continuous", "b", "c", '<axis xyz="0 0 1"/><mimic joint="j1" offset="0.5"/>'),
    )
    mech = read(text)
    assert mech.nv == 0
    np.testing.assert_allclose(mech.pose(np.zeros(0), "c").rot, rotation.rpy(0, 0, 0.5), atol=1e-15)
    assert [(i.line, i.affects) for i in mech.load_report] == [(6, "motion")]


@pytest.mark.parametrize(
    ("inside", "rotor", "ratio"),
    [
        ('<drake:rotor_inertia value="1e-4"/><drake:gear_ratio value="50"/>', 1e-4, 50),
        (
            "<motorInertia>2e-4</motorInertia><mechanicalReduction>-9</mechanicalReduction>",
            2e-4,
            -9,
        ),
        ("<mechanicalReduction>160</mechanicalReduction>", 0.0, 160),
        ("", 0.0, 1.0),
    ],
)
def test_transmissions(inside: str, rotor: float, ratio: float):
    transmission = (
        '<transmission name="t"><type>Simple</type><joint name="j"><hardwareInterface>e'
        f'</hardwareInterface></joint><actuator name="m">{inside}</actuator></transmission>'
    )
    mech = read(arm("continuous", "", transmission))
    drive = mech.hinge("j").drive
    assert (drive.rotor_inertia, drive.gear_ratio) == (rotor, ratio)
    assert mech.armature[0] == pytest.approx(ratio**2 * rotor)
    assert [(i.line, i.affects, i.effect) for i in mech.load_report] == [
        (5, "control", "approximate"),
        (5, "motion", "kept"),
    ]
    assert mech.actuators == (lw.Actuator.motor("t", "j"),)


def test_motors_are_written_as_transmissions():
    text = '<transmission name="t"><joint name="j"/><actuator name="m"/></transmission>'
    mech = read(arm("continuous", "", text)).with_drive("j", rotor_inertia=0.1, gear_ratio=3.0)
    again = read(write_urdf(mech, Reporter("w.urdf")))
    assert again.actuators == mech.actuators
    assert again.armature[0] == mech.armature[0]
    servo = lw.Actuator.position("s", "j", kp=1.0)
    driven = replace(mech, actuators=(servo,))
    reporter = Reporter("w.urdf")
    assert read(write_urdf(driven, reporter)).actuators == ()
    assert [item.element for item in reporter.report()] == ["actuator 's'"]


def test_transmission_of_several_joints_is_reported_by_what_it_affects():
    text = arm(
        "continuous",
        "",
        '<transmission><joint name="j"/><joint name="k"/><actuator name="m">'
        "<motorInertia>1</motorInertia></actuator></transmission>",
        '<transmission><joint name="nobody"/><actuator name="m"/></transmission>',
    )
    mech = read(text)
    assert [(i.line, i.affects) for i in mech.load_report] == [(5, "motion"), (6, "control")]
    assert "there is no joint called 'nobody'" in mech.load_report.items[1].reason


@pytest.mark.parametrize("swapped", [False, True])
def test_differential_transmissions(swapped: bool):
    """Two motors turn two joints: what they do to both is the power of their shafts."""
    ends = [
        f'<joint name="{n}"><role>joint{i}</role>'
        f"<mechanicalReduction>{r}</mechanicalReduction></joint>"
        for i, n, r in ((1, "j", 2), (2, "k", 3))
    ]
    motors = [
        f'<actuator name="m{i}"><role>actuator{i}</role>'
        f"<mechanicalReduction>{r}</mechanicalReduction></actuator>"
        for i, r in ((1, 10), (2, -5))
    ]
    inside = "".join([*ends[::-1], *motors[::-1]] if swapped else [*ends, *motors])
    kind = "<type>transmission_interface/DifferentialTransmission</type>"
    text = robot(
        link("base"),
        *(link(x, INERTIAL) for x in ("l", "m")),
        joint("j", "continuous", "base", "l"),
        joint("k", "continuous", "l", "m", '<axis xyz="0 1 0"/>'),
        f'<transmission name="wrist">{kind}{inside}</transmission>',
    )
    mech = read(text)

    def shafts(q: np.ndarray) -> np.ndarray:
        both = 2.0 * q[0] + 3.0 * q[1], 2.0 * q[0] - 3.0 * q[1]
        return np.array([10.0 * both[0], -5.0 * both[1]])

    turned = np.array([shafts(x) for x in np.eye(2)])  # τ = (∂shafts/∂q)* u
    command, still = np.array([0.01, 0.03]), np.zeros(2)
    assert sorted(x.name for x in mech.actuators) == ["m1", "m2"]
    controls = [command[("m1", "m2").index(x.name)] for x in mech.actuators]
    assert [(i.affects, i.effect) for i in mech.load_report] == [
        ("control", "approximate"),
        ("motion", "kept"),
    ]
    options = {"duration": 0.05, "step": 1e-3}
    run = lw.rollout(mech, still, controls=np.array(controls), **options)
    reference = lw.rollout(mech, still, tau=turned @ command, **options)
    assert np.abs(run.q[-1]).min() > 1e-4
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-12)
    report = Reporter("written.urdf")
    again = read(write_urdf(mech, report))
    assert not report.report().affecting("motion")
    for one, other in zip(mech.actuators, again.actuators, strict=True):
        assert one.name == other.name and [x for x, _ in one.joints] == [x for x, _ in other.joints]
        gears = [[x for _, x in each.joints] for each in (one, other)]
        np.testing.assert_allclose(gears[1], gears[0], rtol=1e-15)
    mech = read(text.replace('<joint name="k"><role>', '<joint name="nobody"><role>'))
    assert not mech.actuators
    assert "'nobody' is not one of two joints" in mech.load_report.items[-1].reason


def test_spring_extension():
    drive = read(arm("continuous", '<linkwise:spring stiffness="5" rest="0.1"/>')).hinge("j").drive
    assert (drive.stiffness, drive.rest) == (5.0, 0.1)


def test_friction_for_gazebo_belongs_to_the_shapes_of_a_link():
    ball = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    visual = ball.replace("collision", "visual")
    text = robot(
        link("base"),
        link("tip", INERTIAL + ball + visual),
        joint("j", "continuous", "base", "tip"),
        '<gazebo reference="tip"><mu1>0.5</mu1><mu2>0.4</mu2></gazebo>',
        '<gazebo reference="nobody"><mu1>0.5</mu1></gazebo>',
    )
    mech = read(text)
    notes = [(i.line, i.effect, i.affects) for i in mech.load_report]
    assert notes[-2:] == [(5, "approximate", "contact"), (6, "ignored", "contact")]
    for robot_ in (mech, read(write_urdf(mech, Reporter("r.urdf")))):
        touched, seen = robot_.body("tip").geometry
        assert (touched.surface.friction, touched.surface.priority) == (0.4, 1)
        assert seen.surface == Surface()
    floor = combined(Surface(), touched.surface)
    assert floor.friction == 0.4
    for bad in ("-1", "rough", "inf"):
        with pytest.raises(ParseError, match="not a coefficient of friction"):
            read(text.replace("0.4", bad))


def test_nothing_is_dropped_in_silence():
    text = robot(
        link("base", INERTIAL + '<contact><lateral_friction value="1"/></contact>'),
        link("tip"),
        joint("j", "revolute", "base", "tip", LIMIT + '<safety_controller k_velocity="1"/>'),
        '<gazebo reference="tip"><mu1>0.5</mu1><kp>1</kp></gazebo>',
        '<gazebo reference="j"><springStiffness>1</springStiffness></gazebo>',
        '<ros2_control name="c" type="system"/>',
        '<sensor name="s"/>',
        "<banana/>",
    )
    mech = read(text)
    assert [(i.line, i.element, i.affects) for i in mech.load_report] == [
        (2, "<contact>", "contact"),
        (4, "<safety_controller>", "control"),
        (4, '<joint name="j">', "motion"),
        (4, '<joint name="j">', "motion"),
        (4, '<joint name="j">', "motion"),
        (5, "<gazebo>", "contact"),
        (6, "<gazebo>", "motion"),
        (7, '<ros2_control name="c">', "control"),
        (8, '<sensor name="s">', "control"),
        (9, "<banana>", "other"),
    ]
    with pytest.raises(ParseError, match=r"r\.urdf:9: <banana> is ignored \(affects other\)"):
        read(robot(link("base"), *[""] * 6, "<banana/>"), strict=True)
    with pytest.raises(ParseError, match=r"r\.urdf:6: <gazebo> is ignored \(affects motion\)"):
        read(text, strict="motion")
    assert read(robot(link("base"), "<banana/>"), strict="motion").n_bodies == 0
    with pytest.raises(ModelError, match="allowed are False, True and 'motion'"):
        read(text, strict="yes")


def test_unknown_attributes_are_reported():
    inside = '<limit lower="0" upper="1" effort="1" velocity="1" current="5"/>'
    item, *kept = read(arm("revolute", inside)).load_report
    assert (item.line, item.reason) == (4, "attributes not read: current")
    assert [i.effect for i in kept] == ["kept"] * 3


def test_revolute_without_limit_is_reported():
    (item,) = read(arm("revolute")).load_report
    assert (item.effect, item.affects) == ("approximate", "motion")


def test_frames_without_links():
    text = arm(
        "continuous",
        "",
        '<fixed_frame name="tcp"><parent link="tip"/><origin xyz="0 0 1"/></fixed_frame>',
        '<frame name="eye" link="base" xyz="0 1 0" rpy="0 0 0"/>',
    )
    mech = read(text)
    assert [(n.name, n.body, n.kind) for n in mech.nodes[1:]] == [
        ("tcp", "tip", "frame"),
        ("eye", "world", "frame"),
    ]


def test_invalid_physics_loads_and_is_found_by_validate():
    inertial = (
        '<inertial><mass value="-1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    )
    mech = read(robot(link("base"), link("tip", inertial), joint("j", "continuous", "base", "tip")))
    assert any(f.code == "mass" and "tip" in f.where for f in mech.validate())


@pytest.mark.prove
def test_a_chain_of_many_links():
    n = 5000
    text = robot(
        *(link(f"l{i}") for i in range(n + 1)),
        *(joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}") for i in range(n)),
    )
    mech = read(text)
    assert mech.n_bodies == n


def test_load_tells_the_format_by_the_root_element(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text(arm("continuous"))
    assert load(path).nv == 1
    path.write_text("<html/>")
    with pytest.raises(ParseError, match=r"a\.xml:1: <html>: this is not a model format"):
        load(path)


def test_a_robot_without_a_name_takes_the_files():
    text = arm("continuous").replace(' name="r"', "")
    mech = read(text)
    assert mech.name == "r"
    assert mech.load_report.items[0].reason == "it has no name; 'r' is used"


def test_one_folder_of_meshes_may_be_given_by_itself(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "m.stl").touch()
    path = tmp_path / "robot" / "r.urdf"
    path.parent.mkdir()
    mesh = '<visual><geometry><mesh filename="m.stl"/></geometry></visual>'
    path.write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    assert "is missing" in str(load(path).load_report)
    for roots in (tmp_path / "meshes", str(tmp_path / "meshes"), [tmp_path / "meshes"]):
        assert len(load(path, roots=roots).load_report) == 0
