"""Kinematics on many random trees of every hinge: against plain kinematics and differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import linkwise as lw
from linkwise.algebra import E_phi
from linkwise.algebra.dense import Dense
from tests.cases import close, state
from tests.dense_kinematics import body_jacobians, node_jacobian
from tests.dynamics.test_random_trees import trees


@pytest.mark.slow
@settings(max_examples=25)
@given(trees(), st.integers(0, 1000))
def test_velocities_rates_and_forces(mech, seed):
    q, v, vdot = state(mech, seed)
    node = mech.nodes[-1].name
    V = body_jacobians(mech, q) @ v
    size = float(np.abs(V).max(initial=1e-9))
    close(lw.dynamics.body_velocities(mech, q, v), V, 1e-12, size)
    close(
        lw.dynamics.inboard_velocities(mech, q, v) + lw.dynamics.hinge_velocities(mech, q, v),
        V,
        1e-12,
        size,
    )
    inertial, poses = lw.dynamics.body_velocities(mech, q, v, frame="inertial"), mech.poses(q)
    for k in range(mech.n_bodies):
        pose = poses[k]
        about = pose.inverse().shift.T @ V[k]
        scale = size * (1.0 + float(np.abs(pose.p).max()))
        close(inertial[k], about, 1e-12, scale)
    J = lw.jacobian(mech, q, node)
    expected = node_jacobian(mech, q, node)
    reach = float(np.abs(expected).max(initial=1e-9))
    close(J, expected, 1e-12, reach)
    f = np.random.default_rng(seed).standard_normal(6)
    close(lw.dynamics.equivalent_force(mech, q, {node: f}), expected.T @ f, 1e-12, 6 * reach * 3.0)
    step = 1e-5
    ahead, behind = (mech.integrate(q, s * v, 1.0) for s in (step, -step))
    for frame in ("node", "world"):
        rate = lw.jacobian(mech, ahead, node, frame=frame)
        rate = (rate - lw.jacobian(mech, behind, node, frame=frame)) / (2.0 * step)
        fast = reach * (1.0 + float(np.abs(v).sum()))
        close(lw.jacobian_dot(mech, q, v, node, frame=frame), rate, 1e-6, fast)
        drift = lw.dynamics.jacobian_bias(mech, q, v, node, frame=frame)
        close(drift, lw.jacobian_dot(mech, q, v, node, frame=frame) @ v, 1e-11, fast * 30.0)
        full = lw.node_acceleration(mech, q, v, node, vdot=vdot, frame=frame)
        J = lw.jacobian(mech, q, node, frame=frame)
        close(full, J @ vdot + drift, 1e-11, fast * 30.0)
    x = np.random.default_rng(seed).standard_normal((mech.n_bodies, 6))
    phi = np.linalg.inv(np.eye(6 * mech.n_bodies) - Dense(mech, q)(E_phi))
    spread = float(np.abs(phi).max()) * 6.0 * mech.n_bodies
    close(lw.dynamics.scatter(mech, q, x).ravel(), phi.T @ x.ravel(), 1e-13, spread)
    close(lw.dynamics.gather(mech, q, x).ravel(), phi @ x.ravel(), 1e-13, spread)
