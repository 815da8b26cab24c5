"""The object-level framework, section 7: redundant manipulators that hold an object together."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import solved
from linkwise_ledger.object_level.held import Held, held_redundantly, poorly_held
from linkwise_ledger.object_level.manipulator import ARTICULATED, Manipulator, inverted
from linkwise_ledger.section import Section


def object_freedom(h: Held) -> int:
    """m: dimensions of what the object can do."""
    sizes = np.linalg.svd(h.freedom[sum(h.sizes) :], compute_uv=False)
    return int((sizes > 1e-9).sum())


def effector_freedom(m: Manipulator) -> int:
    """m_i: dimensions of what an effector that holds nothing can do."""
    return int(np.linalg.matrix_rank(m.seen_basic, rtol=1e-9))


def seen_response(h: Held) -> Array:
    """ẍ per force on the object, all at rest, no gravity: by d'Alembert's principle."""
    response = h.pushed[-6:, -6:]
    E = inverted(h.arms[-1].again().E)
    return inverted(E) @ response @ inverted(E).T


def motions(h: Held) -> Array:
    """U: an orthonormal basis of what the object can do, of (v, ω)."""
    return np.linalg.svd(h.freedom[sum(h.sizes) :])[0][:, : object_freedom(h)]


def reflected(h: Held, i: int) -> Array:
    """A_{+i} of (74)."""
    m = h.arms[i]
    return m.A + m.J.T @ (h.Lambda - m.Lambda) @ m.J


def joints_of(h: Held, i: int) -> slice:
    """Where the joints of manipulator i stand among all."""
    start = sum(h.sizes[:i])
    return slice(start, start + h.sizes[i])


def inverse(h: Held, i: int) -> Array:
    """J̄_i of (75)."""
    J, A_inv = h.arms[i].J, inverted(reflected(h, i))
    return A_inv @ J.T @ inverted(J @ A_inv @ J.T)


SEVERAL = Section()


@SEVERAL.on(poorly_held)("""(70)  degrees of freedom of the object
    holds    m ≤ min_i {m_i}
    note     The mechanism of the case, an arm of four parallel pins and one of six joints hold the
             object: m_i are 5 or 6, 3 and 6. With the chain of five pins m is less than 3.
""")
def _(h: Held) -> float:
    """By how much m is larger than the least m_i."""
    return float(max(0, object_freedom(h) - min(effector_freedom(m) for m in h.arms)))


@SEVERAL("""sec. 7, n_s > m  redundancy of the system
    printed  n_s > m implies that one or more manipulators must be redundant
    holds    if n_s > m, then n_i > m for some i
""")
def _(case: Case) -> float:
    """Where n_s > m, some n_i > m: on both grasps of a case."""
    wrong = 0
    for h in (poorly_held(case), held_redundantly(case)):
        m, n_s = object_freedom(h), h.freedom.shape[1]
        wrong += int(n_s > m and not any(n > m for n in h.sizes))
    return float(wrong)


@SEVERAL("""sec. 7, n_i - m  degrees of redundancy
    printed  n_s - m of the system, n_i - m of the ith manipulator
    holds    n_s - m = Σ_i (n_i - m) where every effector moves as the object does, m_i = m;
             n_s - m = Σ_i (n_i - m_i) in general
    note     Where connecting takes motions from effectors, n_i - m counts more than motions that
             leave the object: with the grasp of (70), a PUMA, an arm of four parallel pins and
             another PUMA, Σ_i (n_i - m) is 7 and n_s - m is 1.
""")
def _(case: Case) -> float:
    free, poor = held_redundantly(case), poorly_held(case)
    m = object_freedom(free)
    wrong = free.freedom.shape[1] - m - sum(n - m for n in free.sizes)
    inner = sum(arm.n - effector_freedom(arm) for arm in poor.arms)
    return float(abs(wrong) + abs(poor.freedom.shape[1] - object_freedom(poor) - inner))


@SEVERAL.on(held_redundantly)("""sec. 7.1, q  configuration of the system
    printed  q = (q_1ᵀ q_2ᵀ ... q_Nᵀ)ᵀ
    means    the coordinates of the forest of all manipulators
""")
def _(h: Held) -> float:
    forest = h.arms[0].mech
    for i, m in enumerate(h.arms[1:]):
        forest = forest.mount(m.mech, at="world", prefix=f"arm_{i}_")
    q = np.concatenate([m.q for m in h.arms])
    names = [h.arms[0].node, *(f"arm_{i}_{m.node}" for i, m in enumerate(h.arms[1:]))]
    return max(apart(forest.pose(q, name).matrix, h.arms[0].pose.matrix) for name in names)


@SEVERAL.on(poorly_held)("""sec. 7.1, projection  manipulators that could do more than the object
             can
    printed  the dynamics of each manipulator will be projected into the m-dimensional operational
             space following the same procedure described for a single redundant manipulator
    instead  Λ_⊕ = Uᵀ (Λ_L + Σ_i Λ_i) U, U of the m motions that the object has, Λ_i of all m_i
    note     No slip of the printer, but more than holds. (17) with the m rows Uᵀ J_i lets effector
             i go where the object cannot go: (Uᵀ J_i A_i⁻¹ J_iᵀ U)⁻¹ is less than Uᵀ Λ_i U. Both
             agree where m_i = m. Tried on the grasps of (70).
