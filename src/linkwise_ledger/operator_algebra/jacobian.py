"""Document 000, section 2: the Jacobian operator."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.space import BODY, JOINT, NODE
from linkwise.algebra.symbols import B, H, J, V, phi
from linkwise.model.hinges import Pin
from linkwise.spatial.array import Array
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.literal import drawn, split, stacked
from linkwise_ledger.recursion import accelerations, at_tip, paths
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_resolvent, check_shift, check_transition


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
    given, found = split(case, case.v, JOINT), {k: np.zeros(6) for k in case.outward}
    for i, k in paths(case):
        found[k] = found[k] + case.block(phi, i, k).T @ case.block(H, i).T @ given[i]
    return apart(stacked(case, found), stacked(case, accelerations(case, case.v)))


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
