"""The course, "Hinges and Constraints" to "Hinge Map Matrix": poses, and what hinges allow."""

from __future__ import annotations

import numpy as np

from linkwise.algebra.symbols import M, V
from linkwise.model.hinges import (
    Cylindrical,
    Free,
    Helical,
    Hinge,
    Pin,
    Prismatic,
    RollingBall,
    Spherical,
)
from linkwise.spatial import quaternion
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross_force
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.recursion import moved, paths, rate, split
from linkwise_ledger.section import Section
from linkwise_ledger.soa_course.velocity import (
    body,
    hinge_columns,
    hinge_velocity,
    inside,
    measured,
    outside,
    speeds,
    turned,
)

# ------------------------------------------------------------------------------------- checks


def _step(case: Case, k: int) -> Pose:
    """The pose of body k seen from its parent, as three poses in a row."""
    link = case.mech.bodies[k]
    hinge = link.hinge.pose(case.q[case.mech.q_slice(link.hinge_name)])
    return link.inboard @ hinge @ link.outboard


def _seen(case: Case, a: str, b: str) -> Array:
    at = measured(case).pose
    return (at[a].inverse() @ at[b]).matrix


def _pose_rate(case: Case, k: int) -> tuple[Array, Array, Array]:
    """The pose of O(k) seen from the parent, its rate, and H* β in the parent's axes."""
    mech, link = case.mech, case.mech.bodies[k]
    span = mech.q_slice(link.hinge_name)

    def pose(t: float) -> Array:
        q = mech.integrate(case.q, case.v, t)
        return (link.inboard @ link.hinge.pose(q[span])).matrix

    X = pose(0.0)
    W = link.hinge.hinge_map(case.q[span]).T @ speeds(case, k)
    return X, rate(pose), np.concatenate([X[:3, :3] @ W[:3], X[:3, :3] @ W[3:]])


_Z, _ZZ = (0.0, 0.0, 1.0), 0.37
EXAMPLES: tuple[tuple[Hinge, list[list[float]]], ...] = (
    (Pin(_Z), [[0, 0, 1, 0, 0, 0]]),
    (Prismatic(_Z), [[0, 0, 0, 0, 0, 1]]),
    (Helical(_Z, _ZZ), [[0, 0, 1, 0, 0, _ZZ]]),
    (Cylindrical(_Z), [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]]),
    (Spherical(), [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]]),
)
"""Hinges, and the rows of H that the paper prints as columns of H*."""


def _moves_as(hinge: Hinge, H: Array, seed: int) -> float:
    """Whether the pose of a hinge changes as H says, in a random state."""
    rng = np.random.default_rng(seed)
    q, v = hinge.integrate(hinge.neutral(), rng.standard_normal(hinge.nv)), np.ones(hinge.nv)
    X = hinge.pose(q)
    change = rate(lambda t: hinge.pose(hinge.integrate(q, t * v)).matrix)
    twist = np.linalg.inv(X.matrix) @ change
    w = [twist[2, 1], twist[0, 2], twist[1, 0]]
    return apart(np.concatenate([w, twist[:3, 3]]), H.T @ v)


def _rolling(case: Case) -> tuple[Array, Array, Array]:
    """A ball on the plane z = 0: l to the contact, ω and v of its centre, all in fixed axes."""
    hinge, rng = RollingBall(0.3), np.random.default_rng(case.seed)
    q, v = hinge.integrate(hinge.neutral(), rng.standard_normal(3)), rng.standard_normal(3)
    change = rate(lambda t: hinge.pose(hinge.integrate(q, t * v)).matrix)
    rot = hinge.pose(q).rot
    turning = change[:3, :3] @ rot.T
    w = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
    return np.array([0.0, 0.0, -hinge.radius]), w, change[:3, 3]


# ------------------------------------------------------------------------------------ entries

HINGES = Section()


@HINGES("""Recap from last session  equation of motion of one rigid body about any frame z
    printed  f(z) = M(z) β̇_J(z) + b_J(z)
    holds    f = M(k) V̇(k) + b(k), b = V ×* M V, is the rate of the body's momentum
    note     With the velocity of the body frame, in its axes, as β_J.
""")
def _(case: Case) -> float:
    mech, errors = case.mech, list[float]()
    space = V.range
    velocities = split(case, case.matrix(V), space)
    changes = split(case, rate(lambda t: moved(case, t)(V)), space)

    def momentum(t: float) -> Array:
        dense = moved(case, t)
        h = split(case, dense(M @ V), space)
        poses = mech.poses(mech.integrate(case.q, case.v, t))
        return np.stack([poses[k].shift @ h[k] for k in case.outward])

    forces, poses = rate(momentum), mech.poses(case.q)
    for k in case.outward:
        inertia = case.block(M, k)
        f = inertia @ changes[k] + cross_force(velocities[k], inertia @ velocities[k])
        errors.append(apart(poses[k].shift @ f, forces[k]))
    return max(errors)


