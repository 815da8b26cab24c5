"""What loops leave of the motions of nodes, however their independent rows are found."""

from itertools import combinations

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.formula import Formula
from linkwise.dynamics.held_motion import usual_rows
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


def test_rows_of_first_states_are_kept():
    mech = lw.models.dual_arm()
    q = spread(mech, 2)
    assert usual_rows(mech, q[:0]) == ()
    assert usual_rows(mech, q) == tuple(range(12))
    assert usual_rows(mech, q[:0]) == tuple(range(12))
    assert usual_rows(mech, q, "open") == ()
    assert usual_rows(lw.models.dual_arm(), "nothing") == ()
