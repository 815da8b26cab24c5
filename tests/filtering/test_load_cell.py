"""Load cells of mechanisms with loops: forces of loops by dense matrices, and honest filters."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.algebra import lam as lam_of
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import written
from linkwise.filtering.allowed import allowed
from linkwise.filtering.tangent import CARRIED
from linkwise.model.closure import constant_directions
from linkwise.spatial.array import Array
from tests.codegen.rungs import built
from tests.dense_kinematics import body_jacobians
from tests.filtering.test_closed import (
    STEP,
    _shown,  # pyright: ignore[reportPrivateUsage]
    beginning,
    linkage,
    swing,
)
from tests.filtering.test_large import in_loops

BODY = {"four_bar": "rocker", "swing": "left", "platform": "arm"}


@cache
def platform() -> lw.Mechanism:
    """A spatial loop closed by a ball, with a gear: none of its four rows depends on others."""
    rng = np.random.default_rng(1)
    b, parent = lw.Builder("platform"), "world"
    names = ["base", "arm", "hand", "tool", "roll", "end"]
    for i, name in enumerate(names):
        axis = np.eye(3)[i % 3] + 0.3 * rng.standard_normal(3)
        solid = lw.SpatialInertia.solid_box(1.0, (0.3, 0.2, 0.1))
        inertia = solid.moved(lw.Pose.translation(0.1 * rng.standard_normal(3)))
        place = lw.Pose.rpy(rng.standard_normal(3), 0.4 * rng.standard_normal(3))
        b = b.body(name, parent, lw.hinges.Pin(tuple(axis)), inertia=inertia, inboard=place)
        parent = name
    b = b.node("tip", "end", (0.1, 0.2, 0.0)).node("imu", "hand", (0.1, 0.0, 0.1))
    b = b.couple("gear", "roll", {"end": 0.5})
    post = lw.forward_kinematics(b.build(), np.zeros(6), "tip").p
    b = b.node("post", "world", tuple(post)).node("near", "world", tuple(post + 0.1))
    return b.loop("ball", "post", "tip", lw.hinges.Spherical()).build()


def dense(mech: lw.Mechanism, q: Array, v: Array, tau: Array, push: Array) -> tuple[Array, Array]:
    """Forces (n, 6) through hinges in axes of bodies, and λ: Newton, Euler and Lagrange.

    The push is on node "imu", in world axes. Velocities are differentiated along the motion.
    """
    nv, n, h = mech.nv, mech.n_bodies, 1e-6

    def along(of: Any, vdot: Array) -> Array:
        sides = [
            of(mech.integrate(q, t * v + 0.5 * t * t * vdot)) @ (v + t * vdot) for t in (h, -h)
        ]
        return (sides[0] - sides[1]) / (2 * h)

    def closure(q: Array) -> Array:
        return lw.loops.constraint_jacobian(mech, q)

    still, V, J = np.zeros(nv), body_jacobians(mech, q) @ v, body_jacobians(mech, q)
    M = np.array([body.inertia.matrix for body in mech.bodies])
    rot = [lw.forward_kinematics(mech, q, body.name).rot for body in mech.bodies]
    place = [lw.forward_kinematics(mech, q, body.name).p for body in mech.bodies]
    to = np.array([np.kron(np.eye(2), x.T) for x in rot])  # from the axes of the world
    node, k = mech.node("imu"), mech.body_index[mech.node("imu").body]
    outer = np.zeros((n, 6))
    outer[k] = node.pose.shift @ np.kron(np.eye(2), node.pose.rot.T) @ to[k] @ push
    free = np.array([R.T @ mech.gravity for R in rot])

    def wrench(alpha: Array) -> Array:
        """M α + V ×* M V − weight − push, of each body."""
        momentum = np.einsum("kij,kj->ki", M, V)
        turn = np.cross(V[:, :3], momentum[:, :3]) + np.cross(V[:, 3:], momentum[:, 3:])
        slide = np.cross(V[:, :3], momentum[:, 3:])
        weight = np.einsum("kij,kj->ki", M[:, :, 3:], free)
        return np.einsum("kij,kj->ki", M, alpha) + np.hstack([turn, slide]) - weight - outer

    c = np.einsum("kij,ki->j", J, wrench(along(lambda q: body_jacobians(mech, q), still)))
    mass = np.einsum("kia,kij,kjb->ab", J, M, J) + np.diag(mech.armature)
    A, gamma = closure(q), along(closure, still)
    system = np.block([[mass, -A.T], [A, np.zeros((len(A), len(A)))]])
    x = np.linalg.lstsq(system, np.concatenate([tau - c, -gamma]), rcond=1e-10)[0]
    vdot = x[:nv]
    lam = np.linalg.lstsq(A.T, mass @ vdot + c - tau, rcond=1e-8)[0]
    F, at = wrench(along(lambda q: body_jacobians(mech, q), vdot)), 0
    for loop in mech.loops:
        S = constant_directions(loop.hinge)
        assert S is not None
        on_b, at = S.T @ lam[at : at + len(S)], at + len(S)
        here = lw.forward_kinematics(mech, q, loop.node_b)
        f, tip = here.rot @ on_b[3:], here.p
        for name, sign in ((loop.node_b, 1.0), (loop.node_a, -1.0)):
            if mech.node(name).body != "world":
                i = mech.body_index[mech.node(name).body]
                moment = here.rot @ on_b[:3] + np.cross(tip - place[i], f)
                F[i] -= sign * to[i] @ np.concatenate([moment, f])
    for i in range(n - 1, -1, -1):
        p = mech.parent[i]
        if p >= 0:
            f = rot[i] @ F[i, 3:]
            moment = rot[i] @ F[i, :3] + np.cross(place[i] - place[p], f)
            F[p] += to[p] @ np.concatenate([moment, f])
    return F, lam


@pytest.mark.parametrize("mech", [linkage(), swing(), platform()], ids=lambda x: x.name)
def test_the_force_is_that_of_newton_and_lagrange(mech: lw.Mechanism) -> None:
    q, v, tau = beginning(mech, 3)
    body, nv = BODY[mech.name], mech.nv
    few = filtering.kalman_filter(
        mech, [filtering.load_cell(mech, body, noise=1.0)], step=STEP, pushed=["imu"]
    )
    kernel = written(mech, Formula(_shown, (few.structure,), names=("y", "C")))
    push = np.random.default_rng(4).standard_normal(6)
    out = kernel(q, v, push, tau)
    acting = tau - mech.damping * v
    if mech.nq == nv:
        acting = acting - mech.stiffness * q
    F, _ = dense(mech, q, v, acting, push)
    k = mech.body_index[body]
    assert np.allclose(out["y"], F[k], rtol=1e-5, atol=1e-5 * np.abs(F).max())
    given: dict[str, Any] = {"tau": acting, "forces": {"imu": push}, "forces_frame": "world"}
    assert np.allclose(out["y"], lw.hinge_forces(mech, q, v, **given)[k], rtol=1e-7, atol=1e-7)
    apart = lw.hinge_forces(mech, q, v, **given, loops="open")[k]
    assert np.abs(apart - out["y"]).max() > 0.1

    def there(d: Array) -> Array:
        at = written(mech, CARRIED)(q, d[:nv])["q"]
        return kernel(at, v + d[nv : 2 * nv], push + d[2 * nv :], tau)["y"]

    h = 1e-6
    ways = allowed(mech, q, few.size)
    slopes = [(there(h * way) - there(-h * way)) / (2 * h) for way in ways.T]
    size = np.abs(slopes).max()
    assert size > 0.1
    assert np.allclose(out["C"].T @ ways, np.transpose(slopes), rtol=1e-4, atol=1e-5 * size)


@cache
def sarrus() -> lw.Mechanism:
    """A plate on two folding legs: a row of its loop depends on others while it is closed."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.05, 0.05, 0.3)).moved(
        lw.Pose.translation((0, 0, 0.15))
    )
    x, y, up = lw.hinges.Pin((1, 0, 0)), lw.hinges.Pin((0, 1, 0)), (0.0, 0.0, 0.3)
    plate = lw.SpatialInertia.solid_box(3.0, (0.3, 0.3, 0.05))
    b = lw.Builder("sarrus").body("a1", "world", y, inertia=rod, inboard=(0.3, 0, 0))
    b.body("a2", "a1", y, inertia=rod, inboard=up)
    b.body("plate", "a2", y, inertia=plate, inboard=up)
    b.body("b1", "world", x, inertia=rod, inboard=(0, 0.3, 0))
    b.body("b2", "b1", x, inertia=rod, inboard=up)
    b.node("end", "b2", up).node("corner", "plate", (-0.3, 0.3, 0))
    return b.loop("pin", "corner", "end", x).build()


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_rows_that_depend_on_others_only_while_closed(integrator: str) -> None:
    """Derivatives across the loop do not exist, and are not needed: points give the same."""
    mech, ticks, rng, step = sarrus(), 40, np.random.default_rng(0), 0.005
    q = lw.loops.project_position(mech, [0.5, -1.0, 0.5, -0.5, 1.0]).required()
    v = lw.loops.project_velocity(mech, q, [1.0, -2.0, 1.0, -1.0, 2.0])
    tau = np.tile([-8.0, 0.0, 0.0, 0.0, 0.0], (ticks, 1))
    run = lw.rollout(mech, q, v, tau=tau, duration=ticks * step, step=step, integrator="implicit")
    shown = lw.hinge_forces(mech, run.q[1:], run.v[1:], tau=tau)[:, mech.body_index["b1"]]
    y = {
        "load cell b1": shown + 0.3 * rng.standard_normal(shown.shape),
        "encoders": run.q[1:, :1] + 0.02 * rng.standard_normal((ticks, 1)),
    }
    cell = filtering.load_cell(mech, "b1", noise=0.3)
    encoder = filtering.encoders(mech, ["a1"], noise=0.02)
    ends = list[Any]()
    for method in ("extended", "unscented"):
        few = filtering.kalman_filter(
            mech, [cell, encoder], step=step, force=[0.1, 0, 0, 0, 0], method=method,
            integrator=integrator,
        )  # fmt: skip
        out = few.run(few.start(q, v, position=0.02, velocity=0.1), tau, y)
        assert 4.0 < out.nis["load cell b1"].mean() < 8.0  # six numbers: 6 ± 0.55
        assert np.abs(lw.loops.constraint_error(mech, out.q)).max() < 1e-5
        ends.append(out)
    few, points = ends
    assert np.abs(few.q[-1] - q).max() > 0.1
    assert np.allclose(few.q[-1], points.q[-1], atol=0.1 * few.deviation[-1, 0])
    assert np.allclose(few.P[-1], points.P[-1], atol=0.02 * np.abs(few.P[-1]).max())


