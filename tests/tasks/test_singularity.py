"""Through singular configurations: exact in what is left, bounded in what goes, and out again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.tasks.task_stack import task_stack

UR, PUMA, SEVEN = lw.models.ur_arm(), lw.models.puma560(), lw.models.seven_dof_arm()
POSE = lw.Task.pose("flange")
KP, KV = 100.0, 20.0
SERVO = lw.tasks.Servo(POSE, KP, KV)
THRESHOLD = 0.02

A_2, A_3, D_5 = -0.425, -0.3922, 0.0997
OVER = np.arcsin(-(A_2 * np.cos(-1.6) + A_3 * np.cos(-1.3)) / D_5) + 1.3

SINGULAR = {
    "UR wrist": (UR, (0.3, -1.2, 1.4, -0.9, 0.0, 0.2), 4),
    "UR elbow": (UR, (0.3, -0.9, 0.0, -0.9, 1.0, 0.2), 2),
    "UR shoulder": (UR, (0.2, -1.6, 0.3, OVER, 1.1, 0.3), 3),
    "PUMA wrist": (PUMA, (0.3, -0.8, 0.8, 0.4, 0.0, 0.2), 4),
    "PUMA elbow": (PUMA, (0.3, -0.8, 0.5 * np.pi + np.arctan2(0.0203, 0.4331), 0.4, 0.7, 0.2), 2),
}


def overhead():
    """The PUMA's wrist above its shoulder: a2 c2 + a3 c23 + d4 s23 = 0 at q3 = 1, by bisection."""

    def ahead(q_2):
        return 0.4318 * np.cos(q_2) - 0.0203 * np.cos(q_2 + 1.0) + 0.4331 * np.sin(q_2 + 1.0)

    low, high = -2.5, -1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if ahead(low) * ahead(middle) <= 0.0 else (middle, high)
    return 0.5 * (low + high)


SINGULAR["PUMA shoulder"] = (PUMA, (0.3, overhead(), 1.0, 0.4, 0.7, 0.2), 1)


@pytest.fixture(params=SINGULAR, scope="module")
def place(request):
    mech, q, joint = SINGULAR[request.param]
    return mech, np.array(q), joint


def away(mech, q, seed=0):
    """A goal some centimetres and degrees off, that moves."""
    rng = np.random.default_rng(seed)
    there = lw.tasks.task_position(mech, q + 0.1 * rng.standard_normal(6), POSE)
    return lw.Goal(there, 0.2 * rng.standard_normal(6), rng.standard_normal(6))


def directions(mech, q):
    """U, σ, V* of J with turning at the reach."""
    scale = np.repeat([task_stack(mech, POSE).length(), 1.0], 3)
    u, sigma, v = np.linalg.svd(scale[:, None] * lw.tasks.task_jacobian(mech, q, POSE))
    return u, sigma, v, scale


@pytest.mark.few(2)
def test_what_is_left_of_the_task_is_exact(place):
    """At the singular configuration five directions get what they ask for, one gets nothing."""
    mech, q, _ = place
    v = np.random.default_rng(1).standard_normal(6)
    goal = away(mech, q)
    u, sigma, _, scale = directions(mech, q)
    assert sigma[5] < 1e-9 * sigma[0] and sigma[4] > THRESHOLD * sigma[0]
    for remaining in ("goal", "rest", "free"):
        strategy = lw.tasks.SingularStrategy(THRESHOLD, remaining)
        run = lw.TaskController(mech, SERVO, singular=strategy)
        level = run.explain(q, v, goal).levels[0]
        assert level.rank == 5 and level.share.tolist() == [1, 1, 1, 1, 1, 0]
        vdot = lw.forward_dynamics(mech, q, v, run(q, v, goal))
        got = lw.tasks.task_jacobian(mech, q, POSE) @ vdot + lw.tasks.task_bias(mech, q, v, POSE)
        missing = u.T @ (scale * (got - level.requested))
        assert np.abs(missing[:5]).max() < 1e-9 * np.abs(level.requested).max()


