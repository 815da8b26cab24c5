"""The UR-type arm against its published Denavit-Hartenberg table, and its singularities."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import models
from linkwise.models.ur_arm import FRAMES, LINKS


@pytest.fixture(scope="module")
def mech():
    return models.ur_arm()


def denavit_hartenberg(q):
    """Poses of the six frames by the textbook's product of matrices, from the table alone."""
    T, result = np.eye(4), []
    for angle, (a, d, quarters) in zip(q, FRAMES, strict=True):
        c, s, ca, sa = (
            np.cos(angle),
            np.sin(angle),
            (1, 0, -1, 0)[quarters],
            (0, 1, 0, -1)[quarters],
        )
        T = T @ np.array(
            [
                [c, -s * ca, s * sa, a * c],
                [s, c * ca, -c * sa, a * s],
                [0.0, sa, ca, d],
                [0.0, 0.0, 0.0, 1.0],
            ]
        )
        result.append(T)
    return result


def test_flange_is_where_the_table_puts_it(mech):
    for seed in range(4):
        q = mech.random(seed=seed)
        np.testing.assert_allclose(
            mech.pose(q, "flange").matrix, denavit_hartenberg(q)[-1], atol=1e-14
        )


def test_masses_are_where_the_table_puts_them(mech):
    q = mech.random(seed=5)
    frames = denavit_hartenberg(q)
    weighted = sum(m * (T[:3, :3] @ c + T[:3, 3]) for (m, c), T in zip(LINKS, frames, strict=True))
    total = sum(mass for mass, _ in LINKS)
    np.testing.assert_allclose(mech.center_of_mass(q), weighted / total, atol=1e-14)


def test_three_axes_are_parallel_and_the_wrist_is_not_spherical(mech):
    q = mech.random(seed=2)
    axes = {
        name: mech.pose(q, f"{name}_link").rot[:, 2] for name in ("shoulder", "elbow", "wrist_1")
    }
    for name in ("elbow", "wrist_1"):
        np.testing.assert_allclose(axes[name], axes["shoulder"], atol=1e-14)
    # Axes 4 and 6 keep the distance d5 = 0.0997 m: the common normal is axis 5.
    p_4, p_6 = mech.pose(q, "wrist_1_link"), mech.pose(q, "wrist_3_link")
    normal = np.cross(p_4.rot[:, 2], p_6.rot[:, 2])
    distance = abs((p_6.p - p_4.p) @ normal) / np.linalg.norm(normal)
    assert distance == pytest.approx(0.0997, abs=1e-12)


@pytest.mark.parametrize(
    ("where", "q"),
    [
        ("wrist", (0.3, -1.0, 1.2, -0.5, 0.0, 0.4)),
        ("elbow", (0.3, -1.0, 0.0, -0.5, 1.1, 0.4)),
    ],
)
def test_it_is_singular_where_the_docstring_says(mech, where, q):
    space = lw.operational_space(mech, np.array(q), "flange")
    assert space.rank == 5, where
    moved = np.array(q) + 0.1
    assert lw.operational_space(mech, moved, "flange").rank == 6


def test_it_is_singular_where_the_wrist_is_in_the_plane_of_the_first_two_axes(mech):
    a_2, a_3, d_5 = FRAMES[1][0], FRAMES[2][0], FRAMES[4][1]
    q_2, q_3 = -1.6, 0.3
    s_234 = -(a_2 * np.cos(q_2) + a_3 * np.cos(q_2 + q_3)) / d_5  # in the axes of the waist, x = 0
    q = np.array([0.2, q_2, q_3, np.arcsin(s_234) - q_2 - q_3, 1.1, 0.3])
    p = denavit_hartenberg(q)[4][:3, 3]
    assert abs(p @ (np.cos(0.2), np.sin(0.2), 0.0)) < 1e-15
    values = np.linalg.svd(lw.jacobian(mech, q, "flange"), compute_uv=False)
    assert values[-1] < 1e-14 and values[-2] > 0.05
