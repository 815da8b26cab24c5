"""Document 001, section 4: the innovations factorisation, its inverse, and algorithm FD1."""

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
    P,
    Phi,
    Psi,
    a,
    b,
    bias,
    f,
    mass,
    phi,
    psi,
    tau,
)
from linkwise.ledger.case import Case, apart
from linkwise.ledger.document_001.links import body_axes
from linkwise.ledger.document_001.operators import rows, stacked
from linkwise.ledger.document_001.sweeps import (
    Blocks,
    arms,
    bias_free,
    colored,
    fd1,
    finds_accelerations,
    residuals,
    riccati,
    whitened,
)
from linkwise.ledger.entry import Entry, definition, holds, misprint, same
from linkwise.ledger.literal import drawn, each, split
from linkwise.spatial.array import Array

COLORING = I + H @ Phi @ L
WHITENING = I - H @ Psi @ L
FREE = tau - H @ phi @ (M @ phi.T @ a + b + B @ f)
"""T' of (4.17)."""


# ------------------------------------------------------------------- the model of the mass


def _root(case: Case, expr: Expr) -> Array:
    """What white noise of covariance I has to go through to get the covariance `expr`."""
    return np.asarray(np.linalg.cholesky(case.matrix(expr)), dtype=np.float64)


def _covariance(case: Case) -> float:
    """E(Y Y*) of Y = H φ W: with W = M^½ w the columns of w are e₁, e₂, ..."""
    values, vectors = np.linalg.eigh(case.matrix(M))
    noise = vectors * np.sqrt(np.clip(values, 0.0, None))
    Y = case.matrix(H @ phi) @ noise  # noqa: N806
    return max(apart(noise @ noise.T, case.matrix(M)), apart(Y @ Y.T, case.matrix(mass)))


def _model(case: Case) -> float:
    """The loop (4.3) does what H φ does."""
    links, w = body_axes(case), split(case, drawn(case, M.range), M.range)
    z: Blocks = {}
    y: Blocks = {}
    for k in links.inward:
        z[k] = w[k]
        for c in links.children(k):
            z[k] = z[k] + links.phi[c] @ z[c]
        y[k] = links.H[k] @ z[k]
    return apart(_stack(y), case.matrix(H @ phi) @ np.concatenate(w))


def _stack(blocks: Blocks) -> Array:
    return np.concatenate([blocks[k] for k in sorted(blocks)])


# --------------------------------------------------------------------------------- Riccati


def _start(case: Case) -> float:
    return _start_error(case, inverted=True)


def _start_printed(case: Case) -> float:
    return _start_error(case, inverted=False)


def _start_error(case: Case, *, inverted: bool) -> float:
    """P(1), D(1) and L(1) at the tips; printed is D(1) where its inverse is meant."""
    links, errors = body_axes(case), list[float]()
    for k in links.inward:
        if not links.children(k):
            P_k, H_k = links.M[k], links.H[k]
            D_k = H_k @ P_k @ H_k.T
            last = np.linalg.inv(D_k) if inverted else D_k
            gain = links.phi[k] @ P_k @ H_k.T @ last
            errors += [apart(P_k, case.block(P, k)), apart(D_k, case.block(D, k))]
            errors.append(apart(gain, case.block(L, k)))
    return max(errors)


def _articulated(case: Case) -> float:
    """P(k) by the recursion: Linkwise's P, and the inertia that (a.47) says, ψ M ψ*, at k."""
    at, whole = riccati(body_axes(case)), case.matrix(psi @ M @ psi.T)
    errors = [apart(at.P[k], case.block(P, k)) for k in at.P]
    return max(*errors, *(apart(at.P[k], whole[rows(k), rows(k)]) for k in at.P))


def _hinges(case: Case) -> float:
    at = riccati(body_axes(case))
    errors = [apart(at.D[k], case.block(D, k)) for k in at.D]
    return max(*errors, *(apart(at.L[k], case.block(L, k)) for k in at.L))


def _all_bodies(case: Case) -> float:
    return _diagonals(case, stop=None)


def _all_bodies_printed(case: Case) -> float:
    return _diagonals(case, stop=0)


