"""Document 001, section 3: the equations of section 2 as operators.

Both readings are tried: operators stacked from the blocks of section 2, in world axes, on arms of
pins and slides that move; and Linkwise's own, in the axes of the bodies, on trees of any hinges.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.expr import Expr
from linkwise.algebra.symbols import B, H, J, M, V, a, a_g, b, bias, f, mass, phi, tau, vdot
from linkwise.ledger.case import Case, apart
from linkwise.ledger.document_001 import newton_euler
from linkwise.ledger.document_001.links import tip_acceleration
from linkwise.ledger.document_001.motion import (
    STEP,
    Motion,
    first,
    picture,
    pins,
    second,
    shift,
    slides,
    times,
)
from linkwise.ledger.document_001.operators import Operators, on_pins, on_slides, rows
from linkwise.ledger.entry import Check, Entry, definition, holds, misprint
from linkwise.ledger.literal import drawn, each
from linkwise.ledger.standard import check_shift, check_transition
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import unskew
from linkwise.spatial.vector import cross, six


def moving(case: Case) -> list[tuple[Motion, Operators]]:
    """The arms of pins, and of pins and slides, with their operators in world axes."""
    return [(pins(case), on_pins(case)), (slides(case), on_slides(case))]


# ----------------------------------------------------------------------------- kinematics


def _group(case: Case) -> float:
    """In world axes between any two points, on one path or not; in body axes along paths."""
    O, errors = pins(case).O, [check_transition(case)]  # noqa: N806
    for i in O:
        errors.append(apart(shift(i - i), np.eye(6)))
        for j in O:
            errors.append(apart(np.linalg.inv(shift(j - i)), shift(i - j)))
            errors += [apart(shift(k - i) @ shift(j - k), shift(j - i)) for k in O]
    return max(errors)


def _products(case: Case) -> float:
    """Products of the steps between two links are the shift between their points."""
    errors: list[float] = []
    for x, at in moving(case):
        for k in range(x.n):
            for j in x.beyond(k):
                errors.append(apart(at.phi[rows(k), rows(j)], shift(x.O[j] - x.O[k])))
    return max(errors)


def _triangular(case: Case) -> float:
    """I on the diagonal, φ(k, j) for the links j beyond k, nothing elsewhere."""
    whole = case.matrix(phi)
    x = pins(case)
    expected = np.zeros_like(whole)
    for k in range(x.n):
        for j in x.beyond(k):
            block = np.eye(6)
            i = j
            while i != k:
                block, i = case.dense.step[i].shift @ block, case.parent(i)
            expected[rows(k), rows(j)] = block
    return apart(whole, expected)


def _velocities(x: Motion) -> Array:
    return six(x.w, x.v).ravel()


def _accelerations(x: Motion) -> Array:
    return six(x.w_dot, x.v_dot).ravel()


def _sums(case: Case) -> float:
    """Σ over link k and what it hangs on, written out."""
    errors: list[float] = []
    for x, at in moving(case):
        own = [at.H.T[rows(i), :] @ at.theta_dot for i in range(x.n)]
        found = _summed(x, own)
        errors.append(apart(found, _velocities(x)))
    return max(errors)


def _summed(x: Motion, own: list[Array]) -> Array:
    """Σ_i φᵀ(i,k) x(i), i = k ... N, stacked."""
    found = np.zeros((x.n, 6))
    for k in range(x.n):
        i = k
        while i >= 0:
            found[k] += shift(x.O[k] - x.O[i]).T @ own[i]
            i = int(x.parent[i])
    return found.ravel()


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


def _velocity(case: Case) -> float:
    in_world = [apart(at.phi.T @ at.H.T @ at.theta_dot, _velocities(x)) for x, at in moving(case)]
    return max(apart(case.matrix(V), seen(case)[0]), *in_world)


def _tip_velocity(case: Case) -> float:
    errors = [apart(case.matrix(J) @ case.v, seen(case)[2])]
    for x, at in moving(case):
        errors.append(apart(at.J @ at.theta_dot, six(x.w[x.tip_link], x.v_tip)))
    return max(errors)


def _acceleration_sums(case: Case) -> float:
    errors: list[float] = []
    for x, at in moving(case):
        own = [at.H.T[rows(i), :] @ at.theta_ddot + at.a[rows(i)] for i in range(x.n)]
        errors.append(apart(_summed(x, own), _accelerations(x)))
    return max(errors)


def _acceleration(case: Case) -> float:
    """In the axes of the bodies gravity is in a, and is taken out."""
    still = case.matrix(a) - case.matrix(a_g)
    given = drawn(case, H.range)
    found = case.matrix(phi).T @ (case.matrix(H).T @ given + still)
    errors = [apart(found, seen(case)[1])]
    for x, at in moving(case):
        found = at.phi.T @ at.H.T @ at.theta_ddot + at.phi.T @ at.a
        errors.append(apart(found, _accelerations(x)))
    return max(errors)


def _tip_acceleration(case: Case) -> float:
    still = case.matrix(a) - case.matrix(a_g)
    given = drawn(case, H.range)
    out = (case.matrix(phi) @ case.matrix(B)).T
    found = out @ (case.matrix(H).T @ given + still)
    errors = [apart(found, seen(case)[3])]
    for x, at in moving(case):
        found = at.J @ at.theta_ddot + at.B.T @ at.phi.T @ at.a + tip_acceleration(x)
        errors.append(apart(found, six(x.w_dot[x.tip_link], x.v_tip_dot)))
    return max(errors)


def _jacobian_rate(case: Case) -> float:
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
    found = np.zeros((6, x.n))
    for k in range(x.n):
        if x.tip_link in x.beyond(k):
            h, none = now.h[k], np.zeros(3)
            turned = six(h, cross(h, now.tip - now.O[k]))
            found[:, k] = six(none, h) if x.is_slide(k) else turned
    return found


# -------------------------------------------------------------------------------- dynamics


def _forces(x: Motion) -> Array:
    return six(x.N, x.F).ravel()


def _force_sums(case: Case) -> float:
    """Σ over the links beyond joint k, written out."""
    errors: list[float] = []
    for x, at in moving(case):
        inertial = at.M @ _accelerations(x) + at.b
        found = np.zeros((x.n, 6))
        for k in range(x.n):
            for j in x.beyond(k):
                tip = shift(x.tip - x.O[j]) @ x.f_tip if j == x.tip_link else np.zeros(6)
                found[k] += shift(x.O[j] - x.O[k]) @ (inertial[rows(j)] + tip)
        errors += [apart(found.ravel(), _forces(x)), apart(at.H @ found.ravel(), at.T)]
    return max(errors)


def _stacked_forces(case: Case) -> float:
    errors: list[float] = []
    for x, at in moving(case):
        alpha = at.phi.T @ at.H.T @ at.theta_ddot + at.phi.T @ at.a
        found = at.phi @ (at.M @ alpha + at.b + at.B @ x.f_tip)
        errors += [apart(found, _forces(x)), apart(at.H @ found, newton_euler.by_operators(x))]
    return max(errors)


def _joint_forces(case: Case) -> float:
    """(3.19) in world axes, against the balance of forces and against Linkwise's operators."""
    errors: list[float] = []
    for x, at in moving(case):
        free = at.M @ at.phi.T @ at.a + at.b + at.B @ x.f_tip
        apart_ = at.H @ at.phi @ at.M @ at.phi.T @ at.H.T @ at.theta_ddot + at.H @ at.phi @ free
        inside = at.M @ at.phi.T @ (at.H.T @ at.theta_ddot + at.a) + at.b + at.B @ x.f_tip
        once = at.H @ at.phi @ inside
        errors += [apart(apart_, at.H @ _forces(x)), apart(once, newton_euler.by_operators(x))]
    return max(errors)


