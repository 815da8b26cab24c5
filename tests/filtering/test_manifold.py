"""On quaternions: derivatives against differences, sensors against the functions they stand for."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.algebra import J, v as v_of
from linkwise.codegen.formula import Formula
from linkwise.codegen.writing import Writing
from linkwise.dynamics.kernels import written
from linkwise.filtering.motion import State
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT
from linkwise.filtering.tick import Prediction, Structure, _seen  # pyright: ignore[reportPrivateUsage]
from linkwise.spatial.array import Array

STEP = 0.02


@cache
def satellite() -> lw.Mechanism:
    """A free body with an arm on a spring."""
    b = lw.Builder("satellite", gravity=(0.3, -0.4, -9.0))
    box = lw.SpatialInertia.solid_box(3.0, (0.4, 0.3, 0.5))
    rod = lw.SpatialInertia.solid_box(0.8, (0.1, 0.1, 0.6)).moved(lw.Pose.translation((0, 0, 0.3)))
    b = b.body("base", "world", lw.hinges.Free(), inertia=box)
    drive = lw.Drive(damping=0.3, stiffness=2.0)
    b = b.body(
        "tip", "base", lw.hinges.Pin((0, 1, 0)), inertia=rod, inboard=(0.1, 0, 0.3), drive=drive
    )
    return b.node("imu", "tip", lw.Pose.rpy((0.3, -0.2, 0.5), (0.05, 0.1, 0.2))).build()


@cache
def flyer() -> lw.Mechanism:
    """A free body."""
    box = lw.SpatialInertia.solid_box(3.0, (0.4, 0.3, 0.5))
    b = lw.Builder("flyer").body("base", "world", lw.hinges.Free(), inertia=box)
    return b.node("imu", "base", (0.3, 0.2, 0.1)).build()


@cache
def sensors() -> tuple[filtering.Sensor, ...]:
    mech = satellite()
    return (
        filtering.marker("imu", noise=0.01, bias=0.01),
        filtering.gyroscope("imu", noise=0.01),
        filtering.accelerometer("imu", noise=0.1, bias=0.02),
        filtering.encoders(mech, ["tip"], noise=0.01),
        filtering.tachometers(mech, noise=0.01),
        filtering.load_cell(mech, "tip", noise=0.1),
        filtering.expression_sensor("velocity", J @ v_of, 6, noise=0.1, nodes=["base"]),
    )


@cache
def kalman(method: str, integrator: str = "euler", few: bool = True) -> filtering.Filter:
    chosen = sensors()[:2] if few else sensors()
    return filtering.kalman_filter(
        satellite(), chosen, step=STEP, method=method, integrator=integrator, pushed=["imu"]
    )


def state(seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """q, v, extra and tau."""
    rng, mech = np.random.default_rng(seed), satellite()
    extra = 0.5 * rng.standard_normal(kalman("extended").structure.extras)
    return mech.random(rng), 0.7 * rng.standard_normal(7), extra, rng.standard_normal(7)


def moved(q: Array, d: Array, mech: lw.Mechanism | None = None) -> Array:
    return written(mech or satellite(), CARRIED)(q, d)["q"]


def away(q0: Array, q1: Array, mech: lw.Mechanism | None = None) -> Array:
    return written(mech or satellite(), DISPLACEMENT)(q0, q1)


def test_displacements_have_the_tangent_space_of_the_mechanism() -> None:
    hinges = ("free", "spherical", "pin", "cylindrical")
    mech = lw.models.random_tree(4, 3, floating=True, hinges=hinges[1:])
    assert {"free", "spherical"} <= {body.hinge.kind for body in mech.bodies}
    rng, h = np.random.default_rng(3), 1e-6
    q, d = mech.random(rng), rng.standard_normal(mech.nv)
    there = moved(q, d, mech)
    assert np.allclose(away(q, there, mech), d, atol=1e-12)
    ours, theirs = moved(q, h * d, mech), mech.integrate(q, h * d)
    assert np.abs(ours - theirs).max() < 4 * h**2
    # J: one displacement more, seen from where the first one led
    J_carried = written(mech, CARRIED)(q, d)["J"]
    for i in range(mech.nv):
        e = h * np.eye(mech.nv)[i]
        sides = [away(there, moved(q, d + s * e, mech), mech) for s in (1.0, -1.0)]
        assert np.allclose(J_carried[:, i], (sides[0] - sides[1]) / (2 * h), atol=1e-8)
    assert np.allclose(written(mech, CARRIED)(q, 0 * d)["J"], np.eye(mech.nv), atol=1e-14)


@pytest.mark.parametrize("integrator", ["euler", pytest.param("rk4", marks=pytest.mark.prove)])
def test_the_derivative_of_the_step(integrator: str) -> None:
    """F from C = P F*, against differences of the step that the filter makes."""
    q, v, extra, tau = state()
    few = kalman("extended", integrator)
    start = few.start(q, v)

    def ahead(d: Array) -> dict[str, Array]:
        x = (moved(q, d[:7]), v + d[7:14], extra + d[14:])
        estimate = filtering.Estimate(*x, start.P, {}, {}, {}, start.parts)
        return few._ticked(estimate, tau, {}, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]

    n, h = few.size, 1e-5
    here = ahead(np.zeros(n))
    F = np.linalg.solve(start.P, here["cross"]).T
    for i in range(n):
        sides = [ahead(s * h * np.eye(n)[i]) for s in (1.0, -1.0)]
        parts = [
            np.concatenate([away(here["q_predicted"], x["q_predicted"]), x["v_predicted"]])
            for x in sides
        ]
        slope = (parts[0] - parts[1]) / (2 * h)
        assert np.allclose(F[:14, i], slope, rtol=1e-6, atol=1e-7)
    assert np.allclose(F[14:], np.eye(n)[14:])
    # and the step is that of a rollout, where nothing pushes
    extra[:] = 0.0
    still = ahead(np.zeros(n))
    run = lw.rollout(satellite(), q, v, tau=tau, duration=STEP, step=STEP, integrator=integrator)
    assert np.allclose(still["q_predicted"], run.q[-1], atol=1e-13)
    assert np.allclose(still["v_predicted"], run.v[-1], atol=1e-12)


def _shown(at: Writing, s: Structure) -> Any:
    n = 14 + s.extras
    x = State(at.q, at.v, at.read("extra", s.extras), at.read("tau", 7))
    return _seen(at, s, Prediction(x, np.eye(n, dtype=object), None), {})[:2]


def test_sensors_show_what_the_functions_compute() -> None:
    mech, few = satellite(), kalman("extended", few=False)
    q, v, _, tau = state(1)
    rng = np.random.default_rng(5)
    extra = rng.standard_normal(few.structure.extras)
    kernel = written(mech, Formula(_shown, (few.structure,), names=("y", "C")))
    out = kernel(q, v, extra, tau)
    y, force = out["y"], {"imu": extra[:6]}
    poses = lw.forward_kinematics(mech, q, "imu")
    total = tau - mech.damping * v - np.array([*[0.0] * 6, 2.0 * q[-1]])
    given: dict[str, Any] = {"tau": total, "forces": force, "forces_frame": "world"}
    classical = lw.node_acceleration(mech, q, v, "imu", kind="classical", **given)[3:]
    loads = lw.hinge_forces(mech, q, v, **given)
    expected = [
        poses.p + extra[6:9],
        lw.node_velocity(mech, q, v, "imu")[:3],
        classical - poses.rot.T @ mech.gravity + extra[9:12],
        q[-1:],
        v[-1:],
        loads[1],
        lw.node_velocity(mech, q, v, "base"),
    ]
    assert np.allclose(y, np.concatenate(expected), rtol=1e-10, atol=1e-10)
    h, n = 1e-5, len(out["C"])
    for i in range(n):
        d = h * np.eye(n)[i]
        sides = [
            kernel(moved(q, s * d[:7]), v + s * d[7:14], extra + s * d[14:], tau)["y"]
            for s in (1.0, -1.0)
        ]
        assert np.allclose(out["C"][i], (sides[0] - sides[1]) / (2 * h), rtol=1e-6, atol=1e-6)


def test_both_filters_agree_where_errors_are_small() -> None:
    """What the points add is of second order in the deviations."""
    q, v, tau = (x[:n] for x, n in zip((state(2)[0], *state(2)[1::2]), (7, 6, 6), strict=True))
    y = {"marker imu": lw.forward_kinematics(flyer(), q, "imu").p + 1e-3}
    gaps = list[float]()
    for small in (1e-2, 1e-3):
        both = list[Any]()
        for method in ("extended", "unscented"):
            seen = filtering.marker("imu", noise=0.01)
            few = filtering.kalman_filter(flyer(), [seen], step=STEP, method=method, force=small)
            x = few.start(q, v, position=small, velocity=small)
            both.append(few.tick(x, tau, y))
        scale = np.sqrt(np.diag(both[0].P))
        e = [*away(both[0].q, both[1].q, flyer()), *(both[1].v - both[0].v)] / scale
        gaps.append(float(np.abs(e).max()))
        assert np.allclose(both[0].P, both[1].P, rtol=0, atol=20 * small * scale.max() ** 2)
    assert gaps[1] < 0.2 * gaps[0] < 0.02
