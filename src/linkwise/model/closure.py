"""What loops and couplings require of a motion.

A loop joins node a to node b by a hinge. With X_ab the pose of b seen from a, T = φ_ab* and
everything in b's axes at b's origin,

    V_ab = V_b - T V_a = H*(θ) W          the hinge leaves the directions H* free
    S V_ab = 0,  S H* = 0                  and blocks the others, the rows of S
    S (α_b - T α_a) + S (V_ab × T V_a - Ḣ* W) = 0

S is constant for most hinges: all except the universal hinge, the point on a plane, the rolling
ball, the soft finger seen from its other side and custom hinges leave the same directions free in
every position, as seen from b. A force λ along the rows of S acts on b as S* λ and on a as
-T* S* λ.

A coupling q_d = f(q) requires  N_d v - Σ f_j N_j v = 0  with the rows N of q̇ = N v.

All formulas run on arrays of dtype object as well, with a leading axis, so that they can be traced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.body import Coupling, Loop
from linkwise.model.hinges import (
    Hinge,
    Locked,
    Pin,
    PointOnPlane,
    RollingBall,
    SoftFinger,
    Spherical,
    Universal,
)
from linkwise.model.hinges.hinge import ScrewHinge
from linkwise.model.hinges.jet import Jet
from linkwise.model.hinges.modified import Reversed
from linkwise.model.mechanism import Mechanism
from linkwise.model.task_rows import JointRow, Rows
from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array, frozen
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, six

SAME = 1e-12
"""Projectors on free directions closer than this span the same space."""

MOST_STEPS = 60
"""Gauss-Newton steps to find the coordinates of a hinge from a pose."""


def closure_nodes(mech: Mechanism) -> tuple[str, ...]:
    """The nodes of all loops, a and b of the first, a and b of the second ..."""
    return tuple(name for loop in mech.loops for name in (loop.node_a, loop.node_b))


def constraint_sizes(mech: Mechanism) -> list[int]:
    """Rows of each constraint: of the loops, then of the couplings, one each."""
    return [loop.rows for loop in mech.loops] + [1] * len(mech.couplings)


def constraint_names(mech: Mechanism) -> tuple[str, ...]:
    """A name for each row of the constraints: "loop[0]", "loop[1]" ..., then the couplings'."""
    rows = [f"{loop.name}[{i}]" for loop in mech.loops for i in range(loop.rows)]
    return (*rows, *(coupling.name for coupling in mech.couplings))


# ------------------------------------------------------------------------------------------ loops


@lru_cache(maxsize=1024)
def constant_directions(hinge: Hinge) -> Array | None:
    """S (6 - nv, 6) of a hinge that blocks the same directions in every position, else None.

    Determined by trying some positions. Unit vectors come first.
    """
    if hinge.nv == 0:
        return frozen(np.eye(6))
    rng = np.random.default_rng(0)
    free = np.full(hinge.nq, np.inf)
    projectors = list[Array]()
    for q in [hinge.neutral(), *(hinge.random(rng, -free, free) for _ in range(3))]:
        H = hinge.hinge_map(q)
        projectors.append(np.eye(6) - np.linalg.pinv(H) @ H)
    if max(float(np.abs(x - projectors[0]).max()) for x in projectors[1:]) > SAME:
        return None
    return frozen(_rows_of(projectors[0]))


def _rows_of(projector: Array) -> Array:
    """Orthonormal rows that span the range of a projector, unit vectors where possible."""
    plain = [i for i in range(6) if abs(projector[i, i] - 1.0) < SAME]
    left = projector.copy()
    left[plain], left[:, plain] = 0.0, 0.0
    values, vectors = np.linalg.eigh(left)
    mixed = vectors[:, values > 0.5].T
    for row in mixed:  # one of two signs: the largest entry is positive
        row *= np.sign(row[np.argmax(np.abs(row))])
    return np.concatenate([np.eye(6)[plain], np.where(np.abs(mixed) < SAME, 0.0, mixed)])


def universal_axes(hinge: Hinge) -> tuple[Array, Array] | None:
    """The axis fixed in O+ and the one fixed in O, of a universal hinge seen from either side."""
    back = isinstance(hinge, Reversed)
    inner = hinge.hinge if isinstance(hinge, Reversed) else hinge
    if not isinstance(inner, Universal):
        return None
    first, second = np.array(inner.axis_1), np.array(inner.axis_2)
    return (second, first) if back else (first, second)


