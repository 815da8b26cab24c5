"""Filters of many states, and of hinges on planes: against dense matrices, and by Monte Carlo."""

import ctypes
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.dynamics.kernels import written
from linkwise.errors import DeviceError
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT
from linkwise.spatial.array import Array
from tests.codegen.rungs import C_COMPILER, built
from tests.filtering.test_closed import beginning, linkage
from tests.filtering.test_manifold import satellite, sensors

STEP, FORCE, NOISE = 0.02, 0.3, 0.01


@cache
def train(cars: int = 26) -> lw.Mechanism:
    """Cars on a rail, each on the one before it, on springs and dampers."""
    b, parent = lw.Builder("train", gravity=(0.0, 0.0, 0.0)), "world"
    for i in range(cars):
        drive = lw.Drive(stiffness=3.0 + i, damping=0.2 + 0.01 * i)
        box, name = lw.SpatialInertia.solid_box(1.0 + 0.1 * i, (0.1, 0.1, 0.1)), f"car{i}"
        b = b.body(name, parent, lw.hinges.Prismatic((1, 0, 0)), inertia=box, drive=drive)
        parent = name
    return b.build()


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_52_states_are_those_of_the_textbook(method: str) -> None:
    """Dense matrices of a linear mechanism, whose mass matrix is written out."""
    mech, rng = train(), np.random.default_rng(0)
    n = mech.nv
    masses = 1.0 + 0.1 * np.arange(n)
    M = np.array([[masses[max(i, j) :].sum() for j in range(n)] for i in range(n)])
    inverse, eye = np.linalg.inv(M), np.eye(n)
    stiff, damp = np.diag(3.0 + np.arange(n)), np.diag(0.2 + 0.01 * np.arange(n))
    v_row = np.hstack([-STEP * inverse @ stiff, eye - STEP * inverse @ damp])
    A = np.vstack([np.hstack([eye, 0 * eye]) + STEP * v_row, v_row])
    B = np.vstack([STEP**2 * inverse, STEP * inverse])
    Q = FORCE**2 / STEP * B @ B.T
    seen = [filtering.encoders(mech, noise=NOISE), filtering.marker("car25", noise=0.05)]
    few = filtering.kalman_filter(mech, seen, step=STEP, force=FORCE, method=method)
    assert few.size == 52
    estimate = few.start(0.1 * rng.standard_normal(n), position=0.2, velocity=0.5)
    H = np.zeros((n + 3, 2 * n))
    H[:n, :n], H[n, :n] = eye, 1.0
    R = np.diag([NOISE**2] * n + [0.05**2] * 3)
    x, P = np.concatenate([estimate.q, estimate.v]), estimate.P
    for _ in range(5):
        tau, y = rng.standard_normal(n), 0.1 * rng.standard_normal(n + 3)
        x, P = A @ x + B @ tau, A @ P @ A.T + Q
        S = H @ P @ H.T + R
        gain = np.linalg.solve(S, H @ P).T
        x, P = x + gain @ (y - H @ x), P - gain @ S @ gain.T
        estimate = few.tick(estimate, tau, {"encoders": y[:n], "marker car25": y[n:]})
        assert np.allclose(np.concatenate([estimate.q, estimate.v]), x, rtol=1e-9, atol=1e-11)
        assert np.allclose(estimate.P, P, rtol=1e-7, atol=1e-11)
    assert np.abs(x).max() > 0.1


@pytest.mark.parametrize("method", ["extended", "unscented"])
@pytest.mark.parametrize("mech", [satellite(), linkage()], ids=lambda x: x.name)
def test_ticks_with_matrices_in_loops(mech: lw.Mechanism, method: str) -> None:
    """The same numbers as straight code: turning bodies, loops, biases, pushes, gates, gaps."""
    looped, rng = mech.name == "four_bar", np.random.default_rng(0)
    some = [filtering.gyroscope("imu", noise=0.05), filtering.encoders(mech, noise=0.02)]
    few = filtering.kalman_filter(
        mech, some if looped else sensors(), step=STEP, method=method,
        pushed=[] if looped else ["imu"], gate=0.9999,
    )  # fmt: skip
    q, v, tau = beginning(mech, 1)
    x = few.start(np.tile(q, (3, 1)), np.tile(v, (3, 1)))
    y = {name: rng.standard_normal((3, s.size)) for name, s in few.sensors.items()}
    y["gyroscope imu"][1] = np.nan
    expected = few._ticked(x, tau, y, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]
    assert not few.structure.large
    few = in_loops(few)
    out = few._ticked(x, tau, y, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]
    assert set(expected) == set(out)
    for name, right in expected.items():
        atol = 1e-11 * max(1.0, float(np.abs(right).max()))
        assert np.allclose(out[name], right, rtol=1e-8, atol=atol), name
    alone = few.start(q, v), tau, {name: x[0] for name, x in y.items()}
    one = few._ticked(*alone, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]
    for name in expected:
        assert np.allclose(one[name], out[name][0], rtol=1e-9, atol=1e-11)
    assert 0.0 < expected["weight"].mean() < 1.0


