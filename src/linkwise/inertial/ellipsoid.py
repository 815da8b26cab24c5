"""Ellipsoids of inertia as curves and surfaces: belted, gyration and inertia ellipsoids.

With the principal values m_i of Λ (masses or rotational inertias) and its axes,

    inertia ellipsoid    v* Λ v = 1       semi-axes 1 / √m_i     long where it is light   (Asada)
    gyration ellipsoid   v* Λ⁻¹ v = 1     semi-axes √m_i         long where it is heavy   (Hogan)
    belted ellipsoid     v* Λ⁻¹ v = |v|   distance m_u along u   the effective mass itself

The belted ellipsoid follows from the gyration ellipsoid by w = |v| v, which squares distances: the
point in direction u, at √m_u, moves to m_u. In the other direction v = w / √|w|, and v* Λ⁻¹ v = 1
becomes w* Λ⁻¹ w / |w| = 1, which is (34). The text of 003 above (34) substitutes v / √(v* v) for v,
which would give v* Λ⁻¹ v / (v* v) = 1, a cone; the root of the length is meant, v / (v* v)^¼.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, number, option
from linkwise.errors import ModelError, ShapeError
from linkwise.inertial.effective_mass import ROUNDING, What, response_matrix
from linkwise.inertial.properties import InertialProperties
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.pose import Pose

Kind: TypeAlias = Literal["belted", "gyration", "inertia"]
Plane: TypeAlias = str | Sequence[Sequence[float]] | Array

BEYOND = 3.0
"""Infinite surfaces are cut at this multiple of the largest finite principal value."""

LEAST = 8
"""Fewest points around a circle."""


@dataclass(frozen=True, slots=True, eq=False)
class InertialShape:
    """A curve or surface about a node, in the unit of its values: kg or kg m², and roots of them.

    Attributes:
        kind: "belted", "gyration" or "inertia".
        what: "mass" or "rotation".
        points: Vertices (k, 2) around a curve, or (k, 3) of a surface, from the node's origin, in
            the axes of the response.
        normals: Unit normals outward at the vertices (k, 2) or (k, 3).
        faces: Triangles (f, 3) of a surface, counterclockwise from outside; of a curve (0, 3).
        cut: Vertices (k,) that were moved to `limit`.
        limit: Largest distance of a vertex; infinite if nothing was cut.
        principal: Principal values of Λ (2,) or (3,), rising; infinite where blocked.
        axes: Their directions, as columns, in the plane of a curve: (2, 2) or (3, 3).
        plane: Orthonormal columns (3, 2) of the plane of a curve; the identity for a surface, (3,
            3), or for a matrix of two rows, (2, 2).
    """

    kind: Kind
    what: What
    points: Array
    normals: Array
    faces: NDArray[np.int64]
    cut: NDArray[np.bool_]
    limit: float
    principal: Array
    axes: Array
    plane: Array

    @property
    def radii(self) -> Array:
        """Distances of the vertices (k,)."""
        return np.linalg.norm(self.points, axis=-1)

    @property
    def directions(self) -> Array:
        """Unit vectors from the centre to the vertices (k, 2) or (k, 3)."""
        return ball_of(self.points)

    def placed(self, at: Pose | ArrayLike, scale: float = 1.0) -> Array:
        """Vertices in the world (k, 3) [m].

        Args:
            at: The centre (3,), for properties in world axes; or the pose of the node, for
                properties in node axes.
            scale: Metres for each unit of the shape.
        """
        pose = at if isinstance(at, Pose) else Pose(np.eye(3), floats(at, "the centre"))
        if self.plane.shape[0] != 3 or np.shape(pose.p) != (3,):
            raise ShapeError(
                f"the centre has shape {np.shape(pose.p)} and the shape has "
                f"{self.plane.shape[0]} rows; both must have three to be placed in space."
            )
        return pose.p + number(scale, "scale") * self.points @ self.plane.T @ pose.rot.T

    def __str__(self) -> str:
        form = "curve" if self.points.shape[1] == 2 else f"surface of {len(self.faces)} triangles"
        unit = "kg" if self.what == "mass" else "kg m²"
        values = ", ".join(f"{x:.4g}" if np.isfinite(x) else "blocked" for x in self.principal)
        text = f"{self.kind} ellipsoid, {form}, principal values {values} {unit}"
        return f"{text}, cut at {self.limit:.4g}" if self.cut.any() else text


def ellipsoid(
    of: InertialProperties | ArrayLike,
    kind: Kind = "belted",
    *,
    what: What = "mass",
    plane: Plane | None = None,
    resolution: int = 96,
    limit: float | None = None,
) -> InertialShape:
    """An ellipsoid of inertia as a curve or surface.

    Expression:
        "belted"     v* Λ⁻¹ v / √(v* v) = 1, that is v = m_u u with 1 / m_u = u* Λ⁻¹ u
        "gyration"   v* Λ⁻¹ v = 1: points at the distance √m_u along each direction u
        "inertia"    v* Λ v = 1: velocities of the same kinetic energy; flat where blocked
    Source: 003 sections 4 and 4.4, (34); Asada 1983, Hogan 1984. The vertices of the belted
    ellipsoid are w = |v| v of points v of the gyration ellipsoid, as in its figure 5; they are
    dense where the surface bends.

    Args:
        of: Properties of one state, or a response Λ⁻¹ (2, 2) or (3, 3).
        kind: "belted", "gyration" or "inertia".
        what: Of properties, "mass" (Λ_v) or "rotation" (Λ_ω).
        plane: Two letters, "xy", or two directions (2, 3), for a curve in that plane: the section
            of a belted or gyration ellipsoid. Of the inertia ellipsoid it is the projection, the
            ellipse of the task of moving in that plane, (P* Λ⁻¹ P)⁻¹.
        resolution: Points around; even.
        limit: Cuts greater distances. Default: no cut, unless a direction is blocked, where the
            surface is infinite: then three times the largest finite principal value, or its root
            for "gyration".

    Raises:
        ModelError: All directions are blocked.
        ShapeError: A batch, or a matrix that is not a response.
    """
    option(kind, get_args(Kind), "kind of ellipsoid")
    resolution = count(resolution, "resolution", least=4, most=5000)
    basis, principal, axes = _axes(of, what, plane)
    exists = np.isfinite(principal)
    if not exists.any():
        name = f"{of.node!r}" if isinstance(of, InertialProperties) else "the space"
        raise ModelError(
            f"{name} has no {kind} ellipsoid: it cannot {'move' if what == 'mass' else 'turn'} in "
            "any of these directions; all are blocked."
        )
    open_ended = kind != "inertia" and not exists.all()
    if limit is None:
        far = BEYOND * float(principal[exists].max()) if open_ended else np.inf
        limit = float(np.sqrt(far)) if kind == "gyration" else far
    if not limit > 0.0 or (open_ended and limit == np.inf):
        raise ModelError(
            f"limit is {limit!r}; it must be above zero, and finite where a direction is blocked, "
            "because the surface is infinite there."
        )
    ball, faces = (
        sphere(resolution) if len(principal) == 3 else (circle(resolution), np.zeros((0, 3), int))
    )
    points, normals = _vertices(kind, ball, principal, limit)
    size = np.linalg.norm(points, axis=-1)
    cut = size > limit * (1.0 + 1e-12)
    points[cut] *= limit / size[cut, None]
    normals[cut] = ball_of(points[cut])  # of the ball that cuts it
    if np.linalg.det(axes) < 0.0:
        faces = faces[:, ::-1]  # the axes are left-handed: keep faces counterclockwise from outside
    return InertialShape(
        kind,
        what,
        points @ axes.T,
        normals @ axes.T,
        faces,
        cut,
        limit if cut.any() else np.inf,
        principal,
        axes,
        basis,
    )


def ball_of(points: Array) -> Array:
    """Points as unit vectors; the centre stays."""
    size = np.linalg.norm(points, axis=-1, keepdims=True)
    return points / np.where(size > 0.0, size, 1.0)


def _vertices(kind: Kind, ball: Array, principal: Array, limit: float) -> tuple[Array, Array]:
    """Vertices and normals in the principal axes; inaccurate beyond the limit."""
    response = np.where(np.isfinite(principal), 1.0 / principal, 0.0)
    if kind == "inertia":  # v_i = s_i / √m_i
        points = ball * np.sqrt(response)
        return points, ball_of(ball * np.sqrt(np.where(response > 0.0, principal, 1e300)))
    # Directions of v_i = √m_i s_i, the ellipsoid of gyration, as far as it is shown.
    near = limit if kind == "belted" else limit**2
    u = ball_of(ball * np.sqrt(np.minimum(principal, near)))
    yielding = np.sum(u**2 * response, axis=1)  # u* Λ⁻¹ u
    distance = 1.0 / np.maximum(yielding, 0.01 / near)  # beyond the limit any value will do
    if kind == "gyration":
        return np.sqrt(distance)[:, None] * u, ball_of(response * u)
    # The gradient of v* Λ⁻¹ v / |v| at v = m_u u is 2 Λ⁻¹ u - (u* Λ⁻¹ u) u.
    return distance[:, None] * u, ball_of(2.0 * response * u - yielding[:, None] * u)


def _axes(
    of: InertialProperties | ArrayLike, what: What, plane: Plane | None
) -> tuple[Array, Array, Array]:
    """The plane, the principal values (rising, infinite where blocked) and their axes in it."""
    if what not in ("mass", "rotation"):
        raise ModelError(f"what is {what!r}; it must be 'mass' or 'rotation'.")
    if isinstance(of, InertialProperties):
        if of.is_batch:
            raise ShapeError(
                f"these are properties of {len(of)} states; choose one of them, properties[i]."
            )
        moving = what == "mass"
        if plane is None:
            principal = of.principal_masses if moving else of.principal_inertias
            return np.eye(3), principal, of.mass_axes if moving else of.inertia_axes
        matrix = of.translational_response if moving else of.rotational_response
    else:
        matrix = response_matrix(of)
        if matrix.shape not in ((2, 2), (3, 3)):
            raise ShapeError(
                f"the response Λ⁻¹ has shape {matrix.shape}; a curve needs (2, 2), a surface "
                "(3, 3). Use a block of six rows, as lw.inertial.inertial_properties does."
            )
    basis = np.eye(len(matrix)) if plane is None else plane_basis(plane, len(matrix))
    values, axes = np.linalg.eigh(basis.T @ matrix @ basis)
    values, axes = values[::-1], axes[:, ::-1]  # easiest, that is lightest, first
    small = ROUNDING * np.abs(matrix).max()
    if values[-1] < -small:
        raise ModelError(
            f"the response has the eigenvalue {values[-1]:.3g}, below zero: the matrix is not the "
            "response Λ⁻¹ of a mechanism. Give `operational_inertia_inverse`, or a block of it."
        )
    with np.errstate(divide="ignore"):
        return basis, 1.0 / np.where(values > small, values, 0.0), axes


def plane_basis(plane: Plane, size: int = 3) -> Array:
    """Orthonormal columns (3, 2) of a plane: two letters of "xyz", or two directions (2, 3)."""
    if size != 3:
        raise ShapeError("a plane was given for a response of two rows, which already is one.")
    if isinstance(plane, str):
        if len(plane) != 2 or not set(plane) < set("xyz") or plane[0] == plane[1]:
            raise ModelError(f"plane is {plane!r}; it must be two of x, y, z, like 'xz'.")
        return np.eye(3)[:, ["xyz".index(letter) for letter in plane]]
    rows = floats(plane, "plane")
    if rows.shape != (2, 3) or not np.isfinite(rows).all():
        raise ShapeError(f"plane has shape {rows.shape}; it must be two directions, (2, 3).")
    first, second = ball_of(rows)
    across = second - (first @ second) * first
    if np.linalg.norm(across) < 1e-9:
        raise ModelError(
            "the two directions of the plane are along one line; give two that differ."
        )
    return np.stack([first, across / np.linalg.norm(across)], axis=1)


def circle(resolution: int) -> Array:
    """Unit vectors (resolution, 2) around a circle, once."""
    angle = np.linspace(0.0, 2.0 * np.pi, _checked_resolution(resolution), endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def sphere(resolution: int) -> tuple[Array, NDArray[np.int64]]:
    """Unit vectors (k, 3) over a sphere and triangles (f, 3) between them, seen from outside.

    Half of `resolution` circles of latitude about the third axis, of `resolution` points each, and
    the two poles. Triangles are counterclockwise; the surface is closed.
    """
    around = _checked_resolution(resolution)
    rings = around // 2 - 1
    ring = circle(around)
    height = np.cos(np.pi * np.arange(1, rings + 1) / (rings + 1))
    wide = np.sqrt(1.0 - height**2)
    middle = np.concatenate(
        [
            wide[:, None, None] * ring,
            np.broadcast_to(height[:, None, None], (rings, around, 1)),
        ],
        axis=-1,
    )
    points = np.concatenate([[[0.0, 0.0, 1.0]], middle.reshape(-1, 3), [[0.0, 0.0, -1.0]]])
    here = np.arange(around)
    after = (here + 1) % around
    faces = [np.stack([np.zeros_like(here), 1 + here, 1 + after], axis=-1)]
    for k in range(rings - 1):
        upper, lower = 1 + k * around, 1 + (k + 1) * around
        faces.append(np.stack([upper + here, lower + here, lower + after], axis=-1))
        faces.append(np.stack([upper + here, lower + after, upper + after], axis=-1))
    last, bottom = 1 + (rings - 1) * around, len(points) - 1
    faces.append(np.stack([np.full_like(here, bottom), last + after, last + here], axis=-1))
    return points, np.concatenate(faces).astype(np.int64)


def _checked_resolution(resolution: object) -> int:
    if isinstance(resolution, int) and resolution >= LEAST and resolution % 2 == 0:
        return resolution
    raise ModelError(
        f"resolution is {resolution!r}; the number of points around a circle must be an even whole "
        f"number, {LEAST} at least."
    )
