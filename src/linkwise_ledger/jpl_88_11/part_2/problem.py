"""Document 001, Part II, section 2 up to (2.9): arms, object, and what holds them together."""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise.algebra.space import NODE
from linkwise.algebra.symbols import J, bias, mass, rot_W
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross, six
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Entry, definition, holds
from linkwise_ledger.grasp import Grasp, twist, twist_at, when_rigid
from linkwise_ledger.jpl_88_11.motion import second, shift
from linkwise_ledger.jpl_88_11.operators import diagonal
from linkwise_ledger.literal import drawn, rate
from linkwise_ledger.operator_algebra.newton_euler import newton_euler
from linkwise_ledger.recursion import moved

# ------------------------------------------------------------------------------------- arms


@cache
def alone(g: Grasp) -> list[Case]:
    """The arms one by one, as they move."""
    found = [Case(arm.name, arm.mech, arm.seed) for arm in g.arms]
    for i, arm in enumerate(found):
        arm.v = g.v[g.arm_of(i)]
    return found


def _each_arm(g: Grasp) -> float:
    """Each arm by itself under -f_i(0): the recursion of Newton and Euler gives T_i."""
    errors: list[float] = []
    for i, arm in enumerate(g.arms):
        own, force = g.arm_of(i), g.solution.f[6 * i : 6 * i + 6].reshape(2, 3)
        in_tip = (force @ arm.mech.pose(arm.q, arm.node).rot).ravel()
        found = newton_euler(alone(g)[i], g.solution.theta_ddot[own], in_tip)
        errors.append(apart(found, g.T[own]))
    return max(errors)


def _all_arms(g: Grasp) -> float:
    """The same for the forest at once, and 𝓜, 𝒞, J term by term."""
    found = g.mass @ g.solution.theta_ddot + g.coriolis + g.J.T @ g.solution.f
    return max(apart(found, g.T), _each_arm(g))


def seen_tips(g: Grasp) -> list[tuple[Array, Array]]:
    """V_i(0) and α_i(0) from the poses of the tips."""
    return [twist([poses[i] for poses in g.pictures]) for i in range(len(g.tips))]


def _tip_velocities(g: Grasp) -> float:
    return apart(g.tip_velocity, np.concatenate([V for V, _ in seen_tips(g)]))


@cache
def jacobian_rate(g: Grasp) -> Array:
    """J̇, by differences, arm by arm."""
    return diagonal([rate(lambda t, arm=arm: moved(arm, t)(rot_W @ J)) for arm in alone(g)])


def check_jacobian_rate(g: Grasp) -> float:
    """J̇ θ̇ = Bᵀ φᵀ a + a(0)."""
    return apart(jacobian_rate(g) @ g.v, g.bent)


def _tip_accelerations(g: Grasp) -> float:
    expected = np.concatenate([alpha for _, alpha in seen_tips(g)])
    return max(
        apart(g.J @ g.solution.theta_ddot + jacobian_rate(g) @ g.v, expected),
        check_jacobian_rate(g),
    )


def _stacks(g: Grasp) -> float:
    """What the arms have alone, stacked, is what the forest has."""
    arms = alone(g)
    return max(
        apart(diagonal([arm.matrix(mass) for arm in arms]), g.mass),
        apart(diagonal([arm.matrix(rot_W @ J) for arm in arms]), g.J),
        apart(np.concatenate([arm.matrix(bias) for arm in arms]), g.coriolis),
        apart(sum(len(arm.v) for arm in arms), len(g.T)),
    )


# ----------------------------------------------------------------------------------- object


def _object_inertia(g: Grasp) -> float:
    """½ Vᵀ M V is the energy of the particles, for any velocity of the object."""
    errors: list[float] = []
    for V in np.random.default_rng(g.seed).standard_normal((3, 6)):
        v = V[3:] + cross(V[:3], g.particles - g.C)
        errors.append(apart(V @ g.M_C @ V, (g.masses * (v**2).sum(axis=1)).sum()))
    m, p = g.masses.sum(), skew(g.p_C)
    return max(*errors, apart(g.M_C, blocks(g.I_C, m * p, -m * p, m * np.eye(3))))