@pytest.mark.parametrize("mech", [linkage(), platform()], ids=lambda x: x.name)
def test_a_sensor_of_the_forces_of_loops(mech: lw.Mechanism) -> None:
    q, v, tau = beginning(mech, 5)
    rows = len(lw.loops.constraint_names(mech))
    cell = filtering.expression_sensor("bolts", lam_of, rows, noise=1.0)
    few = filtering.kalman_filter(mech, [cell], step=STEP, passive=False, pushed=["imu"])
    out = written(mech, Formula(_shown, (few.structure,), names=("y", "C")))(q, v, np.zeros(6), tau)
    expected = lw.loops.constraint_forces(mech, q, v, tau)
    assert np.abs(expected).max() > 1.0
    assert np.allclose(out["y"], expected, rtol=1e-7, atol=1e-7)
    assert np.allclose(out["y"], dense(mech, q, v, tau, np.zeros(6))[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_ticks_with_matrices_in_loops(method: str) -> None:
    mech = linkage()
    cell = filtering.load_cell(mech, "rocker", noise=0.5)
    few = filtering.kalman_filter(mech, [cell], step=STEP, method=method, pushed=["imu"])
    q, v, tau = beginning(mech, 1)
    y = {cell.name: np.random.default_rng(1).standard_normal(6)}
    straight, looped = (x.tick(x.start(q, v), tau, y) for x in (few, in_loops(few)))
    assert np.abs(straight.innovation[cell.name]).max() > 0.1
    for name in ("q", "v", "extra", "P"):
        assert np.allclose(getattr(looped, name), getattr(straight, name), rtol=1e-8, atol=1e-10)


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["extended", "unscented"])
def test_normal_errors(method: str) -> None:
    """Forty linkages with a cell in a pin: innovations are as large as the filter says."""
    mech, runs, ticks, force = linkage(), 40, 40, 0.03
    rng, k = np.random.default_rng(3), mech.body_index["rocker"]
    cell = filtering.load_cell(mech, "rocker", noise=0.2)
    encoders = filtering.encoders(mech, ["crank_pin"], noise=0.05)
    few = filtering.kalman_filter(
        mech, [encoders, cell], step=STEP, force=[force, 0, 0], method=method
    )
    start = few.start(np.zeros((runs, 3)), position=0.02, velocity=0.1)
    ways = allowed(mech, np.zeros(3), 6)
    root = ways @ np.linalg.cholesky(ways.T @ start.P[0] @ ways)
    d = rng.standard_normal((runs, 2)) @ root.T
    q = lw.loops.project_position(mech, d[:, :3]).required()
    v = lw.loops.project_velocity(mech, q, d[:, 3:], weight=None)
    known = np.zeros((ticks, 3))
    known[:, 0] = 0.3 * np.sin(np.arange(ticks) / 10)
    tau = np.tile(known, (runs, 1, 1))
    tau[..., 0] += force / np.sqrt(STEP) * rng.standard_normal((runs, ticks))
    made = lw.rollout(mech, q, v, tau=tau, duration=ticks * STEP, step=STEP, integrator="implicit")
    q, v = made.q[:, 1:], made.v[:, 1:]
    # the cell is read while the known forces act: what is not known is within the steps
    flat = [x.reshape(-1, 3) for x in (q, v, np.broadcast_to(known, q.shape))]
    acting = flat[2] - mech.damping * flat[1] - mech.stiffness * flat[0]
    shown = lw.hinge_forces(mech, flat[0], flat[1], tau=acting)[:, k].reshape(runs, ticks, 6)
    y = {"encoders": q[..., :1], "load cell rocker": shown}
    for name, sigma in (("encoders", 0.05), ("load cell rocker", 0.2)):
        y[name] = y[name] + sigma * rng.standard_normal(y[name].shape)
    out = few.run(start, known, y)
    assert filtering.consistency(out.nis["load cell rocker"], 6).inside >= 0.85
    assert filtering.consistency(out.nees(q, v), 2).inside >= 0.85
    blind = few.run(start, known, {"encoders": y["encoders"]})
    speed = [np.std(x.errors(q, v)[:, 10:, 3]) for x in (out, blind)]
    assert speed[0] < 0.9 * speed[1]
    wrong = few.with_noise(variance=0.1 * few.inputs["variance"]).run(start, known, y)
    assert filtering.consistency(wrong.nis["load cell rocker"], 6).inside < 0.5


@pytest.mark.prove
def test_ticks_in_c(tmp_path: Path) -> None:
    mech = linkage()
    few = filtering.kalman_filter(
        mech, [filtering.load_cell(mech, "rocker", noise=0.1)], step=STEP, force=0.1
    )
    q, v, tau = beginning(mech, 6)
    x, kernel = few.start(q, v), few.kernel()
    y = np.random.default_rng(1).standard_normal(6)
    arrays = {"q": x.q, "v": x.v, "P": x.P.ravel(), "tau": tau, "step": np.array([STEP])}
    arrays |= few.inputs | {"measured": y, "use": np.ones(1)}
    given = [np.ascontiguousarray(arrays[name], dtype=np.float64) for name in kernel.arguments]
    expected = kernel(*given)
    assert np.abs(expected["innovation"]).max() > 0.1
    out = np.zeros(sum(np.size(part) for part in expected.values()))
    code = built(few.export_c("linkage_filter"), tmp_path)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (*given, out)]
    assert code(*pointers) == 0
    flat = np.concatenate([np.ravel(part) for part in expected.values()])
    assert np.allclose(out, flat, rtol=1e-7, atol=1e-9)
