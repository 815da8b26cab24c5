"""Poses of bodies and nodes, their velocities, and Jacobians with their rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast

import numpy as np

from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import (
    BatchOptions,
    Nodes,
    Options,
    begun,
    check_mechanism,
    kernel,
    named,
    no_call,
    node_names,
    written,
)
from linkwise.dynamics.quantity import Frame, expression
from linkwise.dynamics.viewpoint import by_node, motion, viewed, viewpoint
from linkwise.errors import ModelError, ShapeError
from linkwise.model.body import Node
from linkwise.model.derived import replaced
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose, trusted_pose
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, cross_velocity_matrix, six

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

Side: TypeAlias = Literal["rows", "columns"]

# ----------------------------------------------------------------------------------------- poses


@begins_bare("node")
def forward_kinematics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes | None = None,
    **options: Unpack[Options],
) -> Pose:
    """Poses in the world, of all bodies or of the named nodes.

    Expression:
        X for the bodies, X_B for nodes,   X(k) = X(p) X_pk(q(k)): one pass, O(n).

    Args:
        node: Name of a node or body, or several; default: all bodies, in their order.
        out: Array (..., 3, 4) for the rows of (rot | p), of which the result is a view.

    Returns:
        One pose for the name of one node, else a stack of k poses; for a batch with (batch,) in
        front: `rot` (batch, k, 3, 3), `p` (batch, k, 3) [m].
    """
    if isinstance(node, str):
        keep_bare_call(mech, "forward_kinematics", node, _pose_call(mech, node))
    if node is None:
        poses = named(mech, "body_poses")
        each: tuple[int, ...] = (mech.n_bodies, 3, 4)
    else:
        poses = kernel(mech, "node_poses", node)
        each = (3, 4) if isinstance(node, str) else (len(node), 3, 4)
    if options.get("out") is not None:
        options["out"] = _flat(cast("Array", options.get("out")), each)
    result: Array = poses(q, **options)
    rows = result.reshape(each if result.ndim == 1 else (len(result), *each))
    return trusted_pose(rows[..., :3], rows[..., 3])


def _pose_call(mech: Mechanism | Embedded, node: str) -> Callable[..., Any]:
    """The bare call for the pose of a node in one state."""
    bare = written(mech, POSE, node).device.fast or no_call

    def one_state(q: ArrayLike) -> Pose | None:
        parts = bare(q)
        return None if parts is None else trusted_pose(*parts)

    return one_state


def _pose(at: Writing) -> Any:
    rows = at.value(expression("node_poses")).reshape(3, 4)
    return rows[:, :3], rows[:, 3]


POSE = Formula(_pose, names=("rot", "p"))


def _flat(out: Array, each: tuple[int, ...]) -> Array:
    """The same memory with the entries of one state side by side."""
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(f"out is a {type(out).__name__}; it must be an array.")
    lead = out.shape[: out.ndim - len(each)]
    if out.shape != (*lead, *each) or not out.flags.c_contiguous:
        shape = ", ".join(str(n) for n in each)
        raise ShapeError(f"out has shape {out.shape}; it must be contiguous, (..., {shape}).")
    return out.reshape(*lead, -1)


def relative_pose(
    mech: Mechanism, q: ArrayLike, node: Nodes, seen_from: str, **options: Unpack[BatchOptions]
) -> Pose:
    """Pose of nodes or bodies seen from another one, on any branch, or from the world.

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
        ModelError: Not the name of a node.
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if not isinstance(cast(object, seen_from), str):
        raise ModelError(
            f"seen_from is a {type(seen_from).__name__}; it must be the name of one node or body."
        )
    names = node if isinstance(node, str) else node_names(node)
    rows = _relative_kernel(mech, names, seen_from)(q, **options)
    return trusted_pose(rows[..., :3], rows[..., 3])


@once_per_mechanism
def _relative_kernel(mech: Mechanism, nodes: str | tuple[str, ...], seen_from: str) -> Any:
    check_mechanism(mech)
    mech.node(seen_from)  # raises for an unknown name
    return written(mech, Formula(_relative, (seen_from, isinstance(nodes, str))), nodes)


def _relative(at: Writing, seen_from: str, single: bool) -> Any:
    poses = at.value(expression("node_poses"), nodes=(seen_from, *at.nodes)).reshape(-1, 3, 4)
    back, offset = poses[0, :, :3].T, poses[1:, :, 3] - poses[0, :, 3]
    seen = np.concatenate([back @ poses[1:, :, :3], back @ offset[..., None]], axis=-1)
    return seen[0] if single else seen


