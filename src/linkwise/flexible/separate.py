"""Flexible bodies as rigid parts that couplings tie together."""

from __future__ import annotations

from linkwise.arguments import is_a
from linkwise.model.lumps import of_rigid_parts, rigid_parts
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def separate(mech: Mechanism) -> Mechanism:
    """The mechanism with each lump of its flexible bodies as a body "name.lump_i".

    Couplings make the modal coordinates of the lumps follow those of their body. `lw.loops.embed`
    builds them into a recursion with the same numbers as the flexible body itself.

    Args:
        mech: The mechanism.
    """
    is_a(Mechanism, mech, "mech")
    return rigid_parts(mech)


def separate_q(mech: Mechanism, q: ArrayLike) -> Array:
    """The coordinates of `separate(mech)`, and of `lw.loops.embed(mech)`.

    Args:
        mech: The mechanism.
        q: Its coordinates (..., nq) [m or rad].

    Returns:
        Those of all parts (..., nq').
    """
    is_a(Mechanism, mech, "mech")
    return of_rigid_parts(mech, mech.check_q(q))
