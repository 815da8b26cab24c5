"""Points of a mechanism that touch compliant surfaces while it moves.

A contact is on or off. It goes on at the instant at which its surface begins to push, and off when
that ends, both found to 1e-9 s; a step of time ends there. So no step has the jump within it with
which the force of a damped surface begins, and integrators keep their order through impacts.

With the penetration δ, the stiffness k and the damping d the surface presses while

    p = δ + (d/k) δ̇ ≥ 0   and   δ ≥ 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from linkwise.dynamics.kinematics import forward_kinematics, jacobian, node_velocity
from linkwise.dynamics.mass_matrix import mass_matrix_inverse
from linkwise.dynamics.quantity import Frame
from linkwise.errors import ModelError
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.channel import Event
from linkwise.simulation.collision import Collisions
from linkwise.simulation.implicit.ground import ContactPoint, Ground
from linkwise.simulation.margin import MarginGroup, State
from linkwise.spatial.array import Array
from linkwise.tasks.force.surface import CompliantSurface, check_node


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """All contacts at one state.

    Attributes:
        rot_WB: Axes of the nodes (n, 3, 3).
        velocity: Of the nodes, in world axes (n, 3) [m/s].
        depth: Penetrations δ (n,) [m], negative away from the surfaces.
        rate: δ̇ (n,) [m/s].
        force: On the nodes, in world axes (n, 3) [N], whether a contact is on or not.
        pressing: p (n,) [m].
    """

    rot_WB: Array
    velocity: Array
    depth: Array
    rate: Array
    force: Array
    pressing: Array


class Contacts(MarginGroup):
    """Nodes of a mechanism and the surfaces they may touch.

    Attributes:
        nodes: Name of the node of each contact.
        surfaces: Its surface.
        on: Whether it presses now (n,).
    """

    kind = "contact"
    cuts = True

    def __init__(self, mech: Mechanism, given: object) -> None:
        pairs = _contacts(mech, given)
        self.mech, self.names = mech, tuple(pairs)
        self.nodes = tuple(node for node, _ in pairs.values())
        self.surfaces = tuple(surface for _, surface in pairs.values())
        self.on = np.zeros(len(pairs), dtype=np.bool_)
        self._ratio = np.array([x.damping / x.stiffness for x in self.surfaces])
        groups = dict[int, list[int]]()
        for i, surface in enumerate(self.surfaces):
            groups.setdefault(id(surface), []).append(i)
        self._groups = [(self.surfaces[which[0]], which) for which in groups.values()]
        self._last: tuple[Array, Array, Touches] | None = None

    def begin(self, q: Array, v: Array) -> None:
        """Set which contacts press at a state."""
        if self.names:
            self.on = self.touches(q, v).pressing >= 0.0

    def touches(self, q: Array, v: Array) -> Touches:
        """All contacts at a state; those of the last one are kept."""
        last = self._last
        if last is not None and last[0] is q and last[1] is v:
            return last[2]
        poses = forward_kinematics(self.mech, q, self.nodes)
        both = node_velocity(self.mech, q, v, self.nodes, frame="world")
        velocity = both.reshape(-1, 6)[:, 3:]
        depth, rate = np.empty((2, len(self.names)))
        force = np.empty((len(self.names), 3))
        for surface, which in self._groups:
            touch = surface.touch_at(poses.p[which], velocity[which])
            depth[which], rate[which], force[which] = touch.penetration, touch.rate, touch.force
        pressing = np.where(depth >= 0.0, depth + self._ratio * rate, depth)
        touches = Touches(poses.rot, velocity, depth, rate, force, pressing)
        self._last = q, v, touches
        return touches

    def margins(self, state: State) -> Array:
        """p while it presses, -p while it does not: what has to stay positive."""
        return np.where(self.on, 1.0, -1.0) * self.touches(state[1], state[2]).pressing

    def happened(self, i: int, state: State, margin: float) -> Event:
        """The contact goes on, or off."""
        touches = self.touches(state[1], state[2])
        self.on[i] = not self.on[i]
        speed = float(np.linalg.norm(touches.velocity[i]))
        words = "touches" if self.on[i] else "leaves"
        text = f"{words} the {self.surfaces[i].shape} at {speed:.3g} m/s"
        return Event(state[0], "contact", self.names[i], text, float(-touches.rate[i]))

    def forces(self, q: Array, v: Array, frame: Frame) -> tuple[dict[str, Array], float]:
        """(moment, force) (6,) by node of the contacts that are on, and their power [W]."""
        touch, wrenches, power = self.touches(q, v), dict[str, Array](), 0.0
        for i in np.flatnonzero(self.on).tolist():
            force = touch.force[i]
            power += float(force @ touch.velocity[i])
            force = force if frame == "world" else force @ touch.rot_WB[i]
            node, wrench = self.nodes[i], np.concatenate([np.zeros(3), force])
            wrenches[node] = wrenches[node] + wrench if node in wrenches else wrench
        return wrenches, power

    def too_stiff(self, q: Array, step: float, most: float) -> str | None:
        """A warning about friction that is too stiff for a step, or None.

        While a node sticks, friction is a damper μ f/v_s, and a step h can do it as long as

            μ f h/(m v_s) ≤ most

        with the smallest mass m that the node has in any direction. The force f is not known before
        the run: on a robot on a free base an equal part of its weight is taken, else m g.
        """
        rough = [i for i, x in enumerate(self.surfaces) if x.friction > 0.0]
        g = float(np.linalg.norm(self.mech.gravity))
        if not rough or g == 0.0 or not self.mech.nv:
            return None
        free = any(
            isinstance(x.hinge, Free) and self.mech.parent[k] < 0
            for k, x in enumerate(self.mech.bodies)
        )
        worst, which, speed = 0.0, rough[0], 0.0
        for i in rough:
            surface, pull = self.surfaces[i], g
            if free:
                pull *= self.mech.total_mass / len(rough) * self._mobility(q, self.nodes[i])
            ratio = surface.friction * pull * step / surface.slip_speed
            if ratio > worst:
                worst, which, speed = ratio, i, surface.slip_speed * ratio
        if worst <= most:
            return None
        return (
            f"friction of contact {self.names[which]!r} is too stiff for a step of {step:.3g} s: "
            f"while it sticks, μ f step/(m slip_speed) is about {worst:.3g}, and above {most:.3g} "
            "the node shakes instead, or the step has no solution. Give the surface "
            f"slip_speed={1.25 * speed:.2g} or more, try step={0.8 * step / worst:.2g}, or use "
            "integrator='adaptive'."
        )

    def _mobility(self, q: Array, node: str) -> float:
        """Largest acceleration of a node for a unit force [1/kg]."""
        jac = jacobian(self.mech, q, node, frame="world")[3:]
        return float(np.linalg.eigvalsh(jac @ mass_matrix_inverse(self.mech, q) @ jac.T)[-1])

    def stored(self, q: Array) -> float:
        """½ k δ² of all [J]."""
        both = zip(self.nodes, self.surfaces, strict=True)
        return sum(float(surface.energy(self.mech, q, node)) for node, surface in both)

    def recorded(self, q: Array, v: Array) -> Array:
        """Force on each node, in world axes [N], and the penetration [m]: (n, 4)."""
        touch = self.touches(q, v)
        return np.column_stack([np.where(self.on[:, None], touch.force, 0.0), touch.depth])


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
    if isinstance(given, Ground | ContactPoint | Collisions):
        return ModelError(
            f"contacts is a {type(given).__name__}, which acts by impulses: in steps by "
            "integrator='implicit'. Other integrators take pairs of a node and a "
            "lw.tasks.CompliantSurface."
        )
    which = f"contact {name!r}" if name else "contacts"
    return ModelError(
        f"{which} is {given!r}; contacts are pairs (node, surface), or such by name: "
        'contacts={"foot": ("toe", lw.tasks.CompliantSurface((0, 0, 0), (0, 0, 1), '
        "stiffness=1e4))}."
    )