def with_hinge_frames(mech: Mechanism) -> Mechanism:
    """The same mechanism with a node on each side of every hinge.

    Node "hinge:O" is the frame O on the body, "hinge:O+" the frame O⁺ on its parent or the world:
    with them poses, velocities, Jacobians and forces at the hinges are those of any other node. A
    mechanism that already has them is returned unchanged.

    Raises:
        ModelError: A node of that name is somewhere else.
    """
    check_mechanism(mech)
    nodes = list(mech.nodes)
    for body in mech.bodies:
        for node in (
            Node(f"{body.hinge_name}:O", body.name, body.outboard.inverse()),
            Node(f"{body.hinge_name}:O+", body.parent, body.inboard),
        ):
            if node.name in mech.body_index:
                raise ModelError(f"body {node.name!r} has the name of a hinge frame; rename it.")
            if node.name not in mech.node_index:
                nodes.append(node)
            elif not _same(mech.node(node.name), node):
                raise ModelError(
                    f"node {node.name!r} is not at that frame of the hinge; remove it first: "
                    f"mech.without({node.name!r})."
                )
    return mech if len(nodes) == len(mech.nodes) else replaced(mech, nodes=tuple(nodes))


def _same(one: Node, other: Node) -> bool:
    apart = np.abs(one.pose.matrix - other.pose.matrix).max()
    return one.body == other.body and bool(apart < 1e-12)


# ---------------------------------------------------------------------- velocities and Jacobians

AS_NAMED = {
    "node_velocity": ("node", "world"),
    "jacobian": ("node", "world"),
    "jacobian_bias": ("node",),
}
"""Functions that are named quantities in these axes, about the origins of nodes."""


def _seen(
    mech: Mechanism | Embedded,
    function: str,
    write: Callable[..., Any],
    node: Nodes,
    frame: str,
    about: str | None,
) -> Kernel:
    """The kernel of a function from any viewpoint."""
    axes = AS_NAMED.get(function, ())
    if about is None and type(frame) is str and frame in axes:
        seen = kernel(mech, function, node, frame=cast("Frame", frame))
    else:
        seen = viewed(mech, write, node, frame, about)
    return begun(mech, function, (node, frame, about), seen)


