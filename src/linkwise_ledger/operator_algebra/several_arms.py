"""The operator algebra, section 6: several arms that hold one object.

The paper has no equations for this, but says what holds; each such sentence is put as one and
executed, on arms of any hinges that hold an object rigidly.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from linkwise import models
from linkwise.algebra.symbols import J, mass, rot_W
from linkwise.spatial.array import Array
from linkwise.spatial.rotation import random_rotation
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import Grasp, planar, rank, rigid, solved
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.motion import shift
from linkwise_ledger.operator_algebra.closed_chain import check_well_posed
from linkwise_ledger.operator_algebra.tip import correction_loops, tip_compliance
from linkwise_ledger.section import Section


@cache
def _held(case: Case) -> Grasp:
    """An object held by those arms of a case that are not singular."""
    every = rigid(case)
    free = [arm for arm in every.arms if rank(arm.matrix(J)) == 6]
    return Grasp(free, every.contacts[: len(free)], every.seed)


def _tip(i: int) -> slice:
    return slice(6 * i, 6 * i + 6)


def _compliances(g: Grasp) -> list[Array]:
    """Λ_i⁻¹ = J_i 𝓜_i⁻¹ J_i*, in the axes of the world, by the recursion of application 2."""
    parts: list[Array] = []
    for arm in g.arms:
        turn = arm.matrix(rot_W)
        parts.append(turn @ tip_compliance(arm) @ turn.T)
    return parts


def _system(g: Grasp) -> Array:
    """The closed chain as one dense system in f(0), θ̈ and α(C)."""
    n, m = len(g.T), len(g.A)
    return np.block(
        [
            [np.zeros((m, m)), g.J, -g.A],
            [g.J.T, g.mass, np.zeros((n, 6))],
            [-g.A.T, np.zeros((6, n)), g.M_C],
        ]
    )


# ------------------------------------------------------------------------- effective inertia


def _effective(g: Grasp) -> list[Array]:
    """What a force on the object meets: M(C), and after each arm that takes hold of it."""
    values = [g.M_C]
    for i, compliance in enumerate(_compliances(g)):
        A_i = g.A[_tip(i)]
        values.append(values[-1] + A_i.T @ np.linalg.inv(compliance) @ A_i)
    return values


def _pushed(g: Grasp, arms: int) -> Array:
    """The inertia that pushes on the object meet with the first arms on it: the dense system."""
    n = g.arm_of(arms - 1).stop
    m = 6 * arms
    matrix = np.block(
        [
            [np.zeros((m, m)), g.J[:m, :n], -g.A[:m]],
            [g.J[:m, :n].T, g.mass[:n, :n], np.zeros((n, 6))],
            [-g.A[:m].T, np.zeros((6, n)), g.M_C],
        ]
    )
    pushes = np.vstack([np.zeros((m + n, 6)), np.eye(6)])
    return np.asarray(np.linalg.inv(solved(matrix, pushes)[m + n :]), dtype=np.float64)


# ------------------------------------------------------------------------------- estimates


class _Estimate:
    """α(C), and what belongs to a covariance of it; counts its 6 × 6 inverses."""

    def __init__(self, g: Grasp) -> None:
        """The object alone: M(C) α(C) + b(C) = 0."""
        self.mean, self.covariance = -g.M_C_inv @ g.object_bias, g.M_C_inv
        self.inverses = 1

    def combine(self, A_i: Array, seen: Array, covariance: Array) -> None:
        """With the estimate of an arm: A_i α(C) is `seen`, up to its own covariance."""
        innovation = seen - A_i @ self.mean
        spread = A_i @ self.covariance @ A_i.T + covariance
        gain = self.covariance @ A_i.T @ np.linalg.inv(spread)
        self.mean = self.mean + gain @ innovation
        self.covariance = self.covariance - gain @ A_i @ self.covariance
        self.inverses += 1


@cache
def _combined(g: Grasp) -> tuple[_Estimate, Array, Array]:
    """Estimates combined arm by arm: α(C); then f_i(0) and θ̈ of each arm by its loops."""
    estimate, compliances = _Estimate(g), _compliances(g)
    free = g.mass_inv @ g.T_free
    tips = g.J @ free + g.bent
    for i, compliance in enumerate(compliances):
        seen = tips[_tip(i)] - g.contact_bias[_tip(i)]
        estimate.combine(g.A[_tip(i)], seen, compliance)
    forces, moved = np.zeros(len(g.A)), free.copy()
    for i, compliance in enumerate(compliances):
        target = g.A[_tip(i)] @ estimate.mean + g.contact_bias[_tip(i)]
        forces[_tip(i)] = solved(compliance, tips[_tip(i)] - target)
        turn = g.arms[i].matrix(rot_W)
        moved[g.arm_of(i)] += correction_loops(g.arms[i], turn.T @ forces[_tip(i)])
        estimate.inverses += 1
    return estimate, forces, moved


# --------------------------------------------------------------------------- well-posedness


@cache
def _straight_wrist() -> tuple[Array, Array, Array]:
    """A PUMA whose wrist is straight, of rank five: J, Λ⁻¹ and the tip, from its base."""
    arm = Case("PUMA", models.puma560().with_gravity(np.zeros(3)), 5)
    arm.q = arm.q.copy()
    arm.q[4] = 0.0
    jacobian = arm.matrix(rot_W @ J)
    compliance = jacobian @ np.linalg.inv(arm.matrix(mass)) @ jacobian.T
    return jacobian, compliance, arm.mech.pose(arm.q, arm.node).p


def _placed(rot: list[Array], p: list[Array], M_C: Array) -> Array:
    """Ω of such arms with their bases there, of an object whose C is at the origin."""
    _, compliance, tip = _straight_wrist()
    parts = [diagonal([r, r]) @ compliance @ diagonal([r, r]).T for r in rot]
    A = np.vstack([shift(r @ tip + x).T for r, x in zip(rot, p, strict=True)])
    return diagonal(parts) + A @ np.linalg.inv(M_C) @ A.T


SEVERAL_ARMS = Section()
SEVERAL_ARMS("""sec. 6, effective inertia  of several arms and the object that they hold
    printed  it generalises the operational space inertia of one arm
    holds    a force on the object at C meets M(C) + Σ φ(C,O_i) Λ_i φ*(C,O_i)
    note     Arms that are not singular; against the dense system. Without object and for one arm it
             is Λ at another point.
