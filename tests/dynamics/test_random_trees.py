"""Forward dynamics, energies and poses on many random trees: by residuals, no tree by heart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import linkwise as lw
from tests.cases import close, state
from tests.dense_kinematics import mass_matrix


@st.composite
def trees(draw) -> lw.Mechanism:
    """One to nine bodies, every kind of hinge, masses up to a million to one."""
    return lw.models.random_tree(
        draw(st.integers(1, 9)),
        draw(st.integers(0, 10**6)),
        floating=draw(st.booleans()),
        branching=draw(st.sampled_from([0.0, 0.4, 1.0])),
        drives=draw(st.booleans()),
        mass_ratio=draw(st.sampled_from([1.0, 10.0, 1e3, 1e6])),
    )


@pytest.mark.slow
@settings(max_examples=40)
@given(trees(), st.integers(0, 1000))
def test_accelerations_energies_and_poses(mech, seed):
    q, v, tau = state(mech, seed)
    A = mass_matrix(mech, q)
    c = lw.bias_force(mech, q, v)
    vdot = lw.forward_dynamics(mech, q, v, tau)
    size = np.abs(A) @ np.abs(vdot) + np.abs(c) + np.abs(tau)
    # docs/evidence/accuracy.md: rounding along at most nine bodies, whatever the masses
    close(A @ vdot + c, tau, 2e-15, scale=float(size.max(initial=1e-9)))
    needed = lw.inverse_dynamics(mech, q, v, vdot)
    close(needed, tau, 4e-15, scale=float(size.max(initial=1e-9)))
    close(lw.dynamics.kinetic_energy(mech, q, v), 0.5 * v @ A @ v, 1e-12)
    close(lw.forward_kinematics(mech, q).matrix, mech.poses(q).matrix, 1e-12)
    com = -mech.total_mass * mech.gravity @ mech.center_of_mass(q)
    spread = 9.81 * float(mech.inertias.mass @ np.abs(mech.poses(q).p[:, 2])) + 1.0
    close(lw.dynamics.potential_energy(mech, q), com, 1e-12, scale=spread + abs(float(com)))
