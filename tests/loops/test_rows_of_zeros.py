"""Rows of loops that nothing moves: rounding in them must not reach the accelerations."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.array import Array


def gripper(seed: int) -> tuple[lw.Mechanism, Array]:
    """A light four bar at the end of an arm, closed by a ball: nothing moves the row across it."""
    rng = np.random.default_rng(seed)
    rod = lw.SpatialInertia.solid_cylinder(1.0, 0.02, 0.4)
    bar = lw.SpatialInertia.solid_cylinder(0.02, 0.005, 0.05)
    b, parent = lw.Builder("gripper"), "world"
    for k in range(4):
        at = lw.Pose.translation(rng.uniform(-0.3, 0.3, 3)) @ lw.Pose.rpy(rng.uniform(-3, 3, 3))
        b.body(f"arm_{k}", parent, lw.hinges.Pin(), inboard=at, inertia=rod)
        parent = f"arm_{k}"
    at = lw.Pose.rpy(rng.uniform(-3, 3, 3))
    b.body("crank", parent, lw.hinges.Pin(), inboard=at, inertia=bar)
    b.body(
        "coupler", "crank", lw.hinges.Pin(), inboard=lw.Pose.translation((0.05, 0, 0)), inertia=bar
    )
    other = at @ lw.Pose.translation((0.06, 0, 0))
    b.body("rocker", parent, lw.hinges.Pin(), inboard=other, inertia=bar)
    b.node("end", "coupler", lw.Pose.translation((0.05, 0, 0)))
    b.node("rim", "rocker", lw.Pose.translation((0.07, 0, 0)))
    b.loop("joint", "end", "rim", lw.hinges.Spherical())
    mech = b.build()
    return mech, lw.loops.project_position(
        mech, np.r_[rng.uniform(-2, 2, 4), 1.0, -0.9, 1.2]
    ).required()


@pytest.mark.shipped
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(8))
def test_rows_of_rounding_do_not_disturb(seed: int) -> None:
    """Against the projected equations, Z* 𝓜 Z y = Z* (τ - C - 𝓜 v̇₀) with J Z = 0, J v̇₀ = -κ."""
    mech, q = gripper(seed)
    rng = np.random.default_rng(seed)
    v = lw.loops.project_velocity(mech, q, 5.0 * rng.standard_normal(mech.nv))
    tau = rng.standard_normal(mech.nv)
    J, kappa = lw.loops.constraint_jacobian(mech, q), lw.loops.constraint_bias(mech, q, v)
    assert np.abs(J).max(axis=1)[2] < 1e-15 and np.abs(kappa).max() > 0.01
    M, free = lw.mass_matrix(mech, q), lw.forward_dynamics(mech, q, v, tau, loops="open")
    free_basis, start = np.linalg.svd(J)[2][2:].T, -np.linalg.pinv(J, rcond=1e-9) @ kappa
    projected = free_basis.T @ M @ free_basis
    expected = start + free_basis @ np.linalg.solve(projected, free_basis.T @ M @ (free - start))
    vdot = lw.forward_dynamics(mech, q, v, tau)
    rounding = np.finfo(float).eps * np.linalg.cond(projected)  # some 1e-11, of both sides
    assert np.abs(vdot - expected).max() < rounding * np.abs(expected).max()
