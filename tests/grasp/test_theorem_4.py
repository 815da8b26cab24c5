"""Theorem 4 of 003, (74)-(76): what one arm may do without moving the object that others hold too.

The reference is the closed chain itself: joint forces of one arm go into
`forward_dynamics`, and the object is looked at.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array
from tests.grasp.multi_effector_systems import moving, planar_and_spatial, redundant
from tests.grasp.random_systems import random_system

STILL = 1e-11
"""Of the accelerations of the arm's own joints: rounding of a closed chain of condition 1e4."""

POSITION = np.eye(6)[3:]


@cache
def closed_chain(seed: int) -> tuple[lw.Mechanism, Array, lw.grasp.ReflectedLoad, Array, Array]:
    """A state of two redundant arms; the load of the second; v̇ and ẍ for each unit of its Γ."""
    mech = redundant()
    q, _ = moving(mech, seed)
    load = lw.grasp.reflected_load(mech, q, "grasp_2")
    return mech, q, load, *responses(mech, q, load.arm.rows)


def responses(mech: lw.Mechanism, q: Array, rows: Array) -> tuple[Array, Array]:
    """How joints and object respond to joint forces along some rows, in the closed chain."""
    unit = np.zeros((len(rows) + 1, mech.nv))
    unit[np.arange(len(rows)), rows] = 1.0
    at = np.broadcast_to(q, (len(unit), mech.nq))
    vdot = lw.forward_dynamics(mech, at, np.zeros_like(unit), unit)
    moved = (vdot[:-1] - vdot[-1]).T
    return moved[rows], lw.jacobian(mech, q, "object", frame="world") @ moved


def generalised(mass: Array, J: Array) -> Array:
    """𝓜⁻¹ J* (J 𝓜⁻¹ J*)⁻¹, as (22) and (75) are printed."""
    back = np.linalg.solve(mass, J.T)
    return back @ np.linalg.inv(J @ back)


def null(J: Array, inverse: Array) -> Array:
    """1 - J* J̄*: of joint forces what (76) adds."""
    return np.eye(J.shape[1]) - J.T @ inverse.T


def test_74_is_the_inertia_that_the_joints_have() -> None:
    """v̇_i = 𝓜_+i⁻¹ Γ_i in the closed chain."""
    _, _, load, joints, moved = closed_chain(1)
    size = np.abs(joints).max()
    assert np.abs(np.linalg.inv(load.mass_matrix) - joints).max() < STILL * size
    assert np.abs(load.response - joints).max() < STILL * size
    assert np.abs(load.object_response - moved).max() < STILL * size
    assert "arm_2" in str(load)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_76_moves_the_arm_and_not_the_object(seed: int) -> None:
    """With J̄ of Theorem 4; a pseudo-inverse that knows no masses does move it."""
    mech, q, load, joints, moved = closed_chain(seed)
    J, size = load.arm.jacobian, np.abs(joints).max()
    printed = generalised(load.mass_matrix, J)
    assert np.abs(printed - load.consistent_inverse()).max() < 1e-10
    free = null(J, printed)
    assert np.abs(moved @ free).max() < STILL * size
    assert np.abs(joints @ free).max() > 1e-2 * size  # the elbow moves
    assert np.abs(moved @ null(J, np.linalg.pinv(J))).max() > 1e-3 * size
    tau = np.zeros(mech.nv)
    tau[load.arm.rows] = load.null_torque(np.arange(7.0))
    rest = lw.forward_dynamics(mech, q, np.zeros(mech.nv), np.zeros(mech.nv))
    result = lw.forward_dynamics(mech, q, np.zeros(mech.nv), tau) - rest
    assert (
        np.abs(result[lw.grasp.multi_arm_parts(mech).object_rows]).max()
        < STILL * np.abs(result).max()
    )


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_75_does_not_depend_on_the_load(seed: int) -> None:
    """The J̄ of the arm alone is the same: the load is felt through J v only (Woodbury)."""
    mech, q, load, _, moved = closed_chain(seed)
    J, rows = load.arm.jacobian, load.arm.rows
    mass = lw.mass_matrix(mech, q)[np.ix_(rows, rows)]
    alone, printed = generalised(mass, J), generalised(load.mass_matrix, J)
    assert np.abs(mass - load.mass_matrix).max() > 1.0  # though the inertias are far apart
    assert np.abs(alone - printed).max() < 1e-11 * np.abs(alone).max()
    assert np.abs(alone - load.arm.consistent_inverse).max() < 1e-11 * np.abs(alone).max()
    assert np.abs(moved @ null(J, alone)).max() < STILL * np.abs(moved).max()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_load_matters_for_part_of_the_motion(seed: int) -> None:
    """For the position of the object alone: with 𝓜_+i it stays, with 𝓜_i it moves."""
    mech, q, load, joints, moved = closed_chain(seed)
    rows, J = load.arm.rows, POSITION @ load.arm.jacobian
    free = null(J, load.consistent_inverse(POSITION))
    assert np.abs(generalised(load.mass_matrix, J) - load.consistent_inverse(POSITION)).max() < 1e-9
    size = np.abs(joints).max()
    assert np.abs(moved[3:] @ free).max() < STILL * size
    assert np.abs(moved[:3] @ free).max() > 1e-3 * size  # it may turn
    mass = lw.mass_matrix(mech, q)[np.ix_(rows, rows)]
    assert np.abs(moved[3:] @ null(J, generalised(mass, J))).max() > 1e-3 * size


