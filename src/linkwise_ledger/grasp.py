"""Several arms that hold an object: what statements about closed chains are tried on.

The arms are one forest on the ground, so that a stacked operator of the paper, diag over
arms, is the operator of Linkwise on the forest. The first arm is the mechanism of a case, of any
hinges, branched or not; two arms of six and seven joints join it. Where their tips are, there the
object is held. There is no gravity, as in the paper.

The object is a handful of particles, and vectors at its points are in the axes of the world:
velocities V = (ω, v), accelerations α = V̇ with ordinary derivatives. The accelerations that
everything is held against come of motions without contact forces in them: those that the contacts
allow, and no others, are put into d'Alembert's principle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from linkwise import models
from linkwise.algebra.symbols import B, J, a, bias, mass, phi, rot_W
from linkwise.model.hinges import Pin
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import random_rotation, skew, unskew
from linkwise.spatial.vector import blocks, cross, six
from linkwise_ledger.case import Case
from linkwise_ledger.entry import Check
from linkwise_ledger.jpl_88_11.links import diagonal
from linkwise_ledger.jpl_88_11.motion import first, second, shift, times, with_hinges

Contact: TypeAlias = Literal["rigid", "edge", "soft", "ball"]
"""A contact that leaves 0, 1, 2 or 3 turns; the last three are cases 1, 3, 2 of JPL 88-11-II, A."""

PICK = B @ rot_W.T
"""B of the paper: tips in the axes of the world."""


class Solution(NamedTuple):
    """What the forward dynamics problem asks for: θ̈, f(0), α(C), Ẇ(0)."""

    theta_ddot: Array
    f: Array
    alpha: Array
    W_dot: Array


class Grasp(Case):
    """Arms and the object that they hold, in a state that the contacts allow.

    Args:
        arms: The arms, each in its state; the first moves as it does, the others go along.
        contacts: How each holds the object.
        seed: Of the object, of moments and of contact rates.

    Attributes:
        tips: Names of the tips.
        C: The point of the object [m].
        masses, particles: What the object is made of [kg], [m].
        T: Moments at the joints.
        h: Axes of the contacts, (3, n_g) for each arm.
        W: Contact rates, for each arm.
    """

    def __init__(self, arms: Sequence[Case], contacts: Sequence[Contact], seed: int) -> None:
        forest = arms[0].mech.with_gravity(np.zeros(3))
        for i, arm in enumerate(arms[1:], start=2):
            forest = forest.mount(arm.mech, at="world", prefix=f"arm_{i}_")
        super().__init__(f"{arms[0].name}, {len(arms)} arms", forest, seed)
        self.arms, self.contacts = list(arms), list(contacts)
        others = [f"arm_{i}_{arm.node}" for i, arm in enumerate(arms[1:], start=2)]
        self.tips = [arms[0].node, *others]
        rng = np.random.default_rng((seed, 6))
        self.q = np.concatenate([arm.q for arm in arms])
        self.O = np.array([forest.pose(self.q, tip).p for tip in self.tips])
        self.C = self.O.mean(axis=0) + 0.2 * rng.standard_normal(3)
        self.masses = rng.uniform(0.05, 0.2, 6)
        self.particles = self.C + 0.3 * rng.standard_normal((6, 3))
        axes = random_rotation(rng, (len(arms),))
        self.h = [_axes(kind, rot) for kind, rot in zip(contacts, axes, strict=True)]
        self.W: list[Array] = [rng.standard_normal(x.shape[1]) for x in self.h]
        moves = self._velocities()
        pace = 0.7 / float(np.abs(moves).max())  # no joint faster than this
        self.v, self.W = pace * moves, [pace * W for W in self.W]
        self.T = self._moments(rng)
        self.dense.values["tau"] = self.T

    @property
    def nodes(self) -> list[str]:
        """The tips."""
        return self.tips

    @property
    def tip_links(self) -> dict[int, int]:
        """Which link has which tip."""
        names = [self.mech.node(tip).body for tip in self.tips]
        return {self.mech.body_index[name]: i for i, name in enumerate(names)}

    def _velocities(self) -> Array:
        """θ̇ of an object that moves with the first tip; the other arms follow, (2.5a), (a.6)."""
        parts: list[Array] = []
        V_C = np.zeros(6)
        for i, arm in enumerate(self.arms):
            jacobian, lever = arm.matrix(rot_W @ J), shift(self.O[i] - self.C)
            turned = six(self.h[i] @ self.W[i], np.zeros(3))
            if i == 0:
                parts.append(arm.v)
                V_C = np.linalg.inv(lever.T) @ (jacobian @ parts[0] + turned)
            else:
                parts.append(np.linalg.pinv(jacobian, rcond=1e-10) @ (lever.T @ V_C - turned))
        return np.concatenate(parts)

    def _moments(self, rng: np.random.Generator) -> Array:
        """Moments that move everything gently: differences of poses have to see it.

        Accelerations that the contacts allow are drawn, then forces that give them to the object,
        with others among them that squeeze it; the moments are what the arms need for both.
        """
        start, basis = self._allowed
        x = start + basis @ rng.uniform(-1.0, 1.0, len(basis.T))
        n = self.mech.nv
        held = np.vstack([self.A.T, self.H_0])
        net = self.M_C @ x[n : n + 6] + self.object_bias
        back = np.linalg.pinv(held, rcond=1e-10)
        squeeze = 0.1 * rng.standard_normal(len(self.A))
        f = back @ np.concatenate([net, np.zeros(len(self.H_0))]) + squeeze - back @ held @ squeeze
        return self.mass @ x[:n] + self.coriolis + self.J.T @ f

    # ------------------------------------------------------------------------------- arms

    @cached_property
    def mass(self) -> Array:
        """𝓜."""
        return self.matrix(mass)

    @cached_property
    def mass_inv(self) -> Array:
        """𝓜⁻¹, by elimination."""
        return np.asarray(np.linalg.inv(self.mass), dtype=np.float64)

    @cached_property
    def J(self) -> Array:
        """J of all tips."""
        return self.matrix(rot_W @ J)

    @cached_property
    def coriolis(self) -> Array:
        """𝒞."""
        return self.matrix(bias)

    @cached_property
    def bent(self) -> Array:
        """J̇ θ̇ = Bᵀ φᵀ a + a(0), (5.1d); the loops (2.1d) hold it against poses."""
        return self.matrix(rot_W @ B.T @ phi.T @ a) + self.tip_bias

    @cached_property
    def tip_bias(self) -> Array:
        """a(0): Linkwise's accelerations of bodies leave out (0, ω × v), ordinary ones have it."""
        V = self.tip_velocity.reshape(-1, 6)
        return six(np.zeros(3), cross(V[:, :3], V[:, 3:])).ravel()

    @cached_property
    def tip_velocity(self) -> Array:
        """V(0)."""
        return self.J @ self.v

    def arm_of(self, i: int) -> slice:
        """Where the joints of arm i stand."""
        start = sum(arm.mech.nv for arm in self.arms[:i])
        return slice(start, start + self.arms[i].mech.nv)

    # ----------------------------------------------------------------------------- object

    @cached_property
    def A(self) -> Array:
        """(2.6)."""
        return np.vstack([shift(point - self.C).T for point in self.O])

    @cached_property
    def V_C(self) -> Array:
        """V(C), from what arm 1 does to the object."""
        first_tip = self.tip_velocity[:6] + six(self.h[0] @ self.W[0], np.zeros(3))
        return np.linalg.inv(self.A[:6]) @ first_tip

    @cached_property
    def p_C(self) -> Array:
        """From C to the centre of mass."""
        return self.masses @ (self.particles - self.C) / self.masses.sum()

    @cached_property
    def I_C(self) -> Array:
        """Rotational inertia at C."""
        arms = [skew(r - self.C) for r in self.particles]
        total = sum(-m * r @ r for m, r in zip(self.masses, arms, strict=True))
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def M_C(self) -> Array:
        """M(C)."""
        m, p = float(self.masses.sum()), skew(self.p_C)
        return blocks(self.I_C, m * p, -m * p, m * np.eye(3))

    @cached_property
    def M_C_inv(self) -> Array:
        """M⁻¹(C)."""
        return np.asarray(np.linalg.inv(self.M_C), dtype=np.float64)

    @cached_property
    def object_bias(self) -> Array:
        """b(C)."""
        m, w = float(self.masses.sum()), self.V_C[:3]
        return six(cross(w, self.I_C @ w), m * cross(w, cross(w, self.p_C)))

    @cached_property
    def contact_bias(self) -> Array:
        """a(C)."""
        w = self.V_C[:3]
        return six(np.zeros(3), cross(w, cross(w, self.O - self.C))).ravel()

    # --------------------------------------------------------------------------- contacts

    @cached_property
    def H_0(self) -> Array:
        """H(0), (a.6): no rows where all contacts are rigid."""
        return diagonal([np.vstack([x, 0.0 * x]) for x in self.h]).T

    @cached_property
    def turning(self) -> Array:
        """Ḣᵀ(0) W(0): axes of an edge and of a soft finger go with the object."""
        parts: list[Array] = []
        for kind, h, W in zip(self.contacts, self.h, self.W, strict=True):
            goes = cross(self.V_C[:3], h @ W) if kind in ("edge", "soft") else np.zeros(3)
            parts.append(six(goes, np.zeros(3)))
        return np.concatenate(parts)

    # ------------------------------------------------------------------------- combined

    @cached_property
    def compliance(self) -> Array:
        """A M⁻¹(C) Aᵀ."""
        return self.A @ self.M_C_inv @ self.A.T

    @cached_property
    def Omega(self) -> Array:
        """(3.1)."""
        return self.J @ self.mass_inv @ self.J.T + self.compliance

    @cached_property
    def Omega_inv(self) -> Array:
        """Ω⁻¹."""
        return np.asarray(np.linalg.inv(self.Omega), dtype=np.float64)

    @cached_property
    def T_free(self) -> Array:
        """T' of (2.15a)."""
        return self.T - self.coriolis

    @cached_property
    def a_free(self) -> Array:
        """a'(C) of (2.15b)."""
        return self.contact_bias - self.A @ self.M_C_inv @ self.object_bias - self.bent

    @cached_property
    def _allowed(self) -> tuple[Array, Array]:
        """Accelerations (θ̈, α(C), Ẇ(0)) that the contacts allow: one, and what can be added."""
        rows = np.hstack([self.J, -self.A, self.H_0.T])
        target = self.contact_bias - self.bent - self.turning
        _, sizes, directions = np.linalg.svd(rows)
        rank = int((sizes > 1e-9 * sizes[0]).sum())
        return np.linalg.pinv(rows, rcond=1e-10) @ target, directions[rank:].T

    @cached_property
    def solution(self) -> Solution:
        """What moves how: d'Alembert's principle among the motions that the contacts allow."""
        n, w, (start, basis) = len(self.T), len(self.H_0), self._allowed
        inertia = diagonal([self.mass, self.M_C, np.zeros((w, w))])
        push = np.concatenate([self.T_free, -self.object_bias, np.zeros(w)])
        x = start + basis @ solved(basis.T @ inertia @ basis, basis.T @ (push - inertia @ start))
        rows = np.hstack([self.J, -self.A, self.H_0.T])
        f = np.linalg.pinv(rows.T, rcond=1e-10) @ (push - inertia @ x)
        return Solution(x[:n], f, x[n : n + 6], x[n + 6 :])

    # --------------------------------------------------------------------------- in motion

    @cached_property
    def pictures(self) -> list[list[Pose]]:
        """The tips at nine times of the motion that the solution starts."""
        move = [self.v * t + 0.5 * self.solution.theta_ddot * t * t for t in times()]
        states = [self.mech.integrate(self.q, x) for x in move]
        return [[self.mech.pose(q, tip) for tip in self.tips] for q in states]

    @cached_property
    def object_motion(self) -> list[Pose]:
        """How the object, held rigidly, has moved with tip 1 at these times."""
        start = self.pictures[4][0].inverse()
        return [poses[0] @ start for poses in self.pictures]