@pytest.mark.parametrize("mech", [UR, PUMA], ids=["UR", "PUMA"])
def test_far_from_singularities_it_is_the_plain_law(mech):
    """Beyond five thresholds always; beyond one where joints are not held to a speed."""
    rng, tried = np.random.default_rng(2), 0
    while tried < 5:
        q, v = mech.random(rng), rng.standard_normal(6)
        sigma = directions(mech, q)[1]
        if sigma[5] < THRESHOLD * sigma[0]:
            continue
        goal, tried = away(mech, q), tried + 1
        free = lw.tasks.SingularStrategy(
            speed=None if sigma[5] > 5 * THRESHOLD * sigma[0] else np.inf
        )
        plain = lw.TaskController(mech, SERVO, singular=None)(q, v, goal)
        tau = lw.TaskController(mech, SERVO, singular=free)(q, v, goal)
        np.testing.assert_allclose(tau, plain, rtol=0.0, atol=1e-9 * np.abs(plain).max())


def test_joints_never_turn_faster_than_the_threshold_allows(place):
    """The bound that the formulas promise, at distances from 0 to beyond the threshold.

    Share s = x² (3 - 2x) makes s / σ at most 1.125 / σ₀ with σ₀ the threshold; the joint servo has
    at most 1 / (2 ε), ε = σ₀ / 4, radians per metre, and damping takes k_v of the joint's speed.
    """
    mech, q_0, joint = place
    rng = np.random.default_rng(5)
    plain_worst = 0.0
    for distance in (0.0, 1e-8, 1e-4, 1e-3, 0.01, 0.05, 0.1, -0.003, -0.02, -0.2):
        q = q_0.copy()
        q[joint] += distance
        v, goal = 0.3 * rng.standard_normal(6), away(mech, q, seed=rng.integers(100))
        u, sigma, along, scale = directions(mech, q)
        edge = THRESHOLD * sigma[0]
        error = lw.tasks.task_error(mech, q, POSE, goal.position)
        speed = lw.tasks.task_velocity(mech, q, v, POSE)
        expected = goal.acceleration + KV * (goal.velocity - speed) + KP * error
        request = abs(u[:, 5] @ (scale * (expected - lw.tasks.task_bias(mech, q, v, POSE))))
        pull = abs(u[:, 5] @ (scale * (KP * error + KV * goal.velocity)))
        bound = 1.125 * request / edge + pull * 2.0 / edge + KV * abs(along[5] @ v)
        strategy = lw.tasks.SingularStrategy(THRESHOLD)
        tau = lw.TaskController(mech, SERVO, singular=strategy)(q, v, goal)
        vdot = lw.forward_dynamics(mech, q, v, tau)
        assert abs(along[5] @ vdot) <= bound * (1.0 + 1e-9)
        plain = lw.TaskController(mech, SERVO, singular=None)(q, v, goal)
        vdot = lw.forward_dynamics(mech, q, v, plain)
        plain_worst = max(plain_worst, abs(along[5] @ vdot) / bound)
    assert plain_worst > 1e3  # the plain inverse has no such bound


@pytest.mark.few(5)
@pytest.mark.parametrize("remaining", ["goal", "rest", "free"])
def test_torque_is_continuous_through_the_singularity(place, remaining):
    mech, q_0, joint = place
    strategy = lw.tasks.SingularStrategy(THRESHOLD, remaining)
    run = lw.TaskController(mech, SERVO, singular=strategy)
    v, goal = 0.3 * np.random.default_rng(7).standard_normal(6), away(mech, q_0, seed=3)

    def jump(count):
        q = np.broadcast_to(q_0, (count, 6)).copy()
        q[:, joint] += np.linspace(-0.5, 0.5, count)  # an odd count has the singularity itself
        tau = run(q, np.broadcast_to(v, q.shape), goal)
        return np.abs(np.diff(tau, axis=0)).max()

    coarse, fine = jump(801), jump(8001)
    assert fine < 0.15 * coarse  # ten times the points, a tenth of the jump


@pytest.mark.few(2)
def test_torque_is_continuous_where_joints_are_held_to_their_speeds(place):
    """Fast joints, so that the bound acts, from far outside its region through the singularity."""
    mech, q_0, joint = place
    run = lw.TaskController(mech, SERVO)
    v, goal = 3.0 * np.random.default_rng(7).standard_normal(6), away(mech, q_0, seed=3)

    def jump(count):
        q = np.broadcast_to(q_0, (count, 6)).copy()
        q[:, joint] += np.linspace(-1.0, 1.0, count)
        report = run.explain(q, np.broadcast_to(v, q.shape), goal)
        slowed = report.levels[0].slowed.any(axis=1)
        assert slowed.any() and not slowed.all()
        return np.abs(np.diff(report.tau, axis=0)).max()

    assert jump(4001) < 0.15 * jump(401)


