"""Document 000, section 3: the dynamics of a robot by operators."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import BODY, JOINT, NODE
from linkwise.algebra.symbols import B, E_phi, H, J, M, a, b, bias, mass, phi
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.literal import drawn, inward, outward, rate, split, stacked
from linkwise_ledger.operator_algebra.jacobian import jacobian_by_loops
from linkwise_ledger.recursion import accelerations, at_tip, forces, moved, weightless
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_inertia, check_mass_by_energy


def link_accelerations(case: Case, vdot: Array) -> dict[int, Array]:
    """α(k) = φ*(k+1, k) α(k+1) + H*(k) θ̈(k) + a(k), from the base to the tips."""
    given, alpha = split(case, vdot, JOINT), dict[int, Array]()
    for k in case.outward:
        alpha[k] = outward(case, E_phi, k, alpha) + case.block(H, k).T @ given[k]
        alpha[k] = alpha[k] + case.block(a, k)
    return alpha


def newton_euler(case: Case, vdot: Array, f_tip: Array) -> Array:
    """The joint moments of both loops, f_tip being the force of the tip on its surroundings."""
    alpha, f = link_accelerations(case, vdot), dict[int, Array]()
    tip, shift = at_tip(case)
    for k in case.inward:
        f[k] = inward(case, E_phi, k, f) + case.block(M, k) @ alpha[k] + case.block(b, k)
        if k == tip:
            f[k] = f[k] + shift @ f_tip
    return stacked(case, {k: case.block(H, k) @ f[k] for k in case.outward})


NEWTON_EULER = Section()


@NEWTON_EULER("""(3.1)  equations of motion
    printed  𝓜 θ̈ + C + J* f(0) = T
    holds    𝓜 v̇ + C + J* f = τ, f the force of the node on its surroundings
    note     Against the Newton-Euler loops. Gravity, left out in the document, is an acceleration
             of the base here.
""")
def _check_equations_of_motion(case: Case) -> float:
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    expected = case.matrix(mass) @ vdot + case.matrix(bias) + case.matrix(J).T @ f
    return apart(newton_euler(case, vdot, f), expected)


NEWTON_EULER("""(3.2)  Newton-Euler factorisation
    printed  𝓜 = H φ M φ* H*
    means    v* 𝓜 w from kinetic energies, ½ Σ V*(k) M(k) V(k), of v + w and v - w
""")(check_mass_by_energy)


@NEWTON_EULER("""(3.3)  Coriolis and centrifugal moments
    printed  C = H φ (M φ* a + b)
    holds    C = 𝓜̇ v - ½ ∂(v* 𝓜 v)/∂q, by differences
    note     Lagrange's equations where velocities are derivatives of coordinates, else the power v*
             C = ½ v* 𝓜̇ v.
""")
def _(case: Case) -> float:
    """C of (3.3) is what Lagrange's equations have beside 𝓜 θ̈, without gravity.

    With velocities that are not derivatives of coordinates there are more terms; then the power
    of C is compared, which is half that of 𝓜̇.
    """
    case = weightless(case)
    mech, v, found = case.mech, case.v, case.matrix(bias)

    def inertia(q: Array) -> Array:
        return Dense(mech, q)(mass)

    mass_rate = rate(lambda t: inertia(mech.integrate(case.q, v, t)))
    if mech.nq == mech.nv and np.array_equal(mech.qdot(case.q, v), v):
        units = np.eye(mech.nv)
        slopes = [rate(lambda t, e=e: v @ inertia(case.q + t * e) @ v) for e in units]
        return apart(found, mass_rate @ v - 0.5 * np.array(slopes))
    return apart(found @ v, 0.5 * v @ mass_rate @ v)


NEWTON_EULER("""(3.4)  joint moments of a tip force
    printed  J* = H φ B
    holds    H φ B has the tip velocities of unit joint velocities as rows
""")(lambda case: (case.matrix(H @ phi @ B), jacobian_by_loops(case).T))
NEWTON_EULER.unchecked("""sec. 3, M  spatial inertia
    printed  M = diag[M(1) … M(n)]
    means    M is memoryless
