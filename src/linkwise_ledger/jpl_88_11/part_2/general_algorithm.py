"""JPL 88-11, Part II, section 4: the general algorithm, by any dynamics of the free arms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from linkwise.algebra.space import JOINT
from linkwise.algebra.symbols import D
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, planar, rank, rigid, solved
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.part_2.closed_chain import (
    finds,
    smaller,
    system as whole_system,
    tip_accelerations,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.operator_algebra.dynamics import link_accelerations, newton_euler
from linkwise_ledger.operator_algebra.inversion import smoother_loop, whitening_loop
from linkwise_ledger.recursion import at_tip, split
from linkwise_ledger.section import Section

Solver: TypeAlias = Callable[[Grasp, Array], Array]
"""Accelerations that bias-free moments give to the free arms."""


def by_elimination(g: Grasp, moments: Array) -> Array:
    """𝓜⁻¹ T'."""
    return solved(g.mass, moments)


def by_loops(g: Grasp, moments: Array) -> Array:
    """The filter and the smoother of an open chain."""
    eps = split(g, whitening_loop(g, moments), JOINT)
    return smoother_loop(g, {k: g.block(D.inv, k) @ eps[k] for k in g.outward})


@cache
def newton_euler_mass(arm: Case) -> tuple[Array, Array]:
    """𝓜, column by column, and 𝒞 of one arm from inverse dynamics."""
    still, n = np.zeros(6), len(arm.v)
    bias = newton_euler(arm, np.zeros(n), still)
    return np.column_stack([newton_euler(arm, e, still) - bias for e in np.eye(n)]), bias


def by_newton_euler(g: Grasp, moments: Array) -> Array:
    """𝓜 from inverse dynamics, arm by arm, then elimination."""
    parts = [newton_euler_mass(arm)[0] for arm in alone(g)]
    return solved(diagonal(parts), moments)


def general(g: Grasp, solver: Solver) -> tuple[Array, Array, Array]:
    """The four steps of (4.9): θ̈, f(0) and α(0)."""
    free = solver(g, g.T - g.coriolis)  # (4.9a)
    free_tips = g.J @ free + g.bent  # (4.9b)
    columns = np.column_stack([solver(g, column) for column in g.J])
    Omega = g.J @ columns + g.A @ g.M_C_inv @ g.A.T  # (4.9c)
    f = solved(Omega, free_tips + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias)
    correction = -solver(g, g.J.T @ f)  # (4.9e)
    return free + correction, f, free_tips + g.J @ correction  # (4.9f) to (4.9h)


def free(g: Grasp) -> Array:
    """θ̈_f of (4.1a)."""
    return g.mass_inv @ (g.T - g.coriolis)


def free_tips(g: Grasp) -> Array:
    """α_f(0) of (4.1b)."""
    return g.J @ free(g) + g.bent


def correction(g: Grasp) -> Array:
    """Δθ̈ of (4.2a)."""
    return g.solution.theta_ddot - free(g)


def tip_correction(g: Grasp) -> Array:
    """Δα(0) of (4.2b): what the tips do that hold the object, and what they would do if free."""
    return g.A @ g.solution.alpha + g.contact_bias - free_tips(g)


def right_side(g: Grasp) -> Array:
    """The right side of (4.8)."""
    return free_tips(g) + g.A @ g.M_C_inv @ g.object_bias - g.contact_bias


# ------------------------------------------------------------------------ singular compliance


def outside_image(g: Grasp, right: Array) -> float:
    """How much of a right side Ω cannot make, relative to its size."""
    sizes, directions = np.linalg.eigh(g.Omega)
    lost = directions[:, sizes < 1e-9 * sizes[-1]]
    return float(np.abs(lost.T @ right).max(initial=0.0) / np.abs(right).max())


# --------------------------------------------------------------------- from (3.6) to (4.9)


GENERAL = Section()


@GENERAL.on(rigid)("""(4.1a)  accelerations of the free arms
    printed  𝓜 θ̈_f + 𝒞 = T
    means    v̇_f = 𝓜⁻¹ (τ - C)
""")
def _(g: Grasp) -> float:
    """Without contact forces, the recursion of Newton and Euler gives T."""
    matrix = [
        newton_euler(arm, free(g)[g.arm_of(i)], np.zeros(6)) for i, arm in enumerate(alone(g))
    ]
    return apart(np.concatenate(matrix), g.T)