def _diagonals(case: Case, stop: int | None) -> float:
    """P, D of the recursion as (4.8) wants them; link `stop` is not reached and stays empty."""
    at = riccati(body_axes(case))
    P_all, D_all = np.zeros_like(case.matrix(P)), np.zeros_like(case.matrix(D))
    for k, s in enumerate(case.dense.slices(D.range)):
        if k != stop:
            P_all[rows(k), rows(k)], D_all[s, s] = at.P[k], at.D[k]
    return max(apart(P_all, case.matrix(P)), apart(D_all, case.matrix(D)))


def _definite(case: Case) -> float:
    """P(k) = P*(k) > 0, and D(k) with an inverse."""
    at, errors = riccati(body_axes(case)), list[float]()
    for k in at.P:
        positive = min(np.linalg.eigvalsh(at.P[k]).min(), np.linalg.eigvalsh(at.D[k]).min()) > 0.0
        errors.append(apart(at.P[k], at.P[k].T) if positive else float("inf"))
    return max(errors)


def _mass_definite(case: Case) -> float:
    whole = case.matrix(mass)
    positive = np.linalg.eigvalsh(whole).min() > 0.0
    return apart(whole, whole.T) if positive else float("inf")


def _transitions(case: Case) -> float:
    """ψ(i,j) as products of ψ(k,k-1) = φ(k,k-1) - L(k-1) H(k-1), against ψ = (I - E_ψ)⁻¹."""
    at = riccati(body_axes(case))
    return apart(_triangle(case, at.psi), case.matrix(psi))


def _triangle(case: Case, steps: Blocks) -> Array:
    """(3.4), (5.1): products of steps, I on the diagonal."""
    n = case.mech.n_bodies
    whole = np.zeros((6 * n, 6 * n))
    for j in range(n):
        block, i = np.eye(6), j
        while i >= 0:
            whole[rows(i), rows(j)] = block
            block, i = steps[i] @ block, case.parent(i)
    return whole


def _strictly(case: Case, steps: Blocks, found: Expr) -> float:
    """(4.9), (4.10): column j has φ(i, j+1), nothing on the diagonal and nothing above it."""
    triangle, whole = _triangle(case, steps), np.zeros_like(case.matrix(found))
    for j in range(case.mech.n_bodies):
        if case.parent(j) >= 0:
            whole[:, rows(j)] = triangle[:, rows(case.parent(j))]
    return apart(whole, case.matrix(found))


def _Phi(case: Case) -> float:  # noqa: N802
    return _strictly(case, dict(enumerate(body_axes(case).phi)), Phi)


def _Psi(case: Case) -> float:  # noqa: N802
    return _strictly(case, riccati(body_axes(case)).psi, Psi)


def _subdiagonal(case: Case) -> float:
    """Φ and Ψ have I at the parent of each link, and zero at and beyond the link itself."""
    errors: list[float] = []
    for whole in (case.matrix(Phi), case.matrix(Psi)):
        for j in range(case.mech.n_bodies):
            p = case.parent(j)
            if p >= 0:
                errors.append(apart(whole[rows(p), rows(j)], np.eye(6)))
            errors.append(float(np.abs(whole[6 * j :, rows(j)]).max()))
    return max(errors)


# ----------------------------------------------------------------------------- innovations


def _innovations(case: Case) -> float:
    """E(Y Y*) of Y = (I + H Φ L) ε, with ε = D^½ w."""
    Y = case.matrix(COLORING) @ _root(case, D)  # noqa: N806
    return apart(Y @ Y.T, case.matrix(mass))


def _colored(case: Case) -> float:
    links, eps = body_axes(case), drawn(case, H.range)
    _, y = colored(links, riccati(links), split(case, eps, H.range))
    return apart(_stack(y), case.matrix(COLORING) @ eps)


def _whitened(case: Case) -> float:
    links, y = body_axes(case), drawn(case, H.range)
    _, eps = whitened(links, riccati(links), split(case, y, H.range))
    return apart(_stack(eps), np.linalg.solve(case.matrix(COLORING), y))


