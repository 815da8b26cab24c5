"""Coriolis forces and matrices: against Pinocchio, and differences of the mass matrix."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from tests.cases import close, state, tree
from tests.dynamics.test_oracles import ROBOTS, robot

COORDINATES = ("pin", "prismatic", "helical", "cylindrical", "universal", "gimbal", "translation")
"""Hinges whose v is q̇."""


NAMES = ("every hinge, armature", "every hinge, others", "floating")


@cache
def coordinates(seed: int) -> lw.Mechanism:
    return lw.models.random_tree(4, seed, hinges=COORDINATES)


def mass_rate(mech, q, v):
    """𝓜̇ while moving with v: central differences of fourth order."""
    h = 2e-4

    def at(t):
        return lw.mass_matrix(mech, mech.integrate(q, v, t))

    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


@pytest.mark.parametrize("name", NAMES)
def test_rate_of_the_mass_matrix(name):
    """𝓜̇ = C + C*: for every hinge, v a derivative of coordinates or not."""
    mech = tree(name)
    q, v, _ = state(mech, 1)
    matrix = lw.coriolis_matrix(mech, q, v)
    rate = mass_rate(mech, q, v)
    # Differences of numbers as large as the mass matrix: rounding 1e-16 / h, and h⁴.
    scale = np.abs(lw.mass_matrix(mech, q)).max() * (1 + np.abs(v).max()) ** 2
    assert np.abs(rate).max() > 1e-3 * np.abs(matrix).max()  # there is something to compare
    close(matrix + matrix.T, rate, 2e-9, scale=scale)


@pytest.mark.parametrize("name", NAMES)
def test_force_is_matrix_times_velocity(name):
    mech = tree(name)
    q, v, w = state(mech, 2)
    matrix = lw.coriolis_matrix(mech, q, v)
    force = lw.dynamics.coriolis_force(mech, q, v)
    scale = np.abs(matrix).max() * np.abs(v).sum()  # the sum without cancelling
    close(matrix @ v, force, 1e-13, scale=scale)
    close(lw.bias_force(mech, q, v) - lw.gravity_force(mech, q), force, 1e-11)
    scale = np.abs(matrix).max() * np.abs(w).sum()
    close(lw.dynamics.coriolis_product(mech, q, v, w), matrix @ w, 1e-13, scale=scale)


@pytest.mark.parametrize("seed", [2])
def test_christoffel_symbols_where_v_is_a_rate_of_coordinates(seed):
    """C_ij = ½ Σ_k (∂_k M_ij + ∂_j M_ik − ∂_i M_jk) v_k, by differences."""
    mech = coordinates(seed)
    q, v, w = state(mech, seed)
    slopes = np.stack([mass_rate(mech, q, e) for e in np.eye(mech.nv)])  # ∂_k M_ij
    christoffel = 0.5 * (
        np.einsum("kij,k->ij", slopes, v)
        + np.einsum("jik,k->ij", slopes, v)
        - np.einsum("ijk,k->ij", slopes, v)
    )
    scale = np.abs(lw.mass_matrix(mech, q)).max() * (1 + np.abs(v).max())
    close(lw.coriolis_matrix(mech, q, v), christoffel, 2e-9, scale=scale)
    one, other = (
        lw.dynamics.coriolis_product(mech, q, v, w),
        lw.dynamics.coriolis_product(mech, q, w, v),
    )
    close(one, other, 1e-12)


def test_quasi_velocities_have_no_such_symmetry():
    """What is said of them in the docstring: a lone ball shows C_v w ≠ C_w v."""
    b = lw.Builder("ball", gravity=(0, 0, 0))
    b.body(
        "ball", "world", lw.hinges.Spherical(), inertia=lw.SpatialInertia.solid_box(2.0, (1, 2, 3))
    )
    mech = b.build()
    q, v, w = mech.random(0), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    matrix = lw.coriolis_matrix(mech, q, v)
    close(matrix + matrix.T, np.zeros((3, 3)), 1e-15, scale=1.0)  # 𝓜 is constant
    one, other = (
        lw.dynamics.coriolis_product(mech, q, v, w),
        lw.dynamics.coriolis_product(mech, q, w, v),
    )
    assert np.abs(one - other).max() > 0.1


@pytest.mark.oracle
@pytest.mark.parametrize("short", ROBOTS)
def test_pinocchio(short):
    pin = pytest.importorskip("pinocchio")
    it = robot(short)
    theirs = np.array(pin.computeCoriolisMatrix(it.model, it.data, it.q_pin, it.v_pin))
    ours = lw.coriolis_matrix(it.mech, it.q, it.v)
    close(ours, it.T.T @ theirs @ it.T, 1e-11)
    close(
        lw.dynamics.coriolis_product(it.mech, it.q, it.v, it.x), it.T.T @ theirs @ it.x_pin, 1e-11
    )
    gravity = pin.computeGeneralizedGravity(it.model, it.data, it.q_pin)
    force = pin.nonLinearEffects(it.model, it.data, it.q_pin, it.v_pin) - gravity
    close(lw.dynamics.coriolis_force(it.mech, it.q, it.v), it.layout.force_from(it.q, force), 1e-10)


def test_batches_and_wrong_shapes():
    mech = tree("floating")
    states = [state(mech, seed) for seed in range(5)]
    q, v, w = (np.stack(part) for part in zip(*states, strict=True))
    codes = np.full(5, 7, np.int32)
    result = lw.dynamics.coriolis_product(mech, q, v, w, status=codes)
    assert not codes.any()
    for i, (q_i, v_i, w_i) in enumerate(states):
        close(result[i], lw.dynamics.coriolis_product(mech, q_i, v_i, w_i), 1e-12)
    with pytest.raises(lw.ShapeError, match="w has shape"):
        lw.dynamics.coriolis_product(mech, q[0], v[0], np.zeros(mech.nv + 1))