def in_loops(few: filtering.Filter) -> filtering.Filter:
    """The same filter, with matrices in loops whatever their size."""
    s = replace(few.structure, large=True)
    formulas = {x: replace(s, smoothing=x).formula for x in (False, True)}
    return replace(few, structure=s, _formulas=formulas)


@pytest.mark.skipif(C_COMPILER is None, reason="needs a C compiler")
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_a_recording_of_49_states_in_c(tmp_path: Path, method: str) -> None:
    """With a bias, an outlier and a gap; each function of C is small."""
    mech, rng, ticks = train(23), np.random.default_rng(1), 4
    seen = [filtering.encoders(mech, noise=NOISE),
            filtering.marker("car22", noise=0.05),
            filtering.accelerometer("car7", noise=0.1, bias=0.05)]  # fmt: skip
    few = filtering.kalman_filter(mech, seen, step=STEP, force=FORCE, method=method, gate=0.999)
    assert few.size == 49 and few.structure.large
    tau = rng.standard_normal((ticks, mech.nv))
    y = {"encoders": 0.01 * rng.standard_normal((ticks, mech.nv)),
         "marker car22": 0.05 * rng.standard_normal((ticks, 3)),
         "accelerometer car7": 0.1 * rng.standard_normal((ticks, 3))}  # fmt: skip
    y["encoders"][1, 3] += 5.0  # refused by its gate
    y["marker car22"][2] = np.nan
    start = few.start(np.zeros(mech.nv), position=0.05, velocity=0.1)
    expected = few.run(start, tau, y)
    assert not expected.accepted["encoders"][1, 3] and expected.accepted["encoders"][1, 4]
    made, names = few.export_c("tick"), few.kernel().arguments
    longest = max(len(part.splitlines()) for part in made.source.split("\n}\n"))
    assert longest < 8000
    code, x = built(made, tmp_path), {"q": start.q, "v": start.v, "extra": start.extra}
    x |= {"P": start.P.ravel()}
    shapes = few.kernel().shapes
    for k in range(ticks):
        flat = np.concatenate([array[k] for array in y.values()])
        came = np.isfinite(flat)
        use = [*came[: mech.nv], came[mech.nv : mech.nv + 3].all(), came[mech.nv + 3 :].all()]
        given = few.inputs | x | {"tau": tau[k], "step": np.array([STEP])}
        given |= {"measured": np.where(came, flat, 0.0), "use": np.array(use, dtype=np.float64)}
        out = np.zeros(sum(int(np.prod(shape)) for shape in shapes.values()))
        arrays = [np.ascontiguousarray(given[name], dtype=np.float64) for name in names]
        pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*arrays, out)]
        assert code(*pointers) == 0
        parts = np.split(out, np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1])
        results = dict(zip(shapes, parts, strict=True))
        x = {name: results[name] for name in x}
    assert np.abs(x["extra"]).max() > 1e-3
    for name, array in x.items():
        right = getattr(expected, name)[-1].ravel()
        assert np.allclose(array, right, rtol=1e-8, atol=1e-11), name


@cache
def walker() -> lw.Mechanism:
    """A floating body with limbs of 19 degrees of freedom."""
    return lw.models.random_tree(10, 5, floating=True, hinges=("pin", "spherical", "universal"))


@cache
def cart() -> lw.Mechanism:
    """A cart that drives in a plane with an arm on it, and a loose plate that slides."""
    box = lw.SpatialInertia.solid_box(2.0, (0.3, 0.2, 0.1))
    rod = lw.SpatialInertia.solid_box(0.5, (0.4, 0.1, 0.1)).moved(lw.Pose.translation((0.2, 0, 0)))
    b = lw.Builder("cart").body("cart", "world", lw.hinges.Planar((0.2, 0.1, 1)), inertia=box)
    b = b.body("arm", "cart", lw.hinges.Pin((0, 1, 0)), inertia=rod, inboard=(0.1, 0, 0.1))
    b = b.body("plate", "world", lw.hinges.PointOnPlane(0.2), inertia=box)
    b = b.body("ball", "arm", lw.hinges.Spherical().reversed(), inertia=rod, inboard=(0.4, 0, 0))
    b = b.node("imu", "arm", (0.1, 0.2, 0.0)).node("corner", "plate", (0.1, 0.1, 0.0))
    return b.node("edge", "plate", (-0.1, 0.2, 0.1)).node("tip", "ball", (0.3, 0.1, 0.0)).build()


