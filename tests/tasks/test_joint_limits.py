"""Joint limits that come before all tasks: no torque hangs on rounding, or on the rest of a batch.

With the elbow held, a hand of seven joints can no longer change its distance from the shoulder: it
has lost one direction in every state, and still has a self-motion.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.formula import Formula
from linkwise.dynamics.mass_root import mass_root
from linkwise.tasks.control.hierarchy import TOLERANCE, Hierarchy, in_part

SEVEN, PUMA = lw.models.seven_dof_arm(), lw.models.puma560()
LIMITS = lw.tasks.JointLimits(margin=0.15, gain=2e-3, kv=30.0, priority="top")
KP, KV = 100.0, 20.0
FREE = lw.tasks.SingularStrategy(remaining="free", speed=np.inf)
STEP = 1e-10

CASES = {
    "seven: pose": (SEVEN, (lw.Task.pose("hand"),), 3),
    "seven: two levels": (SEVEN, (lw.Task.position("hand"), lw.Task.orientation("hand")), 3),
    "PUMA: pose": (PUMA, (lw.Task.pose("flange"),), 3),
    "PUMA: two levels": (PUMA, (lw.Task.position("flange"), lw.Task.orientation("flange")), 2),
}


def controller(mech, tasks, **options):
    posture = lw.tasks.Posture(mech.neutral(), 10.0, 4.0)
    return lw.TaskController(
        mech, [lw.tasks.Servo(t, KP, KV) for t in tasks], posture, limits=LIMITS, **options
    )


def goals(mech, tasks, q):
    """To stay, with an acceleration."""
    result = [
        lw.Goal(lw.tasks.task_position(mech, q, t), acceleration=np.ones(len(t.rows)))
        for t in tasks
    ]
    return result if len(result) > 1 else result[0]


def states(mech, joint, count, seed=0):
    """Random ones, a joint somewhere in its margin and others where they happen to be."""
    rng = np.random.default_rng(seed)
    q = np.stack([mech.random(rng) for _ in range(count)])
    q[:, joint] = mech.upper[joint] - LIMITS.margin * rng.uniform(0.0, 1.0, count)
    return q, 0.3 * rng.standard_normal((count, mech.nv))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_no_torque_hangs_on_rounding(name):
    """q and q + 1e-10 give the same torque, one state at a time.

    Accelerations of the order 10² rad/s² change with a state by less than 10⁶ per rad: by
    1e-4 at most over the step, where what hangs on rounding changes by several N m.
    """
    mech, tasks, joint = CASES[name]
    q, v = states(mech, joint, 60)
    if mech is SEVEN:  # states in which it did so once
        q[0] = [1.31674438, -0.54024024, -1.5258224, 2.0652388, 2.75912839, -1.10194339, -1.10041]
        q[1] = [0.3, 0.6, -0.2, 2.08, 0.4, 0.7, 0.1]
    for remaining in ("goal", "rest", "free"):
        run = controller(mech, tasks, singular=lw.tasks.SingularStrategy(remaining=remaining))
        for here, speed in zip(q, v, strict=True):
            given = goals(mech, tasks, here)
            tau, near = run(here, speed, given), run(here + STEP, speed, given)
            assert np.abs(tau - near).max() < 1e-4, here


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_batch_know_nothing_of_each_other(name):
    """Whichever joints are near their limits in the other rows."""
    mech, tasks, joint = CASES[name]
    q, v = states(mech, joint, 40, seed=1)
    run = controller(mech, tasks)
    together = run.explain(q, v, goals(mech, tasks, q))
    assert together.limits.any(axis=0).sum() > 2  # several joints, not all in each state
    for i in range(40):
        tau = run(q[i], v[i], goals(mech, tasks, q[i]))
        np.testing.assert_allclose(together.tau[i], tau, rtol=0.0, atol=1e-9 * np.abs(tau).max())


@pytest.mark.few(1)
@pytest.mark.parametrize("singular", [None, lw.tasks.SingularStrategy()], ids=["plain", "strategy"])
def test_lower_levels_leave_the_first_alone_while_a_limit_comes_in(singular):
    """A joint that is taken in part leaves three rows all they ask for, whatever comes below."""
    mech, tasks, joint = CASES["seven: two levels"]
    q, v = states(mech, joint, 60, seed=2)
    report = controller(mech, tasks, singular=singular).explain(q, v, goals(mech, tasks, q))
    first = report.levels[0]
    full = (first.share == 1.0).all(axis=1) & ~first.slowed.any(axis=1)
    part = LIMITS.nearness(mech, q)[1][:, joint]
    assert (full & (part > 0.05) & (part < 0.45)).sum() > 10
    missing = np.abs(first.achieved - first.requested)[full]
    assert missing.max() < 1e-8 * np.abs(report.acceleration).max()


def _joints_first(at, which):
    """v̇, τ - C, what is free and S of a hierarchy that has nothing but joints in it; A* A part."""
    n, k = at.mech.nv, len(which)
    mass, drive = at.read("mass", n * n).reshape(n, n), at.read("drive", n)
    expected, share = at.read("wanted", k), at.read("share", k)
    root = mass_root(at, mass)
    done = Hierarchy(root, drive, TOLERANCE)
    done.add_joints(list(which), expected, share)
    _, left = done.left(root.triangle, root.triangle @ root.triangle.T)  # L S L*
    half = in_part(at.read("Omega", k * k).reshape(k, k), share)
    return done.acceleration, done.force, done.free, left, half.T @ half


def test_joints_in_full_do_what_limits_ask_for_and_joints_with_nothing_are_not_there():
    """Three freedoms by formula: w changes by A f, A_i* w as asked or f_i = 0; S leaves A_i out."""
    rng = np.random.default_rng(3)
    mass, drive = lw.mass_matrix(SEVEN, SEVEN.random(rng)), rng.standard_normal(7)
    before = np.linalg.solve(mass, drive)
    which, expected = np.array([1, 3, 4]), np.array([5.0, -7.0, 9.0])
    Omega = np.linalg.inv(mass)[np.ix_(which, which)]
    names = ("acceleration", "force", "free", "left", "part")
    kernel = lw.compile(Formula(_joints_first, ((1, 3, 4),), names), SEVEN)
    turned = lw.compile(Formula(_joints_first, ((4, 3, 1),), names), SEVEN)

    def after(shares, kernel=kernel, order=slice(None)):
        arrays = {"q": SEVEN.neutral(), "mass": mass.ravel(), "drive": drive}
        arrays["wanted"] = expected[order]
        return kernel(**arrays, share=np.array(shares), Omega=Omega.ravel())

    done = after([1.0, 1.0, 0.0])
    np.testing.assert_allclose(done["acceleration"][[1, 3]], [5.0, -7.0], rtol=1e-12)
    force = done["force"] - drive  # at the two joints and nowhere else
    assert np.abs(force[[0, 2, 4, 5, 6]]).max() < 1e-12 * np.abs(force).max()
    assert done["free"] == pytest.approx(5.0)
    held = np.linalg.solve(mass, np.eye(7)[:, [1, 3]])  # L⁻* A: S takes it to nothing
    assert np.abs(done["left"] @ held).max() < 1e-12 * np.abs(done["left"]).max()
    half = after([0.5, 0.0, 0.0])
    assert half["acceleration"][1] == pytest.approx(0.5 * (before[1] + 5.0))
    assert half["free"] == pytest.approx(6.5)
    # In between: the inverse of A* A with 1/share on its diagonal; no matter in which order.
    shares = np.array([0.3, 0.6, 0.9])
    inverse = np.linalg.inv(Omega + np.diag(np.diag(Omega) * (1.0 / shares - 1.0)))
    result = after(shares)
    np.testing.assert_allclose(result["part"], inverse, rtol=1e-9)
    force = result["force"] - drive
    np.testing.assert_allclose(force[which], inverse @ (expected - before[which]), rtol=1e-9)
    other = after(shares[::-1], turned, slice(None, None, -1))
    for name in ("acceleration", "left"):
        scale = np.abs(result[name]).max()
        np.testing.assert_allclose(result[name], other[name], rtol=0.0, atol=1e-12 * scale)


@pytest.mark.parametrize("options", [{}, {"singular": None}, {"damping": 0.01}], ids=str)
def test_a_task_of_one_row_at_the_end_of_its_range_asks_for_nothing(options):
    """A horizontal pendulum: x of its tip is at its largest, J = cos(π/2) = 6e-17 and not zero."""
    pendulum = lw.models.pendulum(1)
    task = lw.Task.position("tip", "x")
    q, v = np.array([0.5 * np.pi]), np.array([0.3])
    assert 0.0 < abs(lw.tasks.task_jacobian(pendulum, q, task)[0, 0]) < 1e-15
    run = lw.TaskController(pendulum, lw.tasks.Servo(task, KP, KV), **options)
    there = lw.tasks.task_position(pendulum, q, task) + 0.1
    report = run.explain(q, v, there)
    assert report.levels[0].rank == 0 and np.abs(report.tau).max() < 200.0
    np.testing.assert_allclose(run(q, v, there), report.tau)


def test_a_task_of_one_row_fades_out_towards_the_end_of_its_range():
    """Its one singular value is the largest as well: it is held against the reach of 1 m.

    Joints need no more than 1.125 / (0.02 · 0.25 m) for what is asked for, 10 m/s² here.
    """
    pendulum = lw.models.pendulum(1)
    task = lw.Task.position("tip", "x")
    run = lw.TaskController(pendulum, lw.tasks.Servo(task, KP, KV), singular=FREE)
    law = lw.tasks.MotionForceController(
        pendulum,
        task,
        lw.tasks.Selection.all_motion(),
        KP,
        KV,
        lw.tasks.ForceServo(kf=0.1, kv=10.0),
    )
    mass = lw.mass_matrix(pendulum, np.zeros(1))[0, 0]

    def torques(away):
        q = np.asarray(0.5 * np.pi - away).reshape(-1, 1)
        goal, v = lw.tasks.task_position(pendulum, q, task) + 0.1, np.zeros(q.shape)
        weight = lw.bias_force(pendulum, q, v)
        given = law.torque(q, v, goal=goal)
        # The law takes gravity out as the task sees it, so that what fades is it, too.
        return np.concatenate([run(q, v, goal) - weight, given - weight], axis=1) / mass

    away = np.array([0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-9, 1e-12, 0.0, -1e-9, -1e-3])
    result, request = torques(away), KP * 0.1
    assert np.abs(result).max() < 1.125 * request / (0.02 * 0.25)
    np.testing.assert_allclose(np.abs(result[0] * np.sin(0.5)), request, rtol=1e-9)
    steps = [np.abs(np.diff(torques(np.linspace(-0.3, 0.3, n)), axis=0)).max() for n in (801, 8001)]
    assert steps[1] < 0.15 * steps[0]
