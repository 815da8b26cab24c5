"""Filters of mechanisms with loops and couplings: constraints hold, errors are as large as said."""

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.codegen.formula import Formula
from linkwise.codegen.writing import Writing
from linkwise.dynamics.kernels import written
from linkwise.filtering.allowed import allowed
from linkwise.filtering.motion import State
from linkwise.filtering.tangent import CARRIED
from linkwise.filtering.tick import Prediction, Structure, _seen  # pyright: ignore[reportPrivateUsage]
from linkwise.spatial.array import Array
from tests.codegen.rungs import built

STEP = 0.01


@cache
def linkage() -> lw.Mechanism:
    """A four-bar linkage on springs and dampers, with an inertial sensor on its coupler."""
    mech = lw.models.four_bar()
    mech = mech.with_drive("crank_pin", damping=0.05, stiffness=0.5)
    return mech.with_node("imu", "coupler", lw.Pose.rpy((0.3, -0.2, 0.5), (0.1, 0.0, 0.2)))


@cache
def swing() -> lw.Mechanism:
    """A box on a ball that carries two arms, geared to each other."""
    box = lw.SpatialInertia.solid_box(2.0, (0.3, 0.2, 0.4)).moved(
        lw.Pose.translation((0.1, 0.0, -0.3))
    )
    rod = lw.SpatialInertia.solid_box(0.5, (0.4, 0.1, 0.1)).moved(lw.Pose.translation((0.2, 0, 0)))
    b = lw.Builder("swing").body("box", "world", lw.hinges.Spherical(), inertia=box)
    b = b.body("left", "box", lw.hinges.Pin((0, 1, 0)), inertia=rod, inboard=(0.1, 0, 0))
    b = b.body("right", "box", lw.hinges.Pin((0, 0, 1)), inertia=rod, inboard=(-0.1, 0, 0))
    return b.couple("gear", "right", {"left": -1.5}).node("imu", "left", (0.1, 0.05, 0.0)).build()


def beginning(mech: lw.Mechanism, seed: int = 0) -> tuple[Array, Array, Array]:
    """A state that obeys, and joint forces."""
    rng = np.random.default_rng(seed)
    q = mech.integrate(mech.neutral(), 0.4 * rng.standard_normal(mech.nv))
    q = lw.loops.project_position(mech, q).required()
    v = lw.loops.project_velocity(mech, q, 1.5 * rng.standard_normal(mech.nv))
    return q, v, rng.standard_normal(mech.nv)


def kalman(mech: lw.Mechanism, method: str = "extended", **more: Any) -> filtering.Filter:
    sensors = [filtering.gyroscope("imu", noise=0.05), filtering.encoders(mech, noise=0.02)]
    return filtering.kalman_filter(mech, sensors, step=STEP, method=method, **more)


