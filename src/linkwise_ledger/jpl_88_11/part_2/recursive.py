"""JPL 88-11, Part II, section 6 up to (6.10): the general algorithm's steps as recursions."""

from __future__ import annotations

import numpy as np

from linkwise import models
from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import D, H, phi, psi
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Compare, Errors
from linkwise_ledger.grasp import PICK, Grasp, rigid
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.part_2.free_arms import (
    corrections,
    residuals,
    smoothed,
    tip_compliance,
    to_tip,
    transition,
)
from linkwise_ledger.jpl_88_11.part_2.general_algorithm import correction, free, tip_correction
from linkwise_ledger.jpl_88_11.part_2.overview import (
    FREE,
    JACOBIAN,
    WHITENING,
    free_tip_operators,
    stacked_bias,
)
from linkwise_ledger.jpl_88_11.part_2.problem import alone
from linkwise_ledger.recursion import drawn, unformed
from linkwise_ledger.section import Section

FACTORED = WHITENING.T @ D.inv @ WHITENING
TO_JOINTS = WHITENING.T @ D.inv @ H @ psi @ PICK
"""𝓜⁻¹ Jᵀ, of (6.3)."""

TIP_COMPLIANCE = PICK.T @ psi.T @ H.T @ D.inv @ H @ psi @ PICK
"""J 𝓜⁻¹ Jᵀ, of (6.7)."""


# ------------------------------------------------------------------------------------ loops


def _loops(shift: str = "psi", sign: float = -1.0, *, first: bool = True) -> Compare[Grasp]:
    """The check of (6.4) on each arm, as it must read, or with what is printed."""

    def check(g: Grasp) -> float:
        values = [
            corrections(arm, g.solution.f[6 * i : 6 * i + 6], shift=shift, sign=sign, first=first)
            for i, arm in enumerate(alone(g))
        ]
        return apart(np.concatenate(values), correction(g))

    return check


# --------------------------------------------------------------------------------- compliance


def compliance(g: Grasp) -> Array:
    """J 𝓜⁻¹ Jᵀ, by elimination."""
    return g.J @ g.mass_inv @ g.J.T


def _sum_over_links(arm: Case, *, as_printed: bool = False) -> Array:
    """(6.9b): Σ ψᵀ(k,1) Hᵀ(k) D⁻¹(k) H(k) ψ(k,1) over link 1 and all it hangs on."""
    tip, _ = to_tip(arm)
    matrix, step, k = np.zeros((6, 6)), np.eye(6), tip
    while k >= 0:
        H_k = arm.block(H, k)
        last = H_k.T if as_printed else H_k
        matrix += step.T @ H_k.T @ arm.block(D.inv, k) @ last @ step
        step, k = transition(arm, k) @ step, arm.parent(k)
    return matrix


class _Counted(Case):
    """A case that counts how often a block of an operator is read."""

    reads = 0

    def block(self, expr: Expr, k: int, i: int | None = None) -> Array:
        self.reads += 1
        return super().block(expr, k, i)


def _cost(n: int) -> list[int]:
    """Blocks that the loops (5.10), (6.4) and (6.10) work with, on a chain of n links."""
    arm, counts = _Counted("chain", models.chain(n)), list[int]()
    for loop in (
        lambda: smoothed(arm, residuals(arm, np.ones(n)).nu),
        lambda: corrections(arm, np.ones(6)),
        lambda: tip_compliance(arm),
    ):
        arm.reads = 0
        loop()
        counts.append(arm.reads)
    return counts


STEPS = Section()
STEPS.on(rigid)("""(6.1a)  step 1: moments without bias
    printed  T' = T - H φ (M φᵀ a + b)
    holds    (5.5a)
""")(lambda g: (g.matrix(FREE), g.T - stacked_bias(g)))
STEPS.on(rigid)("""(6.1b)  step 1: free joints
    holds    θ̈_f = (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) T'
""")(lambda g: (g.matrix(FACTORED @ FREE), free(g)))
STEPS.on(rigid)("""(6.1c)  step 1: free tips
    holds    α_f(0) = Bᵀ φᵀ Hᵀ θ̈_f + Bᵀ φᵀ a + a(0)
""")(free_tip_operators)
STEPS.on(rigid)("""(6.2)  step 3: correction at the joints
    holds    Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) H φ B f(0)
""")(lambda g: (-g.matrix(FACTORED @ H @ phi @ PICK) @ g.solution.f, correction(g)))


