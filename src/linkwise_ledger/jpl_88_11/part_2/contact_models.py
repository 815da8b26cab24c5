"""JPL 88-11, Part II, Appendix A: contacts that leave turns free."""

from __future__ import annotations

from functools import cache
from itertools import chain

import numpy as np

from linkwise.spatial import quaternion, rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import random_rotation
from linkwise.spatial.vector import cross
from linkwise_ledger.case import Case, apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.grasp import (
    Contact,
    Grasp,
    loose,
    twist_at,
)
from linkwise_ledger.jpl_88_11.motion import first, shift, times
from linkwise_ledger.jpl_88_11.part_2.closed_chain import tip_accelerations
from linkwise_ledger.jpl_88_11.part_2.problem import seen_tips
from linkwise_ledger.section import Section

ATTITUDE = quaternion.normalise(np.array([0.8, 0.3, -0.4, 0.2]))
"""Of the object's side of a contact, seen from the tip's, now."""


# ----------------------------------------------------------------------------------- motion


def turns(g: Grasp, i: int) -> list[Array]:
    """Rotation vectors, in the object's axes, by which it has turned on tip i at nine times.

    Rates are h W, and h Ẇ grow; W of a point contact is in the axes of the world, which the object
    turns against.
    """
    span = slice(sum(len(W) for W in g.W[:i]), sum(len(W) for W in g.W[: i + 1]))
    w, w_dot = g.h[i] @ g.W[i], g.h[i] @ g.solution.W_dot[span]
    if g.contacts[i] == "ball":
        w_dot = w_dot - cross(g.V_C[:3], w)
    return [w * t + 0.5 * w_dot * t * t for t in times()]


@cache
def object_from(g: Grasp, i: int) -> list[Pose]:
    """How the object has moved at nine times, by tip i and by the turns on it."""
    tips = [poses[i] for poses in g.pictures]
    parts: list[Pose] = []
    for tip, turn in zip(tips, turns(g, i), strict=True):
        rot = tip.rot @ tips[4].rot.T @ quaternion.to_matrix(quaternion.exp(turn))
        parts.append(Pose(rot, tip.p - rot @ g.O[i]))
    return parts


def _object_side(g: Grasp) -> tuple[Array, Array]:
    """V⁻(0) and α⁻(0) of all contacts, seen."""
    seen = [twist_at(object_from(g, i), g.O[i]) for i in range(len(g.tips))]
    return np.concatenate([V for V, _ in seen]), np.concatenate([x for _, x in seen])


def _tip_side(g: Grasp) -> tuple[Array, Array]:
    """V⁺(0) and α⁺(0), seen."""
    seen = seen_tips(g)
    return np.concatenate([V for V, _ in seen]), np.concatenate([x for _, x in seen])


def _rates(g: Grasp) -> Array:
    return np.concatenate(g.W)


# ------------------------------------------------------------------------------- parameters


def quaternion_rates(q: Array) -> Array:
    """F̄ of Euler parameters, 4 × 3: q̇ = F̄(q) ω, ω in the object's axes."""
    return np.column_stack([quaternion.rate(q, unit) for unit in np.eye(3)])


def angle_rates(beta: Array) -> Array:
    """The inverse of F̄ of roll, pitch and yaw: ω = (this) β̇."""
    (s_r, s_p), (c_r, c_p) = np.sin(beta[:2]), np.cos(beta[:2])
    return np.array([[1.0, 0.0, -s_p], [0.0, c_r, s_r * c_p], [0.0, -s_r, c_r * c_p]])


def _parameter_rates(g: Grasp, *kinds: Contact) -> Errors:
    """Θ̇ = F W: angle, Euler parameters and Euler angles along the motion, differentiated."""
    for i in (i for i, kind in enumerate(g.contacts) if kind in kinds):
        turned = [quaternion.multiply(ATTITUDE, quaternion.exp(x)) for x in turns(g, i)]
        angles = [rotation.rpy_of(quaternion.to_matrix(q)) for q in turned]
        w = g.h[i] @ g.W[i]
        yield quaternion_rates(ATTITUDE) @ w, first(turned)
        yield np.linalg.solve(angle_rates(angles[4]), w), first(angles)
        if g.contacts[i] == "edge":  # the angle itself: F = 1
            yield g.W[i], first([g.h[i].T @ x for x in turns(g, i)])


