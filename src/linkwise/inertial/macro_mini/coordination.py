"""Dextrous dynamic coordination: the macro follows, so that the mini stays within its range.

    V = Σ k_d (q_i - q̄_i)²                over the joints of the mini, q̄_i the middle of their range
    Γ_d = -∇V - k_v v                      (54), with damping
    Γ_nd = (I - J_t* J̄*) Γ_d               (55)

Task control alone moves the tip with the least kinetic energy, that is, with the light mini, which
soon reaches the end of its range. Γ_nd pulls the mini back to the middle. Since it acts in the
dynamically consistent null space, it does so by moving the macro, without effect on the tip.

Source: 003, section 5.3, equations (53) to (55). The damping is ours: without it the internal
motion oscillates. It acts on the joints of the mini, whose speed is that of the tip relative to the
macro; the macro therefore follows a steadily moving tip without lag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import number
from linkwise.dynamics.mass_matrix import mass_matrix_inverse
from linkwise.errors import ModelError
from linkwise.inertial.macro_mini.macro_mini import macro_mini
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
        split: The hinge that carries the mini, by its name or that of its body.
        kd: k_d of (53) [N m/rad or N/m]: a number, or one for each velocity of `hinges`.
        kv: Damping of the same joints [N m s/rad or N s/m]; None for none, as in the paper.
        hinges: Names of the attracted joints; default: all of the mini.
        columns: Indices of their velocities in v.

    Raises:
        UnknownNameError: The mechanism has no such hinge.
        ModelError: A joint without limits on both sides; gains that are not positive; nothing that
            moves inboard of the split.
    """

    mech: Mechanism
    split: str
    kd: ArrayLike
    kv: ArrayLike | None = None
    hinges: Sequence[str] | None = None
    columns: NDArray[np.int64] = field(init=False, repr=False)
    _spring: Posture = field(init=False, repr=False)

    def __post_init__(self) -> None:
        names = mini_hinges(self.mech, self.split, self.hinges)
        kd = checked_gain(floats(self.kd, "kd"), "kd of the coordination")
        if kd.ndim > 1:
            raise ModelError(f"kd has shape {kd.shape}; give a number, or one for each velocity.")
        kv = 1.0 if self.kv is None else checked_gain(self.kv, "kv of the coordination")
        spring = Posture.mid_range(self.mech, 2.0 * kd, kv, hinges=names)
        columns = spring.columns(self.mech)
        checked_gain(kd, "kd of the coordination", len(columns))
        checked_gain(kv, "kv of the coordination", len(columns))
        values = {"kd": kd, "hinges": names, "columns": columns, "_spring": spring}
        for name, value in values.items():
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
        """Gains for which the fastest internal motion in a state has a given frequency.

        Each joint is weighted by its range, k_d ~ 1 / (upper - lower)², and k_v = (4 ratio /
        frequency) k_d: the fastest motion has that damping ratio, slower ones less.

        Args:
            mech: The mechanism.
            q: Joint positions (nq,) of a typical state [m or rad].
            tasks: The tasks of the tip.
            split: The hinge that carries the mini, by its name or that of its body.
            frequency: Of the fastest internal motion [rad/s]: how fast the macro follows.
            ratio: Its damping ratio; 1 is critical.
            hinges: The attracted joints; default: all of the mini.

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
                "the coordination has no damping, so its internal motion would never settle; set "
                "kv, or use lw.papers.DextrousCoordination.tuned."
            )
        return self._spring

    def potential(self, q: ArrayLike) -> float | Array:
        """V (53) [J] of joint positions (nq,) or (batch, nq)."""
        q = self.mech.check_q(q)
        position = np.broadcast_to(self.mech.check_q(np.asarray(self._spring.position)), q.shape)
        away = self.mech.difference(q, position)[..., self.columns]
        energy = (np.asarray(self.kd) * away**2).sum(axis=-1)
        return float(energy) if energy.ndim == 0 else energy

    def torque(self, q: ArrayLike, v: ArrayLike | None = None) -> Array:
        """-∇V - k_v v (nv,) or (batch, nv) [N or N m], before any null space: (54).

        Args:
            q: Joint positions (nq,) or (batch, nq) [m or rad].
            v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s]; default: at rest.
        """
        q = self.mech.check_q(q)
        rest = np.zeros((*q.shape[:-1], self.mech.nv))
        v = rest if v is None or self.kv is None else self.mech.check_v(v)
        return self._spring.torque(self.mech, q, v)

    def null_torque(self, q: ArrayLike, v: ArrayLike | None, tasks: Tasks) -> Array:
        """(I - J_t* J̄*) Γ_d, without effect on the tasks: (55)."""
        return task_space(self.mech, q, tasks).null_torque(self.torque(q, v))

    def frequencies(self, q: ArrayLike, tasks: Tasks) -> Array:
        """Frequencies of the internal motion while the tip is at rest [rad/s], the slowest first.

        Expression:
            ω² = eigenvalues of 2 K^½ (N 𝓜⁻¹) K^½ over the attracted joints, K = diag k_d
        of the undamped motion in a state (nq,), without the zeros of combinations that no internal
        motion moves.
        """
        q = self.mech.check_q(q)
        if q.ndim != 1:
            raise ModelError(f"q has shape {q.shape}; the frequencies are those of one state.")
        response = task_space(self.mech, q, tasks).null_space @ mass_matrix_inverse(self.mech, q)
        chosen = self.columns
        root = np.sqrt(2.0 * np.broadcast_to(np.asarray(self.kd), (len(chosen),)))
        inside = response[np.ix_(chosen, chosen)] * root[:, None] * root
        values = np.linalg.eigvalsh(0.5 * (inside + inside.T))
        # Impossible motions leave only the rounding of terms of the mini alone.
        alone = np.abs(mass_matrix_inverse(self.mech, q)[np.ix_(chosen, chosen)]).max()
        values = values[values > 1e-12 * alone * root.max() ** 2]
        if len(values) == 0:
            raise ModelError(
                "the tasks leave no internal motion that moves the mini, so nothing can return its "
                f"joints ({', '.join(self.hinges or ())}). Use tasks of fewer rows."
            )
        return np.asarray(np.sqrt(values), dtype=np.float64)

    def share(self, q: ArrayLike) -> Array:
        """Distance of each joint from its middle, as a fraction of that to its limit (..., n)."""
        lower, upper = self._range()
        q = self.mech.check_q(q)[..., self._coordinates()]
        return np.abs(q - 0.5 * (lower + upper)) / (0.5 * (upper - lower))

    def watch(self) -> dict[str, Callable[[float, Array, Array, Array], float]]:
        """Margins for `lw.simulate(watch=...)` that vanish where a joint reaches its limit."""

        def margin(i: int) -> Callable[[float, Array, Array, Array], float]:
            return lambda t, q, v, tau: 1.0 - float(self.share(q)[i])

        names = [self.mech.coordinate_names[int(i)] for i in self._coordinates()]
        return {f"range of {name}": margin(i) for i, name in enumerate(names)}

    def _coordinates(self) -> NDArray[np.int64]:
        parts = [np.arange(self.mech.nq)[self.mech.q_slice(x)] for x in self.hinges or ()]
        return np.concatenate(parts)

    def _range(self) -> tuple[Array, Array]:
        at = self._coordinates()
        return self.mech.lower[at], self.mech.upper[at]


def mini_hinges(mech: Mechanism, split: str, hinges: Sequence[str] | None) -> tuple[str, ...]:
    """The moving hinges outboard of a split, or the named ones of them."""
    body = mech.hinge(split).name if split in mech.hinge_index else mech.body(split).name
    parts = macro_mini(mech, split, body)
    inside = tuple(b.hinge_name for b in parts.mini.bodies if b.hinge.nv)
    if hinges is None:
        return inside
    names = (hinges,) if isinstance(hinges, str) else tuple(hinges)
    for name in names:
        if name not in inside:
            raise ModelError(
                f"hinge {name!r} is not part of the mini from {split!r}, which has "
                f"{', '.join(inside)}."
            )
    return names
