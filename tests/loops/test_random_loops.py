"""Random trees with random loops of every kind and couplings: all that is about closed chains.

Slow: every mechanism is compiled anew. References are dense: singular vectors of J_c and a mass
matrix made from hinge maps.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.dense_kinematics import mass_matrix
from tests.loops.random_loops import KINDS, looped

SEEDS = range(8)


def drawn(seed: int):
    """Three loops of kinds that go round with the seed, one of them to the ground, one coupling."""
    kinds = tuple(KINDS[(3 * seed + i) % len(KINDS)] for i in range(3))
    hinges = ("pin", "spherical", "prismatic", "universal", "cylindrical", "gimbal", "planar")
    hinges += ("pin", "translation", "rolling_ball", "screws", "helical")
    return looped(seed, kinds, n=11, couplings=1, hinges=hinges, ground=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_loops(seed):
    mech, q = drawn(seed)
    rng = np.random.default_rng(seed)
    J_c, M = lw.loops.constraint_jacobian(mech, q), mass_matrix(mech, q)
    mobility = lw.loops.mobility(mech, q)
    values = np.linalg.svd(J_c, compute_uv=False)
    assert not ((values > 1e-12) & (values < 1e-7)).any(), "the draw is near singular"
    assert mobility.rank == int((values > 1e-9).sum())
    free = np.linalg.svd(J_c)[2][mobility.rank :].T

    disturbed = mech.integrate(q, 0.02 * rng.standard_normal(mech.nv))
    back = lw.loops.project_position(mech, disturbed)
    assert back.closed and back.iterations <= 8
    assert np.abs(lw.loops.constraint_error(mech, back.q, per="loop")).max() < 1e-11

    v = lw.loops.project_velocity(mech, q, rng.standard_normal(mech.nv))
    assert np.abs(J_c @ v).max() < 1e-11 * np.abs(v).max()

    here = lw.loops.independent_coordinates(mech, q)
    rate = rng.standard_normal(len(here))
    vdot = here.acceleration(v, rate)
    bias = lw.loops.constraint_bias(mech, q, v)
    size = max(np.abs(vdot).max(), np.abs(bias).max())
    assert np.abs(J_c @ vdot + bias).max() < 1e-9 * size

    forces = lw.loops.drive_forces(mech, q, v, vdot, actuated=here.names)
    needed = M @ vdot + lw.bias_force(mech, q, v)
    given = forces.tau + J_c.T @ forces.constraint_forces
    assert forces.achievable and np.abs(given - needed).max() < 1e-9 * np.abs(needed).max()

    node = mech.bodies[-1].name
    J = lw.jacobian(mech, q, node)
    expected = J @ free @ np.linalg.inv(free.T @ M @ free) @ free.T @ J.T
    inverse = lw.dynamics.operational_inertia_inverse(mech, q, node)
    # Singular vectors of J_c, and what is made of them, are good to rounding over the smallest
    # singular value that counts.
    bound = 1e-14 / values[mobility.rank - 1] * np.linalg.cond(M)
    assert np.abs(inverse - expected).max() < max(1e-9, bound) * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_loops_are_assembled(seed):
    """From random positions, without limits: they hold at one configuration at least."""
    mech, q = drawn(seed)
    held = mech.bodies[0].hinge_name
    guess = mech.integrate(q, np.random.default_rng(seed).standard_normal(mech.nv))
    guess[mech.q_slice(held)] = q[mech.q_slice(held)]
    assembly = lw.loops.assemble(mech, guess, hold=[held], limits=False)
    assert assembly.converged
    assert (assembly.q[mech.q_slice(held)] == q[mech.q_slice(held)]).all()
    for loop in mech.loops:  # a helix may have wound up: its coordinate tells how often
        X_AB = mech.pose(assembly.q, loop.node_a).inverse() @ mech.pose(assembly.q, loop.node_b)
        expected = loop.hinge.pose(assembly.loop_coordinates[loop.name])
        assert np.abs(expected.matrix - X_AB.matrix).max() < 1e-11
    assert np.abs(assembly.q - mech.couple(assembly.q)).max() < 1e-11
