"""JPL 88-11, section 4 from Fact 4.1 on: the innovations, and algorithm FD1."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.symbols import (
    B,
    D,
    H,
    I,
    J,
    L,
    M,
    Phi,
    Psi,
    a,
    b,
    bias,
    f,
    mass,
    phi,
    tau,
)
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.links import body_axes, diagonal, rows, stacked
from linkwise_ledger.jpl_88_11.section_4 import root, stack
from linkwise_ledger.jpl_88_11.sweeps import (
    arms,
    bias_free,
    colored,
    fd1,
    finds_accelerations,
    residuals,
    riccati,
    whitened,
)
from linkwise_ledger.recursion import drawn, split
from linkwise_ledger.section import Section

COLORING = I + H @ Phi @ L
WHITENING = I - H @ Psi @ L
FREE = tau - H @ phi @ (M @ phi.T @ a + b + B @ f)
"""T' of (4.17)."""

VDOT = mass.inv @ (tau - bias - J.T @ f)
"""θ̈, by the inverse of the mass matrix."""

GIVEN: dict[str, Expr] = {"T'": FREE, "T": tau, "v̇": VDOT, "θ̈": VDOT, "f(0)": f}
"""Names in statements."""


def _beyond(case: Case, k: int) -> list[int]:
    """The links beyond k, itself not counted."""
    parts: list[int] = []
    for j in range(k + 1, case.mech.n_bodies):
        if case.parent(j) == k or case.parent(j) in parts:
            parts.append(j)
    return parts


def _causal(case: Case, expr: Expr) -> float:
    """Largest block that leads anywhere but from a joint to itself or to those inboard of it."""
    matrix, joints = case.matrix(expr).copy(), case.dense.slices(H.range)
    scale = np.abs(matrix).max()
    for k in case.outward:
        for j in (k, *_beyond(case, k)):
            matrix[joints[k], joints[j]] = 0.0
    return float(np.abs(matrix).max() / scale)


# ------------------------------------------------------------------------------------- FD1


def _filtered(case: Case, *, as_printed: bool) -> float:
    """ν of the loop, against D⁻¹ (I - H Ψ L) T'."""
    links = body_axes(case)
    at = riccati(links)
    nu = residuals(links, at, as_printed=as_printed)
    free = case.matrix(mass) @ np.concatenate(links.theta_ddot)
    return apart(stack(nu), np.linalg.solve(case.matrix(D), case.matrix(WHITENING) @ free))


INNOVATIONS = Section(GIVEN)
INNOVATIONS.algebra("""(4.11)  innovations factorisation
    holds    𝓜 = (I + H Φ L) D (I + H Φ L)ᵀ
""")


@INNOVATIONS("""Fact 4.1  innovations factorisation, what its factors are
    printed  (4.11), with I + H Φ L causal and D memoryless and invertible
    holds    𝓜 = (I + H φ K) D (I + H φ K)*, since Φ L = φ K
    note     Causal: nothing goes from a link to those beyond it, or to another branch.
""")
def _(case: Case) -> float:
    rule, joints = BY_NAME["innovations factorisation"], case.dense.slices(H.range)
    matrix = case.matrix(D)
    diagonal_ = diagonal([matrix[s, s] for s in joints])
    if np.linalg.eigvalsh(matrix).min() <= 0.0:
        return float("inf")
    return max(
        case.residual(rule.left, rule.right), _causal(case, COLORING), apart(matrix, diagonal_)
    )


@INNOVATIONS("""(4.12)  innovations representation
    holds    Y = (I + H Φ L) ε; E(ε) = 0; E(ε εᵀ) = D; E(Y) = 0; E(Y Yᵀ) = 𝓜
""")
def _(case: Case) -> float:
    outcome = case.matrix(COLORING) @ root(case, D)
    return apart(outcome @ outcome.T, case.matrix(mass))


@INNOVATIONS("""(4.13)  the same as a loop
    printed  ẑ(k) = φ(k,k-1) ẑ(k-1) + L(k-1) ε(k-1); y(k) = H(k) ẑ(k) + ε(k)
    holds    ẑ_k = Σ_c (φ(k,c) ẑ_c + L_c ε_c); y = H ẑ + ε: y = (I + H Φ L) ε
""")
def _(case: Case) -> float:
    links, eps = body_axes(case), drawn(case, H.range)
    _, y = colored(links, riccati(links), split(case, eps, H.range))
    return apart(stack(y), case.matrix(COLORING) @ eps)


INNOVATIONS.algebra("""(4.14)  whitening inverts coloring
    holds    (I + H Φ L)⁻¹ = I - H Ψ L
""")


@INNOVATIONS("""Fact 4.2  whitening and coloring, causal and inverse to each other
    printed  I + H Φ L and I - H Ψ L are lower triangular and mutually reciprocal
    holds    (I + H φ K) (I - H ψ K) = I = (I - H ψ K) (I + H φ K)
""")
def _(case: Case) -> Errors:
    """Both products, in φ, ψ and K; both factors causal."""
    rules = (BY_NAME["coloring whitened"], BY_NAME["whitened coloring"])
    yield from (case.residual(rule.left, rule.right) for rule in rules)
    yield _causal(case, COLORING)
    yield _causal(case, WHITENING)


