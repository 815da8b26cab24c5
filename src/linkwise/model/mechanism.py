"""The mechanism: an immutable tree of bodies with nodes, loops and couplings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import generator
from linkwise.brief import counted, extent
from linkwise.errors import ModelError, UnknownNameError, unknown_name
from linkwise.model import derived, state, validate
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD, Body, Coupling, Loop, Node
from linkwise.model.contact import ContactRules
from linkwise.model.memo import without_caches
from linkwise.model.report import LoadReport
from linkwise.spatial.array import Array, ArrayLike, constant, frozen
from linkwise.spatial.inertia import SpatialInertia, trusted_inertia

GRAVITY = (0.0, 0.0, -9.81)
"""Default gravity [m/s²] in the world frame."""


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """Bodies stored base first: parents come before their children, the ground is index -1.

    Made by `Builder`, by `lw.load` or by deriving from another one; never changed afterwards.

    Attributes:
        name: The mechanism's name.
        bodies: The bodies with their hinges.
        nodes: Frames of interest, welded links and payloads.
        loops: Closures that cut the graph down to the tree.
        couplings: Coordinates that follow others.
        gravity: Acceleration of free fall in the world frame (3,) [m/s²].
        load_report: What the file has that the mechanism does not use.
        actuators: Motors and servos, which follow commands in rollouts.
        contact_rules: Which of its shapes may touch, besides what their surfaces say.
        gravity_compensation: (name, share) of bodies and nodes: the share of their weight that is
            carried from outside, in implicit steps.
    """

    name: str
    bodies: tuple[Body, ...]
    nodes: tuple[Node, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    gravity: Array = field(default_factory=lambda: frozen(np.array(GRAVITY)))
    load_report: LoadReport = field(default_factory=LoadReport)
    actuators: tuple[Actuator, ...] = ()
    contact_rules: ContactRules = field(default_factory=ContactRules)
    gravity_compensation: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("bodies", "nodes", "loops", "couplings", "actuators"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "gravity", constant(self.gravity, (3,), "gravity"))
        if self.couplings:
            sizes = {body.hinge_name: body.hinge.nq for body in self.bodies}
            couplings = tuple(state.plain_names(c, sizes) for c in self.couplings)
            object.__setattr__(self, "couplings", couplings)
        parts = self.bodies, self.nodes, self.loops, self.couplings, self.actuators
        problems = validate.structure(*parts)
        if problems:
            raise ModelError(validate.as_text(f"mechanism {self.name!r} cannot exist", problems))
        for name, _ in self.gravity_compensation:
            self.node(name)  # raises for an unknown name
        self._freeze()

    def _freeze(self) -> None:
        """Make the arrays of poses and inertias read-only; computed ones are still writable."""
        carried = [body.inertia for body in self.bodies]
        carried += [node.inertia for node in self.nodes if node.inertia is not None]
        poses = [pose for body in self.bodies for pose in (body.inboard, body.outboard)]
        poses += [node.pose for node in self.nodes]
        carried += [lump.inertia for body in self.bodies for lump in body.lumps]
        arrays = [a for x in carried for a in (x.mass, x.h, x.J)]
        arrays += [a for x in poses for a in (x.rot, x.p)]
        for array in arrays:
            frozen(np.asarray(array))  # a mass may be a plain number

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        frozen(self.gravity)

    # ------------------------------------------------------------------------------ structure

    @property
    def n_bodies(self) -> int:
        """Number of bodies, the ground not counted."""
        return len(self.bodies)

    @cached_property
    def body_index(self) -> Mapping[str, int]:
        """Index of each body by its name; the ground is -1."""
        return MappingProxyType({WORLD: -1, **{b.name: k for k, b in enumerate(self.bodies)}})

    @cached_property
    def hinge_index(self) -> Mapping[str, int]:
        """Index of the body each hinge belongs to, by the hinge's name."""
        return MappingProxyType({body.hinge_name: k for k, body in enumerate(self.bodies)})

    @cached_property
    def node_index(self) -> Mapping[str, int]:
        """Index of each node by its name."""
        return MappingProxyType({node.name: i for i, node in enumerate(self.nodes)})

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Index of each body's parent (n,); -1 for the ground."""
        parent = np.array([self.body_index[b.parent] for b in self.bodies], dtype=np.int64)
        parent.setflags(write=False)
        return parent

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the children of each body; the last entry is for the ground (index -1)."""
        lists = [list[int]() for _ in range(self.n_bodies + 1)]
        for k in range(self.n_bodies):
            lists[int(self.parent[k])].append(k)
        return tuple(tuple(children) for children in lists)

    def body(self, name: str) -> Body:
        """The body of that name."""
        index = self.body_index.get(name)
        if index is None or index < 0:
            raise unknown_name("body", name, (b.name for b in self.bodies), owner=self._title)
        return self.bodies[index]

    def hinge(self, name: str) -> Body:
        """The body whose hinge has that name."""
        index = self.hinge_index.get(name)
        if index is None:
            raise self._no_hinge("hinge", name, self.hinge_index)
        return self.bodies[index]

    def node(self, name: str) -> Node:
        """The node of that name; a body's name gives its body frame as a node."""
        if name in self.node_index:
            return self.nodes[self.node_index[name]]
        if name in self.body_index:
            return Node(name, name)
        known = [*self.node_index, *self.body_index]
        raise unknown_name("node or body", name, known, owner=self._title)

    def loop(self, name: str) -> Loop:
        """The loop of that name."""
        for loop in self.loops:
            if loop.name == name:
                return loop
        raise unknown_name("loop", name, (x.name for x in self.loops), owner=self._title)

    @property
    def _title(self) -> str:
        return f"mechanism {self.name!r}"

    # ---------------------------------------------------------------------------- coordinates

    @cached_property
    def q_start(self) -> NDArray[np.int64]:
        """Where each body's coordinates begin in q (n + 1,); the last entry is nq."""
        return _starts([b.hinge.nq for b in self.bodies])

    @cached_property
    def v_start(self) -> NDArray[np.int64]:
        """Where each body's velocities begin in v (n + 1,); the last entry is nv."""
        return _starts([b.hinge.nv for b in self.bodies])

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.q_start[-1])

    @property
    def nv(self) -> int:
        """Number of velocities: the degrees of freedom of the tree."""
        return int(self.v_start[-1])

    def _index(self, name: str) -> int:
        index = self.hinge_index.get(name)
        if index is None:
            index = self.body_index.get(name, -1)
        if index < 0:
            known = [*self.hinge_index, *(b.name for b in self.bodies)]
            raise self._no_hinge("hinge or body", name, known)
        return index

    def _no_hinge(self, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        loops = [loop.name for loop in self.loops]
        return unknown_name(kind, name, known, owner=self._title, loops=loops)

    def q_slice(self, name: str) -> slice:
        """Where the coordinates of a hinge are in q, by its name or its body's."""
        k = self._index(name)
        return slice(int(self.q_start[k]), int(self.q_start[k + 1]))

    def v_slice(self, name: str) -> slice:
        """Where the velocities of a hinge are in v, by its name or its body's."""
        k = self._index(name)
        return slice(int(self.v_start[k]), int(self.v_start[k + 1]))

    @cached_property
    def couplings_in_order(self) -> tuple[Coupling, ...]:
        """The couplings, each after those whose coordinates it needs."""
        return state.in_order(self.couplings)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """A name for each entry of q: the hinge's, with the coordinate's where it has several."""
        return state.names(self, velocities=False)

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """A name for each entry of v."""
        return state.names(self, velocities=True)

    coordinate = state.coordinate
    neutral = state.neutral
    random = state.random
    integrate = state.integrate
    difference = state.difference
    qdot = state.qdot
    normalise = state.normalise
    couple = state.couple
    check_q = state.check_q
    check_v = state.check_v

    def random_velocity(self, seed: int | np.random.Generator | None = None) -> Array:
        """Velocities (nv,), standard normal; a batch is drawn as with `random`."""
        return generator(seed).standard_normal(self.nv)

    # ------------------------------------------------------------------------ drive properties

    def _stacked(self, name: str) -> Array:
        parts = [b.drive.array(name, b.hinge) for b in self.bodies]
        return frozen(np.concatenate([np.zeros(0), *parts]))

    @cached_property
    def armature(self) -> Array:
        """Reflected inertia of each velocity (nv,): armature + gear_ratio² rotor_inertia."""
        geared = self._stacked("gear_ratio") ** 2 * self._stacked("rotor_inertia")
        return frozen(self._stacked("armature") + geared)

    @cached_property
    def damping(self) -> Array:
        """Viscous friction (nv,)."""
        return self._stacked("damping")

    @cached_property
    def friction(self) -> Array:
        """Coulomb friction (nv,)."""
        return self._stacked("friction")

    @cached_property
    def stiffness(self) -> Array:
        """Spring stiffness (nv,)."""
        return self._stacked("stiffness")

    @cached_property
    def effort_limit(self) -> Array:
        """Largest joint force (nv,)."""
        return self._stacked("effort")

    @cached_property
    def velocity_limit(self) -> Array:
        """Largest speed (nv,)."""
        return self._stacked("velocity")

    @cached_property
    def lower(self) -> Array:
        """Lower limits (nq,)."""
        return self._stacked("lower")

    @cached_property
    def upper(self) -> Array:
        """Upper limits (nq,)."""
        return self._stacked("upper")

    # ------------------------------------------------------------------- inertia and placement

    @cached_property
    def inertias(self) -> SpatialInertia:
        """Inertia of each body with its nodes, about its body frame, stacked (n, ...)."""
        total = [body.inertia for body in self.bodies]
        for node in self.nodes:
            k = self.body_index[node.body]
            if node.inertia is not None and k >= 0:
                total[k] = total[k] + node.inertia.moved(node.pose)
        n = self.n_bodies
        return trusted_inertia(
            frozen(np.array([x.mass for x in total], dtype=np.float64).reshape(n)),
            frozen(np.array([x.h for x in total], dtype=np.float64).reshape(n, 3)),
            frozen(np.array([x.J for x in total], dtype=np.float64).reshape(n, 3, 3)),
        )

    def inertia(self, name: str) -> SpatialInertia:
        """Inertia of one body with its nodes, about its body frame."""
        return self.inertias[self.body_index[self.body(name).name]]

    @cached_property
    def flexible(self) -> tuple[int, ...]:
        """Indices of the bodies that have lumps: the ends of flexible bodies."""
        return tuple(k for k, body in enumerate(self.bodies) if body.lumps)

    @property
    def total_mass(self) -> float:
        """Mass of everything that is not fixed to the ground [kg]."""
        lumps = sum(float(x.inertia.mass) for k in self.flexible for x in self.bodies[k].lumps)
        return float(self.inertias.mass.sum()) + lumps

    poses = state.body_poses
    pose = state.pose
    center_of_mass = state.center_of_mass

    def validate(self) -> tuple[validate.Finding, ...]:
        """What is impossible or doubtful about this mechanism; empty when nothing is."""
        return validate.findings(self)

    # ---------------------------------------------------------------------- derived mechanisms

    lock = derived.lock
    release = derived.release
    with_payload = derived.with_payload
    with_node = derived.with_node
    with_drive = derived.with_drive
    without_armature = derived.without_armature
    without = derived.without
    mount = derived.mount
    extract = derived.extract
    renumber = derived.renumber
    merge_locked = derived.merge_locked

    def with_gravity(self, gravity: ArrayLike) -> Mechanism:
        """The same mechanism in another gravity field [m/s²]."""
        return derived.replaced(self, gravity=constant(gravity, (3,), "gravity"))

    def __repr__(self) -> str:
        parts = [extent(self.n_bodies, self.nv)]
        parts += [counted(len(self.loops), "loop")] if self.loops else []
        parts += [counted(len(self.couplings), "coupling")] if self.couplings else []
        return f"<Mechanism {self.name!r}: {', '.join(parts)}>"


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    starts.setflags(write=False)
    return starts
