"""JPL 88-11, Part II, section 5: the free arms by operators, and the loops of one arm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.algebra import role
from linkwise.algebra.expr import Adjoint, Expr, Inverse, Product, Sum, Symbol
from linkwise.algebra.symbols import (
    D,
    H,
    I,
    L,
    M,
    Phi,
    Psi,
    a,
    b,
    mass,
    phi,
    tau,
    v,
)
from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Compare, Errors
from linkwise_ledger.grasp import PICK, Grasp, rigid
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import (
    free,
    free_tips,
    newton_euler_mass,
)
from linkwise_ledger.jpl_88_11.part_2.problem import (
    alone,
    check_jacobian_rate,
    jacobian_rate,
    seen_tips,
)
from linkwise_ledger.recursion import accelerations, at_tip, paths, unformed
from linkwise_ledger.section import Section

COLORING = I + H @ Phi @ L
WHITENING = I - H @ Psi @ L
MASS = H @ phi @ M @ phi.T @ H.T
JACOBIAN = PICK.T @ phi.T @ H.T
BIAS = H @ phi @ (M @ phi.T @ a + b)
FREE = tau - BIAS
"""T'."""

EPS = WHITENING @ FREE


def on_arms(*sides: tuple[Expr, Expr]) -> Compare[Grasp]:
    """The check that both sides are equal, as operators of the forest of arms in its state."""
    return lambda g: ((g.matrix(left), g.matrix(right)) for left, right in sides)


def gives(expr: Expr, expected: Callable[[Grasp], Array]) -> Compare[Grasp]:
    """The check that an expression has this value, in the state of the grasp."""
    return lambda g: (g.matrix(expr), expected(g))


def sweeps(expr: Expr) -> int:
    """How many resolvents a vector goes through in sequence, along the longest way."""
    if isinstance(expr, Product):
        return sum(sweeps(factor) for factor in expr.factors)
    if isinstance(expr, Sum):
        return max(sweeps(term) for _, term in expr.terms)
    if isinstance(expr, Adjoint | Inverse):
        return sweeps(expr.of)
    kind = expr.role if isinstance(expr, Symbol) else None
    if isinstance(kind, role.Named):
        return sweeps(kind.definition)
    return int(isinstance(kind, role.Resolvent))


# ----------------------------------------------------------------------------- one arm, all arms


def stacked_bias(g: Grasp) -> Array:
    """𝒞, by the recursion of Newton and Euler on each arm."""
    return np.concatenate([newton_euler_mass(arm)[1] for arm in alone(g)])


# ------------------------------------------------------------------------------- closed chain


OPERATORS = Section()


@OPERATORS.on(rigid)("""sec. 5, one arm  mass matrix, Jacobian and bias of one arm
    printed  𝓜_i = H_i φ_i M_i φ_iᵀ H_iᵀ; J_i = B_iᵀ φ_iᵀ H_iᵀ; 𝒞_i = H_i φ_i (M_i φ_iᵀ a_i + b_i)
    holds    the same; B_i from the tip in the axes of the world
    note     Against inverse dynamics and poses. In the axes of the world throughout: (3.20) of Part
             I.
""")
def _one_arm(g: Grasp) -> float:
    errors: list[float] = []
    for i, arm in enumerate(alone(g)):
        computed = newton_euler_mass(arm)
        errors += [apart(arm.matrix(MASS), computed[0]), apart(arm.matrix(BIAS), computed[1])]
        errors.append(apart(arm.matrix(JACOBIAN) @ arm.v, seen_tips(g)[i][0]))
    return max(errors)


OPERATORS.on(rigid)("""sec. 5, rate of the Jacobian  acceleration of the tip by velocities alone
    printed  J_i θ̇_i = B_iᵀ φ_iᵀ a_i + a_i(0)
    instead  J̇_i θ̇_i = B_iᵀ φ_iᵀ a_i + a_i(0)
    note     The dot of J̇ is lost, twice, by the printer or the scan; (5.1d) has one.
""")(check_jacobian_rate)
OPERATORS.on(rigid).as_printed(lambda g: (g.J @ g.v, g.bent))


