"""Priorities against recursive null spaces, and against least squares in order, all dense."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import null_space

import linkwise as lw

# Everything here is a few dozen dense products with matrices of condition 1e4 or so, and asks for
# accelerations of about 100: 1e-10 of the largest number is six digits above rounding.
CLOSE = 1e-10


@dataclass(frozen=True)
class Case:
    """A mechanism, tasks in order of priority, and a state away from singularities."""

    mech: lw.Mechanism
    levels: tuple[tuple[lw.Task, ...], ...]
    q: np.ndarray
    v: np.ndarray


ARM = lw.models.seven_dof_arm()


def floating_arm():
    """A free base with three pins: small, and q has a quaternion in it."""
    b = lw.Builder("floating arm")
    b.body(
        "base",
        hinge=lw.hinges.Free(),
        inertia=lw.SpatialInertia.from_com(4.0, (0, 0, 0), (0.2,) * 3),
    )
    rod = lw.SpatialInertia.from_com(0.5, (0, 0, 0.2), (0.01, 0.01, 0.001))
    for k, axis in enumerate(((1, 0, 0), (0, 1, 0), (1, 0, 0))):
        at = (0.0, 0.0, 0.4 if k else 0.1)
        b.body(
            f"rod_{k}",
            f"rod_{k - 1}" if k else "base",
            lw.hinges.Pin(axis),
            inboard=at,
            inertia=rod,
        )
    b.node("tip", "rod_2", (0, 0, 0.4))
    return b.build()


def cases():
    arm = ARM
    elbow = lw.Task.position("elbow_pitch_link", "z", name="elbow")
    flyer, robot = lw.models.free_flyer(), lw.models.humanoid()
    return {
        "arm: position, direction, elbow": (
            arm,
            ((lw.Task.position("hand"),), (lw.Task.direction("hand"),), (elbow,)),
        ),
        "arm: joints first": (
            arm,
            (
                (lw.Task.joints("elbow_pitch", "wrist_roll"),),
                (lw.Task.position("hand"), lw.Task.orientation("hand", "x")),
            ),
        ),
        "floating arm": (
            floating_arm(),
            (
                (lw.Task.orientation("base"), lw.Task.position("tip")),
                (lw.Task.direction("tip"),),
                (lw.Task.position("rod_2", "y", relative_to="base"),),
            ),
        ),
        "flyer: hands, relative": (
            flyer,
            (
                (lw.Task.pose("left_hand", relative_to="right_hand"),),
                (lw.Task.orientation("docking"), lw.Task.position("left_hand")),
                (lw.Task.position("right_hand", axes="node"),),
            ),
        ),
        "humanoid": (
            robot,
            (
                (lw.Task.pose("left_sole"), lw.Task.pose("right_sole")),
                (lw.Task.position("left_hand"), lw.Task.position("right_hand")),
                (lw.Task.direction("head_top"),),
            ),
        ),
    }


SLOW = ("humanoid", "flyer: hands, relative")  # kernels that take ten seconds to compile


@pytest.fixture(
    params=[pytest.param(x, marks=pytest.mark.slow) if x in SLOW else x for x in cases()],
    scope="module",
)
def case(request):
    mech, levels = cases()[request.param]
    return Case(mech, levels, mech.random(seed=3), mech.random_velocity(seed=3))


def dense(case, q, v):
    """J and γ of each level, 𝓜 and C."""
    levels = [
        (lw.tasks.task_jacobian(case.mech, q, level), lw.tasks.task_bias(case.mech, q, v, level))
        for level in case.levels
    ]
    return levels, lw.mass_matrix(case.mech, q), lw.bias_force(case.mech, q, v)


def controller(case, **options):
    levels = [[lw.tasks.Servo(task, 60.0, 12.0) for task in level] for level in case.levels]
    return lw.TaskController(case.mech, levels, **{"singular": None, **options})


def goals(case, seed=0):
    """Somewhere else, with velocities and accelerations."""
    mech, rng = case.mech, np.random.default_rng(seed)
    there = mech.integrate(case.q, 0.3 * rng.standard_normal(mech.nv))
    result = {}
    for task in (task for level in case.levels for task in level):
        m = len(lw.tasks.task_jacobian(mech, case.q, task))
        goal = lw.tasks.task_position(mech, there, task)
        result[task.name] = lw.Goal(goal, rng.standard_normal(m), rng.standard_normal(m))
    return result


def by_null_spaces(levels, mass, bias, expected, tau0):
    """Sentis and Khatib: J_k|prev = J_k N_prev, each with its own Λ; torques added up."""
    n = len(mass)
    N, tau, inverse = np.eye(n), np.zeros(n), np.linalg.inv(mass)
    for (J, gamma), a in zip(levels, expected, strict=True):
        J_prev = J @ N
        inertia = np.linalg.pinv(J_prev @ inverse @ J_prev.T, rcond=1e-11, hermitian=True)
        tau = tau + J_prev.T @ inertia @ (a - gamma - J @ inverse @ (tau - bias))
        N = N - inverse @ J_prev.T @ inertia @ J_prev
    return tau + N.T @ tau0


def wanted_by_hand(case, result):
    """F* of each level from the goals."""
    mech, q, v = case.mech, case.q, case.v
    return [
        np.concatenate(
            [
                result[task.name].acceleration
                + 12.0 * (result[task.name].velocity - lw.tasks.task_velocity(mech, q, v, task))
                + 60.0 * lw.tasks.task_error(mech, q, task, result[task.name].position)
                for task in level
            ]
        )
        for level in case.levels
    ]


@pytest.mark.few(2)
def test_torque_is_that_of_recursive_null_spaces(case):
    levels, mass, bias = dense(case, case.q, case.v)
    given, posture = goals(case), lw.tasks.Posture.damping(3.0)
    expected = by_null_spaces(levels, mass, bias, wanted_by_hand(case, given), -3.0 * case.v)
    tau = controller(case, posture=posture, compensate="task")(case.q, case.v, given)
    np.testing.assert_allclose(tau, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())
    everywhere = by_null_spaces(
        levels, mass, bias, wanted_by_hand(case, given), bias - 3.0 * case.v
    )
    tau = controller(case, posture=posture)(case.q, case.v, given)
    np.testing.assert_allclose(tau, everywhere, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.few(2)
def test_lower_levels_and_posture_do_not_disturb_upper_ones(case):
    """What a level gets by forward dynamics does not change with anything below it."""
    mech, q, v = case.mech, case.q, case.v
    given, (levels, _, _) = goals(case), dense(case, q, v)
    expected = wanted_by_hand(case, given)
    before = list[np.ndarray]()  # of each level while it was the last
    for count in range(1, len(levels) + 1):
        part = Case(mech, case.levels[:count], q, v)
        names = [task.name for level in part.levels for task in level]
        run = controller(part, posture=lw.tasks.Posture(mech.neutral(), 40.0, 5.0 * count))
        vdot = lw.forward_dynamics(mech, q, v, run(q, v, {name: given[name] for name in names}))
        now = [J @ vdot + gamma for J, gamma in levels[:count]]
        for (J, _), old, new in zip(levels, before, now, strict=False):
            assert np.abs(new - old).max() < CLOSE * np.abs(vdot).max() * np.linalg.norm(J)
        before = now
    assert np.abs(before[0] - expected[0]).max() < CLOSE * np.abs(expected[0]).max() * len(vdot)


def in_order(levels, scales, mass, start, expected):
    """Lexicographic least squares: each level over what is left by those before; then least energy.

    x = v̇; level k: min |D (J x - b)| with all J_j x of j < k kept; at last
    min (x - start)* 𝓜 (x - start).
    """
    n = len(mass)
    x, left = np.zeros(n), np.eye(n)
    for (J, gamma), scale, a in zip(levels, scales, expected, strict=True):
        A = scale[:, None] * J
        z = np.linalg.lstsq(A @ left, scale * (a - gamma) - A @ x, rcond=1e-9)[0]
        x = x + left @ z
        left = left @ null_space(A @ left, rcond=1e-9) if min((A @ left).shape) else left
    if left.shape[1]:
        x = x + left @ np.linalg.solve(left.T @ mass @ left, left.T @ mass @ (start - x))
    return x


def scales(case):
    """Rows that turn count as the speed at the reach: with this length levels are measured."""
    from linkwise.tasks.task_stack import task_stack

    return [t.scale(t.length()) for t in (task_stack(case.mech, level) for level in case.levels)]


def test_acceleration_is_that_of_least_squares_in_order(case):
    levels, mass, bias = dense(case, case.q, case.v)
    given = goals(case)
    start = np.linalg.solve(mass, -bias)  # what happens without any torque
    expected = in_order(levels, scales(case), mass, start, wanted_by_hand(case, given))
    tau = controller(case, compensate="task")(case.q, case.v, given)
    vdot = lw.forward_dynamics(case.mech, case.q, case.v, tau)
    np.testing.assert_allclose(vdot, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


def test_levels_that_cannot_all_be_had_do_as_well_as_they_can():
    """Three freedoms are left for six rows, then none: least squares in order says what is best."""
    arm = ARM
    levels = (
        (lw.Task.position("hand"), lw.Task.orientation("hand", "z")),
        (lw.Task.position("wrist_pitch_link"), lw.Task.orientation("wrist_pitch_link")),
        (lw.Task.joints("elbow_pitch"),),
    )
    case = Case(arm, levels, arm.random(seed=5), arm.random_velocity(seed=5))
    parts, mass, bias = dense(case, case.q, case.v)
    given = goals(case)
    start = np.linalg.solve(mass, -bias)
    expected = in_order(parts, scales(case), mass, start, wanted_by_hand(case, given))
    run = controller(case, compensate="task")
    report = run.explain(case.q, case.v, given)
    np.testing.assert_allclose(report.acceleration, expected, atol=1e-8 * np.abs(expected).max())
    assert [level.rank for level in report.levels] == [4, 3, 0]
    first, second, _ = report.levels
    np.testing.assert_allclose(first.achieved, first.requested, atol=1e-9)
    assert np.abs(second.achieved - second.requested).max() > 1.0  # it cannot be had
    # What is missing of the second level has no part that its remaining freedoms could give.
    J_2, scale = parts[1][0], scales(case)[1]
    left = null_space(parts[0][0])
    missing = scale * (second.requested - second.achieved)
    slope = (scale[:, None] * J_2 @ left).T @ missing
    assert np.abs(slope).max() < 1e-9 * np.abs(missing).max()


def test_the_same_task_twice_does_no_harm():
    arm = ARM
    q, v = arm.random(seed=1), arm.random_velocity(seed=1)
    once = lw.tasks.Servo(lw.Task.position("hand"), 100.0, 20.0)
    again = lw.tasks.Servo(lw.Task.position("hand", name="again"), 100.0, 20.0)
    goal = lw.tasks.task_position(arm, arm.random(seed=2), once.task)
    options = {"singular": None, "posture": lw.tasks.Posture(arm.neutral(), 10.0, 5.0)}
    alone = lw.TaskController(arm, once, **options)(q, v, goal)
    both = {"position of hand": goal, "again": goal}
    for levels in ([once, again], [[once, again]]):
        tau = lw.TaskController(arm, levels, **options)(q, v, both)
        np.testing.assert_allclose(tau, alone, rtol=0.0, atol=1e-9 * np.abs(alone).max())
    # With another goal below, nothing changes; beside, what comes out is the mean.
    other = goal + np.array([0.1, 0.0, 0.0])
    below = lw.TaskController(arm, [once, again], **options)
    tau = below(q, v, {"position of hand": goal, "again": other})
    np.testing.assert_allclose(tau, alone, rtol=0.0, atol=1e-9 * np.abs(alone).max())
    beside = lw.TaskController(arm, [[once, again]], **options)
    tau = beside(q, v, {"position of hand": goal, "again": other})
    mean = lw.TaskController(arm, once, **options)(q, v, 0.5 * (goal + other))
    np.testing.assert_allclose(tau, mean, rtol=0.0, atol=1e-9 * np.abs(alone).max())


@pytest.mark.parametrize("damping", [None, 0.05])
@pytest.mark.parametrize("compensate", ["task", "joints"])
def test_one_level_is_the_torque_of_the_task(damping, compensate):
    arm = ARM
    q, v = arm.random(seed=6), arm.random_velocity(seed=6)
    task = lw.Task.pose("hand")
    goal = lw.tasks.task_position(arm, arm.random(seed=7), task)
    posture = lw.tasks.Posture(arm.neutral(), 10.0, 5.0)
    options = {"damping": damping, "compensate": compensate}
    run = lw.TaskController(arm, lw.tasks.Servo(task, 50.0, 9.0), posture, singular=None, **options)
    error, moving = lw.tasks.task_error(arm, q, task, goal), lw.tasks.task_velocity(arm, q, v, task)
    acceleration, tau0 = 50.0 * error - 9.0 * moving, posture.torque(arm, q, v)
    # Dense: Λ = S (S J 𝓜⁻¹ J* S + d² σ)⁻¹ S, with σ the largest eigenvalue of S J 𝓜⁻¹ J* S.
    J = lw.jacobian(arm, q, "hand", frame="world")
    gamma = lw.jacobian_dot(arm, q, v, "hand", frame="world") @ v
    resisting, inverse = lw.bias_force(arm, q, v), np.linalg.inv(lw.mass_matrix(arm, q))
    scale = np.repeat([lw.tasks.task_space(arm, q, task).length, 1.0], 3)
    inside = scale[:, None] * (J @ inverse @ J.T) * scale
    floor = (damping or 0.0) ** 2 * np.linalg.eigvalsh(inside)[-1]
    inertia = scale[:, None] * np.linalg.inv(inside + floor * np.eye(6)) * scale
    inner = tau0 + resisting if compensate == "joints" else tau0
    missing = acceleration - gamma - J @ inverse @ (inner - resisting)
    expected = inner + J.T @ (inertia @ missing)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(run(q, v, goal), expected, atol=1e-9 * largest)
    torque = lw.tasks.task_torque(arm, q, v, task, acceleration, tau0=tau0, **options)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * largest)


@pytest.mark.few(1)
def test_batches_are_rows_whatever_their_ranks(case):
    mech, rng = case.mech, np.random.default_rng(4)
    q = np.stack([case.q, mech.neutral(), mech.random(rng)])
    v = rng.standard_normal((3, mech.nv))
    given = goals(case)
    for options in ({}, {"singular": lw.tasks.SingularStrategy(0.1)}, {"damping": 0.1}):
        run = controller(case, posture=lw.tasks.Posture(mech.neutral(), 5.0, 2.0), **options)
        together = run.explain(q, v, given)
        for i in range(3):
            one = run.explain(q[i], v[i], given)
            scale = np.abs(one.tau).max()
            np.testing.assert_allclose(together.tau[i], one.tau, rtol=0.0, atol=1e-9 * scale)
            for a, b in zip(together[i].levels, one.levels, strict=True):
                assert a.rank == b.rank
                np.testing.assert_allclose(a.share, b.share, atol=1e-9)


def test_a_report_tells_what_came_of_it():
    arm = ARM
    hand = lw.tasks.Servo(lw.Task.pose("hand"), 100.0, 20.0)
    elbow = lw.tasks.Servo(lw.Task.position("elbow_pitch_link", name="elbow"), 100.0, 20.0)
    q, v = arm.random(seed=1), np.zeros(7)
    there = q + 0.05 * np.random.default_rng(2).standard_normal(7)
    given = {name: lw.tasks.task_position(arm, there, servo.task)
             for name, servo in (("pose of hand", hand), ("elbow", elbow))}  # fmt: skip
    given["elbow"] = given["elbow"] + 0.1
    report = lw.TaskController(arm, [hand, elbow]).explain(q, v, given)
    assert [level.rank for level in report.levels] == [6, 1]
    text = str(report)
    assert "level 1: pose of hand: rank 6 of 6, as requested" in text
    assert (
        "level 2: elbow: rank 1 of 3" in text and "cannot move along 2 directions oblique" in text
    )
    assert report.levels[1].lost.shape == (3, 2)
    assert "free for the posture: 0 of 7" in text
    batch = lw.TaskController(arm, [hand, elbow]).explain(q[None], v[None], given)
    assert str(batch) == "control of 1 states" and str(batch[0]).startswith("level 1")
