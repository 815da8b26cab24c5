"""Which joints of a graph of bodies become the tree, and which become loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from linkwise.model.body import WORLD
from linkwise.model.drive import Drive
from linkwise.model.hinges import Hinge
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

    Joints that were given as a body's own (`in_tree`) are taken first, then those of fewest
    freedoms, so that the tree has as few coordinates and the loops as few rows as possible; among
    equals the one given first. (Kruskal's algorithm.)
    """
    leader = dict[str, str]()

    def find(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    tree, cut = set[int](), list[Joint]()
    ranked = sorted(
        range(len(joints)), key=lambda i: (not joints[i].in_tree, joints[i].hinge.nv, i)
    )
    for i in ranked:
        a, b = find(joints[i].a), find(joints[i].b)
        if a != b:
            leader[b] = a
            tree.add(i)
    cut = [joint for i, joint in enumerate(joints) if i not in tree]
    return [joint for i, joint in enumerate(joints) if i in tree], cut


def oriented(tree: Sequence[Joint]) -> dict[str, Joint]:
    """For each body that can be reached from the world, the joint to its parent (its `a`)."""
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
