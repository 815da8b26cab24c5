"""Contacts, friction, limits and implicit dampers, against formulas that need no simulator."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.grasp import Contact
from linkwise.simulation import ContactPoint, Ground, ground_contacts
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel

G = 9.81
BALL = lw.SpatialInertia.solid_sphere(1.3, 0.1)


def body(inertia, gravity=(0.0, 0.0, -G)):
    b = lw.Builder("thing", gravity=gravity)
    return b.body("body", "world", lw.hinges.Free(), inertia=inertia).build()


def at(z):
    return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, z])


def block(angle, mu):
    """A block on a slope, seen from the slope, and its corners."""
    size = np.array([0.4, 0.3, 0.1])
    mech = body(
        lw.SpatialInertia.solid_box(2.0, size), (G * np.sin(angle), 0.0, -G * np.cos(angle))
    )
    ground = Ground(friction=mu)
    corners = [(x, y, -0.05) for x in (-0.2, 0.2) for y in (-0.15, 0.15)]
    return mech, [ContactPoint(f"c{i}", "body", p, 0.0, ground) for i, p in enumerate(corners)]


def moved(mech, q, v=None, *, duration=0.5, contacts=(), **options):
    return lw.rollout(
        mech, q, v, duration=duration, integrator="implicit", contacts=contacts, **options
    )


@pytest.mark.parametrize("mu", [0.3, 0.7])
def test_a_block_sticks_up_to_the_angle_of_friction(mu):
    mech, corners = block(np.arctan(mu) - 0.01, mu)
    runs = moved(mech, at(0.05), contacts=corners)
    # The first steps begin without impulses: what their sweeps leave open is all that it moves.
    assert np.abs(runs.q[-1, 4:] - [0.0, 0.0, 0.05]).max() < 1e-8
    assert np.abs(runs.v[-1]).max() < 1e-11


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.7])
def test_a_block_slides_with_the_acceleration_of_coulomb(mu):
    angle = np.arctan(mu) + 0.2
    mech, corners = block(angle, mu)
    runs = moved(mech, at(0.05), contacts=corners)
    acceleration = G * (np.sin(angle) - mu * np.cos(angle))
    assert acceleration > 1.0
    np.testing.assert_allclose(runs.v[-1, 3], 0.5 * acceleration, rtol=1e-8)
    assert np.abs(runs.q[:, 6] - 0.05).max() < 1e-11  # it is not lifted


def test_a_sliding_block_stops_and_stays():
    mech, corners = block(0.0, 0.4)
    start = np.array([0.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    runs = moved(mech, at(0.05), start, duration=0.8, contacts=corners, step=1e-4)
    np.testing.assert_allclose(runs.q[-1, 4], 2.0**2 / (2.0 * 0.4 * G), rtol=3e-4)
    assert np.abs(runs.v[-1]).max() < 1e-9


@pytest.mark.parametrize("e", [0.0, 0.5, 0.9])
def test_a_ball_bounces_with_its_restitution(e):
    mech, point = body(BALL), ContactPoint("c", "body", radius=0.1, ground=Ground(restitution=e))
    h, fall = 1e-4, 0.5
    time = np.sqrt(2.0 * fall / G)
    duration = round((time + 0.02) / h) * h
    runs = moved(mech, at(0.1 + fall), duration=duration, contacts=[point], step=h)
    before, after = runs.v[runs.t < time - 3 * h, 5], runs.v[runs.t > time + 3 * h, 5]
    np.testing.assert_allclose(before[-1], -G * time, rtol=2e-3)
    expected = e * G * time - G * (runs.t[runs.t > time + 3 * h] - time)
    np.testing.assert_allclose(after, expected if e else 0.0 * after, atol=1.5e-3)
    assert (runs.q[:, 6] - 0.1).min() > -4.0 * h


def test_a_ball_deep_in_the_ground_rises_slowly():
    """From 30 cm inside it leaves at 1 m/s, not at 60, and comes to rest on the ground."""
    ball = body(lw.SpatialInertia.solid_sphere(1.0, 0.1))
    contact = [ContactPoint("ball", "body", radius=0.1)]
    runs = moved(ball, at(-0.2), contacts=contact, duration=2.0)
    assert runs.v[:, 5].max() == pytest.approx(1.0, abs=1e-6)
    assert runs.q[-1, 6] == pytest.approx(0.1, abs=1e-6)


def test_a_ball_that_falls_straight_down_in_float32():
    """No tangential velocity at all: friction has no direction."""
    mech, point = body(BALL), ContactPoint("c", "body", radius=0.1)
    runs = moved(mech, at(0.15), duration=0.2, contacts=[point], dtype=np.float32)
    assert abs(float(runs.q[-1, 6]) - 0.1) < 1e-6


def test_a_sliding_ball_ends_up_rolling():
    """Angular momentum about the point of contact is kept: v = 5/7 v₀, ω = v/r."""
    mech, point = body(BALL), ContactPoint("c", "body", radius=0.1, ground=Ground(friction=0.3))
    runs = moved(mech, at(0.1), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], contacts=[point])
    velocity = lw.node_velocity(mech, runs.q[-1], runs.v[-1], "body", frame="world")
    np.testing.assert_allclose(velocity, [0.0, 5 / 7 / 0.1, 0.0, 5 / 7, 0.0, 0.0], atol=1e-8)


def test_spinning_and_rolling_have_friction_of_their_own():
    ground = Ground(friction=0.5, torsional=0.01, rolling=0.002)
    mech, point = body(BALL), ContactPoint("c", "body", radius=0.1, ground=ground)
    spun = moved(mech, at(0.1), [0.0, 0.0, 5.0, 0.0, 0.0, 0.0], duration=0.1, contacts=[point])
    slower = 0.1 * 0.01 * G / (0.4 * 0.1**2)
    np.testing.assert_allclose(spun.v[-1, 2], 5.0 - slower, rtol=1e-9)
    rolled = moved(mech, at(0.1), [0.0, 10.0, 0.0, 1.0, 0.0, 0.0], duration=0.2, contacts=[point])
    speed = np.linalg.norm(rolled.v[-1, 3:])
    np.testing.assert_allclose(speed, 1.0 - 0.2 * 0.002 * G / (0.1 * 1.4), rtol=1e-6)


def slider(**drive):
    b = lw.Builder("slider", gravity=(0.0, 0.0, 0.0))
    inertia = lw.SpatialInertia.solid_box(2.0, (0.1, 0.1, 0.1))
    drive = lw.Drive(**drive)
    return b.body(
        "s", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=inertia, drive=drive
    ).build()


def test_joint_friction_holds_up_to_its_force_and_then_slows():
    mech = slider(friction=3.0)
    assert np.abs(moved(mech, [0.0], tau=[2.9]).q).max() == 0.0
    runs = moved(mech, [0.0], tau=[5.0])
    np.testing.assert_allclose(runs.v[-1, 0], 0.5 * (5.0 - 3.0) / 2.0, rtol=1e-12)
    stopped = moved(mech, [0.0], [0.6], duration=0.5)
    assert stopped.v[-1, 0] == 0.0
    np.testing.assert_allclose(stopped.q[-1, 0], 0.6**2 / (2.0 * 1.5), rtol=5e-3)


def test_limits_stop_a_joint_and_let_it_go():
    mech = slider(lower=-0.1, upper=0.2)
    runs = moved(mech, [0.0], [1.0])
    assert abs(runs.q[-1, 0] - 0.2) < 1e-12 and runs.v[-1, 0] == 0.0
    tau = np.concatenate([np.full((250, 1), 4.0), np.full((250, 1), -4.0)])
    back = moved(mech, [0.19], tau=tau)
    assert abs(back.q[250, 0] - 0.2) < 1e-12
    np.testing.assert_allclose(back.v[-1, 0], -0.25 * 4.0 / 2.0, rtol=1e-12)


def test_dampers_and_springs_may_be_as_stiff_as_they_like():
    """Implicit Euler of the linear equation, step by step."""
    m, d, k, h = 2.0, 3e5, 4e7, 1e-2
    mech = slider(damping=d, stiffness=k, rest=0.3)
    runs = moved(mech, [0.0], [1.0], duration=0.1, step=h)
    q, v = 0.0, 1.0
    for i in range(10):
        v = (m * v - h * k * (q - 0.3)) / (m + h * d + h * h * k)
        q += h * v
        np.testing.assert_allclose((runs.q[i + 1, 0], runs.v[i + 1, 0]), (q, v), rtol=1e-12)
    assert abs(q - 0.3) < 1e-3


def test_a_quadruped_stands_and_the_ground_carries_its_weight():
    mech = lw.models.quadruped()
    feet = ground_contacts(mech, bodies=[n.name for n in mech.nodes if "foot" in n.name])
    q = mech.neutral().copy()
    q[6] -= lw.forward_kinematics(mech, q, [p.name for p in feet]).p[:, 2].min()
    hinges = [b.hinge_name for b in mech.bodies[1:]]
    servos = [lw.Actuator.position(n, n, kp=300.0, kv=10.0) for n in hinges]
    robot = lw.Mechanism(mech.name, mech.bodies, mech.nodes, actuators=tuple(servos))
    runs = moved(robot, q, duration=3.0, contacts=feet, controls=q[7:])
    assert np.abs(runs.v[-1]).max() < 1e-6
    assert abs(runs.q[-1, 6] - q[6]) < 0.02
    force = runs.contact_forces[-1]
    np.testing.assert_allclose(force.sum(axis=0), [0.0, 0.0, mech.total_mass * G], atol=1e-5)


@pytest.mark.parametrize("which", ["tau", "controls"])
def test_without_contacts_a_step_is_the_semi_implicit_one(which):
    """Motors without dampers: the same numbers as `euler`, whose step is explicit."""
    mech = lw.models.seven_dof_arm()
    q, v = mech.random(seed=3), mech.random_velocity(seed=3)
    tau = np.linspace(-5.0, 5.0, 7)
    motors = [lw.Actuator.motor(b.hinge_name, b.hinge_name, gear=2.0) for b in mech.bodies]
    bodies = [lw.Body(b.name, b.parent, b.hinge, b.hinge_name, b.inboard, b.outboard, b.inertia)
              for b in mech.bodies]  # fmt: skip
    mech = lw.Mechanism("arm", tuple(bodies), actuators=tuple(motors))
    given = {"tau": tau} if which == "tau" else {"controls": 0.5 * tau}
    one = moved(mech, q, v, duration=0.05, **given)
    two = lw.rollout(mech, q, v, duration=0.05, tau=tau, integrator="euler")
    np.testing.assert_allclose(one.q, two.q, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(one.v, two.v, rtol=1e-10, atol=1e-11)


def test_a_tilted_ground_is_a_tilted_gravity():
    """The same block, on a slope in the world and on level ground as seen from the slope."""
    angle, mu = 0.5, 0.3
    turn = lw.Pose.rotation([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0],
                             [-np.sin(angle), 0, np.cos(angle)]])  # fmt: skip
    level, corners = block(angle, mu)
    slope = Ground(normal=turn.rot @ [0.0, 0.0, 1.0], friction=mu)
    tilted = [ContactPoint(p.name, "body", p.point, 0.0, slope) for p in corners]
    half = 0.5 * angle
    start = np.array([np.cos(half), 0.0, np.sin(half), 0.0, *turn.rot @ [0.0, 0.0, 0.05]])
    one = moved(level, at(0.05), contacts=corners, duration=0.3)
    two = moved(body(lw.SpatialInertia.solid_box(2.0, (0.4, 0.3, 0.1))), start,
                contacts=tilted, duration=0.3)  # fmt: skip
    assert one.v[-1, 3] > 0.3
    np.testing.assert_allclose(two.q[-1, 4:], turn.rot @ one.q[-1, 4:], atol=1e-10)
    np.testing.assert_allclose(
        two.contact_forces[-1].sum(axis=0), turn.rot @ one.contact_forces[-1].sum(axis=0), atol=1e-8
    )


def test_motions_of_a_batch_are_those_one_by_one():
    mech, point = body(BALL), ContactPoint("c", "body", radius=0.1, ground=Ground(friction=0.3))
    rng = np.random.default_rng(0)
    q = np.array([at(0.1 + 0.05 * i) for i in range(5)])
    v = rng.standard_normal((5, 6))
    many = moved(mech, q, v, duration=0.3, contacts=[point])
    for i in range(5):
        one = moved(mech, q[i], v[i], duration=0.3, contacts=[point])
        np.testing.assert_allclose(many.q[i], one.q, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            many.contact_forces[i], one.contact_forces, rtol=0, atol=1e-5 * G
        )
    assert np.abs(many.contact_forces).max() > G


def test_an_impact_keeps_momentum_and_loses_energy():
    """Two links fall on a tip: the ground's impulse is what the momentum changes by."""
    mech = lw.models.quadruped()
    feet = ground_contacts(mech, bodies=[n.name for n in mech.nodes if "foot" in n.name])
    q = mech.random(seed=4)
    q[4:7] = 0.0
    q[6] -= lw.forward_kinematics(mech, q, [p.name for p in feet]).p[:, 2].min() - 1e-4
    v = np.zeros(mech.nv)
    v[3:6] = lw.forward_kinematics(mech, q, "trunk").rot.T @ [0.3, 0.0, -2.0]
    bare = mech.with_drive([b.hinge_name for b in mech.bodies[1:]], lw.Drive())
    h = 1e-4
    runs = moved(bare, q, v, duration=20 * h, step=h, contacts=feet)
    forces = runs.contact_forces[1:]
    assert forces[..., 2].max() > 10.0 * mech.total_mass * G
    momentum = np.array([lw.momentum(bare, *x)[3:] for x in zip(runs.q, runs.v, strict=True)])
    weight = np.array([0.0, 0.0, -mech.total_mass * G])
    change = h * (forces.sum(axis=1) + weight)
    np.testing.assert_allclose(np.diff(momentum, axis=0), change, atol=5e-3)
    energy = [float(lw.energy(bare, *x).total) for x in zip(runs.q, runs.v, strict=True)]
    assert np.diff(energy).max() < 1e-3 and energy[0] - energy[-1] > 0.5


