"""Loops that come while a mechanism moves: what a hand does when it takes hold."""

from __future__ import annotations

import dataclasses

from linkwise.dynamics.kernels import check_mechanism
from linkwise.errors import ModelError
from linkwise.model.body import Loop, Node
from linkwise.model.hinges import Hinge, Locked
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import ArrayLike


def close_loop(
    mech: Mechanism,
    q: ArrayLike,
    name: str,
    node_a: str,
    node_b: str,
    hinge: Hinge | None = None,
) -> Mechanism:
    """The mechanism with one more loop, closed just as its two nodes stand at q.

    A new node on the body of `node_b`, called after the loop, stands where `node_a` is, so there is
    no gap to be closed: nothing moves at that instant. Velocities are another matter. Where the
    two approach each other, `project_velocity` of the new mechanism gives those after the
    impact; it changes no momentum. `mech.without(name)` opens the loop again.

    Args:
        mech: The mechanism; its coordinates stay the same.
        q: Joint positions (nq,) at which the loop is closed [m or rad].
        name: The loop's name, which must be new.
        node_a: A node or body.
        node_b: Another, on another body.
        hinge: The freedom left between them, which is at neutral at q; `Locked()` unless given.

    Raises:
        ModelError: What is given is no mechanism, the name is taken, or both nodes are on one body.
        UnknownNameError: A node that the mechanism does not have.
    """
    check_mechanism(mech)
    q = mech.check_q(q)
    if q.ndim != 1:
        raise ModelError(f"a loop is closed at one configuration; q has the shape {q.shape}.")
    if name in {x.name for x in mech.loops} | {*mech.node_index, *mech.body_index}:
        raise ModelError(
            f"loop {name!r} cannot be added to {mech.name!r}: it has a loop, node or body of that "
            "name. Choose another one."
        )
    a, b = mech.node(node_a), mech.node(node_b)
    if a.body == b.body:
        raise ModelError(
            f"loop {name!r} would join {node_a!r} and {node_b!r}, which are both on {a.body!r}; "
            "a loop joins two bodies, or a body and the world."
        )
    X_ba = mech.pose(q, node_b).inverse() @ mech.pose(q, node_a)
    new = Node(name, b.body, b.pose @ X_ba)
    loop = Loop(name, node_a, name, Locked() if hinge is None else hinge)
    return dataclasses.replace(mech, nodes=(*mech.nodes, new), loops=(*mech.loops, loop))
