"""Mechanisms made from mechanisms. Nothing is changed: each function gives a new one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.errors import ModelError, unknown_name
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD, Body, Coupling, Loop, Node
from linkwise.model.contact import joined
from linkwise.model.drive import Drive, PerFreedom
from linkwise.model.hinges import Locked
from linkwise.model.lumps import inertia_at, locked, released
from linkwise.model.report import LoadReport
from linkwise.model.spanning_tree import base_first
from linkwise.model.state import split_coordinate
from linkwise.spatial.array import ArrayLike, floats
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike

if TYPE_CHECKING:
    from linkwise.model.mechanism import Mechanism


def replaced(mech: Mechanism, **changes: Any) -> Mechanism:
    """A copy with some of its fields changed; it is checked like any other."""
    return dataclasses.replace(mech, **changes)


def lock(mech: Mechanism, hinges: Mapping[str, ArrayLike] | Iterable[str]) -> Mechanism:
    """Hold hinges still, by their names or their bodies', at given coordinates or at neutral.

    `release` undoes it.
    """
    at: dict[str, ArrayLike | None]
    if isinstance(hinges, Mapping):
        given = cast("Mapping[str, ArrayLike]", hinges)
        at = {n: np.atleast_1d(floats(q, f"q of hinge {n!r}")) for n, q in given.items()}
    else:
        at = dict.fromkeys([hinges] if isinstance(hinges, str) else hinges)
    bodies = list(mech.bodies)
    names = set[str]()
    for name, q in at.items():
        k = _hinge_of(mech, name)
        held = None if q is None else tuple(np.asarray(q, dtype=np.float64).tolist())
        bodies[k] = locked(bodies[k], held)
        names.add(bodies[k].hinge_name)
    return replaced(mech, bodies=tuple(bodies), couplings=_couplings_left(mech, names))


def _hinge_of(mech: Mechanism, name: str) -> int:
    k = mech.hinge_index.get(name, mech.body_index.get(name, -1))
    if k < 0:
        known = [*mech.hinge_index, *(b.name for b in mech.bodies)]
        raise unknown_name("hinge or body", name, known, owner=f"mechanism {mech.name!r}")
    return k


def _couplings_left(mech: Mechanism, locked: set[str]) -> tuple[Coupling, ...]:
    """Couplings among hinges that still move; one that is half locked would over-constrain."""
    left = list[Coupling]()
    for coupling in mech.couplings:
        used = _hinges_of(coupling, mech.hinge_index)
        if not used & locked:
            left.append(coupling)
        elif used - locked:
            moving = ", ".join(repr(n) for n in sorted(used - locked))
            raise ModelError(
                f"coupling {coupling.name!r} ties {', '.join(sorted(used & locked))}, to be "
                f"locked, to {moving}, which would still move. Lock all of them, or take the "
                f"coupling away first: mech.without({coupling.name!r})."
            )
    return tuple(left)


def _hinges_of(coupling: Coupling, known: Mapping[str, int]) -> set[str]:
    names = [coupling.dependent, *(name for name, _ in coupling.terms)]
    return {split_coordinate(name, known)[0] for name in names}


def release(mech: Mechanism, hinges: Iterable[str] | None = None) -> Mechanism:
    """Let locked hinges move again: those named, or every one that remembers its former hinge."""
    if hinges is None:
        chosen = [
            k
            for k, b in enumerate(mech.bodies)
            if isinstance(b.hinge, Locked) and b.hinge.of is not None
        ]
    else:
        chosen = [_hinge_of(mech, n) for n in ([hinges] if isinstance(hinges, str) else hinges)]
    bodies = list(mech.bodies)
    for k in chosen:
        hinge = bodies[k].hinge
        if not isinstance(hinge, Locked) or hinge.of is None:
            raise ModelError(
                f"hinge {bodies[k].hinge_name!r} is a {hinge.describe()} hinge and holds nothing "
                "that could be released; only hinges that `lock` has locked can be."
            )
        bodies[k] = released(bodies[k])
    return replaced(mech, bodies=tuple(bodies))


def with_payload(
    mech: Mechanism,
    at: str,
    inertia: SpatialInertia,
    *,
    name: str = "payload",
    pose: PoseLike | None = None,
) -> Mechanism:
    """Fix an inertia to a node or body, as a node of kind "payload"; `pose` places it there."""
    problems = inertia.findings()
    if problems:
        raise ModelError(f"payload {name!r}: {problems[0][1]}")
    host = mech.node(at)
    place = host.pose if pose is None else host.pose @ Pose.of(pose)
    return replaced(mech, nodes=(*mech.nodes, Node(name, host.body, place, inertia, "payload")))


def with_node(mech: Mechanism, name: str, body: str, pose: PoseLike = (0.0, 0.0, 0.0)) -> Mechanism:
    """Add a frame of interest, placed relative to a body or to another node."""
    host = mech.node(body)
    return replaced(mech, nodes=(*mech.nodes, Node(name, host.body, host.pose @ Pose.of(pose))))


def with_drive(
    mech: Mechanism,
    hinges: Iterable[str],
    drive: Drive | None = None,
    **changes: PerFreedom,
) -> Mechanism:
    """Change the drive of one hinge or several, by their names or their bodies'.

    Args:
        mech: The mechanism.
        hinges: One name or several.
        drive: The new drive; by default each keeps its own.
        changes: Fields of `Drive` to change in it: `damping=0.1`, `lower=-1.0` ...
    """
    known = [field.name for field in dataclasses.fields(Drive)]
    for name in changes:
        if name not in known:
            raise unknown_name("field", name, known, owner="a drive")
    if drive is None and not changes:
        raise ModelError(
            "with_drive was asked to change nothing: give a Drive, or fields of one by name, for "
            "instance damping=0.1."
        )
    bodies = list(mech.bodies)
    for name in [hinges] if isinstance(hinges, str) else hinges:
        k = _hinge_of(mech, name)
        old = bodies[k].drive if drive is None else drive
        changed = dataclasses.replace(old, **cast("dict[str, Any]", changes))
        bodies[k] = dataclasses.replace(bodies[k], drive=changed)
    return replaced(mech, bodies=tuple(bodies))


def without_armature(mech: Mechanism) -> Mechanism:
    """The same mechanism without inertia of rotors, in hinges and loops."""

    def bare(drive: Drive) -> Drive:
        return dataclasses.replace(drive, armature=0.0, rotor_inertia=0.0)

    return replaced(
        mech,
        bodies=tuple(dataclasses.replace(b, drive=bare(b.drive)) for b in mech.bodies),
        loops=tuple(dataclasses.replace(x, drive=bare(x.drive)) for x in mech.loops),
    )


def without(mech: Mechanism, *names: str) -> Mechanism:
    """Remove nodes (payloads among them), loops, couplings and actuators by name."""
    known = [x.name for x in (*mech.nodes, *mech.loops, *mech.couplings, *mech.actuators)]
    for name in names:
        if name not in known:
            kind = "node, loop, coupling or actuator"
            raise unknown_name(kind, name, known, owner=f"mechanism {mech.name!r}")
    gone = set(names)
    return replaced(
        mech,
        nodes=tuple(n for n in mech.nodes if n.name not in gone),
        loops=tuple(x for x in mech.loops if x.name not in gone),
        couplings=tuple(c for c in mech.couplings if c.name not in gone),
        actuators=tuple(a for a in mech.actuators if a.name not in gone),
        gravity_compensation=tuple(x for x in mech.gravity_compensation if x[0] not in gone),
    )


def mount(mech: Mechanism, other: Mechanism, *, at: str, prefix: str = "") -> Mechanism:
    """Put another mechanism on a node or body of this one: a hand on an arm, arms in a cell.

    Its names get the prefix; gravity is that of this one; the load reports are joined.

    Args:
        mech: This mechanism.
        other: The mechanism to put there; it is not changed.
        at: Node or body of this one on which the other's world is placed; "world" puts it beside
            this one. For any other place add a node: `builder.node("place", "world", pose)`.
        prefix: Put in front of all names of the other: bodies, hinges, nodes, loops.

    Raises:
        ModelError: `other` is not a mechanism, or both use the same name.
        UnknownNameError: This one has no such node.
    """
    if not isinstance(other, type(mech)):
        raise ModelError(
            f"mount puts a mechanism on {mech.name!r}, and was given a {type(other).__name__}; "
            "give one made by Builder, lw.load or lw.models, and the place as at=..."
        )
    host = mech.node(at)
    taken = {*mech.body_index, *mech.node_index}
    clash = [
        n for n in (*other.body_index, *other.node_index) if prefix + n in taken and n != WORLD
    ]
    if clash:
        raise ModelError(
            f"mounting {other.name!r} on {mech.name!r}: both have {prefix + clash[0]!r}"
            f"{f' and {len(clash) - 1} more names' if len(clash) > 1 else ''}; give a prefix, for "
            f"instance prefix='{other.name}_'."
        )

    def renamed(name: str) -> str:
        return host.body if name == WORLD else prefix + name

    bodies = [
        dataclasses.replace(
            b,
            name=prefix + b.name,
            parent=renamed(b.parent),
            hinge_name=prefix + b.hinge_name,
            inboard=host.pose @ b.inboard if b.parent == WORLD else b.inboard,
        )
        for b in other.bodies
    ]
    nodes = [
        dataclasses.replace(
            n,
            name=prefix + n.name,
            body=renamed(n.body),
            pose=host.pose @ n.pose if n.body == WORLD else n.pose,
        )
        for n in other.nodes
    ]
    loops = [
        dataclasses.replace(
            x,
            name=prefix + x.name,
            node_a=_end(x.node_a, prefix, at),
            node_b=_end(x.node_b, prefix, at),
        )
        for x in other.loops
    ]
    couplings = [
        Coupling(
            prefix + c.name,
            prefix + c.dependent,
            tuple((prefix + n, cs) for n, cs in c.terms),
            c.offset,
        )
        for c in other.couplings
    ]
    actuators = [
        dataclasses.replace(
            a,
            name=prefix + a.name,
            joints=tuple((prefix + n, gear) for n, gear in a.joints),
            cables=tuple((prefix + m, prefix + n, gear) for m, n, gear in a.cables),
            node=prefix + a.node if a.node else "",
        )
        for a in other.actuators
    ]
    return replaced(
        mech,
        name=f"{mech.name}+{other.name}",
        bodies=(*mech.bodies, *bodies),
        nodes=(*mech.nodes, *nodes),
        loops=(*mech.loops, *loops),
        couplings=(*mech.couplings, *couplings),
        actuators=(*mech.actuators, *actuators),
        contact_rules=joined(mech.contact_rules, other.contact_rules, renamed),
        gravity_compensation=(
            *mech.gravity_compensation,
            *((prefix + name, share) for name, share in other.gravity_compensation),
        ),
        load_report=LoadReport(
            mech.load_report.source or other.load_report.source,
            (*mech.load_report.items, *other.load_report.items),
        ),
    )


def _end(node: str, prefix: str, at: str) -> str:
    """A loop's end after mounting: what was on the world itself is now on the node `at`."""
    return at if node == WORLD else prefix + node


