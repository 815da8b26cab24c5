"""Operational space: the motions that nodes can have, and the inertia felt at them.

The motions that a set of nodes can have are the range of J, whatever the masses are. With
orthonormal U that span it, the inertia of those motions is

    Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U*,      the pseudo-inverse of J 𝓜⁻¹ J*.

J 𝓜⁻¹ J* = A* A with the whitened Jacobian A = D^(-½) H ψ B, one sweep from the tips to the base;
from it Λ is computed without squaring anything (`motion_space.py`).

Rank is decided by the singular values of J with turning measured at a length: angular rows times
`length`, so that all rows are in metres. The rank, the span of U and Λ on it do not depend on it if
directions are lost exactly; it matters for those that are nearly lost.

With loops and couplings held, forces at nodes meet the inertia of everything that has to move
along. With J_c the Jacobian of the constraints,

    Λ_c⁻¹ = J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J* = A* (I - Q Q*) A,      A_c = Q T,

A_c being J_c whitened like A: again nothing is squared before it is inverted, and nothing large is
subtracted. Redundant rows of J_c are left out first. Source: 000 (5.11) and section 6.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from linkwise.algebra import J, mass, rot_W
from linkwise.algebra.symbols import articulated
from linkwise.arguments import number, row
from linkwise.bare_call import begins_bare
from linkwise.codegen.formula import Formula
from linkwise.codegen.scalar.orthogonal import solved, triangle_of
from linkwise.codegen.scalar.status import FINE, MATRIX
from linkwise.dynamics.held_motion import held_inputs, held_motion, loops_of, usual_rows
from linkwise.dynamics.kernels import (
    BatchOptions,
    Loops,
    Nodes,
    Options,
    begun,
    check_mechanism,
    is_closed,
    kernel,
    no_call,
    node_names,
    put,
    tree_of,
    written,
)
from linkwise.dynamics.mass_root import root_of
from linkwise.dynamics.motion_space import lost_in_words, motions
from linkwise.dynamics.quantity import Frame, check_frame, expression
from linkwise.dynamics.velocity_space import reach, scale
from linkwise.errors import ExpressionError, ModelError, RankWarning, ShapeError, caller
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import keep_bare_call, once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.choice import maximum

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel
    from linkwise.codegen.writing import Writing

TOLERANCE = 1e-10
"""Motions below this fraction of the easiest one count as lost: rounding of J is about 1e-15."""

HEAVY = 1e7
"""Times the mass of the mechanism: more than any hand weighs away from a singularity."""

_AXES = {"node": "its own axes", "world": "the world"}


@dataclass(frozen=True, slots=True)
class OperationalSpace:
    """The motions of nodes that exist in a state, and the inertia they have.

    For a batch every array has the batch in front, and `space[i]` is one state of it.

    Attributes:
        nodes: Names of the nodes, k of them.
        frame: Axes of all: those of each "node" or of the "world".
        inertia: Λ (6 k, 6 k): force (moment, force) per acceleration (angular, linear), zero along
            directions without motion.
        inverse: J 𝓜⁻¹ J* (6 k, 6 k).
        rank: Number of independent motions; an array for a batch.
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
        """Motions that are lost (6 k, 6 k - rank): an orthonormal basis of the kernel of J*.

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

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        if self.inertia.ndim == 3:
            return f"operational space of {_listed(self.nodes)}, {len(self)} states"
        size = len(self.inertia)
        text = f"operational space of {_listed(self.nodes)}: rank {self.rank} of {size}"
        text = f"{text}, condition {self.condition:.3g}"
        return text if self.rank == size else f"{text}; " + ", ".join(self.lost_in_words())

    def lost_in_words(self) -> list[str]:
        """The motions that the nodes lack: along axes by name, the rest by components or number."""
        return lost_in_words(self.lost, self.nodes, [_AXES[self.frame]] * len(self.nodes))

    def _one(self) -> OperationalSpace:
        if self.inertia.ndim == 3:
            raise ShapeError(
                f"this is the operational space of {len(self)} states, whose ranks may differ; "
                "select one of them first: space[0]."
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
    **options: Unpack[BatchOptions],
) -> OperationalSpace:
    """The motions of nodes that exist, their inertia, and the directions that are lost.

    Expression:
        Λ = U (U* J 𝓜⁻¹ J* U)⁻¹ U*,  U an orthonormal basis of the range of J
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes. With loops and
    couplings held,
        Λ_c = U (U* Λ_c⁻¹ U)⁻¹ U*,  Λ_c⁻¹ = J (𝓜⁻¹ - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c 𝓜⁻¹) J*
        and U an orthonormal basis of the motions that they leave.
    Source: 000 (5.11) and section 6 for closed chains.

    It always exists: for arms with fewer than six degrees of freedom, at singular configurations,
    for nodes that are bound to each other. Near a singularity Λ is large in the direction that
    vanishes, and so is `condition`; below `tolerance` the direction counts as lost.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        length: The distance at which turning is compared with moving [m]: an angular velocity
            counts as the speed it makes there; default: the reach of the mechanism at the nodes.
        tolerance: Singular values of J below this fraction of the largest count as zero; with
            loops, of the largest of the open mechanism.

    Raises:
        ModelError: The length or the tolerance is not a positive number.
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN and its rank 0 instead, reported by a warning or by `status`.
    """
    check_mechanism(mech)
    nodes = node_names(node)
    if not nodes:
        raise ModelError("operational_space needs a node, and none was given; name at least one.")
    length = number(reach(mech, nodes) if length is None else length, "length", above=0.0)
    tolerance = number(tolerance, "tolerance", above=0.0)
    check_frame(frame)
    given: dict[str, Any] = {"length": np.array([length]), "tolerance": np.array([tolerance])}
    if is_closed(mech, loops):
        formula = written(mech, _held_space(frame, usual_rows(mech, q)), nodes)
        given |= held_inputs(mech, formula, q)
    else:
        mech = tree_of(mech)
        table = EMBEDDED_SPACE if isinstance(mech, Embedded) else SPACE
        formula = written(mech, table[frame], nodes)
    given["q"] = q
    parts = formula(*[given[name] for name, _ in formula.device.inputs], **options)
    return OperationalSpace(nodes, frame, **ranked(parts), length=length)


def ranked(parts: dict[str, Any]) -> dict[str, Any]:
    """Results of a kernel with the rank made an integer, 0 for a state that failed."""
    rank = parts["rank"]
    if rank.ndim:
        parts["rank"] = np.nan_to_num(rank).astype(np.int64)
        return parts
    rank, condition = float(rank), float(parts["condition"])
    parts["rank"], parts["condition"] = int(rank) if rank == rank else 0, condition
    return parts


def space(at: Writing, frame: Frame) -> Any:
    """The formula: Λ, J 𝓜⁻¹ J*, rank, basis, singular values and condition."""
    of_nodes = rot_W @ J if frame == "world" else J
    columns, jacobian, inverse = at.value(
        articulated.whitening @ of_nodes.T, of_nodes, of_nodes @ mass.inv @ of_nodes.T
    )
    (length,), (tolerance,) = at.read("length", 1), at.read("tolerance", 1)
    measure = np.tile(np.array([length] * 3 + [1.0] * 3, dtype=object), len(at.nodes))
    space = motions(at, jacobian, root_of(at).solved(columns).T, measure, tolerance, 0.0)
    rest = (space.rank, space.basis, space.singular_values, space.condition)
    return space.inertia, inverse, *rest


def held_space(at: Writing, frame: Frame, usual: tuple[int, ...]) -> Any:
    """The same with loops and couplings held; singular values count in units of the open tree."""
    J_n = at.value(rot_W @ J if frame == "world" else J)
    held = held_motion(at, J_n, loops_of(at, usual))
    (length,), (tolerance,) = at.read("length", 1), at.read("tolerance", 1)
    measure = np.tile(np.array([length] * 3 + [1.0] * 3, dtype=object), len(at.nodes))
    opened = measure[:, None] * J_n * scale(at.mech).columns
    space = motions(at, held.allowed, held.whitened, measure, tolerance, 0.0, opened)
    rest = (space.rank, space.basis, space.singular_values, space.condition)
    return space.inertia, held.whitened @ held.whitened.T, *rest


def embedded_space(at: Writing, frame: Frame) -> Any:
    """The same where loops are built in: the blocks of D differ in size, so by the root of 𝓜."""
    J_n = at.value(rot_W @ J if frame == "world" else J)
    A = solved(triangle_of(at.value(mass)), J_n.T).T
    (length,), (tolerance,) = at.read("length", 1), at.read("tolerance", 1)
    measure = np.tile(np.array([length] * 3 + [1.0] * 3, dtype=object), len(at.nodes))
    space = motions(at, J_n, A, measure, tolerance, 0.0)
    rest = (space.rank, space.basis, space.singular_values, space.condition)
    return space.inertia, A @ A.T, *rest


RESULTS = ("inertia", "inverse", "rank", "basis", "singular_values", "condition")
FRAMES: tuple[Frame, ...] = ("node", "world")
SPACE = {frame: Formula(space, (frame,), RESULTS) for frame in FRAMES}
EMBEDDED_SPACE = {frame: Formula(embedded_space, (frame,), RESULTS) for frame in FRAMES}


@cache
def _held_space(frame: Frame, usual: tuple[int, ...]) -> Formula:
    return Formula(held_space, (frame, usual), RESULTS)


def _listed(nodes: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in nodes)


@begins_bare("node", "frame")
def operational_inertia(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """The inertia felt at nodes: force (moment, force) per acceleration (angular, linear).

    Expression:
        Λ = (J 𝓜⁻¹ J*)⁻¹,   `(J @ mass.inv @ J.T).inv`
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes.

    Derived form, 3 passes:
        (B* ψ* H* D⁻¹ H ψ B)⁻¹

    Where the nodes cannot move in all directions, for lack of joints or at a singular
    configuration, the result is the pseudo-inverse: right for all motions that exist, zero along
    the others. A warning reports the rank; `operational_space` gives it as a number, with the lost
    directions, and without a warning.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.
        status: An int32 array (batch,), or () for one state, that receives a code for each state:
            0 means success, 3 that the rank is not full; then there is no warning.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).

    Raises:
        SingularHingeError: Nothing resists the hinge of some body, which is named. In a batch its
            row is NaN instead, reported by a warning or by `status`.
    """
    check_mechanism(mech)
    status = options.get("status")
    if is_closed(mech, loops):
        space = operational_space(mech, q, node, frame=frame, status=status)
        lost = np.asarray(space.rank) < space.inertia.shape[-1]
        lost &= np.isfinite(space.inertia).all(axis=(-1, -2))
        if status is not None:
            status[lost] = MATRIX
        elif lost.any():
            _warn(space, lost)
        return put(space.inertia, options.get("out"))
    check_frame(frame)
    mech, names = tree_of(mech), node_names(node)
    if not names:
        raise ModelError("operational_inertia needs a node, and none was given; name at least one.")
    keep_bare_call(mech, "operational_inertia", (node, frame), _one_state(mech, names, frame))
    regular = _regular(mech, node if isinstance(node, str) else names, frame)
    inverse = kernel(mech, "operational_inertia_inverse", node, frame=frame)
    lead = floats(q, "q").shape[:-1]
    codes = np.zeros(lead, dtype=np.int32) if status is None else status
    result = (regular or inverse)(q, **{**options, "status": codes})
    if regular is None:
        codes[codes == FINE] = MATRIX
    heavy = result.max(axis=(-1, -2), initial=0.0) > _heavy(mech, names)
    singular = (codes == MATRIX) | ((codes == FINE) & heavy)
    if singular.any():
        rows = np.asarray(q, dtype=np.float64)
        space = operational_space(mech, rows[singular] if lead else rows, node, frame=frame)
        result[singular] = space.inertia
        codes[singular] = np.where(np.asarray(space.rank) == result.shape[-1], FINE, MATRIX)
        if status is None and (codes == MATRIX).any():
            _warn(space, codes == MATRIX)
    if status is None and ((codes != FINE) & (codes != MATRIX)).any():
        inverse(q)  # raises, or warns, for reasons other than the rank
    return result


@once_per_mechanism
def _one_state(
    mech: Mechanism | Embedded, names: tuple[str, ...], frame: Frame
) -> Callable[..., Array | None]:
    """The bare call for Λ in one state, which is far from a singular one; otherwise None."""
    if mech.nv < 6 * len(names):
        return no_call
    try:
        made = written(mech, Formula(_with_largest, (frame,), ("inertia", "largest")), names)
    except ExpressionError:
        return no_call
    bare, heavy = made.device.fast or no_call, _heavy(mech, names)

    def one_state(q: ArrayLike) -> Array | None:
        result = bare(q)
        return result[0] if result is not None and result[1][0] < heavy else None

    return one_state


def _with_largest(at: Writing, frame: Frame) -> Any:
    inertia: Any = at.value(expression("operational_inertia", frame=frame))
    largest = reduce(
        maximum, list[Any](inertia.diagonal())
    )  # of a positive matrix it is on the diagonal
    return inertia, np.array([largest])


@once_per_mechanism
def _heavy(mech: Mechanism | Embedded, nodes: tuple[str, ...]) -> float:
    """An inertia [kg, kg m²] that only nearly lost directions have.

    The small dense inverse loses a digit with each one that Λ gains; from here on the inertia comes
    from `operational_space`, which loses half as many.
    """
    length = reach(mech, nodes)
    mass = mech.total_mass + float(mech.armature.sum()) / length**2
    return HEAVY * mass * min(1.0, length**2) or np.inf


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


def _warn(space: OperationalSpace, singular: NDArray[np.bool_]) -> None:
    """Warn about ranks that are not full."""
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
        "for the motions that exist; lw.operational_space says which, and does not warn.",
        RankWarning,
        stacklevel=caller(),
    )


@begins_bare("node", "frame")
def operational_inertia_inverse(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: Frame = "node",
    loops: Loops = "closed",
    **options: Unpack[Options],
) -> Array:
    """The response of nodes to forces: acceleration (angular, linear) per force (moment, force).

    Expression:
        J 𝓜⁻¹ J*,   `J @ mass.inv @ J.T`
    with the armature of the mechanism in 𝓜, and rot_W J for J in world axes.

    Derived form, 2 passes, O(n) for one node:
        B* ψ* H* D⁻¹ H ψ B

    With loops and couplings held, see `operational_space`.

    Args:
        frame: Axes: those of the "node" or of the "world"; the point is the node's origin.

    Returns:
        (6 k, 6 k) for k nodes, or (batch, 6 k, 6 k).
    """
    check_mechanism(mech)
    if is_closed(mech, loops):
        space = operational_space(mech, q, node, frame=frame, status=options.get("status"))
        return put(space.inverse, options.get("out"))
    inverse = kernel(tree_of(mech), "operational_inertia_inverse", node, frame=frame)
    return begun(tree_of(mech), "operational_inertia_inverse", (node, frame), inverse)(q, **options)
