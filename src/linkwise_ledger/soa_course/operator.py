"""The course, "Stacked Notation" to the implicit equation of velocities: E_φ and H.

The course, "Explicit velocity expression": nilpotent matrices, φ, φ̃, and V⁺.
"""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import E_phi, H, I, V, phi, phi_tilde, v
from linkwise.dynamics.renumbering import renumbering
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.recursion import split
from linkwise_ledger.section import Section, same
from linkwise_ledger.soa_course.velocity import (
    body,
    check_recursion,
    check_split,
    measured,
    turned,
    worst,
)
from linkwise_ledger.standard import check_resolvent, check_shift, check_transition

# ------------------------------------------------------------------------------------- checks


def tips_first(case: Case, A: Array) -> Array:
    """A matrix over the bodies, with the numbers of the paper: the tip is 1, the base n."""
    return renumbering(case.mech).body_matrix(A)


def _chain_shift(case: Case) -> Array:
    """The printed matrix: φ(k+1, k) on the first sub-diagonal, zeros elsewhere."""
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    printed = np.zeros_like(E)
    for k in range(1, n):
        step = case.dense.step[n - k].shift  # body k of the paper
        printed[6 * k : 6 * k + 6, 6 * k - 6 : 6 * k] = step
    return printed


def both(*checks: Check) -> Check:
    """All of several checks."""
    return lambda case: max(check(case) for check in checks)


# ------------------------------------------------------------------------------------ entries

_IMPLICIT = same(V, E_phi.T @ V + H.T @ v)
_LOOP = "V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)"
BETA = "θ̇ means the generalised velocities β, see the entry on the joint map operator."
PLUS = "With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5)."

OPERATORS = Section()


@OPERATORS("""Stacked vectors: count  number of degrees of freedom
    printed  𝒩 ≜ Σ_k r_v(k)
    means    mech.nv
""")
def _check_sizes(case: Case) -> float:
    total = sum(body.hinge.nv for body in case.mech.bodies)
    n = case.mech.n_bodies
    ours = (case.mech.nv, len(case.v), len(case.matrix(V)), case.matrix(H).shape)
    return 0.0 if ours == (total, total, 6 * n, (total, 6 * n)) else 1.0


@OPERATORS("""Stacked vectors: coordinates  length of the stacked coordinates
    printed  θ ≜ col{θ(k)} ∈ R^𝒩
    instead  q has nq = Σ_k r_p(k) numbers; R^𝒩 is the space of the velocities
    note     The paper itself says r_p(k) ≥ r_v(k): a ball hinge has 4 coordinates, 3 rates.
""")
def _(case: Case, *, printed: bool = False) -> float:
    sizes = (body.hinge.nv if printed else body.hinge.nq for body in case.mech.bodies)
    return abs(len(case.q) - sum(sizes)) / len(case.q)


OPERATORS("""Stacked vectors: velocities  stacked velocities
    printed  V ≜ col{V(k)} ∈ R^(6n)
    means    the vector V
""")(both(_check_sizes, check_recursion))
OPERATORS("""More stacked vectors  stacked velocities at the hinges
    printed  V⁺ ≜ col{V⁺(k)} ∈ R^(6n), Δ_V ≜ col{Δ_V(k)} ∈ R^(6n)
    means    E_φ* V and H* v
    note     With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5).
""")(check_split)
OPERATORS("""More stacked vectors: sum  body by body, and stacked
    printed  V(k) = V⁺(k) + Δ_V(k)  ⇕  V = V⁺ + Δ_V
    holds    V = E_φ* V + H* v
    note     With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5).
""")(both(check_split, _IMPLICIT))


@OPERATORS.chains("""The E_φ operator  shift from each body to its parent
    printed  E_φ: φ(2,1), φ(3,2), …, φ(n,n-1) below the diagonal, in R^(6n × 6n); rows parent,
             columns child
    means    E_φ, on a chain, with the bodies numbered from the tip
""")
def check_shift_matrix(case: Case) -> float:
    """E_φ is the printed matrix, with the bodies numbered from the tip."""
    return apart(tips_first(case, case.matrix(E_phi)), _chain_shift(case))