def extract(mech: Mechanism, base: str, tip: str | None = None) -> Mechanism:
    """The sub-arm from body `base` out: only up to body or node `tip`, or the entire subtree.

    The body frame of the parent of `base` becomes the world.
    """
    first = mech.body_index[mech.body(base).name]
    kept = {first}
    for k in range(first + 1, mech.n_bodies):
        if int(mech.parent[k]) in kept:
            kept.add(k)
    if tip is not None:
        way, k = set[int](), mech.body_index[mech.node(tip).body]
        while k >= 0:
            way.add(k)
            k = int(mech.parent[k])
        if first not in way:
            raise ModelError(
                f"{tip!r} is not outboard of {base!r}: the way from it to the ground passes "
                f"{', '.join(mech.bodies[k].name for k in sorted(way)) or 'nothing'}."
            )
        kept &= way
    names = {mech.bodies[k].name for k in kept}
    nodes = tuple(n for n in mech.nodes if n.body in names)
    places = names | {n.name for n in nodes}
    hinges = {mech.bodies[k].hinge_name for k in kept}
    bodies = [mech.bodies[k] for k in sorted(kept)]
    bodies[0] = dataclasses.replace(bodies[0], parent=WORLD)
    return replaced(
        mech,
        name=f"{mech.name}:{base}",
        bodies=tuple(bodies),
        nodes=nodes,
        loops=_loops_inside(mech.loops, places),
        couplings=_couplings_inside(mech, hinges),
        actuators=_actuators_inside(mech, places, hinges),
        gravity_compensation=tuple(x for x in mech.gravity_compensation if x[0] in places),
    )


