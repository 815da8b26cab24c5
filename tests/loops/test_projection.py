"""Positions and velocities put back to where loops hold."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ClosureError, ModelError, ShapeError
from linkwise.loops.projection import project_position
from tests.cases import bennett
from tests.loops.random_loops import KINDS, LIGHT, looped, null_space, triangle
from tests.loops.test_bad_input import parallelogram

CASES = {
    "four bar": 2,
    "bennett": 2,
    "stewart": 18,
    "dual arm": 12,
    "nested": None,
    "couplings": None,
}
"""Rank of J_c where it is known from the mechanism's description."""


@cache
def case(name: str) -> tuple[lw.Mechanism, np.ndarray]:
    models = {
        "four bar": lw.models.four_bar,
        "bennett": bennett,
        "stewart": lw.models.stewart,
        "dual arm": lw.models.dual_arm,
    }
    if name == "nested":
        return looped(3, ("spherical", "pin", "planar"), n=7, hinges=LIGHT)
    if name == "couplings":
        return looped(4, ("spherical",), n=8, couplings=2, hinges=("pin", "prismatic"))
    mech = models[name]()
    return mech, mech.neutral()


def disturbed(mech: lw.Mechanism, q: np.ndarray, size: float, seed: int = 0) -> np.ndarray:
    return mech.integrate(q, size * np.random.default_rng(seed).standard_normal(mech.nv))


@pytest.mark.parametrize("weight", [None, "mass"])
@pytest.mark.parametrize("name", CASES)
def test_positions_close_the_loops(name, weight):
    mech, q = case(name)
    projection = lw.loops.project_position(mech, disturbed(mech, q, 0.05), weight=weight).required()
    # Rounding of poses a metre or so from the origin is 1e-16 times the number of bodies.
    assert np.abs(lw.loops.constraint_error(mech, projection, per="loop")).max(initial=0.0) < 1e-12
    assert np.abs(lw.loops.constraint_error(mech, projection)).max() < 1e-12
    mech.check_q(projection)


@pytest.mark.parametrize("kind", [*KINDS, "rolling_ball"])
def test_a_loop_of_each_kind(kind):
    mech, q = looped(11, (kind,), n=4, hinges=LIGHT)
    projection = lw.loops.project_position(mech, disturbed(mech, q, 0.03)).required()
    assert np.abs(lw.loops.constraint_error(mech, projection, per="loop")).max() < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_convergence_is_quadratic(name):
    """Each error is at most a constant times the square of the one before, redundant rows or not.

    Linear convergence by a factor c would give e₂ / e₁² = c / e₁: more than 1e3 for any c above
    0.1, at errors of 1e-4 and below.
    """
    mech, q = case(name)
    start = disturbed(mech, q, 3e-3, seed=1)
    size = np.linalg.norm(lw.loops.constraint_error(mech, start))
    seen = 0
    for steps in (1, 2, 3):
        after = project_position(mech, start, iterations=steps)
        error = np.linalg.norm(lw.loops.constraint_error(mech, after.q))
        if size < 3e-7:  # the square of it is rounding
            break
        assert error < 30.0 * size**2 + 1e-14
        size, seen = error, seen + 1
    assert seen >= 1


@pytest.mark.parametrize("weight", [None, "mass"])
@pytest.mark.parametrize("name", ["four bar", "bennett", "stewart", "nested", "couplings"])
def test_the_step_is_the_least(name, weight):
    """The way back has no part along the free motions, to first order in its length.

    Bennett's linkage has redundant rows that are independent off the closed configurations: without
    damping they would ask for a step along the free motion as long as all others.
    """
    mech, q = case(name)
    start = disturbed(mech, q, 1e-5, seed=2)
    projection = lw.loops.project_position(mech, start, weight=weight).required()
    step = mech.difference(start, projection)
    J = lw.loops.constraint_jacobian(mech, projection)
    free = null_space(J, np.linalg.matrix_rank(J, tol=1e-7))
    if weight == "mass":
        W = lw.mass_matrix(mech, projection)
    else:  # slides are measured by the length of the mechanism
        columns = lw.dynamics.velocity_space.scale(mech).columns
        W = np.diag(columns**-2.0)
    along = np.abs(free.T @ W @ step).max()
    assert along < 1e-2 * np.abs(W @ step).max()
    assert np.abs(step).max() > 1e-7  # there was something to do


def test_iterations_and_errors_are_told():
    mech, q = case("stewart")
    projection = project_position(mech, disturbed(mech, q, 1e-3))
    assert projection.closed and projection.error < 1e-12 and 2 <= projection.iterations <= 5
    stopped = project_position(mech, disturbed(mech, q, 0.1), iterations=1)
    assert not stopped.closed and stopped.iterations == 1
    assert stopped.error == np.abs(lw.loops.constraint_error(mech, stopped.q)).max()
    already = project_position(mech, q)
    assert already.closed and already.iterations == 0


def test_a_loop_that_cannot_close_is_named():
    mech = triangle(1.3)
    with pytest.raises(ClosureError, match=r"loop 'apex' of 'triangle' is still off by 0\.\d"):
        lw.loops.project_position(mech, np.array([0.4, -0.4])).required()


def test_the_worst_state_of_a_batch_is_named():
    mech, q = case("four bar")
    far = np.stack([q, q + np.array([0.0, 0.5, -0.5])])
    with pytest.raises(ClosureError, match="in state 1 of the batch"):
        lw.loops.project_position(mech, far, iterations=1).required()


