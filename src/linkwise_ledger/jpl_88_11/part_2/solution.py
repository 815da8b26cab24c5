"""Document 001, Part II, section 3: the closed chain solved by eliminating one block at a time."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import NODE
from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, rigid
from linkwise_ledger.jpl_88_11.operators import diagonal
from linkwise_ledger.jpl_88_11.part_2.closed_chain import given, smaller, unknown
from linkwise_ledger.literal import drawn
from linkwise_ledger.section import Section


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
    n, found = len(g.T), _inverse(g) @ given(g)
    return finds(g, found[:n], found[n:])


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
SOLUTION.on(rigid)("""sec. 3, without an inverse of Ω  what (3.6b) stands for
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
    found = solved(g)
    return max(apart(found[0], theta_ddot), apart(found[1], f))
