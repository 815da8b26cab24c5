"""Implicit steps beside dense matrices, and laws solved row by row in extended precision."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.dynamics.passive import passive
from linkwise.errors import UnsolvedWarning
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.simulation.implicit.segments import implicit_stepping
from tests.simulation.dense_step import stepped
from tests.simulation.moving import Given

STEP = 2e-3
LAWS = ({"friction": 0.0}, {"friction": 0.6}, {"friction": 0.6, "torsional": 0.02},
        {"friction": 0.6, "torsional": 0.02, "rolling": 0.01},
        {"friction": 0.3, "restitution": 0.5})  # fmt: skip


def by_kernel(mech, q, v, tau, points, command):
    """v' in the axes before the step and λ, by sweeps until nothing changes."""
    drives = passive(mech)
    made = implicit_stepping(
        mech, 8, drives if drives.any else None, joints_with_rows(mech), points,
        actuated=bool(mech.actuators), observed=True, branches=True, late=0.0, sweeps=100_000,
    )  # fmt: skip
    kernel, at = MotionKernel(Given(mech, made)), mech.nq + mech.nv
    given = {name: np.zeros((1, size)) for name, size in kernel.held} | {"tau": tau[None]}
    given |= {name: np.zeros(size) for name, size in kernel.begins}
    given |= {"control": np.array([command])} if mech.actuators else {}
    run = kernel.run(q[None], v[None], given, STEP, 1, 1)
    assert not run.status.any()
    parts = dict[str, np.ndarray]()
    for name, size in kernel.shown.items():
        parts[name] = run.records[0, 0, at : at + size]
        at += size
    return parts["reached"], parts["impulse"], parts["residual"][0]


def grounded(mech, q, rng, bodies, laws, count, apart=2e-3):
    """Balls on bodies with a plane each, near or in it."""
    points = list[ContactPoint]()
    for i in range(count):
        body, place = bodies[rng.integers(len(bodies))], 0.2 * rng.standard_normal(3)
        pose, radius = mech.pose(q, body), 0.03 * (i % 2)
        n = np.array([0.0, 0.0, 1.0]) + 0.3 * rng.standard_normal(3)
        n /= np.linalg.norm(n)
        below = pose.rot @ place + pose.p - (radius + apart * rng.standard_normal()) * n
        ground = Ground(below, n, **laws[i % len(laws)])
        points.append(ContactPoint(f"c{i}", body, place, radius, ground))
    return tuple(points)


def walker(seed, *, closed, servos):
    """A free trunk with three legs, some at their stops, some with friction; perhaps a loop."""
    rng = np.random.default_rng(seed)

    def inertia(mass):
        com, moments = 0.1 * rng.standard_normal(3), mass * np.array([0.02, 0.03, 0.025])
        return lw.SpatialInertia.from_com(mass, com, moments)

    b, start = lw.Builder("walker"), {"trunk": None}
    b.body("trunk", hinge=lw.hinges.Free(), inertia=inertia(5.0))
    for leg in range(3):
        parent = "trunk"
        for part in range(2):
            name, stop = f"{'abc'[leg]}{part}", {0: -0.5, 1: 0.4}.get(leg)
            limits = {0: {"lower": stop}, 1: {"upper": stop}}.get(leg, {})
            rub = 0.3 * rng.random() if part else 0.0
            drive = lw.Drive(damping=0.2, stiffness=1.0 * part, friction=rub, armature=0.01,
                             **limits)  # fmt: skip
            axis, place = rng.standard_normal(3), 0.3 * rng.standard_normal(3)
            pin, place = lw.hinges.Pin(axis / np.linalg.norm(axis)), lw.Pose.translation(place)
            b.body(name, parent, pin, inboard=place, inertia=inertia(1.0), drive=drive)
            parent, start[name] = name, 0.2 if stop is None else stop
    if servos:
        for name in ("a1", "c0"):
            b.actuator(lw.Actuator.position(name, name, kp=300.0, kv=8.0))
    tree, turn = b.build(), rng.standard_normal(4)
    q = np.concatenate([turn / np.linalg.norm(turn), rng.standard_normal(3),
                        [start[body.name] for body in tree.bodies[1:]]])  # fmt: skip
    v = rng.standard_normal(tree.nv)
    if closed:
        meet = tree.pose(q, "a0").p + 0.1 * rng.standard_normal(3)
        for name in ("a0", "c1"):
            pose = tree.pose(q, name)
            b.node(f"{name}_end", name, lw.Pose.translation(pose.rot.T @ (meet - pose.p)))
        b.loop("loop", "a0_end", "c1_end", lw.hinges.Spherical())
        v = lw.loops.project_velocity(b.build(), q, v)
    mech = b.build()
    tau = np.concatenate([np.zeros(6), 3.0 * rng.standard_normal(tree.nv - 6)])
    points = grounded(mech, q, rng, [body.name for body in mech.bodies], LAWS, 8)
    return mech, q, v, tau, points, [0.3, -0.4] if servos else []


