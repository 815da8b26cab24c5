"""Dextrous dynamic coordination: the macro follows, so that the mini stays within its range.

    V = Σ k_d (q_i - q̄_i)²                over the joints of the mini, q̄_i the middle of their range
    Γ_d = -∇V - k_v v                      (54), with damping
    Γ_nd = (I - J_t* J̄*) Γ_d               (55)

Task control alone moves the tip with the least kinetic energy, so with the light mini, which soon
is at the end of its range. Γ_nd pulls the mini back to the middle, and since it acts in the
dynamically consistent null space, what pulls it back is the macro: the tip feels nothing of it.

Source: 003, section 5.3, equations (53) to (55). The damper is our own: without it the internal
motion is an undamped oscillation. It acts on the joints of the mini, whose speed is that of the tip
relative to the macro; the macro then follows a tip that moves steadily without falling behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number
from linkwise.dynamics.mass_matrix import mass_matrix_inverse
from linkwise.errors import ModelError
from linkwise.inertial.macro_mini.parts import macro_mini
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.tasks.control.gain import checked_gain
from linkwise.tasks.control.posture import Posture
from linkwise.tasks.space import task_space
from linkwise.tasks.task import Tasks


@dataclass(frozen=True, slots=True, eq=False)
class DextrousCoordination:
    """Attraction of a mini's joints to the middle of their ranges.

        rest = lw.papers.DextrousCoordination(arm, "mini_yaw", kd=500.0, kv=300.0)
        controller = lw.TaskController(arm, lw.tasks.Servo(task, kp, kv), posture=rest.posture)

    `tuned` chooses the gains from a frequency.

    Attributes:
        mech: The mechanism.
        split: The hinge that carries the mini, by its name or its body's.
        kd: k_d of (53) [N m/rad or N/m]: a number, or one for each freedom of `hinges`.
        kv: Damping of the same joints [N m s/rad or N s/m]; None for none, as in the paper.
        hinges: Names of the joints that are drawn; by default all of the mini.
        freedoms: Where in v they stand.

    Raises:
        UnknownNameError: A hinge that the mechanism does not have.
        ModelError: A joint without limits on both sides; gains that are not positive; nothing that
            moves inboard of the split.
    """

    mech: Mechanism
    split: str
    kd: ArrayLike
    kv: ArrayLike | None = None
    hinges: Sequence[str] | None = None
    freedoms: NDArray[np.int64] = field(init=False, repr=False)
    _spring: Posture = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = mini_hinges(self.mech, self.split, self.hinges)
        kd = checked_gain(floats(self.kd, "kd"), "kd of the coordination")
        if kd.ndim > 1:
            raise ModelError(f"kd has shape {kd.shape}; it is a number, or one for each freedom.")
        kv = 1.0 if self.kv is None else checked_gain(self.kv, "kv of the coordination")
        spring = Posture.mid_range(self.mech, 2.0 * kd, kv, hinges=names)
        freedoms = spring.freedoms(self.mech)
        checked_gain(kd, "kd of the coordination", len(freedoms))
        checked_gain(kv, "kv of the coordination", len(freedoms))
        for name, value in (
            ("kd", kd),
            ("hinges", names),
            ("freedoms", freedoms),
            ("_spring", spring),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def tuned(
        cls,
        mech: Mechanism,
        q: ArrayLike,
        tasks: Tasks,
        *,
        split: str,
        frequency: float,
        ratio: float = 1.0,
        hinges: Sequence[str] | None = None,
    ) -> DextrousCoordination:
        """Gains for which the fastest internal motion in a state has a frequency.

        Each joint is weighed by its range, k_d ~ 1 / (upper - lower)², and k_v = (4 ratio /
        frequency) k_d, so that the fastest motion has that damping ratio, slower ones less.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,), where the mini is to be worked with [m or rad].
            tasks: What the tip does.
            split: The hinge that carries the mini, by its name or its body's.
            frequency: Of the fastest internal motion [rad/s]: how quickly the macro follows.
            ratio: Its damping ratio; 1 is critical.
            hinges: The joints that are drawn; by default all of the mini.

        Raises:
            ModelError: The tasks leave no internal motion that moves the mini.
        """
        frequency = number(frequency, "frequency", above=0.0)
        ratio = number(ratio, "ratio", above=0.0)
        plain = cls(mech, split, 1.0, None, hinges)
        lower, upper = plain._range()
        weight = 1.0 / (upper - lower) ** 2
        weight = weight / weight.max()
        fastest = float(cls(mech, split, weight, None, hinges).frequencies(q, tasks)[-1])
        kd = (frequency / fastest) ** 2 * weight
        return cls(mech, split, kd, 4.0 * ratio / frequency * kd, hinges)

    @property
    def posture(self) -> Posture:
        """The same as a posture, for `lw.TaskController`."""
        if self.kv is None:
            raise ModelError(
                "the coordination has no damping, so its internal motion would swing for ever; "
                "give kv, or take lw.papers.DextrousCoordination.tuned."
            )
        return self._spring

    def potential(self, q: ArrayLike) -> float | Array:
        """V (53) [J] of joint positions (nq,) or (batch, nq)."""
        q = self.mech.check_q(q)
        target = np.broadcast_to(self.mech.check_q(np.asarray(self._spring.target)), q.shape)
        away = self.mech.difference(q, target)[..., self.freedoms]
        found = (np.asarray(self.kd) * away**2).sum(axis=-1)
        return float(found) if found.ndim == 0 else found

    def torque(self, q: ArrayLike, v: ArrayLike | None = None) -> Array:
        """-∇V - k_v v (nv,) or (batch, nv) [N or N m], before any null space: (54).

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s]; by default at rest.
        """
        q = self.mech.check_q(q)
        still = np.zeros((*q.shape[:-1], self.mech.nv))
        moving = still if v is None or self.kv is None else self.mech.check_v(v)
        return self._spring.torque(self.mech, q, moving)

    def null_torque(self, q: ArrayLike, v: ArrayLike | None, tasks: Tasks) -> Array:
        """(I - J_t* J̄*) of it: (55), what the tasks do not feel.

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities, None at rest.
            tasks: What the tip does.
        """
        return task_space(self.mech, q, tasks).null_torque(self.torque(q, v))

    def frequencies(self, q: ArrayLike, tasks: Tasks) -> Array:
        """How fast the mini is pulled back while the tip stays [rad/s], the slowest first.

        Expression:
            ω² = eigenvalues of 2 K^½ (N 𝓜⁻¹) K^½ over the joints that are drawn, K = diag k_d
        of the undamped motion in this state; zeros for combinations that no internal motion moves
        are left out.

        Args:
            q: Joint positions (nq,) [m or rad].
            tasks: What the tip does.
        """
        q = self.mech.check_q(q)
        if q.ndim != 1:
            raise ModelError(f"q has shape {q.shape}; the frequencies are those of one state.")
        response = task_space(self.mech, q, tasks).null_space @ mass_matrix_inverse(self.mech, q)
        chosen = self.freedoms
        root = np.sqrt(2.0 * np.broadcast_to(np.asarray(self.kd), (len(chosen),)))
        inside = response[np.ix_(chosen, chosen)] * root[:, None] * root
        found = np.linalg.eigvalsh(0.5 * (inside + inside.T))
        # What is left of a motion that does not exist is the rounding of terms the mini alone has.
        alone = np.abs(mass_matrix_inverse(self.mech, q)[np.ix_(chosen, chosen)]).max()
        found = found[found > 1e-12 * alone * root.max() ** 2]
        if len(found) == 0:
            raise ModelError(
                "the tasks leave no internal motion that moves the mini: nothing can bring its "
                f"joints ({', '.join(self.hinges or ())}) back. Give tasks of fewer rows."
            )
        return np.asarray(np.sqrt(found), dtype=np.float64)

    def share(self, q: ArrayLike) -> Array:
        """How far each joint is from its middle, as a part of the way to its limit (..., n)."""
        lower, upper = self._range()
        q = self.mech.check_q(q)[..., self._coordinates()]
        return np.abs(q - 0.5 * (lower + upper)) / (0.5 * (upper - lower))

    def watch(self) -> dict[str, Callable[[float, Array, Array, Array], float]]:
        """Margins for `lw.simulate(watch=...)`: lost where a joint reaches its limit."""

        def margin(i: int) -> Callable[[float, Array, Array, Array], float]:
            return lambda t, q, v, tau: 1.0 - float(self.share(q)[i])

        names = [self.mech.coordinate_names[int(i)] for i in self._coordinates()]
        return {f"range of {name}": margin(i) for i, name in enumerate(names)}

    def _coordinates(self) -> NDArray[np.int64]:
        """Where in q the joints stand."""
        parts = [np.arange(self.mech.nq)[self.mech.q_slice(x)] for x in self.hinges or ()]
        return np.concatenate(parts)

    def _range(self) -> tuple[Array, Array]:
        at = self._coordinates()
        return self.mech.lower[at], self.mech.upper[at]


def mini_hinges(mech: Mechanism, split: str, hinges: Sequence[str] | None) -> tuple[str, ...]:
    """The hinges outboard of a split that move, or those of them that are named."""
    body = mech.hinge(split).name if split in mech.hinge_index else mech.body(split).name
    parts = macro_mini(mech, split, body)
    inside = tuple(b.hinge_name for b in parts.mini.bodies if b.hinge.nv)
    if hinges is None:
        return inside
    names = (hinges,) if isinstance(hinges, str) else tuple(hinges)
    for name in names:
        if name not in inside:
            raise ModelError(
                f"hinge {name!r} is not one of the mini from {split!r}, which has "
                f"{', '.join(inside)}."
            )
    return names
