"""Where tasks are and how far from a target: an error is a motion that arrives there."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import Pose, Task
from linkwise.spatial import pose as poses, rotation
from tests.cases import close

OBLIQUE = [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]


@cache
def tree() -> lw.Mechanism:
    """A floating base with an arm of pins: a reference that moves."""
    return lw.models.random_tree(4, 9, hinges=("pin",), floating=True, branching=0.0)


def state(seed: int = 0):
    rng = np.random.default_rng(seed)
    return tree().random(rng), tree().random_velocity(rng)


@pytest.mark.parametrize("axes", ["reference", "node"])
@pytest.mark.parametrize("relative_to", ["world", "body_2"])
def test_errors_of_poses_are_turns_and_ways(axes, relative_to):
    """In a's axes R_d = exp(e_ω) R and p_d = p + e_v; in b's R_d = R exp(e_ω), p_d = p + R e_v."""
    mech, (q, _) = tree(), state()
    X = mech.pose(q, "body_4")
    if relative_to != "world":
        X = mech.pose(q, relative_to).inverse() @ X
    rng = np.random.default_rng(1)
    turn, way = rng.standard_normal((2, 3))
    ours = axes == "node"
    goal = Pose.rotation(
        X.rot @ rotation.exp(turn) if ours else rotation.exp(turn) @ X.rot,
        X.p + (X.rot @ way if ours else way),
    )
    make = {"relative_to": relative_to, "axes": axes}
    full = np.concatenate([turn, way])
    close(lw.tasks.task_error(mech, q, Task.pose("body_4", **make), goal), full, 1e-13)
    close(lw.tasks.task_error(mech, q, Task.position("body_4", **make), goal.p), way, 1e-13)
    close(lw.tasks.task_error(mech, q, Task.orientation("body_4", **make), goal.rot), turn, 1e-13)
    some = Task.position("body_4", along=OBLIQUE, **make)
    close(lw.tasks.task_error(mech, q, some, goal.p), np.array(OBLIQUE) @ way, 1e-13)
    some = Task.orientation("body_4", about="zx", **make)
    close(lw.tasks.task_error(mech, q, some, goal.rot), turn[[2, 0]], 1e-13)
    here = lw.tasks.task_position(mech, q, Task.pose("body_4", **make))
    close(here.matrix, X.matrix, 1e-14)


def test_errors_are_what_velocities_make_of_the_place():
    """de/dt = −ẋ at the target, for all kinds: the sign, the axes and the order of rows."""
    mech, (q, v) = tree(), state()
    kinds = (
        Task.pose("body_4"),
        Task.pose("body_4", relative_to="body_2", axes="node"),
        Task.position("body_4", along=OBLIQUE, relative_to="body_2"),
        Task.orientation("body_4", about="yz", axes="node"),
        Task.direction("body_4", axis=(1, 2, -2), relative_to="body_2"),
        Task.joints("body_1", "body_3"),
    )
    h = 1e-5
    for task in kinds:
        goal = lw.tasks.task_position(mech, q, task)
        there, back = (mech.integrate(q, s * h * v) for s in (1.0, -1.0))
        rate = (
            lw.tasks.task_error(mech, there, task, goal)
            - lw.tasks.task_error(mech, back, task, goal)
        ) / (2.0 * h)
        close(-rate, lw.tasks.task_velocity(mech, q, v, task), 1e-8)  # h² times a third derivative
        close(lw.tasks.task_error(mech, q, task, goal), 0.0 * rate, 1e-15, scale=1.0)


def test_a_direction_takes_the_shortest_turn():
    """Angle and axis of the turn; the component about the axis itself is none of its business."""
    mech, (q, _) = tree(), state()
    task = Task.direction("body_4", axis=(0, 0, 2))
    here, rot = lw.tasks.task_position(mech, q, task), mech.pose(q, "body_4").rot
    close(here, rot[:, 2], 1e-14)
    across = np.cross(here, [0.3, 0.5, -0.2])
    across /= np.linalg.norm(across)
    for angle in (1e-9, 0.3, 3.1):
        goal = rotation.axis_angle(across, angle) @ here
        e = lw.tasks.task_error(mech, q, task, goal)
        assert np.linalg.norm(e) == pytest.approx(angle, rel=1e-7)
        turn = rot @ (task.matrix[:, :3].T @ e)
        close(rotation.exp(turn) @ here, goal, 1e-13)
    opposite = lw.tasks.task_error(mech, q, task, -here)
    assert np.linalg.norm(opposite) == pytest.approx(np.pi)


def test_batches_of_states_and_of_targets():
    mech = tree()
    q = np.stack([state(seed)[0] for seed in range(3)])
    task = Task.pose("body_4", relative_to="body_2")
    here = lw.tasks.task_position(mech, q, task)
    goal = lw.tasks.task_position(mech, q[::-1], task)
    many = lw.tasks.task_error(mech, q, task, goal)
    one_goal = lw.tasks.task_error(mech, q, task, goal[0])
    one_state = lw.tasks.task_error(mech, q[0], task, goal)
    for i in range(3):
        close(here[i].matrix, lw.tasks.task_position(mech, q[i], task).matrix, 1e-15)
        close(many[i], lw.tasks.task_error(mech, q[i], task, goal[i]), 1e-14, scale=1.0)
        close(one_goal[i], lw.tasks.task_error(mech, q[i], task, goal[0]), 1e-14, scale=1.0)
        close(one_state[i], lw.tasks.task_error(mech, q[0], task, goal[i]), 1e-14, scale=1.0)
    joints = Task.joints("body_3", "body_1")
    assert lw.tasks.task_position(mech, q, joints).shape == (3, 8)
    assert lw.tasks.task_error(
        mech, q, joints, lw.tasks.task_position(mech, q[0], joints)
    ).shape == (3, 7)


def test_poses_of_a_screw_agree_to_first_order():
    """The error of a pose is not the logarithm of a screw: ways are straight. Both agree near."""
    mech, (q, _) = tree(), state()
    X = mech.pose(q, "body_4")
    small = 1e-6 * np.array([1.0, -2.0, 3.0, 0.5, 0.2, -0.7])
    goal = X @ poses.exp(small)
    result = lw.tasks.task_error(mech, q, Task.pose("body_4", axes="node"), goal)
    close(result, small, 1e-5)