def test_an_arm_that_could_do_more_than_the_object() -> None:
    """m = 3 < m_2 = 6: no finite load, but a response; (75) in m rows is not consistent."""
    mech, q = planar_and_spatial()
    load = lw.grasp.reflected_load(mech, q, "arm_2_tip")
    joints, moved = responses(mech, q, load.arm.rows)
    size = np.abs(joints).max()
    assert np.abs(load.response - joints).max() < 1e-9 * size
    assert np.abs(load.object_response - moved).max() < 1e-9 * size
    J = load.arm.jacobian
    assert np.abs(moved @ null(J, load.consistent_inverse())).max() < 1e-9 * size
    rows = lw.grasp.augmented_object(mech, q).directions.T
    mass = lw.mass_matrix(mech, q)[np.ix_(load.arm.rows, load.arm.rows)]
    of_m_rows = generalised(mass, rows @ J)
    assert np.abs(moved @ null(rows @ J, of_m_rows)).max() > 1e-3 * size


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_redundant_arms(seed: int) -> None:
    """Drawn arms of seven to nine axes, contacts of any kind; each arm in turn."""
    grasps = (("locked",), ("pin", "locked"), ("spherical",))[seed % 3]
    s = random_system(seed, arms=2 + seed % 2, links=(7, 9), grasps=grasps)
    for loop in s.mech.loops:
        load = lw.grasp.reflected_load(s.mech, s.q, loop.name)
        joints, moved = responses(s.mech, s.q, load.arm.rows)
        size = np.abs(joints).max()
        assert np.abs(load.response - joints).max() < 1e-8 * size
        assert np.abs(load.object_response - moved).max() < 1e-8 * size
        if grasps == ("locked",):
            assert np.abs(np.linalg.inv(load.mass_matrix) - joints).max() < 1e-8 * size
            J = load.arm.jacobian
            assert np.abs(moved @ null(J, load.consistent_inverse())).max() < 1e-8 * size


def test_what_is_refused() -> None:
    mech, q, load, *_ = closed_chain(1)
    with pytest.raises(lw.ModelError, match="no arm called 'grasp_7'"):
        lw.grasp.reflected_load(mech, q, "grasp_7")
    with pytest.raises(lw.ModelError, match=r"'object' .* is the object itself"):
        lw.grasp.reflected_load(mech, q, "object")
    with pytest.raises(lw.ShapeError, match="this takes one state"):
        lw.grasp.reflected_load(mech, np.stack([q, q]), "grasp_1")
    with pytest.raises(lw.ShapeError, match=r"must be \(k, 6\)"):
        load.consistent_inverse(np.eye(3))
    with pytest.raises(lw.ShapeError, match="must have shape \\(7,\\): give tau"):
        load.null_torque(np.zeros(mech.nv))
    idle = mech.without("grasp_2")
    with pytest.raises(lw.ModelError, match=r"'arm_2_.*does not hold the object"):
        lw.grasp.reflected_load(idle, q, idle.node("arm_2_hand").body)
