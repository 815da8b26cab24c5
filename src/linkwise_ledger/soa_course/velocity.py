"""The course, "Velocity Recursion": body frame at the hinge, away from it, and inertial.

The course writes vectors without axes; here all are in world axes. Velocities come from differences
of poses, so that no statement about them is checked against itself.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache

import numpy as np

from linkwise.algebra.space import BODY
from linkwise.algebra.symbols import E_phi, H, V, to_W, v
from linkwise.dynamics.kinematics import with_hinge_frames
from linkwise.model.derived import replaced
from linkwise.spatial.array import Array
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, six
from linkwise_ledger.case import Case
from linkwise_ledger.recursion import rate, split
from linkwise_ledger.section import Section
from linkwise_ledger.standard import check_shift


@dataclass(frozen=True)
class Measured:
    """Frames of a mechanism in motion, by name.

    Attributes:
        pose: In the world.
        velocity: (ω, v) of the frame's origin, in world axes.
    """

    pose: dict[str, Pose]
    velocity: dict[str, Array]

    def phi(self, a: str, b: str) -> Array:
        """φ(a, b) = [[I, l~(a, b)], [0, I]]."""
        return shift(self.pose[b].p - self.pose[a].p)


def shift(lever: Array) -> Array:
    """[[I, l~], [0, I]]."""
    one = np.eye(3)
    return blocks(one, skew(lever), 0.0 * one, one)


def body(case: Case, k: int) -> str:
    """The body frame B(k); the ground for the one inboard of the base."""
    return "world" if k < 0 else case.mech.bodies[k].name


def outside(case: Case, k: int) -> str:
    """The hinge frame O(k), fixed on the body."""
    return f"{case.mech.bodies[k].hinge_name}:O"


def inside(case: Case, k: int) -> str:
    """The hinge frame O⁺(k), fixed on what the body hangs on."""
    return f"{case.mech.bodies[k].hinge_name}:O+"


@cache
def measured(case: Case) -> Measured:
    """All frames, while the joints move with the velocity of the case."""
    return moving(case, case.v)


def moving(case: Case, v: Array) -> Measured:
    """All frames, while the joints move with v."""
    mech = with_hinge_frames(case.mech)
    names = ["world", *(b.name for b in mech.bodies), *(n.name for n in mech.nodes)]

    def poses(t: float) -> Array:
        q = mech.integrate(case.q, v, t)
        return np.stack([mech.pose(q, name).matrix for name in names])

    now, change = poses(0.0), rate(poses)
    turning = change[:, :3, :3] @ np.swapaxes(now[:, :3, :3], 1, 2)  # Ṙ R* = ω~
    w = np.stack([turning[:, 2, 1], turning[:, 0, 2], turning[:, 1, 0]], axis=-1)
    V = six(w, change[:, :3, 3])
    pose = {name: Pose(now[i, :3, :3], now[i, :3, 3]) for i, name in enumerate(names)}
    return Measured(pose, {name: V[i] for i, name in enumerate(names)})


@cache
def one_by_one(case: Case) -> tuple[Measured, ...]:
    """All frames, while one joint after the other moves at unit speed, alone."""
    return tuple(moving(case, unit) for unit in np.eye(case.mech.nv))


def turned(pose: Pose, x: Array) -> Array:
    """A spatial vector, or its columns, from the axes of a frame to those of the world."""
    zero = 0.0 * pose.rot
    return blocks(pose.rot, zero, zero, pose.rot) @ x


def hinge_columns(case: Case, k: int) -> Array:
    """H*(k) at O(k), in world axes (6, r_v)."""
    link = case.mech.bodies[k]
    H = link.hinge.hinge_map(case.q[case.mech.q_slice(link.hinge_name)])
    return turned(measured(case).pose[outside(case, k)], H.T)


def speeds(case: Case, k: int) -> Array:
    """β(k), the velocities of the hinge."""
    return case.v[case.mech.v_slice(case.mech.bodies[k].hinge_name)]


def hinge_velocity(case: Case, k: int) -> Array:
    """H*(k) β(k) at O(k), in world axes."""
    return hinge_columns(case, k) @ speeds(case, k)


@cache
def at_hinge(case: Case) -> Case:
    """The same motion with every body frame at its hinge, B(k) = O(k); without inertias."""
    mech = case.mech
    away = {"world": Pose.identity(), **{b.name: b.outboard for b in mech.bodies}}
    bodies = tuple(
        dataclasses.replace(
            b,
            inboard=away[b.parent] @ b.inboard,
            outboard=Pose.identity(),
            inertia=SpatialInertia.zero(),
        )
        for b in mech.bodies
    )
    nodes = tuple(
        dataclasses.replace(n, pose=away[n.body] @ n.pose, inertia=None) for n in mech.nodes
    )
    return Case(case.name, replaced(mech, bodies=bodies, nodes=nodes), case.seed)


# ------------------------------------------------------------------------------------- checks


def worst(pairs: list[tuple[Array, Array]]) -> float:
    """Largest difference of pairs, relative to the largest entry of all of them."""
    size = max(float(np.abs(x).max(initial=0.0)) for pair in pairs for x in pair)
    return max(float(np.abs(x - y).max(initial=0.0)) for x, y in pairs) / size


def _recursion(case: Case) -> dict[int, Array]:
    """V(k) = φ*(k+1, k) V(k+1) + φ*(O_k, B_k) H*(k) β(k), in world axes."""
    at, matrix = measured(case), {-1: np.zeros(6)}
    for k in case.outward:
        p = case.parent(k)
        added = at.phi(outside(case, k), body(case, k)).T @ hinge_velocity(case, k)
        matrix[k] = at.phi(body(case, p), body(case, k)).T @ matrix[p] + added
    return matrix


def check_split(case: Case) -> float:
    """V = V⁺ + ΔV with V⁺(k) = φ*(k+1, k) V(k+1), block by block, of measured velocities."""
    at, pairs = measured(case), list[tuple[Array, Array]]()
    ours = split(case, case.matrix(E_phi.T @ V), BODY)
    for k in case.outward:
        p, local = body(case, case.parent(k)), body(case, k)
        plus = at.phi(p, local).T @ at.velocity[p]
        added = at.phi(outside(case, k), local).T @ hinge_velocity(case, k)
        pairs += [(plus + added, at.velocity[local]), (turned(at.pose[local], ours[k]), plus)]
    return worst(pairs)


def _inertial(case: Case, k: int) -> Array:
    """V_I(k) = φ*(O_k, I) V(O_k), of the measured velocity."""
    at = measured(case)
    return at.phi(outside(case, k), "world").T @ at.velocity[outside(case, k)]


def _inertial_columns(case: Case, k: int) -> Array:
    return measured(case).phi(outside(case, k), "world").T @ hinge_columns(case, k)


# ------------------------------------------------------------------------------------ entries

_LOOP = "V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)"
_APART = (
    "O_k and O_k⁺ are one point only where the hinge has not travelled; "
    "see the entry on the joint map matrix."
)

VELOCITIES = Section()


@VELOCITIES("""Body frame same as hinge frame  body frame at the hinge
    printed  B_k ≡ O_k, V(k) ≡ V(B_k)
    means    outboard is the identity
