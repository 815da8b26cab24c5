"""JPL 88-11, Part II, section 2 from (2.10) on: the closed chain and its unknowns.

JPL 88-11, Part II, section 3: the closed chain solved by eliminating one block at a time.
"""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import NODE
from linkwise.algebra.symbols import mass
from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, rigid, twist_at, unfit
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.motion import first, times
from linkwise_ledger.jpl_88_11.part_2.problem import alone, left_inverse
from linkwise_ledger.recursion import drawn
from linkwise_ledger.section import Section


def system(g: Grasp) -> Array:
    """The matrix of (2.11)."""
    n, m = len(g.T), len(g.A)
    return np.block(
        [
            [np.zeros((m, m)), g.J, -g.A],
            [g.J.T, g.mass, np.zeros((n, 6))],
            [-g.A.T, np.zeros((6, n)), g.M_C],
        ]
    )


def smaller(g: Grasp) -> Array:
    """The matrix of (2.14)."""
    return np.block([[g.mass, g.J.T], [g.J, -g.compliance]])


def given(g: Grasp) -> Array:
    """The right side of (2.14)."""
    return np.concatenate([g.T_free, g.a_free])


def unknown(g: Grasp) -> Array:
    """(θ̈, f(0)) by d'Alembert's principle."""
    return np.concatenate([g.solution.theta_ddot, g.solution.f])


def tip_accelerations(g: Grasp) -> Array:
    """α(0) of the solution."""
    return g.J @ g.solution.theta_ddot + g.bent


def _residual(g: Grasp, unknowns: Array) -> float:
    right = np.concatenate([g.contact_bias - g.bent, g.T_free, -g.object_bias])
    return apart(system(g) @ unknowns, right)


CLOSED_CHAIN = Section()


@CLOSED_CHAIN.on(rigid)("""(2.10a)  arms of the closed chain
    printed  𝓜 θ̈ + 𝒞 + Jᵀ f(0) = T
    holds    𝓜 v̇ + C + J* f = τ
    note     θ̈, α(C) and f(0) that these statements are held against come of d'Alembert's principle
             among the motions that the contacts allow.
""")
def _arms(g: Grasp) -> float:
    return apart(g.mass @ g.solution.theta_ddot + g.coriolis + g.J.T @ g.solution.f, g.T)


CLOSED_CHAIN.on(rigid)("""(2.10b)  contacts of the closed chain
    holds    α(0) = J θ̈ + J̇ θ̇ = A α(C) + a(C)
""")(lambda g: (tip_accelerations(g), g.A @ g.solution.alpha + g.contact_bias))


@CLOSED_CHAIN.on(rigid)("""(2.10c)  object of the closed chain
    holds    M(C) α(C) + b(C) = Aᵀ f(0)
""")
def _object(g: Grasp) -> float:
    return apart(g.M_C @ g.solution.alpha + g.object_bias, g.A.T @ g.solution.f)


@CLOSED_CHAIN.on(rigid)("""sec. 2, constraints  what the equations (2.10) keep
    printed  the complete dynamics are (2.3), (2.4), (2.7b) and (2.9)
    holds    the rate of kinetic energy of arms and object is Tᵀ θ̇: the contacts do no work
""")
def _(g: Grasp) -> float:
    energies: list[Array] = []
    for t, turned in zip(times(), g.object_motion, strict=True):
        V_C = (g.V_C + t * g.solution.alpha).reshape(2, 3)
        # M(C) goes with the object: its velocity is taken back to where M(C) was.
        energy = 0.5 * (V_C @ turned.rot).ravel() @ g.M_C @ (V_C @ turned.rot).ravel()
        for i, arm in enumerate(alone(g)):
            theta_ddot = g.solution.theta_ddot[g.arm_of(i)]
            q = arm.mech.integrate(arm.q, arm.v * t + 0.5 * theta_ddot * t * t)
            v = arm.v + t * theta_ddot
            energy += 0.5 * v @ Dense(arm.mech, q)(mass) @ v
        energies.append(np.asarray(energy))
    return apart(first(energies), g.T @ g.v)


