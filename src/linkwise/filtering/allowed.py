"""Errors of states that loops and couplings allow: where covariances are not zero.

    δq = Z y,    δv = Z w + (what δq makes of J_c v = 0, across Z),    Z* Z = 1

so that y = Z* δq and w = Z* δv are an allowed error in independent numbers. Nonholonomic hinges
allow more displacements than velocities: δq has another Z, that of the holonomic hinges.
"""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.closure import constraint_error, constraint_jacobian, constraint_names
from linkwise.dynamics.kernels import check_mechanism, is_closed
from linkwise.dynamics.velocity_space import holonomic, scale, velocity_spaces
from linkwise.errors import ClosureError, ModelError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

OPEN = 1e-6
"""Largest error of loops and couplings [rad or m] of a state from which a filter begins."""

RANK = 1e-5
"""Singular values below this part of the largest are zero: estimates close loops to about 1e-6."""


def allowed(mech: Mechanism, q: Array, size: int) -> Array:
    """Orthonormal errors (..., size, independent) of q, v and other numbers at q (..., nq)."""
    lead, wide = q.shape[:-1], holonomic(mech)
    if not is_closed(mech):
        return np.broadcast_to(np.eye(size), (*lead, size, size))
    flat = q.reshape(-1, q.shape[-1])
    still = _bases(wide, flat)
    moving = still if wide is mech else _bases(mech, flat)
    counts = {(x.shape[1], y.shape[1]) for x, y in zip(still, moving, strict=True)}
    if len(counts) > 1:
        raise ModelError(
            f"loops of {mech.name!r} are singular in some of the states: {sorted(counts)} "
            "displacements and velocities are independent. Keep away from such configurations."
        )
    f, g = counts.pop() if counts else (0, 0)
    ways, both = wide.nv, wide.nv + mech.nv
    out = np.zeros((len(flat), size, size - both + f + g))
    for one, x, y in zip(out, still, moving, strict=True):
        one[:ways, :f], one[ways:both, f : f + g] = x, y
        one[both:, f + g :] = np.eye(size - both)
    return out.reshape(*lead, *out.shape[1:])


def whole_mechanism(mech: object, what: str) -> None:
    """Raise unless it is a mechanism, whose loops are not built in."""
    check_mechanism(mech)
    if isinstance(mech, Embedded):
        raise ModelError(
            f"{what} of {mech.name!r} with its loops and couplings built in was requested. Give "
            "the mechanism itself, which is its attribute mech: its loops are held, too."
        )


def _bases(mech: Mechanism, q: Array) -> list[Array]:
    """Orthonormal velocities (nv, free) that loops and couplings allow, of each state."""
    return [np.linalg.qr(x.free)[0] for x in velocity_spaces(mech, q, RANK)]


def check_obeyed(mech: Mechanism, q: Array, v: Array) -> None:
    """Raise unless loops and couplings hold at q and v (..., nq), (..., nv)."""
    if not is_closed(mech):
        return
    error = np.atleast_2d(constraint_error(mech, q))
    speed = np.atleast_2d((constraint_jacobian(mech, q) @ v[..., None])[..., 0])
    size = scale(mech).length * np.linalg.norm(v / scale(mech).columns)
    for what, off, least in (("q", error, OPEN), ("v", speed, OPEN * (1.0 + size))):
        if np.abs(off).max(initial=0.0) > least:
            row = int(np.argmax(np.abs(off).max(axis=0)))
            raise ClosureError(
                f"a filter of {mech.name!r} was started where {what} breaks "
                f"{constraint_names(mech)[row]!r} by {np.abs(off).max():.2g} (rad, m or a second); "
                f"at most {least if what == 'q' else OPEN:g} is allowed. Start at "
                "q = lw.loops.project_position(mech, q).required() with "
                "v = lw.loops.project_velocity(mech, q, v)."
            )
