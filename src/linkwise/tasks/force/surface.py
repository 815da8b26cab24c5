"""Compliant surfaces: a spring and a damper behind a plane, a sphere or a cylinder.

A node of a mechanism is the contact point. With its distance c from the surface, measured along
the outward normal n, the penetration is δ = -c and

    f_n = max(0, k δ + d δ̇)   where δ ≥ 0,   else 0           it pushes and never pulls
    f   = f_n n - μ f_n v_t / √(|v_t|² + v_s²)                friction against the sliding v_t

Friction is Coulomb friction for sliding much faster than the slip speed v_s, and viscous below it.
The force acts on the node, the opposite one on the surface, which does not move.

With damping the force begins with a jump d δ̇, and ends before the surface has returned. A time
step that contains the jump is of first order only. For an exact run, simulate without the force
until the node touches, stop there, and continue with it: `touching` and `leaving` are margins for
`simulate(..., watch=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import rows
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.kinematics import forward_kinematics, node_velocity
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, constant, unit
from linkwise.spatial.choice import root
from linkwise.spatial.vector import six
from linkwise.tasks.force.positive import not_negative, positive

Vector: TypeAlias = tuple[float, float, float]

SMOOTH = 1e-3
"""Default slip speed v_s [m/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """A node and a surface in one state, or in each of a batch.

    Attributes:
        point: Position of the node (..., 3), in the world [m].
        normal: Outward normal of the surface (..., 3), at the nearest point.
        penetration: δ (...) [m], negative away from the surface.
        rate: δ̇ (...) [m/s].
        pressure: f_n (...) [N], never negative.
        force: On the node (..., 3), in world axes [N].
    """

    point: Array
    normal: Array
    penetration: Array
    rate: Array
    pressure: Array
    force: Array

    @property
    def touching(self) -> NDArray[np.bool_]:
        """Whether the surface pushes (...)."""
        return np.asarray(self.pressure > 0.0)

    def __str__(self) -> str:
        if self.penetration.ndim:
            return f"{int(self.touching.sum())} of {len(self.penetration)} states touch"
        if not self.touching:
            return f"{-1e3 * float(self.penetration):.4g} mm away, no force"
        across = float(np.linalg.norm(self.force - self.pressure * self.normal))
        return (
            f"{1e3 * float(self.penetration):.4g} mm deep, {float(self.pressure):.4g} N along the "
            f"normal, {across:.4g} N across"
        )


@dataclass(frozen=True, slots=True, eq=False)
class CompliantSurface:
    """A fixed surface that yields where a node presses on it.

    A plane, unless a radius is given; `sphere` and `cylinder` make the others.

    Attributes:
        point: A point of the plane, the centre of the sphere, a point of the cylinder's axis [m].
        normal: Out of the plane, towards the node; None for the others.
        stiffness: k [N/m], positive.
        damping: d [N s/m].
        friction: Coefficient μ.
        slip_speed: v_s [m/s], positive.
        radius: Of the sphere or cylinder [m]; the node stays outside.
        axis: Of the cylinder.
    """

    point: Vector
    normal: Vector | None
    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    slip_speed: float = SMOOTH
    radius: float | None = None
    axis: Vector | None = None

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        put(self, "point", tuple(constant(self.point, (3,), "point of a surface").tolist()))
        if (self.normal is None) == (self.radius is None):
            raise ModelError(
                f"a surface has normal={self.normal!r} and radius={self.radius!r}; a plane has a "
                "normal, and lw.tasks.CompliantSurface.sphere or .cylinder have a radius instead."
            )
        for name in ("normal", "axis"):
            if getattr(self, name) is not None:
                direction = unit(getattr(self, name), f"{name} of a surface")
                put(self, name, tuple(direction.tolist()))
        if self.radius is not None:
            put(self, "radius", positive("radius of a surface", self.radius, "m"))
        put(self, "stiffness", positive("stiffness of a surface", self.stiffness, "N/m"))
        put(self, "slip_speed", positive("slip_speed of a surface", self.slip_speed, "m/s"))
        put(self, "damping", not_negative("damping of a surface", self.damping, "N s/m"))
        put(self, "friction", not_negative("friction of a surface", self.friction, "no unit"))

    @staticmethod
    def sphere(
        center: ArrayLike,
        radius: float,
        stiffness: float,
        damping: float = 0.0,
        *,
        friction: float = 0.0,
        slip_speed: float = SMOOTH,
    ) -> CompliantSurface:
        """A sphere, touched from outside."""
        at: Any = center
        return CompliantSurface(at, None, stiffness, damping, friction, slip_speed, radius)

    @staticmethod
    def cylinder(
        point: ArrayLike,
        axis: ArrayLike,
        radius: float,
        stiffness: float,
        damping: float = 0.0,
        *,
        friction: float = 0.0,
        slip_speed: float = SMOOTH,
    ) -> CompliantSurface:
        """A cylinder without ends, touched from outside."""
        at: Any = point
        along: Any = axis
        return CompliantSurface(at, None, stiffness, damping, friction, slip_speed, radius, along)

    @property
    def shape(self) -> str:
        """One of "plane", "sphere" and "cylinder"."""
        if self.radius is None:
            return "plane"
        return "sphere" if self.axis is None else "cylinder"

    # ------------------------------------------------------------------------------------- geometry

    def clearance(self, points: ArrayLike) -> Array:
        """Distance of points (..., 3) from the surface (...), negative inside [m]."""
        return self._nearest(rows(points, 3, "points"))[0]

    def normal_at(self, points: ArrayLike) -> Array:
        """The outward normal nearest to points (..., 3), of unit length (..., 3).

        Raises:
            ModelError: A point is at the centre or on the axis, where there is none.
        """
        return self._nearest(rows(points, 3, "points"))[1]

    def following(self, points: ArrayLike, velocities: ArrayLike) -> Array:
        """Acceleration along the normal of points that stay at their distance (...) [m/s²].

        n · ẍ = - ẋ · ∇n ẋ: zero for a plane, and - |v_t|²/ρ at a distance ρ from the centre of a
        sphere, where v_t is the velocity across the normal; for a cylinder also across its axis.
        """
        places, v = rows(points, 3, "points"), rows(velocities, 3, "velocities")
        places, v = np.broadcast_arrays(places, v) if places.ndim < v.ndim else (places, v)
        _, normal, distance = self._nearest(places)
        v = np.broadcast_to(v, normal.shape)
        return following(self.shape, normal, distance, v, self._along)

    @property
    def _along(self) -> Array:
        """The normal of a plane, the axis of a cylinder."""
        return np.array(self.normal or self.axis or (0.0, 0.0, 0.0))

    @property
    def numbers(self) -> Array:
        """Point, normal or axis, and radius (7,): inputs of kernels."""
        return np.array([*self.point, *self._along, self.radius or 0.0])

    def _nearest(self, points: Array) -> tuple[Array, Array, Array]:
        """Clearance, normal, and distance from the centre or axis."""
        off = _across(points - np.array(self.point), self._along)
        if self.radius is not None and (off == 0.0).all(axis=-1).any():
            where = "at the centre" if self.axis is None else "on the axis"
            raise ModelError(f"a node is {where} of a {self.shape}, where it has no normal.")
        return nearest(self.shape, points, self.numbers)

    # -------------------------------------------------------------------------------------- contact

    def touch(self, mech: Mechanism, q: ArrayLike, v: ArrayLike, node: str) -> Touch:
        """The contact of a node, and the force on it.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            node: Name of the node or body whose origin touches.

        Raises:
            UnknownNameError: The mechanism has no such node.
        """
        check_node(mech, node)
        point = forward_kinematics(mech, q, node).p
        return self._touch(point, node_velocity(mech, q, v, node, frame="world")[..., 3:])

    def touch_at(self, point: Array, velocity: Array) -> Touch:
        """The contact of a point, and the force on it.

        Args:
            point: Its position (..., 3), in the world [m].
            velocity: Its velocity (..., 3), in world axes [m/s].
        """
        return self._touch(rows(point, 3, "point"), rows(velocity, 3, "velocity"))

    def _touch(self, point: Array, velocity: Array) -> Touch:
        clearance, normal, _ = self._nearest(point)
        depth, rate = -clearance, -(normal * velocity).sum(axis=-1)
        push = self._push(depth, rate)
        force = push[..., None] * normal
        if self.friction > 0.0:
            slide = _across(velocity, normal)
            speed = np.sqrt((slide**2).sum(axis=-1) + self.slip_speed**2)
            force = force - (self.friction * push / speed)[..., None] * slide
        return Touch(point, normal, depth, rate, push, force)

    def _push(self, depth: Array, rate: Array) -> Array:
        """f_n."""
        push = np.maximum(0.0, self.stiffness * depth + self.damping * rate)
        return np.where(depth >= 0.0, push, 0.0)

    def force(
        self, mech: Mechanism, q: ArrayLike, v: ArrayLike, node: str, *, frame: Frame = "node"
    ) -> Array:
        """(moment, force) (6,) or (batch, 6) on a node, at its origin [N m, N].

        The moment is zero: the contact is a point.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
            node: Name of the node or body whose origin touches.
            frame: Axes: those of the "node" or of the "world".
        """
        check_frame(frame)
        force = self.touch(mech, q, v, node).force
        if frame == "node":
            rot_WB = forward_kinematics(mech, q, node).rot
            force = (np.swapaxes(rot_WB, -1, -2) @ force[..., None])[..., 0]
        return six(np.zeros(3), force)

    def forces(
        self, mech: Mechanism, node: str, *, frame: Frame = "node"
    ) -> Callable[[float, Array, Array], dict[str, Array]]:
        """The force on a node as a function of (t, q, v), for `forces` of `simulate`.

        Args:
            mech: The mechanism.
            node: Name of the node or body whose origin touches.
            frame: As given to `simulate`.
        """
        check_frame(frame)
        check_node(mech, node)

        def acting(t: float, q: Array, v: Array) -> dict[str, Array]:
            return {node: self.force(mech, q, v, node, frame=frame)}

        return acting

    def energy(self, mech: Mechanism, q: ArrayLike, node: str) -> float | Array:
        """½ k δ² where δ > 0: the energy stored in the surface [J], a number or (batch,).

        `potential=lambda q: surface.energy(mech, q, node)` counts it in the energy of a motion.
        """
        check_node(mech, node)
        depth = np.maximum(0.0, -self.clearance(forward_kinematics(mech, q, node).p))
        stored = 0.5 * self.stiffness * depth**2
        return float(stored) if stored.ndim == 0 else stored

    # -------------------------------------------------------------------------------------- margins

    def touching(self, mech: Mechanism, node: str) -> Callable[[float, Array, Array, Array], float]:
        """A margin that vanishes when the node touches: its distance from the surface [m]."""
        check_node(mech, node)

        def margin(t: float, q: Array, v: Array, tau: Array) -> float:
            return float(self.clearance(forward_kinematics(mech, q, node).p))

        return margin

    def leaving(self, mech: Mechanism, node: str) -> Callable[[float, Array, Array, Array], float]:
        """A margin that vanishes when the surface stops pushing: k δ + d δ̇ [N]."""
        check_node(mech, node)

        def margin(t: float, q: Array, v: Array, tau: Array) -> float:
            touch = self.touch(mech, q, v, node)
            return float(self.stiffness * touch.penetration + self.damping * touch.rate)

        return margin

    def __str__(self) -> str:
        size = "" if self.radius is None else f" of radius {self.radius:.4g} m"
        return (
            f"compliant {self.shape}{size}: {self.stiffness:.4g} N/m, {self.damping:.4g} N s/m, "
            f"friction {self.friction:.3g}"
        )


def check_node(mech: object, node: object) -> None:
    """Raise unless it is the name of a node of the mechanism."""
    check_mechanism(mech)
    if not isinstance(node, str):
        raise ModelError(f"node is {node!r}; it must be the name of one node or body.")
    if not isinstance(mech, Mechanism):
        raise ModelError("a surface needs an open mechanism, not one with its loops built in.")
    mech.node(node)


# --------------------------------------------------------- array code, for numbers and for kernels


def nearest(shape: str, points: Any, numbers: Any) -> tuple[Any, Any, Any]:
    """Clearance (...), normal (..., 3), and distance from the centre or axis (...) of points."""
    off, along = points - numbers[:3], numbers[3:6]
    if shape == "plane":
        clearance = (off * along).sum(axis=-1)
        return clearance, np.broadcast_to(along, off.shape), clearance
    off = _across(off, along) if shape == "cylinder" else off
    distance = root((off * off).sum(axis=-1))
    return distance - numbers[6], off / np.asarray(distance)[..., None], distance


def following(shape: str, normal: Any, distance: Any, v: Any, along: Any) -> Any:
    """Acceleration along the normal of points at constant distance (...) [m/s²]."""
    if shape == "plane":
        return 0.0 * v[..., 0]
    across = _across(v, normal)
    across = _across(across, along) if shape == "cylinder" else across
    return -(across * across).sum(axis=-1) / distance


def _across(vectors: Any, axis: Any) -> Any:
    """The part of vectors (..., 3) perpendicular to unit vectors."""
    return vectors - (vectors * axis).sum(axis=-1, keepdims=True) * axis
