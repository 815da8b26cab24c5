"""From free motion to contact: approach, impact, contact, and back when the surface is lost.

Along the directions of force control, the requested acceleration depends on the phase:

    approach    F* = k_v (- v_a n - ẋ)                  towards the surface at a given speed v_a
    impact      F* = - k_d ẋ                            damping only
    contact     F* = k_f (f_d - f) + k_i ∫ - k_v ẋ      the force servo

With the sensed force compensated, the node that meets the surface at v_a is a unit mass in a
viscous
fluid: it stops after v_a/k_d, where the surface pushes with k v_a/k_d, and does not rebound. The
servo takes over when the node is calm. Without this phase the servo would begin with an error as
large as the desired force, at the speed of the approach, and the node might leave the surface
again.

There is no hidden state: the phase is an argument, the next one a result.

Source: 003 section 2.2 has the two subsystems; the damping during impact is that of Khatib and
Burdick (1986), Khatib (1987).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from linkwise.arguments import number
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array
from linkwise.tasks.force.positive import not_negative, positive
from linkwise.tasks.force.surface import CompliantSurface

PhaseName: TypeAlias = Literal["approach", "impact", "contact"]


@dataclass(frozen=True, slots=True)
class ContactPhase:
    """The phase of a contact: the state of a `ContactTransition`.

    Attributes:
        name: "approach", "impact" or "contact".
        since: When this phase began [s].
        calm_since: Time since which the node presses and is slow [s]; None if it does not.
        away_since: Time since which nothing presses [s]; None while something does.
    """

    name: PhaseName = "approach"
    since: float = 0.0
    calm_since: float | None = None
    away_since: float | None = None

    def __post_init__(self) -> None:
        check_phase(self.name)
        for name in ("since", "calm_since", "away_since"):
            value = getattr(self, name)
            if value is not None or name == "since":
                object.__setattr__(self, name, number(value, f"{name} of a contact [s]"))

    def __str__(self) -> str:
        return f"{self.name} since {self.since:.6g} s"


@dataclass(frozen=True, slots=True)
class ContactTransition:
    """The conditions for the next phase, and the control of the first two phases.

    Attributes:
        approach_speed: v_a [m/s], positive.
        impact_damping: k_d [1/s], positive.
        settle_speed: The node is calm below this speed along the normal [m/s].
        settle_time: How long it must be calm before force control begins [s].
        touch_force: Contact is detected above this force [N], above the noise of the sensor.
        patience: How long nothing may press [s] before the phase is an approach again.
        longest: An impact ends after this time [s] even if it is not calm: damping alone does not
            support weight that the model does not include.
    """

    approach_speed: float
    impact_damping: float
    settle_speed: float = 1e-3
    settle_time: float = 0.0
    touch_force: float = 0.0
    patience: float = 0.05
    longest: float = 0.2

    def __post_init__(self) -> None:
        put: Any = object.__setattr__
        for name, unit in (("approach_speed", "m/s"), ("impact_damping", "1/s")):
            put(self, name, positive(f"{name} of a transition", getattr(self, name), unit))
        put(self, "settle_speed", positive("settle_speed", self.settle_speed, "m/s"))
        put(self, "longest", positive("longest impact", self.longest, "s"))
        for name, unit in (("settle_time", "s"), ("touch_force", "N"), ("patience", "s")):
            put(self, name, not_negative(f"{name} of a transition", getattr(self, name), unit))

    def after(self, phase: ContactPhase, t: float, pressure: float, speed: float) -> ContactPhase:
        """The phase after a measurement; call it once in every step of a controller.

            approach → impact       it touches
            impact → contact        it has been calm for the settle time, or has lasted too long
            impact, contact → approach   nothing has pressed for longer than patience

        Args:
            phase: The phase so far.
            t: The time [s].
            pressure: Force along the normal [N], positive where it presses.
            speed: Along the normal [m/s], of either sign.
        """
        t, pressure = number(t, "t [s]"), number(pressure, "pressure [N]")
        speed = number(speed, "speed [m/s]")
        presses = pressure > self.touch_force
        away = None if presses else (t if phase.away_since is None else phase.away_since)
        calm = None
        if presses and abs(speed) < self.settle_speed:
            calm = t if phase.calm_since is None else phase.calm_since
        if phase.name == "approach":
            if presses:
                return ContactPhase("impact", t, calm)
        elif away is not None and t - away > self.patience:
            return ContactPhase("approach", t, None, away)
        elif phase.name == "impact" and presses:
            settled = calm is not None and t - calm >= self.settle_time
            if settled or t - phase.since > self.longest:
                return ContactPhase("contact", t, calm)
        return replace(phase, calm_since=calm, away_since=away)

    def watch(
        self, phase: PhaseName, mech: Mechanism, node: str, surface: CompliantSurface
    ) -> dict[str, Callable[[float, Array, Array, Array], float]]:
        """Margins whose loss ends a phase, for `simulate(..., watch=...)`.

        They locate the instants to 1e-9 s instead of to a step, without settle time, patience and
        longest impact. The name of a margin is the name of the next phase.
        """
        check_phase(phase)
        if phase == "approach":
            return {"impact": surface.touching(mech, node)}
        margins = {"approach": surface.leaving(mech, node)}
        if phase == "impact":

            def calm(t: float, q: Array, v: Array, tau: Array) -> float:
                return abs(float(surface.touch(mech, q, v, node).rate)) - self.settle_speed

            margins["contact"] = calm
        return margins


def check_phase(name: object) -> None:
    """Raise for an unknown phase."""
    if name not in get_args(PhaseName):
        raise ModelError(f"phase is {name!r}; it must be one of {', '.join(get_args(PhaseName))}.")
