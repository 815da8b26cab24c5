"""The budget of energy: what there is, what was done, and what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.dynamics.quantity import Frame
from linkwise.errors import ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.channel import Channel
from linkwise.simulation.work import Work, joint_work, outside_work, passive_work
from linkwise.spatial.array import Array, ArrayLike, floats

_ABOUT = {
    "joints": "work of joint forces",
    "passive": "work of dampers and springs",
    "forces": "work of forces from outside",
}


_INSIDE = ("limits",)
"""Others who push one body against another, not against the ground."""


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """Works along a motion.

    Attributes:
        channels: "work.NAME" of each, and "energy.balance": energy since the start that no work
            accounts for.
        uncounted: Names of those that did work which is not known.
        error: How far the works may be off together [J].
        outside: Whether others than joints, their ends, dampers and springs acted.
    """

    channels: tuple[Channel, ...]
    uncounted: tuple[str, ...]
    error: float
    outside: bool


def budget(
    mech: Mechanism,
    t: Array,
    states: tuple[Array, Array, Array],
    total: Array,
    *,
    works: Mapping[str, ArrayLike | None],
    error: float,
    forces: Mapping[str, Array],
    forces_frame: Frame,
    held: bool,
    passive: bool,
) -> Budget:
    """Works that are given, and those that are not by quadrature over the records.

    Args:
        works: Work up to each record (k,) [J] by name; None for one that is not known.
        held: Whether joint forces act unchanged from record to record.
    """
    q, v, tau = states
    found, uncounted = dict[str, Array](), list[str]()
    for name in dict.fromkeys(("joints", "passive", "forces", *works)):
        if name in works:
            known = works[name]
            if known is None:
                uncounted.append(name)
            else:
                found[name] = _checked(name, known, len(t))
            continue
        work = Work(np.zeros(len(t)))
        if name == "joints":
            work = joint_work(mech, t, q, v, tau, held=held)
        elif name == "passive" and passive:
            work = passive_work(mech, t, q, v)
        elif name == "forces" and forces:
            work = outside_work(mech, t, q, v, forces, forces_frame)
        found[name], error = work.values, error + work.error
    left = total - total[0] - sum(found.values(), np.zeros(len(t)))
    words = "energy since the start that no work accounts for"
    channels = [
        Channel(f"work.{name}", "J", _ABOUT.get(name, f"work of {name}"), values)
        for name, values in found.items()
    ]
    others = [*(set(found) - {*_ABOUT, *_INSIDE}), *uncounted]
    outside = bool(others) or bool("forces" in found and found["forces"].any())
    outside = outside or any(force.any() for force in forces.values())
    channels.append(Channel("energy.balance", "J", words, left))
    return Budget(tuple(channels), tuple(uncounted), error, outside)


def _checked(name: str, work: ArrayLike, records: int) -> Array:
    values = floats(work, f"work {name!r}")
    if values.shape != (records,):
        raise ShapeError(
            f"work {name!r} has the shape {values.shape}; it is ({records},), the work up to each "
            "record [J]."
        )
    return values - values[0]
