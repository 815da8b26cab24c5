"""When a hinge is called singular: a pivot below a hundredth of the body's own."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.scalar.pivots import CARRIED, thresholds

BOX = lw.SpatialInertia.from_com(3.0, (0.2, 0.1, 0.0), (0.4, 0.5, 0.6))


def test_the_threshold_is_a_hundredth_of_the_own_inertia():
    """About its axis a body has J_zz + m (x² + y²), along it m, however much it carries."""
    b = lw.Builder("two").body("pin", hinge=lw.hinges.Pin((0.0, 0.0, 1.0)), inertia=BOX)
    mech = b.body("slide", "pin", lw.hinges.Prismatic((1.0, 0.0, 0.0)), inertia=BOX).build()
    assert thresholds(mech, 0) == pytest.approx([0.01 * (0.6 + 3.0 * 0.05)])
    assert thresholds(mech, 1) == pytest.approx([0.01 * 3.0])


def test_pivots_of_several_freedoms_are_those_of_their_own_matrix():
    """The pivots of H M H* are the ratios of its leading minors."""
    mech = lw.Builder("ball").body("ball", hinge=lw.hinges.Spherical(), inertia=BOX).build()
    J = BOX.J
    minors = [1.0, J[0, 0], np.linalg.det(J[:2, :2]), np.linalg.det(J)]
    ratios = [minors[i + 1] / minors[i] for i in range(3)]
    assert np.ptp(ratios) > 0.1
    np.testing.assert_allclose(thresholds(mech, 0), 0.01 * np.array(ratios))


def test_without_an_own_inertia_what_is_carried_is_the_measure():
    b = lw.Builder("carried").body("bare", hinge=lw.hinges.Pin((0.0, 0.0, 1.0)))
    mech = b.body(
        "box", "bare", lw.hinges.Pin((1.0, 0.0, 0.0)), inboard=(2.0, 0.0, 0.0), inertia=BOX
    ).build()
    carried = np.trace(BOX.J) + 3.0 * 4.0
    for size in (8, 4):
        assert thresholds(mech, 0, size) == pytest.approx([CARRIED[size] * carried])
