"""Mechanisms as JSON: what is read is what was written, bit by bit; wrong files name the place."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cpu.digest import digest
from linkwise.errors import LinkwiseError, ModelError, ParseError
from linkwise.io.mechanism_json import FORMAT, written
from linkwise.model.contact import ContactPair, ContactRules, Surface
from linkwise.model.geometry import Geometry
from linkwise.model.grid import Grid
from linkwise.model.hinges.modified import Reversed
from tests.cases import TREES, tree
from tests.flexible.cases import mechanism
from tests.flexible.test_every_hinge import mechanism as on_hinge
from tests.model.hinge_cases import HINGES


def same(a: lw.Mechanism, b: lw.Mechanism) -> None:
    """Every field of every part has the same bits; where the file is may differ."""
    report = replace(a.load_report, source="")
    a, b = replace(a, load_report=report), replace(b, load_report=report)
    parts = [
        [getattr(m, name) for name in ("bodies", "nodes", "loops", "couplings", "actuators")]
        + [m.name, m.gravity, m.contact_rules, m.gravity_compensation]
        for m in (a, b)
    ]
    assert digest(parts[0]) == digest(parts[1])


def everything() -> lw.Mechanism:
    """A mechanism with each kind of part."""
    rng = np.random.default_rng(3)
    mech = mechanism(3, base=lw.hinges.Free(), loop=lw.hinges.Cylindrical((1.0, 2.0, -0.3)))
    pose = lw.Pose.rpy(rng.standard_normal(3), rng.standard_normal(3))
    surface = Surface(friction=0.7, condim=4, margin=1e-3)
    shapes = (
        Geometry("a", "box", (0.1, 0.2, 0.3), pose, rgba=(0.1, 0.2, 0.3, 1.0), surface=surface),
        Geometry("b", "hfield", (1.0, 1.0, 0.1), pose, grid=Grid(rng.standard_normal((2, 3)))),
        Geometry("c", "mesh", (), pose, file="part.stl", scale=(1.0, 2.0, 0.1)),
    )
    bodies = list(mech.bodies)
    limits = lw.Drive(lower=-0.3, upper=np.inf, rotor_inertia=0.1 / 3.0, gear_ratio=7.0)
    bodies[-1] = replace(bodies[-1], geometry=shapes, drive=limits)
    balls = (*mech.nodes, lw.Node("ball", bodies[-1].name, pose, lw.SpatialInertia.point(0.1)))
    name = bodies[-1].hinge_name
    return replace(
        mech,
        bodies=tuple(bodies),
        nodes=balls,
        couplings=(lw.Coupling("gear", name, (("twig[0]", (0.3, 0.1)),), 0.01),),
        actuators=(
            lw.Actuator("motor", ((name, 2.0),), force=(-1.0, np.inf)),
            lw.Actuator("cable", cables=(("hand", "thorn", 1.5),)),
        ),
        contact_rules=ContactRules((ContactPair("a", "b", surface),), (("hand", "thorn"),)),
        gravity_compensation=(("hand", 0.5),),
    )


@pytest.mark.filterwarnings("ignore")
def test_what_is_read_is_what_was_written(tmp_path):
    mech = everything()
    report = lw.save(mech, tmp_path / "robot.json")
    assert [item.element for item in report] == ["mesh 'part.stl'"]  # there is no such mesh
    again = lw.load(tmp_path / "robot.json")
    same(mech, again)
    q, v = mech.random(0), mech.random_velocity(0)
    assert np.array_equal(lw.mass_matrix(mech, q), lw.mass_matrix(again, q))
    a, b = (lw.passive_force(m, q, v) for m in (mech, again))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("name", TREES)
def test_every_mechanism_of_the_tests(name):
    mech = tree(name)
    same(mech, lw.load(written(mech)))


@pytest.mark.parametrize("name", [k for k, x in HINGES.items() if "custom" not in x.kind])
def test_every_hinge(name):
    """With all digits, though axes are made unit vectors again; on flexible bodies, too."""
    hinge = HINGES[name]
    mech = on_hinge(1, hinge)
    same(mech, lw.load(written(mech)))
    for other in (Reversed(hinge), *((lw.hinges.Locked(hinge),) if hinge.nv else ())):
        mech = lw.Builder("one").body("a", "world", other, inertia=lw.SpatialInertia.point(1.0))
        same(mech.build(), lw.load(written(mech.build())))
    if hinge.nv < 6:
        loop = lw.Builder("loop").body("a", "world", lw.hinges.Pin())
        loop = loop.loop("held", "a", "world", hinge).build()
        same(loop, lw.load(written(loop)))


def test_what_a_file_lost_stays_reported(tmp_path):
    text = """<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute">
    <parent link="a"/><child link="b"/><limit lower="-1" upper="1"/></joint></robot>"""
    mech = lw.load(text)
    lw.save(mech, tmp_path / "r.json")
    again = lw.load(tmp_path / "r.json")
    assert [x.reason for x in again.load_report] == [x.reason for x in mech.load_report] != []
    assert again.load_report.source == str(tmp_path / "r.json")
    with pytest.raises(ParseError, match=r"position limits.*strict"):
        lw.load(tmp_path / "r.json", strict="motion")


def test_defaults_are_left_out_and_people_can_write_it():
    pin = lw.Builder("pin").body("a", "world", lw.hinges.Pin(), inertia=lw.SpatialInertia.point(1))
    body = json.loads(written(pin.build()))["bodies"][0]
    assert set(body) == {"name", "parent", "hinge", "hinge_name", "inertia"}
    text = f"""{{"format": "{FORMAT}", "name": "pin", "bodies": [
      {{"name": "a", "parent": "world", "hinge": {{"kind": "Pin", "axis": [0, 0, 2]}},
       "hinge_name": "a", "inertia": {{"mass": 1, "h": [0, 0, 0],
       "J": [[0, 0, 0], [0, 0, 0], [0, 0, 0]]}}}}]}}"""
    same(pin.build(), lw.load(text))


def test_functions_cannot_be_written(tmp_path):
    custom = next(x for x in HINGES.values() if x.kind == "custom")
    for hinge in (custom, Reversed(custom), lw.hinges.Locked(custom)):
        mech = lw.Builder("cam").body("a", "world", hinge, inertia=lw.SpatialInertia.point(1.0))
        with pytest.raises(ModelError, match=r"'a' of 'cam' has the hinge.*functions"):
            lw.save(mech.build(), tmp_path / "cam.json")
    assert not (tmp_path / "cam.json").exists()


GOOD = {"format": FORMAT, "name": "arm", "bodies": [
    {"name": "a", "parent": "world", "hinge": {"kind": "Pin"}, "hinge_name": "a"}]}  # fmt: skip


def changed(place: str, value: object) -> str:
    data = json.loads(json.dumps(GOOD))
    *path, last = [int(x) if x.isdigit() else x for x in place.split(".")]
    inner = data
    for key in path:
        inner = inner[key]
    inner[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ("format", "linkwise mechanism 2", 'first entry must be "format"'),
        ("label", "x", "no entry called 'label' in the mechanism"),
        ("bodies", {}, "bodies is {}; it must be a list"),
        ("bodies.0", 3, r"bodies\[0\] is 3; it must be an object with the fields of Body"),
        ("bodies.0.hinge", "Pin", r"bodies\[0\].hinge is \"Pin\"; it must be a hinge, like"),
        (
            "bodies.0.hinge.kind",
            "Pni",
            r"no kind of hinge called 'Pni' in bodies\[0\].hinge.*'Pin'",
        ),
        ("bodies.0.hinge.kind", "CustomHinge", "no kind of hinge called 'CustomHinge'"),
        ("bodies.0.hinge.axis", [0, 1], r"hinge.axis is \[0, 1\]; it must be a list of 3"),
        ("bodies.0.hinge.axis", [0, 0, 0], r"bodies\[0\].hinge: .*axis"),
        ("bodies.0.hinge.axis", [0, 0, "nan"], r"axis\[2\] is \"nan\"; it must be a number"),
        ("bodies.0.parent", "b", "'a'.*'b'"),
        ("bodies.0.inboard", {"p": [0, 0, 1]}, r"inboard has no entry 'rot'"),
        ("bodies.0.inboard", {"p": [0, 0, 1], "rot": [[1, 0], [0, 1, 0]]}, "lists of equal length"),
        ("bodies.0.drive", {"damping": [1, 2]}, "damping"),
        ("bodies.0.drive", {"damping": True}, r"drive.damping is true; it must be a number"),
        ("bodies.0.drive", {"lower": "-inf", "upper": "many"}, r"drive.upper is \"many\""),
        ("gravity", [0, 0], "gravity"),
        ("gravity", [[0, 0, "inf"]], "gravity"),
        (
            "nodes",
            [{"name": "n", "body": "a", "kind": "x"}],
            r"nodes\[0\].kind is \"x\".*\"frame\"",
        ),
        ("couplings", [{"name": "c", "dependent": "a", "terms": [["b", [1]]]}], "'b'"),
        ("contact_rules", {"active": 1}, "contact_rules.active is 1; it must be true or false"),
    ],
)
def test_wrong_entries_are_named(place, value, reason):
    assert lw.load(json.dumps(GOOD)).nv == 1
    with pytest.raises(ParseError, match=reason):
        lw.load(changed(place, value))


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "robot.json"
    file.write_text('{"format": "linkwise mechanism 1",\n "name": }')
    with pytest.raises(ParseError, match=r"robot.json:2: this is not JSON: .*column 10"):
        lw.load(file)
    for data in (b"[1, 2]", b"<robot/>", b"", b"\xff\xfe", b'{"a": ' * 5000, b"[" * 100_000):
        file.write_bytes(data)
        with pytest.raises(ParseError, match="this is not"):
            lw.load(file)
    file.write_text(json.dumps(GOOD))
    with pytest.raises(ParseError, match="base is given"):
        lw.load(file, base="free")


def test_damaged_files_are_refused_or_read():
    """A piece is cut out or another number put in: a mechanism, or an error of the library."""
    text, rng = written(everything()), np.random.default_rng(0)
    odd = ["NaN", "1e999", "-0", '""', "null", "[]", "{}", '"inf"', "true", "-1", "9" * 400]
    verdicts = set[str]()
    for _ in range(60):
        a = int(rng.integers(40, len(text) - 20))
        b = text.index(",", a) if "," in text[a:] else a
        piece = odd[int(rng.integers(len(odd)))] if rng.random() < 0.7 else ""
        start = text.rindex(" ", 0, a)
        try:
            lw.load(text[:start] + piece + text[b:])
            verdicts.add("loaded")
        except LinkwiseError:
            verdicts.add("refused")
    assert "refused" in verdicts
