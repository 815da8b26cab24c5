"""Control of an object by arms that can do more than it, or by one that can do less: 003, (76)."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.spatial.array import Array
from tests.grasp.multi_effector_systems import (
    accelerated_by,
    contacts,
    moving,
    planar_and_spatial,
    redundant,
)

UNIT_MASS = 1e-8
"""[m/s²]: what is asked of (69)."""

FORCES = 1e-8
"""[N]: contact forces of a closed chain, some 100 N large, with a condition of 1e4 or so."""


def test_postures_of_redundant_arms() -> None:
    """(76): what is inside the arms does not reach the object, nor the contact forces."""
    mech = redundant()
    q, v = moving(mech, 4)
    tau0 = 10.0 * np.random.default_rng(1).standard_normal(mech.nv)
    expected = np.array([0.1, 0.2, -0.3, 0.5, 1.0, -1.0])
    held = lw.Grasp.of(mech, lw.grasp.Contact("rigid"))
    taus = list[Array]()
    for compensate in ("joints", "task"):
        tau = lw.grasp.ObjectController(mech, compensate=compensate).torque(
            q, v, expected, tau0=tau0
        )  # type: ignore
        assert np.abs(accelerated_by(mech, q, v, tau.tau) - expected).max() < UNIT_MASS
        assert np.abs(held.contact_forces(q, v, tau.tau) - contacts(tau)).max() < FORCES
        taus.append(tau.tau)
    plain = lw.grasp.ObjectController(mech).torque(q, v, expected)
    augmented = lw.grasp.augmented_object(mech, q, v)
    posture = lw.tasks.Posture(mech.neutral(), kp=20.0, kv=5.0)
    goal = lw.Goal(lw.Pose.identity(), acceleration=expected)
    calm = lw.grasp.ObjectController(mech, 1.0, 2.0)(q, v, goal)
    drawn = lw.grasp.ObjectController(mech, 1.0, 2.0, posture=posture)(q, v, goal)
    for arm in augmented.arms.values():
        pull = arm.null_torque(posture.torque(mech, q, v)[arm.rows])
        assert np.allclose((drawn - calm)[arm.rows], pull, atol=1e-9)
    for arm in augmented.arms.values():  # exactly the torque of the theorem
        more = taus[0][arm.rows] - plain.tau[arm.rows]
        assert np.allclose(more, arm.null_torque(tau0[arm.rows]), atol=1e-9)
        assert np.abs(more).max() > 0.1
        # Compensated in the joints, the arm does not fall inside: what differs is C between N*.
        bias = lw.bias_force(mech, q, v)[arm.rows]
        assert np.allclose((taus[0] - taus[1])[arm.rows], arm.null_torque(bias), atol=1e-8)


def test_an_object_that_cannot_move_in_every_way() -> None:
    """What exists of F* is done; the rest is enforced by the arms."""
    mech, q = planar_and_spatial()
    v = lw.loops.project_velocity(mech, q, np.random.default_rng(0).standard_normal(mech.nv))
    expected = np.arange(1.0, 7.0)
    tau = lw.grasp.ObjectController(mech, share="effort").torque(q, v, expected)
    augmented = lw.grasp.augmented_object(mech, q, v)
    moved = accelerated_by(mech, q, v, tau.tau)
    assert np.abs(augmented.directions.T @ (moved - expected)).max() < UNIT_MASS
    assert np.abs(moved - tau.acceleration).max() < UNIT_MASS