@GENERAL.on(rigid)("""(4.1b)  accelerations of the free tips
    means    α_f(0) = J θ̈_f + J̇ θ̇
    note     Scan: j for J̇. The text below calls α_f(0) velocities; they are accelerations.
""")
def _(g: Grasp) -> Errors:
    """Against the loop of α(k) on each arm by itself, moved to its tip."""
    for i, arm in enumerate(alone(g)):
        alpha, (tip, shift) = link_accelerations(arm, free(g)[g.arm_of(i)]), at_tip(arm)
        turned = (shift.T @ alpha[tip]).reshape(2, 3) @ arm.mech.pose(arm.q, arm.node).rot.T
        span = slice(6 * i, 6 * i + 6)
        yield turned.ravel() + g.tip_bias[span], free_tips(g)[span]


GENERAL.unchecked("""(4.2a)  correction at the joints
    means    Δθ̈ = θ̈ - θ̈_f
(4.2b)  correction at the tips
    means    Δα(0) = α(0) - α_f(0)
""")


@GENERAL.on(rigid)("""(4.3)  correction by contact forces
    holds    𝓜 Δθ̈ = -Jᵀ f(0)
""")
def _no_more_force(g: Grasp) -> float:
    return apart(g.mass @ correction(g), -g.J.T @ g.solution.f)


GENERAL.on(rigid)("""(4.4)  the same, solved
    holds    Δθ̈ = -𝓜⁻¹ Jᵀ f(0)
""")(lambda g: (correction(g), -g.mass_inv @ g.J.T @ g.solution.f))
GENERAL.on(rigid)("""(4.5)  correction at the tips by that at the joints
    holds    J Δθ̈ = Δα(0)
""")(lambda g: (g.J @ correction(g), tip_correction(g)))


@GENERAL.on(rigid)("""(4.6)  correction at the tips by contact forces
    holds    Δα(0) = A M⁻¹(C) Aᵀ f(0) - A M⁻¹(C) b(C) + a(C) - α_f(0)
""")
def _(g: Grasp) -> float:
    f, inside = g.solution.f, g.A @ g.M_C_inv @ g.object_bias
    computed = g.compliance @ f - inside + g.contact_bias - free_tips(g)
    return apart(computed, tip_correction(g))


GENERAL.unchecked("""(4.7)  compliance of the contacts, again
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    means    (3.1)
""")


@GENERAL.on(rigid)("""(4.8)  contact forces
    holds    Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)
""")
def _contact_forces(g: Grasp) -> float:
    return max(
        apart(g.Omega @ g.solution.f, right_side(g)),
        apart(solved(g.Omega, right_side(g)), g.solution.f),
    )


@GENERAL.on(rigid)("""CCFD  the general algorithm, (4.9a) to (4.9h)
    printed  free accelerations, contact forces, correction accelerations, true accelerations
    holds    θ̈, f(0) and α(0) of d'Alembert's principle
    note     With three dynamics of the free arms: elimination, filter and smoother, and 𝓜 from
             repeated recursions of Newton and Euler.
""")
def _(g: Grasp) -> Errors:
    for solver in (by_elimination, by_loops, by_newton_euler):
        theta_ddot, f, alpha = general(g, solver)
        yield finds(g, theta_ddot, f)
        yield alpha, tip_accelerations(g)


GENERAL.unchecked("""(4.9a)  step 1: free joints
    printed  𝓜 θ̈_f + 𝒞 = T
    means    (4.1a)
(4.9b)  step 1: free tips
    printed  α_f(0) = J θ̈_f + J̇ θ̇
    means    (4.1b)
(4.9c)  step 2: compliance
    printed  Ω = J 𝓜⁻¹ Jᵀ + A M⁻¹(C) Aᵀ
    means    (4.7)
""")
GENERAL.on(rigid)("""(4.9d)  step 2: contact forces
    holds    Ω f(0) = α_f(0) + A M⁻¹(C) b(C) - a(C)
""")(_contact_forces)
GENERAL.on(rigid)("""(4.9e)  step 3: correction at the joints
    holds    𝓜 Δθ̈ + Jᵀ f(0) = 0
""")(_no_more_force)
GENERAL.on(rigid)("""(4.9f)  step 3: correction at the tips
    holds    Δα(0) = J Δθ̈
""")(lambda g: (g.J @ correction(g), tip_correction(g)))
GENERAL.on(rigid)("""(4.9g)  step 4: joints
    printed  θ̈ = θ̈_f + Δθ̈
    holds    θ̈ of d'Alembert's principle, Δθ̈ of (4.9e)
""")(lambda g: (free(g) - g.mass_inv @ g.J.T @ g.solution.f, g.solution.theta_ddot))
GENERAL.on(rigid)("""(4.9h)  step 4: tips
    printed  Δα(0) = α_f(0) + Δα(0)
    instead  α(0) = α_f(0) + Δα(0), as below (4.2b)
    note     Δ on the left is too much.
""")(lambda g: (free_tips(g) + tip_correction(g), tip_accelerations(g)))


