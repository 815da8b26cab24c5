"""The two frames of every hinge as nodes: O, fixed on the body, and O⁺, fixed on its parent."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError
from linkwise.model.body import Node
from linkwise.model.derived import replaced
from linkwise.model.mechanism import Mechanism


def outboard_name(hinge: str) -> str:
    """Name of the node at O of a hinge."""
    return f"{hinge}:O"


def inboard_name(hinge: str) -> str:
    """Name of the node at O⁺ of a hinge."""
    return f"{hinge}:O+"


def with_hinge_frames(mech: Mechanism) -> Mechanism:
    """The same mechanism with a node on each side of every hinge.

    Node "hinge:O" is the frame O on the body, "hinge:O+" the frame O⁺ on its parent or the world:
    with them poses, velocities, Jacobians and forces at the hinges are those of any other node. A
    mechanism that has them already is given back as it is.

    Raises:
        ModelError: A node of that name is somewhere else.
    """
    check_mechanism(mech)
    nodes = list(mech.nodes)
    for body in mech.bodies:
        sides = (
            Node(outboard_name(body.hinge_name), body.name, body.outboard.inverse()),
            Node(inboard_name(body.hinge_name), body.parent, body.inboard),
        )
        for node in sides:
            if node.name in mech.body_index:
                raise ModelError(f"body {node.name!r} has the name of a hinge frame; rename it.")
            if node.name not in mech.node_index:
                nodes.append(node)
            elif not _same(mech.node(node.name), node):
                raise ModelError(
                    f"node {node.name!r} is not where that frame of the hinge is; take it away "
                    f"first: mech.without({node.name!r})."
                )
    return mech if len(nodes) == len(mech.nodes) else replaced(mech, nodes=tuple(nodes))


def _same(one: Node, other: Node) -> bool:
    apart = np.abs(one.pose.matrix - other.pose.matrix).max()
    return one.body == other.body and bool(apart < 1e-12)
