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
from linkwise.errors import ModelError, UnknownNameError, unknown_name
from linkwise.model import derived, placement, state, validate
from linkwise.model.body import WORLD, Body, Coupling, Loop, Node
from linkwise.model.drive import Drive, PerFreedom
from linkwise.model.memo import without_caches
from linkwise.model.report import LoadReport
from linkwise.spatial.array import Array, ArrayLike, constant, frozen
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike

GRAVITY = (0.0, 0.0, -9.81)
"""Default gravity [m/s²] in the world frame."""


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """Bodies stored base first: parents stand before their children, the ground is index -1.

    Made by `Builder`, by `lw.load` or by deriving from another one; never changed afterwards.

    Attributes:
        name: The mechanism's name.
        bodies: The bodies with their hinges.
        nodes: Frames of interest, welded links and payloads.
        loops: Closures that cut the graph down to the tree.
        couplings: Coordinates that follow others.
        gravity: Acceleration of free fall in the world frame (3,) [m/s²].
        load_report: What the file had that is not here.
    """

    name: str
    bodies: tuple[Body, ...]
    nodes: tuple[Node, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    gravity: Array = field(default_factory=lambda: frozen(np.array(GRAVITY)))
    load_report: LoadReport = field(default_factory=LoadReport)

    def __post_init__(self) -> None:
        for name in ("bodies", "nodes", "loops", "couplings"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "gravity", constant(self.gravity, (3,), "gravity"))
        if self.couplings:
            sizes = {body.hinge_name: body.hinge.nq for body in self.bodies}
            couplings = tuple(state.plain_names(c, sizes) for c in self.couplings)
            object.__setattr__(self, "couplings", couplings)
        problems = validate.structure(self.bodies, self.nodes, self.loops, self.couplings)
        if problems:
            raise ModelError(validate.as_text(f"mechanism {self.name!r} cannot exist", problems))
        self._freeze()

    def _freeze(self) -> None:
        """Poses and inertias that were computed come with arrays that could still be written."""
        carried = [body.inertia for body in self.bodies]
        carried += [node.inertia for node in self.nodes if node.inertia is not None]
        poses = [pose for body in self.bodies for pose in (body.inboard, body.outboard)]
        poses += [node.pose for node in self.nodes]
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
        """Where in q the coordinates of a hinge stand, by its name or its body's."""
        k = self._index(name)
        return slice(int(self.q_start[k]), int(self.q_start[k + 1]))

    def v_slice(self, name: str) -> slice:
        """Where in v the velocities of a hinge stand, by its name or its body's."""
        k = self._index(name)
        return slice(int(self.v_start[k]), int(self.v_start[k + 1]))

    def coordinate(self, name: str) -> int:
        """Index in q of one coordinate: "hinge" where it has one, else "hinge[i]"."""
        return state.coordinate(self, name)

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

    def neutral(self) -> Array:
        """Coordinates (nq,) with every hinge at neutral: zeros, identity quaternions."""
        return state.neutral(self)

    def random(self, seed: int | np.random.Generator | None = None) -> Array:
        """Coordinates (nq,) drawn within limits; couplings hold, loops in general do not.

        The argument is a seed, not a number of draws. For a batch share one generator:

            rng = np.random.default_rng(0)
            q = np.stack([mech.random(rng) for _ in range(10)])  # (10, nq)
        """
        return state.random(self, generator(seed))

    def random_velocity(self, seed: int | np.random.Generator | None = None) -> Array:
        """Velocities (nv,), standard normal; a batch is drawn as with `random`."""
        return generator(seed).standard_normal(self.nv)

    def integrate(self, q: Array, v: Array, dt: float = 1.0) -> Array:
        """Coordinates (..., nq) after the velocities v (..., nv) were held for `dt` [s]."""
        return state.integrate(self, q, v, dt)

    def difference(self, q0: Array, q1: Array) -> Array:
        """Velocities (..., nv) that lead from q0 to q1 in one second."""
        return state.difference(self, q0, q1)

    def qdot(self, q: Array, v: Array) -> Array:
        """Time derivative of the coordinates (..., nq)."""
        return state.qdot(self, q, v)

    def normalise(self, q: Array) -> Array:
        """The same configuration with quaternions of unit length."""
        return state.normalise(self, q)

    def couple(self, q: Array) -> Array:
        """The same configuration with dependent coordinates set by the couplings."""
        return state.couple(self, q)

    def check_q(self, q: ArrayLike) -> Array:
        """q as float64 (..., nq); raises for wrong shapes, NaN and quaternions off the sphere."""
        return state.check_q(self, q)

    def check_v(self, v: ArrayLike, what: str = "v") -> Array:
        """v (or another vector over the freedoms) as float64 (..., nv), finite."""
        return state.check_v(self, v, what)

    # ------------------------------------------------------------------------ drive properties

    def _stacked(self, name: str) -> Array:
        parts = [b.drive.array(name, b.hinge) for b in self.bodies]
        return frozen(np.concatenate([np.zeros(0), *parts]))

    @cached_property
    def armature(self) -> Array:
        """Reflected inertia of each freedom (nv,): armature + gear_ratio² rotor_inertia."""
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
        """Inertia of each body with all it carries, about its body frame, stacked (n, ...)."""
        return placement.total_inertias(self)

    def inertia(self, name: str) -> SpatialInertia:
        """Inertia of one body with all it carries, about its body frame."""
        return self.inertias[self.body_index[self.body(name).name]]

    @property
    def total_mass(self) -> float:
        """Mass of everything that is not fixed to the ground [kg]."""
        return float(self.inertias.mass.sum())

    def poses(self, q: Array) -> Pose:
        """World poses of all bodies, stacked (..., n): the plain recursion from base to tips."""
        return placement.body_poses(self, q)

    def pose(self, q: Array, name: str) -> Pose:
        """World pose of one body or node."""
        return placement.pose(self, q, name)

    def center_of_mass(self, q: Array) -> Array:
        """Centre of mass in the world (..., 3) [m]."""
        return placement.center_of_mass(self, q)

    def validate(self) -> tuple[validate.Finding, ...]:
        """What is impossible or doubtful about this mechanism; empty when nothing is."""
        return validate.findings(self)

    # ---------------------------------------------------------------------- derived mechanisms

    def lock(self, hinges: Mapping[str, ArrayLike] | Iterable[str]) -> Mechanism:
        """Hold hinges still, at given coordinates or at neutral; `release` undoes it."""
        return derived.lock(self, hinges)

    def release(self, hinges: Iterable[str] | None = None) -> Mechanism:
        """Let locked hinges move again: those named, or all that remember what they were."""
        return derived.release(self, hinges)

    def with_payload(
        self,
        at: str,
        inertia: SpatialInertia,
        *,
        name: str = "payload",
        pose: PoseLike | None = None,
    ) -> Mechanism:
        """Fix an inertia to a node or body; `pose` places it there."""
        return derived.with_payload(self, at, inertia, name, pose)

    def with_node(self, name: str, body: str, pose: PoseLike = (0.0, 0.0, 0.0)) -> Mechanism:
        """Add a frame of interest on a body (or node)."""
        return derived.with_node(self, name, body, pose)

    def with_drive(
        self, hinges: Iterable[str], drive: Drive | None = None, **changes: PerFreedom
    ) -> Mechanism:
        """Another drive at one hinge or at several, by their names or their bodies'.

        Args:
            hinges: One name or several.
            drive: The new drive; by default each keeps its own.
            changes: Fields of `Drive` to change in it: `damping=0.1`, `lower=-1.0` ...
        """
        return derived.with_drive(self, hinges, drive, changes)

    def without_armature(self) -> Mechanism:
        """The same mechanism with no inertia of rotors: armature and rotor_inertia are zero."""
        return derived.without_armature(self)

    def without(self, *names: str) -> Mechanism:
        """Take away nodes (payloads), loops and couplings by name."""
        return derived.without(self, names)

    def with_gravity(self, gravity: ArrayLike) -> Mechanism:
        """The same mechanism in another gravity field [m/s²]."""
        return derived.replaced(self, gravity=constant(gravity, (3,), "gravity"))

    def mount(self, other: Mechanism, *, at: str, prefix: str = "") -> Mechanism:
        """Put another mechanism on a node or body of this one: a hand on an arm, arms in a cell.

        Its names get the prefix; gravity is that of this one; the load reports are joined.

        Args:
            other: The mechanism that is put there; it stays as it is.
            at: Node or body of this one where the other's world is then; "world" for beside it.
                A place of its own is a node: `builder.node("place", "world", pose)`.
            prefix: Put in front of all names of the other: bodies, hinges, nodes, loops.

        Raises:
            ModelError: `other` is no mechanism, or both have the same name for something.
            UnknownNameError: This one has no such node.
        """
        if not isinstance(other, Mechanism):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"mount puts a mechanism on {self.name!r}, and was given a {type(other).__name__}; "
                "give one that a Builder built or lw.load read, and the place as at=..."
            )
        return derived.mount(self, other, at, prefix)

    def extract(self, base: str, tip: str | None = None) -> Mechanism:
        """The sub-arm from body `base` out: to body or node `tip` only, or the whole subtree."""
        return derived.extract(self, base, tip)

    def renumber(self, order: Sequence[str]) -> Mechanism:
        """The same physics with bodies in another order (parents still come first)."""
        return derived.renumber(self, order)

    def merge_locked(self) -> Mechanism:
        """Melt locked bodies into their parents, where they become nodes that carry inertia."""
        return derived.merge_locked(self)

    def __repr__(self) -> str:
        extra = [f"{len(self.loops)} loops"] if self.loops else []
        extra += [f"{len(self.couplings)} couplings"] if self.couplings else []
        parts = [f"{self.n_bodies} bodies", f"{self.nv} degrees of freedom", *extra]
        return f"<Mechanism {self.name!r}: {', '.join(parts)}>"


def _starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    starts.setflags(write=False)
    return starts