def _shapes(g: Grasp, kind: Contact, axes: int) -> Errors:
    """What h is: orthonormal columns, as many as there are turns."""
    for h in (h for contact, h in zip(g.contacts, g.h, strict=True) if contact == kind):
        yield h.T @ h, np.eye(axes)
        yield h.shape, (3, axes)


def transmitted(kind: Contact, normal: Array, point: Array) -> Array:
    """φ(O, P) N: what forces and moments a contact at a point passes on, about the origin."""
    moments = {"ball": np.zeros((3, 0)), "soft": normal[:, None], "rigid": np.eye(3)}[kind]
    forces = np.vstack([np.zeros((3, 3)), np.eye(3)])
    return shift(point) @ np.hstack([np.vstack([moments, 0.0 * moments]), forces])


CONTACTS = Section()


@CONTACTS.on_each(loose)("""(a.1)  velocities on both sides of a contact
    holds    v⁻(0) = v⁺(0); ω⁻(0) = ω⁺(0) + Δω⁺
    note     Tip and object are moved, and differentiated: an edge, a soft finger and a point.
(a.2)  the same as spatial velocities
    means    V⁻(0) = V⁺(0) + ΔV⁺; ΔV⁺ = col[Δω⁺, 0]
""")
def _velocities(g: Grasp) -> float:
    inner, outer = (x[0].reshape(-1, 6) for x in (_tip_side(g), _object_side(g)))
    relative = np.array([h @ W for h, W in zip(g.h, g.W, strict=True)])
    return max(
        apart(outer[:, 3:], inner[:, 3:]),
        apart(outer[:, :3], inner[:, :3] + relative),
    )


CONTACTS.unchecked("""(a.3)  contact rates
    printed  W(0) = col[W_i(0)]
    means    W
""")
CONTACTS.on_each(loose)("""(a.4)  rates of contact parameters
    printed  Θ̇(0) = F[Θ(0)] W(0)
    holds    the same, for Euler parameters and for Euler angles
    note     F is not printed; ours takes ω in the object's axes. Parameters along the motion,
             differentiated.
""")(lambda g: _parameter_rates(g, "edge", "soft", "ball"))
CONTACTS.on_each(loose)("""(a.5)  relative angular velocities by contact rates
    means    Δω⁺ = h(0) W(0)
""")(_velocities)


@CONTACTS.on_each(loose)("""(a.6)  velocities across the contacts
    holds    V⁻(0) = V⁺(0) + Hᵀ(0) W(0); Hᵀ(0) = col[h(0), 0] of full rank
""")
def _(g: Grasp) -> float:
    if int(np.linalg.matrix_rank(g.H_0)) != len(g.H_0):
        return float("inf")
    computed = _tip_side(g)[0] + g.H_0.T @ _rates(g)
    return max(apart(computed, _object_side(g)[0]), apart(computed, g.A @ g.V_C))


CONTACTS.on_each(loose)("""App. A, case 1  one turn: a revolute pair, or an edge with friction
    printed  h_i(0) the unit vector of the turn; Θ = θ(0), W(0) = θ̇(0), Δω⁺ = h(0) θ̇(0); m = n_g =
             1
    means    Pin, F = 1
""")(lambda g: chain(_shapes(g, "edge", 1), _parameter_rates(g, "edge")))
CONTACTS.on_each(loose)("""App. A, case 2  three turns: a ball, or a point with friction
    printed  W(0) = Δω⁺, h(0) = I, n_g = 3; Θ = q(0), m = 4, or Θ = β, m = 3
    means    Spherical; here W in the axes of the world
""")(lambda g: chain(_shapes(g, "ball", 3), _parameter_rates(g, "ball")))


@CONTACTS("""App. A, singular angles  three or four parameters
    printed  three parameters become singular at certain attitudes, four do not
    holds    det ∂ω/∂β̇ = 0 at pitch π/2; F̄ᵀ F̄ = ¼ I for every quaternion
""")
def _(case: Case) -> Errors:
    rng = np.random.default_rng(case.seed)
    flat = np.array([rng.uniform(-1.0, 1.0), 0.5 * np.pi, rng.uniform(-1.0, 1.0)])
    yield abs(float(np.linalg.det(angle_rates(flat))))
    upright = quaternion.from_matrix(rotation.rpy(*flat))
    for q in (upright, quaternion.normalise(rng.standard_normal(4))):
        yield quaternion_rates(q).T @ quaternion_rates(q), 0.25 * np.eye(3)


