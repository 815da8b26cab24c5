"""The object-level framework, section 4: effective mass and inertia, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.spatial.array import Array
from linkwise_ledger.case import apart
from linkwise_ledger.entry import Errors
from linkwise_ledger.object_level.manipulator import Manipulator, inverted
from linkwise_ledger.object_level.subject import arm, mini, pair
from linkwise_ledger.section import Section

Y_0, Z_0 = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
"""Unit vectors along the y-axis and the z-axis."""


def J_v(m: Manipulator) -> Array:
    """Rows of linear velocity."""
    return m.J_0[:3]


def J_w(m: Manipulator) -> Array:
    """J_ω: rows of angular velocity."""
    return m.J_0[3:]


def mobility_v(m: Manipulator) -> Array:
    """Λ_v⁻¹ of (28)."""
    return J_v(m) @ m.A_inv @ J_v(m).T


def mobility_w(m: Manipulator) -> Array:
    """Λ_ω⁻¹ of (29)."""
    return J_w(m) @ m.A_inv @ J_w(m).T


def directions(m: Manipulator) -> Array:
    """Five unit vectors (5, 3)."""
    computed = m.drawn(15, 5).reshape(5, 3)
    return computed / np.linalg.norm(computed, axis=1, keepdims=True)


def along(matrix: Array, u: Array) -> Array:
    """uᵀ matrix u, for each of several vectors."""
    return np.einsum("...i,ij,...j->...", u, matrix, u)


def on_ellipsoid(matrix: Array, u: Array) -> Array:
    """The points vᵀ matrix v = 1 in these directions."""
    return u / np.sqrt(along(matrix, u))[:, None]


def _each(check: Callable[[Array, Array, Array], float]) -> Callable[[Manipulator], float]:
    """A check of Λ_v⁻¹ and of Λ_ω⁻¹: it is given the matrix, the response seen, directions."""

    def both(m: Manipulator) -> float:
        seen = m.seen_response
        of_v = check(mobility_v(m), seen[:3, :3], directions(m))
        return max(of_v, check(mobility_w(m), seen[3:, 3:], directions(m)))

    return both


def _roots(matrix: Array, seen: Array, u: Array) -> float:
    """Points of the ellipsoid are as far as the square roots of effective masses."""
    v = on_ellipsoid(matrix, u)
    return max(
        apart(along(matrix, v), np.ones(5)),
        apart(np.linalg.norm(v, axis=1), np.sqrt(1.0 / along(seen, u))),
    )


def belted(matrix: Array, u: Array) -> Array:
    """w = ‖v‖ v of points v on the ellipsoid."""
    v = on_ellipsoid(matrix, u)
    return np.linalg.norm(v, axis=1, keepdims=True) * v


def _magnitudes(matrix: Array, seen: Array, u: Array) -> float:
    """w is as long as the effective mass, vᵀ v, and points along v."""
    w = belted(matrix, u)
    return apart(w, u / along(seen, u)[:, None])


def ellipsoid(matrix: Array, v: Array) -> Array:
    """The left side of the equation of the ellipsoid."""
    return along(matrix, v)


def belted_ellipsoid(matrix: Array, v: Array) -> Array:
    """The left side of (34)."""
    return along(matrix, v) / np.sqrt(np.sum(v * v, axis=-1))


def _equation(matrix: Array, seen: Array, u: Array) -> float:
    """(34) at points whose distance is the effective mass that is seen."""
    return apart(belted_ellipsoid(matrix, u / along(seen, u)[:, None]), np.ones(5))


def _replaced(matrix: Array, seen: Array, u: Array) -> float:
    v = u * np.arange(1.0, 6.0)[:, None]
    root = np.sqrt(np.linalg.norm(v, axis=1, keepdims=True))
    return apart(ellipsoid(matrix, v / root), belted_ellipsoid(seen, v))


def _replaced_as_printed(matrix: Array, _: Array, u: Array) -> float:
    v = u * np.arange(1.0, 6.0)[:, None]
    root = np.sqrt(np.sum(v * v, axis=1, keepdims=True))
    return apart(ellipsoid(matrix, v / root), belted_ellipsoid(matrix, v))


def _axes(m: Manipulator) -> tuple[Array, Array]:
    """Semi-axes of an ellipsoid, and points on it."""
    a = np.sqrt(1.0 / np.linalg.eigvalsh(mobility_v(m)))
    return a, a * directions(m)


INERTIAL = Section()
INERTIAL.on_each(pair)("""sec. 4, Λ_0  what inertial properties are read from
    printed  Λ_0(q) = (J_0(q) A⁻¹(q) J_0ᵀ(q))⁻¹
    holds    Λ = Ω_t⁻¹: forces and moments on the effector at rest, per acceleration
    note     The response it is held against comes of articulated bodies that a unit force or moment
             sets in motion, and of poses.
