"""Unified motion and force control: two systems that know nothing of each other."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.spatial.rotation import random_rotation
from linkwise.tasks.control.posture import Posture
from linkwise.tasks.force.force_servo import ForceServo
from linkwise.tasks.force.motion_force import MotionForceController
from linkwise.tasks.force.selection import Selection
from linkwise.tasks.force.surface import CompliantSurface
from linkwise.tasks.measure import task_position, task_velocity
from linkwise.tasks.task import Task
from linkwise.tasks.task_stack import task_stack

NORMAL = np.array([0.48, -0.36, 0.8])
POSTURE = np.array([0.3, -0.6, 2.4, 0.2, 0.9, -0.4])
SERVO = ForceServo(kf=0.07, kv=31.0, ki=0.4)
ROT = random_rotation(np.random.default_rng(7))

puma = lw.models.puma560()
seven = lw.models.seven_dof_arm()
TIP = seven.nodes[-1].name

CASES = {
    "pose": (puma, Task.pose("flange"), Selection.along_normal(NORMAL)),
    "pose, forces and moments": (
        puma,
        Task.pose("flange"),
        Selection.from_axes(ROT, force="z rx ry"),
    ),
    "pose, node axes": (
        puma,
        Task.pose("flange", axes="node"),
        Selection.from_axes("link_3", force="x rz"),
    ),
    "position": (puma, Task.position("flange"), Selection.along_normal(NORMAL)),
    "redundant pose": (seven, Task.pose(TIP), Selection.from_axes(ROT, motion="x y rz")),
    "redundant position": (
        seven,
        Task.position(TIP, axes="node"),
        Selection.from_axes("elbow_pitch_link", force="y"),
    ),
    "sphere": (
        puma,
        Task.position("flange"),
        Selection.along_normal(CompliantSurface.sphere((0.1, 0.2, 0), 0.1, 1e3)),
    ),
}


def in_axes(mech, q, task, force):
    """(moment, force) in the world from (moment, force) in the task's axes."""
    rot = mech.pose(q, task.node).rot if task.axes == "node" else np.eye(3)
    return np.concatenate([rot @ force[:3], rot @ force[3:]])


def task_acceleration(mech, q, v, vdot, task):
    """ẍ = J v̇ + J̇ v from the Jacobian of the node, without anything of task space."""
    frame = "node" if task.axes == "node" else "world"
    J = lw.jacobian(mech, q, task.node, frame=frame)
    return task.matrix @ (J @ vdot + lw.dynamics.jacobian_bias(mech, q, v, task.node, frame=frame))


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES)
def test_equations_15_and_16(case):
    """Ω ẍ = Ω F*_motion and Ω̄ ẍ = Ω̄ F*_active at random states, under random contact forces.

    Some of the states are near singular: the plain law is what holds in all of them.
    """
    mech, task, selection = CASES[case]
    m = len(task.rows)
    posture = Posture(mech.neutral(), 30.0, 5.0)
    controller = MotionForceController(
        mech, task, selection, kp=90.0, kv=17.0, servo=SERVO, posture=posture, threshold=None
    )
    for seed in range(6):
        rng = np.random.default_rng(seed)
        q, v = mech.random(seed=seed), mech.random_velocity(seed=seed + 100)
        sensed = 20.0 * rng.normal(size=6)
        expected, accelerate, faster, integral = rng.normal(size=(4, m))
        moving = task_velocity(mech, q, v, task)
        request = {
            "goal": task_position(mech, q, task), "velocity": moving + faster,
            "acceleration": accelerate, "force": expected, "contact": sensed, "integral": integral,
        }  # fmt: skip
        command = controller.command(q, v, **request)
        quick = controller.torque(q, v, **request)
        assert np.allclose(quick, command.tau, rtol=0, atol=1e-11 * np.abs(quick).max())
        world = in_axes(mech, q, task, sensed)
        # What really happens: the forward dynamics with this force at the node.
        vdot = lw.forward_dynamics(
            mech, q, v, command.tau, forces={task.node: world}, forces_frame="world"
        )
        happens = task_acceleration(mech, q, v, vdot, task)
        Omega, Omega_bar = selection.matrices(mech, q, task)
        F_motion = accelerate + 17.0 * faster
        exerted = -task.matrix @ sensed
        F_active = SERVO.kf * (expected - exerted) + SERVO.ki * integral - SERVO.kv * moving
        if case == "sphere":  # what keeps the distance is added
            out = mech.pose(q, "flange").p - np.array([0.1, 0.2, 0.0])
            n, far = out / np.linalg.norm(out), np.linalg.norm(out)
            F_active -= n * (moving @ moving - (n @ moving) ** 2) / far
        size = 1.0 + np.abs(np.concatenate([F_motion, F_active])).max()
        assert np.allclose(Omega @ happens, Omega @ F_motion, rtol=0, atol=1e-10 * size)
        assert np.allclose(Omega_bar @ happens, Omega_bar @ F_active, rtol=0, atol=1e-10 * size)


