"""Object level, section 2: dynamics in operational space, and control of motion and force."""

from __future__ import annotations

import numpy as np

from linkwise.spatial.array import Array
from linkwise.spatial.rotation import random_rotation
from linkwise.spatial.vector import blocks
from linkwise_ledger.case import apart
from linkwise_ledger.grasp import solved
from linkwise_ledger.jpl_88_11.motion import FIRST
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import mini, pair
from linkwise_ledger.section import Section


def inertia(m: Manipulator) -> Array:
    """Λ(x) of (2)."""
    back = inverted(m.J)
    return back.T @ m.A @ back


def inertia_0(m: Manipulator) -> Array:
    """Λ_0(x) of (6)."""
    back = inverted(m.J_0)
    return back.T @ m.A @ back


def selection(m: Manipulator) -> Array:
    """Ω: motion along two directions and about one, forces along and about the others."""
    rng = np.random.default_rng((m.seed, 21))
    along, about = random_rotation(rng), random_rotation(rng)
    zero = np.zeros((3, 3))
    moved, turned = along.T @ np.diag([1, 1, 0]) @ along, about.T @ np.diag([0, 0, 1]) @ about
    return blocks(moved, zero, zero, turned)


def lagrange(m: Manipulator) -> Array:
    """μ(x, ẋ) from the partial derivatives of Λ(x): Λ̇ ẋ - ½ ∂(ẋᵀ Λ ẋ)/∂x."""
    back = inverted(m.seen_jacobian)
    x_dot = m.seen_jacobian @ m.v

    def along(velocity: Array) -> Array:
        states, h = m.moved(velocity)
        others = (Manipulator(m.mech, m.node, q, m.v, m.seed) for q in states)
        return np.tensordot(FIRST, [inertia(other) for other in others], 1) / h

    slopes = np.array([x_dot @ along(column) @ x_dot for column in back.T])
    return along(m.v) @ x_dot - 0.5 * slopes


def gravity(m: Manipulator) -> Array:
    """p(x): how the potential energy changes with x."""
    slopes: list[Array] = []
    for unit in np.eye(m.n):
        states, h = m.moved(unit)
        slopes.append(FIRST @ m.potential(states) / h)
    return solved(m.seen_jacobian.T, np.array(slopes))


def _controlled(m: Manipulator) -> tuple[Array, Array, Array, Array]:
    """ϑ̇ under (11) to (14), ϑ̇ under (12) alone without contact, F*_motion, F*_active-force."""
    motion, active, contact = m.drawn(6), m.drawn(6, 1), m.drawn(6, 2)
    Omega = selection(m)
    F_motion = m.Lambda_0 @ Omega @ motion + m.mu_0 + m.p_0
    F_active = m.Lambda_0 @ (np.eye(6) - Omega) @ active + contact
    complete = m.twist_rate(m.forward(m.J_0.T @ (F_motion + F_active), -contact))
    return complete, m.twist_rate(m.forward(m.J_0.T @ F_motion)), motion, active


OPERATIONAL = Section()
OPERATIONAL.on_each(pair)("""sec. 2, kinetic energy  of the joint space
    printed  ½ q̇ᵀ A(q) q̇
    holds    ½ v* 𝓜 v is the kinetic energy of the bodies
""")(lambda m: (m.A, m.energies))
OPERATIONAL.on_each(pair)("""(1)  equations of motion of the joint space
    printed  A(q) q̈ + b(q, q̇) + g(q) = Γ
    holds    𝓜 v̇ + C = τ, C = b + g with g of the acceleration of the base
    note     Γ that it is held against comes of d'Alembert's principle, with momenta of bodies seen
             at nine times of the motion.
""")(lambda m: (m.A @ m.drawn(m.n) + m.b + m.g, m.moments(m.drawn(m.n))))


