"""Objects with fewer motions than six, since an arm has: 003, (70), (71), against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array
from tests.grasp.multi_effector_systems import (
    accelerated,
    close,
    driven,
    grasped,
    planar_and_spatial,
    straight_wrist,
)
from tests.loops.dense_kkt import allowed_velocity, dense_motion


def at_rest_and_moving(mech: lw.Mechanism, q: Array) -> tuple[Array, Array]:
    theta = {loop.name: np.zeros(0) for loop in mech.loops}
    v = allowed_velocity(mech, q, theta, np.random.default_rng(3).standard_normal(mech.nv))
    tau = driven(mech, 4)
    return v, dense_motion(mech, q, v, tau, theta).vdot


@pytest.mark.parametrize(
    "name", ["planar and spatial", pytest.param("straight wrist", marks=pytest.mark.slow)]
)
def test_where_the_object_has_fewer_motions(name: str) -> None:
    """(70): m = min m_i here; what the arms enforce is part of ẍ, and no force changes it."""
    mech, q = planar_and_spatial() if name == "planar and spatial" else straight_wrist()
    v, vdot = at_rest_and_moving(mech, q)
    augmented = lw.grasp.augmented_object(mech, q, v)
    expected = (3, [3, 6]) if name == "planar and spatial" else (5, [5, 6])
    assert (augmented.rank, [arm.rank for arm in augmented.arms.values()]) == expected
    assert np.abs(v).max() > 0.1
    result = augmented.acceleration(augmented.total_force(driven(mech, 4)))
    close(result, accelerated(mech, q, v, vdot), bound=1e-8)
    close(augmented.lost.T @ result, augmented.lost.T @ augmented.enforced, bound=1e-8)
    if augmented.rank == 3:
        close(
            augmented.inertia,
            lw.operational_space(mech, q, "object", frame="world").inertia,
            bound=1e-9,
        )
    assert (
        np.abs(augmented.lost.T @ augmented.inertia).max() < 1e-9 * np.abs(augmented.inertia).max()
    )


def test_71_where_an_arm_could_do_more() -> None:
    """m = 3 < m_2 = 6: the arm is not free in the other directions, as (17) on m rows says."""
    mech, q = planar_and_spatial()
    augmented = lw.grasp.augmented_object(mech, q)
    arm, exist = augmented.arm("grasp_2"), augmented.directions
    mass = lw.mass_matrix(mech, q)[np.ix_(arm.rows, arm.rows)]
    Omega = arm.jacobian @ np.linalg.solve(mass, arm.jacobian.T)
    held = exist.T @ np.linalg.inv(Omega) @ exist
    close(exist.T @ arm.inertia @ exist, held, bound=1e-9)
    free = np.linalg.inv(exist.T @ Omega @ exist)  # "the procedure for a single redundant arm"
    assert np.linalg.eigvalsh(held - free)[-1] > 0.1 * np.linalg.eigvalsh(held)[-1]
    assert np.linalg.eigvalsh(held - free)[0] > -1e-9
    # It is six axes for six rows: no motion is left to it, though n_i - m = 3.
    assert np.linalg.matrix_rank(lw.loops.constraint_jacobian(mech, q), tol=1e-9) == mech.nv - 3


def test_an_arm_without_freedoms_holds_the_object_still() -> None:
    b = lw.Builder("held still")
    b.body("post", hinge=lw.hinges.Locked(), inertia=lw.SpatialInertia.point(1.0))
    b.body(
        "pin", hinge=lw.hinges.Pin((0, 0, 1)), inertia=lw.SpatialInertia.solid_box(1.0, (0.1,) * 3)
    )
    mech, q = grasped(b, {}, ["post", "pin"])
    augmented = lw.grasp.augmented_object(mech, q)
    assert (augmented.rank, [arm.rank for arm in augmented.arms.values()]) == (0, [0, 1])
    assert not augmented.inertia.any() and not augmented.acceleration(np.ones(6)).any()
    tau = lw.grasp.ObjectController(mech).torque(q, np.zeros(mech.nv), np.ones(6))
    assert not tau.acceleration.any() and np.isfinite(tau.tau).all()
