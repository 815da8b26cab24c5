"""JPL 88-11, section 3 from (3.16) on: forces as operators, and the equations of motion."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import B, H, J, M, a, a_g, b, bias, f, mass, phi, tau, vdot
from linkwise.spatial.array import Array
from linkwise.spatial.vector import six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Check, Errors
from linkwise_ledger.jpl_88_11.links import rows
from linkwise_ledger.jpl_88_11.motion import (
    STEP,
    Motion,
    by_operators,
    first,
    shift,
    slope_of_potential_energy,
)
from linkwise_ledger.jpl_88_11.section_3 import (
    GRAVITY,
    UP,
    accelerations,
    check_jacobian_rate,
    check_tip_acceleration,
    moving,
)
from linkwise_ledger.section import Section


def _forces(x: Motion) -> Array:
    return six(x.N, x.F).ravel()


def _joint_forces(case: Case) -> float:
    """(3.19) in world axes, against the balance of forces and against Linkwise's operators."""
    errors: list[float] = []
    for x, at in moving(case):
        free = at.M @ at.phi.T @ at.a + at.b + at.B @ x.f_tip
        apart_ = at.H @ at.phi @ at.M @ at.phi.T @ at.H.T @ at.theta_ddot + at.H @ at.phi @ free
        inside = at.M @ at.phi.T @ (at.H.T @ at.theta_ddot + at.a) + at.b + at.B @ x.f_tip
        once = at.H @ at.phi @ inside
        errors += [apart(apart_, at.H @ _forces(x)), apart(once, by_operators(x))]
    return max(errors)


def _mass_and_bias(case: Case) -> float:
    """The operators of the paper, in world axes, give the 𝓜, C and J* of Linkwise."""
    errors: list[float] = []
    for x, at in moving(case):
        rigid = at.H @ at.phi
        coriolis = rigid @ (at.M @ at.phi.T @ at.a + at.b)
        kinetic = 0.5 * at.theta_dot @ at.mass @ at.theta_dot
        errors += [
            apart(at.mass @ at.theta_ddot + coriolis + at.J.T @ x.f_tip, at.H @ _forces(x)),
            apart(kinetic, _kinetic_energy(x)),
            apart(at.J.T, rigid @ at.B),
        ]
    return max(errors)


def _kinetic_energy(x: Motion) -> float:
    """½ Σ m v² + ω* Iᶜ ω, from the centres of mass."""
    linear = (x.mass * (x.v_com**2).sum(axis=1)).sum()
    angular = np.einsum("ka,kab,kb->", x.w, x.I_com, x.w)
    return float(0.5 * (linear + angular))


def _slope(case: Case) -> Array:
    mech = case.mech

    def energy(v: Array) -> Array:
        com = mech.center_of_mass(mech.integrate(case.q, v))
        return np.asarray(-mech.total_mass * mech.gravity @ com)

    return np.array([first([energy(STEP * i * e) for i in range(-4, 5)]) for e in np.eye(mech.nv)])


def _with_our_own(left: Expr, right: Expr, in_world: Check) -> Check:
    """The check in world axes, and that two expressions in Linkwise's operators are equal."""

    def check(case: Case) -> float:
        return max(in_world(case), case.residual(left, right))

    return check


MOVED = phi.T @ H.T @ vdot + phi.T @ a
"""α of (3.15)."""

BIAS_TORQUE = H @ phi @ (M @ phi.T @ a + b + B @ f)
"""T̂ of (3.23)."""


MOTION_EQUATIONS = Section()


@MOTION_EQUATIONS("""(3.16)  forces, summed
    printed  f(k) = Σ_{j=1..k} φ(k,j) [M(j) α(j) + b(j) + δ(j,1) φ(1,0) f(0)]; T(k) = H(k) f(k)
    holds    f_k = Σ φ(k,j) (M_j α_j + b_j + B_j f) over k and all beyond it; τ = H f
""")
def _(case: Case) -> Errors:
    for x, at in moving(case):
        inertial = at.M @ accelerations(x) + at.b
        matrix = np.zeros((x.n, 6))
        for k in range(x.n):
            for j in x.beyond(k):
                tip = shift(x.tip - x.O[j]) @ x.f_tip if j == x.tip_link else np.zeros(6)
                matrix[k] += shift(x.O[j] - x.O[k]) @ (inertial[rows(j)] + tip)
        yield matrix.ravel(), _forces(x)
        yield at.H @ matrix.ravel(), at.T