def plane_normal(hinge: Hinge) -> tuple[Array, bool] | None:
    """The normal of a plane on which a point slides, and whether the plane is b's."""
    back = isinstance(hinge, Reversed)
    inner = hinge.hinge if isinstance(hinge, Reversed) else hinge
    return (np.array(inner.normal), back) if isinstance(inner, PointOnPlane) else None


def plane_height(hinge: Hinge) -> float:
    """The height of the plane of a hinge that `plane_normal` takes."""
    inner = hinge.hinge if isinstance(hinge, Reversed) else hinge
    assert isinstance(inner, PointOnPlane)
    return inner.height


def rolling_radius(hinge: Hinge) -> tuple[float, bool] | None:
    """The radius of a rolling ball, and whether the plane is b's."""
    back = isinstance(hinge, Reversed)
    inner = hinge.hinge if isinstance(hinge, Reversed) else hinge
    return (inner.radius, back) if isinstance(inner, RollingBall) else None


def blocked_twist(hinge: Hinge) -> Array | None:
    """The normal of a soft finger whose object is a's, in a's axes."""
    inner = hinge.hinge if isinstance(hinge, Reversed) else None
    return np.array(inner.normal) if isinstance(inner, SoftFinger) else None


def is_traceable(loop: Loop) -> bool:
    """Whether S is a formula in the pose; otherwise it comes from the hinge's coordinates."""
    if isinstance(loop.hinge, Rows):
        return True
    rules = constant_directions, universal_axes, plane_normal, rolling_radius, blocked_twist
    return any(rule(loop.hinge) is not None for rule in rules)


@dataclass(frozen=True, slots=True)
class Blocked:
    """What a loop blocks in one state, or in several (...).

    Attributes:
        S: The blocked directions (..., rows, 6), in b's axes.
        rate: -S Ḣ* W (..., rows), from the turning of the free directions.
    """

    S: Array
    rate: Array


def blocked(hinge: Hinge, X_ab: Pose, V_ab: Array) -> Blocked:
    """S and -S Ḣ* W.

    Args:
        hinge: The hinge of the loop.
        X_ab: Pose of node b seen from a, with leading axes.
        V_ab: Velocity of b relative to a (..., 6), in b's axes.
    """
    if isinstance(hinge, Rows):
        return _blocked_by_task(hinge, X_ab, V_ab)
    S, axes = constant_directions(hinge), universal_axes(hinge)
    if S is not None:
        return Blocked(S, np.zeros(len(S)))
    if axes is not None:
        return _blocked_by_universal(X_ab, V_ab, *axes)
    plane = plane_normal(hinge)
    if plane is not None:
        return _blocked_by_plane(X_ab, V_ab, *plane)
    ball, normal = rolling_radius(hinge), blocked_twist(hinge)
    if ball is not None:
        return _blocked_by_rolling(X_ab, V_ab, *ball)
    if normal is not None:
        return _blocked_by_finger(X_ab, V_ab, normal)
    lead = np.shape(V_ab)[:-1]
    each = [_blocked_at(hinge, one_of(X_ab, i), V_ab[i]) for i in np.ndindex(*lead)]
    S = np.reshape([x.S for x in each], (*lead, 6 - hinge.nv, 6))
    return Blocked(S, np.reshape([x.rate for x in each], (*lead, 6 - hinge.nv)))


def _blocked_by_task(hinge: Rows, X_ab: Pose, V_ab: Array) -> Blocked:
    """S in b's axes; where it is fixed in a's, S R with the pose's rotation R, and S R (ω × V)."""
    S = hinge.rows
    if not hinge.outer:
        return Blocked(S, np.zeros(len(S)))
    turn, w = X_ab.rot, V_ab[..., :3]
    turned = np.concatenate([S[:, :3] @ turn, S[:, 3:] @ turn], axis=-1)
    rate = six(0.0 * w, cross(w, V_ab[..., 3:]))  # ω × ω = 0
    return Blocked(turned, (turned @ rate[..., None])[..., 0])


