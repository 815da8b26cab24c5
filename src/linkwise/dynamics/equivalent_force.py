"""Joint forces that are worth as much as forces at nodes, and those that hold against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from linkwise.dynamics.kernels import Status, acting, pushed, pushed_nodes
from linkwise.dynamics.quantity import FRAMES, Frame, expression
from linkwise.dynamics.viewpoint import viewed, viewpoint
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def equivalent_force(
    mech: Mechanism,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    *,
    frame: str = "node",
    about: str | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces that move the mechanism as forces at its nodes would.

    Expression:
        J* f = H φ B f,   `J.T @ f`

    Derived form, 1 pass, O(n), without J:
        H φ B f

    Args:
        mech: The mechanism; loops and couplings are left open.
        frame: Axes of `forces`: those of each "node", of the "world", or of any node or body by its
            name.
        about: The point that `forces` are about instead: the origin of any node or body, or of the
            "world".

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m].

    Raises:
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    options = {"out": out, "status": status, "threads": threads}
    return _of_forces(mech, "equivalent_force", q, forces, frame, about, options)


def compensating_force(
    mech: Mechanism,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    *,
    frame: str = "node",
    about: str | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Joint forces that hold against forces at nodes: together they cause no acceleration.

    Expression:
        −J* f = −H φ B f,   `-(J.T @ f)`, in one pass from the tips to the base, O(n).
    Source: 002, "O(N) compensating torque computation".
    Departs: the document prints +J* f, for forces that act on the mechanism; that is what they are
    worth (`equivalent_force`), and holds only with forces that the mechanism exerts.

    Args:
        mech: The mechanism; loops and couplings are left open.
        frame: Axes of `forces`: those of each "node", of the "world", or of any node or body by its
            name.
        about: The point that `forces` are about instead: the origin of any node or body, or of the
            "world".

    Returns:
        Joint forces (nv,) or (batch, nv) [N or N m], to be added to those of the motion.

    Raises:
        ShapeError: An array does not fit; says which.
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    options = {"out": out, "status": status, "threads": threads}
    return _of_forces(mech, "compensating_force", q, forces, frame, about, options)


def _of_forces(
    mech: Mechanism,
    name: str,
    q: ArrayLike,
    forces: Mapping[str, ArrayLike],
    frame: str,
    about: str | None,
    options: Mapping[str, Any],
) -> Array:
    found = None
    if acting(forces) and (about is not None or frame not in FRAMES):
        found = viewed(mech, _SEEN[name], pushed_nodes(forces), frame, about)
    return pushed(mech, name, {"q": q}, forces, cast("Frame", frame), options, found)


def _equivalent(at: Writing, frame: str, about: str | None) -> Any:
    f = at.read("f", 6 * len(at.nodes)).reshape(-1, 6)
    in_world = viewpoint(at, frame, about).to_node(f).ravel()
    return at.value(expression("equivalent_force", frame="world"), f=in_world)


def _compensating(at: Writing, frame: str, about: str | None) -> Any:
    return -_equivalent(at, frame, about)


_SEEN = {"equivalent_force": _equivalent, "compensating_force": _compensating}