def _same_state(case: Case) -> float:
    """ẑ of (4.13), fed with ε, and ẑ of (4.15), fed with the y that comes of it."""
    links, eps = body_axes(case), split(case, drawn(case, H.range), H.range)
    at = riccati(links)
    z, y = colored(links, at, eps)
    z_again, eps_again = whitened(links, at, [y[k] for k in sorted(y)])
    return max(
        apart(_stack(z), _stack(z_again)), apart(_stack(eps_again), np.concatenate(list(eps)))
    )


def _expectation(case: Case) -> float:
    """E[z(k) | y beyond k] = Cov(z, y) Cov(y)⁻¹ y, from the covariances φ M φ* and 𝓜."""
    links, y = body_axes(case), drawn(case, H.range)
    z, _ = whitened(links, riccati(links), split(case, y, H.range))
    joints, errors = case.dense.slices(H.range), list[float]()
    cross_, whole = case.matrix(phi @ M @ phi.T @ H.T), case.matrix(mass)
    for k in links.inward:
        known = [i for j in _beyond(case, k) for i in range(joints[j].start, joints[j].stop)]
        if known:
            expected = cross_[rows(k), known] @ np.linalg.solve(
                whole[np.ix_(known, known)], y[known]
            )
            errors.append(apart(z[k], expected))
    return max(errors)


def _beyond(case: Case, k: int) -> list[int]:
    """The links beyond k, itself not counted."""
    found: list[int] = []
    for j in range(k + 1, case.mech.n_bodies):
        if case.parent(j) == k or case.parent(j) in found:
            found.append(j)
    return found


def _rule(name: str) -> tuple[Expr, Expr]:
    return BY_NAME[name].left, BY_NAME[name].right


# ------------------------------------------------------------------------------------- FD1


def _filtering(case: Case) -> float:
    return _filtered(case, as_printed=False)


def _filtering_printed(case: Case) -> float:
    return _filtered(case, as_printed=True)


def _filtered(case: Case, *, as_printed: bool) -> float:
    """ν of the loop, against D⁻¹ (I - H Ψ L) T'."""
    links = body_axes(case)
    at = riccati(links)
    nu = residuals(links, at, as_printed=as_printed)
    free = case.matrix(mass) @ np.concatenate(links.theta_ddot)
    return apart(_stack(nu), np.linalg.solve(case.matrix(D), case.matrix(WHITENING) @ free))


def _printed_fd1(case: Case) -> float:
    found = finds_accelerations(lambda links: fd1(links, as_printed=True))
    return found(case)


def _smoothing(case: Case) -> float:
    """The loop (4.22) from ν = D⁻¹ (I - H Ψ L) T', on all arms."""
    return finds_accelerations(fd1)(case)


def _bias_free(case: Case) -> float:
    """T' leaves 𝓜 θ̈ of what is known of the motion, on all arms."""
    errors: list[float] = []
    for links in arms(case):
        moved = stacked(links).mass @ np.concatenate(links.theta_ddot)
        errors.append(apart(np.concatenate(bias_free(links)), moved))
    return max(errors)


