"""States in which arms do not hold the object are refused; small drift of a simulation is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array
from tests.grasp.multi_effector_systems import moving, redundant

CALLS: dict[str, Callable[[lw.Mechanism, Array, Array], object]] = {
    "augmented_object": lw.grasp.augmented_object,
    "object_torque": lambda mech, q, v: lw.grasp.ObjectController(mech).torque(q, v, np.zeros(6)),
    "controller": lambda mech, q, v: lw.grasp.ObjectController(mech, 100.0, 20.0)(
        q, v, mech.pose(mech.neutral(), "object")
    ),
}


def opened(mech: lw.Mechanism, by: float) -> Array:
    """The joints of all arms turned, and the object left where it is."""
    turn, rows = np.zeros(mech.nv), lw.grasp.multi_arm_parts(mech).arm_rows
    turn[rows] = by * np.linspace(1.0, 1.1, len(rows))  # no two arms alike
    return mech.integrate(mech.neutral(), turn)


@pytest.mark.parametrize("name", CALLS)
def test_open_loops_are_refused_with_their_name(name: str) -> None:
    """All arm joints turned by 0.3 rad or more: the worst loop is named, with its own gap."""
    mech, still = redundant(), np.zeros(redundant().nv)
    q = opened(mech, 0.3)
    gaps = np.linalg.norm(lw.loops.constraint_error(mech, q, per="loop").reshape(2, 2, 3), axis=-1)
    assert gaps.max() > 1.0
    worst = int(np.argmax(gaps.max(axis=1)))
    angle, distance = gaps[worst]
    message = (
        f"'grasp_{worst + 1}'.*open by {distance:.3g} m and {angle:.3g} rad.*lw.loops.assemble"
    )
    with pytest.raises(lw.ClosureError, match=message):
        CALLS[name](mech, q, still)
    CALLS[name](mech, mech.neutral(), still)
    with pytest.raises(lw.ClosureError, match="in state 1 of 2"):
        CALLS[name](mech, np.stack([mech.neutral(), q]), np.stack([still, still]))


@pytest.mark.parametrize("name", CALLS)
def test_velocities_that_pull_loops_apart_are_refused(name: str) -> None:
    """Only the second arm moves: its loop is named, and the speed of its hand is said."""
    mech = redundant()
    q, v = moving(mech, 2)
    CALLS[name](mech, q, v)
    v = np.zeros(mech.nv)
    v[mech.v_slice("arm_2_elbow_pitch_link")] = 0.8
    row = np.abs(lw.loops.constraint_jacobian(mech, q) @ v).max()
    with pytest.raises(lw.ClosureError, match=rf"'grasp_2'.*= {row:.3g} m/s.*project_velocity"):
        CALLS[name](mech, q, v)


def test_a_load_of_an_open_chain_is_refused() -> None:
    with pytest.raises(lw.ClosureError, match=r"grasp_[12]' is open by"):
        lw.grasp.reflected_load(redundant(), opened(redundant(), 0.3), "grasp_1")


@pytest.mark.parametrize("name", CALLS)
def test_drift_of_a_simulation_passes(name: str) -> None:
    """1e-6 as at the beginning of a motion, 1e-4 as between long steps; 1e-2 is open."""
    mech = redundant()
    q, v = moving(mech, 3)
    away = np.random.default_rng(0).standard_normal(mech.nv)
    for size in (1e-6, 1e-4):
        CALLS[name](mech, mech.integrate(q, size * away), v + 1e2 * size * away)
    with pytest.raises(lw.ClosureError):
        CALLS[name](mech, mech.integrate(q, 1e-2 * away), v)
