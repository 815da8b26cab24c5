"""JPL 88-11, section 3: the equations of section 2 as operators.

Both readings are tried: operators stacked from the blocks of section 2, in world axes, on arms of
pins and slides that move; and Linkwise's own, in the axes of the bodies, on trees of any hinges.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.symbols import B, H, J, V, a, a_g, phi
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import unskew
from linkwise.spatial.vector import cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.jpl_88_11.links import Operators, on_pins, on_slides, rows, tip_acceleration
from linkwise_ledger.jpl_88_11.motion import (
    Motion,
    first,
    picture,
    pins,
    second,
    shift,
    slides,
    times,
)
from linkwise_ledger.recursion import drawn
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_shift, check_transition

GRAVITY = np.array([0.0, 0.0, -9.8])
UP = np.concatenate([np.zeros(3), -GRAVITY])


def moving(case: Case) -> list[tuple[Motion, Operators]]:
    """The arms of pins, and of pins and slides, with their operators in world axes."""
    return [(pins(case), on_pins(case)), (slides(case), on_slides(case))]


# ----------------------------------------------------------------------------- kinematics


def _velocities(x: Motion) -> Array:
    return six(x.w, x.v).ravel()


def accelerations(x: Motion) -> Array:
    """α by differences, stacked."""
    return six(x.w_dot, x.v_dot).ravel()


def _summed(x: Motion, local: list[Array]) -> Array:
    """Σ_i φᵀ(i,k) x(i), i = k ... N, stacked."""
    matrix = np.zeros((x.n, 6))
    for k in range(x.n):
        i = k
        while i >= 0:
            matrix[k] += shift(x.O[k] - x.O[i]).T @ local[i]
            i = int(x.parent[i])
    return matrix.ravel()


@cache
def seen(case: Case) -> tuple[Array, Array, Array, Array]:
    """Velocities and accelerations of the bodies of a case and of its node, from their poses.

    In the axes of the bodies, at their frames: (ω, v), and its derivative (ω̇, v̇ - ω × v).
    """
    mech, rate = case.mech, drawn(case, H.range)
    shots = [mech.integrate(case.q, case.v * t + 0.5 * rate * t * t) for t in times()]
    poses = [mech.poses(q) for q in shots]
    tips = [mech.pose(q, case.node) for q in shots]
    bodies = _twists([x.rot for x in poses], [x.p for x in poses])
    node = _twists([x.rot for x in tips], [x.p for x in tips])
    return (*bodies, *node)


def _twists(rot: list[Array], p: list[Array]) -> tuple[Array, Array]:
    back = np.swapaxes(rot[4], -1, -2)
    w, w_dot = unskew(first(rot) @ back), unskew(second(rot) @ back)
    v, v_dot = first(p), second(p)
    velocity = np.stack([w, v], axis=-2) @ rot[4]
    acceleration = np.stack([w_dot, v_dot - cross(w, v)], axis=-2) @ rot[4]
    return velocity.ravel(), acceleration.ravel()


def check_tip_acceleration(case: Case) -> float:
    """α(0) by differences; in the axes of the bodies gravity is taken out of a."""
    still = case.matrix(a) - case.matrix(a_g)
    given = drawn(case, H.range)
    out = (case.matrix(phi) @ case.matrix(B)).T
    computed = out @ (case.matrix(H).T @ given + still)
    errors = [apart(computed, seen(case)[3])]
    for x, at in moving(case):
        computed = at.J @ at.theta_ddot + at.B.T @ at.phi.T @ at.a + tip_acceleration(x)
        errors.append(apart(computed, six(x.w_dot[x.tip_link], x.v_tip_dot)))
    return max(errors)


def check_jacobian_rate(case: Case) -> float:
    """J̇ by differences of J itself, in world axes."""
    errors: list[float] = []
    for x, at in moving(case):
        J_dot = first([_jacobian(x, t) for t in times()])
        bias_ = at.B.T @ at.phi.T @ at.a + tip_acceleration(x)
        errors.append(apart(J_dot @ at.theta_dot, bias_))
        total = at.J @ at.theta_ddot + J_dot @ at.theta_dot
        errors.append(apart(total, six(x.w_dot[x.tip_link], x.v_tip_dot)))
    return max(errors)


def _jacobian(x: Motion, t: float) -> Array:
    """J at the time t: a turn about h(k), or a travel along it, for all joints inboard of O(0)."""
    now = picture(x.mech, x.q_at(t), x.node)
    matrix = np.zeros((6, x.n))
    for k in range(x.n):
        if x.tip_link in x.beyond(k):
            h, none = now.h[k], np.zeros(3)
            turned = six(h, cross(h, now.tip - now.O[k]))
            matrix[:, k] = six(none, h) if x.is_slide(k) else turned
    return matrix


SECTION_3 = Section()
SECTION_3("""(3.1)  shift between two points
    printed  φ(i,j) = [[I, ℓ̃(i,j)], [0, I]], ℓ(i,j) = O(j) - O(i)
    means    φ(k,i), which carries the turn between the axes of the bodies as well
""")(check_shift)


@SECTION_3("""(3.2)  group properties
    holds    φ(i,i) = I; φ⁻¹(i,j) = φ(j,i); φ(i,k) φ(k,j) = φ(i,j)
""")
def _(case: Case) -> Errors:
    """In world axes between any two points, on one path or not; in body axes along paths."""
    points = pins(case).O
    yield check_transition(case)
    for i in points:
        yield shift(i - i), np.eye(6)
        for j in points:
            yield np.linalg.inv(shift(j - i)), shift(i - j)
            yield from ((shift(k - i) @ shift(j - k), shift(j - i)) for k in points)


@SECTION_3("""(3.3)  product of steps
    printed  φ(i,k) = φ(i,i-1) ... φ(k+1,k)
    holds    φ(i,k) = φ(i,c) ... φ(p,k), along the path
