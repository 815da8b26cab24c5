"""A mechanism in independent velocities: bodies that move together are aggregate bodies of a tree.

An aggregate is a set of bodies whose parents are in it, except for one body outside that carries
all of it. Inside it, couplings and loops leave a few velocities u of its hinges independent; all
others follow,

    v = 𝒳(q) u,    v̇ = 𝒳(q) u̇ + 𝔵(q, u)

The aggregates form a tree again, which the algebra treats like any other: its blocks have six
numbers for each body of an aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.model.body import Coupling, Loop, Node
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import without_caches
from linkwise.model.state import checked
from linkwise.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Bodies that loops and couplings tie together, as one body of a tree.

    Attributes:
        name: Names of the bodies.
        bodies: Their numbers in the mechanism, base first.
        parent: The body outside that carries it; -1 for the ground.
        inner: For each body the place of its parent in `bodies`; -1 for `parent`.
        velocities: Entries of v of its hinges.
        coupled: Places in `velocities` of those that follow by a coupling, in the order of
            `couplings`.
        independent: Places of those that are independent: u.
        dependent: Places of those that follow by the loops.
        couplings: Its couplings, each after those whose coordinates it needs.
        loops: Its loops.
    """

    name: str
    bodies: tuple[int, ...]
    parent: int
    inner: tuple[int, ...]
    velocities: tuple[int, ...]
    coupled: tuple[int, ...]
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Embedded:
    """A mechanism whose loops and couplings are built in: made by `lw.loops.embed`.

    Positions q are those of the mechanism, all of them (nq,), and have to satisfy loops and
    couplings. Velocities, accelerations and forces are those of the independent hinges alone,
    (nv,), in the order of `independent`. Everyday functions (`lw.forward_dynamics`,
    `lw.mass_matrix` ...) and `lw.compile` take it like a mechanism.

    Attributes:
        mech: The mechanism.
        bodies: The aggregate bodies, base first; a body that nothing ties to others is an aggregate
            by itself.
    """

    mech: Mechanism
    bodies: tuple[Aggregate, ...]

    def __getstate__(self) -> dict[str, Any]:
        return without_caches(self)

    def __getattr__(self, name: str) -> Any:
        """Explain what a mechanism has and this has not."""
        if not name.startswith("_") and hasattr(Mechanism, name):
            raise ModelError(
                f"{self.name!r} with its loops and couplings built in has no {name}; use that of "
                "the mechanism, which is its attribute mech."
            )
        raise AttributeError(f"an Embedded has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"Embedded({self.mech.name!r}: {self.mech.n_bodies} bodies as {self.n_bodies}, "
            f"{self.nv} independent of {self.mech.nv} velocities)"
        )

    # ------------------------------------------------------------------------------ structure

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mech.name

    @property
    def n_bodies(self) -> int:
        """Number of aggregate bodies."""
        return len(self.bodies)

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """The aggregate that each body of the mechanism belongs to."""
        groups = [0] * self.mech.n_bodies
        for g, group in enumerate(self.bodies):
            for k in group.bodies:
                groups[k] = g
        return tuple(groups)

    @cached_property
    def slot(self) -> tuple[int, ...]:
        """The position of each body of the mechanism in its aggregate."""
        slots = [0] * self.mech.n_bodies
        for group in self.bodies:
            for i, k in enumerate(group.bodies):
                slots[k] = i
        return tuple(slots)

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """The aggregate that carries each one (n,); -1 for the ground."""
        parents = [x.parent for x in self.bodies]
        index = np.array([self.group_of[p] if p >= 0 else -1 for p in parents], dtype=np.int64)
        index.setflags(write=False)
        return index

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Aggregates carried by each one; the last entry is for the ground."""
        lists = [list[int]() for _ in range(self.n_bodies + 1)]
        for g in range(self.n_bodies):
            lists[int(self.parent[g])].append(g)
        return tuple(tuple(children) for children in lists)

    @cached_property
    def body_index(self) -> Mapping[str, int]:
        """The aggregate that each body is in, by the body's name; the ground is -1."""
        index = self.mech.body_index
        return MappingProxyType({n: k if k < 0 else self.group_of[k] for n, k in index.items()})

    def node(self, name: str) -> Node:
        """The node of that name; a body's name gives its body frame as a node."""
        return self.mech.node(name)

    # ---------------------------------------------------------------------------- coordinates

    @property
    def nq(self) -> int:
        """Number of coordinates: all of the mechanism's."""
        return self.mech.nq

    @cached_property
    def v_start(self) -> NDArray[np.int64]:
        """Where the independent velocities of each aggregate begin (n + 1,)."""
        sizes = [len(group.independent) for group in self.bodies]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def nv(self) -> int:
        """Number of independent velocities: the degrees of freedom."""
        return int(self.v_start[-1])

    @cached_property
    def independent(self) -> NDArray[np.int64]:
        """Entries of v that are independent (nv,): u = v[independent]."""
        entries = [x.velocities[i] for x in self.bodies for i in x.independent]
        return np.array(entries, dtype=np.int64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Entries of v in the order in which the aggregates have them (mech.nv,)."""
        return np.array([i for x in self.bodies for i in x.velocities], dtype=np.int64)

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """A name for each independent velocity."""
        names = self.mech.velocity_names
        return tuple(names[x.velocities[i]] for x in self.bodies for i in x.independent)

    def check_q(self, q: ArrayLike) -> Array:
        """q as float64 (..., nq); raises for wrong shapes, NaN and quaternions off the sphere."""
        return self.mech.check_q(q)

    def check_v(self, v: ArrayLike, what: str = "u") -> Array:
        """Independent velocities, or another vector over them, as float64 (..., nv), finite."""
        owner = f"{self.name!r} with its loops and couplings built in"
        return checked(owner, v, what, self.velocity_names)

    # ------------------------------------------------------------------------------- numbers

    @property
    def gravity(self) -> Array:
        """Acceleration of free fall (3,) [m/s²]."""
        return self.mech.gravity

    @property
    def armature(self) -> Array:
        """Reflected inertia of each hinge of the mechanism (mech.nv,)."""
        return self.mech.armature

    @property
    def total_mass(self) -> float:
        """Mass of everything that is not fixed to the ground [kg]."""
        return self.mech.total_mass


def undetermined(tree: Embedded, g: int) -> str:
    """The message for loops of an aggregate that do not determine its dependent velocities."""
    group, names = tree.bodies[g], tree.mech.velocity_names
    bound = ", ".join(names[group.velocities[i]] for i in group.dependent[:6])
    free = ", ".join(names[group.velocities[i]] for i in group.independent[:6]) or "none"
    loops = ", ".join(repr(loop.name) for loop in group.loops[:4])
    return (
        f"the independent velocities ({free}) do not determine the others ({bound}) through loops "
        f"{loops}, or barely do: the choice is singular in this state. Embed with others: "
        "lw.loops.embed(mech, independent=...)"
    )
