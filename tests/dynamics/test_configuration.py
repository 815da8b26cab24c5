"""Moving on the manifold: kernels against each hinge's own rule on numbers, and by themselves."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics.configuration import DIFFERENCE, INTEGRATED
from linkwise.dynamics.kernels import written
from tests.model.hinge_cases import HINGES

INERTIA = lw.SpatialInertia.solid_box(1.0, (0.1, 0.2, 0.3))


@cache
def every_hinge() -> lw.Mechanism:
    builder, parent = lw.Builder("every hinge"), "world"
    for i, hinge in enumerate(HINGES.values()):
        builder.body(f"b{i}", parent, hinge, inertia=INERTIA)
        parent = f"b{i}"
    return builder.build()


def states(mech: lw.Mechanism, count: int = 40):
    """Configurations, and velocities from tiny ones to turns of almost and more than a half."""
    rng = np.random.default_rng(3)
    q = np.stack([mech.random(rng) for _ in range(count)])
    v = rng.standard_normal((count, mech.nv))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return q, v * np.geomspace(1e-14, 30.0, count)[:, None]


def test_each_hinge_moves_by_its_own_rule():
    mech = every_hinge()
    q, v = states(mech)
    there = lw.integrate(mech, q, v, 0.7)
    assert np.abs(there - q).max() > 1.0
    assert there == pytest.approx(mech.integrate(q, v, 0.7), abs=1e-13)
    assert lw.integrate(mech, q[30], v[30], 0.7) == pytest.approx(there[30], abs=1e-15)
    assert lw.integrate(mech, q[30], v, 0.7).shape == q.shape
    assert written(mech, INTEGRATED).device.machine.evaluated is None  # one kernel


def test_differences_are_those_of_the_hinges_near_zero_and_near_half_a_turn():
    mech = every_hinge()
    q, v = states(mech)
    there = mech.integrate(q, v)
    result, expected = lw.difference(mech, q, there), mech.difference(q, there)
    assert result == pytest.approx(expected, rel=1e-9, abs=1e-13)
    assert np.abs(result[:30]).max(axis=1) == pytest.approx(np.abs(v[:30]).max(axis=1), rel=0.2)
    assert lw.difference(mech, q[7], q[7]) == pytest.approx(np.zeros(mech.nv), abs=1e-15)


def test_half_a_turn_and_none():
    mech = lw.Builder("ball").body("ball", "world", lw.hinges.Free(), inertia=INERTIA).build()
    q = mech.neutral()
    for turn in ([np.pi, 0, 0], [0, np.pi - 1e-9, 0], [1e-9, 0, 0], [0, 0, 1e-30]):
        v = np.array([*turn, 0.3, -0.2, 0.5])
        there = lw.integrate(mech, q, v)
        assert lw.difference(mech, q, there) == pytest.approx(v, rel=2e-15, abs=3e-15)


def test_leading_axes_are_free_and_wrong_states_are_refused():
    mech = lw.models.quadruped()
    q, v = states(mech, 6)
    stacked = lw.integrate(mech, q.reshape(3, 2, -1), v.reshape(3, 2, -1), 0.1)
    assert stacked == pytest.approx(lw.integrate(mech, q, v, 0.1).reshape(3, 2, -1), abs=0.0)
    with pytest.raises(lw.ShapeError, match="v has shape"):
        lw.integrate(mech, q[0], q[0])
    with pytest.raises(lw.ShapeError, match=r"q \(2, .*\) and v \(3, .*\)"):
        lw.integrate(mech, q[:2], v[:3])
    with pytest.raises(lw.LinkwiseError, match="dt"):
        lw.integrate(mech, q[0], v[0], np.nan)
    for bad in (2.0 * q[0], np.stack([q[0], 2.0 * q[0]])):
        with pytest.raises(lw.ModelError, match="length 2, it must be 1"):
            lw.difference(mech, q[1], bad)
    with pytest.raises(lw.ModelError, match="not finite at"):
        lw.difference(mech, np.where(np.arange(mech.nq) == 9, np.nan, q[0]), q[1])


def test_what_does_not_move_has_no_coordinates():
    mech = lw.Builder("plate").body("plate", "world", lw.hinges.Locked(), inertia=INERTIA).build()
    assert lw.integrate(mech, [], []).shape == lw.difference(mech, [], []).shape == (0,)


def test_a_formula_is_written_once():
    arm = lw.models.seven_dof_arm()
    assert written(arm, DIFFERENCE) is written(arm, DIFFERENCE)
    assert written(arm, DIFFERENCE).ops == {"sub": 7}
