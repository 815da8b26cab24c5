"""Encoders of hinges with quaternions or turning axes: errors are displacements on the manifold."""

import ctypes
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.dynamics.kernels import written
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT, error_size
from linkwise.spatial.array import Array
from tests.codegen.rungs import built

STEP, NOISE = 0.01, 0.02


@cache
def parade() -> lw.Mechanism:
    """A body on a hinge of each kind, apart from the others."""
    box = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
    hinges = lw.hinges
    b = lw.Builder("parade").body("pin", "world", hinges.Pin((0, 1, 0)), inertia=box)
    for name, hinge in (
        ("ball", hinges.Spherical()), ("free", hinges.Free()), ("plane", hinges.Planar()),
        ("back", hinges.Free().reversed()), ("soft", hinges.SoftFinger((0.1, 0.2, 1.0))),
        ("roll", hinges.RollingBall(0.3)),
    ):  # fmt: skip
        b = b.body(name, "pin" if name == "ball" else "world", hinge, inertia=box)
    return b.build()


@cache
def alone(kind: str) -> lw.Mechanism:
    """One of these bodies."""
    body = parade().body(kind)
    return lw.Builder(kind).body(kind, "world", body.hinge, inertia=body.inertia).build()


KINDS = ("ball", "free", "plane", "back", "soft", "roll")


def moved(mech: lw.Mechanism, q: Array, d: Array) -> Array:
    return written(mech, CARRIED)(q, d)["q"]


