"""Random fields, section 10: the covariances of everything."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.rules import BY_NAME
from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import (
    D,
    H,
    I,
    M,
    R,
    mass,
    phi,
    phi_tilde,
)
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.random_field.filter import innovations
from linkwise_ledger.random_field.model import (
    ELL,
    FILTER_ERROR,
    KAPPA,
    OUTPUT,
    RANDOM,
    S_OF_X,
    STATE,
    check_simulated_covariance,
    check_simulated_state,
    covariance,
    sigma_points,
    simulated,
)
from linkwise_ledger.recursion import costate_blocks, diagonal, split, unformed
from linkwise_ledger.section import Section


def _check_simulated_innovations(case: Case) -> float:
    """Covariance of the ε of the filter's loop over the sigma points: (I - ℒ) 𝓜 (I - ℒ)*."""
    T = split(case, simulated(case, sigma_points(case))[1], JOINT)
    at, whiten = innovations(case, T), case.matrix(I - ELL)
    eps = np.concatenate([at[k] for k in case.outward])
    return apart(eps @ eps.T / eps.shape[1], whiten @ case.matrix(mass) @ whiten.T)


COVARIANCE = Section(RANDOM)
COVARIANCE("""sec. 10, 𝓜  inertia from the covariance of the state
    printed  𝓜 = E(T T*) = H S H*
    holds    covariance of the T of loops (5.1), (5.2), over all values of W, = 𝓜
sec. 10, simulation  inertia by simulating the random model
    printed  W drawn with mean zero and covariance 𝓜, put into H φ, gives T with covariance 𝓜
    instead  W with covariance M, put through loops (5.1) and (5.2), gives T with covariance 𝓜
    note     𝓜 has the size of T, not of W. (5.3) has M.
""")(check_simulated_covariance)
COVARIANCE.as_printed(unformed(lambda: OUTPUT @ mass @ OUTPUT.T))
COVARIANCE.algebra("""Lemma 7  innovations are white
    printed  E(ε ε*) = D
    holds    E[ε ε*] = D
    note     ε = (I - H ψ K) T.
""")
COVARIANCE("""Lemma 7, proof  covariance of the innovations, step by step
    printed  E(ε ε*) = (I - ℒ) E(y y*) (I - ℒ*) = (I - ℒ) H S H* (I - ℒ*); H S H* = (I + 𝒦) D (I +
             𝒦*), (I + 𝒦)(I - ℒ) = I
    holds    covariance of the ε of the filter's loop = (I - H ψ K) 𝓜 (I - H ψ K)* = D, and both
             that are used
    note     y, nowhere defined, is T.
""")(
    lambda case: max(
        _check_simulated_innovations(case),
        case.residual((I - ELL) @ H @ S_OF_X @ H.T @ (I - ELL).T, D),
        case.residual(H @ S_OF_X @ H.T, (I + KAPPA) @ D @ (I + KAPPA).T),
        case.residual((I + KAPPA) @ (I - ELL) @ D, D),
    )
)
COVARIANCE.algebra("""Lemma 8  covariance of the filtering error
    printed  E(e_s e_s*) = ψ M ψ* = P + ψ̃ P + P ψ̃*,  e_s = X - z
    holds    E[(X - z)(X - z)*] = ψ M ψ* = P + ψ̃ P + P ψ̃*
    note     Section 7 calls X - f by this name e_s.
Lemma 8, proof  filtering error from the noise
    printed  e_s = ψ W;  M = P - E_ψ P E_ψ*;  ψ M ψ* = ψ̃ P + P ψ̃* + P
    holds    φ - ψ K H φ = ψ;  M = P - E_ψ P E_ψ*;  ψ M ψ* = P + ψ̃ P + P ψ̃*
""")
COVARIANCE.chains.algebra("""Lemma 9  covariance of the costates
    printed  E(α α*) = Ω = Υ + Υ ψ̃ + ψ̃* Υ
    holds    E[α α*] = Υ + Υ ψ̃ + ψ̃* Υ
    note     On trees ψ* Ξ ψ is to be added: siblings see each other through their parent. α = ψ* H*
             D⁻¹ ε.
(10.1)  covariance of the costates
    printed  Ω = ψ* H* D⁻¹ H ψ = Υ + Υ ψ̃ + ψ̃* Υ
    holds    E[α α*] = ψ* H* D⁻¹ H ψ,  Ω = Υ + Υ ψ̃ + ψ̃* Υ
    note     On trees ψ* Ξ ψ is to be added.
""")


