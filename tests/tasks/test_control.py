"""Controllers in closed loop: unit masses at the hand, postures that move nothing there."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ShapeError, UnknownNameError
from linkwise.spatial import rotation

ARM = lw.models.seven_dof_arm()
BENT = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
POSE = lw.Task.pose("hand")


def oscillator(t, start, kp, kv):
    """x(t) of ẍ + k_v ẋ + k_p x = 0 from rest, less than critically damped."""
    decay, frequency = 0.5 * kv, np.sqrt(kp - 0.25 * kv**2)
    wave = np.cos(frequency * t) + decay / frequency * np.sin(frequency * t)
    return start * (np.exp(-decay * t) * wave)[:, None]


def test_hand_moves_as_a_unit_mass_in_closed_loop():
    """Position and rotation vector obey ë + k_v ė + k_p e = 0 to 1e-8, whatever the arm does.

    From rest the hand turns about one axis, so that its rotation vector is the angle times that
    axis at all times: the law is linear, exactly. Steps of 5 ms leave an error of about
    (h ω)⁵ / 120 each, 1e-10 here.
    """
    kp, kv = 25.0, 6.0
    start = lw.tasks.task_position(ARM, BENT, POSE)
    turn, way = np.array([0.2, -0.3, 0.1]), np.array([0.05, 0.08, -0.06])
    goal = lw.Pose.rotation(rotation.exp(turn) @ start.rot, start.p + way)
    posture = lw.tasks.Posture(ARM.neutral(), 20.0, 5.0)
    run = lw.TaskController(ARM, lw.tasks.Servo(POSE, kp, kv), posture)
    motion = lw.simulate(
        ARM, BENT, np.zeros(7), controller=(run, goal), duration=0.4, step=5e-3, passive=False
    )
    errors = np.stack([lw.tasks.task_error(ARM, q, POSE, goal) for q in motion.q])
    expected = oscillator(motion.t, np.concatenate([turn, way]), kp, kv)
    assert np.abs(errors - expected).max() < 1e-8
    assert np.abs(motion.q[-1] - BENT).max() > 0.1  # and the arm did move


def test_a_tick_is_one_kernel_whatever_the_numbers_are():
    """Other gains, limits and thresholds are other inputs of the same kernel."""

    def made(kp, margin, threshold, rest):
        levels = [
            lw.tasks.Servo(lw.Task.position("hand"), kp, 20.0),
            lw.tasks.Servo(lw.Task.direction("hand"), kp, 9.0),
        ]
        posture, limits = lw.tasks.Posture(rest, kp, 5.0), lw.tasks.JointLimits(margin, 0.01, 1.0)
        near = lw.tasks.SingularStrategy(threshold)
        return lw.TaskController(ARM, levels, posture, limits=limits, singular=near, length=kp)

    one, other = made(100.0, 0.3, 0.02, BENT), made(60.0, 0.9, 0.4, ARM.neutral())
    assert one.kernel is other.kernel
    v, goals = np.full(7, 0.1), [np.array([0.3, 0.2, 0.5]), np.array([0.0, 0.0, -1.0])]
    for run, less in ((one, other), (other, one)):
        arrays = run.numbers | {"q": BENT, "v": v, "goal": np.concatenate(goals)}
        arrays |= {"velocity": np.zeros(5), "acceleration": np.zeros(5)}
        tau = run.kernel(*[arrays[name] for name in run.kernel.arguments])
        np.testing.assert_array_equal(run(BENT, v, goals), tau)
        np.testing.assert_array_equal(run(BENT, v, goals), run.explain(BENT, v, goals).tau)
        assert np.abs(tau - less(BENT, v, goals)).max() > 0.1


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_controller_is_a_function_in_c(tmp_path):
    mech, rng = lw.models.pendulum(3), np.random.default_rng(2)
    levels = [lw.tasks.Servo(lw.Task.position("tip", "x"), 50.0, 9.0)]
    levels.append(lw.tasks.Servo(lw.Task.position("tip", "z", name="height"), 50.0, 9.0, speed=0.2))
    run = lw.TaskController(mech, levels, lw.tasks.Posture(np.ones(3), 3.0, 1.0))
    run.export_c("tick").write(tmp_path)
    command = ["cc", "-std=c99", "-O0", "-fPIC", "-shared", "tick.c", "-lm", "-o", "tick.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    function = ctypes.CDLL(str(tmp_path / "tick.so")).tick
    still, tau = np.zeros(2), np.zeros(3)
    for _ in range(5):
        q, v, goal = rng.standard_normal((3, 3))
        arrays = run.numbers | {"q": q, "v": v, "velocity": still, "acceleration": still}
        arrays["goal"] = np.concatenate([goal, goal])
        given = [arrays[name] for name in run.kernel.arguments]
        assert function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, tau))) == 0
        np.testing.assert_allclose(tau, run(q, v, [goal, goal]), rtol=1e-9)


def test_gains_may_differ_by_row_and_be_matrices():
    """ẍ = F* in every state, for gains of all three kinds, a moving goal and a moving arm."""
    rng = np.random.default_rng(3)
    root = rng.standard_normal((6, 6))
    matrix = root @ root.T + 10.0 * np.eye(6)
    for kp, kv in (
        (100.0, 20.0),
        (rng.uniform(10, 90, 6), rng.uniform(2, 20, 6)),
        (matrix, matrix),
    ):
        run = lw.TaskController(ARM, lw.tasks.Servo(POSE, kp, kv))
        q, v = BENT + 0.2 * rng.standard_normal(7), rng.standard_normal(7)
        there, speed, rush = ARM.random(seed=5), rng.standard_normal(6), rng.standard_normal(6)
        goal = lw.Goal(lw.tasks.task_position(ARM, there, POSE), speed, rush)
        error = lw.tasks.task_error(ARM, q, POSE, goal.position)
        J = lw.tasks.task_jacobian(ARM, q, POSE)

        def gain(k, x):
            return np.dot(k, x) if np.ndim(k) == 2 else np.multiply(k, x)

        expected = rush + gain(kv, speed - J @ v) + gain(kp, error)
        vdot = lw.forward_dynamics(ARM, q, v, run(q, v, goal))
        got = J @ vdot + lw.tasks.task_bias(ARM, q, v, POSE)
        np.testing.assert_allclose(got, expected, atol=1e-10 * np.abs(expected).max())


def test_posture_moves_the_arm_and_not_the_hand():
    """The elbow swings towards its posture while the hand stays where it is."""
    posture = lw.tasks.Posture(BENT + np.array([0.0, 0.0, 1.0, 0, 0, 0, 0]), 60.0, 15.0)
    start = lw.tasks.task_position(ARM, BENT, POSE)
    run = lw.TaskController(ARM, lw.tasks.Servo(POSE, 100.0, 20.0), posture)
    J, v = lw.tasks.task_jacobian(ARM, BENT, POSE), np.zeros(7)
    tau = run(BENT, v, start)
    vdot = lw.forward_dynamics(ARM, BENT, v, tau)
    assert np.abs(J @ vdot).max() < 1e-10  # at the beginning it is at rest: no acceleration at all
    assert np.abs(vdot).max() > 1.0
    motion = lw.simulate(
        ARM, BENT, v, controller=(run, start), duration=0.6, step=0.01, passive=False
    )
    errors = np.stack([lw.tasks.task_error(ARM, q, POSE, start) for q in motion.q])
    assert np.abs(errors).max() < 1e-7  # (h ω)⁵ / 120 with the servo's ω = 10, h = 0.01
    elbow = [lw.tasks.task_position(ARM, q, lw.Task.position("elbow_pitch_link")) for q in motion.q]
    assert np.linalg.norm(elbow[-1] - elbow[0]) > 0.02


@pytest.mark.parametrize("compensate", ["task", "joints"])
def test_a_call_goes_through_one_kernel_and_gives_what_is_explained(compensate):
    """Where the level has all its directions; a batch with a singular row goes the long way."""
    posture = lw.tasks.Posture(ARM.neutral(), 20.0, 5.0)
    options = {"compensate": compensate, "limits": lw.tasks.JointLimits(0.3, 2e-3)}
    run = lw.TaskController(ARM, lw.tasks.Servo(POSE, 100.0, 20.0), posture, **options)
    rng = np.random.default_rng(8)
    q, v = BENT + 0.1 * rng.standard_normal((4, 7)), rng.standard_normal((4, 7))
    goal = lw.Goal(lw.tasks.task_position(ARM, BENT, POSE), np.ones(6), np.ones(6))
    straight = np.concatenate([q[:3], np.zeros((1, 7))])
    for rows in (q, straight):
        report = run.explain(rows, v, goal)
        np.testing.assert_allclose(
            run(rows, v, goal), report.tau, atol=1e-9 * np.abs(report.tau).max()
        )
        for i in range(4):
            one = run(rows[i], v[i], goal)
            np.testing.assert_allclose(one, report.tau[i], atol=1e-9 * np.abs(report.tau[i]).max())
    assert (report.levels[0].share[3] < 1.0).any() and (report.levels[0].share[:3] == 1.0).all()


def test_compensating_in_the_task_only_lets_the_rest_fall():
    free = lw.TaskController(ARM, lw.tasks.Servo(POSE, 100.0, 20.0), compensate="task")
    held = lw.TaskController(ARM, lw.tasks.Servo(POSE, 100.0, 20.0))
    goal, v = lw.tasks.task_position(ARM, BENT, POSE), np.zeros(7)
    bias, J = lw.bias_force(ARM, BENT, v), lw.tasks.task_jacobian(ARM, BENT, POSE)
    np.testing.assert_allclose(held(BENT, v, goal), bias, atol=1e-10)  # stands still
    falling = lw.forward_dynamics(ARM, BENT, v, free(BENT, v, goal))
    assert np.abs(J @ falling).max() < 1e-10 < 0.1 < np.abs(falling).max()


@pytest.mark.parametrize("kv", [20.0, [10.0, 20.0, 30.0], np.diag([10.0, 20.0, 30.0]) + 1.0])
def test_a_speed_that_is_not_reached_changes_nothing(kv):
    """u = ẋ_d + k_v⁻¹ k_p e shorter than the speed: F* = ẍ_d + k_v (ẋ_d - ẋ) + k_p e."""
    task, rng = lw.Task.position("hand"), np.random.default_rng(0)
    target = lw.tasks.task_position(ARM, BENT, task) + np.array([0.15, 0.1, -0.2])
    goal, v = lw.Goal(target, rng.standard_normal(3)), rng.standard_normal(7)
    free, fast, slow = (
        lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, kv, **more))(BENT, v, goal)
        for more in ({}, {"speed": 1e3}, {"speed": 0.1})
    )
    np.testing.assert_allclose(fast, free, rtol=1e-10, atol=1e-10)
    assert np.abs(slow - free).max() > 1.0


def test_speed_is_limited_and_the_way_is_straight():
    task = lw.Task.position("hand")
    start = lw.tasks.task_position(ARM, BENT, task)
    goal = start + np.array([0.15, 0.1, -0.2])
    run = lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, 20.0, speed=0.1))
    motion = lw.simulate(
        ARM, BENT, np.zeros(7), controller=(run, goal), duration=0.6, step=0.02, passive=False
    )
    speeds = [np.linalg.norm(lw.tasks.task_velocity(ARM, q, v, task))
              for q, v in zip(motion.q, motion.v, strict=True)]  # fmt: skip
    assert max(speeds) < 0.1 + 1e-6 and speeds[-1] == pytest.approx(0.1, rel=1e-4)
    gone = np.stack([lw.tasks.task_position(ARM, q, task) for q in motion.q]) - start
    along = (goal - start) / np.linalg.norm(goal - start)
    assert np.abs(gone - np.outer(gone @ along, along)).max() < 1e-7


def test_joint_limits_push_as_the_slope_of_their_field():
    limits = lw.tasks.JointLimits(margin=0.3, gain=2e-3)
    upper, zero = ARM.upper, np.zeros(7)
    for rho in (0.25, 0.1, 0.07):
        q = BENT.copy()
        q[3] = upper[3] - rho

        def field(x):
            return 0.5 * 2e-3 * (1.0 / (upper[3] - x) - 1.0 / 0.3) ** 2

        slope = (field(q[3] + 1e-6) - field(q[3] - 1e-6)) / 2e-6
        push = limits.push(ARM, q, zero)
        assert push[3] == pytest.approx(-slope, rel=1e-6)
        assert not np.delete(push, 3).any()
    q[3] = upper[3] + 0.1  # beyond: finite
    assert limits.push(ARM, q, zero)[3] == pytest.approx(-limits.strongest)
    assert limits.strongest == pytest.approx(2e-3 * (1 / 0.06 - 1 / 0.3) / 0.06**2)


def test_joint_limits_act_in_the_null_space_or_before_all():
    task = lw.Task.position("hand")
    q, v = BENT.copy(), np.zeros(7)
    q[3] = ARM.upper[3] - 0.05
    goal = lw.tasks.task_position(ARM, q, task)
    v[3] = 0.5  # towards the limit
    below = lw.TaskController(
        ARM, lw.tasks.Servo(task, 100.0, 20.0), limits=lw.tasks.JointLimits(0.3, 2e-3, kv=4.0)
    )
    report = below.explain(q, v, goal)
    np.testing.assert_allclose(report.levels[0].achieved, report.levels[0].requested, atol=1e-9)
    alone = lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, 20.0)).explain(q, v, goal)
    assert report.acceleration[3] < alone.acceleration[3] - 0.1
    first = lw.tasks.JointLimits(0.3, 0.02, kv=20.0, priority="top")
    top = lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, 20.0), limits=first).explain(
        q, v, goal
    )
    # Within half of the margin the push itself is what the joint does, task or not.
    assert top.acceleration[3] == pytest.approx(first.push(ARM, q, v)[3], rel=1e-9)
    assert top.limits[3] and "1 joints are close to their limits" in str(top)
    q[3], v[3] = ARM.lower[3] + 0.05, -0.5  # the other end
    goal = lw.tasks.task_position(ARM, q, task)
    top = lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, 20.0), limits=first).explain(
        q, v, goal
    )
    assert top.acceleration[3] == pytest.approx(first.push(ARM, q, v)[3], rel=1e-9)
    assert top.acceleration[3] > 1.0


def test_a_joint_is_kept_inside_its_range_by_force():
    """The hand is told to go where only a joint beyond its limit could take it."""
    arm = ARM.with_drive("elbow_pitch", upper=1.4)
    task = lw.Task.position("hand")
    far = BENT.copy()
    far[3] = 1.9
    goal = lw.tasks.task_position(arm, far, task)
    deepest = {}
    for name, limits in (
        ("none", None),
        ("top", lw.tasks.JointLimits(0.15, 2e-3, kv=30.0, priority="top")),
    ):
        run = lw.TaskController(
            arm, lw.tasks.Servo(task, 50.0, 14.0), lw.tasks.Posture.damping(4.0), limits=limits
        )
        motion = lw.simulate(
            arm, BENT, np.zeros(7), controller=(run, goal), passive=False,
            duration=0.8, step=0.01, control_step=0.01,
        )  # fmt: skip
        deepest[name] = motion.q[:, 3].max()
    assert deepest["none"] > 1.42 and deepest["top"] < 1.4, deepest


def test_nothing_jumps_where_a_joint_comes_near_its_limit():
    task = lw.Task.position("hand")
    limits = lw.tasks.JointLimits(0.3, 0.02, kv=20.0, priority="top")
    run = lw.TaskController(ARM, lw.tasks.Servo(task, 100.0, 20.0), limits=limits)
    goal = lw.tasks.task_position(ARM, ARM.random(seed=2), task)
    v = np.array([0.3, -0.2, 0.1, 0.6, 0.2, 0.5, 0.1])

    def jump(count):
        s = np.linspace(0.0, 1.0, count)[:, None]
        start, end = BENT.copy(), BENT.copy()
        start[[3, 5]] = ARM.upper[[3, 5]] - (0.5, 0.4)  # two joints, one after the other
        end[[3, 5]] = ARM.upper[[3, 5]] + 0.02
        tau = run(start + s * (end - start), np.broadcast_to(v, (count, 7)), goal)
        return np.abs(np.diff(tau, axis=0)).max()

    coarse, fine = jump(401), jump(4001)
    assert fine < 0.15 * coarse  # continuous: ten times the points, a tenth of the jump


# ------------------------------------------------------------------------------------- bad input


def servo(task, kp=100.0, kv=20.0):
    return lw.tasks.Servo(task, kp, kv)


def test_tasks_that_cannot_be_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'hand'"):
        lw.TaskController(ARM, servo(lw.Task.pose("hnd")))
    with pytest.raises(UnknownNameError, match="flange"):  # a node of another robot
        lw.TaskController(ARM, servo(lw.Task.pose("flange")))
    with pytest.raises(ModelError, match="does not move with any hinge of 'seven_dof_arm'"):
        lw.TaskController(ARM, servo(lw.Task.position("base")))
    pendulum = lw.models.pendulum(3)
    with pytest.raises(ModelError, match=r"has 6 rows .* 'pendulum_3' has 3 degrees"):
        lw.TaskController(pendulum, servo(lw.Task.pose("tip")))
    with pytest.raises(ModelError, match="has 3 rows, but 'pendulum_3' has only 2"):
        lw.TaskController(pendulum, servo(lw.Task.position("tip")))
    with pytest.raises(ModelError, match="has 9 rows"):
        many = [servo(lw.Task.pose("hand")), servo(lw.Task.position("wrist_pitch_link"))]
        lw.TaskController(ARM, [many])


PUMA = lw.models.puma560()


@pytest.mark.parametrize(
    "still",
    [
        lw.Task.position("flange", relative_to="link_6", name="still"),  # on one and the same body
        lw.Task.orientation("flange", relative_to="link_6", name="still"),
        lw.Task.position("link_5", relative_to="link_4", name="still"),  # the centre of the wrist
        lw.Task.position("link_6", relative_to="link_4", name="still"),
    ],
    ids=lambda t: f"{t.node} from {t.relative_to}",
)
def test_tasks_that_only_rounding_moves_are_refused_on_every_level(still):
    """J is 1e-17 there, not zero: as a motion it would take 1e16 N m and more."""
    J = lw.tasks.task_jacobian(PUMA, PUMA.random(seed=1), still)
    assert np.abs(J).max() < 1e-14
    first = servo(lw.Task.position("flange"))
    for levels in (servo(still), [first, servo(still)], [[first, servo(still)]]):
        with pytest.raises(ModelError, match=r"'still' is about .* does not move with any hinge"):
            lw.TaskController(PUMA, levels)


def test_gains_that_are_not_positive_are_refused():
    with pytest.raises(ModelError, match="kp of the servo 'pose of hand' is 0; every gain must be"):
        servo(POSE, kp=0.0)
    with pytest.raises(ModelError, match="kv of the servo 'pose of hand' is -2"):
        servo(POSE, kv=-2.0)
    with pytest.raises(ModelError, match=r"kp of .* is \[1.0, 1.0, 1.0, 1.0, 1.0, -1.0\]"):
        servo(POSE, kp=[1, 1, 1, 1, 1, -1])
    with pytest.raises(ShapeError, match=r"kp of .* must be a number, \(6,\) or a matrix \(6, 6\)"):
        servo(POSE, kp=[1.0, 2.0])
    with pytest.raises(ModelError, match="not finite"):
        servo(POSE, kp=np.nan)
    with pytest.raises(ModelError, match="positive definite"):
        servo(POSE, kp=np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1.0]))
    with pytest.raises(ModelError, match="has no single speed"):
        lw.tasks.Servo(POSE, 1.0, 1.0, speed=0.1)
    with pytest.raises(ModelError, match="margin of the joint limits is 0"):
        lw.tasks.JointLimits(0.0, 1.0)


def test_goals_that_do_not_fit_are_refused():
    elbow = lw.Task.position("elbow_pitch_link", "z", name="elbow")
    run = lw.TaskController(ARM, [servo(lw.Task.position("hand")), servo(elbow)])
    q, v, p = BENT, np.zeros(7), np.zeros(3)
    with pytest.raises(ModelError, match="no goal was given for 'elbow'"):
        run(q, v, {"position of hand": p})
    with pytest.raises(UnknownNameError, match="no servo called 'elbw' in the controller; did you"):
        run(q, v, {"position of hand": p, "elbow": p, "elbw": p})
    with pytest.raises(ModelError, match="3 goals were given for 2 servos"):
        run(q, v, [p, p, p])
    with pytest.raises(ModelError, match="goals is a ndarray; for 2 servos"):
        run(q, v, p)
    with pytest.raises(ShapeError, match="velocity of the goal of 'elbow' has shape"):
        run(q, v, [p, lw.Goal(p, velocity=[0.0, 1.0])])
    with pytest.raises(ModelError, match="acceleration of the goal of 'elbow' is not finite"):
        run(q, v, [p, lw.Goal(p, acceleration=[np.inf])])
    for rows, count in ((q, 5), (np.stack([q, q, q]), 2)):
        with pytest.raises(ShapeError, match=r"another number of states than q|are batches of"):
            run(rows, v, [np.zeros((count, 3)), p])
    with pytest.raises(ModelError, match="has coordinates, 'euler_zyx'; a servo controls"):
        servo(lw.Task.pose("hand", coordinates="euler_zyx"))
    with pytest.raises(ModelError, match="two servos are called"):
        lw.TaskController(ARM, [servo(POSE), servo(POSE)])


def test_states_and_options_that_mean_nothing_are_refused():
    run = lw.TaskController(ARM, servo(POSE))
    goal, v = lw.tasks.task_position(ARM, BENT, POSE), np.zeros(7)
    for q in (BENT * np.nan, np.stack([BENT, BENT * np.inf])):
        with pytest.raises(ModelError, match="q is not finite at 'shoulder_yaw'"):
            run(q, v, goal)
    with pytest.raises(ModelError, match="v is not finite"):
        run(BENT, np.full(7, np.nan), goal)
    with pytest.raises(ShapeError):
        run(BENT[:5], v, goal)
    with pytest.raises(ModelError, match=r"posture is a ndarray; it must be a lw\.tasks\.Posture"):
        lw.TaskController(ARM, servo(POSE), BENT)
    with pytest.raises(ModelError, match="damping is -1"):
        lw.TaskController(ARM, servo(POSE), damping=-1.0)
    with pytest.raises(ModelError, match="give only one"):
        lw.TaskController(ARM, servo(POSE), damping=0.1, singular=lw.tasks.SingularStrategy())
    with pytest.raises(UnknownNameError, match="compensate"):
        lw.TaskController(ARM, servo(POSE), compensate="all")
    with pytest.raises(ModelError, match="threshold is 2"):
        lw.tasks.SingularStrategy(threshold=2.0)
    with pytest.raises(ModelError, match="levels is a Task"):
        lw.TaskController(ARM, POSE)
    with pytest.raises(ModelError, match="no hinge of 'pendulum_3' has limits"):
        tip = servo(lw.Task.position("tip", "xz"))
        lw.TaskController(lw.models.pendulum(3), tip, limits=lw.tasks.JointLimits(0.1, 1.0))


def test_controllers_and_servos_tell_what_they_are_in_a_line():
    slow = lw.tasks.Servo(lw.Task.position("hand"), 100.0, [1.0, 2.0, 3.0], speed=0.1)
    assert repr(slow) == "Servo('position of hand', kp=100, kv=[1, 2, 3], speed=0.1)"
    assert repr(servo(POSE, kp=np.eye(6))) == "Servo('pose of hand', kp=matrix (6, 6), kv=20)"
    elbow = servo(lw.Task.position("elbow_pitch_link", "z", name="elbow"))
    run = lw.TaskController(ARM, [slow, elbow], lw.tasks.Posture.damping(1.0), singular=None)
    message = "TaskController('seven_dof_arm', position of hand > elbow, posture, plain inverse)"
    assert repr(run) == str(run) == message


def test_a_target_of_some_rows_is_the_whole_point():
    run = lw.TaskController(ARM, servo(lw.Task.position("hand", "xz")))
    with pytest.raises(ShapeError, match=r"the full position, for any rows .*: \(3,\)"):
        run(BENT, np.zeros(7), [0.1, 0.2])


def test_goals_of_orientations_take_the_fast_path(monkeypatch):
    """A rotation matrix or a pose is one call of the kernel, and the numbers of the checked way."""
    turn, way = lw.Task.orientation("hand"), lw.Task.position("forearm_roll_link")
    first, second = lw.tasks.Servo(turn, 90.0, 12.0), lw.tasks.Servo(way, 50.0, 10.0)
    run = lw.TaskController(ARM, [first, second])
    v = np.linspace(0.3, -0.3, 7)
    there = ARM.integrate(BENT, 0.2 * v)
    at, of = (lw.forward_kinematics(ARM, there, node) for node in ("hand", "forearm_roll_link"))
    checked = run(BENT[None], v[None], [at.rot[None], of.p[None]])[0]
    run(BENT, v, [at.rot, of.p])  # which prepares the fast path
    counts = []
    monkeypatch.setattr(type(run), "_called", lambda *given: (counts.append(1), "carefully")[1])
    for goals in ([at.rot, of.p], [at, of], [lw.Goal(at), of.p], {turn.name: at.rot, way.name: of}):
        np.testing.assert_allclose(run(BENT, v, goals), checked, rtol=1e-9)
    assert not counts and np.abs(checked).max() > 1.0
    assert run(BENT, v, [1.1 * at.rot, of.p]) == "carefully" and counts == [1]


@pytest.mark.parametrize("wrong", [1.0 + 1e-8, -1.0], ids=["stretched", "mirrored"])
def test_a_matrix_that_is_no_rotation_is_refused_in_every_call(wrong):
    run = lw.TaskController(ARM, lw.tasks.Servo(lw.Task.orientation("hand"), 90.0, 12.0))
    goal = lw.forward_kinematics(ARM, BENT, "hand").rot
    for _ in range(3):
        run(BENT, np.zeros(7), goal)
        with pytest.raises(ModelError, match="is not a rotation matrix"):
            run(BENT, np.zeros(7), wrong * goal)