@STEPS.on(rigid)("""(6.3)  the same, shorter
    holds    Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ H ψ B f(0)
""")
def _correction(g: Grasp) -> float:
    return apart(-g.matrix(TO_JOINTS) @ g.solution.f, correction(g))


@STEPS.on(rigid)("""(6.4a)  start of the loops of (6.3)
    printed  ẑ_i(1) = φ_i(1,0) f_i(0)
    holds    (B f)_1
""")
def _(g: Grasp) -> Errors:
    f = g.solution.f
    matrix = g.matrix(PICK) @ f
    for k, i in g.tip_links.items():
        _, reach = to_tip(alone(g)[i])
        yield reach @ f[6 * i : 6 * i + 6], matrix[6 * k : 6 * k + 6]


STEPS.on(rigid)("""sec. 6, first loop of (6.4)  where it starts
    printed  for k = 2 … N: (6.4b), (6.4c)
    instead  for k = 1 … N, (6.4b) from k = 2 on
    note     ν(1) is read in (6.4e), and never set.
""")(_loops())
STEPS.on(rigid).as_printed(_loops(first=False))
STEPS.on(rigid)("""(6.4b)  filter of contact forces
    printed  ẑ_i(k) = φ_i(k,k-1) ẑ_i(k-1)
    instead  ẑ_i(k) = ψ_i(k,k-1) ẑ_i(k-1)
    note     φ for ψ: (6.3) has ψ B f(0).
""")(_loops())
STEPS.on(rigid).as_printed(_loops(shift="phi"))
STEPS.on(rigid)("""(6.4c)  weighted residuals of contact forces
    printed  ν_i(k) = D_i⁻¹(k) H_i(k) ẑ_i(k)
    instead  ν_i(k) = -D_i⁻¹(k) H_i(k) ẑ_i(k)
    note     The sign of (6.3) is missing.
""")(_loops())
STEPS.on(rigid).as_printed(_loops(sign=1.0))
STEPS.unchecked("""(6.4d)  start of the smoother
    printed  λ_i(N+1) = 0
    means    nothing from the ground
""")


@STEPS.on(rigid)("""(6.4e)  smoother
    printed  for k = N … 1: λ_i(k) = ψ_iᵀ(k+1,k) λ_i(k+1) + H_iᵀ(k) ν_i(k)
    holds    λ = ψ* H* ν
(6.4f)  correction at the joints, as a loop
    printed  Δθ̈_i = ν_i(k) - L_iᵀ(k) λ_i(k+1)
    holds    (I - H Ψ L)* ν; with ν of (6.4c), Δθ̈_i(k)
    note     (k) is missing on the left.
sec. 6, one smoother  of (5.10) and of (6.4)
    holds    (5.10e) to (5.10g) and (6.4d) to (6.4f) are both (I - H Ψ L)ᵀ
""")
def _(g: Grasp) -> Errors:
    """(6.4d) to (6.4f) are (I - H Ψ L)ᵀ, whatever ν is; so are (5.10e) to (5.10g)."""
    nu = drawn(g, H.range)
    costate = np.concatenate([smoothed(x, nu[g.arm_of(i)])[0] for i, x in enumerate(alone(g))])
    moved = np.concatenate([smoothed(x, nu[g.arm_of(i)])[1] for i, x in enumerate(alone(g))])
    yield moved, g.matrix(WHITENING).T @ nu
    yield costate, g.matrix(psi.T @ H.T) @ nu