SECTION_4: tuple[Entry, ...] = (
    holds(
        "sec. 4, mass operator",
        "it can be a covariance",
        "𝓜 is symmetric positive definite",
        "the same",
        _mass_definite,
    ),
    definition(
        "(4.1)",
        "a model with the covariance 𝓜",
        "Y = H φ W; E(W) = 0; E(W Wᵀ) = M",
        "the same",
        _covariance,
    ),
    holds(
        "(4.2)",
        "covariance of the model",
        "E(Y Yᵀ) = H φ M φᵀ Hᵀ = 𝓜",
        "the same",
        _covariance,
        note="By W = M^½ w with orthonormal w.",
    ),
    holds(
        "(4.3)",
        "the model as a loop",
        "z(k) = φ(k,k-1) z(k-1) + w(k); y(k) = H(k) z(k); z(0) = 0",
        "z_k = Σ_c φ(k,c) z_c + w_k; y = H z: y = H φ w",
        _model,
    ),
    misprint(
        "(4.4)",
        "start of the Riccati recursion",
        "P(1) = M(1), D(1) = H(1) P(1) Hᵀ(1), L(1) = Φ(2,1) P(1) Hᵀ(1) D(1)",
        "L(1) = φ(2,1) P(1) H*(1) D⁻¹(1); P(1), D(1) as printed",
        _start,
        _start_printed,
        note="D(1) for D⁻¹(1); compare (4.6). Φ(2,1) for φ(2,1) may be the scan's.",
    ),
    misprint(
        "sec. 4, loop of the Riccati recursion",
        "how far the loop of (4.5) and (4.6) goes",
        "for k = 2 ... N-1",
        "for k = 2 ... N",
        _all_bodies,
        _all_bodies_printed,
        note="P(N) and D(N) are wanted in (4.8), and D⁻¹(N) by FD1; the loop never makes them.",
    ),
    holds(
        "(4.5)",
        "articulated inertia",
        "P(k) = φ(k,k-1) [P(k-1) - P(k-1) Hᵀ(k-1) D⁻¹(k-1) H(k-1) P(k-1)] φᵀ(k,k-1) + M(k)",
        "P_k = Σ_c φ(k,c) (P_c - P_c H_c* D_c⁻¹ H_c P_c) φ*(k,c) + M_k",
        _articulated,
    ),
    holds(
        "(4.6)",
        "hinge inertia and gain",
        "D(k) = H(k) P(k) Hᵀ(k); L(k) = φ(k+1,k) P(k) Hᵀ(k) D⁻¹(k)",
        "D = H P H*; L = Δ_φ P H* D⁻¹",
        _hinges,
    ),
    holds(
        "sec. 4, P > 0",
        "that the recursion can go on",
        "P(k) = Pᵀ(k) > 0, so that D⁻¹(k) exists",
        "the same",
        _definite,
        note="D(k) is a number at a joint of one freedom, a small matrix at others.",
    ),
    definition(
        "(4.7)",
        "transitions of the filter",
        "ψ(k,k) = I; ψ(k,k-1) = φ(k,k-1) - L(k-1) H(k-1); ψ(i,j) = ψ(i,i-1) ... ψ(j+1,j)",
        "ψ = (I - E_ψ)⁻¹, E_ψ = E_φ - K H",
        _transitions,
    ),
    definition("(4.8)", "P, D and L, memoryless", "P, D, L = diag[...]", "the same", _all_bodies),
    definition(
        "(4.9)",
        "the operator Φ",
        "Φ: φ(i,j+1) in row i > column j, zero elsewhere",
        "Φ = φ S: φ(i,p) in the column of a body with parent p",
        _Phi,
    ),
    definition(
        "(4.10)",
        "the operator Ψ",
        "Ψ: ψ(i,j+1) in row i > column j, zero elsewhere",
        "Ψ = ψ S",
        _Psi,
    ),
    holds(
        "sec. 4, Φ and Ψ",
        "strictly causal",
        "Φ, Ψ strictly lower block triangular, with I in the block below the diagonal",
        "the same, with I between a body and its parent",
        _subdiagonal,
        note="The reason is printed as ψ(k,k) = ψ(k,k) = I; φ(k,k) = ψ(k,k) = I is meant.",
    ),
    holds(
        "Fact 4.1, (4.11)",
        "innovations factorisation",
        "𝓜 = (I + H Φ L) D (I + H Φ L)ᵀ",
        "𝓜 = (I + H φ K) D (I + H φ K)*, since Φ L = φ K",
        each((mass, COLORING @ D @ COLORING.T), _rule("innovations factorisation")),
    ),
    holds(
        "(4.12)",
        "innovations representation",
        "Y = (I + H Φ L) ε; E(ε) = 0; E(ε εᵀ) = D; E(Y) = 0; E(Y Yᵀ) = 𝓜",
        "the same",
        _innovations,
    ),
    holds(
        "(4.13)",
        "the same as a loop",
        "ẑ(k) = φ(k,k-1) ẑ(k-1) + L(k-1) ε(k-1); y(k) = H(k) ẑ(k) + ε(k)",
        "ẑ_k = Σ_c (φ(k,c) ẑ_c + L_c ε_c); y = H ẑ + ε: y = (I + H Φ L) ε",
        _colored,
    ),
    holds(
        "Fact 4.2, (4.14)",
        "whitening inverts coloring",
        "(I + H Φ L)⁻¹ = I - H Ψ L",
        "(I + H φ K)⁻¹ = I - H ψ K",
        each((COLORING.inv, WHITENING), _rule("whitening inverts coloring")),
    ),
    holds(
        "(4.15)",
        "the whitening filter as a loop",
        "ẑ(k) = [φ(k,k-1) - L(k-1) H(k-1)] ẑ(k-1) + L(k-1) y(k-1); ε(k) = -H(k) ẑ(k) + y(k)",
        "ε = (I + H Φ L)⁻¹ y",
        _whitened,
    ),
    holds(
        "sec. 4, state of the filter",
        "what ẑ is",
        "ẑ(k) = E[z(k) / y(1), ..., y(k-1)]",
        "ẑ_k is the expectation of z_k given y of all bodies beyond k",
        _expectation,
        note="From the covariances of z and y, for W of a normal distribution.",
    ),
    holds(
        "sec. 4, one state",
        "ẑ of (4.13) and of (4.15)",
        "the ẑ(k) of (4.13) and (4.15) are identical",
        "the same",
        _same_state,
    ),
    holds(
        "Theorem 4.1, (4.16)",
        "inverse of the mass operator",
        "𝓜⁻¹ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L)",
        "𝓜⁻¹ = (I - H ψ K)* D⁻¹ (I - H ψ K)",
        each((mass.inv, WHITENING.T @ D.inv @ WHITENING), _rule("inverse of the mass operator")),
    ),
    holds(
        "FD1",
        "forward dynamics in four sweeps, (4.17) and (4.18)",
        "T' = T - H φ [M φᵀ a + b + B f(0)]; θ̈ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'",
        "v̇ = 𝓜⁻¹ (τ - C - J* f)",
        each((WHITENING.T @ D.inv @ WHITENING @ FREE, mass.inv @ (tau - bias - J.T @ f))),
    ),
    holds(
        "(4.17)",
        "bias removed",
        "T' = T - H φ [M φᵀ a + b + B f(0)]",
        "τ - C - J* f = 𝓜 v̇",
        _bias_free,
    ),
    holds(
        "(4.18)",
        "accelerations from bias-free forces",
        "θ̈ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'",
        "v̇ = (I - H ψ K)* D⁻¹ (I - H ψ K) T'",
        same(WHITENING.T @ D.inv @ WHITENING @ tau, mass.inv @ tau),
    ),
    definition("(4.19)", "start of the filter", "ẑ(0) = 0, T'(0) = 0", "nothing beyond the tips"),
    misprint(
        "(4.20)",
        "filtering of bias-free moments, as a loop",
        "ẑ(k) = [φ(k,k-1) - L(k-1) H(k-1)] ẑ(k-1) + L(k-1) T'(k-1); "
        "ε(k) = T(k) - H(k) ẑ(k); ν(k) = D⁻¹(k) ε(k)",
        "ε(k) = T'(k) - H(k) ẑ(k); the rest as printed",
        _filtering,
        _filtering_printed,
        note="The prime of T' is lost, by the printer or the scan; the line before has it.",
    ),
    definition("(4.21)", "start of the smoother", "λ(N+1) = 0", "nothing from the ground"),
    holds(
        "(4.22)",
        "smoothing of weighted residuals, as a loop",
        "λ(k) = [φ(k+1,k) - L(k) H(k)]ᵀ λ(k+1) + Hᵀ(k) ν(k); θ̈(k) = ν(k) - Lᵀ(k) λ(k+1)",
        "λ_k = ψ*(p,k) λ_p + H_k* ν_k; v̇_k = ν_k - L_k* λ_p",
        _smoothing,
        note="From ν of the corrected (4.20).",
    ),
    misprint(
        "FD1, loops",
        "FD1 as loops, (4.19) to (4.22)",
        "with ε(k) = T(k) - H(k) ẑ(k)",
        "θ̈ with ε(k) = T'(k) - H(k) ẑ(k)",
        finds_accelerations(fd1),
        _printed_fd1,
        note="Printed otherwise only by (4.20). On trees of any hinges, and on arms in world axes.",
    ),
)
