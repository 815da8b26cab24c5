"""A posture: joint forces that pull a mechanism to a configuration in the null space of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import mass, vdot
from linkwise.codegen.formula import Formula
from linkwise.dynamics.configuration import between, coordinates
from linkwise.dynamics.kernels import check_mechanism, written
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.control.gain import checked_gain, gains_read, spread_out, times

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

By: TypeAlias = Literal["torque", "acceleration"]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A posture, without its numbers.

    Attributes:
        columns: Indices of its hinges in v.
        to: Whether there is a position.
        kp: Whether the stiffness is a matrix.
        kv: Whether the damping is.
        weighed: Whether gains give accelerations.
    """

    columns: tuple[int, ...]
    to: bool
    kp: bool
    kv: bool
    weighed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Posture:
    """A spring to a configuration and a damper, in the null space of tasks.

    Expression:
        Γ₀ = k_p e - k_v v,       e = difference(q, position),           by="torque"
        Γ₀ = 𝓜 (k_p e - k_v v),                                        by="acceleration"
    It is -∇V - k_v v of the potential V = ½ e* k_p e. A controller projects it to the dynamically
    consistent null space of its tasks, N* Γ₀, so that it does not disturb them.

    Source: 003 section 5.3, equations (53) to (55), where k_p = 2 k_d.

    Attributes:
        position: Joint positions (nq,); None for damping alone.
        kp: Stiffness over the velocities of `hinges` [N m/rad], or [1/s²] by acceleration; a
            number, one for each velocity or a symmetric positive matrix; None without a position.
        kv: Damping [N m s/rad], or [1/s]; like kp.
        hinges: Names of the attracted and damped hinges; None for all.
        by: Whether gains give torques, as in the paper, or accelerations, which act equally on
            heavy and light joints.
    """

    position: ArrayLike | None
    kp: ArrayLike | None
    kv: ArrayLike
    hinges: tuple[str, ...] | None = None
    by: By = "torque"

    def __post_init__(self) -> None:
        if (self.position is None) != (self.kp is None):
            raise ModelError(
                "a posture has a position and a stiffness kp, or neither, for damping only; one "
                "was given without the other."
            )
        if self.by not in ("torque", "acceleration"):
            raise ModelError(f"by is {self.by!r}; it must be 'torque' or 'acceleration'.")
        if self.position is not None:
            position = np.array(
                floats(self.position, "the position of the posture"), dtype=np.float64
            )
            if position.ndim != 1:
                raise ShapeError(
                    f"the position of the posture has shape {position.shape}; it must be (nq,)."
                )
            if not np.isfinite(position).all():
                raise ModelError(
                    f"the position of the posture is {position.tolist()}; it must be finite."
                )
            object.__setattr__(self, "position", position)
        if self.kp is not None:
            object.__setattr__(self, "kp", checked_gain(self.kp, "kp of the posture"))
        object.__setattr__(self, "kv", checked_gain(self.kv, "kv of the posture"))
        if isinstance(self.hinges, str):
            object.__setattr__(self, "hinges", (self.hinges,))
        elif self.hinges is not None:
            object.__setattr__(self, "hinges", tuple(self.hinges))

    @classmethod
    def damping(cls, kv: ArrayLike, *, hinges: Iterable[str] | None = None) -> Posture:
        """No position: the null space of the tasks comes to rest."""
        return cls(None, None, kv, None if hinges is None else tuple(hinges))

    @classmethod
    def mid_range(
        cls,
        mech: Mechanism,
        kp: ArrayLike,
        kv: ArrayLike,
        *,
        hinges: Iterable[str] | None = None,
        by: By = "torque",
    ) -> Posture:
        """The middle of the joint ranges, of the named hinges or of all with a range.

        Raises:
            ModelError: A named hinge has no limits on both sides; or no hinge has.
        """
        check_mechanism(mech)
        if hinges is None:
            moving = [b.hinge_name for b in mech.bodies if b.hinge.nv]
            names = tuple(name for name in moving if _ranged(mech, name))
        else:
            names = (hinges,) if isinstance(hinges, str) else tuple(hinges)
        bad = [name for name in names if not _ranged(mech, name)]
        if bad or not names:
            what = f"hinge {bad[0]!r}" if bad else f"mechanism {mech.name!r}"
            raise ModelError(
                f"{what} has no lower and upper limit, so there is no middle of its range; give "
                "limits (mech.with_drive(name, lower=..., upper=...)) or a position."
            )
        position = mech.neutral()
        for name in names:
            at = mech.q_slice(name)
            position[at] = 0.5 * (mech.lower[at] + mech.upper[at])
        return cls(position, kp, kv, names, by)

    def columns(self, mech: Mechanism) -> NDArray[np.int64]:
        """Indices in v of the hinges."""
        if self.hinges is None:
            return np.arange(mech.nv)
        parts = [np.arange(mech.nv)[mech.v_slice(name)] for name in self.hinges]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def drawn(self, mech: Mechanism) -> Drawn:
        """The structure that kernels depend on."""
        kinds = (
            self.position is not None,
            np.ndim(0.0 if self.kp is None else self.kp) == 2,
            np.ndim(self.kv) == 2,
        )
        return Drawn(tuple(self.columns(mech).tolist()), *kinds, self.by == "acceleration")

    def numbers(self, mech: Mechanism) -> dict[str, Array]:
        """Inputs of these kernels."""
        size = len(self.columns(mech))
        kv = checked_gain(self.kv, "kv of the posture", size)
        inputs = {"posture_kv": spread_out(kv, size)}
        if self.position is not None and self.kp is not None:
            kp = checked_gain(self.kp, "kp of the posture", size)
            inputs |= {"posture_kp": spread_out(kp, size), "posture": mech.check_q(self.position)}
        return inputs

    def torque(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
        """Γ₀ (..., nv) [N or N m], before a null space is applied.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        """
        kernel, arrays = written(mech, _formula(self.drawn(mech))), self.numbers(mech)
        arrays |= {"q": mech.check_q(q), "v": mech.check_v(v)}
        return kernel(*[arrays[name] for name in kernel.arguments])


@cache
def _formula(drawn: Drawn) -> Formula:
    return Formula(drawing, (drawn,))


def drawing(at: Writing, drawn: Drawn, inertia: Any = None) -> Any:
    """Γ₀ (nv,), as a formula.

    Args:
        at: The formula.
        drawn: The posture without its numbers.
        inertia: 𝓜 (nv, nv), if known.
    """
    chosen, out = list(drawn.columns), np.full(at.mech.nv, 0.0, dtype=object)
    q, v = coordinates(at), at.v
    (kv,) = gains_read(at, "posture_kv", [len(chosen)], [drawn.kv])
    pull = -times(kv, v[chosen])
    if drawn.to:
        (kp,) = gains_read(at, "posture_kp", [len(chosen)], [drawn.kp])
        pull = pull + times(kp, between(at, "q", "posture")[chosen])
    out[chosen] = pull
    if not drawn.weighed:
        return out
    return at.value(mass @ vdot, vdot=out, q=q) if inertia is None else inertia @ out


def _ranged(mech: Mechanism, name: str) -> bool:
    at = mech.q_slice(name)
    body = mech.hinge(name)
    limits = np.concatenate([mech.lower[at], mech.upper[at]])
    return body.hinge.nq == body.hinge.nv > 0 and bool(np.isfinite(limits).all())