@pytest.mark.few(1)
@pytest.mark.parametrize("remaining", ["goal", "rest", "free"])
def test_torque_is_continuous_for_an_arm_with_a_freedom_to_spare(remaining):
    """Where a direction is all but gone its joint motion is one with the others that are free."""
    arm, task = SEVEN, lw.Task.pose("hand")
    straight = np.array([0.3, 0.6, -0.2, 0.0, 0.4, 0.7, 0.1])
    rng = np.random.default_rng(0)
    v = 0.3 * rng.standard_normal(7)
    goal = lw.tasks.task_position(arm, straight + 0.1 * rng.standard_normal(7), task)
    run = lw.TaskController(
        arm,
        lw.tasks.Servo(task, KP, KV),
        lw.tasks.Posture(arm.neutral(), 10.0, 4.0),
        singular=lw.tasks.SingularStrategy(THRESHOLD, remaining),
    )

    def jump(count):
        q = np.broadcast_to(straight, (count, 7)).copy()
        q[:, 3] += np.linspace(-0.5, 0.5, count)
        return np.abs(np.diff(run(q, np.broadcast_to(v, q.shape), goal), axis=0)).max()

    assert run.explain(straight, v, goal).levels[0].rank == 5
    assert jump(8001) < 0.15 * jump(801)


def test_rows_of_a_batch_have_ranks_of_their_own():
    mech, wrist, _ = SINGULAR["UR wrist"]
    elbow = SINGULAR["UR elbow"][1]
    # Stretched, and the wrist bent so that axis 6 is parallel to 2, 3 and 4 and in their plane.
    flat = (0.3, -0.9, 0.0, 0.5 * np.pi, 0.0, 0.2)
    q = np.array([wrist, elbow, flat, (0.3, -1.2, 1.4, -0.9, 1.0, 0.2)])
    v, goal = np.random.default_rng(8).standard_normal((4, 6)), away(mech, q[0])
    run = lw.TaskController(mech, SERVO)
    report = run.explain(q, v, goal)
    ranks = [np.linalg.matrix_rank(lw.tasks.task_jacobian(mech, x, POSE), 1e-9) for x in q]
    assert np.asarray(report.levels[0].rank).tolist() == ranks
    assert sorted(set(ranks)) == [4, 5, 6]
    assert np.isfinite(report.tau).all()
    for i in range(4):
        tau = run(q[i], v[i], goal)
        np.testing.assert_allclose(report.tau[i], tau, rtol=0.0, atol=1e-8 * np.abs(tau).max())


def through(mech, start, end, duration):
    """Goals of a smooth joint motion: the hand can follow it, and it passes the singularity."""

    def goal(t):
        x = np.clip(t / duration, 0.0, 1.0)
        s, s_dot = x**3 * (10 - 15 * x + 6 * x**2), 30 * (x * (1 - x)) ** 2 / duration
        s_ddot = 60 * x * (1 - x) * (1 - 2 * x) / duration**2
        q, v, vdot = start + s * (end - start), s_dot * (end - start), s_ddot * (end - start)
        J = lw.tasks.task_jacobian(mech, q, POSE)
        place = lw.tasks.task_position(mech, q, POSE)
        return lw.Goal(place, J @ v, J @ vdot + lw.tasks.task_bias(mech, q, v, POSE))

    return goal