def test_it_is_the_printed_formula():
    """(11) to (14) from the dense Λ₀, μ₀ and p₀ of (6) and (9), near a singularity too."""
    mech, task = puma, Task.pose("flange")
    selection = Selection.along_normal(NORMAL)
    controller = MotionForceController(
        mech, task, selection, kp=90.0, kv=17.0, servo=SERVO, threshold=None
    )
    q, v = mech.random(seed=5), mech.random_velocity(seed=6)
    sensed, expected = np.random.default_rng(0).normal(size=(2, 6))
    command = controller.command(
        q, v, goal=mech.pose(q, "flange"), velocity=np.zeros(6), force=expected, contact=sensed
    )
    J = lw.jacobian(mech, q, "flange", frame="world")
    back = np.linalg.inv(J)
    Lambda = back.T @ lw.mass_matrix(mech, q) @ back
    g = lw.gravity_force(mech, q)
    mu = back.T @ (lw.bias_force(mech, q, v) - g)
    mu -= Lambda @ lw.dynamics.jacobian_bias(mech, q, v, "flange", frame="world")
    Omega, Omega_bar = selection.matrices(mech, q, task)
    moving = J @ v
    F_motion = Lambda @ Omega @ (-17.0 * moving) + mu + back.T @ g
    star = SERVO.kf * Omega_bar @ (expected + sensed) - SERVO.kv * moving
    F_active = Lambda @ Omega_bar @ star - sensed
    scale = np.abs(F_motion).max() + np.abs(F_active).max()
    assert np.allclose(command.motion, F_motion, rtol=0, atol=1e-10 * scale)
    assert np.allclose(command.active, F_active, rtol=0, atol=1e-10 * scale)
    assert np.allclose(command.tau, J.T @ (F_motion + F_active), rtol=0, atol=1e-9 * scale)


def test_without_sensing_the_two_systems_are_coupled():
    """The test above can fail: leave out F_sensor, and the path is disturbed."""
    mech, task, selection = CASES["pose"]
    controller = MotionForceController(mech, task, selection, kp=90.0, kv=17.0, servo=SERVO)
    q, v = POSTURE, np.zeros(6)
    pushed = np.append(np.zeros(3), 20.0 * NORMAL)
    tau = controller.torque(q, v, goal=mech.pose(q, "flange"))
    vdot = lw.forward_dynamics(mech, q, v, tau, forces={"flange": pushed}, forces_frame="world")
    Omega, _ = selection.matrices(mech, q, task)
    assert np.abs(Omega @ task_acceleration(mech, q, v, vdot, task)).max() > 0.1


def directions(mech, q, task):
    """U, σ of J with turning at the reach, and the scale of its rows."""
    stack = task_stack(mech, task)
    scale = stack.scale(stack.length())
    u, sigma, _ = np.linalg.svd(scale[:, None] * lw.tasks.task_jacobian(mech, q, task))
    return u, sigma, scale


@pytest.mark.few(4)
@pytest.mark.parametrize("bend", [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.01])
@pytest.mark.parametrize("case", ["pose", "pose, forces and moments", "pose, node axes"])
def test_near_a_singularity_it_does_without_what_is_lost(case, bend):
    """A straight wrist cannot turn about one axis; all other directions are as they should be.

    Of the one that goes it is given s = x² (3 - 2 x), x = σ / (0.02 largest), or less; the plain
    law asks for torques in proportion to 1 / σ.
    """
    mech, task, selection = CASES[case]
    q, v = POSTURE * [1, 1, 1, 1, 0, 1] + [0, 0, 0, 0, bend, 0], 0.3 * np.ones(6)
    options = {"kp": 90.0, "kv": 17.0, "servo": SERVO, "posture": Posture.damping(2.0)}
    controller = MotionForceController(mech, task, selection, **options)
    expected, sensed = np.arange(6.0), np.append(0.3 * NORMAL, 7.0 * NORMAL)
    request = {"goal": task_position(mech, q, task), "acceleration": expected, "contact": sensed}
    command, tau = controller.command(q, v, **request), controller.torque(q, v, **request)
    assert np.abs(tau).max() < 200.0
    np.testing.assert_allclose(command.tau, tau, rtol=0.0, atol=1e-9 * np.abs(tau).max())
    world = in_axes(mech, q, task, sensed)
    vdot = lw.forward_dynamics(mech, q, v, tau, forces={task.node: world}, forces_frame="world")
    happens = task_acceleration(mech, q, v, vdot, task)
    u, sigma, scale = directions(mech, q, task)
    assert sigma[5] < 0.02 * sigma[0] < sigma[4]
    missing = u.T @ (scale * (happens - command.acceleration))
    assert np.abs(missing[:5]).max() < 1e-9 * np.abs(command.acceleration).max()
    assert np.abs(missing[5]) > 0.1  # what is not given
    plain = MotionForceController(mech, task, selection, threshold=None, **options)
    if 1e-9 <= bend <= 1e-3:
        assert np.abs(plain.torque(q, v, **request)).max() > 0.05 / bend


