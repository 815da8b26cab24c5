"""Control laws compiled to one kernel: equal to the same law put together from dense matrices."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import (
    LinkwiseError,
    ModelError,
    ShapeError,
    SingularTaskError,
)
from linkwise.spatial.array import Array

HAND = lw.Task.pose("hand")


def _chord(task: lw.Task, error: Array) -> Array:
    """The angle that is missing as its chord, 2 sin(θ/2)."""
    turn = {"pose": slice(0, 3), "orientation": slice(0, 3), "direction": slice(0, 2)}
    if task.kind in turn:
        part = error[turn[task.kind]]
        angle = float(np.linalg.norm(part))
        error[turn[task.kind]] = part * (2.0 * np.sin(angle / 2.0) / angle)
    return error


def _dense_torque(
    mech: lw.Mechanism, q: Array, v: Array, tasks: Sequence[lw.Task], expected: Array, **more: Any
) -> Array:
    """τ₀ + J* (Λ (ẍ - γ - J 𝓜⁻¹ (τ₀ - C)) + F)."""
    J = np.concatenate([lw.tasks.task_jacobian(mech, q, task) for task in tasks])
    step = 1e-6
    ahead, behind = (mech.integrate(q, s * step * v) for s in (1.0, -1.0))
    moved = [
        np.concatenate([lw.tasks.task_jacobian(mech, x, task) for task in tasks])
        for x in (ahead, behind)
    ]
    gamma = (moved[0] - moved[1]) @ v / (2.0 * step)
    mass = lw.mass_matrix(mech, q)
    bias = lw.bias_force(mech, q, v)
    tau0: Array = more.get("tau0", np.zeros(mech.nv))
    if more.get("compensate") == "joints":
        tau0 = tau0 + bias
    inertia = np.linalg.inv(J @ np.linalg.solve(mass, J.T))
    force: Array = inertia @ (expected - gamma - J @ np.linalg.solve(mass, tau0 - bias))
    applied: Array = more.get("applied", np.zeros(len(J)))
    return np.asarray(tau0 + J.T @ (force + applied), dtype=np.float64)


CASES = {
    "pose": [HAND],
    "node axes": [lw.Task.pose("hand", axes="node")],
    "some rows": [
        lw.Task.joints("elbow_pitch"),
        lw.Task.position("hand", "xz"),
        lw.Task.direction("hand", (1.0, 2.0, 3.0)),
    ],
    "turning": [lw.Task.orientation("hand", axes="node")],
    "relative": [lw.Task.position("hand", relative_to="shoulder_yaw_link")],
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES)
def test_the_law_is_what_dense_matrices_give(case: str) -> None:
    tasks = CASES[case]
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(7)
    q, v, there = mech.random(rng), rng.normal(size=mech.nv), mech.random(rng)
    targets = [lw.tasks.task_position(mech, there, task) for task in tasks]
    size = sum(len(lw.tasks.task_jacobian(mech, q, task)) for task in tasks)
    rate, push, tau0 = rng.normal(size=size), rng.normal(size=size), rng.normal(size=mech.nv)
    kp, kv = rng.uniform(50.0, 150.0, size), rng.uniform(5.0, 25.0, size)
    law = lw.control_law(mech, tasks, kp=kp, kv=kv, internal=True, compensate="task")
    goal = targets if len(tasks) > 1 else targets[0]
    result = law(q, v, goal, velocity=rate, acceleration=push, tau0=tau0)
    e = np.concatenate(
        [
            _chord(task, lw.tasks.task_error(mech, q, task, target))
            for task, target in zip(tasks, targets, strict=True)
        ]
    )
    speed = np.concatenate([lw.tasks.task_jacobian(mech, q, task) @ v for task in tasks])
    expected = _dense_torque(mech, q, v, tasks, push + kv * (rate - speed) + kp * e, tau0=tau0)
    # γ by differences of step 1e-6 is good to about 1e-9 of what it is made from.
    assert result == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())
    options: Any = {"internal": True, "compensate": "task", "target": "numpy"}
    plain = lw.control_law(mech, tasks, kp=kp, kv=kv, **options)
    again = plain(q, v, goal, velocity=rate, acceleration=push, tau0=tau0)
    assert again == pytest.approx(result, rel=1e-10, abs=1e-10 * np.abs(result).max())


@pytest.mark.parametrize("compensate", ["task", "joints"])
def test_a_given_acceleration_is_had(compensate: Any) -> None:
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(1)
    law = lw.control_law(mech, HAND, internal=True, applied=True, compensate=compensate)
    q, v, tau0 = mech.random(rng), rng.normal(size=7), rng.normal(size=7)
    desired, applied = rng.normal(size=6), rng.normal(size=6)
    tau = law(q, v, acceleration=desired, tau0=tau0, applied=applied)
    more = {"tau0": tau0, "applied": applied, "compensate": compensate}
    expected = _dense_torque(mech, q, v, [HAND], desired, **more)
    assert tau == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())
    tau = law(q, v, acceleration=desired, tau0=tau0)
    J = lw.jacobian(mech, q, "hand", frame="world")
    vdot = lw.forward_dynamics(mech, q, v, tau)
    assert J @ vdot + lw.tasks.task_bias(mech, q, v, HAND) == pytest.approx(desired, abs=1e-9)


def test_a_batch_is_its_states_one_by_one() -> None:
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(2)
    law = lw.control_law(mech, HAND, kp=100.0, kv=20.0, also=("inertia", "gravity"))
    q = np.stack([mech.random(rng) for _ in range(4)])
    v = rng.normal(size=(4, 7))
    there = lw.tasks.task_position(mech, mech.random(rng), HAND)
    many = law(q, v, there)
    assert set(many) == {"torque", "inertia", "gravity"}
    for i in range(4):
        one = law(q[i], v[i], there)
        for name in one:
            scale = np.abs(one[name]).max()
            assert many[name][i] == pytest.approx(one[name], rel=1e-11, abs=1e-11 * scale)
    assert many["inertia"] == pytest.approx(lw.tasks.task_space(mech, q, HAND).inertia, rel=1e-9)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "node"), [("puma560", "flange"), ("ur_arm", "flange"), ("seven_dof_arm", "hand")]
)
@pytest.mark.parametrize("kind", ["pose", "orientation", "direction", "joints"])
def test_c_is_written_for_every_kind_of_goal(name: str, node: str, kind: str) -> None:
    mech: lw.Mechanism = getattr(lw.models, name)()
    about = node if kind != "joints" else mech.bodies[2].name
    law = lw.control_law(mech, getattr(lw.Task, kind)(about), kp=100.0, kv=20.0, target="numpy")
    assert "goal" in law.export_c("law").source


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_about_half_a_turn_away_it_is_finite(dtype: Any) -> None:
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(9)
    turn = lw.Task.orientation("hand")
    law = lw.control_law(mech, turn, kp=100.0, kv=20.0, dtype=dtype)
    q = np.array([0.3, 0.6, -0.2, 1.2, 0.4, 0.7, 0.1])
    here = lw.tasks.task_position(mech, q, turn)
    axes = rng.normal(size=(200, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    away = 2.0 * axes[:, :, None] * axes[:, None, :] @ here - here
    assert np.isfinite(law(q.astype(dtype), np.zeros(7, dtype), away.reshape(-1, 9))).all()


def test_goals_may_be_said_in_several_ways() -> None:
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(4)
    tasks = [lw.Task.joints("elbow_pitch", name="elbow"), lw.Task.position("hand", name="point")]
    law = lw.control_law(mech, tasks, kp=100.0, kv=20.0, also=("velocity", "jacobian", "inertia"))
    q, v, there = mech.random(rng), rng.normal(size=7), mech.random(rng)
    targets = [lw.tasks.task_position(mech, there, task) for task in tasks]
    fast = np.array([0.1, 0.2, 0.3])
    goals = [lw.Goal(targets[0]), lw.Goal(targets[1], velocity=fast)]
    plain = law(q, v, targets, velocity=np.concatenate([[0.0], fast]))
    for said in (goals, {"point": goals[1], "elbow": goals[0]}):
        assert law(q, v, said)["torque"] == pytest.approx(plain["torque"], abs=0.0)
    # Rows are in the order of the tasks, though the kernel has those of nodes first.
    assert plain["velocity"] == pytest.approx(lw.tasks.task_velocity(mech, q, v, tasks), abs=1e-12)
    assert plain["jacobian"] == pytest.approx(lw.tasks.task_jacobian(mech, q, tasks), abs=1e-12)
    inertia = lw.tasks.task_space(mech, q, tasks).inertia
    assert plain["inertia"] == pytest.approx(inertia, abs=1e-9 * np.abs(inertia).max())
    with pytest.raises(ModelError, match="goals are for"):
        law(q, v, {"point": goals[1]})


def test_a_batch_of_torques_is_its_states_one_by_one() -> None:
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(6)
    q = np.stack([mech.random(rng) for _ in range(3)] + [mech.neutral()])  # the last is singular
    v, expected, tau0 = rng.normal(size=(4, 7)), rng.normal(size=(4, 6)), rng.normal(size=7)
    many = lw.tasks.task_torque(mech, q, v, HAND, expected, tau0=tau0)
    careful = lw.tasks.task_torque(mech, q, v, HAND, expected, tau0=tau0, tolerance=1e-9)
    assert many == pytest.approx(careful, abs=1e-8 * np.abs(careful).max())
    for i in range(4):
        one = lw.tasks.task_torque(mech, q[i], v[i], HAND, expected[i], tau0=tau0)
        assert many[i] == pytest.approx(one, abs=1e-10 * np.abs(one).max())


@pytest.mark.parametrize(("node", "seen_from"), [("flange", "link_6"), ("link_5", "link_4")])
def test_what_never_moves_takes_no_force(node: str, seen_from: str) -> None:
    mech, rng = lw.models.puma560(), np.random.default_rng(8)  # the wrist's axes meet in a point
    task = lw.Task.position(node, relative_to=seen_from)
    q, v = mech.random(rng), rng.normal(size=6)
    assert lw.tasks.task_space(mech, q, task).rank == 0
    assert not lw.tasks.task_torque(mech, q, v, task, np.ones(3)).any()
    for target in ("cpu", "numpy"):
        with pytest.raises(SingularTaskError, match="more than"):
            lw.control_law(mech, task, target=target)(q, v, acceleration=np.ones(3))


def test_rank_two_of_three_is_the_same_alone_and_in_a_batch() -> None:
    mech, rng = lw.models.puma560(), np.random.default_rng(8)
    task = lw.Task.position("link_4", relative_to="link_1")
    q, v = np.stack([mech.random(rng) for _ in range(4)]), rng.normal(size=(4, 6))
    many = lw.tasks.task_torque(mech, q, v, task, np.ones(3))
    assert np.abs(many).max() < 1e3
    for i in range(4):
        one = lw.tasks.task_torque(mech, q[i], v[i], task, np.ones(3))
        assert one == pytest.approx(many[i], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("bend", [1e-2, 1e-4, 1e-6, 1e-9])
def test_near_a_singularity_the_quick_way_has_its_digits(bend: float) -> None:
    mech, v = lw.models.puma560(), np.full(6, 0.3)
    q = np.array([0.3, -0.8, 2.4, 0.5, bend, 0.2])
    flange = lw.Task.pose("flange")
    quick = lw.tasks.task_torque(mech, q, v, flange, np.ones(6))
    careful = lw.tasks.task_torque(mech, q, v, flange, np.ones(6), tolerance=1.0001e-10)
    assert quick == pytest.approx(careful, rel=0.0, abs=1e-7 * np.abs(careful).max())


def test_the_acceleration_under_a_force_is_right_at_a_singularity() -> None:
    mech = lw.models.chain(2)
    tip = lw.Task.position(mech.bodies[-1].name)
    q, v = np.array([0.3, 0.0]), np.array([2.0, 0.0])
    vdot = lw.forward_dynamics(mech, q, v, np.zeros(2))
    J = lw.tasks.task_jacobian(mech, q, tip)
    expected = J @ vdot + lw.tasks.task_bias(mech, q, v, tip)
    for damping in (None, 0.3):
        dynamics = lw.tasks.task_dynamics(mech, q, v, tip, damping=damping)
        assert dynamics.acceleration(np.zeros(3)) == pytest.approx(expected, abs=1e-10)


def test_a_direction_need_not_be_of_unit_length() -> None:
    mech, q = lw.models.puma560(), np.array([0.3, -0.8, 2.4, 0.5, 0.6, 0.2])
    law = lw.control_law(mech, lw.Task.direction("flange"), kp=9.0, kv=6.0)
    up, still = np.array([0.0, 0.6, 0.8]), np.zeros(6)
    assert law(q, still, 2.0 * up) == pytest.approx(law(q, still, up), abs=1e-12)
    assert law(q[None], still, 2.0 * up)[0] == pytest.approx(law(q, still, up), abs=1e-9)


def test_numbers_of_a_goal_serve_for_any_tasks() -> None:
    mech, q = lw.models.puma560(), np.array([0.3, -0.8, 2.4, 0.5, 0.6, 0.2])
    law = lw.control_law(mech, [lw.Task.joints(f"joint_{i}") for i in (1, 2, 3)], kp=9.0, kv=6.0)
    targets = [[0.1], [0.2], [0.3]]
    numbers = law.goal(targets)
    assert law(q, np.zeros(6), numbers) == pytest.approx(law(q, np.zeros(6), targets), abs=0.0)


def test_loops_are_refused_unless_they_are_left_open() -> None:
    mech = lw.models.four_bar()
    task = lw.Task.joints(mech.bodies[0].name)
    with pytest.raises(ModelError, match=r'lw\.control_law .* cannot hold.*loops="open"'):
        lw.control_law(mech, task)
    law, free = (
        lw.control_law(mech, task, loops="open"),
        lw.control_law(mech.without(*(x.name for x in mech.loops)), task),
    )
    q, v = mech.neutral() + 0.1, np.ones(mech.nv)
    got = law(q, v, acceleration=[1.0])
    assert np.abs(got).max() > 0.0
    np.testing.assert_array_equal(got, free(q, v, acceleration=[1.0]))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_c_function_agrees(tmp_path: Path) -> None:
    mech = lw.models.seven_dof_arm()
    law = lw.control_law(mech, lw.Task.position("hand"), kp=100.0, kv=20.0, internal=True)
    code = law.export_c("law")
    assert "?" not in code.header
    assert "row 2  0: position of hand[2]" in code.header
    code.write(tmp_path)
    command = ["cc", "-std=c99", "-O1", "-DLAW_SELFTEST", "law.c", "-lm", "-o", "law"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./law"], cwd=tmp_path, check=True)


def test_where_the_tasks_are_singular_it_says_so() -> None:
    mech = lw.models.seven_dof_arm()
    law = lw.control_law(mech, HAND, kp=100.0, kv=20.0)
    straight = mech.neutral()
    assert lw.tasks.task_space(mech, straight, HAND).rank < 6
    with pytest.raises(LinkwiseError, match="more than the mechanism can do"):
        law(straight, np.zeros(7), lw.Pose.identity())
    both = np.stack([straight, mech.random(np.random.default_rng(0))])
    with pytest.warns(UserWarning, match="more than the mechanism can do"):
        tau = law(both, np.zeros(7), lw.Pose.identity())
    assert np.isnan(tau[0]).all()
    assert np.isfinite(tau[1]).all()


@pytest.mark.parametrize(("name", "node"), [("seven_dof_arm", "hand"), ("humanoid", "left_hand")])
def test_the_text_for_a_card_is_written(name: str, node: str) -> None:
    mech: lw.Mechanism = getattr(lw.models, name)()  # equal limbs share code, and numbers come last
    law = lw.control_law(mech, lw.Task.position(node), kp=1.0, kv=1.0, target="cuda")
    assert "goal" in law.kernel.source


def test_half_a_turn_away_stays_finite() -> None:
    mech = lw.models.seven_dof_arm()
    q = mech.random(np.random.default_rng(5))
    law = lw.control_law(mech, lw.Task.orientation("hand"), kp=100.0, kv=20.0)
    here = lw.tasks.task_position(mech, q, lw.Task.orientation("hand"))
    away = here @ np.diag([1.0, -1.0, -1.0])
    assert np.isfinite(law(q, np.zeros(7), away)).all()


def test_bad_input_is_told() -> None:
    mech = lw.models.seven_dof_arm()
    with pytest.raises(ModelError, match="gains must be positive"):
        lw.control_law(mech, HAND, kp=-1.0, kv=1.0)
    with pytest.raises(ModelError, match="both"):
        lw.control_law(mech, HAND, kp=1.0)
    with pytest.raises(ShapeError, match=r"kp has shape \(3,\)"):
        lw.control_law(mech, HAND, kp=[1.0, 1.0, 1.0], kv=1.0)
    with pytest.raises(LinkwiseError, match="hand"):
        lw.control_law(mech, lw.Task.pose("hnd"), kp=1.0, kv=1.0)
    law = lw.control_law(mech, HAND, kp=1.0, kv=1.0)
    with pytest.raises(ModelError, match="goal is missing"):
        law(mech.neutral(), np.zeros(7))
    with pytest.raises(LinkwiseError, match="tau0"):
        law(mech.neutral(), np.zeros(7), lw.Pose.identity(), tau0=np.zeros(7))
    with pytest.raises(ModelError, match=r"lw\.Pose"):
        law(mech.neutral(), np.zeros(7), np.eye(3))
    with pytest.raises(ModelError, match="has coordinates"):
        lw.control_law(mech, lw.Task.pose("hand", coordinates="quaternion"), kp=1.0, kv=1.0)
    with pytest.raises(ModelError, match="zeros for constant velocity"):
        lw.tasks.task_torque(mech, mech.neutral(), np.zeros(7), HAND, None)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="export_c"):
        lw.control_law(mech, HAND, target="c")
    with pytest.raises(ModelError, match="9 rows"):
        lw.control_law(mech, [HAND, lw.Task.position("hand", name="again")])
    with pytest.raises(ModelError, match="below 1"):
        lw.tasks.task_torque(mech, mech.neutral(), np.zeros(7), HAND, np.zeros(6), tolerance=2.0)
    free = lw.models.free_flyer()
    with pytest.raises(ModelError, match="rates are not its velocities"):
        lw.control_law(free, lw.Task.joints(free.bodies[0].name), kp=1.0, kv=1.0)


def test_more_rows_than_freedoms_have_what_they_can() -> None:
    """Six rows on three joints: an acceleration that the joints can give is had."""
    mech, rng = lw.models.planar_rpp(), np.random.default_rng(3)
    task = lw.Task.pose(mech.bodies[-1].name)
    q, v, vdot = mech.random(rng), rng.normal(size=3), rng.normal(size=3)
    expected = lw.tasks.task_jacobian(mech, q, task) @ vdot + lw.tasks.task_bias(mech, q, v, task)
    tau = lw.tasks.task_torque(mech, q, v, task, expected)
    assert lw.forward_dynamics(mech, q, v, tau) == pytest.approx(vdot, abs=1e-9)


def test_a_law_and_its_tasks_are_printed_on_one_line():
    law = lw.control_law(lw.models.seven_dof_arm(), HAND, kp=400.0, kv=40.0)
    name = "ControlLaw of 'seven_dof_arm', pose of hand"
    assert repr(law) == f"<{name}: (q, v, goal, velocity, acceleration, kp, kv)>"
    assert repr(HAND) == "<Task pose of hand: 6 rows in the axes of the reference>"
