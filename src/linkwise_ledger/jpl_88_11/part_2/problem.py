"""JPL 88-11, Part II, section 2 up to (2.9): arms, object, and what holds them together."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.space import NODE
from linkwise.algebra.symbols import J, bias, mass, rot_W
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, rigid, twist, twist_at
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.motion import second, shift
from linkwise_ledger.operator_algebra.dynamics import newton_euler
from linkwise_ledger.recursion import drawn, moved, rate
from linkwise_ledger.section import Section

# ------------------------------------------------------------------------------------- arms


@cache
def alone(g: Grasp) -> list[Case]:
    """The arms one by one, as they move."""
    values = [Case(arm.name, arm.mech, arm.seed) for arm in g.arms]
    for i, arm in enumerate(values):
        arm.v = g.v[g.arm_of(i)]
    return values


def seen_tips(g: Grasp) -> list[tuple[Array, Array]]:
    """V_i(0) and α_i(0) from the poses of the tips."""
    return [twist([poses[i] for poses in g.pictures]) for i in range(len(g.tips))]


@cache
def jacobian_rate(g: Grasp) -> Array:
    """J̇, by differences, arm by arm."""
    return diagonal([rate(lambda t, arm=arm: moved(arm, t)(rot_W @ J)) for arm in alone(g)])


def check_jacobian_rate(g: Grasp) -> float:
    """J̇ θ̇ = Bᵀ φᵀ a + a(0)."""
    return apart(jacobian_rate(g) @ g.v, g.bent)


# ----------------------------------------------------------------------------------- object


def _object_forces(g: Grasp) -> Array:
    """What moves the particles as they are seen to move: moment about C, and force."""
    forces = np.zeros((len(g.masses), 3))
    for k, (m, r) in enumerate(zip(g.masses, g.particles, strict=True)):
        forces[k] = m * second([x.apply(r) for x in g.object_motion])
    return six(cross(g.particles - g.C, forces).sum(axis=0), forces.sum(axis=0))


# ---------------------------------------------------------------------------------- contacts


def left_inverse(g: Grasp) -> Array:
    """(AᵀA)⁻¹ Aᵀ."""
    return np.linalg.inv(g.A.T @ g.A) @ g.A.T


PROBLEM = Section()


@PROBLEM.on(rigid)("""(2.1a)  equations of motion of one arm
    printed  𝓜_i θ̈_i + 𝒞_i + J_iᵀ f_i(0) = T_i
    holds    𝓜 v̇ + C + J* f = τ, f exerted by the tip on the object
    note     Arms of any hinges, branched ones too, and not all of N joints. Each by itself, with
             -f_i(0) on its tip, by the recursion of Newton and Euler.
""")
def _each_arm(g: Grasp) -> float:
    errors: list[float] = []
    for i, arm in enumerate(g.arms):
        span, force = g.arm_of(i), g.solution.f[6 * i : 6 * i + 6].reshape(2, 3)
        in_tip = (force @ arm.mech.pose(arm.q, arm.node).rot).ravel()
        computed = newton_euler(alone(g)[i], g.solution.theta_ddot[span], in_tip)
        errors.append(apart(computed, g.T[span]))
    return max(errors)


PROBLEM.unchecked("""(2.1b)  where the tip is
    printed  X_i(0) = Q_i(θ_i)
    means    pose of the tip's node
""")


@PROBLEM.on(rigid)("""(2.1c)  velocity of the tip
    printed  V_i(0) = J_i θ̇_i
    holds    V_B = rot_W J v, in the axes of the world
    note     Against poses differentiated with respect to time.
""")
def _tip_velocities(g: Grasp) -> float:
    return apart(g.tip_velocity, np.concatenate([V for V, _ in seen_tips(g)]))


@PROBLEM.on(rigid)("""(2.1d)  acceleration of the tip
    printed  α_i(0) = V̇_i(0) = J_i θ̈_i + J̇_i θ̇_i
    holds    the same; J̇ of the Jacobian in the axes of the world
    note     Against poses differentiated twice; J̇ by differences.
""")
def _tip_accelerations(g: Grasp) -> Errors:
    expected = np.concatenate([alpha for _, alpha in seen_tips(g)])
    yield g.J @ g.solution.theta_ddot + jacobian_rate(g) @ g.v, expected
    yield check_jacobian_rate(g)


@PROBLEM.on(rigid)("""(2.2)  arms, stacked
    printed  𝓜 = diag(𝓜_i), J = diag(J_i), 𝒞 = col(𝒞_i), θ = col(θ_i), …; n = ℓ N
    means    operators of the forest of arms; n = Σ N_i