@CLOSED_CHAIN.on(rigid)("""(2.11)  the closed chain as one system
    printed  [[0, J, -A], [Jᵀ, 𝓜, 0], [-Aᵀ, 0, M(C)]] (f(0), θ̇, α(C)) = (a(C) - J̇ θ̇, T - 𝒞,
             -b(C))
    instead  [[0, J, -A], [Jᵀ, 𝓜, 0], [-Aᵀ, 0, M(C)]] (f(0), θ̈, α(C)) = (a(C) - J̇ θ̇, T - 𝒞,
             -b(C))
    note     θ̇ for θ̈ among the unknowns; whether the printer or the scan lost the dot cannot be
             told. The text speaks of accelerations.
""")
def _(g: Grasp) -> Errors:
    s = g.solution
    computed = np.concatenate([s.f, s.theta_ddot, s.alpha])
    right = np.concatenate([g.contact_bias - g.bent, g.T_free, -g.object_bias])
    solved = np.linalg.solve(system(g), right)
    n = len(g.T)
    yield _residual(g, computed)
    yield solved[len(s.f) : len(s.f) + n], s.theta_ddot
    yield solved[: len(s.f)], s.f


CLOSED_CHAIN.on(rigid).as_printed(
    lambda g: _residual(g, np.concatenate([g.solution.f, g.v, g.solution.alpha]))
)


@CLOSED_CHAIN.on(rigid)("""sec. 2, symmetry  of the matrix of (2.11)
    printed  the coefficient matrix of (2.11) is symmetric, and not positive definite
    holds    the same: it has eigenvalues of both signs
""")
def _(g: Grasp) -> float:
    """Equal to its transpose, with eigenvalues of both signs."""
    ends = np.linalg.eigvalsh(system(g))[[0, -1]]
    return apart(system(g), system(g).T) if ends[0] < 0.0 < ends[1] else float("inf")


CLOSED_CHAIN.on(rigid)("""sec. 2, α(C)  acceleration of the object by contact forces
    holds    α(C) = M⁻¹(C) Aᵀ f(0) - M⁻¹(C) b(C)
""")(lambda g: (g.M_C_inv @ (g.A.T @ g.solution.f - g.object_bias), g.solution.alpha))


@CLOSED_CHAIN.on(rigid)("""(2.12)  contacts by contact forces
    holds    α(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C)
""")
def _(g: Grasp) -> float:
    shifted = g.A @ g.M_C_inv
    computed = g.compliance @ g.solution.f - shifted @ g.object_bias + g.contact_bias
    return apart(computed, tip_accelerations(g))


CLOSED_CHAIN.on(rigid)("""(2.13a)  arms, bias on the right
    holds    𝓜 θ̈ + Jᵀ f(0) = T - 𝒞
""")(lambda g: (g.mass @ g.solution.theta_ddot + g.J.T @ g.solution.f, g.T - g.coriolis))


@CLOSED_CHAIN.on(rigid)("""(2.13b)  contacts, without α(C)
    holds    J θ̈ - A M⁻¹(C) Aᵀ f(0) = a(C) - A M⁻¹(C) b(C) - J̇ θ̇
    note     Scan: J̇ has become j, here, in (2.15b), (4.1b) and (5.1d).
""")
def _(g: Grasp) -> float:
    right = g.contact_bias - g.A @ g.M_C_inv @ g.object_bias - g.bent
    return apart(g.J @ g.solution.theta_ddot - g.compliance @ g.solution.f, right)


@CLOSED_CHAIN.on(rigid)("""(2.14)  the closed chain as a smaller system
    holds    [[𝓜, Jᵀ], [J, -A M⁻¹(C) Aᵀ]] (θ̈, f(0)) = (T', a'(C))
(2.15a)  moments without bias
    printed  T' = T - 𝒞
    means    T' = τ - C: what (2.14) has on its right side
(2.15b)  accelerations of the contacts without bias
    printed  a'(C) = a(C) - A M⁻¹(C) b(C) - J̇ θ̇
    means    the same: what (2.14) has on its right side
    note     Scan: j for J̇, as in (2.13b).
""")
def _(g: Grasp) -> Errors:
    solved = np.linalg.solve(smaller(g), given(g))
    n = len(g.T)
    yield smaller(g) @ unknown(g), given(g)
    yield solved[:n], g.solution.theta_ddot
    yield solved[n:], g.solution.f