def _axes(kind: Contact, rot: Array) -> Array:
    """h(0): the turns that a contact leaves. A soft finger's normal is the first axis."""
    columns = {"rigid": rot[:, :0], "edge": rot[:, :1], "soft": rot[:, 1:], "ball": np.eye(3)}
    return columns[kind]


def solved(matrix: Array, right: Array) -> Array:
    """matrix⁻¹ right, by elimination."""
    return np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)


def twist(poses: Sequence[Pose]) -> tuple[Array, Array]:
    """V and α = V̇ of a frame seen at nine times, in the axes of the world."""
    rot, p = [x.rot for x in poses], [x.p for x in poses]
    angular = unskew(first(rot) @ rot[4].T), unskew(second(rot) @ rot[4].T)
    return six(angular[0], first(p)), six(angular[1], second(p))


def twist_at(poses: Sequence[Pose], point: Array) -> tuple[Array, Array]:
    """The same of what has moved by these poses, at the point that is at `point` now."""
    return twist([Pose(x.rot, x.apply(point)) for x in poses])


def rank(matrix: Array, least: float = 1e-9) -> int:
    """How many singular values stand out: are more than `least` of the largest."""
    return int(np.linalg.matrix_rank(matrix, rtol=least))


def unfit(build: Callable[[Grasp], object]) -> Check:
    """The check of what is printed where matrices do not fit: infinite, if they indeed do not."""

    def check(case: Case) -> float:
        try:
            build(rigid(case))
        except ValueError:
            return float("inf")
        return 0.0

    return check


