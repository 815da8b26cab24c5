"""The centre of mass as a cost and a bound: beside array code, other masses, and IPOPT."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, RecedingHorizon, nonlinear_program
from linkwise.dynamics.momentum import center

ARM = lw.models.seven_dof_arm()
START = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
WAY = np.array([0.6, 0.2, -0.3, -0.4, 0.2, 0.1, 0.0])
COM = lw.Task.center_of_mass()
GOAL = np.asarray(lw.tasks.task_position(ARM, START + WAY, COM))
REST = (Cost.effort(weight=1e-3), Cost.velocity(weight=0.1, final=10.0))


def test_a_cost_is_that_of_the_same_rows_in_array_code() -> None:
    options = {"step": 0.02, "horizon": 30, "limits": ()}
    weights = {"weight": 5.0, "final": 300.0}
    task = lw.optimize(ARM, START, costs=[Cost.of_task(COM, GOAL, **weights), *REST], **options)
    rows = Cost.of_function(lambda at: GOAL - center(at), **weights)
    plain = lw.optimize(ARM, START, costs=[rows, *REST], **options)
    assert task.status == plain.status == 0
    assert np.abs(task.q[-1] - START).max() > 0.1
    assert abs(task.cost - plain.cost) < 1e-6 * plain.cost
    np.testing.assert_allclose(task.q, plain.q, atol=1e-4)


def test_it_follows_masses_that_are_given() -> None:
    hand = ARM.bodies[-1].name
    load = np.array([1.0, 0.0, 0.0, 0.0, 2e-3, 2e-3, 2e-3, 0.0, 0.0, 0.0])
    masses = np.array([0.0, 2.0, 5.0])
    motion = lw.optimize(
        ARM, START, parameters={f"payload:{hand}": np.outer(masses, load)}, step=0.02, horizon=40,
        costs=[Cost.of_task(COM, GOAL, weight=1.0, final=1e4), Cost.effort(weight=1e-4),
               Cost.velocity(weight=0.1, final=1.0)],
        limits=(),
    )  # fmt: skip
    ends = motion.q[:, -1]
    bare = lw.center_of_mass(ARM, ends)
    held = lw.forward_kinematics(ARM, ends, hand).p
    total = ARM.total_mass + masses[:, None]
    loaded = (ARM.total_mass * bare + masses[:, None] * held) / total
    assert np.linalg.norm(loaded - GOAL, axis=1).max() < 1e-3
    assert np.linalg.norm(bare - GOAL, axis=1)[1:].min() > 2e-2


def test_a_bound_is_reached_and_ipopt_agrees() -> None:
    pytest.importorskip("casadi")
    posed = {
        "costs": REST,
        "bounds": [Bound.on_task(COM, GOAL, when="final")],
        "step": 0.02,
        "horizon": 30,
        "limits": ("effort",),
    }
    motion = lw.optimize(ARM, START, violation=1e-7, **posed)
    assert motion.status == 0
    np.testing.assert_allclose(lw.center_of_mass(ARM, motion.q[-1]), GOAL, atol=2e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = nonlinear_program(ARM, START, guess=motion, **posed)
    same, cost, stats = program.solve("ipopt", print_time=False, **{"ipopt.print_level": 0})
    assert stats["success"]
    assert abs(cost - motion.cost) < 1e-6 * cost
    np.testing.assert_allclose(same["q"], motion.q, atol=1e-4)


def test_a_receding_horizon_takes_it_there() -> None:
    costs = [Cost.of_task(COM, GOAL, weight=500.0, final=500.0), Cost.velocity(weight=1.0),
             Cost.effort(weight=1e-3)]  # fmt: skip
    predict = RecedingHorizon(ARM, costs=costs, step=0.01, horizon=20)
    run = lw.simulate(ARM, START, controller=predict, duration=0.6, control_step=0.01)
    away = [np.linalg.norm(lw.center_of_mass(ARM, q) - GOAL) for q in (run.q[0], run.q[-1])]
    assert away[0] > 0.1 and away[1] < 0.02
    source = predict.export_c("com_mpc")
    assert len(repr(source)) < 200 and "com_mpc" in repr(source)