def box(seed, speed):
    """A box on twelve points, half of which say nothing new: it falls, slides and turns."""
    rng = np.random.default_rng(seed)
    inertia = lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.1))
    b = lw.Builder("box").body("box", hinge=lw.hinges.Free(), inertia=inertia)
    ground = Ground(friction=0.4, restitution=0.6)
    points = tuple(ContactPoint(f"{x}{y}", "box", (x, y, -0.05), ground=ground)
                   for x in (-0.2, -0.1, 0.1, 0.2) for y in (-0.15, 0.0, 0.15))  # fmt: skip
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05 - 1e-4])
    v = np.array([0.1, -0.2, 0.5, 0.3, 0.1, speed]) * (1.0 + 0.1 * rng.random(6))
    return b.build(), q, v, np.zeros(6), points, []


CASES = {
    "tree": lambda: walker(0, closed=False, servos=False),
    "loop": lambda: walker(2, closed=True, servos=False),
    "servos": lambda: walker(3, closed=True, servos=True),
    "box lands": lambda: box(0, -0.04),
    "box bounces": lambda: box(1, -1.5),
    **{f"tree {k}": lambda k=k: walker(k, closed=False, servos=k % 2 == 0) for k in (4, 5, 6)},
    **{f"loop {k}": lambda k=k: walker(k, closed=True, servos=k % 2 == 0) for k in (7, 8, 9)},
}
FIRST = ("tree", "servos", "box bounces")


@pytest.mark.parametrize(
    "name", [x if x in FIRST else pytest.param(x, marks=pytest.mark.prove) for x in CASES]
)
def test_a_step_is_that_of_dense_matrices(name):
    mech, q, v, tau, points, command = CASES[name]()
    expected, push, change = stepped(mech, q, v, tau, STEP, points, command)
    assert change < 1e-16  # in long double
    reached, impulse, residual = by_kernel(mech, q, v, tau, points, command)
    assert residual < 1e-9
    np.testing.assert_allclose(reached, expected, rtol=0, atol=5e-9)
    free = stepped(mech, q, v, tau, STEP, (), command)[0]
    assert np.abs(expected - free).max() > 1e-2  # they push
    assert np.count_nonzero(push) > 3 and impulse.shape == push.shape


def test_a_heavy_leg_on_a_light_foot_is_reported():
    """20 kg on 20 g: sweeps would take thousands of rounds, and say so."""
    b = lw.Builder("leg")
    leg = lw.SpatialInertia.solid_box(20.0, [0.2, 0.2, 0.8])
    body = b.body("leg", "world", lw.hinges.Free(), inertia=leg)
    sole = lw.SpatialInertia.solid_box(0.02, [0.2, 0.1, 0.02])
    body.body("foot", "leg", lw.hinges.Pin([0.0, 1.0, 0.0]), inertia=sole,
              drive=lw.Drive(friction=30.0), inboard=[0.0, 0.0, -0.4])  # fmt: skip
    mech, ground = b.build(), Ground(friction=0.8)
    points = [ContactPoint(f"{x:+}{y:+}", "foot", (x, y, -0.05), ground=ground)
              for x in (-0.1, 0.0, 0.12) for y in (-0.05, 0.05)]  # fmt: skip
    q, v = mech.neutral(), np.zeros(7)
    q[6], v[1], v[3] = 0.45, 0.003, 0.003 * 0.45
    with pytest.warns(UnsolvedWarning, match="'leg' did not find the impulses"):
        runs = lw.rollout(mech, q, v, duration=0.6, step=STEP, integrator="implicit",
                          contacts=points)  # fmt: skip
    assert 1e-3 < runs.unsolved[-1] < 5e-3
    weight = runs.contact_forces[1:, :, 2].sum(axis=1)
    assert abs(weight.mean() - 20.02 * 9.81) < 0.02 * 20.02 * 9.81
    assert runs.penetration.max() < 1e-4
