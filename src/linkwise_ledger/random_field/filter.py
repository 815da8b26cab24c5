"""Random fields, section 9: filtering and smoothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import (
    D,
    G,
    H,
    I,
    K,
    M,
    P,
    P_plus,
    mass,
    phi,
    phi_tilde,
    psi,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.random_field.model import ELL
from linkwise_ledger.recursion import (
    Blocks,
    drawn,
    kalman_filter,
    paths,
    split,
    stacked,
    step_to_parent,
)
from linkwise_ledger.section import Section

# ------------------------------------------------------------------------------- filtering


def _given(case: Case) -> list[Array]:
    return split(case, drawn(case, JOINT), JOINT)


def filtered(case: Case, T: list[Array] | None = None) -> Blocks:
    """z(k+1) = ψ(k+1, k) z(k) + K(k+1, k) T(k), starting from z = 0 at the tips."""
    at, z = kalman_filter(case), dict[int, Array]()
    T = _given(case) if T is None else T
    for k in case.inward:
        steps = (at.psi[c] @ z[c] + at.K[c] @ T[c] for c in case.children(k))
        z[k] = sum(steps, np.zeros((6, *T[k].shape[1:])))
    return z


def innovations(case: Case, T: list[Array] | None = None) -> Blocks:
    """ε(k) = T(k) - H(k) z(k), of the T that is given, or drawn."""
    z, T = filtered(case, T), _given(case) if T is None else T
    return {k: T[k] - case.block(H, k) @ z[k] for k in case.outward}


def residuals(case: Case) -> Blocks:
    """ν(k) = D⁻¹(k) ε(k)."""
    at, eps = kalman_filter(case), innovations(case)
    return {k: np.linalg.inv(at.D[k]) @ eps[k] for k in case.outward}


# ------------------------------------------------------------------------------- smoothing


def smoothed(case: Case) -> tuple[Blocks, Blocks]:
    """(θ̈, α) of the Bryson-Frazier loop."""
    at, nu = kalman_filter(case), residuals(case)
    vdot, alpha = dict[int, Array](), dict[int, Array]()
    for k in case.outward:
        p = case.parent(k)
        above = np.zeros(6) if p < 0 else alpha[p]
        vdot[k] = nu[k] - at.K[k].T @ above
        alpha[k] = step_to_parent(case, k).T @ above + case.block(H, k).T @ vdot[k]
    return vdot, alpha


def accelerations_by_inverse(case: Case) -> Array:
    """𝓜⁻¹ T, by solving the equations."""
    return np.asarray(np.linalg.solve(case.matrix(mass), drawn(case, JOINT)), dtype=np.float64)


# -------------------------------------------------------------- predictor and corrector


@dataclass
class _Sweep:
    """What (9.3) - (9.14) leave, each equation's under its number."""

    P: Blocks = field(default_factory=dict[int, Array])
    P_plus: Blocks = field(default_factory=dict[int, Array])
    D: Blocks = field(default_factory=dict[int, Array])
    G: Blocks = field(default_factory=dict[int, Array])
    eps: Blocks = field(default_factory=dict[int, Array])
    nu: Blocks = field(default_factory=dict[int, Array])
    z: Blocks = field(default_factory=dict[int, Array])
    z_plus: Blocks = field(default_factory=dict[int, Array])
    alpha_plus: Blocks = field(default_factory=dict[int, Array])
    alpha: Blocks = field(default_factory=dict[int, Array])
    vdot: Blocks = field(default_factory=dict[int, Array])