def _mass_and_bias(case: Case) -> float:
    """The operators of the document, in world axes, give the 𝓜, C and J* of Linkwise."""
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


GRAVITY = np.array([0.0, 0.0, -9.8])
UP = np.concatenate([np.zeros(3), -GRAVITY])


def _gravity(case: Case) -> float:
    """Against the slope of the potential energy; and Linkwise's a_g, with gravity of its own."""
    errors: list[float] = []
    for x, at in moving(case):
        found = at.H @ at.phi @ at.M @ at.phi.T @ (at.E @ UP)
        errors.append(apart(found, newton_euler.slope_of_potential_energy(x, GRAVITY)))
    weights = case.matrix(H @ phi @ M @ phi.T @ a_g)
    return max(*errors, apart(weights, _slope(case)))


def _slope(case: Case) -> Array:
    mech = case.mech

    def energy(v: Array) -> Array:
        com = mech.center_of_mass(mech.integrate(case.q, v))
        return np.asarray(-mech.total_mass * mech.gravity @ com)

    return np.array([first([energy(STEP * i * e) for i in range(-4, 5)]) for e in np.eye(mech.nv)])


def _base(case: Case) -> float:
    """E g, E a column, is what Linkwise calls a_g."""
    E = np.zeros((6 * case.mech.n_bodies, 6))
    for k in case.outward:
        if case.parent(k) < 0:
            E[rows(k)] = case.dense.step[k].shift.T
    return apart(E @ six(np.zeros(3), -case.mech.gravity), case.matrix(a_g))


