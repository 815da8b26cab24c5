"""Building a mechanism step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np

from linkwise.arguments import number
from linkwise.brief import counted
from linkwise.errors import ModelError
from linkwise.model import validate
from linkwise.model.actuator import Actuator
from linkwise.model.body import WORLD, Body, Coupling, Loop, Lump, Node, NodeKind
from linkwise.model.contact import ContactRules
from linkwise.model.drive import Drive
from linkwise.model.geometry import Geometry
from linkwise.model.hinges import Geared, Hinge, Locked
from linkwise.model.mechanism import GRAVITY, Mechanism
from linkwise.model.report import LoadReport
from linkwise.model.spanning_tree import Joint, base_first, oriented, split, unfolded
from linkwise.model.validate import Finding
from linkwise.spatial.array import ArrayLike, constant, floats
from linkwise.spatial.inertia import SpatialInertia
from linkwise.spatial.pose import Pose, PoseLike

NO_DRIVE = Drive()


class Builder:
    """Collects bodies, joints, nodes, loops, couplings and actuators; `build` makes the mechanism.

    Bodies may come in any order. A body is either placed by its parent,

        builder.body("forearm", "upper_arm", Pin((0, 1, 0)), inboard=(0, 0, 0.4))

    or left unplaced (`parent=None`) and joined by `joint`, edge by edge, in any graph: `build`
    then picks a spanning tree from the world, with as many driven joints in it as possible, and
    makes the remaining joints loops.
    """

    def __init__(self, name: str = "mechanism", *, gravity: ArrayLike = GRAVITY) -> None:
        self.name = name
        self.gravity = constant(gravity, (3,), "gravity")
        self._bodies: list[tuple[str, SpatialInertia, tuple[Geometry, ...], tuple[Lump, ...]]] = []
        self._joints: list[Joint] = []
        self._nodes: list[Node] = []
        self._loops: list[Loop] = []
        self._couplings: list[Coupling] = []
        self._actuators: list[Actuator] = []

    def body(
        self,
        name: str,
        parent: str | None = WORLD,
        hinge: Hinge | None = None,
        *,
        hinge_name: str | None = None,
        inboard: PoseLike | None = None,
        outboard: PoseLike | None = None,
        inertia: SpatialInertia | None = None,
        drive: Drive = NO_DRIVE,
        geometry: Sequence[Geometry] = (),
        lumps: Sequence[Lump] = (),
    ) -> Builder:
        """Add a body.

        Args:
            name: The body's name, unique among bodies and nodes.
            parent: The body it is joined to, "world" for the ground, None to join it later.
            hinge: How it moves relative to the parent; `Locked()` welds it.
            hinge_name: The hinge's name; by default the body's.
            inboard: Pose of hinge frame O+ in the parent's body frame; a 3-vector only moves it.
            outboard: Pose of the body frame in hinge frame O; by default the two coincide.
            inertia: The body's inertia about its body frame; default: none.
            drive: Rotor, friction, spring and limits of the hinge.
            geometry: Shapes for the viewer.
            lumps: Parts of a flexible body that move with the coordinates of the hinge;
                `lw.flexible.FlexibleBody.add_to` makes them.

        Returns:
            The builder, so that calls can be chained.
        """
        _named("body", name)
        inertia = SpatialInertia.zero() if inertia is None else inertia
        _is_a(SpatialInertia, inertia, f"inertia of body {name!r}")
        for lump in lumps:
            _is_a(Lump, lump, f"a lump of body {name!r}")
        record = (name, inertia, _shapes(f"body {name!r}", geometry), tuple(lumps))
        if parent is None:
            placed = (hinge, hinge_name, inboard, outboard)
            if any(x is not None for x in placed) or drive is not NO_DRIVE:
                raise ModelError(
                    f"body {name!r} was given a hinge, its place or a drive but no parent; give "
                    "the parent, or give these to `joint`."
                )
            self._bodies.append(record)
            return self
        if hinge is None:
            raise ModelError(
                f"body {name!r} has parent {parent!r} but no hinge; give one, for instance "
                "Pin((0, 0, 1)), or Locked() to weld it."
            )
        on_a, on_b = _pose(inboard), _pose(outboard)
        _moves(hinge_name or name, hinge, drive)
        self._bodies.append(record)
        self._joints.append(
            Joint(hinge_name or name, parent, name, hinge, on_a, on_b, drive, in_tree=True)
        )
        return self

    def motor(
        self,
        hinge: str,
        inertia: SpatialInertia,
        *,
        ratio: float = 1.0,
        axis: ArrayLike | None = None,
        mount: PoseLike | None = None,
    ) -> Builder:
        """Put a motor with a gear at a hinge: its rotor sits on the parent and turns by ratio q.

        The rotor is a body with all its inertia: 𝓜 has its coupling with the turn of the parent,
        and the bias its gyroscopic terms. `Drive.rotor_inertia` has neither, only ratio² J.

        Args:
            hinge: A hinge of this builder with one coordinate, placed by `body`.
            inertia: Of the rotor, about its frame.
            ratio: Turns of the rotor for one of q [rad/rad or rad/m]; negative for a gear that
                reverses; not zero.
            axis: The axis of the rotor, in its frame; default: that of the hinge, or z.
            mount: Pose of the rotor frame at q = 0 in hinge frame O+; default: the same.
        """
        _is_a(SpatialInertia, inertia, f"inertia of a motor at {hinge!r}")
        joint = next((x for x in self._joints if x.name == hinge and x.in_tree), None)
        if joint is None:
            known = ", ".join(repr(x.name) for x in self._joints if x.in_tree) or "none"
            raise ModelError(f"there is no hinge {hinge!r} placed by `body` yet; known: {known}.")
        if joint.hinge.nq != 1 or joint.hinge.nv != 1:
            raise ModelError(
                f"hinge {hinge!r} is a {joint.hinge.kind} hinge with {joint.hinge.nv} velocities; "
                "a motor turns with a hinge that has one coordinate."
            )
        along = getattr(joint.hinge, "axis", (0.0, 0.0, 1.0)) if axis is None else axis
        problems = inertia.findings()
        if problems:
            raise ModelError(f"inertia of a motor at {hinge!r} is impossible: {problems[0][1]}")
        if number(ratio, f"ratio of a motor at {hinge!r}") == 0.0:
            raise ModelError(
                f"ratio of a motor at {hinge!r} is 0, so its rotor would not turn. Give its turns "
                "for one of the hinge; or weld its mass to the parent: Builder.node(inertia=...)."
            )
        x, y, z = constant(along, (3,), "axis").tolist()
        lump = Lump(Geared((x, y, z), ratio, _pose(mount)), inertia)
        i = next(i for i, record in enumerate(self._bodies) if record[0] == joint.b)
        name, rigid, shapes, lumps = self._bodies[i]
        self._bodies[i] = (name, rigid, shapes, (*lumps, lump))
        return self

    def joint(
        self,
        name: str,
        a: str,
        b: str,
        hinge: Hinge,
        *,
        at_a: PoseLike | None = None,
        at_b: PoseLike | None = None,
        drive: Drive = NO_DRIVE,
    ) -> Builder:
        """Join two bodies (or a body and the world) by a hinge.

        Args:
            name: The joint's name; it becomes a hinge or a loop of that name.
            a: The body that carries hinge frame O+.
            b: The body that carries hinge frame O.
            hinge: How they move relative to each other.
            at_a: Pose of O+ in a's body frame; a 3-vector only moves it.
            at_b: Pose of O in b's body frame.
            drive: Rotor, friction, spring and limits of the hinge.
        """
        _named("joint", name)
        _moves(name, hinge, drive)
        self._joints.append(Joint(name, a, b, hinge, _pose(at_a), _pose(at_b).inverse(), drive))
        return self

    def node(
        self,
        name: str,
        body: str,
        pose: PoseLike | None = None,
        *,
        inertia: SpatialInertia | None = None,
        kind: NodeKind = "frame",
        geometry: Sequence[Geometry] = (),
    ) -> Builder:
        """Add a frame of interest on a body; with `inertia` it is a welded link or a payload."""
        _named("node", name)
        if inertia is not None:
            _is_a(SpatialInertia, inertia, f"inertia of node {name!r}")
        shapes = _shapes(f"node {name!r}", geometry)
        self._nodes.append(Node(name, body, _pose(pose), inertia, kind, shapes))
        return self

    def loop(
        self,
        name: str,
        node_a: str,
        node_b: str,
        hinge: Hinge | None = None,
        *,
        drive: Drive = NO_DRIVE,
    ) -> Builder:
        """Close a loop between two nodes or bodies; `hinge` is the motion left (default: none).

        A hinge with armature gets a separate body, "name.rotor", on node a, and the loop welds
        this body to node b: so the armature is part of the mass matrix.
        """
        _named("loop", name)
        hinge = Locked() if hinge is None else hinge
        _moves(name, hinge, drive)
        self._loops.append(Loop(name, node_a, node_b, hinge, drive))
        return self

    def couple(
        self,
        name: str,
        dependent: str,
        terms: Mapping[str, float | Sequence[float]],
        *,
        offset: float = 0.0,
    ) -> Builder:
        """Make a coordinate follow others: q = offset + Σ (c_1 q_j + c_2 q_j² + ...).

        Args:
            name: The coupling's name.
            dependent: The hinge that follows ("hinge[i]" where it has several coordinates).
            terms: For each independent hinge one coefficient, or (c_1, c_2, ...).
            offset: Constant part [rad or m].
        """
        listed = tuple(
            (key, tuple(np.atleast_1d(floats(c, f"coefficients of {key!r}")).ravel().tolist()))
            for key, c in terms.items()
        )
        constant_part = float(constant(offset, (), f"offset of coupling {name!r}"))
        self._couplings.append(Coupling(name, dependent, listed, constant_part))
        return self

    def actuator(self, *actuators: Actuator) -> Builder:
        """Add motors and servos: `lw.Actuator.position("knee", "knee", kp=80.0, kv=2.0)`."""
        for one in actuators:
            _is_a(Actuator, one, "an actuator")
            self._actuators.append(one)
        return self

    def validate(self) -> tuple[Finding, ...]:
        """All findings: why this is not a mechanism yet, or else what its physics lacks."""
        problems, parts = self._assemble()
        if problems:
            return tuple(problems)
        actuators = tuple(self._actuators)
        return Mechanism(self.name, *parts, gravity=self.gravity, actuators=actuators).validate()

    def build(
        self,
        *,
        load_report: LoadReport | None = None,
        contact_rules: ContactRules | None = None,
        gravity_compensation: Sequence[tuple[str, float]] = (),
    ) -> Mechanism:
        """The mechanism; raises `ModelError` with all findings if it cannot be built."""
        problems, parts = self._assemble()
        if problems:
            raise ModelError(validate.as_text(f"{self.name!r} cannot be built", problems))
        return Mechanism(
            self.name,
            *parts,
            gravity=self.gravity,
            load_report=LoadReport() if load_report is None else load_report,
            actuators=tuple(self._actuators),
            contact_rules=ContactRules() if contact_rules is None else contact_rules,
            gravity_compensation=tuple(gravity_compensation),
        )

    def __repr__(self) -> str:
        names = ("bodies", "joints", "nodes", "loops", "couplings", "actuators")
        sizes = [(len(getattr(self, f"_{name}")), name) for name in names]
        parts = [
            counted(size, "body" if name == "bodies" else name[:-1], name)
            for size, name in sizes
            if size or name == "bodies"
        ]
        return f"<Builder {self.name!r}: {', '.join(parts)}>"

    def _assemble(
        self,
    ) -> tuple[
        list[Finding],
        tuple[tuple[Body, ...], tuple[Node, ...], tuple[Loop, ...], tuple[Coupling, ...]],
    ]:
        problems = self._joint_problems()
        tree, cut = split(self._joints)
        # A body placed twice by `body` is a mistake, not a loop.
        problems += [
            Finding(
                "error",
                f"body {joint.b!r}",
                "cyclic",
                f"hanging it on {joint.a!r} by hinge {joint.name!r} closes a cycle of parents.",
                "Put one body of the cycle on the world, or close the loop with `joint`.",
            )
            for joint in cut
            if joint.in_tree
        ]
        inboard = oriented(tree)
        records = {name: (a, b, c) for name, a, b, c in self._bodies}
        order = base_first(records, {name: joint.a for name, joint in inboard.items()})
        lost = [name for name in records if name not in inboard]
        if lost and not problems:
            shown = ", ".join(repr(name) for name in lost[:6]) + (" ..." if len(lost) > 6 else "")
            problems.append(
                Finding(
                    "error",
                    f"body {lost[0]!r}",
                    "disconnected",
                    f"{len(lost)} bodies are not connected to the world: {shown}.",
                    "Join one of them to the world; a floating base has a Free hinge.",
                )
            )
        bodies = tuple(_body(inboard[name], *records[name]) for name in order)
        nodes, loops = self._closures(cut)
        rotors, loops = unfolded(nodes, loops)
        bodies, loops = (*bodies, *rotors), tuple(loops)
        if not problems:
            parts = bodies, nodes, loops, self._couplings, self._actuators
            problems = validate.structure(*parts)
        return problems, (bodies, nodes, loops, tuple(self._couplings))

    def _joint_problems(self) -> list[Finding]:
        names = [name for name, *_ in self._bodies]
        known = {WORLD, *names}
        problems = list[Finding]()
        if len(known) <= len(names):
            seen = {WORLD}
            for name in names:
                if name in seen:
                    reason = (
                        "the name is used more than once" if name != WORLD else "this is the ground"
                    )
                    problems.append(
                        Finding(
                            "error",
                            f"body {name!r}",
                            "duplicate-name",
                            f"{reason}.",
                            "Rename it.",
                        )
                    )
                seen.add(name)
        for joint in self._joints:
            for end in (joint.a, joint.b):
                if end not in known:
                    reason = validate.unknown("body", end, known, repr(self.name), len(problems))
                    problems.append(
                        Finding("error", f"hinge {joint.name!r}", "unknown-body", reason, "")
                    )
            if joint.a == joint.b:
                reason = f"it joins {joint.a!r} to itself."
                problems.append(Finding("error", f"hinge {joint.name!r}", "cyclic", reason, ""))
        return problems

    def _closures(self, cut: Sequence[Joint]) -> tuple[tuple[Node, ...], tuple[Loop, ...]]:
        """For each joint that is not in the tree a node on either body and a loop between them."""
        nodes, loops = list(self._nodes), list(self._loops)
        for joint in cut:
            ends = (f"{joint.name}.a", f"{joint.name}.b")
            nodes.append(Node(ends[0], joint.a, joint.inboard))
            nodes.append(Node(ends[1], joint.b, joint.outboard.inverse()))
            loops.append(Loop(joint.name, *ends, joint.hinge, joint.drive))
        return tuple(nodes), tuple(loops)


def _body(
    joint: Joint,
    inertia: SpatialInertia,
    shapes: tuple[Geometry, ...],
    lumps: tuple[Lump, ...],
) -> Body:
    return Body(
        joint.b,
        joint.a,
        joint.hinge,
        joint.name,
        joint.inboard,
        joint.outboard,
        inertia,
        joint.drive,
        shapes,
        lumps,
    )


def _pose(value: PoseLike | None) -> Pose:
    return Pose.identity() if value is None else Pose.of(value)


def _is_a(kind: type, value: object, what: str) -> None:
    if not isinstance(value, kind):
        raise ModelError(f"{what} is {value!r}; it must be a {kind.__name__}.")


def _named(what: str, name: object) -> None:
    _is_a(str, name, f"the name of a {what}")


def _moves(name: object, hinge: object, drive: object) -> None:
    _is_a(Hinge, hinge, f"hinge {name!r}")
    _is_a(Drive, drive, f"drive of hinge {name!r}")


def _shapes(where: str, geometry: object) -> tuple[Geometry, ...]:
    _is_a(Iterable, geometry, f"geometry of {where}")
    shapes = tuple(cast("Iterable[Geometry]", geometry))
    for shape in shapes:
        _is_a(Geometry, shape, f"a shape of {where}")
    return shapes