def predictor_corrector(case: Case) -> _Sweep:
    """Equations (9.3) to (9.14) in their order; k-1 are the children, k+1 is the parent."""
    at, T = _Sweep(), _given(case)
    for k in case.inward:
        H_k, steps = case.block(H, k), {c: step_to_parent(case, c) for c in case.children(k)}
        for c in steps:
            at.P_plus[c] = (np.eye(6) - at.G[c] @ case.block(H, c)) @ at.P[c]  # (9.4)
        zero = np.zeros((6, 6))
        at.P[k] = sum((s @ at.P_plus[c] @ s.T for c, s in steps.items()), zero)  # (9.5)
        at.P[k] = at.P[k] + case.block(M, k)
        at.D[k] = H_k @ at.P[k] @ H_k.T  # (9.6)
        at.G[k] = at.P[k] @ H_k.T @ np.linalg.inv(at.D[k])
        at.z[k] = sum((s @ at.z_plus[c] for c, s in steps.items()), np.zeros(6))  # (9.10)
        at.eps[k] = T[k] - H_k @ at.z[k]  # (9.7)
        at.nu[k] = np.linalg.inv(at.D[k]) @ at.eps[k]  # (9.8)
        at.z_plus[k] = at.z[k] + at.G[k] @ at.eps[k]  # (9.9)
    for k in case.outward:
        p = case.parent(k)
        above = np.zeros(6) if p < 0 else at.alpha[p]  # (9.11)
        at.alpha_plus[k] = step_to_parent(case, k).T @ above  # (9.12)
        at.vdot[k] = at.nu[k] - at.G[k].T @ at.alpha_plus[k]  # (9.13)
        at.alpha[k] = at.alpha_plus[k] + case.block(H, k).T @ at.vdot[k]  # (9.14)
    return at


def _check_blocks(name: str) -> Check:
    """The check of blocks that the loop leaves against the operators of that name."""
    exprs = {"P_plus": P_plus, "P": P, "D": D, "G": G}

    def check(case: Case) -> float:
        computed = getattr(predictor_corrector(case), name)
        pairs = [(computed[k], case.block(exprs[name], k)) for k in computed]
        return max((apart(x, y) for x, y in pairs), default=0.0)

    return check


_VECTORS = {
    "eps": I - ELL,
    "nu": D.inv @ (I - ELL),
    "z": psi @ K,
    "z_plus": psi @ K + G @ (I - ELL),
    "alpha_plus": phi_tilde.T @ H.T @ mass.inv,
    "alpha": phi.T @ H.T @ mass.inv,
    "vdot": mass.inv,
}
"""What (9.7) - (9.14) compute from the joint moments, as operators."""


def _check_vector(name: str) -> Check:
    """The check of vectors that the loop leaves against operators applied to T."""

    def check(case: Case) -> float:
        computed = stacked(case, getattr(predictor_corrector(case), name))
        return apart(computed, case.matrix(_VECTORS[name]) @ drawn(case, JOINT))

    return check


# ------------------------------------------------------------------ physical interpretation


def _outboard(case: Case, k: int) -> list[int]:
    """Indices of the joint velocities of body k and of everything that hangs on it, k's first."""
    bodies = [i for above, i in paths(case) if above == k]
    places = case.dense.slices(JOINT)
    return [j for i in bodies for j in range(places[i].start, places[i].stop)]


FILTER = Section()
FILTER.algebra("""sec. 9, forward dynamics  joint accelerations from joint moments
    printed  θ̈ = (I - ℒ*) D⁻¹ (I - ℒ) T
    holds    𝓜 (I - H ψ K)* D⁻¹ (I - H ψ K) τ = τ
""")


@FILTER("""sec. 9, ε  innovations
    printed  ε = (I - ℒ) T
    holds    (I - H ψ K) τ is the ε of the loop
""")
def _check_innovations(case: Case) -> float:
    computed = stacked(case, innovations(case))
    return apart(computed, case.matrix(I - ELL) @ drawn(case, JOINT))


FILTER("""sec. 9, z  filtered state
    printed  z = ψ K T
    holds    ψ K τ is the z of the loop, started with z = 0 at the tips
sec. 9, Kalman filter  the filter as a loop
    printed  z(0) = 0; for k = 1 … N: z(k+1) = ψ(k+1,k) z(k) + K(k+1,k) T(k)
    instead  z(1) = 0; for k = 1 … N: z(k+1) = ψ(k+1,k) z(k) + K(k+1,k) T(k)
    note     z(1) is read and never set; (9.3) prints z(1) = 0.
""")(lambda case: (stacked(case, filtered(case)), case.matrix(psi @ K) @ drawn(case, JOINT)))


