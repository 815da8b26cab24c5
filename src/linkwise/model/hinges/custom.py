"""A hinge supplied by the user: its pose is enough, the rest is derived from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError, ShapeError
from linkwise.model.hinges.hinge import Coordinate, Hinge, velocity
from linkwise.model.hinges.jet import Jet, level_of
from linkwise.spatial import rotation
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import unskew
from linkwise.spatial.vector import cross_velocity, six


@dataclass(frozen=True)
class CustomHinge(Hinge):
    """A hinge given by functions, each a NumPy formula on arrays with leading axes.

    Only `placement` is needed; H and the bias are then derived from it exactly, by running it on
    second-order Taylor series of the motion, and q̇ is v.

    Attributes:
        name: Its name in tables.
        entries: Name and unit ("rad" or "m") of each coordinate; v is its rate.
        placement: q (..., n) to (rot_O+O (..., 3, 3), p (..., 3) [m]).
        map: Optional: q to H (..., n, 6), if a closed form is known. It is not checked.
        map_rate: Optional: q, v to the bias Ḣ* v (..., 6). It is not checked.
    """

    name: str
    entries: tuple[tuple[str, str], ...]
    placement: Callable[[Array], tuple[Array, Array]]
    map: Callable[[Array], Array] | None = None
    map_rate: Callable[[Array, Array], Array] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple((name, unit) for name, unit in self.entries))
        if not 1 <= len(self.entries) <= 6:
            raise ModelError(
                f"custom hinge {self.name!r} has {len(self.entries)} coordinates; give one to six."
            )
        bad = [unit for _, unit in self.entries if unit not in ("rad", "m")]
        if bad:
            raise ModelError(
                f"custom hinge {self.name!r}: unit {bad[0]!r} is not known; use 'rad' or 'm'."
            )
        try:
            pose = self.pose(self.neutral())
        except (TypeError, ValueError, IndexError) as problem:
            raise ModelError(
                f"custom hinge {self.name!r}: placement fails for q = 0: {problem}. It takes q "
                "(..., n) and gives a rotation (..., 3, 3) and an offset (..., 3)."
            ) from problem
        if pose.rot.shape != (3, 3) or pose.p.shape != (3,):
            raise ModelError(
                f"custom hinge {self.name!r}: placement gave shapes {pose.rot.shape} and "
                f"{pose.p.shape} for one q; it must give a rotation (3, 3) and an offset (3,)."
            )
        for q in (self.neutral(), self._generic(), -2.0 * self._generic()):
            try:
                rotation.checked(self.pose(q).rot, f"placement of custom hinge {self.name!r}")
            except (ModelError, ShapeError) as problem:
                raise ModelError(f"at q = {q.tolist()}, {problem}") from None
        try:
            H = self.hinge_map(self._generic())
            self.bias(self._generic(), np.ones(self.nv))
        except (AttributeError, TypeError) as problem:
            raise ModelError(
                f"custom hinge {self.name!r}: its placement cannot be differentiated ({problem}). "
                "Write it with + - * / ** and NumPy's sqrt sin cos tan exp arctan, or give both "
                "`map` and `map_rate`."
            ) from None
        if np.linalg.matrix_rank(H) < self.nv:
            raise ModelError(
                f"custom hinge {self.name!r}: its {self.nv} coordinates do not move the body in "
                f"{self.nv} independent directions; leave out the idle ones."
            )

    def _generic(self) -> Array:
        """A configuration of no special symmetry."""
        return np.linspace(0.1, 0.4, self.nv)

    @property
    def nv(self) -> int:
        return len(self.entries)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(Coordinate(name, unit) for name, unit in self.entries)

    @property
    def velocities(self) -> tuple[Coordinate, ...]:
        return self.coordinates

    @property
    def kind(self) -> str:
        return "custom"

    def describe(self) -> str:
        return f"custom {self.name}"

    def pose(self, q: Array) -> Pose:
        rot, p = (np.asarray(x) for x in self.placement(np.asarray(q)))
        lead = np.shape(q)[:-1]  # a constant part of the pose may come without the leading axes
        if rot.shape == (3, 3):
            rot = np.broadcast_to(rot, (*lead, 3, 3))
        if p.shape == (3,):
            p = np.broadcast_to(p, (*lead, 3))
        return trusted_pose(rot, p)

    def hinge_map(self, q: Array) -> Array:
        if self.map is not None:
            return self.map(np.asarray(q))
        rows = [self._motion(q, direction)[0] for direction in np.eye(self.nv)]
        return np.stack(rows, axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        if self.map_rate is not None:
            return self.map_rate(np.asarray(q), np.asarray(v))
        return self._motion(q, v)[1]

    def hinge_map_rate(self, q: Array, v: Array) -> Array:
        """From the bias, which is quadratic in v = q̇, and the order of derivatives.

        With β(v, w) = Ḣ*(v) w, the bias β(v, v) gives the symmetric part of β, and for the
        antisymmetric part β(v, w) - β(w, v) = -(H* v) × (H* w).
        """
        q, v = np.asarray(q), np.asarray(v)
        V, H, bias = velocity(self, q, v), self.hinge_map(q), self.bias(q, v)
        rows = list[Array]()
        for j, e in enumerate(np.eye(self.nv)):
            both = self.bias(q, v + e) - bias - self.bias(q, np.broadcast_to(e, v.shape))
            rows.append(0.5 * (both - cross_velocity(V, H[..., j, :])))
        return np.stack(rows, axis=-2)

    def _motion(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Relative velocity and its rate (..., 6) in O's axes, moving with constant q̇ = v.

        From ω~ = rot* rot', v = rot* p' and their derivatives.
        """
        q, v = np.broadcast_arrays(np.asarray(q), np.asarray(v))
        # One leading axis more: NumPy turns an object array without axes into its bare element.
        level = 1 + max(level_of(q), level_of(v))
        path = self.pose(Jet.line(q[None], v[None], level))
        rot, rot_1, rot_2 = (x[0] for x in Jet.derivatives(path.rot, level))
        _, p_1, p_2 = (x[0] for x in Jet.derivatives(path.p, level))
        back, back_1 = np.swapaxes(rot, -1, -2), np.swapaxes(rot_1, -1, -2)
        w, w_1 = unskew(back @ rot_1), unskew(back @ rot_2 + back_1 @ rot_1)
        u = (back @ p_1[..., None])[..., 0]
        u_1 = (back @ p_2[..., None] + back_1 @ p_1[..., None])[..., 0]
        return six(w, u), six(w_1, u_1)
