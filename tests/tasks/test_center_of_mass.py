"""Tasks of the centre of mass beside sums over bodies, differences, and what they then do."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import Task
from linkwise.errors import ModelError, ShapeError
from linkwise.tasks import Servo

COM = Task.center_of_mass()
STEP = 1e-5


def floating() -> lw.Mechanism:
    """A free base with two arms: the tree branches, and q has a quaternion."""
    build = lw.Builder("floating arms")
    build.body("base", hinge=lw.hinges.Free(), inertia=lw.SpatialInertia.solid_box(4.0, (0.3,) * 3))
    rod = lw.SpatialInertia.from_com(0.8, (0.02, 0.0, 0.2), (0.01, 0.012, 0.002))
    for side, x in (("left", -0.2), ("right", 0.2)):
        build.body(f"{side}_1", "base", lw.hinges.Pin((1, 0, 0)), inboard=(x, 0, 0.1), inertia=rod)
        build.body(
            f"{side}_2", f"{side}_1", lw.hinges.Pin((0, 1, 0)), inboard=(0, 0, 0.4), inertia=rod
        )
        build.node(f"{side}_hand", f"{side}_2", (0, 0, 0.4))
    return build.build()


MECHS = {"arm": lw.models.seven_dof_arm(), "floating": floating()}


def plain_center(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Σ m_k (p_k + R_k c_k) / Σ m_k."""
    places = [lw.forward_kinematics(mech, q, body.name) for body in mech.bodies]
    masses = [body.inertia.mass for body in mech.bodies]
    moments = [
        body.inertia.mass * (X.p + X.rot @ body.inertia.com)
        for body, X in zip(mech.bodies, places, strict=True)
        if body.inertia.mass
    ]
    return np.sum(moments, axis=0) / sum(masses)