def _object_forces(g: Grasp) -> Array:
    """What moves the particles as they are seen to move: moment about C, and force."""
    forces = np.zeros((len(g.masses), 3))
    for k, (m, r) in enumerate(zip(g.masses, g.particles, strict=True)):
        forces[k] = m * second([x.apply(r) for x in g.object_motion])
    return six(cross(g.particles - g.C, forces).sum(axis=0), forces.sum(axis=0))


def _object_dynamics(g: Grasp) -> float:
    _, alpha = twist_at(g.object_motion, g.C)
    found = g.M_C @ alpha + g.object_bias
    return max(apart(found, _object_forces(g)), apart(found, g.A.T @ g.solution.f))


def _loops(g: Grasp) -> float:
    """Links, object and ground joined by joints and grasps: loops = edges - vertices + 1."""
    edges, vertices = g.mech.n_bodies + len(g.tips), g.mech.n_bodies + 2
    return apart(edges - vertices + 1, len(g.tips) - 1)


# ---------------------------------------------------------------------------------- contacts


def _contact_velocities(g: Grasp) -> float:
    """Points O_i of the object go as (2.5a) says, and the tips with them."""
    V_C, _ = twist_at(g.object_motion, g.C)
    errors: list[float] = []
    for i, (V_tip, _) in enumerate(seen_tips(g)):
        found = shift(g.O[i] - g.C).T @ V_C
        seen, _ = twist_at(g.object_motion, g.O[i])
        errors += [apart(found, seen), apart(found, V_tip)]
    return max(errors)


def _contact_accelerations(g: Grasp) -> float:
    _, alpha = twist_at(g.object_motion, g.C)
    errors: list[float] = []
    for i, (_, alpha_tip) in enumerate(seen_tips(g)):
        found = shift(g.O[i] - g.C).T @ alpha + g.contact_bias[6 * i : 6 * i + 6]
        _, seen = twist_at(g.object_motion, g.O[i])
        errors += [apart(found, seen), apart(found, alpha_tip)]
    return max(errors)


def _stacked_accelerations(g: Grasp) -> float:
    found = g.A @ g.solution.alpha + g.contact_bias
    return apart(found, np.concatenate([alpha for _, alpha in seen_tips(g)]))


def _group(g: Grasp) -> float:
    """φ⁻¹(x, y) = φ(y, x), φ(x, y) φ(y, z) = φ(x, z), for C and the contact points."""
    points, errors = [g.C, *g.O], list[float]()
    for x in points:
        for y in points:
            errors.append(apart(np.linalg.inv(shift(y - x)), shift(x - y)))
            errors += [apart(shift(y - x) @ shift(z - y), shift(z - x)) for z in points]
    return max(errors)


def _around_loops(g: Grasp) -> float:
    V = g.tip_velocity.reshape(-1, 6)
    errors: list[float] = []
    for i, one in enumerate(g.O):
        for j, other in enumerate(g.O):
            errors.append(apart(shift(g.C - other).T @ V[j], shift(g.C - one).T @ V[i]))
            errors.append(apart(V[j], shift(other - one).T @ V[i]))
    return max(errors)


def _definite(g: Grasp) -> float:
    """AᵀA is the sum, and no direction of V(C) leaves all contact points at rest."""
    summed = np.zeros((6, 6))
    for point in g.O:
        summed += shift(point - g.C) @ shift(point - g.C).T
    if np.linalg.eigvalsh(summed).min() <= 0.0:
        return float("inf")
    return apart(g.A.T @ g.A, summed)


def left_inverse(g: Grasp) -> Array:
    """(AᵀA)⁻¹ Aᵀ."""
    return np.linalg.inv(g.A.T @ g.A) @ g.A.T


def _object_velocity(g: Grasp) -> float:
    return apart(left_inverse(g) @ g.tip_velocity, twist_at(g.object_motion, g.C)[0])


