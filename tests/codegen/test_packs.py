"""Limbs of equal build side by side in one motion: what they have alike, and the same numbers."""

from collections import Counter

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.request import Request
from linkwise.codegen.scalar.limb_entries import limb_entries
from linkwise.codegen.scalar.packs import PACKED, Packs
from linkwise.codegen.stages import traced
from linkwise.codegen.stepping import llvm, llvm_packed
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.quantity import expression
from linkwise.simulation import ContactPoint, Ground, ground_contacts
from linkwise.simulation.motion_request import MotionRequest
from tests.simulation.moving import Given

STEP, STEPS = 2e-3, 60


def octopus():
    """A free body with three arms of a ball and a pin, which differ in size and direction.

    One more has other hinges.
    """
    b = lw.Builder("octopus")
    ball = lw.SpatialInertia.solid_sphere(2.0, 0.1)
    hub = b.body("hub", "world", lw.hinges.Free(), inertia=ball)
    for i in range(4):
        part = lw.SpatialInertia.solid_box(0.3 + 0.1 * i, [0.2, 0.05, 0.04])
        place = [0.1 * np.cos(i), 0.1 * np.sin(i), 0.02 * i]
        hinge = lw.hinges.Spherical() if i < 3 else lw.hinges.Pin([0.0, 1.0, 0.0])
        drive = lw.Drive(damping=0.02 * (i + 1))
        hub.body(f"arm{i}", "hub", hinge, inertia=part, inboard=place, drive=drive)
        hub.body(
            f"tip{i}", f"arm{i}", lw.hinges.Pin([0.0, (-1.0) ** i, 0.0]), inertia=part,
            inboard=[0.2, 0.0, 0.0], drive=lw.Drive(lower=-0.4, upper=0.4),
        )  # fmt: skip
    return b.build()


def robots():
    feet = Ground(friction=0.7, torsional=0.01, rolling=0.005)
    dog = lw.models.quadruped()
    yield dog, ground_contacts(dog, feet, bodies=[node.name for node in dog.nodes])
    other = octopus()
    yield other, tuple(ContactPoint(f"tip{i}", f"tip{i}", (0.1, 0.0, 0.0), 0.02) for i in range(4))


ROBOTS = {mech.name: (mech, points) for mech, points in robots()}


def graph_of(mech):
    return traced(Request((expression("forward_dynamics"),), mech, ()))


def packs_of(mech):
    code = graph_of(mech)
    graph, order = code.graph, code.graph.used(code.roots)
    node, at, alike = {graph.a[n]: n for n in order if graph.op[n] == "input"}, 0, []
    for _, size in code.inputs:
        for pack in limb_entries(mech).get(size, ()):
            if all(at + i in node for i in pack):
                alike.append(tuple(node[at + i] for i in pack))
        at += size
    return code, order, Packs(graph, order, alike)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_pack_is_one_operation_and_comes_behind_its_operands(name):
    code, order, packs = packs_of(ROBOTS[name][0])
    graph, done, units = code.graph, set(), packs.units(order)
    assert Counter(n for nodes in units for n in nodes) == Counter(order)
    for nodes in units:
        kinds = {graph.op[n] for n in nodes}
        assert len(kinds) == 1 or kinds == {"add", "sub"}
        assert len(nodes) == 1 or graph.op[nodes[0]] in PACKED
        assert done.issuperset(x for n in nodes for x in graph.arguments(n))
        done.update(nodes)


def test_most_of_a_quadruped_is_done_for_four_legs_at_once():
    code, order, packs = packs_of(ROBOTS["quadruped"][0])
    operations = [n for n in order if code.graph.op[n] not in ("const", "input")]
    single = [nodes for nodes in packs.units(order) if len(nodes) == 1]
    single = [n for (n,) in single if code.graph.op[n] not in ("const", "input")]
    assert {len(pack) for pack in packs.packs} == {4}
    assert len(single) < 0.2 * len(operations)


