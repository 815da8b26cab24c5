"""Document 000, section 5, Lemma 5.1 and applications 1 and 2: forces and inertias at the tip."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import JOINT, NODE
from linkwise.algebra.symbols import B, D, E_psi, H, J, bias, mass, phi, psi
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds, misprint, same
from linkwise_ledger.literal import drawn, inward, rule_named
from linkwise_ledger.operator_algebra.inversion import WHITENING, smoother_loop
from linkwise_ledger.operator_algebra.newton_euler import link_accelerations, newton_euler
from linkwise_ledger.recursion import Blocks, at_tip, costate_blocks


def _check_split(case: Case) -> float:
    """θ̈ = 𝓜⁻¹ (T - C) - 𝓜⁻¹ J* f(0), with T of the Newton-Euler loops."""
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    moments, inverse = newton_euler(case, vdot, f), np.linalg.inv(case.matrix(mass))
    free = inverse @ (moments - case.matrix(bias))
    correction = -inverse @ case.matrix(J).T @ f
    return apart(free + correction, vdot)


def correction_loops(case: Case, f: Array, *, as_printed: bool = False) -> Array:
    """Δθ̈ by the two loops below (5.3).

    As printed, ẑ(1) is set before the loop and set again as its first step, to ψ(1, 0) ẑ(0) with
    an ẑ(0) that is nowhere given: zero, as in all other loops of the document.
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


def _check_correction_loops(case: Case) -> float:
    f, expected = _correction(case)
    return apart(correction_loops(case, f), expected)


def _check_correction_as_printed(case: Case) -> float:
    f, expected = _correction(case)
    return apart(correction_loops(case, f, as_printed=True), expected)


def tip_compliance(case: Case) -> Array:
    """Ω(0) = φ*(1, 0) Ω(1) φ(1, 0), with Ω(k) of the recursion from the base."""
    tip, shift = at_tip(case)
    return shift.T @ costate_blocks(case)[tip] @ shift


def _compliance_by_inverse(case: Case) -> Array:
    jacobian = case.matrix(J)
    return jacobian @ np.linalg.inv(case.matrix(mass)) @ jacobian.T


def _check_compliance_loop(case: Case) -> float:
    return apart(tip_compliance(case), _compliance_by_inverse(case))


def _check_tip_inertia(case: Case) -> float:
    """A force on the tip gives the tip the acceleration J 𝓜⁻¹ J* f more, the moments being equal.

    That it does is asked of the Newton-Euler loops; the tip's acceleration is that of its body.
    """
    f, vdot = drawn(case, NODE), drawn(case, JOINT)
    pushed = vdot - _correction(case)[1]
    tip, shift = at_tip(case)
    alpha = [link_accelerations(case, x)[tip] for x in (pushed, vdot)]
    return max(
        apart(newton_euler(case, pushed, -f), newton_euler(case, vdot, 0.0 * f)),
        apart(shift.T @ (alpha[0] - alpha[1]), _compliance_by_inverse(case) @ f),
    )


TIP: tuple[Entry, ...] = (
    holds(
        "Lemma 5.1",
        "whitened propagation",
        "(I - H ψ K) H φ = H ψ",
        "(I - H ψ K) H φ = H ψ",
        rule_named("whitened propagation"),
    ),
    holds(
        "(5.1)",
        "whitened propagation",
        "(I - H ψ K) H φ = H ψ",
        "(I - H ψ K) H φ = H ψ",
        rule_named("whitened propagation"),
    ),
    holds(
        "sec. 5, θ̈_f and Δθ̈",
        "free and correction accelerations",
        "θ̈ = θ̈_f + Δθ̈,  θ̈_f = 𝓜⁻¹ (T - C),  Δθ̈ = -𝓜⁻¹ J* f(0)",
        "the sum is the v̇ that the Newton-Euler loops were given",
        _check_split,
    ),
    holds(
        "(5.2)",
        "correction accelerations, factored",
        "Δθ̈ = -(I - H ψ K)* D⁻¹ (I - H ψ K) H φ B f(0)",
        "𝓜⁻¹ J* = (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B",
        same(mass.inv @ J.T, WHITENING.T @ D.inv @ WHITENING @ H @ phi @ B),
    ),
    holds(
        "(5.3)",
        "correction accelerations, simplified",
        "Δθ̈ = -(I - H ψ K)* D⁻¹ H ψ B f(0)",
        "𝓜⁻¹ J* = (I - H ψ K)* D⁻¹ H ψ B",
        same(mass.inv @ J.T, WHITENING.T @ D.inv @ H @ psi @ B),
    ),
    misprint(
        "sec. 5, loops of (5.3)",
        "correction accelerations by recursion",
        "ẑ(1) = ψ(1,0) f(0); for k = 1 … n: ẑ(k) = ψ(k,k-1) ẑ(k-1), ν(k) = -D⁻¹(k) H(k) ẑ(k);  "
        "λ(n+1) = 0; for k = n … 1: λ(k) = ψ*(k+1,k) λ(k+1) + H*(k) ν(k), "
        "Δθ̈(k) = ν(k) - K*(k+1,k) λ(k+1)",
        "ẑ(1) = φ(1,0) f(0), not set again by the loop; all else as printed",
        _check_correction_loops,
        _check_correction_as_printed,
        note="The loop sets ẑ(1) again, to ψ(1,0) ẑ(0); with ẑ(0) = 0 as in the other loops "
        "nothing is left of f(0). No joint is at point 0: ψ(1,0), nowhere defined, is φ(1,0).",
    ),
    definition(
        "sec. 5, Λ",
        "operational-space inertia",
        "Λ = (J 𝓜⁻¹ J*)⁻¹",
        "J 𝓜⁻¹ J* f is what a force f on the tip adds to its acceleration, at equal moments",
        _check_tip_inertia,
        note="The inverse exists where J 𝓜⁻¹ J* has rank six.",
    ),
    holds(
        "(5.4)",
        "compliance at the tip, factored",
        "Ω(0) = J 𝓜⁻¹ J* = B* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B",
        "J 𝓜⁻¹ J* = B* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B",
        same(
            J @ mass.inv @ J.T,
            B.T @ phi.T @ H.T @ WHITENING.T @ D.inv @ WHITENING @ H @ phi @ B,
        ),
    ),
    holds(
        "(5.5)",
        "compliance at the tip, simplified",
        "Ω(0) = J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B",
        "J 𝓜⁻¹ J* = B* ψ* H* D⁻¹ H ψ B",
        same(J @ mass.inv @ J.T, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B),
    ),
    holds(
        "sec. 5, loop of (5.5)",
        "compliance at the tip by recursion",
        "Ω(n+1) = 0; for k = n … 1: "
        "Ω(k) = ψ*(k+1,k) Ω(k+1) ψ(k+1,k) + H*(k) D⁻¹(k) H(k);  Ω(0) = φ*(1,0) Ω(1) φ(1,0)",
        "the loop, Υ here, leaves J 𝓜⁻¹ J*",
        _check_compliance_loop,
    ),
)