def _object_acceleration(g: Grasp) -> float:
    alpha = np.concatenate([x for _, x in seen_tips(g)])
    found = left_inverse(g) @ (alpha - g.contact_bias)
    return apart(found, twist_at(g.object_motion, g.C)[1])


def _net_force(g: Grasp) -> float:
    """Forces at the contacts do the work of the one at C on any motion of the object."""
    f, errors = drawn(g, NODE), list[float]()
    summed = np.zeros(6)
    for i, point in enumerate(g.O):
        summed += shift(point - g.C) @ f[6 * i : 6 * i + 6]
    for V in np.random.default_rng(g.seed).standard_normal((3, 6)):
        v = V[3:] + cross(V[:3], g.O - g.C)
        forces = f.reshape(-1, 6)
        power = (forces[:, :3] @ V[:3]).sum() + (forces[:, 3:] * v).sum()
        errors.append(apart(summed @ V, power))
    return max(*errors, apart(g.A.T @ f, summed))


ARMS: tuple[Entry, ...] = (
    holds(
        "(2.1a)",
        "equations of motion of one arm",
        "𝓜_i θ̈_i + 𝒞_i + J_iᵀ f_i(0) = T_i",
        "𝓜 v̇ + C + J* f = τ, f exerted by the tip on the object",
        when_rigid(_each_arm),
        note="Arms of any hinges, branched ones too, and not all of N joints. Each by itself, with "
        "-f_i(0) on its tip, by the recursion of Newton and Euler.",
    ),
    definition("(2.1b)", "where the tip is", "X_i(0) = Q_i(θ_i)", "pose of the tip's node"),
    holds(
        "(2.1c)",
        "velocity of the tip",
        "V_i(0) = J_i θ̇_i",
        "V_B = rot_W J v, in the axes of the world",
        when_rigid(_tip_velocities),
        note="Against poses differentiated with respect to time.",
    ),
    holds(
        "(2.1d)",
        "acceleration of the tip",
        "α_i(0) = V̇_i(0) = J_i θ̈_i + J̇_i θ̇_i",
        "the same; J̇ of the Jacobian in the axes of the world",
        when_rigid(_tip_accelerations),
        note="Against poses differentiated twice; J̇ by differences.",
    ),
    definition(
        "(2.2)",
        "arms, stacked",
        "𝓜 = diag(𝓜_i), J = diag(J_i), 𝒞 = col(𝒞_i), θ = col(θ_i), …; n = ℓ N",
        "operators of the forest of arms; n = Σ N_i",
        when_rigid(_stacks),
    ),
    holds(
        "(2.3a)",
        "equations of motion of all arms",
        "𝓜 θ̈ + 𝒞 + Jᵀ f = T",
        "𝓜 v̇ + C + J* f = τ on the forest",
        when_rigid(_all_arms),
        note="f is f(0).",
    ),
    definition("(2.3b)", "where the tips are", "X(0) = Q(θ)", "poses of the tips' nodes"),
    holds(
        "(2.3c)", "velocities of the tips", "V(0) = J θ̇", "the same", when_rigid(_tip_velocities)
    ),
    holds(
        "(2.3d)",
        "accelerations of the tips",
        "α(0) = J θ̈ + J̇ θ̇",
        "the same",
        when_rigid(_tip_accelerations),
    ),
)

