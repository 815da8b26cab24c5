"""Surfaces, pairs and exclusions of MJCF files: what touches what, and how, as in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.errors import ModelError, ParseError
from linkwise.io.mjcf.write import write_mjcf
from linkwise.io.report import Reporter
from linkwise.model.contact import ContactPair, ContactRules, Surface, pair_laws
from linkwise.simulation import contact_points
from tests.io.mjcf_text import read

SCENE = """<mujoco>{before}<worldbody>
  <geom name="floor" type="plane" size="1 1 1" {floor}/>
  <body name="ball" pos="0 0 0.05"><freejoint/><geom name="shape" size="0.1" {ball}/></body>
</worldbody>{after}</mujoco>"""


def scene(floor="", ball="", before="", after=""):
    return SCENE.format(floor=floor, ball=ball, before=before, after=after)


PAIR = '<contact><pair geom1="floor" geom2="shape" {}/></contact>'
CASES = {
    "defaults": scene(),
    "larger": scene('friction="0.3 0.1 0.001" condim="4"', 'friction="0.5 0.01 0.01"'),
    "rolling": scene('friction="0.3" condim="6"', 'friction="0.2 0.01 0.01"'),
    "priority": scene('friction="0.3" condim="6"', 'friction="0.2 0.01" condim="4" priority="1"'),
    "frictionless": scene('condim="1"', 'condim="1"'),
    "margin": scene('margin="0.02"', 'margin="0.01"'),
    "partial default": scene(
        "", 'friction="0.7"', '<default><geom friction="2 0.3 0.1" condim="6"/></default>'
    ),
    "masks": scene('contype="2" conaffinity="0"', 'contype="0" conaffinity="2"'),
    "masks that do not meet": scene('contype="2" conaffinity="2"', 'contype="1" conaffinity="1"'),
    "exclude": scene(after='<contact><exclude body1="ball" body2="world"/></contact>'),
    "pair": scene(
        'contype="0" conaffinity="0"',
        after=PAIR.format('condim="6" friction="0.4 0.4 0.02 0.03 0.03" margin="0.01"'),
    ),
    "pair in place of masks": scene(after=PAIR.format('friction="0.4"')),
    "disabled": scene(before='<option><flag contact="disable"/></option>'),
    "parents touch": scene(before='<option><flag filterparent="disable"/></option>'),
}


def laws(text: str) -> list[tuple[float, ...]]:
    """Friction, spinning, rolling, and where contacts rest, as Linkwise takes them."""
    return [
        (p.ground.friction, p.ground.torsional, p.ground.rolling, p.ground.point[2])
        for p in contact_points(read(text))
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_contacts_have_the_laws_of_mujoco(name: str):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(CASES[name])
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    expected = []
    for contact in data.contact:
        sliding, _, spinning, rolling, _ = contact.friction
        friction = [
            sliding if contact.dim >= 3 else 0.0,
            spinning if contact.dim >= 4 else 0.0,
            rolling if contact.dim == 6 else 0.0,
        ]
        expected.append((*friction, contact.includemargin))
    taken = laws(CASES[name])
    assert len(taken) == len(expected)
    np.testing.assert_allclose(taken, expected, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_contacts_are_written_and_read_back(name: str):
    mech = read(CASES[name])
    again = read(write_mjcf(mech, Reporter("written.xml")))
    assert again.contact_rules == mech.contact_rules
    assert [(p.name, p.ground) for p in contact_points(again)] == [
        (p.name, p.ground) for p in contact_points(mech)
    ]


def test_unknown_shapes_and_bodies_of_contacts_are_named():
    with pytest.raises(ParseError, match="no geom called 'wall'"):
        read(scene(after='<contact><pair geom1="wall" geom2="shape"/></contact>'))
    with pytest.raises(ParseError, match="no body called 'bal'"):
        read(scene(after='<contact><exclude body1="bal" body2="world"/></contact>'))
    with pytest.raises(ParseError, match="'condim' is 2"):
        read(scene('condim="2"'))
    with pytest.raises(ModelError, match="condim of a surface is 2"):
        Surface(condim=2)


def test_rules_follow_a_mounted_mechanism():
    excluded = scene(after='<contact><exclude body1="ball" body2="world"/></contact>')
    two = read(scene()).mount(read(excluded), at="world", prefix="b_")
    assert two.contact_rules.excludes == (("b_ball", "b_worldbody"),)
    names = sorted((p.body, p.ground.point) for p in contact_points(two))
    # Each ball may touch both floors, but for the excluded one.
    assert [body for body, _ in names] == ["b_ball", "ball", "ball"]
    rules = ContactRules((ContactPair("a", "b", Surface(0.5)),))
    assert pair_laws(rules, "b", "a") == Surface(0.5)
    assert pair_laws(rules, "b", "c") is None
