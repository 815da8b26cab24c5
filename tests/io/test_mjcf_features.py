"""Each feature of MJCF in a small model, against MuJoCo's compiled model of the same text."""

from __future__ import annotations

import numpy as np
import pytest

from tests.io.mjcf_text import BALL, again, body, read, world
from tests.io.round_trip import differences
from tests.oracles.mujoco_oracle import agreement, parse_model

pytestmark = pytest.mark.oracle
pytest.importorskip("mujoco")

BRICK = '<geom type="box" size="0.1 0.2 0.3" pos="0.3 0.1 -0.2" quat="1 2 3 4"/>'
HINGE = '<joint axis="1 2 3" pos="0.1 0.2 0.3"/>'


def arm(*inside: str, before: str = "", after: str = "", **attributes: str) -> str:
    """A body on a hinge with a second one behind it, so that poses are carried on."""
    tip = body("tip", HINGE, BALL, pos="0.4 0.5 0.6", quat="0.5 0.1 -0.7 0.2")
    return world(body("arm", *inside, tip, **attributes), before=before, after=after)


def shape(geom: str, compiler: str = "") -> str:
    return arm(HINGE, geom, before=f"<compiler {compiler}/>")


ORIENTATIONS = {
    "quat": 'quat="1 -2 0.5 3"',
    "axisangle": 'axisangle="1 2 -1 70"',
    "euler": 'euler="10 50 -70"',
    "xyaxes": 'xyaxes="1 0.5 0 0.3 1 2"',
    "zaxis": 'zaxis="0.3 -1 -2"',
    "zaxis up": 'zaxis="0 0 2"',
    "zaxis down": 'zaxis="0 0 -3"',
}

SHAPES = {
    "sphere": 'type="sphere" size="0.3"',
    "capsule": 'type="capsule" size="0.1 0.4"',
    "cylinder": 'type="cylinder" size="0.2 0.3"',
    "ellipsoid": 'type="ellipsoid" size="0.1 0.2 0.3"',
    "box": 'type="box" size="0.1 0.2 0.3"',
    "capsule fromto": 'type="capsule" size="0.1" fromto="0.1 0.2 0.3 -0.4 0.5 1"',
    "cylinder fromto": 'type="cylinder" size="0.1" fromto="0 0 0 0 0 -1"',
    "ellipsoid fromto": 'type="ellipsoid" size="0.1" fromto="0 0 1 0 2 -1"',
    "box fromto": 'type="box" size="0.1" fromto="1 0 0 0 0.1 0"',
}

AXES = ("1 0 0", "0 1 0", "0 0 1")
TAGS = {
    "body": '<body name="b" pos="1 0 2" {}>' + HINGE + BRICK + "</body>",
    "geom": '<geom type="box" size="0.1 0.2 0.3" pos="1 0 2" {}/>',
    "site": '<site name="s" pos="1 0 2" {}/>',
    "frame": '<frame pos="0 1 0" {}>' + HINGE + BRICK + "</frame>",
    "inertial": '<inertial pos="1 0 2" mass="2" diaginertia="3 4 5" {}/>',
}