""")(lambda case: (_effective(_held(case))[-1], _pushed(_held(case), len(_held(case).arms))))


@SEVERAL_ARMS("""sec. 6, one more arm  effective inertia as an incremental change
    printed  the effect of a new grasp is added, not all computed again
    holds    each arm adds φ Λ_i φ*; after each, what the dense system of the arms so far gives
""")
def _(case: Case) -> float:
    g = _held(case)
    computed = _effective(g)
    return max(apart(computed[k], _pushed(g, k)) for k in range(1, len(g.arms) + 1))


@SEVERAL_ARMS("""sec. 6, a mechanism as object  what an arm takes hold of may be a multibody system
    printed  the object may be a simple body or a complex mechanism
    holds    the last arm meets body and other arms as one inertia: a diagonal block of Ω⁻¹
""")
def _(case: Case) -> float:
    """The object may be a mechanism: held by all others, it meets the last arm as one inertia.

    What is grasped is then a closed chain itself; the last arm sees its effective inertia.
    """
    g = _held(case)
    last = len(g.arms) - 1
    A_last = g.A[_tip(last)]
    held = _effective(g)[last]
    there = A_last @ np.linalg.inv(held) @ A_last.T  # compliance of it where the arm takes hold
    together = there + _compliances(g)[last]
    complete = diagonal(_compliances(g)) + g.compliance
    # Eliminating all other contacts from Ω leaves the compliance between that arm and the rest.
    return apart(np.linalg.inv(together), np.linalg.inv(complete)[_tip(last), _tip(last)])


@SEVERAL_ARMS("""sec. 6, combined estimates  contact forces by combining estimates
    printed  like two state estimates, each with a covariance, which are combined
    holds    α(C) with covariance M⁻¹(C), A_i α(C) + a_i with Λ_i⁻¹: the combined mean is α(C), its
             covariance the inverse of the effective inertia; f_i = Λ_i (α_if - α_i)
    note     The covariance is named articulated body inertia; accelerations have its inverse.
""")
def _(case: Case) -> Errors:
    g = _held(case)
    estimate, forces, _ = _combined(g)
    yield estimate.mean, g.solution.alpha
    yield estimate.covariance, np.linalg.inv(_effective(g)[-1])
    yield forces, g.solution.f


@SEVERAL_ARMS("""sec. 6, O(n) + O(ℓ)  several arms that are not singular
    printed  effective inertia, accelerations and contact forces in O(n) + O(ℓ)
    holds    loops over links, and one over arms with two 6 × 6 inverses for each: v̇ and f(0) of
             d'Alembert's principle
    note     Estimates combined arm by arm; the loops are those of applications 1 and 2. Said again
             after well-posedness.
""")
def _(case: Case) -> Errors:
    g = _held(case)
    estimate, forces, moved = _combined(g)
    yield moved, g.solution.theta_ddot
    yield forces, g.solution.f
    yield estimate.inverses, 2 * len(g.arms) + 1


@SEVERAL_ARMS.on(rigid)("""sec. 6, O(n) + O(ℓ³)  several arms that may be singular
    printed  more generally O(n) + O(ℓ³)
    holds    the same loops, and one system of 6ℓ: v̇ and f(0) of d'Alembert's principle
    note     One of the arms has five joints here.