@OPERATIONAL.on(mini)("""(2)  kinetic energy matrix of the operational space
    printed  Λ(x) = J⁻ᵀ(q) A(q) J⁻¹(q)
    holds    Λ = J_t⁻* 𝓜 J_t⁻¹: ½ ẋᵀ Λ ẋ is the kinetic energy of the bodies
    note     For as many joints as the effector has degrees of freedom. ẋ is seen, and is the rate
             of position, roll, pitch and yaw.
""")
def _(m: Manipulator) -> float:
    """½ ẋᵀ Λ ẋ, with ẋ seen, for all pairs of joint velocities."""
    return apart(m.seen_jacobian.T @ inertia(m) @ m.seen_jacobian, m.energies)


@OPERATIONAL.on(mini)("""(3)  equations of motion of the effector
    printed  Λ(x) ẍ + μ(x, ẋ) + p(x) = F
    holds    the same, with μ = Λ̇ ẋ - ½ ∂(ẋᵀ Λ ẋ)/∂x and p = ∂U/∂x, for Γ = Jᵀ F
    note     μ and p come of the partial derivatives of Λ and of the potential energy U, as the text
             says; ẍ is seen along the motion that Γ causes.
""")
def _(m: Manipulator) -> float:
    forces = lagrange(m) + gravity(m)
    F = inertia(m) @ m.drawn(6) + forces
    x_ddot = m.x_acceleration(m.forward(m.J.T @ F))
    return apart(inertia(m) @ x_ddot + forces, F)


OPERATIONAL.on_each(pair)("""(4)  Jacobian of a selection of coordinates
    printed  J(q) = E(x) J_0(q)
    holds    ∂x/∂q = E(x) J_t
    note     E for position, roll, pitch and yaw; ∂x/∂q from poses.
""")(lambda m: (m.E @ m.J_0, m.seen_jacobian))
OPERATIONAL.on_each(pair)("""(5)  basic Jacobian
    printed  ϑ ≜ (v, ω) = J_0(q) q̇
    means    the rows of rot_W J in the order (linear, angular)
    note     Linkwise writes (angular, linear); here rows are in the paper's order.
""")(lambda m: (m.J_0, m.seen_basic))
OPERATIONAL.on(mini)("""(6)  mass and inertial properties at the effector
    printed  Λ_0(x) = J_0⁻ᵀ(q) A(q) J_0⁻¹(q)
    holds    the same: ½ ϑᵀ Λ_0 ϑ is the kinetic energy of the bodies
""")(lambda m: (m.seen_basic.T @ inertia_0(m) @ m.seen_basic, m.energies))


@OPERATIONAL.on(mini)("""(7)  Λ of coordinates from Λ_0
    holds    Λ(x) = E⁻ᵀ(x) Λ_0(x) E⁻¹(x)
""")
def _(m: Manipulator) -> float:
    """(7), in the energy of all joint velocities."""
    back = inverted(m.E)
    computed = back.T @ inertia_0(m) @ back
    return apart(m.seen_jacobian.T @ computed @ m.seen_jacobian, m.energies)


OPERATIONAL.on_each(pair)("""(8)  forces and moments from generalized forces
    printed  F_0 ≜ (F, M) = Eᵀ(x) F
    holds    F_0 = E* F: the same work on (v, ω) as on ẋ
    note     The scan does not separate the script letters of force and moment from the others.
""")(lambda m: (m.E.T @ m.drawn(6) @ m.seen_basic, m.drawn(6) @ m.seen_jacobian))


@OPERATIONAL.on(mini)("""(9)  motion of the effector by linear and angular velocities
    printed  Λ_0(x) ϑ̇ + μ_0(x, ϑ) + p_0(x) = F_0
    holds    Λ ϑ̇ + μ + p = F with J_t for J, for τ = J_t* F
    note     ϑ̇ is the time derivative of ϑ in the axes of the world: it has ω × v in it that
             spatial accelerations of bodies leave out.
""")
def _(m: Manipulator) -> float:
    back = inverted(m.J_0)
    mu, p = back.T @ m.b - inertia_0(m) @ m.bent, back.T @ m.g
    F_0 = inertia_0(m) @ m.drawn(6) + mu + p
    theta_dot = m.twist_rate(m.forward(m.J_0.T @ F_0))
    return apart(inertia_0(m) @ theta_dot + mu + p, F_0)