@FILTER.as_printed
def _(case: Case) -> float:
    """The loop sets z(2), z(3) …; it reads z(1), which nothing has set."""
    at, T, z = kalman_filter(case), _given(case), dict[int, Array]()
    numbered = dict(enumerate(case.inward, start=1))  # as the paper numbers a chain
    z[0] = np.zeros(6)
    try:
        for k in range(1, len(numbered)):
            z[k + 1] = at.psi[numbered[k]] @ z[k] + at.K[numbered[k]] @ T[numbered[k]]
    except KeyError:
        return float("inf")
    return 0.0


FILTER("""sec. 9, ε(k)  innovations at a joint
    printed  ε(k) = T(k) - H(k) z(k)
    holds    τ(k) - H(k) z(k), with z of the loop, gives (I - H ψ K) τ
""")(_check_innovations)


@FILTER("""sec. 9, ν  residuals
    printed  ν = D⁻¹ ε
    holds    ν(k) = D⁻¹(k) ε(k) of the loop gives D⁻¹ (I - H ψ K) τ
""")
def _(case: Case) -> float:
    computed = stacked(case, residuals(case))
    return apart(computed, case.matrix(D.inv @ (I - ELL)) @ drawn(case, JOINT))


@FILTER("""(9.1)  smoothing
    printed  θ̈ = (I - ℒ*) ν
    holds    (I - H ψ K)* ν, with ν of the loop, solves 𝓜 v̇ = τ
""")
def _(case: Case) -> float:
    nu = stacked(case, residuals(case))
    return apart(case.matrix(I - ELL).T @ nu, accelerations_by_inverse(case))


@FILTER("""(9.2)  costates from residuals
    printed  α = ψ* H* ν
    holds    ψ* H* ν, with ν of the loop, = φ* H* 𝓜⁻¹ τ
""")
def _(case: Case) -> float:
    nu = stacked(case, residuals(case))
    expected = case.matrix(phi.T @ H.T) @ accelerations_by_inverse(case)
    return apart(case.matrix(psi.T @ H.T) @ nu, expected)


@FILTER("""sec. 9, θ̈ by costates  accelerations from residuals and costates
    printed  θ̈ = ν - K* α
    holds    ν - K* α, with ν of the loop, solves 𝓜 v̇ = τ
""")
def _(case: Case) -> float:
    nu = stacked(case, residuals(case))
    alpha = case.matrix(phi.T @ H.T) @ accelerations_by_inverse(case)
    return apart(nu - case.matrix(K).T @ alpha, accelerations_by_inverse(case))


@FILTER("""sec. 9, Bryson-Frazier smoother  the smoother as a loop
    printed  α(N+1) = 0; for k = N … 1: θ̈(k) = ν(k) - K*(k+1,k) α(k+1);  α(k) = φ*(k+1,k) α(k+1) +
             H*(k) θ̈(k)
    holds    the loop leaves v̇ = 𝓜⁻¹ τ and α = φ* H* v̇
""")
def _(case: Case) -> Errors:
    vdot, alpha = smoothed(case)
    expected = accelerations_by_inverse(case)
    yield stacked(case, vdot), expected
    yield stacked(case, alpha), case.matrix(phi.T @ H.T) @ expected


@FILTER("""(9.3)  how the filter starts
    printed  z(1) = 0;  P(0) = 0
    means    at a tip, z = 0 and P = M
""")
def _(case: Case) -> float:
    at = predictor_corrector(case)
    tips = [k for k in case.outward if not case.children(k)]
    return max(apart(at.P[k], case.block(M, k)) + float(np.abs(at.z[k]).max()) for k in tips)


