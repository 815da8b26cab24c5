"""Derivatives of servos: ẍ = ẍ_d + k_v (ẋ_d - ẋ) + k_p e by the state, the goal and the gains."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import CONSTRAINT, JOINT, vector
from linkwise.algebra.differential import differentiate
from linkwise.algebra.space import GOAL
from linkwise.algebra.symbols import servo, task_error
from linkwise.model.closure import closure_nodes
from linkwise.model.task_rows import SERVO
from tests.algebra.test_differential import STENCIL
from tests.algebra.test_differential_rules import TASKS, Varied, ways
from tests.cases import close

VARIABLES = ("q", "v", *SERVO)


def compiled(state: Varied, expr, **options) -> np.ndarray:
    kernel = lw.compile(expr, state.mech, nodes=state.nodes, **options)
    given = {"q": state.q, "v": state.v, **state.values}
    return kernel(*(given[name] for name in kernel.arguments))


def test_the_dense_reference_is_the_servo_that_runs():
    """By formulas of the tasks, and by definitions in the algebra."""
    state = Varied("tasks")
    for expr in (servo, task_error):
        expected = state.at("q")(expr)
        assert np.abs(expected).min() > 1e-3
        for target in ("cpu", "numpy"):
            close(compiled(state, expr, target=target), expected, 1e-12)


@pytest.mark.parametrize("wrt", VARIABLES)
def test_servo(wrt):
    """Against differences in extended precision; it is linear in all inputs but the goal."""
    state = Varied("tasks")
    way = ways(state, wrt)
    (expected,) = state.along([servo], wrt, way)
    here = state.at(wrt)
    assert np.abs(expected).max() > 1e-2
    ours = here.matrix(differentiate(servo, wrt)) @ way
    assert np.abs(ours - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("wrt", ["q", "goal", "kv"])
def test_kernels(wrt):
    """The matrix, along a direction, and in reverse."""
    state = Varied("tasks")
    A, here = differentiate(servo, wrt), state.at(wrt)
    u, w = vector("u", A.domain), vector("w", CONSTRAINT)
    for name, space in (("u", A.domain), ("w", CONSTRAINT)):
        state.values[name] = state.rng.standard_normal(here.size(space))
    expected = here.matrix(A)
    close(compiled(state, A), expected, 1e-12)
    close(compiled(state, A @ u), expected @ state.values["u"], 1e-12)
    close(compiled(state, 2.0 * (A.T @ w)), 2.0 * (expected.T @ state.values["w"]), 1e-12)
    close(compiled(state, A.T @ w, target="numpy"), expected.T @ state.values["w"], 1e-12)


@pytest.mark.parametrize(
    "wrt", ["q", *(pytest.param(x, marks=pytest.mark.prove) for x in VARIABLES if x != "q")]
)
def test_torque_of_a_law(wrt):
    """The algebraic derivative of a control law, by its kernel, against differences of the law."""
    rng = np.random.default_rng(3)
    mech = lw.models.seven_dof_arm().with_node("tool", "hand", (0.1, 0.2, 0.3))
    tasks = [lw.Task.position("tool"), lw.Task.direction("tool"), lw.Task.joints("elbow_pitch")]
    law = lw.control_law(mech, tasks, kp=80.0, kv=[9.0, 10.0, 11.0, 12.0, 13.0, 14.0])
    there = [lw.tasks.task_position(mech, mech.random(rng), task) for task in tasks]
    given = {**law.inputs, "q": mech.random(rng), "v": rng.standard_normal(7)}
    given["goal"] = law.goal(there)
    expr, tree = law.expression["torque"], law.kernel.mech
    A = differentiate(expr, wrt)
    u = vector("u", A.domain)
    size = {JOINT: 7, CONSTRAINT: 6, GOAL: len(given["goal"])}[A.domain]
    given |= {"u": rng.standard_normal(size)}
    kernel = lw.compile(A @ u, tree, nodes=closure_nodes(tree))
    ours = kernel(*(given[name] for name in kernel.arguments))
    expected = np.zeros(7)
    for c, s in zip(STENCIL, range(-4, 5), strict=True):
        move = 2e-3 * s * given["u"]
        moved = mech.integrate(given["q"], move) if wrt == "q" else given[wrt] + move
        inputs = {**given, wrt: moved}
        expected += c / 2e-3 * law.kernel(*(inputs[name] for name in law.arguments))
    assert np.abs(expected).max() > 1e-2
    close(ours, expected, 1e-9)


@pytest.mark.parametrize(
    "wrt, reverse",
    [
        ("goal", False),
        *(
            pytest.param(*x, marks=pytest.mark.prove)
            for x in [("goal", True), ("q", False), ("q", True)]
        ),
    ],
)
def test_second_derivatives(wrt, reverse):
    """Of the servo of six tasks, by all of its variables: dense, and by a kernel."""
    state = Varied("tasks")
    A, w = differentiate(servo, wrt), vector("w", CONSTRAINT)
    u = vector("u", A.domain)
    for x in (u, w):
        state.values[x.ascii] = 0.5 * state.rng.standard_normal(state.at("q").size(x.range))
    once = A.T @ w if reverse else A @ u
    for again in ("q", "v", "goal", "kp", "kv"):
        way = ways(state, again)
        (expected,) = state.along([once], again, way)
        B = differentiate(once, again)
        ours = state.at(again).matrix(B) @ way
        assert np.abs(ours - expected).max() < 1e-12 * max(np.abs(expected).max(), 1.0), again
        if again == "goal":
            state.values["way"] = way
            along = B @ vector("way", B.domain)
            close(compiled(state, along), ours, 1e-12)
            assert "∂[e; " in str(lw.plan(along))
    assert len(TASKS) == 6