OPERATORS("""The E_φ operator: V⁺  velocities of the parents, at the children
    printed  V⁺(k) = φ*(B_k+1,O_k⁺) V(k+1)  ⇒  V⁺ = E_φ* V
    holds    V⁺ = E_φ* V, V⁺(k) = φ*(p,k) V(p)
    note     With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5).
""")(check_split)
OPERATORS("""The Joint Map operator H  relative velocities of all hinges
    printed  Δ_V(k) = H*(k) β(k)  ⇒  Δ_V = H* θ̇
    instead  Δ_V = H* v
    note     β(k) has become θ̇(k). With quasi-velocities (balls, free and planar hinges) the rates
             of the coordinates are others, and may be more than H* has columns. All later slides
             write θ̇ for β.
""")(both(check_split, _check_sizes))


@OPERATORS.as_printed
def _(case: Case) -> float:
    """H* θ̇ with the rates of the coordinates, as printed: they may be more than H* has columns."""
    qdot = case.mech.qdot(case.q, case.v)
    if len(qdot) != case.mech.nv:
        return float("inf")
    return apart(case.matrix(H.T) @ qdot, case.matrix(H.T @ v))


@OPERATORS("""The Joint Map operator H: matrix  hinge maps of all bodies
    printed  H ≜ diag{H(k)} ∈ R^(𝒩 × 6n)
    means    H
Structural properties of H  pattern of H
    printed  block-diagonal, and non-square, R^(𝒩 × 6n)
    holds    H is memoryless, JOINT from BODY
""")
def _(case: Case) -> Errors:
    computed = case.matrix(H).copy()
    yield _check_sizes(case)
    spans = zip(case.dense.slices(JOINT), case.dense.slices(BODY), case.mech.bodies, strict=True)
    for rows, columns, link in spans:
        span = link.hinge.hinge_map(case.q[case.mech.q_slice(link.hinge_name)])
        yield computed[rows, columns], span @ link.outboard.shift
        computed[rows, columns] = 0.0
    yield float(np.abs(computed).max(initial=0.0))


OPERATORS.algebra("""Body spatial velocities expression  implicit equation of the velocities
    printed  V = V⁺ + Δ_V, V⁺ = E_φ* V, Δ_V = H* θ̇  ⇒  V = E_φ* V + H* θ̇
    holds    V = E_φ* V + H* v
    note     θ̇ means the generalised velocities β, see the entry on the joint map operator.
""")
OPERATORS("""Spatial Operator Recap  the recursion and the implicit equation are one
    printed  V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)  ⇔  V = E_φ* V + H* θ̇
    holds    V = E_φ* V + H* v
    note     θ̇ means the generalised velocities β, see the entry on the joint map operator.
""")(both(check_recursion, _IMPLICIT))
OPERATORS.algebra("""Operator expression for V  velocities on one side
    printed  (I - E_φ*) V = H* θ̇
    holds    (I - E_φ)* V = H* v
    note     θ̇ means the generalised velocities β, see the entry on the joint map operator.
""")


# ------------------------------------------------------------------------------------- checks


def _block(A: Array, i: int, j: int) -> Array:
    """The block at the bodies i and j of the paper."""
    return A[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]


def _check_depends(case: Case) -> float:
    """Blocks that depend on the configuration: E_φ everywhere, as every hinge moves something."""
    other = type(case)(case.name, case.mech, case.seed + 100)
    changed = [
        apart(case.block(E_phi, case.parent(k), k), other.block(E_phi, case.parent(k), k)) > 1e-6
        for k in case.outward
        if case.parent(k) >= 0 and case.mech.bodies[k].hinge.nv > 0
    ]
    return 0.0 if all(changed) else 1.0


