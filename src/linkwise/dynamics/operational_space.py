"""Operational space where it may be singular: which motions of nodes exist, and their inertia.

The motions a set of nodes can have are the range of J, whatever the masses are. With orthonormal U
that span it, the inertia of those motions is

    Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U*,      the pseudo-inverse of J 𝓜⁻¹ J*.

J 𝓜⁻¹ J* = A* A with the whitened Jacobian A = D^(-½) H ψ B, one sweep from the tips to the base;
from it Λ is found without squaring anything (`motion_space.py`).

Rank is decided by the singular values of J with turning measured at a length: angular rows times
`length`, so that all rows are in metres. The rank, the span of U and Λ on it do not depend on it as
long as what is lost is lost exactly; it matters for what is called small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import J, mass, rot_W
from linkwise.algebra.symbols import articulated
from linkwise.arguments import number, row
from linkwise.codegen.formula import Formula
from linkwise.dynamics.hinge_root import root_of
from linkwise.dynamics.kernels import Nodes, Status, check_mechanism, kernel, node_names, written
from linkwise.dynamics.loops import Loops, is_closed, tree_of
from linkwise.dynamics.lost_motion import lost_in_words
from linkwise.dynamics.motion_space import motion_space, motions
from linkwise.dynamics.quantity import Frame, check_frame
from linkwise.errors import ModelError, ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

TOLERANCE = 1e-10
"""Motions below this fraction of the easiest one are called lost: rounding of J is about 1e-15."""

_AXES = {"node": "its own axes", "world": "the world"}


@dataclass(frozen=True, slots=True)
class OperationalSpace:
    """The motions of nodes that exist in a state, and the inertia they have.

    For a batch every array has the batch in front, and `space[i]` is one state of it.

    Attributes:
        nodes: Names of the nodes, k of them.
        frame: Axes of all: those of the "node"s or of the "world".
        inertia: Λ (6 k, 6 k): force (moment, force) per acceleration (angular, linear), zero for
            what is not a motion.
        inverse: J 𝓜⁻¹ J* (6 k, 6 k).
        rank: How many independent motions there are; an array for a batch.
        basis: Orthonormal columns (6 k, 6 k): the first `rank` of them are `directions`, the others
            `lost`.
        singular_values: Of J with turning measured at `length` (6 k,), the largest first [m].
        condition: Largest inertia over smallest, of the motions that exist, with turning measured
            at `length`: large near a singularity, 1 where all motions are alike.
        length: The length at which turning is compared with moving [m].
    """

    nodes: tuple[str, ...]
    frame: Frame
    inertia: Array
    inverse: Array
    rank: int | NDArray[np.int64]
    basis: Array
    singular_values: Array
    condition: float | Array
    length: float

    @property
    def directions(self) -> Array:
        """Motions that exist (6 k, rank): an orthonormal basis of the range of J."""
        return self._one().basis[:, : int(self.rank)]

    @property
    def lost(self) -> Array:
        """What is missing (6 k, 6 k - rank): an orthonormal basis of the kernel of J*.

        No motion has a component along it; a force along it moves nothing.
        """
        return self._one().basis[:, int(self.rank) :]

    def __len__(self) -> int:
        if self.inertia.ndim == 2:
            raise ShapeError("this is the operational space of one state; it has no length.")
        return len(self.inertia)

    def __getitem__(self, i: int) -> OperationalSpace:
        """One state of a batch."""
        i = row(i, None if self.inertia.ndim == 2 else len(self.inertia), "this operational space")
        parts = (self.inertia[i], self.inverse[i], int(np.asarray(self.rank)[i]), self.basis[i])
        rest = (self.singular_values[i], float(np.asarray(self.condition)[i]), self.length)
        return OperationalSpace(self.nodes, self.frame, *parts, *rest)

    def __str__(self) -> str:
        if self.inertia.ndim == 3:
            return f"operational space of {_listed(self.nodes)}, {len(self)} states"
        size = len(self.inertia)
        told = f"operational space of {_listed(self.nodes)}: rank {self.rank} of {size}"
        if self.rank == size:
            return f"{told}, condition {self.condition:.3g}"
        return f"{told}, condition {self.condition:.3g}; " + ", ".join(self.lost_in_words())

    def lost_in_words(self) -> list[str]:
        """What the nodes cannot do: along axes by name, the rest by components or by number."""
        return lost_in_words(self.lost, self.nodes, [_AXES[self.frame]] * len(self.nodes))

    def _one(self) -> OperationalSpace:
        if self.inertia.ndim == 3:
            raise ShapeError(
                f"this is the operational space of {len(self)} states, with ranks of their own; "
                "choose one of them first: space[0]."
            )
        return self


def operational_space(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    length: float | None = None,
    tolerance: float = TOLERANCE,
    loops: Loops = "closed",
    status: Status | None = None,
    threads: int | None = None,
) -> OperationalSpace:
    """The motions of nodes that exist, their inertia, and what is lost.

    Expression:
        Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U*,  U an orthonormal basis of the range of J
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes.

    It exists always: for arms of fewer than six freedoms, at singular configurations, for nodes
    that are bound to each other. Near a singularity Λ is large in the direction that goes away, and
    `condition` tells; below `tolerance` the direction is called lost.

    Loops and couplings are held: then it is `lw.loops.effective_space`.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        length: Where turning is compared with moving [m]: an angular velocity counts as the speed
            it makes at that distance. By default the reach of the mechanism at the nodes.
        tolerance: Singular values of J below this fraction of the largest are called zero.

    Raises:
        ModelError: The length or the tolerance is not a positive number.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN and its rank 0 instead, and a warning or `status` tells.
    """
    check_mechanism(mech)
    nodes = node_names(node)
    if not nodes:
        raise ModelError("the operational space of no node was asked for; name at least one.")
    length = number(reach(mech, nodes) if length is None else length, "length", above=0.0)
    tolerance = number(tolerance, "tolerance", above=0.0)
    if is_closed(mech, loops):
        from linkwise.dynamics.effective_inertia import effective_space

        found = effective_space(mech, q, node, frame=frame, length=length, tolerance=tolerance)
        if status is not None:
            status[...] = 0
        return found
    mech = tree_of(mech)
    if isinstance(mech, Embedded):
        return _of_aggregates(mech, q, nodes, frame, length, tolerance, status, threads)
    check_frame(frame)
    given = (q, np.array([length]), np.array([tolerance]))
    kernel = written(mech, SPACE[frame], nodes)
    if status is threads is None:
        parts = kernel(*given)
    else:
        parts = kernel(*given, status=status, threads=threads)
    return OperationalSpace(nodes, frame, **ranked(parts), length=length)


def ranked(parts: dict[str, Any]) -> dict[str, Any]:
    """Results of a kernel with the rank as a whole number, 0 for a state in trouble."""
    rank, condition = parts["rank"], parts["condition"]
    if not rank.ndim:
        return parts | {"rank": int(rank) if rank == rank else 0, "condition": float(condition)}
    return parts | {"rank": np.nan_to_num(rank).astype(np.int64)}


def space(at: Writing, frame: Frame) -> Any:
    """The formula: Λ, J 𝓜⁻¹ J*, rank, basis, singular values and condition."""
    of_nodes = rot_W @ J if frame == "world" else J
    columns, jacobian, inverse = at.value(
        articulated.whitening @ of_nodes.T, of_nodes, of_nodes @ mass.inv @ of_nodes.T
    )
    (length,), (tolerance,) = at.read("length", 1), at.read("tolerance", 1)
    scale = np.tile(np.array([length] * 3 + [1.0] * 3, dtype=object), len(at.nodes))
    found = motions(at, jacobian, root_of(at).solved(columns).T, scale, tolerance, 0.0)
    rest = (found.rank, found.basis, found.singular_values, found.condition)
    return found.inertia, inverse, *rest


RESULTS = ("inertia", "inverse", "rank", "basis", "singular_values", "condition")
SPACE: dict[Frame, Formula] = {
    "node": Formula(space, ("node",), RESULTS),
    "world": Formula(space, ("world",), RESULTS),
}


def _of_aggregates(
    mech: Embedded,
    q: ArrayLike,
    nodes: tuple[str, ...],
    frame: Frame,
    length: float,
    tolerance: float,
    status: Status | None,
    threads: int | None,
) -> OperationalSpace:
    """The same where loops are built in: the blocks of D differ in size, so by the root of 𝓜."""
    inside = kernel(mech, "operational_inertia_inverse", nodes, frame=frame)
    inverse = inside(q, status=status, threads=threads)
    rows, single = np.atleast_2d(np.asarray(q, dtype=np.float64)), inverse.ndim == 2
    inverse = inverse[None] if single else inverse
    fine = np.asarray(np.isfinite(inverse).all(axis=(1, 2)), dtype=np.bool_)
    jacobian = kernel(mech, "jacobian", nodes, frame=frame)(rows[fine])
    mass: Array = kernel(mech, "mass_matrix")(rows[fine])
    root = np.linalg.cholesky(mass)
    A = np.asarray(np.linalg.solve(root, np.swapaxes(jacobian, 1, 2)), dtype=np.float64)
    scale = np.tile([length] * 3 + [1.0] * 3, len(nodes))
    found = motion_space(jacobian, np.swapaxes(A, 1, 2), scale, tolerance).spread(fine)
    rest = (found.rank, found.basis, found.singular_values, found.condition, length)
    whole = OperationalSpace(nodes, frame, found.inertia, inverse, *rest)
    return whole[0] if single else whole


def reach(mech: Mechanism | Embedded, nodes: Sequence[str]) -> float:
    """The way along the bodies from the ground to the farthest of the nodes [m], 1 if it is zero.

    It does not depend on q; hinges that slide add nothing.
    """
    return _reach(mech.mech if isinstance(mech, Embedded) else mech, tuple(nodes))


@once_per_mechanism
def _reach(mech: Mechanism, nodes: tuple[str, ...]) -> float:
    found = 0.0
    for name in nodes:
        node = mech.node(name)
        way, k = float(np.linalg.norm(node.pose.p)), mech.body_index[node.body]
        while k >= 0:
            body, p = mech.bodies[k], int(mech.parent[k])
            way += float(np.linalg.norm(body.outboard.p))
            way += float(np.linalg.norm(body.inboard.p)) if p >= 0 else 0.0
            k = p
        found = max(found, way)
    return found or 1.0


def _listed(nodes: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in nodes)