def driven(mech, run, q, goal, duration):
    """A motion under a controller that works in steps of 4 ms, and the errors of the hand."""
    motion = lw.simulate(
        mech, q, np.zeros(6), controller=(run, goal), control_step=4e-3,
        duration=duration, step=4e-3, record_every=2, passive=False,
    )  # fmt: skip
    errors = [
        lw.tasks.task_error(mech, q, POSE, goal(t).position)
        for t, q in zip(motion.t, motion.q, strict=True)
    ]
    return motion, np.array(errors)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "where", ["UR wrist", "UR elbow", pytest.param("PUMA wrist", marks=pytest.mark.slow)]
)
def test_a_path_through_a_singularity_is_followed_with_the_torques_the_arm_has(where):
    """From 0.5 rad before it to 0.5 rad after it in a second, with 20 mrad off at the beginning.

    Bound: the arm's own largest torques. The plain law asks for a hundred times as much, or for
    numbers that are not finite. Errors in the singular direction stay below the few centimetres
    that the lost direction costs, and are gone at the end: k_p and k_v leave e^(-10 t).
    """
    mech, q, joint = SINGULAR[where]
    start, end = np.array(q), np.array(q)
    start[joint] += 0.5
    end[joint] -= 0.5
    goal = through(mech, start, end, 1.0)
    off = start + 0.02 * np.array([1, -1, 1, -1, 1, -1])
    motion, errors = driven(mech, lw.TaskController(mech, SERVO), off, goal, 1.6)
    limits = mech.effort_limit
    assert (np.abs(motion.tau) <= limits).all()
    assert np.abs(errors).max() < 0.06 and np.abs(errors[-1]).max() < 1e-3
    values = [directions(mech, q)[1] for q in motion.q]
    assert min(s[5] / s[0] for s in values) < 0.1 * THRESHOLD  # it did pass there
    plain = lw.TaskController(mech, SERVO, singular=None)
    worst = [0.0]

    def torque(t, q, v):
        tau = plain(q, v, goal(t))
        worst[0] = max(worst[0], float(np.abs(tau / limits).max()))
        return tau

    try:
        lw.simulate(
            mech, off, np.zeros(6), controller=torque, control_step=4e-3, duration=1.0, step=4e-3
        )
    except lw.LinkwiseError:
        worst[0] = np.inf  # the motion grew without bounds
    assert worst[0] > 100.0


def test_a_goal_out_of_reach_stretches_the_arm_and_the_way_back_is_the_same():
    mech = UR
    q = np.array([0.3, -0.9, 0.9, -0.9, 1.0, 0.2])
    home = lw.tasks.task_position(mech, q, POSE)
    out = home.p - np.array([0.0, 0.0, 0.1625])
    out = np.concatenate([np.zeros(3), 0.35 * out / np.linalg.norm(out)])

    def goal(t):
        x = np.clip(0.5 * t, 0.0, 1.0) * 2.0 * np.pi
        s, s_dot, s_ddot = (
            0.5 - 0.5 * np.cos(x),
            0.5 * np.pi * np.sin(x),
            0.5 * np.pi**2 * np.cos(x),
        )
        place = lw.Pose.rotation(home.rot, home.p + s * out[3:])
        return lw.Goal(place, s_dot * out, s_ddot * out * (t < 2.0))

    motion, errors = driven(mech, lw.TaskController(mech, SERVO), q, goal, 2.6)
    assert (np.abs(motion.tau) <= mech.effort_limit).all()
    assert np.abs(errors).max() > 0.15  # the goal was out of reach by that much
    assert np.abs(motion.q[:, 2]).min() < 0.02  # stretched
    assert np.abs(errors[-1]).max() < 1e-3
    np.testing.assert_allclose(motion.q[-1], q, atol=2e-3)


OWN = """<robot name="own"><link name="base"/>{}</robot>"""
PART = (
    '<link name="link_{0}"><inertial><origin xyz="0 0 {1}"/><mass value="{2}"/><inertia ixx="{3}" '
    'iyy="{3}" izz="{4}" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="joint_{0}" '
    'type="revolute"><parent link="{5}"/><child link="link_{0}"/><origin xyz="0 0 {6}"/>'
    '<axis xyz="{7}"/><limit lower="-6" upper="6" effort="100" velocity="3.14"/></joint>'
)


def own_arm():
    """Six axes from a text, z y y z y z: 0.85 m from the shoulder to the flange, 100 N m."""
    lengths, masses = (0.1, 0.45, 0.2, 0.15, 0.05, 0.0), (4.0, 6.0, 4.0, 2.0, 1.0, 0.5)
    parts, before = list[str](), ("base", 0.2)
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        slim = mass * (length**2 / 12 + 2.5e-3)
        axis = "0 0 1" if i in (0, 3, 5) else "0 1 0"
        parts.append(PART.format(i, length / 2, mass, slim, 3e-3 * mass, *before, axis))
        before = (f"link_{i}", length)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "own.urdf")
        file.write_text(OWN.format("".join(parts)))
        return lw.load(file)


AIMED = {
    "own": (own_arm(), "link_5", (0.3, 0.5, 1.2, 0.3, 0.8, 0.2)),
    "UR": (UR, "flange", (0.3, -0.9, 1.2, -0.9, 1.0, 0.2)),
    "PUMA": (PUMA, "flange", (0.3, -0.6, 2.4, 0.2, 0.9, -0.4)),
    "seven": (SEVEN, "hand", (0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1)),
}


