"""The load report of MJCF: nothing is dropped in silence."""

from __future__ import annotations

import pytest

from linkwise.errors import ParseError
from linkwise.io.mjcf import read_mjcf
from linkwise.io.report import Reporter
from linkwise.io.xml import Element, parse_xml
from tests.io.mjcf_text import BALL, body, model, read, world

HINGED = body("a", '<joint name="j"/>', BALL)


def items(text: str) -> list[tuple[int | None, str, str, str]]:
    """Line, element, effect and what each item affects."""
    return [(i.line, i.element, i.effect, i.affects) for i in read(text).load_report]


REPORTED = {
    "camera": (world(HINGED, '<camera name="c"/>'), 5, '<camera name="c">', "appearance"),
    "light": (world(HINGED, "<light/>"), 5, "<light>", "appearance"),
    "muscle": (
        world(HINGED, after='<actuator><muscle name="m" joint="j"/></actuator>'),
        6,
        '<muscle name="m">',
        "motion",
    ),
    "sensor": (world(HINGED, after="<sensor><gyro site='s'/></sensor>"), 6, "<gyro>", "control"),
    "pair gap": (
        world(
            body("a", "<joint/>", '<geom name="x" size="1" contype="0" conaffinity="0"/>'),
            before="<option><flag contact='disable'/></option>",
            after='<contact><pair geom1="x" geom2="x" gap="1"/></contact>',
        ),
        6,
        "<pair>",
        "contact",
    ),
    "key": (
        world(HINGED, after='<keyframe><key name="k"/></keyframe>'),
        6,
        '<key name="k">',
        "other",
    ),
    "custom": (
        world(HINGED, after='<custom><numeric name="n" data="1"/></custom>'),
        6,
        '<numeric name="n">',
        "other",
    ),
    "plugin": (
        world(HINGED, after='<extension><plugin plugin="p"/></extension>'),
        6,
        "<plugin>",
        "motion",
    ),
    "body plugin": (world(body("a", "<plugin/>", "<joint/>", BALL)), 4, "<plugin>", "motion"),
    "visual": (world(HINGED, before="<visual/>"), 2, "<visual>", "appearance"),
    "size": (world(HINGED, before='<size memory="1M"/>'), 2, "<size>", "other"),
    "texture": (
        world(HINGED, before='<asset><texture name="t"/></asset>'),
        2,
        '<texture name="t">',
        "appearance",
    ),
    "fluid": (world(HINGED, before='<option density="1.2"/>'), 2, "<option>", "motion"),
    "timestep": (world(HINGED, before='<option timestep="0.1"/>'), 2, "<option>", "other"),
    "geom solref": (
        world(body("a", "<joint/>", '<geom size="1" solref="1 1"/>')),
        4,
        "<geom>",
        "contact",
    ),
    "default solref": (
        world(HINGED, before='<default><geom solref="1 1"/></default>'),
        2,
        "<geom>",
        "contact",
    ),
    "default muscle": (
        world(HINGED, before='<default><muscle gear="2"/></default>'),
        2,
        "<muscle>",
        "control",
    ),
    "site colour": (
        world(HINGED, '<site name="s" rgba="1 0 0 1"/>'),
        5,
        '<site name="s">',
        "appearance",
    ),
    "unknown attribute": (world(body("a", '<joint spin="1"/>', BALL)), 4, "<joint>", "motion"),
    "unknown element": (world(HINGED, "<thing/>"), 5, "<thing>", "motion"),
    "unknown section": (world(HINGED, before="<things/>"), 2, "<things>", "motion"),
    "unknown asset": (world(HINGED, before="<asset><thing/></asset>"), 2, "<thing>", "motion"),
    "unknown default": (
        world(HINGED, before="<default><thing/></default>"),
        2,
        "<thing>",
        "motion",
    ),
    "tendon": (
        world(HINGED, after='<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'),
        6,
        '<fixed name="t">',
        "control",
    ),
    "tendon with a spring": (
        world(HINGED, after='<tendon><fixed name="t" stiffness="3"/></tendon>'),
        6,
        '<fixed name="t">',
        "motion",
    ),
    "unknown tendon": (world(HINGED, after="<tendon><x/></tendon>"), 6, "<x>", "motion"),
    "unknown actuator": (world(HINGED, after="<actuator><x/></actuator>"), 6, "<x>", "motion"),
    "tendon with a limit": (
        world(HINGED, after='<tendon><fixed range="0 1"/></tendon>'),
        6,
        "<fixed>",
        "motion",
    ),
    "length range": (
        world(HINGED, before="<compiler><lengthrange/></compiler>"),
        2,
        "<lengthrange>",
        "control",
    ),
    "unknown option": (world(HINGED, before="<option><x/></option>"), 2, "<x>", "motion"),
    "model to attach": (
        world(HINGED, before='<asset><model name="m" file="m.xml"/></asset>'),
        2,
        '<model name="m">',
        "other",
    ),
    "skin": (
        world(HINGED, after='<deformable><skin name="s"/></deformable>'),
        6,
        '<skin name="s">',
        "appearance",
    ),
    "spring of a free joint": (
        world(body("a", '<joint name="f" type="free" stiffness="3"/>', BALL)),
        4,
        '<joint name="f">',
        "motion",
    ),
    "shape of a height field": (
        world(
            HINGED,
            '<geom type="hfield" hfield="h" contype="0" conaffinity="0"/>',
            before='<asset><hfield name="h" size="1 1 1 1"/></asset>',
        ),
        5,
        "<geom>",
        "appearance",
    ),
    "shape of a mesh without a file": (
        world(
            HINGED,
            '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>',
            before='<asset><mesh name="m" vertex="0 0 0"/></asset>',
        ),
        5,
        "<geom>",
        "appearance",
    ),
    "where a free body starts": (
        world(body("a", '<freejoint name="f"/>', BALL, pos="1 0 0")),
        4,
        '<freejoint name="f">',
        "other",
    ),
}


