"""Chains of many links: the same functions, as loops over the bodies."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.cases import close, state


@pytest.fixture(scope="module")
def chain() -> lw.Mechanism:
    return lw.models.chain(300)


def test_forces_and_accelerations(chain):
    q, v, tau = state(chain)
    vdot = lw.forward_dynamics(chain, q, v, tau)
    size = np.abs(lw.mass_matrix(chain, q)) @ np.abs(vdot)
    close(lw.inverse_dynamics(chain, q, v, vdot), tau, 1e-12, scale=float(size.max()))
    close(lw.bias_force(chain, q, 0.0 * v), lw.gravity_force(chain, q), 1e-12)


def test_poses_and_energies(chain):
    q, v, _ = state(chain, 1)
    poses = chain.poses(q)
    tip = chain.bodies[-1].name
    close(lw.forward_kinematics(chain, q).matrix, poses.matrix, 1e-12)
    close(lw.forward_kinematics(chain, q, tip).matrix, poses[-1].matrix, 1e-12)
    J = lw.jacobian(chain, q, tip, frame="world")
    close(lw.node_velocity(chain, q, v, tip, frame="world"), J @ v, 1e-11)
    energy = lw.energy(chain, q, v)
    close(energy.kinetic, 0.5 * v @ lw.mass_matrix(chain, q) @ v, 1e-12)
    center = chain.center_of_mass(q)
    close(energy.potential, -chain.total_mass * chain.gravity @ center, 1e-11)