@pytest.mark.parametrize("method", ["extended", "unscented"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_measurement_of_coordinates(kind: str, method: str) -> None:
    """Without a step of time: P⁻ is known, the innovation is y ⊖ q, and H a difference of it."""
    mech, rng = alone(kind), np.random.default_rng(0)
    seen = filtering.encoders(mech, [kind], noise=NOISE, bias=0.1)
    seen = replace(seen, bias_deviation=0.03)
    few, size = filtering.kalman_filter(mech, [seen], step=STEP, method=method), error_size(mech)
    assert seen.size == size and len(seen.reading) == mech.nq
    q, v = mech.random(rng), rng.standard_normal(mech.nv)
    start = few.start(q, v, position=0.05, velocity=0.1)
    y = moved(mech, q, 0.02 * rng.standard_normal(size))
    x = few.tick(start, np.zeros(mech.nv), {"encoders": y}, step=0.0)

    def shown(d: Array) -> Array:
        return written(mech, DISPLACEMENT)(moved(mech, q, d), y)

    eps, n = shown(np.zeros(size)), few.size
    assert np.allclose(x.innovation["encoders"], eps, atol=2e-4 if method == "unscented" else 1e-12)
    H = np.zeros((size, n))
    for i, e in enumerate(1e-5 * np.eye(size)):
        H[:, i] = (shown(-e) - shown(e)) / 2e-5
    H[:, n - size :] = np.eye(size)
    S = H @ start.P @ H.T + NOISE**2 * np.eye(size)
    gain = np.linalg.solve(S, H @ start.P).T
    d = gain @ eps
    close = {"atol": 2e-4} if method == "unscented" else {"atol": 1e-8}
    assert np.allclose(written(mech, DISPLACEMENT)(q, x.q), d[:size], **close)
    assert np.allclose(
        x.extra, d[n - size :], **(close if method == "extended" else {"atol": 0.02})
    )
    assert np.abs(d[:size]).max() > 1e-4 and np.abs(x.extra).max() > 1e-3
    J, there = np.eye(n), moved(mech, q, d[:size])
    for i, e in enumerate(1e-5 * np.eye(size)):
        sides = [
            written(mech, DISPLACEMENT)(there, moved(mech, q, d[:size] + s * e)) for s in (1, -1)
        ]
        J[:size, i] = (sides[0] - sides[1]) / 2e-5
    P = J @ (start.P - gain @ S @ gain.T) @ J.T
    assert np.allclose(x.P, P, atol=1e-5 if method == "unscented" else 1e-10)
    if method == "extended":
        assert np.allclose(x.nis["encoders"], eps @ np.linalg.solve(S, eps), rtol=1e-7)


def test_several_hinges_are_one_sensor_with_one_gate() -> None:
    """In the order in which they are named; a quaternion and its opposite are the same."""
    mech, rng = parade(), np.random.default_rng(1)
    seen = filtering.encoders(mech, ["soft", "pin", "ball"], noise=NOISE)
    few = filtering.kalman_filter(mech, [seen], step=STEP, gate=0.999)
    q, v = mech.random(rng), rng.standard_normal(mech.nv)
    start, tau = few.start(q, v), np.zeros(mech.nv)
    places = [mech.q_start[mech.body_index[x]] for x in ("soft", "pin", "ball")]
    y = np.concatenate([q[i : i + n] for i, n in zip(places, (4, 1, 4), strict=True)])
    one = few.tick(start, tau, {"encoders": y}, step=0.0)
    assert np.allclose(one.innovation["encoders"], 0.0, atol=1e-12) and one.accepted["encoders"]
    assert one.innovation["encoders"].shape == (7,) and np.allclose(one.q, q, atol=1e-12)
    assert (one.deviation[: error_size(mech)] < 0.03).sum() == 7
    flipped = np.concatenate([-y[:4], y[4:]])
    other = few.tick(start, tau, {"encoders": flipped}, step=0.0)
    assert np.allclose(other.P, one.P) and np.allclose(other.q, one.q, atol=1e-12)
    off = y + np.array([0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    assert not few.tick(start, tau, {"encoders": off}, step=0.0).accepted["encoders"]
    none = few.tick(start, tau, {"encoders": np.full(9, np.nan)}, step=0.0)
    assert np.allclose(none.P, start.P) and np.isnan(none.innovation["encoders"]).all()
    with pytest.raises(lw.ShapeError, match=r"'encoders' has shape \(7,\); it must be \(9,\)"):
        few.tick(start, tau, {"encoders": np.zeros(7)})


def test_tachometers_of_named_hinges() -> None:
    mech = parade()
    assert filtering.tachometers(mech, noise=0.1).size == 1
    assert filtering.tachometers(mech, ["free", "roll"], noise=0.1).size == 9


def test_readings_in_c(tmp_path: Path) -> None:
    mech, rng = alone("ball"), np.random.default_rng(2)
    seen = [filtering.encoders(mech, ["ball"], noise=NOISE, name="ball sensor"),
            filtering.gyroscope("ball", noise=0.1)]  # fmt: skip
    few = filtering.kalman_filter(mech, seen, step=STEP)
    q, v = mech.random(rng), rng.standard_normal(3)
    x, y = few.start(q, v), {"ball sensor": mech.random(rng), "gyroscope ball": v}
    expected = few.tick(x, np.ones(3), y)
    given = few.inputs | {"q": q, "v": v, "P": x.P.ravel(), "tau": np.ones(3), "use": np.ones(2)}
    given |= {"step": np.array([STEP]), "measured": np.concatenate([np.zeros(3), v])}
    given["ball_sensor_q"] = y["ball sensor"]
    kernel, code = few.kernel(), built(few.export_c("ball_filter"), tmp_path)
    arrays = [np.ascontiguousarray(given[name], dtype=np.float64) for name in kernel.arguments]
    out = np.zeros(sum(np.size(part) for part in kernel(*arrays).values()))
    assert code(*[a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*arrays, out)]) == 0
    assert np.allclose(out[:4], expected.q, atol=1e-12) and np.abs(expected.q - q).max() > 1e-2
    assert np.allclose(out[7 : 7 + 36].reshape(6, 6), expected.P, atol=1e-12)


@pytest.mark.prove
@pytest.mark.parametrize("kind", KINDS)
def test_innovations_are_chi_square(kind: str) -> None:
    mech, rng, runs = alone(kind), np.random.default_rng(3), 400
    size = error_size(mech)
    few = filtering.kalman_filter(mech, [filtering.encoders(mech, [kind], noise=NOISE)], step=STEP)
    q = np.tile(mech.random(rng), (runs, 1))
    true = moved(mech, q, 0.05 * rng.standard_normal((runs, size)))
    y = moved(mech, true, NOISE * rng.standard_normal((runs, size)))
    start = few.start(q, np.zeros((runs, mech.nv)), position=0.05)
    x = few.tick(start, np.zeros((runs, mech.nv)), {"encoders": y}, step=0.0)
    assert filtering.consistency(x.nis["encoders"][:, None], size, level=0.99).inside == 1.0
    e = written(mech, DISPLACEMENT)(x.q, true)
    nees = (e * np.linalg.solve(x.P[:, :size, :size], e[..., None])[..., 0]).sum(axis=-1)
    assert filtering.consistency(nees[:, None], size, level=0.99).inside == 1.0


def test_embedded_mechanisms_are_named() -> None:
    mech = lw.loops.embed(lw.models.four_bar())
    calls = (
        lambda: filtering.kalman_filter(mech, [filtering.gyroscope("a", noise=1.0)], step=STEP),  # pyright: ignore
        lambda: filtering.momentum_observer(mech, gain=1.0, step=STEP),  # pyright: ignore
        lambda: filtering.encoders(mech, noise=1.0),  # pyright: ignore
    )
    for call in calls:
        with pytest.raises(lw.ModelError, match="built in was requested"):
            call()
