"""What a mechanism has, or a user may expect, that took no part in a motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.model.mechanism import Mechanism
from linkwise.simulation.work import plain_velocities
from linkwise.spatial.array import Array

NAMED = 4
"""Hinges named in one line; of more, how many."""

BEYOND = 1e-9
"""A limit is passed by more than this part of it, or this [rad, m, ...]: less is rounding."""


def not_modelled(
    mech: Mechanism,
    q: Array,
    v: Array,
    tau: Array,
    *,
    passive: bool = True,
    limits: str = "ignore",
    contacts: bool = False,
) -> list[str]:
    """Lines about data of the drives that was not used, and by how much it would have mattered.

    Args:
        limits: What became of joint limits: "ignore", or the way in which they acted.
    """
    lines = list[str]()
    names = mech.velocity_names
    dry = np.flatnonzero(mech.friction > 0.0)
    if len(dry):
        lines.append(f"Coulomb friction of {_names(names, dry)}")
    springs, dampers = mech.stiffness != 0.0, mech.damping != 0.0
    if not passive and (springs | dampers).any():
        acting = np.flatnonzero(springs | dampers)
        lines.append(f"dampers and springs of {_names(names, acting)}: passive=False")
    springy = np.flatnonzero(springs & ~plain_velocities(mech))
    if passive and len(springy):
        lines.append(f"springs of {_names(names, springy)}: v is not the rate of q there")
    of_v = [x.unit for body in mech.bodies for x in body.hinge.velocities]
    forces, rates = (["N" if x == "m" else "N m" for x in of_v], [f"{x}/s" for x in of_v])
    lines += _beyond("effort limits", names, forces, np.abs(tau), mech.effort_limit)
    lines += _beyond("speed limits", names, rates, np.abs(v), mech.velocity_limit)
    if limits == "ignore":
        over = np.maximum(q - mech.upper, mech.lower - q)
        of_q = [x.unit for body in mech.bodies for x in body.hinge.coordinates]
        lines += _beyond("joint limits", mech.coordinate_names, of_q, over, np.zeros(mech.nq))
        turning = [body for body in mech.bodies if body.hinge.quaternion is not None]
        cones = [body.hinge_name for body in turning if np.isfinite(body.drive.max_angle)]
        if cones:
            lines.append(f"largest turns of {_names(cones, np.arange(len(cones)))}")
    more = "contacts but those given" if contacts else "contacts"
    lines.append(f"{more}: bodies pass through each other and through the ground")
    return lines


def _beyond(
    what: str, names: Sequence[str], units: Sequence[str], size: Array, limit: Array
) -> list[str]:
    """One line about a kind of limit: which were passed, most first; none where there are none."""
    over = (size - limit).max(axis=0) if len(size) else np.zeros(len(limit))
    told = np.isfinite(over)  # no limit: minus infinity
    if not told.any():
        return []
    passed = np.flatnonzero(told & (over > BEYOND * np.maximum(limit, 1.0)))
    if not len(passed):
        return [] if what == "joint limits" else [f"{what} (none was passed)"]
    passed = passed[np.argsort(-over[passed], kind="stable")]
    most = f"{over[passed[0]]:.3g} {units[int(passed[0])]}".rstrip()
    return [f"{what}: passed by {_names(names, passed)}, at most by {most}"]


def _names(names: Sequence[str], which: NDArray[np.intp]) -> str:
    shown = ", ".join(repr(names[int(i)]) for i in which[:NAMED])
    return shown if len(which) <= NAMED else f"{shown} and {len(which) - NAMED} more"
