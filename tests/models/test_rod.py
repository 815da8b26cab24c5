"""Rods against theory: large deflection, buckling, hanging weight, catenary, convergence."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipk, ellipkinc

import linkwise as lw
from linkwise.errors import ModelError
from linkwise.simulation.implicit.long_steps import LongSteps

E, RADIUS, LENGTH = 1e7, 0.005, 1.0
EI, EA = E * 0.25 * np.pi * RADIUS**4, E * np.pi * RADIUS**2


def weightless(n: int) -> lw.Mechanism:
    mech = lw.models.rod(n, length=LENGTH, radius=RADIUS, youngs_modulus=E)
    return mech.with_gravity((0, 0, 0))


def residual(mech: lw.Mechanism, q: np.ndarray, force: tuple[float, float]) -> np.ndarray:
    """What bending and stretch in the plane x, z lack to equilibrium, for q of these (..., 2 n)."""
    n = mech.n_bodies
    full = np.zeros((*q.shape[:-1], n, 4))
    full[..., 0], full[..., 3] = q[..., :n], q[..., n:]
    flat = full.reshape(*q.shape[:-1], 4 * n)
    wrench = {"tip": [0, 0, 0, force[0], 0, force[1]]}
    still = np.zeros(4 * n)
    needed = lw.inverse_dynamics(mech, flat, still, still, forces=wrench, forces_frame="world")
    lacking = lw.passive_force(mech, flat, still) - needed
    lacking = lacking.reshape(*q.shape[:-1], n, 4)
    return np.concatenate([lacking[..., 0], lacking[..., 3]], axis=-1)


def slope(mech: lw.Mechanism, q: np.ndarray, force: tuple[float, float]) -> np.ndarray:
    h = 1e-6
    steps = h * np.eye(len(q))
    return ((residual(mech, q + steps, force) - residual(mech, q - steps, force)) / (2 * h)).T


def at_rest(mech: lw.Mechanism, force: tuple[float, float], parts: int = 5) -> np.ndarray:
    """The place of the tip under a force, by Newton's method."""
    n = mech.n_bodies
    q = np.zeros(2 * n)
    for i in range(1, parts + 1):
        load = (force[0] * i / parts, force[1] * i / parts)
        for _ in range(12):
            step = np.linalg.solve(slope(mech, q, load), residual(mech, q, load))
            q = q - step
    assert np.abs(step).max() < 1e-9
    full = np.zeros((n, 4))
    full[:, 0], full[:, 3] = q[:n], q[n:]
    return mech.pose(full.ravel(), "tip").p


def elastica(load: float) -> float:
    """Deflection over length of a cantilever under a transverse force F, load = F L² / E I.

    With m = (1 + sin θ₀) / 2 and sin² φ₁ = 1 / 2m: √load = K(m) - F(φ₁, m) (Bisshopp and Drucker
    1945), and the deflection is 1 - 2 (E(m) - E(φ₁, m)) / √load.
    """
    from scipy.special import ellipe, ellipeinc

    def first(m: float) -> float:
        return float(np.arcsin(np.sqrt(0.5 / m)))

    m = brentq(lambda m: ellipk(m) - ellipkinc(first(m), m) - np.sqrt(load), 0.5 + 1e-12, 1 - 1e-12)
    return 1.0 - 2.0 * (ellipe(m) - ellipeinc(first(m), m)) / np.sqrt(load)


def test_elastica_is_the_known_one() -> None:
    assert abs(elastica(1.0) - 0.3017) < 1e-4 and abs(elastica(10.0) - 0.8106) < 1e-4


@pytest.mark.parametrize("load", [5.0, pytest.param(1.0, marks=pytest.mark.prove)])
def test_cantilever_at_large_deflection(load: float) -> None:
    """Towards elliptic integrals, with the square of the link length; stretch is 1e-5."""
    errors = list[float]()
    for n in (6, 12):
        tip = at_rest(weightless(n), (0.0, -load * EI / LENGTH**2))
        errors.append(abs(-tip[2] / LENGTH - elastica(load)))
    assert errors[1] < 4e-3 and errors[1] < 0.35 * errors[0]