""")
def _(case: Case) -> float:
    case = at_hinge(case)
    at = measured(case)
    return worst(
        [(at.velocity[body(case, k)], at.velocity[outside(case, k)]) for k in case.outward]
    )


@VELOCITIES("""Body frame same as hinge frame: pose  a body seen from its parent
    printed  ᵏ⁺¹T_k = ᵏ⁺¹T_Ok+1⁺ · ᴼᵏ⁺T_Ok
    instead  ᵏ⁺¹T_k = ᵏ⁺¹T_Ok⁺ · ᴼᵏ⁺T_Ok
    note     O_k+1⁺ is inboard of the parent; the hinge of body k has O_k⁺ on it.
""")
def _(case: Case, *, printed: bool = False) -> float:
    case = at_hinge(case)
    at, pairs = measured(case).pose, list[tuple[Array, Array]]()
    for k in case.outward:
        p = case.parent(k)
        if p < 0:
            continue  # the ground has no hinge
        first = inside(case, p if printed else k)
        across = at[inside(case, k)].inverse() @ at[outside(case, k)]
        computed = at[body(case, p)].inverse() @ at[first] @ across
        pairs.append((computed.matrix, (at[body(case, p)].inverse() @ at[body(case, k)]).matrix))
    return worst(pairs)


VELOCITIES("""Inter-body rigid body transformation matrix  shift from a body to its parent
    printed  l(k+1,k) ≜ l(B_k+1,B_k),  φ(k+1,k) ≜ [[I, l~(k+1,k)], [0, I]]
    means    the block of E_φ at (p, k), once both bodies are turned into the axes of the world
    note     The paper writes vectors without axes; our blocks carry the rotation too.
