"""Sweeps that lead nowhere end early, say what is left, and leave next to nothing to add up."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.implicit.joint import joints_with_rows
from linkwise.simulation.implicit.segments import SWEEPS, implicit_stepping
from linkwise.simulation.implicit.sweeping import HOPELESS, LATE, USUAL
from tests.simulation.moving import Given

STEP, STEPS = 2e-3, 500


def leaning(**options):
    """Configurations, residuals and numbers of sweeps of a leg that rocks on its foot.

    20 kg on a foot of half a kilogram, whose ankle holds by friction while its six points stick:
    sweeps move the load from one point to another in ever more of the smallest changes.
    """
    b = lw.Builder("leg")
    leg = lw.SpatialInertia.solid_box(20.0, [0.2, 0.2, 0.8])
    body = b.body("leg", "world", lw.hinges.Free(), inertia=leg)
    sole = lw.SpatialInertia.solid_box(0.5, [0.2, 0.1, 0.02])
    ankle = {"drive": lw.Drive(friction=30.0), "inboard": [0.0, 0.0, -0.4]}
    body.body("foot", "leg", lw.hinges.Pin([0.0, 1.0, 0.0]), inertia=sole, **ankle)
    mech, ground, v = b.build(), Ground(friction=0.8), np.zeros(7)
    points = tuple(
        ContactPoint(f"{x:+}{y:+}", "foot", (x, y, -0.05), ground=ground)
        for x in (-0.1, 0.0, 0.12)
        for y in (-0.05, 0.05)
    )
    q = mech.neutral()
    q[6], v[1], v[3] = 0.45, 0.003, 0.003 * 0.45
    options = {"branches": True} | options
    made = implicit_stepping(mech, 8, None, joints_with_rows(mech), points, **options)
    made = replace(made, shown=(*made.shown, ("made", 1)))
    kernel = MotionKernel(Given(mech, made))
    run = kernel.run(q[None], v[None], {"tau": np.zeros(mech.nv)}, STEP, STEPS, 1)
    assert not run.status.any()
    record, start = run.records[0], mech.nq + mech.nv + kernel.shown["impulse"]
    return record[:, : mech.nq], record[:, start], record[:, -1].astype(int)


@pytest.fixture(scope="module")
def usual():
    return leaning()


def test_what_leads_nowhere_ends_with_its_residual(usual):
    _, residual, made = usual
    early = (made < SWEEPS) & (residual > LATE)
    assert early.sum() > 20  # of those that are not solved
    assert (made[early] >= USUAL).all() and residual[early].max() <= HOPELESS
    assert (made[residual > HOPELESS] == SWEEPS).all() and (residual > HOPELESS).any()


def test_what_is_left_does_not_add_up(usual):
    """Against sweeps that go on until they are done."""
    end = usual[0][-1]
    exact, residual, made = leaning(late=0.0, sweeps=20_000)
    assert np.median(residual) < 1e-9 and made.max() > 5 * SWEEPS
    np.testing.assert_allclose(end, exact[-1], rtol=0.0, atol=1e-5)