""")(lambda m: (inverted(m.Lambda_0), m.seen_response))


@INERTIAL.on(mini)("""sec. 4, Λ_0⁻¹  the matrix of the ellipsoid of gyration
    printed  Λ_0⁻¹(q), whose existence is always guaranteed
    holds    J_0 A⁻¹ J_0ᵀ is the response to forces also where it has no inverse
    note     Tried on arms of six joints of which the last is locked.
""")
def _(m: Manipulator) -> float:
    """Also where Λ_0 does not exist: with the last joint locked."""
    name = m.mech.bodies[-1].hinge_name
    stiff = m.mech.lock({name: m.q[m.mech.q_slice(name)]})
    less = Manipulator(stiff, m.node, m.q[:-1], m.v[:-1], m.seed)
    computed = m.J_0[:, :-1] @ inverted(m.A[:-1, :-1]) @ m.J_0[:, :-1].T
    if np.linalg.matrix_rank(computed, rtol=1e-9) == 6:
        return float("inf")
    return apart(computed, less.seen_response)


@INERTIAL.on_each(pair)("""sec. 4, eigenvalues  bounds on inertial properties
    printed  the eigenvalues of Λ_0(q) characterize the bounds on the magnitude of the properties
    holds    λ_min ≤ 1 / (wᵀ Λ_0⁻¹ w) ≤ λ_max for unit w, with equality along eigenvectors
""")
def _(m: Manipulator) -> float:
    """By how much 1 / (wᵀ Λ_0⁻¹ w) leaves what lies between the eigenvalues of Λ_0."""
    w = m.drawn(60, 6).reshape(10, 6)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    sizes, axes = np.linalg.eigh(m.Lambda_0)
    computed = 1.0 / along(m.seen_response, w)
    ends = apart(1.0 / along(m.seen_response, axes.T), sizes)
    outside = np.maximum(sizes[0] - computed, computed - sizes[-1]).max() / sizes[-1]
    return max(ends, float(outside), 0.0)


INERTIAL.on_each(pair)("""(28)  translation by a force
    printed  Λ_v⁻¹(q) = J_v(q) A⁻¹(q) J_vᵀ(q)
    holds    Ω_t of a position: linear acceleration per force
    note     In the text below it the scan has A_v for Λ_v.
""")(lambda m: (mobility_v(m), m.seen_response[:3, :3]))


@INERTIAL.on_each(pair)("""sec. 4.1, m_y  mass perceived along the y-axis
    printed  1/m_y = J_{v_y}(q) A⁻¹(q) J_{v_y}ᵀ(q)
    holds    the same: acceleration along y per force along y
""")
def _(m: Manipulator) -> float:
    row = J_v(m)[1]
    return apart(row @ m.A_inv @ row, m.seen_response[1, 1])


INERTIAL.on_each(pair)("""sec. 4.1, J_{v_y}  Jacobian of one direction
    holds    J_{v_y}(q) = y_0ᵀ J_v(q)
""")(lambda m: (Y_0 @ J_v(m), m.seen_basic[1]))
INERTIAL.on_each(pair)("""sec. 4.1, m_y again  mass perceived along the y-axis, from Λ_v
    holds    1/m_y = y_0ᵀ Λ_v⁻¹ y_0
""")(lambda m: (Y_0 @ mobility_v(m) @ Y_0, m.seen_response[1, 1]))
INERTIAL.on_each(pair)("""(29)  rotation by a moment
    printed  Λ_ω⁻¹(q) = J_ω(q) A⁻¹(q) J_ωᵀ(q)
    holds    Ω_t of an orientation: angular acceleration per moment
""")(lambda m: (mobility_w(m), m.seen_response[3:, 3:]))
INERTIAL.on_each(pair)("""sec. 4.1, J_{ω_z}  Jacobian of one axis
    holds    J_{ω_z}(q) = z_0ᵀ J_ω(q)
""")(lambda m: (Z_0 @ J_w(m), m.seen_basic[5]))
INERTIAL.on_each(pair)("""sec. 4.1, I_z  inertia perceived about the z-axis
    printed  1/I_z = z_0ᵀ Λ_ω⁻¹(q) z_0
    holds    the same: angular acceleration about z per moment about z
""")(lambda m: (Z_0 @ mobility_w(m) @ Z_0, m.seen_response[5, 5]))


@INERTIAL.on_each(pair)("""sec. 4.2, J_{v_u}, J_{ω_u}  Jacobians of any direction
    holds    J_{v_u}(q) = uᵀ J_v(q) and J_{ω_u}(q) = uᵀ J_ω(q)
""")
def _(m: Manipulator) -> Errors:
    u = directions(m)
    yield u @ J_v(m), u @ m.seen_basic[:3]
    yield u @ J_w(m), u @ m.seen_basic[3:]


@INERTIAL.on_each(pair)("""(30)  effective mass
    printed  1/m_u(Λ_v) = uᵀ Λ_v⁻¹(q) u
    holds    the same: from rest, the component along u of the acceleration by a unit force along u
