"""The operational inertia, where it exists and where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ExpressionError, SingularHingeError
from tests.dense_kinematics import mass_matrix, node_jacobian
from tests.dynamics.mechanisms import close


@pytest.mark.parametrize("frame", ["node", "world"])
def test_of_one_hand(frame):
    arm = lw.models.seven_dof_arm()
    q = arm.random(3)
    J = node_jacobian(arm, q, "hand")
    if frame == "world":
        J = np.kron(np.eye(2), arm.pose(q, "hand").rot) @ J
    expected = np.linalg.inv(J @ np.linalg.solve(mass_matrix(arm, q), J.T))
    close(lw.operational_inertia(arm, q, "hand", frame=frame), expected, 1e-9)


def test_of_several_nodes_at_once():
    """Two hands on a free base: the inertia between them is not zero."""
    body = lw.models.humanoid()
    hands = [body.bodies[-1].name, body.bodies[8].name]
    q = body.random(1)
    J = np.vstack([node_jacobian(body, q, hand) for hand in hands])
    yielding = J @ np.linalg.solve(mass_matrix(body, q), J.T)
    close(lw.operational_inertia_inverse(body, q, hands), yielding, 1e-10)
    assert np.abs(yielding[:6, 6:]).max() > 1e-3 * np.abs(yielding).max()


def test_an_arm_of_few_freedoms_has_none():
    with pytest.raises(ExpressionError, match=r"singular on .* in every state"):
        lw.operational_inertia(lw.models.pendulum(2), np.zeros(2), "link_2")


def test_a_singular_configuration_is_told():
    arm = lw.models.puma560()
    hand = arm.bodies[-1].name
    q = np.array([0.3, 0.4, 0.5, 0.7, 0.0, 0.2])  # the axes 4 and 6 of the wrist are one line
    with pytest.raises(SingularHingeError, match=f"inertia of '{hand}' does not exist in this"):
        lw.operational_inertia(arm, q, hand)
    several, status = np.stack([q, q + 0.3]), np.zeros(2, dtype=np.int32)
    found = lw.operational_inertia(arm, several, hand, status=status)
    assert (status != 0).tolist() == [True, False]
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()
    assert np.isfinite(lw.operational_inertia_inverse(arm, q, hand)).all()


def test_a_singular_configuration_of_a_long_arm_is_told():
    """A straight chain cannot stretch, however long it is."""
    chain = lw.models.chain(60)
    tip = chain.bodies[-1].name
    bent, status = chain.random(0), np.zeros(2, dtype=np.int32)
    found = lw.operational_inertia(chain, np.stack([0.0 * bent, bent]), tip, status=status)
    assert (status != 0).tolist() == [True, False]
    assert np.isfinite(found[1]).all()
