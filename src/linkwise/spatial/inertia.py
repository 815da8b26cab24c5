"""Spatial inertia of a rigid body, kept as mass, first moment and second moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.arguments import is_a, number, places
from linkwise.errors import ModelError, ShapeError
from linkwise.spatial.array import Array, ArrayLike, constant, floats, frozen, stack
from linkwise.spatial.pose import Pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross, six

TRIANGLE_SLACK = 1e-6
"""Relative slack of the triangle inequality: files often print moments with six digits."""


@dataclass(frozen=True, slots=True, eq=False)
class SpatialInertia:
    """M = [[J, h~], [-h~, m 1]] about a frame's origin, in its axes.

    Attributes:
        mass: m [kg], shape (...).
        h: First moment m c, with c the centre of mass [kg m], shape (..., 3).
        J: Rotational inertia about the origin [kg m²], shape (..., 3, 3).
    """

    mass: Array
    h: Array
    J: Array

    def __post_init__(self) -> None:
        mass = floats(self.mass, "mass")
        for name, axes in (("mass", ()), ("h", (3,)), ("J", (3, 3))):
            what = f"{name} of a spatial inertia"
            array = np.array(floats(getattr(self, name), what))
            if array.shape != (*mass.shape, *axes):
                raise ShapeError(
                    f"{what} has shape {array.shape}; with masses of shape {mass.shape} it must be "
                    f"{(*mass.shape, *axes)}."
                )
            if not np.isfinite(array).all():
                raise ShapeError(f"{what} must be finite.")
            object.__setattr__(self, name, frozen(array))

    @staticmethod
    def zero() -> SpatialInertia:
        """No mass at all. Always the same object."""
        return _ZERO

    @staticmethod
    def from_com(
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        J_com: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        rot: ArrayLike | None = None,
    ) -> SpatialInertia:
        """From values about the centre of mass, by the parallel-axis theorem.

        Args:
            mass: m [kg].
            com: Centre of mass in the frame [m].
            J_com: Rotational inertia about it, (3, 3) or its diagonal (3,) [kg m²].
            rot: Axes of `J_com` seen from the frame; by default they are parallel.
        """
        m = constant(mass, (), "mass")
        c = constant(com, (3,), "centre of mass")
        moments = floats(J_com, "rotational inertia")
        moments = np.diag(moments) if moments.shape == (3,) else moments
        about_com = constant(moments, (3, 3), "rotational inertia")
        if rot is not None:
            axes = Pose.rotation(rot).rot
            about_com = axes @ about_com @ axes.T
        return trusted_inertia(m, frozen(m * c), frozen(about_com + m * _point_inertia(c)))

    @staticmethod
    def point(mass: float, com: ArrayLike = (0.0, 0.0, 0.0)) -> SpatialInertia:
        """A point mass [kg] at `com` [m]."""
        return SpatialInertia.from_com(mass, com)

    @staticmethod
    def solid_box(mass: float, lengths: ArrayLike) -> SpatialInertia:
        """Box about its centre; full edge lengths (3,) [m]."""
        mass = number(mass, "the mass of a box [kg]", least=0.0)
        x, y, z = _sizes(lengths, "edge lengths") ** 2
        return SpatialInertia.from_com(mass, J_com=mass / 12.0 * np.array([y + z, x + z, x + y]))

    @staticmethod
    def solid_ellipsoid(mass: float, semi_axes: ArrayLike) -> SpatialInertia:
        """Ellipsoid about its centre; semi-axes (3,) [m]."""
        mass = number(mass, "the mass of an ellipsoid [kg]", least=0.0)
        x, y, z = _sizes(semi_axes, "semi-axes") ** 2
        return SpatialInertia.from_com(mass, J_com=mass / 5.0 * np.array([y + z, x + z, x + y]))

    @staticmethod
    def solid_sphere(mass: float, radius: float) -> SpatialInertia:
        """Ball about its centre [m]."""
        radius = number(radius, "the radius of a ball [m]", least=0.0)
        return SpatialInertia.solid_ellipsoid(mass, (radius, radius, radius))

    @staticmethod
    def solid_cylinder(mass: float, radius: float, length: float) -> SpatialInertia:
        """Cylinder along z about its centre [m]."""
        mass, radius, length = _round(mass, radius, length, "cylinder")
        across = mass * (3.0 * radius**2 + length**2) / 12.0
        along = 0.5 * mass * radius**2
        return SpatialInertia.from_com(mass, J_com=(across, across, along))

    @staticmethod
    def solid_capsule(mass: float, radius: float, length: float) -> SpatialInertia:
        """Cylinder along z of the given length, closed by two half balls, about its centre [m]."""
        mass, radius, length = _round(mass, radius, length, "capsule")
        cylinder, ball = radius**2 * length, 4.0 / 3.0 * radius**3  # volumes over π
        if not cylinder + ball > 0.0:
            raise ShapeError(
                f"a capsule of radius {radius} m and length {length} m has no volume to fill; "
                "give positive numbers."
            )
        density = mass / (cylinder + ball)
        m_c, m_b = density * cylinder, density * ball
        along = 0.5 * m_c * radius**2 + 0.4 * m_b * radius**2
        # A half ball's centre of mass is 3r/8 above its flat face: its moment moves out from there.
        across = m_c * (3.0 * radius**2 + length**2) / 12.0 + m_b * (
            0.4 * radius**2 + 0.25 * length**2 + 0.375 * radius * length
        )
        return SpatialInertia.from_com(mass, J_com=(across, across, along))

    @property
    def com(self) -> Array:
        """Centre of mass (..., 3) [m]; the origin where there is no mass."""
        m = np.asarray(self.mass)[..., None]
        return np.where(m == 0.0, 0.0, self.h / np.where(m == 0.0, 1.0, m))

    @property
    def J_com(self) -> Array:
        """Rotational inertia about the centre of mass, in the frame's axes (..., 3, 3)."""
        return self.J - np.asarray(self.mass)[..., None, None] * _point_inertia(self.com)

    @property
    def matrix(self) -> Array:
        """M, shape (..., 6, 6)."""
        h = skew(self.h)
        m = np.asarray(self.mass)[..., None, None] * np.eye(3)
        return blocks(self.J, h, -h, m)

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        """Two bodies welded together, both about the same frame."""
        is_a(SpatialInertia, other, "the other side of +")
        if other is _ZERO:
            return self
        if self is _ZERO:
            return other
        return trusted_inertia(
            np.asarray(self.mass + other.mass), frozen(self.h + other.h), frozen(self.J + other.J)
        )

    def moved(self, X_AB: Pose) -> SpatialInertia:
        """φ_AB M φ_AB*: this inertia, given in frame B, about frame A and in its axes.

        With c = rot h:  J_A = rot J rot* - p~ c~ - c~ p~ - m p~ p~,  h_A = c + m p.
        """
        if X_AB is Pose.identity() or self is _ZERO:
            return self
        rot, p = X_AB.rot, X_AB.p
        c = (rot @ self.h[..., None])[..., 0]
        m = np.asarray(self.mass)[..., None]
        turned = rot @ self.J @ np.swapaxes(rot, -1, -2)
        pc = skew(p) @ skew(c)
        J = turned - pc - np.swapaxes(pc, -1, -2) + m[..., None] * _point_inertia(p)
        symmetric = 0.5 * (J + np.swapaxes(J, -1, -2))
        return trusted_inertia(self.mass, frozen(c + m * p), frozen(symmetric))

    def scaled(self, factor: float) -> SpatialInertia:
        """The same shape with its density multiplied by `factor`."""
        factor = number(factor, "the factor of an inertia", least=0.0)
        return trusted_inertia(
            np.asarray(factor * self.mass), frozen(factor * self.h), frozen(factor * self.J)
        )

    def apply(self, V: Array) -> Array:
        """M V: spatial momentum (..., 6) of the velocity V about the frame."""
        V = np.asarray(V)
        w, v = V[..., :3], V[..., 3:]
        angular = (self.J @ w[..., None])[..., 0] + cross(self.h, v)
        linear = np.asarray(self.mass)[..., None] * v - cross(self.h, w)
        return six(angular, linear)

    def coriolis_factor(self, V: Array) -> Array:
        """B_V (..., 6, 6): the factor of the gyroscopic force V ×* M V = B_V V.

            B_V = ½ (V ×* M - M V× + (M V)×~) = [[ω~ (J - ½ tr J) - h~ v~, 0], [-f~, 0]]
        with f = m v + ω × h the linear momentum, and (M V)×~ W = W ×* M V. Of all factors it is the
        one that is metric and without torsion: B_V + B_V* = V ×* M - M V×, the rate of M as seen
        from outside, and B_V W - B_W V = -M (V × W).
        """
        V = np.asarray(V)
        w, v = V[..., :3], V[..., 3:]
        J = np.asarray(self.J)
        half = 0.5 * (J[..., 0, 0] + J[..., 1, 1] + J[..., 2, 2])
        turning = skew(w) @ (J - half[..., None, None] * np.eye(3)) - skew(self.h) @ skew(v)
        linear = skew(np.asarray(self.mass)[..., None] * v - cross(self.h, w))
        return blocks(turning, 0.0 * turning, -linear, 0.0 * linear)

    def principal(self) -> tuple[Array, Array]:
        """Moments about the centre of mass, ascending (..., 3), and the rotation to their axes."""
        moments, axes = np.linalg.eigh(self.J_com)
        flip = np.where(np.linalg.det(axes) < 0.0, -1.0, 1.0)[..., None, None]
        return moments, axes * flip

    def findings(self) -> list[tuple[str, str]]:
        """Why no rigid body can have this inertia, as (code, sentence); empty for a possible one.

        Codes: "not-finite", "mass", "first-moment", "symmetry", "positive", "triangle".
        """
        self._single()
        if not all(np.isfinite(x).all() for x in (self.mass, self.h, self.J)):
            return [("not-finite", "mass, first moment or rotational inertia is not finite.")]
        m, problems = float(self.mass), list[tuple[str, str]]()
        if m < 0.0:
            return [("mass", f"mass is {m:.6g} kg; it must be positive, or zero for a frame.")]
        scale = float(np.abs(self.J).max())
        if m == 0.0:
            if float(np.abs(self.h).max()) > 0.0:
                problems.append(("first-moment", "mass is zero but the first moment m c is not."))
            if scale > 0.0:
                problems.append(
                    ("mass", f"mass is zero but the rotational inertia is up to {scale:.3g} kg m².")
                )
            return problems
        skewness = float(np.abs(self.J - self.J.T).max())
        if skewness > 1e-9 * scale:
            return [("symmetry", f"rotational inertia is not symmetric, by {skewness:.3g} kg m².")]
        moments, _ = self.principal()
        # J_com is a small difference of large J and parallel-axis term: rounding at their size.
        slack = TRIANGLE_SLACK * float(np.abs(moments).max()) + 1e-14 * scale
        low, middle, high = (float(x) for x in moments)
        shown = f"principal moments {low:.6g}, {middle:.6g}, {high:.6g} kg m²"
        if low < -slack:
            problems.append(
                ("positive", f"{shown}: about the centre of mass none may be negative.")
            )
        elif high > low + middle + slack:
            problems.append(("triangle", f"{shown}: the largest exceeds the sum of the other two."))
        return problems

    def _single(self) -> None:
        if np.ndim(self.mass):
            raise ModelError(
                f"this is a stack of inertias of shape {np.shape(self.mass)}; index it first."
            )

    def nearest_possible(self) -> SpatialInertia:
        """The same mass and centre of mass, with moments raised until a rigid body could have them.

        Negative second moments of the mass distribution are set to zero; axes are kept.
        """
        self._single()
        J = 0.5 * (self.J_com + self.J_com.T)
        # Moments of inertia I_i = s_j + s_k come from second moments s_i ≥ 0.
        moments, axes = np.linalg.eigh(J)
        second = np.clip(0.5 * moments.sum() - moments, 0.0, None)
        repaired = axes @ np.diag(second.sum() - second) @ axes.T
        return SpatialInertia.from_com(max(float(self.mass), 0.0), self.com, repaired)

    def __reduce__(self) -> tuple[object, ...]:  # a copy is read-only, zero stays the same
        if self is _ZERO:
            return (SpatialInertia.zero, ())
        return (_restored, (self.mass, self.h, self.J))

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> SpatialInertia:
        """One inertia, or some, of a stack."""
        shape = np.shape(self.h)[:-1]
        chosen = places(index, shape, "this SpatialInertia")
        mass = np.broadcast_to(self.mass, shape)  # one mass for all, where poses made the stack
        return trusted_inertia(mass[chosen], self.h[chosen], self.J[chosen])

    def __repr__(self) -> str:
        if np.ndim(self.h) > 1:
            return f"SpatialInertia(stack of shape {np.shape(self.h)[:-1]})"
        x, y, z = self.com
        moments = ", ".join(f"{x:.6g}" for x in self.principal()[0])
        return (
            f"SpatialInertia(mass={float(self.mass):.6g} kg, com=({x:.6g}, {y:.6g}, {z:.6g}) m, "
            f"principal moments=({moments}) kg m²)"
        )


