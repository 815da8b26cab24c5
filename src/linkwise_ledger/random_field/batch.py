"""Document 004, sections 6 and 7: covariance is inertia; conditional means of all at once."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import E_phi, H, I, M, R, mass, phi, phi_tilde
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds, same
from linkwise_ledger.literal import diagonal, drawn, inward_both, stacked
from linkwise_ledger.random_field.field import (
    ESTIMATE,
    GAIN,
    NOISE_ESTIMATE,
    OUTPUT,
    S_OF_X,
    SMOOTHER_ERROR,
    STATE,
    covariance,
)
from linkwise_ledger.random_field.model import (
    check_simulated_covariance,
    check_simulated_state,
    simulated,
)
from linkwise_ledger.recursion import accelerations, forces, paths

_COMPOSITE = BY_NAME["composite decomposition"]
_ERROR = BY_NAME["covariance of the smoothing error"]


def _check_composite_loop(case: Case) -> float:
    """R(k) = φ(k, k-1) R(k-1) φ*(k, k-1) + M(k), against the diagonal blocks of φ M φ*."""
    blocks: dict[int, Array] = {}
    for k in case.inward:
        blocks[k] = inward_both(case, E_phi, k, blocks) + case.block(M, k)
    rows = case.dense.slices(BODY)
    whole = case.matrix(S_OF_X)
    expected = {k: whole[rows[k], rows[k]] for k in case.outward}
    return apart(diagonal(case, blocks, M), diagonal(case, expected, M))


def _check_elements(case: Case) -> float:
    """S(k, j) = φ(k, j) R(j) below k, its adjoint above, zero for bodies of two branches."""
    rows = case.dense.slices(BODY)
    expected = np.zeros_like(case.matrix(S_OF_X))
    for k, j in paths(case):
        block = case.block(phi, k, j) @ case.block(R, j)
        expected[rows[k], rows[j]], expected[rows[j], rows[k]] = block, block.T
    return apart(case.matrix(S_OF_X), expected)


def _solved(case: Case) -> tuple[Array, Array]:
    """Joint moments, and the accelerations 𝓜⁻¹ T they cause."""
    moments = drawn(case, JOINT)
    return moments, np.linalg.inv(case.matrix(mass)) @ moments


def _check_estimate(case: Case) -> float:
    """𝒢 T is the force f that the loops of section 4 give for θ̈ = 𝓜⁻¹ T."""
    moments, vdot = _solved(case)
    f = forces(case, accelerations(case, vdot))
    return apart(stacked(case, f), case.matrix(GAIN) @ moments)


def _check_error(case: Case) -> float:
    """X - f for a W that is drawn, f being the force that T = H X causes."""
    noise = drawn(case, BODY)
    X, moments = simulated(case, noise)
    vdot = np.linalg.inv(case.matrix(mass)) @ moments
    f = stacked(case, forces(case, accelerations(case, vdot)))
    return apart(X - f, case.matrix((I - GAIN @ H) @ phi) @ noise)


def _check_noise_estimate(case: Case) -> float:
    moments, vdot = _solved(case)
    alpha = accelerations(case, vdot)
    found = {k: case.block(M, k) @ alpha[k] for k in case.outward}
    return apart(stacked(case, found), case.matrix(M @ phi.T @ H.T @ mass.inv) @ moments)


def _check_costates(case: Case) -> float:
    moments, vdot = _solved(case)
    alpha = accelerations(case, vdot)
    return apart(stacked(case, alpha), case.matrix(phi.T @ H.T @ mass.inv) @ moments)


def _check_recursive_inverse(case: Case) -> float:
    """θ̈ = 𝓜⁻¹ T solves T = H f with f of the loops."""
    moments, vdot = _solved(case)
    f = forces(case, accelerations(case, vdot))
    return apart(np.concatenate([case.block(H, k) @ f[k] for k in case.outward]), moments)


def _check_orthogonal(case: Case) -> float:
    """E[(X - 𝒢 T) T*] = 0: what characterises the conditional mean of Gaussian quantities."""
    return case.residual(covariance(SMOOTHER_ERROR, OUTPUT), 0.0 * covariance(STATE, OUTPUT))


def _check_no_error_at_joints(case: Case) -> float:
    error = _ERROR.right
    sides = ((H @ error, H @ S_OF_X), (error @ H.T, S_OF_X @ H.T), (H @ error @ H.T, mass))
    return max(case.residual(left, 0.0 * scale) for left, scale in sides)


BATCH: tuple[Entry, ...] = (
    holds(
        "Lemma 1",
        "covariance of the state",
        "S = E[X X*] = φ M φ*",
        "covariance of the X of loop (5.1), over all values of W, = φ M φ*",
        check_simulated_state,
    ),
    holds(
        "(6.1)",
        "state covariance as a sum",
        "S = R + φ̃ R + R φ̃*",
        "φ M φ* = R + φ̃ R + R φ̃*",
        same(_COMPOSITE.left, _COMPOSITE.right),
    ),
    definition("sec. 6, φ̃", "φ without the identity", "φ̃ = φ - I", check=same(phi_tilde, phi - I)),
    holds(
        "(6.2)",
        "composite inertia by recursion",
        "R(0) = 0; for k = 1 … N: R(k) = φ(k,k-1) R(k-1) φ*(k,k-1) + M(k)",
        "R(k) = Σ_c φ(k,c) R(c) φ*(k,c) + M(k) are the diagonal blocks of φ M φ*",
        _check_composite_loop,
    ),
    holds(
        "Lemma 1, proof: Lyapunov equation",
        "recursion of R as an equation",
        "M = R - E_φ R E_φ*",
        "M = R - E_φ R E_φ*",
        same(M, R - E_phi @ R @ E_phi.T),
    ),
    holds(
        "Lemma 1, proof: expansion",
        "state covariance from the Lyapunov equation",
        "S = φ R φ* - φ E_φ R E_φ* φ* = (φ̃ + I) R (φ̃ + I)* - φ̃ R φ̃*",
        "φ M φ* = φ R φ* - φ E_φ R E_φ* φ* = (φ̃ + I) R (φ̃ + I)* - φ̃ R φ̃*",
        lambda case: max(
            case.residual(S_OF_X, phi @ R @ phi.T - phi @ E_phi @ R @ E_phi.T @ phi.T),
            case.residual(
                S_OF_X,
                (phi_tilde + I) @ R @ (phi_tilde + I).T - phi_tilde @ R @ phi_tilde.T,
            ),
        ),
    ),
    holds(
        "sec. 6, elements of S",
        "typical element of the state covariance",
        "R(k,j) = φ(k,j) R(j) for j ≤ k,  R(k) φ*(j,k) for j ≥ k",
        "block (k,j) of φ M φ* is φ(k,j) R(j) for j outboard of k; zero for bodies of two branches",
        _check_elements,
    ),
    holds(
        "sec. 6, mean and covariance of T",
        "covariance of the output",
        "E(T) = 0;  E[T T*] = 𝓜",
        "covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜",
        check_simulated_covariance,
    ),
    holds(
        "Lemma 2",
        "covariance is inertia",
        "E[T T*] = 𝓜",
        "covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜",
        check_simulated_covariance,
    ),
    holds(
        "(6.3)",
        "covariance is inertia",
        "E[T T*] = 𝓜",
        "covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜",
        check_simulated_covariance,
    ),
    holds(
        "sec. 6, factorisation",
        "a covariance has causal factors",
        "𝓜 = (I + 𝒦) D (I + 𝒦*)",
        "𝓜 = (I + H φ K) D (I + H φ K)*",
        same(mass, BY_NAME["innovations factorisation"].right),
    ),
    holds(
        "(7.1)",
        "conditional mean of the state",
        "E(X/T) = 𝒢 T",
        "E[(X - 𝒢 T) T*] = 0, with 𝒢 = S H* 𝓜⁻¹",
        _check_orthogonal,
    ),
    holds(
        "(7.2)",
        "gain of the conditional mean",
        "𝒢 = S H* M⁻¹",
        "𝒢 = S H* 𝓜⁻¹",
        _check_orthogonal,
        note="Scan: the script of 𝓜 is lost. The sentence below it speaks of 𝓜, and M⁻¹ does not "
        "fit behind H*.",
    ),
    holds(
        "(7.3)",
        "joint accelerations",
        "θ̈ = 𝓜⁻¹ T",
        "v̇ = 𝓜⁻¹ τ gives back τ through the loops of section 4",
        _check_recursive_inverse,
    ),
    holds(
        "(7.4)",
        "spatial accelerations",
        "α = φ* H* θ̈",
        "φ* H* 𝓜⁻¹ τ is the α of the loop of section 4",
        _check_costates,
    ),
    holds(
        "sec. 7, f",
        "the estimate is the force",
        "E[X/T] = φ M α = f",
        "𝒢 τ = f of the loops of section 4",
        _check_estimate,
    ),
    holds(
        "sec. 7, e_s",
        "error of the estimate",
        "e_s = X - f = (I - 𝒢 H) φ W",
        "X of loop (5.1), less f of the loops of section 4 for the T of (5.2), = (I - 𝒢 H) φ W",
        _check_error,
        note="From Lemma 8 on, e_s is the name of X - z, and this one is e_f.",
    ),
    holds(
        "(7.5)",
        "covariance of the error",
        "𝒫 = E[e_s e_s*] = (I - 𝒢 H) S (I - 𝒢 H)*",
        "E[(X - f)(X - f)*] = (I - 𝒢 H) S (I - 𝒢 H)* = ψ M ψ* - P Ω P",
        lambda case: max(
            case.residual(covariance(SMOOTHER_ERROR), (I - GAIN @ H) @ S_OF_X @ (I - GAIN @ H).T),
            case.residual(covariance(SMOOTHER_ERROR), _ERROR.right),
        ),
    ),
    holds(
        "sec. 7, 𝒫 otherwise",
        "covariance of the error, three forms",
        "𝒫 = (I - 𝒢 H) S = S (I - 𝒢 H)* = S - S H* 𝓜⁻¹ H S",
        "E[(X - f)(X - f)*] = (I - 𝒢 H) S = S (I - 𝒢 H)* = S - S H* 𝓜⁻¹ H S, S = φ M φ*",
        lambda case: max(
            case.residual(covariance(SMOOTHER_ERROR), form)
            for form in ((I - GAIN @ H) @ S_OF_X, S_OF_X @ (I - GAIN @ H).T, _ERROR.left)
        ),
    ),
    holds(
        "sec. 7, H 𝒫",
        "no error at the joints",
        "H 𝒫 = 0,  𝒫 H* = 0,  H 𝒫 H* = 0",
        "H (ψ M ψ* - P Ω P) = 0, its adjoint, and H (ψ M ψ* - P Ω P) H* = 0",
        _check_no_error_at_joints,
    ),
    holds(
        "sec. 7, Ŵ",
        "conditional mean of the inertial forces",
        "E(W/T) = Ŵ = M φ* H* 𝓜⁻¹ T",
        "E[(W - Ŵ) T*] = 0",
        same(covariance(I - NOISE_ESTIMATE, OUTPUT), 0.0 * (M @ OUTPUT.T)),
    ),
    holds(
        "sec. 7, Ŵ by accelerations",
        "inertial forces are inertia times acceleration",
        "Ŵ = M α",
        "M φ* H* 𝓜⁻¹ τ = M α of the loop of section 4",
        _check_noise_estimate,
    ),
    holds(
        "sec. 7, W - Ŵ",
        "error of the inertial forces",
        "W - Ŵ = [I - M φ* H* 𝓜⁻¹ H φ] W",
        "E[(W - Ŵ) f*] = 0 for this W - Ŵ",
        same(covariance(I - NOISE_ESTIMATE, ESTIMATE), 0.0 * (M @ ESTIMATE.T)),
    ),
    holds(
        "sec. 7, Q",
        "covariance of the error of the inertial forces",
        "Q = M - M φ* H* 𝓜⁻¹ H φ M",
        "E[(W - Ŵ)(W - Ŵ)*] = M - M φ* H* 𝓜⁻¹ H φ M",
        same(
            (I - M @ phi.T @ H.T @ mass.inv @ H @ phi)
            @ M
            @ (I - M @ phi.T @ H.T @ mass.inv @ H @ phi).T,
            BY_NAME["inertial force error"].left,
        ),
    ),
)