HINGES("""Inter-connected bodies  numbers of bodies
    printed  k+1 is the parent of k; 1 is the tip
    means    parent[k] < k: k+1 of the paper is our parent, its 1 ... n our bodies from the tip
""")(lambda case: 0.0 if all(case.parent(k) < k for k in case.outward) else 1.0)


@HINGES("""Relative body pose  a body seen from its parent, across the hinge
    printed  ᵏ⁺¹T_k = ᵏ⁺¹T_Ok · ᴼᵏT_k = (ᵏ⁺¹T_Ok⁺ · ᴼᵏ⁺T_Ok) · ᴼᵏT_k
    holds    X_pk = inboard · hinge.pose(q(k)) · outboard
""")
def _(case: Case) -> Errors:
    for k in case.outward:
        p = body(case, case.parent(k))
        complete, o, o_plus = _seen(case, p, body(case, k)), outside(case, k), inside(case, k)
        two = _seen(case, p, o) @ _seen(case, o, body(case, k))
        three = _seen(case, p, o_plus) @ _seen(case, o_plus, o) @ _seen(case, o, body(case, k))
        yield from ((x, complete) for x in (two, three, _step(case, k).matrix))


@HINGES("""(1.6)  pose of a body from that of its parent
    printed  ᴵT_k = ᴵT_k+1 · ᵏ⁺¹T_k
    holds    X(k) = X(p) X_pk
Computing the pose of any body  poses by recursion
    printed  ᴵT_n+1 = I; for k = n … 1: ᴵT_k = ᴵT_k+1 · ᵏ⁺¹T_k
    holds    for k = base … tips: X(k) = X(p) X_pk(q(k)), X(world) = I
    note     The = of the loop's range is lost, here and in four more loops.
""")
def _(case: Case) -> Errors:
    """The recursion of poses, against the frames themselves."""
    blocks_at = {-1: np.eye(4)}
    for k in case.outward:
        blocks_at[k] = blocks_at[case.parent(k)] @ _step(case, k).matrix
        yield blocks_at[k], measured(case).pose[body(case, k)].matrix


@HINGES("""Computing relative pose  one body seen from another
    printed  ʲT_k = ʲT_j-1 ⋯ ᵏ⁺¹T_k
    holds    X_jk = X_j,j-1 ⋯ X_pk along the branch; across branches X_j⁻¹ X_k
""")
def _(case: Case) -> Errors:
    for j, k in paths(case):
        X, i = np.eye(4), k
        while i != j:
            X, i = _step(case, i).matrix @ X, case.parent(i)
        yield X, _seen(case, body(case, j), body(case, k))


@HINGES("""(1.3)  rate of the hinge pose
    printed  d(ᵏ⁺¹T_Ok)/dt = [[ω~(Ok⁺,Ok), v(Ok⁺,Ok)], [0, 0]]
    instead  d(ᵏ⁺¹T_Ok)/dt = [[ω~(Ok⁺,Ok) ᵏ⁺¹R_Ok, v(Ok⁺,Ok)], [0, 0]]
    note     The rotation behind ω~ is missing: Ṙ = ω~ R. As printed it holds only where R = I.
""")
def _(case: Case, *, printed: bool = False) -> Errors:
    for k in case.outward:
        X, computed, W = _pose_rate(case, k)
        expected = np.zeros((4, 4))
        expected[:3, :3] = skew(W[:3]) @ (np.eye(3) if printed else X[:3, :3])
        expected[:3, 3] = W[3:]
        yield computed, expected


@HINGES("""Hinge differential kinematics  relative velocities of a hinge
    printed  Δω(k) ≜ ω(Ok⁺,Ok), Δv(k) ≜ v(Ok⁺,Ok)
    means    (Δω, Δv) = H*(k) v(k), at O
""")
def _check_parts(case: Case) -> Errors:
    yield 0.0
    for k in case.outward:
        hinge = case.mech.bodies[k].hinge
        h = hinge_columns(case, k)
        X, change, _ = _pose_rate(case, k)
        turning = change[:3, :3] @ X[:3, :3].T
        w = np.array([turning[2, 1], turning[0, 2], turning[1, 0]])
        rot = measured(case).pose[body(case, case.parent(k))].rot
        beta = speeds(case, k)
        computed = np.concatenate([h[:3] @ beta, h[3:] @ beta])
        yield computed, np.concatenate([rot @ w, rot @ change[:3, 3]])
        yield 0.0 if h.shape == (6, hinge.nv) and hinge.nq >= hinge.nv else 1.0