def state(mech: lw.Mechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return mech.random(rng), rng.standard_normal(mech.nv)


def slopes(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """J of the plain sum, by central differences."""
    ways = STEP * np.eye(mech.nv)
    ends = [[plain_center(mech, mech.integrate(q, s * w)) for s in (1, -1)] for w in ways]
    return np.array([(a - b) / (2.0 * STEP) for a, b in ends]).T


@pytest.mark.parametrize("name", MECHS)
def test_position_jacobian_and_bias_are_those_of_the_sum(name: str) -> None:
    mech = MECHS[name]
    q, v = state(mech)
    c = plain_center(mech, q)
    np.testing.assert_allclose(lw.tasks.task_position(mech, q, COM), c, atol=1e-13)
    J = lw.tasks.task_jacobian(mech, q, COM)
    assert np.abs(J).max() > 0.1
    np.testing.assert_allclose(J, slopes(mech, q), atol=1e-9)
    np.testing.assert_allclose(lw.tasks.task_velocity(mech, q, v, COM), J @ v, atol=1e-12)
    ends = [lw.tasks.task_jacobian(mech, mech.integrate(q, s * STEP * v), COM) @ v for s in (1, -1)]
    bias = lw.tasks.task_bias(mech, q, v, COM)
    assert np.abs(bias).max() > 1e-2
    np.testing.assert_allclose(bias, (ends[0] - ends[1]) / (2.0 * STEP), atol=1e-8)
    goal = c + np.array([0.1, -0.2, 0.3])
    np.testing.assert_allclose(lw.tasks.task_error(mech, q, COM, goal), goal - c, atol=1e-13)
    oblique = Task.center_of_mass([[0.6, 0.0, 0.8]])
    np.testing.assert_allclose(
        lw.tasks.task_error(mech, q, oblique, goal), [0.6 * 0.1 + 0.8 * 0.3], atol=1e-13
    )


def test_rows_of_a_stack_are_in_the_order_of_its_tasks() -> None:
    mech = MECHS["floating"]
    q, v = state(mech)
    parts = [Task.center_of_mass("xz"), Task.joints("left_2"), Task.position("right_hand"), COM]
    for function, given in (
        (lw.tasks.task_jacobian, (q,)),
        (lw.tasks.task_velocity, (q, v)),
        (lw.tasks.task_bias, (q, v)),
    ):
        each: list[np.ndarray] = []
        for task in parts:
            each.append(function(mech, *given, task))
        joined = function(mech, *given, parts)
        assert len(joined) == 9 and np.abs(joined).max() > 0.1
        np.testing.assert_allclose(joined, np.concatenate(each), atol=1e-13)
    batch = np.stack([q, state(mech, 1)[0]])
    many = lw.tasks.task_jacobian(mech, batch, parts)
    assert many.shape == (2, 9, mech.nv)
    np.testing.assert_allclose(many[0], lw.tasks.task_jacobian(mech, q, parts), atol=1e-13)


@pytest.mark.parametrize("first", [True, False])
def test_a_controller_gives_it_the_requested_acceleration(first: bool) -> None:
    mech = MECHS["floating"]
    q, v = state(mech, 3)
    hand = Task.position("left_hand")
    levels = [Servo(COM, kp=30.0, kv=8.0), Servo(hand, kp=50.0, kv=9.0)]
    control = lw.TaskController(mech, levels if first else levels[::-1])
    goals = {
        task.name: lw.tasks.task_position(mech, q, task) + np.array([0.05, 0.02, -0.04])
        for task in (COM, hand)
    }
    vdot = lw.forward_dynamics(mech, q, v, control(q, v, goals))
    for servo in levels:
        J = lw.tasks.task_jacobian(mech, q, servo.task)
        made = J @ vdot + lw.tasks.task_bias(mech, q, v, servo.task)
        error = lw.tasks.task_error(mech, q, servo.task, goals[servo.task.name])
        requested = np.asarray(servo.kp) * error - np.asarray(servo.kv) * (J @ v)
        assert np.abs(requested).max() > 0.1
        np.testing.assert_allclose(made, requested, atol=1e-10)


def test_a_stretched_arm_is_handled_near_its_singularity() -> None:
    mech = MECHS["arm"]
    q = np.zeros(7)  # stretched upwards: the centre of mass cannot rise
    control = lw.TaskController(mech, [Servo(COM, kp=100.0, kv=20.0)])
    goal = plain_center(mech, q) + np.array([0.05, 0.0, -0.05])
    run = lw.simulate(
        mech, q, np.zeros(7), duration=1.5, control_step=2e-3,
        controller=lambda t, q, v: control(q, v, goal),
    )  # fmt: skip
    assert np.abs(run.tau).max() < 1e3
    np.testing.assert_allclose(plain_center(mech, run.q[-1]), goal, atol=2e-3)


def test_its_controller_is_exported() -> None:
    control = lw.TaskController(MECHS["arm"], [Servo(COM, kp=100.0, kv=20.0)])
    assert "void balance" in control.export_c("balance").source


def test_other_functions_refuse_it_by_name() -> None:
    mech = MECHS["arm"]
    q, v = state(mech)
    for refused in (
        lambda: lw.tasks.task_space(mech, q, COM),
        lambda: lw.tasks.task_dynamics(mech, q, v, COM),
        lambda: lw.control_law(mech, COM, kp=1.0, kv=1.0),
        lambda: lw.tasks.task_torque(mech, q, v, [Task.position("hand"), COM], np.zeros(6)),
    ):
        with pytest.raises(ModelError, match=r"'centre of mass' is about the centre of mass; this"):
            refused()


def test_goals_and_mechanisms_that_do_not_fit() -> None:
    mech = MECHS["arm"]
    with pytest.raises(ShapeError, match=r"the full position, .*: \(3,\)"):
        lw.tasks.task_error(mech, np.zeros(7), Task.center_of_mass("xy"), np.zeros(2))
    with pytest.raises(ModelError, match="takes letters x, y, z"):
        Task.center_of_mass("xw")
    build = lw.Builder("massless")
    build.body("link", "world", lw.hinges.Pin((0, 1, 0)))
    with pytest.raises(ModelError, match="has no mass"):
        lw.tasks.task_jacobian(build.build(), [0.0], COM)
    slider = lw.Builder("slider")
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.1, 0.1))
    slider.body("cart", "world", lw.hinges.Prismatic((1, 0, 0)), inertia=box)
    with pytest.raises(ModelError, match="which no hinge moves along these directions"):
        lw.TaskController(slider.build(), [Servo(Task.center_of_mass("z"), kp=1.0, kv=1.0)])
