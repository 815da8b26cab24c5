"""Where bodies and nodes are, seen from one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Nodes, Status, check_mechanism, node_names, written
from linkwise.dynamics.quantity import expression
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import ArrayLike
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def relative_pose(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    seen_from: str,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Pose:
    """Pose of nodes or bodies, seen from another one: on the same branch, on others, or the world.

    Expression:
        X_AB = X_A⁻¹ X_B with the poses X_B of `forward_kinematics`
    Along a branch it is the product of the poses of the hinges between the two.
    Source: 002, "Computing relative pose".

    Args:
        node: Name of a node or body B, or several.
        seen_from: Name of the node or body A; "world" gives `forward_kinematics`.

    Returns:
        One pose for the name of one node, else a stack of k poses; for a batch with (batch,) in
        front: `rot` (batch, k, 3, 3), `p` (batch, k, 3) [m].

    Raises:
        ModelError: What is not the name of a node.
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if not isinstance(cast(object, seen_from), str):
        raise ModelError(
            f"seen_from is a {type(seen_from).__name__}; it must be the name of one node or body."
        )
    found = _kernel(mech, node if isinstance(node, str) else node_names(node), seen_from)
    rows = found(q) if status is threads is None else found(q, status=status, threads=threads)
    return trusted_pose(rows[..., :3], rows[..., 3])


@once_per_mechanism
def _kernel(mech: Mechanism, nodes: str | tuple[str, ...], seen_from: str) -> Any:
    check_mechanism(mech)
    mech.node(seen_from)  # raises for one that is not there
    return written(mech, Formula(_relative, (seen_from, isinstance(nodes, str))), nodes)


def _relative(at: Writing, seen_from: str, single: bool) -> Any:
    poses = at.value(expression("node_poses"), nodes=(seen_from, *at.nodes)).reshape(-1, 3, 4)
    back, offset = poses[0, :, :3].T, poses[1:, :, 3] - poses[0, :, 3]
    seen = np.concatenate([back @ poses[1:, :, :3], back @ offset[..., None]], axis=-1)
    return seen[0] if single else seen
