"""The operator algebra, section 5 up to (5.5): forces and inertias at the tip."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import JOINT, NODE
from linkwise.algebra.symbols import D, E_psi, H, J, bias, mass
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.operator_algebra.dynamics import link_accelerations, newton_euler
from linkwise_ledger.operator_algebra.inversion import smoother_loop
from linkwise_ledger.recursion import Blocks, at_tip, costate_blocks, drawn, inward
from linkwise_ledger.section import Section


def correction_loops(case: Case, f: Array, *, as_printed: bool = False) -> Array:
    """Δθ̈ by the two loops below (5.3).

    As printed, ẑ(1) is set before the loop and set again as its first step, to ψ(1, 0) ẑ(0) with
    an ẑ(0) that is nowhere given: zero, as in all other loops of the paper.
    """
    tip, shift = at_tip(case)
    z, nu = dict[int, Array](), Blocks()
    for k in case.inward:
        z[k] = inward(case, E_psi, k, z)
        if k == tip and not as_printed:
            z[k] = z[k] + shift @ f
        nu[k] = -case.block(D.inv, k) @ case.block(H, k) @ z[k]
    return smoother_loop(case, nu)


def _correction(case: Case) -> tuple[Array, Array]:
    """A tip force, and -𝓜⁻¹ J* f(0)."""
    f = drawn(case, NODE)
    return f, -np.linalg.inv(case.matrix(mass)) @ case.matrix(J).T @ f


def tip_compliance(case: Case) -> Array:
    """Ω(0) = φ*(1, 0) Ω(1) φ(1, 0), with Ω(k) of the recursion from the base."""
    tip, shift = at_tip(case)
    return shift.T @ costate_blocks(case)[tip] @ shift


def _compliance_by_inverse(case: Case) -> Array:
    jacobian = case.matrix(J)
    return jacobian @ np.linalg.inv(case.matrix(mass)) @ jacobian.T


TIP = Section()
TIP.algebra("""Lemma 5.1  whitened propagation
    holds    (I - H ψ K) H φ = H ψ
(5.1)  whitened propagation
    holds    (I - H ψ K) H φ = H ψ
""")


@TIP("""sec. 5, θ̈_f and Δθ̈  free and correction accelerations
    printed  θ̈ = θ̈_f + Δθ̈,  θ̈_f = 𝓜⁻¹ (T - C),  Δθ̈ = -𝓜⁻¹ J* f(0)
    holds    the sum is the v̇ that the Newton-Euler loops were given
""")
def _(case: Case) -> float:
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    moments, inverse = newton_euler(case, vdot, f), np.linalg.inv(case.matrix(mass))
    free = inverse @ (moments - case.matrix(bias))
    correction = -inverse @ case.matrix(J).T @ f
    return apart(free + correction, vdot)


TIP.algebra("""(5.2)  correction accelerations, factored
    printed  Δθ̈ = -(I - H ψ K)* D⁻¹ (I - H ψ K) H φ B f(0)
    holds    𝓜⁻¹ J* = (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B
(5.3)  correction accelerations, simplified
    printed  Δθ̈ = -(I - H ψ K)* D⁻¹ H ψ B f(0)
    holds    𝓜⁻¹ J* = (I - H ψ K)* D⁻¹ H ψ B
""")


@TIP("""sec. 5, loops of (5.3)  correction accelerations by recursion
    printed  ẑ(1) = ψ(1,0) f(0); for k = 1 … n: ẑ(k) = ψ(k,k-1) ẑ(k-1), ν(k) = -D⁻¹(k) H(k) ẑ(k);
             λ(n+1) = 0; for k = n … 1: λ(k) = ψ*(k+1,k) λ(k+1) + H*(k) ν(k), Δθ̈(k) = ν(k) -
             K*(k+1,k) λ(k+1)
    instead  ẑ(1) = φ(1,0) f(0), not set again by the loop; all else as printed
    note     The loop sets ẑ(1) again, to ψ(1,0) ẑ(0); with ẑ(0) = 0 as in the other loops nothing
             is left of f(0). No joint is at point 0: ψ(1,0), nowhere defined, is φ(1,0).
""")
def _(case: Case) -> float:
    f, expected = _correction(case)
    return apart(correction_loops(case, f), expected)


@TIP.as_printed
def _(case: Case) -> float:
    f, expected = _correction(case)
    return apart(correction_loops(case, f, as_printed=True), expected)


@TIP("""sec. 5, Λ  operational-space inertia
    printed  Λ = (J 𝓜⁻¹ J*)⁻¹
    means    J 𝓜⁻¹ J* f is what a force f on the tip adds to its acceleration, at equal moments
    note     The inverse exists where J 𝓜⁻¹ J* has rank six.
""")
def _(case: Case) -> Errors:
    """A force on the tip gives the tip the acceleration J 𝓜⁻¹ J* f more, the moments being equal.

    The Newton-Euler loops confirm it; the tip's acceleration is that of its body.
    """
    f, vdot = drawn(case, NODE), drawn(case, JOINT)
    pushed = vdot - _correction(case)[1]
    tip, shift = at_tip(case)
    alpha = [link_accelerations(case, x)[tip] for x in (pushed, vdot)]
    yield newton_euler(case, pushed, -f), newton_euler(case, vdot, 0.0 * f)
    yield shift.T @ (alpha[0] - alpha[1]), _compliance_by_inverse(case) @ f


TIP.algebra("""(5.4)  compliance at the tip, factored
    printed  Ω(0) = J 𝓜⁻¹ J* = B* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B
    holds    J 𝓜⁻¹ J* = B* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B
(5.5)  compliance at the tip, simplified
    printed  Ω(0) = J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B
    holds    J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B
""")
TIP("""sec. 5, loop of (5.5)  compliance at the tip by recursion
    printed  Ω(n+1) = 0; for k = n … 1: Ω(k) = ψ*(k+1,k) Ω(k+1) ψ(k+1,k) + H*(k) D⁻¹(k) H(k);  Ω(0)
             = φ*(1,0) Ω(1) φ(1,0)
    holds    the loop, Υ here, leaves J 𝓜⁻¹ J*
""")(lambda case: (tip_compliance(case), _compliance_by_inverse(case)))