def test_buckling_load() -> None:
    """A cantilever gives way at π² E I / 4 L²: the slope of the forces is singular there."""
    mech = weightless(16)
    euler = np.pi**2 * EI / (4 * LENGTH**2)

    def least(share: float) -> float:
        matrix = slope(mech, np.zeros(32), (-share * euler, 0.0))
        return float(np.linalg.eigvalsh(-0.5 * (matrix + matrix.T))[0])

    assert least(0.97) > 0.0 > least(1.03)


def test_hanging_weight_stretches_it() -> None:
    tip = at_rest(weightless(10), (2.0, 0.0), parts=1)
    # The base hinge has half a link, the last half has none: (n - 1/2) / n of the length stretches.
    assert abs(tip[0] - LENGTH - 2.0 * LENGTH / EA * 0.95) < 1e-9


@pytest.mark.prove
def test_comes_to_rest_by_implicit_steps() -> None:
    """The cantilever under its own weight, by steps far beyond those of the stretch."""
    n = 10
    mech = lw.models.rod(n, length=0.3, radius=RADIUS, youngs_modulus=10 * E, damping=0.05)
    rec = lw.simulate(mech, mech.neutral(), duration=6.0, step=0.01, integrator="implicit")
    tip = mech.pose(rec.q[-1], "tip").p
    weight = 1000.0 * np.pi * RADIUS**2 * 9.81  # for one metre
    small = weight * 0.3**4 / (8 * 10 * EI)
    assert abs(-tip[2] - small) < 0.05 * small


@pytest.mark.prove
def test_hangs_in_a_catenary() -> None:
    """A soft cable of 100 links between two points of the same height, 0.8 of its length apart."""
    n, span = 100, 0.8
    mech = lw.models.rod(n, radius=0.002, youngs_modulus=1e6, damping=0.2)
    place = lw.Builder("ends").node("hook", "world", lw.Pose.translation((span, 0, 0))).build()
    held = lw.Loop("held", "tip", "hook", lw.hinges.Spherical())
    mech = dataclasses.replace(place.mount(mech, at="world"), loops=(held,))
    bent = np.zeros((n, 4))
    bent[0, 0], bent[1:, 0] = 1.0, -2.0 / n  # an arc that hangs
    q = lw.loops.assemble(mech, bent.ravel()).required()
    options = {"duration": 6.0, "step": 0.01, "integrator": "implicit", "record_every": 600}
    rest = lw.rollout(mech, q, **options)
    assert np.abs(rest.v[-1]).max() < 0.05
    points = mech.poses(rest.q[-1]).p
    a = brentq(lambda a: 2.0 * a * np.sinh(0.5 * span / a) - LENGTH, 0.05, 10.0)
    sag = a * (np.cosh(0.5 * span / a) - 1.0)
    # the cable is clamped at its base, within a length √(E I / T) = 0.01 m, and stretches by 1 %
    assert abs(-points[:, 2].min() - sag) < 0.03 * sag


@pytest.mark.prove
def test_falls_as_a_cantilever_of_finer_links() -> None:
    """Towards one path, with links and steps; exudyn's cable takes the same (benchmarks/rod.py)."""
    paths = list[np.ndarray]()
    for n, h in ((20, 4e-3), (40, 2e-3), (80, 1e-3)):
        mech = lw.models.rod(n)
        steps = LongSteps(mech, actuated=False, passive=True)
        state, none = steps.first(mech.neutral(), np.zeros(mech.nv)), np.zeros((1, 0))
        state = steps.advance(state, h, round(0.5 / h), np.zeros((1, mech.nv)), none).last
        paths.append(mech.pose(state.q, "tip").p)
    first, second = (np.linalg.norm(a - b) for a, b in pairwise(paths))
    assert 1e-4 < second < 0.6 * first
    # exudyn 1.13: 64 ANCF cable elements, generalised-α, steps of 0.5 ms
    np.testing.assert_allclose(paths[-1][[0, 2]], (-0.1155, -0.9175), atol=3e-3)


@pytest.mark.parametrize(
    "wrong", [{"radius": 0.0}, {"density": -1.0}, {"youngs_modulus": np.inf}, {"damping": -1.0}]
)
def test_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="of a rod is"):
        lw.models.rod(3, **wrong)