""")
def _(h: Held) -> float:
    free = motions(h)
    computed = free.T @ h.load_0 @ free
    for m in h.arms:
        response = m.J_0 @ m.A_inv @ m.J_0.T
        reach = np.linalg.svd(m.J_0)[0][:, : effector_freedom(m)]
        across = free.T @ reach
        computed = computed + across @ inverted(reach.T @ response @ reach) @ across.T
    return apart(inverted(computed), free.T @ h.pushed[-6:, -6:] @ free)


@SEVERAL.on(poorly_held).as_printed
def _(h: Held) -> float:
    """(17) with the m rows Uᵀ J_i, for each manipulator."""
    free = motions(h)
    computed = free.T @ h.load_0 @ free
    for m in h.arms:
        rows = free.T @ m.J_0
        computed = computed + inverted(rows @ m.A_inv @ rows.T)
    return apart(inverted(computed), free.T @ h.pushed[-6:, -6:] @ free)


SEVERAL.on(held_redundantly)("""sec. 7.1, load  (62) of redundant manipulators
    printed  ... an equation of the form (3)
    holds    (J (A + Jᵀ Λ_L J)⁻¹ Jᵀ)⁻¹ = Λ + Λ_L
    note     Against mechanisms that have the object as a payload.
""")(lambda h: max((apart(m.Lambda + h.load, h.loaded(i).Lambda) for i, m in enumerate(h.arms))))
SEVERAL.on(held_redundantly)("""(71)  augmented object of redundant manipulators
    printed  Λ_⊕(q) = Λ_L(x) + Σ_i Λ_i(q_i)
    holds    the same: its inverse is the object's response to forces
""")(lambda h: (inverted(h.Lambda), seen_response(h)))


@SEVERAL.on(held_redundantly)("""sec. 7.1, (64)  motion of the augmented object of redundant
             manipulators
    printed  an equation similar to (64)
    holds    Λ_⊕ ẍ + μ_⊕ + p_⊕ = F_⊕, with Λ_i, μ_i and p_i of (17), (24) and (25)
""")
def _(h: Held) -> float:
    F = h.Lambda @ h.drawn(6) + h.mu + h.p
    return apart(h.Lambda @ h.x_acceleration(h.torques(F)) + h.mu + h.p, F)


@SEVERAL.on(held_redundantly)("""sec. 7.2, J̄  (22) again
    printed  J̄(q) = A⁻¹(q) Jᵀ(q) Λ(q)
    holds    the same, of each manipulator unconnected
""")
def _(h: Held) -> Errors:
    """(22), against the least energy of unconnected manipulators: J J̄ = I, A⁻¹-orthogonal."""
    for m in h.arms:
        inner = np.linalg.svd(m.seen_jacobian)[2][6:].T
        across = inner.T @ m.energies @ m.J_bar
        size = np.abs(m.energies @ m.J_bar).max()
        yield m.seen_jacobian @ m.J_bar, np.eye(6)
        yield float(np.abs(across).max(initial=0) / size)


@SEVERAL.on(held_redundantly)("""Lemma 4  manipulator with load
    printed  the joint-space kinetic energy matrix of a manipulator with load is (72)
    holds    𝓜 of the mechanism with the load as a payload is 𝓜 + J_t* Λ_L J_t
(72)  manipulator with load
    holds    A_arm+load(q) = A_arm(q) + [Jᵀ(q) Λ_load(x) J(q)]
""")
def _(h: Held) -> Errors:
    yield from ((m.A + m.J.T @ h.load @ m.J, h.loaded(i).energies) for i, m in enumerate(h.arms))


@SEVERAL.on(held_redundantly)("""(73)  kinetic energy of a manipulator with load
    holds    T = ½ [q̇ᵀ A(q) q̇ + ẋᵀ Λ_load(x) ẋ] = ½ q̇ᵀ [A(q) + Jᵀ(q) Λ_load(x) J(q)] q̇