@COVARIANCE("""(10.2)  diagonal blocks of the costate covariance
    printed  Υ(N+1) = 0; for k = N … 1: Υ(k) = ψ*(k+1,k) Υ(k+1) ψ(k+1,k) + H*(k) D⁻¹(k) H(k)
    holds    the blocks of the loop are the diagonal blocks of φ* H* 𝓜⁻¹ H φ
""")
def _(case: Case) -> float:
    matrix, rows = case.matrix(phi.T @ H.T @ mass.inv @ H @ phi), case.dense.slices(BODY)
    expected = {k: matrix[rows[k], rows[k]] for k in case.outward}
    return apart(diagonal(case, costate_blocks(case), M), diagonal(case, expected, M))


COVARIANCE.algebra("""Lemma 9, H P Υ  what P and Υ have in common
    holds    H P Υ = H
Lemma 9, proof: costates  costates from innovations
    printed  α = ψ* H* D⁻¹ ε;  E(α α*) = ψ* H* D⁻¹ H ψ = Ω
    holds    α = φ* H* 𝓜⁻¹ T,  E[α α*] = Ω
""")
COVARIANCE.chains.algebra("""(10.3)  recursion of Υ as an equation
    holds    H* D⁻¹ H = Υ - E_ψ* Υ E_ψ
    note     On trees Ξ, the off-diagonal part of E_ψ* Υ E_ψ, is to be added.
""")
COVARIANCE.algebra("""Lemma 9, proof: H P Υ  why H P Υ = H
    printed  H P τ̄* = 0
    holds    H P Π̄* = 0
""")


@COVARIANCE("""sec. 10, meaning of Υ  Υ is the inverse of the operational-space inertia
    printed  Υ at the tip is the inverse of the task-space inertia
    holds    Υ at a tip, from the loop, = J 𝓜⁻¹ J*, J the Jacobian of its frame
    note     There is an inverse to speak of if J 𝓜⁻¹ J* has rank six.
""")
def _(case: Case) -> Errors:
    rows = case.dense.slices(BODY)
    for k in (k for k in case.outward if not case.children(k)):
        J = case.matrix(phi.T @ H.T)[rows[k]]
        computed = J @ case.matrix(mass.inv) @ J.T
        yield costate_blocks(case)[k], computed


