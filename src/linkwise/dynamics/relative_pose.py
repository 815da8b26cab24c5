"""Where bodies and nodes are, seen from one another."""

from __future__ import annotations

from typing import cast

import numpy as np

from linkwise.dynamics.kernels import Nodes, Status, node_names
from linkwise.dynamics.kinematics import forward_kinematics
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose, trusted_pose


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
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        node: Name of a node or body B, or several.
        seen_from: Name of the node or body A; "world" gives `forward_kinematics`.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
    asked = [seen_from, *node_names(node)]
    poses = forward_kinematics(mech, q, asked, status=status, threads=threads)
    back = np.swapaxes(poses.rot[..., :1, :, :], -1, -2)
    offset: Array = poses.p[..., 1:, :] - poses.p[..., :1, :]
    found = trusted_pose(back @ poses.rot[..., 1:, :, :], (back @ offset[..., None])[..., 0])
    if isinstance(node, str):
        return trusted_pose(found.rot[..., 0, :, :], found.p[..., 0, :])
    return found
