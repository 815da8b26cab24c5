"""Joint forces of dampers and springs."""

from __future__ import annotations

import numpy as np

from linkwise.codegen.stepping.passive import passive
from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def passive_force(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array:
    """Joint forces of the dampers and springs of the drives [N or N m].

    Expression:
        τ_passive = −d v − k (q − rest)
    with `damping`, `stiffness` and `rest` of `lw.Drive`. `simulate` and `rollout` add it by
    themselves (`passive=True`), forward dynamics does not: there it is part of `tau`,

        vdot = lw.forward_dynamics(mech, q, v, tau + lw.passive_force(mech, q, v))

    Springs of hinges whose v is not the rate of q (quaternions) have no such formula and are left
    out. Coulomb friction is no part of it.

    Returns:
        (nv,) or (batch, nv).

    Raises:
        ModelError: No mechanism, or one with its loops built in.
        ShapeError: Arrays that do not fit.
    """
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        raise ModelError(
            "lw.passive_force is about all drives of a mechanism, not of one with its loops built "
            "in: give it embedded.mech, with q and v of all hinges."
        )
    at, speed = mech.check_q(q), mech.check_v(v)
    try:
        np.broadcast_shapes(at.shape[:-1], speed.shape[:-1])
    except ValueError:
        raise ShapeError(
            f"q has shape {at.shape} and v has shape {speed.shape}; their batches differ."
        ) from None
    return passive(mech).force(at, speed)
