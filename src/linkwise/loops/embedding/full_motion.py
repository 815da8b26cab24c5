"""Between the independent velocities of an embedded mechanism and all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.memo import once_per_mechanism
from linkwise.pipeline import compile
from linkwise.spatial.array import Array, ArrayLike
from linkwise.sweeps.embedded_expression import MOTIONS

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel


def full_velocity(embedded: Embedded, q: ArrayLike, u: ArrayLike) -> Array:
    """All joint velocities v = 𝒳 u of a mechanism, from the independent ones.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        u: Independent velocities (nv,) or (batch, nv) [m/s or rad/s].

    Returns:
        (mech.nv,) or (batch, mech.nv), as the mechanism orders them.
    """
    return _in_place(embedded, _kernel(embedded, "full_velocity")(q, u))


def full_acceleration(embedded: Embedded, q: ArrayLike, u: ArrayLike, udot: ArrayLike) -> Array:
    """All joint accelerations v̇ = 𝒳 u̇ + 𝔵 of a mechanism, from the independent ones.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        u: Independent velocities (nv,) or (batch, nv) [m/s or rad/s].
        udot: Independent accelerations (nv,) or (batch, nv).

    Returns:
        (mech.nv,) or (batch, mech.nv), as the mechanism orders them.
    """
    found = _kernel(embedded, "full_acceleration")
    given = {"q": q, "v": u, "vdot": udot}
    return _in_place(embedded, found(*[given[name] for name in found.arguments]))


def independent_force(embedded: Embedded, q: ArrayLike, tau: ArrayLike) -> Array:
    """τ_r = 𝒳* τ: what forces of all hinges do to the independent velocities.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad] in which they hold.
        tau: Forces of all hinges (mech.nv,) or (batch, mech.nv) [N or N m].

    Returns:
        (nv,) or (batch, nv).
    """
    _check(embedded)
    tau = embedded.mech.check_v(tau, "tau")
    return _kernel(embedded, "independent_force")(q, tau[..., embedded.order])


def independent_velocity(embedded: Embedded, v: ArrayLike) -> Array:
    """u: the independent ones of all joint velocities (mech.nv,) or (batch, mech.nv)."""
    _check(embedded)
    return embedded.mech.check_v(v)[..., embedded.independent]


def _check(embedded: object) -> None:
    if not isinstance(embedded, Embedded):
        raise ModelError(
            f"an embedded mechanism is wanted, which lw.loops.embed makes; found "
            f"{type(embedded).__name__}."
        )


@once_per_mechanism
def _kernel(embedded: Embedded, name: str) -> Kernel:
    _check(embedded)
    return compile(MOTIONS[name], embedded)


def _in_place(embedded: Embedded, found: Array) -> Array:
    """From the order of the aggregates to that of the mechanism."""
    out = np.empty_like(found)
    out[..., embedded.order] = found
    return out