FILTER("""(9.4)  correction of the covariance
    printed  P⁺(k-1) → [I - G(k-1) H(k-1)] P(k-1)
    holds    P⁺ = (I - G H) P
    note     At k = 1, G(0) and H(0) do not exist; P(0) = 0 makes P⁺(0) = 0.
""")(_check_blocks("P_plus"))
FILTER("""(9.5)  prediction of the covariance
    printed  P(k) → φ(k,k-1) P⁺(k-1) φ*(k,k-1) + M(k)
    holds    P(k) = Σ_c φ(k,c) P⁺(c) φ*(k,c) + M(k)
""")(_check_blocks("P"))
FILTER("""(9.6)  innovations covariance and gain
    printed  D(k) → H(k) P(k) H*(k);  G(k) → P(k) H*(k)⁻¹(k)
    instead  D(k) = H(k) P(k) H*(k);  G(k) = P(k) H*(k) D⁻¹(k)
    note     The D of D⁻¹ is missing. What is left inverts H*, which is not square. Section 8 has it
             right.
""")(lambda case: max(_check_blocks("D")(case), _check_blocks("G")(case)))


@FILTER.as_printed
def _(case: Case) -> float:
    """G(k) = P(k) H*(k)⁻¹: H* has six rows and as many columns as the hinge has axes."""
    try:
        values = [case.block(P, k) @ np.linalg.inv(case.block(H, k).T) for k in case.outward]
    except np.linalg.LinAlgError:
        return float("inf")
    return max(apart(x, case.block(G, k)) for k, x in zip(case.outward, values, strict=True))


FILTER("""(9.7)  innovations
    printed  ε(k) → T(k) - H(k) z(k)
    holds    ε = (I - H ψ K) τ
""")(_check_vector("eps"))
FILTER("""(9.8)  residuals
    printed  ν(k) → D⁻¹(k) ε(k)
    holds    ν = D⁻¹ (I - H ψ K) τ
""")(_check_vector("nu"))
FILTER("""(9.9)  correction of the filtered state
    printed  z⁺(k) → z(k) + G(k) ε(k)
    holds    z⁺ = [ψ K + G (I - H ψ K)] τ
""")(_check_vector("z_plus"))
FILTER("""(9.10)  prediction of the filtered state
    printed  z(k+1) → φ(k+1,k) z⁺(k)
    holds    z(k) = Σ_c φ(k,c) z⁺(c) gives ψ K τ
""")(_check_vector("z"))
FILTER("""(9.11)  how the smoother starts
    printed  α(N+1) = 0
    means    with the ground at rest the loop leaves α = φ* H* 𝓜⁻¹ τ
""")(_check_vector("alpha"))
FILTER("""(9.12)  prediction of the costate
    printed  α(k) → φ*(k+1,k) α(k+1)
    holds    α before the hinge = φ̃* H* 𝓜⁻¹ τ
""")(_check_vector("alpha_plus"))
FILTER("""(9.13)  joint accelerations
    printed  θ̈(k) → ν(k) - G*(k) α(k)
    holds    v̇ = 𝓜⁻¹ τ
""")(_check_vector("vdot"))
FILTER("""(9.14)  correction of the costate
    printed  α(k) → α(k) + H*(k) θ̈(k)
    holds    α = φ* H* 𝓜⁻¹ τ
""")(_check_vector("alpha"))


@FILTER("""sec. 9, D(k)  meaning of D
    printed  D(k) is the inertia at joint k with the inward joints locked, the outboard ones free
    holds    D(k)⁻¹ = block k of the inverse of 𝓜 restricted to the joints of the subtree of k
""")
def _(case: Case) -> Errors:
    """D(k) is the inertia at hinge k if the hinges inboard are locked and those outboard free."""
    for k in case.outward:
        chosen, n_k = _outboard(case, k), len(case.block(D, k))
        inverse = np.linalg.inv(case.matrix(mass)[np.ix_(chosen, chosen)])
        yield case.block(D, k), np.linalg.inv(inverse[:n_k, :n_k])


@FILTER("""sec. 9, ν(k)  meaning of the residuals
    printed  ν(k) is the acceleration of joint k if all inward joints are locked
    holds    ν(k) = block k of 𝓜⁻¹ τ, both restricted to the joints of the subtree of k
""")
def _(case: Case) -> Errors:
    T, nu = drawn(case, JOINT), residuals(case)
    for k in case.outward:
        chosen = _outboard(case, k)
        inside = case.matrix(mass)[np.ix_(chosen, chosen)]
        yield nu[k], np.linalg.solve(inside, T[chosen])[: len(nu[k])]