""")
def _(case: Case) -> Errors:
    for x, at in moving(case):
        for k in range(x.n):
            for j in x.beyond(k):
                yield at.phi[rows(k), rows(j)], shift(x.O[j] - x.O[k])


@SECTION_3("""(3.4)  the operator φ
    printed  φ = lower block triangle of φ(i,j), i ≥ j
    means    φ = (I - E_φ)⁻¹: φ(k,j) where j is k or beyond it
""")
def _(case: Case) -> float:
    matrix = case.matrix(phi)
    x = pins(case)
    expected = np.zeros_like(matrix)
    for k in range(x.n):
        for j in x.beyond(k):
            block = np.eye(6)
            i = j
            while i != k:
                block, i = case.dense.step[i].shift @ block, case.parent(i)
            expected[rows(k), rows(j)] = block
    return apart(matrix, expected)


SECTION_3.unchecked("""(3.5)  H, memoryless
    printed  H = diag[H(1), ..., H(N)]
    means    H
(3.6)  M, memoryless
    printed  M = diag[M(1), ..., M(N)]
    means    M
(3.7)  from the tip to the links
    printed  Bᵀ = [φᵀ(1,0), 0, ..., 0]
    means    B, from forces at the node to forces on bodies
    note     That Bᵀ V is the velocity of the tip is (3.13).
""")


@SECTION_3("""(3.8)  from the base to the links
    printed  E = [0, ..., 0, φᵀ(N+1,N)]
    instead  E = col[0, ..., 0, φᵀ(N+1,N)], so that E g = a_g
    note     A column is meant: as a row it cannot take g in (3.21), and its transpose, which can,
             has φ for φᵀ. Compare (3.7), where the transpose is on the left.
""")
def _(case: Case) -> float:
    E = np.zeros((6 * case.mech.n_bodies, 6))
    for k in case.outward:
        if case.parent(k) < 0:
            E[rows(k)] = case.dense.step[k].shift.T
    return apart(E @ six(np.zeros(3), -case.mech.gravity), case.matrix(a_g))


@SECTION_3.as_printed
def _(case: Case) -> float:
    """Printed as a row (6, 6 N), only its transpose can take g: it has φ in place of φᵀ."""
    x = pins(case)
    row = np.hstack([shift(x.arm[k]).T * (x.parent[k] < 0) for k in range(x.n)])
    return apart(row.T @ UP, on_pins(case).E @ UP)


SECTION_3.unchecked("""(3.9)  stacked vectors
    printed  V, θ, T = col[...]
    means    V, q and v, τ
(3.10)  stacked vectors
    printed  a, α, f, b = col[...]
    means    a, α, f, b
""")


@SECTION_3("""(3.11)  velocities, summed
    printed  V(k) = Σ_{i=k..N} φᵀ(i,k) Hᵀ(i) θ̇(i)
    holds    V_k = Σ φ*(i,k) H_i* v_i over k and what it hangs on
""")
def _(case: Case) -> Errors:
    for x, at in moving(case):
        added = [at.H.T[rows(i), :] @ at.theta_dot for i in range(x.n)]
        computed = _summed(x, added)
        yield computed, _velocities(x)


@SECTION_3("""(3.12)  velocities, as operators
    printed  V = φᵀ Hᵀ θ̇
    holds    V = φ* H* v
    note     Against poses differentiated with respect to time, on any hinges.
""")
def _(case: Case) -> Errors:
    yield from ((at.phi.T @ at.H.T @ at.theta_dot, _velocities(x)) for x, at in moving(case))
    yield case.matrix(V), seen(case)[0]


@SECTION_3("""(3.13)  the Jacobian
    printed  V(0) = J θ̇; J = Bᵀ φᵀ Hᵀ
    holds    J = B* φ* H*
    note     Against poses differentiated with respect to time, on any hinges.
""")
def _(case: Case) -> Errors:
    yield case.matrix(J) @ case.v, seen(case)[2]
    for x, at in moving(case):
        yield at.J @ at.theta_dot, six(x.w[x.tip_link], x.v_tip)


@SECTION_3("""(3.14)  accelerations, summed
    printed  α(k) = Σ_{i=k..N} φᵀ(i,k) [Hᵀ(i) θ̈(i) + a(i)]
    holds    α_k = Σ φ*(i,k) (H_i* v̇_i + a_i) over k and what it hangs on
""")
def _(case: Case) -> Errors:
    for x, at in moving(case):
        added = [at.H.T[rows(i), :] @ at.theta_ddot + at.a[rows(i)] for i in range(x.n)]
        yield _summed(x, added), accelerations(x)


@SECTION_3("""(3.15)  accelerations, as operators
    printed  α = φᵀ Hᵀ θ̈ + φᵀ a
    holds    α = φ* (H* v̇ + a)
    note     In inertial derivatives with a of (2.19); in the axes of the bodies with Linkwise's a
             less a_g, where α is (ω̇, v̇ - ω × v). Against poses differentiated twice, any hinges.
""")
def _(case: Case) -> Errors:
    still = case.matrix(a) - case.matrix(a_g)
    given = drawn(case, H.range)
    computed = case.matrix(phi).T @ (case.matrix(H).T @ given + still)
    yield computed, seen(case)[1]
    for x, at in moving(case):
        computed = at.phi.T @ at.H.T @ at.theta_ddot + at.phi.T @ at.a
        yield computed, accelerations(x)
