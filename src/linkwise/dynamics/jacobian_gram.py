"""Products of a Jacobian with its own transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from linkwise.dynamics.kernels import Nodes, Status, kernel
from linkwise.dynamics.kinematics import jacobian_seen
from linkwise.dynamics.viewpoint import viewed
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

Side: TypeAlias = Literal["rows", "columns"]


def jacobian_gram(
    mech: Mechanism,
    q: ArrayLike,
    node: Nodes,
    *,
    of: Side = "rows",
    frame: str = "node",
    about: str | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """J J* or J* J: the products of a Jacobian with itself, without the Jacobian.

    Expression:
        J J* = B* φ* H* H φ B,   `J @ J.T`, of the rows;
        J* J = H φ B B* φ* H*,   `J.T @ J`, of the columns.

    J J* is singular where the nodes cannot move in all directions, and √det J J* measures how far
    from it a configuration is (manipulability). J* J would be the mass matrix if the nodes carried
    unit spatial inertias and the bodies none. Both add squares of rad and of m: they depend on the
    unit of length, and on the point.

    Args:
        mech: The mechanism; loops and couplings are left open.
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
        found = kernel(mech, f"jacobian_gram_of_{of}", node, frame=frame)
    else:
        found = viewed(mech, _of_rows if of == "rows" else _of_columns, node, frame, about)
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)


def _of_rows(at: Writing, frame: str, about: str | None) -> Any:
    J = jacobian_seen(at, frame, about)
    return J @ J.T


def _of_columns(at: Writing, frame: str, about: str | None) -> Any:
    J = jacobian_seen(at, frame, about)
    return J.T @ J