@INNOVATIONS("""(4.15)  the whitening filter as a loop
    printed  ẑ(k) = [φ(k,k-1) - L(k-1) H(k-1)] ẑ(k-1) + L(k-1) y(k-1); ε(k) = -H(k) ẑ(k) + y(k)
    holds    ε = (I + H Φ L)⁻¹ y
""")
def _(case: Case) -> float:
    links, y = body_axes(case), drawn(case, H.range)
    _, eps = whitened(links, riccati(links), split(case, y, H.range))
    return apart(stack(eps), np.linalg.solve(case.matrix(COLORING), y))


@INNOVATIONS("""sec. 4, state of the filter  what ẑ is
    printed  ẑ(k) = E[z(k) / y(1), ..., y(k-1)]
    holds    ẑ_k is the expectation of z_k given y of all bodies beyond k
    note     From the covariances of z and y, for W of a normal distribution.
""")
def _(case: Case) -> Errors:
    links, y = body_axes(case), drawn(case, H.range)
    z, _ = whitened(links, riccati(links), split(case, y, H.range))
    joints = case.dense.slices(H.range)
    cross_, matrix = case.matrix(phi @ M @ phi.T @ H.T), case.matrix(mass)
    for k in links.inward:
        known = [i for j in _beyond(case, k) for i in range(joints[j].start, joints[j].stop)]
        if known:
            expected = cross_[rows(k), known] @ np.linalg.solve(
                matrix[np.ix_(known, known)], y[known]
            )
            yield z[k], expected


@INNOVATIONS("""sec. 4, one state  ẑ of (4.13) and of (4.15)
    holds    the ẑ(k) of (4.13) and (4.15) are identical
""")
def _(case: Case) -> float:
    links, eps = body_axes(case), split(case, drawn(case, H.range), H.range)
    at = riccati(links)
    z, y = colored(links, at, eps)
    z_again, eps_again = whitened(links, at, [y[k] for k in sorted(y)])
    return max(apart(stack(z), stack(z_again)), apart(stack(eps_again), np.concatenate(list(eps))))


INNOVATIONS.algebra("""(4.16)  inverse of the mass operator
    holds    𝓜⁻¹ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L)
Theorem 4.1  inverse of the mass operator, by K
    printed  (4.16)
    holds    𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)
FD1  forward dynamics in four sweeps, (4.17) and (4.18)
    printed  T' = T - H φ [M φᵀ a + b + B f(0)]; θ̈ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'
    holds    v̇ = (I - H Ψ L)* D⁻¹ (I - H Ψ L) T'
""")


@INNOVATIONS("""(4.17)  bias removed
    printed  T' = T - H φ [M φᵀ a + b + B f(0)]
    holds    τ - C - J* f = 𝓜 v̇
""")
def _(case: Case) -> Errors:
    """T' leaves 𝓜 θ̈ of what is known of the motion, on all arms."""
    for links in arms(case):
        moved = stacked(links).mass @ np.concatenate(links.theta_ddot)
        yield np.concatenate(bias_free(links)), moved


INNOVATIONS.algebra("""(4.18)  accelerations from bias-free forces
    printed  θ̈ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'
    holds    𝓜⁻¹ T = (I - H Ψ L)* D⁻¹ (I - H Ψ L) T
""")
INNOVATIONS.unchecked("""(4.19)  start of the filter
    printed  ẑ(0) = 0, T'(0) = 0
    means    nothing beyond the tips
""")
INNOVATIONS("""(4.20)  filtering of bias-free moments, as a loop
    printed  ẑ(k) = [φ(k,k-1) - L(k-1) H(k-1)] ẑ(k-1) + L(k-1) T'(k-1); ε(k) = T(k) - H(k) ẑ(k);
             ν(k) = D⁻¹(k) ε(k)
    instead  ε(k) = T'(k) - H(k) ẑ(k); the rest as printed
    note     The prime of T' is lost in the text that we have; whether by the printer or by the scan
             is unclear. The line before has it.
""")(lambda case: _filtered(case, as_printed=False))
INNOVATIONS.as_printed(lambda case: _filtered(case, as_printed=True))
INNOVATIONS.unchecked("""(4.21)  start of the smoother
    printed  λ(N+1) = 0
    means    nothing from the ground
""")
INNOVATIONS("""(4.22)  smoothing of weighted residuals, as a loop
    printed  λ(k) = [φ(k+1,k) - L(k) H(k)]ᵀ λ(k+1) + Hᵀ(k) ν(k); θ̈(k) = ν(k) - Lᵀ(k) λ(k+1)
    holds    λ_k = ψ*(p,k) λ_p + H_k* ν_k; v̇_k = ν_k - L_k* λ_p
    note     From ν of the corrected (4.20).
""")(lambda case: finds_accelerations(fd1)(case))
INNOVATIONS("""FD1, loops  FD1 as loops, (4.19) to (4.22)
    printed  (4.18) in state-space form is (4.19) to (4.22)
    holds    the loops leave v̇ = 𝓜⁻¹ (τ - C - J* f)
    note     With T'(k) in (4.20). On trees of any hinges, and on arms in world axes.
""")(finds_accelerations(fd1))
