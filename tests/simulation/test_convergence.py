"""Orders of convergence of all integrators, and energy over long runs.

docs/evidence/integrators.md has the complete study (`tools/integrators.py`); this is a short one.
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.simulation.moving import reference, tumbling

ORDERS = {"euler": 1.0, "variational": 2.0, "rk4": 4.0, "rk4_mujoco": 4.0}
START = np.array([0.3, 0.8, -0.4, 1.0, 0.2, -0.5, 0.1])


def energy(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    flat_q, flat_v = q.reshape(-1, mech.nq), v.reshape(-1, mech.nv)
    total = lw.dynamics.kinetic_energy(mech, flat_q, flat_v) + lw.dynamics.potential_energy(
        mech, flat_q
    )
    return np.reshape(total, q.shape[:-1])


def moved(
    mech: lw.Mechanism, name: str, q, v, step: float, duration: float
) -> lw.simulation.Rollout:
    return lw.rollout(mech, q, v, duration=duration, step=step, integrator=name, passive=False)


def slope(steps, errors) -> float:
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.parametrize("name", ORDERS)
def test_energy_of_a_free_arm(name: str) -> None:
    """Two seconds of fall; errors from 1 J down to 1e-9 J, all above rounding (1e-12 J)."""
    mech, steps = lw.models.seven_dof_arm(), (8e-3, 4e-3, 2e-3, 1e-3)
    errors = list[float]()
    for h in steps:
        done = moved(mech, name, mech.neutral() + START, np.zeros(mech.nv), h, 2.0)
        result = energy(mech, done.q, done.v)
        errors.append(float(np.abs(result - result[0]).max()))
    # Higher orders add a few percent at the longest step; a whole order would be off by one.
    assert slope(steps, errors) == pytest.approx(ORDERS[name], abs=0.1)


@pytest.mark.parametrize("name", ORDERS)
def test_path_of_a_free_arm(name: str) -> None:
    mech, steps = lw.models.seven_dof_arm(), (8e-3, 4e-3, 2e-3, 1e-3)
    q, v = mech.neutral() + START, np.zeros(mech.nv)
    exact, _ = reference(mech, q, v, 1.0)
    errors = [np.abs(moved(mech, name, q, v, h, 1.0).q[-1] - exact).max() for h in steps]
    assert slope(steps, errors) == pytest.approx(ORDERS[name], abs=0.1)


@pytest.mark.parametrize("name", ORDERS)
def test_path_with_quaternions(name: str) -> None:
    """A free body with a ball joint tumbles: turns that do not commute cost no order."""
    mech, steps = tumbling(), (1.6e-2, 8e-3, 4e-3)
    q, v = mech.random(seed=1), 2.0 * mech.random_velocity(seed=2)
    exact, _ = reference(mech, q, v, 0.4)
    errors = [
        np.abs(mech.difference(exact, moved(mech, name, q, v, h, 0.4).q[-1])).max() for h in steps
    ]
    assert slope(steps, errors) == pytest.approx(ORDERS[name], abs=0.15)


def test_the_adaptive_integrator_follows_its_tolerance() -> None:
    mech = lw.models.seven_dof_arm()
    q, v = mech.neutral() + START, np.zeros(mech.nv)
    exact, _ = reference(mech, q, v, 1.0)
    tolerances, errors = (1e-5, 1e-7, 1e-9, 1e-11), list[float]()
    for tol in tolerances:
        done = lw.simulate(
            mech, q, v, duration=1.0, integrator="adaptive", passive=False, rtol=tol, atol=tol
        )
        errors.append(float(np.abs(done.q[-1] - exact).max()))
    # The error of a step is kept near the tolerance; errors at the end are in proportion.
    assert slope(tolerances, errors) == pytest.approx(1.0, abs=0.15)
    assert all(error < 100.0 * tol for error, tol in zip(errors, tolerances, strict=True))


def long_run(name: str, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and errors of the energy (motions, k) of an arm that has fallen for a while."""
    mech, rng = lw.models.seven_dof_arm(), np.random.default_rng(0)
    q = mech.neutral() + START + 0.4 * rng.standard_normal((16, mech.nq))
    v = np.zeros((16, mech.nv))
    warm = lw.rollout(mech, q, v, duration=200.0, step=4e-3, record_every=50_000, passive=False)
    q, v = warm.q[:, -1], warm.v[:, -1]
    done = lw.rollout(
        mech,
        q,
        v,
        duration=steps * 1e-3,
        step=1e-3,
        integrator=name,
        record_every=200,
        passive=False,
    )
    result = energy(mech, done.q, done.v)
    return done.t, result - result[:, :1]


def check_bounded(steps: int) -> None:
    t, error = long_run("variational", steps)
    slopes = np.polyfit(t, error.T, 1)[0]
    spread = slopes.std(ddof=1) / np.sqrt(len(slopes))
    # No trend: within four standard errors of zero, and these are small against the swing itself.
    assert abs(slopes.mean()) < 4.0 * spread
    assert spread * t[-1] < 0.1 * np.abs(error).max()
    parts = [np.median(np.abs(x).max(axis=1)) for x in np.array_split(error[:, 1:], 4, axis=1)]
    assert max(parts) < 1.5 * min(parts)
    assert np.abs(error).max() < 1e-3


@pytest.mark.prove
def test_energy_of_the_variational_integrator_has_no_trend() -> None:
    check_bounded(60_000)


def test_energy_of_semi_implicit_euler_has_one() -> None:
    """The same measure sees a trend where there is one."""
    t, error = long_run("euler", 60_000)
    slopes = np.polyfit(t, error.T, 1)[0]
    assert slopes.mean() > 4.0 * slopes.std(ddof=1) / np.sqrt(len(slopes))


@pytest.mark.nightly
@pytest.mark.slow
def test_energy_stays_bounded_over_a_million_steps() -> None:
    check_bounded(1_000_000)
