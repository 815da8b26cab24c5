"""Hinges whose coordinates depend on the path: rolling balls and soft fingers.

They reach more configurations than their velocities span (nonholonomic). What changes one step
later, or in q̇, is then no velocity: matrices by velocities, such as A of δẋ = A δx, exist only
where such a hinge is at rest. Derivatives of quantities along velocities, such as ∂v̇/∂q, exist.
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import ArrayLike

REST = 1e-8
"""Largest velocity [rad/s or m/s] of a hinge at rest."""


@once_per_mechanism
def path_dependent(mech: Mechanism) -> tuple[tuple[int, slice], ...]:
    """The bodies on such hinges, and their velocities."""
    return tuple(
        (k, slice(int(mech.v_start[k]), int(mech.v_start[k + 1])))
        for k, body in enumerate(mech.bodies)
        if body.hinge.hull.nv > body.hinge.nv
    )


def require_rest(mech: Mechanism, v: ArrayLike, call: str) -> None:
    """Raise if such a hinge moves in one of the states v (nv,) or (batch, nv)."""
    for k, rows in path_dependent(mech):
        if (np.abs(mech.check_v(v)[..., rows]) > REST).any():
            body = mech.bodies[k]
            raise ModelError(
                f"{call} was called for {mech.name!r}, whose body {body.name!r} moves on the "
                f"{body.hinge.kind} hinge {body.hinge_name!r}: it reaches more configurations than "
                "its velocities span (nonholonomic), so that there are no such matrices unless it "
                "is at rest. Use the gradient of a motion, lw.rollout(...).gradient(), or "
                "derivatives along directions by all entries of q, lw.jvp(..., raw_q=True)."
            )
