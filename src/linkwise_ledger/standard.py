"""Checks of what every paper starts from: shifts, spatial inertias, resolvents, mass matrix."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import E_phi, M, mass, phi, psi
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import Case, apart
from linkwise_ledger.recursion import kalman_filter, kinetic_energy, paths


def _to_world(case: Case, k: int) -> Array:
    rot = case.mech.pose(case.q, case.mech.bodies[k].name).rot
    return blocks(rot, 0.0 * rot, 0.0 * rot, rot)


def check_shift(case: Case) -> float:
    """φ(k, i) in the axes of the world is [[I, l~], [0, I]]."""
    errors: list[float] = []
    for k, i in paths(case):
        poses = [case.mech.pose(case.q, case.mech.bodies[j].name) for j in (k, i)]
        lever, one = skew(poses[1].p - poses[0].p), np.eye(3)
        expected = blocks(one, lever, 0.0 * one, one)
        computed = _to_world(case, k) @ case.block(phi, k, i) @ _to_world(case, i).T
        errors.append(apart(computed, expected))
    return max(errors)


def check_transition(case: Case) -> float:
    """φ(k, i) = φ(k, m) φ(m, i), φ⁻¹(k, i) = φ(i, k) the shift the other way, φ(k, k) = I."""
    errors = [apart(case.block(phi, k, k), np.eye(6)) for k in case.outward]
    for k, m in paths(case):
        for m_too, i in paths(case):
            if m == m_too:
                product = case.block(phi, k, m) @ case.block(phi, m, i)
                errors.append(apart(product, case.block(phi, k, i)))
    for k, i in paths(case):
        X_k, X_i = (case.mech.pose(case.q, case.mech.bodies[j].name) for j in (k, i))
        back = (X_i.inverse() @ X_k).shift
        errors.append(apart(np.linalg.inv(case.block(phi, k, i)), back))
    return max(errors)


def check_inertia(case: Case) -> float:
    """The blocks of M from mass, centre of mass, and rotational inertia about the body frame."""
    errors: list[float] = []
    for k in case.outward:
        inertia = case.mech.inertias[k]
        m, p = float(inertia.mass), skew(inertia.com)
        expected = blocks(inertia.J, m * p, -m * p, m * np.eye(3))
        errors.append(apart(case.block(M, k), expected))
    return max(errors)


def check_resolvent(case: Case) -> float:
    """(I - E_φ)⁻¹ has the blocks φ(k, i), which are products of the steps between them."""
    expected = np.zeros_like(case.matrix(E_phi))
    rows = case.dense.slices(BODY)
    for _, i in paths(case):
        block, k = np.eye(6), i
        while k >= 0:
            expected[rows[k], rows[i]] = block
            p = case.parent(k)
            block = block if p < 0 else case.block(E_phi, p, k) @ block
            k = p
    resolvent = np.linalg.inv(np.eye(len(expected)) - case.matrix(E_phi))
    return max(apart(resolvent, expected), apart(case.matrix(phi), expected))


def check_mass_by_energy(case: Case) -> float:
    """v* 𝓜 w = ½ [T(v + w) - T(v - w)], for unit vectors v and w."""
    units = np.eye(case.mech.nv)
    both = [
        [kinetic_energy(case, x + y) - kinetic_energy(case, x - y) for y in units] for x in units
    ]
    return apart(0.5 * np.array(both), case.matrix(mass))


def check_definite_mass(case: Case) -> float:
    """𝓜 = 𝓜* > 0."""
    matrix = case.matrix(mass)
    return apart(matrix, matrix.T) if np.linalg.eigvalsh(matrix).min() > 0.0 else float("inf")


def check_products(case: Case) -> float:
    """ψ(k, m) is the product of the steps from m to k, the last one leftmost."""
    at, errors = kalman_filter(case), list[float]()
    for k, m in paths(case):
        product, i = np.eye(6), m
        while i != k:
            product, i = at.psi[i] @ product, case.parent(i)
        errors.append(apart(case.block(psi, k, m), product))
    return max(errors)