MODELS = {
    **{
        f"{key} on {tag}": arm(HINGE, BALL, element.format(text))
        for key, text in ORIENTATIONS.items()
        for tag, element in TAGS.items()
    },
    **{
        f"eulerseq {seq}": arm(
            HINGE, BRICK, before=f'<compiler eulerseq="{seq}" angle="radian"/>', euler="0.3 1.2 -2"
        )
        for seq in ("xyz", "XYZ", "zyx", "ZyX", "xzx", "YXY")
    },
    **{f"solid {key}": shape(f"<geom {text}/>") for key, text in SHAPES.items()},
    **{
        f"shell {key}": shape(f'<geom {text} shellinertia="true" density="3"/>')
        for key, text in SHAPES.items()
    },
    **{f"mass of {key}": shape(f'<geom {text} mass="2.5"/>') for key, text in SHAPES.items()},
    "two shapes": shape(BRICK + BALL),
    "zero density": shape(BRICK + '<geom size="1" density="0"/>'),
    "zero mass": shape(BRICK + '<geom size="1" mass="0"/>'),
    "groups": world(
        body("a", HINGE, *(f'<geom size="0.{i + 1}" group="{i}"/>' for i in range(6))),
        before='<compiler inertiagrouprange="1 3"/>',
    ),
    "inertial wins": shape(BRICK + '<inertial pos="0 0 1" mass="1" diaginertia="1 1 1"/>'),
    "geoms win": shape(
        BRICK + '<inertial pos="0 0 1" mass="1" diaginertia="1 1 1"/>', 'inertiafromgeom="true"'
    ),
    "fullinertia": shape(
        '<inertial pos="0.1 0 1" mass="2" fullinertia="3 4 5 0.1 0.2 -0.3"/>',
        'inertiafromgeom="auto"',
    ),
    "boundmass": arm(
        HINGE,
        BALL,
        body("bare", pos="1 2 3", quat="1 1 0 0"),
        before='<compiler boundmass="5" boundinertia="0.3"/>',
    ),
    "boundmass without geoms": arm(
        HINGE, pos="0.5 1 2", before='<compiler boundmass="5" boundinertia="0.3"/>'
    ),
    "boundinertia": shape('<geom type="box" size="0.1 0.2 0.3"/>', 'boundinertia="9"'),
    "balanceinertia": shape(
        '<inertial pos="0 0 1" mass="1" diaginertia="1 1 5"/>', 'balanceinertia="true"'
    ),
    "settotalmass": arm(HINGE, BRICK, before='<compiler settotalmass="7"/>'),
    "settotalmass with ground": world(
        body("post", BALL),
        body("arm", HINGE, BALL, body("hand", BALL)),
        before='<compiler settotalmass="7"/>',
    ),
    "ref of a hinge": arm('<joint axis="0 1 0" pos="0.1 0 0" ref="35"/>', BALL, euler="0 0 20"),
    "ref of a slide": arm('<joint type="slide" axis="0 1 1" ref="0.7"/>', BALL, euler="0 0 20"),
    "three joints": arm(
        '<joint axis="1 0 0" ref="10"/><joint axis="0 1 0" pos="0.2 0 0" ref="-20"/>'
        '<joint type="slide" axis="1 1 1" ref="0.3"/>',
        BALL,
        pos="1 2 3",
        euler="10 20 30",
    ),
    "six slides and hinges": arm(
        *(f'<joint type="{t}" axis="{a}"/>' for t in ("slide", "hinge") for a in AXES), BALL
    ),
    "ball": arm('<joint type="ball" pos="0.1 0.2 0.3" range="0 70" damping="2"/>', BALL),
    "slides and ball": arm(
        '<joint type="slide" axis="1 0 0"/><joint type="ball" pos="0.1 0 0"/>', BALL, pos="1 0 0"
    ),
    "free": arm("<freejoint/>", BALL, pos="1 2 3", quat="1 2 3 4"),
    "free with damping": arm('<joint type="free" damping="3" armature="0.1"/>', BALL),
    "free ignores defaults": arm(
        "<freejoint/>", BALL, before='<default><joint damping="9" type="slide"/></default>'
    ),
    "joint in a frame": arm(
        f'<frame pos="1 2 3" euler="10 20 30"><frame euler="0 0 50">{HINGE}</frame></frame>', BALL
    ),
    "body in a frame": world(
        f'<frame pos="1 2 3" euler="10 20 30">{body("a", HINGE, BALL, pos="0 1 0")}</frame>'
    ),
    "passive": arm(
        '<joint damping="1" stiffness="20" springref="30" frictionloss="0.3" armature="0.02" '
        'range="-50 60" actuatorfrcrange="-3 3"/>',
        BALL,
    ),
    "radians": arm(
        '<joint range="-1 2" ref="0.5" springref="0.3" stiffness="1"/>',
        BALL,
        before='<compiler angle="radian"/>',
        euler="0.1 0.2 0.3",
    ),
    "limited false": arm('<joint range="-1 2" limited="false"/>', BALL),
    "autolimits off": arm(
        '<joint range="-1 2" limited="true"/>', BALL, before='<compiler autolimits="false"/>'
    ),
    "springdamper": arm(
        '<joint springdamper="0.1 0.7" armature="0.3"/>',
        BRICK,
        body("more", '<joint type="ball" springdamper="0.2 1"/>', BALL, pos="0 1 0"),
    ),
    "springdamper on a free base": world(
        body("base", "<freejoint/>", BRICK, body("a", '<joint springdamper="0.1 1"/>', BALL))
    ),
    "springs off": arm(
        '<joint stiffness="3" damping="2" frictionloss="1"/>',
        BALL,
        before='<option gravity="0 1 2"/>',
    ),
    "actuator armature": arm(
        '<joint name="j" armature="0.5" damping="1"/>',
        BALL,
        after='<actuator><motor joint="j" gear="3" armature="0.1" damping="0.2"/></actuator>',
    ),
    "mocap": world(body("eye", BALL, pos="1 2 3", mocap="true"), body("arm", HINGE, BALL)),
    "welded bodies": arm(
        HINGE, BRICK, body("a", BALL, body("b", BALL, pos="0 0 1"), pos="0 1 0", euler="10 0 0")
    ),
    "height field on a post": world(
        body("post", '<geom type="hfield" hfield="h"/>'),
        body("arm", HINGE, BALL),
        before='<asset><hfield name="h" nrow="2" ncol="2" size="1 2 3 4"/></asset>',
    ),
    "negative quaternion": arm(HINGE, BRICK, quat="-3 0.1 0 0"),
    "no names": world(
        "<body><joint/><geom size='1'/><body><joint/><joint/><geom size='1'/></body></body>"
    ),
    "replicate": world(
        '<replicate count="12" sep="_" offset="1 0 0.2" euler="0 0 30">'
        + body("a", '<joint name="j"/>', BALL, '<site name="s"/>', pos="0 1 0")
        + "</replicate>"
    ),
    "nested replicate": world(
        '<replicate count="2" offset="0 1 0" euler="90 0 0"><replicate count="2" sep="-" '
        f'offset="1 0 0" euler="0 90 0">{body("a", HINGE, BALL)}</replicate></replicate>'
    ),
}

