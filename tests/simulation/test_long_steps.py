"""Steps of long mechanisms against the kernels of `lw.rollout`, on mechanisms that have both."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LoweringError, ModelError, TroubleWarning
from linkwise.model.hinges import Locked, Pin, Spherical
from linkwise.simulation.implicit import long_steps
from linkwise.simulation.implicit.long_steps import LongSteps
from linkwise.simulation.implicit.segments import UNSOLVED
from linkwise.simulation.implicit.step_record import Steps
from linkwise.simulation.implicit.steps import KernelSteps
from linkwise.spatial.inertia import SpatialInertia

H, STEPS = 2e-3, 40


def jointed() -> lw.Mechanism:
    """A ball with a spring, pins with dampers, friction, limits and servos."""
    b = lw.Builder("jointed")
    inertia = SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.4)).moved(
        lw.Pose.translation((0.02, 0.0, -0.2))
    )
    below = lw.Pose.translation((0.0, 0.0, -0.4))
    drive = lw.Drive(stiffness=(30.0, 30.0, 30.0), damping=(0.1, 0.1, 0.1))
    b.body("ball", "world", Spherical(), inertia=inertia, drive=drive)
    b.body(
        "rubbed", "ball", Pin((0, 1, 0)), inboard=below, inertia=inertia,
        drive=lw.Drive(friction=0.3, damping=0.05),
    )  # fmt: skip
    b.body(
        "limited", "rubbed", Pin((1, 0, 0)), inboard=below, inertia=inertia,
        drive=lw.Drive(lower=-0.1, upper=0.15, armature=0.01),
    )  # fmt: skip
    b.body("held", "limited", Pin((0, 1, 0)), inboard=below, inertia=inertia)
    b.actuator(
        lw.Actuator("servo", (("held", 1.0),), gain=(80.0, 0, 0), bias=(0.0, -80.0, -2.0)),
        lw.Actuator("thruster", node="held", wrench=(0, 0, 0, 1, 0, 0), dynamics="filter",
                    time_constant=0.1),
    )  # fmt: skip
    return b.build()


def both(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, force: float = 0.3, **acting: bool
) -> tuple[Steps, Steps]:
    rng = np.random.default_rng(0)
    tau = force * rng.standard_normal((STEPS, mech.nv))
    control = rng.uniform(-0.5, 0.5, (STEPS, len(mech.actuators) if acting["actuated"] else 0))
    made = list[Steps]()
    for stepper in (KernelSteps(mech, (), **acting), LongSteps(mech, **acting)):
        made.append(stepper.advance(stepper.first(q, v), H, STEPS, tau, control))
    return made[0], made[1]


def compare(a: Steps, b: Steps, atol: float) -> None:
    assert len(a) == len(b) == STEPS and np.abs(a.v).max() > 0.1
    for name in ("q", "v", "reached", "effort", "activation"):
        np.testing.assert_allclose(getattr(b, name), getattr(a, name), rtol=0, atol=atol)
    for x, y in zip(a.joints, b.joints, strict=True):
        np.testing.assert_allclose(y, x, rtol=0, atol=atol)


@pytest.mark.parametrize("passive", [True, False])
def test_rod(passive: bool) -> None:
    mech = lw.models.rod(3, youngs_modulus=1e6)
    at = mech.neutral(), np.zeros(mech.nv), 1e-6
    compare(*both(mech, *at, actuated=False, passive=passive), 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_random_tree(seed: int) -> None:
    mech = lw.models.random_tree(5, seed=seed)
    q, v = mech.random(seed=seed), 0.3 * mech.random_velocity(seed=seed)
    compare(*both(mech, q, v, actuated=False, passive=True), 1e-8)


def test_joints_with_friction_limits_and_servos() -> None:
    mech = jointed()
    v = np.array([0.5, 0.2, 0.1, 1.0, 3.0, 0.0])
    a, b = both(mech, mech.neutral(), v, actuated=True, passive=True)
    assert len(mech.actuators) and (np.abs(a.joints[0]) > 0.0).any(axis=0).all()
    compare(a, b, 1e-6)  # as far as the sweeps of the kernel go


def test_loops() -> None:
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, mech.neutral()).q
    v = lw.loops.project_velocity(mech, q, np.ones(mech.nv))
    a, b = both(mech, q, v, actuated=False, passive=True)
    assert np.abs(lw.loops.constraint_error(mech, b.q)).max() < 1e-5
    compare(a, b, 1e-7)


def flexible(welds: int = 0) -> lw.Mechanism:
    """Two beams, a motor at each joint, and welded plates at the end."""
    section = {"area": 1e-4, "bending": 1e-9, "young": 7e9, "density": 2700.0}
    beam = lw.flexible.beam(0.5, **section, modes=2, lumps=3, directions=("y", "rz"))
    rotor = SpatialInertia.from_com(0.1, (0, 0, 0.01), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("flexible", gravity=(0, -9.81, 0)), "world"
    for name in ("upper", "lower"):
        beam.add_to(b, name, parent, Pin((0, 0, 1)), drive=lw.Drive(damping=0.05))
        b.motor(name, rotor, ratio=20.0)
        parent = f"{name}.tip"
    plate = SpatialInertia.solid_box(0.01, (0.01, 0.1, 0.1))
    for i in range(welds):
        b.body(f"plate_{i}", parent, Locked(), inboard=(0.01, 0, 0), inertia=plate)
        parent = f"plate_{i}"
    return b.build()


def test_flexible_bodies_with_motors() -> None:
    mech = flexible()
    q = np.array([0.3, 0.02, -0.01, -0.5, 0.01, 0.0])
    compare(*both(mech, q, 0.5 * np.ones(mech.nv), actuated=False, passive=True), 1e-9)


@pytest.mark.prove
def test_many_bodies_some_of_them_flexible() -> None:
    """More than straight code is for, beside the same mechanism with its plates in one body."""
    mech = flexible(welds=62)
    assert mech.n_bodies > 64
    merged = mech.merge_locked()
    assert merged.n_bodies == flexible().n_bodies
    options = {"duration": 0.02, "step": H, "integrator": "implicit"}
    run, reference = (lw.rollout(x, x.neutral(), **options) for x in (mech, merged))
    assert run.kernel is None and reference.kernel is not None
    assert np.abs(reference.q[-1]).min() > 1e-5
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-11)
    recorded = lw.simulate(mech, **options)
    np.testing.assert_array_equal(recorded.q, run.q)
    for target in ("c", "cuda"):
        with pytest.raises(LoweringError, match="'flexible' of 66 bodies would be too long"):
            kernel = lw.compile(lambda at: at.q, mech, target=target)
            assert kernel.source


def test_long_rollout_and_simulation_are_the_same_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    mech = lw.models.rod(70)
    options = {"duration": 0.05, "step": 5e-3, "integrator": "implicit"}
    run, rec = lw.rollout(mech, mech.neutral(), **options), lw.simulate(mech, **options)
    assert run.q.shape == (11, 280) and np.abs(run.q).max() > 1e-3 and run.kernel is None
    np.testing.assert_array_equal(rec.q, run.q)
    short = lw.models.rod(3)
    made = lw.simulate(short, **options)
    monkeypatch.setattr(long_steps, "LONG", 0)
    again = lw.simulate(short, **options)
    np.testing.assert_allclose(again.q, made.q, atol=1e-12)
    assert abs(again.report.drift - made.report.drift) < 1e-9


def test_refused() -> None:
    mech = lw.models.rod(70)
    options = {"duration": 0.01, "step": 5e-3, "integrator": "implicit"}
    with pytest.raises(ModelError, match="noise or conditions"):
        lw.rollout(mech, mech.neutral(), noise={"tau": 0.1}, **options)
    with pytest.raises(ModelError, match="step by step"):
        lw.rollout(mech, mech.neutral(), parameters={"damping": np.ones(280)}, **options)


def standing(ground: lw.simulation.Ground) -> tuple[lw.Mechanism, tuple, np.ndarray]:
    """A quadruped with servos above a ground, and the points of its feet."""
    robot = lw.models.quadruped()
    names = [b.hinge_name for b in robot.bodies[1:]]
    servos = [lw.Actuator.position(n, n, kp=300.0, kv=10.0) for n in names]
    robot = lw.Mechanism(robot.name, robot.bodies, robot.nodes, actuators=servos)
    feet = lw.simulation.ground_contacts(robot, ground, bodies=[n.name for n in robot.nodes])
    q = lw.simulation.put_on_ground(robot, contacts=feet)
    q[6] += 0.02
    return robot, feet, q


GROUNDS = {
    "slope": lw.simulation.Ground(friction=0.5, normal=(0.1, 0.0, 1.0)),
    "rolling": lw.simulation.Ground(friction=0.8, torsional=0.02, rolling=0.01, restitution=0.4),
    "heights": lw.simulation.HeightField(
        0.02 * np.random.default_rng(0).standard_normal((21, 21)), (4.0, 4.0)
    ),
}


@pytest.mark.parametrize("name", GROUNDS)
def test_contacts(name: str) -> None:
    """As far as the kernel solves for impulses: to less than 1e-3 m/s where a foot lands."""
    robot, feet, q = standing(GROUNDS[name])
    made = list[Steps]()
    for stepper in (KernelSteps, LongSteps):
        one = stepper(robot, feet, actuated=True, passive=True)
        start = one.first(q, np.zeros(robot.nv))
        made.append(one.advance(start, H, 100, np.zeros((1, robot.nv)), q[None, 7:]))
        assert one.gaps(start, H)[1].shape == (1, 4) and one.contacts == tuple(p.name for p in feet)
    a, b = made
    assert a.touches.names == b.touches.names and a.touches.touching.sum() > 100
    assert np.abs(a.v).max() > 0.3 and b.residual.max() < 1e-4 and a.residual.max() < UNSOLVED
    np.testing.assert_allclose(b.q, a.q, rtol=0, atol=1e-5)
    np.testing.assert_allclose(b.v, a.v, rtol=0, atol=2e-3)
    np.testing.assert_allclose(b.touches.gap, a.touches.gap, rtol=0, atol=1e-6)
    np.testing.assert_allclose(b.touches.force, a.touches.force, rtol=0, atol=1.0)
    np.testing.assert_allclose(b.touches.work, a.touches.work, rtol=0, atol=1e-4)
    np.testing.assert_allclose(b.touches.slip, a.touches.slip, rtol=0, atol=1e-3)


def plates(many: int) -> lw.Mechanism:
    """A free box of so many welded plates, with a pendulum in front."""
    b = lw.Builder("plates", gravity=(9.81 * np.sin(0.5), 0.0, -9.81 * np.cos(0.5)))
    plate, parent = SpatialInertia.solid_box(2.0 / many, (0.4, 0.3, 0.1)), "world"
    bob = SpatialInertia.from_com(0.1, (0.0, 0.0, 0.1), (1e-4, 1e-4, 1e-4))
    for i in range(many):
        b.body(f"plate{i}", parent, Locked() if i else lw.hinges.Free(), inertia=plate)
        parent = f"plate{i}"
    b.body("bob", parent, Pin((0, 1, 0)), inboard=(0.0, 0.0, 0.2), inertia=bob,
           drive=lw.Drive(lower=-0.2, upper=0.2, friction=0.01))  # fmt: skip
    return b.build()


@pytest.mark.prove
def test_many_bodies_slide_down_a_slope() -> None:
    """More bodies than straight code is for: beside the mechanism with its plates in one body."""
    mu, alpha, mech = 0.3, 0.5, plates(70)
    corners = [
        lw.simulation.ContactPoint(
            f"{x:+}{y:+}", body, (x, y, -0.05), ground=lw.simulation.Ground(friction=mu)
        )
        for body in ("plate0",)
        for x in (-0.2, 0.2)
        for y in (-0.15, 0.15)
    ]
    q = mech.neutral().copy()
    q[6] = 0.05
    options = {"duration": 0.5, "step": 2e-3, "integrator": "implicit", "contacts": corners}
    run = lw.rollout(mech, q, **options)
    short = plates(1)
    reference = lw.rollout(short, q, **options)
    assert run.kernel is None and reference.kernel is not None and mech.n_bodies > 64
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-7)
    mine, theirs = run.contact_forces.sum(axis=1), reference.contact_forces.sum(axis=1)
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-3)  # of each: indeterminate
    for name in ("penetration", "slip"):
        mine, theirs = getattr(run, name), getattr(reference, name)
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
    assert run.unsolved[-1] < 1e-4 and run.slip[-1] > 0.5
    force = run.contact_forces[-100:].mean(axis=0).sum(axis=0)
    np.testing.assert_allclose(force[0] / force[2], -mu, rtol=1e-6)
    rec = lw.simulate(mech, q, **options)
    np.testing.assert_array_equal(rec.q, run.q)
    assert rec.report.drift < 1e-9 and rec.report.works["contact_friction"] < -0.1
    assert abs(rec.v[-1, 3]) > 0.4 * 9.81 * (np.sin(alpha) - mu * np.cos(alpha))


def test_rollouts_of_long_mechanisms_record_what_kernels_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The records of both beside each other, with a motion that fails."""

    robot, feet, q = standing(GROUNDS["heights"])
    options = {"duration": 0.06, "step": H, "integrator": "implicit", "contacts": feet,
               "controls": q[7:], "record_every": 7}  # fmt: skip
    starts = np.array([q, q])
    wild = np.zeros((2, robot.nv))
    wild[1] = 1e4
    with pytest.warns(TroubleWarning):
        made = lw.rollout(robot, starts, wild, **options)

    def refuse(*_: object, **__: object) -> None:
        raise LoweringError("too long")

    module = importlib.import_module("linkwise.simulation.rollout")
    monkeypatch.setattr(module, "motion_kernel", refuse)
    with pytest.warns(TroubleWarning):
        again = lw.rollout(robot, starts, wild, **options)
    assert again.kernel is None and made.kernel is not None
    for name, atol in (("q", 1e-5), ("v", 2e-3), ("contact_forces", 0.5), ("penetration", 1e-6)):
        np.testing.assert_allclose(getattr(again, name)[0], getattr(made, name)[0], atol=atol)
    assert np.isnan(again.q[1, -1]).all() and again.unsolved[0, -1] < 1e-4


