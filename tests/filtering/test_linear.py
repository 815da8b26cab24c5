"""On a linear mechanism: the textbook's filter, dense least squares, and one as the other."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.filtering.sensor import Sensed
from linkwise.spatial.array import Array

H_STEP, FORCE, NOISE = 0.05, 0.3, 0.02
MASS, STIFF, DAMP = np.array([2.0, 0.5]), np.array([3.0, 8.0]), np.array([0.4, 0.1])


@cache
def carts() -> lw.Mechanism:
    """Two carts, the second on the first, on springs and dampers; nothing falls."""
    b = lw.Builder("carts", gravity=(0.0, 0.0, 0.0))
    for name, parent, m, k, d in zip(("a", "b"), ("world", "a"), MASS, STIFF, DAMP, strict=True):
        body = lw.SpatialInertia.solid_box(m, (0.1, 0.1, 0.1))
        drive = lw.Drive(stiffness=k, damping=d)
        b = b.body(name, parent, lw.hinges.Prismatic((1, 0, 0)), inertia=body, drive=drive)
    return b.build()


def matrices() -> tuple[Array, Array, Array, Array]:
    """A, B, Q and H of the step, written out."""
    M = np.array([[MASS.sum(), MASS[1]], [MASS[1], MASS[1]]])
    inverse, eye = np.linalg.inv(M), np.eye(2)
    by_q, by_v = -inverse @ np.diag(STIFF), -inverse @ np.diag(DAMP)
    v_row = np.hstack([H_STEP * by_q, eye + H_STEP * by_v])
    A = np.vstack([np.hstack([eye, 0 * eye]) + H_STEP * v_row, v_row])
    B = np.vstack([H_STEP**2 * inverse, H_STEP * inverse])
    Q = B @ B.T * FORCE**2 / H_STEP
    return A, B, Q, np.array([[1.0, 1.0, 0.0, 0.0]])


def position(s: Sensed) -> Any:
    """Where the second cart is, by a formula of a user."""
    return s.q[:1] + s.q[1:]


@cache
def kalman(method: str = "extended") -> filtering.Filter:
    sensor = filtering.Sensor("place", 1, position, NOISE)
    return filtering.kalman_filter(carts(), [sensor], step=H_STEP, force=FORCE, method=method)


def start() -> filtering.Estimate:
    return kalman().start([0.1, -0.2], [0.3, 0.0], position=0.2, velocity=0.5)


@cache
def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((12, 2)), rng.standard_normal((12, 1))


def test_ticks_are_those_of_the_textbook() -> None:
    A, B, Q, H = matrices()
    tau, y = data()
    x, P = np.concatenate([start().q, start().v]), start().P
    estimate = start()
    for k in range(len(y)):
        x, P = A @ x + B @ tau[k], A @ P @ A.T + Q
        S = H @ P @ H.T + NOISE**2
        gain, eps = P @ H.T / S, y[k] - H @ x
        x, P = x + gain @ eps, P - gain @ S @ gain.T
        estimate = kalman().tick(estimate, tau[k], {"place": y[k]})
        assert np.allclose(np.concatenate([estimate.q, estimate.v]), x, rtol=1e-12, atol=1e-12)
        assert np.allclose(estimate.P, P, rtol=1e-10, atol=1e-14)
        assert np.isclose(estimate.innovation["place"][0], eps[0], rtol=1e-9)
        assert np.isclose(float(estimate.nis["place"]), eps[0] ** 2 / S[0, 0], rtol=1e-9)


def test_the_unscented_filter_is_the_same() -> None:
    tau, y = data()
    runs = [kalman(m).run(start(), tau, {"place": y}) for m in ("extended", "unscented")]
    ours, other = ([x.q, x.v, x.P, x.smoothed().q, x.smoothed().P] for x in runs)
    for a, b in zip(ours, other, strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_smoother_is_least_squares() -> None:
    """All states and noises of the recording at once, as one dense problem."""
    A, B, Q, H = matrices()
    tau, y = data()
    n, ticks = 4, len(y)
    x0 = np.concatenate([start().q, start().v])
    G = np.linalg.cholesky(Q[2:, 2:])  # two noises per step
    G = np.vstack([H_STEP * G, G])
    rows, right = [np.eye(n, n + 2 * ticks) / 0.2], [x0 / 0.2]
    rows[0][2:] *= 0.2 / 0.5
    right[0][2:] *= 0.2 / 0.5
    state, known = np.eye(n, n + 2 * ticks), np.zeros(n)
    states = [(state, known)]
    for k in range(ticks):
        state, known = A @ state, A @ known + B @ tau[k]
        state[:, n + 2 * k : n + 2 * k + 2] += G
        rows += [np.eye(n + 2 * ticks)[n + 2 * k : n + 2 * k + 2], H @ state / NOISE]
        right += [np.zeros(2), (y[k] - H @ known) / NOISE]
        states.append((state, known))
    W, b = np.vstack(rows), np.concatenate(right)
    z = np.linalg.lstsq(W, b, rcond=None)[0]
    covariance = np.linalg.inv(W.T @ W)
    run = kalman().run(start(), tau, {"place": y}).smoothed()
    for k, (state, known) in enumerate(states):
        first = run.start if k == 0 else None
        q, v, P = (
            (first.q, first.v, first.P) if first else (run.q[k - 1], run.v[k - 1], run.P[k - 1])
        )
        assert np.allclose(np.concatenate([q, v]), state @ z + known, rtol=0, atol=1e-9)
        assert np.allclose(P, state @ covariance @ state.T, rtol=0, atol=1e-9)


def test_measurements_alone_and_ticks_alone() -> None:
    _, B, Q, H = matrices()
    A = matrices()[0]
    here = kalman().tick(start(), [0.0, 0.0], step=0.0, measured={"place": [0.5]})
    P = start().P
    S = (H @ P @ H.T)[0, 0] + NOISE**2
    assert np.allclose(here.P, P - P @ H.T @ H @ P / S)
    ahead = kalman().tick(start(), [1.0, 0.0])
    assert np.allclose(ahead.P, A @ P @ A.T + Q, atol=1e-14)
    x = A @ np.concatenate([start().q, start().v]) + B @ [1.0, 0.0]
    assert np.allclose(np.concatenate([ahead.q, ahead.v]), x)
    assert np.isnan(ahead.nis["place"]) and not ahead.accepted["place"]
    with pytest.raises(lw.ModelError, match="tau is not finite"):
        kalman().tick(start(), [np.nan, 0.0])


def test_late_measurements_count_as_if_in_time() -> None:
    tau, y = data()
    in_time = kalman().run(start(), tau, {"place": y})
    tracker = filtering.Tracker(kalman(), start(), memory=4)
    for k in range(len(y)):
        tracker.tick(tau[k], {"place": y[k]} if k != 9 else {})
    with pytest.raises(lw.ModelError, match="4 ticks are kept"):
        tracker.late({"place": y[3]}, ago=8)
    with pytest.raises(lw.ModelError, match="had a measurement"):
        tracker.late({"place": y[9]}, ago=1)
    assert not np.allclose(tracker.estimate.q, in_time.q[-1], rtol=1e-6)
    tracker.late({"place": y[9]}, ago=2)
    assert np.array_equal(tracker.estimate.q, in_time.q[-1])
    assert np.array_equal(tracker.estimate.P, in_time.P[-1])


def test_a_batch_is_many_single_ones() -> None:
    tau, y = data()
    rng = np.random.default_rng(1)
    many = y + 0.1 * rng.standard_normal((5, *y.shape))
    many[3, 2] = np.nan
    q, v = np.tile(start().q, (5, 1)), np.tile(start().v, (5, 1))
    batch = kalman().run(kalman().start(q, v, position=0.2, velocity=0.5), tau, {"place": many})
    smooth = batch.smoothed()
    for i in range(5):
        one = kalman().run(start(), tau, {"place": many[i]})
        assert np.allclose(batch.q[i], one.q, rtol=1e-12, atol=1e-14)
        assert np.allclose(batch.nis["place"][i], one.nis["place"], rtol=1e-9, equal_nan=True)
        assert np.allclose(smooth.P[i], one.smoothed().P, rtol=1e-9, atol=1e-14)
    assert np.isnan(batch.nis["place"][3, 2]) and not batch.accepted["place"][3, 2]


def test_outliers_are_refused() -> None:
    tau = data()[0]
    sensor = filtering.Sensor("place", 1, position, NOISE)
    gated = filtering.kalman_filter(carts(), [sensor], step=H_STEP, force=FORCE, gate=0.999)
    good = kalman().tick(start(), tau[0], {"place": [-0.1]})
    same = gated.tick(start(), tau[0], {"place": [-0.1]})
    assert np.allclose(good.q, same.q) and same.accepted["place"]
    bad = gated.tick(start(), tau[0], {"place": [40.0]})
    alone = gated.tick(start(), tau[0])
    assert not bad.accepted["place"] and float(bad.nis["place"]) > 1e3
    assert np.array_equal(bad.q, alone.q) and np.array_equal(bad.P, alone.P)