def test_an_observed_motion_in_parts_is_the_motion():
    mech, corners = block(0.9, 0.3)
    q = at(0.06)
    runs = moved(mech, q, contacts=corners, duration=0.2)
    request = MotionRequest(mech, "implicit", contacts=tuple(corners), observed=True)
    kernel = motion_kernel(request)
    size = kernel.shown["impulse"]
    state, impulse = np.concatenate([q, np.zeros(6)]), np.zeros(size)
    for _ in range(20):
        inputs = {"tau": np.zeros(6), "impulse": impulse}
        done = kernel.run(state[None, :7], state[None, 7:], inputs, 1e-3, 10, 1)
        state, impulse = done.records[0, -1, :13], done.records[0, -1, 13 : 13 + size]
    np.testing.assert_allclose(state, [*runs.q[-1], *runs.v[-1]], rtol=0, atol=1e-12)


def test_penetration_and_slip_are_the_largest_of_all_steps():
    """A ball that falls fast bounces one step late; a block slides with the speed it reaches."""
    mech = body(BALL)
    point = ContactPoint("c", "body", radius=0.1, ground=Ground(restitution=0.5))
    runs = moved(mech, at(0.102), [0, 0, 0, 0, 0, -3.0], duration=0.05, contacts=[point])
    deepest = float(np.max(0.1 - runs.q[:, 6]))
    assert deepest > 1e-4
    np.testing.assert_allclose(runs.penetration[-1], deepest, rtol=1e-9)
    assert "contacts penetrate by at most" in str(runs)
    seldom = moved(mech, at(0.102), [0, 0, 0, 0, 0, -3.0], duration=0.05, contacts=[point],
                   record_every=30)  # fmt: skip
    assert seldom.penetration[-1] == runs.penetration[-1] and len(seldom.t) == 3
    block_, corners = block(0.6, 0.3)
    slide = moved(block_, at(0.05), contacts=corners)
    np.testing.assert_allclose(slide.slip, slide.v[:, 3], atol=1e-8)
    stick = moved(*block(0.2, 0.3)[:1], at(0.05), contacts=corners)
    assert stick.slip[-1] < 1e-4


