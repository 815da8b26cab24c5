"""Document 001, section 5: algorithms FD2, FD3 and FD4."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import (
    B,
    D,
    G,
    H,
    I,
    J,
    L,
    M,
    P,
    Psi,
    S,
    a,
    b,
    bias,
    f,
    mass,
    phi,
    psi,
    psi_tilde,
    tau,
    v,
)
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Entry, definition, holds, misprint, same
from linkwise_ledger.jpl_88_11.innovations import FREE, VDOT, WHITENING
from linkwise_ledger.jpl_88_11.links import body_axes
from linkwise_ledger.jpl_88_11.operators import rows
from linkwise_ledger.jpl_88_11.section_3 import seen
from linkwise_ledger.jpl_88_11.section_4 import check_of_filter, check_transitions, stack
from linkwise_ledger.jpl_88_11.sweeps import (
    Algorithm,
    Blocks,
    arms,
    fd1,
    fd2,
    fd3,
    fd4,
    fd4_residuals,
    finds_accelerations,
    residuals,
    riccati,
    smoothed,
)
from linkwise_ledger.literal import drawn, each, rule_named, split

ALPHA = phi.T @ H.T @ VDOT + phi.T @ a
"""α of it, by (3.15)."""

EPS = WHITENING @ FREE
COSTATE = psi.T @ H.T @ D.inv @ EPS

ZETA = phi.T @ a
FD3_EPS = tau - H @ psi @ (S @ L @ tau + M @ ZETA + b + B @ f)

FD4_NU = D.inv @ WHITENING @ tau - D.inv @ H @ psi_tilde @ P @ a - D.inv @ H @ psi @ (b + B @ f)
FD4_COSTATE = psi.T @ H.T @ FD4_NU + psi.T @ (I - G @ H).T @ a
FD4_Z = Psi @ L @ tau + psi_tilde @ P @ a + psi @ (b + B @ f)


def _one_down(case: Case) -> float:
    """I between each link and the next toward the base."""
    n = case.mech.n_bodies
    whole = np.zeros((6 * n, 6 * n))
    for j in case.outward:
        if case.parent(j) >= 0:
            whole[rows(case.parent(j)), rows(j)] = np.eye(6)
    return apart(case.matrix(S), whole)


def _by_states(case: Case) -> float:
    """The loops of the other proof of Identity 5.1, and what they leave."""
    links, w = body_axes(case), split(case, drawn(case, M.range), M.range)
    at = riccati(links)
    z, zeta, x, y, left = Blocks(), Blocks(), Blocks(), Blocks(), Blocks()
    for k in links.inward:
        z[k], zeta[k], left[k] = w[k], np.zeros(6), w[k]
        for c in links.children(k):
            shift = links.phi[c] - at.L[c] @ links.H[c]
            z[k] = z[k] + links.phi[c] @ z[c]
            zeta[k] = zeta[k] + shift @ zeta[c] + at.L[c] @ x[c]
            left[k] = left[k] + shift @ left[c]
        x[k] = links.H[k] @ z[k]
        y[k] = -links.H[k] @ zeta[k] + x[k]
    found = stack(z) - stack(zeta)
    return max(
        apart(stack(left), found),
        apart(stack(y), case.matrix(H) @ found),
        apart(stack(y), case.matrix(H @ psi) @ np.concatenate(w)),
    )


# ------------------------------------------------------------------------------------- FD2


def _finds_links(algorithm: Algorithm) -> Check:
    """The check that an algorithm finds α(k) of all links, and α(0)."""

    def check(case: Case) -> float:
        errors: list[float] = []
        for links in arms(case):
            expected = np.concatenate([*links.alpha, links.alpha_tip])
            errors.append(apart(np.concatenate(algorithm(links)), expected))
        return max(errors)

    return check


def _smoother(case: Case) -> float:
    """λ, θ̈ and α of the loop (4.22b), against the operators."""
    links = body_axes(case)
    at = riccati(links)
    acceleration, costate, alpha = smoothed(links, at, residuals(links, at))
    moved = np.concatenate(links.theta_ddot)
    rigid = case.matrix(phi).T
    free = case.matrix(WHITENING @ mass) @ moved
    expected = case.matrix(psi.T @ H.T @ D.inv) @ free
    return max(
        apart(stack(acceleration), moved),
        apart(stack(costate), expected),
        apart(stack(alpha), rigid @ (case.matrix(H).T @ moved + case.matrix(a))),
    )


# ------------------------------------------------------------------------------------- FD4


def _fd4_filter(case: Case) -> float:
    """z and ν of the loop (5.16), against ψ, Ψ and what else is in (5.14)."""
    links = body_axes(case)
    z, nu = fd4_residuals(links, riccati(links))
    T, f_tip, at = np.concatenate(links.T), links.f_tip, case.matrix
    expected = at(Psi @ L) @ T + at(psi_tilde @ P @ a + psi @ b) + at(psi @ B) @ f_tip
    nu_expected = at(D.inv) @ (T - at(H) @ expected)
    return max(apart(stack(z), expected), apart(stack(nu), nu_expected))


def _velocities(expr: Expr) -> Check:
    """The check that this is the velocity of all links, against poses; too short: infinite."""

    def check(case: Case) -> float:
        return apart(case.matrix(expr), seen(case)[0])

    return check


def _fd4_residuals(case: Case) -> float:
    """The loop, and how ν differs from that of FD1 and FD3."""
    without = FD4_NU - D.inv @ H @ P @ phi.T @ a
    return max(_fd4_filter(case), case.residual(without, D.inv @ EPS))


SECTION_5: tuple[Entry, ...] = (
    definition(
        "(5.1)",
        "the operator ψ",
        "ψ = lower block triangle of ψ(i,j), i ≥ j",
        "ψ = (I - E_ψ)⁻¹",
        check_transitions,
    ),
    definition(
        "(5.2)",
        "one step without a shift",
        "S: I in the blocks below the diagonal",
        "S: I from each body's inboard side to its parent",
        _one_down,
    ),
    holds("(5.3)", "Ψ from ψ", "Ψ = ψ S", "the same, Ψ written out", check_of_filter),
    holds(
        "(5.4)",
        "whitened propagation",
        "(I - H Ψ L) H φ = H ψ",
        "the same",
        each((WHITENING @ H @ phi, H @ psi)),
    ),
    holds(
        "Identity 5.1",
        "whitened propagation, by K = S L",
        "(5.4) for φ of (3.4), Ψ of (4.10), ψ of (5.1)",
        "(I - H ψ K) H φ = H ψ",
        rule_named("whitened propagation"),
    ),
    holds(
        "sec. 5, states of Identity 5.1",
        "its proof by loops",
        "z(k) - ζ(k) = [φ(k,k-1) - L(k-1) H(k-1)] [z(k-1) - ζ(k-1)] + w(k); "
        "y(k) = H(k) [z(k) - ζ(k)]; Y = H ψ W",
        "the same",
        _by_states,
    ),
    holds(
        "FD2",
        "link accelerations in four sweeps, (5.5) to (5.7)",
        "T' = T - H φ [M φᵀ a + b + B f(0)]; α = ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' + φᵀ a; "
        "α(0) = Bᵀ α + a(0)",
        "α = ψ* H* D⁻¹ (I - H ψ K) (τ - C - J* f) + φ* a",
        _finds_links(fd2),
        note="By its loops, on trees of any hinges, and on arms in world axes against positions "
        "differentiated twice.",
    ),
    holds(
        "(5.5)",
        "bias removed",
        "T' = T - H φ [M φᵀ a + b + B f(0)]",
        "T' = τ - C - J* f",
        each((FREE, tau - bias - J.T @ f)),
    ),
    holds(
        "(5.6)",
        "accelerations of the links",
        "α = ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' + φᵀ a",
        "α = φ* H* 𝓜⁻¹ T' + φ* a",
        each((COSTATE + phi.T @ a, ALPHA)),
    ),
    holds(
        "(5.7)",
        "acceleration of the tip",
        "α(0) = Bᵀ α + a(0)",
        "the same; a(0) = 0 in the axes of the bodies",
        _finds_links(fd2),
    ),
    holds(
        "sec. 5, proof of FD2",
        "one factor taken away by (5.4)",
        "φᵀ Hᵀ (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T' + φᵀ a = ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T' + φᵀ a",
        "the same",
        each((phi.T @ H.T @ WHITENING.T @ D.inv @ EPS + phi.T @ a, COSTATE + phi.T @ a)),
    ),
    holds(
        "sec. 5, costate",
        "what λ of (4.22) is",
        "λ = ψᵀ Hᵀ D⁻¹ (I - H Ψ L) T'; θ̈ = (I - Lᵀ Sᵀ ψᵗ Hᵀ) ν = ν - Lᵀ Sᵀ λ; α = λ + φᵀ a",
        "the same",
        each(
            ((I - L.T @ S.T @ psi.T @ H.T) @ D.inv @ EPS, VDOT),
            (D.inv @ EPS - L.T @ S.T @ COSTATE, VDOT),
            (COSTATE + phi.T @ a, ALPHA),
        ),
        note="The small t of ψᵗ is a slip of the type.",
    ),
    definition(
        "(4.21b)",
        "start of the smoother of FD2",
        "λ(N+1) = 0; ζ(N+1) = 0",
        "nothing from the ground",
    ),
    holds(
        "(4.22b)",
        "smoother of FD2, as a loop",
        "λ(k) = [φ(k+1,k) - L(k) H(k)]ᵀ λ(k+1) + Hᵀ(k) ν(k); θ̈(k) = ν(k) - Lᵀ(k) λ(k+1); "
        "ζ(k) = φᵀ(k+1,k) ζ(k+1) + a(k); α(k) = λ(k) + ζ(k)",
        "λ = ψ* H* ν; v̇ = ν - L* S* λ; α = λ + φ* a",
        _smoother,
    ),
    holds(
        "(4.23)",
        "acceleration of the tip",
        "α(0) = φᵀ(1,0) α(1) + a(0)",
        "α_B = B* α + a(0)",
        _finds_links(fd2),
    ),
    holds(
        "FD3",
        "forward dynamics in three sweeps, (5.8) to (5.10)",
        "ζ = φᵀ a; ε = T - H ψ [S L T + M ζ + b + B f(0)]; θ̈ = (I - H Ψ L)ᵀ D⁻¹ ε",
        "v̇ = (I - H ψ K)* D⁻¹ (τ - H ψ (K τ + M φ* a + b + B f))",
        finds_accelerations(fd3),
        note="No loops are printed; these are the three sweeps that the text tells of.",
    ),
    definition("(5.8)", "bias accelerations, propagated", "ζ = φᵀ a", "φ* a"),
    holds(
        "(5.9)",
        "innovations of FD3",
        "ε = T - H ψ [S L T + M ζ + b + B f(0)]",
        "ε = (I - H ψ K) (τ - C - J* f)",
        each((FD3_EPS, EPS)),
    ),
    holds(
        "(5.10)",
        "accelerations of FD3",
        "θ̈ = (I - H Ψ L)ᵀ D⁻¹ ε",
        "v̇ = (I - H ψ K)* D⁻¹ ε",
        each((WHITENING.T @ D.inv @ FD3_EPS, VDOT)),
    ),
    holds(
        "sec. 5, proof of FD3, from (3.19)",
        "equations of motion by ζ; the proof of FD4 starts from them too",
        "H φ M φᵀ Hᵀ θ̈ = T - H φ [M ζ + b + B f(0)]",
        "𝓜 v̇ = τ - H φ (M φ* a + b + B f)",
        same(H @ phi @ M @ phi.T @ H.T @ VDOT, tau - H @ phi @ (M @ ZETA + b + B @ f)),
    ),
    holds(
        "sec. 5, proof of FD3, first step",
        "the moments through the whitening filter",
        "(I - H Ψ L) T = (I - H ψ S L) T = T - H ψ S L T",
        "the same, S L = K",
        each((WHITENING @ tau, tau - H @ psi @ S @ L @ tau)),
    ),
    misprint(
        "sec. 5, proof of FD3, last step",
        "accelerations of FD3, in the proof",
        "θ̈ = (I - H Ψ L)⁻¹ D⁻¹ [T - H ψ (S L T + M ζ + b + B f(0))]",
        "θ̈ = (I - H Ψ L)ᵀ D⁻¹ [T - H ψ (S L T + M ζ + b + B f(0))], as in (5.10)",
        same(WHITENING.T @ D.inv @ FD3_EPS, VDOT),
        same(WHITENING.inv @ D.inv @ FD3_EPS, VDOT),
        note="The inverse for the transpose.",
    ),
    definition("(5.11)", "ψ without I", "ψ̃ = ψ - I", "ψ̃", rule_named("ψ̃ is ψ without I")),
    definition("(5.12)", "Kalman gain", "G = P Hᵀ D⁻¹", "G", rule_named("G = P H* D⁻¹")),
    holds(
        "FD4",
        "forward dynamics without bias accelerations propagated, (5.13) to (5.15)",
        "V; ν = D⁻¹ (I - H Ψ L) T - D⁻¹ H ψ̃ P a - D⁻¹ H ψ [b + B f(0)]; "
        "θ̈ = (I - H Ψ L)ᵀ ν - Lᵀ Ψᵀ (I - G H)ᵀ a - Gᵀ a",
        "v̇ = 𝓜⁻¹ (τ - C - J* f)",
        finds_accelerations(fd4),
        note="By its loops (5.16), (5.17), on trees of any hinges, and on arms in world axes.",
    ),
    misprint(
        "(5.13)",
        "velocities of the links",
        "V = Bᵀ φᵀ Hᵀ θ̇",
        "V = φ* H* v",
        _velocities(phi.T @ H.T @ v),
        _velocities(B.T @ phi.T @ H.T @ v),
        note="Bᵀ is too much: printed is the velocity of the tip, V(0) of (3.13), six numbers "
        "where 6 N are wanted for a and b.",
    ),
    holds(
        "(5.14)",
        "weighted residuals of FD4",
        "ν = D⁻¹ (I - H Ψ L) T - D⁻¹ H ψ̃ P a - D⁻¹ H ψ [b + B f(0)]",
        "the same",
        _fd4_residuals,
        note="Not the ν of FD1 and FD3: those are less by D⁻¹ H P φ* a, which (5.15) makes up for.",
    ),
    holds(
        "(5.15)",
        "accelerations of FD4",
        "θ̈ = (I - H Ψ L)ᵀ ν - Lᵀ Ψᵀ (I - G H)ᵀ a - Gᵀ a",
        "v̇ = (I - H ψ K)* ν - K* ψ* Π̄* a - G* a",
        each((WHITENING.T @ FD4_NU - L.T @ Psi.T @ (I - G @ H).T @ a - G.T @ a, VDOT)),
    ),
    holds(
        "sec. 5, FD4 written as states",
        "between (5.15) and (5.16)",
        "z = Ψ L T + ψ̃ P a + ψ [b + B f(0)]; ε = T - H z; ν = D⁻¹ ε; "
        "λ = ψᵀ Hᵀ ν + ψᵀ (I - G H)ᵀ a; θ̈ = ν - Lᵀ Sᵀ λ - Gᵀ a",
        "the same",
        each(
            (D.inv @ (tau - H @ FD4_Z), FD4_NU),
            (FD4_NU - L.T @ S.T @ FD4_COSTATE - G.T @ a, VDOT),
        ),
    ),
    holds(
        "(5.16)",
        "filter of FD4, as a loop",
        "z(0) = f(0); z(k) = ψ(k,k-1) z(k-1) + L(k-1) T(k-1) + ψ(k,k-1) P(k-1) a(k-1) + b(k); "
        "ε(k) = T(k) - H(k) z(k); ν(k) = D⁻¹(k) e(k)",
        "z = Ψ L τ + ψ̃ P a + ψ (b + B f); ν = D⁻¹ (τ - H z)",
        _fd4_filter,
        note="ψ(1,0) is φ(1,0), since L(0) H(0) = 0. The e of ν(k) is ε.",
    ),
    holds(
        "(5.17)",
        "smoother of FD4, as a loop",
        "λ(k) = ψᵀ(k+1,k) λ(k+1) + Hᵀ(k) ν(k) + [I - G(k) H(k)]ᵀ a(k); "
        "θ̈(k) = ν(k) - Lᵀ(k) λ(k+1) - Gᵀ(k) a(k)",
        "λ_k = ψ*(p,k) λ_p + H_k* ν_k + Π̄_k* a_k; v̇_k = ν_k - L_k* λ_p - G_k* a_k",
        finds_accelerations(fd4),
        note="λ(N+1) = 0 is not printed.",
    ),
    holds(
        "sec. 5, four algorithms",
        "that they are one",
        "FD1, FD3 and FD4 give the same θ̈",
        "the same",
        lambda case: max(
            apart(np.concatenate(one(links)), np.concatenate(fd4(links)))
            for links in arms(case)
            for one in (fd1, fd3)
        ),
    ),
)
