"""MJCF that describes no mechanism, or an unsupported one: refused with file, line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwise.errors import ModelError, ParseError
from linkwise.io.load import load
from linkwise.model.hinges import Pin
from tests.effort import at_most
from tests.io.mjcf_text import BALL, body, model, read, world


def refusal(text: str, **options) -> str:
    with pytest.raises(ParseError) as caught:
        read(text, **options)
    return str(caught.value)


def moving(*inside: str, **options: str) -> str:
    """One body on line 4, with a hinge and a ball."""
    return world(body("a", '<joint name="j"/>', BALL, *inside), **options)


CASES = {
    "free below a body": (
        world(body("a", "<joint/>", BALL, body("b", '<freejoint name="f"/>', BALL))),
        'm.xml:4: <freejoint name="f">: a free joint has to be the only joint of a body on the '
        "world",
    ),
    "joint in the world": (world("<joint/>"), "m.xml:4: <joint>: the world has no joints"),
    "inertia of the world": (
        world('<inertial pos="0 0 0" mass="1"/>'),
        "m.xml:4: <inertial>: the world has no inertia",
    ),
    "attributes of the world": (
        model('<worldbody name="w"/>'),
        'm.xml:2: <worldbody name="w">: the world has no attributes',
    ),
    "twin bodies": (
        world(body("a", BALL), body("a", BALL)),
        "m.xml:5: <body name=\"a\">: the body name 'a' is used twice",
    ),
    "a body called world": (
        world(body("world", BALL)),
        "m.xml:4: <body name=\"world\">: the body name 'world' is kept for the ground",
    ),
    "twin joints": (
        world(body("a", '<joint name="j"/>', '<joint name="j"/>', BALL)),
        "m.xml:4: <joint name=\"j\">: the joint name 'j' is used twice",
    ),
    "twin sites": (
        moving('<site name="s"/>', '<site name="s"/>'),
        'm.xml:4: <site name="s">: the site name is used twice',
    ),
    "two inertials": (
        moving(*['<inertial pos="0 0 0" mass="1"/>'] * 2),
        "m.xml:4: <inertial>: the body has an <inertial> already",
    ),
    "inertial without mass": (
        moving('<inertial pos="0 0 0"/>'),
        "m.xml:4: <inertial>: attribute 'mass' is missing; it takes 1 finite number",
    ),
    "full and diagonal inertia": (
        moving('<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0" diaginertia="1 1 1"/>'),
        "m.xml:4: <inertial>: 'fullinertia' goes with neither an orientation nor 'diaginertia'",
    ),
    "two orientations": (
        moving('<geom size="1" quat="1 0 0 0" euler="1 2 3"/>'),
        "m.xml:4: <geom>: the orientation is given by quat and euler; give it once",
    ),
    "zero quaternion": (
        moving('<geom size="1" quat="0 0 0 0"/>'),
        "m.xml:4: <geom>: 'quat' is zero; a quaternion has unit length, as in '1 0 0 0'",
    ),
    "zero axis": (
        world(body("a", '<joint axis="0 0 0"/>', BALL)),
        "m.xml:4: <joint>: 'axis' has length 0, which has no direction",
    ),
    "parallel axes": (
        moving('<geom size="1" xyaxes="1 0 0 2 0 0"/>'),
        "m.xml:4: <geom>: 'xyaxes' has a vector of length 0, which has no direction",
    ),
    "no size": (
        moving('<geom type="capsule" size="1"/>'),
        "m.xml:4: <geom>: a capsule takes 2 positive sizes; found '1'",
    ),
    "negative size": (
        moving('<geom name="g" size="-1"/>'),
        "m.xml:4: <geom name=\"g\">: a sphere takes 1 positive size; found '-1'",
    ),
    "negative mass": (
        moving('<geom size="1" mass="-1"/>'),
        "m.xml:4: <geom>: the mass is -1 kg; it must not be negative",
    ),
    "not a number": (
        moving('<geom size="1" pos="0 nan 0"/>'),
        "m.xml:4: <geom>: 'pos' is '0 nan 0', and 'nan' is not a finite decimal number; it takes "
        "3 finite numbers",
    ),
    "fromto of a sphere": (
        moving('<geom type="sphere" size="1" fromto="0 0 0 1 0 0"/>'),
        "m.xml:4: <geom>: 'fromto' is for capsule, cylinder, ellipsoid, box, without a mesh",
    ),
    "fromto and pos": (
        moving('<geom type="box" size="1" fromto="0 0 0 1 0 0" pos="1 0 0"/>'),
        "m.xml:4: <geom>: 'pos' and 'fromto' are both given; give one of them",
    ),
    "fromto of no length": (
        moving('<geom type="box" size="1" fromto="1 0 0 1 0 0"/>'),
        "m.xml:4: <geom>: the two points of 'fromto' coincide",
    ),
    "unknown type": (
        moving('<geom type="cone" size="1"/>'),
        "m.xml:4: <geom>: attribute 'type' is 'cone'; allowed are plane, hfield, sphere, capsule, "
        "ellipsoid, cylinder, box, mesh, sdf",
    ),
    "unknown joint type": (
        world(body("a", '<joint type="screw"/>', BALL)),
        "m.xml:4: <joint>: attribute 'type' is 'screw'; allowed are free, ball, slide, hinge",
    ),
    "unknown mesh": (
        moving('<geom type="mesh" mesh="x"/>'),
        "m.xml:4: <geom>: no mesh called 'x' in the assets; it has no mesh.",
    ),
    "mesh without a name": (
        moving('<geom type="mesh"/>'),
        "m.xml:4: <geom>: a geom of type 'mesh' needs the attribute 'mesh'",
    ),
    "unknown class": (
        moving('<geom class="tigt"/>', before='<default><default class="tight"/></default>'),
        "m.xml:4: <geom class=\"tigt\">: no default class called 'tigt' in this model; did you "
        "mean 'tight'?",
    ),
    "unknown childclass": (
        world(body("a", BALL, childclass="c")),
        "m.xml:4: <body name=\"a\">: no default class called 'c' in this model; known: 'main'.",
    ),
    "class without a name": (
        model("<default>", "<default/>", "</default>"),
        "m.xml:3: <default>: a nested <default> needs the attribute 'class'",
    ),
    "class twice": (
        model("<default>", '<default class="c"/>', '<default class="c"/>', "</default>"),
        "m.xml:4: <default class=\"c\">: the default class 'c' is defined twice",
    ),
    "top class renamed": (
        model('<default class="mine"/>'),
        "m.xml:2: <default class=\"mine\">: the top-level class is 'main'; 'mine' has to be nested "
        "in it",
    ),
    "global coordinates": (
        model('<compiler coordinate="global"/>'),
        "m.xml:2: <compiler>: coordinate='global' is not supported; load and save the model with "
        "MuJoCo 2.3.3 to convert it",
    ),
    "euler sequence": (
        model('<compiler eulerseq="xyw"/>'),
        "m.xml:2: <compiler>: 'eulerseq' is 'xyw'; it takes three letters of x, y, z, X, Y, Z",
    ),
    "neither true nor false": (
        model('<compiler autolimits="yes"/>'),
        "m.xml:2: <compiler>: attribute 'autolimits' is 'yes'; allowed are true, false",
    ),
    "limits upside down": (
        world(body("a", '<joint range="20 10"/>', BALL)),
        "m.xml:4: <joint>: 'range' is '20 10'; the first limit has to be the smaller one",
    ),
    "a range without its use": (
        world(body("a", '<joint range="1 2"/>', BALL), before='<compiler autolimits="false"/>'),
        "m.xml:4: <joint>: 'range' is given but not 'limited', and the compiler says "
        "autolimits='false'; add limited='true' or limited='false'",
    ),
    "range of a ball": (
        world(body("a", '<joint type="ball" range="10 20"/>', BALL)),
        "m.xml:4: <joint>: 'range' of a ball joint starts at 0; found 0.174533",
    ),
    "springdamper": (
        world(body("a", '<joint springdamper="1 -1"/>', BALL)),
        "m.xml:4: <joint>: 'springdamper' takes a positive time constant and damping ratio",
    ),
    "springdamper of nothing": (
        world(body("a", '<joint springdamper="1 1"/>')),
        "m.xml:4: <joint>: 'springdamper' needs joints that move inertia independently of each "
        "other",
    ),
    "mocap below a body": (
        moving(body("b", BALL, mocap="true")),
        'm.xml:4: <body name="b">: a mocap body has to be a child of the world',
    ),
    "composite": (
        moving('<composite type="cable"/>'),
        "m.xml:4: <composite>: composite objects are not supported, and the tree depends on them",
    ),
    "flexcomp": (
        moving('<flexcomp name="f"/>'),
        'm.xml:4: <flexcomp name="f">: flexible objects (flexcomp) are not supported, and the '
        "tree depends on them",
    ),
    "attach": (
        moving('<attach model="m" prefix="p"/>'),
        "m.xml:4: <attach>: no model called 'm' in the assets; it has no model.",
    ),
    "flex": (
        model('<deformable><flex name="f"/></deformable>'),
        'm.xml:2: <flex name="f">: deformable objects are not supported; the model needs them',
    ),
    "scaled frame": (
        moving('<frame scale="2"><geom size="1"/></frame>'),
        "m.xml:4: <frame>: frames with 'scale' or 'massscale' are not supported",
    ),
    "replicated joint": (
        moving('<replicate count="2"><joint/></replicate>'),
        "m.xml:4: <joint>: a joint directly in a replicate; wrap it in a body",
    ),
    "half a replica": (
        world('<replicate count="1.5"/>'),
        "m.xml:4: <replicate>: 'count' is 1.5; it takes a whole number from 1",
    ),
    "replicas of replicas": (
        world('<replicate count="1000">' * 3 + "</replicate>" * 3),
        "m.xml:4: <replicate>: replicates make more than 20000 elements, the most read",
    ),
    "armature on no joint": (
        moving(after='<actuator><motor joint="x" armature="1"/></actuator>'),
        "m.xml:6: <motor joint=\"x\">: no joint called 'x' in this model; known: 'j'.",
    ),
    "twin tendons": (
        moving(after='<tendon><fixed name="t"/><fixed name="t"/></tendon>'),
        'm.xml:6: <fixed name="t">: the tendon name is used twice',
    ),
    "twin meshes": (
        model('<asset><mesh name="m" vertex="0"/><mesh file="x/m.stl"/></asset>'),
        "m.xml:2: <mesh>: the mesh name 'm' is used twice",
    ),
    "mesh without name and file": (
        model('<asset><mesh vertex="0 0 0"/></asset>'),
        "m.xml:2: <mesh>: a mesh needs a name or a file",
    ),
    "odd mesh": (
        moving(
            '<geom type="mesh" mesh="m"/>',
            before='<asset><mesh name="m" vertex="0 0 0 1"/></asset>',
        ),
        "m.xml:2: <mesh name=\"m\">: 'vertex' and 'face' take a multiple of 3 numbers",
    ),
    "half a face": (
        moving(
            '<geom type="mesh" mesh="m"/>',
            before='<asset><mesh name="m" vertex="0 0 0" face="0 0.5 0"/></asset>',
        ),
        "m.xml:2: <mesh name=\"m\">: 'face' takes indices of vertices, counted from 0",
    ),
    "height field without a name": (
        world('<geom type="hfield"/>'),
        "m.xml:4: <geom>: the attribute 'hfield' is missing",
    ),
    "actuator force range": (
        world(body("a", '<joint actuatorfrcrange="2 1"/>', BALL)),
        "m.xml:4: <joint>: 'actuatorfrcrange': the first bound has to be the smaller one",
    ),
    "equality of nothing": (
        moving(
            after='<tendon><fixed name="t"><joint joint="j" coef="0"/></fixed></tendon>'
            '<equality><tendon tendon1="t"/></equality>'
        ),
        "m.xml:6: <tendon>: this equality constrains nothing",
    ),
    "include with children": (
        model('<include file="x.xml"><a/></include>'),
        "m.xml:2: <include>: an include cannot have children",
    ),
    "include with a prefix": (
        model('<include file="x.xml" prefix="p"/>'),
        "m.xml:2: <include>: the attribute 'prefix' of an include is not supported",
    ),
    "include with more": (
        model('<include file="x.xml" more="p"/>'),
        "m.xml:2: <include>: unknown attribute 'more'; an include has 'file'",
    ),
    "include without a file": (
        model("<include/>"),
        "m.xml:2: <include>: attribute 'file' is missing",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str):
    text, message = CASES[name]
    with at_most(2e6):
        assert refusal(text) == message


def test_a_base_that_does_not_fit():
    two = world(body("a", BALL), body("b", BALL))
    assert refusal(two, base="free") == (
        "m.xml:1: <mujoco>: base='free' needs exactly one body on the world; found 2: use "
        "base='auto'"
    )
    one = moving()
    with pytest.raises(ModelError, match="base is 'loose'; allowed are 'auto', 'fixed'"):
        read(one, base="loose")
    assert read(one).nv == 1
    assert read(one, base="fixed").nv == 0
    assert read(one, base="free").nv == 6
    mech = read(one, base=Pin((1, 0, 0)))
    assert mech.bodies[0].hinge == Pin((1, 0, 0))
    (item,) = mech.load_report.affecting("motion")
    assert item.element == '<joint name="j">'


# ------------------------------------------------------------------------------------ includes


def include(path: Path, name: str, *inside: str) -> Path:
    text = "\n".join(["<mujoco>", *inside, "</mujoco>"])
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text)
    return path / name


def test_includes_are_put_in_place(tmp_path: Path):
    include(tmp_path, "sub/joint.xml", '<joint name="j" axis="1 0 0"/>')
    include(
        tmp_path, "sub/arm.xml", '<body name="a">', '<include file="joint.xml"/>', BALL, "</body>"
    )
    include(tmp_path, "units.xml", '<compiler angle="radian"/>')
    include(tmp_path, "more.xml", f"<worldbody>{body('b', '<freejoint/>', BALL)}</worldbody>")
    path = include(
        tmp_path,
        "main.xml",
        '<include file="units.xml"/><include file="more.xml"/>',
        '<worldbody><include file="sub/arm.xml"/></worldbody>',
    )
    mech = load(path)
    assert [b.name for b in mech.bodies] == ["b", "a"]
    assert mech.bodies[1].hinge == Pin((1, 0, 0))


def test_errors_name_the_included_file(tmp_path: Path):
    part = include(tmp_path, "part.xml", '<geom type="cone"/>')
    path = include(tmp_path, "main.xml", '<worldbody><include file="part.xml"/></worldbody>')
    with pytest.raises(ParseError) as caught:
        load(path)
    assert (caught.value.file, caught.value.line) == (str(part), 2)
    part.write_text("<mujoco><geom></mujoco>")
    with pytest.raises(ParseError) as caught:
        load(path)
    assert (caught.value.file, caught.value.line) == (str(part), 1)
    assert caught.value.__notes__ == [f"included from {path}:2"]


INCLUDES = {
    "itself": ("main.xml", "file 'main.xml' is included twice; a file may be included once"),
    "missing": ("no.xml", "the included file 'no.xml' does not exist; check the path"),
    "above": (
        "../secret.xml",
        "file '../secret.xml' lies outside the model's directory; allowed are files below it and "
        "below the directories given as roots=(...)",
    ),
    "absolute": (
        "/etc/passwd",
        "file '/etc/passwd' lies outside the model's directory; allowed are files below it and "
        "below the directories given as roots=(...)",
    ),
    "zero byte": ("a&#0;b", None),
    "folder": ("sub", "the included file 'sub' does not exist; check the path"),
}


@pytest.mark.parametrize("name", INCLUDES)
def test_refused_includes(name: str, tmp_path: Path):
    file, reason = INCLUDES[name]
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.xml").write_text("<mujoco/>")
    path = include(folder, "main.xml", f'<include file="{file}"/>')
    with pytest.raises(ParseError) as caught:
        load(path)
    assert caught.value.line == 2
    if reason is not None:
        assert caught.value.reason == f"<include>: {reason}"


def test_roots_let_includes_out(tmp_path: Path):
    include(tmp_path, "shared.xml", '<option gravity="0 0 -1"/>')
    path = include(tmp_path / "model", "main.xml", '<include file="../shared.xml"/>')
    with pytest.raises(ParseError, match="lies outside the model's directory"):
        load(path)
    assert load(path, roots=[tmp_path]).gravity[2] == -1


def test_a_ring_of_includes_ends(tmp_path: Path):
    for i in range(3):
        include(tmp_path, f"ring{i}.xml", f'<include file="ring{(i + 1) % 3}.xml"/>')
    with pytest.raises(ParseError, match=r"file 'ring0\.xml' is included twice"):
        load(tmp_path / "ring0.xml")


def test_a_long_row_of_includes_ends(tmp_path: Path):
    for i in range(300):
        include(tmp_path, f"row{i}.xml", f'<include file="row{i + 1}.xml"/>')
    with pytest.raises(ParseError, match="more than 200 files are included, the most allowed"):
        load(tmp_path / "row0.xml")


def test_nesting_counts_through_includes(tmp_path: Path):
    for i in range(3):
        inner = f'<include file="deep{i + 1}.xml"/>' if i < 2 else ""
        include(tmp_path, f"deep{i}.xml", "<frame>" * 900 + inner + "</frame>" * 900)
    path = include(tmp_path, "main.xml", '<worldbody><include file="deep0.xml"/></worldbody>')
    with pytest.raises(ParseError, match="nested deeper than 2000 levels, includes counted"):
        load(path)
