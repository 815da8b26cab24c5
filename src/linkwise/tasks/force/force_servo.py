"""The servo of a force, and its closed loop on a surface of given stiffness.

Along the directions of force control, the servo requests the acceleration

    F* = k_f (f_d - f) + k_i ∫ (f_d - f) dt - k_v ẋ

with f the force that the mechanism exerts. With the dynamics and the sensed force compensated, the
node responds like a unit mass, ẍ = F*; on a surface f = k x + d ẋ the closed loop is

    s³ + (k_v + k_f d) s² + (k_f k + k_i d) s + k_i k = 0

Without k_i it is s² + (k_v + k_f d) s + k_f k: stable for every stiffness, and f converges to
f_d exactly, as the node moves until the force is correct. An integral removes the error of a wrong
model. It is stable, by Routh, if (k_v + k_f d)(k_f k + k_i d) > k_i k, and

    k_i < k_v k_f

is sufficient for every stiffness and damping.

A controller with steps of h keeps its force constant during a step, the surface does not. Within a
step

    ẍ = F* + (f_held - f)/m

with m the mass along the normal, so a long step on a stiff surface is unstable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.spatial.array import Array
from linkwise.tasks.force.positive import not_negative, positive
from linkwise.tasks.force.surface import CompliantSurface


@dataclass(frozen=True, slots=True, eq=False)
class ForceLoop:
    """A force servo against a surface, as a linear system.

    Attributes:
        poles: Of the loop (2,) or (3,) [1/s]; for one in steps log(z)/h.
        step: The step h [s], or None for a loop in continuous time.
    """

    poles: NDArray[np.complex128]
    step: float | None = None

    @property
    def stable(self) -> bool:
        """Whether every pole is on the left."""
        return bool((self.poles.real < 0.0).all())

    @property
    def settling_time(self) -> float:
        """Time until the slowest part has decayed to 1 % [s]; inf if unstable."""
        return float(np.log(100.0) / -self.poles.real.max()) if self.stable else np.inf

    @property
    def damping_ratio(self) -> float:
        """The smallest over all poles: 1 without oscillation, 0 or less if unstable."""
        size = np.abs(self.poles)
        return float((-self.poles.real / np.where(size > 0.0, size, 1.0)).min())

    def __str__(self) -> str:
        how = "in continuous time" if self.step is None else f"in steps of {self.step:.3g} s"
        if not self.stable:
            return f"force loop {how}: not stable"
        return (
            f"force loop {how}: stable, damping ratio {self.damping_ratio:.3g}, settles in "
            f"{self.settling_time:.3g} s"
        )


@dataclass(frozen=True, slots=True)
class ForceServo:
    """Gains of a force servo. Moments have the same gains, per N m and kg m².

    Attributes:
        kf: k_f [m/s² per N], positive.
        kv: k_v [1/s], positive.
        ki: k_i [m/s² per N s]; below k_v k_f.
    """

    kf: float
    kv: float
    ki: float = 0.0

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        put(self, "kf", positive("kf of a force servo", self.kf, "1/kg"))
        put(self, "kv", positive("kv of a force servo", self.kv, "1/s"))
        put(self, "ki", not_negative("ki of a force servo", self.ki, "1/(kg s)"))
        if self.ki >= self.kv * self.kf:
            raise ModelError(
                f"ki of a force servo is {self.ki:.4g}, kv kf is {self.kv * self.kf:.4g}; the loop "
                "is stable on every surface only if ki is below kv kf. Lower ki or raise kv."
            )

    @staticmethod
    def for_surface(
        surface: CompliantSurface | float, frequency: float, *, damping_ratio: float = 1.0
    ) -> ForceServo:
        """Gains that give the loop a frequency [rad/s] on a surface, without an integral.

        k_f = ω²/k and k_v = 2 ζ ω - k_f d.

        Args:
            surface: The surface, or its stiffness [N/m].
            frequency: ω of the loop [rad/s].
            damping_ratio: ζ of the loop.
        """
        k, d = stiffness_of(surface)
        w = positive("frequency", frequency, "rad/s")
        kf = w**2 / k
        kv = 2.0 * positive("damping_ratio", damping_ratio, "no unit") * w - kf * d
        if kv <= 0.0:
            raise ModelError(
                f"the damping of the surface alone, {d:.4g} N s/m, exceeds that of a force loop of "
                f"{w:.4g} rad/s with damping ratio {damping_ratio:.3g}. Use a lower frequency or a "
                "higher damping ratio."
            )
        return ForceServo(kf, kv)

    def loop(
        self,
        surface: CompliantSurface | float,
        *,
        mass: float | None = None,
        step: float | None = None,
    ) -> ForceLoop:
        """The closed loop against a surface.

        Args:
            surface: The surface, or its stiffness [N/m].
            mass: The mass along the normal [kg], for a loop in steps; `impact_estimate` has it.
            step: The step of the controller [s]; default: continuous time.
        """
        k, d = stiffness_of(surface)
        if step is None:
            s2, s1, s0 = self.kv + self.kf * d, self.kf * k + self.ki * d, self.ki * k
            roots = np.roots([1.0, s2, s1, s0] if self.ki > 0.0 else [1.0, s2, s1])
            return ForceLoop(roots.astype(np.complex128))
        h = positive("step", step, "s")
        if mass is None:
            raise ModelError("a force loop in steps needs mass=, the mass along the normal [kg].")
        m = positive("mass", mass, "kg")
        # ẏ = A y + b u with y = (x, ẋ) and u held, a constant third component of the state.
        generator = np.zeros((3, 3))
        generator[0, 1], generator[1] = 1.0, (-k / m, -d / m, 1.0)
        held = _exponential(h * generator)
        law = np.array([k / m - self.kf * k, d / m - self.kf * d - self.kv, self.ki])
        matrix = np.zeros((3, 3))
        matrix[:2, :2] = held[:2, :2]
        matrix[:2] += np.outer(held[:2, 2], law)
        matrix[2] = -h * k, -h * d, 1.0
        used = matrix if self.ki > 0.0 else matrix[:2, :2]
        z = np.array(np.linalg.eigvals(used), dtype=np.complex128)
        z[z == 0.0] = 1e-300  # gone within a step
        return ForceLoop(np.array(np.log(z) / h, dtype=np.complex128), h)


def stiffness_of(surface: object) -> tuple[float, float]:
    """Stiffness and damping of a surface, or a stiffness alone."""
    if isinstance(surface, CompliantSurface):
        return surface.stiffness, surface.damping
    return positive("stiffness of a surface", surface, "N/m"), 0.0


def _exponential(matrix: Array) -> Array:
    """e^A of a small matrix: the Taylor series of A/2ⁿ, squared n times."""
    n = max(0, int(np.ceil(np.log2(max(float(np.abs(matrix).sum(axis=1).max()), 1e-300)))) + 4)
    small, out, term = matrix / 2.0**n, np.eye(len(matrix)), np.eye(len(matrix))
    for i in range(1, 14):
        term = term @ small / i
        out = out + term
    for _ in range(n):
        out = out @ out
    return out