STEPS.on(rigid)("""(6.5a)  step 3: correction at the joints, again
    printed  Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ ψ B f(0)
    instead  Δθ̈ = -(I - H Ψ L)ᵀ D⁻¹ H ψ B f(0), as in (6.3)
    note     H is missing: D⁻¹ takes joints, ψ leaves links.
""")(_correction)
STEPS.as_printed(unformed(lambda: WHITENING.T @ D.inv @ psi @ PICK))
STEPS.on(rigid)("""(6.5b)  step 3: correction at the tips
    printed  Δα = Bᵀ φᵀ Hᵀ Δθ̈
    holds    the same; Δα is Δα(0)
""")(lambda g: (g.matrix(JACOBIAN) @ correction(g), tip_correction(g)))
STEPS.on(rigid)("""(6.6)  compliance of the tips, factored
    holds    J 𝓜⁻¹ Jᵀ = Bᵀ φᵀ Hᵀ (I - H Ψ L)ᵀ D⁻¹ (I - H Ψ L) H φ B
""")(lambda g: (g.matrix(JACOBIAN @ FACTORED @ H @ phi @ PICK), compliance(g)))
STEPS.on(rigid)("""(6.7)  the same, shorter
    holds    J 𝓜⁻¹ Jᵀ = Bᵀ ψᵀ Hᵀ D⁻¹ H ψ B
""")(lambda g: (g.matrix(TIP_COMPLIANCE), compliance(g)))
STEPS.unchecked("""(6.8a)  a name for it
    printed  J 𝓜⁻¹ Jᵀ = Λ(0)
    means    Λ(0)
""")


@STEPS.on(rigid)("""(6.8b)  compliance, arm by arm
    printed  Λ(0) = diag[Λ_i(0)]
    holds    the same; Λ_i(0) = J_i 𝓜_i⁻¹ J_iᵀ by (6.10)
    note     Its inverse is what is called Λ elsewhere.
""")
def _block_diagonal(g: Grasp) -> float:
    parts = [tip_compliance(arm)[1] for arm in alone(g)]
    return apart(diagonal(parts), compliance(g))


@STEPS.on(rigid)("""(6.9a)  compliance at the tip by that at link 1
    holds    Λ_i(0) = φ_iᵀ(1,0) Λ_i(1) φ_i(1,0)
(6.9b)  compliance at link 1, as a sum
    printed  Λ_i(1) = Σ_{k=1..N} ψ_iᵀ(k,1) H_iᵀ(k) D_i⁻¹(k) H_iᵀ(k) ψ_i(k,1)
    instead  Λ_i(1) = Σ_{k=1..N} ψ_iᵀ(k,1) H_iᵀ(k) D_i⁻¹(k) H_i(k) ψ_i(k,1)
    note     The second transpose is too much.
""")
def _(g: Grasp) -> Errors:
    for i, arm in enumerate(alone(g)):
        _, reach = to_tip(arm)
        s = slice(6 * i, 6 * i + 6)
        yield reach.T @ _sum_over_links(arm) @ reach, compliance(g)[s, s]


@STEPS.as_printed
def _(case: Case) -> float:
    """D⁻¹(k) Hᵀ(k): on hinges with one axis 1 × 1 before 6 × 1."""
    try:
        for arm in alone(rigid(case)):
            _sum_over_links(arm, as_printed=True)
    except ValueError:
        return float("inf")
    return 0.0


STEPS.unchecked("""(6.10a)  start of the recursion
    printed  Λ_i(N+1) = 0
    means    nothing from the ground
""")


@STEPS.on(rigid)("""(6.10b)  compliance as a recursion
    printed  for k = N … 1: Λ_i(k) = ψ_iᵀ(k+1,k) Λ_i(k+1) ψ_i(k+1,k) + H_iᵀ(k) D_i⁻¹ H_i(k)
    holds    Υ_k = E_ψ* Υ_p E_ψ + H_k* D_k⁻¹ H_k
    note     (k) is missing behind D_i⁻¹.
""")
def _(g: Grasp) -> Errors:
    """Λ(k) of the loop, at every link, against the blocks of ψᵀ Hᵀ D⁻¹ H ψ on its diagonal."""
    for arm in alone(g):
        computed, complete = tip_compliance(arm)[0], psi.T @ H.T @ D.inv @ H @ psi
        yield from ((computed[k], arm.block(complete, k)) for k in arm.outward)
    yield _block_diagonal(g)


STEPS.on(rigid)("""(6.10c)  compliance at the tip
    holds    Λ_i(0) = φ_iᵀ(1,0) Λ_i(1) φ_i(1,0)
""")(_block_diagonal)


@STEPS("""sec. 6, O(N)  cost of the loops of one arm
    printed  (5.10), (6.4) and (6.10) take O(N) operations, of ℓ arms O(n)
    holds    every link more takes the same number of blocks more
""")
def _(case: Case) -> float:
    """The same number of blocks more for each link more; all are of six rows or columns."""
    few, more, most = (np.array(_cost(n)) for n in (4, 8, 16))
    return apart(most - more, 2 * (more - few))
