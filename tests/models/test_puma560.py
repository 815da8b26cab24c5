"""The PUMA 560 against the numbers of Armstrong, Khatib and Burdick (1986), as transcribed."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.models.puma560 import EFFECTIVE_MOTOR_INERTIA, FRAMES, LINKS, add_puma560
from tests.dense_kinematics import gravity_torque, mass_matrix

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
    result, printed = constants(), np.array(PRINTED)
    agree = np.abs(result - printed) <= 0.011 * np.abs(printed)
    # I_1 and I_3 do not follow from the tables; every other constant does.
    assert (np.flatnonzero(~agree) + 1).tolist() == [1, 3]
    np.testing.assert_allclose(result[[0, 2]], (1.553, 1.602), atol=1e-3)


def test_the_last_moment_of_link_3_is_settled_by_the_sixth_constant():
    """Copies of the table have 0.066 there; with it I_6 would be 0.314."""
    assert constants()[5] == pytest.approx(0.333, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_matrix_is_the_explicit_one(seed):
    q = np.concatenate([np.random.default_rng(seed).uniform(-np.pi, np.pi, 3), np.zeros(3)])
    result = mass_matrix(models.puma560(as_printed=True), q)
    expected = closed_form(q, constants())
    kept = expected != 0.0
    np.testing.assert_allclose(result[kept], expected[kept], rtol=0.0, atol=1e-13)
    # What the explicit model leaves out is small: less than 0.5 % of the diagonal.
    scale = np.sqrt(np.outer(np.diag(result), np.diag(result)))
    assert np.abs(result / scale)[~kept].max() < 5e-3


def test_elbow_and_not_shoulder_angle_in_the_shoulder_inertia():
    """Printed a_22 has I_12 cos q_2; it would make the shoulder's inertia depend on its angle."""
    mech = models.puma560()
    q = np.array([0.0, 0.3, 0.4, 0.0, 0.0, 0.0])
    moved = q + np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert mass_matrix(mech, q)[1, 1] == pytest.approx(mass_matrix(mech, moved)[1, 1], rel=1e-14)


def test_repaired_link_3_changes_the_waist_only():
    q = np.array([0.2, -0.8, 2.0, 0.4, 0.7, -0.3])
    change = mass_matrix(models.puma560(), q) - mass_matrix(models.puma560(as_printed=True), q)
    assert change[0, 0] == pytest.approx(0.00375, rel=1e-9)
    change[0, 0] = 0.0
    np.testing.assert_allclose(change, 0.0, atol=1e-13)
    codes = [finding.code for finding in models.puma560(as_printed=True).validate()]
    assert codes == ["triangle"]


@pytest.mark.parametrize("seed", range(3))
def test_gravity_torques_are_the_printed_ones(seed):
    g_1, g_2, g_3, g_4, g_5 = PRINTED_GRAVITY
    q = np.concatenate([np.random.default_rng(seed).uniform(-np.pi, np.pi, 3), np.zeros(3)])
    s2, c2, s23, c23 = np.sin(q[1]), np.cos(q[1]), np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
    forearm = g_2 * s23 + g_4 * c23 + g_5 * s23
    expected = (0.0, g_1 * c2 + g_3 * s2 + forearm, forearm, 0.0, g_5 * s23, 0.0)
    # The wrist's torque is printed to three digits of 0.03 N m, the shoulder's of 37 N m.
    np.testing.assert_allclose(gravity_torque(models.puma560(), q), expected, atol=0.05)


def test_drives():
    mech = models.puma560()
    np.testing.assert_allclose(mech.armature, EFFECTIVE_MOTOR_INERTIA, rtol=1e-14)
    np.testing.assert_array_equal(mech.effort_limit, (97.6, 186.4, 89.4, 24.2, 20.1, 21.3))
    np.testing.assert_array_equal(mech.friction, (6.3, 5.5, 2.6, 1.3, 1.0, 1.2))


def test_stretched_out_along_x():
    mech = models.puma560()
    wrist = mech.pose(np.array([0.0, 0.0, np.pi / 2, 0.0, 0.0, 0.0]), "link_4").p
    np.testing.assert_allclose(wrist, (0.4318 + 0.4331, 0.1501, 0.0203), atol=1e-12)


def test_another_posture_is_the_same_arm():
    """q = 0 elsewhere: poses, ranges and the mass matrix are those of the paper's angles."""
    posture = (0.3, -0.5, 0.7, 0.2, -0.4, 0.1)
    b = lw.Builder("moved")
    flange = add_puma560(b, posture=posture)
    moved, paper = b.build(), lw.models.puma560()
    np.testing.assert_allclose(moved.lower + posture, paper.lower, atol=1e-12)
    np.testing.assert_allclose(moved.upper + posture, paper.upper, atol=1e-12)
    q = paper.random(0)
    there = paper.pose(q, paper.nodes[-1].name)
    np.testing.assert_allclose(moved.pose(q - posture, flange).matrix, there.matrix, atol=1e-12)
    mass = lw.mass_matrix(paper, q)
    np.testing.assert_allclose(lw.mass_matrix(moved, q - posture), mass, atol=1e-12)
