"""Errors are as large as the filter says; pushes and biases are found; C gives the same numbers."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.dynamics.kernels import written
from linkwise.filtering.tangent import CARRIED
from linkwise.spatial.array import Array
from tests.codegen.rungs import built

STEP, FORCE = 0.01, 0.1


@cache
def flyer() -> lw.Mechanism:
    """A free body that turns, with a camera marker and a gyroscope."""
    box = lw.SpatialInertia.solid_box(2.0, (0.2, 0.3, 0.5))
    b = lw.Builder("flyer").body("box", "world", lw.hinges.Free(), inertia=box)
    return b.node("a", "box", (0.3, 0.0, 0.0)).node("b", "box", (0.0, 0.3, 0.1)).build()


@cache
def kalman(method: str, bias: bool = True) -> filtering.Filter:
    sensors = [
        filtering.marker("a", noise=0.01),
        filtering.marker("b", noise=0.01),
        filtering.gyroscope("a", noise=0.02, bias=0.01 if bias else None),
    ]
    return filtering.kalman_filter(flyer(), sensors, step=STEP, force=FORCE, method=method)


def simulated(runs: int, ticks: int) -> tuple[Array, Array, Array, dict[str, Array], Array]:
    """True states of many runs with the noise that the filter assumes, and measurements of them."""
    mech, rng = flyer(), np.random.default_rng(7)
    q0 = np.tile(mech.random(rng), (runs, 1))
    v0 = np.tile([1.0, -2.0, 0.5, 0.3, 0.0, 1.0], (runs, 1))
    d = 0.1 * rng.standard_normal((runs, 12))
    q = written(mech, CARRIED)(q0, d[:, :6])["q"]
    v = v0 + d[:, 6:]
    bias = 2.0 * rng.standard_normal((runs, 3))
    nodes = [mech.node(x).pose.p for x in ("a", "b")]
    qs, vs, biases = list[Array](), list[Array](), list[Array]()
    y = {name: list[Array]() for name in ("marker a", "marker b", "gyroscope a")}
    for _ in range(ticks):
        push = FORCE / np.sqrt(STEP) * rng.standard_normal((runs, 6))
        made = lw.rollout(
            mech, q, v, tau=push[:, None], duration=STEP, step=STEP, integrator="euler"
        )
        q, v = made.q[:, -1], made.v[:, -1]
        bias = bias + 0.01 * np.sqrt(STEP) * rng.standard_normal((runs, 3))
        poses = lw.forward_kinematics(mech, q, "box")
        for name, p in zip(("marker a", "marker b"), nodes, strict=True):
            y[name].append(poses.apply(p) + 0.01 * rng.standard_normal((runs, 3)))
        y["gyroscope a"].append(v[:, :3] + bias + 0.02 * rng.standard_normal((runs, 3)))
        qs.append(q)
        vs.append(v)
        biases.append(bias)
    stacked = [np.stack(x, axis=1) for x in (qs, vs, biases)]
    measured = {name: np.stack(x, axis=1) for name, x in y.items()}
    return *stacked, measured, np.concatenate([q0, v0], axis=1)


@pytest.mark.prove
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_errors_and_innovations_are_chi_square(method: str) -> None:
    runs, ticks = 60, 40
    q, v, bias, y, x0 = simulated(runs, ticks)
    start = kalman(method).start(x0[:, :7], x0[:, 7:], position=0.1, velocity=0.1)
    out = kalman(method).run(start, np.zeros((ticks, 6)), y)
    nees = filtering.consistency(out.nees(q, v, bias), 15)
    assert nees.inside >= 0.85
    for name in y:
        assert filtering.consistency(out.nis[name], 3).inside >= 0.85
    # a filter that believes in a tenth of the noise notices that it is wrong
    sure = kalman(method).with_noise(density=0.1 * kalman(method).inputs["density"])
    wrong = sure.run(start, np.zeros((ticks, 6)), y)
    assert filtering.consistency(wrong.nees(q, v, bias), 15).inside < 0.3
    # smoothed errors are smaller, and chi-square as well
    smooth = out.smoothed()
    assert filtering.consistency(smooth.nees(q, v, bias), 15).inside > 0.8
    middle = slice(5, 30)
    errors = [np.std(x.errors(q, v, bias)[:, middle, :6]) for x in (out, smooth)]
    assert errors[1] < 0.8 * errors[0]


def test_chi_square_itself() -> None:
    rng = np.random.default_rng(0)
    values = (rng.standard_normal((50, 200, 4)) ** 2).sum(axis=-1)
    right = filtering.consistency(values, 4)
    assert 0.9 < right.inside <= 1.0 and right.lower < 4.0 < right.upper
    assert filtering.consistency(1.3 * values, 4).inside < 0.5


def test_an_unknown_force_is_found() -> None:
    """At rest under a push: what holds the arm is not in the model, so that it must be the push."""
    arm = lw.models.pendulum(2)
    sensors = [filtering.encoders(arm, noise=1e-3), filtering.tachometers(arm, noise=1e-3)]
    few = filtering.kalman_filter(arm, sensors, step=0.01, force=1e-3, pushed=["tip"])
    q = np.array([0.4, 0.3])
    weight = lw.gravity_force(arm, q)
    J = lw.jacobian(arm, q, "tip", frame="world")
    f = np.linalg.lstsq(J.T, weight, rcond=None)[0]
    x = few.start(q, position=1e-2, velocity=1e-2, forces=30.0)
    for _ in range(200):
        x = few.tick(x, [0.0, 0.0], {"encoders": q, "tachometers": [0.0, 0.0]})
    assert np.allclose(J.T @ x.part("tip"), weight, atol=0.05 * np.abs(weight).max())
    assert np.allclose(J.T @ f, weight)


def test_the_momentum_observer_follows_a_push() -> None:
    """r = K/(s + K) of the joint forces from outside, also on a free base and with dampers."""
    mech, h, gain = (
        lw.models.random_tree(4, 3, floating=True, hinges=("pin", "spherical")),
        1e-4,
        40.0,
    )
    rng = np.random.default_rng(2)
    q, v = mech.random(rng), 0.5 * rng.standard_normal(mech.nv)
    outside = 2.0 * rng.standard_normal(mech.nv)
    tau = rng.standard_normal(mech.nv)
    runs = lw.rollout(mech, q, v, tau=tau + outside, duration=0.1, step=h)
    observer = filtering.momentum_observer(mech, gain=gain, step=h)
    seen = observer.start(runs.q[0], runs.v[0])
    for k in range(1, len(runs.q)):
        seen = observer.tick(seen, runs.q[k], runs.v[k], tau)
        expected = outside * (1.0 - (1.0 + gain * h) ** -k)
        assert np.allclose(seen.force, expected, atol=2e-3)
    assert np.abs(seen.force).max() > 1.0


def test_ticks_in_c(tmp_path: Path) -> None:
    few = kalman("extended", False)
    mech, rng = flyer(), np.random.default_rng(1)
    x = few.start(mech.random(rng), rng.standard_normal(6))
    kernel = few.kernel()
    y, use = rng.standard_normal(9), np.array([1.0, 0.0, 1.0])
    arrays = few.inputs | {
        "q": x.q,
        "v": x.v,
        "P": x.P.ravel(),
        "tau": rng.standard_normal(6),
        "step": np.array([STEP]),
        "measured": y,
        "use": use,
    }
    given = [np.ascontiguousarray(arrays[name], dtype=np.float64) for name in kernel.arguments]
    expected = kernel(*given)
    out = np.zeros(sum(np.size(part) for part in expected.values()))
    code = built(few.export_c("state_filter"), tmp_path)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
    assert code(*pointers) == 0
    flat = np.concatenate([np.ravel(part) for part in expected.values()])
    assert np.allclose(out, flat, rtol=1e-10, atol=1e-12)