""")(check_shift)


@VELOCITIES("""Inter-body rigid body transformation matrix: frames  which frames it joins
    printed  φ(k+1,k) = φ(B_k+1,B_k) = φ(B_k+1,O_k) = φ(B_k+1,O_k⁺)
    instead  φ(k+1,k) = φ(B_k+1,B_k) = φ(B_k+1,O_k) = φ(B_k+1,O_k⁺) φ(O_k⁺,O_k)
    note     O_k and O_k⁺ are one point only where the hinge has not travelled; see the entry on the
             joint map matrix.
""")
def _(case: Case, *, printed: bool = False) -> float:
    case = at_hinge(case)
    at, pairs = measured(case), list[tuple[Array, Array]]()
    for k in case.outward:
        p, o, o_plus = body(case, case.parent(k)), outside(case, k), inside(case, k)
        complete, inner = at.phi(p, body(case, k)), at.phi(p, o_plus)
        pairs += [
            (complete, at.phi(p, o)),
            (complete, inner if printed else inner @ at.phi(o_plus, o)),
        ]
    return worst(pairs)


@VELOCITIES("""(1.37)  velocity on the inboard side of the hinge
    printed  V⁺(k) ≜ V(O_k⁺) = φ*(B_k+1,O_k⁺) V(k+1)
    holds    the velocity of a node on the parent at O⁺
""")
def _(case: Case) -> float:
    at, pairs = measured(case), list[tuple[Array, Array]]()
    for k in case.outward:
        p, o_plus = body(case, case.parent(k)), inside(case, k)
        pairs.append((at.phi(p, o_plus).T @ at.velocity[p], at.velocity[o_plus]))
    return worst(pairs)


@VELOCITIES("""(3.12, 3.5)  velocity on the outboard side of the hinge
    printed  V(k) = V(O_k) = V⁺(k) + Δ_V(k)
    instead  V(k) = V(O_k) = φ*(O_k⁺,O_k) V(O_k⁺) + Δ_V(k) = [E_φ* V](k) + Δ_V(k)
    note     With V⁺(k) = V(O_k⁺) of (1.37). O_k and O_k⁺ are one point only where the hinge has not
             travelled; see the entry on the joint map matrix. With V⁺ = E_φ* V it holds.
""")
def _(case: Case, *, printed: bool = False) -> float:
    case = at_hinge(case)
    at, pairs = measured(case), list[tuple[Array, Array]]()
    for k in case.outward:
        o, o_plus = outside(case, k), inside(case, k)
        carried = at.velocity[o_plus] if printed else at.phi(o_plus, o).T @ at.velocity[o_plus]
        pairs.append((carried + hinge_velocity(case, k), at.velocity[body(case, k)]))
    return worst(pairs)


@VELOCITIES.on(at_hinge)("""(3.14, 3.19a)  velocity of a body from that of its parent
    printed  V(k) = φ*(k+1,k) V(k+1) + Δ_V(k)
    holds    V(k) = φ*(p,k) V(p) + H*(k) v(k)
    note     With φ(k+1,k) = φ(B_k+1,B_k): from body frame to body frame.