""")
NEWTON_EULER("""sec. 3, M(k)  spatial inertia of a link
    printed  M(k) = [[𝒥(k), m(k) p̃(k)], [-m(k) p̃(k), m(k) I]]
    means    M(k) about the body frame: p the centre of mass, 𝒥 the inertia about the frame
""")(check_inertia)


@NEWTON_EULER("""sec. 3, tilde  cross product
    means    x̃ y = x × y
""")
def _(case: Case) -> float:
    x, y = case.v[:1].repeat(3) * [1.0, -2.0, 0.5], np.array([0.3, 0.7, -1.1])
    return apart(skew(x) @ y, np.cross(x, y))


NEWTON_EULER("""sec. 3, Newton-Euler recursions  equations of motion as two loops
    printed  α(n+1) = 0; for k = n … 1: α(k) = φ*(k+1,k) α(k+1) + H*(k) θ̈(k) + a(k);  f(0) = f_ext;
             for k = 1 … n: f(k) = φ(k,k-1) f(k-1) + M(k) α(k) + b(k), T(k) = H(k) f(k)
    holds    the loops leave 𝓜 v̇ + C + J* f
""")(_check_equations_of_motion)


@NEWTON_EULER("""sec. 3, α(k)  accelerations are derivatives of velocities
    printed  α(k) = V̇(k)
    holds    α(k) of the loop = derivative of V(k) along the motion, by differences
    note     Derivatives in the axes of the body here, in inertial axes in the document; a and b
             differ accordingly.
""")
def _(case: Case) -> float:
    case, vdot = weightless(case), drawn(case, JOINT)
    found = stacked(case, link_accelerations(case, vdot))
    velocities = phi.T @ H.T
    return apart(found, rate(lambda t: moved(case, t)(velocities) @ (case.v + t * vdot)))


@NEWTON_EULER("""(3.5)  equations of motion without bias
    printed  𝓜 θ̈ = T′,  T′ = T - C - J* f(0)
    holds    τ of the loops, less C + J* f, = 𝓜 v̇
""")
def _(case: Case) -> float:
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    rest = case.matrix(bias) + case.matrix(J).T @ f
    return apart(newton_euler(case, vdot, f) - rest, case.matrix(mass) @ vdot)


@NEWTON_EULER("""(3.6)  equations of motion, factored
    printed  H φ M φ* H* θ̈ = T′
    holds    H φ M φ* H* v̇ = loops with v̇, less loops without
""")
def _(case: Case) -> float:
    """The loops without a, b and f(0) give T'."""
    vdot, f = drawn(case, JOINT), drawn(case, NODE)
    moments = newton_euler(case, vdot, f) - newton_euler(case, 0.0 * vdot, f)
    return apart(case.matrix(H @ phi @ M @ phi.T @ H.T) @ vdot, moments)


@NEWTON_EULER("""sec. 3, loop of φ* H*  base to tip
    printed  α(n+1) = 0; for k = n … 1: α(k) = φ*(k+1,k) α(k+1) + H*(k) θ̈(k)
    holds    the loop leaves φ* H* v̇
""")
def _(case: Case) -> float:
    vdot = drawn(case, JOINT)
    return apart(stacked(case, accelerations(case, vdot)), case.matrix(phi.T @ H.T) @ vdot)


@NEWTON_EULER("""sec. 3, loop of H φ M  tip to base
    printed  f(0) = 0; for k = 1 … n: f(k) = φ(k,k-1) f(k-1) + M(k) α(k), T(k) = H(k) f(k)
    holds    the loop leaves f = φ M α and τ = H φ M α
""")
def _(case: Case) -> Errors:
    alpha = drawn(case, BODY)
    f = forces(case, dict(enumerate(split(case, alpha, BODY))))
    moments = {k: case.block(H, k) @ f[k] for k in case.outward}
    yield stacked(case, f), case.matrix(phi @ M) @ alpha
    yield stacked(case, moments), case.matrix(H @ phi @ M) @ alpha