@pytest.mark.parametrize("name", REPORTED)
def test_one_item_with_its_place(name: str):
    text, line, element, affects = REPORTED[name]
    assert items(text) == [(line, element, "ignored", affects)]
    with pytest.raises(ParseError, match=rf"^m\.xml:{line}: .* is ignored \(affects {affects}\)"):
        read(text, strict=True)
    if affects == "motion":
        with pytest.raises(ParseError, match="strict='motion' refuses this"):
            read(text, strict="motion")
    else:
        read(text, strict="motion")


APPROXIMATE = {
    "mocap": (world(HINGED, body("m", BALL, mocap="true")), 5, '<body name="m">', "control"),
    "cubic damping": (world(body("a", '<joint damping="1 2"/>', BALL)), 4, "<joint>", "motion"),
    "cubic spring": (world(body("a", '<joint stiffness="1 0 2"/>', BALL)), 4, "<joint>", "motion"),
    "uneven effort": (
        world(body("a", '<joint actuatorfrcrange="-1 2"/>', BALL)),
        4,
        "<joint>",
        "control",
    ),
    "yielding spring": (
        world(body("a", '<joint stiffness="1" springyield="1"/>', BALL)),
        4,
        "<joint>",
        "motion",
    ),
    "site on a mesh": (
        world(HINGED, '<site name="s" type="mesh" mesh="m"/>'),
        5,
        '<site name="s">',
        "other",
    ),
    "renamed site": (world(HINGED, '<site name="a"/>'), 5, '<site name="a">', "other"),
    "aligned": (world(body("a", '<freejoint align="true"/>', BALL)), 4, "<freejoint>", "other"),
    "no limits": (
        world(HINGED, before='<option><flag limit="disable"/></option>'),
        2,
        "<flag>",
        "motion",
    ),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_one_item_about_what_is_not_quite_so(name: str):
    text, line, element, affects = APPROXIMATE[name]
    result = [item for item in items(text) if item[2] == "approximate"]
    assert result == [(line, element, "approximate", affects)]


def test_a_plain_model_reports_nothing():
    floor = '<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>'
    mech = read(world(HINGED, floor, '<site name="s"/>'), strict=True)
    assert len(mech.load_report) == 0
    assert mech.load_report.source == "m.xml"
    assert mech.load_report.summary() == "everything in the file was used"


def test_attributes_are_reported_once_for_all_elements():
    geoms = ['<geom size="1" solref="0.1 1"/>'] * 5
    (item,) = read(world(body("a", "<joint/>", *geoms))).load_report
    assert item.reason == (
        "attribute 'solref' (and 4 more <geom>): the softness of contacts and constraints does "
        "not act"
    )


def test_items_stand_in_the_order_of_the_file():
    text = world(
        body("a", '<joint name="j" margin="1"/>', BALL),
        "<camera/>",
        body("b", "<joint/>", '<geom size="1" solref="1 1"/>'),
        before='<option timestep="0.1"/>',
        after='<actuator><motor joint="j"/></actuator>',
    )
    assert [i.line for i in read(text).load_report] == [2, 4, 4, 5, 6, 8]


def test_rotors_of_actuators():
    motor = '<motor joint="j" gear="{0}" armature="{1}"/>'

    def armature(*actuators: str) -> tuple[float, float, float]:
        mech = read(world(HINGED, after=f"<actuator>{''.join(actuators)}</actuator>"))
        drive = mech.hinge("j").drive
        return drive.rotor_inertia, drive.gear_ratio, float(mech.armature[0])

    assert armature(motor.format(3, 0.5)) == (0.5, 3.0, 4.5)
    # A second one is reflected to the joint.
    assert armature(motor.format(3, 0.5), motor.format(2, 1)) == (0.5, 3.0, 8.5)
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="2"/></fixed></tendon>'
    other = '<motor tendon="t" armature="1"/>'
    mech = read(world(HINGED, after=f"{tendon}<actuator>{other}</actuator>"))
    assert [i.reason for i in mech.load_report.affecting("motion")] == [
        "'armature' and 'damping' are supported for actuators of joints only",
        "1 actuator acts in lw.rollout and lw.simulate with controls, and in lw.Simulator",
    ]


def test_flags_switch_off_what_they_name():
    joint = '<joint name="j" stiffness="1" damping="2" frictionloss="3"/>'

    def drive(flag: str):
        before = f'<option><flag {flag}="disable"/></option>'
        return read(world(body("a", joint, BALL), before=before))

    for flag, field in {
        "spring": "stiffness",
        "damper": "damping",
        "frictionloss": "friction",
    }.items():
        mech = drive(flag)
        assert getattr(mech, field)[0] == 0
        others = {"stiffness": 1, "damping": 2, "friction": 3}
        del others[field]
        assert all(getattr(mech, key)[0] == value for key, value in others.items())
    assert not drive("gravity").gravity.any()
    assert drive("constraint").friction[0] == 0


def test_shapes_are_kept_with_pose_role_and_colour():
    text = world(
        body(
            "a",
            "<joint/>",
            '<geom name="seen" type="box" size="1 2 3" contype="0" conaffinity="0" material="m"/>',
            '<geom name="felt" type="capsule" size="1 2" group="3" rgba="0 1 0 1"/>',
            '<geom name="both" type="cylinder" size="1 2" pos="1 2 3"/>',
        ),
        '<geom name="floor" type="plane" size="0 0 1"/>',
        before='<asset><material name="m" rgba="1 0 0 1"/></asset>',
    )
    mech = read(text)
    seen, felt, both = mech.body("a").geometry
    assert (seen.shape, seen.size, seen.role, seen.rgba) == (
        "box",
        (2, 4, 6),
        "visual",
        (1, 0, 0, 1),
    )
    assert (felt.shape, felt.size, felt.role, felt.rgba) == (
        "capsule",
        (1, 4),
        "collision",
        (0, 1, 0, 1),
    )
    assert (both.shape, both.size, both.role, both.rgba) == ("cylinder", (1, 4), "both", None)
    assert both.pose.p.tolist() == [1, 2, 3]
    ground = mech.node("worldbody")
    assert (ground.body, ground.kind, ground.inertia) == ("world", "link", None)
    assert [g.shape for g in ground.geometry] == ["plane"]


def test_an_empty_model_is_an_empty_mechanism():
    mech = read(model())
    assert (mech.n_bodies, mech.nv, mech.name) == (0, 0, "m")


def test_bodies_without_mass_load_and_are_found():
    mech = read(world(body("a", "<joint/>")))
    assert mech.nv == 1
    assert mech.validate()


FULL = """<mujoco model="m">
<compiler angle="radian"/>
<option gravity="0 0 -9"><flag contact="disable"/></option>
<default><geom density="1"/><default class="x"><joint damping="1"/></default></default>
<asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/><hfield name="h" size="1 1 1 1"/>
<material name="c" rgba="1 0 0 1"/></asset>
<worldbody>
<geom type="sphere" size="1"/>
<frame pos="0 0 1"><site name="s"/></frame>
<replicate count="2" offset="1 0 0"><geom size="1"/></replicate>
<body name="a"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint name="j"/><geom size="1"/>
<site name="q"/><body name="b"><joint name="k"/><geom size="1"/></body></body>
<body name="f"><freejoint/><geom size="1"/></body>
</worldbody>
<equality><joint name="e" joint1="j" joint2="k"/></equality>
<tendon><fixed name="w" stiffness="1"><joint joint="j" coef="1"/></fixed>
<spatial name="z"><site site="q"/><site site="s"/></spatial></tendon>
<actuator/>
</mujoco>"""


@pytest.mark.parametrize("added", ["attribute", "child"])
@pytest.mark.parametrize("index", range(len(list(parse_xml(FULL).walk()))))
def test_what_nobody_knows_is_reported_or_refused(index: int, added: str):
    before = {str(item) for item in read(FULL).load_report}
    root = parse_xml(FULL, "m.xml")
    element = list(root.walk())[index]
    if added == "attribute":
        element.attrib["unheard"] = "1"
    else:
        element.children.append(Element("unheard", line=element.line, file=element.file))
    try:
        result = read_mjcf(root, "m.xml", Reporter("m.xml")).load_report
    except ParseError as problem:
        assert problem.line == element.line
        return
    new = [item for item in result if str(item) not in before]
    assert any("unheard" in str(item) for item in new), (element.label, added)
    assert all(item.line == element.line for item in new)


ROPES = """
<mujoco><worldbody><body><joint name="j" type="slide" {}/><geom size="0.1"/>
  <site name="s"/></body></worldbody>
  <tendon><fixed name="used"><joint joint="j" coef="1"/></fixed>
    <fixed name="idle"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator><motor name="m" tendon="used"/>{}</actuator></mujoco>"""


def test_tendons_that_something_pulls_are_not_reported_as_ignored():
    report = read(ROPES.format("", "")).load_report
    ignored = [x.element for x in report if x.effect == "ignored"]
    assert ignored == ['<fixed name="idle">']


@pytest.mark.parametrize("bounded", [False, True])
def test_bounds_of_joints_that_hold_less_than_in_mujoco_are_reported(bounded):
    """A thruster that a joint's bound holds in MuJoCo, and not here."""
    bounds = 'actuatorfrcrange="-1 1"' if bounded else ""
    text = ROPES.format(bounds, '<motor name="jet" site="s" gear="1 0 0 0 0 0"/>')
    items = [x for x in read(text).load_report if "at sites and along cables" in x.reason]
    assert [(x.element, x.effect) for x in items] == [
        ('<motor name="jet">', "approximate")
    ] * bounded
