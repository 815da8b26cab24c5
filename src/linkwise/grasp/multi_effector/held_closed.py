"""Whether arms hold their object in a state: loops that are closed, velocities that they allow.

An augmented object is that of a closed chain. Arms whose hands are elsewhere than at the object
would add up to a number as well, which means nothing.
"""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.closure import loop_errors
from linkwise.errors import ClosureError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

OPEN = 1e-3
"""How far [m, rad] a loop may be from closed. `simulate` begins within 1e-6; between its
steps, where it asks for joint forces too, loops drift by 1e-5 or so, by 1e-4 in long steps."""

APART = 2e-2
"""How fast [m/s, rad/s] a loop may open: in the same places 1e-3 and 1e-2. Where joints move
faster than by one rad/s or m/s, so many times this."""


def check_closed(mech: Mechanism, q: Array, v: Array, J_c: Array) -> None:
    """Refuse states in which the arms do not hold the object.

    Args:
        mech: The mechanism; it has loops and no couplings.
        q: Joint positions (batch, nq).
        v: Joint velocities (batch, nv).
        J_c: `constraint_jacobian` there (batch, rows, nv).

    Raises:
        ClosureError: A loop is open, or velocities pull it apart; names the worst, and says by how
            much.
    """
    e = loop_errors(mech, q).reshape(len(q), -1, 2, 3)
    size = np.linalg.norm(e, axis=-1)  # (batch, loops, 2): angle, distance
    if (size > OPEN).any():
        state, loop, _ = np.unravel_index(int(np.argmax(size)), size.shape)
        angle, distance = size[state, loop]
        raise ClosureError(
            f"an object that arms hold was asked about, and loop {mech.loops[loop].name!r} of "
            f"{mech.name!r} is open by {distance:.3g} m and {angle:.3g} rad{_in(state, q)}: that "
            f"arm does not hold it there. Up to {OPEN:g} is allowed; close it with "
            "lw.loops.assemble(mech, q)."
        )
    if not v.any():
        return
    speed = np.abs((J_c @ v[..., None])[..., 0])
    allowed = APART * np.maximum(np.abs(v).max(axis=-1, keepdims=True), 1.0)
    if (speed > allowed).any():
        state, row = np.unravel_index(int(np.argmax(speed / allowed)), speed.shape)
        each = [loop.name for loop in mech.loops for _ in range(loop.rows)]
        raise ClosureError(
            f"the velocities pull loop {each[int(row)]!r} of {mech.name!r} apart"
            f"{_in(state, q)}, |J_c v| = {speed[state, row]:.3g} m/s or rad/s; up to "
            f"{allowed[state, 0]:.2g} is allowed. Use lw.loops.project_velocity(mech, q, v)."
        )


def _in(state: np.intp, q: Array) -> str:
    return f" in state {state} of {len(q)}" if len(q) > 1 else ""
