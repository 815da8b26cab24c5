"""All forces on a mechanism in a simulation besides gravity, and the power of each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import check_arguments
from linkwise.dynamics.kinematics import forward_kinematics, jacobian, node_velocity
from linkwise.dynamics.loop_drive import has_loop_drives, loop_drive_forces
from linkwise.dynamics.passive import passive as dampers_and_springs
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError, ShapeError, SimulationError
from linkwise.model.hinges import Free
from linkwise.model.mechanism import Mechanism
from linkwise.simulation.contact import Contacts
from linkwise.simulation.controller import Commands
from linkwise.simulation.limits import LimitSprings
from linkwise.spatial.array import Array, ArrayLike, floats, read_only

OutsideForces: TypeAlias = Mapping[str, ArrayLike]
"""(moment, force) (6,) by node, as `forward_dynamics` takes them."""

OutsideForce: TypeAlias = Callable[[float, Array, Array], OutsideForces | None]
"""Forces from outside from the time [s], q (nq,) and v (nv,)."""

WORKERS = ("joints", "passive", "forces", "contacts", "limits")
"""Who does work, in the order of the powers."""


class AppliedForces:
    """Joint forces and forces at nodes at any instant.

    Attributes:
        power: Power of each of `WORKERS` [W] at the last evaluated instant.
        contacts: Points on surfaces.
        springs: Springs at the ends of joint ranges, or None.
        steady: Whether joint forces are held and no Python has to run within a step, so that a
            kernel can make the steps.
        pushed: Whether an external force has acted so far: from a surface, from the user at a
            node, or as a joint force between the ground and a free body.
        at_nodes: Whether forces may act at nodes.
        driven: Whether forces may do unbounded work: those of the user, and springs inside loops.
    """

    def __init__(
        self,
        mech: Mechanism,
        tau: Commands,
        controller: Commands | None,
        *,
        hold: bool,
        forces: OutsideForces | OutsideForce | None,
        forces_frame: Frame,
        contacts: Contacts,
        springs: LimitSprings | None,
        passive: bool,
    ) -> None:
        check_frame(forces_frame, "forces_frame")
        self.mech, self.tau, self.controller, self.hold = mech, tau, controller, hold
        self.frame: Frame = forces_frame
        self.contacts, self.springs, self.passive = contacts, springs, passive
        self.power, self.pushed = np.zeros(len(WORKERS)), False
        self._free = _free_roots(mech)
        self._given = _checked(mech, forces)
        self._drives = dampers_and_springs(mech)
        self._resists = passive and self._drives.any
        self._in_loops = passive and has_loop_drives(mech)
        self.at_nodes = forces is not None or bool(contacts.names) or self._in_loops
        held = controller is None or hold or controller.constant is not None
        self.steady = tau.constant is not None and held and springs is None and not self.at_nodes
        quiet = tau.constant is not None and not tau.constant.any()
        self.driven = not quiet or controller is not None or forces is not None or self._in_loops

    def command(self, tick: int, t: float, q: Array, v: Array) -> Array:
        """Joint forces of the controller (nv,) at the tick of that number, to be held."""
        if self.controller is None:
            return np.zeros(self.mech.nv)
        return self.controller.at_tick(tick, t, q, v)

    def commanded(self, t: float, q: Array, v: Array, held: Array | None) -> Array:
        """Joint forces of the user (nv,): of `tau` and of the controller, now or held."""
        tau = self.tau(t, q, v)
        if self.controller is not None:
            tau = tau + (self.controller(t, q, v) if held is None else held)
        if not self.pushed and len(self._free):
            self.pushed = bool(tau[self._free].any())
        return tau

    @property
    def foreseen(self) -> bool:
        """Whether joint forces of the user do not depend on the state: see `known`."""
        seen = self.controller is not None and self.controller.sees_state
        return self.tau.constant is not None and not seen

    def known(self, ticks: NDArray[np.intp]) -> Array:
        """Joint forces of the user (k, nv) at ticks of these numbers."""
        assert self.tau.constant is not None
        forces = np.tile(self.tau.constant, (len(ticks), 1))
        if self.controller is not None:
            forces += self.controller.at_ticks(ticks)
        return self.noted(forces)

    def noted(self, tau: Array) -> Array:
        """Joint forces (k, nv) that act, as they are; what they push is noted."""
        self.pushed = self.pushed or bool(tau[:, self._free].any())
        return tau

    def resisting(self, q: Array, v: Array) -> Array:
        """Joint forces of dampers and springs of the drives (nv,): −d v − k (q − rest)."""
        if not self._resists:
            return np.zeros(self.mech.nv)
        return self._drives.force(q, v)

    def joints(self, t: float, q: Array, v: Array, held: Array | None) -> Array:
        """All joint forces (nv,); the powers of each kind are noted."""
        total = command = self.commanded(t, q, v, held)
        self.power[0], self.power[1:] = command @ v, 0.0
        if self._resists:
            resisting = self.resisting(q, v)
            self.power[1], total = resisting @ v, total + resisting
        if self.springs is not None:
            pushed = self.springs.force(q, v)
            self.power[4], total = pushed @ v, total + pushed
        return total

    def outside(self, t: float, q: Array, v: Array) -> OutsideForces | None:
        """Forces at nodes, in the axes of `frame`; their powers are noted, too."""
        if not self.at_nodes:
            return None
        forces = self.given(t, q, v)
        self.pushed = self.pushed or any(f.any() for f in forces.values())
        self.power[2] = self._power(q, v, forces)
        if self._in_loops:
            inside = self._turned(q, loop_drive_forces(self.mech, q, v))
            self.power[1] += self._power(q, v, inside)
            forces = _sum(forces, inside)
        if self.contacts.on.any():
            pushed, power = self.contacts.forces(q, v, self.frame)
            self.power[3], forces = power, _sum(forces, pushed)
            self.pushed = self.pushed or any(f.any() for f in pushed.values())
        return forces or None

    def given(self, t: float, q: Array, v: Array) -> dict[str, Array]:
        """Forces of the user at nodes."""
        if self._given is None:
            return {}
        if not callable(self._given):
            return dict(self._given)
        forces: object = self._given(t, read_only(q), read_only(v))
        return _by_node(self.mech, forces, f"forces at t = {t:.9g} s", SimulationError)

    def generalised(self, t: float, q: Array, v: Array, held: Array | None) -> Array:
        """All forces besides gravity as joint forces (nv,): τ + Σ J* f."""
        total = self.joints(t, q, v, held)
        for node, wrench in (self.outside(t, q, v) or {}).items():
            total = total + floats(wrench, node) @ jacobian(self.mech, q, node, frame=self.frame)
        return total

    def stored(self, q: Array) -> Any:
        """Energy in springs of drives, at limits and in surfaces [J]; of q (k, nq) in drives."""
        total: Any = 0.0
        if self._resists:
            total = self._drives.energy(q)
        if self.springs is not None:
            total += self.springs.stored(q)
        return total + self.contacts.stored(q)

    def _turned(self, q: Array, inside: Mapping[str, Array]) -> dict[str, Array]:
        """Forces in node axes, in those of `frame`."""
        if self.frame == "node":
            return dict(inside)
        turned = dict[str, Array]()
        for node, wrench in inside.items():
            rot = forward_kinematics(self.mech, q, node).rot
            turned[node] = np.concatenate([rot @ wrench[:3], rot @ wrench[3:]])
        return turned

    def _power(self, q: Array, v: Array, forces: Mapping[str, Array]) -> float:
        both = forces.items()
        return sum(float(f @ node_velocity(self.mech, q, v, n, frame=self.frame)) for n, f in both)


def _sum(a: dict[str, Array], b: Mapping[str, Array]) -> dict[str, Array]:
    """Forces together, node by node."""
    for node, wrench in b.items():
        a[node] = a[node] + wrench if node in a else wrench
    return a


def _free_roots(mech: Mechanism) -> NDArray[np.intp]:
    """Entries of v of the bodies that are free of the ground."""
    entries = list[int]()
    for k, body in enumerate(mech.bodies):
        if mech.parent[k] < 0 and isinstance(body.hinge, Free):
            entries += range(int(mech.v_start[k]), int(mech.v_start[k + 1]))
    return np.array(entries, dtype=np.intp)


def _checked(
    mech: Mechanism, forces: OutsideForces | OutsideForce | None
) -> dict[str, Array] | OutsideForce | None:
    if callable(forces):
        check_arguments(forces, "forces", "t, q, v")
        return forces
    return None if forces is None else _by_node(mech, forces, "forces", ModelError)


def _by_node(
    mech: Mechanism, given: object, what: str, bad: type[ModelError] | type[SimulationError]
) -> dict[str, Array]:
    """(moment, force) (6,) by node, checked."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ModelError(
            f"{what} is {given!r}; forces from outside are a dictionary of (moment, force) by "
            "node, or a function of (t, q, v) that gives one."
        )
    forces = dict[str, Array]()
    for node, value in cast("Mapping[str, object]", given).items():
        mech.node(node)
        wrench = floats(value, f"{what}, {node!r}")
        if wrench.shape != (6,):
            raise ShapeError(
                f"{what}, {node!r} has the shape {wrench.shape}; it is (6,), (moment, force)."
            )
        if not np.isfinite(wrench).all():
            raise bad(f"{what} gave {wrench.tolist()} on {node!r}; forces must be finite numbers.")
        forces[node] = np.array(wrench)  # the user may write into it again
    return forces
