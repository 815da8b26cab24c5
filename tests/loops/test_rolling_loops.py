"""Loops by rolling balls and soft fingers: rows by formula, steps that hold."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import filtering
from linkwise.dynamics.kernels import written
from linkwise.filtering.allowed import allowed
from linkwise.filtering.tangent import CARRIED, DISPLACEMENT, error_size
from linkwise.model import closure
from linkwise.spatial.array import Array
from tests.control import test_phases as phases

HINGES = (
    lw.hinges.RollingBall(0.3), lw.hinges.RollingBall(0.3).reversed(),
    lw.hinges.SoftFinger((0.2, 0.1, 1.0)).reversed(),
)  # fmt: skip


@pytest.mark.parametrize("hinge", HINGES, ids=lambda x: x.kind)
def test_rows_by_formula_are_those_of_the_hinge(hinge: lw.hinges.Hinge) -> None:
    """The same span as the complement of H, and the same acceleration, where the loop is closed."""
    rng, endless = np.random.default_rng(0), np.full(hinge.nq, np.inf)
    for _ in range(4):
        q, W = hinge.random(rng, -endless, endless), rng.standard_normal(hinge.nv)
        X, H = hinge.pose(q), hinge.hinge_map(q)
        made = closure.blocked(hinge, X, W @ H)
        assert made.S.shape == (6 - hinge.nv, 6)
        assert np.linalg.matrix_rank(made.S) == 6 - hinge.nv
        assert np.allclose(made.S @ H.T, 0.0, atol=1e-12)
        assert np.allclose(made.rate, -made.S @ hinge.bias(q, W), atol=1e-12)
        assert np.abs(hinge.bias(q, W)).max() > 0.01 or "soft" in hinge.kind


@cache
def fingered(hinge: lw.hinges.Hinge) -> lw.Mechanism:
    """A fingertip that touches a plate in a loop."""
    rod = lw.SpatialInertia.solid_box(1.0, (0.3, 0.1, 0.2)).moved(lw.Pose.translation((0.2, 0, 0)))
    b = lw.Builder("fingered").body("plate", "world", lw.hinges.Planar(), inertia=rod)
    b = b.body("a", "world", lw.hinges.Gimbal(), inertia=rod, inboard=(0, 0, 0.3))
    b = b.body("c", "a", lw.hinges.Translation(), inertia=rod, inboard=(0.3, 0, 0))
    b = b.node("imu", "a", (0.1, 0.2, 0.3)).node("tip", "c", (0.1, 0, 0.1))
    return b.loop("touch", "plate", "tip", hinge).build()


def beginning(mech: lw.Mechanism) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    q = mech.integrate(mech.neutral(), 0.4 * rng.standard_normal(mech.nv))
    q = lw.loops.project_position(mech, q).required()
    v = lw.loops.project_velocity(mech, q, 0.5 * rng.standard_normal(mech.nv))
    return q, v, rng.standard_normal(mech.nv)


@pytest.mark.parametrize("hinge", HINGES, ids=lambda x: x.kind)
def test_derivatives_along_motions(hinge: lw.hinges.Hinge) -> None:
    """J̇ v and ∂v̇/∂q against differences of J and of forward dynamics."""
    mech, h = fingered(hinge), 1e-5
    q, v, tau = beginning(mech)
    J = [lw.loops.constraint_jacobian(mech, mech.integrate(q, s * h * v)) for s in (1, -1)]
    slope = (J[0] - J[1]) @ v / (2 * h)
    assert np.allclose(lw.loops.constraint_bias(mech, q, v), slope, atol=1e-7)
    assert np.abs(slope).max() > 0.01
    vdot = lw.forward_dynamics(mech, q, v, tau)
    rows = lw.loops.constraint_jacobian(mech, q) @ vdot + slope
    assert np.allclose(rows, 0.0, atol=1e-7) and np.abs(vdot).max() > 1.0
    by = lw.forward_dynamics_derivatives(mech, q, v, tau)
    for i, e in enumerate(np.eye(mech.nv)):
        sides = [lw.forward_dynamics(mech, q, v + s * h * e, tau) for s in (1, -1)]
        assert np.allclose(by.v[:, i], (sides[0] - sides[1]) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("hinge", HINGES, ids=lambda x: x.kind)
def test_loops_built_in_move_the_same(hinge: lw.hinges.Hinge) -> None:
    mech = fingered(hinge)
    q, v, tau = beginning(mech)
    inside = lw.loops.embed(mech, at=q)
    u, force = v[inside.independent], tau[inside.independent]
    total = np.zeros(mech.nv)
    total[inside.independent] = force
    expected = lw.forward_dynamics(mech, q, v, total)[inside.independent]
    assert np.allclose(lw.forward_dynamics(inside, q, u, force), expected, rtol=1e-9, atol=1e-9)
    assert np.abs(expected).max() > 1.0


def test_nonholonomic_loops_built_in_have_no_linear_motion() -> None:
    box = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3)).moved(lw.Pose.translation((0.1, 0, 0)))
    b = lw.Builder("two").body("a", "world", lw.hinges.Gimbal(), inertia=box)
    b = b.body("c", "a", lw.hinges.Translation(), inertia=box)
    mech = b.loop("touch", "world", "c", lw.hinges.SoftFinger()).build()
    inside = lw.loops.embed(mech)
    zero = np.zeros(inside.nv)
    with pytest.raises(lw.ModelError, match="loop 'touch' is a soft finger: it reaches more"):
        lw.linearize(inside, mech.neutral(), zero, zero)


@pytest.mark.parametrize(
    "hinge",
    [*HINGES, lw.hinges.PointOnPlane(0.2), lw.hinges.PointOnPlane(0.2).reversed()],
    ids=lambda x: x.kind,
)
def test_implicit_steps_converge(hinge: lw.hinges.Hinge) -> None:
    mech = fingered(hinge)
    q, v, tau = beginning(mech)
    motion: dict[str, Any] = {"tau": tau, "duration": 0.04}
    exact = lw.rollout(mech, q, v, step=5e-4, integrator="rk4", **motion)
    gaps = list[float]()
    for step in (4e-3, 1e-3):
        run = lw.rollout(mech, q, v, step=step, integrator="implicit", **motion)
        gaps.append(float(np.abs(run.q[-1] - exact.q[-1]).max()))
    assert gaps[1] < 0.35 * gaps[0] < 0.03 and np.abs(exact.q[-1] - q).max() > 0.02
    assert np.abs(lw.loops.constraint_error(mech, run.q[-1])).max() < 1e-4


def test_a_filter_holds_a_rolling_contact() -> None:
    """The step is that of rollouts, its derivative that of differences; slip is no error of q."""
    mech = fingered(HINGES[0])
    seen = [filtering.gyroscope("imu", noise=0.1), filtering.marker("plate", noise=0.01)]
    few = filtering.kalman_filter(mech, seen, step=0.01)
    q, v, tau = beginning(mech)
    start, ways = few.start(q, v), error_size(mech)
    assert allowed(mech, q, few.size).shape == (18, 8 + 6)  # of positions only the height is held

    def ahead(d: Array) -> dict[str, Array]:
        at = written(mech, CARRIED)(q, d[:ways])["q"], v + d[ways:], np.zeros(0)
        x = filtering.Estimate(*at, start.P, {}, {}, {}, {})
        return few._ticked(x, tau, {}, None, {}, smoothing=True)[1]  # pyright: ignore[reportPrivateUsage]

    here = ahead(np.zeros(few.size))
    run = lw.rollout(mech, q, v, tau=tau[None], duration=0.01, step=0.01, integrator="implicit")
    assert np.allclose(here["q_predicted"], run.q[-1], atol=1e-8)
    assert np.allclose(here["v_predicted"], run.v[-1], atol=1e-6)
    for i, way in enumerate(1e-5 * start.P):
        sides = [ahead(s * way) for s in (1.0, -1.0)]
        each = [
            np.concatenate([
                written(mech, DISPLACEMENT)(here["q_predicted"], x["q_predicted"]),
                x["v_predicted"],
            ])
            for x in sides
        ]  # fmt: skip
        slope = (each[0] - each[1]) / 2e-5
        assert np.allclose(here["cross"][i], slope, rtol=1e-5, atol=1e-7)
    truth = lw.rollout(mech, q, v, tau=tau[None], duration=0.1, step=0.01, integrator="implicit")
    near = few.start(
        lw.loops.project_position(mech, mech.integrate(q, np.full(9, 0.02))).required(),
        position=0.03,
        velocity=0.5,
    )
    for at, u in zip(truth.q[1:], truth.v[1:], strict=True):
        y = {"gyroscope imu": lw.node_velocity(mech, at, u, "imu")[:3]}
        y["marker plate"] = lw.forward_kinematics(mech, at, "plate").p
        near = few.tick(near, tau, y)
        assert np.abs(lw.loops.constraint_error(mech, near.q)).max() < 2e-3
    turning = lw.node_velocity(mech, near.q, near.v, "imu")[:3]
    assert np.allclose(turning, y["gyroscope imu"], atol=0.05 * np.abs(turning).max())
    assert np.abs(truth.q[-1] - q).max() > 0.05


@pytest.mark.parametrize("hinge", HINGES, ids=lambda x: x.kind)
def test_steps_of_optimised_motions(hinge: lw.hinges.Hinge) -> None:
    """Those of implicit rollouts, with slopes that are those of differences."""
    mech = fingered(hinge)
    q, v, tau = beginning(mech)
    problem, it = phases.iteration(mech, q, v, horizon=1)
    q_to, v_to, slope = phases.stepped(problem, it, q, v, tau)
    step: dict[str, Any] = {"duration": phases.STEP, "step": phases.STEP}
    run = lw.rollout(mech, q, v, tau=tau[None], integrator="implicit", **step)
    assert np.allclose(run.q[-1], q_to, atol=1e-9) and np.allclose(run.v[-1], v_to, atol=1e-7)
    phases._check_slope(problem, it, (q, v, tau), slope)  # pyright: ignore[reportPrivateUsage]
