"""Document 000, section 6: equations of motion with a unit mass matrix."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import D, bias, mass
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.literal import drawn, rate
from linkwise_ledger.operator_algebra.inversion import COLORING, WHITENING
from linkwise_ledger.recursion import kinetic_energy, moved, weightless
from linkwise_ledger.section import Section


def _root(dense: Dense) -> Array:
    """D^½, symmetric, block by block."""
    whole = dense(D)
    blocks: list[Array] = []
    for s in dense.slices(JOINT):
        squares, axes = np.linalg.eigh(whole[s, s])
        blocks.append(axes * np.sqrt(squares) @ axes.T)
    return dense.diagonal(blocks, JOINT, JOINT)


def _innovations(dense: Dense, moments: Array) -> Array:
    """ε = D^-½ (I - H ψ K) T."""
    return np.linalg.inv(_root(dense)) @ dense(WHITENING) @ moments


def _to_residuals(dense: Dense) -> Array:
    """D^½ (I + H φ K)*, so that ν is this times θ̇."""
    return _root(dense) @ dense(COLORING).T


DIAGONAL = Section()


@DIAGONAL("""sec. 6, change of basis  a basis in which the inertia is D
    printed  (4.4) is a change of basis to the diagonal inertia D
    holds    ½ ξ* D ξ, ξ = (I + H φ K)* v, is the kinetic energy ½ Σ V*(k) M(k) V(k)
""")
def _(case: Case) -> float:
    xi = case.matrix(COLORING).T @ case.v
    return apart(0.5 * xi @ case.matrix(D) @ xi, kinetic_energy(case, case.v))


@DIAGONAL("""sec. 6, innovations  normalised innovations
    printed  ε = D^-½ (I - H ψ K) T
    means    ε* ε = τ* 𝓜⁻¹ τ
    note     For hinges of several freedoms D^½ is the symmetric root of each block.
""")
def _(case: Case) -> float:
    moments = drawn(case, JOINT)
    eps = _innovations(case.dense, moments)
    return apart(eps @ eps, moments @ np.linalg.inv(case.matrix(mass)) @ moments)


@DIAGONAL("""sec. 6, residuals  normalised residuals
    printed  ν = D^½ (I + H φ K)* θ̇
    means    ½ ν* ν is the kinetic energy ½ Σ V*(k) M(k) V(k)
""")
def _(case: Case) -> float:
    nu = _to_residuals(case.dense) @ case.v
    return apart(0.5 * nu @ nu, kinetic_energy(case, case.v))


@DIAGONAL("""sec. 6, diagonal equations  equations of motion with a unit mass matrix
    printed  ν̇ + C(θ, ν) = ε
    holds    ε - ν̇ is the same for all τ: a function C of q and v, for which ν* C = 0 without
             gravity
    note     D^½ (I + H φ K)* is differentiated along the motion by differences.
""")
def _(case: Case) -> float:
    """ε - ν̇ is the same whatever the moments are, and without gravity it does no work.

    ν̇ is the derivative along the motion that the moments cause, that of D^½ (I + H φ K)* in it by
    differences. The power ν* ε is that of the moments, θ̇* T: so ν* C = 0 is the balance of energy.
    """
    case = weightless(case)
    basis, turning = _to_residuals(case.dense), rate(lambda t: _to_residuals(moved(case, t)))

    def rest(moments: Array) -> Array:
        vdot = np.linalg.inv(case.matrix(mass)) @ (moments - case.matrix(bias))
        return _innovations(case.dense, moments) - (turning @ case.v + basis @ vdot)

    nu, moments = basis @ case.v, drawn(case, JOINT)
    first, second = rest(moments), rest(3.0 * drawn(case, JOINT, 1))
    work = abs(float(nu @ first)) / float(np.linalg.norm(nu) * np.linalg.norm(first))
    return max(apart(first, second), work)
