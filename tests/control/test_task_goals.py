"""Goals as tasks, in costs and in bounds: the optimum is that of SciPy on dense steps."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound, Cost, Foothold, Phase
from linkwise.dynamics.momentum import center
from linkwise.spatial.array import Array
from tests.control.test_phases import hopper

STEP, STEPS, PRICE = 0.05, 5, 1e-2
START, END = np.array([0.3, -0.6, 0.9]), np.array([0.6, -0.2, 0.4])


def arm() -> lw.Mechanism:
    """Three pins, one about the vertical, with a hand."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.4)).moved(
        lw.Pose.translation((0.02, 0.0, 0.2))
    )
    b, parent = lw.Builder("arm"), "world"
    for name, axis in (("yaw", (0, 0, 1)), ("shoulder", (0, 1, 0)), ("elbow", (0, 1, 0.2))):
        at = (0, 0, 0.0 if parent == "world" else 0.4)
        drive = lw.Drive(damping=0.1)
        b = b.body(name, parent, lw.hinges.Pin(axis), inertia=rod, inboard=at, drive=drive)
        parent = name
    return b.node("hand", "elbow", (0.05, 0.0, 0.4)).build()


TASKS = {
    "position": lw.Task.position("hand"),
    "orientation": lw.Task.orientation("hand"),
    "pose": lw.Task.pose("hand"),
    "direction": lw.Task.direction("hand", (0, 0, 1)),
    "relative": lw.Task.position("hand", relative_to="yaw"),
    "joints": lw.Task.joints("shoulder", "elbow"),
}


def rolled(mech: lw.Mechanism, start: Array, u: Array) -> tuple[Array, Array]:
    """Positions and velocities (steps + 1, ...), by dense matrices."""
    q, v = [start], [np.zeros(mech.nv)]
    for tau in u:
        bias = lw.inverse_dynamics(mech, q[-1], v[-1], np.zeros(mech.nv))
        force = tau - mech.damping * v[-1] - bias
        v.append(v[-1] + STEP * np.linalg.solve(lw.mass_matrix(mech, q[-1]), force))
        q.append(q[-1] + STEP * v[-1])
    return np.array(q), np.array(v)


