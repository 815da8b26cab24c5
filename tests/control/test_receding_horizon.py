"""Receding horizons: the regulator on linear problems, new goals, bad input, the example."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.control import Bound, Cost, RecedingHorizon
from linkwise.errors import LinkwiseError, TroubleWarning
from linkwise.spatial.array import Array

FILE = Path(__file__).parents[2] / "examples" / "predictive_arm.py"
STEP = 0.05


def slider(effort: float = np.inf) -> lw.Mechanism:
    build = lw.Builder("slider", gravity=(0.0, 0.0, 0.0))
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
    drive = lw.Drive(effort=effort)
    build.body("x", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=box, drive=drive)
    return build.build()


def made(mech: lw.Mechanism) -> RecedingHorizon:
    costs = [
        Cost.posture([0.0], weight=1.0, final=10.0),
        Cost.velocity(weight=0.1, final=1.0),
        Cost.effort(weight=0.05),
    ]
    return RecedingHorizon(mech, costs=costs, step=STEP, horizon=15)


def test_linear_problem_has_the_first_gain_of_the_regulator() -> None:
    mech = slider()
    predict = made(mech)
    regulator = lw.lqr(
        mech, [0.0], Q=np.diag([1.0, 0.1]) * STEP, R=0.05 * STEP, step=STEP, horizon=15,
        final=np.diag([10.0, 1.0]), integrator="euler",
    )  # fmt: skip
    x = np.array([0.4, -0.2])
    for k in range(4):  # each tick from another state, with the plan of the last one
        tau = predict(k * STEP, x[:1], x[1:])
        assert np.allclose(tau, -regulator.gain[0] @ x, atol=1e-6)
        x = np.array([0.3 - 0.2 * k, 0.1 * k])
    # also between two steps
    near = predict(3.4 * STEP, x[:1] + 0.01, x[1:])
    assert np.allclose(near, -regulator.gain[0] @ (x + [0.01, 0.0]), atol=1e-6)  # noqa: RUF005
    assert predict.plan[0].shape == (16, 1)


def test_goal_can_move_and_limits_hold() -> None:
    predict = made(slider(effort=1.5))
    state = np.zeros(2)

    def after(ticks: int, state: Array) -> Array:
        for _ in range(ticks):
            clock[0] += STEP
            tau = predict(clock[0], state[:1], state[1:])
            assert abs(tau[0]) <= 1.5
            speed = state[1] + STEP * tau[0]
            state = np.array([state[0] + STEP * speed, speed])
        return state

    clock = [0.0]
    assert np.abs(after(5, state)).max() < 1e-9
    predict.set_goal(0, [0.7])
    state = after(80, state)
    assert abs(state[0] - 0.7) < 0.02 and predict.cost < 0.1
    predict.reset()
    assert np.isfinite(predict(0.0, [0.1], [0.0])).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: p.set_goal(2, 1.0), "nv|velocities|shape|tau"),
        (lambda p: p.set_goal(5, [1.0]), "cost"),
        (lambda p: p(0.0, [np.nan], [0.0]), "finite"),
        (lambda p: p(0.0, [0.0, 1.0], [0.0]), "q"),
    ],
)
def test_bad_input_is_named(call: Any, words: str) -> None:
    with pytest.raises(LinkwiseError, match=words):
        call(made(slider()))


@pytest.mark.parametrize("iterations", [2, 4])
def test_bounds_hold_while_the_plan_moves_on(iterations: int) -> None:
    arm = lw.models.seven_dof_arm()
    start, hand = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0]), lw.Task.position("hand")
    goal = lw.tasks.task_position(arm, start + 0.4, hand)
    costs = [Cost.of_task(hand, goal, weight=500.0, final=500.0), Cost.velocity(weight=0.1),
             Cost.effort(weight=1e-4)]  # fmt: skip
    predict = RecedingHorizon(
        arm, costs=costs, step=0.01, horizon=20, iterations=iterations,
        bounds=Bound.on_velocity(-1.0, 1.0),
    )  # fmt: skip
    run = lw.simulate(arm, start, controller=predict, duration=0.8, control_step=0.01)
    assert 0.99 < np.abs(run.v).max() < 1.01
    assert np.linalg.norm(lw.tasks.task_position(arm, run.q[-1], hand) - goal) < 0.01


def test_a_final_goal_is_approached() -> None:
    arm = lw.models.seven_dof_arm()
    start, hand = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0]), lw.Task.position("hand")
    goal = lw.tasks.task_position(arm, start + 0.2, hand)
    costs = [Cost.effort(lw.gravity_force(arm, start), weight=1e-3),
             Cost.velocity(weight=0.1, final=1.0)]  # fmt: skip
    predict = RecedingHorizon(
        arm, costs=costs, step=0.02, horizon=20, iterations=2,
        bounds=Bound.on_task(hand, goal, when="final"),
    )  # fmt: skip
    run = lw.simulate(arm, start, controller=predict, duration=0.8, control_step=0.02)
    away = [np.linalg.norm(lw.tasks.task_position(arm, q, hand) - goal) for q in run.q[[0, -1]]]
    assert away[0] > 0.3 and away[1] < 0.01
    with pytest.warns(TroubleWarning, match="a bound has equal ends.*Give iterations=2"):
        RecedingHorizon(
            arm, costs=costs, step=0.02, horizon=2, bounds=Bound.on_task(hand, goal, when="final")
        )


def test_a_state_beyond_its_bounds_comes_back() -> None:
    mech = slider()
    predict = RecedingHorizon(
        mech, costs=[Cost.posture([1.0], weight=1.0, final=10.0), Cost.effort(weight=0.01)],
        step=STEP, horizon=15, iterations=3, bounds=Bound.on_velocity(-0.5, 0.5),
    )  # fmt: skip
    run = lw.simulate(
        mech, [0.0], [1.0], controller=predict, duration=3.0, control_step=STEP
    )  # fmt: skip
    assert run.v[0, 0] == 1.0 and 0.45 < run.v[run.t > 0.2, 0].max() < 0.501
    assert abs(run.q[-1, 0] - 1.0) < 0.02 and predict.cost < 0.1


def test_it_prints_as_what_it_is() -> None:
    assert repr(made(slider())) == (
        "<RecedingHorizon of 'slider': 15 steps of 0.05 s, 1 iteration in each tick>"
    )


@pytest.mark.prove
def test_the_arm_of_the_example_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "pushed.png"
    before, end = runpy.run_path(str(FILE))["main"](file=str(file))
    assert file.stat().st_size > 10_000
    assert before < 0.01 and end < 0.03
    assert "a tick takes" in capsys.readouterr().out


def test_command_line_reaches_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mech = lw.models.planar_rpp()
    node = mech.bodies[-1].name
    goal = lw.tasks.task_position(mech, mech.neutral() + 0.1, lw.Task.position(node))
    file = tmp_path / "motion.npz"
    place = [f"{x:.9f}" for x in goal]
    done = main(["optimize", "planar_rpp", "--node", node, "--to", *place, "--save", str(file)])
    text = capsys.readouterr().out
    assert done == 0 and "iteration 1: cost" in text and "solved" in text
    kept = np.load(file)
    reached = lw.tasks.task_position(mech, kept["q"][-1], lw.Task.position(node))
    assert np.abs(reached - goal).max() < 2e-5 and kept["tau"].shape == (50, mech.nv)


def test_command_line_reaches_the_pose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    mech = lw.models.planar_rpp()
    node, q = mech.bodies[-1].name, [0.1, 0.4, 0.3]
    pose = lw.forward_kinematics(mech, np.add(q, 0.1), node)
    R = pose.rot
    roll, pitch = np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0])
    numbers = [*pose.p, roll, pitch, np.arctan2(R[1, 0], R[0, 0])]
    file, picture = tmp_path / "motion.npz", tmp_path / "motion.png"
    options = ["optimize", "planar_rpp", "--node", node, "--quiet", "--steps", "10"]
    options += ["--q", *map(str, q), "--to-pose", *(f"{x:.9f}" for x in numbers)]
    assert main([*options, "--save", str(file), "--plot", str(picture)]) == 0
    kept = np.load(file)
    reached = lw.forward_kinematics(mech, kept["q"][-1], node)
    assert np.allclose(kept["q"][0], q) and np.abs(kept["q"][-1] - q).max() > 0.05
    assert np.abs(reached.rot - R).max() < 5e-5 and np.abs(reached.p - pose.p).max() < 5e-5
    assert picture.stat().st_size > 10_000 and "wrote" in capsys.readouterr().out
