"""Numbers of what acts on a mechanism that may differ from motion to motion of a rollout.

| name | entries | what they are |
| --- | --- | --- |
| damping | nv | of drives [N s/m or N m s/rad] |
| stiffness | nv | of the springs of drives [N/m or N m/rad] |
| friction | nv | Coulomb friction of joints [N or N m], in implicit steps |
| ground_friction | contacts | Coulomb's coefficient of each contact, in implicit steps |
| gain | 3 an actuator | (g₀, g₁, g₂) of `lw.Actuator` |
| bias | 3 an actuator | (b₀, b₁, b₂) |

Those of the mechanism itself are in `codegen/scalar/parameters.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.dynamics.passive import passive
from linkwise.errors import ModelError
from linkwise.model.hinges.modified import is_plain
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.implicit.ground import ContactPoint
from linkwise.spatial.array import Array

AT_JOINTS = ("damping", "stiffness", "friction")
OF_ACTUATORS = ("gain", "bias")
ACTING = (*AT_JOINTS, "ground_friction", *OF_ACTUATORS)


def nominal(mech: Mechanism, name: str, contacts: Sequence[ContactPoint]) -> Array:
    """The numbers of a mechanism and its contacts as they are (n,)."""
    if name in OF_ACTUATORS:
        return np.array([x for actuator in mech.actuators for x in getattr(actuator, name)])
    if name == "ground_friction":
        return np.array([point.ground.friction for point in contacts])
    if name == "friction":
        each = [body.drive.array("friction", body.hinge) for body in mech.bodies]
        return np.concatenate([np.zeros(0), *each])
    return np.array(getattr(passive(mech), name))


def check(
    mech: Mechanism,
    name: str,
    values: Array,
    *,
    integrator: str,
    contacts: Sequence[ContactPoint],
    actuated: bool,
    with_passive: bool,
) -> None:
    """Raise ModelError for numbers that would not act, or are not allowed."""
    reason = ""
    if name in ("friction", "ground_friction") and integrator != "implicit":
        reason = f"it acts in steps by 'implicit', not by {integrator!r}"
    elif name == "ground_friction" and not contacts:
        reason = "no contacts were given"
    elif name in OF_ACTUATORS and not actuated:
        reason = "actuators act only where controls are given"
    elif name in AT_JOINTS and not with_passive:
        reason = "passive=False leaves it out"
    elif name not in OF_ACTUATORS and (values < 0.0).any():
        reason = "it must not be negative"
    elif name == "stiffness" and (values[..., np.logical_not(_plain(mech))] != 0.0).any():
        reason = "it acts only on hinges whose v is the rate of q; the others need zeros"
    if reason:
        raise ModelError(f"parameters has {name!r}: {reason}.")


def _plain(mech: Mechanism) -> Array:
    """Which velocities are rates of coordinates (nv,)."""
    return np.array([is_plain(b.hinge) for b in mech.bodies for _ in range(b.hinge.nv)], bool)
