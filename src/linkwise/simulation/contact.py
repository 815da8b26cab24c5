"""Points of a mechanism that touch compliant surfaces while it moves.

A contact is on or off. It goes on at the instant at which its surface begins to push, and off when
that ends, both found to 1e-9 s; a step of time ends there. So no step has the jump within it with
which the force of a damped surface begins, and integrators keep their order through impacts.

With the penetration δ, the stiffness k and the damping d the surface presses while

    p = δ + (d/k) δ̇ ≥ 0   and   δ ≥ 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from linkwise.closed.motion.watch import State
from linkwise.dynamics.kinematics import forward_kinematics, node_velocity
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.event import Event
from linkwise.simulation.gauge import Gauge
from linkwise.spatial.array import Array
from linkwise.task.force.surface import CompliantSurface, Touch, check_node


class Contacts(Gauge):
    """Nodes of a mechanism and the surfaces they may touch.

    Attributes:
        nodes: Name of the node of each contact.
        surfaces: Its surface.
        on: Whether it presses now (n,).
    """

    kind = "contact"
    cuts = True

    def __init__(self, mech: Mechanism, given: object) -> None:
        found = _contacts(mech, given)
        self.mech, self.names = mech, tuple(found)
        self.nodes = tuple(node for node, _ in found.values())
        self.surfaces = tuple(surface for _, surface in found.values())
        self.on = np.zeros(len(found), dtype=np.bool_)
        self._ratio = np.array([x.damping / x.stiffness for x in self.surfaces])

    def begin(self, q: Array, v: Array) -> None:
        """Set which contacts press at a state."""
        self.on = self.pressing(q, v) >= 0.0

    def touch(self, i: int, q: Array, v: Array) -> tuple[Touch, Array, Array]:
        """How one touches; rot_WB of its node, and its velocity in world axes."""
        node = self.nodes[i]
        pose = forward_kinematics(self.mech, q, node)
        velocity = node_velocity(self.mech, q, v, node, frame="world")[3:]
        return self.surfaces[i].touch_at(pose.p, velocity), pose.rot, velocity

    def pressing(self, q: Array, v: Array) -> Array:
        """p of each [m]: negative where its surface does not push."""
        return np.array([self._pressing(i, q, v) for i in range(len(self.names))])

    def _pressing(self, i: int, q: Array, v: Array) -> float:
        touch, _, _ = self.touch(i, q, v)
        depth = float(touch.penetration)
        return depth + float(self._ratio[i] * touch.rate) if depth >= 0.0 else depth

    def margins(self, state: State) -> Array:
        """p while it presses, -p while it does not: what has to stay positive."""
        return np.where(self.on, 1.0, -1.0) * self.pressing(state[1], state[2])

    def margin(self, i: int, state: State) -> float:
        """One of them."""
        return (1.0 if self.on[i] else -1.0) * self._pressing(i, state[1], state[2])

    def happened(self, i: int, state: State, margin: float) -> Event:
        """The contact goes on, or off."""
        touch, _, velocity = self.touch(i, state[1], state[2])
        self.on[i] = not self.on[i]
        speed = float(np.linalg.norm(velocity))
        words = "touches" if self.on[i] else "leaves"
        text = f"{words} the {self.surfaces[i].shape} at {speed:.3g} m/s"
        return Event(state[0], "contact", self.names[i], text, float(-touch.rate))

    def forces(self, q: Array, v: Array, frame: Frame) -> tuple[dict[str, Array], float]:
        """(moment, force) (6,) by node of the contacts that are on, and their power [W]."""
        found, power = dict[str, Array](), 0.0
        for i in np.flatnonzero(self.on).tolist():
            touch, rot_WB, velocity = self.touch(i, q, v)
            force = touch.force if frame == "world" else touch.force @ rot_WB
            node, wrench = self.nodes[i], np.concatenate([np.zeros(3), force])
            found[node] = found[node] + wrench if node in found else wrench
            power += float(touch.force @ velocity)
        return found, power

    def stored(self, q: Array) -> float:
        """½ k δ² of all [J]."""
        both = zip(self.nodes, self.surfaces, strict=True)
        return sum(float(surface.energy(self.mech, q, node)) for node, surface in both)

    def force(self, i: int, q: Array, v: Array) -> tuple[Array, float]:
        """Force of one on its node (3,) in world axes [N], and the penetration [m]."""
        touch, _, _ = self.touch(i, q, v)
        return touch.force if self.on[i] else np.zeros(3), float(touch.penetration)


def _contacts(mech: Mechanism, given: object) -> dict[str, tuple[str, CompliantSurface]]:
    """(node, surface) by name."""
    pairs = dict[str, Any]()
    if isinstance(given, Mapping):
        pairs = dict(cast("Mapping[str, Any]", given))
    else:
        for pair in _listed(given):
            name = str(pair[0]) if _is_pair(pair) else ""
            if name in pairs:
                raise ModelError(
                    f"two contacts are of the node {name!r}; give contacts as a dictionary, "
                    "{name: (node, surface)}, with names of your own."
                )
            pairs[name] = pair
    for name, pair in pairs.items():
        if not _is_pair(pair):
            raise _no_contacts(pair, name)
        check_node(mech, pair[0])
    return {str(name): (str(node), surface) for name, (node, surface) in pairs.items()}


def _listed(given: object) -> list[Any]:
    """One pair or several as a list."""
    if _is_pair(given):
        return [given]
    if isinstance(given, Sequence) and not isinstance(given, str):
        return list(cast("Sequence[Any]", given))
    raise _no_contacts(given)


def _is_pair(given: object) -> bool:
    if not isinstance(given, tuple | list):
        return False
    parts = cast("Sequence[object]", given)
    return len(parts) == 2 and isinstance(parts[1], CompliantSurface)


def _no_contacts(given: object, name: str = "") -> ModelError:
    which = f"contact {name!r}" if name else "contacts"
    return ModelError(
        f"{which} is {given!r}; contacts are pairs (node, surface), or such by name: "
        'contacts={"foot": ("toe", lw.CompliantSurface((0, 0, 0), (0, 0, 1), stiffness=1e4))}.'
    )
