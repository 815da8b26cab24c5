"""The loops of Part II, run as printed on one arm: k - 1 are the children, k + 1 the parent.

JPL 88-11, Part II, section 5 from (5.10) on: the loops of one free arm, and three sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import (
    D,
    Delta_phi,
    E_psi,
    H,
    L,
    M,
    Psi,
    S,
    a,
    b,
    phi,
    psi,
    rot_W,
    tau,
    v,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Compare, Errors
from linkwise_ledger.grasp import PICK, Grasp, rigid
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import free
from linkwise_ledger.jpl_88_11.part_2.overview import (
    BIAS,
    EPS,
    FREE,
    MASS,
    WHITENING,
    gives,
    on_arms,
    sweeps,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.recursion import Blocks, accelerations, at_tip, split, stacked
from linkwise_ledger.section import Section


class Filtered(NamedTuple):
    """ẑ, ε and ν of all links, stacked."""

    z: Array
    eps: Array
    nu: Array


def transition(arm: Case, k: int) -> Array:
    """ψ(k+1, k) = φ(k+1, k) - L(k) H(k)."""
    return arm.block(Delta_phi, k) - arm.block(L, k) @ arm.block(H, k)


def to_tip(arm: Case) -> tuple[int, Array]:
    """Link 1, and φ(1, 0) from the tip, in the axes of the world, to it."""
    tip, shift = at_tip(arm)
    return tip, shift @ arm.matrix(rot_W).T


def residuals(arm: Case, moments: Array, f: Array | None = None) -> Filtered:
    """(5.10a) to (5.10d); with f(0), ẑ = ψ (S L T' + B f(0)) as in (6.17)."""
    given, (tip, reach) = split(arm, moments, JOINT), to_tip(arm)
    z, eps, nu = Blocks(), Blocks(), Blocks()
    for k in arm.inward:
        z[k] = np.zeros(6)
        for c in arm.children(k):
            z[k] = z[k] + transition(arm, c) @ z[c] + arm.block(L, c) @ given[c]
        if k == tip and f is not None:
            z[k] = z[k] + reach @ f
        eps[k] = given[k] - arm.block(H, k) @ z[k]
        nu[k] = arm.block(D.inv, k) @ eps[k]
    return Filtered(stacked(arm, z), stacked(arm, eps), stacked(arm, nu))


def smoothed(arm: Case, nu: Array, *, as_printed: bool = False) -> tuple[Array, Array]:
    """(5.10e) to (5.10g), (6.4d) to (6.4f): λ and accelerations.

    Printed is k = 1 … N below (5.10e): λ(k+1) is then read before it is there.
    """
    given = split(arm, nu, JOINT)
    costate, moved = Blocks(), Blocks()
    for k in arm.inward if as_printed else arm.outward:
        p = arm.parent(k)
        above = np.zeros(6) if p < 0 else costate[p]
        costate[k] = transition(arm, k).T @ above + arm.block(H, k).T @ given[k]
        moved[k] = given[k] - arm.block(L, k).T @ above
    return stacked(arm, costate), stacked(arm, moved)


def corrections(
    arm: Case, f: Array, *, shift: str = "psi", sign: float = -1.0, first: bool = True
) -> Array:
    """(6.4): Δθ̈ by contact forces. Printed are shift "phi", sign + and no ν(1).

    Args:
        arm: The arm.
        f: f(0), in the axes of the world.
        shift: What takes ẑ(k-1) to ẑ(k).
        sign: Of ν.
        first: Whether ν is computed for link 1, where the loop below (6.4a) does not come.
    """
    tip, reach = to_tip(arm)
    z, nu = Blocks(), Blocks()
    for k in arm.inward:
        z[k] = np.zeros(6)
        for c in arm.children(k):
            step = transition(arm, c) if shift == "psi" else arm.block(Delta_phi, c)
            z[k] = z[k] + step @ z[c]
        if k == tip:
            z[k] = z[k] + reach @ f
        nu[k] = sign * arm.block(D.inv, k) @ arm.block(H, k) @ z[k]
        if k == tip and not first:
            nu[k] = 0.0 * nu[k]
    return smoothed(arm, stacked(arm, nu))[1]


def tip_compliance(arm: Case) -> tuple[Blocks, Array]:
    """(6.10): Λ(k) from the base, and Λ(0)."""
    blocks_at = Blocks()
    for k in arm.outward:
        p, H_k = arm.parent(k), arm.block(H, k)
        blocks_at[k] = H_k.T @ arm.block(D.inv, k) @ H_k
        if p >= 0:
            step = transition(arm, k)
            blocks_at[k] = blocks_at[k] + step.T @ blocks_at[p] @ step
    tip, reach = to_tip(arm)
    return blocks_at, reach.T @ blocks_at[tip] @ reach


THREE_SWEEPS = tau - H @ psi @ (S @ L @ tau + M @ phi.T @ a + b)
"""ε of (5.14b)."""


def _per_arm(loop: Callable[[Case, Array], Array], expected: Expr) -> Compare[Grasp]:
    """The check of a loop, run on each arm with its T', against an operator on T'."""

    def check(g: Grasp) -> Errors:
        for i, arm in enumerate(alone(g)):
            moments = g.T_free[g.arm_of(i)]
            yield loop(arm, moments), arm.matrix(expected) @ moments

    return check


LOOPS = Section()
LOOPS.unchecked("""(5.10a)  start of the filter
    printed  ẑ_i(0) = 0, T'_i(0) = 0
    means    nothing at the tip
""")
LOOPS.on(rigid)("""(5.10b)  Kalman filter of one arm
    printed  for k = 1 … N: ẑ_i(k) = ψ_i(k,k-1) ẑ_i(k-1) + L_i(k-1) T'_i(k-1)
    holds    ẑ = Ψ L T'
    note     Run as printed, k - 1 being the children.
""")(_per_arm(lambda arm, moments: residuals(arm, moments).z, Psi @ L))
LOOPS.on(rigid)("""(5.10c)  innovations of one arm
    printed  ε_i(k) = T'_i(k) - H_i(k) ẑ_i(k)
    holds    ε = (I - H Ψ L) T'
""")(_per_arm(lambda arm, moments: residuals(arm, moments).eps, WHITENING))
LOOPS.on(rigid)("""(5.10d)  weighted residuals of one arm
    printed  ν_i(k) = D_i⁻¹(k) ε_i(k)
    holds    ν = D⁻¹ (I - H Ψ L) T'
""")(_per_arm(lambda arm, moments: residuals(arm, moments).nu, D.inv @ WHITENING))
LOOPS.unchecked("""(5.10e)  start of the smoother
    printed  λ_i(N+1) = 0
    means    nothing from the ground
""")
LOOPS.on(rigid)("""sec. 5, second loop of (5.10)  which way the smoother goes
    printed  for k = 1 … N: (5.10f), (5.10g)
    instead  for k = N … 1: (5.10f), (5.10g), as in (6.4)
    note     From the tip on, λ(2) is read before it is set; (5.10e) starts at the base.
""")(
    _per_arm(
        lambda arm, moments: smoothed(arm, residuals(arm, moments).nu)[1],
        WHITENING.T @ D.inv @ WHITENING,
    )
)


@LOOPS.as_printed
def _(case: Case) -> float:
    """k = 1 … N: λ(2) is wanted first, which is nowhere set."""
    g = rigid(case)
    try:
        for i, arm in enumerate(alone(g)):
            smoothed(arm, residuals(arm, g.T_free[g.arm_of(i)]).nu, as_printed=True)
    except KeyError:
        return float("inf")
    return 0.0


LOOPS.on(rigid)("""(5.10f)  smoother of one arm
    printed  λ_i(k) = ψ_iᵀ(k+1,k) λ_i(k+1) + H_iᵀ(k) ν_i(k)
    holds    λ = ψ* H* ν
    note     For k = N … 1.
""")(
    _per_arm(
        lambda arm, moments: smoothed(arm, residuals(arm, moments).nu)[0],
        psi.T @ H.T @ D.inv @ WHITENING,
    )
)
LOOPS.on(rigid)("""(5.10g)  accelerations of one arm
    printed  θ̈_i,f(k) = ν_i(k) - L_iᵀ(k) λ_i(k+1)
    holds    v̇_f = 𝓜⁻¹ T'
    note     For k = N … 1.
""")(_per_arm(lambda arm, moments: smoothed(arm, residuals(arm, moments).nu)[1], MASS.inv))
LOOPS.on(rigid)("""sec. 5, ψ_i(k+1,k)  transition of the filter
    printed  ψ_i(k+1,k) = φ_i(k+1,k) - L_i(k) H_i(k)
    means    E_ψ = S (Δ_φ - L H)
""")(on_arms((E_psi, S @ (Delta_phi - L @ H))))
LOOPS.on(rigid)("""sec. 5, velocities for the biases  what a and b are computed from
    printed  V = Bᵀ φᵀ Hᵀ θ̇
    instead  V = φᵀ Hᵀ θ̇
    note     Bᵀ is too much, as in (5.13) of Part I: velocities of all links are wanted, not of the
             tips.
""")(
    lambda g: (
        g.matrix(phi.T @ H.T @ v),
        np.concatenate([x for arm in alone(g) for x in accelerations(arm, arm.v).values()]),
    )
)
LOOPS.on(rigid).as_printed(
    lambda g: (g.matrix(PICK.T @ phi.T @ H.T @ v), g.matrix(phi.T @ H.T @ v))
)
LOOPS.on(rigid)("""(5.11)  accelerations of the free arms, written out
    holds    θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) {T - H φ (M φᵀ a + b)}
""")(gives(WHITENING.T @ D.inv @ WHITENING @ (tau - BIAS), free))
LOOPS.on(rigid)("""(5.12a)  Ψ from ψ
    holds    Ψ = ψ S
""")(on_arms((E_psi @ Psi, Psi - S)))
LOOPS.on(rigid)("""(5.12b)  whitened propagation
    holds    (I - H Ψ L) H φ = H ψ
""")(on_arms((WHITENING @ H @ phi, H @ psi)))
LOOPS.on(rigid)("""(5.13)  accelerations of the free arms in three sweeps
    printed  θ̈_f = (I - H Ψ L)⁻¹ D⁻¹ {T - H ψ (S L T + M φᵀ a + b)}
    instead  θ̈_f = (I - H Ψ L)ᵀ D⁻¹ {T - H ψ (S L T + M φᵀ a + b)}, as in (5.14d)
    note     The inverse for the transpose, as in the proof of FD3 in Part I.
""")(gives(WHITENING.T @ D.inv @ THREE_SWEEPS, free))
LOOPS.on(rigid).as_printed(gives(WHITENING.inv @ D.inv @ THREE_SWEEPS, free))
LOOPS.unchecked("""(5.14a)  bias accelerations, propagated
    printed  ζ = φᵀ a
    means    φ* a
""")
LOOPS.on(rigid)("""(5.14b)  innovations without T'
    printed  ε = T - H ψ (S L T + M ζ + b)
    holds    ε = (I - H Ψ L) T'
""")(on_arms((THREE_SWEEPS, EPS)))
LOOPS.unchecked("""(5.14c)  weighted residuals
    means    ν = D⁻¹ ε
""")
LOOPS.on(rigid)("""(5.14d)  accelerations of the free arms
    holds    θ̈_f = (I - H Ψ L)ᵀ ν
""")(gives(WHITENING.T @ D.inv @ THREE_SWEEPS, free))
LOOPS.on(rigid)("""sec. 5, sweeps  of (5.8a) with (5.9), and of (5.14)
    printed  the first takes four sweeps, the second three
    holds    resolvents that follow each other: φ*, φ, Ψ, Ψ*, and φ*, ψ, Ψ*
""")(
    lambda case: max(
        apart(sweeps(WHITENING.T @ D.inv @ WHITENING @ FREE), 4),
        apart(sweeps(WHITENING.T @ D.inv @ THREE_SWEEPS), 3),
    )
)
