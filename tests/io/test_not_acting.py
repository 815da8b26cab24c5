"""Whatever affects motion and does not act is reported by name, and strict='motion' refuses it."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ParseError
from linkwise.io.load import load
from tests.io.mjcf_text import BALL, body, read as read_mjcf, world
from tests.io.urdf_text import INERTIAL, arm, joint, link, read as read_urdf, robot

ACTUATOR = '<actuator><{} joint="j"/></actuator>'
TENDON = '<tendon><fixed {}="1"><joint joint="j" coef="1"/></fixed></tendon>'
STILL = BALL.replace("<geom ", '<geom contype="0" conaffinity="0" ')


def hinged(attributes: str, **more: str) -> str:
    return world(body("a", f'<joint name="j" {attributes}/>', STILL), **more)


URDF = {
    "dry friction": (
        "continuous",
        '<dynamics friction="1"/>',
        "dry friction of 'j' acts in lw.rollout",
    ),
    "position limits": (
        "revolute",
        '<limit lower="-1" upper="1" effort="1e308" velocity="1e308"/>',
        "position limits of 'j' act in lw.simulate",
    ),
    "effort limits": ("continuous", '<limit effort="3" velocity="1e308"/>', "effort limits of 'j'"),
    "speed limits": ("continuous", '<limit effort="1e308" velocity="3"/>', "speed limits of 'j'"),
}

MJCF = {
    "frictionloss": (hinged('frictionloss="1"'), "dry friction of 'j' acts in lw.rollout"),
    "range": (hinged('range="-1 1"'), "position limits of 'j' act in lw.simulate"),
    "effort": (hinged('actuatorfrcrange="-1 1"'), "effort limits of 'j' bound actuators only"),
    "ball range": (hinged('type="ball" range="0 1"'), "largest turns of 'j' act in lw.rollout"),
    "contacts": (
        world(body("a", '<joint name="j"/>', BALL), body("b", "<freejoint/>", BALL)),
        "contacts of 2 geoms act with planes and height fields of the world in lw.rollout",
    ),
    "floor": (
        world(body("a", '<joint name="j"/>', BALL), '<geom type="plane" size="1 1 1"/>'),
        "contacts of 2 geoms act with planes and height fields of the world in lw.rollout",
    ),
    "pair": (
        world(
            body("a", "<joint/>", STILL.replace("<geom ", '<geom name="x" ')),
            '<geom name="y" type="plane" size="1 1 1" contype="0" conaffinity="0"/>',
            after='<contact><pair geom1="x" geom2="y"/></contact>',
        ),
        "contacts of 2 geoms act with planes and height fields of the world in lw.rollout",
    ),
    **{
        kind: (hinged("", after=ACTUATOR.format(kind)), "1 actuator acts in lw.rollout")
        for kind in ("motor", "position", "velocity", "general", "damper")
    },
    **{
        kind: (hinged("", after=ACTUATOR.format(kind)), f"the kind '{kind}' do not act")
        for kind in ("muscle", "dcmotor")
    },
    **{
        f"tendon {name}": (
            hinged("", after=TENDON.format(name)),
            rf"tendon forces and limits \({name}\)",
        )
        for name in ("stiffness", "damping", "frictionloss", "armature")
    },
    "density": (hinged("", before='<option density="1"/>'), "fluid forces"),
    "wind": (hinged("", before='<option wind="1 0 0"/>'), "fluid forces"),
    "plugin": (hinged("", after='<extension><plugin plugin="p"/></extension>'), "does not act"),
}  # fmt: skip


@pytest.mark.parametrize("name", URDF)
def test_urdf(name: str):
    kind, inside, reason = URDF[name]
    (item,) = read_urdf(arm(kind, inside)).load_report
    assert (item.effect, item.affects) == ("kept", "motion")
    assert item.reason.startswith(reason)
    with pytest.raises(ParseError, match=reason):
        read_urdf(arm(kind, inside), strict="motion")


@pytest.mark.parametrize("name", MJCF)
def test_mjcf(name: str):
    text, reason = MJCF[name]
    reasons = [item.reason for item in read_mjcf(text).load_report.affecting("motion")]
    assert len(reasons) == 1
    with pytest.raises(ParseError, match=reason):
        read_mjcf(text, strict="motion")


def test_collision_shapes_of_a_urdf():
    shape = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    text = robot(link("a", shape), link("b", INERTIAL), joint("j", "continuous", "a", "b"))
    (item,) = read_urdf(text).load_report
    assert item.reason.startswith("contacts of 1 collision shape do not act")
    with pytest.raises(ParseError, match="contacts of 1 collision shape do not act"):
        read_urdf(text, strict="motion")
    still = robot(link("a", shape), link("b", shape), joint("j", "fixed", "a", "b"))
    assert len(read_urdf(still, strict="motion").load_report) == 0


@pytest.mark.parametrize(
    "text",
    [
        hinged('damping="1" stiffness="2" armature="0.1"'),
        world(body("a", "<joint/>", STILL, gravcomp="1")),
        hinged('frictionloss="1"', before='<option><flag frictionloss="disable"/></option>'),
        world(
            body("a", '<joint name="j"/>', BALL),
            body("b", "<freejoint/>", BALL),
            before='<option><flag contact="disable"/></option>',
        ),
        world(
            body("a", "<joint/>", '<geom size="1" contype="1" conaffinity="0"/>'),
            body("b", "<joint/>", '<geom size="1" contype="2" conaffinity="0"/>'),
        ),
    ],
    ids=[
        "dampers and springs",
        "gravity compensation",
        "friction is off",
        "contacts are off",
        "masks do not meet",
    ],
)
def test_what_acts_is_not_reported(text: str):
    assert read_mjcf(text, strict="motion").load_report.affecting("motion") == ()


def test_dampers_act_and_friction_does_not(tmp_path):
    """What the reports say is what simulations do."""
    ends = dict[str, float]()
    for name in ("damping", "friction"):
        path = tmp_path / f"{name}.urdf"
        inside = f'<axis xyz="0 0 1"/><dynamics {name}="0.01"/>'
        path.write_text(
            robot(link("a"), link("b", INERTIAL), joint("j", "continuous", "a", "b", inside))
        )
        mech = load(path)
        start = np.ones(mech.nv)
        ends[name] = float(lw.simulate(mech, v=start, duration=0.1, step=1e-3).v[-1, 0])
        assert len(mech.load_report) == (name == "friction")
    assert ends["damping"] < 0.999
    assert ends["friction"] == pytest.approx(1.0, rel=1e-12)
