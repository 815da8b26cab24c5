"""Task spaces against dense matrices: every kind of task, on trees with every hinge and on robots.

The reference is `dense_task`: Jacobians from hinge maps, the mass matrix as a sum over bodies, and
NumPy. What it inverts has conditions up to 1e4, so that 1e-10 is two digits above what NumPy itself
may lose; where a ratio of masses is extreme, the bound is told by the condition.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from tests.cases import TREES, close, state, states, tree
from tests.tasks.dense_task import DenseSpace
from tests.tasks.task_cases import Case, cases, dense_space, tasks_of

ROBOTS = {
    "seven": (lw.models.seven_dof_arm, "hand", "elbow_pitch_link"),
    "puma": (lw.models.puma560, "link_6", "link_2"),
    "humanoid": (lw.models.humanoid, "left_hand", "right_foot"),
    "flyer": (lw.models.free_flyer, "left_hand", "right_hand"),
}
BOUND = 1e-10

KINDS = (
    *("pose", "pose, node axes", "position", "x and z", "oblique", "orientation", "about y"),
    *("about oblique", "direction", "relative", "relative, node axes", "relative position"),
    *("joints", "stack"),
)
QUICK = (
    *(("seven", "pose"), ("seven", "stack")),
    ("every hinge, armature", "stack"),
)
"""Kernels take a second or two for each; the others are marked slow."""

SLOW = ("pose, node axes", "direction", "relative", "stack")
REST = {(name, kind) for name in (*TREES, *ROBOTS) for kind in SLOW} - set(QUICK)
EVERY = [*QUICK, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in sorted(REST))]
MOVING = [
    pytest.param(name, marks=() if name in ("seven", "floating") else pytest.mark.slow)
    for name in (*TREES, *ROBOTS)
]


@cache
def robot(name: str) -> tuple[lw.Mechanism, str, str]:
    """A mechanism and two of its nodes."""
    if name in TREES:
        return tree(name), "tool", "body_2"
    build, node, other = ROBOTS[name]
    return build(), node, other


def setting(name: str, kind: str):
    """Mechanism, state, cases and the dense space."""
    mech, node, other = robot(name)
    q, v, x = state(mech, 3)
    some = cases(mech, node, other)[kind]
    return mech, q, v, x, tasks_of(some), dense_space(mech, q, v, some)


@pytest.mark.parametrize("name", MOVING)
def test_motion(name):
    """J_t, J_t v and γ = J̇_t v, of tasks of every kind in one stack, whose kernel is made once.

    There is no inverse in them: rounding times the size of the terms is the bound.
    """
    mech, node, other = robot(name)
    q, v, _ = state(mech, 3)
    sets = cases(mech, node, other)
    assert set(sets) == set(KINDS)
    some = [case for kind in KINDS for case in sets[kind]]
    tasks, dense = tasks_of(some), dense_space(mech, q, v, some)
    close(lw.tasks.task_jacobian(mech, q, tasks), dense.J, 1e-13)
    close(lw.tasks.task_velocity(mech, q, v, tasks), dense.J @ v, 1e-12)
    parts = [np.abs(node.gamma).max() for node in dense.world.nodes.values()]
    close(lw.tasks.task_bias(mech, q, v, tasks), dense.gamma, 1e-12, scale=max(parts))


@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_space(name, kind):
    mech, q, _, x, tasks, dense = setting(name, kind)
    space = lw.tasks.task_space(mech, q, tasks)
    assert space.rank == dense.rank
    close(space.jacobian, dense.J, 1e-13)
    close(space.inverse, dense.yielding, BOUND)
    close(space.inertia, dense.inertia, BOUND)
    close(space.consistent_inverse, dense.consistent_inverse, BOUND)
    close(space.null_space, dense.null_space, BOUND, scale=1.0 + dense.null_space.max())
    close(space.null_torque(x), dense.null_space.T @ x, BOUND, scale=np.abs(x).max())


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_dynamics(name, kind):
    mech, q, v, _, tasks, dense = setting(name, kind)
    result, size = lw.tasks.task_dynamics(mech, q, v, tasks), force_size(dense)
    bias = lw.tasks.task_bias(mech, q, v, tasks)  # another kernel: it may round differently
    close(result.bias, bias, 1e-15, scale=1.0 + np.abs(bias).max())
    close(result.coriolis, dense.coriolis, BOUND, scale=size)
    close(result.gravity, dense.gravity, BOUND, scale=size)
    desired = np.random.default_rng(5).standard_normal(len(dense.J))
    expected = dense.inertia @ desired + dense.coriolis + dense.gravity
    close(result.force(desired), expected, BOUND, scale=size)


@pytest.mark.few(3, 14)
@pytest.mark.parametrize(("name", "kind"), EVERY)
def test_torque(name, kind):
    """Against 003 (27), and by what it does: the task accelerates as wanted, whatever Γ0 is."""
    mech, q, v, x, tasks, dense = setting(name, kind)
    desired = dense.span @ np.random.default_rng(5).standard_normal(dense.rank)
    for tau0 in (None, x):
        tau = lw.tasks.task_torque(mech, q, v, tasks, desired, tau0=tau0)
        expected = dense.torque(desired, tau0)
        close(tau, expected, BOUND, scale=np.abs(expected).max() + force_size(dense))
        vdot = lw.forward_dynamics(mech, q, v, tau)
        lost = dense.gamma - dense.span @ (dense.span.T @ dense.gamma)  # no torque changes that
        result = lw.tasks.task_jacobian(mech, q, tasks) @ vdot + dense.gamma
        close(result, desired + lost, BOUND, scale=np.abs(dense.J).max() * np.abs(vdot).max())


def force_size(dense: DenseSpace) -> float:
    """How large the terms are whose sum is the force along the rows."""
    terms = (
        dense.inertia @ dense.gamma,
        dense.consistent_inverse.T @ dense.world.coriolis,
        dense.gravity,
    )
    return sum(np.abs(term).max() for term in terms) + np.abs(dense.inertia).max()


def test_projectors():
    """N² = N, J_t N = 0, J_t 𝓜⁻¹ N* = 0, and torques in the range of J_t* are all taken out."""
    mech, q, _, x, tasks, dense = setting("seven", "pose")
    space = lw.tasks.task_space(mech, q, tasks)
    N, J, mass = space.null_space, space.jacobian, dense.world.mass
    size = np.abs(space.consistent_inverse).max() * np.abs(J).max()
    close(N @ N, N, 1e-13, scale=size**2)
    close(J @ N, 0.0 * J, 1e-13, scale=size)
    assert np.linalg.matrix_rank(N, tol=1e-9) == mech.nv - space.rank == 1
    close(J @ np.linalg.solve(mass, N.T), 0.0 * J, 1e-12, scale=np.abs(np.linalg.inv(mass)).max())
    left = space.null_torque(x)
    assert np.abs(left).max() > 1e-3 * np.abs(x).max()
    moved = lw.forward_dynamics(mech, q, 0.0 * q, left + lw.gravity_force(mech, q))
    close(J @ moved, np.zeros(6), 1e-12, scale=np.abs(moved).max())
    close(space.null_torque(J.T @ np.ones(6)), np.zeros(7), 1e-12, scale=size)
    close(space.null_torque(left), left, 1e-12)


@pytest.mark.prove
def test_a_batch_is_its_states():
    """Of ranks that differ: the second elbow is stretched."""
    mech, _, _, _, tasks, _ = setting("seven", "stack")
    q, v, x = states(mech, 4)
    q[1] = 0.0
    result, full = lw.tasks.task_dynamics(mech, q, v, tasks), lw.tasks.task_space(mech, q, tasks)
    expected = np.random.default_rng(0).standard_normal((4, 6))
    tau = lw.tasks.task_torque(mech, q, v, tasks, expected, tau0=x)
    assert len(set(np.asarray(full.rank).tolist())) == 2
    for i in range(4):
        one, space = lw.tasks.task_dynamics(mech, q[i], v[i], tasks), full[i]
        bound = 1e-15 * space.condition
        assert space.rank == one.space.rank
        for name in ("jacobian", "inverse", "inertia", "consistent_inverse", "null_space"):
            close(getattr(space, name), getattr(one.space, name), bound)
        size = np.abs(one.force(expected[i])).max()
        close(result.coriolis[i], one.coriolis, bound, scale=size)
        close(result.gravity[i], one.gravity, bound, scale=size)
        close(tau[i], lw.tasks.task_torque(mech, q[i], v[i], tasks, expected[i], tau0=x[i]), bound)
        close(full.null_torque(x)[i], one.space.null_torque(x[i]), bound)


def test_bias_is_the_rate_of_velocities():
    """By differences along v = constant: (8 (f₁ − f₋₁) − (f₂ − f₋₂)) / 12 h, whose error is h⁴."""
    mech, node, other = robot("seven")
    q, v, _ = state(mech, 3)
    some = [case for kind in KINDS for case in cases(mech, node, other)[kind]]
    tasks, h = tasks_of(some), 1e-3
    at = {
        k: lw.tasks.task_velocity(mech, mech.integrate(q, k * h * v), v, tasks)
        for k in (-2, -1, 1, 2)
    }
    expected = (8.0 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12.0 * h)
    close(lw.tasks.task_bias(mech, q, v, tasks), expected, 1e-9)


def test_compensation_in_all_joints():
    """τ₀ + C stands for τ₀: then what the task leaves free falls no more, and keeps its speed.

    003 has the other, gravity and Coriolis forces as the task sees them.
    """
    mech, q, v, x, tasks, dense = setting("seven", "pose")
    expected = np.linspace(-1.0, 1.0, 6)
    resisting = dense.world.coriolis + dense.world.gravity
    tau = lw.tasks.task_torque(mech, q, v, tasks, expected, tau0=x, compensate="joints")
    close(tau, dense.torque(expected, x + resisting), 1e-10)
    tau = lw.tasks.task_torque(mech, q, v, tasks, expected, compensate="joints")
    vdot = lw.forward_dynamics(mech, q, v, tau)
    close(vdot, dense.consistent_inverse @ (expected - dense.gamma), 1e-10)


def test_a_force_that_is_applied_is_added():
    """It pushes what stands in the way: without an obstacle, the task accelerates by Λ⁻¹ F more."""
    mech, q, v, _, tasks, dense = setting("seven", "pose")
    expected, push = np.zeros(6), np.array([0.1, 0.2, -0.3, 5.0, -4.0, 3.0])
    tau = lw.tasks.task_torque(mech, q, v, tasks, expected, applied=push)
    close(tau, dense.torque(expected) + dense.J.T @ push, 1e-10)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    close(dense.J @ vdot + dense.gamma, dense.yielding @ push, 1e-10)


@pytest.mark.few(1)
@pytest.mark.parametrize("masses", [(1e6, 1e3, 1.0, 1e-3), (1e-3, 1.0, 1e3, 1e6)])
def test_an_extreme_ratio_of_masses(masses):
    """Tons that carry grams, and the other way round, without armature.

    Rounding of 𝓜 in single entries is harmless to the condition of 𝓜 with ones on its diagonal;
    then Ω_t is inverted: times its condition. Both sides lose that.
    """
    axes = ((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 0))
    build = lw.Builder("tons and grams")
    for i, (axis, mass) in enumerate(zip(axes, masses, strict=True)):
        inertia = lw.SpatialInertia.from_com(mass, (0.05, 0.02, 0.25), 0.02 * mass * np.ones(3))
        at = (0.0, 0.0, 0.5 if i else 0.0)
        parent = f"link_{i - 1}" if i else "world"
        build.body(f"link_{i}", parent, lw.hinges.Pin(axis=axis), inboard=at, inertia=inertia)
    mech = build.build()
    q, v, _ = state(mech, 1)
    some = [
        Case(lw.Task.position("link_3", along="xz"), np.eye(6)[[3, 5]], "link_3"),
        Case(lw.Task.orientation("link_3", about="y"), np.eye(6)[[1]], "link_3"),
    ]
    dense, tasks = dense_space(mech, q, v, some), tasks_of(some)
    ones = np.sqrt(np.outer(np.diag(dense.world.mass), np.diag(dense.world.mass)))
    worst = np.linalg.cond(dense.world.mass / ones) * np.linalg.cond(dense.yielding)
    bound = 20.0 * np.finfo(float).eps * worst
    assert bound < 1e-7
    dynamics = lw.tasks.task_dynamics(mech, q, v, tasks)
    close(dynamics.space.inertia, dense.inertia, bound)
    close(dynamics.coriolis, dense.coriolis, bound, scale=force_size(dense))
    vdot = lw.forward_dynamics(mech, q, v, lw.tasks.task_torque(mech, q, v, tasks, np.ones(3)))
    close(dense.J @ vdot + dense.gamma, np.ones(3), bound, scale=np.abs(vdot).max())


def test_later_calls_agree_with_the_first_in_regular_and_singular_states():
    """Later calls for one state go straight to the kernel; batches never do."""
    flat, other = np.array([[0.5 * np.pi], [0.7]]) * [1.0, -1.0, 1.0]  # of a parallelogram
    mech = lw.models.four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2)
    task = lw.Task.pose("coupler")
    for q in (other, other, flat, other, flat):
        v = lw.loops.project_velocity(mech, q, [0.3, -0.2, 0.4])
        one = lw.tasks.task_dynamics(mech, q, v, task)
        expected = lw.tasks.task_dynamics(mech, q[None], v[None], task)[0]
        alone = lw.tasks.task_space(mech, q, task)
        assert one.space.rank == alone.rank == expected.space.rank == (2 if q is flat else 1)
        assert np.abs(expected.gravity).max() > 0.1
        for x, y in ((one.gravity, expected.gravity), (one.coriolis, expected.coriolis)):
            assert np.abs(x - y).max() < 1e-9 * max(1.0, float(np.abs(y).max()))
        for x in (one.inertia, alone.inertia):
            assert np.abs(x - expected.inertia).max() < 1e-9 * np.abs(expected.inertia).max()