DEFAULTS = {
    "main": '<default><geom density="7"/><joint damping="3" axis="0 1 0"/><default class="c"/>'
    '<default class="d"/></default>',
    "nested": '<default><geom density="7" size="0.3"/><default class="c"><joint armature="2"/>'
    '<geom type="capsule" size="0.2 0.5"/><default class="d"><geom density="9"/></default>'
    "</default></default>",
    "main read before its nested classes": '<default><default class="c"><geom density="3"/>'
    '</default><default class="d"/><joint damping="4"/><geom size="0.7"/></default>',
    "two sections": '<default><default class="c"><geom density="3"/></default></default>'
    '<default><geom size="0.5"/><default class="d"><geom density="2"/></default></default>',
    "mass": '<default><geom mass="3"/><default class="c"><geom density="2"/></default>'
    '<default class="d"/></default>',
    "orientation": '<default><geom type="box" size="1 2 3" euler="10 20 30"/><default class="c">'
    '<geom quat="1 1 0 0"/></default><default class="d"><geom zaxis="1 1 1"/></default></default>',
}
for key, text in DEFAULTS.items():
    MODELS[f"defaults: {key}"] = world(
        body("a", "<joint/>", '<geom size="0.15"/>'),
        body("b", "<joint/>", '<geom class="d" size="0.1"/>', childclass="c"),
        body("e", '<joint class="d"/>', "<geom size='0.2'/>"),
        body(
            "f", body("g", "<joint/>", '<geom class="c" density="5" size="0.4"/>'), childclass="d"
        ),
        before=text,
    )
MODELS["defaults: fromto"] = world(
    body("a", "<joint/>", "<geom/>"),
    body("b", "<joint/>", '<geom class="c"/>'),
    body("e", "<joint/>", '<geom class="d" fromto="0 0 0 0 2 0"/>'),
    before='<default><geom type="capsule" size="0.1" fromto="0 0 0 1 0 0"/>'
    '<default class="c"><geom size="0.3"/></default><default class="d"/></default>',
)


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_mujoco(name: str):
    mech = read(MODELS[name])
    rows = agreement(mech, parse_model(MODELS[name]))
    assert rows.dof[0] == rows.dof[1] > 0
    assert rows.worst < 1e-13, rows
    # MuJoCo makes the shell of an ellipsoid from two solids that differ by a micrometre.
    assert rows.inertia < (1e-9 if "shell ellipsoid" in name else 1e-12), rows
    assert rows.axes < 1e-10, rows
    assert rows.drive < 1e-12, rows


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name: str):
    mech = read(MODELS[name])
    back, report = again(mech)
    assert max(differences(mech, back).values()) < 1e-13
    assert not report.affecting("motion")
    assert np.array_equal(back.gravity, mech.gravity)


def test_what_is_replicated_is_named_as_in_mujoco():
    """Bodies, joints, sites and geoms get the suffix of their copy, inner ones first."""
    import mujoco

    text = world(
        '<replicate count="2" sep="_" offset="1 0 0"><replicate count="11" offset="0 1 0">'
        f'<body name="b"><joint name="j"/><site name="s"/>{BALL}</body>'
        "</replicate></replicate>"
    )
    model, mech = mujoco.MjModel.from_xml_string(text), read(text)
    kinds = {"joint": model.njnt, "body": model.nbody, "site": model.nsite}
    names = {
        kind: [getattr(model, kind)(i).name for i in range(count)] for kind, count in kinds.items()
    }
    assert [b.hinge_name for b in mech.bodies] == names["joint"]
    assert len(set(names["joint"])) == 22 and names["joint"][0] != "j"
    assert [b.name for b in mech.bodies] == names["body"][1:]
    assert set(names["site"]) <= {n.name for n in mech.nodes}
