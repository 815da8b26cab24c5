"""What is printed is what runs: closed chains, tasks and several arms, on hinges with armature.

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
from linkwise.grasp.multi_arm.equation import AS_BLOCKS, EQUAL, MULTI_ARM, multi_arm_kernel
from linkwise.model.closure import closure_nodes
from linkwise.spatial.array import Array
from linkwise.tasks.quantity import TASK, Law, torque
from linkwise.tasks.task_stack import task_stack
from tests.dense_kinematics import body_jacobians, mass_matrix, node_jacobian
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


@pytest.mark.parametrize("table", [CLOSED, TASK], ids=["closed", "task"])
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
    *("forward_dynamics", "tip_force_correction"),
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


# -------------------------------------------------------------------------------- several arms


@cache
def arms() -> lw.Mechanism:
    """Two arms and the object between them, which are trees beside each other."""
    b = lw.Builder("arms")
    two_arms(b)
    inertia = lw.SpatialInertia.from_com(2.0, (0.05, 0.0, 0.1), 0.1 * np.eye(3))
    b.body("object", "world", lw.hinges.Free(), inertia=inertia)
    b.node("grasp", "object", lw.Pose.rpy((0.2, 0.1, 0.0), (0.0, 0.2, 0.1)))
    return b.build()


AT = ("end_x", "end_y", "grasp")


@cache
def arms_state() -> dict[str, Array]:
    mech, rng = arms(), np.random.default_rng(2)
    given = {"q": mech.random(rng), "v": mech.random_velocity(rng)}
    given |= {name: rng.standard_normal(mech.nv) for name in ("tau", "vdot", "T_prime", "eps")}
    return given | {"f": rng.standard_normal(6 * len(AT))}


@cache
def of_dense_arms() -> dict[str, Array]:
    """Each equation from 𝓜 and J of Jacobians, and L D L* = 𝓜."""
    mech, given = arms(), arms_state()
    q, v, vdot, f, T, eps = (given[x] for x in ("q", "v", "vdot", "f", "T_prime", "eps"))
    A, (lower, D), bodies = mass_matrix(mech, q), factors(mech, q), body_jacobians(mech, q)
    J = np.concatenate([node_jacobian(mech, q, name) for name in AT])
    ahead, behind = (
        np.concatenate([node_jacobian(mech, mech.integrate(q, v, h), x) for x in AT])
        for h in (1e-5, -1e-5)
    )
    rate, inverse = (ahead - behind) @ v / 2e-5, np.linalg.inv(A)
    seen = np.linalg.solve(D, eps)
    result = {
        "bias_free_force": given["tau"] - lw.bias_force(mech, q, v),
        "bias_acceleration": rate,
        "free_acceleration": inverse @ T,
        "tip_acceleration": J @ vdot + rate,
        "compliance": J @ inverse @ J.T,
        "own_compliance": bodies @ inverse @ bodies.transpose(0, 2, 1),
        "correction": inverse @ J.T @ f,
        "filtered_force": J @ inverse @ T,
        "acceleration": inverse @ (T + J.T @ f),
        "innovation": np.linalg.solve(lower, T),
        "tip_of_innovation": J @ np.linalg.solve(lower.T, seen),
        "smoothed": np.linalg.solve(lower.T, seen) + inverse @ J.T @ f,
        "inertia": A,
        "jacobian": J,
        "node_velocity": J @ v,
    }
    return result | {general: result[name] for name, general in EQUAL.items()}


NOT_OF_BARE_ARMS = {
    *("bias_free_force", "bias_acceleration", "tip_acceleration", "jacobian", "node_velocity"),
}
"""Equations of several arms that have no armature in them."""


@pytest.mark.parametrize("name", MULTI_ARM)
def test_the_printed_expression_of_several_arms_is_what_its_function_gives(name: str):
    mech, given, expected = arms(), arms_state(), of_dense_arms()[name]
    expr = MULTI_ARM[name]()
    printed = read_back(expr)
    assert printed is expr
    options = {"nodes": AT, "blocks": name in AS_BLOCKS}
    # J̇ is a central difference, good to 1e-9.
    rtol = 1e-7 if name in ("bias_acceleration", "tip_acceleration") else 1e-9
    same(numbers(printed, mech, given, **options), expected, rtol)
    function = multi_arm_kernel(mech, name, AT, target="numpy")
    same(function(*(given[x] for x in function.arguments)), expected, rtol)
    armed = check_armature(printed, mech, given, expected, **options)
    assert armed == (name not in NOT_OF_BARE_ARMS)