""")
def _(g: Grasp) -> Errors:
    arms = alone(g)
    yield diagonal([arm.matrix(mass) for arm in arms]), g.mass
    yield diagonal([arm.matrix(rot_W @ J) for arm in arms]), g.J
    yield np.concatenate([arm.matrix(bias) for arm in arms]), g.coriolis
    yield sum(len(arm.v) for arm in arms), len(g.T)


@PROBLEM.on(rigid)("""(2.3a)  equations of motion of all arms
    printed  𝓜 θ̈ + 𝒞 + Jᵀ f = T
    holds    𝓜 v̇ + C + J* f = τ on the forest
    note     f is f(0).
""")
def _(g: Grasp) -> float:
    computed = g.mass @ g.solution.theta_ddot + g.coriolis + g.J.T @ g.solution.f
    return max(apart(computed, g.T), _each_arm(g))


PROBLEM.unchecked("""(2.3b)  where the tips are
    printed  X(0) = Q(θ)
    means    poses of the tips' nodes
""")
PROBLEM.on(rigid)("""(2.3c)  velocities of the tips
    holds    V(0) = J θ̇
""")(_tip_velocities)
PROBLEM.on(rigid)("""(2.3d)  accelerations of the tips
    holds    α(0) = J θ̈ + J̇ θ̇
""")(_tip_accelerations)


@PROBLEM.on(rigid)("""sec. 2, M(C)  spatial inertia of the object
    printed  M_i(C) = [[I_C, m_C p~_C], [-m_C p~_C, m_C I]]
    means    M(C); ½ Vᵀ(C) M(C) V(C) is the kinetic energy
    note     The index i has no meaning: there is one object. It is made of particles here.
""")
def _(g: Grasp) -> Errors:
    for V in np.random.default_rng(g.seed).standard_normal((3, 6)):
        v = V[3:] + cross(V[:3], g.particles - g.C)
        yield V @ g.M_C @ V, (g.masses * (v**2).sum(axis=1)).sum()
    m, p = g.masses.sum(), skew(g.p_C)
    yield g.M_C, blocks(g.I_C, m * p, -m * p, m * np.eye(3))


@PROBLEM.on(rigid)("""(2.4)  equations of motion of the object
    printed  M(C) α(c) + b(C) = f(C)
    holds    M(C) α(C) + b(C) = f(C)
    note     c is C. Against forces that move the particles as they are seen to move.
sec. 2, b(C) and f(C)  bias and net force of the object
    printed  b(C) = (ω_C × I_C·ω_C, m_C ω_C × (ω_C × p_C)); f(C) = (N_C, F_C)
    means    b = V ×* M V for derivatives of (ω, v)
""")
def _(g: Grasp) -> float:
    _, alpha = twist_at(g.object_motion, g.C)
    computed = g.M_C @ alpha + g.object_bias
    return max(apart(computed, _object_forces(g)), apart(computed, g.A.T @ g.solution.f))


@PROBLEM.on(rigid)("""sec. 2, loops  how many loops ℓ arms make
    printed  ℓ - 1 independent loops; no fewer cuts leave a tree
    holds    edges - vertices + 1 of the graph of links, object and ground
""")
def _loops(g: Grasp) -> float:
    edges, vertices = g.mech.n_bodies + len(g.tips), g.mech.n_bodies + 2
    return apart(edges - vertices + 1, len(g.tips) - 1)


@PROBLEM.on(rigid)("""(2.5a)  velocities of the contact points
    holds    V_i(0) = φᵀ(C,O_i) V(C)
    note     Of the object moved along with tip 1, and of tip i.
""")
def _(g: Grasp) -> Errors:
    V_C, _ = twist_at(g.object_motion, g.C)
    for i, (V_tip, _) in enumerate(seen_tips(g)):
        computed = shift(g.O[i] - g.C).T @ V_C
        seen, _ = twist_at(g.object_motion, g.O[i])
        yield computed, seen
        yield computed, V_tip


@PROBLEM.on(rigid)("""(2.5b)  accelerations of the contact points
    holds    α_i(0) = φᵀ(C,O_i) α(C) + a_i(C)
    note     Against poses differentiated twice, with the θ̈ that d'Alembert's principle gives.
sec. 2, φ(C,O_i) and a_i(C)  shift to a contact, and its centripetal
             acceleration
    means    φ(C,O_i) = [[I, ℓ~(C,O_i)], [0, I]]; a_i(C) = (0, ω_C × [ω_C × ℓ(C,O_i)])
