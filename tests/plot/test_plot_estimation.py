"""Pictures of filters show the bounds of the estimates and refused measurements."""

import numpy as np
import pytest

import linkwise as lw

pytest.importorskip("matplotlib")

STEP, TICKS = 5e-3, 60


def run() -> tuple[lw.filtering.Filtered, lw.simulation.Rollout]:
    mech, rng = lw.models.pendulum(2), np.random.default_rng(0)
    sensors = [lw.filtering.encoders(mech, noise=5e-3), lw.filtering.marker("tip", noise=1e-2)]
    kalman = lw.filtering.kalman_filter(mech, sensors, step=STEP, force=0.02, gate=0.9999)
    true = lw.rollout(mech, [0.6, 0.5], duration=STEP * TICKS, step=STEP, integrator="euler")
    y = true.q[1:] + 5e-3 * rng.standard_normal((TICKS, 2))
    y[30, 0] += 1.0
    places = lw.forward_kinematics(mech, true.q[1:], "tip").p
    places = places + 1e-2 * rng.standard_normal(places.shape)
    places[::2] = np.nan
    start = kalman.start([0.6, 0.5])
    return kalman.run(start, np.zeros((TICKS, 2)), {"encoders": y, "marker tip": places}), true


def test_estimates_and_errors() -> None:
    made, true = run()
    plain = lw.plot.estimates(made)
    lines = [x for x in plain[0].lines if len(x.get_xdata()) == TICKS]
    assert np.allclose(lines[1].get_ydata(), made.q[:, 1]) and len(plain[0].collections) == 2
    crosses = [x for x in plain[2].lines if x.get_marker() == "x"]
    assert sum(len(x.get_xdata()) for x in crosses) == 1  # the wrong measurement
    dots = [len(x.get_xdata()) for x in plain[2].lines if x.get_marker() == "."]
    assert dots == [TICKS - 1, TICKS, 30, 30, 30]
    errors = lw.plot.estimates(made, true.q[1:], true.v[1:])
    assert np.allclose(errors[1].lines[0].get_ydata(), true.v[1:, 0] - made.v[:, 0])
    with pytest.raises(lw.ModelError, match="only one of q and v"):
        lw.plot.estimates(made, true.q[1:])
    with pytest.raises(lw.ModelError, match=r"filter\.run makes one"):
        lw.plot.estimates(true)  # pyright: ignore[reportArgumentType]


def test_consistency() -> None:
    rng = np.random.default_rng(0)
    result = lw.filtering.consistency((rng.standard_normal((20, 50, 3)) ** 2).sum(axis=-1), 3)
    board = lw.plot.consistency(result)
    assert np.array_equal(board.lines[0].get_ydata(), result.average)
    box = board.patches[0].get_extents()
    low, high = board.transData.transform([(0, result.lower), (0, result.upper)])[:, 1]
    assert np.allclose([box.y0, box.y1], [low, high])