def best(cost: Any, rows: Any, u: Array) -> tuple[float, Array]:
    """The least cost with rows that are zero, by SciPy and differences."""
    optimize = pytest.importorskip("scipy.optimize")
    held = () if rows is None else {"type": "eq", "fun": lambda x: rows(x.reshape(u.shape))}
    least = optimize.minimize(
        lambda x: cost(x.reshape(u.shape)), u.ravel(), method="SLSQP", constraints=held,
        jac="3-point", options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    if rows is not None:
        assert np.abs(rows(least.x.reshape(u.shape))).max() < 1e-6
    return float(least.fun), least.x.reshape(u.shape)


def effort(u: Array) -> float:
    return 0.5 * STEP * PRICE * float(np.sum(u**2))


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_weighed(name: str) -> None:
    mech, task = arm(), TASKS[name]
    goal = lw.tasks.task_position(mech, END, task)
    goal = goal + 0.1 if name in ("position", "joints", "relative") else goal

    def cost(u: Array) -> float:
        q, v = rolled(mech, START, u)
        e = np.array([lw.tasks.task_error(mech, x, task, goal) for x in q])
        each = STEP * np.sum(e[:-1] ** 2) + 50.0 * np.sum(e[-1] ** 2) + 0.1 * np.sum(v[-1] ** 2)
        return 0.5 * float(each) + effort(u)

    made = lw.optimize(
        mech, START, step=STEP, horizon=STEPS, tolerance=1e-12, iterations=500,
        costs=[Cost.of_task(task, goal, weight=1.0, final=50.0), Cost.velocity(final=0.1),
               Cost.effort(weight=PRICE)],
    )  # fmt: skip
    assert made.status == 0
    assert np.isclose(float(made.cost), cost(made.tau), rtol=1e-9)
    least, u = best(cost, None, made.tau + 0.1)
    assert abs(float(made.cost) - least) < 1e-6 * least
    assert np.allclose(made.tau, u, atol=2e-3 * np.abs(u).max())
    assert cost(np.zeros_like(u)) > 1.5 * least


@pytest.mark.parametrize("name", ["position", "orientation", "direction", "joints"])
def test_a_task_is_reached(name: str) -> None:
    mech, task = arm(), TASKS[name]
    goal = lw.tasks.task_position(mech, END, task)

    def last(u: Array) -> Array:
        return lw.tasks.task_error(mech, rolled(mech, START, u)[0][-1], task, goal)

    made = lw.optimize(
        mech, START, step=STEP, horizon=STEPS, tolerance=1e-11, violation=1e-8, iterations=1000,
        costs=Cost.effort(weight=PRICE), bounds=Bound.on_task(task, goal, when="final"),
    )  # fmt: skip
    assert made.status == 0 and np.abs(last(made.tau)).max() < 1e-7
    least, u = best(effort, last, made.tau + 0.1)
    assert np.abs(last(np.zeros_like(u))).max() > 0.1
    assert abs(float(made.cost) - least) < 1e-5 * least
    assert np.allclose(made.tau, u, atol=5e-3 * np.abs(u).max())


@pytest.mark.parametrize("bounded", [False, True])
def test_the_centre_of_mass_is_a_function(bounded: bool) -> None:
    """It belongs to no node: costs and bounds take it as an expression."""
    mech = arm()
    goal = lw.center_of_mass(mech, END)

    def rows(at: Any) -> Any:
        return center(at) - goal

    def last(u: Array) -> Array:
        return lw.center_of_mass(mech, rolled(mech, START, u)[0][-1]) - goal

    def cost(u: Array) -> float:
        return effort(u) + (0.0 if bounded else 25.0 * float(np.sum(last(u) ** 2)))

    weighed = [] if bounded else [Cost.of_function(rows, final=50.0)]
    made = lw.optimize(
        mech, START, step=STEP, horizon=STEPS, tolerance=1e-11, violation=1e-8, iterations=1000,
        costs=[Cost.effort(weight=PRICE), *weighed],
        bounds=[Bound.on_function(rows, 0.0, 0.0, when="final")] if bounded else (),
    )  # fmt: skip
    least, u = best(cost, last if bounded else None, made.tau + 0.1)
    assert made.status == 0 and abs(float(made.cost) - least) < 1e-5 * least
    assert np.allclose(made.tau, u, atol=5e-3 * np.abs(u).max())


def test_a_task_with_a_contact_that_ends() -> None:
    """A foot on the ground for three steps, then in the air; the trunk has a goal."""
    mech, task, foot = hopper(), lw.Task.position("up"), lw.Task.position("foot")
    start = np.array([0.0, 0.6 * np.cos(0.6), 0.6, -1.2])
    goal = lw.tasks.task_position(mech, start, task) + np.array([0.03, 0.0, 0.02])
    ground = lw.forward_kinematics(mech, start, "foot").p
    n, h = mech.nv, 0.02

    def rolled(u: Array) -> tuple[Array, Array]:
        """Positions, and forces on the foot."""
        q, v, out, forces = start, np.zeros(n), [start], list[Array]()
        for k, tau in enumerate(u):
            bias = lw.inverse_dynamics(mech, q, v, np.zeros(n))
            M, right = lw.mass_matrix(mech, q), tau - mech.damping * v - bias
            if k < 3:
                J_foot = lw.tasks.task_jacobian(mech, q, foot)
                gamma = lw.tasks.task_bias(mech, q, v, foot)
                off = lw.forward_kinematics(mech, q, "foot").p - ground
                rows = -0.5 * h * gamma - 0.5 * off / h
                K = np.block([[M, -J_foot.T], [J_foot, np.zeros((3, 3))]])
                both = np.linalg.lstsq(K, np.concatenate([M @ v + h * right, rows]), rcond=1e-12)
                v = both[0][:n]
                forces.append(both[0][n:] / h)
            else:
                v = v + h * np.linalg.solve(M, right)
            q = q + h * v
            out.append(q)
        return np.array(out), np.array(forces)

    def of_motors(u: Array) -> tuple[Array, Array]:
        return rolled(np.hstack([np.zeros((5, 2)), u.reshape(5, 2)]))

    def cost(u: Array) -> float:
        q, u = of_motors(u)[0], u.ravel()
        e = np.array([lw.tasks.task_error(mech, x, task, goal) for x in q])
        each = h * 1e-3 * np.sum(u**2) + h * 10.0 * np.sum(e[:-1] ** 2) + 100.0 * np.sum(e[-1] ** 2)
        return 0.5 * float(each)

    made = lw.optimize(
        mech, start, step=h, driven=["thigh", "shank"], phases=[Phase(3, ["foot"]), Phase(2)],
        costs=[Cost.effort(weight=1e-3), Cost.of_task(task, goal, weight=10.0, final=100.0)],
        tolerance=1e-12, iterations=500,
    )  # fmt: skip
    assert made.status == 0 and np.abs(made.forces["foot"][:3, 2]).min() > 1.0
    assert np.allclose(made.q, rolled(made.tau)[0], atol=1e-6)
    optimize = pytest.importorskip("scipy.optimize")

    def above(u: Array) -> Array:
        """The foot stays above the ground, and does not slip or pull."""
        q, f = of_motors(u)
        height = lw.forward_kinematics(mech, q[3:], "foot").p[:, 2]
        cone = Foothold("foot").friction * f[:, 2] - np.linalg.norm(f[:, :2], axis=1)
        return np.concatenate([100.0 * height, cone, f[:, 2]])

    least = optimize.minimize(
        cost, made.tau[:, 2:].ravel() + 0.1, method="SLSQP", jac="3-point",
        constraints={"type": "ineq", "fun": above}, options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    assert above(least.x).min() > -1e-6
    assert abs(float(made.cost) - least.fun) < 1e-6 * least.fun
    assert cost(np.zeros((5, 2))) > 1.2 * least.fun