@cache
def rigid(case: Case) -> Grasp:
    """The mechanism of a case and two arms hold an object rigidly."""
    return _grasp(case, ("rigid", "rigid", "rigid"))


@cache
def loose(case: Case) -> tuple[Grasp, ...]:
    """The same by one kind of contact, another for the next case, and by one of each kind."""
    kinds: tuple[Contact, ...] = ("edge", "soft", "ball")
    return _grasp(case, (kinds[case.seed % 3],) * 3), _grasp(case, kinds)


def _grasp(case: Case, contacts: tuple[Contact, ...]) -> Grasp:
    still = np.zeros(3)
    arms = [
        Case(case.name, case.mech.with_gravity(still), case.seed),
        Case("arm of seven pins", models.seven_dof_arm().with_gravity(still), 11),
        Case("PUMA", models.puma560().with_gravity(still), 12),
    ]
    return Grasp(arms, contacts, case.seed + 20)


@cache
def planar(case: Case) -> Grasp:
    """Two arms of four parallel pins hold an object: three of the twelve rows say nothing new."""
    flat = with_hinges(models.chain(4, length=0.4, mass=1.0), lambda k, was: Pin((0.0, 0.0, 1.0)))
    arms = [Case("arm in a plane", flat, case.seed + 30 + i) for i in range(2)]
    return Grasp(arms, ("rigid", "rigid"), case.seed + 40)
