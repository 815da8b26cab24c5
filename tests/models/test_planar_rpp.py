"""The macro/mini example of Khatib 1995, section 5.2: what is printed against what holds."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise import models
from tests.dense_kinematics import mass_matrix, node_jacobian

I_1, M_2, M_3 = 0.7, 2.3, 1.1


def printed_mass_matrix(q):
    _, q_2, q_3 = q
    return np.array(
        [
            [I_1 + M_2 * q_2**2 + M_3 * (q_2**2 + q_3**2), -M_3 * q_3, M_3 * q_2],
            [-M_3 * q_3, M_2 + M_3, 0.0],
            [M_3 * q_2, 0.0, M_3],
        ]
    )


def printed_jacobian(q):
    return np.array([[-q[2], 1.0, 0.0], [q[1], 0.0, 1.0]])


def eta(q):
    return (I_1 + M_2 * q[1] ** 2) / (I_1 + M_2 * (q[1] ** 2 + q[2] ** 2))


@pytest.fixture
def mech():
    return models.planar_rpp(I_1=I_1, m_2=M_2, m_3=M_3)


@pytest.fixture(params=[(0.0, 0.0, 0.0), (0.4, 0.9, -0.6), (-2.0, 0.3, 1.2)])
def q(request):
    return np.array(request.param)


def test_printed_kinetic_energy_matrix_holds(mech, q):
    np.testing.assert_allclose(mass_matrix(mech, q), printed_mass_matrix(q), atol=1e-14)


def test_printed_jacobian_holds_in_the_frame_of_link_1(mech, q):
    J = node_jacobian(mech, q, "end_effector")
    # The end effector's axes stay parallel to those of link 1, so its rows are in R_1 already.
    np.testing.assert_allclose(J[3:5], printed_jacobian(q), atol=1e-14)
    np.testing.assert_allclose(J[5], 0.0, atol=1e-14)


def test_operational_inertia_has_eta_on_the_mass_of_link_2(mech, q):
    """Printed: first entry m_2 + m_3 η.  What follows from the printed A and J: η m_2 + m_3."""
    J, A = printed_jacobian(q), printed_mass_matrix(q)
    Lambda = np.linalg.inv(J @ np.linalg.inv(A) @ J.T)
    np.testing.assert_allclose(Lambda, np.diag([eta(q) * M_2 + M_3, M_3]), atol=1e-13)
    if q[2] != 0.0:
        assert abs(Lambda[0, 0] - (M_2 + M_3 * eta(q))) > 0.05


def test_mini_manipulator_alone(mech, q):
    A = mass_matrix(mech, q)[1:, 1:]
    np.testing.assert_allclose(A, np.diag([M_2 + M_3, M_3]), atol=1e-14)


def test_effective_mass_is_never_above_that_of_the_mini(mech, q):
    """Theorem 2 of the paper, in a fan of directions."""
    J, A = printed_jacobian(q), mass_matrix(mech, q)
    inverse = J @ np.linalg.inv(A) @ J.T
    for angle in np.linspace(0.0, np.pi, 13):
        w = np.array([np.cos(angle), np.sin(angle)])
        mini = 1.0 / (w @ np.linalg.inv(A[1:, 1:]) @ w)
        assert 1.0 / (w @ inverse @ w) <= mini * (1.0 + 1e-12)
