"""Operational-space inertia: what a hand feels like when it is pushed."""

from __future__ import annotations

import numpy as np

from linkwise.codegen.scalar.status import MATRIX
from linkwise.dynamics.kernels import Nodes, Status, kernel
from linkwise.dynamics.quantity import Frame
from linkwise.errors import SingularHingeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def operational_inertia(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The inertia felt at nodes: force (moment, force) per acceleration (angular, linear).

    Expression:
        Λ = (J 𝓜⁻¹ J*)⁻¹,   `(J @ mass.inv @ J.T).inv`
    with 𝓜 + N for 𝓜 where the mechanism has armature, and rot_W J for J in world axes.

    Derived form:
        (B* ψ* H* D⁻¹ H ψ B)⁻¹: sweeps for the inside, a small dense inverse outside.

    It exists only where the nodes can move in all directions: not for an arm of fewer than six
    freedoms, nor at a singular configuration. `operational_inertia_inverse` always does.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        node: Name of a node or body, or several.
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).

    Raises:
        ExpressionError: It exists in no configuration of the mechanism.
        SingularHingeError: It does not exist in this one. In a batch the row is NaN instead, and a
            warning or `status` tells.
    """
    found = kernel(mech, "operational_inertia", node, frame=frame)
    try:
        if out is status is threads is None:
            return found(q)
        return found(q, out=out, status=status, threads=threads)
    except SingularHingeError:
        code = np.zeros((), dtype=np.int32)
        found(q, status=code)
        if code != MATRIX:
            raise
        raise SingularHingeError(
            f"the operational inertia of {_named(node)} does not exist in this configuration: "
            "there are directions in which it cannot move. operational_inertia_inverse exists."
        ) from None


def _named(node: Nodes) -> str:
    return repr(node) if isinstance(node, str) else " and ".join(repr(name) for name in node)


def operational_inertia_inverse(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """How nodes yield to forces: acceleration (angular, linear) per force (moment, force).

    Expression:
        J 𝓜⁻¹ J*,   `J @ mass.inv @ J.T`
    with 𝓜 + N for 𝓜 where the mechanism has armature, and rot_W J for J in world axes.

    Derived form:
        B* ψ* H* D⁻¹ H ψ B: O(n) for one node.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        node: Name of a node or body, or several.
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).
    """
    found = kernel(mech, "operational_inertia_inverse", node, frame=frame)
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)
