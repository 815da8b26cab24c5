"""Inertial properties of a node: translation and rotation, each with its ellipsoid's axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linkwise.dynamics.batched import Batched
from linkwise.dynamics.held_motion import usual_rows
from linkwise.dynamics.kernels import written
from linkwise.dynamics.operational_space import TOLERANCE
from linkwise.dynamics.quantity import Frame
from linkwise.inertial.response import (
    Loops,
    principal_formula,
    setting,
)
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

ALIGNED = 1e-3
"""Components of an axis below this are printed as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class InertialProperties(Batched):
    """The response of a node to forces and moments, and its effective masses.

    For a batch every array has the batch in front, and `properties[i]` is one state of it. Forces
    and accelerations are at the node's origin, in the axes of `frame`.

    Attributes:
        node: Name of the node.
        frame: Axes of all arrays: those of the "world" or of the "node".
        translational_response: Λ_v⁻¹ (3, 3): linear acceleration per force [1/kg].
        rotational_response: Λ_ω⁻¹ (3, 3): angular acceleration per moment [1/(kg m²)].
        coupling: Λ̄_vω (3, 3): linear acceleration per moment, and transposed, angular acceleration
            per force [1/(kg m)].
        translational_inertia: Λ_v (3, 3): force per linear acceleration of a node that is free to
            turn [kg]; zero along blocked directions.
        rotational_inertia: Λ_ω (3, 3): moment per angular acceleration of a node that is free to
            move [kg m²]; zero about blocked axes.
        principal_masses: Effective masses (3,) along the axes of Λ_v, the lightest first; infinite
            along blocked directions [kg].
        mass_axes: Those axes (3, 3), as columns.
        principal_inertias: Effective inertias (3,) about the axes of Λ_ω, the lightest first;
            infinite about blocked axes [kg m²].
        inertia_axes: Those axes (3, 3), as columns.
    """

    WHAT: ClassVar[str] = "inertial properties"
    AXES: ClassVar[tuple[str, int]] = ("coupling", 2)

    node: str
    frame: Frame
    translational_response: Array
    rotational_response: Array
    coupling: Array
    translational_inertia: Array
    rotational_inertia: Array
    principal_masses: Array
    mass_axes: Array
    principal_inertias: Array
    inertia_axes: Array

    @property
    def inverse(self) -> Array:
        """Λ⁻¹ (6, 6), angular rows first: 003 (33) in the order of this library."""
        upper = np.concatenate(
            [self.rotational_response, np.swapaxes(self.coupling, -1, -2)], axis=-1
        )
        lower = np.concatenate([self.coupling, self.translational_response], axis=-1)
        return np.concatenate([upper, lower], axis=-2)

    @property
    def mass_isotropy(self) -> float | Array:
        """Smallest effective mass over the largest: 1 if all directions are alike, 0 if blocked."""
        return _isotropy(self.principal_masses)

    @property
    def inertia_isotropy(self) -> float | Array:
        """Smallest effective rotational inertia over the largest: 1 if all axes are alike."""
        return _isotropy(self.principal_inertias)

    def __str__(self) -> str:
        axes = "the world" if self.frame == "world" else "the node"
        text = f"inertial properties of {self.node!r} in the axes of {axes}"
        if self.is_batch:
            return f"{text}, {len(self)} states"
        lines = [text]
        for words, unit, along, values, directions, isotropy in (
            ("mass", "kg", "along", self.principal_masses, self.mass_axes, self.mass_isotropy),
            (
                *("rotational inertia", "kg m²", "about"),
                *(self.principal_inertias, self.inertia_axes, self.inertia_isotropy),
            ),
        ):
            lines.append(f"  effective {words} [{unit}], isotropy {isotropy:.3g}")
            for value, axis in zip(values, directions.T, strict=True):
                amount = f"{value:10.4g}" if np.isfinite(value) else "   blocked"
                lines.append(f"  {amount} {along} {_axis(axis)}")
        return "\n".join(lines)


def inertial_properties(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: str,
    *,
    frame: Frame = "world",
    loops: Loops = "closed",
    tolerance: float = TOLERANCE,
) -> InertialProperties:
    """Effective masses and rotational inertias at a node, in all directions.

    Expression:
        Λ_v⁻¹ = J_v 𝓜⁻¹ J_v*,   Λ_ω⁻¹ = J_ω 𝓜⁻¹ J_ω*,   Λ̄_vω = J_v 𝓜⁻¹ J_ω*
        Λ⁻¹ = [[Λ_ω⁻¹, Λ̄_vω*], [Λ̄_vω, Λ_v⁻¹]]
    with the armature of the mechanism in 𝓜. Λ_v is the inverse of a block of Λ⁻¹, not that
    block of Λ: the node is free to turn while it is pushed. Source: 003 (28), (29), (32) and (33),
    where the linear rows come first.

    The principal masses are 1/s², with s the singular values of the whitened rows of J_v: nothing
    is squared before it is inverted, so blocked directions differ clearly from heavy ones.

    Args:
        node: Name of a node or body.
        frame: Axes: those of the "world" or of the "node"; the point is the node's origin.
        tolerance: Motions below this fraction of the largest count as blocked.

    Raises:
        UnknownNameError: The mechanism has no such node.
        SingularHingeError: Nothing resists the hinge of the named body. In a batch its row is NaN
            instead, with a warning.
    """
    at = setting(mech, node, frame, loops, tolerance, usual_rows(mech, q, loops))
    kernel = written(at.mech, principal_formula(at.kind, frame), node)
    parts = kernel(*at.arrays(q, kernel))
    return InertialProperties(node, frame, *_sorted(*parts.values()))


def _sorted(inverse: Array, *parts: Array) -> tuple[Array, ...]:
    """In the order of the attributes; parts are inertia, roots and axes of turning and moving."""
    turning, turns, about, moving, moves, along = parts
    with np.errstate(divide="ignore"):
        heavy, stiff = moves**-2.0, turns**-2.0
    blocks = (inverse[..., 3:, 3:], inverse[..., :3, :3], inverse[..., 3:, :3])
    return *blocks, moving, turning, heavy, along, stiff, about


def _isotropy(values: Array) -> float | Array:
    """Smallest over largest, of values in rising order; 0 where the largest is infinite."""
    first, last = values[..., 0], values[..., -1]
    ratio = np.where(np.isfinite(last), first / np.where(np.isfinite(last), last, 1.0), 0.0)
    return float(ratio) if ratio.ndim == 0 else ratio


def _axis(axis: Array) -> str:
    parts = np.where(np.abs(axis) < ALIGNED, 0.0, axis)
    near = np.flatnonzero(np.abs(axis) > 1.0 - ALIGNED**2)
    if len(near):
        return "xyz"[int(near[0])]
    return "(" + ", ".join(f"{part:.3g}" for part in parts) + ")"
