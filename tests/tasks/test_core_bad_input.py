"""Tasks that cannot be, and arrays that do not fit: each error says what to do."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import Task
from linkwise.errors import LinkwiseError, ModelError, UnknownNameError

HAND = Task.pose("link_6")
NAN = np.full(6, np.nan)


@cache
def puma() -> lw.Mechanism:
    return lw.models.puma560()


def state() -> tuple[np.ndarray, np.ndarray]:
    return puma().random(3), puma().random_velocity(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Task.pose(3), "name of a node"),
        (lambda: Task.pose("link_6", relative_to="link_6"), "relative to itself"),
        (lambda: Task.pose("link_6", axes="base"), "'reference', 'node'"),
        (lambda: Task.pose("link_6", axes="world", relative_to="link_1"), "'reference', 'node'"),
        (lambda: Task.pose("link_6", name=3), "must be a string"),
        (lambda: Task.pose("link_6", coordinates="euler"), "euler_"),
        (lambda: Task.pose("link_6", axes="node", coordinates="quaternion"), "axes='reference'"),
        (lambda: Task.orientation("link_6", about="xy", coordinates="quaternion"), "about='xyz'"),
        (lambda: Task.position("link_6", along="xw"), "letters x, y, z"),
        (lambda: Task.position("link_6", along=""), "letters x, y, z"),
        (lambda: Task.position("link_6", along="xx"), "each once"),
        (lambda: Task.position("link_6", along=[[1, 0, 0], [2, 0, 0]]), "linearly independent"),
        (lambda: Task.position("link_6", along=[0, 0, 0]), "linearly independent"),
        (lambda: Task.position("link_6", along=[0, 0, np.nan]), "finite"),
        (lambda: Task.position("link_6", along=np.ones((4, 3))), r"\(k, 3\), k <= 3"),
        (lambda: Task.orientation("link_6", about=np.eye(4)), r"\(4, 4\)"),
        (lambda: Task.direction("link_6", axis=(0, 0, 0)), "three numbers"),
        (lambda: Task.direction("link_6", axis="z"), "real numbers"),
        (lambda: Task.joints(), "at least one hinge"),
        (lambda: Task.joints("a", "a"), "once"),
        (lambda: Task.joints(["a", 2]), "at least one hinge"),
    ],
)
def test_tasks_that_cannot_be(make, message):
    with pytest.raises(LinkwiseError, match=message):
        make()


@pytest.mark.parametrize(
    ("tasks", "kind", "message"),
    [
        (Task.pose("hand"), UnknownNameError, "'hand' in mechanism 'puma560'; known: .*'flange'"),
        (Task.pose("link_6", relative_to="hand"), UnknownNameError, "'hand' in mechanism"),
        (Task.joints("elbow"), UnknownNameError, "'joint_1'"),
        ("link_6", ModelError, "lw.Task"),
        (None, ModelError, "lw.Task"),
        ([], ModelError, "at least one"),
        ([HAND, "link_5"], ModelError, "'link_5' is not a task"),
    ],
)
def test_tasks_of_another_robot_and_no_tasks(tasks, kind, message):
    """Whatever is asked of them."""
    mech, (q, v) = puma(), state()
    for ask in (
        lambda: lw.tasks.task_space(mech, q, tasks),
        lambda: lw.tasks.task_jacobian(mech, q, tasks),
        lambda: lw.tasks.task_velocity(mech, q, v, tasks),
        lambda: lw.tasks.task_bias(mech, q, v, tasks),
        lambda: lw.tasks.task_dynamics(mech, q, v, tasks),
        lambda: lw.tasks.task_torque(mech, q, v, tasks, np.zeros(6)),
        lambda: lw.tasks.task_position(mech, q, tasks),
    ):
        with pytest.raises(kind, match=message):
            ask()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -1.0}, "tolerance is -1.0; it must be a positive"),
        ({"tolerance": float("nan")}, "positive"),
        ({"tolerance": "small"}, "positive"),
        ({"tolerance": 1.0}, "tolerance is 1.0; it must be below 1"),
        ({"length": 0.0}, "length is 0.0; it must be a positive"),
        ({"length": [1.0]}, "positive"),
        ({"damping": -0.1}, "damping is -0.1; it must be a number, 0 or positive"),
        ({"damping": "much"}, "0 or positive"),
    ],
)
def test_options(options, message):
    mech, (q, v) = puma(), state()
    for ask in (
        lambda: lw.tasks.task_space(mech, q, HAND, **options),
        lambda: lw.tasks.task_dynamics(mech, q, v, HAND, **options),
        lambda: lw.tasks.task_torque(mech, q, v, HAND, np.zeros(6), **options),
    ):
        with pytest.raises(ModelError, match=message):
            ask()


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m, q, v: lw.tasks.task_space("a.urdf", q, HAND), "lw.load"),
        (lambda m, q, v: lw.tasks.task_space(m, q[:5], HAND), r"q has shape \(5,\)"),
        (lambda m, q, v: lw.tasks.task_space(m, NAN, HAND), "not finite at 'joint_1'"),
        (lambda m, q, v: lw.tasks.task_space(m, np.zeros((2, 2, 6)), HAND), r"\(batch, 6\)"),
        (lambda m, q, v: lw.tasks.task_dynamics(m, q, NAN, HAND), "v is not finite"),
        (lambda m, q, v: lw.tasks.task_dynamics(m, q, v[:2], HAND), "v has shape"),
        (lambda m, q, v: lw.tasks.task_dynamics(m, q, 1j * v, HAND), "real numbers"),
        (
            lambda m, q, v: lw.tasks.task_dynamics(m, [q] * 2, [v] * 3, HAND),
            "v has 3 rows",
        ),
        (lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, np.zeros(3)), r"link_6\[5\]"),
        (lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, 1.0), r"shape \(\)"),
        (lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, NAN), "acceleration is not finite"),
        (lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, v, tau0=v[:2]), "tau0 has shape"),
        (lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, v, tau0=NAN), "tau0 is not finite"),
        (
            lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, v, applied=v[:2]),
            "applied has shape",
        ),
        (
            lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, v, applied=NAN),
            "applied is not finite",
        ),
        (
            lambda m, q, v: lw.tasks.task_torque(m, q, v, HAND, v, compensate="all"),
            "'task', 'joints'",
        ),
        (
            lambda m, q, v: lw.tasks.task_dynamics(m, q, v, HAND).force(v[:3]),
            r"rows pose of link_6\[0\]",
        ),
        (lambda m, q, v: lw.tasks.task_dynamics(m, q, v, HAND).acceleration("a"), "real numbers"),
        (lambda m, q, v: lw.tasks.task_space(m, q, HAND).null_torque(v[:3]), "tau has shape"),
        (lambda m, q, v: lw.tasks.task_space(m, q, HAND)[0], "a single state"),
        (lambda m, q, v: lw.tasks.task_space(m, [q, q], HAND).lost, r"with \[0\]"),
        (lambda m, q, v: lw.tasks.task_position(m, q, [HAND, HAND]), "takes one"),
        (lambda m, q, v: lw.tasks.task_error(m, q, HAND, np.eye(4)), "lw.Pose"),
        (lambda m, q, v: lw.tasks.task_error(m, q, Task.position("link_6"), v[:2]), r"\(3,\)"),
        (lambda m, q, v: lw.tasks.task_error(m, q, Task.position("link_6"), NAN[:3]), "not finite"),
        (
            lambda m, q, v: lw.tasks.task_error(m, q, Task.orientation("link_6"), 2 * np.eye(3)),
            "rotation",
        ),
        (
            lambda m, q, v: lw.tasks.task_error(m, q, Task.direction("link_6"), np.zeros(3)),
            "direction",
        ),
        (lambda m, q, v: lw.tasks.task_error(m, q, Task.joints("link_1"), np.zeros(3)), r"\(1,\)"),
    ],
)
def test_arrays_that_do_not_fit(ask, message):
    with pytest.raises(LinkwiseError, match=message):
        ask(puma(), *state())


def test_what_cannot_move_has_no_inertia_and_takes_no_force():
    """A node on the ground: rank 0, all finite, no torque, and words say what is lost."""
    mech, (q, v) = puma(), state()
    task = Task.pose("pedestal")
    space = lw.tasks.task_space(mech, q, task)
    assert space.rank == 0 and not space.inertia.any() and not space.consistent_inverse.any()
    np.testing.assert_array_equal(space.null_space, np.eye(6))
    assert "rank 0 of 6" in repr(space) and "'pedestal' cannot move along x" in str(space)
    assert not lw.tasks.task_torque(mech, q, v, task, np.ones(6)).any()


def test_more_rows_than_freedoms():
    """Nine rows on six freedoms: rank six; what is asked for twice is done once."""
    mech, (q, v) = puma(), state()
    point = Task.position("link_6")
    space = lw.tasks.task_space(mech, q, [HAND, Task.position("link_3")])
    assert space.rank == 6 and space.lost.shape == (9, 3)
    np.testing.assert_allclose(space.null_space, np.zeros((6, 6)), atol=1e-9)
    once = lw.tasks.task_torque(mech, q, v, point, np.ones(3))
    twice = lw.tasks.task_torque(mech, q, v, [point, point], np.ones(6))
    np.testing.assert_allclose(twice, once, rtol=1e-9, atol=1e-9)


def test_empty_batches():
    mech, none = puma(), np.zeros((0, 6))
    assert lw.tasks.task_jacobian(mech, none, HAND).shape == (0, 6, 6)
    assert lw.tasks.task_space(mech, none, HAND).inertia.shape == (0, 6, 6)
    assert lw.tasks.task_torque(mech, none, none, HAND, np.zeros(6)).shape == (0, 6)


def test_singular_states_of_a_batch_leave_the_others_alone():
    """The wrist in line: rank 5 there, nothing warns, nothing is NaN."""
    mech, (q, v) = puma(), state()
    straight = q.copy()
    straight[4] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space = lw.tasks.task_space(mech, np.stack([q, straight, q]), HAND)
        tau = lw.tasks.task_torque(
            mech, np.stack([q, straight, q]), np.stack([v] * 3), HAND, np.ones(6)
        )
    assert np.asarray(space.rank).tolist() == [6, 5, 6]
    assert np.isfinite(space.inertia).all() and np.isfinite(tau).all()
    np.testing.assert_allclose(
        tau[0], lw.tasks.task_torque(mech, q, v, HAND, np.ones(6)), rtol=1e-12
    )
    np.testing.assert_array_equal(tau[0], tau[2])