@OPERATIONAL.on(mini)("""(10)  the effector in contact
    printed  Λ_0(x) ϑ̇ + μ_0(x, ϑ) + p_0(x) + F_contact = F_0
    holds    the same, the force on the effector being -F_contact
    note     F_contact is what the effector exerts, though the text has it 'acting at the end
             effector'; with the force on the effector the sign is the other one. (13) is in accord
             with the sign that is printed.
""")
def _(m: Manipulator) -> float:
    contact = m.drawn(6, 1)
    F_0 = m.Lambda_0 @ m.drawn(6) + m.mu_0 + m.p_0 + contact
    theta_dot = m.twist_rate(m.forward(m.J_0.T @ F_0, -contact))
    return apart(m.Lambda_0 @ theta_dot + m.mu_0 + m.p_0 + contact, F_0)


@OPERATIONAL.on(mini)("""sec. 2.2, selection  generalized selection matrix and its complement
    printed  Ω, Ω̄
    means    Ω = diag(S_Fᵀ Σ_F S_F, S_Mᵀ Σ_M S_M), Ω̄ = I - Ω: projections
    note     Taken from the paper's reference; Ω of Linkwise is another thing.
""")
def _(m: Manipulator) -> float:
    """Projections, and nothing is in both."""
    Omega = selection(m)
    rest = np.eye(6) - Omega
    return max(apart(Omega @ Omega, Omega), float(np.abs(Omega @ rest).max()))


@OPERATIONAL.on(mini)("""(11)  control of motion and force
    printed  F_0 = F_motion + F_active-force
    means    with (12), (13), (14) and exact estimates: ϑ̇ = Ω F*_motion + Ω̄ F*_active-force
""")
def _(m: Manipulator) -> float:
    Omega, (complete, _, motion, active) = selection(m), _controlled(m)
    return apart(complete, Omega @ motion + (np.eye(6) - Omega) @ active)


@OPERATIONAL.on(mini)("""(12)  the part of motion
    printed  F_motion = Λ̂_0(x) Ω F*_motion + μ̂_0(x, ϑ) + p̂_0(x)
    means    the same; alone and without contact it gives ϑ̇ = Ω F*_motion
""")
def _(m: Manipulator) -> float:
    _, free, motion, _ = _controlled(m)
    return apart(free, selection(m) @ motion)


@OPERATIONAL.on(mini)("""(13)  the part of active force
    printed  F_active-force = Λ̂_0(x) Ω̄ F*_active-force + F_sensor
    means    the same; with F_sensor = F_contact it adds Ω̄ F*_active-force to ϑ̇
""")
def _(m: Manipulator) -> float:
    complete, free, _, active = _controlled(m)
    return apart(complete - free, (np.eye(6) - selection(m)) @ active)


OPERATIONAL.on_each(pair)("""(14)  joint forces that produce operational forces
    printed  Γ = J_0ᵀ(q) F_0
    holds    τ = J_t* F: the same power for all joint velocities
""")(lambda m: (m.J_0.T @ m.drawn(6), m.drawn(6) @ m.seen_basic))


@OPERATIONAL.on(mini)("""(15)  the closed loop of motion
    holds    Ω ϑ̇ = Ω F*_motion
""")
def _(m: Manipulator) -> float:
    Omega, (complete, _, motion, _) = selection(m), _controlled(m)
    return apart(Omega @ complete, Omega @ motion)


@OPERATIONAL.on(mini)("""(16)  the closed loop of force
    holds    Ω̄ ϑ̇ = Ω̄ F*_active-force
    note     The scan has the superscript 'total' where the star of (13) has to stand; it is not
             counted as a misprint.
""")
def _(m: Manipulator) -> float:
    rest, (complete, _, _, active) = np.eye(6) - selection(m), _controlled(m)
    return apart(rest @ complete, rest @ active)