def sent_out(name, kp, kv, far, **options):
    """A step of the goal to 1 m times `far` from the shoulder; torques, speeds, the report."""
    mech, node, q = AIMED[name]
    task = lw.Task.pose(node)
    here, shoulder = lw.tasks.task_position(mech, q, task), mech.pose(q, mech.bodies[1].name).p
    way = (here.p - shoulder) / np.linalg.norm(here.p - shoulder)
    goal = lw.Pose.rotation(here.rot, shoulder + far * way)
    posture = lw.tasks.Posture.damping(2.0) if mech.nv > 6 else None
    run = lw.TaskController(mech, lw.tasks.Servo(task, kp, kv), posture, **options)
    tau, slowed = list[np.ndarray](), [False]

    def torque(t, q, v):
        tau.append(run(q, v, goal))
        if len(tau) % 20 == 0:
            slowed[0] |= bool(run.explain(q, v, goal).levels[0].slowed.any())
        return tau[-1]

    motion = lw.simulate(
        mech,
        q,
        np.zeros(mech.nv),
        controller=torque,
        control_step=2e-3,
        duration=1.2,
        step=2e-3,
        record_every=2,
        passive=False,
    )
    return mech, np.abs(tau), np.abs(motion.v), slowed[0]


@pytest.mark.parametrize("name", ["own", *(pytest.param(x, marks=pytest.mark.slow)
                                           for x in ("UR", "PUMA", "seven"))])  # fmt: skip
def test_a_goal_far_out_of_reach_needs_no_more_than_the_motors_have(name):
    """With the defaults, a pose servo of 5 rad/s and a goal 0.25 m to 0.45 m out of reach.

    Without a bound of the speed joints reach 20 to 50 rad/s and torques 10 to 50 times as much.
    """
    mech, tau, speed, slowed = sent_out(name, 25.0, 10.0, 1.2)
    assert (tau <= mech.effort_limit).all() and slowed
    assert speed.max() < 2.5 * np.pi and speed[-1].max() < 0.05 * speed.max()
    free = lw.tasks.SingularStrategy(speed=np.inf)
    _, tau, speed, _ = sent_out(name, 25.0, 10.0, 1.2, singular=free)
    assert (tau / mech.effort_limit).max() > 5.0 and speed.max() > 20.0


@pytest.mark.slow
@pytest.mark.parametrize("name", AIMED)
def test_a_stiff_servo_far_out_of_reach_asks_for_most_at_the_start(name):
    """F* = k_p e alone, at rest, far from any singularity, is then the largest torque."""
    _, tau, _, _ = sent_out(name, 100.0, 20.0, 1.5)
    assert tau.max() < 1.01 * tau[0].max()


def test_joints_are_held_to_a_speed_near_a_singularity_and_not_elsewhere():
    """The bound itself, from its formula, on the way to the stretched elbow."""
    mech, q_0, joint = SINGULAR["UR elbow"]
    for distance in (0.02, 0.1, 0.2, 0.3, 0.5, 1.0):
        q = np.array(q_0)
        q[joint] += distance
        u, sigma, along, scale = directions(mech, q)
        v = 0.5 * along[5]
        out = (
            u[:, 5]
            / scale
            * np.sign(u[:, 5] @ (scale * (lw.tasks.task_jacobian(mech, q, POSE) @ v)))
        )
        goal = lw.Goal(lw.tasks.task_position(mech, q, POSE), acceleration=2e3 * out)
        strategy = lw.tasks.SingularStrategy(0.01, speed=1.5)
        run = lw.TaskController(mech, SERVO, singular=strategy)
        report = run.explain(q, v, goal)
        np.testing.assert_allclose(run(q, v, goal), report.tau, rtol=1e-9)
        x = np.clip((sigma[5] / sigma[0] / 0.01 - 1.0) / 4.0, 0.0, 1.0)
        ahead = 1.0 - x**2 * (3.0 - 2.0 * x)
        if ahead == 0.0:
            assert distance == 1.0 and not report.levels[0].slowed.any()
            np.testing.assert_allclose(report.levels[0].achieved, report.levels[0].requested)
            continue
        bound = 3.0 * KV * (1.5 / np.abs(along[5]).max() / ahead - 0.5)
        assert along[5] @ report.acceleration <= bound * (1.0 + 1e-9)
        if 0.2 <= distance < 1.0:  # above the threshold, so that the share is whole
            assert along[5] @ report.acceleration == pytest.approx(bound, rel=1e-9)
            assert report.levels[0].slowed.tolist() == [False] * 5 + [True]
            assert "joints would be too fast" in str(report)
            level = report.levels[0]
            missing = u.T @ (scale * (level.achieved - level.requested))
            assert np.abs(missing[:5]).max() < 1e-9 * np.abs(level.requested).max()