def _blocked_by_universal(X_ab: Pose, V_ab: Array, first: Array, second: Array) -> Blocked:
    """The turn about n = h1 × h2 and all translations; ω = h1 w1 + h2 w2, S Ḣ* W = |n| w1 w2."""
    back = np.swapaxes(X_ab.rot, -1, -2)
    h1, w = (back @ first[:, None])[..., 0], V_ab[..., :3]
    h2 = np.broadcast_to(second, h1.shape)
    n = cross(h1, h2)
    length = np.sqrt((n * n).sum(axis=-1))[..., None]
    s = n / length
    w1 = (s * cross(w, h2)).sum(axis=-1)[..., None] / length
    w2 = (s * cross(h1, w)).sum(axis=-1)[..., None] / length
    turn = np.concatenate([s, np.zeros(s.shape)], axis=-1)[..., None, :]
    slides = np.broadcast_to(np.eye(6)[3:], (*s.shape[:-1], 3, 6))
    rate = -length * w1 * w2
    return Blocked(
        np.concatenate([turn, slides], axis=-2),
        np.concatenate([rate, np.zeros((*s.shape[:-1], 3))], axis=-1),
    )


def _blocked_by_plane(X_ab: Pose, V_ab: Array, normal: Array, back: bool) -> Blocked:
    """The way along the normal n of a plane, at the point that slides on it.

    On b, at p, where a's origin is:    n·(v + ω × p) = 0,  ṗ = -(v + ω × p),  rate n·(ω × ṗ)
    On a, the point being b's origin:   n·v = 0 with ṅ = n × ω in b's axes,    rate (n × ω)·v
    """
    turn, w, v = np.swapaxes(X_ab.rot, -1, -2), V_ab[..., :3], V_ab[..., 3:]
    if not back:
        n = (turn @ normal[:, None])[..., 0]
        rate = (cross(n, w) * v).sum(axis=-1)[..., None]
        return Blocked(six(0.0 * n, n)[..., None, :], rate)
    p = -(turn @ X_ab.p[..., None])[..., 0]
    arm = cross(p, normal)
    length = np.sqrt((arm * arm).sum(axis=-1) + 1.0)[..., None]
    slide = v + cross(w, p)
    rate = -(normal * cross(w, slide)).sum(axis=-1)[..., None] / length
    return Blocked(six(arm / length, normal / length)[..., None, :], rate)


def _blocked_by_rolling(X_ab: Pose, V_ab: Array, radius: float, back: bool) -> Blocked:
    """The velocity of a ball where it touches the plane, in the plane's axes; the last row is up.

    With l = (0, 0, -radius) from the centre of the ball, and R, p the pose of b seen from a:

    The ball is b:   R v - l × R ω = 0,                         rate R (ω × v)
    The ball is a:   v + ω × c = 0,  c = l + r, r = -R* p,  rate -ω × (v + ω × r)
    """
    arm, w, v = np.array([0.0, 0.0, -radius]), V_ab[..., :3], V_ab[..., 3:]
    if not back:
        turn = X_ab.rot
        S = np.concatenate([-skew(arm) @ turn, turn], axis=-1)
        return Blocked(S, (turn @ cross(w, v)[..., None])[..., 0])
    p = -(np.swapaxes(X_ab.rot, -1, -2) @ X_ab.p[..., None])[..., 0]
    turn = -skew(p + arm)
    S = np.concatenate([turn, np.eye(3) + 0.0 * turn], axis=-1)
    return Blocked(S, -cross(w, v + cross(w, p)))


def _blocked_by_finger(X_ab: Pose, V_ab: Array, normal: Array) -> Blocked:
    """All translations, and the turn about n in b's axes: n · ω = 0, whose rate is (n × ω) · ω."""
    n = (np.swapaxes(X_ab.rot, -1, -2) @ normal[:, None])[..., 0]
    twist = six(n, 0.0 * n)[..., None, :]
    slides = np.eye(6)[3:] + 0.0 * twist
    return Blocked(np.concatenate([slides, twist], axis=-2), np.zeros((*np.shape(V_ab)[:-1], 4)))


def one_of(pose: Pose, index: tuple[int, ...]) -> Pose:
    """One pose of a stack; a single pose has the empty index."""
    return pose[index] if index else pose


def _blocked_at(hinge: Hinge, X_ab: Pose, V_ab: Array) -> Blocked:
    """From the hinge's coordinates, in one state."""
    q = coordinates(hinge, X_ab)
    H = hinge.hinge_map(q)
    S = _orthogonal_to(H, like=_orthogonal_to(hinge.hinge_map(hinge.neutral())))
    W = least_squares(H.T, V_ab)
    return Blocked(S, -S @ hinge.bias(q, W))


