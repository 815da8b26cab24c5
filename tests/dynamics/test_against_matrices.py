"""Every named quantity against plain matrices, on random trees of every hinge."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import bias
from linkwise.algebra.dense import Dense
from tests.cases import TREES, close, state, tree
from tests.dense_kinematics import gravity_torque, mass_matrix, node_jacobian

pytestmark = pytest.mark.parametrize("name", TREES)
NODES = ("tool", "body_2", "post")


def matrices(mech, q, v):
    """Mass matrix with armature, and bias."""
    return mass_matrix(mech, q), Dense(mech, q, v)(bias)


def stacked_jacobian(mech, q, frame, nodes=NODES):
    parts = []
    for node in nodes:
        turn = np.eye(3) if frame == "node" else mech.pose(q, node).rot
        parts.append(np.kron(np.eye(2), turn) @ node_jacobian(mech, q, node))
    return np.vstack(parts)


def test_forward_dynamics_by_its_residual(name):
    """𝓜 v̇ + c = τ, measured by the size of what is added up."""
    mech = tree(name)
    q, v, tau = state(mech)
    A, c = matrices(mech, q, v)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    size = (np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(tau)).max()
    close(A @ vdot + c, tau, 1e-12, scale=size)
    assert (name == "no armature") == (not mech.armature.any())


def test_inverse_dynamics_and_bias(name):
    mech = tree(name)
    q, v, vdot = state(mech, 1)
    A, c = matrices(mech, q, v)
    close(lw.inverse_dynamics(mech, q, v, vdot), A @ vdot + c, 1e-12)
    close(lw.bias_force(mech, q, v), c, 1e-12)


def test_gravity_is_bias_at_rest_and_a_slope(name):
    mech = tree(name)
    q, _, _ = state(mech, 2)
    result = lw.gravity_force(mech, q)
    close(result, lw.bias_force(mech, q, np.zeros(mech.nv)), 1e-12)
    close(result, gravity_torque(mech, q), 1e-6)


@pytest.mark.few(5)
@pytest.mark.parametrize("frame", ["node", "world"])
def test_forces_at_nodes(name, frame):
    """They act as J* f: in forward dynamics as more force, in inverse dynamics as less."""
    mech = tree(name)
    q, v, x = state(mech, 3)
    f = np.random.default_rng(0).standard_normal((3, 6))
    A, c = matrices(mech, q, v)
    pushed = stacked_jacobian(mech, q, frame).T @ f.ravel()
    forces = dict(zip(NODES, f, strict=True))
    needed = lw.inverse_dynamics(mech, q, v, x, forces=forces, forces_frame=frame)
    close(needed, A @ x + c - pushed, 1e-11)
    vdot = lw.forward_dynamics(mech, q, v, x, forces=forces, forces_frame=frame)
    size = (np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(x) + np.abs(pushed)).max()
    close(A @ vdot + c - pushed, x, 1e-12, scale=size)


def test_mass_matrix_and_its_inverse(name):
    mech = tree(name)
    q, _, _ = state(mech, 4)
    A = mass_matrix(mech, q)
    result = lw.mass_matrix(mech, q)
    close(result, A, 1e-13)
    close(result, result.T, 1e-15)
    inverse = lw.mass_matrix_inverse(mech, q)
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-10)
    close(inverse @ A, np.eye(mech.nv), 1e-12, scale=float((np.abs(inverse) @ np.abs(A)).max()))


@pytest.mark.parametrize("frame", ["node", "world"])
def test_jacobian_and_velocity(name, frame):
    mech = tree(name)
    q, v, _ = state(mech, 5)
    expected = stacked_jacobian(mech, q, frame)
    close(lw.jacobian(mech, q, NODES, frame=frame), expected, 1e-13)
    close(lw.jacobian(mech, q, "tool", frame=frame), expected[:6], 1e-13)
    close(lw.node_velocity(mech, q, v, NODES, frame=frame), expected @ v, 1e-12)


def test_forward_kinematics(name):
    mech = tree(name)
    q, _, _ = state(mech, 6)
    poses = lw.forward_kinematics(mech, q)
    close(poses.matrix, mech.poses(q).matrix, 1e-13)
    few = lw.forward_kinematics(mech, q, NODES)
    for i, node in enumerate(NODES):
        close(few[i].matrix, mech.pose(q, node).matrix, 1e-13)
    close(lw.forward_kinematics(mech, q, "tool").matrix, mech.pose(q, "tool").matrix, 1e-13)


def test_energy(name):
    mech = tree(name)
    q, v, _ = state(mech, 7)
    energy = lw.energy(mech, q, v)
    close(energy.kinetic, 0.5 * v @ mass_matrix(mech, q) @ v, 1e-12)
    com = mech.center_of_mass(q)
    close(energy.potential, -mech.total_mass * mech.gravity @ com, 1e-12)
    assert energy.total == energy.kinetic + energy.potential


def test_power_of_the_joints_is_the_change_of_energy(name):
    """d(energy)/dt = v · τ along the motion that τ causes."""
    mech = tree(name)
    q, v, tau = state(mech, 8)
    vdot, h = lw.forward_dynamics(mech, q, v, tau), 1e-5
    # A step of second order: the velocity of the middle, held for the whole step.
    ahead, behind = (
        lw.energy(mech, mech.integrate(q, v + 0.5 * s * vdot, s), v + s * vdot).total
        for s in (h, -h)
    )
    A, c = matrices(mech, q, v)
    size = np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(tau)
    close((ahead - behind) / (2 * h), v @ tau, 1e-7, scale=float(np.abs(v) @ size))


@pytest.mark.few(5)
@pytest.mark.parametrize("nodes", [["tool"], ["body_2", "tool"]], ids=len)
def test_operational_inertia_inverse(name, nodes):
    mech = tree(name)
    q, _, _ = state(mech, 9)
    frame = "world" if len(nodes) == 1 else "node"
    J, A = stacked_jacobian(mech, q, frame, nodes), mass_matrix(mech, q)
    result = lw.dynamics.operational_inertia_inverse(mech, q, nodes, frame=frame)
    # (J A⁻¹ J*) by Cholesky of A scaled to ones on its diagonal: good for any ratio of masses.
    size = 1.0 / np.sqrt(np.diag(A))
    root = np.linalg.solve(np.linalg.cholesky(A * np.outer(size, size)), (J * size).T)
    close(result, root.T @ root, 20.0 * np.finfo(float).eps * np.linalg.cond(A))