(3.7)  the same with the joint map
    printed  V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)
    holds    V(k) = φ*(p,k) V(p) + H*(k) v(k)
Body spatial velocity computation  velocities by recursion from the
             base to the tip
    printed  V(n+1) = 0; for k = n … 1: V(k) = φ*(k+1,k) V(k+1) + H*(k) β(k)
    holds    for k = base … tips: V(k) = φ*(p,k) V(p) + H*(k) v(k)
""")
def check_recursion(case: Case) -> float:
    """The recursion of velocities, against measured ones; in world axes and by our operators."""
    at, computed = measured(case), _recursion(case)
    pairs = [(computed[k], at.velocity[body(case, k)]) for k in case.outward]
    ours = split(case, case.matrix(V), BODY)
    pairs += [(turned(at.pose[body(case, k)], ours[k]), computed[k]) for k in case.outward]
    return worst(pairs)


@VELOCITIES("""Body frame not at the hinge: joint map  what the hinge adds, at the body frame
    printed  Δ_V^B(k) ≜ φ*(O_k,B_k) Δ_V(k),  H_B*(k) ≜ φ*(O_k,B_k) H*(k)
    means    our H(k) is H_B(k): hinge.hinge_map(q) times the shift of outboard
""")
def _(case: Case) -> float:
    at, pairs = measured(case), list[tuple[Array, Array]]()
    for k in case.outward:
        away = at.phi(outside(case, k), body(case, k)).T @ hinge_columns(case, k)
        pairs.append((turned(at.pose[body(case, k)], case.block(H, k).T), away))
    return worst(pairs)


VELOCITIES("""Body frame not at the hinge: recursion  the recursion for any body frames
    printed  V(k) = φ*(k+1,k) V(k+1) + Δ_V^B(k) = φ*(k+1,k) V(k+1) + H_B*(k) β(k)
    holds    V(k) = φ*(p,k) V(p) + H*(k) v(k)
""")(check_recursion)


@VELOCITIES("""Inertially referenced body velocities: velocity  the motion of a body about the
             origin of the world
    printed  V_I(k) ≜ φ*(O_k,I) V(O_k)
    means    V_I = to_W V
""")
def _(case: Case) -> float:
    ours, at = split(case, case.matrix(to_W @ V), BODY), measured(case)
    pairs = [(ours[k], _inertial(case, k)) for k in case.outward]
    for k in case.outward:
        from_body = at.phi(body(case, k), "world").T @ at.velocity[body(case, k)]
        pairs.append((from_body, _inertial(case, k)))
    return worst(pairs)


@VELOCITIES("""Inertially referenced body velocities: joint map  what the hinge adds to it
    printed  H_I*(k) ≜ φ*(O_k,I) H*(k),  Δ_V^I(k) ≜ H_I*(k) β(k)
    means    H_I* = to_W H*
    note     The caption says 'referenced to the body frame'; to the inertial frame is meant.
""")
def _(case: Case) -> float:
    pairs = [(case.block(to_W @ H.T, k), _inertial_columns(case, k)) for k in case.outward]
    ours = split(case, case.matrix(to_W @ H.T @ v), BODY)
    pairs += [(ours[k], _inertial_columns(case, k) @ speeds(case, k)) for k in case.outward]
    return worst(pairs)


@VELOCITIES("""Inertially referenced body velocities: recursion  no shifts needed
    printed  V_I(k) = V_I(k+1) + Δ_V^I(k) = V_I(k+1) + H_I*(k) β(k)
    holds    to_W V(k) = to_W V(p) + to_W H*(k) v(k)
""")
def _(case: Case) -> float:
    pairs = list[tuple[Array, Array]]()
    for k in case.outward:
        p = case.parent(k)
        before = np.zeros(6) if p < 0 else _inertial(case, p)
        pairs.append((before + _inertial_columns(case, k) @ speeds(case, k), _inertial(case, k)))
    return worst(pairs)