@GENERAL.on(rigid).as_printed
def _(g: Grasp) -> float:
    """Δα(0) = α_f(0) + Δα(0)."""
    return apart(free_tips(g) + tip_correction(g), tip_correction(g))


@GENERAL("""sec. 4, solvability  when the closed chain can be solved
    printed  (2.11), (2.14) and (4.9d) are solvable together
    holds    their matrices lack the same number of ranks
    note     On three arms in space and on two arms of parallel pins, where Ω lacks three.
""")
def _(case: Case) -> float:
    for g in (rigid(case), planar(case)):
        lacking = len(g.Omega) - rank(g.Omega)
        for matrix in (smaller(g), whole_system(g)):
            # Unit inertias on both sides, so that one threshold serves masses and lengths.
            scale = 1.0 / np.sqrt(np.abs(matrix).max(axis=0))
            if len(matrix) - rank(scale[:, None] * matrix * scale) != lacking:
                return float("inf")
    return 0.0


@GENERAL("""sec. 4, image of Ω  what is conjectured where Ω is singular
    printed  if the kinematic constraints hold, the right side of (4.9d) is in the image of Ω
    holds    the same; θ̈ is then that of d'Alembert's principle, whichever f(0) is taken
    note     On two arms of parallel pins. It is so for every smooth motion: where fᵀ J = 0 and fᵀ A
             = 0, the derivative of J θ̇ = A V(C) leaves fᵀ (J̇ θ̇ - a(C)) = 0.
""")
def _(case: Case) -> float:
    g = planar(case)
    if rank(g.Omega) == len(g.Omega):
        return float("inf")  # there would be nothing to see
    f = np.linalg.pinv(g.Omega, rcond=1e-9, hermitian=True) @ right_side(g)
    theta_ddot = free(g) - g.mass_inv @ g.J.T @ f
    return max(outside_image(g, right_side(g)), apart(theta_ddot, g.solution.theta_ddot))


@GENERAL("""sec. 4, nonsingular arms  what suffices for Ω to have an inverse
    printed  Ω is invertible if all arms are kinematically nonsingular
    holds    Ω ≥ J 𝓜⁻¹ Jᵀ > 0 where J has full rank
""")
def _(case: Case) -> float:
    for g in (rigid(case), planar(case)):
        arms = g.J @ g.mass_inv @ g.J.T
        if np.linalg.eigvalsh(g.Omega - arms).min() < -1e-9 * np.abs(g.Omega).max():
            return float("inf")
        if rank(g.J) == len(g.J) and not 0.0 < np.linalg.eigvalsh(arms).min() <= (
            np.linalg.eigvalsh(g.Omega).min() * (1.0 + 1e-9)
        ):
            return float("inf")
    return 0.0


@GENERAL.on(rigid)("""sec. 4, contact forces from (3.6b)  (4.9d) from the analytical solution
    printed  Ω f(0) = J 𝓜⁻¹ T' - a'(C) = J θ̈_f - a(C) + A M⁻¹(C) b(C) + J θ̇ = α_f(0) + A M⁻¹(C)
             b(C) - a(C)
    instead  Ω f(0) = J 𝓜⁻¹ T' - a'(C) = J θ̈_f - a(C) + A M⁻¹(C) b(C) + J̇ θ̇ = α_f(0) + A M⁻¹(C)
             b(C) - a(C)
    note     The dot of J̇ is lost, by the printer or the scan.
""")
def _(g: Grasp) -> float:
    inside = g.A @ g.M_C_inv @ g.object_bias
    first = g.J @ g.mass_inv @ g.T_free - g.a_free
    second = g.J @ free(g) - g.contact_bias + inside + g.bent
    return max(apart(x, g.Omega @ g.solution.f) for x in (first, second, right_side(g)))


@GENERAL.on(rigid).as_printed
def _(g: Grasp) -> float:
    inside = g.A @ g.M_C_inv @ g.object_bias
    printed = g.J @ free(g) - g.contact_bias + inside + g.J @ g.v
    return apart(printed, g.Omega @ g.solution.f)


@GENERAL.on(rigid)("""sec. 4, accelerations from (3.6a)  (4.9e) from the analytical solution
    holds    θ̈ = 𝓜⁻¹ T' - 𝓜⁻¹ Jᵀ Ω⁻¹ [J 𝓜⁻¹ T' - a'(C)] = θ̈_f - 𝓜⁻¹ Jᵀ f(0); 𝓜 Δθ̈ + Jᵀ f(0) = 0
""")
def _(g: Grasp) -> float:
    gain = g.mass_inv @ g.J.T
    long = g.mass_inv @ g.T_free - gain @ g.Omega_inv @ (g.J @ g.mass_inv @ g.T_free - g.a_free)
    short = free(g) - gain @ g.solution.f
    return max(apart(x, g.solution.theta_ddot) for x in (long, short))
