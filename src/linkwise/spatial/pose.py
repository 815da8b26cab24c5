"""The pose of one frame seen from another, and the rigid shift φ that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import is_a, places
from linkwise.errors import ShapeError
from linkwise.spatial import rotation
from linkwise.spatial.array import Array, ArrayLike, constant, floats, frozen
from linkwise.spatial.choice import cosine, root, sine, where
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import blocks, cross, six


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """X_AB: where frame B is, seen from frame A.

    A matrix that is not a rotation to within `rotation.ROUNDING` is refused; `Pose.nearest` takes
    one that was printed with few digits, or drifted.

    Attributes:
        rot: rot_AB, takes components in B to components in A, shape (..., 3, 3).
        p: p_AB_A, from A's origin to B's, in A's axes [m], shape (..., 3).
    """

    rot: Array
    p: Array

    def __post_init__(self) -> None:
        if _is_traced(self.rot) or _is_traced(self.p):
            return
        rot = frozen(np.array(rotation.checked(self.rot, "the rotation of a pose")))
        p = frozen(np.array(floats(self.p, "the origin of a pose")))
        if p.shape != (*rot.shape[:-2], 3):
            raise ShapeError(
                f"the origin of a pose has shape {p.shape}; with rotations of shape {rot.shape} it "
                f"must be {(*rot.shape[:-2], 3)}."
            )
        if not np.isfinite(p).all():
            raise ShapeError("the origin of a pose must be finite.")
        object.__setattr__(self, "rot", rot)
        object.__setattr__(self, "p", p)

    @staticmethod
    def identity() -> Pose:
        """B is A. Always the same object, so `is` is a fast test."""
        return _IDENTITY

    @staticmethod
    def translation(p: ArrayLike) -> Pose:
        """Axes parallel, origin moved by `p` (3,) [m]."""
        return trusted_pose(_IDENTITY.rot, constant(p, (3,), "translation"))

    @staticmethod
    def rotation(rot: ArrayLike, p: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
        """A rotation matrix (3, 3), and an offset `p` (3,) [m]."""
        return Pose(constant(rot, (3, 3), "rotation"), constant(p, (3,), "translation"))

    @staticmethod
    def nearest(rot: ArrayLike, p: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
        """The pose whose rotation is nearest to a matrix (3, 3) that is almost one.

        For matrices printed with few digits or multiplied many times. One that is off by more
        than `rotation.ALMOST`, or a reflection, is refused.
        """
        near = rotation.nearest(constant(rot, (3, 3), "rotation"), "the rotation of a pose")
        return Pose(near, constant(p, (3,), "translation"))

    @staticmethod
    def rpy(angles: ArrayLike, p: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
        """Roll, pitch, yaw [rad] about the fixed axes x, y, z, and an offset [m]."""
        roll, pitch, yaw = constant(angles, (3,), "roll, pitch, yaw")
        rot = frozen(rotation.rpy(roll, pitch, yaw))
        return trusted_pose(rot, constant(p, (3,), "translation"))

    @staticmethod
    def from_matrix(matrix: ArrayLike) -> Pose:
        """From a homogeneous 4×4 matrix [[rot, p], [0, 1]]."""
        m = constant(matrix, (4, 4), "homogeneous matrix")
        if np.abs(m[3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-9:
            raise ShapeError(f"last row of a homogeneous matrix is (0, 0, 0, 1); found {m[3]}.")
        return Pose.rotation(m[:3, :3], m[:3, 3])

    @staticmethod
    def of(value: PoseLike) -> Pose:
        """A pose from a pose, a 3-vector (translation) or a 4×4 matrix."""
        if isinstance(value, Pose):
            return value
        array = floats(value, "a pose")
        if array.shape == (3,):
            return Pose.translation(array)
        if array.shape == (4, 4):
            return Pose.from_matrix(array)
        raise ShapeError(
            f"an array of shape {array.shape} is not a pose; give a Pose, a translation (3,) or a "
            "homogeneous matrix (4, 4)."
        )

    def __matmul__(self, other: Pose) -> Pose:
        """X_AC = X_AB X_BC."""
        if not isinstance(cast(object, other), Pose):
            is_a(Pose, other, "the other side of @", "Points are moved by pose.apply(points).")
        if other is _IDENTITY:
            return self
        if self is _IDENTITY:
            return other
        return trusted_pose(self.rot @ other.rot, self.apply(other.p))

    @property
    def is_identity(self) -> bool:
        """Whether this is exactly the identity."""
        return not self.p.any() and np.array_equal(self.rot, np.eye(3))

    def inverse(self) -> Pose:
        """X_BA."""
        if self is _IDENTITY:
            return self
        back = np.swapaxes(self.rot, -1, -2)
        return trusted_pose(back, -_rotate(back, self.p))

    def apply(self, points: Array) -> Array:
        """Components in A of points (..., 3) given in B [m]."""
        return _rotate(self.rot, points) + self.p

    @property
    def matrix(self) -> Array:
        """Homogeneous matrices (..., 4, 4)."""
        top = np.concatenate([self.rot, self.p[..., None]], axis=-1)
        last = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), (*top.shape[:-2], 1, 4))
        return np.concatenate([top, last], axis=-2)

    @property
    def shift(self) -> Array:
        """The rigid shift φ_AB = [[rot, p~ rot], [0, rot]], shape (..., 6, 6).

        It takes forces inward, f_A = φ_AB f_B, and its adjoint takes velocities outward,
        V_B = φ_AB* V_A.
        """
        return blocks(self.rot, skew(self.p) @ self.rot, 0.0 * self.rot, self.rot)

    def shift_velocity(self, V_A: Array) -> Array:
        """φ_AB* V_A: velocity (..., 6) of the body A belongs to, at B and in B's axes."""
        V_A = np.asarray(V_A)
        back = np.swapaxes(self.rot, -1, -2)
        w, v = V_A[..., :3], V_A[..., 3:]
        linear = _rotate(back, v + cross(w, self.p))
        return six(_rotate(back, w), linear)

    def shift_force(self, f_B: Array) -> Array:
        """φ_AB f_B: the force (..., 6) acting at B, as moment and force about A in A's axes."""
        f_B = np.asarray(f_B)
        force = _rotate(self.rot, f_B[..., 3:])
        moment = _rotate(self.rot, f_B[..., :3]) + cross(self.p, force)
        return six(moment, force)

    def __reduce__(self) -> tuple[object, ...]:  # a copy is read-only, the identity stays the same
        return (Pose.identity, ()) if self is _IDENTITY else (_restored, (self.rot, self.p))

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> Pose:
        """One pose, or some, of a stack; `index` is for the leading axes."""
        chosen = places(index, self.p.shape[:-1], "this Pose")
        return trusted_pose(self.rot[chosen], self.p[chosen])

    def __repr__(self) -> str:
        if self.p.ndim > 1:
            return f"Pose(stack of shape {self.p.shape[:-1]})"
        roll, pitch, yaw = rotation.rpy_of(self.rot)
        x, y, z = self.p
        return (
            f"Pose(p=({x:.6g}, {y:.6g}, {z:.6g}) m, rpy=({roll:.6g}, {pitch:.6g}, {yaw:.6g}) rad)"
        )


