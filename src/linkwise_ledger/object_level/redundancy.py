"""Object level, section 3: redundant manipulators, and the dynamically consistent inverse."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.grasp import solved
from linkwise_ledger.object_level.manipulator import ARTICULATED, Manipulator, inverted
from linkwise_ledger.object_level.subject import arm, mini, pair
from linkwise_ledger.section import Section


def some_inverse(m: Manipulator) -> Array:
    """J^{T#}, one of the inverses of Jᵀ: (J W Jᵀ)⁻¹ J W with weights that mean nothing."""
    weights = np.exp(0.5 * m.drawn(m.n, 9))
    return solved((m.J * weights) @ m.J.T, m.J * weights)


def gentle(m: Manipulator, which: int = 0) -> Array:
    """Joint torques that accelerate joints by about one: all of them, not only the effector."""
    return m.A @ m.drawn(m.n, which) + m.b + m.g


def least_energy(m: Manipulator) -> Array:
    """Joint velocities of the least kinetic energy for unit ẋ, in columns."""
    _, _, directions = np.linalg.svd(m.J)
    inner = directions[6:].T
    start = np.asarray(np.linalg.pinv(m.J), dtype=np.float64)
    if not inner.size:
        return start
    pull = solved(inner.T @ m.energies @ inner, inner.T @ m.energies @ start)
    return start - inner @ pull


def effect(m: Manipulator, X: Array) -> Array:
    """How torques [I - Jᵀ X] Γ_0 change ẍ, as seen."""
    start, rest = gentle(m), (np.eye(m.n) - m.J.T @ X) @ (m.A @ m.drawn(m.n, 1))
    return m.x_acceleration(m.forward(start + rest)) - m.x_acceleration(m.forward(start))


REDUNDANCY = Section()


@REDUNDANCY.on_each(pair)("""sec. 3, redundancy  degree of redundancy
    printed  n - m
    holds    dim ker J = n - m: that number of displacements leaves the effector where it is
    note     Away from singularities. The redundant manipulators here are the mechanisms of the
             ledger with a mini-manipulator of six joints on their tips.
""")
def _(m: Manipulator) -> float:
    sizes = np.linalg.svd(m.seen_jacobian, compute_uv=False)
    left = m.n - int((sizes > 1e-9 * sizes[0]).sum())
    return float(abs(left - (m.n - 6)))


@REDUNDANCY.on_each(pair)("""sec. 3, task redundancy  redundancy with respect to a task
    printed  m_Task < n: positioning the effector of a nonredundant manipulator
    holds    dim ker J_v = n - m_Task, 3 of six joints
""")
def _(m: Manipulator) -> float:
    sizes = np.linalg.svd(m.seen_jacobian[:3], compute_uv=False)
    left = m.n - int((sizes > 1e-9 * sizes[0]).sum())
    return float(abs(left - (m.n - 3)) + (left == 0))


@REDUNDANCY.on_each(pair)("""(17)  pseudo kinetic energy matrix
    printed  Λ⁻¹(q) = J(q) A⁻¹(q) Jᵀ(q)
    holds    Ω_t = J_t 𝓜⁻¹ J_t*: ½ ẋᵀ Λ ẋ is the least kinetic energy of joint velocities that give
             ẋ
""")
def _(m: Manipulator) -> float:
    ways = least_energy(m)
    return apart(ways.T @ m.energies @ ways @ m.compliance, np.eye(6))


@REDUNDANCY.on_each(pair)("""sec. 3.1, structure  the effector of a redundant manipulator obeys (3)
    printed  the structure of the effector dynamic model is identical to (3)
    holds    Λ ẍ + μ + p = F with Λ of (17)
""")
def _projection(m: Manipulator) -> float:
    F, rest = m.Lambda @ m.drawn(6) + m.mu + m.p, m.null_torque @ gentle(m, 1)
    x_ddot = m.x_acceleration(m.forward(m.J.T @ F + rest))
    return apart(m.Lambda @ x_ddot + m.mu + m.p, F)


REDUNDANCY.on(mini)("""(18)  torques and operational forces without redundancy
    printed  Γ = Jᵀ(q) F
    holds    τ = J_t* F: every τ is that of one F
""")(lambda m: (m.J.T @ np.linalg.solve(m.seen_jacobian.T, gentle(m)), gentle(m)))


@REDUNDANCY.on(arm)("""sec. 3.1, incomplete  torques of a redundant manipulator
    printed  (18) becomes incomplete for redundant manipulators
    holds    J_t* F spans m of n dimensions: not every τ is one
""")
def _(m: Manipulator) -> float:
    torque = gentle(m)
    F = np.linalg.lstsq(m.J.T, torque, rcond=None)[0]
    missing = m.n - int(np.linalg.matrix_rank(m.J))
    return 0.0 if missing and apart(m.J.T @ F, torque) > 1e-3 else float("inf")


@REDUNDANCY.on(arm)("""(19)  torques and operational forces, any inverse
    printed  Γ = Jᵀ(q) F + [I - Jᵀ(q) J^{T#}(q)] Γ_0
    holds    the same: every Γ is one, with F = J^{T#} Γ
    note     The scan writes the mark # as a star in some places.
""")
def _(m: Manipulator) -> float:
    X, torque = some_inverse(m), gentle(m)
    left = np.eye(m.n) - m.J.T @ X
    computed = m.seen_jacobian.T @ (X @ torque) + left @ torque
    silent = np.abs(X @ left).max() / np.abs(X).max()
    return max(apart(computed, torque), float(silent))


REDUNDANCY.on(arm)("""sec. 3.1, inverses  generalized inverses of Jᵀ
    printed  {J^{T#} | Jᵀ = Jᵀ J^{T#} Jᵀ}
    means    the same; (J W Jᵀ)⁻¹ J W with any weights is one
""")(lambda m: (m.seen_jacobian.T @ some_inverse(m) @ m.seen_jacobian.T, m.seen_jacobian.T))
REDUNDANCY.on_each(pair)("""sec. 3.1, accelerations  of the effector by those of the joints
    printed  ẍ - J̇(q) q̇ = J(q) q̈
    holds    ẍ - γ = J_t v̇
    note     The scan has a stray q in it.
""")(lambda m: (m.x_acceleration(m.drawn(m.n)) - m.x_bent, m.J @ m.drawn(m.n)))


@REDUNDANCY.on(arm)("""(20)  acceleration of the effector under (19)
    holds    ẍ + (J A⁻¹ b - J̇ q̇) + J A⁻¹ g = (J A⁻¹ Jᵀ) F + J A⁻¹ [I - Jᵀ J^{T#}] Γ_0
    note     The signs are right as printed.
""")
def _(m: Manipulator) -> float:
    """(20), for torques (19) with an inverse that means nothing."""
    X, F = some_inverse(m), m.Lambda @ m.drawn(6) + m.mu + m.p
    rest = (np.eye(m.n) - m.J.T @ X) @ gentle(m, 1)
    x_ddot = m.x_acceleration(m.forward(m.J.T @ F + rest))
    through = m.J @ m.A_inv
    left = x_ddot + (through @ m.b - m.x_bent) + through @ m.g
    return apart(left, m.compliance @ F + through @ rest)


@REDUNDANCY.on_each(pair)("""sec. 3.1, Λ  what stands before F in (20)
    printed  Λ(q) = (J(q) A⁻¹(q) Jᵀ(q))⁻¹
    holds    Λ = Ω_t⁻¹: Λ times the change of ẍ that F makes is F
""")
def _(m: Manipulator) -> float:
    start = gentle(m)
    F = m.Lambda @ m.drawn(6, 1)
    change = m.x_acceleration(m.forward(start + m.J.T @ F)) - m.x_acceleration(m.forward(start))
    return apart(m.Lambda @ change, F)


@REDUNDANCY.on(arm)("""(21)  condition for torques that do not accelerate the effector
    printed  J(q) A⁻¹(q) [I - Jᵀ(q) J^{#T}(q)] Γ_0 = 0
    holds    the same: ẍ changes by the left side, which J̄ makes zero and other inverses do not
""")
def _(m: Manipulator) -> float:
    """(21) is met, and no acceleration seen, with J̄; not with an inverse that means nothing."""
    X = some_inverse(m)
    through = (m.A_inv @ m.J.T).T @ (np.eye(m.n) - m.J.T @ X) @ (m.A @ m.drawn(m.n, 1))
    none, some = effect(m, m.J_bar.T), effect(m, X)
    if np.abs(some).max() < 1e-3:
        return float("inf")
    return max(apart(some, through), float(np.abs(none).max() / np.abs(some).max()))


@REDUNDANCY.on(arm)("""Theorem 1  dynamic consistency
    printed  a generalized inverse consistent with (21) is unique and given by (22)
    holds    of all inverses of J_t, J̄ = 𝓜⁻¹ J_t* Λ alone makes (21) zero for all Γ_0
""")
def _(m: Manipulator) -> float:
    X = some_inverse(m)
    left = np.eye(m.n) - m.J.T @ X
    _, _, directions = np.linalg.svd(left)
    rows = directions[: m.n - 6]  # what Z (I - Jᵀ X_0) is made of
    # J A⁻¹ [I - Jᵀ X] = 0 for all Γ_0 is (J A⁻¹ Jᵀ) Z rows = J A⁻¹ [I - Jᵀ X_0], linear in Z;
    # A⁻¹ is that of articulated bodies. It has one solution if both factors have full rank.
    through = m.J @ m.dense(ARTICULATED)
    factor = through @ m.J.T
    if np.linalg.matrix_rank(factor) < 6 or np.linalg.matrix_rank(rows) < m.n - 6:
        return float("inf")
    other = np.linalg.solve(factor, through @ left @ rows.T) @ rows  # Z (I - Jᵀ X_0)
    return max(apart(factor @ other, through @ left), apart(X + other, m.J_bar.T))


@REDUNDANCY.on_each(pair)("""(22)  dynamically consistent inverse
    printed  J̄(q) = A⁻¹(q) Jᵀ(q) Λ(q)
    holds    J̄ = 𝓜⁻¹ J_t* Λ
""")
def _(m: Manipulator) -> float:
    """(22): an inverse of what is seen, with nothing at the effector by articulated bodies."""
    through = m.seen_jacobian @ m.dense(ARTICULATED)
    consistent = through @ m.seen_jacobian.T @ m.J_bar.T
    return max(apart(m.seen_jacobian @ m.J_bar, np.eye(6)), apart(consistent, through))


@REDUNDANCY.on(arm)("""sec. 3.1, proof 1  (21) rewritten
    printed  [J A⁻¹ - (J A⁻¹ Jᵀ) J^{#T}] Γ_0 = 0
    holds    the same: the left side is that of (21) for every inverse
""")
def _(m: Manipulator) -> float:
    X, torque = some_inverse(m), m.A @ m.drawn(m.n, 1)
    through = m.J @ m.A_inv
    rewritten = (through - through @ m.J.T @ X) @ torque
    return apart(rewritten, effect(m, X))


@REDUNDANCY.on(arm)("""sec. 3.1, proof 2  the inverse that (21) leaves
    printed  Λ(q) J(q) A⁻¹(q) = J^{#T}(q)
    holds    Λ J_t 𝓜⁻¹ = J̄*
""")
def _(m: Manipulator) -> float:
    through = m.J @ m.dense(ARTICULATED)
    X = np.linalg.solve(through @ m.J.T, through)
    return apart(m.Lambda @ m.J @ m.A_inv, X)


REDUNDANCY.on_each(pair)("""sec. 3.1, least energy  what J̄ minimizes
    printed  J̄ gives the solution of δx = J(q) δq that minimizes the instantaneous kinetic energy
    holds    J̄ ẋ has the least kinetic energy of joint velocities that give ẋ
""")(lambda m: (m.J_bar, least_energy(m)))
REDUNDANCY.on_each(pair)("""(23)  motion of the effector of a redundant manipulator
    printed  Λ(q) ẍ + μ(q, q̇) + p(q) = F
    holds    Λ ẍ + μ + p = F, for τ of (27)
""")(_projection)


@REDUNDANCY.on_each(pair)("""(24)  centrifugal and Coriolis forces
    printed  μ(q, q̇) = J̄ᵀ(q) b(q, q̇) - Λ(q) J̇(q) q̇
    holds    μ = Λ (J_t 𝓜⁻¹ b - γ)
    note     The sign is right as printed.
""")
def _(m: Manipulator) -> float:
    light, target = m.weightless, m.drawn(6)
    torque = m.J.T @ (m.Lambda @ target + m.mu) + m.null_torque @ (gentle(m, 1) - m.g)
    return apart(light.x_acceleration(light.forward(torque)), target)


@REDUNDANCY.on_each(pair)("""(25)  gravity
    printed  p(q) = J̄ᵀ(q) g(q)
    holds    p = Λ J_t 𝓜⁻¹ g
""")
def _(m: Manipulator) -> float:
    still, target = m.still(), m.drawn(6)
    torque = m.J.T @ (m.Lambda @ target + m.p) + m.null_torque @ (gentle(m, 1) - m.b)
    return apart(still.x_acceleration(still.forward(torque)), target)


@REDUNDANCY.on_each(pair)("""(26)  projection of the motion of joints
    printed  J̄ᵀ(q) {A(q) q̈ + b(q, q̇) + g(q) = Γ} ⇒ Λ(q) ẍ + μ(q, q̇) + p(q) = F
    holds    J̄* τ = Λ ẍ + μ + p
""")
def _(m: Manipulator) -> float:
    """(26): J̄ᵀ times torques by d'Alembert's principle, against what is seen of the effector."""
    q_ddot = m.drawn(m.n)
    right = m.Lambda @ m.x_acceleration(q_ddot) + m.mu + m.p
    return apart(m.J_bar.T @ m.moments(q_ddot), right)


REDUNDANCY.on(mini)("""sec. 3.1.1, no redundancy  J̄ of a manipulator that is not redundant
    holds    J̄ᵀ(q) reduces to J⁻ᵀ(q)
""")(lambda m: (m.J_bar, inverted(m.seen_jacobian)))


@REDUNDANCY.on(arm)("""(27)  dynamically consistent torques
    printed  Γ = Jᵀ(q) F + [I - Jᵀ(q) J̄ᵀ(q)] Γ_0
    holds    τ = J_t* F + N* τ_0: τ_0 does nothing to the effector, and no work on what F moves
""")
def _(m: Manipulator) -> float:
    """(27): F alone is felt at the effector, by force and by motion; both parts are decoupled."""
    F, rest = m.drawn(6), m.null_torque @ m.drawn(m.n, 1)
    outer, inner = m.dense(ARTICULATED) @ (m.J.T @ F), m.dense(ARTICULATED) @ rest
    energy = abs(outer @ m.energies @ inner)  # neither does work on the other's motion
    size = np.sqrt((outer @ m.energies @ outer) * (inner @ m.energies @ inner))
    silent = float(np.abs(m.seen_jacobian @ inner).max() / np.abs(m.seen_jacobian @ outer).max())
    return max(apart(m.J_bar.T @ (m.J.T @ F + rest), F), float(energy / size), silent)