@HINGES("""Joint map matrix  relative velocity of a hinge
    printed  Δ_V(k) ≜ V(Ok) - V(Ok⁺) = [Δω(k); Δv(k)] = H*(k) β(k)
    instead  Δ_V(k) = V(Ok) - φ*(Ok⁺,Ok) V(Ok⁺) = H*(k) β(k)
    note     The two velocities belong to two points. Where a hinge has travelled (prismatic,
             cylindrical, planar …) and its parent turns, ω × l(Ok⁺,Ok) is between them. On pins and
             balls, where the points are one, it holds as printed.
""")
def _(case: Case, *, printed: bool = False) -> float:
    """What is left of V(O) when the motion of O⁺ is taken away, against H* β."""
    at, errors, size = measured(case), list[float](), 0.0
    for k in case.outward:
        o, o_plus = outside(case, k), inside(case, k)
        carried = np.eye(6) if printed else at.phi(o_plus, o).T
        computed = at.velocity[o] - carried @ at.velocity[o_plus]
        size = max(size, float(np.abs(at.velocity[o]).max()))
        errors.append(float(np.abs(computed - hinge_velocity(case, k)).max()))
    return max(errors) / size


HINGES("""Structure of the joint map matrix  angular and linear part
    printed  H*(k) = [h_ω(k); h_v(k)] ∈ R^(6 × r_v(k)), Δω = h_ω β, Δv = h_v β, r_p(k) ≥ r_v(k)
    holds    rows of H(k) are (angular, linear); nv of a hinge is at most its nq
""")(_check_parts)


@HINGES("""Examples of joint map matrix  pin, prismatic, helical, cylindrical, spherical
    printed  (0 0 1 0 0 0), (0 0 0 0 0 1), (0 0 1 0 0 p), [pin, prismatic], [I_3; 0]
    holds    H of Pin, Prismatic, Helical (pitch p), Cylindrical, Spherical, axis z
""")
def _(case: Case) -> Errors:
    yield from (_moves_as(hinge, np.array(H), case.seed) for hinge, H in EXAMPLES)
    yield from ((hinge.hinge_map(hinge.neutral()), np.array(H)) for hinge, H in EXAMPLES)


HINGES("""Examples of joint map matrix: free hinge  the hinge map of a free hinge
    printed  H* = I, six degrees of freedom
    holds    H of Free is I
""")(
    lambda case: max(
        _moves_as(Free(), np.eye(6), case.seed),
        apart(Free().hinge_map(Free().neutral()), np.eye(6)),
    )
)


@HINGES("""Ball rolling on a surface: constraint  no slip at the contact point
    printed  Δv + Δω~ l = 0  ⇒  [-l~ I_3] Δ_V = 0_3
    holds    v + ω × l = 0, l from the centre to the contact point
""")
def _(case: Case) -> float:
    arm, w, v = _rolling(case)
    rows = np.hstack([-skew(arm), np.eye(3)]) @ np.concatenate([w, v])
    size = float(np.abs(v).max())
    return max(float(np.abs(v + skew(w) @ arm).max()), float(np.abs(rows).max())) / size


@HINGES("""Ball rolling on a surface: joint map  its three axes
    printed  Δ_V = [I_3; l~] β,  H* = [I_3; l~] ∈ R^(6 × 3)
    holds    H* = [I; l~], β = ω
""")
def _(case: Case) -> float:
    arm, w, v = _rolling(case)
    H_T = np.vstack([np.eye(3), skew(arm)])
    free = np.abs(np.hstack([-skew(arm), np.eye(3)]) @ H_T).max()
    return max(apart(H_T @ w, np.concatenate([w, v])), float(free))


@HINGES("""Ball rolling on a surface: axes  where the joint map of a ball is constant
    printed  H*: constant in inertial axes, not in those of the ball
    holds    H of RollingBall changes with q; in the axes of O⁺ it is [I, -l~], l = (0, 0, -r)
""")
def _(case: Case) -> float:
    """In the ball's axes H changes as it rolls; turned to fixed axes it is [I, -l~] always."""
    hinge, rng = RollingBall(0.3), np.random.default_rng(case.seed)
    states = [hinge.integrate(hinge.neutral(), rng.standard_normal(3)) for _ in range(2)]
    rows_of_hinge = [hinge.hinge_map(q).T for q in states]
    fixed = [
        turned(hinge.pose(q), h) @ hinge.pose(q).rot.T
        for q, h in zip(states, rows_of_hinge, strict=True)
    ]
    expected = np.vstack([np.eye(3), skew(np.array([0.0, 0.0, -0.3]))])
    if apart(rows_of_hinge[0], rows_of_hinge[1]) < 0.01:
        return 1.0
    return max(apart(h, expected) for h in fixed)


@HINGES("""Ball rolling on a surface: ellipsoid  where it is not
    printed  H* of an ellipsoid: constant in neither
    holds    l in fixed axes depends on the orientation of an ellipsoid
""")
def _(case: Case) -> float:
    rng, squares = np.random.default_rng(case.seed), np.diag([0.01, 0.04, 0.09])
    arms = list[Array]()
    for _ in range(2):
        turn = rng.standard_normal(4)
        rot = quaternion.to_matrix(turn / np.linalg.norm(turn))
        depth = rot @ squares @ rot.T
        arms.append(-depth[:, 2] / np.sqrt(depth[2, 2]))
    return 0.0 if apart(arms[0], arms[1]) > 0.01 else 1.0