OBJECT: tuple[Entry, ...] = (
    definition(
        "sec. 2, M(C)",
        "spatial inertia of the object",
        "M_i(C) = [[I_C, m_C p~_C], [-m_C p~_C, m_C I]]",
        "M(C); ½ Vᵀ(C) M(C) V(C) is the kinetic energy",
        when_rigid(_object_inertia),
        note="The index i has no meaning: there is one object. It is made of particles here.",
    ),
    holds(
        "(2.4)",
        "equations of motion of the object",
        "M(C) α(c) + b(C) = f(C)",
        "M(C) α(C) + b(C) = f(C)",
        when_rigid(_object_dynamics),
        note="c is C. Against forces that move the particles as they are seen to move.",
    ),
    definition(
        "sec. 2, b(C) and f(C)",
        "bias and net force of the object",
        "b(C) = (ω_C × I_C·ω_C, m_C ω_C × (ω_C × p_C)); f(C) = (N_C, F_C)",
        "b = V ×* M V for derivatives of (ω, v)",
        when_rigid(_object_dynamics),
    ),
    holds(
        "sec. 2, loops",
        "how many loops ℓ arms make",
        "ℓ - 1 independent loops; no fewer cuts leave a tree",
        "edges - vertices + 1 of the graph of links, object and ground",
        when_rigid(_loops),
    ),
    holds(
        "(2.5a)",
        "velocities of the contact points",
        "V_i(0) = φᵀ(C,O_i) V(C)",
        "the same",
        when_rigid(_contact_velocities),
        note="Of the object moved along with tip 1, and of tip i.",
    ),
    holds(
        "(2.5b)",
        "accelerations of the contact points",
        "α_i(0) = φᵀ(C,O_i) α(C) + a_i(C)",
        "the same",
        when_rigid(_contact_accelerations),
        note="Against poses differentiated twice, with the θ̈ that d'Alembert's principle gives.",
    ),
    definition(
        "sec. 2, φ(C,O_i) and a_i(C)",
        "shift to a contact, and its centripetal acceleration",
        "φ(C,O_i) = [[I, ℓ~(C,O_i)], [0, I]]; a_i(C) = (0, ω_C × [ω_C × ℓ(C,O_i)])",
        "the same",
        when_rigid(_contact_accelerations),
    ),
    holds(
        "sec. 2, shifts",
        "a group",
        "φ⁻¹(a,b) = φ(b,a); φ(a,b) φ(b,c) = φ(a,c)",
        "the same",
        when_rigid(_group),
    ),
    holds(
        "sec. 2, around a loop",
        "velocities of two contact points",
        "φᵀ(O_j,C) V_j(0) - φᵀ(O_i,C) V_i(0) = 0; V_j(0) - φᵀ(O_i,O_j) V_i(0) = 0",
        "the same",
        when_rigid(_around_loops),
    ),
    definition(
        "(2.6)",
        "shifts to all contacts",
        "Aᵀ = [φ(C,O_1), …, φ(C,O_ℓ)]",
        "the same",
        when_rigid(_net_force),
    ),
    holds(
        "(2.7a)",
        "velocities of all contacts",
        "V(0) = A V(C)",
        "the same",
        when_rigid(lambda g: apart(g.tip_velocity, g.A @ g.V_C)),
    ),
    holds(
        "(2.7b)",
        "accelerations of all contacts",
        "α(0) = A α(C) + a(C)",
        "the same",
        when_rigid(_stacked_accelerations),
    ),
    holds(
        "sec. 2, AᵀA",
        "that it has an inverse",
        "AᵀA = Σ φ(C,O_i) φᵀ(C,O_i) is invertible",
        "AᵀA > 0",
        when_rigid(_definite),
    ),
    holds(
        "(2.8a)",
        "velocity of the object",
        "V(C) = (AᵀA)⁻¹ Aᵀ V(0)",
        "the same",
        when_rigid(_object_velocity),
    ),
    holds(
        "(2.8b)",
        "acceleration of the object",
        "α(C) = (AᵀA)⁻¹ Aᵀ [α(0) - a(C)]",
        "the same",
        when_rigid(_object_acceleration),
    ),
    holds(
        "sec. 2, f(C)",
        "net force of the contacts, summed",
        "f(C) = Σ φ(C,O_i) f_i(0)",
        "the same",
        when_rigid(_net_force),
    ),
    holds(
        "(2.9)",
        "net force of the contacts",
        "f(C) = Aᵀ f(0)",
        "the same",
        when_rigid(_net_force),
        note="It does the work of the forces at the contacts on any motion of the object.",
    ),
)
