"""Forces of drives that nobody commands: dampers and springs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array

EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Passive:
    """Forces −d v − k (q − rest) of drives, one number for each velocity.

    Attributes:
        damping: d (nv,).
        stiffness: k (nv,); zero where velocities are no rates of coordinates.
        rest: Where springs are at rest (nv,).
        at: The coordinate that goes with each velocity (nv,).
    """

    damping: Array
    stiffness: Array
    rest: Array
    at: NDArray[np.intp]

    @property
    def any(self) -> bool:
        """Whether there are such forces."""
        return bool(self.damping.any() or self.stiffness.any())

    def force(self, q: Array, v: Array) -> Array:
        """−d v − k (q − rest) of q (..., nq) and v (..., nv)."""
        return -self.damping * v - self.stiffness * (q[..., self.at] - self.rest)

    def energy(self, q: Array) -> Array:
        """What the springs store, ½ Σ k (q − rest)² [J], of q (..., nq)."""
        return 0.5 * np.sum(self.stiffness * (q[..., self.at] - self.rest) ** 2, axis=-1)

    def slopes(self, given: Mapping[str, Any] = EMPTY) -> tuple[Any, Any]:
        """d and k (nv,) in formulas on `Scalar`, those given or these."""
        return given.get("damping", self.damping), given.get("stiffness", self.stiffness)

    def added(self, tau: Any, q: Any, v: Any, given: Mapping[str, Any] = EMPTY) -> Any:
        """`tau` with these forces, likewise."""
        out = tau.copy()
        for i, (d, k) in enumerate(zip(*self.slopes(given), strict=True)):
            if not _is_none(d):
                out[i] = out[i] - d * v[i]
            if not _is_none(k):
                out[i] = out[i] - k * (q[int(self.at[i])] - float(self.rest[i]))
        return out


def _is_none(x: Any) -> bool:
    """Whether a number is zero in every motion."""
    return isinstance(x, float) and x == 0.0


@once_per_mechanism
def passive(mech: Mechanism) -> Passive:
    """The dampers and springs of a mechanism.

    Springs of hinges whose velocities are no rates of coordinates (quaternions) have no such
    formula and are left out; a recording reports them.
    """
    stiffness, rest = mech.stiffness.copy(), np.zeros(mech.nv)
    at = np.zeros(mech.nv, dtype=np.intp)
    for k, body in enumerate(mech.bodies):
        in_v = slice(int(mech.v_start[k]), int(mech.v_start[k + 1]))
        if is_plain(body.hinge):
            start = int(mech.q_start[k])
            at[in_v] = np.arange(start, start + body.hinge.nv)
            rest[in_v] = body.drive.array("rest", body.hinge)
        else:
            stiffness[in_v] = 0.0
    return Passive(mech.damping, stiffness, rest, at)
