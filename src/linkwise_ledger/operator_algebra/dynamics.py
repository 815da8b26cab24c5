"""The operator algebra, section 2: the Jacobian operator.

The operator algebra, section 3: the dynamics of a robot by operators.
"""

from __future__ import annotations

import numpy as np

from linkwise.algebra.dense import Dense
from linkwise.algebra.space import BODY, JOINT, NODE
from linkwise.algebra.symbols import B, E_phi, H, J, M, V, a, b, bias, mass, phi
from linkwise.model.hinges import Pin
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.recursion import (
    accelerations,
    at_tip,
    drawn,
    forces,
    inward,
    moved,
    outward,
    paths,
    rate,
    split,
    stacked,
    weightless,
)
from linkwise_ledger.section import Section
from linkwise_ledger.standard import (
    check_inertia,
    check_mass_by_energy,
    check_resolvent,
    check_shift,
    check_transition,
)


def _tip_velocity(case: Case, v: Array) -> Array:
    """V(0) = φ*(1, 0) V(1), with V of the recursion."""
    body, shift = at_tip(case)
    return shift.T @ accelerations(case, v)[body]


def _check_velocities(case: Case) -> float:
    return apart(stacked(case, accelerations(case, case.v)), case.matrix(V))


def _check_tip_velocity(case: Case) -> float:
    return apart(_tip_velocity(case, case.v), case.matrix(J) @ case.v)


def jacobian_by_loops(case: Case) -> Array:
    """Columns of the Jacobian: the tip velocity for each unit joint velocity."""
    return np.array([_tip_velocity(case, unit) for unit in np.eye(case.mech.nv)]).T


SCAN = "The scan has lost all Greek and script letters; they are restored here."

JACOBIAN = Section()
JACOBIAN("""sec. 2, velocities  velocities of the links by recursion
    printed  V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) θ̇(k);  V(0) = φ*(1,0) V(1)
    holds    V(k) = φ*(p,k) V(p) + H*(k) v(k) leaves φ* H* v, and B* φ* H* v at the tip
    note     The scan has lost all Greek and script letters; they are restored here.
""")(lambda case: max(_check_velocities(case), _check_tip_velocity(case)))


@JACOBIAN("""sec. 2, H(k)  hinge map of a revolute joint
    printed  H(k) = [h*(k) 0 0 0], h(k) the unit vector of the joint axis
    means    the hinge map of a pin, at its axis
    note     Checks use every hinge; ours is about the body frame, wherever that is.
""")
def _(case: Case) -> Errors:
    yield 0.0
    for body in case.mech.bodies:
        if isinstance(body.hinge, Pin):
            row = body.hinge.hinge_map(case.q[case.mech.q_slice(body.hinge_name)])[0]
            yield abs(float(np.linalg.norm(row[:3])) - 1.0)
            yield float(np.abs(row[3:]).max())


JACOBIAN("""sec. 2, φ(k+1, k)  Jacobian across a rigid link
    printed  φ(k+1,k) = [[I, l̃(k+1,k)], [0, I]]
    means    rot_p φ(p,k) rot_k* = [[I, l̃], [0, I]], in world axes
    note     Ours carries the rotation between the axes of the two bodies too.
""")(check_shift)


@JACOBIAN("""sec. 2, V(k) as a sum  the recursion, summed
    printed  V(k) = Σ φ*(i,k) H*(i) θ̇(i), i = k … n
    holds    V(k) = Σ φ*(i,k) H*(i) v(i), over the bodies i from the base to k
""")
def _(case: Case) -> float:
    given, matrix = split(case, case.v, JOINT), {k: np.zeros(6) for k in case.outward}
    for i, k in paths(case):
        matrix[k] = matrix[k] + case.block(phi, i, k).T @ case.block(H, i).T @ given[i]
    return apart(stacked(case, matrix), stacked(case, accelerations(case, case.v)))


JACOBIAN("""sec. 2, properties of φ(i, j)  φ(i, j) is a transition matrix
    printed  φ(i,i) = I,  φ(i,j) φ(j,k) = φ(i,k),  φ⁻¹(i,j) = φ(j,i)
    holds    φ(i,i) = I, φ(i,j) φ(j,k) = φ(i,k), φ⁻¹(i,j) the shift back, for bodies on one path to
             the base
""")(check_transition)
JACOBIAN.unchecked("""sec. 2, H  hinge map
    printed  H* = diag[H*(1) … H*(n)]
    means    H is memoryless
""")


@JACOBIAN("""sec. 2, B  pick-off of the tip
    printed  B* = [φ*(1,0), 0 … 0]
    means    B* has the shift to the node at the body that has it, and zeros
""")
def _(case: Case) -> float:
    body, shift = at_tip(case)
    expected = np.zeros_like(case.matrix(B))
    expected[case.dense.slices(BODY)[body]] = shift
    return apart(case.matrix(B), expected)


JACOBIAN("""sec. 2, φ  propagation operator
    printed  φ has the blocks φ(i,j), I on the diagonal, lower triangular
    means    φ has the blocks φ(i,j), products of the steps between j and i
    note     Lower triangular there, since links are numbered from the tip; upper here.
""")(check_resolvent)
JACOBIAN("""(2.1)  Jacobian operator
    printed  V(0) = J θ̇,  J = B* φ* H*
    holds    B* φ* H* has the tip velocities of unit joint velocities as columns
""")(lambda case: (case.matrix(J), jacobian_by_loops(case)))


@JACOBIAN("""sec. 2, dual  joint moments of a force at the tip
    printed  T = J* f(0) = H φ B f(0)
    holds    H φ B f has the power that f has at the tip, for every motion
""")
def _(case: Case) -> float:
    f = drawn(case, NODE)
    return apart(case.matrix(H @ phi @ B) @ f, jacobian_by_loops(case).T @ f)


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
    note     Against the Newton-Euler loops. Gravity, left out in the paper, is an acceleration
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
    mech, v, computed = case.mech, case.v, case.matrix(bias)

    def inertia(q: Array) -> Array:
        return Dense(mech, q)(mass)

    mass_rate = rate(lambda t: inertia(mech.integrate(case.q, v, t)))
    if mech.nq == mech.nv and np.array_equal(mech.qdot(case.q, v), v):
        units = np.eye(mech.nv)
        slopes = [rate(lambda t, e=e: v @ inertia(case.q + t * e) @ v) for e in units]
        return apart(computed, mass_rate @ v - 0.5 * np.array(slopes))
    return apart(computed @ v, 0.5 * v @ mass_rate @ v)


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
    note     Derivatives in the axes of the body here, in inertial axes in the paper; a and b
             differ accordingly.
""")
def _(case: Case) -> float:
    case, vdot = weightless(case), drawn(case, JOINT)
    computed = stacked(case, link_accelerations(case, vdot))
    velocities = phi.T @ H.T
    return apart(computed, rate(lambda t: moved(case, t)(velocities) @ (case.v + t * vdot)))


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