def _sizes(value: ArrayLike, what: str) -> Array:
    sizes = constant(value, (3,), what)
    if sizes.min() < 0.0:
        raise ModelError(f"{what} are {sizes.tolist()}; none may be negative.")
    return sizes


def _round(mass: float, radius: float, length: float, kind: str) -> tuple[float, float, float]:
    return (
        number(mass, f"the mass of a {kind} [kg]", least=0.0),
        number(radius, f"the radius of a {kind} [m]", least=0.0),
        number(length, f"the length of a {kind} [m]", least=0.0),
    )


def trusted_inertia(mass: Array, h: Array, J: Array) -> SpatialInertia:
    """An inertia computed from others: nothing is checked or copied.

    For results, which may be arrays of dtype object.
    """
    inertia = object.__new__(SpatialInertia)
    object.__setattr__(inertia, "mass", mass)
    object.__setattr__(inertia, "h", h)
    object.__setattr__(inertia, "J", J)
    return inertia


def _restored(mass: Array, h: Array, J: Array) -> SpatialInertia:
    return trusted_inertia(frozen(np.array(mass)), frozen(np.array(h)), frozen(np.array(J)))


def _point_inertia(c: Array) -> Array:
    """-c~ c~ = (c·c) 1 - c c^T: inertia of a unit point mass at c about the origin."""
    c = np.asarray(c)
    return np.sum(c * c, axis=-1)[..., None, None] * np.eye(3) - c[..., :, None] * c[..., None, :]