""")
def _(g: Grasp) -> Errors:
    _, alpha = twist_at(g.object_motion, g.C)
    for i, (_, alpha_tip) in enumerate(seen_tips(g)):
        computed = shift(g.O[i] - g.C).T @ alpha + g.contact_bias[6 * i : 6 * i + 6]
        _, seen = twist_at(g.object_motion, g.O[i])
        yield computed, seen
        yield computed, alpha_tip


@PROBLEM.on(rigid)("""sec. 2, shifts  a group
    holds    φ⁻¹(a,b) = φ(b,a); φ(a,b) φ(b,c) = φ(a,c)
""")
def _(g: Grasp) -> Errors:
    points = [g.C, *g.O]
    for x in points:
        for y in points:
            yield np.linalg.inv(shift(y - x)), shift(x - y)
            yield from ((shift(y - x) @ shift(z - y), shift(z - x)) for z in points)


@PROBLEM.on(rigid)("""sec. 2, around a loop  velocities of two contact points
    holds    φᵀ(O_j,C) V_j(0) - φᵀ(O_i,C) V_i(0) = 0; V_j(0) - φᵀ(O_i,O_j) V_i(0) = 0
""")
def _(g: Grasp) -> Errors:
    V = g.tip_velocity.reshape(-1, 6)
    for i, one in enumerate(g.O):
        for j, other in enumerate(g.O):
            yield shift(g.C - other).T @ V[j], shift(g.C - one).T @ V[i]
            yield V[j], shift(other - one).T @ V[i]


@PROBLEM.on(rigid)("""(2.6)  shifts to all contacts
    means    Aᵀ = [φ(C,O_1), …, φ(C,O_ℓ)]
""")
def _net_force(g: Grasp) -> Errors:
    """Forces at the contacts do the work of the one at C on any motion of the object."""
    f = drawn(g, NODE)
    summed = np.zeros(6)
    for i, point in enumerate(g.O):
        summed += shift(point - g.C) @ f[6 * i : 6 * i + 6]
    for V in np.random.default_rng(g.seed).standard_normal((3, 6)):
        v = V[3:] + cross(V[:3], g.O - g.C)
        forces = f.reshape(-1, 6)
        power = (forces[:, :3] @ V[:3]).sum() + (forces[:, 3:] * v).sum()
        yield summed @ V, power
    yield g.A.T @ f, summed


PROBLEM.on(rigid)("""(2.7a)  velocities of all contacts
    holds    V(0) = A V(C)
""")(lambda g: (g.tip_velocity, g.A @ g.V_C))


@PROBLEM.on(rigid)("""(2.7b)  accelerations of all contacts
    holds    α(0) = A α(C) + a(C)
""")
def _(g: Grasp) -> float:
    computed = g.A @ g.solution.alpha + g.contact_bias
    return apart(computed, np.concatenate([alpha for _, alpha in seen_tips(g)]))


@PROBLEM.on(rigid)("""sec. 2, AᵀA  that it has an inverse
    printed  AᵀA = Σ φ(C,O_i) φᵀ(C,O_i) is invertible
    holds    AᵀA > 0
""")
def _(g: Grasp) -> float:
    """AᵀA is the sum, and no direction of V(C) leaves all contact points at rest."""
    summed = np.zeros((6, 6))
    for point in g.O:
        summed += shift(point - g.C) @ shift(point - g.C).T
    if np.linalg.eigvalsh(summed).min() <= 0.0:
        return float("inf")
    return apart(g.A.T @ g.A, summed)


PROBLEM.on(rigid)("""(2.8a)  velocity of the object
    holds    V(C) = (AᵀA)⁻¹ Aᵀ V(0)
""")(lambda g: (left_inverse(g) @ g.tip_velocity, twist_at(g.object_motion, g.C)[0]))


@PROBLEM.on(rigid)("""(2.8b)  acceleration of the object
    holds    α(C) = (AᵀA)⁻¹ Aᵀ [α(0) - a(C)]
""")
def _(g: Grasp) -> float:
    alpha = np.concatenate([x for _, x in seen_tips(g)])
    computed = left_inverse(g) @ (alpha - g.contact_bias)
    return apart(computed, twist_at(g.object_motion, g.C)[1])


PROBLEM.on(rigid)("""sec. 2, f(C)  net force of the contacts, summed
    holds    f(C) = Σ φ(C,O_i) f_i(0)
(2.9)  net force of the contacts
    holds    f(C) = Aᵀ f(0)
    note     It does the work of the forces at the contacts on any motion of the object.
""")(_net_force)