def _is_traced(array: Any) -> bool:
    """Whether the entries are symbols of a hinge's formula that is being traced.

    NumPy calls the `cos` method of entries of object arrays.
    """
    if not isinstance(array, np.ndarray):
        return False
    given = cast("NDArray[Any]", array)
    return given.dtype.kind == "O" and any(hasattr(x, "cos") for x in given.ravel())


def trusted_pose(rot: Array, p: Array) -> Pose:
    """A pose whose rotation is known to be one: nothing is checked or copied.

    For results, which may be arrays of dtype object (see `stack`).
    """
    pose = _NEW(Pose)
    _SET_ROT(pose, rot)
    _SET_P(pose, p)
    return pose


_NEW: Any = object.__new__
_SET_ROT: Any = vars(Pose)["rot"].__set__  # the fastest way in a frozen class
_SET_P: Any = vars(Pose)["p"].__set__


def exp(twist: Array) -> Pose:
    """exp of a spatial velocity (..., 6) held for unit time: where the moving frame ends.

    p = (1 + (1 - cos θ)/θ² w~ + (θ - sin θ)/θ³ w~²) v with θ = |w|.
    """
    twist = np.asarray(twist)
    w, v = twist[..., :3], twist[..., 3:]
    square = (w * w).sum(axis=-1, keepdims=True)
    small = 1e-4 - square  # a root has no derivative where there is no turn
    safe = root(where(small, 1.0, square))
    chord = 2.0 * sine(0.5 * safe) / safe
    series = 0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0 - square / 40320.0))
    b = where(small, series, 0.5 * chord * chord)  # (1 - cos θ)/θ²
    series = 1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0 - square / 362880.0))
    c = where(small, series, (safe - sine(safe)) / (safe * safe * safe))
    wv = cross(w, v)
    return trusted_pose(rotation.exp(w), v + b * wv + c * cross(w, wv))


