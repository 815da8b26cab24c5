"""Pinocchio beside Linkwise: at the same state, whatever the order of bodies in a file."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.tour import peer

MECH = lw.models.puma560()
STATE = peer.State.random(MECH, 4)


@pytest.mark.oracle
@pytest.mark.parametrize("mech", [MECH, lw.models.multi_arm(2)])
def test_it_is_asked_at_the_state_that_is_given(mech):
    """For revolute hinges gravity forces are the same numbers there and here."""
    pytest.importorskip("pinocchio")
    state = peer.State.random(mech, 4)
    routes = peer.pinocchio(mech, state)
    assert all(route.agrees for route in routes.values())
    result = np.asarray(routes["gravity_force"].call())
    expected = lw.gravity_force(mech, state.q)
    assert np.allclose(np.sort(result), np.sort(expected), atol=1e-9 * np.abs(expected).max())


@pytest.mark.oracle
def test_hinges_that_a_file_splits_are_reported():
    """The humanoid's universal joints are two in a file, so Pinocchio gets another state."""
    pytest.importorskip("pinocchio")
    mech = lw.models.humanoid()
    state = peer.State.random(mech, 4)
    with pytest.raises(ModelError, match="states differ"):
        peer.pinocchio(mech, state)
    assert any(route.agrees for route in peer.pinocchio(mech).values())


def test_a_state_goes_by_names():
    other = MECH.renumber([b.name for b in MECH.bodies])
    assert np.array_equal(STATE.carried(MECH, other).q, STATE.q)
    tree = lw.models.multi_arm(2)
    state = peer.State.random(tree, 1)
    turned = tree.renumber([b.name for b in reversed(tree.bodies)])
    carried = state.carried(tree, turned)
    assert [b.name for b in turned.bodies] != [b.name for b in tree.bodies]
    for body in tree.bodies:
        assert np.array_equal(
            state.v[tree.v_slice(body.name)], carried.v[turned.v_slice(body.name)]
        )
    expected = lw.dynamics.kinetic_energy(tree, state.q, state.v)
    assert np.isclose(
        lw.dynamics.kinetic_energy(turned, carried.q, carried.v), expected, rtol=1e-12
    )


def test_what_is_another_robot_is_refused():
    with pytest.raises(ModelError, match="other hinges"):
        STATE.carried(MECH, lw.models.pendulum(6))
    loaded = MECH.with_payload(MECH.bodies[-1].name, lw.SpatialInertia.solid_sphere(2.0, 0.05))
    with pytest.raises(ModelError, match="moves otherwise"):
        STATE.carried(MECH, loaded)
