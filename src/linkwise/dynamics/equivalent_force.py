"""Joint forces that are worth as much as forces at nodes, and those that hold against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linkwise.dynamics.codes import Codes
from linkwise.dynamics.kernels import Status, acting, kernel, node_names, pushed, side_by_side
from linkwise.dynamics.stacked import six_each
from linkwise.dynamics.viewpoint import check, viewpoint
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


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

    Derived form:
        x(k) = Σ_c φ(k,c) x(c) + B(k) f(k), τ(k) = H(k) x(k): one pass from the tips to the base,
        O(n); the Jacobian is not made.

    Args:
        mech: The mechanism; loops and couplings are left open.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        frame: Axes of `forces`: those of each "node", of the "world", or of any node or body by its
            name.
        about: The point that `forces` are about instead: the origin of any node or body, or of the
            "world".
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        forces: Forces that act on the mechanism from outside, by node: (moment, force), (6,) or
            (batch, 6) [N m, N], about the node's origin.
        frame: Axes of `forces`: those of each "node", of the "world", or of any node or body by its
            name.
        about: The point that `forces` are about instead: the origin of any node or body, or of the
            "world".
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
    if about is None and (frame == "node" or frame == "world"):
        return pushed(mech, name, {"q": q}, forces, frame, options)
    check(mech, frame, about)
    nodes = node_names(tuple(forces)) if acting(forces) else ()
    stacked = side_by_side(forces, nodes)
    codes = Codes(options.get("status"), q, stacked)
    at = viewpoint(mech, q, nodes, frame, about, codes)
    f = at.to_node(six_each(stacked)).reshape(*codes.lead, 6 * len(nodes))
    if codes.lead != ():
        f[codes.bad] = 0.0  # of these the poses have told already
    found = kernel(mech, name, nodes, frame="world")
    asked = {key: options[key] for key in ("out", "threads")}
    return codes.told(codes.run(found, q, f, **asked))