def _orthogonal_to(H: Array, like: Array | None = None) -> Array:
    """Orthonormal rows S with S H* = 0; those nearest to given ones, so that they turn smoothly."""
    S = np.linalg.svd(H)[2][len(H) :]
    if like is None:
        return S
    left, _, right = np.linalg.svd(like @ S.T)
    return left @ right @ S


def least_squares(A: Array, b: Array) -> Array:
    """x of least norm among those that minimise |A x - b|."""
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=np.float64)


def coordinates(hinge: Hinge, X_ab: Pose, start: Array | None = None) -> Array:
    """θ (nq,) for which the hinge's pose is nearest to a given one, by Gauss-Newton steps.

    A nonholonomic hinge can reach all of its hull, if not directly: the hull is searched.
    """
    hinge = hinge.hull
    q = hinge.neutral() if start is None else np.asarray(start, dtype=np.float64)
    if hinge.nv == 0:
        return q
    q = _searched(hinge, X_ab, q)
    turns = _turns_missed(hinge, error(hinge, X_ab, q), hinge.hinge_map(q))
    return _searched(hinge, X_ab, q + turns) if np.any(turns) else q


def _turns_missed(hinge: Hinge, e: Array, H: Array) -> Array | float:
    """Full turns of screws with a pitch that would remove a remaining offset along their axes."""
    if not isinstance(hinge, ScrewHinge):
        return 0.0
    rate = np.linalg.norm(H[:, :3], axis=1)
    axis = H[:, :3] / np.where(rate > 0.0, rate, 1.0)[:, None]
    way = (axis * H[:, 3:]).sum(axis=1) * 2.0 * np.pi / np.where(rate > 0.0, rate, 1.0)  # a turn
    helical = (rate > 0.0) & (np.abs(way) > 1e-9)
    turns = np.where(helical, np.rint((axis @ e[3:]) / np.where(helical, way, 1.0)), 0.0)
    return turns * 2.0 * np.pi / np.where(rate > 0.0, rate, 1.0)


def _searched(hinge: Hinge, X_ab: Pose, q: Array) -> Array:
    for _ in range(MOST_STEPS):
        step = least_squares(hinge.hinge_map(q).T, error(hinge, X_ab, q))
        q = hinge.integrate(q, step)
        if float(np.abs(step).max()) < 1e-14:
            break
    return q


def error(hinge: Hinge, X_ab: Pose, q: Array) -> Array:
    """Rotation vector [rad] and translation [m] (..., 6) from the hinge's pose to a given one."""
    off = hinge.pose(q).inverse() @ X_ab
    return six(rotation.log(off.rot), off.p)


# -------------------------------------------------------------------------------------- couplings


@dataclass(frozen=True, slots=True)
class Follower:
    """The row of a coupling in one state.

    Attributes:
        terms: Body, and coefficients of its velocities (..., nv of the hinge), of each coordinate.
        rate: What is left of the second derivative of q_d - f(q) while v̇ = 0 (...).
    """

    terms: tuple[tuple[int, Array], ...]
    rate: Array


def follower(mech: Mechanism, coupling: Coupling, q: Array, v: Array) -> Follower:
    """The row N_d - Σ f_j N_j, and Ṅ_d v - Σ (f_j Ṅ_j v + f_jj (N_j v)²), at (..., nq), (..., nv).

    Source: the chain rule; f_j and f_jj are `Coupling.slopes` and `Coupling.curvatures`.
    """
    if isinstance(coupling, JointRow):
        k = mech.hinge_index[coupling.dependent]
        unit = np.eye(mech.bodies[k].hinge.nv)[coupling.index]
        lead = np.shape(v)[:-1]
        return Follower(((k, np.broadcast_to(unit, (*lead, len(unit)))),), np.zeros(lead))
    at = {name: _coordinate(mech, name, q, v) for name, _ in coupling.terms}
    known = {name: q[..., mech.coordinate(name)] for name in at}
    k, row, _, bend = _coordinate(mech, coupling.dependent, q, v)
    terms, rate = [(k, row)], bend
    slopes, curvatures = coupling.slopes(known), coupling.curvatures(known)
    for name, (k, row, speed, bend) in at.items():
        terms.append((k, -slopes[name][..., None] * row))
        rate = rate - slopes[name] * bend - curvatures[name] * speed * speed
    return Follower(tuple(terms), rate)