def test_cables_and_wrenches() -> None:
    b = lw.Builder("pulled")
    inertia = SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.4)).moved(
        lw.Pose.translation((0, 0, -0.2))
    )
    b.body("upper", "world", Pin((0, 1, 0)), inertia=inertia)
    b.body("lower", "upper", Pin((0, 1, 0)), inboard=(0, 0, -0.4), inertia=inertia)
    b.node("anchor", "world", (0.5, 0.0, 0.2))
    b.node("tip", "lower", (0.0, 0.1, -0.4))
    b.actuator(
        lw.Actuator(
            "cable", cables=[("anchor", "tip", 1.0)], gain=(5.0, 0, 0), bias=(0, -3.0, -1.0)
        ),
        lw.Actuator("jet", node="tip", wrench=(0, 0, 0, 1, 0, 0), gain=(2.0, 0, 0)),
    )
    mech = b.build()
    compare(*both(mech, mech.neutral(), np.array([1.0, -2.0]), actuated=True, passive=True), 1e-9)


def test_friction_in_many_joints_is_recorded() -> None:
    """Rollouts of long mechanisms with joint friction used to fail with an IndexError."""
    b, parent = lw.Builder("chain"), "world"
    for i in range(66):
        b.body(f"b{i}", parent, Pin((0, 1, 0)), inboard=(0.1, 0, 0), drive=lw.Drive(friction=0.1),
               inertia=SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1)))  # fmt: skip
        parent = f"b{i}"
    mech = b.build()
    run = lw.rollout(mech, mech.neutral(), duration=4e-3, step=H, integrator="implicit")
    assert run.residual.shape == run.unsolved.shape == (3,) and run.contact_forces is None
    assert run.unsolved[-1] >= run.residual[-1] >= 0.0


def test_rows_that_nothing_moves_are_left_out() -> None:
    """Planar loops have rows of rounding; scaled to one, they gave velocities of 1e126 m/s."""
    rng = np.random.default_rng(0)
    G = np.zeros((5, 6))
    G[:3] = rng.standard_normal((3, 6))
    G[3], G[4] = 1e-17 * rng.standard_normal(6), G[0] - G[1]
    inverse = long_steps._inverse(G @ G.T)
    np.testing.assert_allclose(G.T @ inverse @ G, np.linalg.pinv(G[:3]) @ G[:3], atol=1e-9)
    assert np.abs(inverse).max() < 1e3
