"""Optima with bounds on states are those of a quadratic programme."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Bound
from linkwise.errors import TroubleWarning
from linkwise.spatial.array import Array
from tests.control.test_optimize import STEP, costs, sliders

START, HORIZON = np.array([0.4, -0.3]), 20


def rolled(u: Array) -> Any:
    return lw.rollout(
        sliders(), START, tau=u, duration=STEP * HORIZON, step=STEP, integrator="euler"
    )


def residuals(u: Array) -> tuple[Array, Array]:
    """Residuals whose half square is the cost of `costs()`, and the velocities."""
    run = rolled(u)
    weights = np.full((HORIZON + 1, 1), STEP)
    weights[-1] = 10.0
    last = weights / [1.0]
    last[-1] = 1.0
    each = [np.sqrt(weights) * run.q, np.sqrt(last * np.where(last < 1.0, 0.1, 1.0)) * run.v]
    return np.concatenate([x.ravel() for x in [*each, np.sqrt(0.05 * STEP) * u]]), run.v.ravel()


def least_cost(most: float) -> float:
    """The least cost with velocities up to `most`, by the least distance programme of Lawson."""
    optimize = pytest.importorskip("scipy.optimize")
    zero, v0 = residuals(np.zeros((HORIZON, 2)))
    units = np.eye(2 * HORIZON).reshape(-1, HORIZON, 2)
    columns = [residuals(u) for u in units]
    A = np.stack([r - zero for r, _ in columns], axis=1)
    V = np.stack([v - v0 for _, v in columns], axis=1)
    # min |A u + zero|² with G u ≥ h: z = R u + Q* zero
    G, h = np.concatenate([V, -V]), np.concatenate([-most - v0, v0 - most])
    Q, R = np.linalg.qr(A)
    shift = Q.T @ zero
    G = G @ np.linalg.inv(R)
    h = h + G @ shift
    E = np.concatenate([G.T, h[None]])
    y, distance = optimize.nnls(E, np.eye(2 * HORIZON + 1)[-1], maxiter=10000)
    assert distance > 0.0
    r = E @ y - np.eye(2 * HORIZON + 1)[-1]
    z = -r[:-1] / r[-1]
    u = np.linalg.solve(R, z - shift)
    return 0.5 * float(np.sum((A @ u + zero) ** 2))


@pytest.mark.parametrize("most", [0.2, 0.3, 0.35, 0.4])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-12])
def test_optimum_is_that_of_a_quadratic_programme(most: float, tolerance: float) -> None:
    allowed = min(1e-5, 1e3 * tolerance)
    given: Any = {
        "costs": costs(), "bounds": Bound.on_velocity(-most, most), "step": STEP,
        "horizon": HORIZON, "tolerance": tolerance, "violation": allowed,
    }  # fmt: skip
    made = lw.optimize(sliders(), START, **given)
    assert made.status == 0 and made.violation <= allowed
    least = least_cost(most)
    assert least > 1.001 * lw.optimize(sliders(), START, costs=costs(), step=STEP, horizon=20).cost
    # what bounds are exceeded by may lower the cost
    assert -1e-4 * (allowed / 1e-5) < (made.cost - least) / least < 10.0 * tolerance + 1e-10
    many = lw.optimize(sliders(), np.tile(START, (3, 1)), **given)
    assert (many.iterations == made.iterations).all()
    assert np.allclose(many.cost, made.cost, rtol=1e-10)


def test_violated_bounds_are_named() -> None:
    given: Any = {"costs": costs(), "step": STEP, "horizon": HORIZON}
    late = Bound.on_position([0.4, 3.0], [0.4, 4.0], when="final")
    fast = Bound.on_velocity(-0.5, 0.5)
    with pytest.warns(TroubleWarning) as caught:
        lw.optimize(sliders(), START, bounds=[late, fast], **given)
    (only,) = [str(x.message) for x in caught]
    assert re.search(r"the position of 'y' is \S+ at knot 20 \(1 s\) and must be at least 3", only)
    starts = np.stack([START, START])
    goals = np.array([[0.4, -0.3], [2.0, -0.3]])
    slow = Bound.on_task(lw.Task.joints("x", "y"), goals, when="final")
    with pytest.warns(TroubleWarning, match=r"'x' is .* at knot 20 .* in problem 1"):
        lw.optimize(sliders(), starts, bounds=[slow, fast], **given)
    with pytest.warns(TroubleWarning, match="may be out of reach"):
        lw.optimize(sliders(), START, bounds=[late, fast], iterations=5, **given)


def test_a_start_that_violates_a_bound_is_reported_at_once() -> None:
    seen = list[int]()
    given: Any = {"costs": costs(), "step": STEP, "horizon": HORIZON}

    def count(caught: list[warnings.WarningMessage]) -> None:
        seen.append(len(caught))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lw.optimize(
            sliders(), START, [0.0, 2.0], bounds=Bound.on_velocity(-1.0, 1.0), **given,
            progress=lambda _: count(caught),
        )  # fmt: skip
    first = str(caught[0].message)
    assert seen[0] == 1 and "no motion can mend" in first
    assert "the velocity of 'y' is 2 at the start and must be at most 1" in first
    # infinite bounds at the first knot are the remedy
    high = np.full((HORIZON + 1, 2), 1.0)
    high[:2] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = lw.optimize(
            sliders(), START, [0.0, 2.0], bounds=Bound.on_velocity(-1, high), **given
        )
    assert made.status == 0 and made.v[2:].max() <= 1.0 + 1e-5
    starts = np.stack([START, START, START])
    with pytest.warns(TroubleWarning, match=r"the start of 2 of 3 problems .* of problem 1"):
        lw.optimize(
            sliders(),
            starts,
            [[0, 0], [0, 3.0], [0, 2.0]],
            bounds=Bound.on_velocity(-1, 1),
            **given,
        )