""")
def _(g: Grasp) -> float:
    f = solved(
        diagonal(_compliances(g)) + g.compliance,
        g.J @ g.mass_inv @ g.T_free - g.a_free,
    )
    parts = [
        correction_loops(arm, arm.matrix(rot_W).T @ f[_tip(i)]) for i, arm in enumerate(g.arms)
    ]
    computed = g.mass_inv @ g.T_free + np.concatenate(parts)
    return max(apart(f, g.solution.f), apart(computed, g.solution.theta_ddot))


SEVERAL_ARMS("""sec. 6, well-posedness  when the force between the tips is unique
    printed  accelerations and contact forces are unique if the inverse of Λ_c has full rank
    holds    rank of the dense system = its size - 6 + rank(Λ_1⁻¹ + Λ_2⁻¹), for two arms
    note     Two arms with their tips joined; several arms and an object come next.
""")(check_well_posed)


@SEVERAL_ARMS("""sec. 6, well-posedness of several arms  when accelerations and contact forces
             are unique
    printed  the inverse of the effective inertia must be full rank
    holds    the dense system lacks the ranks that Ω = J 𝓜⁻¹ J* + A M⁻¹(C) A* does; what Ω loses is
             forces that move nothing
    note     On three arms in space, and on two of parallel pins, where Ω lacks three. Forces are
             lost, accelerations stay unique.
""")
def _(case: Case) -> float:
    for g in (rigid(case), planar(case)):
        matrix = _system(g)
        scale = 1.0 / np.sqrt(np.abs(matrix).max(axis=0))
        lacking = len(g.Omega) - rank(g.Omega)
        if len(matrix) - rank(scale[:, None] * matrix * scale) != lacking:
            return float("inf")
        sizes, directions = np.linalg.eigh(g.Omega)
        idle = directions[:, sizes < 1e-9 * sizes[-1]]
        if idle.shape[1] != lacking:
            return float("inf")
        moving = np.vstack([g.J.T @ idle, g.A.T @ idle])
        if np.abs(moving).max(initial=0.0) > 1e-6:  # of unit forces: they move nothing
            return float("inf")
    return 0.0


@SEVERAL_ARMS("""sec. 6, genericity  where the bases of the arms stand
    printed  well-posedness is generic with respect to base locations
    holds    Ω has full rank for bases drawn at random, though each arm lacks one; not where they
             coincide
    note     Twenty draws of two arms with straight wrists for each mechanism: an instance, not a
             proof.
""")
def _(case: Case) -> float:
    rng = np.random.default_rng(case.seed)
    M_C = rigid(case).M_C
    if rank(_straight_wrist()[0]) != 5:
        return float("inf")
    for _ in range(20):
        turns, places = list(random_rotation(rng, (2,))), list(rng.standard_normal((2, 3)))
        if rank(_placed(turns, places, M_C)) != 12:
            return float("inf")
        if rank(_placed([turns[0]] * 2, [places[0]] * 2, M_C)) != 11:
            return float("inf")
    return 0.0


CONTROL = Section()


@CONTROL("""sec. 6, motion and internal forces  what moments can do to an object that is held
    printed  configuration and internal forces can be controlled at the same time
    holds    moments 𝓜 v̇ + C + J* (f + squeeze), A* squeeze = 0, give v̇, α(C) and the squeeze
    note     Arms that are not singular; control laws are not printed.
""")
def _(case: Case) -> Errors:
    """Any acceleration that the contacts allow, and any squeeze, have moments that give both."""
    every = _held(case)
    rng = np.random.default_rng((case.seed, 8))
    alpha = rng.standard_normal(6)
    target = every.A @ alpha + every.contact_bias - every.bent
    theta_ddot = np.linalg.pinv(every.J) @ target
    squeeze = rng.standard_normal(len(every.A))
    squeeze = squeeze - np.linalg.pinv(every.A.T) @ (every.A.T @ squeeze)
    net = every.M_C @ alpha + every.object_bias
    f = np.linalg.pinv(every.A.T) @ net + squeeze
    moments = every.mass @ theta_ddot + every.coriolis + every.J.T @ f
    right = np.concatenate([every.contact_bias - every.bent, moments - every.coriolis])
    computed = solved(_system(every), np.concatenate([right, -every.object_bias]))
    m, n = len(every.A), len(every.T)
    yield computed[:m], f
    yield computed[m : m + n], theta_ddot
    yield computed[m + n :], alpha