CONTACTS.on_each(loose)("""App. A, case 3  two turns: a soft finger
    printed  Δω_i⁺ = h_i²(0) Δω_i² + h_i³(0) Δω_i³ = [h_i²(0), h_i³(0)] (Δω_i², Δω_i³); h_i(0) =
             [h_i²(0), h_i³(0)], n_g = 2
    means    columns of h span the tangent plane
""")(lambda g: chain(_shapes(g, "soft", 2), [_velocities(g)]))
CONTACTS.on_each(loose)("""App. A, F of a soft finger  parameters of all attitudes for two rates
    holds    Θ̇(0) = F̄[Θ(0)] Δω, F = F̄ h(0)
""")(lambda g: _parameter_rates(g, "soft"))


@CONTACTS("""App. A, attitudes of a soft finger  that all can be reached
    printed  though turns about the normal are not allowed, every attitude is attainable
    holds    any rotation is R_y(a) R_z(b) R_y(c), y and z in the tangent plane
""")
def _(case: Case) -> Errors:
    rng = np.random.default_rng(case.seed)
    for target in random_rotation(rng, (4,)):
        # wanted = R_y(a) R_z(b) R_y(c), the normal being x: columns give the angles.
        b = np.arccos(target[1, 1])
        a, c = np.arctan2(target[2, 1], -target[0, 1]), np.arctan2(target[1, 2], target[1, 0])
        y, z = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
        made = rotation.axis_angle(y, a) @ rotation.axis_angle(z, b) @ rotation.axis_angle(y, c)
        yield made, target


@CONTACTS("""App. A, number of contacts  how many hold an object
    printed  two soft fingers hold it; of points with friction at least three are needed
    holds    rank of what they pass on: 6 for two soft fingers, 5 for two points, 6 for three
    note     Ranks only: that forces stay within their cones is another matter. The three points
             must not be in line.
""")
def _(case: Case) -> float:
    rng = np.random.default_rng(case.seed)
    points, normals = rng.standard_normal((3, 3)), random_rotation(rng)
    target: dict[tuple[Contact, int], int] = {
        ("soft", 1): 4,
        ("soft", 2): 6,
        ("ball", 1): 3,
        ("ball", 2): 5,
        ("ball", 3): 6,
    }
    for (kind, number), rank in target.items():
        blocks = [transmitted(kind, normals[j], points[j]) for j in range(number)]
        if int(np.linalg.matrix_rank(np.hstack(blocks))) != rank:
            return float("inf")
    return 0.0


@CONTACTS.on_each(loose)("""App. A, reciprocity  contact forces and free turns
    printed  fᵀ(0) ΔV⁺ = 0 = fᵀ(0) Hᵀ(0) W(0) for all W(0)
    holds    no work on what a contact leaves free
(a.7)  the same
    holds    H(0) f(0) = 0
""")
def _(g: Grasp) -> float:
    powers = g.solution.f.reshape(-1, 6)[:, :3]
    size = np.abs(g.solution.f).max()
    lost = [np.abs(f @ h).max(initial=0.0) for f, h in zip(powers, g.h, strict=True)]
    return float(max(lost) / size)


CONTACTS.on_each(loose)("""(a.8)  accelerations across the contacts
    holds    α⁻(0) = α⁺(0) + Hᵀ(0) Ẇ(0) + Ḣᵀ(0) W(0)
    note     Ḣᵀ W = (ω⁻ × h W, 0) for axes that go with the object, 0 where h = I. Against poses
             differentiated twice.
""")(lambda g: (_tip_side(g)[1] + g.H_0.T @ g.solution.W_dot + g.turning, _object_side(g)[1]))
CONTACTS.on_each(loose)("""(a.9)  accelerations of the tips
    holds    α⁺(0) = J θ̈ + J̇ θ̇
""")(lambda g: (tip_accelerations(g), _tip_side(g)[1]))


@CONTACTS.on_each(loose)("""(a.10)  accelerations of the contact points of the object
    holds    α⁻(0) = A α(C) + a(C)
    note     The motion that d'Alembert's principle gives, seen from every contact.
""")
def _(g: Grasp) -> Errors:
    yield _object_side(g)[1], g.A @ g.solution.alpha + g.contact_bias
    for i in range(len(g.tips)):
        yield twist_at(object_from(g, i), g.C)[1], g.solution.alpha
