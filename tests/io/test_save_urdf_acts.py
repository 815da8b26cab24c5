"""What acts on random mechanisms, written to URDF and read again: the same, or in the report."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.model.contact import ContactPair, ContactRules, Surface
from tests.io.urdf_text import again

HINGES = (
    lw.hinges.Pin((0.6, 0.0, 0.8)), lw.hinges.Prismatic((0.0, 0.6, 0.8)), lw.hinges.Pin(),
    lw.hinges.Spherical(), lw.hinges.Planar(), lw.hinges.Universal(), lw.hinges.Cylindrical(),
)  # fmt: skip
ROLES = ("collision", "both", "visual")


def numbers(rng, size, low=0.1, high=2.0):
    """One number, or one for each."""
    values = rng.uniform(low, high, size)
    return float(values[0]) if size == 1 or rng.random() < 0.5 else tuple(values)


def drive(rng, hinge, share):
    """Some of everything that acts in a hinge."""
    kinds = {name: (0.1, 2.0) for name in ("armature", "rotor_inertia", "damping", "friction",
             "stiffness", "rest", "upper", "effort", "velocity")}  # fmt: skip
    kinds |= {"gear_ratio": (2.0, 50.0), "lower": (-2.0, -0.1)}
    given = {}
    for name, bounds in kinds.items():
        size = hinge.nq if name in ("rest", "lower", "upper") else hinge.nv
        if rng.random() < share and (size == hinge.nv or name == "rest"):
            given[name] = numbers(rng, size, *bounds)
    if isinstance(hinge, lw.hinges.Spherical):
        given.pop("rest", None)
        if rng.random() < share:
            given["max_angle"] = 1.0
    return lw.Drive(**given)


def actuator(rng, name, hinges):
    """Any kind of actuator of one or two hinges, or of a node."""
    one, two = (hinges[i] for i in rng.choice(len(hinges), 2, replace=False))
    kind = rng.integers(7)
    if kind < 3:
        return lw.Actuator.motor(name, one)
    if kind == 3:
        return lw.Actuator.motor(name, one, gear=3.0, force=(-1.0, 2.0))
    if kind == 4:
        return lw.Actuator.position(name, one, kp=20.0, kv=1.0, control=(-1.0, 1.0))
    if kind == 5:
        return lw.Actuator(name, ((one, 1.0), (two, -0.5)))
    return lw.Actuator(name, node="tip", wrench=(0.0, 0.0, 0.0, 1.0, 0.0, 0.0),
                       dynamics="filter", time_constant=0.1)  # fmt: skip


def acting(seed):
    """A random tree with drives, actuators, surfaces, and rules for contacts."""
    rng = np.random.default_rng(seed)
    share = (0.0, 0.2, 0.6)[seed % 3]
    kinds = HINGES[:3] if seed % 2 else HINGES
    b, names, hinges = lw.Builder(f"m{seed}"), ["world"], []
    for i in range(5):
        hinge = kinds[rng.integers(len(kinds))] if i else kinds[2]
        shapes = [
            lw.Geometry(f"s{i}{j}", "box", (0.1, 0.2, 0.3), lw.Pose.identity(),
                        ROLES[rng.integers(3)], surface=surface(rng, share))
            for j in range(rng.integers(3))
        ]  # fmt: skip
        b.body(f"b{i}", names[rng.integers(len(names))], hinge, hinge_name=f"h{i}",
               inboard=lw.Pose.translation(rng.standard_normal(3)),
               inertia=lw.SpatialInertia.solid_box(1.0 + rng.random(), (0.2, 0.3, 0.4)),
               drive=drive(rng, hinge, share), geometry=shapes)  # fmt: skip
        names.append(f"b{i}")
        hinges += [f"h{i}"] if hinge.nv == 1 else []
    b.node("tip", "b4", (0.1, 0.0, 0.0))
    if len(hinges) > 1:
        b.actuator(*(actuator(rng, f"a{i}", hinges) for i in range(rng.integers(5))))
    rules = ContactRules()
    if rng.random() < share:
        b.node("load", "b3", inertia=lw.SpatialInertia.solid_box(0.3, (0.1, 0.1, 0.1)))
        rules = ContactRules((), (("b1", "b2"),), bool(rng.random() < 0.5), True)
    mech = b.build(contact_rules=rules)
    named = [x.name for body in mech.bodies for x in body.geometry if x.role != "visual"]
    if len(named) > 1 and rng.random() < share:
        pair = ContactPair(named[0], named[-1])
        mech = replace(mech, contact_rules=replace(rules, pairs=(pair,)))
    if rng.random() < share:
        mech = replace(mech, gravity_compensation=(("b2", 0.7),))
    return mech if rng.random() > share else replace(mech, gravity=np.array([0.0, 1.0, -3.0]))


def surface(rng, share):
    """How a shape rubs, and whom it touches."""
    given = {}
    if rng.random() < 0.5:
        given |= {"friction": (0.3, 1.0)[rng.integers(2)], "priority": int(rng.integers(2))}
    if rng.random() < share:
        given |= {"condim": 4, "torsional": 0.02, "margin": 0.001}
    if rng.random() < share:
        given |= {"contype": 2, "conaffinity": 3}
    return Surface(**given)


def lost(mech, back):
    """What acts otherwise in the mechanism that was read: the words that a report has for it."""
    out = set()
    drives = {body.hinge_name: body for body in back.bodies}
    for body in mech.bodies:
        for i in range(body.hinge.nv):
            name, dof = body.hinge_name, i
            if name not in drives or drives[name].hinge.nv != body.hinge.nv:
                name, dof = f"{name}__{body.hinge.coordinates[i].name}", 0
            if name not in drives or differ(body, i, drives[name], dof):
                out.add(f"hinge '{body.hinge_name}'")
    known = {x.name: x for x in back.actuators}
    out |= {f"actuator '{x.name}'" for x in mech.actuators if known.get(x.name) != x}
    if not np.array_equal(mech.gravity, back.gravity):
        out.add("gravity")
    if mech.gravity_compensation != back.gravity_compensation:
        out.add("gravity compensation")
    for a, b in ((x, back.body(x.name)) for x in mech.bodies):
        ours = [x.surface for x in a.geometry if x.role != "visual"]
        theirs = [x.surface for x in b.geometry if x.role != "visual"]
        if [x.friction for x in ours] != [x.friction for x in theirs]:
            out.add(f"friction of '{a.name}'")
        if [x.priority for x in ours if x.friction != 1.0] != [
            1 for x in ours if x.friction != 1.0
        ]:
            out.add(f"friction of '{a.name}'")
        for shape in a.geometry:
            s, usual = shape.surface, Surface()
            if shape.role == "visual":
                continue
            if (s.contype, s.conaffinity) != (usual.contype, usual.conaffinity):
                out.add("masks of")
            if (s.condim, s.torsional) != (usual.condim, usual.torsional):
                out.add("spinning and rolling friction")
            if s.margin != usual.margin:
                out.add("margins of")
    rules, read = mech.contact_rules, back.contact_rules
    out |= {"contact pairs"} if rules.pairs != read.pairs else set()
    out |= {"exclusion of"} if rules.excludes != read.excludes else set()
    out |= {"contacts with parents"} if rules.parents != read.parents else set()
    return out


def differ(a, i, b, j):
    """Whether something acts otherwise along velocity i of a and j of b."""
    one, two = a.drive, b.drive
    for field in fields(lw.Drive):
        name = field.name
        if name in ("armature", "rotor_inertia", "gear_ratio", "max_angle"):
            continue
        x, y = one.array(name, a.hinge), two.array(name, b.hinge)
        place = [(x, i), (y, j)]
        if a.hinge.nq != a.hinge.nv and name in ("rest", "lower", "upper"):
            continue
        if place[0][0][i] != place[1][0][j]:
            return True
    reflected = [
        d.array("armature", h)[k]
        + d.array("gear_ratio", h)[k] ** 2 * d.array("rotor_inertia", h)[k]
        for d, h, k in ((one, a.hinge, i), (two, b.hinge, j))
    ]
    return not np.isclose(*reflected, rtol=1e-13) or one.max_angle != two.max_angle


@pytest.mark.parametrize("seed", range(60))
def test_what_acts_is_written_or_reported(seed):
    mech = acting(seed)
    back, report = again(mech)
    elements, words = [item.element for item in report], lost(mech, back)
    for word in words:
        assert any(word in element for element in elements), (word, elements)
    for element in (x.element for x in report if x.effect == "ignored"):
        # what came back is not reported; a drive that moves nothing may be, a bare gear ratio
        if not element.startswith("hinge"):
            assert any(word in element for word in words), (element, words)


def test_actuators_at_nodes_are_reported_beside_others():
    b = lw.Builder("r").body("b", hinge=lw.hinges.Pin(), hinge_name="h",
                             inertia=lw.SpatialInertia.solid_box(1.0, (0.2, 0.3, 0.4)))  # fmt: skip
    b.node("tip", "b", (0.1, 0.0, 0.0))
    wrench = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    b.actuator(*(lw.Actuator(name, node="tip", wrench=wrench) for name in ("jet", "fan")))
    b.actuator(lw.Actuator.motor("motor", "h"))
    back, report = again(b.build())
    assert [x.name for x in back.actuators] == ["motor"]
    assert [x.element for x in report] == ["actuator 'jet'", "actuator 'fan'"]
