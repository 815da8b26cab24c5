"""Which joints of a graph of bodies become the tree, and which become loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkwise.errors import ModelError
from linkwise.model.body import WORLD, Body, Loop, Node
from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge
from linkwise.spatial.array import Array
from linkwise.spatial.pose import Pose


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """An edge of the graph.

    Hinge frame O+ sits at `inboard` on body a; `outboard` is body b's frame in hinge frame O, as in
    `Body`.
    """

    name: str
    a: str
    b: str
    hinge: Hinge
    inboard: Pose
    outboard: Pose
    drive: Drive
    in_tree: bool = False

    def reversed(self) -> Joint:
        """The same joint with its bodies exchanged."""
        back = self.hinge.reversed()
        inboard, outboard = self.outboard.inverse(), self.inboard.inverse()
        return Joint(self.name, self.b, self.a, back, inboard, outboard, self.drive)


def split(joints: Sequence[Joint]) -> tuple[list[Joint], list[Joint]]:
    """Tree joints and loop joints.

    Joints that place a body (`in_tree`) are taken first, then those with a rotor and those with any
    other drive, since only the tree has their velocity and force; then those with the fewest
    degrees of freedom, so that the tree has as few coordinates and the loops as few rows as
    possible; among equals the one given first. (Kruskal's algorithm.)
    """
    leader = dict[str, str]()

    def find(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    tree, cut = set[int](), list[Joint]()

    def rank(i: int) -> tuple[bool, bool, bool, int, int]:
        joint = joints[i]
        plain = not armature(joint.drive, joint.hinge).any()
        return not joint.in_tree, plain, joint.drive == Drive(), joint.hinge.nv, i

    for i in sorted(range(len(joints)), key=rank):
        a, b = find(joints[i].a), find(joints[i].b)
        if a != b:
            leader[b] = a
            tree.add(i)
    cut = [joint for i, joint in enumerate(joints) if i not in tree]
    return [joint for i, joint in enumerate(joints) if i in tree], cut


def armature(drive: Drive, hinge: Hinge) -> Array:
    """Reflected inertia of each velocity (nv,); zero where the drive does not fit the hinge."""
    try:
        ratio = drive.array("gear_ratio", hinge)
        return drive.array("armature", hinge) + ratio**2 * drive.array("rotor_inertia", hinge)
    except ModelError:  # a finding of `validate`
        return np.zeros(hinge.nv)


def unfolded(nodes: Sequence[Node], loops: Sequence[Loop]) -> tuple[list[Body], list[Loop]]:
    """Bodies for the rotors inside loops, and the remaining loops.

    The rotor of a cut hinge moves with a velocity that the tree does not have. So the hinge gets a
    massless body on node a, with entries in q, v and 𝓜; the rest of the loop welds this body to
    node b. The mechanics is the same: W, the velocity inside the loop, becomes a joint velocity,
    and the rotor's energy ½ W* N W part of ½ v* 𝓜 v.
    """
    bodies, left = list[Body](), list[Loop]()
    places = {node.name: node for node in nodes}
    for loop in loops:
        if not loop.hinge.nv or not (armature(loop.drive, loop.hinge) > 0.0).all():
            left.append(loop)
            continue
        name = f"{loop.name}.rotor"
        at = places.get(loop.node_a, Node(loop.node_a, loop.node_a))
        bodies.append(Body(name, at.body, loop.hinge, loop.name, inboard=at.pose, drive=loop.drive))
        left.append(Loop(loop.name, name, loop.node_b))
    return bodies, left


def oriented(tree: Sequence[Joint]) -> dict[str, Joint]:
    """For each body connected to the world, the joint to its parent (its `a`)."""
    around = dict[str, list[Joint]]()
    for joint in tree:
        around.setdefault(joint.a, []).append(joint)
        around.setdefault(joint.b, []).append(joint)
    inboard = dict[str, Joint]()
    queue = deque([WORLD])
    while queue:
        here = queue.popleft()
        for joint in around.get(here, ()):
            there = joint.b if joint.a == here else joint.a
            if there != WORLD and there not in inboard:
                inboard[there] = joint if joint.a == here else joint.reversed()
                queue.append(there)
    return inboard


def base_first(order: Iterable[str], parent: Mapping[str, str]) -> list[str]:
    """The given order, with parents pulled forward where a child stood before them.

    Bodies that never reach the world (circles) are left out.
    """
    placed, result = {WORLD}, list[str]()
    for name in order:
        way = list[str]()
        here = name
        while here not in placed and here in parent and len(way) <= len(parent):
            way.append(here)
            here = parent[here]
        if here in placed:
            for body in reversed(way):
                if body not in placed:
                    placed.add(body)
                    result.append(body)
    return result