def _actuators_inside(mech: Mechanism, places: set[str], hinges: set[str]) -> tuple[Actuator, ...]:
    """Actuators of nodes, or of hinges, all of which are there."""

    def inside(actuator: Actuator) -> bool:
        used = {split_coordinate(name, mech.hinge_index)[0] for name, _ in actuator.joints}
        if actuator.cables:
            return all(x in places for cable in actuator.cables for x in cable[:2])
        return actuator.node in places if actuator.node else used <= hinges

    return tuple(a for a in mech.actuators if inside(a))


def _loops_inside(loops: Sequence[Loop], places: set[str]) -> tuple[Loop, ...]:
    for loop in loops:
        inside = [end in places for end in (loop.node_a, loop.node_b)]
        if any(inside) and not all(inside):
            raise ModelError(
                f"loop {loop.name!r} joins the sub-arm to the rest; take it away first: "
                f"mech.without({loop.name!r})."
            )
    return tuple(x for x in loops if x.node_a in places)


def _couplings_inside(mech: Mechanism, hinges: set[str]) -> tuple[Coupling, ...]:
    left, known = list[Coupling](), mech.hinge_index
    for c in mech.couplings:
        used = _hinges_of(c, known)
        if used <= hinges:
            left.append(c)
        elif used & hinges:
            raise ModelError(
                f"coupling {c.name!r} ties the sub-arm to the rest; take it away first: "
                f"mech.without({c.name!r})."
            )
    return tuple(left)