@CLOSED_CHAIN.on(rigid)("""sec. 2, V(C) from joint rates  below the closed-chain forward dynamics
             problem
    printed  V(0) = J θ̇, V(C) = (AᵀA)⁻¹ A V(0)
    instead  V(0) = J θ̇, V(C) = (AᵀA)⁻¹ Aᵀ V(0), as in (2.8a)
    note     The transpose is missing: 6 × 6 cannot be put before 6ℓ × 6.
""")
def _(g: Grasp) -> float:
    """V(C) from θ̇ alone, against the object that is seen to move."""
    computed = np.linalg.inv(g.A.T @ g.A) @ g.A.T @ (g.J @ g.v)
    return apart(computed, twist_at(g.object_motion, g.C)[0])


CLOSED_CHAIN.as_printed(unfit(lambda g: np.linalg.inv(g.A.T @ g.A) @ g.A @ (g.J @ g.v)))


@CLOSED_CHAIN.on(rigid)("""sec. 2, the rest  what follows from θ̈ and f(0)
    printed  α(0) from (2.3d), α(C) from (2.8b), f(C) from (2.9)
    holds    the same; they meet (2.4)
""")
def _(g: Grasp) -> float:
    alpha = left_inverse(g) @ (tip_accelerations(g) - g.contact_bias)
    net = g.A.T @ g.solution.f
    return max(apart(alpha, g.solution.alpha), apart(g.M_C @ alpha + g.object_bias, net))


def _lower(g: Grasp) -> Array:
    """[[I, 0], [-J 𝓜⁻¹, I]]."""
    n, m = len(g.T), len(g.A)
    return np.block([[np.eye(n), np.zeros((n, m))], [-g.J @ g.mass_inv, np.eye(m)]])


def _upper(g: Grasp) -> Array:
    """[[I, Jᵀ Ω⁻¹], [0, I]]."""
    n, m = len(g.T), len(g.A)
    return np.block([[np.eye(n), g.J.T @ g.Omega_inv], [np.zeros((m, n)), np.eye(m)]])


def _triangle(g: Grasp) -> Array:
    """The matrix on the left of (3.2)."""
    n, m = len(g.T), len(g.A)
    return np.block([[g.mass, g.J.T], [np.zeros((m, n)), -g.Omega]])


def _inverse(g: Grasp) -> Array:
    """The right side of (3.5a)."""
    joined = g.mass_inv @ g.J.T @ g.Omega_inv
    return np.block([[g.mass_inv - joined @ g.J @ g.mass_inv, joined], [joined.T, -g.Omega_inv]])


def solved(g: Grasp) -> tuple[Array, Array]:
    """(θ̈, f(0)) by (3.6)."""
    gain = g.mass_inv @ g.J.T @ g.Omega_inv
    theta_ddot = (g.mass_inv - gain @ g.J @ g.mass_inv) @ g.T_free + gain @ g.a_free
    return theta_ddot, g.Omega_inv @ g.J @ g.mass_inv @ g.T_free - g.Omega_inv @ g.a_free


def finds(g: Grasp, theta_ddot: Array, f: Array) -> float:
    """How far accelerations and contact forces are from those of d'Alembert's principle."""
    return max(apart(theta_ddot, g.solution.theta_ddot), apart(f, g.solution.f))


SOLUTION = Section()


@SOLUTION.on(rigid)("""(3.1)  compliance of the contacts
    printed  Ω ≡ J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    means    Ω f is how fast forces ±f part tips and object, let go of each other
    note     Not the Ω = ψ* H* D⁻¹ H ψ of open chains; J 𝓜⁻¹ Jᵀ is Λ(0) of (6.8).
""")
def _(g: Grasp) -> float:
    """Ω f is how fast forces ±f part the tips and the object that they held.

    Arms and object are let go of each other: -f on the tips, f on the object at the same points.
    """
    f = drawn(g, NODE)
    tips = g.J @ np.linalg.solve(g.mass, -g.J.T @ f)
    points = g.A @ np.linalg.solve(g.M_C, g.A.T @ f)
    return apart(points - tips, g.Omega @ f)


SOLUTION.on(rigid)("""(3.2)  one block eliminated
    holds    [[I, 0], [-J 𝓜⁻¹, I]] times (2.14): [[𝓜, Jᵀ], [0, -Ω]] (θ̈, f(0)) = [[I, 0], [-J 𝓜⁻¹,
             I]] (T', a'(C))
""")(
    lambda g: max(
        apart(_lower(g) @ smaller(g), _triangle(g)),
        apart(_triangle(g) @ unknown(g), _lower(g) @ given(g)),
    )
)