_ZERO = trusted_inertia(frozen(np.zeros(())), frozen(np.zeros(3)), frozen(np.zeros((3, 3))))


def momentum_regressor(V: Array) -> Array:
    """Y_V (..., 6, 10) with Y_V π = M V for the numbers π = (m, h, Jxx Jyy Jzz Jxy Jxz Jyz)."""
    V = np.asarray(V)
    w, v = V[..., :3], V[..., 3:]
    x, y, z = w[..., 0], w[..., 1], w[..., 2]
    none = 0.0 * x
    turned = stack(
        [[x, none, none, y, z, none], [none, y, none, x, none, z], [none, none, z, none, x, y]]
    )
    upper = np.concatenate([0.0 * v[..., None], -skew(v), turned], axis=-1)
    lower = np.concatenate([v[..., None], skew(w), 0.0 * turned], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


def inertia_matrix(numbers: Any) -> Any:
    """M[π] (6, 6) of ten numbers π, so that M[π] V = Y_V π."""
    return np.einsum("jin,n->ij", momentum_regressor(np.eye(6)), numbers)


TEN = ((5, 5), (2, 4), (0, 5), (1, 3), (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Where M[π] has the ten numbers π."""


def moved_numbers(X_AB: Pose) -> Array:
    """T (10, 10): T π are the ten numbers about A, in its axes, of an inertia π given in B."""
    shift = X_AB.shift
    moved = [shift @ inertia_matrix(e) @ shift.T for e in np.eye(10)]
    return np.array([[M[at] for M in moved] for at in TEN])


def weight_rate(gravity: Any) -> Any:
    """How -(g h* | g m), twelve numbers, changes with the ten of an inertia (12, 10)."""
    out = np.zeros((3, 4, 10)).astype(gravity.dtype)
    for j, entry in enumerate((1, 2, 3, 0)):  # h, then m
        out[:, j, entry] = -gravity
    return out.reshape(12, 10)
