"""Motors and servos: forces that follow a command, at joints, at a node or along cables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from linkwise.arguments import number
from linkwise.errors import ModelError
from linkwise.spatial.array import floats

Three = tuple[float, float, float]
Range = tuple[float, float]

DYNAMICS = ("none", "integrator", "filter")

ALL: Range = (-math.inf, math.inf)
"""No bounds."""


@dataclass(frozen=True, slots=True)
class Actuator:
    """A command becomes a force on joints, at a node, or along cables between nodes.

        length      l = Σ c_j q_j, its rate l̇ = Σ c_j v_j; of cables l = Σ c |p_b − p_a|;
                    at a node l = 0, and l̇ = w* V with the node's velocity V
        activation  a = u, the command within its range; or ȧ = u; or ȧ = (u − a)/T
        force       f = (g₀ + g₁ l + g₂ l̇) a + b₀ + b₁ l + b₂ l̇, within its range
        effect      τ_j = c_j f, the wrench f w at the node, or τ = (∂l/∂q)* f of cables: a
                    positive force pushes their ends apart

    This is MuJoCo's general actuator with affine gain and bias. `motor`, `position` and `velocity`
    make the usual ones.

    Attributes:
        name: Its name, and that of its command.
        joints: (hinge, c) for each joint it pulls: c is its gear; "hinge[i]" where a hinge has
            several velocities. Hinges must be ones whose v is the rate of q.
        node: The node it pushes instead of joints; empty for none.
        wrench: w (6,) in the node's axes, moment first [m or 1].
        gain: (g₀, g₁, g₂).
        bias: (b₀, b₁, b₂).
        control: Bounds of the command.
        force: Bounds of f [N or N m].
        dynamics: How the activation follows the command: "none", "integrator" or "filter".
        time_constant: T of a filter [s].
        activation: Bounds of a.
        cables: (node a, node b, c) for each straight piece of cable it pulls instead: MuJoCo's
            spatial tendon through sites. c is the gear, over the divisor of a pulley.
    """

    name: str
    joints: tuple[tuple[str, float], ...] = ()
    node: str = ""
    wrench: tuple[float, ...] = ()
    gain: Three = (1.0, 0.0, 0.0)
    bias: Three = (0.0, 0.0, 0.0)
    control: Range = ALL
    force: Range = ALL
    dynamics: Literal["none", "integrator", "filter"] = "none"
    time_constant: float = 0.0
    activation: Range = ALL
    cables: tuple[tuple[str, str, float], ...] = ()

    def __post_init__(self) -> None:
        put, what = object.__setattr__, f"actuator {self.name!r}"
        if not isinstance(cast(object, self.name), str) or not self.name:
            raise ModelError(f"the name of an actuator is {self.name!r}; it must be a word.")
        joints = tuple((str(n), number(c, f"gear of {what}")) for n, c in self.joints)
        put(self, "joints", joints)
        cables = tuple((str(a), str(b), number(c, f"gear of {what}")) for a, b, c in self.cables)
        put(self, "cables", cables)
        sizes = {"gain": 3, "bias": 3, "control": 2, "force": 2, "activation": 2}
        sizes["wrench"] = 6 if self.node else 0
        for field, size in sizes.items():
            put(self, field, _numbers(getattr(self, field), size, f"{field} of {what}"))
        for field in ("control", "force", "activation"):
            low, high = getattr(self, field)
            if not low <= high:
                raise ModelError(f"{field} of {what} goes from {low:g} to {high:g}; swap them.")
        if sum(map(bool, (joints, self.node, cables))) != 1:
            raise ModelError(f"{what} needs joints, a node, or cables; give one of them.")
        if self.dynamics not in DYNAMICS:
            known = ", ".join(map(repr, DYNAMICS))
            raise ModelError(f"dynamics of {what} is {self.dynamics!r}; it must be one of {known}.")
        time = number(self.time_constant, f"time_constant of {what}", least=0.0)
        if self.dynamics == "filter" and not time > 0.0:
            raise ModelError(f"time_constant of {what} is {time:g}; a filter needs a positive one.")
        put(self, "time_constant", time)

    @classmethod
    def motor(
        cls, name: str, hinge: str, *, gear: float = 1.0, control: Range = ALL, force: Range = ALL
    ) -> Actuator:
        """A motor whose force is the command: τ = gear u.

        Args:
            name: Its name.
            hinge: The hinge it moves.
            gear: Joint force per command.
            control: Bounds of the command.
            force: Bounds of the force, before the gear.
        """
        return cls(name, ((hinge, gear),), control=control, force=force)

    @classmethod
    def position(
        cls,
        name: str,
        hinge: str,
        *,
        kp: float,
        kv: float = 0.0,
        control: Range = ALL,
        force: Range = ALL,
    ) -> Actuator:
        """A servo to a position: τ = kp (u − q) − kv v.

        Args:
            name: Its name.
            hinge: The hinge it moves.
            kp: Stiffness [N m/rad or N/m].
            kv: Damping [N m s/rad or N s/m].
            control: Bounds of the command.
            force: Bounds of the force.
        """
        gain, bias = (kp, 0.0, 0.0), (0.0, -kp, -kv)
        return cls(name, ((hinge, 1.0),), "", (), gain, bias, control, force)

    @classmethod
    def velocity(
        cls, name: str, hinge: str, *, kv: float, control: Range = ALL, force: Range = ALL
    ) -> Actuator:
        """A servo to a velocity: τ = kv (u − v).

        Args:
            name: Its name.
            hinge: The hinge it moves.
            kv: Gain [N m s/rad or N s/m].
            control: Bounds of the command.
            force: Bounds of the force.
        """
        gain, bias = (kv, 0.0, 0.0), (0.0, 0.0, -kv)
        return cls(name, ((hinge, 1.0),), "", (), gain, bias, control, force)


def _numbers(value: Sequence[float], size: int, what: str) -> tuple[float, ...]:
    array = floats(value, what)
    if array.shape != (size,) or np.isnan(array).any():
        raise ModelError(f"{what} is {value!r}; it must be {size} numbers.")
    return tuple(array.tolist())