@OPERATORS.on(rigid)("""sec. 5, causality  what is memoryless, and what is causal
    printed  M_i, H_i block diagonal; φ_i lower, φ_iᵀ upper block triangular
    holds    M, H block diagonal; φ(k,j) = 0 unless j is k or hangs on it
    note     Upper there and lower here: links are numbered from the tip, ours from the base.
""")
def _(g: Grasp) -> Errors:
    linked = set(paths(g))
    yield 0.0
    for k in g.outward:
        for j in g.outward:
            if (k, j) not in linked:
                yield float(np.abs(g.block(phi, k, j)).max())
            if k != j:
                yield float(np.abs(g.block(M, k, j)).max())
                yield float(np.abs(g.block(H, k, j)).max(initial=0.0))


@OPERATORS.on(rigid)("""sec. 5, velocity of the tip as a loop  from the base to the tip
    holds    V_i(N+1) = 0; for k = N … 1: V_i(k) = φ_iᵀ(k+1,k) V_i(k+1) + H_iᵀ(k) θ̇_i(k); V_i(0) =
             φ_iᵀ(1,0) V_i(1)
""")
def _(g: Grasp) -> Errors:
    for i, arm in enumerate(alone(g)):
        V, (tip, shift) = accelerations(arm, arm.v), at_tip(arm)
        rot = arm.mech.pose(arm.q, arm.node).rot
        computed = (shift.T @ V[tip]).reshape(2, 3) @ rot.T
        yield computed.ravel(), seen_tips(g)[i][0]


@OPERATORS.on(rigid)("""(5.1a)  mass matrix of all arms
    holds    𝓜 = H φ M φᵀ Hᵀ
""")
def _(g: Grasp) -> float:
    parts = [arm.matrix(MASS) for arm in alone(g)]
    values = [g.matrix(MASS)[g.arm_of(i), g.arm_of(i)] for i in range(len(parts))]
    return max(_one_arm(g), *(apart(x, y) for x, y in zip(values, parts, strict=True)))


@OPERATORS.on(rigid)("""(5.1b)  Jacobian of all tips
    holds    J = Bᵀ φᵀ Hᵀ
""")
def _jacobian(g: Grasp) -> float:
    expected = np.concatenate([V for V, _ in seen_tips(g)])
    return apart(g.matrix(JACOBIAN) @ g.v, expected)


OPERATORS.on(rigid)("""(5.1c)  bias of all arms
    holds    𝒞 = H φ (M φᵀ a + b)
""")(gives(BIAS, stacked_bias))
OPERATORS.on(rigid)("""(5.1d)  accelerations of the tips by velocities alone
    printed  J̇ θ̇ = Bᵀ φᵀ a + a(0)
    holds    the same; with the accelerations of Linkwise, a(0) = (0, ω × v) of the tips
    note     Scan: j for J̇. J̇ by differences.
""")(check_jacobian_rate)
OPERATORS.on(rigid)("""sec. 5, velocities of the tips  as an example of stacked operators, and of
             each arm
    printed  V(0) = J θ̇ = Bᵀ Hᵀ φᵀ θ̇
    instead  V(0) = J θ̇ = Bᵀ φᵀ Hᵀ θ̇, as in (5.1b)
    note     Hᵀ and φᵀ have changed places, twice: φᵀ does not take joint rates.
""")(_jacobian)
OPERATORS.as_printed(unformed(lambda: PICK.T @ H.T @ phi.T @ v))
OPERATORS.on(rigid)("""(5.2a)  innovations factors of the mass matrix
    holds    𝓜 = (I + H Φ L) D (I + H Φ L)ᵀ
""")(on_arms((mass, COLORING @ D @ COLORING.T)))


@OPERATORS.on(rigid)("""(5.2b)  the same, of one arm
    holds    𝓜_i = (I + H_i Φ_i L_i) D_i (I + H_i Φ_i L_i)ᵀ
""")
def _(g: Grasp) -> float:
    return max(apart(arm.matrix(COLORING @ D @ COLORING.T), arm.matrix(MASS)) for arm in alone(g))


