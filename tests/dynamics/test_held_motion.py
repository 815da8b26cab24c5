"""What loops leave of the motions of nodes, however their independent rows are found."""

from itertools import combinations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import part_of_largest, singular
from linkwise.dynamics.held_motion import usual_rows
from linkwise.dynamics.hybrid import _held_formula
from linkwise.dynamics.kernels import written
from linkwise.dynamics.operational_space import RESULTS, held_space
from linkwise.dynamics.velocity_space import velocity_spaces
from tests.cases import bennett


def dense_response(mech, q, node):
    """J Z (Z* 𝓜 Z)⁻¹ Z* J* with the velocities Z that loops leave, by singular values."""
    (space,) = velocity_spaces(mech, q[None])
    moved = lw.jacobian(mech, q, node) @ space.free
    return moved @ np.linalg.solve(space.free.T @ lw.mass_matrix(mech, q) @ space.free, moved.T)


def spread(mech, count):
    """States with closed loops."""
    start, rng = mech.neutral(), np.random.default_rng(0)
    around = (mech.integrate(start, 0.2 * rng.standard_normal(mech.nv)) for _ in range(count))
    return np.array([lw.loops.project_position(mech, q).q for q in around])


@pytest.mark.parametrize("mech", [lw.models.four_bar(), bennett()], ids=lambda mech: mech.name)
def test_any_rows_may_be_the_usual_ones(mech):
    q, node = spread(mech, 3), mech.bodies[-1].name
    usual, m = usual_rows(mech, q), lw.loops.constraint_jacobian(mech, q[0]).shape[0]
    assert len(usual) == mech.nv - 1 < m
    expected = np.array([dense_response(mech, x, node) for x in q])
    assert np.abs(expected).max() > 0.1
    for chosen in (*combinations(range(m), 1), *combinations(range(m), 2), ()):
        kernel = written(mech, Formula(held_space, ("node", chosen), RESULTS), node)
        parts = kernel(q, np.array([1.0]), np.array([1e-10]))
        assert np.abs(parts["inverse"] - expected).max() < 1e-10 * np.abs(expected).max()
        assert (parts["rank"] == 1).all()
        inertia = np.linalg.pinv(expected, rcond=1e-9, hermitian=True)
        assert np.abs(parts["inertia"] - inertia).max() < 1e-9 * np.abs(inertia).max()


def test_states_of_a_batch_decide_alone():
    """A parallelogram: flat it can move in two ways, elsewhere in one."""
    mech = lw.models.four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2)
    turns = np.array([0.7, 0.5 * np.pi, 1.1, 0.5 * np.pi, -0.3])
    q = turns[:, None] * [1.0, -1.0, 1.0]
    assert np.abs(lw.loops.constraint_error(mech, q)).max() < 1e-14
    usual_rows(mech, q)
    space = lw.operational_space(mech, q, "coupler")
    assert space.rank.tolist() == [1, 2, 1, 2, 1]
    for i, x in enumerate(q):
        expected = dense_response(mech, x, "coupler")
        assert np.abs(space.inverse[i] - expected).max() < 1e-9 * np.abs(expected).max()
        alone = lw.operational_space(mech, x, "coupler")
        assert np.abs(space.inertia[i] - alone.inertia).max() < 1e-9 * np.abs(alone.inertia).max()


def test_a_part_of_the_largest_value_divides_others():
    """Whatever the others are, in a formula and on numbers."""
    mech, m = lw.models.pendulum(), 3
    kernel = written(mech, Formula(divided, (m,), ("least", "values")))
    rng = np.random.default_rng(0)
    for part in (1e-10, 0.3, 0.6, 0.9):
        for _ in range(20):
            W = rng.standard_normal((m, 5)) * [[1.0], [0.5], [0.1]]
            results = kernel(np.concatenate([W.ravel(), [part]]))
            values = np.linalg.svd(W, compute_uv=False)
            assert np.abs(results["values"] - values).max() < 1e-14 * values[0]
            assert ((values > results["least"]) == (values > part * values[0])).all()


def divided(at, m):
    """The formula of the test."""
    given = at.read("W", 5 * m + 1)
    W = given[:-1].reshape(m, 5)
    values = singular(at, W, vectors=False)[1]
    return part_of_largest(at, W, given[-1], values), values


