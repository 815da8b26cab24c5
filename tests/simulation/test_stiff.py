"""Stiff forces of the user: steps that stand them, and a report that names them."""

from __future__ import annotations

import warnings

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


def train(damping: float, stiffness: float = 0.0, count: int = 3) -> lw.Mechanism:
    """Masses on slides in a row, with a damper or spring between neighbours: 𝓜 is constant."""
    b, parent = lw.Builder("train"), "world"
    for i in range(count):
        drive = lw.Drive(damping=damping, stiffness=stiffness)
        inertia = lw.SpatialInertia.solid_sphere(1.0 + i, 0.1)
        b.body(f"car{i}", parent, lw.hinges.Prismatic((1, 0, 0)), inertia=inertia, drive=drive)
        parent = f"car{i}"
    return b.build()


LIMITS = {"rk4": (2.7853, 2.8284), "rk4_mujoco": (2.7853, 2.8284), "euler": (2.0, 2.0)}
"""|1 + z + z²/2 + z³/6 + z⁴/24| = 1 on the negative and on the imaginary axis; 1 − z, and 2."""


@pytest.mark.parametrize("integrator", LIMITS)
@pytest.mark.parametrize("kind", ["damper", "spring"])
def test_stiff_drives_are_warned_of_where_the_motion_grows(integrator, kind):
    mech = train(*(50.0, 0.0) if kind == "damper" else (0.0, 900.0))
    given = mech.damping if kind == "damper" else mech.stiffness
    rates = np.linalg.eigvals(np.linalg.solve(lw.mass_matrix(mech, np.zeros(3)), np.diag(given)))
    rate = rates.real.max() if kind == "damper" else np.sqrt(rates.real.max())
    options = {"integrator": integrator, "v": [1e-6, -1e-6, 1e-6]}
    for part in (0.99, 1.03):
        step = part * LIMITS[integrator][kind == "spring"] / rate
        options |= {"duration": 400 * step, "step": step}
        if part < 1.0:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                run = lw.rollout(mech, np.zeros(3), **options)
            assert np.abs(run.v).max() < 1e-5
            continue
        with pytest.warns(UserWarning, match=f"the stiffest {kind}.*integrator='implicit'"):
            run = lw.rollout(mech, np.zeros(3), **options)
        assert np.abs(run.v[-1]).max() > 1e-3
        with pytest.warns(UserWarning, match="too stiff"):
            lw.Simulator(mech, step=step, integrator=integrator)
        with pytest.warns(UserWarning, match="too stiff"):
            still = options | {"duration": 3 * step, "v": np.zeros(3)}
            lw.simulate(mech, np.zeros(3), **still, progress=False)
        for other in ({"passive": False}, {"integrator": "implicit"}):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                lw.rollout(mech, np.zeros(3), **options | other)


def test_given_dampers_count_and_those_in_loops_move_what_the_loop_allows():
    mech, options = train(1.0), {"duration": 0.02, "step": 1e-3}
    with pytest.warns(UserWarning, match="at 'car0'"):
        lw.rollout(mech, np.zeros(3), parameters={"damping": [1e5, 1.0, 1.0]}, **options)
    b = lw.Builder("linkage")
    bar = lw.SpatialInertia.from_com(1.0, (0.0, 0.0, -0.2), (0.02, 0.02, 1e-4))
    light = lw.SpatialInertia.from_com(1e-3, (0.2, 0.0, 0.0), (1e-6, 2e-5, 2e-5))
    pin, drive = lw.hinges.Pin((0, 1, 0)), lw.Drive(damping=1.0)
    b.body("crank", "world", pin, inertia=bar)
    b.body("rod", "crank", pin, inboard=(0, 0, -0.4), inertia=light, drive=drive)
    b.body("rocker", "world", pin, inboard=(0.4, 0, 0), inertia=bar)
    b.node("rod end", "rod", (0.4, 0, 0)).node("rocker end", "rocker", (0, 0, -0.4))
    linkage = b.loop("loop", "rod end", "rocker end", pin).build()
    q = np.array([0.2, -0.2, 0.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = lw.rollout(linkage, q, **options)
    assert np.abs(held.v).max() < 1.0
    with pytest.warns(UserWarning, match="at 'rod'"):  # which alone turns with little inertia
        lw.rollout(linkage, q, loops="open", **options | {"duration": 2e-3})


@pytest.mark.filterwarnings("ignore:dampers and springs")
def test_advice_names_implicit_steps_where_there_are_dampers():
    mech, remedy = train(5e4), "Dampers and springs may be stiff with integrator='implicit'."
    options = {"duration": 3.0, "step": 1e-3, "v": [1.0, 0.0, 0.0]}
    with pytest.raises(SimulationError, match=remedy):
        lw.rollout(mech, np.zeros(3), **options)
    with pytest.raises(SimulationError, match=remedy):
        lw.simulate(mech, np.zeros(3), **options, progress=False)
    with pytest.raises(SimulationError, match=remedy):
        lw.simulate(
            mech, np.zeros(3), **options, progress=False, controller=lambda t, q, v: np.zeros(3)
        )
    with pytest.warns(UserWarning, match=remedy):
        lw.rollout(mech, np.zeros((2, 3)), **options)
    implicit = lw.rollout(mech, np.zeros(3), integrator="implicit", **options)
    assert np.abs(implicit.v[-1]).max() < 1e-3