COVARIANCE.algebra("""Lemma 10  smoothing error from filtering error
    printed  e_f = (I - P ψ* H* D⁻¹ H) e_s,  e_f = X - f, e_s = X - z
    holds    X - f = (I - P ψ* H* D⁻¹ H)(X - z)
    note     As operators on W.
(10.4)  covariance of the smoothing error
    printed  𝒫 = E(e_f e_f*) = (I - P ψ* H* D⁻¹ H) E(e_s e_s*) (I - P ψ* H* D⁻¹ H)*
    holds    E[(X - f)(X - f)*] = (I - P ψ* H* D⁻¹ H) E[(X - z)(X - z)*] (I - P ψ* H* D⁻¹ H)*
Lemma 10, proof  errors, costates and innovations
    printed  e_f = e_s - P α;  α = ψ* H* D⁻¹ ε;  ε = H e_s
    holds    X - f = X - z - P α;  α = φ* H* 𝓜⁻¹ T;  ε = H (X - z)
    note     As operators on W.
""")
COVARIANCE.chains.algebra("""Lemma 11  smoothing error by P and Υ
    printed  𝒫 = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P)
    holds    E[(X - f)(X - f)*] = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P)
    note     On trees P ψ* Ξ ψ P is to be taken away.
(10.5)  smoothing error by P and Υ
    printed  𝒫 = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P)
    holds    ψ M ψ* - P Ω P = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P)
    note     On trees P ψ* Ξ ψ P is to be taken away.
""")
COVARIANCE.algebra("""(10.6)  no error at the joints
    printed  H 𝒫 = 0;  𝒫 H* = 0
    holds    H (ψ M ψ* - P Ω P) = 0,  (ψ M ψ* - P Ω P) H* = 0
Lemma 11, proof: H e_s  covariances of the filtering error at the joints
    printed  H e_s H = D and H e_s = H ψ P
    instead  H E[e_s e_s*] H* = D,  H E[e_s e_s*] = H ψ P
    note     The expectation, an e_s* and a star are missing.
""")
COVARIANCE.as_printed(unformed(lambda: H @ FILTER_ERROR @ H))
COVARIANCE.algebra("""Lemma 11, proof: 𝒫  smoothing error as a difference
    printed  𝒫 = E(e_s e_s*) - P ψ* H* D⁻¹ H ψ P
    holds    E[(X - f)(X - f)*] = E[(X - z)(X - z)*] - P ψ* H* D⁻¹ H ψ P
""")
# ------------------------------------------------------------- the list of covariances
COVARIANCE.unchecked("""sec. 10, E[W W*]  of the noise
    means    E[W W*] = M
""")
COVARIANCE("""sec. 10, E[X X*]  of the state
    printed  E[X X*] = S = φ M φ* = R + φ̃ R + R φ̃*
    holds    covariance of the X of loop (5.1), over all values of W, = φ M φ* = R + φ̃ R + R φ̃*
""")(
    lambda case: max(
        check_simulated_state(case),
        case.residual(covariance(STATE), R + phi_tilde @ R + R @ phi_tilde.T),
    )
)
COVARIANCE("""sec. 10, E[T T*]  of the output
    printed  E[T T*] = 𝓜 = H R H* + H φ̃ R H* + H R φ̃*
    instead  covariance of the T of loops (5.1), (5.2) = 𝓜 = H R H* + H φ̃ R H* + H R φ̃* H*
    note     The last H* is missing: the terms cannot be added.
""")(
    lambda case: max(
        check_simulated_covariance(case),
        case.residual(covariance(OUTPUT), BY_NAME["composite mass operator"].right),
    )
)
COVARIANCE.as_printed(unformed(lambda: H @ R @ H.T + H @ phi_tilde @ R @ H.T + H @ R @ phi_tilde.T))
COVARIANCE.algebra("""sec. 10, E[z z*]  of the filtered state
    printed  E[z z*] = φ K D K* φ* = (R - P) + φ̃ (R - P) + (R - P) φ̃*
    holds    E[z z*] = φ K D K* φ* = (R - P) + φ̃ (R - P) + (R - P) φ̃*
    note     z = ψ K T.
sec. 10, E[(X - z)(X - z)*]  of the filtering error
    printed  E[(X - z)(X - z)*] = ψ M ψ = P + ψ̃ P + P ψ̃*
    instead  E[(X - z)(X - z)*] = ψ M ψ* = P + ψ̃ P + P ψ̃*
    note     A star is missing; Lemma 8 has it.
sec. 10, E[ε ε*]  of the innovations
    holds    E[ε ε*] = D
sec. 10, E[ν ν*]  of the residuals
    holds    E[ν ν*] = D⁻¹
""")
COVARIANCE.chains.algebra("""sec. 10, E[α α*]  of the costates
    holds    E[α α*] = Ω = Υ + Υ ψ̃ + ψ̃* Υ
    note     The form by Υ is for chains: on trees ψ* Ξ ψ is to be added.
""")
COVARIANCE.algebra("""sec. 10, E[θ̈ θ̈*]  of the joint accelerations
    printed  E[θ̃ θ̃*] = 𝓜⁻¹
    holds    E[v̇ v̇*] = 𝓜⁻¹
    note     Scan: θ̃ is θ̈. v̇ = (I - H ψ K)* ν.
""")
COVARIANCE.chains.algebra("""sec. 10, 𝓜⁻¹ by Υ  of the joint accelerations, in closed form
    printed  𝓜⁻¹ = D⁻¹ + K* Υ K + K* ψ* (E_ψ* Υ K - H* D⁻¹) + (K* Υ E_ψ - D⁻¹ H) ψ G
    instead  𝓜⁻¹ = D⁻¹ + K* Υ K + K* ψ* (E_ψ* Υ K - H* D⁻¹) + (K* Υ E_ψ - D⁻¹ H) ψ K
    note     G for K at the end; Lemma 12 has K. Since ψ G = G and E_ψ G = 0, what is printed takes
             D⁻¹ away.
""")
COVARIANCE.algebra("""sec. 10, E[f f*]  of the smoothed state
    holds    E[f f*] = φ M φ* - ψ M ψ* + P Ω P
""")
COVARIANCE.chains.algebra("""sec. 10, E[(X - f)(X - f)*]  of the smoothing error
    printed  E[(X - f)(X - f)*] = 𝒫 = ψ M ψ* - P Ω P = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ
             P)
    holds    E[(X - f)(X - f)*] = ψ M ψ* - P Ω P = (P - P Υ P) + (I - P Υ) ψ̃ P + P ψ̃* (I - Υ P)
    note     The form by Υ is for chains.
sec. 10, E[(f - z)(f - z)*]  of the correction by smoothing
    holds    E[(f - z)(f - z)*] = P Ω P = P (Υ + Υ ψ̃ + ψ̃* Υ) P
    note     The form by Υ is for chains.
sec. 10, E[Ŵ Ŵ*]  of the inertial forces and of their error
    printed  E[Ŵ Ŵ*] = Q = M - M Ω M = (M - M Υ M) - M (Υ ψ̃ + ψ̃* Υ) M
    instead  E[(W - Ŵ)(W - Ŵ)*] = Q = M - M Ω M = (M - M Υ M) - M (Υ ψ̃ + ψ̃* Υ) M,  E[Ŵ Ŵ*] = M Ω M
    note     Q is the covariance of the error W - Ŵ, as in section 7, not of Ŵ. The form by Υ is for
             chains.
""")
