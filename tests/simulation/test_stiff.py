"""Stiff forces of the user: steps that stand them, and a report that names them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import SimulationError


def pulled(k: float, d: float):
    """A stiff spring and damper by a function, on the second joint of a double pendulum."""
    return lambda t, q, v: np.array([0.0, -k * (q[1] - 0.3) - d * v[1]])


@pytest.fixture(scope="module")
def pendulum():
    return lw.models.pendulum(2)


def test_rosenbrock_takes_steps_that_explicit_methods_do_not(pendulum):
    options = {"duration": 0.5, "step": 5e-3, "progress": False, "passive": False}
    force = pulled(1e5, 3e3)
    q = np.array([0.4, 0.3])
    with pytest.raises(SimulationError):
        lw.simulate(pendulum, q, tau=force, integrator="rk4", **options)
    rec = lw.simulate(pendulum, q, tau=force, integrator="rosenbrock", **options)
    fine = lw.simulate(pendulum, q, tau=force, integrator="rk4", **{**options, "step": 2e-5})
    np.testing.assert_allclose(rec["q"][-1], fine["q"][-1], rtol=0.0, atol=2e-3)


def test_adaptive_steps_report_stiffness(pendulum):
    options = {"duration": 0.5, "progress": False, "passive": False, "integrator": "adaptive"}
    rec = lw.simulate(pendulum, [0.4, 0.3], tau=pulled(1e5, 3e3), **options)
    rate = float(rec.report.notes.stiffness.split("rates of ")[1].split()[0])
    inverse = lw.dynamics.mass_matrix_inverse(pendulum, [0.4, 0.3])
    assert rate == pytest.approx(3e3 * inverse[1, 1], rel=0.3)  # the rate of the damper
    assert "  stiff" in str(rec.report)
    plain = lw.simulate(pendulum, [0.4, 0.3], tau=pulled(1.0, 0.0), **options)
    assert not plain.report.notes.stiffness