def test_feet_and_fingers_share_their_laws():
    mech, corners = block(0.6, 0.3)
    runs = moved(mech, at(0.05), contacts=corners)
    contact = corners[0].ground.contact
    assert contact.kind == "point"
    for force in runs.contact_forces[-1]:  # it slides: the limit of slip is reached, no other
        press, slip = contact.margins(np.array([0.0, 0.0, 0.0, *force]))[:2]
        assert press > 1.0 and abs(slip) < 1e-6
    for given in (
        Contact("frictionless"),
        Contact("point", 0.4),
        Contact("soft_finger", 0.4, 0.01, law="separate"),
        Contact("rigid", 0.4, 0.01, 0.02, law="separate", two_sided=False),
    ):
        ground = Ground.of(given, normal=(0.0, 1.0, 0.0))
        same = ground.contact
        assert (same.kind, same.torsion, same.extent) == (given.kind, given.torsion, given.extent)
        assert ground.friction == (0.0 if given.kind == "frictionless" else 0.4)
    for wrong in (Contact("rigid"), Contact("edge"), Contact("soft_finger", 0.4, 0.01)):
        with pytest.raises(lw.errors.ModelError, match=wrong.kind):
            Ground.of(wrong)


def test_contact_forces_are_made_at_their_first_use():
    ball = ContactPoint("ball", "body", radius=0.1)
    runs = moved(body(BALL), at(0.1), contacts=[ball], step=1e-2, dtype=np.float32)
    assert runs.pushes is not None and "forces" not in vars(runs.pushes)
    force = runs.contact_forces
    np.testing.assert_allclose(force[-1, 0], [0.0, 0.0, 1.3 * G], rtol=1e-5)
    assert runs.contact_forces is force and force.dtype == np.float32
    without = moved(body(BALL), at(0.1), step=1e-2)
    assert without.pushes is None and without.contact_forces is None


def test_contact_forces_are_arrays_as_those_given():
    torch = pytest.importorskip("torch")
    ball = ContactPoint("ball", "body", radius=0.1)
    runs = moved(body(BALL), torch.from_numpy(at(0.1)), contacts=[ball], step=1e-2)
    assert torch.is_tensor(runs.contact_forces) and torch.is_tensor(runs.slip)
    np.testing.assert_allclose(runs.contact_forces[-1, 0], [0.0, 0.0, 1.3 * G], rtol=1e-9)
