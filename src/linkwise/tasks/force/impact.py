"""Impacts: a mass that meets a spring and a damper.

During an impact a mechanism hardly moves, so the surface meets the effective mass of the node along
the normal (003, equation (30)),

    1/m = n* Λ_v⁻¹ n,      ω = √(k/m),      ζ = d / (2 √(k m))

and δ̈ + 2 ζ ω δ̇ + ω² δ = 0 from δ = 0, δ̇ = v_n. The force k δ + d δ̇ is largest where (1 - 4 ζ²)
δ̇ = 2 ζ ω δ, or at the very beginning for ζ ≥ ½, and zero again where δ̇ = - ω δ / (2 ζ). Without
damping the largest force is √(k m) v_n, after a quarter of a period, and the impact lasts half of
one. The model neglects the motion of the mechanism, which is of the order of v_n √(m/k): the
shorter the impact, the better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from linkwise.dynamics.kernels import Loops, is_closed
from linkwise.dynamics.kinematics import forward_kinematics, jacobian
from linkwise.dynamics.mass_matrix import mass_matrix_inverse_product
from linkwise.dynamics.operational_space import operational_inertia_inverse
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.tasks.force.surface import CompliantSurface, check_node


@dataclass(frozen=True, slots=True)
class Impact:
    """An impact as a mass on a spring and a damper.

    Attributes:
        mass: Effective mass along the normal [kg].
        speed: At which the surface is met [m/s].
        frequency: ω of the mass on the surface [rad/s].
        damping_ratio: ζ.
        peak_force: Largest force [N].
        duration: Until the surface stops pushing [s].
        restitution: Speed afterwards over the speed before.
    """

    mass: float
    speed: float
    frequency: float
    damping_ratio: float
    peak_force: float
    duration: float
    restitution: float

    def __str__(self) -> str:
        return (
            f"{self.mass:.4g} kg at {self.speed:.4g} m/s: at most {self.peak_force:.4g} N, "
            f"{1e3 * self.duration:.4g} ms, leaves with {self.restitution:.3g} of the speed"
        )


def impact_estimate(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    node: str,
    surface: CompliantSurface,
    *,
    loops: Loops = "closed",
) -> Impact:
    """The impact of a node that is about to touch a surface, without other forces.

    Expression:
        1/m = n* J_v 𝓜⁻¹ J_v* n,   with the armature of the mechanism in 𝓜
    Source: 003, equations (28) and (30); friction is left out.

    Args:
        q: Joint positions (nq,) [m or rad].
        v: Joint velocities (nv,) [m/s or rad/s].
        node: Name of the node or body whose origin touches.
        surface: The surface.

    Raises:
        ModelError: The node does not move towards the surface, or cannot move along the normal.
        UnknownNameError: The mechanism has no such node.
    """
    check_node(mech, node)
    if not isinstance(cast(object, surface), CompliantSurface):
        raise ModelError(f"surface is {surface!r}; it must be a lw.tasks.CompliantSurface.")
    q, v = mech.check_q(q), mech.check_v(v)
    if q.ndim != 1 or v.ndim != 1:
        raise ModelError(f"impact_estimate takes one state; q is {q.shape}, v is {v.shape}.")
    speed = float(surface.touch(mech, q, v, node).rate)
    if speed <= 0.0:
        raise ModelError(
            f"{node!r} moves at {-speed:.4g} m/s away from the surface; there is no impact. Use "
            "a state that moves towards it."
        )
    normal = surface.normal_at(forward_kinematics(mech, q, node).p)
    row: Array = normal @ jacobian(mech, q, node, frame="world")[3:]
    if is_closed(mech, loops):
        response = operational_inertia_inverse(mech, q, node, frame="world")[3:, 3:]
        mobility = float(normal @ response @ normal)
    else:
        mobility = float(row @ mass_matrix_inverse_product(mech, q, row))
    if mobility <= 0.0:
        raise ModelError(f"{node!r} cannot move along the normal; there is no impact.")
    return spring_impact(1.0 / mobility, speed, surface.stiffness, surface.damping)


def spring_impact(mass: float, speed: float, stiffness: float, damping: float) -> Impact:
    """A free mass [kg] that meets a spring [N/m] and a damper [N s/m] at some speed [m/s]."""
    w = math.sqrt(stiffness / mass)
    ratio = damping / (2.0 * math.sqrt(stiffness * mass))
    # Equal roots of s² + 2 ζ ω s + ω² are separated slightly.
    z = ratio if abs(ratio - 1.0) > 1e-6 else 1.0 + 1e-6
    bend = w * math.sqrt(abs(1.0 - z**2))

    def depth(t: float) -> float:
        """δ."""
        swing = math.sin(bend * t) if z < 1.0 else math.sinh(bend * t)
        return speed * math.exp(-z * w * t) * swing / bend

    def instant(slope: float) -> float:
        """The first t with δ̇ = slope · δ, for ζ < 1: bend cot(bend t) = slope + ζ ω."""
        return math.atan2(bend, slope + z * w) / bend

    peak = damping * speed
    if ratio < 0.5:
        slope = 2.0 * z * w / (1.0 - 4.0 * z**2)
        peak = (stiffness + damping * slope) * depth(instant(slope))
    if ratio == 0.0:
        return Impact(mass, speed, w, ratio, peak, math.pi / w, 1.0)
    slope = -w / (2.0 * z)
    if z < 1.0:
        end = instant(slope)
    else:  # coth instead of cot; (slope + ζ ω)² - bend² = (ω / 2 ζ)² avoids cancellation
        end = math.log(2.0 * z / w * (slope + z * w + bend)) / bend
    return Impact(mass, speed, w, ratio, peak, end, -slope * depth(end) / speed)