@pytest.mark.parametrize("case", ["pose", "redundant pose"])
def test_nothing_jumps_near_a_singularity(case):
    """Through a straight wrist, or elbow: ten times the points, a tenth of the largest step."""
    mech, task, selection = CASES[case]
    joint = 4 if mech is puma else 3
    controller = MotionForceController(mech, task, selection, kp=90.0, kv=17.0, servo=SERVO)
    q_0 = POSTURE if mech is puma else np.array([0.3, 0.6, -0.2, 0.0, 0.4, 0.7, 0.1])
    rest = {"contact": np.arange(6.0), "acceleration": np.arange(6.0)}

    def jump(count):
        q = np.tile(q_0, (count, 1))
        q[:, joint] = np.linspace(-0.5, 0.5, count)
        v, target = 0.3 * np.ones((count, mech.nv)), task_position(mech, q_0, task)
        full = controller.torque(q, v, goal=target, **rest)
        one = controller.torque(q[count // 2], v[0], goal=target, **rest)
        np.testing.assert_allclose(one, full[count // 2], atol=1e-9 * np.abs(one).max())
        return np.abs(np.diff(full, axis=0)).max()

    assert jump(8001) < 0.15 * jump(801)


def test_a_threshold_is_a_part_of_one():
    mech, task, selection = CASES["pose"]
    for bad in (0.0, -1.0, 1.0, np.nan):
        with pytest.raises(ModelError, match=f"threshold is {bad}"):
            MotionForceController(mech, task, selection, 1.0, 1.0, SERVO, threshold=bad)


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES)
def test_no_states_have_no_torques(case):
    mech, task, selection = CASES[case]
    controller = MotionForceController(mech, task, selection, kp=90.0, kv=17.0, servo=SERVO)
    q, v, m = np.zeros((0, mech.nq)), np.zeros((0, mech.nv)), len(task.rows)
    request = {"goal": task_position(mech, mech.neutral(), task), "contact": np.ones(6)}
    assert controller.torque(q, v, **request).shape == (0, mech.nv)
    command = controller.command(q, v, **request)
    assert command.tau.shape == (0, mech.nv) and command.motion.shape == (0, m)
    Omega, Omega_bar = selection.matrices(mech, q, task)
    assert Omega.shape in ((0, m, m), (m, m)) and Omega_bar.shape == Omega.shape


def test_a_batch_is_its_rows():
    mech, task, selection = CASES["position"]
    controller = MotionForceController(
        mech, task, selection, kp=90.0, kv=17.0, servo=SERVO, posture=Posture.damping(2.0)
    )
    rng = np.random.default_rng(8)
    q = np.array([mech.random(seed=s) for s in range(4)])
    v, sensed = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    target = rng.normal(size=(4, 3))
    full = controller.command(q, v, goal=target, force=9.0, contact=sensed)
    for i in range(4):
        one = controller.command(q[i], v[i], goal=target[i], force=9.0, contact=sensed[i])
        for name in ("tau", "motion", "active", "force_error", "motion_error"):
            assert np.allclose(getattr(full, name)[i], getattr(one, name), atol=1e-9)


def test_a_number_presses_against_the_normal():
    mech, task, selection = CASES["pose"]
    controller = MotionForceController(mech, task, selection, kp=90.0, kv=17.0, servo=SERVO)
    at = {"goal": mech.pose(POSTURE, "flange"), "contact": np.append(np.zeros(3), NORMAL)}
    by_number = controller.command(POSTURE, np.zeros(6), force=9.0, **at)
    vector = np.append(np.zeros(3), -9.0 * NORMAL)
    by_vector = controller.command(POSTURE, np.zeros(6), force=vector, **at)
    assert np.allclose(by_number.tau, by_vector.tau)
    # The wall pushes with 1 N along the normal: 8 N are missing, against it.
    assert np.allclose(by_number.force_error[3:], -8.0 * NORMAL)
    assert "m or rad, off the force by 8 N" in str(by_number)
    after = by_number.integral_after(0.5)
    assert np.allclose(after[3:], -4.0 * NORMAL)


def sliding(surface, task, *, duration, servo, force=12.0, depth=1e-3):
    """The PUMA pressed on a surface, sliding across the normal at 0.2 m/s; records."""
    start = puma.pose(POSTURE, "flange")
    n = surface.normal_at(start.p)
    across = np.cross(n, (0.0, 0.0, 1.0))
    across *= 0.2 / np.linalg.norm(across)
    controller = MotionForceController(
        puma, task, Selection.along_normal(surface), kp=100.0, kv=20.0, servo=servo
    )
    V = np.append(np.zeros(3), across)

    def tau(t, q, v):
        target = lw.Pose(start.rot, start.p + t * across)
        rows = task.matrix
        if task.kind == "position":
            target = target.p
        turn = puma.pose(q, "flange").rot.T if task.axes == "node" else np.eye(3)
        ahead = np.append(np.zeros(3), turn @ across)
        return controller.torque(
            q, v, goal=target, velocity=rows @ ahead, force=force,
            contact=controller.sense(q, v, surface),
        )  # fmt: skip

    J = lw.jacobian(puma, POSTURE, "flange", frame="world")
    run = lw.simulate(
        puma, POSTURE, np.linalg.solve(J, V), tau=tau, forces=surface.forces(puma, "flange"),
        duration=duration, step=2e-3, record_every=5,
    )  # fmt: skip
    path = start.p + run.t[:, None] * across
    return run, path


def second_order(t, x0, w, zeta_w):
    """x(t) with ẍ + 2 ζω ẋ + ω² x = 0 from x0 at rest, ζ < 1."""
    bend = np.sqrt(w**2 - zeta_w**2)
    return x0 * np.exp(-zeta_w * t) * (np.cos(bend * t) + zeta_w / bend * np.sin(bend * t))


def test_the_force_follows_the_loop_that_was_computed_while_the_arm_slides():
    """Penetration over time is that of a unit mass, ẍ + (k_v + k_f d) ẋ + k_f k x = k_f f_d."""
    start = puma.pose(POSTURE, "flange").p
    wall = CompliantSurface(start + 1e-3 * NORMAL, NORMAL, 5000.0, 10.0, 0.3)
    servo = ForceServo(kf=0.12, kv=12.0)
    run, path = sliding(wall, Task.pose("flange"), duration=0.24, servo=servo)
    touch = wall.touch(puma, run.q, run.v, "flange")
    w, zeta_w = np.sqrt(servo.kf * 5000.0), 0.5 * (servo.kv + servo.kf * 10.0)
    final = 12.0 / 5000.0
    expected = final + second_order(run.t, 1e-3 - final, w, zeta_w)
    # RK4 with ωh = 0.05: (ωh)⁴/120 of 1.4 mm, times the radians that passed.
    assert np.abs(touch.penetration - expected).max() < 1e-9
    assert np.ptp(touch.pressure) > 5.0  # there was something to see
    off = touch.point - path
    across = off - (off @ NORMAL)[:, None] * NORMAL
    assert np.abs(across).max() < 1e-9
    loop = servo.loop(wall)
    assert np.allclose(np.sort_complex(loop.poles), np.roots([1, 2 * zeta_w, w**2])[::-1])


@pytest.mark.parametrize("axes", ["reference", pytest.param("node", marks=pytest.mark.slow)])
def test_on_a_sphere_the_same_while_the_normal_turns(axes):
    """The loop is the same on a curved surface: its curvature is made up for."""
    start = puma.pose(POSTURE, "flange").p
    ball = CompliantSurface.sphere(start - 0.199 * NORMAL, 0.2, 5000.0)
    servo = ForceServo(kf=0.12, kv=12.0)
    task = Task.position("flange", axes=axes)
    run, _ = sliding(ball, task, duration=0.12, servo=servo)
    turned = ball.normal_at(puma.pose(run.q[-1], "flange").p) @ NORMAL
    assert turned < np.cos(0.1)  # 24 mm on a radius of 200 mm
    touch = ball.touch(puma, run.q, run.v, "flange")
    final = 12.0 / 5000.0
    expected = final + second_order(run.t, 1e-3 - final, np.sqrt(servo.kf * 5000.0), 6.0)
    assert np.abs(touch.penetration - expected).max() < 1e-8


# ---------------------------------------------------------------------------------------- bad input


GOOD = {"kp": 90.0, "kv": 17.0, "servo": SERVO}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kp": 0.0}, "kp of task 'pose of flange' is 0; every gain must be above zero"),
        ({"kv": [-1.0] * 6}, "kv of task"),
        ({"kp": [1.0, 2.0]}, "shape"),
        ({"servo": 3.0}, "servo is 3.0; it must be a lw.tasks.ForceServo"),
        ({"selection": np.eye(6)}, "it must be a lw.tasks.Selection"),
        ({"posture": np.zeros(6)}, "it must be a lw.tasks.Posture or None"),
        ({"task": Task.joints("joint_1")}, "of kind 'joints'"),
        ({"task": Task.direction("flange")}, "of kind 'direction'"),
        ({"task": Task.pose("flange", coordinates="quaternion")}, "coordinates 'quaternion'"),
        ({"mech": "puma"}, "mech is a str"),
    ],
)
def test_controllers_that_cannot_be(change, message):
    given = {"mech": puma, "task": Task.pose("flange"), "selection": Selection.all_motion()}
    with pytest.raises((ModelError, ShapeError), match=message):
        MotionForceController(**{**given, **GOOD, **change})


def test_a_node_of_another_robot():
    with pytest.raises(UnknownNameError, match="no node or body called 'left_flange'"):
        MotionForceController(puma, Task.pose("left_flange"), Selection.all_motion(), **GOOD)
    with pytest.raises(UnknownNameError, match=f"called '{TIP}'"):
        tool = Selection.from_axes(TIP, force="z")
        MotionForceController(puma, Task.pose("flange"), tool, **GOOD)


def test_questions_a_controller_cannot_answer():
    controller = MotionForceController(
        puma, Task.position("flange"), Selection.along_normal(NORMAL), **GOOD
    )
    q, v = POSTURE, np.zeros(6)
    at = puma.pose(q, "flange").p
    for request, message in (
        ({"contact": np.zeros(4)}, "contact has shape"),
        ({"contact": np.full(6, np.nan)}, "contact is not finite"),
        ({"force": np.zeros(6)}, "force has shape .* 3 rows"),
        ({"velocity": np.zeros(6)}, "velocity has shape"),
        ({"integral": [np.inf, 0, 0]}, "integral is not finite"),
        ({"phase": "landing"}, "phase is 'landing'; it must be one of approach, impact, contact"),
        ({"phase": "impact"}, "has no transition"),
    ):
        with pytest.raises((ModelError, ShapeError), match=message):
            controller.command(q, v, goal=at, **request)
    several = MotionForceController(
        puma, Task.pose("flange"), Selection.from_axes(force="z rx"), **GOOD
    )
    with pytest.raises(ModelError, match="2 axes of force control"):
        several.command(q, v, goal=puma.pose(q, "flange"), force=5.0)


def pressing():
    """A controller of the PUMA's flange and a state that it can be asked about."""
    task = Task.pose("flange")
    run = MotionForceController(puma, task, Selection.along_normal(NORMAL), 100.0, 20.0, SERVO)
    return run, task_position(puma, POSTURE, task), 0.1 * np.arange(6.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("what", ["force", "contact", "velocity", "acceleration", "integral"])
def test_what_is_not_finite_is_refused_by_name(what, bad):
    run, pose, v = pressing()
    vector = np.array([0.0, 0.0, 0.0, 0.0, bad, 0.0])
    for given in (vector, *((bad,) if what == "force" else ())):
        for ask in (run.command, run.torque):
            with pytest.raises(ModelError, match=f"{what} is not finite"):
                ask(POSTURE, v, goal=pose, **{what: given})


def test_tasks_that_cannot_be_are_refused_as_by_a_task_controller():
    """The same check, the same words: too many rows, a node that does not move."""
    pendulum = lw.models.pendulum(3)
    along = Selection.along_normal((0.0, 0.0, 1.0))
    for mech, task in ((pendulum, Task.pose("tip")), (puma, Task.position("base"))):
        with pytest.raises(ModelError) as one:
            MotionForceController(mech, task, along, 1.0, 1.0, SERVO)
        with pytest.raises(ModelError) as other:
            lw.TaskController(mech, lw.tasks.Servo(task, 1.0, 1.0))
        assert str(one.value) == str(other.value)


def test_a_goal_has_velocity_and_acceleration_in_it():
    run, pose, v = pressing()
    speed, ahead = np.arange(6.0), np.arange(6.0)[::-1]
    rest = {"force": 8.0, "contact": np.array([0.0, 0.0, 5.0])}
    want = run.torque(POSTURE, v, goal=pose, velocity=speed, acceleration=ahead, **rest)
    goal = lw.Goal(pose, speed, ahead)
    for given in (goal, {"pose of flange": goal}):
        np.testing.assert_array_equal(run.torque(POSTURE, v, goal=given, **rest), want)
        command = run.command(POSTURE, v, goal=given, **rest)
        np.testing.assert_allclose(command.tau, want, atol=1e-9 * np.abs(want).max())
    part = lw.Goal(pose, speed)
    got = run.torque(POSTURE, v, goal=part, acceleration=ahead, **rest)
    np.testing.assert_array_equal(got, want)
    with pytest.raises(ModelError, match="velocity was given twice"):
        run.torque(POSTURE, v, goal=part, velocity=speed)
    with pytest.raises(UnknownNameError, match="pose of flnge"):
        run.torque(POSTURE, v, goal={"pose of flnge": goal})


def test_loops_are_refused_unless_they_are_left_open():
    closed = lw.models.four_bar()
    tip = next(x.name for x in closed.bodies[1:])
    task = Task.position(tip, "x")
    given = (closed, task, Selection.all_motion(), 1.0, 1.0, SERVO)
    with pytest.raises(ModelError, match=r'lw\.tasks\.MotionForceController .*loops="open"'):
        MotionForceController(*given)
    with pytest.raises(ModelError, match=r'lw\.TaskController .*loops="open"'):
        lw.TaskController(closed, lw.tasks.Servo(task, 1.0, 1.0))
    open_tree = closed.without(*(x.name for x in closed.loops))
    q, v = closed.neutral() + 0.1, np.ones(closed.nv)
    one, other = (
        lw.TaskController(mech, lw.tasks.Servo(task, 1.0, 1.0), loops="open")(q, v, np.full(3, 0.1))
        for mech in (closed, open_tree)
    )
    assert np.abs(one).max() > 0.0
    np.testing.assert_array_equal(one, other)
    one, other = (
        MotionForceController(mech, *given[1:], loops="open").torque(q, v, goal=np.full(3, 0.1))
        for mech in (closed, open_tree)
    )
    np.testing.assert_array_equal(one, other)


def test_it_tells_what_it_is_in_a_line():
    run, _, _ = pressing()
    text = repr(run)
    assert text == str(run) and len(text) < 300
    assert "'puma560'; pose of flange; motion rx, ry, rz, x, y; force z" in text
    assert "kp=100, kv=20" in text


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_controller_is_a_function_in_c(tmp_path):
    """The inputs of the kernel by name, and the joint forces of Python."""
    mech, rng = lw.models.pendulum(3), np.random.default_rng(5)
    task, selection = Task.position("tip", along="xz"), Selection.from_axes(np.eye(3), force="z")
    run = MotionForceController(mech, task, selection, kp=60.0, kv=9.0, servo=SERVO)
    run.export_c("tick").write(tmp_path)
    command = ["cc", "-std=c99", "-O0", "-fPIC", "-shared", "tick.c", "-lm", "-o", "tick.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function, tau = ctypes.CDLL(str(tmp_path / "tick.so")).tick, np.zeros(3)
    for _ in range(3):
        q, v, goal = rng.standard_normal((3, 3))
        speed, integral = rng.standard_normal((2, 2))
        contact, press = rng.standard_normal(6), float(rng.standard_normal())
        expected = run.torque(
            q, v, goal=goal, velocity=speed, force=press, contact=contact, integral=integral
        )
        arrays = run.numbers | {"q": q, "v": v, "goal": goal, "velocity": speed}
        arrays |= {"acceleration": np.zeros(2), "force": np.zeros(2), "integral": integral}
        arrays |= {"contact": contact}
        arrays["servo"] = np.array([press, SERVO.kf, SERVO.ki, 0.0, SERVO.kv])
        given = [arrays[name] for name in run.kernel.arguments]
        assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, tau))) == 0
        np.testing.assert_allclose(tau, expected, rtol=1e-9)
        assert np.abs(tau).min() > 1e-2