@SOLUTION.on(rigid)("""(3.3)  both blocks eliminated
    holds    [[I, Jᵀ Ω⁻¹], [0, I]] times (3.2): [[𝓜, 0], [0, -Ω]] (θ̈, f(0)) = [[I - Jᵀ Ω⁻¹ J 𝓜⁻¹,
             Jᵀ Ω⁻¹], [-J 𝓜⁻¹, I]] (T', a'(C))
""")
def _(g: Grasp) -> Errors:
    n = len(g.T)
    right = np.block(
        [
            [np.eye(n) - g.J.T @ g.Omega_inv @ g.J @ g.mass_inv, g.J.T @ g.Omega_inv],
            [-g.J @ g.mass_inv, np.eye(len(g.A))],
        ]
    )
    left = diagonal([g.mass, -g.Omega])
    yield _upper(g) @ _triangle(g), left
    yield _upper(g) @ _lower(g), right
    yield left @ unknown(g), right @ given(g)


@SOLUTION.on(rigid)("""(3.4)  solution of the closed chain
    holds    (θ̈, f(0)) = [[𝓜⁻¹ - 𝓜⁻¹ Jᵀ Ω⁻¹ J 𝓜⁻¹, 𝓜⁻¹ Jᵀ Ω⁻¹], [Ω⁻¹ J 𝓜⁻¹, -Ω⁻¹]] (T', a'(C))
    note     The text names (2.4) as what it solves; (2.14) is meant.
""")
def _(g: Grasp) -> float:
    n, computed = len(g.T), _inverse(g) @ given(g)
    return finds(g, computed[:n], computed[n:])


SOLUTION.on(rigid)("""(3.5a)  inverse of the matrix of (2.14)
    holds    [[𝓜, Jᵀ], [J, -A M⁻¹(C) Aᵀ]]⁻¹ = [[𝓜⁻¹ - 𝓜⁻¹ Jᵀ Ω⁻¹ J 𝓜⁻¹, 𝓜⁻¹ Jᵀ Ω⁻¹], [Ω⁻¹ J 𝓜⁻¹,
             -Ω⁻¹]]
""")(lambda g: (_inverse(g), np.linalg.inv(smaller(g))))


@SOLUTION.on(rigid)("""(3.5b)  the same in three factors
    holds    diag(𝓜⁻¹, Ω⁻¹) [[𝓜 - Jᵀ Ω⁻¹ J, Jᵀ], [J, -Ω]] diag(𝓜⁻¹, Ω⁻¹)
""")
def _(g: Grasp) -> float:
    outer = diagonal([g.mass_inv, g.Omega_inv])
    middle = np.block([[g.mass - g.J.T @ g.Omega_inv @ g.J, g.J.T], [g.J, -g.Omega]])
    return apart(outer @ middle @ outer, np.linalg.inv(smaller(g)))


SOLUTION.on(rigid)("""(3.6a)  joint accelerations of the closed chain
    holds    θ̈ = (𝓜⁻¹ - 𝓜⁻¹ Jᵀ Ω⁻¹ J 𝓜⁻¹) T' + 𝓜⁻¹ Jᵀ Ω⁻¹ a'(C)
""")(lambda g: (solved(g)[0], g.solution.theta_ddot))
SOLUTION.on(rigid)("""(3.6b)  contact forces of the closed chain
    holds    f(0) = Ω⁻¹ J 𝓜⁻¹ T' - Ω⁻¹ a'(C)
""")(lambda g: (solved(g)[1], g.solution.f))
SOLUTION.on(rigid)("""sec. 3, without an inverse of Ω  what (3.6b) means
    holds    Ω f(0) = J 𝓜⁻¹ T' - a'(C)
""")(lambda g: (g.Omega @ g.solution.f, g.J @ g.mass_inv @ g.T_free - g.a_free))


@SOLUTION.on(rigid)("""sec. 3, by substitution  the other way to (3.6)
    holds    θ̈ of (2.13a) into (2.13b) gives (3.6b); f(0) of it into (2.13a) gives (3.6a)
""")
def _(g: Grasp) -> float:
    f = np.linalg.solve(
        g.J @ g.mass_inv @ g.J.T + g.compliance, g.J @ g.mass_inv @ g.T_free - g.a_free
    )
    theta_ddot = g.mass_inv @ (g.T_free - g.J.T @ f)
    computed = solved(g)
    return max(apart(computed[0], theta_ddot), apart(computed[1], f))