@begins_bare("node", "frame", "about")
def node_velocity(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """Spatial velocities (angular, linear) of nodes, without their Jacobian.

    Expression:
        J v = B* φ* H* v,   `J @ v`, or `rot_W @ J @ v` in world axes: one pass, O(n).

    Args:
        frame: Axes: those of each "node", of the "world", or of any node or body by its name.
        about: The point whose linear velocity is given, as if it were fixed on the node's body:
            that of any node or body, or the origin of the "world"; default: the node's origin.

    Returns:
        (6 k,) for k nodes, or (batch, 6 k) [rad/s, m/s].
    """
    kernel = _seen(mech, "node_velocity", _velocity_seen, node, frame, about)
    return kernel(q, v, **options)


def _velocity_seen(at: Writing, frame: str, about: str | None) -> Any:
    V = at.value(expression("node_velocity", frame="world"))
    return viewpoint(at, frame, about).moved(by_node(V)).ravel()


@begins_bare("node", "frame", "about")
def jacobian(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """The Jacobian: velocities (angular, linear) of nodes per joint velocity.

    Expression:
        J = B* φ* H*,   `J`, or `rot_W @ J` in world axes.
    Source: 002, "Jacobian Matrix".

    Its transpose takes forces (moment, force) at the nodes to the equivalent joint forces. The
    velocity is always relative to the world, whatever its axes are.

    Args:
        frame: Axes: those of each "node" (as Pinocchio's LOCAL), of the "world" (as its
            LOCAL_WORLD_ALIGNED), or of any node or body by its name.
        about: The point whose linear velocity is given, as if it were fixed on the node's body:
            that of any node or body, or the origin of the "world" (with frame="world" Pinocchio's
            WORLD); default: the node's origin.

    Returns:
        (6 k, nv) for k nodes, or (batch, 6 k, nv).

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    return _seen(mech, "jacobian", jacobian_seen, node, frame, about)(q, **options)


def jacobian_seen(at: Writing, frame: str, about: str | None) -> Any:
    """The Jacobian from any viewpoint, as a formula."""
    J = at.value(expression("jacobian", frame="world"))
    return viewpoint(at, frame, about).moved(by_node(J)).reshape(J.shape)


@begins_bare("node", "frame", "about")
def jacobian_bias(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """J̇ v: the acceleration of nodes while the joint velocities are constant.

    Expression:
        B* φ* A_V v,   `B.T @ phi.T @ A_V @ v`: one pass, O(n), in the axes of the nodes
    where A_V w = V × H* w + Ḣ* w. The rate of change of `node_velocity` is J v̇ + J̇ v with J and J̇
    in the same frame: components are differentiated, so the turning of a frame contributes.

    * "node": the spatial acceleration in the node's axes (Pinocchio's LOCAL).
    * "world": the measurable acceleration of the node's origin, in axes that do not turn; ω × v is
      added to the one above (the classical acceleration of LOCAL_WORLD_ALIGNED).
    * "world" about the "world": the spatial acceleration in the axes of the world (WORLD).

    Gravity is not part of it.

    Args:
        frame: Axes, as for `jacobian`: those of each "node", of the "world", or of any node or body
            by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.

    Returns:
        (6 k,) for k nodes, or (batch, 6 k) [rad/s², m/s²].

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    return _seen(mech, "jacobian_bias", bias_seen, node, frame, about)(q, v, **options)


def bias_seen(at: Writing, frame: str, about: str | None) -> Any:
    """J̇ v, as a formula."""
    moving = motion(at, frame, about)
    rate = at.value(expression("jacobian_bias", frame="world")).reshape(-1, 6)
    rate = six(rate[:, :3], rate[:, 3:] + cross(moving.V[:, :3], moving.V[:, 3:]))
    seen = viewpoint(at, frame, about)
    return moving.rate(seen, by_node(moving.V.ravel()), by_node(rate.ravel())).ravel()


@begins_bare("node", "frame", "about")
def jacobian_dot(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """J̇: the rate of change of the matrix that `jacobian` gives, while the joints move with v.

    Expression:
        J̇ = B* φ* A_V − (V_B ×) J in the axes of the nodes, V_B = J v,
        J̇ = rot_W B* φ* A_V − (0, v_B ×) rot_W J in those of the world
    where A_V w = V × H* w + Ḣ* w. `jacobian_bias` gives J̇ v without the matrix, in one pass.

    Args:
        frame: Axes, as for `jacobian`: those of each "node", of the "world" (as MuJoCo's
            `mj_jacDot`), or of any node or body by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.

    Returns:
        (6 k, nv) for k nodes, or (batch, 6 k, nv).

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    return _seen(mech, "jacobian_dot", jacobian_rate, node, frame, about)(q, v, **options)


def jacobian_rate(at: Writing, frame: str, about: str | None) -> Any:
    """J̇ from any viewpoint, as a formula."""
    axes = "node" if frame == "node" and about is None else "world"
    rows = at.value(expression("jacobian", frame=axes))
    J = by_node(rows)
    part = by_node(at.value(expression("jacobian_dot_part", frame=axes), v=at.v))
    if axes == "node":
        V = at.value(expression("node_velocity")).reshape(-1, 6)
        return (part - cross_velocity_matrix(V) @ J).reshape(rows.shape)
    moving = motion(at, frame, about)
    linear = part[:, 3:] - skew(moving.V[:, 3:]) @ J[:, :3]
    J_dot = np.concatenate([part[:, :3], linear], axis=1)
    return moving.rate(viewpoint(at, frame, about), J, J_dot).reshape(rows.shape)


def jacobian_gram(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    of: Side = "rows",
    frame: str = "node",
    about: str | None = None,
    **options: Unpack[Options],
) -> Array:
    """J J* or J* J: the products of a Jacobian with its transpose, without the Jacobian.

    Expression:
        J J* = B* φ* H* H φ B,   `J @ J.T`, of the rows;
        J* J = H φ B B* φ* H*,   `J.T @ J`, of the columns.

    J J* is singular where the nodes cannot move in all directions, and √det J J* measures the
    distance from such a configuration (manipulability). J* J would be the mass matrix if the nodes
    carried unit spatial inertias and the bodies none. Both add squares of rad and of m: they depend
    on the unit of length, and on the point.

    Args:
        of: "rows" for J J*, "columns" for J* J.
        frame: Axes, as for `jacobian`; J* J is the same in all.
        about: The point, as for `jacobian`.

    Returns:
        (6 k, 6 k) for the rows of k nodes, (nv, nv) for the columns; or with (batch,) in front.

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if of not in ("rows", "columns"):
        raise ModelError(f"of is {of!r}; it must be 'rows' for J J* or 'columns' for J* J.")
    if about is None and of == "columns" and frame in ("node", "world"):
        frame = "node"  # axes make no difference
    if about is None and (frame == "node" or frame == "world"):
        return kernel(mech, f"jacobian_gram_of_{of}", node, frame=frame)(q, **options)
    formula = _gram_of_rows if of == "rows" else _gram_of_columns
    return viewed(mech, formula, node, frame, about)(q, **options)


def _gram_of_rows(at: Writing, frame: str, about: str | None) -> Any:
    J = jacobian_seen(at, frame, about)
    return J @ J.T


def _gram_of_columns(at: Writing, frame: str, about: str | None) -> Any:
    J = jacobian_seen(at, frame, about)
    return J.T @ J