def test_rows_of_first_states_are_kept():
    mech = lw.models.dual_arm()
    q = spread(mech, 2)
    assert usual_rows(mech, q[:0]) == ()
    assert usual_rows(mech, q) == tuple(range(12))
    assert usual_rows(mech, q[:0]) == tuple(range(12))
    assert usual_rows(mech, q, "open") == ()
    assert usual_rows(lw.models.dual_arm(), "nothing") == ()


SHOULDER = "arm_1_shoulder_yaw_link", "arm_1_shoulder_pitch_link"


@pytest.mark.parametrize(("prescribed", "rank"), [(SHOULDER[:1], 12), (("object", *SHOULDER), 11)])
def test_hybrid_dynamics_in_any_order_of_rows(prescribed, rank):
    """Five of the hinges of an arm cannot follow all motions of the object."""
    mech, rng = lw.models.dual_arm(), np.random.default_rng(0)
    driven = np.zeros(mech.nv, dtype=bool)
    for name in prescribed:
        driven[mech.v_slice(mech.body(name).hinge_name)] = True
    q = mech.integrate(mech.neutral(), 0.3 * rng.standard_normal(mech.nv))
    J_c = lw.loops.constraint_jacobian(mech, q)[:, ~driven]
    assert np.linalg.matrix_rank(J_c, tol=1e-9) == rank
    given = dict(zip(("v", "tau", "vdot"), rng.standard_normal((3, mech.nv)), strict=True))
    results = list[dict[str, np.ndarray]]()
    for full in (True, False):
        kernel = written(mech, _held_formula(tuple(driven.tolist()), "node", full))
        results.append(kernel(*[({"q": q} | given)[name] for name in kernel.arguments]))
    one, other = results
    for name in ("vdot", "tau", "rest", "slack"):
        size = max(1.0, np.abs(other[name]).max())
        assert np.abs(one[name] - other[name]).max() < 1e-9 * size, name


@pytest.mark.parametrize("name", ["dual_arm", "four_bar"])
def test_task_dynamics_answers_like_forward_dynamics(name):
    """One kernel gives the accelerations that forces of tasks cause in the closed chain."""
    mech, rng = getattr(lw.models, name)(), np.random.default_rng(0)
    q, task = spread(mech, 4), lw.Task.pose(mech.bodies[-1].name)
    v = np.array([lw.loops.project_velocity(mech, x, rng.standard_normal(mech.nv)) for x in q])
    force = rng.standard_normal((4, 6))
    made = lw.tasks.task_dynamics(mech, q, v, task)
    J = lw.tasks.task_jacobian(mech, q, task)
    vdot = lw.forward_dynamics(mech, q, v, (force[:, None] @ J)[:, 0])
    expected = (J @ vdot[..., None])[..., 0] + lw.tasks.task_bias(mech, q, v, task)
    assert np.abs(made.acceleration(force) - expected).max() < 1e-9 * np.abs(expected).max()
    rest = lw.forward_dynamics(mech, q, np.zeros_like(v), np.zeros_like(v))
    weight = -(made.inertia @ (J @ rest[..., None]))[..., 0]
    assert np.abs(weight).max() > 0.1
    assert np.abs(made.gravity - weight).max() < 1e-9 * np.abs(weight).max()
    alone = lw.tasks.task_dynamics(mech, q[2], v[2], task)
    size = np.abs(made.coriolis).max()
    assert np.abs(alone.coriolis - made.coriolis[2]).max() < 1e-9 * size


def test_task_dynamics_of_singular_loops_warn():
    """Where it moves in two ways, accelerations of a parallelogram are not unique."""
    mech = lw.models.four_bar(ground=0.4, crank=0.2, coupler=0.4, rocker=0.2)
    q = np.array([0.7, 0.5 * np.pi])[:, None] * [1.0, -1.0, 1.0]
    lw.tasks.task_dynamics(mech, q[0], np.zeros(3), lw.Task.pose("coupler"))
    with pytest.warns(lw.errors.RankWarning):
        lw.tasks.task_dynamics(mech, q[1], np.zeros(3), lw.Task.pose("coupler"))
