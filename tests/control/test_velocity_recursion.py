"""Riccati steps that choose velocities, beside (2) and (3) in NumPy with `lw.linearize`."""

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.control import Cost
from linkwise.control.optimize import problem_of
from linkwise.control.solver import Iteration, Limits
from linkwise.control.velocity_recursion import VelocityRecursion
from linkwise.spatial.array import Array

STEP, HORIZON = 0.02, 6


def damped_arm() -> lw.Mechanism:
    """Three links, branched, with springs and dampers."""
    build = lw.Builder("damped")
    box = lw.SpatialInertia.solid_box(2.0, (0.5, 0.1, 0.1)).moved(lw.Pose.translation((0.25, 0, 0)))
    for name, parent, axis in (("a", "world", "y"), ("b", "a", "z"), ("c", "a", "y")):
        hinge = lw.hinges.Pin((0, 1, 0) if axis == "y" else (0, 0, 1))
        at = lw.Pose.translation((0.5 * (parent != "world"), 0.0, 0.0))
        drive = lw.Drive(damping=0.4, stiffness=3.0)
        build.body(name, parent, hinge, inertia=box, drive=drive, inboard=at)
    return build.build()


def costs() -> list[Cost]:
    return [
        Cost.posture(weight=2.0, final=20.0),
        Cost.velocity(weight=0.1, final=1.0),
        Cost.effort(weight=0.01),
    ]


def swept(it: Iteration, mech: lw.Mechanism, h: float) -> tuple[list[Array], list[Array], Any]:
    """K and k of all knots, and the sums α first + ½ α² second, in NumPy."""
    x, K, nv = it.trajectory, it.knots, mech.nv
    gains, steps, first, second = list[Array](), list[Array](), 0.0, 0.0
    P, p, rho = np.zeros((2 * nv, 2 * nv)), np.zeros(2 * nv), it.rho[0]
    for i in reversed(range(K)):
        q, v, u = x[i, :nv], x[i, nv : 2 * nv], x[i + 1, 2 * nv : 3 * nv]
        model = lw.linearize(mech, q, v, u, step=h, integrator="euler")
        made = lw.rollout(mech, q, v, tau=u, step=h, duration=h, integrator="euler")
        to = np.concatenate([made.q[-1], made.v[-1]])
        gap = to - x[i + 1, : 2 * nv] if i + 1 < K else np.zeros(2 * nv)
        weight = it._held["weight"][i]
        l_x, l_u = weight[: 2 * nv] * np.concatenate([q, v]), weight[2 * nv :] * u
        A, B, ahead = model.A, model.B, p + P @ gap
        q_uu, q_ux = np.diag(weight[2 * nv :]) + B.T @ P @ B, B.T @ P @ A
        q_x, q_u = l_x + A.T @ ahead, l_u + B.T @ ahead
        both = -np.linalg.solve(q_uu + rho * np.eye(nv), np.column_stack([q_ux, q_u]))
        gain, step = both[:, :-1], both[:, -1]
        first += -ahead @ gap - q_u @ step
        second += gap @ P @ gap - step @ q_uu @ step
        P = np.diag(weight[: 2 * nv]) + A.T @ P @ A + q_ux.T @ gain
        p = q_x + q_ux.T @ step
        gains.append(gain)
        steps.append(step)
    return gains, steps, (first, second)


@pytest.mark.parametrize("rho", [1e-9, 0.3])
@pytest.mark.parametrize("make", [damped_arm, lambda: lw.models.chain(4)])
def test_sweep_is_that_of_plain_matrices(make: Any, rho: float) -> None:
    mech, rng = make(), np.random.default_rng(1)
    q, v = rng.normal(size=mech.nv), rng.normal(size=mech.nv)
    p = problem_of(mech, q, v, costs=costs(), step=STEP, horizon=HORIZON, limits=())
    assert isinstance(p.program.knot[1], VelocityRecursion)
    it = Iteration(p.program, p.data, p.step, Limits(1, 1e-9, 1e-5))
    it.trajectory[:] += 0.3 * rng.normal(size=it.trajectory.shape)  # with gaps
    it.rho[:] = rho
    it.sweep()
    n, m, K = it.n, it.m, it.knots
    gains, steps, (first, second) = swept(it, mech, STEP)
    for row, gain, step in zip(it.gains[1:K], gains[1:], steps[1:], strict=True):
        assert np.abs(row[: m * n].reshape(m, n) - gain).max() < 1e-9 * np.abs(gain).max()
        assert np.abs(row[m * n : m * n + m] - step).max() < 1e-9 * np.abs(step).max()
    sums = it.gains[K - 1, -6:]
    assert np.isclose(sums[0], first, rtol=1e-9) and np.isclose(sums[1], second, rtol=1e-9)
    assert abs(gains[-1]).max() > 0.1 and sums[3] > 1e-3


def test_gains_of_a_batch_are_those_along_its_motions() -> None:
    mech, rng = damped_arm(), np.random.default_rng(2)
    q = rng.normal(size=(3, 3))
    made = lw.optimize(mech, q, costs=costs(), step=STEP, horizon=20, limits=())
    assert (made.status == 0).all()
    weights = np.repeat([2.0, 0.1], 3) * STEP
    for i in range(3):
        along = lw.lqr(
            mech, made.q[i, :-1], made.v[i, :-1], made.tau[i], Q=weights, R=0.01 * STEP,
            final=np.repeat([20.0, 1.0], 3), step=STEP, horizon=20, integrator="euler",
        )  # fmt: skip
        assert np.abs(made.gain[i] + along.gain).max() < 1e-4 * np.abs(along.gain).max()
