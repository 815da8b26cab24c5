"""Joint limits as an artificial potential field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number, option
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.choice import clip, maximum

Priority: TypeAlias = Literal["posture", "top"]


@dataclass(frozen=True, slots=True, eq=False)
class JointLimits:
    """Repulsion from the ends of joint ranges, within a margin of them.

    Expression:
        V = ½ η (1/ρ - 1/ρ₀)² for ρ < ρ₀, with ρ the distance to a limit and ρ₀ the margin
        push = η (1/ρ - 1/ρ₀) / ρ²,  at most its value at ρ = floor · ρ₀
    and within the margin a damper k_v (1 - ρ/ρ₀) v. The field alone would be infinite at the limit;
    here it is at most `strongest`, at the limit and beyond.

    Source: Khatib (1986), named in 003 section 5.3; the floor and the damper are ours.

    Attributes:
        margin: ρ₀ [rad or m].
        gain: η [N m rad³] for priority "posture": the push is a joint force in the null space of
            all tasks; [rad⁴/s²] for "top": the push is an acceleration of the joint with precedence
            over all tasks, increasing towards the limit.
        kv: Damping within the margin [N m s/rad, or 1/s].
        priority: "posture" or "top".
        hinges: Names of the hinges; None for all with limits.
        floor: Fraction of the margin below which the push is constant.
    """

    margin: float
    gain: float
    kv: float = 0.0
    priority: Priority = "posture"
    hinges: tuple[str, ...] | None = None
    floor: float = 0.2

    def __post_init__(self) -> None:
        for name, value in (("margin", self.margin), ("gain", self.gain)):
            number(value, f"{name} of the joint limits", above=0.0)
        number(self.kv, "kv of the joint limits", least=0.0)
        number(self.floor, "floor of the joint limits", above=0.0, below=1.0)
        option(self.priority, ("posture", "top"), "priority")
        if isinstance(self.hinges, str):
            object.__setattr__(self, "hinges", (self.hinges,))
        elif self.hinges is not None:
            object.__setattr__(self, "hinges", tuple(self.hinges))

    @property
    def strongest(self) -> float:
        """The push at a limit and beyond it."""
        rho = self.floor * self.margin
        return self.gain * (1.0 / rho - 1.0 / self.margin) / rho**2

    def places(self, mech: Mechanism) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices in q and in v of the joints with limits.

        Raises:
            ModelError: A named hinge has no limit, or no hinge of the mechanism has.
        """
        check_mechanism(mech)
        bodies = mech.bodies if self.hinges is None else [mech.hinge(name) for name in self.hinges]
        q_at, v_at = list[int](), list[int]()
        for body in bodies:
            if body.hinge.nq != body.hinge.nv:
                continue
            q_start, v_start = (f(body.hinge_name).start for f in (mech.q_slice, mech.v_slice))
            for k in range(body.hinge.nv):
                if np.isfinite((mech.lower[q_start + k], mech.upper[q_start + k])).any():
                    q_at.append(q_start + k)
                    v_at.append(v_start + k)
                elif self.hinges is not None:
                    raise ModelError(
                        f"hinge {body.hinge_name!r} has no limits; name hinges that have."
                    )
        if not q_at:
            raise ModelError(f"no hinge of {mech.name!r} has limits, so JointLimits has no effect.")
        return np.array(q_at), np.array(v_at)

    def push(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
        """Push and damping of all joints (..., nv), zero for those without limits."""
        q, v = mech.check_q(q), mech.check_v(v)
        q_at, v_at = self.places(mech)
        out = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), mech.nv))
        sides = distances(q[..., q_at], mech.lower[q_at], mech.upper[q_at])
        out[..., v_at] = pushed(*sides, v[..., v_at], *self.numbers)
        return out

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Margin, gain, damping and floor."""
        return self.margin, self.gain, self.kv, self.floor

    def nearness(self, mech: Mechanism, q: Array) -> tuple[Array, Array]:
        """Closeness of all joints to their lower and to their upper limits (..., nv)."""
        q_at, v_at = self.places(mech)
        both = np.zeros((2, *q.shape[:-1], mech.nv))
        sides = distances(q[..., q_at], mech.lower[q_at], mech.upper[q_at])
        both[..., v_at] = [closeness(rho, self.margin) for rho in sides]
        return both[0], both[1]


# --------------------------------------------------------- array code, for numbers and for kernels


def distances(q: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """ρ to the lower and to the upper limits."""
    return q - lower, upper - q


def closeness(rho: Any, margin: Any) -> Any:
    """1 - ρ/ρ₀: 0 at the margin and outside, 1 at the limit and beyond."""
    return clip(1.0 - rho / margin, 0.0, 1.0)


def pushed(below: Any, above: Any, v: Any, margin: Any, gain: Any, kv: Any, floor: Any) -> Any:
    """Push and damping of joints at distances from their limits."""

    def field(rho: Any) -> Any:
        inside = clip(rho, floor * margin, margin)
        return gain * (1.0 / inside - 1.0 / margin) / (inside * inside)

    near = maximum(closeness(below, margin), closeness(above, margin))
    return field(below) - field(above) - kv * near * v
