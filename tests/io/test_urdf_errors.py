"""Files that describe no mechanism: each is refused with file, line, reason and what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from linkwise.errors import LinkwiseError, ParseError
from tests.effort import calls
from tests.io.urdf_text import INERTIAL, arm, joint, link, read, robot


def refusal(text: str, **options) -> str:
    with pytest.raises(ParseError) as caught:
        read(text, **options)
    return str(caught.value)


CASES = {
    "no link": (robot(), 'r.urdf:1: <robot name="r">: it has no <link>; a robot has at least one'),
    "link without name": (
        robot("<link/>"),
        "r.urdf:2: <link>: attribute 'name' is missing",
    ),
    "twin links": (
        robot(link("a"), link("a")),
        'r.urdf:3: <link name="a">: a link of this name is in line 2; names have to differ',
    ),
    "twin joints": (
        robot(
            *(link(x) for x in "abc"),
            joint("j", "fixed", "a", "b"),
            joint("j", "fixed", "b", "c"),
        ),
        'r.urdf:6: <joint name="j">: a joint of this name is in line 5; names have to differ',
    ),
    "two roots": (
        robot(link("a"), link("b")),
        "r.urdf:3: <link name=\"b\">: 2 links have no parent ('a', 'b'); a URDF has one root: "
        "join them by fixed or floating joints, or remove them",
    ),
    "missing child": (
        robot(link("arm"), joint("j", "fixed", "arm", "amr")),
        "r.urdf:3: <joint name=\"j\">: its child: no link called 'amr' in the file; "
        "did you mean 'arm'?",
    ),
    "missing parent": (
        robot(link("arm"), joint("j", "fixed", "x", "arm")),
        "r.urdf:3: <joint name=\"j\">: its parent: no link called 'x' in the file; known: 'arm'.",
    ),
    "no child element": (
        robot(link("a"), '<joint name="j" type="fixed"><parent link="a"/></joint>'),
        'r.urdf:3: <joint name="j">: <child> is missing; write <child link="..."/>',
    ),
    "two frames of one name": (
        robot(link("a"), *['<frame name="f" link="a" xyz="0 0 0" rpy="0 0 0"/>'] * 2),
        "r.urdf:4: <frame name=\"f\">: a frame 'f' is in line 3; names have to differ",
    ),
    "a frame called as a loop's": (
        robot(
            link("a"),
            link("l.b"),
            joint("j", "continuous", "a", "l.b"),
            '<loop_joint name="l" type="fixed"><link1 link="a"/><link2 link="l.b"/></loop_joint>',
        ),
        "r.urdf:5: <link2 link=\"l.b\">: a link 'l.b' exists; frames and links have to differ",
    ),
    "a frame called as the ground": (
        robot(link("a"), '<frame name="world" link="a"/>'),
        "r.urdf:3: <frame name=\"world\">: a link 'world' exists; frames and links have to differ",
    ),
    "joint to itself": (
        robot(link("a"), joint("j", "fixed", "a", "a")),
        "r.urdf:3: <joint name=\"j\">: it joins link 'a' to itself; name another parent",
    ),
    "child of two": (
        robot(
            *(link(x) for x in "abc"),
            joint("j", "continuous", "a", "b"),
            joint("k", "continuous", "a", "c"),
            joint("m", "continuous", "c", "b"),
        ),
        "r.urdf:7: <joint name=\"m\">: link 'b' is already the child of joint 'j' in line 5; "
        "links form a tree: close the loop with <loop_joint> instead",
    ),
    "circle beside the tree": (
        robot(
            *(link(x) for x in "abc"),
            joint("j", "continuous", "b", "c"),
            joint("k", "continuous", "c", "b"),
        ),
        'r.urdf:6: <joint name="k">: the joints form a cycle (b -> c -> b); remove one '
        "and close the loop with <loop_joint>",
    ),
    "nothing but a circle": (
        robot(link("a"), link("b"), joint("j", "fixed", "a", "b"), joint("k", "fixed", "b", "a")),
        'r.urdf:5: <joint name="k">: the joints form a cycle (a -> b -> a)',
    ),
    "unknown type": (
        arm("hinge"),
        "r.urdf:4: <joint name=\"j\">: attribute 'type' is 'hinge'; allowed are revolute, "
        "continuous, prismatic, fixed, floating, planar, spherical",
    ),
    "zero axis": (
        arm("revolute", '<axis xyz="0 0 0"/>'),
        "r.urdf:4: <axis>: 'xyz' is the zero vector; an axis needs a direction, such as '0 0 1'",
    ),
    "axis of two numbers": (
        arm("revolute", '<axis xyz="0 1"/>'),
        "r.urdf:4: <axis>: 'xyz' is '0 1', which has 2 numbers; it takes 3 finite numbers",
    ),
    "not a number": (
        arm("revolute", '<origin xyz="0 nan 0"/>'),
        "r.urdf:4: <origin>: 'xyz' is '0 nan 0', and 'nan' is not a finite decimal number; "
        "it takes 3 finite numbers",
    ),
    "infinite limit": (
        arm("revolute", '<limit lower="-inf" upper="1" effort="1" velocity="1"/>'),
        "r.urdf:4: <limit>: 'lower' is '-inf', and '-inf' is not a finite decimal number; "
        "it takes 1 finite number",
    ),
    "both turns": (
        arm("revolute", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>'),
        "r.urdf:4: <origin>: both 'rpy' and 'quat_xyzw' are given; keep one of them",
    ),
    "zero quaternion": (
        arm("revolute", '<origin quat_xyzw="0 0 0 0"/>'),
        "r.urdf:4: <origin>: 'quat_xyzw' has length 0; give a unit quaternion",
    ),
    "no mass": (
        robot(link("a", "<inertial><inertia/></inertial>")),
        "r.urdf:2: <inertial>: <mass> is missing; an <inertial> has <mass> and <inertia>",
    ),
    "half an inertia": (
        robot(link("a", '<inertial><mass value="1"/><inertia ixx="1"/></inertial>')),
        "r.urdf:2: <inertia>: attribute 'iyy' is missing; it takes 1 finite number",
    ),
    "too large": (
        robot(link("a", INERTIAL.replace("0.1 0 0.2", "-1e200 0 0"))),
        "r.urdf:2: <origin>: 'xyz' is '-1e200 0 0'; numbers larger than 1e+50 are refused",
    ),
    "mimic of nobody": (
        arm("revolute", '<mimic joint="jj"/>'),
        "r.urdf:4: <mimic joint=\"jj\">: joint 'j' cannot follow it: no joint called 'jj' in the "
        "file; did you mean 'j'?",
    ),
    "mimic of itself": (
        arm("revolute", '<mimic joint="j"/>'),
        "r.urdf:4: <mimic joint=\"j\">: joint 'j' follows itself by way of 'j'; let one joint of "
        "the cycle move independently",
    ),
    "mimics in a circle": (
        robot(
            *(link(x) for x in "abc"),
            joint("j", "continuous", "a", "b", '<mimic joint="k"/>'),
            joint("k", "continuous", "b", "c", '<mimic joint="j"/>'),
        ),
        "r.urdf:6: <mimic joint=\"j\">: joint 'k' follows itself by way of 'j'; let one joint of "
        "the cycle move independently",
    ),
    "mimics that multiply": (
        robot(
            *(link(x) for x in "abcd"),
            joint("j", "continuous", "a", "b", '<mimic joint="k" multiplier="1e40"/>'),
            joint("k", "continuous", "b", "c", '<mimic joint="m" multiplier="1e40"/>'),
            joint("m", "continuous", "c", "d"),
        ),
        'r.urdf:6: <mimic joint="k">: along the chain, q = 1e+80 q + 0: too large',
    ),
    "mimic of a floating joint": (
        robot(
            *(link(x) for x in "abc"),
            joint("j", "floating", "a", "b"),
            joint("k", "continuous", "b", "c", '<mimic joint="j"/>'),
        ),
        "r.urdf:6: <mimic joint=\"j\">: joint 'j' has 7 coordinates; only a joint with one can be "
        "followed",
    ),
    "floating mimic": (
        arm("floating", '<mimic joint="j"/>'),
        'r.urdf:4: <mimic joint="j">: a floating joint cannot mimic another; only joints with '
        "one degree of freedom can",
    ),
    "mesh without file": (
        robot(link("a", "<visual><geometry><mesh/></geometry></visual>")),
        "r.urdf:2: <mesh>: attribute 'filename' is missing",
    ),
    "scale of two": (
        robot(
            link("a", '<visual><geometry><mesh filename="a.stl" scale="1 2"/></geometry></visual>')
        ),
        "r.urdf:2: <mesh>: 'scale' has 2 numbers; it takes 1 or 3",
    ),
    "frame on nothing": (
        robot(link("a"), '<frame name="f" link="b"/>'),
        "r.urdf:3: <frame name=\"f\">: no link called 'b' in the file; known: 'a'.",
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_refused(text: str, expected: str):
    assert refusal(text).startswith(expected)


def circle_of_mimics(n: int) -> str:
    return robot(
        *(link(f"l{i}", "") for i in range(n + 1)),
        *(
            joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}", f'<mimic joint="j{(i + 1) % n}"/>')
            for i in range(n)
        ),
    )


def circle_of_joints(n: int) -> str:
    return robot(
        link("root", ""),
        *(link(f"l{i}", "") for i in range(n)),
        *(joint(f"j{i}", "fixed", f"l{i}", f"l{(i + 1) % n}") for i in range(n)),
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("circle", "message"),
    [
        (circle_of_mimics, "follows itself by way of"),
        (circle_of_joints, "the joints form a cycle"),
    ],
)
def test_long_circles_are_refused_with_linear_effort(circle: Callable[[int], str], message: str):
    """Longer than Python's recursion goes, and twice the length for twice the calls."""
    assert message in refusal(circle(5000))
    once, twice = (calls(partial(refusal, circle(n))) for n in (400, 800))
    assert once > 400 and twice < 2.2 * once


@pytest.mark.parametrize("cut", range(0, 900, 7))
def test_cut_off_anywhere_gives_our_own_error(cut: int):
    text = arm("revolute", '<limit lower="0" upper="1" effort="1" velocity="1"/>', "<gazebo/>")
    try:
        read(text[:cut] or "<")
    except LinkwiseError as error:
        assert str(error).startswith("r.urdf:")