""")
def _(h: Held) -> Errors:
    """(73): both lines, against bodies and particles."""
    for m in h.arms:
        x_dot = m.x_rate(m.v)
        first = 0.5 * (m.v @ m.A @ m.v + x_dot @ h.load @ x_dot)
        second = 0.5 * m.v @ (m.A + m.J.T @ h.load @ m.J) @ m.v
        velocities = h.theta[:3] + np.cross(h.theta[3:], h.particles)
        seen = m.energy(m.v) + 0.5 * h.masses @ np.sum(velocities**2, axis=1)
        yield first, seen
        yield second, seen


@SEVERAL.on(held_redundantly)("""(74)  reflected load
    printed  A_{+i}(q) = A_i(q_i) + J_iᵀ(q_i) [Λ_⊕(q) - Λ_i(q_i)] J_i(q_i)
    holds    the same: its inverse is how joints i answer torques i, all others being carried along
""")
def _(h: Held) -> Errors:
    for i in range(len(h.arms)):
        seen = h.pushed[joints_of(h, i), joints_of(h, i)]
        yield inverted(reflected(h, i)), seen


@SEVERAL.on(held_redundantly)("""Theorem 4  dynamic consistency in a multiarm system
    printed  the generalized inverse of the ith manipulator consistent with the system is (75)
    holds    of all inverses of J_i, J̄_i of (75) alone has null space torques that leave the object
""")
def _(h: Held) -> Errors:
    E = h.arms[-1].again().E
    for i, m in enumerate(h.arms):
        through = E @ h.pushed[-6:, joints_of(h, i)]  # ẍ of the object per torque
        X = np.linalg.solve(through @ m.J.T, through)
        yield inverse(h, i).T, X
        yield X @ m.J.T, np.eye(6)


@SEVERAL.on(held_redundantly)("""(75)  dynamically consistent inverse of one manipulator
    printed  J̄_i(q) = A_{+i}⁻¹(q) J_iᵀ(q_i) [J_i(q_i) A_{+i}⁻¹(q) J_iᵀ(q_i)]⁻¹
    holds    the same: torques of its null space do not accelerate the object
""")
def _(h: Held) -> Errors:
    for i, m in enumerate(h.arms):
        through = h.pushed[-6:, joints_of(h, i)]
        left = np.eye(m.n) - m.J.T @ inverse(h, i).T
        yield float(np.abs(through @ left).max() / np.abs(through).max())


@SEVERAL.on(held_redundantly)("""sec. 7.2, load and J̄_i  (75) is (22)
    printed  the extension is complicated by the fact that J̄ is dependent on A(q)
    holds    J̄_i of (75) = A_i⁻¹ J_iᵀ Λ_i: that of the manipulator considered alone
    note     A(q) of the connected manipulator is another, its J̄ is not: Jᵀ K J added to A changes
             A⁻¹ Jᵀ by a factor on the right only, which Λ takes back. Where the task is everything
             the object can do, each arm can be controlled with its separate inverse.
""")
def _(h: Held) -> Errors:
    for i, m in enumerate(h.arms):
        through = m.dense(ARTICULATED) @ m.J.T
        yield inverse(h, i), through @ inverted(m.J @ through)


@SEVERAL.on(held_redundantly)("""sec. 7.2, positions  where (75) is not (22)
    printed  the kinetic energy matrix of a redundant manipulator in a multiarm system is not simply
             the matrix of the unconnected manipulator
    holds    for the position of the object alone, (75) with A_{+i} leaves it, (22) with A_i does
             not
""")
def _(h: Held) -> float:
    silent, loud = 0.0, 0.0
    for i, m in enumerate(h.arms[:-1]):
        J, through = m.J[:3], h.pushed[-6:-3, joints_of(h, i)]
        effects: list[float] = []
        for A in (reflected(h, i), m.A):
            J_bar = solved(A, J.T) @ inverted(J @ solved(A, J.T))
            left = through @ (np.eye(m.n) - J.T @ J_bar.T)
            effects.append(float(np.abs(left).max() / np.abs(through).max()))
        silent, loud = max(silent, effects[0]), max(loud, effects[1])
    return silent if loud > 1e-3 else float("inf")


@SEVERAL.on(held_redundantly)("""(76)  torques of one manipulator
    printed  Γ_i = J_iᵀ(q_i) F_i + [I_n - J_iᵀ(q_i) J̄_iᵀ(q)] Γ_i0
    holds    the same: Γ_i0 causes no acceleration at the operational point
    note     The scan writes J̄ with a tilde.
""")
def _(h: Held) -> float:
    target = h.drawn(6, 3)
    shares = h.shares(h.Lambda @ target + h.mu + h.p)
    torques: list[Array] = []
    for i, (m, F) in enumerate(zip(h.arms, shares, strict=True)):
        rest = m.A @ m.drawn(m.n, 4) + m.b + m.g
        torques.append(m.J.T @ F + (np.eye(m.n) - m.J.T @ inverse(h, i).T) @ rest)
    return apart(h.x_acceleration(torques), target)
