"""Operational-space inertia: what a hand feels like when it is pushed."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import floats
from linkwise.codegen.scalar.status import FINE, MATRIX
from linkwise.dynamics.kernels import Nodes, Status, check_mechanism, kernel, node_names, put
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.operational_space import OperationalSpace, operational_space, reach
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ExpressionError, ModelError, RankWarning
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

HEAVY = 1e7
"""How many times the mass of the whole mechanism is more than a hand ever weighs."""


def operational_inertia(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The inertia felt at nodes: force (moment, force) per acceleration (angular, linear).

    Expression:
        Λ = (J 𝓜⁻¹ J*)⁻¹,   `(J @ mass.inv @ J.T).inv`
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes.

    Derived form, 3 passes:
        (B* ψ* H* D⁻¹ H ψ B)⁻¹

    Where the nodes cannot move in all directions, for want of freedoms or at a singular
    configuration, the result is the pseudo-inverse: right for all motions that exist, zero for what
    is none. A warning tells the rank; `operational_space` gives it as a number, with the directions
    that are lost, and without a warning. Loops and couplings are held:
    `lw.loops.effective_inertia`.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        status: int32 (batch,), or () for one state: receives a code for each state, 0 where all is
            well and 3 where the rank is not full; then there is no warning.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, and a warning or `status` tells.
    """
    check_mechanism(mech)
    if is_closed(mech, loops):
        space = operational_space(mech, q, node, frame=frame)
        lost = np.asarray(space.rank) < space.inertia.shape[-1]
        if status is not None:
            status[...] = np.where(lost, MATRIX, FINE)
        elif lost.any():
            _tell(space, lost)
        return put(space.inertia, out)
    check_frame(frame)
    mech, names = tree_of(mech), node_names(node)
    if not names:
        raise ModelError("the operational inertia of no node was asked for; name at least one.")
    found = _regular(mech, node if isinstance(node, str) else names, frame)
    if found is not None and found.quick is not None and out is status is threads is None:
        result = found.quick(q)  # most calls: one state that is far from a singular one
        if result is not None and result.max() < _heavy(mech, names):
            return result
    inside = kernel(mech, "operational_inertia_inverse", node, frame=frame)
    lead = floats(q, "q").shape[:-1]
    codes = np.zeros(lead, dtype=np.int32) if status is None else status
    result = (found or inside)(q, out=out, status=codes, threads=threads)
    if found is None:
        codes[codes == FINE] = MATRIX
    heavy = result.max(axis=(-1, -2), initial=0.0) > _heavy(mech, names)
    singular = (codes == MATRIX) | ((codes == FINE) & heavy)
    if singular.any():
        rows = np.asarray(q, dtype=np.float64)
        space = operational_space(mech, rows[singular] if lead else rows, node, frame=frame)
        result[singular] = space.inertia
        codes[singular] = np.where(np.asarray(space.rank) == result.shape[-1], FINE, MATRIX)
        if status is None and (codes == MATRIX).any():
            _tell(space, codes == MATRIX)
    if status is None and ((codes != FINE) & (codes != MATRIX)).any():
        inside(q)  # raises, or warns, about what has nothing to do with the rank
    return result


@once_per_mechanism
def _heavy(mech: Mechanism | Embedded, nodes: tuple[str, ...]) -> float:
    """An inertia [kg, kg m²] that only directions have which are about to be lost.

    The small dense inverse loses a digit with each one that Λ gains; from here on the inertia comes
    from `operational_space`, which loses half as many.
    """
    length = reach(mech, nodes)
    whole = mech.total_mass + float(mech.armature.sum()) / length**2
    return HEAVY * whole * min(1.0, length**2) or np.inf


@once_per_mechanism
def _regular(
    mech: Mechanism | Embedded, node: str | tuple[str, ...], frame: Frame
) -> Kernel | None:
    """The kernel for full rank; None where no configuration has it."""
    if mech.nv < 6 * len(node_names(node)):
        return None
    try:
        return kernel(mech, "operational_inertia", node, frame=frame)
    except ExpressionError:
        return None


def _tell(space: OperationalSpace, singular: NDArray[np.bool_]) -> None:
    """Warn of the ranks that are not full."""
    count, first = int(singular.sum()), space
    if space.inertia.ndim == 3:
        below = np.flatnonzero(np.asarray(space.rank) < space.inertia.shape[-1])
        first = space[int(below[0])]
    where = (
        "here"
        if not singular.ndim
        else f"in row {int(np.argmax(singular))}, and less than full in {count} of {singular.size}"
    )
    warnings.warn(
        f"the operational inertia of {' and '.join(map(repr, space.nodes))} has rank {first.rank} "
        f"of {len(first.inertia)} {where}: {', '.join(first.lost_in_words())}. The result is right "
        "for the motions that exist; lw.operational_space tells which, and does not warn.",
        RankWarning,
        stacklevel=3,
    )


def operational_inertia_inverse(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    loops: Loops = "closed",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """How nodes yield to forces: acceleration (angular, linear) per force (moment, force).

    Expression:
        J 𝓜⁻¹ J*,   `J @ mass.inv @ J.T`
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes.

    Derived form, 2 passes, O(n) for one node:
        B* ψ* H* D⁻¹ H ψ B

    Loops and couplings are held: then it is `lw.loops.effective_inertia_inverse`.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).
    """
    check_mechanism(mech)
    if is_closed(mech, loops):
        return put(operational_space(mech, q, node, frame=frame, status=status).inverse, out)
    found = kernel(tree_of(mech), "operational_inertia_inverse", node, frame=frame)
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)