def _base_printed(case: Case) -> float:
    """Printed as a row (6, 6 N), only its transpose can take g: it has φ in place of φᵀ."""
    x = pins(case)
    row = np.hstack([shift(x.arm[k]).T * (x.parent[k] < 0) for k in range(x.n)])
    return apart(row.T @ UP, on_pins(case).E @ UP)


def _with_our_own(left: Expr, right: Expr, in_world: Check) -> Check:
    """The check in world axes, and that two expressions in Linkwise's operators are equal."""

    def check(case: Case) -> float:
        return max(in_world(case), case.residual(left, right))

    return check


MOVED = phi.T @ H.T @ vdot + phi.T @ a
"""α of (3.15)."""

BIAS_TORQUE = H @ phi @ (M @ phi.T @ a + b + B @ f)
"""T̂ of (3.23)."""


SECTION_3: tuple[Entry, ...] = (
    definition(
        "(3.1)",
        "shift between two points",
        "φ(i,j) = [[I, ℓ̃(i,j)], [0, I]], ℓ(i,j) = O(j) - O(i)",
        "φ(k,i), which carries the turn between the axes of the bodies as well",
        check_shift,
    ),
    holds(
        "(3.2)",
        "group properties",
        "φ(i,i) = I; φ⁻¹(i,j) = φ(j,i); φ(i,k) φ(k,j) = φ(i,j)",
        "the same",
        _group,
    ),
    holds(
        "(3.3)",
        "product of steps",
        "φ(i,k) = φ(i,i-1) ... φ(k+1,k)",
        "φ(i,k) = φ(i,c) ... φ(p,k), along the path",
        _products,
    ),
    definition(
        "(3.4)",
        "the operator φ",
        "φ = lower block triangle of φ(i,j), i ≥ j",
        "φ = (I - E_φ)⁻¹: φ(k,j) where j is k or beyond it",
        _triangular,
    ),
    definition("(3.5)", "H, memoryless", "H = diag[H(1), ..., H(N)]", "H"),
    definition("(3.6)", "M, memoryless", "M = diag[M(1), ..., M(N)]", "M"),
    definition(
        "(3.7)",
        "from the tip to the links",
        "Bᵀ = [φᵀ(1,0), 0, ..., 0]",
        "B, from forces at the node to forces on bodies",
        note="That Bᵀ V is the velocity of the tip is (3.13).",
    ),
    misprint(
        "(3.8)",
        "from the base to the links",
        "E = [0, ..., 0, φᵀ(N+1,N)]",
        "E = col[0, ..., 0, φᵀ(N+1,N)], so that E g = a_g",
        _base,
        _base_printed,
        note="A column is meant: as a row it cannot take g in (3.21), and its transpose, which "
        "can, has φ for φᵀ. Compare (3.7), where the transpose is on the left.",
    ),
    definition("(3.9)", "stacked vectors", "V, θ, T = col[...]", "V, q and v, τ"),
    definition("(3.10)", "stacked vectors", "a, α, f, b = col[...]", "a, α, f, b"),
    holds(
        "(3.11)",
        "velocities, summed",
        "V(k) = Σ_{i=k..N} φᵀ(i,k) Hᵀ(i) θ̇(i)",
        "V_k = Σ φ*(i,k) H_i* v_i over k and what it hangs on",
        _sums,
    ),
    holds(
        "(3.12)",
        "velocities, as operators",
        "V = φᵀ Hᵀ θ̇",
        "V = φ* H* v",
        _velocity,
        note="Against poses differentiated with respect to time, on any hinges.",
    ),
    holds(
        "(3.13)",
        "the Jacobian",
        "V(0) = J θ̇; J = Bᵀ φᵀ Hᵀ",
        "J = B* φ* H*",
        _tip_velocity,
        note="Against poses differentiated with respect to time, on any hinges.",
    ),
    holds(
        "(3.14)",
        "accelerations, summed",
        "α(k) = Σ_{i=k..N} φᵀ(i,k) [Hᵀ(i) θ̈(i) + a(i)]",
        "α_k = Σ φ*(i,k) (H_i* v̇_i + a_i) over k and what it hangs on",
        _acceleration_sums,
    ),
    holds(
        "(3.15)",
        "accelerations, as operators",
        "α = φᵀ Hᵀ θ̈ + φᵀ a",
        "α = φ* (H* v̇ + a)",
        _acceleration,
        note="In inertial derivatives with a of (2.19); in the axes of the bodies with Linkwise's "
        "a less a_g, where α is (ω̇, v̇ - ω × v). Against poses differentiated twice, any hinges.",
    ),
    holds(
        "(3.16)",
        "forces, summed",
        "f(k) = Σ_{j=1..k} φ(k,j) [M(j) α(j) + b(j) + δ(j,1) φ(1,0) f(0)]; T(k) = H(k) f(k)",
        "f_k = Σ φ(k,j) (M_j α_j + b_j + B_j f) over k and all beyond it; τ = H f",
        _force_sums,
    ),
    holds(
        "(3.17)",
        "forces, as operators",
        "f = φ (M α + b + B f(0)); T = H f; α = φᵀ Hᵀ θ̈ + φᵀ a",
        "the same",
        _stacked_forces,
    ),
    holds(
        "sec. 3, tip acceleration",
        "from (2.27)",
        "α(0) = Bᵀ φᵀ Hᵀ θ̈ + Bᵀ φᵀ a + a(0)",
        "α_B = J v̇ + B* φ* a in the axes of the bodies",
        _tip_acceleration,
    ),
    holds(
        "sec. 3, rate of the Jacobian",
        "by comparison with α(0) = J θ̈ + J̇ θ̇",
        "J̇ θ̇ = Bᵀ φᵀ a + a(0)",
        "the same, in inertial derivatives",
        _jacobian_rate,
        note="J̇ is J itself, written down from geometry, differentiated with respect to time.",
    ),
    holds(
        "(3.18)",
        "joint forces",
        "T = H φ [M α + b + B f(0)]; α = φᵀ Hᵀ θ̈ + φᵀ a",
        "the same",
        _with_our_own(
            H @ phi @ (M @ MOVED + b + B @ f), mass @ vdot + bias + J.T @ f, _stacked_forces
        ),
    ),
    holds(
        "(3.19)",
        "joint forces by accelerations of the joints",
        "T = H φ M φᵀ Hᵀ θ̈ + H φ [M φᵀ a + b + B f(0)] = H φ [M φᵀ (Hᵀ θ̈ + a) + b + B f(0)]",
        "the same",
        _with_our_own(
            H @ phi @ M @ phi.T @ H.T @ vdot + BIAS_TORQUE,
            H @ phi @ (M @ phi.T @ (H.T @ vdot + a) + b + B @ f),
            _joint_forces,
        ),
    ),
    holds(
        "(3.20)",
        "equations of motion",
        "T = 𝓜 θ̈ + C + Jᵀ f(0); 𝓜 = H φ M φᵀ Hᵀ; C = H φ (M φᵀ a + b); Jᵀ = H φ B",
        "τ = 𝓜 v̇ + C + J* f",
        _with_our_own(
            H @ phi @ (M @ MOVED + b + B @ f), mass @ vdot + bias + J.T @ f, _mass_and_bias
        ),
        note="½ θ̇* 𝓜 θ̇ is the kinetic energy as well.",
    ),
    holds(
        "(3.21)",
        "gravity",
        "a → a + E g, gᵀ = (0ᵀ, 9.8 e₃ᵀ)",
        "a = ... + a_g",
        _gravity,
        note="E a column, see (3.8). Against the slope of the potential energy.",
    ),
    holds(
        "(3.22)",
        "bias-free dynamics",
        "𝓜 θ̈ = T', T' = T - T̂",
        "𝓜 v̇ = τ - C - J* f",
        _with_our_own(
            mass @ (mass.inv @ (tau - BIAS_TORQUE)), tau - (bias + J.T @ f), _mass_and_bias
        ),
    ),
    holds(
        "(3.23)",
        "bias forces at the joints",
        "T̂ = H φ [M φᵀ a + b + B f(0)] = C + Jᵀ f(0)",
        "the same",
        each((BIAS_TORQUE, bias + J.T @ f)),
    ),
)