def wavy(q: Array) -> tuple[Any, Any]:
    """A slider on a wave that turns as it goes."""
    s = q[..., 0]
    turn = lw.hinges.Pin((0, 0, 1)).pose(q).rot
    return turn, np.stack([s, 0.2 * np.sin(3.0 * s), 0.1 * s * s], axis=-1)


@cache
def screws() -> lw.Mechanism:
    """Hinges with plain coordinates: a screw, two and three axes, a cylinder, and one by hand."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.2)).moved(lw.Pose.translation((0.2, 0, 0)))
    hinges = (
        lw.hinges.Helical((0, 0, 1), 0.1), lw.hinges.Universal((1, 0, 0), (0, 1, 0)),
        lw.hinges.CustomHinge("wave", (("s", "m"),), wavy), lw.hinges.Cylindrical((1, 1, 0)),
        lw.hinges.Gimbal(), lw.hinges.Translation(),
    )  # fmt: skip
    b, parent = lw.Builder("screws"), "world"
    for i, hinge in enumerate(hinges):
        b = b.body(f"b{i}", parent, hinge, inertia=rod, inboard=(0.2, 0, 0.1))
        parent = f"b{i}"
    return b.node("imu", parent, (0.1, 0.2, 0.0)).build()


def test_late_measurements_count_as_if_in_time() -> None:
    """53 states, turning bodies and a bias: encoders come three ticks late, a camera five."""
    mech, rng, ticks = walker(), np.random.default_rng(0), 8
    pins = [body.hinge_name for body in mech.bodies if body.hinge.nv == 1]
    seen = [filtering.encoders(mech, pins, noise=0.01),
            filtering.marker(mech.bodies[-1].name, noise=0.02),
            filtering.gyroscope(mech.bodies[3].name, noise=0.05, bias=0.01)]  # fmt: skip
    few = filtering.kalman_filter(mech, seen, step=0.01, force=0.1)
    assert few.size > 40 and few.structure.large
    angles, camera, gyroscope = few.sensors
    start = few.start(mech.neutral())
    place = lw.forward_kinematics(mech, start.q, mech.bodies[-1].name).p
    tau = 0.3 * rng.standard_normal((ticks, mech.nv))
    y = {name: 0.02 * rng.standard_normal((ticks, x.size)) for name, x in few.sensors.items()}
    y[camera] += place
    tracker, in_time = filtering.Tracker(few, start, memory=6), start
    for k in range(ticks):
        tracker.tick(tau[k], {gyroscope: y[gyroscope][k]})
        for name, ago in ((angles, 3), (camera, 5)):
            if k >= ago:
                before = tracker.estimate
                after = tracker.late({name: y[name][k - ago]}, ago=ago)
                assert np.abs(after.v - before.v).max() > 1e-4
    for k in range(ticks):
        late = {angles: 3, camera: 5, gyroscope: 0}
        come = {name: y[name][k] for name, ago in late.items() if k < ticks - ago}
        in_time = few.tick(in_time, tau[k], come)
    for name in ("q", "v", "extra", "P"):
        assert np.array_equal(getattr(tracker.estimate, name), getattr(in_time, name)), name


def moved(mech: lw.Mechanism, q: Array, d: Array) -> Array:
    return written(mech, CARRIED)(q, d)["q"]


@pytest.mark.parametrize("mech", [cart(), screws()], ids=lambda x: x.name)
def test_hinges_have_derivatives(mech: lw.Mechanism) -> None:
    """F of the step against differences, at rest and in motion; displacements come back."""
    h = 1e-5
    few = filtering.kalman_filter(mech, [filtering.gyroscope("imu", noise=0.1)], step=STEP)
    nv, rng = mech.nv, np.random.default_rng(1)
    q, tau = mech.random(rng), rng.standard_normal(nv)
    d = 0.5 * rng.standard_normal(nv)
    assert np.allclose(written(mech, DISPLACEMENT)(q, moved(mech, q, d)), d, atol=1e-12)
    assert np.abs(moved(mech, q, h * d) - mech.integrate(q, h * d)).max() < 4 * h**2
    for speed in (0.0, 1.0):
        v = speed * rng.standard_normal(nv)
        start = few.start(q, v)

        def ahead(d: Array) -> dict[str, Array]:
            at = moved(mech, q, d[:nv]), v + d[nv:], np.zeros(0)  # noqa: B023
            x = filtering.Estimate(*at, start.P, {}, {}, {}, {})  # noqa: B023
            return few._ticked(x, tau, {}, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]

        here = ahead(np.zeros(2 * nv))
        F = np.linalg.solve(start.P, here["cross"]).T
        for i in range(2 * nv):
            sides = [ahead(s * h * np.eye(2 * nv)[i]) for s in (1.0, -1.0)]
            parts = [
                np.concatenate([
                    written(mech, DISPLACEMENT)(here["q_predicted"], x["q_predicted"]),
                    x["v_predicted"],
                ])
                for x in sides
            ]  # fmt: skip
            assert np.allclose(F[:, i], (parts[0] - parts[1]) / (2 * h), rtol=1e-6, atol=1e-7)


@pytest.mark.prove
@pytest.mark.parametrize("name", ["cart", "walker"])
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_errors_and_innovations_are_chi_square(name: str, method: str) -> None:
    """Forty motions with the noise that the filter assumes."""
    mech, runs, ticks, force = {"cart": cart, "walker": walker}[name](), 40, 15, 0.003
    rng, nv = np.random.default_rng(3), mech.nv
    nodes = ["imu", "corner", "edge", "tip"] if name == "cart" else [b.name for b in mech.bodies]
    seen = [filtering.marker(node, noise=NOISE) for node in nodes]
    seen += [filtering.gyroscope(node, noise=0.05) for node in nodes[::4]]
    few = filtering.kalman_filter(mech, seen, step=STEP, force=force, method=method)
    q0 = np.tile(mech.random(rng), (runs, 1))
    v0 = np.tile(0.5 * rng.standard_normal(nv), (runs, 1))
    start = few.start(q0, v0, position=0.05, velocity=0.05)
    d = 0.05 * rng.standard_normal((runs, 2 * nv))
    q, v = moved(mech, q0, d[:, :nv]), v0 + d[:, nv:]
    qs, vs, ys = list[Array](), list[Array](), {s.name: list[Array]() for s in seen}
    for _ in range(ticks):
        push = force / np.sqrt(STEP) * rng.standard_normal((runs, 1, nv))
        made = lw.rollout(mech, q, v, tau=push, duration=STEP, step=STEP, integrator="euler")
        q, v = made.q[:, -1], made.v[:, -1]
        qs.append(q)
        vs.append(v)
        for node in nodes:
            noise = NOISE * rng.standard_normal((runs, 3))
            ys[f"marker {node}"].append(lw.forward_kinematics(mech, q, node).p + noise)
        for node in nodes[::4]:
            noise = 0.05 * rng.standard_normal((runs, 3))
            ys[f"gyroscope {node}"].append(lw.node_velocity(mech, q, v, node)[..., :3] + noise)
    y = {x: np.stack(parts, axis=1) for x, parts in ys.items()}
    out = few.run(start, np.zeros((ticks, nv)), y)
    truth = np.stack(qs, axis=1), np.stack(vs, axis=1)
    assert filtering.consistency(out.nees(*truth), 2 * nv).inside >= 0.8
    nis = np.sum(list(out.nis.values()), axis=0)
    assert filtering.consistency(nis, 3 * len(seen)).inside >= 0.8
    sure = few.with_noise(density=0.1 * few.inputs["density"])
    wrong = sure.run(start, np.zeros((ticks, nv)), y)
    assert filtering.consistency(wrong.nees(*truth), 2 * nv).inside < 0.5


def test_what_filters_refuse_names_the_reason() -> None:
    long = lw.models.pendulum(70)
    with pytest.raises(lw.ModelError, match="it has 70 bodies"):
        filtering.kalman_filter(long, [filtering.encoders(long, noise=0.1)], step=STEP)
    many = filtering.kalman_filter(train(), [filtering.encoders(train(), noise=0.1)], step=STEP)
    kernel = lw.compile(many._formulas[False], train(), target="cuda")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(DeviceError, match="has matrices in loops"):
        str(kernel.source)
    assert "52 states" in str(many)
