"""Document 001, Part II, section 5 from (5.10) on: the loops of one free arm, and three sweeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import D, Delta_phi, E_psi, H, L, M, Psi, S, a, b, phi, psi, tau, v
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Compare, Errors
from linkwise_ledger.grasp import PICK, Grasp, rigid
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import free
from linkwise_ledger.jpl_88_11.part_2.loops import residuals, smoothed
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
from linkwise_ledger.recursion import accelerations
from linkwise_ledger.section import Section

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