def _nilpotent(case: Case) -> Array:
    """A matrix U with U^n = 0 that is not triangular."""
    rng, n = np.random.default_rng(case.seed), case.mech.n_bodies
    change, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return change @ np.tril(rng.standard_normal((n, n)), -1) @ change.T


def _series(nil: Array, terms: int) -> Array:
    total, power = np.eye(len(nil)), np.eye(len(nil))
    for _ in range(terms - 1):
        power = power @ nil
        total = total + power
    return total


def _check_shift_structure(case: Case) -> float:
    """Strictly lower triangular, square, singular, only the first sub-diagonal, 6×6 blocks."""
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    singular = np.linalg.matrix_rank(E) == 6 * (n - 1)
    shape = E.shape == (6 * n, 6 * n) and np.array_equal(E, np.tril(E, -1)) and singular
    return max(0.0 if shape else 1.0, check_shift_matrix(case), _check_depends(case))


# ------------------------------------------------------------------------------------ entries


RESOLVENT = Section()


@RESOLVENT("""Nilpotent matrices & inverses  resolvent of a nilpotent matrix
    holds    U^n = 0: (I - U)⁻¹ = I + U + U² + … + U^(n-1)
""")
def _check_series(case: Case) -> float:
    errors, n = list[float](), case.mech.n_bodies
    for nil in (_nilpotent(case), case.matrix(E_phi)):
        errors.append(apart(np.linalg.inv(np.eye(len(nil)) - nil), _series(nil, n)))
    return max(errors)


@RESOLVENT("""Derivation of nilpotent relative inverse  why
    printed  U W = W U = U + … + U^n = W - I  ⇒  I = (I - U) W  ⇒  (I - U)⁻¹ = W
    holds    the same, W = I + U + … + U^(n-1)
""")
def _(case: Case) -> Errors:
    n = case.mech.n_bodies
    for nil in (_nilpotent(case), case.matrix(E_phi)):
        W, one = _series(nil, n), np.eye(len(nil))
        yield nil @ W, W @ nil
        yield nil @ W, W - one
        yield (one - nil) @ W, one


@RESOLVENT.chains("""E_φ is nilpotent: powers  each power moves the sub-diagonal down
    printed  E_φ^m: nonzero on its m-th sub-diagonal only
    holds    block (i, j) of E_φ^m is zero unless i - j = m, with the bodies numbered from the tip
""")
def _(case: Case) -> float:
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    power = np.eye(6 * n)
    for m in range(1, n):
        power = power @ E
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                if _block(power, i, j).any() != (i - j == m):
                    return 1.0
    return 0.0


@RESOLVENT("""E_φ is nilpotent  the last power
    holds    E_φ^n = 0
""")
def _check_nilpotent(case: Case) -> float:
    E = case.matrix(E_phi)
    return float(np.abs(np.linalg.matrix_power(E, case.mech.n_bodies)).max())


RESOLVENT.chains("""Structural properties of E_φ  pattern of E_φ
    printed  E_φ: square, strictly lower triangular, nilpotent, so singular; nonzero are only
             φ(k+1,k), in the first sub-diagonal, which depend on θ
    holds    the same, with the bodies numbered from the tip
""")(both(_check_shift_structure, _check_nilpotent))
RESOLVENT("""The φ spatial operator  resolvent of E_φ
    printed  φ ≜ (I - E_φ)⁻¹ = I + E_φ + E_φ² + … + E_φ^(n-1)
    holds    φ = (I - E_φ)⁻¹
""")(both(check_resolvent, _check_series))