""")
def _(m: Manipulator) -> float:
    u = directions(m)
    computed = 1.0 / along(mobility_v(m), u)
    return apart(computed * along(m.seen_response[:3, :3], u), np.ones(5))


@INERTIAL.on_each(pair)("""(31)  effective inertia
    printed  1/I_u(Λ_ω) = uᵀ Λ_ω⁻¹(q) u
    holds    the same: from rest, the component about u of the acceleration by a unit moment about u
""")
def _(m: Manipulator) -> float:
    u = directions(m)
    computed = 1.0 / along(mobility_w(m), u)
    return apart(computed * along(m.seen_response[3:, 3:], u), np.ones(5))


INERTIAL.on_each(pair)("""(32)  blocks of the basic Jacobian
    means    J_0(q) = [J_v(q); J_ω(q)]
""")(lambda m: (np.vstack([J_v(m), J_w(m)]), m.seen_basic))


@INERTIAL.on_each(pair)("""(33)  structure of Λ_0⁻¹
    holds    Λ_0⁻¹(q) = [[Λ_v⁻¹(q), Λ̄_vω(q)], [Λ̄_vωᵀ(q), Λ_ω⁻¹(q)]]
    note     Λ_v and Λ_ω are not blocks of Λ_0.
""")
def _(m: Manipulator) -> float:
    """(33) against the response to forces and moments together."""
    coupling = J_v(m) @ m.A_inv @ J_w(m).T
    computed = np.block([[mobility_v(m), coupling], [coupling.T, mobility_w(m)]])
    return apart(computed, m.seen_response)


@INERTIAL.on_each(pair)("""sec. 4.3, Λ̄_vω  coupling of translation and rotation
    printed  Λ̄_vω(q) = J_v(q) A⁻¹(q) J_ωᵀ(q)
    holds    the same: linear acceleration per moment, and transposed angular one per force
""")
def _(m: Manipulator) -> float:
    computed = J_v(m) @ m.A_inv @ J_w(m).T
    return max(apart(computed, m.seen_response[:3, 3:]), apart(computed.T, m.seen_response[3:, :3]))


INERTIAL.on(arm)("""sec. 4.4, ellipsoids  the two ellipsoids, and what they show
    printed  vᵀ Λ_v⁻¹(q) v = 1 and vᵀ Λ_ω⁻¹(q) v = 1: the square roots of effective mass (inertia)
    holds    the same: ‖v‖ = √m_u along u
""")(_each(_roots))
INERTIAL.on(arm)("""sec. 4.4, w  from the ellipsoid to the belted ellipsoid
    printed  w = ‖v‖ v, of a magnitude equal to vᵀ v
    holds    the same: ‖w‖ = m_u along u
""")(_each(_magnitudes))
INERTIAL.on(arm)("""sec. 4.4, replaced vector  from one equation to the other
    printed  the equation of a belted ellipsoid is that of an ellipsoid with v replaced by v/√(vᵀ v)
    instead  ... with v replaced by v/√‖v‖ = v/(vᵀ v)^¼
    note     w = ‖v‖ v has the inverse v = w/√‖w‖. What is printed is a unit vector, which would
             give vᵀ Λ⁻¹ v / vᵀ v = 1, a cone. (34) itself is right. Whether the printer or the scan
             lost a root is unclear.
""")(_each(_replaced))
INERTIAL.on(arm).as_printed(_each(_replaced_as_printed))
INERTIAL.on(arm)("""(34)  belted ellipsoids
    printed  vᵀ Λ_v⁻¹(q) v / √(vᵀ v) = 1 and vᵀ Λ_ω⁻¹(q) v / √(vᵀ v) = 1
    holds    the same: met at the distance m_u (I_u) along u
""")(_each(_equation))


@INERTIAL.on(arm)("""sec. 4.4, an ellipsoid  by its axes
    printed  x²/a² + y²/b² + z²/c² = 1
    holds    the same, a² b² c² being the effective masses along the axes
""")
def _(m: Manipulator) -> float:
    a, v = _axes(m)
    axes = np.linalg.eigh(m.seen_response[:3, :3])[1]
    computed = along(m.seen_response[:3, :3], v @ axes.T)
    return max(apart(np.sum(v**2 / a**2, axis=1), np.ones(5)), apart(computed, np.ones(5)))


@INERTIAL.on(arm)("""sec. 4.4, a belted ellipsoid  by the axes of the ellipsoid
    holds    x²/(a² √(x² + y² + z²)) + y²/(b² √(x² + y² + z²)) + z²/(c² √(x² + y² + z²)) = 1
""")
def _(m: Manipulator) -> float:
    """The three terms at w = ‖v‖ v, a, b, c being the roots of what is seen."""
    _, v = _axes(m)
    a = np.sqrt(1.0 / np.linalg.eigvalsh(m.seen_response[:3, :3]))
    w = np.linalg.norm(v, axis=1, keepdims=True) * v
    x, y, z = w.T
    r = np.sqrt(x**2 + y**2 + z**2)
    computed = x**2 / (a[0] ** 2 * r) + y**2 / (a[1] ** 2 * r) + z**2 / (a[2] ** 2 * r)
    return apart(computed, np.ones(5))