OPERATORS.on(rigid)("""(5.3)  inverse of the factor
    holds    (I + H Φ L)⁻¹ = I - H Ψ L
""")(on_arms((COLORING.inv, WHITENING)))
OPERATORS.on(rigid)("""(5.4)  inverse of the mass matrix
    holds    𝓜⁻¹ = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L)
""")(on_arms((mass.inv, WHITENING.T @ D.inv @ WHITENING)))
OPERATORS.on(rigid)("""(5.5a)  moments without bias
    holds    T' = T - H φ (M φᵀ a + b)
""")(gives(FREE, lambda g: g.T - stacked_bias(g)))


@OPERATORS.on(rigid)("""(5.5b)  accelerations of the contacts without bias
    holds    a'(C) = a(C) - A M⁻¹(C) b(C) - Bᵀ φᵀ a - a(0)
""")
def _(g: Grasp) -> float:
    """(5.5b), J̇ by differences."""
    inside = g.contact_bias - g.A @ g.M_C_inv @ g.object_bias
    computed = inside - g.matrix(PICK.T @ phi.T @ a) - g.tip_bias
    return apart(computed, inside - jacobian_rate(g) @ g.v)


@OPERATORS.on(rigid)("""(5.5c)  arms of the closed chain
    holds    H φ M φᵀ Hᵀ θ̈ + H φ B f(0) = T'
""")
def _(g: Grasp) -> float:
    computed = g.matrix(MASS) @ g.solution.theta_ddot + g.matrix(H @ phi @ PICK) @ g.solution.f
    return apart(computed, g.matrix(FREE))


OPERATORS.on(rigid)("""(5.5d)  contacts of the closed chain
    holds    Bᵀ φᵀ Hᵀ θ̈ - A M⁻¹(C) Aᵀ f(0) = a'(C)
""")(lambda g: (g.matrix(JACOBIAN) @ g.solution.theta_ddot - g.compliance @ g.solution.f, g.a_free))
OPERATORS.on(rigid)("""(5.6a)  free arms
    holds    H φ M φᵀ Hᵀ θ̈_f = T - H φ (M φᵀ a + b)
""")(lambda g: (g.matrix(MASS) @ free(g), g.matrix(tau - BIAS)))


@OPERATORS.on(rigid)("""(5.6b)  free tips
    holds    α_f(0) = Bᵀ φᵀ Hᵀ θ̈_f + Bᵀ φᵀ a + a(0)
""")
def free_tip_operators(g: Grasp) -> float:
    """(5.6b): against J̇ by differences."""
    computed = g.matrix(JACOBIAN) @ free(g) + g.matrix(PICK.T @ phi.T @ a) + g.tip_bias
    return max(apart(computed, free_tips(g)), check_jacobian_rate(g))


OPERATORS.on(rigid)("""(5.7a)  moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(gives(FREE, lambda g: g.T - stacked_bias(g)))
OPERATORS.on(rigid)("""(5.7b)  free arms by moments without bias
    holds    H φ M φᵀ Hᵀ θ̈_f = T'
""")(lambda g: (g.matrix(MASS) @ free(g), g.matrix(FREE)))
OPERATORS.on(rigid)("""(5.8a)  moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(gives(FREE, lambda g: g.T - stacked_bias(g)))
OPERATORS.on(rigid)("""(5.8b)  accelerations of the free arms
    holds    θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'
""")(gives(WHITENING.T @ D.inv @ WHITENING @ FREE, free))
OPERATORS.unchecked("""(5.9a)  innovations
    means    ε = (I - H Ψ L) T'
(5.9b)  weighted residuals
    means    ν = D⁻¹ ε
""")
OPERATORS.on(rigid)("""(5.9c)  accelerations of the free arms by residuals
    holds    θ̈_f = (I - H Ψ L)ᵀ ν
""")(gives(WHITENING.T @ D.inv @ EPS, free))