def _coordinate(mech: Mechanism, name: str, q: Array, v: Array) -> tuple[int, Array, Array, Array]:
    """Body, row N of q̇ = N v (..., nv), speed N v and Ṅ v of one coordinate."""
    index = mech.coordinate(name)
    k = int(np.searchsorted(mech.q_start, index, side="right")) - 1
    hinge, inner = mech.bodies[k].hinge, index - int(mech.q_start[k])
    q_k = q[..., mech.q_start[k] : mech.q_start[k + 1]]
    v_k = v[..., mech.v_start[k] : mech.v_start[k + 1]]
    if type(hinge).qdot is Hinge.qdot:  # q̇ = v
        row = np.broadcast_to(np.eye(hinge.nv)[inner], v_k.shape)
        return k, row, v_k[..., inner], 0.0 * v_k[..., inner]
    unit = np.eye(hinge.nv)
    row = np.stack([hinge.qdot(q_k, unit[i])[..., inner] for i in range(hinge.nv)], axis=-1)
    bend = Jet.slope(hinge.qdot, (q_k, hinge.qdot(q_k, v_k)), (v_k, None))[..., inner]
    return k, row, hinge.qdot(q_k, v_k)[..., inner], bend


def coupling_error(mech: Mechanism, coupling: Coupling, q: Array) -> Array:
    """q_d - f(q) (...) [rad or m]."""
    known = {name: q[..., mech.coordinate(name)] for name, _ in coupling.terms}
    return q[..., mech.coordinate(coupling.dependent)] - coupling.value(known)


def check_nodes(mech: Mechanism, nodes: tuple[str, ...]) -> None:
    """Raise unless the nodes of the loops come first."""
    needed = closure_nodes(mech)
    if nodes[: len(needed)] != needed:
        raise ModelError(
            f"the closure map of {mech.name!r} is about the nodes of its loops, which have to "
            f"come first: nodes=lw.loops.closure_nodes(mech), {needed}; found {nodes}."
        )


def loop_error(hinge: Hinge, X_ab: Pose) -> Array:
    """How far one loop is from closed in one state: e (6,), in closed form for most hinges.

    With X_ab = (R, p) the pose of node b seen from a, e is the rotation vector and translation from
    the nearest pose that the hinge allows, seen from there:

        weld   e = (log R, p)
        ball   e = (0, R* p)
        pin    e = (log S, T* p)   R = T S, T the turn about the axis nearest to R, S across it

    A nonholonomic hinge can reach all of its hull. For other hinges the coordinates are searched.
    """
    R, p, hinge = X_ab.rot, X_ab.p, hinge.hull
    if isinstance(hinge, Spherical):
        return np.concatenate([np.zeros(3), p @ R])
    if isinstance(hinge, Locked) and hinge.of is None:
        return np.concatenate([rotation.log(R), p])
    if isinstance(hinge, Pin):
        return _pin_error(hinge, R, p)
    return error(hinge, X_ab, coordinates(hinge, X_ab))


def _pin_error(pin: Pin, R: Array, p: Array) -> Array:
    """Of the quaternion of R the part along the axis is the turn T, what is left the swing S."""
    w, x, y, z = quaternion.from_matrix(R).tolist()
    a, b, c = pin.axis
    along = a * x + b * y + c * z
    size = math.hypot(w, along)
    if size == 0.0:  # the axes are opposite: every turn is as near as any other
        return np.concatenate([math.pi * np.array([x, y, z]), p])
    cosine, sine = w / size, along / size  # of half the angle of T
    # S = T⁻¹ R, as quaternions (cosine, -sine axis) (w, x, y, z); its part along the axis is zero.
    swing = (
        cosine * x - sine * (w * a + b * z - c * y),
        cosine * y - sine * (w * b + c * x - a * z),
        cosine * z - sine * (w * c + a * y - b * x),
    )
    length = math.hypot(*swing)
    scale = 2.0 * math.atan2(length, size) / length if length > 1e-150 else 2.0
    turn = pin.pose(np.array([2.0 * math.atan2(sine, cosine)])).rot
    return np.concatenate([scale * np.array(swing), p @ turn])