@RESOLVENT.chains("""The φ spatial operator: matrix  pattern of φ
    printed  φ lower triangular with I on the diagonal and φ(i,j) below it
    holds    the same, with the bodies numbered from the tip
""")
def _(case: Case) -> float:
    computed, n = tips_first(case, case.matrix(phi)), case.mech.n_bodies
    poses = [case.mech.pose(case.q, case.mech.bodies[n - i].name) for i in range(1, n + 1)]
    expected = np.zeros_like(computed)
    for i in range(n):
        for j in range(i + 1):
            block = (poses[i].inverse() @ poses[j]).shift
            expected[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = block
    return apart(computed, expected)


@RESOLVENT.chains("""Structural properties of φ  sub-diagonals of φ
    printed  φ: square, lower triangular, invertible; I on the diagonal, then E_φ, E_φ² … on the
             sub-diagonals
    holds    the m-th sub-diagonal of φ is E_φ^m, with the bodies numbered from the tip
""")
def _(case: Case) -> Errors:
    E, computed = (tips_first(case, case.matrix(x)) for x in (E_phi, phi))
    n, power = case.mech.n_bodies, np.eye(len(E))
    for m in range(n):
        for j in range(1, n - m + 1):
            yield _block(computed, j + m, j), _block(power, j + m, j)
        power = power @ E
    yield abs(float(np.linalg.det(computed)) - 1.0)


RESOLVENT("""Structural properties of φ: matrix  φ and its matrix
    printed  φ = (I, 0 …; φ(2,1), I …; …) (I - E_φ)⁻¹
    holds    φ = (I, 0 …; φ(2,1), I …; …) = (I - E_φ)⁻¹
    note     Scan: an equals sign is lost, as in the ranges of five loops.
""")(check_resolvent)
RESOLVENT("""Structural properties of φ: elements  elements of φ are shifts
    printed  φ(i,j) = φ(i,i-1) ⋯ φ(j+1,j) = [[I, l~(i,j)], [0, I]]
    holds    the same, in the axes of the world
""")(both(check_shift, check_transition))


@RESOLVENT("""(3.35, 3.36)  velocities, solved
    printed  V = (I - E_φ*)⁻¹ H* θ̇ = φ* H* θ̇
    holds    V = φ* H* v
    note     θ̇ means the generalised velocities β, see the entry on the joint map operator.
""")
def _check_solved_velocities(case: Case) -> float:
    at, one = measured(case), np.eye(case.dense.size(BODY))
    inverse = np.asarray(np.linalg.inv(one - case.matrix(E_phi).T), dtype=np.float64)
    solved = inverse @ case.matrix(H).T @ case.v
    computed, names = split(case, solved, BODY), [body(case, k) for k in case.outward]
    return worst(
        [(turned(at.pose[n], x), at.velocity[n]) for n, x in zip(names, computed, strict=True)]
    )


RESOLVENT("""Explicit operator expression for body spatial velocities  the boxed result
    printed  V = φ* H* θ̇
    holds    V = φ* H* v
    note     θ̇ means the generalised velocities β, see the entry on the joint map operator.
""")(both(_check_solved_velocities, check_recursion))
RESOLVENT("""Spatial operator φ̃  φ without its diagonal
    printed  φ̃ ≜ φ - I; zeros on the diagonal
    means    φ̃ = φ - I
""")(
    lambda case: max(
        case.residual(phi_tilde, phi - I),
        max(float(np.abs(case.block(phi_tilde, k)).max()) for k in case.outward),
    )
)
RESOLVENT.algebra("""(3.41)  φ̃ by one step
    printed  φ̃ = E_φ φ = φ E_φ; I = (I - E_φ) φ = φ - E_φ φ  ⇒  φ - I = φ̃ = E_φ φ
    holds    φ̃ = E_φ φ = φ E_φ,  φ - E_φ φ = I
""")
RESOLVENT("""Operator expression for V⁺  claim
    printed  V⁺ = φ̃* H* θ̇
    holds    V⁺ = φ̃* H* v
    note     With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5).
""")(both(check_split, same(E_phi.T @ V, phi_tilde.T @ H.T @ v)))
RESOLVENT("""(3.15, 3.39, 3.41)  its derivation
    printed  V⁺ = E_φ* V = E_φ* φ* H* θ̇ = φ̃* H* θ̇
    holds    the same with v for θ̇
    note     With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5).
""")(both(check_split, same(E_phi.T @ phi.T @ H.T @ v, phi_tilde.T @ H.T @ v)))