def ahead(few: filtering.Filter, x: filtering.Estimate, tau: Array) -> dict[str, Array]:
    return few._ticked(x, tau, {}, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("mech", [linkage(), swing()], ids=lambda x: x.name)
def test_the_step_is_that_of_implicit_rollouts(mech: lw.Mechanism) -> None:
    q, v, tau = beginning(mech)
    tau = np.where(np.arange(mech.nv) == 0, tau, 0.0)
    few = kalman(mech, passive=False)
    out = ahead(few, few.start(q, v), tau)
    bare = mech.with_drive(mech.bodies[0].hinge_name, damping=0.0, stiffness=0.0)
    run = lw.rollout(bare, q, v, tau=tau[None], duration=STEP, step=STEP, integrator="implicit")
    assert np.allclose(out["q_predicted"], run.q[-1], atol=1e-8)
    assert np.allclose(out["v_predicted"], run.v[-1], atol=1e-6)
    # no time, no motion
    still = few.tick(few.start(q, v), tau, step=0.0)
    assert np.allclose(still.q, q, atol=1e-9) and np.allclose(still.v, v, atol=1e-9)


@pytest.mark.parametrize("mech", [linkage(), swing()], ids=lambda x: x.name)
def test_the_derivative_of_the_step(mech: lw.Mechanism) -> None:
    """C = P F* against differences of the filter's own step, also with an unknown push."""
    q, v, tau = beginning(mech, 1)
    few, nv, h = kalman(mech, pushed=["imu"]), mech.nv, 1e-5
    start = few.start(q, v)
    extra = np.random.default_rng(2).standard_normal(6)

    def there(d: Array) -> Array:
        at = written(mech, CARRIED)(q, d[:nv])["q"]
        x = filtering.Estimate(
            at, v + d[nv : 2 * nv], extra + d[2 * nv :], start.P, {}, {}, {}, start.parts
        )
        out = ahead(few, x, tau)
        return np.concatenate([lw.difference(mech, q, out["q_predicted"]), out["v_predicted"]])

    x = filtering.Estimate(q, v, extra, start.P, {}, {}, {}, start.parts)
    cross = ahead(few, x, tau)["cross"]
    for i in range(few.size):
        # of errors that loops allow: those of P
        way = start.P[:, i]
        slope = (there(h * way) - there(-h * way)) / (2 * h)
        if i < nv and mech.name == "swing":
            continue  # lw.difference is from q, the filter's from where the step ends
        assert np.allclose(cross[i, nv : 2 * nv], slope[nv:], rtol=1e-5, atol=1e-7)
        if mech.name != "swing":
            assert np.allclose(cross[i, :nv], slope[:nv], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mech", [linkage(), swing()], ids=lambda x: x.name)
def test_steps_by_rk4(mech: lw.Mechanism) -> None:
    """The step is that of rollouts, and its derivative that of the filter's own step."""
    q, v, tau = beginning(mech, 1)
    v, tau, nv, h = 0.3 * v, 0.3 * tau, mech.nv, 1e-5
    few = kalman(mech, passive=False, integrator="rk4")
    bare = mech.with_drive(mech.bodies[0].hinge_name, damping=0.0, stiffness=0.0)
    out = ahead(few, few.start(q, v), tau)
    for steps in (1, 20):  # the same step, and the motion itself
        options: Any = {"duration": STEP, "step": STEP / steps, "integrator": "rk4"}
        run = lw.rollout(bare, q, v, tau=tau[None], **options)
        assert np.allclose(out["q_predicted"], run.q[-1], rtol=0.0, atol=1e-8)
        assert np.allclose(out["v_predicted"], run.v[-1], rtol=0.0, atol=1e-6)
    euler = kalman(mech, passive=False)
    first = ahead(euler, euler.start(q, v), tau)["q_predicted"]
    assert np.abs(first - run.q[-1]).max() > 1e-4
    assert np.abs(lw.loops.constraint_error(mech, out["q_predicted"])).max() < 1e-9

    few = kalman(mech, pushed=["imu"], integrator="rk4")
    start, extra = few.start(q, v), np.random.default_rng(2).standard_normal(6)
    more = {}, {}, {}, start.parts

    def there(d: Array) -> Array:
        at = written(mech, CARRIED)(q, d[:nv])["q"]
        point = v + d[nv : 2 * nv], extra + d[2 * nv :], start.P
        out = ahead(few, filtering.Estimate(at, *point, *more), tau)
        return np.concatenate([lw.difference(mech, end, out["q_predicted"]), out["v_predicted"]])

    out = ahead(few, filtering.Estimate(q, v, extra, start.P, *more), tau)
    end, cross = out["q_predicted"], out["cross"]
    for i in range(few.size):  # errors that loops allow
        way = h * start.P[:, i]
        slope = (there(way) - there(-way)) / (2 * h)
        assert np.allclose(cross[i, : 2 * nv], slope, rtol=1e-6, atol=1e-8)
    assert np.abs(cross).max() > 1.0


def _shown(at: Writing, s: Structure) -> Any:
    n = 2 * at.mech.nv + s.extras
    x = State(at.q, at.v, at.read("extra", s.extras), at.read("tau", at.mech.nv))
    return _seen(at, s, Prediction(x, np.eye(n, dtype=object), None), {})[:2]


def test_an_accelerometer_feels_the_loop() -> None:
    mech = linkage()
    q, v, tau = beginning(mech, 3)
    cell = filtering.accelerometer("imu", noise=0.1)
    few = filtering.kalman_filter(mech, [cell], step=STEP, pushed=["imu"])
    kernel = written(mech, Formula(_shown, (few.structure,), names=("y", "C")))
    push = np.random.default_rng(4).standard_normal(6)
    total = tau - mech.damping * v - mech.stiffness * q
    given: dict[str, Any] = {"tau": total, "forces": {"imu": push}, "forces_frame": "world"}
    rot = lw.forward_kinematics(mech, q, "imu").rot
    seen = lw.node_acceleration(mech, q, v, "imu", kind="classical", **given)[3:]
    out = kernel(q, v, push, tau)
    assert np.allclose(out["y"], seen - rot.T @ mech.gravity, rtol=1e-7, atol=1e-7)
    tree = lw.dynamics.tree_of(mech)
    apart = lw.node_acceleration(tree, q, v, "imu", kind="classical", **given)[3:]
    assert np.abs(apart - seen).max() > 0.1
    h, nv = 1e-5, mech.nv
    for i in range(nv, few.size):  # positions off the loop have no acceleration to compare with
        d = h * np.eye(few.size)[i]
        sides = [
            kernel(q, v + s * d[nv : 2 * nv], push + s * d[2 * nv :], tau)["y"] for s in (1, -1)
        ]
        assert np.allclose(out["C"][i], (sides[0] - sides[1]) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_estimates_obey(method: str, integrator: str) -> None:
    """Measurements that no loop allows: estimates are closed, and covariances along the loop."""
    mech, rng = linkage(), np.random.default_rng(0)
    q, v, tau = beginning(mech, 5)
    few = kalman(mech, method, integrator=integrator)
    x = few.start(q, v)
    assert np.linalg.matrix_rank(x.P) == 2
    for _ in range(20):
        y = {"encoders": q + 0.05 * rng.standard_normal(3), "gyroscope imu": rng.standard_normal(3)}
        x = few.tick(x, 0.1 * tau, y)
    assert np.abs(lw.loops.constraint_error(mech, x.q)).max() < 1e-4
    assert np.abs(lw.loops.constraint_jacobian(mech, x.q) @ x.v).max() < 1e-4 * np.linalg.norm(x.v)
    ways = allowed(mech, x.q, few.size)
    inside = ways.T @ x.P @ ways
    assert ways.shape == (6, 2) and np.linalg.eigvalsh(inside).min() > 1e-8
    free = lw.loops.independent_coordinates(mech, x.q, prefer=["crank_pin"]).map
    across = np.linalg.qr(np.hstack([free, np.eye(3)]))[0][:, 1:]
    assert np.abs(across.T @ x.P[:3, :3]).max() < 1e-4 * np.abs(x.P[:3, :3]).max()


@pytest.mark.prove
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_errors_are_chi_square(method: str) -> None:
    """Sixty linkages with the noise that the filter assumes: two numbers are independent."""
    mech, runs, ticks, force = linkage(), 60, 60, 0.15
    rng, sigma = np.random.default_rng(7), np.array([0.05, 0.05, 0.05])
    few = filtering.kalman_filter(
        mech, [filtering.encoders(mech, noise=sigma)], step=STEP, force=[force, 0, 0], method=method
    )
    start = few.start(np.zeros((runs, 3)), position=0.1, velocity=0.5)
    ways = allowed(mech, np.zeros(3), 6)
    root = ways @ np.linalg.cholesky(ways.T @ start.P[0] @ ways)
    d = rng.standard_normal((runs, 2)) @ root.T
    q = lw.loops.project_position(mech, d[:, :3]).required()
    v = lw.loops.project_velocity(mech, q, d[:, 3:], weight=None)
    known = np.zeros((ticks, 3))
    known[:, 0] = 0.3 * np.sin(np.arange(ticks) / 10)
    tau = np.tile(known, (runs, 1, 1))
    tau[..., 0] += force / np.sqrt(STEP) * rng.standard_normal((runs, ticks))
    lost = {"duration": ticks * STEP, "step": STEP, "integrator": "implicit"}
    made = lw.rollout(mech, q, v, tau=tau, **lost)  # pyright: ignore
    q, v = made.q[:, 1:], made.v[:, 1:]
    y = q + sigma * rng.standard_normal(q.shape)
    out = few.run(start, known, {"encoders": y})
    assert out.independent == 2
    assert filtering.consistency(out.nees(q, v), 2).inside >= 0.85
    assert filtering.consistency(out.nis["encoders"].sum(axis=-1), 3).inside >= 0.85
    smooth = out.smoothed()
    assert filtering.consistency(smooth.nees(q, v), 2).inside >= 0.8
    assert np.abs(lw.loops.constraint_error(mech, smooth.q.reshape(-1, 3))).max() < 1e-3
    middle = slice(10, 50)
    errors = [np.std(x.errors(q, v)[:, middle, :3]) for x in (out, smooth)]
    assert errors[1] < 0.8 * errors[0] < 0.8 * 0.5 * 0.05
    wrong = few.with_noise(density=0.1 * few.inputs["density"]).run(start, known, {"encoders": y})
    assert filtering.consistency(wrong.nees(q, v), 2).inside < 0.5


@pytest.mark.prove
def test_ticks_in_c(tmp_path: Path) -> None:
    mech, few = linkage(), kalman(linkage())
    q, v, tau = beginning(mech, 6)
    x, kernel = few.start(q, v), few.kernel()
    y, use = np.random.default_rng(1).standard_normal(6), np.ones(4)
    arrays = {"q": x.q, "v": x.v, "P": x.P.ravel(), "tau": tau, "step": np.array([STEP])}
    arrays |= few.inputs | {"measured": y, "use": use}
    given = [np.ascontiguousarray(arrays[name], dtype=np.float64) for name in kernel.arguments]
    expected = kernel(*given)
    out = np.zeros(sum(np.size(part) for part in expected.values()))
    code = built(few.export_c("linkage_filter"), tmp_path)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
    assert code(*pointers) == 0
    flat = np.concatenate([np.ravel(part) for part in expected.values()])
    assert np.allclose(out, flat, rtol=1e-8, atol=1e-10)


def test_bad_questions() -> None:
    mech = linkage()
    few = kalman(mech)
    q, v = np.array([0.0, 1e-4, 0.0]), np.array([1.0, -1.0, 0.0])
    with pytest.raises(lw.ClosureError, match=r"where q breaks 'coupler_rocker\[\d\]'") as caught:
        few.start(q, v)
    calls = re.findall(
        r"([qv]) = (lw\.loops\.project_\w+\([^)]*\)(?:\.required\(\))?)", str(caught.value)
    )
    assert [name for name, _ in calls] == ["q", "v"]
    given = {"lw": lw, "mech": mech, "q": q, "v": v}
    for name, call in calls:  # the calls that the message gives
        given[name] = eval(call, given)
    assert few.start(given["q"], given["v"]).P.shape == (6, 6)
    with pytest.raises(lw.ClosureError, match="where v breaks"):
        few.start(np.zeros(3), [1.0, 0.0, 0.0])
