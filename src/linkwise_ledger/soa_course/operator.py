"""Document 002, "Stacked Notation" to the implicit equation of velocities: E_φ and H."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY, JOINT
from linkwise.algebra.symbols import E_phi, H, V, v
from linkwise.dynamics.renumbering import renumbering
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.section import Section, same
from linkwise_ledger.soa_course.velocity import check_recursion, check_split

# ------------------------------------------------------------------------------------- checks


def tips_first(case: Case, A: Array) -> Array:
    """A matrix over the bodies, with the numbers of the document: the tip is 1, the base n."""
    return renumbering(case.mech).body_matrix(A)


def _chain_shift(case: Case) -> Array:
    """The printed matrix: φ(k+1, k) on the first sub-diagonal, zeros elsewhere."""
    E, n = tips_first(case, case.matrix(E_phi)), case.mech.n_bodies
    printed = np.zeros_like(E)
    for k in range(1, n):
        step = case.dense.step[n - k].shift  # body k of the document
        printed[6 * k : 6 * k + 6, 6 * k - 6 : 6 * k] = step
    return printed


def both(*checks: Check) -> Check:
    """All of several checks."""
    return lambda case: max(check(case) for check in checks)


# ------------------------------------------------------------------------------------ entries

_IMPLICIT = same(V, E_phi.T @ V + H.T @ v)
_LOOP = "V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)"
BETA = "θ̇ stands for the generalised velocities β, see the entry on the joint map operator."
PLUS = "With V⁺(k) at the body frame of k, not at O_k⁺: see (3.12, 3.5)."

OPERATORS = Section()


@OPERATORS("""Stacked vectors: freedoms  number of freedoms
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
    note     The document itself says r_p(k) ≥ r_v(k): a ball hinge has 4 coordinates, 3 rates.
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
""")
def _check_diagonal(case: Case) -> Errors:
    found = case.matrix(H).copy()
    yield _check_sizes(case)
    spans = zip(case.dense.slices(JOINT), case.dense.slices(BODY), case.mech.bodies, strict=True)
    for rows, columns, body in spans:
        own = body.hinge.hinge_map(case.q[case.mech.q_slice(body.hinge_name)])
        yield found[rows, columns], own @ body.outboard.shift
        found[rows, columns] = 0.0
    yield float(np.abs(found).max(initial=0.0))


OPERATORS("""Structural properties of H  pattern of H
    printed  block-diagonal, and non-square, R^(𝒩 × 6n)
    holds    H is memoryless, JOINT from BODY
""")(_check_diagonal)
OPERATORS.algebra("""Body spatial velocities expression  implicit equation of the velocities
    printed  V = V⁺ + Δ_V, V⁺ = E_φ* V, Δ_V = H* θ̇  ⇒  V = E_φ* V + H* θ̇
    holds    V = E_φ* V + H* v
    note     θ̇ stands for the generalised velocities β, see the entry on the joint map operator.
""")
OPERATORS("""Spatial Operator Recap  the recursion and the implicit equation are one
    printed  V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)  ⇔  V = E_φ* V + H* θ̇
    holds    V = E_φ* V + H* v
    note     θ̇ stands for the generalised velocities β, see the entry on the joint map operator.
""")(both(check_recursion, _IMPLICIT))
OPERATORS.algebra("""Operator expression for V  velocities on one side
    printed  (I - E_φ*) V = H* θ̇
    holds    (I - E_φ)* V = H* v
    note     θ̇ stands for the generalised velocities β, see the entry on the joint map operator.
""")