@MOTION_EQUATIONS("""(3.17)  forces, as operators
    holds    f = φ (M α + b + B f(0)); T = H f; α = φᵀ Hᵀ θ̈ + φᵀ a
""")
def _stacked_forces(case: Case) -> float:
    errors: list[float] = []
    for x, at in moving(case):
        alpha = at.phi.T @ at.H.T @ at.theta_ddot + at.phi.T @ at.a
        computed = at.phi @ (at.M @ alpha + at.b + at.B @ x.f_tip)
        errors += [apart(computed, _forces(x)), apart(at.H @ computed, by_operators(x))]
    return max(errors)


MOTION_EQUATIONS("""sec. 3, tip acceleration  from (2.27)
    printed  α(0) = Bᵀ φᵀ Hᵀ θ̈ + Bᵀ φᵀ a + a(0)
    holds    α_B = J v̇ + B* φ* a in the axes of the bodies
""")(check_tip_acceleration)
MOTION_EQUATIONS("""sec. 3, rate of the Jacobian  by comparison with α(0) = J θ̈ + J̇ θ̇
    printed  J̇ θ̇ = Bᵀ φᵀ a + a(0)
    holds    the same, in inertial derivatives
    note     J̇ is J itself, written down from geometry, differentiated with respect to time.
""")(check_jacobian_rate)
MOTION_EQUATIONS("""(3.18)  joint forces
    holds    T = H φ [M α + b + B f(0)]; α = φᵀ Hᵀ θ̈ + φᵀ a
""")(
    _with_our_own(H @ phi @ (M @ MOVED + b + B @ f), mass @ vdot + bias + J.T @ f, _stacked_forces)
)
MOTION_EQUATIONS("""(3.19)  joint forces by accelerations of the joints
    holds    T = H φ M φᵀ Hᵀ θ̈ + H φ [M φᵀ a + b + B f(0)] = H φ [M φᵀ (Hᵀ θ̈ + a) + b + B f(0)]
""")(
    _with_our_own(
        H @ phi @ M @ phi.T @ H.T @ vdot + BIAS_TORQUE,
        H @ phi @ (M @ phi.T @ (H.T @ vdot + a) + b + B @ f),
        _joint_forces,
    )
)
MOTION_EQUATIONS("""(3.20)  equations of motion
    printed  T = 𝓜 θ̈ + C + Jᵀ f(0); 𝓜 = H φ M φᵀ Hᵀ; C = H φ (M φᵀ a + b); Jᵀ = H φ B
    holds    τ = 𝓜 v̇ + C + J* f
    note     ½ θ̇* 𝓜 θ̇ is the kinetic energy as well.
""")(_with_our_own(H @ phi @ (M @ MOVED + b + B @ f), mass @ vdot + bias + J.T @ f, _mass_and_bias))


@MOTION_EQUATIONS("""(3.21)  gravity
    printed  a → a + E g, gᵀ = (0ᵀ, 9.8 e₃ᵀ)
    holds    a = ... + a_g
    note     E a column, see (3.8). Against the slope of the potential energy.
""")
def _(case: Case) -> Errors:
    for x, at in moving(case):
        computed = at.H @ at.phi @ at.M @ at.phi.T @ (at.E @ UP)
        yield computed, slope_of_potential_energy(x, GRAVITY)
    weights = case.matrix(H @ phi @ M @ phi.T @ a_g)
    yield weights, _slope(case)


MOTION_EQUATIONS("""(3.22)  bias-free dynamics
    printed  𝓜 θ̈ = T', T' = T - T̂
    holds    𝓜 v̇ = τ - C - J* f
    note     Section 6 refers to it as (3.21).
""")(_with_our_own(mass @ (mass.inv @ (tau - BIAS_TORQUE)), tau - (bias + J.T @ f), _mass_and_bias))
MOTION_EQUATIONS.algebra("""(3.23)  bias forces at the joints
    holds    H φ (M φ* a + b + B f) = C + J* f
""")