@pytest.mark.parametrize("side", [1.0, pytest.param(-1.0, marks=pytest.mark.slow)])
def test_from_a_stretched_arm_at_rest_the_posture_says_where_the_elbow_goes(side):
    mech, q, _ = SINGULAR["UR elbow"]
    q = np.array(q)
    place = lw.tasks.task_position(mech, q, POSE)
    inward = np.array([0.0, 0.0, 0.1625]) - place.p
    goal = lw.Pose.rotation(place.rot, place.p + 0.05 * inward / np.linalg.norm(inward))
    bent = q + side * np.array([0.0, -0.5, 1.0, 0.0, 0.0, 0.0])
    run = lw.TaskController(mech, SERVO, lw.tasks.Posture(bent, 10.0, 4.0))
    motion, errors = driven(mech, run, q, lambda t: lw.Goal(goal), 1.4)
    assert side * motion.q[-1, 2] > 0.3 and np.abs(errors[-1]).max() < 1e-3
    assert (np.abs(motion.tau) <= mech.effort_limit).all()


def test_damping_is_only_there_when_asked_for_and_told():
    mech, q, joint = SINGULAR["UR wrist"]
    q, v = np.array(q), np.zeros(6)
    q[joint] = 0.002
    goal = away(mech, q)
    for run in (lw.TaskController(mech, SERVO), lw.TaskController(mech, SERVO, singular=None)):
        assert not run.explain(q, v, goal).levels[0].damped
        assert "damping" not in str(run.explain(q, v, goal))
    damped = lw.TaskController(mech, SERVO, damping=0.05)
    level = damped.explain(q, v, goal).levels[0]
    assert level.damped and (level.share < 1.0).all()  # it takes something of every direction
    assert "by damping" in str(level)
    # The share of the report is what comes out along that direction.
    scale = directions(mech, q)[3]
    request, got = (level.directions.T @ (scale * (x - lw.tasks.task_bias(mech, q, v, POSE)))
                  for x in (level.requested, level.achieved))  # fmt: skip
    np.testing.assert_allclose(got, level.share * request, atol=1e-9 * np.abs(request).max())
    plain = np.abs(lw.TaskController(mech, SERVO, singular=None)(q, v, goal)).max()
    assert np.abs(damped(q, v, goal)).max() < 0.1 * plain


def test_a_goal_that_is_met_is_as_asked():
    """Nothing is asked for there; what rounding leaves is not told."""
    q, task = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1]), lw.Task.pose("hand")
    run = lw.TaskController(
        SEVEN, lw.tasks.Servo(task, KP, KV), lw.tasks.Posture(np.zeros(7), 50.0, 5.0)
    )
    report = run.explain(q, np.zeros(7), lw.tasks.task_position(SEVEN, q, task))
    assert np.abs(report.levels[0].achieved).max() > 0.0  # it is not zero to the last digit
    assert "pose of hand: rank 6 of 6, as requested" in str(report)


def test_a_report_near_a_singularity_says_so():
    mech, q, joint = SINGULAR["UR elbow"]
    q, v = np.array(q), np.zeros(6)
    goal = away(mech, q)
    run = lw.TaskController(mech, SERVO)
    text = str(run.explain(q, v, goal))
    assert (
        "rank 5 of 6" in text and "nothing along" in text and "joints controlled separately" in text
    )
    zero = str(run.explain(np.zeros(6), v, goal))  # the words of lw.operational_space
    space = lw.operational_space(mech, np.zeros(6), "flange", frame="world")
    assert space.lost_in_words() == ["'flange' cannot turn about x of the world"]
    assert "'flange' cannot turn about x of the world, joints controlled separately" in zero
    assert lw.tasks.task_space(mech, np.zeros(6), POSE).lost_in_words() == space.lost_in_words()
    q[joint] = 0.1
    text = str(run.explain(q, v, goal))
    assert "% along" in text and "near a singular configuration" in text