def test_signs_of_mixed_sums_are_those_of_their_operands():
    _, _, packs = packs_of(ROBOTS["octopus"][0])
    graph, mixed = packs.graph, 0
    for i, nodes in enumerate(packs.packs):
        if packs.computed(i) and packs.is_sum(nodes):
            columns = packs.columns(nodes)
            mixed += len({graph.op[n] for n in nodes}) > 1
            each = [zip(c, packs.signs(nodes, c), strict=True) for c in columns]
            for n, *pairs in zip(nodes, *each, strict=True):
                first, second = graph.a[n], graph.b[n]
                right = [(first, 1.0), (second, 1.0 if graph.op[n] == "add" else -1.0)]
                assert sorted(pairs) == sorted(right)
    assert mixed > 10


def test_operands_of_a_pack_match_in_either_order():
    _, _, packs = packs_of(ROBOTS["quadruped"][0])
    columns = [c for i, x in enumerate(packs.packs) if packs.computed(i) for c in packs.columns(x)]
    apart = [c for c in columns if packs.pack_of(c) is None and len(set(c)) > 1]
    apart = [c for c in apart if any(packs.graph.op[x] != "const" for x in c)]
    assert len(apart) < 0.05 * len(columns)


def stepping_of(mech, points, itemsize=8, integrator="implicit"):
    return MotionRequest(mech, integrator, itemsize=itemsize, contacts=points).stepping("cpu")


def moved(mech, points, itemsize, integrator):
    stepping = stepping_of(mech, points, itemsize, integrator)
    kernel = MotionKernel(Given(mech, stepping, itemsize, alone=True))
    rng = np.random.default_rng(2)
    q = mech.integrate(mech.neutral(), 0.3 * rng.normal(size=mech.nv))
    q[6] = 0.1
    held = {x: 0.5 * rng.normal(size=size) for x, size in kernel.held}
    v = rng.normal(size=mech.nv)
    done = kernel.run(q[None], v[None], held, STEP, STEPS, 1)
    assert not done.status.any()
    return done.records[0]


@pytest.mark.parametrize(("name", "itemsize", "integrator"), [
    pytest.param("quadruped", 8, "implicit", marks=pytest.mark.prove),
    pytest.param("octopus", 4, "implicit", marks=pytest.mark.prove),
    ("octopus", 8, "implicit"),
    ("quadruped", 8, "rk4"),
])  # fmt: skip
def test_limbs_side_by_side_move_as_those_one_by_one(name, itemsize, integrator, monkeypatch):
    mech, points = ROBOTS[name]
    points = points if integrator == "implicit" else ()
    packed = moved(mech, points, itemsize, integrator)
    monkeypatch.setattr(llvm_packed, "LONGEST", 100)
    monkeypatch.setattr(llvm_packed, "PART", 60)
    parts = moved(mech, points, itemsize, integrator)
    monkeypatch.setattr(llvm, "limb_entries", lambda mech: {})
    single = moved(mech, points, itemsize, integrator)
    most = 10 if itemsize == 4 else 40  # until impacts have told rounding apart
    near = 2e-4 if itemsize == 4 else 1e-8
    np.testing.assert_allclose(packed[:most], single[:most], rtol=near, atol=near)
    np.testing.assert_allclose(parts[:most], single[:most], rtol=near, atol=near)
    if points and itemsize == 8:
        assert np.abs(single[:most, mech.nq + mech.nv :]).max() > 0.01  # it touches


def test_code_for_one_motion_has_vectors_of_limbs():
    mech, points = ROBOTS["quadruped"]
    stepping = stepping_of(mech, points)
    with_limbs, without = (
        llvm.emit_stepping(stepping, itemsize=8, lanes=1, packed=1, mech=x).text
        for x in (mech, None)
    )
    assert with_limbs.count("<4 x double>") > 500 > without.count("<4 x double>") == 0
    arithmetic = [
        sum(x.count(op) for op in ("fmul", "fadd", "fsub")) for x in (with_limbs, without)
    ]
    assert arithmetic[0] < 0.8 * arithmetic[1]
