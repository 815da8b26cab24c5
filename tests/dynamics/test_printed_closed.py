"""What is printed is what runs: closed chains and tasks, on hinges with armature.

The text of each expression is read back, compiled and run. Its numbers are compared with those of
the function, and with a reference of dense matrices that are assembled from Jacobians alone.
Whatever has `mass` in it differs on the bare tree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra.armature import without_armature
from linkwise.algebra.dense import Dense
from linkwise.algebra.expr import Expr
from linkwise.dynamics.closure import CLOSED, Setting, closed_expression, closed_kernel
from linkwise.dynamics.rccfd import RCCFD
from linkwise.model.closure import closure_nodes
from linkwise.spatial.array import Array
from linkwise.tasks.quantity import TASK, Law, torque
from linkwise.tasks.task_stack import task_stack
from tests.dense_kinematics import mass_matrix
from tests.dynamics.test_printed_expressions import SMALL, read_back


def same(result: object, expected: Array, rtol: float = 1e-9) -> None:
    """Equal up to rounding, and something to compare."""
    scale = np.abs(expected).max()
    assert scale > 1e-3
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-10 * scale)


def numbers(expr: Expr, mech: lw.Mechanism, given: dict[str, Array], **options: object) -> Array:
    """An expression compiled for the interpreter and run on what it takes."""
    made = lw.compile(expr, mech, target="numpy", **options)
    return made(**{name: given[name] for name in made.arguments})


def check_armature(expr: Expr, mech: lw.Mechanism, given: dict, expected: Array, **options) -> bool:
    """Whether armature is in an expression; then the bare tree has to give other numbers."""
    bare = without_armature(expr)
    if bare is expr:
        return False
    off = np.abs(numbers(bare, mech, given, derive=False, **options) - expected).max()
    assert off > 0.05 * np.abs(expected).max(), "the armature makes a difference"
    return True


@pytest.mark.parametrize("table", [CLOSED, RCCFD, TASK], ids=["closed", "named", "task"])
def test_expressions_of_constraints_are_read_back(table):
    for case in (Setting(), Setting(couplings=True), Setting(pushed="world", closing=True)):
        for make in table.values():
            expr = make(case)
            assert read_back(expr) is expr


# ------------------------------------------------------------------------------- closed chains


def armed_four_bar() -> lw.Mechanism:
    """Two arms with a ball joint between their ends."""
    b = lw.Builder("held")
    two_arms(b)
    b.loop("held", "end_x", "end_y", lw.hinges.Spherical())
    return b.build()


def two_arms(b: lw.Builder) -> None:
    """Two arms of a universal hinge and a pin each, with armature."""
    inertia = lw.SpatialInertia.from_com(1.0, (0.2, 0.1, 0.0), 0.02 * np.eye(3))
    for side in "xy":
        last = "world"
        for k, hinge in enumerate((lw.hinges.Universal(), lw.hinges.Pin())):
            ours = lw.Drive(armature=0.3 + 0.1 * k)
            place = lw.Pose.rpy((0.3 * k, 0.2, 0.1), (0.4, 0.1 * k, 0.2))
            b.body(f"{side}{k}", last, hinge, inboard=place, inertia=inertia, drive=ours)
            last = f"{side}{k}"
        b.node(f"end_{side}", last, lw.Pose.rpy((0.1, 0.2, 0.3), (0.3, 0.0, 0.1)))


OF_BARE_CLOSURE = {
    *("constraint_inertia_inverse", "constraint_forces"),
    *("forward_dynamics", "tip_force_correction", "allowed_velocity"),
}
"""Quantities of closed chains that depend on armature."""


@pytest.mark.parametrize("name", CLOSED)
def test_the_printed_expression_of_a_closed_chain_is_what_its_function_gives(name: str):
    mech = armed_four_bar()
    nodes = closure_nodes(mech)
    printed = read_back(closed_expression(mech, name))
    function = closed_kernel(mech, name)
    q, v = mech.random(0), mech.random_velocity(0)
    n, pushed = mech.nv, 6 * len(nodes)
    values = {"tau": np.linspace(1.0, 2.0, n), "vdot": np.linspace(-1.0, 3.0, n)}
    values["f"] = np.linspace(-2.0, 1.0, pushed)
    given = {"q": q, "v": v, **values}
    expected = function(*(given[n] for n in function.arguments))
    same(numbers(printed, mech, given, nodes=nodes), expected, 1e-8)
    same(Dense(mech, q, v, nodes=nodes, values=values)(printed), expected, 1e-8)
    armed = check_armature(printed, mech, given, expected, nodes=nodes)
    assert armed == (name in OF_BARE_CLOSURE)
    if name == "constraint_inertia_inverse":
        J_c = lw.loops.constraint_jacobian(mech, q)
        same(expected, J_c @ np.linalg.solve(mass_matrix(mech, q), J_c.T))


# --------------------------------------------------------------------------------------- tasks

TASKS = (lw.Task.position("tool"), lw.Task.joints("b1"))
"""Rows of a node and of a hinge: Q and Y are both in the expressions."""


@cache
def small_state() -> dict[str, Array]:
    """A state of the small arm, and vectors over its freedoms and the rows of the tasks."""
    result, rng = task_stack(SMALL, TASKS), np.random.default_rng(5)
    given = {"q": SMALL.random(rng), "v": SMALL.random_velocity(rng)}
    given["tau"] = rng.standard_normal(SMALL.nv)
    return given | {name: rng.standard_normal(result.size) for name in ("closing", "applied")}


@cache
def of_dense_tasks() -> dict[str, Array]:
    """Each quantity from 𝓜 of Jacobians, J_t, γ and C; X by the factors of 𝓜."""
    given, tasks = small_state(), TASKS
    q, v = given["q"], given["v"]
    A, J = mass_matrix(SMALL, q), lw.tasks.task_jacobian(SMALL, q, tasks)
    full, g = lw.bias_force(SMALL, q, v), lw.bias_force(SMALL, q, 0.0 * v)
    gamma, response = lw.tasks.task_bias(SMALL, q, v, tasks), np.linalg.solve(A, J.T)
    inertia = np.linalg.inv(J @ response)
    return {
        "task_jacobian": J,
        "task_bias": gamma,
        "task_inertia_inverse": J @ response,
        "task_inertia": inertia,
        "task_columns": np.linalg.solve(factors(SMALL, q)[0], J.T),
        "task_response": response,
        "consistent_inverse": response @ inertia,
        "task_coriolis": inertia @ (response.T @ (full - g) - gamma),
        "task_gravity": inertia @ response.T @ g,
        "task_velocity": J @ v,
        "task_drop": response.T @ full,
        "task_joint_force": J.T @ given["closing"],
    }


def factors(mech: lw.Mechanism, q: Array) -> tuple[Array, Array]:
    """𝓜 = L D L* with L = I + H φ K, by blocks of the hinges, tips first."""
    A, D = mass_matrix(mech, q).copy(), np.zeros((mech.nv, mech.nv))
    lower = np.eye(mech.nv)
    for k in reversed(range(mech.n_bodies)):
        ours, rest = slice(mech.v_start[k], mech.v_start[k + 1]), slice(0, mech.v_start[k])
        D[ours, ours] = A[ours, ours]
        lower[rest, ours] = np.linalg.solve(A[ours, ours], A[ours, rest]).T
        A[rest, rest] -= lower[rest, ours] @ D[ours, ours] @ lower[rest, ours].T
    return lower, D


@cache
def of_functions() -> dict[str, Callable[[], Array]]:
    """What everyday functions give of the quantities of tasks; kernels inside them the rest."""
    given, tasks = small_state(), TASKS
    state = (SMALL, given["q"], given["v"], tasks)
    space = (SMALL, given["q"], tasks)
    result: dict[str, Callable[[], Array]] = {
        "task_jacobian": lambda: lw.tasks.task_jacobian(*space),
        "task_bias": lambda: lw.tasks.task_bias(*state),
        "task_inertia_inverse": lambda: lw.tasks.task_space(*space).inverse,
        "task_inertia": lambda: lw.tasks.task_space(*space).inertia,
        "consistent_inverse": lambda: lw.tasks.task_space(*space).consistent_inverse,
        "task_coriolis": lambda: lw.tasks.task_dynamics(*state).coriolis,
        "task_gravity": lambda: lw.tasks.task_dynamics(*state).gravity,
        "task_velocity": lambda: lw.tasks.task_velocity(*state),
        "task_drop": lambda: lw.tasks.task_dynamics(*state).falling,
    }
    inner = {name: task_stack(SMALL, TASKS).kernel(name) for name in TASK if name not in result}
    return result | {
        name: lambda x=x: x(*(given[y] for y in x.arguments)) for name, x in inner.items()
    }


OF_BARE_TASKS = {
    *("task_inertia_inverse", "task_inertia", "task_columns", "task_response"),
    *("consistent_inverse", "task_coriolis", "task_gravity", "task_drop"),
}
"""Quantities of tasks that depend on armature."""


@pytest.mark.few(4)
@pytest.mark.parametrize("name", TASK)
def test_the_printed_expression_of_a_task_is_what_its_function_gives(name: str):
    result, given = task_stack(SMALL, TASKS), small_state()
    nodes, expected = closure_nodes(result.mech), of_dense_tasks()[name]
    printed = read_back(TASK[name](result.setting))
    same(numbers(printed, result.mech, given, nodes=nodes), expected)
    same(of_functions()[name](), expected)
    armed = check_armature(printed, result.mech, given, expected, nodes=nodes)
    assert armed == (name in OF_BARE_TASKS)


LAWS = [
    Law(applied=True),
    Law(all_joints=True, internal=False),
    Law(servo=True),
    Law(all_joints=True, internal=False, servo=True),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_printed_torque_of_tasks_is_what_its_function_gives(law: Law):
    given, dense = dict(small_state()), of_dense_tasks()
    q, v, J = given["q"], given["v"], dense["task_jacobian"]
    desired, compensate = given["closing"], "joints" if law.all_joints else "task"
    options = {"internal": law.internal, "applied": law.applied, "compensate": compensate}
    if law.servo:
        made = lw.control_law(SMALL, TASKS, kp=30.0, kv=7.0, **options)
        target = [lw.tasks.task_position(SMALL, SMALL.random(8), task) for task in TASKS]
        error = [lw.tasks.task_error(SMALL, q, x, y) for x, y in zip(TASKS, target, strict=True)]
        given |= made.inputs | {"goal": made.goal(target), "tau": given["tau"]}
        desired = 30.0 * np.concatenate(error) - 7.0 * dense["task_velocity"]
        function = made(q, v, target, **({"tau0": given["tau"]} if law.internal else {}))
    else:
        made = lw.control_law(SMALL, TASKS, **options)
        added = {"tau0": given["tau"]} if law.internal else {}
        added |= {"applied": given["applied"]} if law.applied else {}
        function = lw.tasks.task_torque(SMALL, q, v, TASKS, desired, **added, compensate=compensate)
        same(made(q, v, acceleration=desired, **added), function)
    # τ = τ₀ + J_t* (Λ (ẍ - γ - J_t 𝓜⁻¹ (τ₀ - C)) + F_applied)
    resisting = lw.bias_force(SMALL, q, v)
    internal = law.internal * given["tau"] + law.all_joints * resisting
    left = desired - dense["task_bias"] - dense["task_response"].T @ (internal - resisting)
    force = dense["task_inertia"] @ left + law.applied * given["applied"]
    expected = internal + J.T @ force
    same(function, expected)
    stack = task_stack(SMALL, TASKS)
    printed, nodes = read_back(torque(stack.setting, law)), closure_nodes(stack.mech)
    assert printed is made.expression["torque"]
    same(numbers(printed, stack.mech, given, nodes=nodes), expected)
    assert check_armature(printed, stack.mech, given, expected, nodes=nodes)