def log(pose: Pose) -> Array:
    """The spatial velocity (..., 6) that reaches `pose` in unit time: the inverse of `exp`."""
    return twist_to(rotation.log(pose.rot), pose.p)


def twist_to(w: Array, p: Array) -> Array:
    """The spatial velocity (..., 6) that turns by w [rad] and moves to p [m] in unit time."""
    square = (w * w).sum(axis=-1, keepdims=True)
    small = 1e-4 - square
    safe = root(where(small, 1.0, square))
    # d = 1/θ² - cot(θ/2)/(2θ), finite up to and at a half turn.
    exact = (1.0 - 0.5 * safe * cosine(0.5 * safe) / sine(0.5 * safe)) / (safe * safe)
    series = 1.0 / 12.0 + square * (1.0 / 720.0 + square / 30240.0)
    wp = cross(w, p)
    return six(w, p - 0.5 * wp + where(small, series, exact) * cross(w, wp))


def _rotate(rot: Array, a: Array) -> Array:
    return (rot @ np.asarray(a)[..., None])[..., 0]


def _restored(rot: Array, p: Array) -> Pose:
    return trusted_pose(frozen(np.array(rot)), frozen(np.array(p)))


PoseLike: TypeAlias = Pose | ArrayLike
_IDENTITY = trusted_pose(frozen(np.eye(3)), frozen(np.zeros(3)))


def place_block(place: Any, slots: Sequence[Any]) -> Any:
    """The matrix of the form f* (X x̂_n ... x̂_1) of a pose X = (rot | p), two vectors left open.

    X x̂ = (rot ω× | rot u) is how X changes along the velocity x = (ω, u).

    Args:
        place: X (3, 4).
        slots: f (12,), x_1 ... x_n (6,) each, or "row" and after it "column" where they are open.
    """
    f, *along = slots
    opened = [i for i, x in enumerate(along) if isinstance(x, str)]
    shape = (12, 6) if isinstance(f, str) else (6, 6)
    out = np.full(shape, 0.0, dtype=object)
    for units in np.ndindex(*([6] * len(opened))):
        at, moved = dict(zip(opened, units, strict=True)), place
        for i in reversed(range(len(along))):
            x = np.eye(6)[at[i]] if i in at else along[i]
            moved = moved[:, :3] @ np.concatenate([skew(x[:3]), x[3:, None]], axis=1)
        if isinstance(f, str):
            out[:, units[0]] = moved.reshape(12)
        else:
            out[units] = f @ moved.reshape(12)
    numbers = all(isinstance(x, float) for x in out.flat)
    return out.astype(np.float64) if numbers else out
