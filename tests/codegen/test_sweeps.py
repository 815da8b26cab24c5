"""Sweeps over any number of impulses, against the laws as they are written."""

import numpy as np
import pytest

from linkwise.codegen.stepping.sweeps import solve_impulses
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.implicit.impulse import Sweep


@pytest.mark.parametrize("each", [3, 6])
def test_sweeps_are_those_of_the_laws(each):
    rng = np.random.default_rng(each)
    nv, joints, contacts = 8, 2, 3
    m = joints + each * contacts
    rows, b, impulse = rng.normal(size=(m, nv)), rng.normal(size=m), 0.1 * rng.random(m)
    w = rng.normal(size=nv) + impulse @ rows
    mobility = (rows * rows).sum(axis=1)
    inverse = 0.4 / mobility
    bounds = np.array([[0.1, -np.inf, 0.3], [0.0, -0.2, np.inf]])
    turns = {"torsional": 0.1, "rolling": 0.05} if each == 6 else {}
    points = [ContactPoint(str(i), "body", ground=Ground(**turns)) for i in range(contacts)]
    radii = np.tile([0.5, 0.1, 0.05], (contacts, 1))
    numbers = (dict(enumerate(x)) for x in (b, mobility, inverse, impulse, w))
    plain = Sweep({i: dict(enumerate(row)) for i, row in enumerate(rows)}, *numbers)
    for _ in range(4):
        plain.worst = 0.0
        plain.joint(0, 0.1, None, 0.3)
        plain.joint(1, None, -0.2, None)
        for i, point in enumerate(points):
            plain.contact(joints + each * i, point, 0.5)
    worst, made = solve_impulses(
        rows, b, inverse, impulse, w, bounds, radii, each=each, most=4, enough=0.0
    )
    np.testing.assert_allclose(impulse, [*plain.impulse.values()], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(w, [*plain.w.values()], rtol=1e-12, atol=1e-14)
    assert made == 4 and worst == pytest.approx(plain.worst) and worst > 0.0
    _, made = solve_impulses(
        rows, b, inverse, impulse, w, bounds, radii, each=each, most=10_000, enough=1e-9
    )
    assert 1 < made < 10_000
