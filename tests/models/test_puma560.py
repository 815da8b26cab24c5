"""The PUMA 560 against the numbers printed by Armstrong, Khatib and Burdick (1986)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.dense_kinematics import mass_matrix

from linkwise import models
from linkwise.models.puma560 import EFFECTIVE_MOTOR_INERTIA, FRAMES, LINKS

# Inertia constants I_1 .. I_23 [kg m²] and gravity constants g_1 .. g_5 [N m] as printed.
PRINTED = (
    1.43, 1.75, 1.38, 0.690, 0.372, 0.333, 0.298, -0.134, 0.0238, -0.0213, -0.0142, -0.0110,
    -3.79e-3, 1.64e-3, 1.25e-3, 1.24e-3, 6.42e-4, 4.31e-4, 3.00e-4, -2.02e-4, -1.00e-4, -5.80e-5,
    4.00e-5,
)  # fmt: skip
PRINTED_GRAVITY = (-37.2, -8.44, 1.02, 0.249, -0.0282)


def constants():
    """The paper's definitions of I_1 .. I_23, evaluated on the parameters of the model."""
    a2, a3 = FRAMES[2][1], FRAMES[3][1]
    d2, d3, d4 = FRAMES[1][2], FRAMES[2][2], FRAMES[3][2]
    _, m2, m3, m4, m5, m6 = (mass for mass, _, _ in LINKS)
    (rx2, ry2, rz2), (_, ry3, rz3) = LINKS[1][1], LINKS[2][1]
    rz4, rz6 = LINKS[3][1][2], LINKS[5][1][2]
    I_z1 = LINKS[0][2][2]
    (
        (I_x2, I_y2, I_z2),
        (I_x3, I_y3, I_z3),
        (I_x4, I_y4, I_z4),
        (I_x5, I_y5, I_z5),
        (I_x6, _, I_z6),
    ) = (moments for _, _, moments in LINKS[1:])
    m36, m46, d23 = m3 + m4 + m5 + m6, m4 + m5 + m6, d2 + d3
    return np.array(
        [
            I_z1 + m2 * (d2 + rz2) ** 2 + m2 * ry2**2 + I_x2 + m3 * rz3**2 + 2 * m3 * d23 * rz3
            + I_y3 + m36 * d23**2 + m46 * a3**2 + I_z4 + I_y5 + I_z6,
            I_z2 + m2 * (rx2**2 + ry2**2) + m36 * a2**2,
            -I_x2 + I_y2 + m36 * a2**2 + m2 * rx2**2 - m2 * ry2**2,
            m2 * rx2 * (d2 + rz2) + m3 * a2 * rz3 + m36 * a2 * d23,
            -m3 * a2 * ry3 + m46 * a2 * d4 + m4 * a2 * rz4,
            I_z3 + m3 * ry3**2 + m4 * (a3**2 + (d4 + rz4) ** 2) + I_y4 + (m5 + m6) * (a3**2 + d4**2)
            + I_z5 + m6 * rz6**2 + I_x6,
            m3 * ry3**2 + I_x3 - I_y3 + m4 * (rz4**2 + 2 * d4 * rz4) + m46 * (d4**2 - a3**2)
            + I_y4 - I_z4 + I_z5 - I_y5 + m6 * rz6**2 - I_z6 + I_x6,
            -m4 * d23 * (d4 + rz4) - (m5 + m6) * d23 * d4 + m3 * ry3 * rz3 + m3 * d23 * ry3,
            m2 * ry2 * (d2 + rz2),
            2 * m4 * a3 * rz4 + 2 * m46 * a3 * d4,
            -2 * m2 * rx2 * ry2,
            m46 * a2 * a3,
            m46 * a3 * d23,
            I_z4 + I_y5 + I_z6,
            m6 * d4 * rz6,
            m6 * a2 * rz6,
            I_z5 + I_x6 + m6 * rz6**2,
            m6 * d23 * rz6,
            I_y4 - I_x4 + I_z5 - I_y5 + m6 * rz6**2 + I_x6 - I_z6,
            I_y5 - I_x5 - m6 * rz6**2 + I_z6 - I_x6,
            I_x4 - I_y4 + I_x5 - I_z5,
            m6 * a3 * rz6,
            I_z6,
        ]
    )  # fmt: skip


def closed_form(q, I):
    """The paper's kinetic energy matrix for a wrist at rest in its zero position."""
    I = np.concatenate([[np.nan], I])  # the paper counts from 1
    s2, c2, s3, c3 = np.sin(q[1]), np.cos(q[1]), np.sin(q[2]), np.cos(q[2])
    s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    A = np.zeros((6, 6))
    A[0, 0] = (
        I[1] + I[3] * c2**2 + I[7] * s23**2 + I[10] * s23 * c23 + I[11] * s2 * c2 + I[21] * s23**2
        + 2 * (I[5] * c2 * s23 + I[12] * c2 * c23 + I[15] * s23**2 + I[16] * c2 * s23
               + I[22] * s23 * c23)
    )  # fmt: skip
    A[0, 1] = I[4] * s2 + I[8] * c23 + I[9] * c2 + I[13] * s23 - I[18] * c23
    A[0, 2] = I[8] * c23 + I[13] * s23 - I[18] * c23
    # Printed with I_12 C_2; the cosine is that of the elbow, as in the printed a_23.
    A[1, 1] = I[2] + I[6] + 2 * (I[5] * s3 + I[12] * c3 + I[15] + I[16] * s3)
    A[1, 2] = I[5] * s3 + I[6] + I[12] * c3 + I[16] * s3 + 2 * I[15]
    A[2, 2] = I[6] + 2 * I[15]
    A[2, 4] = I[15] + I[17]
    A[3, 3], A[4, 4], A[5, 5] = I[14], I[17], I[23]
    return A + np.triu(A, 1).T + np.diag(EFFECTIVE_MOTOR_INERTIA)


def test_printed_constants_follow_from_the_parameters():
    # Three digits are printed, of parameters that themselves have two or three.
    np.testing.assert_allclose(constants(), PRINTED, rtol=0.02, atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_matrix(seed):
    mech = models.puma560()
    q = np.concatenate([np.random.default_rng(seed).uniform(-np.pi, np.pi, 3), np.zeros(3)])
    found, expected = mass_matrix(mech, q), closed_form(q, np.array(PRINTED))
    scale = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=5e-3)