def test_batches_are_rows():
    mech, q = case("nested")
    start = np.stack([disturbed(mech, q, 0.02, seed) for seed in range(4)])
    projection = lw.loops.project_position(mech, start).required()
    v = np.random.default_rng(0).standard_normal((4, mech.nv))
    slow = lw.loops.project_velocity(mech, projection, v)
    for i in range(4):
        assert (
            np.abs(projection[i] - lw.loops.project_position(mech, start[i]).required()).max()
            < 1e-12
        )
        assert np.abs(slow[i] - lw.loops.project_velocity(mech, projection[i], v[i])).max() < 1e-12
    one = lw.loops.project_velocity(mech, projection[0], v)
    assert np.abs(one[2] - lw.loops.project_velocity(mech, projection[0], v[2])).max() < 1e-12
    empty = lw.loops.project_position(mech, np.zeros((0, mech.nq))).required()
    assert empty.shape == (0, mech.nq)


@pytest.mark.parametrize("weight", [None, "mass"])
@pytest.mark.parametrize("name", CASES)
def test_velocities_obey_and_are_nearest(name, weight):
    mech, q = case(name)
    v = np.random.default_rng(5).standard_normal(mech.nv)
    result = lw.loops.project_velocity(mech, q, v, weight=weight)
    J = lw.loops.constraint_jacobian(mech, q)
    rank = CASES[name] or np.linalg.matrix_rank(J, tol=1e-9)
    assert np.abs(J @ result).max() < 1e-12
    if weight == "mass":
        W = lw.mass_matrix(mech, q)
    else:
        W = np.diag(lw.dynamics.velocity_space.scale(mech).columns ** -2.0)
    free = null_space(J, rank)
    # Nearest: the difference is orthogonal to all that is free. Tolerance: the condition of 𝓜
    # (up to 1e5 here) times rounding.
    assert np.abs(free.T @ W @ (v - result)).max() < 1e-10 * np.abs(W @ v).max()
    assert np.abs(result - v).max() > 1e-3
    again = lw.loops.project_velocity(mech, q, result, weight=weight)
    assert np.abs(again - result).max() < 1e-11 * np.abs(v).max()


def test_velocity_loses_energy_only():
    """½ v* 𝓜 v = ½ v'* 𝓜 v' + ½ (v - v')* 𝓜 (v - v'), as of any impact without restitution."""
    mech, q = case("dual arm")
    v = np.random.default_rng(6).standard_normal(mech.nv)
    slow = lw.loops.project_velocity(mech, q, v)
    energies = [lw.dynamics.kinetic_energy(mech, q, x) for x in (v, slow, v - slow)]
    assert abs(energies[0] - energies[1] - energies[2]) < 1e-10 * energies[0]


def test_without_constraints_nothing_changes():
    arm = lw.models.puma560()
    q, v = arm.random(0), arm.random_velocity(1)
    assert (lw.loops.project_position(arm, q).required() == q).all()
    assert (lw.loops.project_velocity(arm, q, v) == v).all()


def test_bad_arguments():
    mech, q = case("four bar")
    with pytest.raises(ModelError, match="weight is 'energy'"):
        lw.loops.project_velocity(mech, q, np.zeros(3), weight="energy")
    with pytest.raises(ModelError, match="tolerance is -1"):
        lw.loops.project_position(mech, q, tolerance=-1).required()
    with pytest.raises(ShapeError, match="v has shape"):
        lw.loops.project_velocity(mech, q, np.zeros(4))
    with pytest.raises(ShapeError, match="do not fit: their batches differ"):
        lw.loops.project_velocity(mech, np.zeros((2, 3)), np.zeros((3, 3)))


@pytest.mark.parametrize("name", ["four bar", "dual arm"])
def test_the_kernel_of_one_velocity_beside_singular_values(name, monkeypatch):
    """One state by its kernel is a row of a batch by NumPy; without a result, NumPy does it."""
    mech, q = case(name)
    v = np.random.default_rng(8).standard_normal(mech.nv)
    slow = lw.loops.project_velocity(mech, q[None], v[None])[0]
    monkeypatch.setattr("linkwise.loops.projection.states", None)
    quick = lw.loops.project_velocity(mech, q, v)
    np.testing.assert_allclose(quick, slow, atol=1e-12)
    assert np.abs(quick - v).max() > 1e-3
    J = lw.loops.constraint_jacobian(mech, q)
    assert np.abs(J @ quick).max() < 1e-14 * max(1.0, np.abs(J).max())


def test_velocities_where_loops_lose_a_row():
    """A flat parallelogram: fewer rows than nearby, which the kernel leaves to NumPy."""
    mech, flat = parallelogram(), np.zeros(3)
    J = lw.loops.constraint_jacobian(mech, flat)
    around = lw.loops.assemble(mech, np.array([0.4, -0.4, 0.4])).q
    assert np.linalg.matrix_rank(J, 1e-9) < np.linalg.matrix_rank(
        lw.loops.constraint_jacobian(mech, around), 1e-9
    )
    lw.loops.project_velocity(mech, around, np.ones(3))  # the usual rank
    v = lw.loops.project_velocity(mech, flat, np.array([0.3, -0.2, 0.5]))
    assert np.abs(J @ v).max() < 1e-12 and np.abs(v).max() > 1e-2