def renumber(mech: Mechanism, order: Sequence[str]) -> Mechanism:
    """The same physics with bodies in the order given; parents still come before their children."""
    missing = sorted({b.name for b in mech.bodies} - set(order))
    if missing or len(order) != mech.n_bodies:
        strange = [n for n in order if n not in mech.body_index or n == WORLD]
        if strange:
            known = (b.name for b in mech.bodies)
            raise unknown_name("body", strange[0], known, owner=f"mechanism {mech.name!r}")
        raise ModelError(
            f"a new order names each of the {mech.n_bodies} bodies once; found {len(order)} names"
            + (f", {missing[0]!r} is missing." if missing else ".")
        )
    names = base_first(order, {b.name: b.parent for b in mech.bodies})
    return replaced(mech, bodies=tuple(mech.bodies[mech.body_index[name]] for name in names))


def merge_locked(mech: Mechanism) -> Mechanism:
    """Merge locked bodies into the next moving body inboard, where they become nodes ("link")."""
    host: dict[str, tuple[str, Pose]] = {WORLD: (WORLD, Pose.identity())}
    bodies, welded = list[Body](), list[Node]()
    for body in mech.bodies:
        parent, place = host[body.parent]
        if isinstance(body.hinge, Locked):
            here = place @ body.pose(np.zeros(0))
            host[body.name] = (parent, here)
            inertia = inertia_at(body, np.zeros(0))
            carried = None if inertia is SpatialInertia.zero() else inertia
            welded.append(Node(body.name, parent, here, carried, "link", body.geometry))
        else:
            host[body.name] = (body.name, Pose.identity())
            moved = dataclasses.replace(body, parent=parent, inboard=place @ body.inboard)
            bodies.append(moved if body.parent != parent else body)
    nodes = [
        dataclasses.replace(n, body=host[n.body][0], pose=host[n.body][1] @ n.pose)
        for n in mech.nodes
    ]
    return replaced(mech, bodies=tuple(bodies), nodes=(*welded, *nodes))
